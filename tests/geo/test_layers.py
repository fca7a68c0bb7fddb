"""Polygons of GeoPackage, shapefile and FlatGeobuf are those of the same GeoJSON, in their own coordinate system."""

from __future__ import annotations

import numpy as np
import pytest

import mechdesign as md
from mechdesign.errors import FileFormatError, InputError
from mechdesign.problem.plane import Plane

geopandas = pytest.importorskip("geopandas", reason="geopandas is not installed")
pytest.importorskip("pyogrio", reason="needs the extra: pip install 'mechdesign[layers]'")
SUFFIXES = (".gpkg", ".shp", ".fgb")
DOMAIN = md.Domain.grid(
    (8, 8), cell=100.0, unit="m", origin=(-400.0, -400.0), plane=Plane(latitude=41.9, longitude=12.5)
)


def districts():
    """Two halves of a square about 41.9 N 12.5 E, in degrees."""
    from shapely.geometry import box

    shapes = [box(12.49, 41.89, 12.5, 41.91), box(12.5, 41.89, 12.51, 41.91)]
    return geopandas.GeoDataFrame({"name": ["west", "east"]}, geometry=shapes, crs=4326)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_area_is_that_of_the_same_geojson(tmp_path, suffix) -> None:
    districts().to_file(tmp_path / "area.geojson")
    districts().to_crs(32633).to_file(tmp_path / f"area{suffix}")
    notes: list[str] = []
    plain = md.geo.read_area(tmp_path / "area.geojson")
    projected = md.geo.read_area(tmp_path / f"area{suffix}", on_note=notes.append)
    random = np.random.default_rng(0)
    longitude, latitude = 12.485 + 0.03 * random.random(4000), 41.885 + 0.03 * random.random(4000)
    inside = plain.contains(longitude, latitude)
    # A straight edge of one system is slightly bent in the other: less than 1 point in a thousand.
    assert (inside != projected.contains(longitude, latitude)).mean() < 1e-3
    assert 0.3 < inside.mean() < 0.6
    assert any("UTM zone 33N" in note for note in notes)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_areas_keep_their_names(tmp_path, suffix) -> None:
    districts().to_crs(32633).to_file(tmp_path / f"districts{suffix}")
    areas = md.geo.read_areas(tmp_path / f"districts{suffix}", DOMAIN)
    names = np.array(areas.names)[areas.label]
    assert (names == np.where(DOMAIN.points[:, 0] < 0, "west", "east")).all()


def test_other_layers_are_refused(tmp_path) -> None:
    districts().to_file(tmp_path / "two.gpkg", layer="first")
    districts().to_file(tmp_path / "two.gpkg", layer="second")
    with pytest.raises(FileFormatError, match="one layer"):
        md.geo.read_area(tmp_path / "two.gpkg")
    (tmp_path / "damaged.gpkg").write_bytes(b"no database")
    with pytest.raises(FileFormatError, match="cannot be read"):
        md.geo.read_area(tmp_path / "damaged.gpkg")
    points = geopandas.GeoDataFrame(geometry=geopandas.points_from_xy([12.5], [41.9]), crs=4326)
    points.to_file(tmp_path / "points.fgb")
    with pytest.raises(InputError, match="holds no polygon"):
        md.geo.read_area(tmp_path / "points.fgb")

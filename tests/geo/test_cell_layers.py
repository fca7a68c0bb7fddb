"""Cells as layers: right places in three cities, one across 180 degrees, right figures, in four formats."""

from __future__ import annotations

import json

import numpy as np
import pytest
from fixtures.absent_capabilities import needs

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.geo.cell_layers import CellLayer, save_cells
from mechdesign.geo.shapes import plane_system
from mechdesign.problem.plane import Plane

CITIES = {"Rome": (41.9, 12.5), "Sydney": (-33.87, 151.2), "Taveuni": (-16.85, 179.999)}
MASK = np.ones((5, 4), bool)
MASK[0, 3] = False
NEAR = 1e-6  # degrees, 11 cm: coordinates of layers are rounded to less


def city(name: str, unit: str = "m"):
    """A mechanism of 19 cells of 200 m by 250 m about a city, with a prior that differs between cells."""
    latitude, longitude = CITIES[name]
    scale = 0.001 if unit == "km" else 1.0
    plane = Plane(latitude=latitude, longitude=longitude, unit=unit)
    cell, origin = (200.0 * scale, 250.0 * scale), (-500.0 * scale, -480.0 * scale)
    domain = md.Domain.grid((5, 4), cell=cell, unit=unit, origin=origin, mask=MASK, plane=plane)
    prior = np.arange(1.0, 20.0) / 190
    metric = md.Euclidean(epsilon=0.01 / scale, unit=unit)
    problem = md.DesignProblem(domain=domain, metric=metric, prior=prior, loss=md.losses.Distance())
    return md.baselines.exponential(problem), domain


@pytest.mark.parametrize(("name", "unit"), [("Rome", "m"), ("Sydney", "km"), ("Taveuni", "m")])
def test_pixels_lie_where_the_cells_are(tmp_path, name, unit) -> None:
    """By two routes: the file's own system and transform, by pyproj, and the plane of the mechanism."""
    rasterio = pytest.importorskip("rasterio", reason="needs the extra: pip install 'mechdesign[geo]'")
    pyproj = pytest.importorskip("pyproj", reason="needs the extra: pip install 'mechdesign[geo]'")
    mechanism, domain = city(name, unit)
    save_cells(mechanism, tmp_path / "cells.tif")
    with rasterio.open(tmp_path / "cells.tif") as file:
        assert file.descriptions == ("prior", "level", "expected_error")
        prior, transform, system = file.read(1), file.transform, file.crs.to_wkt()
        assert file.tags()["claim"] == mechanism.attrs["claim"]
    assert (np.isfinite(prior)).sum() == 19
    rows, columns = np.nonzero(np.isfinite(prior))
    x = transform.c + transform.a * (columns + 0.5)
    y = transform.f + transform.e * (rows + 0.5)
    assert transform.b == transform.d == 0
    to_degrees = pyproj.Transformer.from_crs(system, "EPSG:4326", always_xy=True)
    found = np.column_stack(to_degrees.transform(x, y))
    # The prior names the cell.
    cells = np.rint(prior[rows, columns] * 190).astype(int) - 1
    expected = np.column_stack(domain.plane.backward(domain.points))[cells]
    assert np.abs((found - expected + 180) % 360 - 180).max() < NEAR


@pytest.mark.parametrize("name", CITIES)
def test_polygons_lie_where_the_cells_are(tmp_path, name) -> None:
    shapely = pytest.importorskip("shapely", reason="needs the extra: pip install 'mechdesign[geo]'")
    mechanism, domain = city(name)
    save_cells(mechanism, tmp_path / "cells.geojson")
    collection = json.loads((tmp_path / "cells.geojson").read_text())
    assert collection["claim"] == mechanism.attrs["claim"]
    shapes = shapely.from_geojson([json.dumps(feature["geometry"]) for feature in collection["features"]])
    east, north = domain.plane.backward(domain.points)
    assert shapely.contains_xy(shapes, east, north).all()
    assert shapely.contains_xy(shapes[0], east, north).sum() == 1
    # A cell of 0.2 by 0.25 km is less than 0.01 degrees wide: none is drawn around the Earth.
    parts = shapely.get_parts(shapes)
    bounds = shapely.bounds(parts)
    assert (bounds[:, 2] - bounds[:, 0]).max() < 0.01
    assert (np.abs(bounds[:, [0, 2]]) <= 180).all()
    assert (len(parts) > len(shapes)) == (name == "Taveuni")
    metres = shapely.transform(shapely.union_all(shapes), lambda xy: domain.plane.forward(xy[:, 0], xy[:, 1]))
    assert metres.area == pytest.approx(19 * 200 * 250, rel=1e-4)
    rings = [ring for part in parts for ring in [part.exterior]]
    assert all(ring.is_ccw for ring in rings)  # RFC 7946


@pytest.mark.parametrize("name", CITIES)
def test_geopandas_reads_the_same_layer(tmp_path, name) -> None:
    geopandas = pytest.importorskip("geopandas", reason="geopandas is not installed")
    pytest.importorskip("pyogrio", reason="needs the extra: pip install 'mechdesign[layers]'")
    mechanism, domain = city(name)
    east, north = degrees = domain.plane.backward(domain.points)
    read = {".gpkg": geopandas.read_file, ".geojson": geopandas.read_file, ".parquet": geopandas.read_parquet}
    for suffix, reader in read.items():
        save_cells(mechanism, tmp_path / f"cells{suffix}", origin=(float(degrees[0][7]), float(degrees[1][7])))
        frame = reader(tmp_path / f"cells{suffix}").sort_values("cell")
        assert frame.crs.to_authority() in (("EPSG", "4326"), ("OGC", "CRS84"))
        assert np.allclose(frame["prior"], np.arange(1.0, 20.0) / 190)
        assert np.allclose(frame["probability"], md.probabilities(mechanism).values[7])
        assert frame.contains(geopandas.GeoSeries.from_xy(east, north, crs=frame.crs, index=frame.index)).all()


@pytest.mark.parametrize(("name", "utm"), [("Rome", 32633), ("Sydney", 32756), ("Taveuni", 32760)])
def test_systems_of_choice_hold_the_same_cells(tmp_path, name, utm) -> None:
    """The plane and UTM, read by geopandas and projected to degrees by pyproj."""
    geopandas = pytest.importorskip("geopandas", reason="geopandas is not installed")
    pytest.importorskip("pyogrio", reason="needs the extra: pip install 'mechdesign[layers]'")
    mechanism, domain = city(name, "km" if name == "Sydney" else "m")
    east, north = domain.plane.backward(domain.points)
    read = {".gpkg": geopandas.read_file, ".parquet": geopandas.read_parquet}
    for words, ellipsoidal in (("plane", True), (f"EPSG:{utm}", False)):
        for suffix, reader in read.items():
            path = tmp_path / f"cells{suffix}"
            written = save_cells(mechanism, path, crs=words, overwrite=True)
            assert written["crs"] == (plane_system(domain.plane) if ellipsoidal else words)
            frame = reader(path).sort_values("cell")
            assert frame.crs.is_projected
            assert frame.crs.to_epsg() == (None if ellipsoidal else utm)
            # Cells are whole across 180 degrees; UTM changes lengths by at most 1 in 1,000 in its zone.
            assert (frame.geom_type == "Polygon").all()
            assert np.allclose(frame.area, 200 * 250, rtol=1e-9 if ellipsoidal else 2e-3)
            degrees = frame.centroid.to_crs(4326)
            assert np.abs(np.mod(degrees.x - east + 180, 360) - 180).max() < NEAR
            assert np.abs(degrees.y - north).max() < NEAR


def test_figures_are_those_of_the_mechanism() -> None:
    mechanism, domain = city("Rome")
    columns = CellLayer(mechanism=mechanism).columns
    assert list(columns) == ["prior", "level", "expected_error"]
    # By another route: the mean over the prior is the expected distance of the mechanism.
    assert columns["prior"] @ columns["expected_error"] == pytest.approx(md.utility.expected_distance(mechanism))
    assert plane_system(domain.plane).startswith("+proj=aeqd +lat_0=41.9 +lon_0=12.5 ")


@needs("positions")
@pytest.mark.study
def test_probabilities_of_a_position_are_those_of_draws() -> None:
    design = md.geo.design(md.geo.Area.box(12.48, 41.885, 12.49, 41.893), 200, within=200, factor=2)
    mechanism = design.mechanism
    place = (12.4853, 41.8892)
    expected = CellLayer(mechanism=mechanism, origin=place).columns["probability"]
    draws = md.sample(mechanism, degrees=[place], size=200_000, rng=1).values.ravel()
    seen = np.bincount(draws, minlength=len(expected)) / len(draws)
    assert np.abs(seen - expected).max() < 5 * np.sqrt(expected.max() / len(draws))
    assert expected.sum() == pytest.approx(1)


def test_command_writes_layers_and_refuses_by_name(run, tmp_path) -> None:
    mechanism, _ = city("Rome")
    md.save(mechanism, tmp_path / "m.nc")
    words = ("export", tmp_path / "m.nc", "-o")
    code, out, _ = run(*words, tmp_path / "c.geojson", "--from", "12.5,41.9", "--json")
    assert code == 0
    assert json.loads(out)["columns"] == ["prior", "level", "expected_error", "probability"]
    assert run(*words, tmp_path / "c.geojson")[0] == 2  # exists
    for name, options, message in [
        ("d.geojson", ("--from", "41.9,12.5"), "exchanged"),
        ("d.geojson", ("--from", "12.5"), "write LON,LAT"),
        ("d.geojson", ("--rows", "0:3"), "rows: does not apply to .geojson"),
        ("d.csv", ("--from", "12.5,41.9"), "from: does not apply to .csv"),
        ("d.csv", ("--cells",), "cells: does not apply to .csv"),
        ("d.shp", (), "unknown kind of output"),
        ("d.geojson", ("--crs", "EPSG:32633"), "GeoJSON is in longitude and latitude"),
        ("d.geojson", ("--crs", "Rome"), "is not a coordinate system"),
        ("d.tif", ("--crs", "EPSG:32633"), "pixels are cells of the plane"),
        ("d.csv", ("--crs", "plane"), "crs: does not apply to .csv"),
    ]:
        code, _, err = run(*words, tmp_path / name, *options)
        assert (code, (tmp_path / name).exists()) == (2, False)
        assert message in err
    plain = md.baselines.exponential(md.load_problem("flat", cells=3))
    with pytest.raises(InputError, match="where on Earth"):
        save_cells(plain, tmp_path / "e.geojson")

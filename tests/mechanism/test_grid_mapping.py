"""The coordinate system of a Dataset: read by rioxarray, equal to the plane, and not a way to alter a file."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import mechdesign as md
from mechdesign.errors import VerificationError
from mechdesign.mechanism import storage
from mechdesign.mechanism.hashing import content_digest
from mechdesign.mechanism.schema import TABLE_SCHEMA, validate
from mechdesign.problem.plane import Plane

PLACES = {"Rome": (41.9, 12.5, "m"), "Sydney": (-33.87, 151.2, "km"), "Taveuni": (-16.85, 179.999, "mi")}
NEAR = 1e-9  # degrees: the projection of two libraries, 0.1 mm


def city(name: str) -> xr.Dataset:
    latitude, longitude, unit = PLACES[name]
    plane = Plane(latitude=latitude, longitude=longitude, unit=unit)
    domain = md.Domain.grid((3, 2), cell=1.5, unit=unit, origin=(-2.0, 0.5), plane=plane)
    metric = md.Euclidean(epsilon=0.5, unit=unit)
    problem = md.DesignProblem(domain=domain, metric=metric, prior=np.full(6, 1 / 6), loss=md.losses.Distance())
    return md.baselines.exponential(problem)


@pytest.mark.parametrize("name", PLACES)
def test_rioxarray_reads_the_system_of_the_plane(tmp_path, name) -> None:
    pytest.importorskip("rioxarray", reason="rioxarray is not installed")
    pyproj = pytest.importorskip("pyproj", reason="needs the extra: pip install 'mechdesign[geo]'")
    made = city(name)
    loaded = md.load(md.save(made, tmp_path / "city.nc"))
    assert loaded.rio.crs == made.rio.crs
    assert md.verify(loaded).certified
    # Two routes: rioxarray's system of the coordinates in the file, and the plane of the mechanism.
    to_degrees = pyproj.Transformer.from_crs(loaded.rio.crs, "EPSG:4326", always_xy=True)
    found = np.column_stack(to_degrees.transform(loaded["secret_x"].values, loaded["secret_y"].values))
    points = np.column_stack([loaded["secret_x"].values, loaded["secret_y"].values])
    latitude, longitude, unit = PLACES[name]
    expected = np.column_stack(Plane(latitude=latitude, longitude=longitude, unit=unit).backward(points))
    assert np.abs(found - expected).max() < NEAR


@pytest.mark.filterwarnings("ignore:Use `@` matmul:PendingDeprecationWarning")  # of rasterio's own transform
def test_maps_are_reprojected_by_rioxarray() -> None:
    pytest.importorskip("rioxarray", reason="rioxarray is not installed")
    prior = md.on_grid(city("Rome")["prior"]).rename(secret_x="x", secret_y="y")
    degrees = prior.rio.reproject("EPSG:4326")
    assert abs(float(degrees["y"].mean()) - 41.9) < 1e-3
    assert abs(float(degrees["x"].mean()) - 12.5) < 1e-3


def test_attributes_follow_cf_without_other_packages() -> None:
    attrs = city("Sydney")["spatial_ref"].attrs
    assert attrs["grid_mapping_name"] == "azimuthal_equidistant"
    assert (attrs["latitude_of_projection_origin"], attrs["longitude_of_projection_origin"]) == (-33.87, 151.2)
    pyproj = pytest.importorskip("pyproj", reason="needs the extra: pip install 'mechdesign[geo]'")
    by_names = pyproj.CRS.from_cf({name: value for name, value in attrs.items() if name != "spatial_ref"})
    assert by_names.to_cf()["longitude_of_projection_origin"] == 151.2
    assert "spatial_ref" not in md.baselines.exponential(md.load_problem("flat", cells=3)).coords


def test_the_system_is_not_part_of_a_file_and_cannot_be_altered(tmp_path) -> None:
    made = city("Rome")
    bare = made.drop_vars("spatial_ref")
    # Files and digests are those of versions that did not have it.
    assert content_digest(bare) == content_digest(made)
    assert md.save(bare, tmp_path / "bare.nc").read_bytes() == md.save(made, tmp_path / "made.nc").read_bytes()
    other = made.assign_coords(spatial_ref=city("Sydney")["spatial_ref"])
    as_data = made.reset_coords("spatial_ref")
    larger = bare.assign_coords(spatial_ref=("secret", np.zeros(6), made["spatial_ref"].attrs))
    plain = md.baselines.exponential(md.load_problem("flat", cells=3))
    on_no_plane = plain.assign_coords(spatial_ref=made["spatial_ref"])
    for forged in (other, as_data, larger, on_no_plane):
        for judge in (md.verify, lambda dataset: validate(dataset, TABLE_SCHEMA)):
            with pytest.raises(VerificationError, match="is not the coordinate system"):
                judge(forged)


@pytest.mark.parametrize("as_array", [False, True])
def test_a_file_with_a_system_of_its_own_is_refused(tmp_path, monkeypatch, as_array) -> None:
    """The digest skips the name, so no file may have it."""
    made = city("Rome")
    other = ("secret", np.zeros(6)) if as_array else city("Sydney")["spatial_ref"]
    monkeypatch.setattr(storage, "without_derived", lambda dataset: dataset.assign_coords(spatial_ref=other))
    storage.write_dataset(made, tmp_path / "forged.nc")
    with pytest.raises(VerificationError, match="spatial_ref: "):
        md.load(tmp_path / "forged.nc")

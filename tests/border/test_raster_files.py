"""Kinds of raster files with their units, gaps, layers and coordinate systems. Each is read or refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr
from border_data import border_file
from border_rasters import BOX, HOLES, QUICK, ROME, ROUNDED, degrees_tiff, prior_of, pyproj, rasterio, sparse_people
from fixtures.tolerances import REORDERED

import mechdesign as md
from mechdesign.errors import FileFormatError, InputError, UnitError
from mechdesign.geo import raster_on


@pytest.mark.parametrize(("name", "level"), [("r05_levels_scaled.tif", 0.002), ("r07_levels_per_km.nc", 0.002)])
def test_declared_levels_are_those_of_other_programs(run_json, tmp_path, name, level):
    code, _ = run_json(*BOX, "--levels-from", border_file(name), "--positions", "cells", "-o", tmp_path / "a.nc")
    assert code == 0
    values = md.load(tmp_path / "a.nc")["level"].values
    assert values == pytest.approx(level, rel=1e-6)
    assert (values <= level).all()


@pytest.mark.parametrize(
    ("unit", "factor"),
    [
        *((unit, 1e-3) for unit in ("1/km", "km-1", "nats/km", "nat km-1", "nats per km", "km^-1", "1 / km", "nat/km")),
        *((unit, 1.0) for unit in ("1/m", "m-1", "nats per metre", "1", "", "nats/m", "m**-1")),
        *((unit, 1 / 1609.344) for unit in ("1/mi", "nats per mile")),
        *((unit, None) for unit in ("people", "m", "km", "nats", "%", "bits/km", "1/s", "km-2", "1/km2", "dB/km")),
    ],
)
def test_unit_of_a_level_is_applied_or_refused(unit, factor):
    raster = md.Raster(x=[0.0, 1.0], y=[0.0], values=[[2.0], [3.0]], unit="m", value_unit=unit)
    if factor is None:
        with pytest.raises(UnitError, match="nats per unit of length"):
            md.PrivacyLevel(raster=raster)
    else:
        assert md.PrivacyLevel(raster=raster).largest == pytest.approx(3.0 * factor, rel=REORDERED)


def test_steep_levels_are_refused_unless_allowed(run_json, tmp_path):
    path = degrees_tiff(tmp_path / "levels.tif", np.full((20, 14), 2.0), low=(12.44, 41.86), step=0.005)
    words = [*BOX, "--levels-from", path, "--positions", "cells", "-o", tmp_path / "a.nc"]
    code, document = run_json(*words)
    assert (code, document["error"]["field"]) == (2, "levels")
    assert "--nats-per-cell" in document["error"]["message"]
    domain = ROME.grid(500.0)
    level = md.PrivacyLevel(raster=raster_on(domain, path))
    with pytest.raises(InputError, match=r"1000 nats across a cell.*nats_per_cell=1000"):
        md.geo.area_problem(domain, epsilon=level)
    assert md.geo.area_problem(domain, epsilon=level, nats_per_cell=1001).domain.size == 80


def test_undeclared_degrees_are_refused_in_any_unit(run_json, tmp_path):
    path = border_file("r08_world_no_prj.asc")
    words = [*BOX[:3], "--cell", "0.5", "--unit", "km", "--within", "1", "--factor", "2", *QUICK[4:], "--prior", path]
    code, document = run_json(*words, "-o", tmp_path / "a.nc")
    assert (code, document["error"]["field"]) == (2, "raster")
    assert "--crs EPSG:4326" in document["error"]["message"]
    assert run_json(*words, "--crs", "EPSG:4326", "-o", tmp_path / "a.nc")[0] == 0
    assert md.load(tmp_path / "a.nc")["prior"].values.std() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("kind", ["tif", "nc", "csv"])
def test_undeclared_degrees_of_every_format(tmp_path, kind):
    domain, values, path = ROME.grid(500.0), sparse_people() + 1.0, tmp_path / f"map.{kind}"
    degrees_tiff(tmp_path / "known.tif", values)
    x, y = 12.4405 + 0.001 * np.arange(100), 41.8505 + 0.001 * np.arange(80)
    array = xr.DataArray(values, coords={"x": x, "y": y}, dims=("x", "y"), name="people")
    if kind == "tif":
        degrees_tiff(path, values, crs=None)
    elif kind == "nc":
        array.to_netcdf(path, engine="h5netcdf")
    else:
        array.to_dataframe().to_csv(path)
    with pytest.raises(InputError, match="may be degrees"):
        raster_on(domain, path)
    result = md.priors.from_density(raster_on(domain, path, crs="EPSG:4326"), domain)
    known = md.priors.from_density(raster_on(domain, tmp_path / "known.tif"), domain)
    assert result == pytest.approx(known, rel=1e-9)


def test_scattered_points_are_not_a_raster(run_json, tmp_path):
    """A million nodes for a thousand lines would fill the memory."""
    points = np.random.default_rng(1).uniform(0, 1, (1000, 2)) / 20 + [12.46, 41.87]
    path = tmp_path / "people.csv"
    lines = [f"{x:.6f},{y:.6f},5" for x, y in points]
    path.write_text("longitude,latitude,population\n" + "\n".join(lines))
    message = prior_of(run_json, tmp_path, "--prior", path)[1]["error"]["message"]
    assert "lists points" in message
    assert "--levels-from FILE" in message


@pytest.mark.parametrize("name", ["r12_time.nc", "r14_decimal_comma.asc", "r15_bom.asc"])
def test_usual_files_make_a_design(run_json, tmp_path, name):
    prior, _ = prior_of(run_json, tmp_path, "--prior", border_file(name))
    if name == "r12_time.nc":
        assert prior.sum() == pytest.approx(1.0)
    else:
        assert prior == pytest.approx(1 / 80)  # 10.5 everywhere


def ascii_grid(folder, body, head="ncols 2\nnrows 2\nxllcorner 0\nyllcorner 0\ncellsize 1000\n", encoding="utf-8"):
    path = folder / "map.asc"
    path.write_text(head + body, encoding=encoding)
    return path


@pytest.mark.parametrize(
    ("body", "encoding", "values"),
    [
        ("1,5 2\n3 4\n", "utf-8", [3, 1.5, 4, 2]),
        ("1,5 2\r\n3 4\r\n\r\n", "utf-8-sig", [3, 1.5, 4, 2]),
        ("1.5 2\n3 4\n", "utf-16", [3, 1.5, 4, 2]),
        ("1,500 2\n3 4\n", "utf-8", None),  # 1.5 or 1,500
        ("1,500.5 2\n3 4\n", "utf-8", None),
        ("1,2,3,4\n", "utf-8", None),
        ("1_5 2\n3 4\n", "utf-8", None),
        ("1\uff15 2\n3 4\n", "utf-8", None),
        ("1,2\n3,4\n", "utf-8", None),  # two numbers for four
        ("-9999 2\n3 4\n", "utf-8", None),  # NODATA of ESRI if none is declared
    ],
)
def test_ascii_numbers_are_understood_or_refused(tmp_path, body, encoding, values):
    path = ascii_grid(tmp_path, body, encoding=encoding)
    if values is None:
        with pytest.raises(InputError):
            md.read.raster(path, unit="m")
    else:
        assert md.read.raster(path, unit="m").values.ravel().tolist() == values


def test_layers_bounds_and_variables_of_netcdf(tmp_path):
    """Edges of cells are not read as data; one of two variables is named; two moments are refused."""
    x, y = np.arange(3.0), np.arange(2.0)
    values = np.arange(6.0).reshape(1, 2, 3, 1)
    data = xr.Dataset(
        {
            "pop": (("time", "y", "x", "band"), values),
            "x_edges": (("x", "corner"), np.zeros((3, 2))),
            "y_bnds": (("y", "bnds"), np.zeros((2, 2))),
        },
        coords={"time": [2020], "x": ("x", x, {"bounds": "x_edges", "units": "m"}), "y": ("y", y, {"units": "m"})},
    )
    path = tmp_path / "map.nc"
    data.to_netcdf(path, engine="h5netcdf")
    assert md.read.raster(path, unit="m").values.tolist() == values[0, :, :, 0].T.tolist()
    data["men"] = data["pop"] / 2
    data.to_netcdf(path, engine="h5netcdf")
    with pytest.raises(FileFormatError, match=r"\['pop', 'men'\].*variable=NAME"):
        md.read.raster(path, unit="m")
    assert md.read.raster(path, unit="m", variable="men").values.max() == 2.5
    two = xr.concat([data[["pop"]], data[["pop"]].assign_coords(time=[2021])], dim="time")
    two.to_netcdf(tmp_path / "two.nc", engine="h5netcdf")
    with pytest.raises(FileFormatError, match="time 2"):
        md.read.raster(tmp_path / "two.nc", unit="m", variable="pop")
    single = xr.DataArray([[1.0, 2.0, 3.0]], coords={"y": [0.0], "x": x}, dims=("y", "x"))
    assert md.read.raster(single.expand_dims(time=[1]), unit="m").values.ravel().tolist() == [1, 2, 3]


def test_variable_and_band_are_named_on_the_command_line(run_json, tmp_path):
    path = tmp_path / "map.tif"
    grid = rasterio.transform.Affine(0.001, 0.0, 12.44, 0.0, -0.001, 41.93)
    shape = {"width": 100, "height": 80, "count": 2, "dtype": "float64", "crs": "EPSG:4326", "transform": grid}
    with rasterio.open(path, "w", driver="GTiff", **shape) as file:
        file.write(sparse_people((80, 100), 1), 1)
        file.write(sparse_people((80, 100), 2), 2)
        file.descriptions = ("men", "women")
    assert "holds 2 bands" in prior_of(run_json, tmp_path, "--prior", path)[1]["error"]["message"]
    by_name = prior_of(run_json, tmp_path, "--prior", path, "--variable", "women")[0]
    by_number = prior_of(run_json, tmp_path, "--prior", path, "--variable", "2")[0]
    assert np.array_equal(by_name, by_number)
    assert not np.array_equal(by_name, prior_of(run_json, tmp_path, "--prior", path, "--variable", "men")[0])


def test_arrays_in_memory_are_files(tmp_path):
    """Also one that was read without its scale, as rioxarray reads it."""
    domain, values = ROME.grid(500.0), sparse_people()
    path = degrees_tiff(tmp_path / "map.tif", values, dtype="int16", scale=0.5, nodata=-1)
    known = raster_on(domain, path)
    x, y = 12.4405 + 0.001 * np.arange(100), 41.8505 + 0.001 * np.arange(80)
    packed = {"scale_factor": 0.5, "_FillValue": -1}
    array = xr.DataArray(
        values.T[::-1].astype("int16")[None], coords={"band": [1], "y": y[::-1], "x": x}, dims=("band", "y", "x")
    ).assign_attrs(packed)
    array.coords["spatial_ref"] = ((), 0, {"crs_wkt": pyproj.CRS("EPSG:4326").to_wkt()})
    result = raster_on(domain, array)
    assert result.amounts == pytest.approx(known.amounts, rel=1e-9)
    flat = xr.DataArray([[1.0, 0.0], [0.0, 3.0]], coords={"x": [0.5, 1.5], "y": [0.5, 1.5]}, dims=("x", "y"))
    assert md.priors.from_density(flat, md.Domain.grid((2, 2), 1.0)).tolist() == [0.25, 0.0, 0.0, 0.75]
    with pytest.raises(UnitError, match="degree"):
        md.priors.from_density(flat.rename(x="lon", y="lat"), md.Domain.grid((2, 2), 1.0, unit="m"))


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
@pytest.mark.parametrize("kind", ["complex", "rotated", "negative", "infinite", "pixels"])
def test_rasters_without_an_answer_are_refused(tmp_path, kind):
    domain, values = ROME.grid(500.0), sparse_people() + 1.0
    profile = {}
    if kind == "complex":
        profile["dtype"] = "complex64"
    if kind == "rotated":
        profile["transform"] = rasterio.transform.Affine(0.001, 1e-5, 12.44, 1e-5, -0.001, 41.93)
    if kind == "negative":
        values[40, 40] = -1.0  # fewer than the others in its cell
    if kind == "infinite":
        values[:] = [np.inf, 1e305] * 40
    if kind == "pixels":
        profile |= {"transform": rasterio.transform.Affine.identity(), "crs": None}
    path = degrees_tiff(tmp_path / "map.tif", values, **profile)
    with pytest.raises(InputError):
        md.priors.from_density(raster_on(domain, path), domain)


@pytest.mark.parametrize("kind", ["nodata", "mask", "alpha", "point"])
def test_masks_of_tiffs_are_nodata(tmp_path, kind):
    """Empty pixels in three ways, as bytes; and a file whose tie point is the centre of a pixel."""
    domain, world = ROME.grid(500.0), np.where(HOLES, 0, np.minimum(sparse_people(), 250.0))
    known = raster_on(domain, degrees_tiff(tmp_path / "known.tif", world), prior_is="counts")
    path, band = tmp_path / "map.tif", world.T[::-1].astype("uint8")
    grid = rasterio.transform.Affine(0.001, 0.0, 12.44, 0.0, -0.001, 41.93)
    profile = {"driver": "GTiff", "width": 100, "height": 80, "dtype": "uint8", "crs": "EPSG:4326", "transform": grid}
    hidden = HOLES.T[::-1] & (kind != "point")
    stored_band = np.where(hidden, 255, band).astype("uint8")
    bands = 2 if kind == "alpha" else 1
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True), rasterio.open(path, "w", count=bands, **profile) as file:
        file.write(stored_band, 1)
        if kind == "nodata":
            file.nodata = 255
        elif kind == "mask":
            file.write_mask(~hidden)
        elif kind == "alpha":
            file.write(np.where(hidden, 0, 255).astype("uint8"), 2)
            file.colorinterp = [rasterio.enums.ColorInterp.gray, rasterio.enums.ColorInterp.alpha]
        else:
            file.write(band, 1)
            file.update_tags(AREA_OR_POINT="Point")
    result = raster_on(domain, path, prior_is="counts", nodata_is=0.0)
    assert result.amounts == pytest.approx(known.amounts, rel=ROUNDED)


@pytest.mark.parametrize(
    ("attributes", "stored"),
    [
        ({"valid_range": [0.0, 400.0]}, -9999.0),
        ({"valid_min": 0.0}, -1.0),
        ({"missing_value": 1e20}, 1e20),
        ({"_FillValue": -3.4028235e38}, -3.4028235e38),
    ],
)
def test_missing_values_of_cf(tmp_path, attributes, stored):
    domain, world = ROME.grid(500.0), np.where(HOLES, 0, sparse_people())
    known = raster_on(domain, degrees_tiff(tmp_path / "known.tif", world), prior_is="counts")
    values = np.where(HOLES, stored, world)
    x, y = 12.4405 + 0.001 * np.arange(100), 41.8505 + 0.001 * np.arange(80)
    array = xr.DataArray(values, coords={"lon": x, "lat": y}, dims=("lon", "lat"), name="people", attrs=attributes)
    array.to_netcdf(tmp_path / "map.nc", engine="h5netcdf")
    for source in (array, tmp_path / "map.nc"):
        result = raster_on(domain, source, prior_is="counts", nodata_is=0.0)
        assert result.amounts == pytest.approx(known.amounts, rel=1e-9)


def test_rotated_poles_are_projected(tmp_path):
    """CF grid mappings without WKT: axes called degrees that are not those of the Earth."""
    mapping = {
        "grid_mapping_name": "rotated_latitude_longitude",
        "grid_north_pole_latitude": 39.25,
        "grid_north_pole_longitude": -162.0,
    }
    x, y = np.arange(-8.0, 0.0, 0.11), np.arange(-12.0, -4.0, 0.11)
    from_pole = pyproj.Transformer.from_crs(pyproj.CRS.from_cf(mapping), "EPSG:4326", always_xy=True)
    longitude, latitude = from_pole.transform(*np.meshgrid(x, y, indexing="ij"))
    axes = {"rlon": ("rlon", x, {"units": "degrees"}), "rlat": ("rlat", y, {"units": "degrees"})}
    data = xr.Dataset({"level": (("rlon", "rlat"), longitude + 100 * latitude, {"grid_mapping": "pole"})}, coords=axes)
    data["pole"] = ((), 0, mapping)
    data.to_netcdf(tmp_path / "map.nc", engine="h5netcdf")
    domain = ROME.grid(500.0)
    result = raster_on(domain, tmp_path / "map.nc").at(domain.points)
    east, north = domain.plane.backward(domain.points)
    # Bilinear over 0.11 degrees of coordinates that bend by less than 1 / 10 per degree.
    assert result == pytest.approx(east + 100 * north, abs=0.11**2 / 8 * 0.1 * 100)


def test_levels_need_no_data_in_the_sea(run_json, tmp_path):
    """A design may protect positions of the whole rectangle: its cells in the sea take the nearest level."""
    values = np.full((100, 80), 2.5)
    values[60:] = -1.0
    path, sea = (
        degrees_tiff(tmp_path / "map.tif", values, nodata=-1.0, value_unit="1/km"),
        border_file("r10_sea.geojson"),
    )
    words = [*BOX, "--levels-from", path, "--positions", "cells", "-o", tmp_path / "a.nc"]
    assert "24 of 80 cells" in run_json(*words)[1]["error"]["message"]
    assert run_json(*words, "--forbidden", sea)[0] == 0
    assert md.load(tmp_path / "a.nc")["level"].values == pytest.approx(0.0025, rel=1e-5)
    dry = ROME.grid(500.0, forbidden=md.geo.read_area(sea))
    assert raster_on(dry, path).at(ROME.grid(500.0).points) == pytest.approx(2.5)


@pytest.mark.usefixtures("coarse_any_bound")
@pytest.mark.parametrize("levels", ["one level", pytest.param("constant", marks=pytest.mark.exhaustive), "varying"])
def test_design_beside_the_sea_verifies(run_json, tmp_path, levels):
    """The cells left are a whole rectangle: reports are the secrets, with the symmetries of that rectangle."""
    ring = [[12.4985, 41.8], [12.7, 41.8], [12.7, 42.0], [12.4985, 42.0], [12.4985, 41.8]]
    sea = tmp_path / "sea.geojson"
    sea.write_text(json.dumps({"type": "Polygon", "coordinates": [ring]}))
    varying = np.random.default_rng(2).uniform(0.001, 0.003, (100, 80))
    path = degrees_tiff(tmp_path / "map.tif", varying if levels == "varying" else np.full((100, 80), 0.002))
    level = ["--epsilon", "0.002"] if levels == "one level" else ["--levels-from", path]
    words = ["area", "--box", "12.462,41.872,12.518,41.908", "--cell", "1500", *level, "--forbidden", sea]
    code, result = run_json(*words, "--positions", "any", "-o", tmp_path / "a.nc")
    assert code == 0, result
    checked = md.verify(tmp_path / "a.nc")
    assert checked.certified
    assert checked.lower_bound_checked


def test_levels_from_a_raster_of_people(tmp_path):
    """The radius that holds so many people is that of the people in the cells, and not of values at their centres."""
    domain, path = ROME.grid(500.0), degrees_tiff(tmp_path / "map.tif", sparse_people())
    raster = raster_on(domain, path)
    per_area = md.Raster(x=raster.x, y=raster.y, values=raster.amounts / 500.0**2, unit="m")
    rule = {"people": 3000.0, "least": 500.0, "most": 3000.0}
    result, known = (md.geo.elastic_level(density, **rule).raster.values for density in (raster, per_area))
    assert result == pytest.approx(known, rel=1e-12)
    assert result.std() > 0

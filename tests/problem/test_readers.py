from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from conftest import ROOT
from fixtures.rows import few_by_default

from mechdesign import PrivacyLevel
from mechdesign.errors import FileFormatError, InputError, UnitError
from mechdesign.read import raster as read_raster

PRINTED = 5e-4  # eps of the Philadelphia map is known to three decimals

DATA = ROOT.parent / "shared" / "data"
X, Y = np.array([5.0, 15.0, 25.0]), np.array([-4.0, -2.0])
VALUES = np.array([[4.0, 1.0], [5.0, 2.0], [6.0, 3.0]])  # x first, south to north
ROWS = "1 2 3\n4 5 6\n"  # north to south
CORNER = "ncols 3\nnrows 2\nxllcorner 0\nyllcorner -5\ndx 10\ndy 2\n"
GEOGRAPHIC = 'GEOGCS["WGS 84",DATUM["WGS_1984"],UNIT["degree",0.0174532925199433]]'
ENGINES = ("scipy", "h5netcdf")
METRES = {"units": "m"}


def asc(folder, text, prj=None):
    path = folder / "map.asc"
    path.write_text(text)
    if prj is not None:
        (folder / "map.prj").write_text(prj)
    return path


def netcdf(folder, dims=("y", "x"), *, values=VALUES.T, axes=None, engine="scipy", attrs=None, **others):
    """A file with axes X and Y in metres by default; others: more variables of the dataset."""
    ours = {name: (name, Y if name[0] == "y" else X, METRES) for name in dims}
    named = {"density": (dims, values, attrs or {"units": "persons"}), **others}
    path = folder / "map.nc"
    xr.Dataset(named, coords=ours if axes is None else axes).to_netcdf(path, engine=engine)
    return path


def assert_is_the_map(raster):
    assert raster.x.tolist() == X.tolist()
    assert raster.y.tolist() == Y.tolist()
    assert raster.values.tolist() == VALUES.tolist()
    assert raster.unit == "m"


@pytest.mark.parametrize(
    "header",
    [
        CORNER,
        CORNER.upper(),
        CORNER.replace("dx 10", "cellsize 10"),
        "NCOLS 3\nNROWS 2\nXLLCENTER 5\nYLLCENTER -4\nDX 10\nDY 2\n",
        "ncols 3\nnrows 2\nxllcenter 5\nyllcorner -5\ndx 10\ncellsize 2\nNODATA_value -9999\n",
    ],
)
def test_esri_ascii(tmp_path, header):
    assert_is_the_map(read_raster(asc(tmp_path, header + ROWS), unit="metres"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CORNER + "1 2 3\n4 5", "announces 2 x 3"),
        (CORNER + ROWS + "7", "announces 2 x 3"),
        (CORNER, "announces 2 x 3"),
        (CORNER + "1 2 3\n4 five 6", "could not convert"),
        (CORNER.replace("nrows 2\n", "") + ROWS, "lacks nrows"),
        (CORNER.replace("xllcorner 0\n", "") + ROWS, "lacks xllcorner"),
        (CORNER.replace("dy 2\n", "") + ROWS, "lacks cellsize"),
        (CORNER.replace("dx 10", "dx 0") + ROWS, "cell size"),
        (CORNER.replace("dx 10", "dx nan") + ROWS, "cell size"),
        (CORNER.replace("ncols 3", "ncols three") + ROWS, "cannot be read"),
        ("", "lacks ncols"),
    ],
)
def test_malformed_esri_ascii_is_refused(tmp_path, text, message):
    with pytest.raises(FileFormatError, match=message) as caught:
        read_raster(asc(tmp_path, text), unit="m")
    assert (caught.value.field, caught.value.exit_code) == ("raster", 2)


@pytest.mark.parametrize("hole", ["-9999", "nan", "inf"])
def test_cells_without_a_value_are_refused(tmp_path, hole):
    with pytest.raises(InputError, match="without a value") as caught:
        read_raster(asc(tmp_path, CORNER + "NODATA_value -9999\n" + ROWS.replace("5", hole)), unit="m")
    assert caught.value.field == "map.asc"
    assert caught.value.value.startswith("1 NODATA")


def test_projection_files(tmp_path):
    with pytest.raises(UnitError, match="degree while m was asked") as caught:
        read_raster(asc(tmp_path, CORNER + ROWS, GEOGRAPHIC), unit="m")
    assert "project" in caught.value.remedy
    assert read_raster(asc(tmp_path, CORNER + ROWS, GEOGRAPHIC), unit="degree").unit == "degree"
    projected = f'PROJCS["UTM",{GEOGRAPHIC},UNIT["metre",1]]'
    assert_is_the_map(read_raster(asc(tmp_path, CORNER + ROWS, projected), unit="m"))


@pytest.mark.parametrize(
    ("name", "message"), [("absent.asc", "no such file"), ("map.png", "unknown kind"), ("map.tif", "cannot be read")]
)
def test_invalid_raster_files_are_refused(tmp_path, name, message):
    (tmp_path / "map.tif").write_bytes(b"II*")
    (tmp_path / "map.png").write_bytes(b"II*")
    with pytest.raises(FileFormatError, match=message):
        read_raster(tmp_path / name, unit="m")
    with pytest.raises(UnitError, match="unknown unit"):
        read_raster(tmp_path / name, unit="parsec")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("along", "across"), few_by_default([(1, 1), (-1, 1), (1, -1), (-1, -1)], (1, 1), (-1, 1)))
def test_netcdf_in_any_order_of_the_axes(tmp_path, engine, along, across):
    axes = {"x": ("x", X[::across], METRES), "y": ("y", Y[::along], METRES)}
    values = VALUES.T[::along, ::across]
    assert_is_the_map(read_raster(netcdf(tmp_path, axes=axes, values=values, engine=engine), unit="m"))
    turned = netcdf(tmp_path, ("x", "y"), axes=axes, values=values.T, engine=engine)
    assert_is_the_map(read_raster(turned, unit="m"))


@pytest.mark.parametrize(
    ("across", "along"), [("lon", "lat"), ("easting", "northing"), ("col", "row"), ("longitude", "latitude")]
)
@pytest.mark.parametrize("turned", [False, True])
def test_netcdf_axes_under_other_names(tmp_path, across, along, turned):
    axes = {across: (across, X, METRES), along: (along, Y, METRES)}
    dims, values = ((across, along), VALUES) if turned else ((along, across), VALUES.T)
    assert_is_the_map(read_raster(netcdf(tmp_path, dims, axes=axes, values=values), unit="m"))


def test_netcdf_axes_of_unknown_direction_are_refused(tmp_path):
    axes = {"a": ("a", X, METRES), "b": ("b", Y, METRES)}
    with pytest.raises(FileFormatError, match="axes named x and y"):
        read_raster(netcdf(tmp_path, ("b", "a"), axes=axes), unit="m")
    axes = {"a": ("a", X, {**METRES, "axis": "X"}), "b": ("b", Y, {**METRES, "axis": "Y"})}
    assert_is_the_map(read_raster(netcdf(tmp_path, ("b", "a"), axes=axes), unit="m"))


def plain_axes(x=None, y=None):
    return {"x": ("x", X, x or {}), "y": ("y", Y, y or {})}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "build",
    [
        {"axes": plain_axes({"units": "degrees_east"}, {"units": "degrees_north"})},
        {"axes": plain_axes(METRES, {"units": "degrees"})},
        {"axes": plain_axes({"standard_name": "longitude"}, {"standard_name": "latitude"})},
        {"axes": plain_axes({"units": "km"}, {"units": "km"})},
        {"axes": plain_axes(), "crs": ((), 0, {"spatial_ref": "EPSG:4326"})},
        {"axes": plain_axes(), "spatial_ref": ((), 0, {"grid_mapping_name": "latitude_longitude"})},
        {"axes": plain_axes(), "attrs": {"grid_mapping": "g"}, "g": ((), 0, {"crs_wkt": GEOGRAPHIC})},
    ],
)
def test_netcdf_in_another_unit_is_refused(tmp_path, build, engine):
    with pytest.raises(UnitError, match="while m was asked for"):
        read_raster(netcdf(tmp_path, engine=engine, **build), unit="m")


def test_netcdf_variable_is_named_and_axes_trusted(tmp_path):
    path = netcdf(tmp_path, axes=plain_axes(), other=(("y", "x"), -VALUES.T))
    for variable in (None, "absent"):
        with pytest.raises(FileFormatError, match="does not name one of") as caught:
            read_raster(path, unit="m", variable=variable)
        assert caught.value.field == "variable"
    assert_is_the_map(read_raster(path, unit="m", variable="density"))
    assert read_raster(path, unit="m", variable="density").value_unit == "persons"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.8, 0.97])
def test_netcdf_cut_short_is_refused(tmp_path, engine, fraction):
    path = netcdf(tmp_path, engine=engine)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(fraction * len(whole))])
    with pytest.raises(FileFormatError, match="cannot be read") as caught:
        read_raster(path, unit="m")
    assert caught.value.field == "raster"


def test_netcdf_of_three_axes_is_refused(tmp_path):
    axes = {**plain_axes(), "z": ("z", [1.0, 2.0], METRES)}
    layers = netcdf(tmp_path, ("y", "x", "z"), axes=axes, values=np.stack([VALUES.T] * 2, axis=2))
    with pytest.raises(FileFormatError, match="two axes") as caught:
        read_raster(layers, unit="m", variable="density")
    assert caught.value.field == "variable"


def test_netcdf_without_coordinates_or_values_is_refused(tmp_path):
    with pytest.raises(FileFormatError, match="two axes with coordinates"):
        read_raster(netcdf(tmp_path, axes={"x": ("x", X, METRES)}), unit="m")
    with pytest.raises(InputError, match="without a value"):
        read_raster(netcdf(tmp_path, values=np.where(VALUES.T == 5, np.nan, VALUES.T)), unit="m")


def test_philadelphia():
    path = DATA / "philadelphia_density_2000.asc"
    if not path.is_file():
        pytest.skip("the density map of Philadelphia is not beside the project")
    density = read_raster(path, unit="mi")
    assert density.values.shape == (18, 9)
    assert (density.x[0], density.values[0, -1], density.values[-1, -1]) == (-4.25, 2570.057, 341.844)
    level = PrivacyLevel.affine(density, slope=1e-4, floor=0.4)
    assert level.smallest == pytest.approx(0.400, abs=PRINTED)
    assert level.largest == pytest.approx(1.996, abs=PRINTED)

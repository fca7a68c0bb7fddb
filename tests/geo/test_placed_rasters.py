"""Rasters on Earth. Second routes: the planar pipeline, and SciPy's interpolation at coordinates found by geodesics."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from fixtures.problems import shipped_problem
from reference.checking import ROW_SUM
from reference.geometry import METRES
from scipy.interpolate import RegularGridInterpolator

import mechdesign as md
from mechdesign.errors import FileFormatError, InputError, UnitError
from mechdesign.geo import Area, Plane, raster_on

pyproj = pytest.importorskip("pyproj")
rasterio = pytest.importorskip("rasterio")

SHIPPED = Path(shipped_problem("philadelphia").__file__).parent / "data" / "philadelphia_density_2000.asc"
CITY_HALL = Plane(latitude=39.9526, longitude=-75.1652, unit="mi")
SAME_TABLE = 1e-9  # of probabilities: axes that went through metres differ by an ulp
INTERPOLATED = 1e-9  # relative, of the same bilinear function at positions good to nanometres
UTM = "EPSG:32631"  # zone 31 north
AREA = (2.33, 48.85, 2.36, 48.87)


def tiff(folder, values, low, step, crs, name="map.tif", bands=1, nodata=None, turn=0.0):
    """A GeoTIFF of values (kx, ky) with the outer corner `low` and pixels of `step`, x first, y ascending."""
    path = folder / name
    top = low[1] + step[1] * values.shape[1]
    grid = rasterio.transform.Affine(step[0], turn, low[0], 0.0, -step[1], top)
    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        width=values.shape[0],
        height=values.shape[1],
        count=bands,
        dtype="float64",
        crs=crs,
        transform=grid,
        nodata=nodata,
    ) as target:
        for band in range(bands):
            target.write(values.T[::-1], band + 1)
    return path


def philadelphia(plane, density):
    """A small problem over the middle of the shipped map, with its levels, in miles."""
    domain = md.Domain.grid((6, 5), cell=1.2, unit="mi", origin=(-3.6, -3.0), plane=plane)
    raster = density(domain)
    level = md.PrivacyLevel.affine(raster, slope=1e-4, floor=0.4)
    prior = md.priors.from_density(raster, domain)
    metric = md.Eikonal(level=level, stencil=8)
    return md.DesignProblem(domain=domain, metric=metric, prior=prior, loss=md.losses.SquaredDistance())


def in_metres(folder):
    shipped = md.read.raster(SHIPPED, unit="mi")
    step = [float(axis[1] - axis[0]) * METRES["mi"] for axis in shipped.axes]
    low = [float(axis[0]) * METRES["mi"] - h / 2 for axis, h in zip(shipped.axes, step, strict=True)]
    crs = "+proj=aeqd +lat_0=39.9526 +lon_0=-75.1652 +datum=WGS84 +units=m"
    return tiff(folder, shipped.values, low, step, pyproj.CRS(crs).to_wkt())


@pytest.mark.parametrize("source", [pytest.param("esri ascii", marks=pytest.mark.exhaustive), "geotiff"])
def test_shipped_map_in_place_gives_planar_mechanism(tmp_path, source):
    path = SHIPPED if source == "esri ascii" else in_metres(tmp_path)
    miles = "+proj=aeqd +lat_0=39.9526 +lon_0=-75.1652 +datum=WGS84 +units=mi"  # of a file that declares no system
    planar = philadelphia(None, lambda domain: md.read.raster(SHIPPED, unit="mi"))
    placed = philadelphia(CITY_HALL, lambda domain: raster_on(domain, path, crs=miles))
    assert np.abs(placed.edges.length / planar.edges.length - 1).max() < 1e-12
    tables = [md.solve(md.Optimal(problem=p), gap=1e-6)["mass"].values / float(ROW_SUM) for p in (planar, placed)]
    assert np.abs(tables[0] - tables[1]).max() <= SAME_TABLE
    assert tables[0].std() > 0.01


def sketch(shape=(40, 30)):
    return np.random.default_rng(3).uniform(1, 5, shape)


def by_hand(domain, axes, values, crs):
    """The bilinear function at the cell centres, found by geodesics from the centre of the plane."""
    metres = domain.points * METRES[domain.unit]
    azimuth, length = np.degrees(np.arctan2(*metres.T)), np.hypot(*metres.T)
    start = [np.full(domain.size, angle) for angle in (domain.plane.longitude, domain.plane.latitude)]
    lon, lat, _ = pyproj.Geod(ellps="WGS84").fwd(*start, azimuth, length)
    at = np.column_stack(pyproj.Proj(crs)(lon, lat) if crs else (lon, lat))
    return RegularGridInterpolator(axes, values)(at)


@pytest.mark.parametrize(("unit", "cell"), [("m", 150.0), ("mi", 0.1)])
def test_projected_rasters_are_read_in_their_own_coordinates(tmp_path, unit, cell):
    domain = Area.box(west=AREA[0], south=AREA[1], east=AREA[2], north=AREA[3]).grid(cell=cell, unit=unit)
    values = sketch()
    x, y = pyproj.Proj(UTM)(2.345, 48.86)
    low, step = (x - 20 * 90, y - 15 * 110), (90.0, 110.0)
    axes = [low[k] + step[k] * (np.arange(values.shape[k]) + 0.5) for k in (0, 1)]
    result = raster_on(domain, tiff(tmp_path, values, low, step, UTM))
    assert result.unit == unit
    assert result.at(domain.points) == pytest.approx(by_hand(domain, axes, values, UTM), rel=INTERPOLATED)


@pytest.mark.parametrize("turns", [0.0, 360.0])
@pytest.mark.parametrize("kind", ["tif", "nc", "asc"])
def test_rasters_in_degrees_are_read_at_the_degrees_of_the_cells(tmp_path, kind, turns):
    domain = Area.box(west=AREA[0], south=AREA[1], east=AREA[2], north=AREA[3]).grid(cell=150.0)
    values, step = sketch(), 0.001
    low = (2.325 + turns, 48.845)
    axes = [low[k] + step * (np.arange(values.shape[k]) + 0.5) for k in (0, 1)]
    path = tmp_path / f"map.{kind}"
    if kind == "tif":
        tiff(tmp_path, values, low, (step, step), "EPSG:4326")
    elif kind == "nc":
        units = [{"units": "degrees_east"}, {"units": "degrees_north"}]
        coords = {"lon": ("lon", axes[0], units[0]), "lat": ("lat", axes[1], units[1])}
        xr.Dataset({"density": (("lon", "lat"), values)}, coords=coords).to_netcdf(path, engine="h5netcdf")
    else:
        head = f"ncols 40\nnrows 30\nxllcorner {low[0]}\nyllcorner {low[1]}\ncellsize {step}\n"
        body = "\n".join(" ".join(map(repr, row)) for row in values.T[::-1].tolist())
        path.write_text(head + body, encoding="utf-8")
        path.with_suffix(".prj").write_text(pyproj.CRS("EPSG:4326").to_wkt(), encoding="utf-8")
    own = [axes[0] - turns, axes[1]]
    expected = by_hand(domain, own, values, None)
    assert raster_on(domain, path).at(domain.points) == pytest.approx(expected, rel=1e-8)
    with pytest.raises(UnitError, match="degree"):
        md.read.raster(path, unit="m")


def test_large_map_is_read_around_the_area_only(tmp_path):
    domain = Area.box(west=AREA[0], south=AREA[1], east=AREA[2], north=AREA[3]).grid(cell=300.0)
    values = sketch((300, 200))
    values[:100] = -9999.0
    path = tiff(tmp_path, values, (2.2, 48.75), (0.001, 0.001), "EPSG:4326", nodata=-9999.0)
    axes = [2.2 + 0.001 * (np.arange(300) + 0.5), 48.75 + 0.001 * (np.arange(200) + 0.5)]
    assert raster_on(domain, path).at(domain.points) == pytest.approx(by_hand(domain, axes, values, None), rel=1e-8)
    values[140:150] = -9999.0
    with pytest.raises(InputError, match="NODATA"):
        raster_on(domain, tiff(tmp_path, values, (2.2, 48.75), (0.001, 0.001), "EPSG:4326", nodata=-9999.0))


def test_projected_tiffs_are_rasters_of_their_own_unit(tmp_path):
    values = sketch((4, 3))
    path = tiff(tmp_path, values, (500_000.0, 5_400_000.0), (100.0, 50.0), UTM)
    raster = md.read.raster(path, unit="m")
    assert raster.x.tolist() == [500_050.0, 500_150.0, 500_250.0, 500_350.0]
    assert raster.y.tolist() == [5_400_025.0, 5_400_075.0, 5_400_125.0]
    assert np.array_equal(raster.values, values)
    with pytest.raises(UnitError):
        md.read.raster(path, unit="km")


@pytest.mark.parametrize("low", [(2.0, 48.0), (2.335, 48.845), (2.325, 48.851)])
def test_maps_that_end_inside_the_area_are_refused(tmp_path, low):
    domain = Area.box(west=AREA[0], south=AREA[1], east=AREA[2], north=AREA[3]).grid(cell=150.0)
    with pytest.raises(InputError, match="does not cover"):
        raster_on(domain, tiff(tmp_path, sketch(), low, (0.001, 0.001), "EPSG:4326"))


def test_file_without_coordinates_must_cover_the_area(tmp_path):
    domain = Area.box(west=AREA[0], south=AREA[1], east=AREA[2], north=AREA[3]).grid(cell=150.0)
    path = tiff(tmp_path, sketch(), (2.325, 48.845), (0.001, 0.001), None)
    with pytest.raises(InputError, match="may be degrees"):
        raster_on(domain, path)
    assert raster_on(domain, path, crs="EPSG:4326").unit == "m"
    with pytest.raises(InputError, match="does not cover"):
        raster_on(domain, tiff(tmp_path, sketch(), (500_000.0, 5_400_000.0), (100.0, 100.0), None))
    path = tiff(tmp_path, sketch(), (2.325, 48.845), (0.001, 0.001), None)
    with pytest.raises(InputError, match="unknown coordinate system"):
        raster_on(domain, path, crs="EPSG:nonsense")


@pytest.mark.parametrize("kind", ["bands", "turned", "damaged", "absent", "no name", "no plane"])
def test_files_that_do_not_fit_are_refused(tmp_path, kind):
    domain = Area.box(west=AREA[0], south=AREA[1], east=AREA[2], north=AREA[3]).grid(cell=150.0)
    options = {"bands": {"bands": 2}, "turned": {"turn": 1e-4}}.get(kind, {})
    path = tiff(tmp_path, sketch(), (2.325, 48.845), (0.001, 0.001), "EPSG:4326", **options)
    if kind == "damaged":
        path.write_bytes(b"II*")
    if kind == "absent":
        path.unlink()
    if kind == "no name":
        path = Path()
    if kind == "no plane":
        domain = md.Domain.grid((3, 3), cell=1.0, unit="m")
    with pytest.raises(InputError if kind == "no plane" else FileFormatError) as caught:
        raster_on(domain, path)
    assert caught.value.field == ("domain" if kind == "no plane" else "raster")


def test_without_rasterio_the_remedy_names_the_extra(tmp_path, monkeypatch):
    path = tiff(tmp_path, sketch(), (0.0, 0.0), (1.0, 1.0), UTM)
    monkeypatch.setitem(sys.modules, "rasterio", None)
    with pytest.raises(InputError, match=r"mechdesign\[geo\]"):
        md.read.raster(path, unit="m")


@pytest.mark.parametrize("moved", [{"lat_0": 39.96}, {"lon_0": -75.0}, {"x_0": 1609.344}])
def test_another_centre_is_another_plane(tmp_path, moved):
    """A lattice about another centre is interpolated: its nodes are not the plane's, and a shift of a mile shows."""
    shipped = md.read.raster(SHIPPED, unit="mi")
    given = {"proj": "aeqd", "lat_0": 39.9526, "lon_0": -75.1652, "datum": "WGS84", "units": "m"} | moved
    step = [float(axis[1] - axis[0]) * METRES["mi"] for axis in shipped.axes]
    low = [float(axis[0]) * METRES["mi"] - h / 2 for axis, h in zip(shipped.axes, step, strict=True)]
    path = tiff(tmp_path, shipped.values, low, step, pyproj.CRS(given).to_wkt())
    domain = md.Domain.grid((3, 3), cell=0.5, unit="mi", origin=(-0.75, -0.75), plane=CITY_HALL)
    if moved == {"lon_0": -75.0}:
        with pytest.raises(InputError, match="does not cover"):
            raster_on(domain, path)
        return
    result = raster_on(domain, path)
    east = 1.0 if "x_0" in moved else 0.0
    north = 0.0 if "x_0" in moved else -0.0074 * 111.03 / 1.609344
    expected = shipped.at(domain.points + np.array([east, north]))
    assert result.at(domain.points) == pytest.approx(expected, rel=2e-3)
    assert math.isfinite(result.values.sum())
    assert np.abs(result.at(domain.points) / shipped.at(domain.points) - 1).max() > 0.01


@pytest.mark.parametrize("crs", ["EPSG:3857", "EPSG:3395", "EPSG:4087", UTM, "EPSG:2154", "EPSG:21781", "EPSG:2056"])
def test_metres_of_web_maps_are_refused_and_true_metres_read(tmp_path, crs):
    """2154 and 21781 are conic and oblique Mercator projections whose metres are those on the ground to 0.1 %."""
    values = sketch((4, 3))
    system = pyproj.CRS(crs)
    path = tiff(tmp_path, values, (500_000.0, 5_400_000.0), (100.0, 50.0), crs)
    coords = {"x": ("x", 100.0 * np.arange(4)), "y": ("y", 50.0 * np.arange(3))}
    kept = xr.Dataset({"density": (("x", "y"), values, {"grid_mapping": "crs"})}, coords=coords)
    kept["crs"] = ((), 0, {"crs_wkt": system.to_wkt()})
    kept.to_netcdf(tmp_path / "map.nc", engine="h5netcdf")
    text = tmp_path / "map.asc"
    text.write_text("ncols 2\nnrows 2\nxllcorner 0\nyllcorner 0\ncellsize 1\n1 2\n3 4\n", encoding="utf-8")
    text.with_suffix(".prj").write_text(system.to_wkt("WKT1_ESRI"), encoding="utf-8")
    for source in (path, tmp_path / "map.nc", text):
        if crs in ("EPSG:3857", "EPSG:3395", "EPSG:4087"):
            with pytest.raises(UnitError, match=r"on the ground.*raster_on"):
                md.read.raster(source, unit="m")
        else:
            assert md.read.raster(source, unit="m").unit == "m"


def test_web_maps_and_unnamed_degrees_are_read_where_they_lie(tmp_path):
    """`raster_on` projects files that `md.read.raster` refuses: the same values as by hand."""
    domain = Area.box(west=AREA[0], south=AREA[1], east=AREA[2], north=AREA[3]).grid(cell=150.0)
    values = sketch((60, 60))
    x, y = pyproj.Transformer.from_crs("EPSG:4326", "EPSG:3857", always_xy=True).transform(2.345, 48.86)
    low, step = (x - 30 * 100, y - 30 * 100), (100.0, 100.0)
    axes = [low[k] + step[k] * (np.arange(60) + 0.5) for k in (0, 1)]
    result = raster_on(domain, tiff(tmp_path, values, low, step, "EPSG:3857"))
    assert result.at(domain.points) == pytest.approx(by_hand(domain, axes, values, "EPSG:3857"), rel=INTERPOLATED)
    degrees = [2.325 + 0.001 * (np.arange(60) + 0.5), 48.845 + 0.001 * (np.arange(60) + 0.5)]
    for names in (("lon", "lat"), ("longitude", "latitude"), ("Lng", "LAT")):
        coords = dict(zip(names, degrees, strict=True))
        xr.Dataset({"density": (names, values)}, coords=coords).to_netcdf(tmp_path / "plain.nc", engine="h5netcdf")
        with pytest.raises(UnitError, match="are declared in degree while m was asked for"):
            md.read.raster(tmp_path / "plain.nc", unit="m")
        result = raster_on(domain, tmp_path / "plain.nc")
        assert result.at(domain.points) == pytest.approx(by_hand(domain, degrees, values, None), rel=1e-8)

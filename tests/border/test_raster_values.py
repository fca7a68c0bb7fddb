"""Rasters as people bring them: one world, one answer or a refusal.

Second routes: pixels cut into 400 points that are counted one by one, and functions of longitude and latitude from
which the files are written.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
import xarray as xr
from areas import domain_of
from border_data import border_file
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rows import each_row
from tolerances import REORDERED

import mechdesign as md
from mechdesign.errors import FileFormatError, InputError, UnitError
from mechdesign.geo import Area, raster_on

pyproj = pytest.importorskip("pyproj")
rasterio = pytest.importorskip("rasterio")

SAMPLED = 0.01  # total variation: pixels of 100 m as 20 x 20 points each in cells of 500 m
ROUNDED = 1e-12  # relative: projected pixels and their parts, added up
ROME = Area.box(12.462, 41.872, 12.518, 41.908)
BOX = ["area", "--box", "12.462,41.872,12.518,41.908", "--cell", "500"]
QUICK = ["--within", "500", "--factor", "4", "--positions", "cells", "--program", "planar-laplace"]


def degrees_tiff(path, values, *, low=(12.44, 41.85), step=0.001, crs="EPSG:4326", **profile):
    """A GeoTIFF of values (kx, ky), x first and y ascending, with its outer corner at `low`."""
    top = low[1] + step * values.shape[1]
    scale, offset, unit = (profile.pop(name, None) for name in ("scale", "offset", "value_unit"))
    grid = profile.pop("transform", rasterio.transform.Affine(step, 0.0, low[0], 0.0, -step, top))
    dtype = profile.pop("dtype", "float64")
    shape = {"width": values.shape[0], "height": values.shape[1], "count": 1}
    with rasterio.open(path, "w", driver="GTiff", crs=crs, transform=grid, dtype=dtype, **shape, **profile) as file:
        file.write(values.T[::-1].astype(dtype), 1)
        if scale is not None:
            file.scales, file.offsets = (scale,), (offset or 0.0,)
        if unit is not None:
            file.units = (unit,)
    return path


HOLES = np.random.default_rng(6).random((100, 80)) < 0.1  # pixels without a value, where tests have some


def settled(shape=(100, 80), seed=5):
    """People in pixels, most of which are empty."""
    generator = np.random.default_rng(seed)
    return np.where(generator.random(shape) < 0.08, generator.integers(1, 400, shape), 0).astype(float)


def prior_of(run_json, folder, *words):
    """The prior of `area` with these options, the figures it prints, and the code of a refusal."""
    target = folder / "made.nc"
    code, made = run_json(*BOX, *QUICK, *words, "-o", target, "--overwrite")
    return (md.load(target)["prior"].values if code == 0 else None), made


def counted(domain, path, parts=20):
    """People in the cells of a domain: every pixel of a file as points, by their cell."""
    with rasterio.open(path) as file:
        values, grid, system = file.read(1), file.transform, pyproj.CRS(file.crs.to_wkt())
    shift = (np.arange(parts) + 0.5) / parts
    rows, columns = np.nonzero(values)
    down, across = (np.add.outer(side, shift) for side in (rows, columns))
    x, y = np.broadcast_arrays(grid.c + grid.a * across[:, None, :], grid.f + grid.e * down[:, :, None])
    turned = pyproj.Transformer.from_crs(system, "EPSG:4326", always_xy=True)
    points = domain.plane.forward(*turned.transform(x.ravel(), y.ravel()))
    index = np.floor((points - domain.origin) / domain.cell).astype(int)
    inside = ((index >= 0) & (index < domain.shape)).all(axis=1)
    each = np.repeat(values[rows, columns] / parts**2, parts**2)
    return np.bincount(domain.lookup[tuple(index[inside].T)], each[inside], domain.size)


def apart(one, other):
    """Total variation of two priors."""
    return float(np.abs(one / one.sum() - other / other.sum()).sum() / 2)


def test_sparse_people_are_added_up(run_json, tmp_path):
    """Points have one cell each; the areas that pixels share with cells are exact."""
    path = border_file("r01_sparse.tif")
    prior, made = prior_of(run_json, tmp_path, "--prior", path)
    domain = ROME.grid(500.0)
    people = counted(domain, path)
    assert apart(prior, people) < SAMPLED
    assert (made["prior_is"], made["people"]) == ("counts", pytest.approx(people.sum(), rel=1e-3))
    # 20 x 20 points may miss the corner of a pixel, and never find people where there are none.
    assert prior[people > 0].min() > 0
    assert prior[people == 0].max() < SAMPLED
    assert made["empty_cells"] == (prior == 0).sum() > 0


@each_row("kind", ["EPSG:4326", "EPSG:32633", "EPSG:3857", "EPSG:3035", "plane"])
def test_totals_are_kept_across_projections(tmp_path, kind):
    """All people of a raster are in the cells, whatever its coordinate system, and where points of its pixels lie."""
    domain = ROME.grid(500.0)
    crs = f"+proj=aeqd +lat_0={domain.plane.latitude} +lon_0={domain.plane.longitude} +datum=WGS84 +units=m"
    system = pyproj.CRS(crs if kind == "plane" else kind)
    x, y = pyproj.Transformer.from_crs("EPSG:4326", system, always_xy=True).transform(12.475, 41.88)
    step = 0.0007 if kind == "EPSG:4326" else 60.0
    values = np.zeros((200, 160))
    values[80:115, 60:85] = settled((35, 25))
    low = (x - 80 * step, y - 60 * step)
    path = degrees_tiff(tmp_path / "map.tif", values, low=low, step=step, crs=system.to_wkt())
    raster = raster_on(domain, path)
    assert raster.counts
    assert raster.amounts.sum() == pytest.approx(values.sum(), rel=ROUNDED)
    assert apart(md.priors.from_density(raster, domain), counted(domain, path)) < SAMPLED


def test_counts_and_densities_differ_by_area(run_json, tmp_path):
    """Pixels of degrees: the same number of people per pixel is a density that grows as 1 / cos(latitude)."""
    north = Area.box(18.0, 64.0, 18.1, 66.0)
    domain = north.grid(10_000.0)
    path = degrees_tiff(tmp_path / "map.tif", np.ones((60, 280)), low=(17.7, 63.3), step=0.01)
    priors = {
        kind: md.priors.from_density(raster_on(domain, path, prior_is=kind), domain) for kind in ("counts", "density")
    }
    latitude = domain.plane.backward(domain.points)[1]
    order = np.argsort(latitude)[[0, -1]]
    flat, falling = priors["density"][order], priors["counts"][order]
    assert flat[1] / flat[0] == pytest.approx(1.0, rel=2e-3)
    expected = np.cos(np.radians(latitude[order[0]])) / np.cos(np.radians(latitude[order[1]]))
    assert falling[1] / falling[0] == pytest.approx(expected, rel=2e-3)
    assert run_json(*BOX, *QUICK, "--prior", path, "--prior-is", "share", "-o", tmp_path / "a.nc")[0] == 2
    assert run_json(*BOX, *QUICK, "--prior-is", "counts", "-o", tmp_path / "a.nc")[1]["error"]["field"] == "prior-is"


@each_row(
    ("name", "unit", "cell", "kind"),
    [
        ("population", None, 500.0, "counts"),
        ("population", None, 50.0, "density"),  # larger pixels say nothing of where in them people live
        ("population", "people", 50.0, "counts"),
        ("population", "people km-2", 500.0, "density"),
        ("population", "inhabitants per square km", 500.0, "density"),
        ("population_density", None, 500.0, "density"),
        ("ita_pd_2020", None, 500.0, "density"),
        ("ppp_2020", None, 500.0, "counts"),
    ],
)
def test_kind_of_prior_is_guessed_and_said(tmp_path, name, unit, cell, kind):
    domain = Area.box(12.47, 41.88, 12.48, 41.89).grid(cell)
    path = degrees_tiff(tmp_path / f"{name}.tif", settled(), value_unit=unit)
    notes = []
    assert raster_on(domain, path, on_note=notes.append).counts == (kind == "counts")
    assert ("counts per pixel" if kind == "counts" else "densities") in notes[0]
    assert raster_on(domain, path, prior_is="density", on_note=notes.clear).counts is False


def test_seam_of_longitudes_is_joined(run_json, tmp_path):
    """The files hold one world; between the nodes at -2.5 and 2.5 degrees the prior is linear."""
    words = ["area", "--box=-0.3,51.4,0.1,51.6", "--cell", "3000", "--within", "3000", *QUICK[2:]]
    priors = []
    for name in ("r03_seam_360.nc", "r03_seam_180.nc"):
        target = tmp_path / f"{name}.made.nc"
        assert run_json(*words, "--prior", border_file(name), "-o", target)[0] == 0
        priors.append(md.load(target))
    assert np.array_equal(priors[0]["prior"].values, priors[1]["prior"].values)
    domain = domain_of(priors[0])
    longitude = domain.plane.backward(domain.points)[0]
    with xr.open_dataset(border_file("r03_seam_180.nc"), engine="scipy") as data:
        west, east = (float(data["pop"].sel(lon=end, lat=52.5)) for end in (-2.5, 2.5))
    linear = west + (east - west) * (longitude + 2.5) / 5
    assert priors[0]["prior"].values == pytest.approx(linear / linear.sum(), rel=1e-6)


WORLD = {
    "to 180": np.arange(-180.0, 180.0, 2.0) + 1.0,
    "to 360": np.arange(0.0, 360.0, 2.0) + 1.0,
    "from 170": (np.arange(170.0, 530.0, 2.0) + 1.0),
    "wrapped": (np.arange(170.0, 530.0, 2.0) + 1.0 + 180.0) % 360.0 - 180.0,
    "nodes with both ends": np.arange(-180.0, 181.0, 2.0),
    "descending": (np.arange(0.0, 360.0, 2.0) + 1.0)[::-1],
    "single precision": (np.arange(0.0, 360.0, 2.0) + 1.0).astype(np.float32),
}
# Bilinear between nodes 2 degrees apart: off by h^2 / 8 times the second derivative, (1 + 9) per radian^2, of `smooth`.
BILINEAR = 4 / 8 * 10 * math.radians(1) ** 2


def smooth(longitude, latitude):
    return 3.0 + np.cos(np.radians(longitude)) + np.sin(np.radians(3 * longitude)) + 0.01 * np.asarray(latitude)


@each_row("convention", list(WORLD))
@each_row("west", [-0.2, 0.9, 1.9, 179.9, 12.4])  # between any two nodes a circle may be cut at the wrong place
@each_row("kind", ["nc", "tif"])
def test_every_longitude_convention_is_one_world(tmp_path, convention, west, kind):
    x, y = WORLD[convention], np.arange(-89.0, 90.0, 2.0)
    values = smooth(np.asarray(x, float)[:, None], y[None, :])
    domain = Area.box(west, -17.9, (west + 0.2 + 180) % 360 - 180, -17.7).grid(5000.0)
    if kind == "tif":
        if convention in ("wrapped", "descending", "single precision"):
            return
        grid = rasterio.transform.Affine(2.0, 0.0, x[0] - 1.0, 0.0, -2.0, 90.0)
        path = degrees_tiff(tmp_path / "map.tif", values, transform=grid)
    else:
        path = tmp_path / "map.nc"
        array = xr.DataArray(values, coords={"lon": x, "lat": y}, dims=("lon", "lat"), name="level")
        array.to_netcdf(path, engine="scipy")
    longitude, latitude = domain.plane.backward(domain.points)
    found = raster_on(domain, path).at(domain.points)
    assert found == pytest.approx(smooth(longitude, latitude), abs=BILINEAR)


def test_coarse_counts_are_densities_to_the_pole():
    """One person in each pixel of 4 degrees: per area that is as 1 / cos(latitude), linear between the nodes.

    Nodes at the poles have pixels that would reach beyond 90 degrees.
    """
    x, y = np.arange(0.0, 360.0, 4.0), np.arange(-90.0, 91.0, 4.0)
    array = xr.DataArray(np.ones((len(x), len(y))), coords={"lon": x, "lat": y}, dims=("lon", "lat"), name="people")
    domain = Area.box(20.0, 84.0, 20.5, 84.4).grid(2000.0)
    prior = md.priors.from_density(raster_on(domain, array, prior_is="counts"), domain)
    latitude = domain.plane.backward(domain.points)[1]
    expected = np.interp(latitude, [82.0, 86.0], 1 / np.cos(np.radians([82.0, 86.0])))
    assert prior == pytest.approx(expected / expected.sum(), rel=2e-3)  # a pixel's straight borders on the plane
    assert np.ptp(expected) / expected.mean() > 0.02


def test_gaps_of_longitude_are_no_seam(tmp_path):
    """Of 300 degrees, the 60 that are missing are not bridged."""
    x, y = np.arange(-150.0, 150.0, 2.0) + 1.0, np.arange(-89.0, 90.0, 2.0)
    array = xr.DataArray(np.ones((len(x), len(y))), coords={"lon": x, "lat": y}, dims=("lon", "lat"), name="level")
    domain = Area.box(179.9, -17.9, -179.9, -17.7).grid(5000.0)
    with pytest.raises(InputError, match="does not cover"):
        raster_on(domain, array)
    inside = Area.box(140.0, -17.9, 140.2, -17.7).grid(5000.0)
    assert raster_on(inside, array).at(inside.points).tolist() == [1.0] * inside.size


@each_row(("name", "level"), [("r05_levels_scaled.tif", 0.002), ("r07_levels_per_km.nc", 0.002)])
def test_declared_levels_are_those_of_other_programs(run_json, tmp_path, name, level):
    code, _ = run_json(*BOX, "--levels-from", border_file(name), "--positions", "cells", "-o", tmp_path / "a.nc")
    assert code == 0
    values = md.load(tmp_path / "a.nc")["level"].values
    assert values == pytest.approx(level, rel=1e-6)
    assert (values <= level).all()


@each_row(
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
    code, said = run_json(*words)
    assert (code, said["error"]["field"]) == (2, "levels")
    assert "--nats-per-cell" in said["error"]["message"]
    domain = ROME.grid(500.0)
    level = md.PrivacyLevel(raster=raster_on(domain, path))
    with pytest.raises(InputError, match=r"1000 nats across a cell.*nats_per_cell=1000"):
        md.geo.area_problem(domain, epsilon=level)
    assert md.geo.area_problem(domain, epsilon=level, nats_per_cell=1001).domain.size == 80


def test_undeclared_degrees_are_refused_in_any_unit(run_json, tmp_path):
    path = border_file("r08_world_no_prj.asc")
    words = [*BOX[:3], "--cell", "0.5", "--unit", "km", "--within", "1", "--factor", "2", *QUICK[4:], "--prior", path]
    code, said = run_json(*words, "-o", tmp_path / "a.nc")
    assert (code, said["error"]["field"]) == (2, "raster")
    assert "--crs EPSG:4326" in said["error"]["message"]
    assert run_json(*words, "--crs", "EPSG:4326", "-o", tmp_path / "a.nc")[0] == 0
    assert md.load(tmp_path / "a.nc")["prior"].values.std() == pytest.approx(0.0, abs=1e-12)


@each_row("kind", ["tif", "nc", "csv"])
def test_undeclared_degrees_of_every_format(tmp_path, kind):
    domain, values, path = ROME.grid(500.0), settled() + 1.0, tmp_path / f"map.{kind}"
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
    found = md.priors.from_density(raster_on(domain, path, crs="EPSG:4326"), domain)
    known = md.priors.from_density(raster_on(domain, tmp_path / "known.tif"), domain)
    assert found == pytest.approx(known, rel=1e-9)


def test_scattered_points_are_no_raster(run_json, tmp_path):
    """A million nodes for a thousand lines would fill the memory."""
    points = np.random.default_rng(1).uniform(0, 1, (1000, 2)) / 20 + [12.46, 41.87]
    path = tmp_path / "people.csv"
    lines = [f"{x:.6f},{y:.6f},5" for x, y in points]
    path.write_text("longitude,latitude,population\n" + "\n".join(lines))
    message = prior_of(run_json, tmp_path, "--prior", path)[1]["error"]["message"]
    assert "lists points" in message
    assert "--levels-from FILE" in message


def test_sea_that_is_forbidden_needs_no_data(run_json, tmp_path):
    coast, sea = border_file("r10_coast.tif"), border_file("r10_sea.geojson")
    prior, _ = prior_of(run_json, tmp_path, "--prior", coast, "--forbidden", sea)
    # Ten people in every pixel: a cell has as many as every other one, but for its part in the sea.
    assert 0.9 < prior.min() / prior.max() < 1
    _, said = prior_of(run_json, tmp_path, "--prior", coast)
    message = said["error"]["message"]
    assert "24 of 80 cells" in message
    assert "--forbidden" in message
    assert "--nodata-is 0" in message
    prior, made = prior_of(run_json, tmp_path, "--prior", coast, "--nodata-is", "0")
    assert made["empty_cells"] == (prior == 0).sum() == 24


def test_missing_pixels_are_refused_where_needed(tmp_path):
    """A hole elsewhere does not matter; one at the centre of a cell is refused with its degrees."""
    domain, values, notes = ROME.grid(500.0), settled() + 1.0, []
    values[:10] = -1.0
    path = degrees_tiff(tmp_path / "map.tif", values, nodata=-1.0)
    raster = raster_on(domain, path, on_note=notes.append)
    assert md.priors.from_density(raster, domain).min() > 0
    assert len(notes) == 1
    longitude, latitude = domain.plane.backward(domain.points[[37]])
    column, row = int((longitude[0] - 12.44) / 0.001), int((latitude[0] - 41.85) / 0.001)
    values[column + 2, row + 2] = -1.0
    raster_on(domain, degrees_tiff(path, values, nodata=-1.0), on_note=notes.append)
    assert "has no value in part of 1 of 80 cells" in notes[-1]
    values[column, row] = -1.0
    path = degrees_tiff(tmp_path / "map.tif", values, nodata=-1.0)
    with pytest.raises(InputError, match="centre of 1 of 80 cells") as caught:
        raster_on(domain, path)
    assert f"{longitude[0]:.4f} {latitude[0]:.4f}" in caught.value.value
    assert raster_on(domain, path, nodata_is=0.0).counts


@each_row("name", ["r12_time.nc", "r14_decimal_comma.asc", "r15_bom.asc"])
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


@each_row(
    ("body", "encoding", "values"),
    [
        ("1,5 2\n3 4\n", "utf-8", [3, 1.5, 4, 2]),
        ("1,5 2\r\n3 4\r\n\r\n", "utf-8-sig", [3, 1.5, 4, 2]),
        ("1.5 2\n3 4\n", "utf-16", [3, 1.5, 4, 2]),
        ("1,500 2\n3 4\n", "utf-8", None),  # 1.5 or 1,500
        ("1,500.5 2\n3 4\n", "utf-8", None),
        ("1,2,3,4\n", "utf-8", None),
        ("1,2\n3,4\n", "utf-8", None),  # two numbers for four
        ("-9999 2\n3 4\n", "utf-8", None),  # what ESRI takes for NODATA where nothing is declared
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
    """Edges of cells are no data; one of two variables is named; two moments are refused."""
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
        file.write(settled((80, 100), 1), 1)
        file.write(settled((80, 100), 2), 2)
        file.descriptions = ("men", "women")
    assert "holds 2 bands" in prior_of(run_json, tmp_path, "--prior", path)[1]["error"]["message"]
    by_name = prior_of(run_json, tmp_path, "--prior", path, "--variable", "women")[0]
    by_number = prior_of(run_json, tmp_path, "--prior", path, "--variable", "2")[0]
    assert np.array_equal(by_name, by_number)
    assert not np.array_equal(by_name, prior_of(run_json, tmp_path, "--prior", path, "--variable", "men")[0])


def test_arrays_in_memory_are_files(tmp_path):
    """Also one that was read without its scale, as rioxarray reads it."""
    domain, values = ROME.grid(500.0), settled()
    path = degrees_tiff(tmp_path / "map.tif", values, dtype="int16", scale=0.5, nodata=-1)
    known = raster_on(domain, path)
    x, y = 12.4405 + 0.001 * np.arange(100), 41.8505 + 0.001 * np.arange(80)
    packed = {"scale_factor": 0.5, "_FillValue": -1}
    array = xr.DataArray(
        values.T[::-1].astype("int16")[None], coords={"band": [1], "y": y[::-1], "x": x}, dims=("band", "y", "x")
    ).assign_attrs(packed)
    array.coords["spatial_ref"] = ((), 0, {"crs_wkt": pyproj.CRS("EPSG:4326").to_wkt()})
    found = raster_on(domain, array)
    assert found.amounts == pytest.approx(known.amounts, rel=1e-9)
    flat = xr.DataArray([[1.0, 0.0], [0.0, 3.0]], coords={"x": [0.5, 1.5], "y": [0.5, 1.5]}, dims=("x", "y"))
    assert md.priors.from_density(flat, md.Domain.grid((2, 2), 1.0)).tolist() == [0.25, 0.0, 0.0, 0.75]
    with pytest.raises(UnitError, match="degree"):
        md.priors.from_density(flat.rename(x="lon", y="lat"), md.Domain.grid((2, 2), 1.0, unit="m"))


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
@each_row("kind", ["complex", "rotated", "negative", "infinite", "pixels"])
def test_rasters_without_an_answer_are_refused(tmp_path, kind):
    domain, values = ROME.grid(500.0), settled() + 1.0
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


@each_row("nodes", [(40, 30), (41, 31), (8, 6), (7, 5)])
def test_pixels_on_a_plane_are_added_up(nodes):
    """Against points that are counted: the raster reaches beyond the grid on all sides, or tiles it."""
    values = np.random.default_rng(2).uniform(0, 5, nodes)
    x = -1.0 + 10.0 / nodes[0] * (np.arange(nodes[0]) + 0.5)
    y = -1.0 + 8.0 / nodes[1] * (np.arange(nodes[1]) + 0.5)
    domain = md.Domain.grid((4, 3), 2.0, unit="km")
    found = md.priors.from_density(md.Raster(x=x, y=y, values=values, unit="km"), domain)
    fine = (np.arange(1600) + 0.5) / 200
    columns = np.clip(((fine + 1) * nodes[0] / 10).astype(int), 0, nodes[0] - 1)
    rows = np.clip(((fine[:1200] + 1) * nodes[1] / 8).astype(int), 0, nodes[1] - 1)
    sums = values[np.ix_(columns, rows)].reshape(4, 400, 3, 400).sum(axis=(1, 3)).ravel()
    assert found == pytest.approx(sums / sums.sum(), rel=1e-2)
    values[nodes[0] // 2, nodes[1] // 2] = -0.1
    if nodes[0] > 8:  # larger pixels are read at the centres of cells
        with pytest.raises(InputError, match="negative"):
            md.priors.from_density(md.Raster(x=x, y=y, values=values, unit="km"), domain)


def test_a_raster_goes_on_beyond_its_pixels_where_allowed():
    raster, domain = md.Raster(x=[0.25, 0.75], y=[0.0], values=[[1.0], [3.0]]), md.Domain.grid((4, 1), 1.0)
    assert md.priors.from_density(raster, domain, extend=True) == pytest.approx(np.array([2, 3, 3, 3]) / 11)
    with pytest.raises(InputError, match="3 of 4 places lie outside"):
        md.priors.from_density(raster, domain)


def test_pixels_that_end_at_a_cell_leave_nobody_next_to_it():
    """Borders of cells and pixels that differ by rounding alone: 0.1 + 0.2 is not 0.3."""
    domain = md.Domain.grid((3, 1), 0.1, origin=(0.1, 0.0))
    nodes = np.array([0.15, 0.25, 0.35]) + 1e-13
    raster = md.Raster(x=nodes, y=[0.05], values=[[1.0], [0.0], [1.0]])
    found = md.priors.from_density(raster, domain)
    assert found[1] == 0
    assert found == pytest.approx([0.5, 0.0, 0.5])


@cache
def amounts_of_world(gaps):
    """People in cells of the world of the next test, from an array in its plainest form."""
    x, y = 12.4405 + 0.001 * np.arange(100), 41.8505 + 0.001 * np.arange(80)
    world = np.where(HOLES & gaps, 0, settled())
    array = xr.DataArray(world, coords={"lon": x, "lat": y}, dims=("lon", "lat"), name="people")
    return raster_on(ROME.grid(500.0), array, prior_is="counts").amounts


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
@settings(max_examples=30, deadline=None)
@example(False, 0.0, (0.1, -20.0), "int16", True, True, False, "tif")
@example(True, 360.0, (0.1, -20.0), "uint16", True, True, True, "nc")
@given(
    south_up=st.booleans(),
    turns=st.sampled_from([0.0, 360.0]),
    packing=st.sampled_from([(1.0, 0.0), (0.5, 0.0), (0.1, -20.0)]),
    dtype=st.sampled_from(["int16", "int32", "float32", "float64", "uint16"]),
    gaps=st.booleans(),
    declared=st.booleans(),
    turned=st.booleans(),
    kind=st.sampled_from(["tif", "nc", "memory", "asc"]),
)
def test_every_convention_of_a_raster_is_one_prior(
    tmp_path_factory, south_up, turns, packing, dtype, gaps, declared, turned, kind
):
    """One world of whole people per pixel, written in many ways: the same prior, or a refusal that names the way."""
    domain, world = ROME.grid(500.0), np.where(HOLES & gaps, 0, settled())
    scale, offset = packing
    stored = np.rint((world - offset) / scale)
    nodata = 65_000.0 if dtype == "uint16" else -9.0
    if gaps:
        stored[HOLES] = nodata
    stored = stored.astype(dtype)
    folder = tmp_path_factory.mktemp("raster")
    x, y = 12.4405 + turns + 0.001 * np.arange(100), 41.8505 + 0.001 * np.arange(80)
    if kind == "tif":
        path, crs = folder / "map.tif", "EPSG:4326" if declared else None
        if south_up:
            grid = rasterio.transform.Affine(0.001, 0.0, 12.44 + turns, 0.0, 0.001, 41.85)
            degrees_tiff(path, stored[:, ::-1], transform=grid, dtype=dtype, crs=crs, nodata=nodata)
        else:
            degrees_tiff(path, stored, low=(12.44 + turns, 41.85), dtype=dtype, crs=crs, nodata=nodata)
        with rasterio.open(path, "r+") as file:
            file.scales, file.offsets = (scale,), (offset,)
        source = path
    elif kind == "asc":
        source = folder / "map.asc"
        text = f"NCOLS 100\nNROWS 80\nXLLCENTER {x[0]}\nYLLCORNER 41.85\nCELLSIZE 0.001\nNODATA_value {nodata}\n"
        numbers = np.where(stored == nodata, nodata, stored * packing[0] + packing[1]).T[::-1]
        text += "\n".join(" ".join(f"{number:.2f}" for number in row) for row in numbers)
        text = text.replace(".", ",") if south_up else text
        source.write_text(text, encoding="utf-8-sig" if turned else "utf-8")
        if declared:
            source.with_suffix(".prj").write_text(pyproj.CRS("EPSG:4326").to_wkt("WKT1_ESRI"))
    else:
        names = ("lon", "lat") if declared else ("x", "y")
        array = xr.DataArray(stored, coords=dict(zip(names, (x, y), strict=True)), dims=names, name="people")
        array = array.isel({names[1]: slice(None, None, 1 if south_up else -1)})
        array = array.transpose(*names[::-1]) if turned else array
        array.attrs |= {"scale_factor": scale, "add_offset": offset, "_FillValue": stored.dtype.type(nodata)}
        source = array
        if kind == "nc":
            source = folder / "map.nc"
            array.to_netcdf(source, engine="h5netcdf")
    if not declared:
        with pytest.raises(InputError, match="coordinate system"):
            raster_on(domain, source)
    raster = raster_on(domain, source, crs="EPSG:4326", prior_is="counts", nodata_is=0.0)
    known = amounts_of_world(gaps)
    single = 1e-5 if dtype == "float32" else 1e-8
    assert raster.amounts == pytest.approx(known, rel=single, abs=single * 400)


def test_figures_of_the_prior_are_in_words(run, tmp_path):
    path = degrees_tiff(tmp_path / "people.tif", settled() * 1000)
    code, shown, noted = run(*BOX, *QUICK, "--prior", path, "-o", tmp_path / "a.nc")
    words = " ".join(shown.split())
    assert code == 0
    assert "counts per pixel; --prior-is density" in noted
    assert "million people in 80 cells" in words


@each_row("kind", ["nodata", "mask", "alpha", "point"])
def test_masks_of_tiffs_are_nodata(tmp_path, kind):
    """Empty pixels in three ways, as bytes; and a file whose tie point is the centre of a pixel."""
    domain, world = ROME.grid(500.0), np.where(HOLES, 0, np.minimum(settled(), 250.0))
    known = raster_on(domain, degrees_tiff(tmp_path / "known.tif", world), prior_is="counts")
    path, band = tmp_path / "map.tif", world.T[::-1].astype("uint8")
    grid = rasterio.transform.Affine(0.001, 0.0, 12.44, 0.0, -0.001, 41.93)
    profile = {"driver": "GTiff", "width": 100, "height": 80, "dtype": "uint8", "crs": "EPSG:4326", "transform": grid}
    hidden = HOLES.T[::-1] & (kind != "point")
    written = np.where(hidden, 255, band).astype("uint8")
    bands = 2 if kind == "alpha" else 1
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True), rasterio.open(path, "w", count=bands, **profile) as file:
        file.write(written, 1)
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
    found = raster_on(domain, path, prior_is="counts", nodata_is=0.0)
    assert found.amounts == pytest.approx(known.amounts, rel=ROUNDED)


@each_row(
    ("attributes", "stored"),
    [
        ({"valid_range": [0.0, 400.0]}, -9999.0),
        ({"valid_min": 0.0}, -1.0),
        ({"missing_value": 1e20}, 1e20),
        ({"_FillValue": -3.4028235e38}, -3.4028235e38),
    ],
)
def test_missing_values_of_cf(tmp_path, attributes, stored):
    domain, world = ROME.grid(500.0), np.where(HOLES, 0, settled())
    known = raster_on(domain, degrees_tiff(tmp_path / "known.tif", world), prior_is="counts")
    values = np.where(HOLES, stored, world)
    x, y = 12.4405 + 0.001 * np.arange(100), 41.8505 + 0.001 * np.arange(80)
    array = xr.DataArray(values, coords={"lon": x, "lat": y}, dims=("lon", "lat"), name="people", attrs=attributes)
    array.to_netcdf(tmp_path / "map.nc", engine="h5netcdf")
    for source in (array, tmp_path / "map.nc"):
        found = raster_on(domain, source, prior_is="counts", nodata_is=0.0)
        assert found.amounts == pytest.approx(known.amounts, rel=1e-9)


def test_rotated_poles_are_projected(tmp_path):
    """CF grid mappings without WKT: axes called degrees that are not those of the Earth."""
    mapping = {
        "grid_mapping_name": "rotated_latitude_longitude",
        "grid_north_pole_latitude": 39.25,
        "grid_north_pole_longitude": -162.0,
    }
    x, y = np.arange(-8.0, 0.0, 0.11), np.arange(-12.0, -4.0, 0.11)
    turned = pyproj.Transformer.from_crs(pyproj.CRS.from_cf(mapping), "EPSG:4326", always_xy=True)
    longitude, latitude = turned.transform(*np.meshgrid(x, y, indexing="ij"))
    axes = {"rlon": ("rlon", x, {"units": "degrees"}), "rlat": ("rlat", y, {"units": "degrees"})}
    data = xr.Dataset({"level": (("rlon", "rlat"), longitude + 100 * latitude, {"grid_mapping": "pole"})}, coords=axes)
    data["pole"] = ((), 0, mapping)
    data.to_netcdf(tmp_path / "map.nc", engine="h5netcdf")
    domain = ROME.grid(500.0)
    found = raster_on(domain, tmp_path / "map.nc").at(domain.points)
    east, north = domain.plane.backward(domain.points)
    # Bilinear over 0.11 degrees of coordinates that bend by less than 1 / 10 per degree.
    assert found == pytest.approx(east + 100 * north, abs=0.11**2 / 8 * 0.1 * 100)


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


def test_levels_from_a_raster_of_people(tmp_path):
    """The radius that holds so many people is that of the people in the cells, and not of values at their centres."""
    domain, path = ROME.grid(500.0), degrees_tiff(tmp_path / "map.tif", settled())
    raster = raster_on(domain, path)
    per_area = md.Raster(x=raster.x, y=raster.y, values=raster.amounts / 500.0**2, unit="m")
    rule = {"people": 3000.0, "least": 500.0, "most": 3000.0}
    found, known = (md.maps.elastic_level(each, **rule).raster.values for each in (raster, per_area))
    assert found == pytest.approx(known, rel=1e-12)
    assert found.std() > 0

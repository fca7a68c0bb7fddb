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
from border_data import border_file
from border_rasters import (
    BOX,
    HOLES,
    QUICK,
    ROME,
    ROUNDED,
    degrees_tiff,
    prior_of,
    pyproj,
    rasterio,
    sparse_people,
    total_variation,
)
from fixtures.areas import domain_of
from hypothesis import example, given, settings
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.geo import Area, raster_on

SAMPLED = 0.01  # total variation: pixels of 100 m as 20 x 20 points each in cells of 500 m


def people_by_points(domain, path, parts=20):
    """People in the cells of a domain: every pixel of a file as points, by their cell."""
    with rasterio.open(path) as file:
        values, grid, system = file.read(1), file.transform, pyproj.CRS(file.crs.to_wkt())
    shift = (np.arange(parts) + 0.5) / parts
    rows, columns = np.nonzero(values)
    down, across = (np.add.outer(side, shift) for side in (rows, columns))
    x, y = np.broadcast_arrays(grid.c + grid.a * across[:, None, :], grid.f + grid.e * down[:, :, None])
    to_degrees = pyproj.Transformer.from_crs(system, "EPSG:4326", always_xy=True)
    points = domain.plane.forward(*to_degrees.transform(x.ravel(), y.ravel()))
    index = np.floor((points - domain.origin) / domain.cell).astype(int)
    inside = ((index >= 0) & (index < domain.shape)).all(axis=1)
    people = np.repeat(values[rows, columns] / parts**2, parts**2)
    return np.bincount(domain.lookup[tuple(index[inside].T)], people[inside], domain.size)


def test_sparse_people_are_added_up(run_json, tmp_path):
    """Points have one cell each; the areas that pixels share with cells are exact."""
    path = border_file("r01_sparse.tif")
    prior, figures = prior_of(run_json, tmp_path, "--prior", path)
    domain = ROME.grid(500.0)
    people = people_by_points(domain, path)
    assert total_variation(prior, people) < SAMPLED
    assert (figures["prior_is"], figures["people"]) == ("counts", pytest.approx(people.sum(), rel=1e-3))
    # 20 x 20 points may miss the corner of a pixel, and never find people where there are none.
    assert prior[people > 0].min() > 0
    assert prior[people == 0].max() < SAMPLED
    assert figures["empty_cells"] == (prior == 0).sum() > 0


@pytest.mark.parametrize("kind", ["EPSG:4326", "EPSG:32633", "EPSG:3857", "EPSG:3035", "plane"])
def test_totals_are_kept_across_projections(tmp_path, kind):
    """All people of a raster are in the cells, whatever its coordinate system, and where points of its pixels lie."""
    domain = ROME.grid(500.0)
    crs = f"+proj=aeqd +lat_0={domain.plane.latitude} +lon_0={domain.plane.longitude} +datum=WGS84 +units=m"
    system = pyproj.CRS(crs if kind == "plane" else kind)
    x, y = pyproj.Transformer.from_crs("EPSG:4326", system, always_xy=True).transform(12.475, 41.88)
    step = 0.0007 if kind == "EPSG:4326" else 60.0
    values = np.zeros((200, 160))
    values[80:115, 60:85] = sparse_people((35, 25))
    low = (x - 80 * step, y - 60 * step)
    path = degrees_tiff(tmp_path / "map.tif", values, low=low, step=step, crs=system.to_wkt())
    raster = raster_on(domain, path)
    assert raster.counts
    assert raster.amounts.sum() == pytest.approx(values.sum(), rel=ROUNDED)
    assert total_variation(md.priors.from_density(raster, domain), people_by_points(domain, path)) < SAMPLED


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


@pytest.mark.parametrize(
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
def test_kind_of_prior_is_guessed_and_reported(tmp_path, name, unit, cell, kind):
    domain = Area.box(12.47, 41.88, 12.48, 41.89).grid(cell)
    path = degrees_tiff(tmp_path / f"{name}.tif", sparse_people(), value_unit=unit)
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
BILINEAR = 4 / 8 * 10 * math.radians(1) ** 2


def smooth(longitude, latitude):
    return 3.0 + np.cos(np.radians(longitude)) + np.sin(np.radians(3 * longitude)) + 0.01 * np.asarray(latitude)


@pytest.mark.parametrize("convention", list(WORLD))
@pytest.mark.parametrize(
    "west", [-0.2, 0.9, 1.9, 179.9, 12.4]
)  # between any two nodes a circle may be cut at the wrong place
@pytest.mark.parametrize("kind", ["nc", "tif"])
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
    result = raster_on(domain, path).at(domain.points)
    assert result == pytest.approx(smooth(longitude, latitude), abs=BILINEAR)


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


def test_gaps_of_longitude_are_not_bridged(tmp_path):
    """Of 300 degrees, the 60 that are missing are not bridged."""
    x, y = np.arange(-150.0, 150.0, 2.0) + 1.0, np.arange(-89.0, 90.0, 2.0)
    array = xr.DataArray(np.ones((len(x), len(y))), coords={"lon": x, "lat": y}, dims=("lon", "lat"), name="level")
    domain = Area.box(179.9, -17.9, -179.9, -17.7).grid(5000.0)
    with pytest.raises(InputError, match="does not cover"):
        raster_on(domain, array)
    inside = Area.box(140.0, -17.9, 140.2, -17.7).grid(5000.0)
    assert raster_on(inside, array).at(inside.points).tolist() == [1.0] * inside.size


def test_forbidden_sea_needs_no_data(run_json, tmp_path):
    coast, sea = border_file("r10_coast.tif"), border_file("r10_sea.geojson")
    prior, _ = prior_of(run_json, tmp_path, "--prior", coast, "--forbidden", sea)
    # Ten people in every pixel: a cell has as many as every other one, but for its part in the sea.
    assert 0.9 < prior.min() / prior.max() < 1
    _, document = prior_of(run_json, tmp_path, "--prior", coast)
    message = document["error"]["message"]
    assert "24 of 80 cells" in message
    assert "--forbidden" in message
    assert "--nodata-is 0" in message
    prior, figures = prior_of(run_json, tmp_path, "--prior", coast, "--nodata-is", "0")
    assert figures["empty_cells"] == (prior == 0).sum() == 24


def test_missing_pixels_are_refused_where_needed(tmp_path):
    """A hole elsewhere does not matter; one at the centre of a cell is refused with its degrees."""
    domain, values, notes = ROME.grid(500.0), sparse_people() + 1.0, []
    values[:10] = -1.0
    path = degrees_tiff(tmp_path / "map.tif", values, nodata=-1.0)
    raster = raster_on(domain, path, on_note=notes.append)
    assert md.priors.from_density(raster, domain).min() > 0
    assert len(notes) == 1
    longitude, latitude = domain.plane.backward(domain.points[[37]])
    column, row = int((longitude[0] - 12.44) / 0.001), int((latitude[0] - 41.85) / 0.001)
    values[column + 2, row + 2] = -1.0
    raster_on(domain, degrees_tiff(path, values, nodata=-1.0), on_note=notes.append)
    assert "has no value in parts of 1 of 80 cells" in notes[-1]
    values[column, row] = -1.0
    path = degrees_tiff(tmp_path / "map.tif", values, nodata=-1.0)
    with pytest.raises(InputError, match="centre of 1 of 80 cells") as caught:
        raster_on(domain, path)
    assert f"{longitude[0]:.4f} {latitude[0]:.4f}" in caught.value.value
    assert raster_on(domain, path, nodata_is=0.0).counts


@pytest.mark.parametrize("nodes", [(40, 30), (41, 31), (8, 6), (7, 5)])
def test_pixels_on_a_plane_are_added_up(nodes):
    """Against points that are counted: the raster reaches beyond the grid on all sides, or tiles it."""
    values = np.random.default_rng(2).uniform(0, 5, nodes)
    x = -1.0 + 10.0 / nodes[0] * (np.arange(nodes[0]) + 0.5)
    y = -1.0 + 8.0 / nodes[1] * (np.arange(nodes[1]) + 0.5)
    domain = md.Domain.grid((4, 3), 2.0, unit="km")
    result = md.priors.from_density(md.Raster(x=x, y=y, values=values, unit="km"), domain)
    fine = (np.arange(1600) + 0.5) / 200
    columns = np.clip(((fine + 1) * nodes[0] / 10).astype(int), 0, nodes[0] - 1)
    rows = np.clip(((fine[:1200] + 1) * nodes[1] / 8).astype(int), 0, nodes[1] - 1)
    sums = values[np.ix_(columns, rows)].reshape(4, 400, 3, 400).sum(axis=(1, 3)).ravel()
    assert result == pytest.approx(sums / sums.sum(), rel=1e-2)
    values[nodes[0] // 2, nodes[1] // 2] = -0.1
    if nodes[0] > 8:  # larger pixels are read at the centres of cells
        with pytest.raises(InputError, match="negative"):
            md.priors.from_density(md.Raster(x=x, y=y, values=values, unit="km"), domain)


def test_raster_extends_beyond_pixels_if_allowed():
    raster, domain = md.Raster(x=[0.25, 0.75], y=[0.0], values=[[1.0], [3.0]]), md.Domain.grid((4, 1), 1.0)
    assert md.priors.from_density(raster, domain, extend=True) == pytest.approx(np.array([2, 3, 3, 3]) / 11)
    with pytest.raises(InputError, match="3 of 4 places lie outside"):
        md.priors.from_density(raster, domain)


def test_pixel_that_ends_at_a_cell_stays_in_it():
    """Borders of cells and pixels that differ by rounding alone: 0.1 + 0.2 is not 0.3."""
    domain = md.Domain.grid((3, 1), 0.1, origin=(0.1, 0.0))
    nodes = np.array([0.15, 0.25, 0.35]) + 1e-13
    raster = md.Raster(x=nodes, y=[0.05], values=[[1.0], [0.0], [1.0]])
    result = md.priors.from_density(raster, domain)
    assert result[1] == 0
    assert result == pytest.approx([0.5, 0.0, 0.5])


@cache
def amounts_of_world(gaps):
    """People in cells of the world of the next test, from an array in its plainest form."""
    x, y = 12.4405 + 0.001 * np.arange(100), 41.8505 + 0.001 * np.arange(80)
    world = np.where(HOLES & gaps, 0, sparse_people())
    array = xr.DataArray(world, coords={"lon": x, "lat": y}, dims=("lon", "lat"), name="people")
    return raster_on(ROME.grid(500.0), array, prior_is="counts").amounts


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
@settings(max_examples=12, deadline=None)
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
    domain, world = ROME.grid(500.0), np.where(HOLES & gaps, 0, sparse_people())
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
    path = degrees_tiff(tmp_path / "people.tif", sparse_people() * 1000)
    code, shown, noted = run(*BOX, *QUICK, "--prior", path, "-o", tmp_path / "a.nc")
    words = " ".join(shown.split())
    assert code == 0
    assert "counts per pixel; --prior-is density" in noted
    assert "million people in 80 cells" in words

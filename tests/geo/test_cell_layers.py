"""Cells as layers: right places in three cities, one across 180 degrees, right figures, in four formats."""

from __future__ import annotations

import json

import numpy as np
import pytest
from fixtures.absent_capabilities import needs
from fixtures.position_mechanisms import fine_mechanism, spline_weights

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.geo.cell_layers import CellLayer, save_cells
from mechdesign.geo.report_cells import ReportCells
from mechdesign.geo.shapes import plane_system
from mechdesign.mechanism.mechanism_file import MechanismFile
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


def places(mechanism, dim):
    """The places of rows or reports in degrees, and the plane."""
    domain = MechanismFile.read(mechanism).domain
    points = np.column_stack([mechanism[f"{dim}_x"].values, mechanism[f"{dim}_y"].values])
    return points, domain.plane, np.column_stack(domain.plane.backward(points))


def probabilities_of(mechanism, point):
    """P(y|x) of every report from a position in the plane, by the weights of the spline and the rows of the file."""
    domain = MechanismFile.read(mechanism).domain
    side, low = domain.cell[0], np.asarray(domain.origin)
    row = np.floor((point - low) / side).astype(int)
    cell = domain.lookup[tuple(row)]
    across, along = spline_weights(2**16 * ((point - low) / side - row - 0.5))
    return np.outer(across, along).ravel() @ md.probabilities(mechanism).values[mechanism["around_row"].values[cell]]


@needs("positions")
@pytest.mark.parametrize(("parts", "longitude"), [(1, 180.0), (2, 12.5), (2, 180.0), (3, 12.5)])
def test_features_are_cells_of_reports(tmp_path, parts, longitude) -> None:
    """Rows finer than reports, and a rectangle of rows about an area: by the polygons, by the table and by pyproj."""
    shapely = pytest.importorskip("shapely", reason="needs the extra: pip install 'mechdesign[geo]'")
    pyproj = pytest.importorskip("pyproj", reason="needs the extra: pip install 'mechdesign[geo]'")
    mechanism = fine_mechanism(parts, longitude)
    assert (mechanism.sizes["secret"], mechanism.sizes["report"]) == (12 * parts**2, 11)
    point = np.array([-70.0, 190.0])
    _, plane, degrees = places(mechanism, "secret")
    origin = tuple(float(x[0]) for x in plane.backward(point[None]))
    written = save_cells(mechanism, tmp_path / "cells.geojson", origin=origin)
    assert (written["cells"], written["rows"]) == (11, 12 * parts**2)
    features = json.loads((tmp_path / "cells.geojson").read_text())["features"]
    shapes = shapely.from_geojson([json.dumps(feature["geometry"]) for feature in features])
    column = {name: np.array([feature["properties"][name] for feature in features]) for name in written["columns"]}
    assert [feature["properties"]["cell"] for feature in features] == list(range(11))
    # By pyproj: each report lies in the middle of its polygon, whose area is that of a cell.
    to_plane = pyproj.Transformer.from_crs("EPSG:4326", plane_system(plane), always_xy=True)
    flat = shapely.transform(shapes, lambda xy: np.column_stack(to_plane.transform(xy[:, 0], xy[:, 1])))
    reports = places(mechanism, "report")[0]
    assert shapely.distance(shapely.centroid(flat), shapely.points(reports)).max() < 0.2
    assert np.allclose(shapely.area(flat), 240**2, rtol=1e-3)
    inside = shapely.contains_xy(shapes[:, None], degrees[None, :, 0], degrees[None, :, 1])
    assert inside.sum() == 11 * parts**2
    assert np.allclose(column["prior"], inside @ mechanism["prior"].values)
    assert column["prior"].sum() == pytest.approx(1)
    assert np.allclose(column["level"], mechanism["level"].values.max())
    assert column["prior"] @ column["expected_error"] == pytest.approx(md.utility.expected_distance(mechanism))
    assert np.allclose(column["probability"], probabilities_of(mechanism, point), atol=1e-6)


@needs("positions")
@pytest.mark.parametrize("parts", [2, 3])
def test_pixels_are_cells_of_reports(tmp_path, parts) -> None:
    rasterio = pytest.importorskip("rasterio", reason="needs the extra: pip install 'mechdesign[geo]'")
    mechanism = fine_mechanism(parts)
    save_cells(mechanism, tmp_path / "cells.tif", origin=(12.5, -16.85))
    reports = places(mechanism, "report")[0]
    with rasterio.open(tmp_path / "cells.tif") as file:
        assert (file.width, file.height, file.res) == (4, 3, (240.0, 240.0))
        band = file.descriptions.index("probability") + 1
        found = np.array([value[0] for value in file.sample(reports, band)])
        assert np.isfinite(file.read(band)).sum() == 11
        assert file.tags()["cells"] == f"those that reports name, each of {parts} x {parts} rows"
    assert np.allclose(found, probabilities_of(mechanism, np.zeros(2)), atol=1e-6)


@needs("positions")
def test_figures_of_cells_are_of_their_rows() -> None:
    cells = ReportCells.of(MechanismFile.read(fine_mechanism(2)))
    values = np.arange(48.0)
    own = [np.flatnonzero(cells.rows == c) for c in range(11)]
    assert (np.bincount(cells.rows + 1) == 4).all()
    assert np.allclose(cells.largest_of(values), [values[rows].max() for rows in own])
    weights = np.where(cells.rows == 3, 0.0, values)
    means = [np.average(values[rows], weights=None if c == 3 else values[rows]) for c, rows in enumerate(own)]
    assert np.allclose(cells.mean_of(values, weights), means)


def test_cells_without_a_report_stay_if_people_are_there(tmp_path) -> None:
    """Reports are two of 19 cells: the others keep their prior, without a number."""
    pytest.importorskip("shapely", reason="needs the extra: pip install 'mechdesign[geo]'")
    _, domain = city("Rome")
    reports = md.Domain.points_at(domain.points[[4, 11]], unit="m")
    problem = md.DesignProblem(
        domain=domain, metric=md.Euclidean(epsilon=0.01, unit="m"), prior=np.full(19, 1 / 19), reports=reports,
        loss=md.losses.Distance(),
    )  # fmt: skip
    mechanism = md.solve(problem)
    save_cells(mechanism, tmp_path / "c.geojson", origin=(12.5, 41.9))
    features = json.loads((tmp_path / "c.geojson").read_text())["features"]
    cells = [(one["properties"]["cell"], one["properties"]["probability"] > 0) for one in features]
    assert len(cells) == 19
    assert (cells[4], cells[11], cells[5]) == ((0, True), (1, True), (None, False))


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

"""Planes and areas on Earth. Second routes: geodesics (pyproj.Geod) for distances, a ray cast by hand for polygons."""

from __future__ import annotations

import itertools
import json
import math
import sys

import numpy as np
import pytest
from fixtures.forged_files import rewritten
from fixtures.tolerances import DESIGN_MARGIN

import mechdesign as md
from mechdesign.errors import FileFormatError, InputError
from mechdesign.geo import Area, Plane, area_problem, plane_level, read_area
from mechdesign.geo.area import area_of
from mechdesign.problem.locate import place_at, place_on_earth
from mechdesign.problem.plane import LARGEST_EXCESS, METRES

pyproj = pytest.importorskip("pyproj")
pytest.importorskip("shapely")

GEOD = pyproj.Geod(ellps="WGS84")
CENTRES = [(0.0, 10.0), (30.0, -75.0), (48.858, 2.348), (-41.0, 179.99), (84.0, 0.0)]
GEODESY = 1e-8  # relative: two implementations of geodesics, each good to nanometres
OUTER = [[2.33, 48.85], [2.35, 48.845], [2.37, 48.855], [2.36, 48.87], [2.34, 48.865], [2.33, 48.85]]
HOLE = [[2.345, 48.855], [2.355, 48.855], [2.35, 48.862], [2.345, 48.855]]


def write_geometry(folder, geometry, name="area.geojson"):
    path = folder / name
    path.write_text(json.dumps(geometry), encoding="utf-8")
    return path


def polygon(*rings):
    return {"type": "Polygon", "coordinates": [list(ring) for ring in rings]}


def pairs(plane, radius, count=2000):
    """Pairs of points within `radius`, half of them close to the rim, and their geodesic distances, in `unit`."""
    draw = np.random.default_rng(7)
    angle, share = draw.uniform(0, 2 * math.pi, count), np.sqrt(draw.uniform(0, 1, count))
    share[: count // 2] = 0.999
    first = radius * share[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    away = np.where(np.arange(count) % 2, 0.02, 1.0)[:, None]
    second = first + away * radius * draw.normal(0, 0.5, (count, 2))
    kept = np.hypot(*second.T) <= radius
    first, second = first[kept], second[kept]
    ground = GEOD.inv(*plane.backward(first), *plane.backward(second))[2]
    return np.hypot(*(first - second).T), np.asarray(ground) / METRES[plane.unit]


@pytest.mark.parametrize("unit", sorted(METRES))
@pytest.mark.parametrize(("latitude", "longitude"), CENTRES)
def test_points_lie_where_geodesics_from_the_centre_end(latitude, longitude, unit):
    plane = Plane(latitude=latitude, longitude=longitude, unit=unit)
    azimuth, metres = np.arange(0.0, 360.0, 30.0), np.linspace(10.0, 3e5, 12)
    lon, lat, _ = GEOD.fwd(np.full(12, longitude), np.full(12, latitude), azimuth, metres)
    radians, length = np.radians(azimuth), metres / METRES[unit]
    expected = np.column_stack([length * np.sin(radians), length * np.cos(radians)])
    assert np.abs(plane.forward(lon, lat) - expected).max() <= GEODESY * length.max()
    back = plane.backward(expected)
    assert np.abs(GEOD.inv(*back, lon, lat)[2]).max() <= GEODESY * 3e5


@pytest.mark.parametrize("radius", [1e3, 1e5, 4.9e5])
@pytest.mark.parametrize(("latitude", "longitude"), CENTRES)
def test_plane_lengthens_by_at_most_the_bound(latitude, longitude, radius):
    plane = Plane(latitude=latitude, longitude=longitude, unit="km")
    distance, ground = pairs(plane, radius / 1000)
    resolved = ground > 1e-3 * radius / 1000
    ratio = distance[resolved] / ground[resolved] - 1
    assert ratio.min() >= -GEODESY
    assert ratio.max() <= plane.excess(radius / 1000) + GEODESY
    assert ratio.max() >= 0.9 * plane.excess(radius / 1000) - GEODESY  # and the bound is nearly attained


@pytest.mark.parametrize("radius", [1.0, 1e4, 4.9e5])
def test_the_bound_is_that_of_the_largest_curvature(radius):
    """Second route: t / sin t - 1 as its alternating-free series, term by term, t = radius / b."""
    t = radius / (6_378_137.0 * (1 - 1 / 298.257223563))
    exact = math.fsum([t**2 / 6, 7 * t**4 / 360, 31 * t**6 / 15120])
    bound = Plane(latitude=10, longitude=10).excess(radius)
    assert exact <= bound * (1 + 1e-9)
    assert bound == pytest.approx(exact, rel=1e-4)


def test_wide_area_holds_on_the_ground_by_shrinking():
    domain = Area.box(west=0.0, south=-2.9, east=5.8, north=2.9).grid(cell=160.0, unit="km")
    epsilon = 0.004
    ground = geodesic(domain) * epsilon
    shrunk = md.solve(md.Optimal(problem=area_problem(domain, epsilon=epsilon)), gap=1e-6)
    assert steepness(shrunk, ground) <= 1
    plain = md.DesignProblem(
        domain=domain,
        metric=md.Euclidean(epsilon=epsilon, unit="km"),
        prior=md.priors.uniform(domain),
        loss=md.losses.Distance(),
    )
    assert steepness(md.solve(md.Optimal(problem=plain), gap=1e-6), ground) > 1 + 1e-5
    assert json.loads(shrunk.attrs["parameters"])["problem_parameters"]["geodesic_epsilon"] == epsilon


def geodesic(domain):
    """Geodesic distances (n, n) of the places, in the unit of the domain."""
    lon, lat = domain.plane.backward(domain.points)
    n = domain.size
    one, other = np.repeat(np.arange(n), n), np.tile(np.arange(n), n)
    return np.asarray(GEOD.inv(lon[one], lat[one], lon[other], lat[other])[2]).reshape(n, n) / METRES[domain.unit]


def steepness(mechanism, distance):
    """The largest log-ratio over `distance` (n, n) in nats."""
    logs = np.log(mechanism["mass"].values.astype(float))
    ratio = np.abs(logs[:, None, :] - logs[None, :, :]).max(axis=2)
    return float((ratio[distance > 0] / distance[distance > 0]).max())


def test_levels_that_vary_are_divided_as_well():
    domain = Area.box(west=0.0, south=0.0, east=4.0, north=4.0).grid(cell=100.0, unit="km")
    raster = md.Raster(x=np.array([-300.0, 300.0]), y=np.array([0.0]), values=np.array([[1.0], [3.0]]), unit="km")
    metric = area_problem(domain, epsilon=0.5, levels=raster, slope=0.25).metric
    expected = (0.5 + 0.25 * raster.at(domain.points)) / (1 + domain.plane.excess(domain.max_radius))
    assert metric.level_at(domain) == pytest.approx(expected, rel=1e-12)
    assert domain.plane.excess(domain.max_radius) > 1e-5
    assert metric.level_at(domain).max() / expected.max() <= 1


@pytest.mark.parametrize("forbidden", [False, True])
def test_cells_are_those_whose_centres_a_ray_cast_finds_inside(tmp_path, forbidden):
    """Second routes: even-odd crossings of a ray in degrees, and the direct geodesic problem for the centres."""
    area = read_area(write_geometry(tmp_path, polygon(OUTER) if forbidden else polygon(OUTER, HOLE)))
    left_out = read_area(write_geometry(tmp_path, polygon(HOLE), "water.geojson")) if forbidden else None
    domain = area.grid(cell=100.0, forbidden=left_out)
    (wide, high), (x, y) = domain.shape, domain.origin
    centres = [(x + 100 * (i + 0.5), y + 100 * (j + 0.5)) for i in range(wide) for j in range(high)]
    result = []
    for east, north in centres:
        azimuth = math.degrees(math.atan2(east, north))
        start = domain.plane.longitude, domain.plane.latitude
        lon, lat, _ = GEOD.fwd(*start, azimuth, math.hypot(east, north))
        result.append((crossings(OUTER, lon, lat) + crossings(HOLE, lon, lat)) % 2 == 1)
    assert (domain.lookup >= 0).ravel().tolist() == result
    assert 100 < sum(result) < 0.9 * len(result)


def crossings(ring, lon, lat):
    """How often a ray to the east from a position crosses the ring."""
    count = 0
    for (ax, ay), (bx, by) in itertools.pairwise(ring):
        if (ay > lat) != (by > lat):
            count += lon < ax + (lat - ay) * (bx - ax) / (by - ay)
    return count


@pytest.mark.parametrize(("cell", "unit"), [(20.0, "m"), (0.02, "km"), (0.0125, "mi")])
def test_cells_cover_the_geodesic_area(cell, unit):
    domain = Area.box(west=2.33, south=48.85, east=2.37, north=48.87).grid(cell=cell, unit=unit)
    lon, lat = [2.33, 2.37, 2.37, 2.33], [48.85, 48.85, 48.87, 48.87]
    covered = domain.size * (cell * METRES[unit]) ** 2
    assert covered == pytest.approx(abs(GEOD.polygon_area_perimeter(lon, lat)[0]), rel=0.03)


SPLIT = {
    "type": "MultiPolygon",
    "coordinates": [
        [[[179.9, -17.0], [180.0, -17.0], [180.0, -16.9], [179.9, -16.9], [179.9, -17.0]]],
        [[[-180.0, -17.0], [-179.8, -17.0], [-179.8, -16.9], [-180.0, -16.9], [-180.0, -17.0]]],
    ],
}
UNCUT = polygon([[179.9, -17.0], [-179.8, -17.0], [-179.8, -16.9], [179.9, -16.9], [179.9, -17.0]])


@pytest.mark.parametrize("given", ["split", "uncut", "box"])
def test_the_antimeridian_is_no_border(tmp_path, given):
    """Second route: the same area elsewhere, because the ellipsoid is one of revolution."""
    shapes = {"split": SPLIT, "uncut": UNCUT}
    across = (
        Area.box(west=179.9, south=-17.0, east=-179.8, north=-16.9)
        if given == "box"
        else read_area(write_geometry(tmp_path, shapes[given]))
    )
    result = across.grid(cell=3.0, unit="km")
    there = Area.box(west=9.9, south=-17.0, east=10.2, north=-16.9).grid(cell=3.0, unit="km")
    assert result.shape == there.shape == (11, 4)
    assert np.abs(result.points - there.points).max() < 1e-6
    lon, _ = result.plane.backward(result.points)
    assert (lon > 179).any()
    assert (lon < -179).any()
    assert (
        place_at(result, place_on_earth(result, float(lon[3]), float(result.plane.backward(result.points)[1][3]))) == 3
    )


@pytest.mark.parametrize("wrap", ["Feature", "FeatureCollection", "GeometryCollection"])
def test_collections_hold_the_union(tmp_path, wrap):
    geometry = polygon(OUTER, HOLE)
    feature = {"type": "Feature", "properties": {}, "geometry": geometry}
    shapes = {
        "Feature": feature,
        "FeatureCollection": {"type": wrap, "features": [feature, feature, {"type": "Feature", "geometry": None}]},
        "GeometryCollection": {"type": wrap, "geometries": [geometry, geometry]},
    }
    plain = read_area(write_geometry(tmp_path, geometry)).grid(cell=200.0)
    assert np.array_equal(read_area(write_geometry(tmp_path, shapes[wrap])).grid(cell=200.0).points, plain.points)


@pytest.mark.parametrize(
    ("geometry", "error", "message"),
    [
        (polygon(), InputError, "no polygon"),
        ({"type": "MultiPolygon", "coordinates": []}, InputError, "no polygon"),
        ({"type": "FeatureCollection", "features": []}, InputError, "no polygon"),
        (polygon([[2.0, 48.0], [2.1, 48.0], [2.2, 48.0], [2.0, 48.0]]), InputError, "polygon of area 0"),
        (polygon([[485000, 4425000], [485100, 4425000], [485100, 4425100], [485000, 4425000]]), InputError, "degrees"),
        (polygon([[2.0, 91.0], [2.1, 91.0], [2.1, 92.0], [2.0, 91.0]]), InputError, "latitudes within 90"),
        (polygon([[2.0, 86.0], [2.1, 86.0], [2.1, 86.1], [2.0, 86.0]]), InputError, "beyond 85"),
        (polygon([[-120, 80], [0, 80], [120, 80], [-120, 80]]), InputError, "around a pole"),
        (polygon([[2.0, 48.0], [2.1, 48.0], [2.0, 48.0]]), InputError, "polygon of area 0"),
        (polygon([[2.0, None], [2.1, 48.0], [2.1, 48.1], [2.0, None]]), FileFormatError, "two finite numbers"),
        ({"type": "Point", "coordinates": [2.0, 48.0]}, FileFormatError, "only 1 point"),
        ([1, 2], FileFormatError, "JSON object"),
        (
            {**polygon(OUTER), "crs": {"properties": {"name": "EPSG:2154"}}},
            FileFormatError,
            "holds degrees, and its coordinate system is RGF93",
        ),
    ],
)
def test_invalid_areas_are_refused(tmp_path, geometry, error, message):
    with pytest.raises(error, match=message) as caught:
        read_area(write_geometry(tmp_path, geometry))
    assert caught.value.field == "area"


@pytest.mark.parametrize("box", [(2, 48, 2, 49), (2, 49, 3, 48), (2, 48, 3, math.nan), (-100, 0, 100, 1)])
def test_invalid_boxes_are_refused(box):
    west, south, east, north = box
    with pytest.raises(InputError):
        Area.box(west=west, south=south, east=east, north=north)


@pytest.mark.parametrize(("cell", "field"), [(0.0, "cell"), (-1.0, "cell"), (math.nan, "cell"), (5000.0, "cell")])
def test_oversized_cells_are_refused(cell, field):
    with pytest.raises(InputError) as caught:
        Area.box(west=2.33, south=48.85, east=2.37, north=48.87).grid(cell=cell)
    assert caught.value.field == field


def test_a_forbidden_area_that_leaves_nothing_is_refused():
    area = Area.box(west=2.33, south=48.85, east=2.37, north=48.87)
    with pytest.raises(InputError, match="forbidden"):
        area.grid(cell=200.0, forbidden=area)


def test_areas_beyond_the_bound_are_refused():
    assert Plane(latitude=0, longitude=0, unit="km").excess(491.0) < LARGEST_EXCESS
    with pytest.raises(InputError, match=r"0\.1%"):
        Plane(latitude=0, longitude=0, unit="km").excess(494.0)
    with pytest.raises(InputError, match="stretch"):
        Area.box(west=0.0, south=0.0, east=9.0, north=9.0).grid(cell=50.0, unit="km")
    with pytest.raises(InputError, match="stretch"):
        md.Domain.grid((2, 2), cell=1.0, unit="km", origin=600.0, plane=Plane(latitude=0, longitude=0, unit="km"))


@pytest.mark.parametrize(
    ("made", "field"),
    [
        (lambda: Plane(latitude=89.0, longitude=0.0), "latitude, longitude"),
        (lambda: Plane(latitude=0.0, longitude=math.nan), "latitude, longitude"),
        (lambda: Plane(latitude=0.0, longitude=0.0, unit="degree"), "unit"),
        (lambda: md.Domain.grid(3, cell=1.0, unit="m", plane=Plane(latitude=0, longitude=0)), "plane"),
        (lambda: md.Domain.grid((3, 3), cell=1.0, unit="km", plane=Plane(latitude=0, longitude=0)), "plane"),
        (lambda: plane_level(md.Domain.grid((3, 3), cell=1.0, unit="m"), 1.0), "domain"),
        (lambda: place_on_earth(md.Domain.grid((3, 3), cell=1.0, unit="m"), 1.0, 1.0), "lon, lat"),
        (lambda: place_on_earth(small(), 181.0, 1.0), "lon, lat"),
        (lambda: area_problem(small(), epsilon=0.0), "epsilon"),
        (lambda: area_problem(small(), epsilon=1.0, slope=1.0), "slope"),
        (lambda: area_problem(small(), epsilon=1.0, loss="joy"), "loss"),
        (lambda: area_of([]), "area"),
    ],
)
def test_meaningless_arguments_are_refused(made, field):
    with pytest.raises(InputError) as caught:
        made()
    assert caught.value.field == field


def small():
    return Area.box(west=2.34, south=48.85, east=2.35, north=48.855).grid(cell=250.0)


def test_the_plane_survives_the_file_and_belongs_to_the_claim(tmp_path):
    domain = small()
    mechanism = md.baselines.planar_laplace(area_problem(domain, epsilon=0.004))
    path = md.save(mechanism, tmp_path / "m.nc")
    stored = md.load(path)
    described = json.loads(stored.attrs["domain"])
    again = md.Domain.from_description(described, domain.points)
    assert again.plane == domain.plane == Plane(latitude=48.8525, longitude=2.345)
    assert md.verify(path).certified
    assert "about 48.8525 N 2.345 E" in stored.attrs["claim"]
    described["plane"]["latitude"] = 48.0
    moved = rewritten(stored, domain=json.dumps(described, sort_keys=True))
    assert any("claim" in reason for reason in md.verify(moved).reasons)
    del described["plane"]
    assert md.Domain.from_description(described, domain.points).plane is None


def test_a_claim_rounds_the_stretch_up():
    plane = Plane(latitude=-10.0, longitude=-20.0, unit="km")
    for radius in np.linspace(1.0, 480.0, 50):
        output = float(plane.accuracy(radius).split("less than ")[1].split()[0])
        assert plane.excess(radius) < output < 1.03 * plane.excess(radius)
    assert "10 S 20 W" in plane.words()


def test_planes_of_another_kind_are_refused():
    described = Plane(latitude=1.0, longitude=2.0).describe()
    assert Plane.from_description(described, "m") == Plane(latitude=1.0, longitude=2.0)
    with pytest.raises(InputError, match="unknown plane"):
        Plane.from_description({**described, "ellipsoid": "Clarke 1866"}, "m")


@pytest.mark.parametrize("module", ["pyproj", "shapely"])
def test_the_remedy_names_the_extra(monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=r"mechdesign\[geo\]"):
        Area.box(west=2.34, south=48.85, east=2.35, north=48.855)


@pytest.mark.parametrize(("cell", "unit"), [(200.0, "m"), (0.05, "mi"), (10.0, "km"), (1.0, "m")])
def test_decimals_of_degrees_move_no_place_by_a_tenth_of_a_cell(cell, unit):
    plane = Plane(latitude=3.0, longitude=5.0, unit=unit)
    digits = plane.decimals(cell)
    points = np.random.default_rng(1).uniform(-50 * cell, 50 * cell, (2000, 2))
    lon, lat = plane.backward(points)
    off = np.hypot(*(plane.forward(np.round(lon, digits), np.round(lat, digits)) - points).T).max()
    assert off <= cell / 10
    coarse = plane.forward(np.round(lon, digits - 1), np.round(lat, digits - 1))
    assert np.hypot(*(coarse - points).T).max() > cell / 10 * (1 - DESIGN_MARGIN)


@pytest.mark.parametrize(("west", "east", "middle"), [(-60, 100, 20), (120, -100, -170), (170, -170, 180), (2, 3, 2.5)])
def test_the_middle_is_that_of_the_shortest_arc(west, east, middle):
    area = Area.box(west=west, south=-1.0, east=east, north=1.0)
    assert area.middle == middle
    inside = west + np.linspace(0.01, 0.99, 9) * ((east - west) % 360)
    around = (inside + 180) % 360 - 180
    assert area.contains(around, np.zeros(9)).all()
    assert not area.contains(around, np.full(9, 1.5)).any()
    assert not area.contains((around + 180) % 360, np.zeros(9)).all()


def test_stretch_bound_holds_to_its_last_radius():
    """The bound in t^2 against t / sin t itself, which it undercuts from t = 0.796 on; the metres are those of t."""
    plane, minor_axis = Plane(latitude=10, longitude=10), 6_356_752.3142
    for radius in np.linspace(1e5, 5.02e6, 200):
        t = radius / minor_axis
        assert plane.unlimited_excess(radius) >= t / math.sin(t) - 1
    assert plane.unlimited_excess(0.7901 * minor_axis) == math.inf

"""Polygons as people bring them: every file has one meaning, or is refused in one sentence.

Two routes to each expected value: the cells of the same ground in plain degrees, or a published figure. These are the
Ordnance Survey's worked example, and the union of triangles drawn by hand.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from border_data import border_file
from fixtures.absent_capabilities import needs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.errors import InputError

pytestmark = needs("geo")
pyproj = pytest.importorskip("pyproj", reason="needs the extra geo")

W, S, E, N = 12.46, 41.87, 12.52, 41.91
BOX = [[W, S], [E, S], [E, N], [W, N], [W, S]]
METRES_OF_NAD83 = 2.0  # between NAD83 and WGS 84
METRES_OF_HELMERT = 10.0  # a national datum without its grid file is right to some 5 m


def polygon(*rings):
    return {"type": "Polygon", "coordinates": list(rings)}


def collection(*geometries, **more):
    features = [{"type": "Feature", "properties": {"name": f"a{k}"}, "geometry": g} for k, g in enumerate(geometries)]
    return {"type": "FeatureCollection", "features": features, **more}


def crs_of(name):
    return {"type": "name", "properties": {"name": name}}


def write_geojson(folder, document, encoding="utf-8"):
    path = Path(folder) / "area.geojson"
    text = document if isinstance(document, str) else json.dumps(document)
    path.write_bytes(text.encode(encoding))
    return path


def degrees(source, cell=500.0, **options):
    """Longitudes and latitudes (n, 2) of the cells of a file or an area."""
    area = source if isinstance(source, md.geo.Area) else md.geo.read_area(source, **options)
    domain = area.grid(cell=cell)
    return np.column_stack(domain.plane.backward(domain.points))


def plain():
    """The cells of the box."""
    return degrees(md.geo.Area.box(W, S, E, N))


def largest_distance(one, other):
    """The largest distance in m between two lists of positions in degrees."""
    assert one.shape == other.shape
    return pyproj.Geod(ellps="WGS84").inv(*one.T, *other.T)[2].max()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le"])
def test_byte_order_marks_are_understood(tmp_path, encoding):
    assert largest_distance(degrees(write_geojson(tmp_path, polygon(BOX), encoding)), plain()) < 1e-6


def test_the_file_with_a_mark_has_the_cells_of_its_box():
    assert largest_distance(degrees(border_file("g01_bom.geojson")), plain()) < 1e-6


@pytest.mark.parametrize(
    "name",
    [
        "urn:ogc:def:crs:OGC:1.3:CRS84", "OGC:CRS84", "CRS84", "urn:ogc:def:crs:EPSG::4326", "EPSG:4326", "epsg::4326",
        "http://www.opengis.net/def/crs/OGC/1.3/CRS84", "http://www.opengis.net/def/crs/EPSG/0/4326", "WGS 84",
    ],
)  # fmt: skip
def test_every_spelling_of_wgs84_is_read_without_a_note(tmp_path, name):
    notes = []
    path = write_geojson(tmp_path, collection(polygon(BOX), crs=crs_of(name)))
    assert largest_distance(degrees(path, on_note=notes.append), plain()) < 1e-6
    assert notes == []


@pytest.mark.parametrize(
    "crs", [crs_of("urn:ogc:def:crs:EPSG::4269"), crs_of("EPSG:4269"), {"type": "EPSG", "properties": {"code": 4269}}]
)
def test_census_files_in_nad83_are_read(tmp_path, crs):
    notes = []
    path = write_geojson(tmp_path, collection(polygon(BOX), crs=crs))
    assert largest_distance(degrees(path, on_note=notes.append), plain()) < METRES_OF_NAD83
    assert "projected from NAD83" in notes[0]


def test_the_census_file_has_the_cells_of_its_box():
    assert largest_distance(degrees(border_file("g02_epsg4269.geojson")), plain()) < METRES_OF_NAD83


def test_national_grid_matches_survey_example(tmp_path):
    """The water tower in the worked example of the Ordnance Survey's guide, in metres and in degrees."""
    east, north = 651409.792, 313177.448
    square = [[east + 1000 * x, north + 1000 * y] for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1))]
    plane = md.geo.read_area(write_geojson(tmp_path, collection(polygon(square), crs=crs_of("EPSG:27700")))).plane()
    distance = pyproj.Geod(ellps="WGS84").inv(plane.longitude, plane.latitude, 1.716073972, 52.658007833)[2]
    assert distance < METRES_OF_HELMERT


# Registers that name north first (31467), feet (2263), a conic (3035), the plane of web maps (3857)
@pytest.mark.parametrize(
    ("system", "west", "south", "east", "north"),
    [
        ("EPSG:27700", -0.2, 51.4, -0.1, 51.5),
        ("EPSG:3857", W, S, E, N),
        ("EPSG:32633", W, S, E, N),
        ("EPSG:31467", 8.6, 50.0, 8.7, 50.1),
        ("EPSG:2263", -74.0, 40.7, -73.9, 40.75),
        ("EPSG:3035", W, S, E, N),
        ("EPSG:4277", -0.2, 51.4, -0.1, 51.5),
    ],
)
def test_systems_are_projected_with_east_first(tmp_path, system, west, south, east, north):
    share = np.linspace(0, 1, 40)[:, None]  # straight edges in degrees, as the plain box has them
    corners = np.array([[west, south], [east, south], [east, north], [west, north], [west, south]])
    ring = np.concatenate([a + share * (b - a) for a, b in pairwise(corners)])
    there = np.column_stack(pyproj.Transformer.from_crs("OGC:CRS84", system, always_xy=True).transform(*ring.T))
    shape = polygon(there.tolist())
    expected = degrees(md.geo.Area.box(west, south, east, north), cell=2000.0)
    ways = {
        "of the file": collection(shape, crs=crs_of(system)),
        "of the feature": {"type": "Feature", "crs": crs_of(system), "geometry": shape},
        "of the geometry": {**shape, "crs": crs_of(system)},
        "named besides": shape,
    }
    for way in ways if system == "EPSG:31467" else ["of the file"]:
        options = {"crs": system} if way == "named besides" else {}
        assert largest_distance(degrees(write_geojson(tmp_path, ways[way]), cell=2000.0, **options), expected) < 0.5, (
            way
        )


def test_degrees_without_a_system_stay_degrees(tmp_path):
    assert largest_distance(degrees(write_geojson(tmp_path, polygon(BOX)), crs="EPSG:27700"), plain()) < 1e-6


@pytest.mark.parametrize(
    ("system", "longitude", "latitude"),
    [("EPSG:31467", 8.6, 50.0), ("EPSG:2193", 174.8, -41.3), ("EPSG:2154", 2.3, 48.8)],
)
def test_north_before_east_is_refused_if_detectable(tmp_path, system, longitude, latitude):
    east, north = pyproj.Transformer.from_crs("OGC:CRS84", system, always_xy=True).transform(longitude, latitude)
    square = [[east + 1000 * x, north + 1000 * y] for x, y in ((0, 0), (5, 0), (5, 5), (0, 5), (0, 0))]
    document = {**polygon(square), "crs": crs_of(system)}
    assert len(degrees(write_geojson(tmp_path, document))) > 4
    document["coordinates"] = [[position[::-1] for position in square]]
    with pytest.raises(InputError, match=r"x and y are exchanged|do not belong"):
        md.geo.read_area(write_geojson(tmp_path, document))


def test_long_edges_of_a_plane_are_cut_before_they_bend(tmp_path):
    """A square of 300 km in UTM zone 33 with two corners an edge, and with a corner every km: the same cells."""
    corners = np.array([[350e3, 4500e3], [650e3, 4500e3], [650e3, 4800e3], [350e3, 4800e3], [350e3, 4500e3]])
    share = np.linspace(0, 1, 301)[:, None]
    ring = np.concatenate([a + share * (b - a) for a, b in pairwise(corners)])
    few, many = (
        md.geo.read_area(write_geojson(tmp_path, {**polygon(r.tolist()), "crs": crs_of("EPSG:32633")}))
        for r in (corners, ring)
    )
    assert few.shape.symmetric_difference(many.shape).area < 1e-9 * many.shape.area


@pytest.mark.parametrize(
    ("west", "east"),
    [(179.9, 180.1), (-180.1, -179.9), (179.9, -179.9)],
)
def test_longitudes_beyond_180_are_the_split_area(tmp_path, west, east):
    lat = (-16.9, -16.7)
    ring = [[west, lat[0]], [east, lat[0]], [east, lat[1]], [west, lat[1]], [west, lat[0]]]
    halves = [
        [[a, lat[0]], [b, lat[0]], [b, lat[1]], [a, lat[1]], [a, lat[0]]] for a, b in ((179.9, 180.0), (-180.0, -179.9))
    ]
    split = degrees(write_geojson(tmp_path, {"type": "MultiPolygon", "coordinates": [[half] for half in halves]}))
    assert len(split) > 1000
    assert largest_distance(degrees(write_geojson(tmp_path, polygon(ring))), split) < 1e-3
    assert largest_distance(degrees(md.geo.Area.box(west, *lat[:1], east, lat[1])), split) < 1e-3


def test_longitudes_from_0_to_360_are_those_of_west():
    one, other = md.geo.Area.box(350.0, 51.0, 350.1, 51.1), md.geo.Area.box(-10.0, 51.0, -9.9, 51.1)
    assert largest_distance(degrees(one), degrees(other)) < 1e-6


def test_the_file_across_180_has_the_cells_of_its_halves():
    area = md.geo.read_area(border_file("g04_lon180.geojson"))
    assert largest_distance(degrees(area), degrees(md.geo.Area.box(179.9, -16.9, -179.9, -16.7))) < 1e-3


T = [[W, S], [E, N], [E, S], [W, N], [W, S]]  # a bow-tie: two triangles that meet in the middle
X, Y = (W + E) / 2, (S + N) / 2
INVALID = {  # rings, and polygons of the same ground that are valid
    "bow-tie": ([T], [[[[W, S], [X, Y], [W, N], [W, S]]], [[[E, S], [X, Y], [E, N], [E, S]]]]),
    "spike": ([[*BOX[:2], [E + 0.01, S], [E, S], *BOX[2:]]], [[BOX]]),
    "touches itself": (
        [[[W, S], [X, S], [W, Y], [X, N], [E, S], [E, N], [W, N], [W, Y], [W, S]]],
        [[[[W, S], [X, S], [W, Y], [W, S]]], [[[W, Y], [X, N], [W, N], [W, Y]]], [[[X, N], [E, S], [E, N], [X, N]]]],
    ),
    "wound twice": ([[*BOX[:4], *BOX]], [[BOX]]),
    "hole outside": ([BOX, [[E + 1, S], [E + 2, S], [E + 2, N], [E + 1, S]]], [[BOX]]),
    "hole across the border": (
        [BOX, [[X, S], [E + 1, S], [E + 1, N], [X, N], [X, S]]],
        [[[[W, S], [X, S], [X, N], [W, N], [W, S]]]],
    ),
}


@pytest.mark.parametrize("name", INVALID)
def test_invalid_rings_are_repaired_and_reported(tmp_path, name):
    rings, valid = INVALID[name]
    notes = []
    mended = md.geo.read_area(write_geojson(tmp_path, polygon(*rings)), on_note=notes.append)
    expected = md.geo.read_area(write_geojson(tmp_path, {"type": "MultiPolygon", "coordinates": valid}))
    assert mended.shape.symmetric_difference(expected.shape).area < 1e-9
    assert len(notes) == 1
    assert "repaired" in notes[0]


def test_the_note_has_both_areas(tmp_path):
    """A bow-tie of 0.06 x 0.04 degrees: its signed area is 0, and half the box, 4.97 km x 4.44 km, is left."""
    notes = []
    md.geo.read_area(write_geojson(tmp_path, polygon(T)), on_note=notes.append)
    after = float(notes[0].removesuffix(" km².").split()[-1])
    assert after == pytest.approx(4.97 * 4.44 / 2, rel=5e-3)


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ([{"type": "Point", "coordinates": [W, S]}], "1 point is ignored"),
        ([{"type": "MultiPoint", "coordinates": [[W, S], [E, N]]}], "2 points are ignored"),
        ([{"type": "LineString", "coordinates": BOX}, {"type": "Point", "coordinates": [W, S]}], "1 line and 1 point"),
        (
            [{"type": "GeometryCollection", "geometries": [{"type": "MultiLineString", "coordinates": [BOX, BOX]}]}],
            "2 l",
        ),
    ],
)
def test_points_and_lines_are_counted_and_ignored(tmp_path, others, words):
    notes = []
    path = write_geojson(tmp_path, collection(*others, polygon(BOX)))
    assert largest_distance(degrees(path, on_note=notes.append), plain()) < 1e-6
    assert words in notes[0]


REFUSED = {
    "empty file": "",
    "mark alone": "\ufeff\n",
    "cut short": '{"type": "Polygon", "coordinates": [[[12',
    "two documents": json.dumps(polygon(BOX)) * 2,
    "a name twice": '{"type": "Point", ' + json.dumps(polygon(BOX))[1:],
    "nan": json.dumps(polygon(BOX)).replace("12.46", "NaN"),
    "infinity": json.dumps(polygon(BOX)).replace("12.46", "Infinity"),
    "beyond doubles": json.dumps(polygon(BOX)).replace("12.46", "1e999"),
    "a word": json.dumps(polygon(BOX)).replace("12.46", '"12.46"'),
    "true": json.dumps(polygon(BOX)).replace("12.46", "true"),
    "one number": json.dumps(polygon([[1], [2], [3], [1]])),
    "a number for a ring": '{"type": "Polygon", "coordinates": [[1, 2], [3, 4], [5, 6]]}',
    "no coordinates": '{"type": "Polygon"}',
    "a list": "[1, 2]",
    "text": '"POLYGON ((12 41, 13 41, 13 42, 12 41))"',
    "markup": "<kml><Polygon/></kml>",
    "unknown type": '{"type": "Circle", "coordinates": [12, 41]}',
    "no features": '{"type": "FeatureCollection"}',
    "points alone": collection({"type": "Point", "coordinates": [W, S]}),
    "no geometry": collection(None),
    "TopoJSON": '{"type": "Topology", "objects": {}, "arcs": []}',
    "Esri": '{"geometryType": "esriGeometryPolygon", "spatialReference": {"wkid": 4326}, "features": []}',
    "Esri ring": json.dumps({"rings": [BOX], "spatialReference": {"wkid": 4326}}),
    "metres": polygon([[291000, 4640000], [296000, 4640000], [296000, 4645000], [291000, 4640000]]),
    "latitude first": polygon([[41.0, 120.0], [41.0, 121.0], [42.0, 121.0], [41.0, 120.0]]),
    "a system without a name": collection(polygon(BOX), crs={"type": "link", "properties": {"href": "x"}}),
    "an unknown system": collection(polygon(BOX), crs=crs_of("urn:ogc:def:crs:EPSG::999999")),
    "degrees in a metric system": collection(polygon(BOX), crs=crs_of("EPSG:27700")),
    "a system of heights": collection(polygon(BOX), crs=crs_of("EPSG:5773")),
    "a system in space": collection(polygon(BOX), crs=crs_of("EPSG:4978")),
    "beyond the world": collection(polygon([[1e12, 1], [2e12, 1], [2e12, 1e12], [1e12, 1]]), crs=crs_of("EPSG:3857")),
    "line without width": polygon([[W, S], [E, N], [W, S], [W, S]]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_files_without_a_meaning_are_refused(tmp_path, name):
    path = write_geojson(tmp_path, REFUSED[name])
    with pytest.raises(InputError) as caught:
        md.geo.read_area(path)
    message = str(caught.value)
    assert caught.value.field == "area"
    assert "area.geojson" in message
    assert "\n" not in message


@pytest.mark.parametrize(("name", "way"), [
    ("TopoJSON", "ogr2ogr"), ("Esri", "ogr2ogr"), ("Esri ring", "ogr2ogr"), ("metres", "crs='EPSG:27700'"), 
    ("latitude first", "write the longitude first"), ("an unknown system", "ogr2ogr -f GeoJSON -t_srs EPSG:4326"),
])  # fmt: skip
def test_refusals_name_the_way_out(tmp_path, name, way):
    with pytest.raises(InputError, match=way):
        md.geo.read_area(write_geojson(tmp_path, REFUSED[name]))


def test_bytes_of_another_encoding_are_refused(tmp_path):
    path = write_geojson(
        tmp_path, collection(polygon(BOX)).__repr__().replace("'", '"').replace("a0", "Zürich"), "latin-1"
    )
    with pytest.raises(InputError, match="cannot be read as GeoJSON"):
        md.geo.read_area(path)


@st.composite
def dialects(draw):
    """One box of ground, written in a way that means it."""
    turn, height = draw(st.sampled_from([0.0, 360.0, -360.0])), draw(st.sampled_from([[], [17.5], [17.5, 0]]))
    ring = [[x + (turn if -360 <= x + turn <= 360 else 0), y, *height] for x, y in BOX]
    ring = ring if draw(st.booleans()) else ring[::-1]
    ring = ring if draw(st.booleans()) else ring[:-1]  # not closed
    ring = [p for k, p in enumerate(ring) for _ in range(draw(st.integers(1, 2)) if k else 1)]  # positions twice
    shape = draw(st.sampled_from([polygon(ring), {"type": "MultiPolygon", "coordinates": [[ring]]}]))
    if draw(st.booleans()):
        shape = {"type": "GeometryCollection", "geometries": [shape]}
    if draw(st.booleans()):
        more = {"crs": draw(st.sampled_from([None, crs_of("EPSG:4326"), crs_of("urn:ogc:def:crs:OGC:1.3:CRS84")]))}
        shape = collection(*draw(st.permutations([shape, None])), **more)
    elif draw(st.booleans()):
        shape = {"type": "Feature", "properties": None, "geometry": shape, "bbox": [W, S, E, N]}
    return json.dumps(shape, indent=draw(st.sampled_from([None, 1]))), draw(st.sampled_from(["utf-8", "utf-8-sig"]))


@given(dialect=dialects())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_dialect_of_one_box_has_its_cells(tmp_path, dialect):
    assert largest_distance(degrees(write_geojson(tmp_path, *dialect)), plain()) < 1e-3


def test_areas_are_read_alike(tmp_path):
    """Two halves of a box, in British metres with a mark, and in degrees."""
    west, south, east, north, middle = -0.2, 51.4, -0.1, 51.5, -0.163
    domain = md.geo.Area.box(west, south, east, north).grid(cell=1000.0)
    halves = [
        np.array([[a, south], [b, south], [b, north], [a, north], [a, south]])
        for a, b in ((west, middle), (middle, east))
    ]
    there = pyproj.Transformer.from_crs("OGC:CRS84", "EPSG:27700", always_xy=True)
    metres = [np.column_stack(there.transform(*half.T)).tolist() for half in halves]
    expected = md.geo.read_areas(
        write_geojson(tmp_path, collection(*(polygon(half.tolist()) for half in halves))), domain
    )
    document = collection(
        {"type": "Point", "coordinates": metres[0][0]}, *map(polygon, metres), crs=crs_of("EPSG:27700")
    )
    notes = []
    areas = md.geo.read_areas(write_geojson(tmp_path, document, "utf-8-sig"), domain, on_note=notes.append)
    share = (areas.label == expected.label).mean()
    assert share > 0.99  # edges are straight in other systems
    assert areas.names == ("a1", "a2")
    assert [word for note in notes for word in ("projected", "1 point") if word in note] == ["projected", "1 point"]


def test_ineffective_forbidden_area_is_reported(tmp_path):
    area, notes = md.geo.Area.box(12.49, 41.8, 12.54, 41.84), []
    swapped = md.geo.read_area(border_file("g05_forbidden_swapped.geojson"))
    inside = md.geo.Area.box(12.5, 41.81, 12.5001, 41.8101)
    for forbidden in (swapped, md.geo.Area.box(2.0, 48.0, 2.1, 48.1), inside, md.geo.Area.box(12.0, 41.0, 12.51, 42.0)):
        area.grid(cell=1000.0, forbidden=forbidden, on_note=notes.append)
    assert "longitude and latitude seem to be swapped" in notes[0]
    assert "lies elsewhere, between 48.0000 N and 48.1000 N" in notes[1]
    assert "between their centres" in notes[2]
    assert len(notes) == 3  # the last one forbids some


def test_streets_cross_the_antimeridian(tmp_path):
    """Nodes at 179.99 and 180.01, the latter written in each of its ways: 2.132 km apart."""
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    edges.write_text("u,v,length\na,b,2200\n")
    for east in ("180.01", "-179.99"):
        nodes.write_text(f"id,lat,lon\na,-16.8,179.99\nb,-16.8,{east}\n")
        points = md.geo.read_roads(nodes, edges).points
        assert np.hypot(*np.diff(points, axis=0)[0]) == pytest.approx(2132, rel=1e-3)


def test_the_system_of_files_without_one_is_an_option(run, tmp_path):
    """A box in British metres; a box in degrees has no use for the option."""
    ring = [[-0.2, 51.4], [-0.1, 51.4], [-0.1, 51.5], [-0.2, 51.5], [-0.2, 51.4]]
    metres = pyproj.Transformer.from_crs("OGC:CRS84", "EPSG:27700", always_xy=True).transform(*np.transpose(ring))
    path = write_geojson(tmp_path, polygon(np.column_stack(metres).tolist()))
    words = ["--cell", 2000, "--within", 2000, "--factor", 2, "--program", "planar-laplace", "--positions", "cells"]
    words += ["-o", tmp_path / "a.nc"]
    code, _, err = run("area", path, *words)
    assert code == 2
    assert "--crs EPSG:27700" in err
    assert run("plan", path, "--areas", "2x1", "--respondents", 2000)[0] == 2
    code, _, err = run("area", "--box=-0.2,51.4,-0.1,51.5", *words, "--crs", "EPSG:27700")
    assert code == 2
    assert "crs" in err
    code, out, err = run("area", path, *words, "--crs", "EPSG:27700", "--json")
    assert "projected from OSGB36 / British National Grid" in err
    assert list(json.loads(out)["middle"].values()) == pytest.approx([51.45, -0.15], abs=1e-3)


def test_command_prints_notes_and_centre(run, tmp_path):
    """Notes go to stderr; the summary names the middle of the area, in words and in JSON."""
    words = ["--cell", 2000, "--within", 2000, "--factor", 2, "--program", "planar-laplace", "--positions", "cells"]
    swapped = write_geojson(tmp_path, polygon([[y, x] for x, y in BOX]))
    area = tmp_path / "bow.geojson"
    area.write_text(json.dumps({**polygon(T), "crs": crs_of("EPSG:4269")}))
    code, out, err = run("area", area, "--forbidden", swapped, *words, "-o", tmp_path / "a.nc")
    assert code == 0
    assert "Centre of the area: 41.8900 N, 12.4900 E" in " ".join(out.split())
    for words_of_note in ("projected from NAD83", "bow.geojson: an invalid polygon", "swapped"):
        assert words_of_note in err
    box = "--box=-58.5,-34.7,-58.4,-34.6"
    code, out, _ = run("area", box, "--json", *words, "-o", tmp_path / "b.nc")
    assert json.loads(out)["middle"] == {"latitude": -34.65, "longitude": -58.45}

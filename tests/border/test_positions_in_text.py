"""Positions on Earth in text files: any longitude to 360, and people in a coordinate system that is named.

Two routes to each count: the reader's, and degrees projected by pyproj and divided by the side of a cell by hand.
"""

from __future__ import annotations

import numpy as np
import pytest
from fixtures.absent_capabilities import needs

import mechdesign as md
from mechdesign.errors import InputError

pytestmark = needs("geo")
pyproj = pytest.importorskip("pyproj", reason="needs the extra geo")

CELL, SHA = 500.0, "ab12" * 16
PEOPLE = np.array([1000, 20, 300, 4])
SHARES_OF_BOX = np.array(
    [[0.2, 0.3], [0.7, 0.6], [0.4, 0.8], [0.21, 0.31]]
)  # shares of the box from its southwest corner
ROUNDING = 1e-9  # of people, added up in cells and divided by their ground
DEGREES = "longitude,latitude,population"


def town(west, south):
    """A grid over a box of 0.05 degrees, positions in it in degrees, and the number of people in each cell."""
    domain = md.geo.Area.box(west, south, west + 0.05, south + 0.05).grid(CELL)
    degrees = np.array([west, south]) + 0.05 * SHARES_OF_BOX
    centre = pyproj.Proj(proj="aeqd", lat_0=domain.plane.latitude, lon_0=domain.plane.longitude, datum="WGS84")
    cells = np.floor((np.column_stack(centre(*degrees.T)) - domain.origin) / CELL).astype(int)
    counts = np.zeros(domain.shape)
    np.add.at(counts, tuple(cells.T), PEOPLE)
    return domain, degrees, counts


def write_people(folder, head, positions):
    path = folder / "people.csv"
    lines = [f"{x:.12g},{y:.12g},{count}" for (x, y), count in zip(positions, PEOPLE, strict=True)]
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


def people_by_cell(path, domain, **options):
    """People in each cell. With no reach, everybody lives in the cell of their point."""
    return md.geo.read_people(path, domain, reach=1e-6, **options).density.values * CELL**2


@pytest.mark.parametrize(
    ("system", "west", "south"),
    [
        ("EPSG:27700", -0.15, 51.45), ("EPSG:3857", 151.2, -33.9), ("EPSG:32633", 12.5, 41.9), ("epsg:3035", 2.3, 48.8),
        ("EPSG:31467", 9.1, 48.7), ("EPSG:2263", -74.0, 40.7), ("urn:ogc:def:crs:EPSG::2193", 174.7, -36.9),
        ("EPSG:3832", 179.98, -16.8), ("EPSG:4277", -0.15, 51.45), ("EPSG:4326", 12.5, 41.9), ("CRS84", 12.5, 41.9),
    ],
)  # fmt: skip
def test_people_of_any_system_live_where_they_do(tmp_path, system, west, south):
    domain, degrees, counts = town(west, south)
    name = "OGC:CRS84" if system == "CRS84" else system
    positions = np.column_stack(pyproj.Transformer.from_crs("OGC:CRS84", name, always_xy=True).transform(*degrees.T))
    notes = []
    results = people_by_cell(
        write_people(tmp_path, "x,y,population", positions), domain, crs=system, on_note=notes.append
    )
    assert results == pytest.approx(counts, rel=ROUNDING)
    assert counts.sum() == PEOPLE.sum()
    assert len(notes) == (system not in ("EPSG:4326", "CRS84"))


@pytest.mark.parametrize(
    ("head", "columns"),
    [
        ("Easting,Northing,POP100", None), ("eastings,northings,people", None), ("oseast1m,osnrth1m,pop_2021", None),
        ("X,Y,population", None), ("rechts,hoch,population", {"x": "rechts", "y": "hoch"}),
    ],
)  # fmt: skip
def test_usual_names_of_a_plane_are_known(tmp_path, head, columns):
    domain, degrees, counts = town(-0.15, 51.45)
    metres = pyproj.Transformer.from_crs("OGC:CRS84", "EPSG:27700", always_xy=True).transform(*degrees.T)
    path = write_people(tmp_path, head, np.column_stack(metres))
    assert people_by_cell(path, domain, crs="EPSG:27700", columns=columns) == pytest.approx(counts, rel=ROUNDING)


@pytest.mark.parametrize(("west", "turn"), [(12.5, 0), (12.5, -360), (-58.5, 360), (179.98, 0), (179.98, -360)])
def test_longitudes_to_360_are_those_within_180(tmp_path, west, turn):
    """People, reports and nodes of streets; the box may lie across 180 degrees."""
    domain, degrees, counts = town(west, 41.9)
    turned = degrees + np.array([turn, 0])
    path = write_people(tmp_path, DEGREES, turned)
    assert people_by_cell(path, domain) == pytest.approx(counts, rel=ROUNDING)
    path.write_text(path.read_text().replace("population", "count"))
    assert md.surveys.read_reports(path, {SHA: domain})[SHA].tolist() == counts.ravel().tolist()
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    nodes.write_text("id,lon,lat\n" + "".join(f"{k},{x!r},{y!r}\n" for k, (x, y) in enumerate(turned.tolist())))
    distance = pyproj.Geod(ellps="WGS84").inv(*degrees[:-1].T, *degrees[1:].T)[2]
    edges.write_text("u,v,length\n" + "".join(f"{k},{k + 1},{length}\n" for k, length in enumerate(distance)))
    roads = md.geo.read_roads(nodes, edges)
    assert np.hypot(*np.diff(roads.points, axis=0).T) == pytest.approx(distance, rel=1e-6)
    assert ((roads.degrees[:, 0] >= -180) & (roads.degrees[:, 0] < 180)).all()


@pytest.mark.parametrize(("longitude", "latitude"), [(360.5, 41.9), (-361, 41.9), (12.5, 90.5), (1252000, 5144000)])
def test_degrees_beyond_the_world_are_refused_by_line(tmp_path, longitude, latitude):
    domain, degrees, _ = town(12.5, 41.9)
    path = write_people(tmp_path, DEGREES, np.vstack([degrees[:3], [[longitude, latitude]]]))
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    nodes.write_text("id,lon,lat\na,12.5,41.9\nb,12.5,41.9\nc,12.5,41.9\n" + f"d,{longitude},{latitude}\n")
    edges.write_text("u,v,length\na,b,1\n")
    reports = tmp_path / "reports.csv"
    reports.write_text(path.read_text().replace("population", "count"))
    for read in (
        lambda: md.geo.read_people(path, domain),
        lambda: md.surveys.read_reports(reports, {SHA: domain}),
        lambda: md.geo.read_roads(nodes, edges),
    ):
        with pytest.raises(InputError, match=r"longitude within 360 and a latitude within 90 .* in line 5"):
            read()


@pytest.mark.parametrize(
    ("head", "positions", "crs", "words"),
    [
        ("x,y,population", [[530000, 180000]] * 4, None, r"coordinate system.*x, y.*crs='EPSG:27700'"),
        ("X,Y,population", [[12.5, 41.9]] * 4, None, r"degrees are crs='EPSG:4326'"),
        ("easting,northing,population", [[530000, 180000]] * 4, None, "coordinate system"),
        (DEGREES, [[12.5, 41.9]] * 4, "EPSG:27700", "EPSG:27700 is not in degrees"),
        ("lon,lat,population", [[530000, 180000]] * 4, "EPSG:27700", "EPSG:27700 is not in degrees"),
        ("x,y,population", [[12.5, 41.9]] * 4, "EPSG:32633", "holds degrees"),
        ("x,y,population", [[530000, 180000]] * 4, "EPSG:4326", "longitude within 360"),
        ("x,y,population", [[530000, 180000]] * 4, "EPSG:99999", "unknown coordinate system"),
        ("x,y,population", [[530000, 180000]] * 4, "EPSG:4978", "neither degrees nor lengths"),
        ("x,y,population", [[5400000, 3510000]] * 4, "EPSG:31467", "exchanged"),
        ("x,latitude,population", [[12.5, 41.9]] * 4, "EPSG:4326", "no column named longitude"),
    ],
)  # fmt: skip
def test_people_without_a_place_are_refused(tmp_path, head, positions, crs, words):
    with pytest.raises(InputError, match=words):
        md.geo.read_people(write_people(tmp_path, head, positions), town(12.5, 41.9)[0], crs=crs)


def test_degrees_stay_where_their_system_has_them(tmp_path):
    """Columns in degrees beside a system in degrees, and beside columns of a plane without a system."""
    domain, degrees, counts = town(12.5, 41.9)
    path = write_people(tmp_path, DEGREES, degrees)
    assert people_by_cell(path, domain, crs="EPSG:4326") == pytest.approx(counts, rel=ROUNDING)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([f"x,y,{lines[0]}", *(f"7,8,{line}" for line in lines[1:])]))
    assert people_by_cell(path, domain) == pytest.approx(counts, rel=ROUNDING)


@needs("posteriors")
def test_commands_read_people_in_metres(run, run_json, tmp_path):
    """All commands with --people have the same figures for degrees and for metres."""
    degrees = town(12.5, 41.9)[1]
    metres = pyproj.Transformer.from_crs("OGC:CRS84", "EPSG:32633", always_xy=True).transform(*degrees.T)
    plane = write_people(tmp_path, "x,y,population", np.column_stack(metres)).rename(tmp_path / "plane.csv")
    earth = write_people(tmp_path, DEGREES, degrees)
    box, target = "--box=12.5,41.9,12.55,41.95", tmp_path / "m.nc"
    words = ("--cell", 2000, "--program", "planar-laplace", "--positions", "cells", "-o", target, "--overwrite")
    assert run("area", box, "--within", 2000, "--factor", 2, *words)[0] == 0
    for command in (("verify", target, "--disc", 3000), ("audit", "android-coarse", box, "--disc", 3000)):
        code, results = run_json(*command, "--people", plane, "--crs", "EPSG:32633")
        assert code == 0
        assert [disc["before"] for disc in results["discs"]] == pytest.approx(
            [disc["before"] for disc in run_json(*command, "--people", earth)[1]["discs"]], rel=1e-6
        )
        code, out, err = run(*command, "--people", plane)
        assert code == 2
        assert "--crs EPSG:27700" in " ".join((out + err).split())
    levels = ("--people-per-disc", 100, "--radii", "500,4000")
    results = [
        run_json("area", box, *words, *levels, "--people", *source)
        for source in ((earth,), (plane, "--crs", "EPSG:32633"))
    ]
    assert [code for code, _ in results] == [0, 0]
    assert results[0][1]["loss"] == pytest.approx(results[1][1]["loss"], rel=1e-6)


@needs("sessions", "surveys")
def test_unused_coordinate_system_is_refused(run, tmp_path):
    box, crs = "--box=12.5,41.9,12.55,41.95", ("--crs", "EPSG:27700")
    for command in (
        ("area", box, "--cell", 2000, "--within", 2000, "--factor", 2, "-o", tmp_path / "a.nc"),
        ("session", "design", box, "--cell", 700, "--nats", 3, "-o", tmp_path / "d.json"),
        ("plan", box, "--areas", "2x2", "--respondents", 2000),
        ("solve", "line", "--cells", 4),
        ("audit", "android-coarse"),
    ):
        code, _, err = run(*command, *crs)
        assert code == 2
        assert "crs" in err
        assert "no input" in err
    assert list(tmp_path.iterdir()) == []


def test_ignored_coordinate_system_is_reported(tmp_path):
    ring = [[12.5, 41.9], [12.6, 41.9], [12.6, 42.0], [12.5, 41.9]]
    crs = {"type": "name", "properties": {"name": "EPSG:4326"}}
    path, notes = tmp_path / "a.geojson", []
    path.write_text(f'{{"type": "Polygon", "coordinates": [{ring}], "crs": {crs}}}'.replace("'", '"'))
    md.geo.read_area(path, crs="EPSG:27700", on_note=notes.append)
    assert notes == [
        "a.geojson: declares its own coordinate system; the coordinate system EPSG:27700 is not applied to it."
    ]

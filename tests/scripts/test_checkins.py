"""Check-ins of the SNAP location networks, as the problem paris reads them."""

from __future__ import annotations

import gzip
import math
import sys

import numpy as np
import pytest
from pyproj import Geod

from mechdesign import Domain
from mechdesign.errors import FileFormatError, InputError
from mechdesign.problem.problem_files import read_problem_file

read_checkins = read_problem_file("paris").module.read_checkins

CENTRE = {"latitude": 48.858072, "longitude": 2.34805}
SOUTH = {"latitude": -33.87, "longitude": 179.999}
LINE = "17\t2010-10-19T23:55:27Z\t48.858072\t2.348050\t22847\n"


def paris(**given):
    return Domain.grid((30, 20), **{"cell": 150.0, "unit": "m", "origin": (-2250.0, -1500.0)} | given)


def checkin_file(folder, text):
    path = folder / "checkins.txt"
    path.write_text(text, encoding="utf-8")
    return path


def positions(centre, points):
    """Latitudes and longitudes of points (k, 2) in metres east and north: geodesics from the centre, no projection."""
    start = centre["longitude"], centre["latitude"]
    for east, north in points:
        azimuth = math.degrees(math.atan2(east, north))
        longitude, latitude, _ = Geod(ellps="WGS84").fwd(*start, azimuth, math.hypot(east, north))
        yield latitude, longitude


@pytest.mark.parametrize("centre", [CENTRE, SOUTH])
@pytest.mark.parametrize(("unit", "metres"), [("m", 1.0), ("km", 1000.0), ("mi", 1609.344)])
def test_geodesics_from_the_centre_end_in_their_cell(tmp_path, centre, unit, metres):
    """Second route: the direct geodesic problem instead of the projection."""
    domain = paris(cell=150.0 / metres, unit=unit, origin=(-2250.0 / metres, -1500.0 / metres))
    points = np.random.default_rng(0).uniform(-2600, 2600, (200, 2))
    lines = [f"1\tt\t{lat:.12f}\t{lon:.12f}\t9\n" for lat, lon in positions(centre, points)]
    found = read_checkins(checkin_file(tmp_path, "".join(lines)), domain, **centre)
    expected = np.zeros(domain.size, int)
    inside = [(x, y) for x, y in points if abs(x) < 2250 and abs(y) < 1500]
    for x, y in inside:
        expected[math.floor((x + 2250) / 150) * 20 + math.floor((y + 1500) / 150)] += 1
    assert found.counts.tolist() == expected.tolist()
    assert found.outside == 200 - len(inside)
    assert found.dropped == 0


def test_masked_cells_are_outside(tmp_path):
    mask = np.ones((30, 20), bool)
    mask[15, 10] = False  # the cell whose low corner is the centre
    found = read_checkins(checkin_file(tmp_path, LINE * 3), paris(mask=mask), **CENTRE)
    assert found.counts.sum() == 0
    assert found.outside == 3
    assert read_checkins(checkin_file(tmp_path, LINE * 3), paris(), **CENTRE).counts[15 * 20 + 10] == 3


def test_lines_without_a_position_are_counted_and_left_out(tmp_path):
    text = LINE + "2\tt\t\t\t\n" + "3\tt\t91.5\t2.3\t8\n" + "4\tt\t48.9\t180.5\t8\n" + "5\n"
    found = read_checkins(checkin_file(tmp_path, text), paris(), **CENTRE)
    assert found.counts.sum() == 1
    assert found.outside == 0
    assert found.dropped == 4


def test_compressed_files_are_read(tmp_path):
    path = tmp_path / "loc-gowalla_totalCheckins.txt.gz"
    path.write_bytes(gzip.compress((LINE * 5).encode()))
    assert read_checkins(path, paris(), **CENTRE).counts.sum() == 5


@pytest.mark.parametrize(
    "text",
    ["", "1,2,3\n4,5,6\n", "1\t2\t3\n", LINE + "1\tt\tnorth\t2.3\t9\n", LINE + LINE.strip() + "\t7\n"],
    ids=["empty", "commas", "three fields", "words", "six fields"],
)
def test_other_formats_are_refused(tmp_path, text):
    with pytest.raises(FileFormatError) as caught:
        read_checkins(checkin_file(tmp_path, text), paris(), **CENTRE)
    assert caught.value.field == "checkins"


def test_a_damaged_archive_is_refused(tmp_path):
    path = tmp_path / "checkins.txt.gz"
    path.write_bytes(gzip.compress((LINE * 5).encode())[:-12])
    with pytest.raises(FileFormatError):
        read_checkins(path, paris(), **CENTRE)


@pytest.mark.parametrize(
    ("domain", "centre", "field"),
    [
        (Domain.grid(30, cell=150.0, unit="m"), CENTRE, "domain"),
        (Domain.grid((30, 30), cell=1.0, unit="1"), CENTRE, "domain"),
        (Domain.points_at([[0.0, 1.0], [2.0, 3.0]], unit="m"), CENTRE, "domain"),
        (paris(), CENTRE | {"latitude": 89.0}, "latitude, longitude"),
        (paris(), CENTRE | {"longitude": math.nan}, "latitude, longitude"),
    ],
)
def test_settings_that_have_no_plane_are_refused(tmp_path, domain, centre, field):
    with pytest.raises(InputError) as caught:
        read_checkins(checkin_file(tmp_path, LINE), domain, **centre)
    assert caught.value.field == field


def test_without_pyproj_the_remedy_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyproj", None)
    with pytest.raises(InputError, match=r"mechdesign\[geo\]"):
        read_checkins(checkin_file(tmp_path, LINE), paris(), **CENTRE)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(FileFormatError, match="no such file"):
        read_checkins(tmp_path / "nowhere.txt", paris(), **CENTRE)

"""People from weighted points: their cells, their number, and invalid files."""

from __future__ import annotations

import gzip
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import ROOT

from mechdesign import Domain
from mechdesign.errors import FileFormatError, InputError, SizeError
from mechdesign.geo import Plane, read_area, read_people

pyproj = pytest.importorskip("pyproj")
GEOD = pyproj.Geod(ellps="WGS84")
CENTRE = (46.2, 7.4)  # of a made-up valley: latitude, longitude
KEPT = 2.0**-40  # of all people, as promised
NORTHEAST = ROOT / "problems" / "data" / "northeast_block_groups_2020.csv.gz"
HEADER = "GEOID,POPULATION,Latitude,LONGITUDE\n"


def valley(cells=(16, 12), cell=500.0, unit="m", **given):
    low = [-count * cell / 2 for count in cells]
    plane = Plane(latitude=CENTRE[0], longitude=CENTRE[1], unit=unit)
    return Domain.grid(cells, cell=cell, unit=unit, origin=low, plane=plane, **given)


def write_people(folder, points, people, name="people.csv"):
    """A file of points (k, 2) in m east and north of the centre, by the direct geodesic problem."""
    lines = [HEADER]
    for number, ((east, north), count) in enumerate(zip(points, people, strict=True)):
        azimuth, away = math.degrees(math.atan2(east, north)), math.hypot(east, north)
        longitude, latitude, _ = GEOD.fwd(CENTRE[1], CENTRE[0], azimuth, away)
        lines.append(f"{number:012d},{count},{latitude:.10f},{longitude:.10f}\n")
    path = folder / name
    text = "".join(lines).encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


def villages(count=40, seed=3, half=(3900, 2900)):
    rng = np.random.default_rng(seed)
    return rng.uniform([-half[0], -half[1]], half, (count, 2)), rng.integers(0, 3000, count)


def by_hand(points, people, nodes, cell, *, reach=8000.0, dry=None):
    """People per cell: every cell asks every point."""
    dry = np.ones(len(nodes), bool) if dry is None else dry
    owner = [
        int(np.argmin(away)) if free and (away := np.hypot(*(points - node).T)).min() < reach else -1
        for node, free in zip(nodes, dry, strict=True)
    ]
    figures = np.zeros(len(nodes))
    for number, count in enumerate(people):
        mine = [place for place, who in enumerate(owner) if who == number]
        if not mine:
            away = np.where(dry, np.hypot(*(nodes - points[number]).T), np.inf)
            mine = [int(np.argmin(away))]
        for place in mine:
            figures[place] += count / len(mine)
    return figures / cell**2


def nodes_of(raster):
    return np.array([(x, y) for x in raster.x for y in raster.y])


@pytest.mark.parametrize(("name", "reach"), [("people.csv", None), ("people.csv.gz", 700.0)])
def test_everybody_lives_in_the_cells_nearest_to_their_point(tmp_path, name, reach):
    points, people = villages()
    points[7] = points[8] + 3.0  # two in one cell
    result = read_people(write_people(tmp_path, points, people, name), valley(), reach=reach)
    expected = by_hand(points, people, nodes_of(result.density), 500.0, reach=reach or 8000.0)
    assert result.density.values.ravel() == pytest.approx(expected, rel=1e-12)
    assert result.density.values.sum() * 500.0**2 == pytest.approx(people.sum(), rel=KEPT)
    assert (result.inside, result.outside, result.points) == (people.sum(), 0.0, (people > 0).sum())
    assert (result.density.values == 0).any() == (reach is not None)
    assert result.density.value_unit == "people per m^2"


def test_lattice_extends_that_of_the_domain(tmp_path):
    points, people = villages(half=(6000, 5000))
    file, domain = write_people(tmp_path, points, people), valley()
    near, far = read_people(file, domain), read_people(file, domain, margin=2300.0)
    assert far.density.values.shape == (16 + 10, 12 + 10)
    assert np.array_equal(domain.points, nodes_of(near.density))
    inside = (np.abs(points) < (4000, 3000)).all(axis=1)
    assert (near.inside, near.outside) == (people[inside].sum(), people[~inside].sum())
    assert (far.inside, far.outside) == (people.sum(), 0.0)
    assert np.array_equal(far.density.x[5:-5], near.density.x)


def test_units_change_nothing_but_the_figures(tmp_path):
    file = write_people(tmp_path, *villages())
    metres, kilometres = read_people(file, valley()), read_people(file, valley(cell=0.5, unit="km"))
    assert kilometres.density.values == pytest.approx(1e6 * metres.density.values, rel=1e-12)


def test_nobody_lives_in_the_water_and_nobody_drowns(tmp_path):
    points, people = villages()
    points[3] = (-3700.0, 60.0)
    plane = valley().plane
    east, north = plane.backward(np.array([(-4100.0, -3100.0), (-1100.0, 3100.0)]))
    ring = [[east[0], north[0]], [east[1], north[0]], [east[1], north[1]], [east[0], north[1]], [east[0], north[0]]]
    lake = tmp_path / "lake.geojson"
    lake.write_text(json.dumps({"type": "Polygon", "coordinates": [ring]}), encoding="utf-8")
    result = read_people(write_people(tmp_path, points, people), valley(), water=read_area(lake))
    nodes = nodes_of(result.density)
    dry = nodes[:, 0] > -1100.0
    expected = by_hand(points, people, nodes, 500.0, dry=dry)
    assert (result.density.values.ravel()[~dry] == 0).all()
    assert result.density.values.ravel() == pytest.approx(expected, rel=1e-12)
    assert result.density.values.sum() * 500.0**2 == pytest.approx(people.sum(), rel=KEPT)


def test_the_shipped_points_are_all_there():
    domain = valley((10, 10))
    plane = Plane(latitude=40.0, longitude=-75.0)
    result = read_people(NORTHEAST, Domain.grid((10, 10), cell=500.0, unit="m", origin=-2500.0, plane=plane))
    assert result.inside + result.outside == 50_067_697
    assert result.density.values.sum() * 500.0**2 == pytest.approx(result.inside, rel=KEPT)
    with pytest.raises(InputError, match="no people live"):
        read_people(NORTHEAST, domain)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1,-5,46.2,7.4", ("negative", "line 3")),
        ("1,,46.2,7.4", ("population must be", "line 3")),
        ("1,inf,46.2,7.4", ("population must be", "line 3")),
        ("1,5,,7.4", ("latitude must be", "line 3")),
        ("1,5,96.2,7.4", ("latitude within 90", "exchanged")),
        ("1,5,46.2,407.4", ("longitude within 360", "metres")),
        ("1,5,5120000,800000", ("degrees", "metres")),
    ],
)
def test_invalid_lines_of_people_are_refused(tmp_path, line, words):
    path = tmp_path / "people.csv"
    path.write_text(f"{HEADER}0,10,46.2,7.4\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_people(path, valley())
    content = f"{caught.value.message} {caught.value.value} {caught.value.remedy}"
    assert caught.value.field == "people"
    assert [word for word in words if word not in content] == []


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("latitude,longitude\n46,7\n", FileFormatError),
        ("latitude,longitude,population\n46,7,many\n", InputError),
        ("latitude,longitude,population\n", InputError),
        ("latitude,longitude,population\n46.2,7.4,0\n", InputError),
        ("", FileFormatError),
    ],
)
def test_files_without_people_are_refused(tmp_path, text, error):
    path = tmp_path / "people.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(error) as caught:
        read_people(path, valley())
    assert caught.value.field == "people"


def test_exchanged_degrees_differ_from_far_points(tmp_path):
    points, people = villages()
    right = write_people(tmp_path, points, people).read_text()
    swapped = tmp_path / "swapped.csv"
    swapped.write_text(right.replace("Latitude,LONGITUDE", "LONGITUDE,Latitude"), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_people(swapped, valley())
    assert caught.value.remedy == "exchange latitude and longitude"
    elsewhere = write_people(tmp_path, points + 90_000.0, people, "far.csv")
    with pytest.raises(InputError) as caught:
        read_people(elsewhere, valley())
    assert "exchange" not in caught.value.remedy


def test_damaged_and_missing_files(tmp_path):
    whole = write_people(tmp_path, *villages(), "people.csv.gz").read_bytes()
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(whole[: len(whole) // 2])
    for path in (cut, tmp_path / "nowhere.csv"):
        with pytest.raises(FileFormatError):
            read_people(path, valley())


def test_cells_too_fine_for_memory_are_refused_early(tmp_path, monkeypatch):
    domain = valley()
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=1e5))
    with pytest.raises(SizeError, match=r"a map of 216 x 212 cells would need 0\.0 GB") as caught:
        read_people(tmp_path / "nowhere.csv", domain, margin=50_000.0)
    assert (caught.value.field, caught.value.value) == ("cell", "500 m")


@pytest.mark.parametrize(
    ("domain", "given", "field"),
    [
        (Domain.grid((4, 4), cell=500.0, unit="m"), {}, "domain"),
        (None, {"margin": -1.0}, "margin"),
        (None, {"margin": math.inf}, "margin"),
        (None, {"reach": 0.0}, "reach"),
    ],
)
def test_other_arguments(tmp_path, domain, given, field):
    with pytest.raises(InputError) as caught:
        read_people(write_people(tmp_path, *villages()), domain or valley(), **given)
    assert caught.value.field == field

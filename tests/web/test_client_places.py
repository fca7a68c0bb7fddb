"""Where the client puts positions: the cells, nearest places and degrees of Python."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixtures.clients import DEVICE, NETWORK, NODE, SLANTED, TOWN, mechanism, run, sampler
from fixtures.rows import few_by_default

import mechdesign as md
from mechdesign.problem.locate import place_at, place_on_earth
from mechdesign.utility import nearest_node
from mechdesign.web import write_client

pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node: the client is JavaScript")
MICROMETRE = 1e-6  # the client's projection and PROJ's agree to 1e-7 m
ANGLE = 1e-12  # degrees, 0.1 micrometres

LOCATE = """
import { readFileSync } from "node:fs";
import { memoryStorage, openClient } from "./web/report.mjs";
const options = { table: new Uint8Array(readFileSync("./web/report.bin")), storage: memoryStorage() };
const { places } = await openClient(options);
const asked = JSON.parse(readFileSync("asked.json", "utf8"));
const outcome = (action) => { try { return action(); } catch (error) { return error.code; } };
console.log(JSON.stringify({
  at: asked.at.map((position) => outcome(() => places.cellAt(position))),
  nearest: asked.at.map((position) => places.nearest(position)),
  earth: asked.earth.map((degrees) => outcome(() => places.onEarth(...degrees))),
  cells: asked.earth.map((degrees) => outcome(() => places.cellAt(places.onEarth(...degrees), true))),
  points: Array.from({ length: places.count }, (_, cell) => places.point(cell)),
}));
"""


@pytest.fixture
def locate(tmp_path: Path) -> Callable[..., Any]:
    """The answers of a client for positions `at` in its unit, and `earth` in degrees."""

    def ask(name: str, at: Any = (), earth: Any = ()) -> Any:
        folder = write_client(mechanism(name), tmp_path / "web")
        (tmp_path / "asked.json").write_text(json.dumps({"at": np.asarray(at).tolist(), "earth": list(earth)}))
        return run(folder, LOCATE)

    return ask


def in_python(find: Callable[[], int]) -> int:
    """The place, or -1 where Python refuses."""
    try:
        return find()
    except md.errors.InputError:
        return -1


def around(values: np.ndarray) -> list[float]:
    """Every value, and the doubles just below and above it."""
    return [float(x) for v in values for x in (np.nextafter(v, -np.inf), v, np.nextafter(v, np.inf))]


@pytest.mark.parametrize("name", few_by_default(["slanted", "holes", "park", "line"], "slanted", "line"))
def test_cells_are_those_of_python_at_borders_too(locate, name) -> None:
    domain = sampler(name).certificate.domain
    rng = np.random.default_rng(4)
    borders = [
        [*around(low + np.arange(count + 1) * side), low - side, low + (count + 0.5) * side, 1e308, -1e-320, 5e-324]
        for low, count, side in zip(domain.origin, domain.shape, domain.cell, strict=True)
    ]
    at = np.array([[rng.choice(values) for values in borders] for _ in range(300)])
    told = locate(name, at)
    expected = [in_python(lambda position=position: place_at(domain, position)) for position in at.tolist()]
    assert told["at"] == expected
    assert len(set(expected)) > min(domain.size, 20)
    with np.errstate(over="ignore"):
        assert told["nearest"] == [nearest_node(domain, position) for position in at.tolist()]
    assert told["points"] == domain.points.tolist()


@pytest.mark.parametrize("name", few_by_default(["town", "slanted", "network"], "slanted", "network"))
def test_degrees_become_the_cells_of_python(locate, name) -> None:
    domain = {"town": TOWN, "slanted": SLANTED, "network": NETWORK}[name]
    metres = 1000 if domain.unit == "km" else 1
    rng = np.random.default_rng(6)
    span = 1.3 * np.abs(domain.points).max()
    longitude, latitude = domain.plane.backward(rng.uniform(-span, span, (500, 2)))
    earth = [*zip(longitude.tolist(), latitude.tolist(), strict=True), (-180.0, 10.0), (180.0, -90.0), (12.49, 41.9)]
    told = locate(name, earth=earth)
    projected = domain.plane.forward(*np.array(earth).T)
    near = np.hypot(*projected.T) * metres < 1e6
    assert np.hypot(*(np.array(told["earth"]) - projected)[near].T).max() * metres < MICROMETRE
    found = [in_python(lambda at=at: place_at(domain, place_on_earth(domain, *at))) for at in earth]
    assert told["cells"] == found
    assert {-1} < set(found)


def test_degrees_out_of_range_and_tables_that_lie_nowhere(locate) -> None:
    wrong = [(181, 0), (0, 90.1), (None, 0), ("x", 1)]
    assert locate("park", earth=wrong)["earth"] == ["position"] * 4


def test_no_plane_no_degrees(locate) -> None:
    assert locate("factored", earth=[(0, 0)])["earth"] == ["position"]


def test_points_are_named_exactly(locate) -> None:
    at = [*NETWORK.points.tolist(), [0.0, 0.0], (NETWORK.points[3] + [1e-9, 0]).tolist(), [1.0]]
    assert locate("network", at[:-1])["at"] == [*range(40), -1, -1]


def test_the_plane_is_that_of_proj(tmp_path: Path) -> None:
    """Sampled centres everywhere, positions up to 490 km from them. PROJ takes what is within 0.6 mm of the centre for
    the centre: degrees are compared from a metre on.
    """
    rng = np.random.default_rng(7)
    asked, expected = [], []
    for _ in range(60):
        plane = md.geo.Plane(latitude=round(rng.uniform(-85, 85), 6), longitude=round(rng.uniform(-180, 180), 6))
        for reach in (1e-3, 10.0, 3e3, 1e5, 4.9e5):
            points = rng.uniform(-reach, reach, (2, 2)) / np.sqrt(2)
            degrees = np.column_stack(plane.backward(points))
            asked += [[plane.longitude, plane.latitude, *at, *to] for at, to in zip(degrees, points, strict=True)]
            expected += np.column_stack([plane.forward(*degrees.T), degrees]).tolist()
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "plane.mjs").write_bytes((DEVICE / "plane.mjs").read_bytes())
    (tmp_path / "asked.json").write_text(json.dumps(np.array(asked).tolist()))
    script = """
      import { readFileSync } from "node:fs";
      import { backward, forward } from "./web/plane.mjs";
      const asked = JSON.parse(readFileSync("asked.json", "utf8"));
      console.log(JSON.stringify(asked.map(([longitude, latitude, ...rest]) => {
        const centre = { longitude, latitude };
        return [...forward(centre, rest[0], rest[1]), ...backward(centre, rest[2], rest[3])];
      })));
    """
    told = np.array(run(tmp_path / "web", script))
    known = np.array(expected)
    assert np.hypot(*(told - known)[:, :2].T).max() < MICROMETRE
    far = np.hypot(*known[:, :2].T) > 1
    east, north = np.abs(told - known)[far, 2:].T
    assert np.minimum(east, 360 - east).max() < ANGLE / np.cos(np.radians(89.5))
    assert north.max() < ANGLE


REPORTED = """
import { readFileSync } from "node:fs";
import { memoryStorage, openClient } from "./web/report.mjs";
const table = new Uint8Array(readFileSync("./web/report.bin"));
const fixed = Uint8Array.from(JSON.parse(process.argv[2]));
const bits = (count) => fixed.subarray(0, count);
const fresh = (outside) => openClient({ table, outside, bits, storage: memoryStorage() });
const said = async (action) => { try { return (await action()).report; } catch (error) { return error.code; } };
const [refusing, moving] = [await fresh("refuse"), await fresh("nearest")];
console.log(JSON.stringify([
  await said(() => refusing.report(12.4903, 41.8997)),
  await said(() => refusing.reportMetres(50, -60)),
  await said(() => refusing.reportAt(50, -60)),
  await said(() => refusing.reportCell(112)),
  await said(() => refusing.report(12.6, 41.9)),
  await said(() => moving.report(12.6, 41.9)),
  await said(() => moving.reportCell(217)),
]));
"""


def test_ways_to_say_where_and_the_outside_rule(tmp_path, monkeypatch, run_json) -> None:
    folder = write_client(mechanism("town"), tmp_path / "web")
    bits = bytes([7, 99, 3, 200, 250, 17, 90, 131])
    told = run(folder, REPORTED, json.dumps(list(bits)))
    monkeypatch.setattr("mechdesign.mechanism.rows.source", lambda seed: ((lambda count: bits), "fixed"))
    file = md.save(mechanism("town"), tmp_path / "town.nc")
    _, document = run_json("sample", file, "--lon", 12.4903, "--lat", 41.8997)
    expected = {
        "number": document["reports"][0],
        "x": document["report_x"][0],
        "y": document["report_y"][0],
        "unit": "m",
        "longitude": document["report_longitude"][0],
        "latitude": document["report_latitude"][0],
        "accuracy": document["accuracy"][0],
    }
    assert told[:5] == [expected] * 4 + ["outside"]
    assert nearest_node(TOWN, TOWN.plane.forward(np.array([12.6]), np.array([41.9]))[0].tolist()) == 217
    assert told[5] == told[6] != expected
    code, refused = run_json("sample", file, "--lon", 12.6, "--lat", 41.9)
    assert code == 2
    assert "outside the grid" in refused["error"]["message"]


EXCHANGED = """
import { readFileSync } from "node:fs";
import { memoryStorage, openClient } from "./web/report.mjs";
const table = new Uint8Array(readFileSync("./web/report.bin"));
const told = async (outside, ...degrees) => {
  const client = await openClient({ table, storage: memoryStorage(), outside });
  try { return (await client.report(...degrees)).remaining; } catch ({ code, message }) { return [code, message]; }
};
const found = [];
for (const degrees of JSON.parse(readFileSync("asked.json", "utf8"))) {
  found.push([await told("refuse", ...degrees), await told("nearest", ...degrees)]);
}
console.log(JSON.stringify(found));
"""


@pytest.mark.parametrize(("name", "longitude", "latitude"), [("town", 12.49, 41.9), ("network", 179.999, -33.9)])
def test_exchanged_degrees_are_named_as_in_python(tmp_path, run_json, name, longitude, latitude) -> None:
    """Town: a grid, whose exchanged position is in range. Network: points, one of whose exchanged degrees is not."""
    folder = write_client(mechanism(name), tmp_path / "web")
    asked = [[longitude, latitude], [latitude, longitude], [longitude - 5, latitude]]
    (tmp_path / "asked.json").write_text(json.dumps(asked))
    inside, exchanged, outside = run(folder, EXCHANGED)
    assert inside == [9, 9]
    for code, message in exchanged:
        assert code == "outside"
        assert "longitude and latitude seem to be exchanged" in message
    assert outside[0] == ["outside", "the position lies outside the area of this table: nothing is reported"]
    assert outside[1] == 9
    file = md.save(mechanism(name), tmp_path / "m.nc")
    code, refused = run_json("sample", file, "--lon", latitude, "--lat", longitude)
    assert code == 2
    assert re.search(r"the two seem to be exchanged|a latitude within 90 degrees", refused["error"]["message"])

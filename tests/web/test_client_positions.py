"""The client where positions are drawn, in Node: the points, steps and reports of Python on the same bits."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
import xarray as xr
from fixtures import position_mechanisms as made_once
from fixtures.clients import NODE, Stream, put_together, run, taken_apart
from fixtures.pages import texts_of
from fixtures.position_mechanisms import kernel
from fixtures.tolerances import LINEAR_ALGEBRA

import mechdesign as md
from mechdesign import Sampler
from mechdesign.errors import InputError
from mechdesign.web import write_client

pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node: the client is JavaScript")
PLANE = md.geo.Plane(latitude=41.9, longitude=12.49)
HOLED = np.ones((6, 5), bool)
HOLED[2, 3] = HOLED[5, 4] = False

SCRIPT = """
import { readFileSync } from "node:fs";
import { openClient, memoryStorage } from "./web/report.mjs";
const table = new Uint8Array(readFileSync("./web/report.bin"));
const stream = new Uint8Array(readFileSync("bits"));
const positions = JSON.parse(readFileSync("positions.json", "utf8"));
let [at, day] = [0, 0];
const bits = (count) => stream.subarray(at, (at += count));
const now = () => (day += 1e8);
const storage = memoryStorage();
const client = await openClient({ table, bits, outside: "nearest", remember: "none", storage, now });
const said = [];
for (const position of positions) {
  said.push((await client.reportAt(...position)).report.number);
}
const cells = positions.map((position) => client.places.cellAt(position));
const points = positions.map((position, k) => (cells[k] < 0 ? null : client.places.pointIn(cells[k], position)));
const again = [await client.reportAt(...positions[0]), await client.reportAt(...positions[0])];
const near = (await client.reportAt(positions[0][0] + 0.01, positions[0][1])).remembered;
const shares = client.probabilities(0);
console.log(JSON.stringify({ said, cells, points, remembered: [again[0].remembered, again[1].remembered, near],
  sum: shares.reduce((a, b) => a + b), share: shares[0], claim: client.claim }));
"""


@cache
def position_table() -> xr.Dataset:
    domain = md.Domain.grid((6, 5), cell=1 / 3, unit="m", origin=(-1.0, 0.1), mask=HOLED, plane=PLANE)
    problem = md.DesignProblem(
        domain=domain, metric=md.Euclidean(epsilon=1.2, unit="m"), prior=np.full(28, 1 / 28), loss=md.losses.Distance()
    )
    return kernel(problem, np.exp(-0.8 * np.linalg.norm(domain.points[:, None] - domain.points, axis=2)) + 0.02)


def positions() -> list[list[float]]:
    """Positions anywhere in the area, on borders of cells and of the map, on centres, and just beside them."""
    sampler, around = Sampler(position_table()), np.random.default_rng(4)
    domain = sampler.certificate.domain
    anywhere = domain.points[around.integers(28, size=60)] + around.uniform(-1 / 6, 1 / 6, (60, 2))
    exact = np.array([[-1.0 + i / 6, 0.1 + j / 6] for i in range(13) for j in range(11)])
    found = np.concatenate([anywhere, exact, np.nextafter(exact, 9.0), np.nextafter(exact, -9.0)])
    return [at for at in found.tolist() if _inside(sampler, at)]


def _inside(sampler: Sampler, at: list[float]) -> bool:
    try:
        return sampler.place(at=at)[0] >= 0
    except InputError:
        return False


@pytest.fixture(scope="module")
def client_answers(tmp_path_factory):
    folder = write_client(position_table(), tmp_path_factory.mktemp("client") / "web")
    stream = Stream(seed=7, size=24 * (len(positions()) + 3))
    (folder.parent / "bits").write_bytes(stream.content)
    (folder.parent / "positions.json").write_text(json.dumps(positions()))
    return run(folder, SCRIPT), stream


@pytest.mark.obligation("position-draws")
def test_cells_points_and_reports_are_those_of_python(client_answers, monkeypatch):
    found, stream = client_answers
    sampler = Sampler(mechanism=position_table())
    cells, points = zip(*(sampler.place(at=at) for at in positions()), strict=True)
    assert len(cells) > 300
    assert found["cells"] == list(cells)
    assert found["points"] == list(map(list, points))
    assert {-(2**15), 0, 2**15} <= {a for point in found["points"] for a in point}  # borders and centres of cells
    for part in ("sampler", "rows"):
        monkeypatch.setattr(f"mechdesign.mechanism.{part}.source", stream)
    assert found["said"] == [int(sampler.report(at=at, scan="row")) for at in positions()]


def test_memory_and_display(client_answers):
    found, _ = client_answers
    assert found["remembered"] == [False, False, False]
    assert found["claim"] == position_table().attrs["position_claim"]
    rows = Sampler(position_table()).certificate.positions.around[0]
    table = position_table()["mass"].values / 2.0**62
    weights = np.outer([1, 6, 1], [1, 6, 1]).ravel() / 64
    assert found["sum"] == pytest.approx(1.0, rel=LINEAR_ALGEBRA)
    assert found["share"] == pytest.approx(float(weights @ table[rows, 0]), rel=LINEAR_ALGEBRA)


def test_the_words_are_about_positions(tmp_path):
    folder = write_client(position_table(), tmp_path / "web")
    words = (folder / "README.md").read_text(encoding="utf-8")
    promised, _, _ = json.loads(texts_of(position_table()).contents)["facts"]["sentence"].partition(" The ")
    assert promised.startswith("Protects any two positions: within ")
    assert " in a straight line, one report changes" in promised  # cells are masked: paths inside may be longer
    assert promised in words
    assert position_table().attrs["position_claim"] in words
    assert "The claim is about cells" not in words


def test_a_design_by_levels_of_quarters_is_drawn_from(tmp_path):
    mechanism = made_once.position_mechanism("quarters")
    folder = write_client(mechanism, tmp_path / "web")
    script = """
      import { readFileSync } from "node:fs";
      import { openClient, memoryStorage } from "./web/report.mjs";
      const table = new Uint8Array(readFileSync("./web/report.bin"));
      const client = await openClient({ table, storage: memoryStorage() });
      const { report } = await client.reportAt(-1.3, 3.1);
      console.log(JSON.stringify([report.number, client.claim, client.places.pointIn(5, [-1.3, 3.1])]));
    """
    number, claim, point = run(folder, script)
    _, (first, second) = Sampler(mechanism).place(at=[-1.3, 3.1])
    assert 0 <= number < 16
    assert claim == mechanism.attrs["position_claim"]
    assert point == [first, second]


def test_hostile_tables_are_refused(tmp_path):
    """Of four tables the one that was not altered is opened."""
    folder = write_client(position_table(), tmp_path / "web")
    header, body = taken_apart((folder / "report.bin").read_bytes())
    start = 4 * 28 + 8 * 28  # after the lattice numbers of the cells and the radii of reports
    tables = {
        "whole": (header, body),
        "neighbour": (header, body[:start] + b"\x1c" + body[start + 1 :]),
        "kind": (header | {"domain": header["domain"] | {"kind": "points"}}, body),
        "text": (header | {"position_claim": 3}, body),
    }
    for name, parts in tables.items():
        (folder / f"{name}.bin").write_bytes(put_together(*parts))
    script = """
      import { readFileSync } from "node:fs";
      import { openClient, memoryStorage } from "./web/report.mjs";
      const said = [];
      for (const name of ["whole", "neighbour", "kind", "text"]) {
        const table = new Uint8Array(readFileSync(`./web/${name}.bin`));
        said.push(await openClient({ table, storage: memoryStorage() }).then(() => "opened", (error) => error.code));
      }
      console.log(JSON.stringify(said));
    """
    assert run(folder, script) == ["opened", "table", "table", "table"]


LANDED = """
import { readFileSync } from "node:fs";
import { openClient, memoryStorage } from "./web/report.mjs";
const table = new Uint8Array(readFileSync("./web/report.bin"));
let day = 0;
const client = await openClient({ table, storage: memoryStorage(), now: () => (day += 1e8) });
const reports = [];
for (let k = 0; k < 60; k++) {
  await client.forget();
  reports.push((await client.report(179.996, 41.9)).report);
}
const cells = Array.from({ length: 12 }, (_, report) => client.cellOfReport(report));
const degrees = cells.map((cell) => client.places.degrees(client.places.point(cell)));
console.log(JSON.stringify({ reports, cells, degrees }));
"""


def test_reports_on_land_are_cells_with_degrees(tmp_path) -> None:
    """Secrets are all cells of a rectangle, reports those on land: what an area with water is designed as."""
    folder = write_client(made_once.position_mechanism("land"), tmp_path / "web")
    client_answers = run(folder, LANDED)
    land = np.flatnonzero(made_once.LAND.ravel())
    assert client_answers["cells"] == land.tolist()
    points = made_once.domain_of("land").points
    for report in client_answers["reports"]:
        place = client_answers["cells"][report["number"]]
        assert [report["x"], report["y"]] == points[place].tolist()
        assert {name: report[name] for name in ("longitude", "latitude")} == client_answers["degrees"][report["number"]]
    assert len({report["number"] for report in client_answers["reports"]}) > 3
    readme = (folder / "README.md").read_text()
    assert "Protects any two positions: within" in readme

"""The modes of the client's memory in Node: the reports, payments, visits and sentences of Python on the same bits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from fixtures import position_mechanisms as made_once
from fixtures.clients import NODE, Stream, run, sampler
from fixtures.rows import few_by_default

import mechdesign as md
from mechdesign.mechanism.accuracy import accuracy, round_up
from mechdesign.output.memory_claim import STAY
from mechdesign.web import write_client

pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node: the client is JavaScript")

OPEN = """
import { readFileSync } from "node:fs";
import { openClient, memoryStorage } from "./web/report.mjs";
const table = new Uint8Array(readFileSync("./web/report.bin"));
"""
TRACE = """
const stream = new Uint8Array(readFileSync("bits"));
const { fixes, options } = JSON.parse(readFileSync("trace.json", "utf8"));
let at = 0;
const bits = (count) => stream.subarray(at, (at += count));
const storage = memoryStorage();
const opened = () => openClient({ table, bits, storage, perDay: 1000, answerAfter: 0, ...options });
let client = await opened();
const reports = [];
for (const [k, fix] of fixes.entries()) {
  if (k % 20 === 19) client = await opened();
  const { report, remembered } = await client.reportAt(...fix);
  reports.push([report.number, remembered, report.accuracy ?? null]);
}
console.log(JSON.stringify({ reports, claim: client.memoryClaim, status: await client.status() }));
"""


def walk(domain: md.Domain) -> list[list[float]]:
    """Fixes of somebody who rests, walks and comes back."""
    rng = np.random.default_rng(5)
    side = np.asarray(domain.cell)
    low, high = np.asarray(domain.origin), np.asarray(domain.origin) + np.asarray(domain.shape) * side
    home, work = low + 1.02 * side, high - 1.6 * side
    way = np.linspace(home, work, 9)
    stays = [np.repeat(home[None], 12, axis=0), way, np.repeat(work[None], 10, axis=0), way[::-1]]
    path = np.concatenate([*stays, np.repeat(home[None], 12, axis=0)])
    return (path + rng.normal(scale=0.03, size=path.shape) * side).clip(low, high).tolist()


@pytest.mark.parametrize(
    ("name", "remember", "visit"),
    few_by_default(
        [(name, *mode) for name in ("plane", "town") for mode in (("cell", None), ("visit", 0.6), ("none", None))],
        ("plane", "cell", None),
        ("town", "visit", 0.6),
    ),
)
@pytest.mark.obligation("client-draws")
def test_modes_are_those_of_python_on_the_same_bits(tmp_path: Path, name, remember, visit, monkeypatch) -> None:
    drawn_from = sampler(name) if name == "town" else md.Sampler(made_once.position_mechanism(name))
    domain = drawn_from.certificate.domain
    radius = None if visit is None else visit * domain.cell[0]
    fixes = walk(domain)
    stream = Stream(seed=9, size=40 * len(fixes))
    folder = write_client(drawn_from.mechanism, tmp_path / "web")
    (tmp_path / "bits").write_bytes(stream.content)
    options = {"remember": remember} | ({} if radius is None else {"visit": radius})
    (tmp_path / "trace.json").write_text(json.dumps({"fixes": fixes, "options": options}))
    found = run(folder, OPEN + TRACE)
    for part in ("sampler", "rows"):
        monkeypatch.setattr(f"mechdesign.mechanism.{part}.source", stream)
    budget = md.sessions.Budget.create(tmp_path / "b.json", limit=10_000, remember=remember, visit=radius)
    reports = [budget.report(drawn_from, at=at) for at in fixes]
    paid = ["remembered" in report.attrs["cost"] for report in reports]
    assert [number for number, _, _ in found["reports"]] == [int(report) for report in reports]
    assert [remembered for _, remembered, _ in found["reports"]] == paid
    assert found["claim"] == reports[0].attrs["memory_claim"]
    assert found["status"]["spent"] == paid.count(False)
    # Home at a corner of four cells and work inside one, with nine fixes between them.
    assert {"cell": 3 <= paid.count(False) <= 30, "visit": 2 <= paid.count(False) <= 12, "none": not any(paid)}[
        remember
    ]
    radii = round_up(accuracy(drawn_from.mechanism, from_centres=remember == "cell" and name == "plane"))
    for number, _, shown in found["reports"]:
        assert shown == radii[number] + (0 if radius is None else STAY * radius)


REFUSED = """
const refusal = async (options) => {
  try { await openClient({ table, storage: memoryStorage(), ...options }); return "taken"; }
  catch ({ code, message }) { return `${code}: ${message}`; }
};
const given = [{ remember: "day" }, { remember: "visit" }, { remember: "visit", visit: -1 }, { visit: 3 },
  { remember: "visit", visit: "9" }, { remember: "none" }, { remember: "visit", visit: 9 }];
console.log(JSON.stringify(await Promise.all(given.map(refusal))));
"""


def test_modes_that_are_refused(tmp_path: Path) -> None:
    folder = write_client(sampler("town").mechanism, tmp_path / "web")
    found = run(folder, OPEN + REFUSED)
    assert all(text.startswith("option: ") for text in found[:5])
    assert "cell, visit, none" in found[0]
    assert "radius in m" in found[1]
    assert found[5:] == ["taken", "taken"]


STATE = """
const storage = memoryStorage();
const opened = (options) => openClient({ table, storage, key: "k", perDay: 9, ...options });
const visits = await opened({ remember: "visit", visit: 100 });
const cells = await opened({});
const one = [await visits.reportAt(10, 10), await cells.reportAt(10, 10)].map(({ remembered }) => remembered);
await visits.forget();
const two = (await visits.reportAt(10, 10)).remembered;
const altered = JSON.parse(storage.getItem("k"));
const state = JSON.parse(altered.state);
const [mechanism] = Object.keys(state.remembered);
state.remembered[mechanism] = { "@ 9999 0 0": 1 };
const inner = JSON.stringify(state);
const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(inner)));
storage.setItem("k", JSON.stringify({ state: inner, sha256: Buffer.from(bytes).toString("hex") }));
const code = await visits.reportAt(10, 10).then(() => "drawn", (error) => error.code);
console.log(JSON.stringify({ one, two, code }));
"""


def test_cells_and_visits_share_no_report(tmp_path: Path) -> None:
    folder = write_client(sampler("town").mechanism, tmp_path / "web")
    assert run(folder, OPEN + STATE) == {"one": [False, False], "two": False, "code": "memory"}

"""Large pages, in Node: edges that are skipped are clear, and two workers prove as much as one."""

from __future__ import annotations

import json

import numpy as np
import pytest
from fixtures.pages import NODE, forge_page, honest, in_node, mechanism_of, proof_script, proved_in_node, texts_of
from fixtures.problems import euclidean_grid

import mechdesign as md
from mechdesign.web import page_table

pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node: the proof is JavaScript")
ANYWHERE = "any position"
JOINED = """
const all = JSON.parse(require("node:fs").readFileSync("texts.json", "utf8"));
(async () => {
  const outcomes = [];
  for (const { packed } of all) {
    const page = await openPage(packed);
    const [whole, ...parts] = [undefined, ...HALVES_OF_PAGE].map((only) => run(prove(page, { only })).value);
    outcomes.push([whole, joinedOutcome(parts)]);
  }
  for (const { figures } of outcomes.flat()) delete figures.losses;
  console.log(JSON.stringify(outcomes));
})();
"""
RISES = """
let seed = 1;
const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
const reports = 40;
const spots = Array.from({ length: 64 }, (_, u) => [Math.floor(u / 8), u % 8]);
const far = ([a, b], [c, d]) => Math.hypot(a - c, b - d);
// Columns that fall by nearly one nat a cell, and noise; the last one is steeper between two far places.
const tableOf = (lift) => Float64Array.from({ length: 64 * reports }, (_, k) => {
  const [u, y] = [Math.floor(k / reports), k % reports];
  const steep = y === reports - 1 && u === 63 ? lift : 0;
  return Math.exp(40 - 0.98 * far(spots[u], spots[(7 * y) % 64]) - 0.02 * random() + steep);
});
const edges = { tail: [], head: [], length: [] };
for (let u = 0; u < 64; u++) {
  for (let v = 0; v < u; v++) {
    edges.tail.push(u);
    edges.head.push(v);
    edges.length.push(far(spots[u], spots[v]));
  }
}
const blocks = spots.map(([a, b]) => 4 * (a >> 1) + (b >> 1));
const found = [0, 12, -12].map((lift) => {
  const values = tableOf(lift);
  const { isClear, value } = run(clearEdges(values, reports, edges, blocks)).value;
  let [same, broken, most] = [true, 0, -1];
  edges.tail.forEach((u, e) => {
    let rise = 0;
    for (let y = 0; y < reports; y++) {
      const [a, b] = [values[u * reports + y], values[edges.head[e] * reports + y]].map(Math.log);
      rise = Math.max(rise, Math.abs(a - b));
    }
    const clear = rise + LOG_ERROR < edges.length[e];
    same &&= clear === Boolean(isClear[e]);
    if (clear) most = Math.max(most, rise / edges.length[e]);
    else broken++;
  });
  return { same, broken, value, most };
});
console.log(JSON.stringify(found));
"""


PATCHES = """
let seed = 1;
const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
const one = 1n << 60n;
const counts = { gentle: 0, steep: 0, apart: 0 };
for (let k = 0; k < 4000; k++) {
  const spread = 0.2 * random();
  const [across, upward] = [random() - 0.5, random() - 0.5];
  const p = Array.from({ length: 9 }, (_, i) => {
    const slope = across * (Math.floor(i / 3) - 1) + upward * ((i % 3) - 1);
    return BigInt(Math.round(1e15 * Math.exp(2 * spread * slope + spread * (random() - 0.5))));
  });
  const z = Array.from({ length: 4 }, () => BigInt(Math.round(2 ** 60 * spread * (0.4 + random()))));
  const exact = isGentle([p.slice(0, 3), p.slice(3, 6), p.slice(6)], [z.slice(0, 2), z.slice(2)], one);
  const levels = z.map((level) => Number(level) * 2 ** -60);
  const clear = isClearlyGentle(Float64Array.from(p, Number), 0, 3, levels);
  counts[exact ? "gentle" : "steep"]++;
  counts.apart += exact !== clear;
}
console.log(JSON.stringify(counts));
"""
MASSES = """
const [{ packed }] = JSON.parse(require("node:fs").readFileSync("texts.json", "utf8"));
openPage(packed).then((page) => {
  const faults = run(prove(page)).value.faults;
  console.log(JSON.stringify({ faults, mass: Array.from(array(page, "mass"), String) }));
});
"""


def test_skipped_reports_leave_the_clear_edges_as_they_are(tmp_path):
    """Against the largest differences over all reports, without blocks; some edges are broken far away."""
    found = in_node(tmp_path, proof_script() + RISES)
    assert [table["broken"] > 0 for table in found] == [False, True, True]
    for table in found:
        assert table["same"]
        assert table["value"] == table["most"] < 1


def test_gradients_in_doubles_are_judged_as_in_integers(tmp_path):
    """Random patches, any of whose 16 coefficients may be the steepest."""
    found = in_node(tmp_path, proof_script() + PATCHES)
    assert found["apart"] == 0
    assert min(found["gentle"], found["steep"]) > 500


def test_two_workers_prove_what_one_proves(tmp_path):
    """Also of a page whose gradients are too steep, and of one whose rows are wrong."""
    mass = mechanism_of(ANYWHERE)["mass"].values.copy()
    mass[0, 0] += 1
    rows = forge_page(ANYWHERE, mass=mass)
    level = mechanism_of(ANYWHERE)["corner_level"].values / 2
    steep = forge_page(ANYWHERE, corner_level=level)
    pages = proved_in_node(tmp_path, [honest(ANYWHERE), rows, steep], run=JOINED)
    for whole, joined in pages:
        assert joined["faults"] == whole["faults"]
    whole, joined = pages[0]
    for name in ("proved", "assumed"):
        assert sorted(joined[name]) == sorted(whole[name])
    assert joined["figures"] == whole["figures"]
    assert [len(joined["faults"]) > 0 for _, joined in pages] == [False, True, True]


@pytest.mark.parametrize("bits", [pytest.param(32, marks=pytest.mark.exhaustive), 24])
def test_rows_of_one_shape_are_packed_by_their_factors(tmp_path, monkeypatch, bits):
    """The browser has the rounded masses of Python, unit by unit; a table that was optimised has no such shape."""
    monkeypatch.setattr(page_table, "MOST_EXACT", 1)
    monkeypatch.setattr(page_table, "BITS", (bits,))
    mechanism = md.baselines.exponential(euclidean_grid((9, 13), 0.3))
    table = page_table.page_table(mechanism)
    assert page_table.units_of(table.stored.mechanism["mass"].values, bits, np.arange(117)).nbytes > 54_000
    assert len(table.container) < 8_000
    texts = texts_of(mechanism)
    found = proved_in_node(tmp_path, [texts], run=MASSES)
    assert found["faults"] == []
    masses = np.array([int(mass) for mass in found["mass"]], np.uint64)
    assert (masses == table.stored.mechanism["mass"].values.ravel()).all()
    assert json.loads(texts.contents)["beside"]["packed"]["shape"] == [len(table.container)]
    solved = page_table.page_table(mechanism_of("plane"))
    assert (
        page_table.shared_shape(
            solved.rounded, solved.stored, solved.stored.mechanism["mass"].values >> np.uint64(62 - bits)
        )
        is None
    )

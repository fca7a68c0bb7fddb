"""The page that designs: its tables in Node and in a browser, against the designs and proofs of Python."""

from __future__ import annotations

import json

import numpy as np
import pytest
from fixtures.browsers import check_layout, needs_browser
from fixtures.pages import NODE, in_node

import mechdesign as md
from mechdesign.verification import verify_table
from mechdesign.web.designer import design_script

needs_node = pytest.mark.skipif(NODE is None, reason="needs Node: the design is JavaScript")
BOX = {"west": -8.69, "south": 41.13, "east": -8.55, "north": 41.19}
MOST_BYTES = 4_000_000
RUN = """
(async () => {
  const answers = [];
  for (const wanted of JSON.parse(require("node:fs").readFileSync("wanted.json", "utf8"))) {
    const { page, outcome, ...rest } = await designAndProve(wanted, () => {});
    const { attrs, protection } = page?.contents ?? {};
    answers.push({ ...rest, faults: outcome?.faults, attrs, protection });
  }
  console.log(JSON.stringify(answers));
})();
"""
FORGED = """
const domain = boxDomain({ west: 0, south: 0, east: 0.1, north: 0.1 }, 4);
const edges = edgesOf(domain, "euclidean", 1e-4);
const costs = [0, 1, 2, 3].map((y) => Float64Array.from([0, 1, 2, 3], (u) => Math.abs(u - y) / 4));
const solved = lastOf(optimalColumns(costs, edges));
const raised = { ...solved, l: solved.l.map((price) => price + 0.1) };
const losses = [solved, raised].map((given) => provedBound(costs, edges, given));
const columns = [0, 1, 2, 3].map((y) => Float64Array.from([0, 1, 2, 3], (u) => Number(u === y)));
let refused = null;
try { repairedMasses(columns, edges); } catch (error) { refused = error.message; }
const loss = solved.x.reduce((sum, x, y) => sum + dot(x, costs[y]), 0);
console.log(JSON.stringify({ losses, refused, loss }));
"""


def request(**changes):
    return {"box": BOX, "cells": 12, "kind": "euclidean", "factor": 4, "within": 500, "loss": "squared"} | changes


def design(folder, *asked):
    (folder / "wanted.json").write_text(json.dumps(asked))
    return in_node(folder, design_script() + RUN)


def optimum_of(answer):
    """The expected loss of Python's design for the domain and metric of a table."""
    domain, metric = (json.loads(answer["attrs"][name]) for name in ("domain", "metric"))
    grid = md.Domain.grid(domain["shape"], cell=domain["cell"][0], unit="m", origin=domain["origin"])
    level = metric["epsilon"] if metric["kind"] == "euclidean" else metric["level"]["eps"][0][0]
    if metric["kind"] == "euclidean":
        claim = md.Euclidean(level, unit="m")
    else:
        claim = md.Eikonal(md.PrivacyLevel.constant(level, "m"), stencil=8)
    loss = {"squared": md.losses.SquaredDistance(), "distance": md.losses.Distance()}[answer["attrs"]["loss"]]
    return md.solve(md.DesignProblem(grid, claim, md.priors.uniform(grid), loss)).attrs["expected_loss"]


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    asked = [request(), request(kind="eikonal", loss="distance"), request(cells=4, factor=1.5, within=0)]
    return design(tmp_path_factory.mktemp("designs"), *asked)


@needs_node
def test_designs_are_optimal(answers):
    for answer in answers[:2]:
        assert answer["faults"] == []
        loss, best = answer["attrs"]["expected_loss"], optimum_of(answer)
        assert best * (1 - 1e-6) <= loss <= best * 1.001
        assert loss * 0.999 <= answer["attrs"]["lower_bound"] <= best * (1 + 1e-9)


@needs_node
def test_designed_tables_are_proved_by_python(answers, tmp_path, capsys):
    for answer in answers:
        (tmp_path / "table.json").write_text(answer["text"])
        assert verify_table.main([str(tmp_path / "table.json")]) == 0
        assert "proved:" in capsys.readouterr().out
    altered = answers[0]["text"].replace('"0x1.', '"0x1.0', 1)
    (tmp_path / "table.json").write_text(altered)
    assert verify_table.main([str(tmp_path / "table.json")]) == 1


@needs_node
def test_factor_holds_between_cells_within_the_radius(answers):
    """Cells that hold positions at most 500 m apart are neighbours here."""
    table = json.loads(answers[0]["text"])
    mass = np.array([[int(number) for number in row.split()] for row in table["mass"]], float)
    points = np.array(table["secret_points"])[:, :2]
    side = table["claim"]["domain"]["cell"][0]
    near = np.abs(points[:, None] - points[None]).max(axis=2) < 1.5 * side
    factor = max((mass[u] / mass[v]).max() for u, v in np.argwhere(near))
    assert factor == pytest.approx(answers[0]["protection"]["factor"], rel=1e-9)
    assert 3.5 < factor <= 4


@needs_node
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"factor": 0.5}, "factor"),
        ({"cells": 65}, "64 cells"),
        ({"within": -1}, "radius"),
        ({"box": BOX | {"east": -9}}, "west"),
        ({"box": BOX | {"east": 20}}, "200 km"),
    ],
)
def test_invalid_form_is_refused(tmp_path, changes, words):
    (answer,) = design(tmp_path, request(**changes))
    assert words in answer["refused"]


@needs_node
def test_bound_and_repair_follow_from_integers(tmp_path):
    """Larger multipliers prove no larger bound, and no mixture repairs a table that names every cell."""
    found = in_node(tmp_path, design_script() + FORGED)
    honest, forged = found["losses"]
    assert found["loss"] * 0.999 < honest <= found["loss"]
    assert forged <= honest
    assert "could not be repaired" in found["refused"]


def test_command_writes_a_small_page(run, tmp_path):
    assert run("export", "--designer", "-o", tmp_path / "design.html", "--title", "Porto <b>")[0] == 0
    text = (tmp_path / "design.html").read_text()
    assert len(text.encode()) < MOST_BYTES
    assert "Porto &lt;b&gt;" in text
    assert run("export", "absent.nc", "--designer", "-o", tmp_path / "d.html")[0] == 2
    assert run("export", "--designer", "-o", tmp_path / "d.csv")[0] == 2
    assert run("export", "-o", tmp_path / "d.html")[0] == 2


@needs_browser()
def test_page_designs_and_saves_without_a_network(tmp_path, open_page):
    md.web.save_designer(tmp_path / "design.html")
    shown = open_page(tmp_path / "design.html", viewport={"width": 390, "height": 844})
    page = shown.page
    check_layout(page, 390, "light")
    page.locator("#map").scroll_into_view_if_needed()
    box = page.locator("#map").bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] + 160, steps=3)
    page.mouse.up()
    assert float(page.input_value("#west")) != BOX["west"]
    page.fill("#cells", "16")
    page.click("#design")
    page.wait_for_selector(".badge.proved", timeout=60_000)
    assert "Protects cells of" in page.inner_text("#sentence")
    with page.expect_download() as download:
        page.click("#save")
    download.value.save_as(tmp_path / "table.json")
    assert verify_table.main([str(tmp_path / "table.json")]) == 0
    page.fill("#factor", "2")
    assert page.inner_text("#verdict") == "No table yet"
    assert shown.asked_for() == shown.complaints == []

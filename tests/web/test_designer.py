"""The page that designs: its tables in Node and in a browser, against the designs and proofs of Python."""

from __future__ import annotations

import hashlib
import json
import re

import numpy as np
import pytest
from fixtures.browsers import check_layout, needs_browser
from fixtures.pages import NODE, in_node

import mechdesign as md
from mechdesign.output.packaged import package_script
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
    const { faults, proved, assumed } = outcome ?? {};
    answers.push({ ...rest, faults, proved, assumed, attrs, protection });
  }
  console.log(JSON.stringify(answers));
})();
"""
FORGED = """
const domain = boxDomain({ west: 0, south: 0, east: 0.1, north: 0.1 }, 4);
const edges = edgesOf(domain, "euclidean", 1e-4);
const costs = [0, 1, 2, 3].map((y) => Float64Array.from([0, 1, 2, 3], (u) => Math.abs(u - y) / 4));
const solved = lastOf(optimalColumns(costs, edges));
const steps = provingTrees(edges, solved);
const [tail, head, length] = ["tail", "head", "nats"].map((name) => edges.map((edge) => edge[name]));
const proved = (l, trees) => lastOf(boundByTrees(l, trees, { tail, head, length }, 4, (u, y) => costs[y][u]));
const raised = solved.l.map((price) => price + 0.1);
const losses = [proved(solved.l, steps), proved(raised, steps), proved(solved.l, steps.map(() => 0))];
const columns = [0, 1, 2, 3].map((y) => Float64Array.from([0, 1, 2, 3], (u) => Number(u === y)));
let refused = null;
try { repairedMasses(columns, edges); } catch (error) { refused = error.message; }
const loss = solved.x.reduce((sum, x, y) => sum + dot(x, costs[y]), 0);
console.log(JSON.stringify({ losses, refused, loss }));
"""
FLOWS = """
let seed = 1;
const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
const pairs = Array.from({ length: 40 }, () => [Math.floor(12 * random()), Math.floor(12 * random())]);
const named = pairs.filter(([a, b]) => a !== b).map(([a, b]) => [Math.min(a, b) + 12 * Math.max(a, b), [a, b]]);
const edges = [...new Map(named).values()];
const flows = new Map();
const [forest, before, after] = [new Forest(12), new Float64Array(12), new Float64Array(12)];
for (const [a, b] of edges) {
  const flow = random() - 0.5;
  before[a] += flow;
  before[b] -= flow;
  flows.set(`${a} ${b}`, flow).set(`${b} ${a}`, -flow);
  forest.insert(a, b, flow);
}
forest.hang(5, -1, 0);
let [joined, turned] = [0, 0];
forest.up.forEach((p, v) => {
  if (p < 0) return;
  after[v] += forest.flow[v];
  after[p] -= forest.flow[v];
  joined += flows.has(`${v} ${p}`);
  turned += forest.flow[v] * flows.get(`${v} ${p}`) < 0;
});
const apart = Math.max(...before.map((flow, v) => Math.abs(flow - after[v])));
console.log(JSON.stringify({ apart, joined, turned, root: forest.up[5] }));
"""
READ = """
const files = JSON.parse(require("node:fs").readFileSync("files.json", "utf8"));
const read = ([name, text]) => { try { return readPlaces(name, text); } catch (error) { return error.message; } };
console.log(JSON.stringify(files.map(read)));
"""
PEOPLE = "name,Longitude,Latitude,people\n" + "".join(
    f"a,{west},{south},{weight}\n"
    for west, south, weight in [(-8.68, 41.14, 3), (-8.6, 41.16, 5), (-8.56, 41.18, 1.5), (-8.61, 41.16, 0), (0, 0, 7)]
)
COAST = {"type": "Feature", "geometry": {"type": "LineString", "coordinates": [[-8.69, 41.14], [-8.6, 41.16, 9]]}}


def request(**changes):
    return {
        "box": BOX,
        "cells": 12,
        "kind": "euclidean",
        "factor": 4,
        "within": 500,
        "loss": "squared",
        "places": None,
    } | changes


def design(folder, *asked):
    (folder / "wanted.json").write_text(json.dumps(asked))
    return in_node(folder, design_script() + RUN)


def read(folder, *files):
    """The points and lines of files of these names and texts, or the reasons of refusals."""
    (folder / "files.json").write_text(json.dumps(files))
    return in_node(folder, package_script("web/browser/design/files.js") + READ)


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
    prior = np.array([float.fromhex(digits) for digits in json.loads(answer["text"])["prior"]])
    return md.solve(md.DesignProblem(grid, claim, prior, loss)).attrs["expected_loss"]


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    asked = [request(), request(kind="eikonal", loss="distance"), request(cells=4, factor=1.5, within=0)]
    asked.append(request(cells=6, places=read(tmp_path_factory.mktemp("files"), ("people.csv", PEOPLE))[0]))
    return design(tmp_path_factory.mktemp("designs"), *asked)


@needs_node
def test_designs_are_optimal(answers):
    for answer in (*answers[:2], answers[3]):
        assert answer["faults"] == []
        loss, best = answer["attrs"]["expected_loss"], optimum_of(answer)
        assert best * (1 - 1e-6) <= loss <= best * 1.001
        assert best * (1 - 5e-5) <= answer["attrs"]["lower_bound"] <= best * (1 + 1e-9)


@needs_node
def test_designed_tables_are_proved_by_python(answers, tmp_path, capsys):
    for answer in answers:
        (tmp_path / "table.json").write_text(answer["text"])
        assert verify_table.main([str(tmp_path / "table.json")]) == 0
        said = capsys.readouterr().out
        assert "proved:" in said
        bound = float(re.search(r"an expected loss .* of at least (\S+)", said)[1])
        assert bound == pytest.approx(answer["attrs"]["lower_bound"], rel=1e-9)
    altered = answers[0]["text"].replace('"0x1.', '"0x1.0', 1)
    (tmp_path / "table.json").write_text(altered)
    assert verify_table.main([str(tmp_path / "table.json")]) == 1


@needs_node
def test_raised_bound_is_refused_by_python(answers, tmp_path, capsys):
    lines = answers[0]["text"].splitlines(keepends=True)
    stated = repr(answers[0]["attrs"]["lower_bound"])
    raised = "".join(lines[:-1]).replace(f'"lower_bound": {stated}', f'"lower_bound": {float(stated) * 1.001}')
    digest = hashlib.sha256(raised.encode()).hexdigest()
    (tmp_path / "table.json").write_text(f'{raised}"content_sha256": "{digest}"}}\n')
    assert verify_table.main([str(tmp_path / "table.json")]) == 1
    assert "trees prove" in capsys.readouterr().out


@needs_node
def test_prior_is_the_share_of_points_in_each_cell(answers):
    """Three points with a weight lie in the cells; one has none, and one lies elsewhere."""
    table = json.loads(answers[3]["text"])
    prior, points = [float.fromhex(digits) for digits in table["prior"]], np.array(table["secret_points"])
    for longitude, latitude, weight in ((-8.68, 41.14, 3), (-8.6, 41.16, 5), (-8.56, 41.18, 1.5)):
        nearest = np.hypot(points[:, 2] - longitude, (points[:, 3] - latitude) / np.cos(np.radians(41.16))).argmin()
        assert prior[nearest] == pytest.approx(weight / 9.5, rel=1e-12)
    assert sum(prior) == pytest.approx(1, rel=1e-12)
    assert any("4 of its 5 points lie in the cells" in text for text in answers[3]["assumed"])


@needs_node
def test_files_are_read_or_refused_by_name(tmp_path):
    homes = {"type": "MultiPoint", "coordinates": [[1, 2], [3, 4]]}
    cloud = {
        "type": "FeatureCollection",
        "features": [COAST, {"type": "Feature", "properties": {"count": 2}, "geometry": homes}],
    }
    found = read(
        tmp_path,
        ("a.csv", "lat;lon\n41;-8\n\n42;-9"),
        ("b.geojson", json.dumps(cloud)),
        ("c.csv", "east,north\n1,2"),
        ("d.csv", "lon,lat\n1,95"),
        ("e.csv", "lon,lat,weight\n1,2,-1"),
        ("f.json", "{]"),
        ("g.geojson", json.dumps({"type": "Sphere"})),
        ("h.csv", "lon,lat\n1,"),
        ("i.csv", "lon,lat\n2,35,48,85"),
        ("j.geojson", json.dumps({"type": "Point", "coordinates": [None, 2]})),
        ("k.geojson", json.dumps({"type": "Feature", "properties": {"count": ""}, "geometry": homes})),
        ("l.geojson", json.dumps({"type": "LineString", "coordinates": [[1, 2, -9999], [3, 4, -9999]]})),
    )
    assert found[0] == {"name": "a.csv", "points": [[-8, 41, 1], [-9, 42, 1]], "lines": []}
    assert found[1]["points"] == [[1, 2, 2], [3, 4, 2]]
    assert found[1]["lines"] == [COAST["geometry"]["coordinates"]]
    words = (
        "columns",
        "1, 95",
        "-1",
        "not GeoJSON",
        "Sphere",
        "h.csv",
        "2,35,48,85 has more",
        "j.geojson",
        "k.geojson",
    )
    for refused, word in zip(found[2:-1], words, strict=True):
        assert word in refused
    assert found[-1]["lines"] == [[[1, 2, -9999], [3, 4, -9999]]]  # a height is not a weight


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
    assert 3.9 < answers[1]["protection"]["factor"] <= 4


@needs_node
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"factor": 0.5}, "factor"),
        ({"cells": 65}, "64 cells"),
        ({"within": -1}, "radius"),
        ({"box": BOX | {"east": -9}}, "west"),
        ({"box": BOX | {"east": 20}}, "200 km"),
        ({"box": {"west": -179, "east": 179, "south": 88.9, "north": 89}}, "200 km"),
        ({"cells": 9, "factor": 1 + 1e-9}, "larger factor"),
        ({"cells": 9, "places": {"name": "home.csv", "points": [[-8.6, 41.16, 1]]}}, "everybody is in one cell"),
        ({"places": {"name": "many.csv", "points": [[-8.6, 41.16, 1e308], [-8.6, 41.16, 1e308]]}}, "too large"),
        ({"places": {"name": "far.csv", "points": [[0, 0, 1]]}}, "far.csv"),
    ],
)
def test_invalid_form_is_refused(tmp_path, changes, words):
    (answer,) = design(tmp_path, request(**changes))
    assert words in answer["refused"]


@needs_node
def test_bound_and_repair_follow_from_integers(tmp_path):
    """Other multipliers or trees prove no larger bound, and no mixture repairs a table that names every cell."""
    found = in_node(tmp_path, design_script() + FORGED)
    honest, raised, without = found["losses"]
    assert found["loss"] * 0.999 < honest <= found["loss"]
    assert raised <= honest
    assert without < 0.9 * honest
    assert "could not be repaired" in found["refused"]


@needs_node
def test_trees_keep_the_flow_of_every_place(tmp_path):
    """Flow of random edges, on a spanning tree of them: the same leaves each place, and no edge is turned."""
    found = in_node(tmp_path, design_script() + FLOWS)
    assert found["apart"] < 1e-12
    assert (found["joined"], found["turned"], found["root"]) == (11, 0, -1)


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
    page.fill("#cells", "8")
    (tmp_path / "coast.geojson").write_text(json.dumps(COAST))
    page.set_input_files("#files", tmp_path / "coast.geojson")
    page.wait_for_selector("#no-files:not([hidden])")
    assert page.inner_text("#files-said") == "coast.geojson has 1 lines for the map."
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

"""Road networks: reading, refusals and designs; privacy along streets by second routes."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from conftest import ROOT
from fixtures.export_mechanisms import prove_export
from fixtures.forged_files import rewritten
from fixtures.mechanisms import optimal_design as optimal_design
from fixtures.problems import shipped_problem
from fixtures.rows import few_by_default
from fixtures.tolerances import DESIGN_MARGIN, REORDERED, SOLVED
from matplotlib.collections import PathCollection
from pyproj import Geod

import mechdesign as md
from mechdesign import Sampler, compare
from mechdesign.errors import FileFormatError, InputError, UnitError, VerificationError
from mechdesign.geo import Roads, Streets, read_roads
from mechdesign.plot import mechanism as plot_mechanism
from mechdesign.utility import nearest_node

synthetic_roads = shipped_problem("streets").synthetic_roads
GEODESY = 1e-8  # of 100 m: the projection and the geodesics of PROJ
GAP = 1e-3
SHARED = ROOT.parent / "shared" / "data"
NODES = "osmid,x,y\na,0,0\nb,100,0\nc,100,80\nd,0,90\n"
EDGES = "u,v,key,length,oneway\na,b,0,120,True\nb,c,0,80,False\nc,d,0,110,False\nc,b,1,95,False\nd,d,0,7,False\n"
DEGREES = "osmid,lat,lon\na,48.85,2.34\nb,48.85,2.3414\nc,48.8507,2.3414\nd,48.8508,2.34\n"


def tables(folder, nodes=NODES, edges=EDGES):
    for name, text in (("nodes.csv", nodes), ("edges.csv", edges)):
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "nodes.csv", folder / "edges.csv"


def along(roads: Roads, epsilon: float, loss="streets", prior=None) -> md.DesignProblem:
    domain = roads.domain
    return md.DesignProblem(
        domain=domain,
        metric=roads.metric(epsilon),
        prior=md.priors.uniform(domain) if prior is None else prior,
        loss=md.losses.TableLoss(values=roads.distances(), units="m") if loss == "streets" else md.losses.Distance(),
    )


def tree(shape: str) -> Roads:
    """A star of eight rays, or a straight road with nine nodes, lengths between 60 and 140 m."""
    length = np.random.default_rng(9).uniform(60, 140, 8)
    if shape == "star":
        angle = np.arange(8) * math.pi / 4
        points = np.vstack([np.zeros(2), length[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])])
        tail = np.zeros(8, np.int64)
    else:
        points = np.column_stack([np.append(0.0, np.cumsum(length)), np.zeros(9)])
        tail = np.arange(8)
    head = np.arange(1, 9)
    return Roads(ids=np.arange(9).astype(str), points=points, degrees=None, tail=tail, head=head, length=length)


@cache
def streets_mechanism():
    return md.solve(md.Optimal(problem=md.load_problem("streets", nodes=25, seed=3, prior="length")), gap=1e-6)


def test_network_is_read_from_tables(tmp_path):
    """Parallel edges: the shorter one, whichever way it runs; loops are dropped; one-way streets count both ways."""
    roads = read_roads(*tables(tmp_path))
    assert roads.ids.tolist() == ["a", "b", "c", "d"]
    assert list(zip(roads.tail, roads.head, roads.length, strict=True)) == [(0, 1, 120), (1, 2, 80), (2, 3, 110)]
    assert (roads.points.tolist(), roads.degrees) == ([[0, 0], [100, 0], [100, 80], [0, 90]], None)
    expected = [[0, 120, 200, 310], [120, 0, 80, 190], [200, 80, 0, 110], [310, 190, 110, 0]]
    assert roads.distances().tolist() == expected
    assert (roads.domain.kind, roads.domain.unit, roads.left_out) == ("points", "m", 0)


def test_distances_are_the_shortest_walks_times_epsilon():
    """Second route: Floyd and Warshall's recursion, over the synthetic network."""
    roads = synthetic_roads(20, 4)
    walk = np.full((20, 20), np.inf)
    np.fill_diagonal(walk, 0)
    walk[roads.tail, roads.head] = walk[roads.head, roads.tail] = roads.length
    for k in range(20):
        walk = np.minimum(walk, walk[:, k, None] + walk[None, k])
    assert roads.distances() == pytest.approx(walk, rel=REORDERED)
    found = (2 * roads.metric(0.01)).distances(roads.domain)
    assert found == pytest.approx(0.02 * walk, rel=DESIGN_MARGIN)
    assert (found <= 0.02 * walk * (1 + REORDERED)).all()
    assert (roads.metric(0.01).edges(roads.domain).length < 0.01 * roads.length).all()


@pytest.mark.parametrize("header", ["osmid,lat,lon", "ID,Latitude,Longitude", "osmid,y,x"])
def test_degrees_become_metres(tmp_path, header):
    """Second route: geodesics on the ellipsoid between all pairs."""
    files = tables(tmp_path, DEGREES.replace("osmid,lat,lon", header))
    roads = read_roads(*files, unit="degree" if header.endswith("x") else None)
    assert roads.degrees is not None
    for i, j in itertools.combinations(range(4), 2):
        _, _, ground = Geod(ellps="WGS84").inv(*roads.degrees[i], *roads.degrees[j])
        assert math.dist(roads.points[i], roads.points[j]) == pytest.approx(ground, rel=GEODESY)
    assert abs(roads.points.min(axis=0) + roads.points.max(axis=0)).max() < 0.1  # m: degrees to six decimals
    assert roads.points[1, 0] > roads.points[0, 0]
    assert roads.points[2, 1] > roads.points[1, 1]


def test_projected_tables_keep_their_degrees(tmp_path):
    nodes = "osmid,x,y,lat,lon\na,0,0,48.85,2.34\nb,100,0,48.85,2.3414\nc,100,80,48.8507,2.3414\nd,0,90,48.8508,2.34\n"
    roads = read_roads(*tables(tmp_path, nodes))
    assert roads.points[1].tolist() == [100, 0]
    assert roads.degrees[1].tolist() == [2.3414, 48.85]


ISLANDS = NODES + "e,500,0\nf,560,0\ng,900,900\n", EDGES + "e,f,0,61,False\n"


def test_parts_are_refused_by_name_or_left_out(tmp_path):
    files = tables(tmp_path, *ISLANDS)
    with pytest.raises(InputError, match="3 disconnected components") as caught:
        read_roads(*files)
    assert caught.value.value == "4 node(s) with a; 2 node(s) with e; 1 node(s) with g"
    kept = read_roads(*files, largest_component=True)
    assert (kept.ids.tolist(), kept.left_out) == (["a", "b", "c", "d"], 3)
    moved = ISLANDS[0].replace("a,0,0\n", "").replace("d,0,90\n", "d,0,90\na,0,0\n"), ISLANDS[1]
    swapped = read_roads(*tables(tmp_path, *moved), largest_component=True)
    first = np.array([kept.ids.tolist().index(name) for name in swapped.ids])
    assert np.array_equal(swapped.distances(), kept.distances()[np.ix_(first, first)])


@pytest.mark.parametrize(
    ("old", "new", "kind", "field", "message"),
    [
        ("osmid,", "name,", FileFormatError, "nodes", "no column named osmid or id"),
        (",y", ",north", FileFormatError, "nodes", "no column named y"),
        ("u,v", "from,v", FileFormatError, "edges", "no column named u"),
        (",length", ",metres", FileFormatError, "edges", "no column named length"),
        ("b,c,0,80", "b,z,0,80", InputError, "edges", "nodes do not list"),
        ("b,c,0,80", ",c,0,80", InputError, "edges", "u is empty"),
        ("b,c,0,80", "b,c,0,0", InputError, "edges", "positive"),
        ("b,c,0,80", "b,c,0,-80", InputError, "edges", "positive"),
        ("b,c,0,80", "b,c,0,inf", InputError, "edges", "finite"),
        ("b,c,0,80", "b,c,0,far", InputError, "edges", "finite"),
        ("b,100,0", "a,100,0", InputError, "nodes", "listed twice"),
        ("b,100,0", "b,nan,0", InputError, "nodes", "x must be a finite number"),
        ("b,100,0", "b,inf,0", InputError, "nodes", "finite"),
    ],
)
def test_bad_tables_are_refused(tmp_path, old, new, kind, field, message):
    assert (NODES + EDGES).count(old)
    files = tables(tmp_path, NODES.replace(old, new), EDGES.replace(old, new))
    with pytest.raises(kind, match=message) as caught:
        read_roads(*files)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("nodes", "edges", "unit"),
    [
        (DEGREES.replace("lat,lon", "y,x"), EDGES, None),
        (DEGREES.replace("lat,lon", "y,x"), EDGES, "m"),
        (DEGREES, EDGES, "m"),
        (NODES, EDGES, "degree"),
        (NODES, EDGES, "km"),
        (NODES, EDGES, "parsec"),
        (
            NODES,
            EDGES.replace("120", "0.12").replace(",80", ",0.08").replace("110", "0.11").replace("95", "0.095"),
            "m",
        ),
    ],
    ids=["degrees", "degrees as m", "columns of degrees", "m as degrees", "km", "unknown", "lengths in km"],
)
def test_units_are_not_mixed_up(tmp_path, nodes, edges, unit):
    with pytest.raises(UnitError):
        read_roads(*tables(tmp_path, nodes, edges), unit=unit)


def test_missing_and_empty_files_are_refused(tmp_path):
    nodes, edges = tables(tmp_path)
    with pytest.raises(FileFormatError, match="no such file"):
        read_roads(tmp_path / "none.csv", edges)
    edges.write_text("u,v,length\n")
    with pytest.raises(InputError, match="no lines"):
        read_roads(nodes, edges)


def test_the_metric_is_rebuilt_from_its_description():
    roads = synthetic_roads(12, 2)
    metric = 0.7 * roads.metric(0.01)
    told = metric.describe()
    again = Streets.from_description(told, scale=told["multiplier"], stored_edges=None)
    assert again.describe() == metric.describe()
    assert np.array_equal(again.edges(roads.domain).length, metric.edges(roads.domain).length)
    with pytest.raises(UnitError):
        metric.edges(md.Domain.points_at(roads.points, unit="km"))
    with pytest.raises(InputError, match="positive"):
        roads.metric(0.0)


@pytest.mark.parametrize("nodes", [3, 60, pytest.param(200, marks=pytest.mark.exhaustive)])
def test_synthetic_networks(nodes):
    """Law: a street has no third node nearer to both of its ends, or else an empty circle; the network is connected."""
    roads = synthetic_roads(nodes, 5)
    gap = roads.points[:, None] - roads.points[None]
    apart = np.sqrt((gap**2).sum(axis=2))
    ratio = roads.length / apart[roads.tail, roads.head]
    assert ((ratio >= 1) & (ratio <= 1.3)).all()
    assert np.isfinite(roads.distances()).all()
    shortcuts, chosen = 0, 0
    neighbours = set(zip(roads.tail.tolist(), roads.head.tolist(), strict=True))
    for a, b in itertools.combinations(range(nodes), 2):
        others = [k for k in range(nodes) if k not in (a, b)]
        relative = (np.maximum(apart[a], apart[b])[others] >= apart[a, b]).all()
        gabriel = (apart[a, others] ** 2 + apart[b, others] ** 2 >= apart[a, b] ** 2).all()
        assert not relative or (a, b) in neighbours
        assert gabriel or (a, b) not in neighbours
        shortcuts += gabriel and not relative
        chosen += gabriel and not relative and (a, b) in neighbours
    assert nodes < 60 or 0.1 * shortcuts < chosen < 0.6 * shortcuts
    with pytest.raises(InputError):
        synthetic_roads(2, 5)


@pytest.mark.parametrize("shape", few_by_default(["star", "path"], "star"))
@pytest.mark.parametrize("epsilon", few_by_default([0.002, 0.02], 0.02))
def test_trees_by_two_routes(shape, epsilon):
    """Blocks and columns against the whole program by HiGHS."""
    problem = along(tree(shape), epsilon)
    whole = optimal_design(problem, gap=1e-8, method="highs")
    for method in ("blocks", "columns"):
        other = optimal_design(problem, gap=1e-4, method=method)
        assert other.stopped == "gap"
        assert other.lower_bound <= whole.loss * (1 + SOLVED)
        assert other.loss >= whole.lower_bound * (1 - SOLVED)
        assert other.loss - other.lower_bound <= 1e-4 * other.loss


def test_a_straight_road_is_the_line():
    """Second route: the Euclidean metric on the same points, whose privacy and losses are those of the road."""
    roads = tree("path")
    road = along(roads, 0.01)
    points = md.Domain.points_at(roads.points[:, 0], unit="m")
    line = md.DesignProblem(
        domain=points,
        metric=md.Euclidean(epsilon=0.01, unit="m"),
        prior=md.priors.uniform(points),
        loss=md.losses.Distance(),
    )
    found = [md.solve(md.Optimal(problem=problem), gap=1e-7).attrs for problem in (road, line)]
    assert found[0]["expected_loss"] == pytest.approx(found[1]["expected_loss"], rel=2e-7)
    assert found[0]["lower_bound"] == pytest.approx(found[1]["lower_bound"], rel=2e-7)


@pytest.mark.exhaustive
def test_networks_without_eikonal_mechanisms_by_two_routes():
    """Short streets at a crossing: some weight of K w = 1 is negative. Blocks against the whole program."""
    problem = along(synthetic_roads(40, 3), 0.01)
    kernel = np.exp(-problem.distances)
    assert np.linalg.solve(kernel, np.ones(40)).min() < 0
    whole = optimal_design(problem, gap=1e-6, method="highs")
    blocks = optimal_design(problem, gap=GAP, method="blocks")
    assert blocks.stopped == "gap"
    assert blocks.cut[problem.distances <= 5].all()
    assert blocks.cut.sum() < 40 * 40
    assert whole.lower_bound * (1 - SOLVED) <= blocks.loss
    assert blocks.lower_bound <= whole.loss * (1 + SOLVED)
    assert blocks.loss <= whole.loss / (1 - GAP)


def test_larger_networks_do_not_go_to_the_whole_program():
    problem, methods = md.load_problem("streets", nodes=80, epsilon=0.01), []
    assert 10_000 < 2 * len(problem.edges.tail) * 80 < 60_000
    design = optimal_design(problem, gap=GAP, on_progress=lambda told: methods.append(told.method))
    assert "highs" not in methods
    assert design.stopped == "gap"


def test_a_file_keeps_streets_units_and_places(tmp_path):
    """Save, load, verify, sample, export and audit by the file alone."""
    mechanism, problem = streets_mechanism(), md.load_problem("streets", nodes=25, seed=3, prior="length")
    path = md.save(mechanism, tmp_path / "streets.nc")
    checked = md.verify(path)
    assert checked.certified
    assert checked.lower_bound_checked
    assert checked.edge_source == "streets"
    stored = md.load(path)
    assert stored["loss_table"].attrs["units"] == "m"
    table = md.probabilities(stored).values
    walks = synthetic_roads(25, 3).distances()
    assert stored.attrs["expected_loss"] == pytest.approx(
        (problem.prior_array[:, None] * table * walks).sum(), rel=1e-12
    )
    ratio = np.abs(np.log(table[:, None] / table[None])).max(axis=2)
    assert (ratio <= 0.01 * walks * (1 + DESIGN_MARGIN)).all()
    result = md.audit(table, problem)
    assert result.effective_epsilon == pytest.approx(0.01, rel=DESIGN_MARGIN)
    assert (result.epsilon_unit, result.loss_unit) == ("nats per m", "m")
    for suffix in (".csv", ".json"):
        prove_export(md.export(stored, tmp_path / f"streets{suffix}"))


def test_an_altered_street_is_refused():
    """A street made longer in the description, with a fresh checksum: edges and claim no longer agree with it."""
    mechanism = streets_mechanism()
    longer = mechanism.attrs["metric"].replace('"epsilon": 0.01', '"epsilon": 0.011')
    assert longer != mechanism.attrs["metric"]
    altered = rewritten(mechanism, metric=longer)
    found = md.verify(altered)
    assert not found.certified
    assert any("edge_length" in reason for reason in found.reasons)
    with pytest.raises(VerificationError):
        Sampler(mechanism=altered)


@cache
def paris_network():
    """Twelve crossings of central Paris, 70 to 100 m apart, in degrees."""
    east, north = (part.ravel() for part in np.meshgrid(2.34 + 0.00125 * np.arange(4), 48.85 + 0.0007 * np.arange(3)))
    number = np.arange(12).reshape(3, 4)
    pairs = np.concatenate(
        [
            np.stack([number[:, :-1], number[:, 1:]]).reshape(2, -1).T,
            np.stack([number[:-1], number[1:]]).reshape(2, -1).T,
        ]
    )
    nodes = "osmid,lon,lat\n" + "".join(
        f"{k},{x:.7f},{y:.7f}\n" for k, (x, y) in enumerate(zip(east, north, strict=True))
    )
    edges = "u,v,length\n" + "".join(f"{a},{b},{95 if b - a == 1 else 82}\n" for a, b in pairs)
    return nodes, edges


def test_a_position_in_degrees_is_reported_in_degrees(tmp_path, run_json):
    """From tables to a report: the nearest node by geodesics is taken, a report is a node to a tenth of the spacing."""
    nodes, edges = tables(tmp_path, *paris_network())
    roads = read_roads(nodes, edges)
    path = tmp_path / "streets.nc"
    md.save(md.solve(md.Optimal(problem=along(roads, 0.01))), path)
    mechanism = md.load(path)
    checked = md.verify(path)
    assert checked.certified, checked.reasons
    assert checked.edge_source == "streets"
    domain = Sampler(mechanism=mechanism).certificate.domain
    assert domain.plane == roads.plane
    assert "plane" not in checked.claim  # the claim is about lengths of streets, wherever the nodes stand
    random = np.random.default_rng(1)
    for longitude, latitude in zip(random.uniform(2.34, 2.3437, 5), random.uniform(48.85, 48.8514, 5), strict=True):
        ground = [Geod(ellps="WGS84").inv(longitude, latitude, *node)[2] for node in roads.degrees]
        _, document = run_json("sample", path, "--lon", longitude, "--lat", latitude, "-n", 5, "--seed", 3)
        assert document["reports"] == md.sample(mechanism, int(np.argmin(ground)), 5, rng=3).values.ravel().tolist()
        given = zip(document["reports"], document["report_longitude"], document["report_latitude"], strict=True)
        for report, east, north in given:
            assert Geod(ellps="WGS84").inv(east, north, *roads.degrees[report])[2] <= domain.spacing / 10
    for far in ((2.35, 48.85), (2.34, 48.9), (-157.66, -48.85)):
        code, refused = run_json("sample", path, "--lon", far[0], "--lat", far[1])
        assert (code, refused["error"]["field"]) == (2, "lon, lat")
        assert "outside the network" in refused["error"]["message"]


def test_nodes_in_degrees_are_exported_in_degrees(tmp_path):
    """The stand-alone verifier reads the table and proves it."""
    roads = read_roads(*tables(tmp_path, *paris_network()))
    mechanism = md.solve(md.Optimal(problem=along(roads, 0.01)))
    md.export(mechanism, tmp_path / "streets.csv", degrees=True)
    prove_export(tmp_path / "streets.csv")
    lines = (tmp_path / "streets.csv").read_text().splitlines()
    first = dict(zip(lines[0].split(","), lines[1].split(","), strict=True))
    found = [float(first[name]) for name in ("secret_longitude", "secret_latitude")]
    assert found == pytest.approx(roads.degrees[0].tolist(), abs=1e-9)


def test_degrees_need_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyproj", None)
    with pytest.raises(InputError, match="needs pyproj") as caught:
        read_roads(*tables(tmp_path, *paris_network()))
    assert caught.value.remedy == "pip install 'mechdesign[geo]'"
    assert read_roads(*tables(tmp_path)).plane is None


def test_synthetic_and_projected_networks_are_nowhere_on_earth(tmp_path, run_json):
    assert synthetic_roads(9, 1).domain.plane is None
    assert read_roads(*tables(tmp_path)).domain.describe() == {"kind": "points", "unit": "m"}
    path = md.save(streets_mechanism(), tmp_path / "streets.nc")
    code, refused = run_json("sample", path, "--lon", 2.34, "--lat", 48.85)
    assert (code, "has no position on Earth" in refused["error"]["message"]) == (2, True)


def test_places_are_exact_or_snapped_first(tmp_path, run_json):
    mechanism = streets_mechanism()
    path = md.save(mechanism, tmp_path / "streets.nc")
    domain = Sampler(mechanism=mechanism).certificate.domain
    here = domain.points[7]
    drawn = [run_json("sample", path, *at, "-n", 30, "--seed", 1)[1] for at in (["--at", *here], ["--secret", 7])]
    assert drawn[0]["reports"] == drawn[1]["reports"]
    code, refused = run_json("sample", path, "--at", *(here + 0.5))
    assert (code, "is not one of the places" in refused["error"]["message"]) == (2, True)
    assert nearest_node(domain, here + 0.5) == 7
    for location in np.random.default_rng(0).uniform(-100, 700, (20, 2)):
        apart = [math.dist(location, point) for point in domain.points]
        assert nearest_node(domain, location) == apart.index(min(apart))
    for bad in ([1.0], [math.nan, 0.0]):
        with pytest.raises(InputError):
            nearest_node(domain, bad)


def test_a_comparison_leaves_out_what_does_not_fit():
    problem = md.load_problem("streets", nodes=25, seed=3, prior="length")
    rows = {row["mechanism"]: row for row in compare(problem).to_dict("records")}
    assert {"optimal", "exponential", "randomized_response", "constant"} <= set(rows)
    assert not {"geometric_clamped", "planar_laplace"} & set(rows)
    best = rows["optimal"]["lower_bound"]
    assert all(row["loss"] >= best for row in rows.values() if row["ratio"] <= 1)
    assert all(row["expected_distance"] > 0 for row in rows.values())


def test_the_picture_shows_nodes_and_streets():
    mechanism = streets_mechanism()
    figure = plot_mechanism(mechanism, [3, 8])
    panels = [axes for axes in figure.axes if axes.get_title(loc="left")]
    table = md.probabilities(mechanism).values
    losses = (table * mechanism["loss_table"].values).sum(axis=1)
    shown = [mechanism["prior"].values, losses, table[3], table[8]]
    assert len(panels) == 4
    for axes, values in zip(panels, shown, strict=True):
        (dots,) = [drawn for drawn in axes.collections if isinstance(drawn, PathCollection)]
        assert np.allclose(dots.get_array(), values, rtol=1e-12)
        lines = axes.lines[0].get_xydata()
        assert len(lines) == 3 * mechanism.sizes["edge"]
        points = np.column_stack([mechanism["secret_x"].values, mechanism["secret_y"].values])
        assert np.array_equal(lines[0::3], points[mechanism["edge_tail"].values])
        assert np.array_equal(lines[1::3], points[mechanism["edge_head"].values])
    assert "Protects these" in figure.get_suptitle()
    assert "m along the streets, one report changes the odds" in figure.get_suptitle()
    assert "streets, eps = 0.01 nats per m" in figure.get_suptitle()
    assert len([a for a in plot_mechanism(mechanism).axes if a.get_title(loc="left")]) == 5
    with pytest.raises(InputError):
        plot_mechanism(mechanism, [25])


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"prior": "people"}, "prior"),
        ({"loss": "squared"}, "loss"),
        ({"largest_component": "maybe"}, "largest_component"),
        ({"nodes_file": "nodes.csv"}, "edges_file"),
        ({"epsilon": -1.0}, "epsilon"),
    ],
)
def test_bad_parameters(given, field):
    with pytest.raises(InputError) as caught:
        _ = md.load_problem("streets", nodes=9, **given).edges
    assert caught.value.field == field


def test_parameters_name_the_users_tables(tmp_path):
    nodes, edges = tables(tmp_path, *ISLANDS)
    problem = md.load_problem(
        "streets", nodes_file=str(nodes), edges_file=str(edges), largest_component="yes", prior="length"
    )
    assert problem.distances == pytest.approx(0.01 * read_roads(nodes, edges, largest_component=True).distances())
    assert problem.prior_array == pytest.approx(np.array([120, 200, 190, 110]) / 620)
    straight = md.load_problem(
        "streets", nodes_file=str(nodes), edges_file=str(edges), largest_component="yes", loss="straight"
    )
    assert straight.loss_matrix[0, 2] == pytest.approx(math.hypot(100, 80))


@pytest.mark.study
def test_the_script_sets_both_kinds_of_privacy_side_by_side():
    words = [sys.executable, str(ROOT / "scripts" / "streets.py"), "--nodes", "15"]
    output = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
    rows = {
        line[:22].strip(): [float(word) for word in line[22:].split()]
        for line in output
        if line[:7] in ("streets", "straigh")
    }
    streets, straight, reduced = (rows[name] for name in ("streets", "straight lines", "streets, eps reduced"))
    assert streets[3] == pytest.approx(0.01, rel=1e-4)
    assert straight[4] == pytest.approx(0.01, rel=1e-4)
    assert straight[3] <= 0.01 * (1 + 1e-4) < streets[4]
    assert reduced[4] <= 0.01 * (1 + 1e-4)
    assert streets[0] < straight[0] < reduced[0]


@pytest.mark.study
@pytest.mark.parametrize("network", ["paris", "synthetic"])
def test_networks_of_the_size_of_a_district(network):
    if network == "paris":
        files = SHARED / "paris_roads_nodes.csv", SHARED / "paris_roads_edges.csv"
        if not files[0].is_file():
            pytest.skip("the tables of the streets of central Paris are not here")
        problem = along(read_roads(*files), 0.01)
        assert (problem.domain.size, len(problem.edges.tail)) == (128, 185)
    else:
        problem = md.load_problem("streets")
        assert problem.domain.size == 500
    mechanism = md.solve(md.Optimal(problem=problem), gap=GAP)
    assert mechanism.attrs["stopped"] == "gap"
    checked = md.verify(mechanism)
    assert checked.certified
    assert checked.lower_bound_checked
    assert checked.expected_loss - mechanism.attrs["lower_bound"] <= GAP * checked.expected_loss

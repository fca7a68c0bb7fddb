from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from itertools import product
from math import atan, cos, pi, sqrt

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from mechdesign import Discrete, Domain, Eikonal, Euclidean, Graph, PrivacyLevel, Raster, load_problem
from mechdesign.errors import InputError, UnitError
from mechdesign.geo import Streets
from mechdesign.problem.lattice import stencil_pairs
from mechdesign.problem.metrics import metric_from_description

DEFECT = Fraction(1, 2**42)  # two roundings down, of the length and of the scale, by 2^-44 and an ulp each
REACHED = 1e-4  # displacements of at most 20 cells come this close to the worst direction
SLACK = 1e-12  # edge lengths are rounded down by 2^-44

MASK = np.ones((5, 4), bool)
MASK[2, 1:3] = False
DOMAIN = Domain.grid((5, 4), cell=(0.3, 0.7), unit="m", mask=MASK)
LEVEL = PrivacyLevel(
    raster=Raster(
        x=np.array([0.1, 0.5, 1.6]),
        y=np.array([0.0, 1.1]),
        values=np.array([[0.5, 1.5], [2.5, 0.7], [1.1, 0.9]]),
        unit="m",
    )
)
HOLED = np.ones((3, 4, 3), bool)
HOLED[1, 1:3, 1] = HOLED[2, 2, :2] = False
SPACE = Domain.grid((3, 4, 3), cell=(0.3, 0.7, 0.5), unit="m", mask=HOLED)
DEEP = PrivacyLevel(
    raster=Raster(
        x=LEVEL.raster.x,
        y=LEVEL.raster.y,
        z=np.array([-0.2, 0.4, 1.3]),
        values=LEVEL.raster.values[:, :, None] * np.array([1.0, 0.6, 1.7]),
        unit="m",
    )
)
METRICS = {
    "euclidean": Euclidean(epsilon=0.7, unit="metres"),
    "discrete": Discrete(epsilon=1.3),
    "eikonal 4": Eikonal(level=LEVEL, stencil=4),
    "eikonal 8": Eikonal(level=LEVEL),
    "eikonal 16": Eikonal(level=LEVEL, stencil=16),
    "eikonal 32": Eikonal(level=LEVEL, stencil=32),
    "eikonal 64": Eikonal(level=DEEP, stencil=64),
    "space, euclidean": Euclidean(epsilon=0.7, unit="m"),
    "space, eikonal 6": Eikonal(level=LEVEL, stencil=6),
    "space, eikonal 18": Eikonal(level=DEEP, stencil=18),
    "space, eikonal 26": Eikonal(level=DEEP, stencil=26),
}


STREETS = Streets(epsilon=1 / 3, unit="m", tail=[0, 1, 3], head=[1, 2, 2], length=[1.0, 1 / 7, 5e-324])


def domain_of(name):
    return SPACE if name.startswith("space") else DOMAIN


def restore(metric):
    return metric_from_description(json.loads(json.dumps(metric.describe())))


def same_bits(left, right):
    return all(getattr(left, f).tobytes() == getattr(right, f).tobytes() for f in ("tail", "head", "length"))


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.obligation("edges-imply-pairs")
def test_edges_are_unique_and_imply_distances(name):
    metric, domain = METRICS[name], domain_of(name)
    edges = metric.edges(domain)
    assert (edges.tail < edges.head).all()
    assert len(set(zip(edges.tail.tolist(), edges.head.tolist(), strict=True))) == len(edges.tail)
    assert (np.isfinite(edges.length) & (edges.length > 0)).all()
    distances = metric.distances(domain)
    assert (distances[edges.tail, edges.head] <= edges.length).all()
    assert np.array_equal(distances, distances.T)
    assert np.isfinite(distances).all()


@pytest.mark.parametrize("scale", [1.0, 0.9, 1.7])
@pytest.mark.parametrize("domain", [DOMAIN, SPACE], ids=["plane", "space"])
@pytest.mark.obligation("lengths-rounded-down")
def test_euclidean_lengths_are_rounded_down(domain, scale):
    edges = (scale * METRICS["euclidean"]).edges(domain)
    points = [[Fraction(c) for c in place] for place in domain.points.tolist()]
    for tail, head, length in zip(edges.tail, edges.head, edges.length, strict=True):
        square = sum((a - b) ** 2 for a, b in zip(points[tail], points[head], strict=True))
        square *= (Fraction(0.7) * Fraction(scale)) ** 2
        assert square * (1 - DEFECT) ** 2 <= Fraction(float(length)) ** 2 <= square


TINY = [1e-162, 1e-155, 1e-150, 1e-144, 1e-100]
LEVELS = [5e-324, 1e-310, 1e-300, 1e-150, 1.0, 1e140, 1e300]


@pytest.mark.parametrize("cell", [*TINY, 0.3, 1e100, 1e148])
@pytest.mark.obligation("lengths-rounded-down")
def test_euclidean_length_never_exceeds_claim(cell):
    """Subnormal squares round up, at 1e-162 to 1.4 times the claim: every length is sound or refused."""
    domain = Domain.grid((3, 3), cell=(cell, 3 * cell), unit="m")
    points = [[Fraction(c) for c in place] for place in domain.points.tolist()]
    positive_lengths = 0
    for epsilon, scale in product(LEVELS, [0.0, 5e-324, 1e-300, 0.9, 1.0, 1e300]):
        try:
            edges = Euclidean(epsilon=epsilon, unit="m", scale=scale).edges(domain)
        except InputError:
            continue
        for tail, head, length in zip(edges.tail, edges.head, edges.length.tolist(), strict=True):
            square = sum((a - b) ** 2 for a, b in zip(points[tail], points[head], strict=True))
            square *= (Fraction(epsilon) * Fraction(scale)) ** 2
            assert Fraction(length) ** 2 <= square
            assert Fraction(length) ** 2 >= square * (1 - DEFECT) ** 2 or length == 0
        positive_lengths += edges.length.all()
    assert positive_lengths >= (0 if cell < 1e-144 else 5)


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-300, 1e-10, 1 / 3, 1.0, 1e10, 1e300])
@pytest.mark.parametrize("base", [5e-324, 1e-310, 1e-150, 1 / 3, 1e10, 1e150])
@pytest.mark.obligation("lengths-rounded-down")
def test_products_of_given_lengths_are_rounded_down(base, scale):
    """The lengths of graphs and streets, and the epsilon of the discrete metric, times one and two factors."""
    ends, length = {"tail": [0, 1], "head": [1, 2]}, [base, 3 * base]
    graph = Graph(**ends, length=length, scale=scale)
    streets = [Streets(**ends, length=length, epsilon=e, unit="1", scale=scale) for e in LEVELS]
    discrete = Discrete(epsilon=base, scale=scale)
    for metric in (graph, *streets, discrete, 0.7 * (0.9 * graph)):
        try:
            scaled_lengths = metric.edges(Domain.nodes(3)).length.tolist()
        except InputError:
            continue
        plain_lengths = [base] * 3 if metric is discrete else length
        factor = Fraction(metric.scale) * Fraction(getattr(metric, "epsilon", 1.0) if metric in streets else 1)
        for plain, one in zip(plain_lengths, scaled_lengths, strict=True):
            exact = factor * Fraction(plain)
            assert Fraction(one) <= exact
            assert one == 0 or Fraction(one) >= exact * (1 - DEFECT)
            assert one == plain or metric.scale != 1 or metric in streets


def test_edges_too_short_for_doubles_are_refused():
    with pytest.raises(InputError, match="shorter than 2\\^-960 nats") as caught:
        Euclidean(epsilon=1.0, unit="m").edges(Domain.grid((3, 3), cell=1e-162, unit="m"))
    assert caught.value.field == "epsilon"
    assert caught.value.remedy == "use a larger eps or unit"


FINGERPRINTS = {
    ("philadelphia", "cells 2, stencil 64"): "5ba5d7a0ab02",
    ("philadelphia", "cells 5, stencil 16"): "0e22eb42c0cb",
    ("philadelphia", ""): "66cb7fbf076f",
    ("philadelphia", "cells 35, stencil 16"): "6be5eee5007a",
    ("philadelphia", "cells 100"): "f49d19cc2e88",
    ("philadelphia", "cells 5, slope 1.0, floor 0.04, stencil 16"): "6ea5c5cc2893",
    ("neighbourhoods", "cells 5"): "e153eceb9b30",
    ("neighbourhoods", "cells 15"): "bcdce961e288",
    ("neighbourhoods", "cells 40, stencil 16"): "bc235d3371d4",
    ("flat", "cells 40, cell 0.3, epsilon 0.7, stencil 64"): "5c617bcceeb7",
    ("euclidean", "cells 40, cell 0.3, epsilon 0.7"): "6fee4e759d79",
    ("line", "cells 40"): "32f2135e8c88",
    ("discrete", ""): "d923159eb9d7",
    ("euclidean", ""): "f192f5a151a8",
    ("income", ""): "fc3e45ab5bcd",
    ("streets", ""): "2a1725ded97c",
}


@pytest.mark.parametrize(("problem", "parameters"), FINGERPRINTS)
def test_the_lengths_of_shipped_problems_keep_their_bits(problem, parameters):
    """Claims carry a fingerprint of the lengths: a file that was written once has to verify for good."""
    edges = load_problem(problem, **dict(parameter.split() for parameter in parameters.split(", ") if parameter)).edges
    digest = hashlib.sha256()
    for part in (edges.tail, edges.head, edges.length):
        digest.update(np.ascontiguousarray(part).tobytes())
    assert digest.hexdigest()[:12] == FINGERPRINTS[problem, parameters]


@pytest.mark.parametrize("name", METRICS)
def test_a_scale_multiplies_every_length_and_rounds_down(name):
    metric, domain = METRICS[name], domain_of(name)
    plain, scaled = metric.edges(domain), (0.9 * metric).edges(domain)
    assert np.array_equal(plain.tail, scaled.tail)
    for whole, part in zip(plain.length, scaled.length, strict=True):
        product = Fraction(0.9) * Fraction(float(whole))
        assert product * (1 - DEFECT) <= Fraction(float(part)) <= product
    assert (0.5 * (0.9 * metric)).scale == 0.45


@pytest.mark.parametrize("scale", [1.0, 0.9])
@pytest.mark.parametrize("name", METRICS)
def test_a_described_metric_comes_back_to_the_bit(name, scale):
    scaled, domain = scale * METRICS[name], domain_of(name)
    assert same_bits(restore(scaled).edges(domain), scaled.edges(domain))
    assert restore(scaled).claim(domain) == scaled.claim(domain)
    assert restore(scaled).describe() == scaled.describe()


def test_a_third_axis_is_described_where_the_map_has_one():
    flat, deep = (Eikonal(level=level).describe()["level"] for level in (LEVEL, DEEP))
    assert list(flat) == ["x", "y", "eps", "unit"]
    assert list(deep) == ["x", "y", "z", "eps", "unit"]
    assert deep["z"] == [-0.2, 0.4, 1.3]


def test_a_graph_is_its_edges_and_other_kinds_are_unknown():
    graph = 0.5 * Graph(tail=[0], head=[1], length=[1.0])
    edges = graph.edges(Domain.nodes(2))
    again = metric_from_description(graph.describe(), edges)
    assert (again.kind, again.scale) == ("graph", 1.0)
    assert same_bits(again.edges(Domain.nodes(2)), edges)
    with pytest.raises(InputError, match="parts"):
        restore(graph).edges(Domain.nodes(2))
    with pytest.raises(InputError, match="unknown metric") as caught:
        metric_from_description({"kind": "taxicab", "multiplier": 1})
    assert caught.value.field == "metric"


@pytest.mark.parametrize("metric", [STREETS, Discrete(epsilon=2), Euclidean(epsilon=2, unit="m"), 3 * STREETS])
def test_whole_numbers_and_lists_come_back(metric):
    assert restore(metric).describe() == metric.describe()
    assert metric.level_at(DOMAIN) is None or metric.level_at(DOMAIN).dtype == np.float64


DESCRIBED = {
    "discrete": METRICS["discrete"].describe(),
    "euclidean": METRICS["euclidean"].describe(),
    "graph": Graph(tail=[0], head=[1], length=[1.0]).describe(),
    "streets": STREETS.describe(),
    "eikonal": METRICS["eikonal 8"].describe(),
    "deep": METRICS["space, eikonal 26"].describe(),
}
INVALID_NUMBERS = [True, None, "1", [1.0], {}, float("nan"), float("inf"), -float("inf"), 10**400, 2**53 + 1]
INVALID_INTEGERS = [True, None, "8", 8.0, [8], 10**30, -1]
INVALID_LISTS = [
    None,
    1.0,
    "1.0",
    {"0": 1.0},
    [1.0, [2.0]],
    [[1.0]],
    [1.0, True],
    [1.0, None],
    [1.0, "2"],
    [1.0, float("nan")],
]
MISSING = object()
HOSTILE = [
    *(
        (kind, {name: bad}, name)
        for kind, name in (
            ("discrete", "multiplier"),
            ("discrete", "epsilon"),
            ("euclidean", "epsilon"),
            ("graph", "multiplier"),
            ("streets", "epsilon"),
            ("streets", "multiplier"),
            ("eikonal", "multiplier"),
        )
        for bad in INVALID_NUMBERS
    ),
    *((kind, {"multiplier": -1.0}, "multiplier") for kind in DESCRIBED),
    *((kind, {"epsilon": bad}, "epsilon") for kind in ("discrete", "euclidean", "streets") for bad in (0, 0.0, -1.0)),
    *(("eikonal", {"stencil": bad}, "stencil") for bad in INVALID_INTEGERS),
    *((kind, {"unit": bad}, "unit") for kind in ("euclidean", "streets") for bad in (None, 1, ["m"], "parsec")),
    *(("streets", {"length": bad}, "length") for bad in INVALID_LISTS),
    *(
        ("streets", {end: [*bad, 1]}, end)
        for end in ("tail", "head")
        for bad in (
            [0, -1],
            [0, 2**31],
            [0, 2**63],
            [0, 10**30],
            [0, 1.0],
            [0, True],
            [0, None],
            [0, "1"],
            [0, [1]],
        )
    ),
    *(("eikonal", {"level": bad}, "level") for bad in (None, 1.0, [], "m", {})),
    *(
        (kind, {"level": {name: bad}}, name)
        for kind, name in (("eikonal", "x"), ("eikonal", "y"), ("deep", "z"))
        for bad in INVALID_LISTS
    ),
    *(
        ("eikonal", {"level": {"eps": bad}}, "eps")
        for bad in (
            None,
            1.0,
            [1.0],
            [[1.0, 1.0], [1.0]],
            [[1.0, True]],
            [[1.0, "2"]],
            [[[1.0]]],
            [[1.0, float("nan")]],
            [[10**400]],
        )
    ),
    ("eikonal", {"level": {"eps": [[1.0, 1.0]]}}, "level"),
    ("eikonal", {"level": {"eps": [[]]}}, "level"),
    ("eikonal", {"level": {"eps": []}}, "level"),
    ("eikonal", {"level": {"x": [0.1, 0.5, 0.5]}}, "level"),
    ("eikonal", {"level": {"x": [0.1, 0.5, 1e200]}}, "level"),
    ("eikonal", {"level": {"eps": [[0.5, 1.5], [2.5, 0.0], [1.1, 0.9]]}}, "epsilon"),
    ("eikonal", {"level": {"eps": [[0.5, 1.5], [2.5, 1e-300], [1.1, 0.9]]}}, "epsilon"),
    ("eikonal", {"level": {"unit": 1}}, "unit"),
    ("eikonal", {"level": {"w": [0.0]}}, "level"),
    *((kind, {"factor": 2.0}, "metric") for kind in DESCRIBED),
    *((kind, {"multiplier": MISSING}, "metric") for kind in DESCRIBED),
    *((kind, {"kind": bad}, "metric") for kind in DESCRIBED for bad in ("taxicab", None, 1, ["graph"], MISSING)),
]  # the metric, the change of its description, and the field that the error names


@pytest.mark.parametrize(("kind", "change", "field"), HOSTILE)
@pytest.mark.obligation("descriptions")
def test_invalid_metric_descriptions_are_refused(kind, change, field):
    described = json.loads(json.dumps(DESCRIBED[kind]))
    inner = change.get("level")
    if isinstance(inner, dict) and inner:
        change = {"level": described["level"] | inner}
    described = {name: value for name, value in (described | change).items() if value is not MISSING}
    with pytest.raises(InputError) as caught:
        metric_from_description(described).edges(DOMAIN if kind != "deep" else SPACE)
    assert caught.value.field == field


@pytest.mark.parametrize("description", [None, [], "discrete", 1])
def test_a_description_is_a_table(description):
    with pytest.raises(InputError) as caught:
        metric_from_description(description)
    assert caught.value.field == "metric"


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        (METRICS["euclidean"], ("Euclidean distance", "0.69999999999999996", "per m")),
        (METRICS["discrete"], ("discrete metric", "1.3", "local differential privacy")),
        (METRICS["eikonal 16"], ("16-neighbour graph", "line integral of the bilinear", "0.5 to 2.5 nats per m")),
        (METRICS["eikonal 32"], ("32-neighbour graph", f"map {LEVEL.raster.fingerprint()}")),
        (METRICS["space, eikonal 26"], ("26-neighbour graph", "trilinear", "0.3 to 4.25", DEEP.raster.fingerprint())),
        (Graph(tail=[0], head=[1], length=[1.0]), ("shortest-path", "edges listed")),
    ],
)
def test_claims_name_the_metric(metric, words):
    assert all(word in metric.claim(DOMAIN) for word in words)


def test_levels_of_metrics():
    assert METRICS["euclidean"].level_at(DOMAIN).tolist() == [0.7] * DOMAIN.size
    assert np.array_equal(METRICS["eikonal 8"].level_at(DOMAIN), LEVEL.at(DOMAIN.points))
    assert np.array_equal(METRICS["space, eikonal 26"].level_at(SPACE), DEEP.at(SPACE.points))
    assert METRICS["discrete"].level_at(DOMAIN) is None
    assert METRICS["discrete"].smallest_level is None
    assert (2 * METRICS["eikonal 8"]).smallest_level == 1.0
    assert (2 * METRICS["euclidean"]).smallest_level == 1.4


# The largest ratio of graph to Euclidean length over all directions. In the plane it is 1 / cos of half the widest
# angle between neighbouring steps; in space it is the length of the longest p with <p, step> <= |step| for all steps.
STRETCHES = {
    4: sqrt(2),
    8: 1 / cos(pi / 8),
    16: 1 / cos(atan(1 / 2) / 2),
    32: 1 / cos(atan(1 / 3) / 2),
    64: 1 / cos(atan(1 / 4) / 2),
    6: sqrt(3),
    18: sqrt(3 / 2),
    26: sqrt(1 + (sqrt(2) - 1) ** 2 + (sqrt(3) - sqrt(2)) ** 2),
}
# Steps over edges keep the parity of a displacement: with 18 neighbours (1, 1, 1) takes one over a face and one over an
# edge. Every other displacement is the shortest sum of real multiples of steps, or further and thus less in proportion.
NEAR = STRETCHES | {18: (1 + sqrt(2)) / sqrt(3)}


@pytest.mark.parametrize("stencil", STRETCHES)
def test_stretch_of_the_stencils_is_the_largest_over_a_grid(stencil):
    domain = Domain.grid((21, 21) if stencil not in (6, 18, 26) else (13, 6, 5), cell=0.5, unit="m")
    metric = Eikonal(level=PrivacyLevel.constant(1.5, "m"), stencil=stencil)
    ratio = metric.distances(domain)[np.triu_indices(domain.size, 1)]
    ratio /= 1.5 * domain.euclidean_to(domain)[np.triu_indices(domain.size, 1)]
    assert ratio.min() >= 1 - SLACK
    assert NEAR[stencil] - REACHED <= ratio.max() <= NEAR[stencil] * (1 + SLACK)


@pytest.mark.parametrize("stencil", STRETCHES)
def test_stencil_stretch_follows_from_its_hull(stencil):
    domain = Domain.grid((11, 11) if stencil not in (6, 18, 26) else (3, 3, 3), cell=1.0, unit="m")
    centre = domain.size // 2
    tail, head = stencil_pairs(domain, stencil)
    around = np.concatenate([head[tail == centre], tail[head == centre]])
    steps = domain.points[around] - domain.points[centre]
    hull = ConvexHull(steps / np.linalg.norm(steps, axis=1, keepdims=True))
    assert 1 / np.min(-hull.equations[:, -1]) == pytest.approx(STRETCHES[stencil], rel=SLACK)


def test_docstring_prints_the_stretches():
    text = " ".join(Eikonal.__doc__.split())
    printed = [f"{100 * (stretch - 1):.3g}" for stretch in NEAR.values()]
    assert ", ".join(printed[:4]) + f" or {printed[4]} % for 4, 8, 16, 32 or 64" in text
    assert f"{printed[5]}, {printed[6]} or {printed[7]} % for 6, 18 or 26" in text
    assert f"{100 * (STRETCHES[18] - 1):.3g} % between places far apart" in text


@pytest.mark.parametrize("metric", [Eikonal(level=LEVEL), 0.9 * Eikonal(level=LEVEL, stencil=4)])
def test_a_mask_that_cuts_the_domain_is_refused(metric):
    mask = np.ones((7, 3), bool)
    mask[[2, 5]] = False
    with pytest.raises(InputError, match="nothing would be protected") as caught:
        metric.edges(Domain.grid((7, 3), cell=1.0, unit="m", mask=mask))
    assert (caught.value.field, caught.value.exit_code) == ("mask", 2)
    assert caught.value.value.startswith("3 parts, of [6, 6, 3] places, around places [0, 6, 12]")


@pytest.mark.parametrize("metric", [Euclidean(epsilon=1.0, unit="km"), Eikonal(level=PrivacyLevel.constant(1.0, "km"))])
def test_another_unit_is_refused(metric):
    with pytest.raises(InputError, match=r"per km while the domain is in m\b") as caught:
        metric.edges(DOMAIN)
    assert caught.value.field == "unit"


@pytest.mark.parametrize(
    ("make", "error", "field"),
    [
        *((lambda e=e: Euclidean(epsilon=e, unit="m"), InputError, "epsilon") for e in (0.0, -1.0, np.nan, np.inf)),
        *((lambda e=e: Discrete(epsilon=e), InputError, "epsilon") for e in (0.0, -1.0, np.nan, np.inf)),
        *((lambda f=f: f * METRICS["discrete"], InputError, "scale") for f in (-0.5, np.nan, np.inf)),
        (lambda: Euclidean(epsilon=1.0, unit="parsec"), UnitError, "unit"),
        (lambda: Eikonal(level=LEVEL, stencil=6).edges(DOMAIN), InputError, "stencil"),
        (lambda: Eikonal(level=LEVEL).edges(SPACE), InputError, "stencil"),
    ],
)
def test_bad_parameters_are_refused(make, error, field):
    with pytest.raises(error) as caught:
        make()
    assert caught.value.field == field


@pytest.mark.obligation("edges-imply-pairs")
def test_graph_distances_are_shortest_paths():
    graph = Graph(tail=[1, 1, 0, 3, 3], head=[0, 2, 2, 2, 0], length=[1.0, 2.0, 5.0, 0.5, 4.0])
    assert graph.edges(Domain.nodes(4)).tail.tolist() == [0, 1, 0, 2, 0]
    wanted = [[0, 1, 3, 3.5], [1, 0, 2, 2.5], [3, 2, 0, 0.5], [3.5, 2.5, 0.5, 0]]
    assert graph.distances(Domain.nodes(4)).tolist() == wanted


@pytest.mark.parametrize(
    ("tail", "head", "length", "field", "message"),
    [
        ([0, 1, 2], [1, 2, 2], [1, 1, 1], "edges", "self-loop"),
        ([0, 1, 1], [1, 2, 0], [1, 1, 1], "edges", "twice"),
        ([0, 1], [1, 3], [1, 1], "edges", "outside"),
        ([0, -1], [1, 2], [1, 1], "edges", "outside"),
        ([0, 1], [1, 2], [1, 0], "length", "positive"),
        ([0, 1], [1, 2], [1, -2], "length", "positive"),
        ([0, 1], [1, 2], [1, np.nan], "length", "positive"),
        ([0, 1], [1, 2], [1], "edges", "equally long"),
        ([0, 2**63], [1, 2], [1, 1], "tail", "numbers of places"),
        ([0, 10**30], [1, 2], [1, 1], "tail", "numbers of places"),
        ([0, 1.5], [1, 2], [1, 1], "tail", "numbers of places"),
        ([0, 1], [True, False], [1, 1], "head", "numbers of places"),
        ([0, 1], [1, 2], ["1", "1"], "length", "ArrayLike"),
        ([0, 1], [1, 2], [1, None], "length", "numbers"),
        ([0], [1], [1], "mask", "parts"),
        ([], [], [], "mask", "parts"),
    ],
)
def test_bad_graphs_are_refused(tail, head, length, field, message):
    with pytest.raises(InputError, match=message) as caught:
        Graph(tail=tail, head=head, length=length).edges(Domain.nodes(3))
    assert caught.value.field == field

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from mechdesign.errors import InputError, UnitError
from mechdesign.setting.domain import Domain
from mechdesign.setting.levels import PrivacyLevel
from mechdesign.setting.metrics import Discrete, Eikonal, Euclidean, Graph, metric_from_description
from mechdesign.setting.rasters import Raster

DEFECT = Fraction(1, 2**42)  # two roundings down, of the length and of the multiplier, by 2^-44 and an ulp each
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
METRICS = {
    "euclidean": Euclidean(epsilon=0.7, unit="metres"),
    "discrete": Discrete(epsilon=1.3),
    "eikonal 4": Eikonal(level=LEVEL, stencil=4),
    "eikonal 8": Eikonal(level=LEVEL),
    "eikonal 16": Eikonal(level=LEVEL, stencil=16),
}


def rebuilt(metric):
    return metric_from_description(json.loads(json.dumps(metric.describe())))


def same_bits(left, right):
    return all(getattr(left, f).tobytes() == getattr(right, f).tobytes() for f in ("tail", "head", "length"))


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_edges_are_ordered_unique_positive_and_imply_the_distances(metric):
    edges = metric.edges(DOMAIN)
    assert (edges.tail < edges.head).all()
    assert len(set(zip(edges.tail.tolist(), edges.head.tolist(), strict=True))) == len(edges.tail)
    assert (np.isfinite(edges.length) & (edges.length > 0)).all()
    distances = metric.distances(DOMAIN)
    assert (distances[edges.tail, edges.head] <= edges.length).all()
    assert np.array_equal(distances, distances.T)
    assert np.isfinite(distances).all()


@pytest.mark.parametrize("multiplier", [1.0, 0.9, 1.7])
def test_euclidean_lengths_are_rounded_down(multiplier):
    edges = (multiplier * METRICS["euclidean"]).edges(DOMAIN)
    points = [[Fraction(c) for c in place] for place in DOMAIN.points.tolist()]
    for tail, head, length in zip(edges.tail, edges.head, edges.length, strict=True):
        square = sum((a - b) ** 2 for a, b in zip(points[tail], points[head], strict=True))
        square *= (Fraction(0.7) * Fraction(multiplier)) ** 2
        assert square * (1 - DEFECT) ** 2 <= Fraction(float(length)) ** 2 <= square


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_a_multiplier_scales_every_length_and_rounds_down(metric):
    plain, scaled = metric.edges(DOMAIN), (0.9 * metric).edges(DOMAIN)
    assert np.array_equal(plain.tail, scaled.tail)
    for whole, part in zip(plain.length, scaled.length, strict=True):
        product = Fraction(0.9) * Fraction(float(whole))
        assert product * (1 - DEFECT) <= Fraction(float(part)) <= product
    assert (0.5 * (0.9 * metric)).multiplier == 0.45


@pytest.mark.parametrize("multiplier", [1.0, 0.9])
@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_a_described_metric_comes_back_to_the_bit(metric, multiplier):
    scaled = multiplier * metric
    assert same_bits(rebuilt(scaled).edges(DOMAIN), scaled.edges(DOMAIN))
    assert rebuilt(scaled).claim(DOMAIN) == scaled.claim(DOMAIN)


def test_a_graph_is_its_edges_and_other_kinds_are_unknown():
    assert rebuilt(Graph(tail=[0], head=[1], length=[1.0])) is None
    with pytest.raises(InputError, match="unknown metric") as caught:
        metric_from_description({"kind": "taxicab", "multiplier": 1})
    assert caught.value.field == "metric"


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        (METRICS["euclidean"], ("Euclidean distance", "0.69999999999999996", "per m")),
        (METRICS["discrete"], ("discrete metric", "1.3", "local differential privacy")),
        (METRICS["eikonal 16"], ("16-neighbour graph", "line integral", "0.5 to 2.5", LEVEL.raster.fingerprint())),
        (Graph(tail=[0], head=[1], length=[1.0]), ("shortest-path", "edges listed")),
    ],
)
def test_claims_name_the_metric(metric, words):
    assert all(word in metric.claim(DOMAIN) for word in words)


def test_levels_of_metrics():
    assert METRICS["euclidean"].level_at(DOMAIN).tolist() == [0.7] * DOMAIN.size
    assert np.array_equal(METRICS["eikonal 8"].level_at(DOMAIN), LEVEL.at(DOMAIN.points))
    assert METRICS["discrete"].level_at(DOMAIN) is None
    assert METRICS["discrete"].smallest_level is None
    assert (2 * METRICS["eikonal 8"]).smallest_level == 1.0
    assert (2 * METRICS["euclidean"]).smallest_level == 1.4


@pytest.mark.parametrize(("stencil", "stretch"), [(4, 1.41422), (8, 1.08240), (16, 1.02749)])
def test_stretch_of_the_stencils(stencil, stretch):
    domain = Domain.grid((21, 21), cell=0.5, unit="m")
    metric = Eikonal(level=PrivacyLevel.constant(1.5, "m"), stencil=stencil)
    ratio = metric.distances(domain)[np.triu_indices(domain.size, 1)]
    ratio /= 1.5 * domain.euclidean_to(domain)[np.triu_indices(domain.size, 1)]
    assert ratio.min() >= 1 - SLACK
    assert stretch - REACHED <= ratio.max() <= stretch


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
        *((lambda f=f: f * METRICS["discrete"], InputError, "multiplier") for f in (-0.5, np.nan, np.inf)),
        (lambda: Euclidean(epsilon=1.0, unit="parsec"), UnitError, "unit"),
        (lambda: Eikonal(level=LEVEL, stencil=6).edges(DOMAIN), InputError, "stencil"),
    ],
)
def test_bad_parameters_are_refused(make, error, field):
    with pytest.raises(error) as caught:
        make()
    assert caught.value.field == field


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
        ([0], [1], [1], "mask", "parts"),
        ([], [], [], "mask", "parts"),
    ],
)
def test_bad_graphs_are_refused(tail, head, length, field, message):
    with pytest.raises(InputError, match=message) as caught:
        Graph(tail=tail, head=head, length=length).edges(Domain.nodes(3))
    assert caught.value.field == field

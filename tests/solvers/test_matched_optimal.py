"""The least epsilon of the optimal program at one expected distance."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from fixtures.integer_oracles import are_rows, reference_violations
from fixtures.mechanisms import design_of
from scipy.optimize import brentq

from mechdesign import DesignProblem, Domain, Eikonal, PrivacyLevel, load_problem, priors
from mechdesign.errors import InputError, SolverError, UnsuitableError
from mechdesign.losses import Distance
from mechdesign.programs import MatchedOptimal, matched

MATCHED = 1e-6  # asked of the expected distance
ROOT = 1e-6  # accuracy of the second route, a root search over cvxpy's default tolerances
TARGET = 150.0


def program(cells: int = 4) -> MatchedOptimal:
    return MatchedOptimal(problem=load_problem("paris", cells=cells, distance=TARGET), distance=TARGET)


@cache
def epsilon_by_statement() -> float:
    """The root of the cvxpy statement over all pairs."""
    matched = program()
    return float(brentq(lambda e: matched.statement(e).solve(solver="HIGHS") - TARGET, 0.004, 0.02, rtol=ROOT / 10))


@pytest.mark.parametrize("direct", [4_000, 0], ids=["all pairs", "graph"])
def test_the_interval_encloses_the_least_epsilon(direct: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matched, "MAX_DIRECT_PAIRS", direct)
    stated, gap = program(), 1e-3
    design = design_of(stated, gap=gap)
    epsilon, lower = design.claimed_epsilon, design.figures["epsilon_lower_bound"]
    assert epsilon is not None
    assert design.stopped == "gap"
    assert float(lower) <= epsilon_by_statement() * (1 + ROOT)
    assert epsilon >= epsilon_by_statement() * (1 - ROOT)
    assert epsilon <= float(lower) * (1 + 3 * gap) * stated.excess
    there = stated.at(epsilon)
    assert are_rows(design.mass)
    assert reference_violations(design.mass, there.edges) == 0
    assert reference_violations(design.mass, stated.at(0.999 * epsilon).edges) > 0
    entries = design.mass / 2.0**62 * there.domain.euclidean_to(there.domain) / there.domain.size
    assert float(entries.sum()) == pytest.approx(TARGET, rel=MATCHED)
    assert design.loss == pytest.approx(float(entries.sum()), rel=1e-12)
    assert 0 <= design.parameters["constant_share"] < gap


@pytest.mark.parametrize("cells", [5, 9])
def test_the_excess_of_the_graph_by_adding_all_paths(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Floyd and Warshall over steps of the 32-neighbour stencil, written out."""
    monkeypatch.setattr(matched, "MAX_DIRECT_PAIRS", 0)
    place = np.array(list(np.ndindex(cells, cells)))
    step = abs(place[:, None] - place)
    steps = {(1, 0), (1, 1), (2, 1), (3, 1), (3, 2)}
    near = np.array([[tuple(sorted(pair, reverse=True)) in steps for pair in row] for row in step.tolist()])
    apart = np.hypot(*np.moveaxis(step, 2, 0))
    paths = np.where(near | (apart == 0), apart, np.inf)
    for k in range(len(place)):
        paths = np.minimum(paths, paths[:, k, None] + paths[k])
    expected = (paths[apart > 0] / apart[apart > 0]).max()
    assert program(cells).excess == pytest.approx(expected, rel=1e-12)


def test_small_grids_use_all_pairs() -> None:
    assert not program().uses_graph
    assert program().excess == 1


def test_no_time_leaves_no_mechanism() -> None:
    with pytest.raises(SolverError) as caught:
        design_of(program(), gap=1e-3, time_limit=1e-9)
    assert caught.value.field == "time-limit"


@pytest.mark.parametrize("distance", [0.0, -1.0, float("nan"), 1e6])
def test_invalid_distances_are_refused(distance: float) -> None:
    with pytest.raises(InputError) as caught:
        MatchedOptimal(problem=program().problem, distance=distance)
    assert caught.value.field == "distance"


def test_unreachable_distance_is_refused() -> None:
    problem = program().problem
    far = Domain.points_at(problem.domain.points[:2] + 1000.0, unit=problem.domain.unit)
    with pytest.raises(InputError, match="the smallest expected distance"):
        MatchedOptimal(replace(problem, reports=far), distance=TARGET)


def test_another_metric_is_refused() -> None:
    domain = Domain.grid((3, 3), cell=1.0, unit="km")
    metric = Eikonal(level=PrivacyLevel.constant(1.0, "km"))
    problem = DesignProblem(domain=domain, metric=metric, prior=priors.uniform(domain), loss=Distance())
    with pytest.raises(UnsuitableError) as caught:
        MatchedOptimal(problem=problem, distance=0.5)
    assert caught.value.field == "metric"

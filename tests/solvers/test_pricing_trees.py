"""Trees of pricing: they consist of edges of the claim, and prove the bound of pricing in rationals."""

from __future__ import annotations

import numpy as np
import pytest
from fixtures.problems import CASES, euclidean_grid
from fixtures.rows import few_by_default
from fixtures.tolerances import REORDERED
from reference.trees import proved_by_trees
from test_column_generation import lattice, scattered_problem

from mechdesign import DesignProblem, Graph, load_problem, solve
from mechdesign.losses import SquaredDistance
from mechdesign.solvers.cone.pricing import ConePricer
from mechdesign.solvers.cone.pricing_trees import _children_first, pricing_trees
from mechdesign.solvers.cone.warm_pricing import proved_bound


def _many_shortest_paths() -> DesignProblem:
    """Lengths along streets of a chequered town, with an edge for two thirds of all pairs and between neighbours."""
    base = euclidean_grid((7, 7), 0.5, seed=2)
    tail, head = np.triu_indices(49, 1)
    apart = np.abs(base.domain.points[tail] - base.domain.points[head]).sum(axis=1)
    is_listed = (apart == 1) | (np.random.default_rng(0).random(len(tail)) < 2 / 3)
    metric = Graph(tail=tail[is_listed], head=head[is_listed], length=0.3 * apart[is_listed])
    return DesignProblem(domain=base.domain, metric=metric, prior=base.prior, loss=SquaredDistance())


PROBLEMS = {
    "lattice": lambda: lattice((7, 7), 0.4),
    "map": lambda: load_problem("philadelphia", cells=5),
    "masked lattice": lambda: lattice((7, 6), 0.6),
    "many shortest paths": _many_shortest_paths,
    "steep lattice": lambda: lattice((7, 7), 4.0),
    "points": lambda: scattered_problem(44, level=0.006),
    "zeros": lambda: scattered_problem(44, level=0.006, zeros=0.5, seed=4),
    "fewer reports": lambda: scattered_problem(44, level=0.006, reports=12),
    **CASES,
}
LEADING = ("lattice", "map", "many shortest paths", "zeros")


def edges_of(problem: DesignProblem) -> list[tuple[int, int, float]]:
    edges = problem.edges
    return list(zip(edges.tail.tolist(), edges.head.tolist(), edges.length.tolist(), strict=True))


def bound_of(problem: DesignProblem, dual: np.ndarray, parents: np.ndarray) -> float:
    cost = problem.weighted_loss.T.tolist()
    return float(proved_by_trees(cost, dual.tolist(), edges_of(problem), parents.tolist()))


@pytest.mark.parametrize("name", few_by_default(PROBLEMS, *LEADING))
def test_trees_prove_the_bound_of_pricing(name: str) -> None:
    problem = PROBLEMS[name]()
    pricer, cost = ConePricer.of(problem), problem.weighted_loss
    mechanism = solve(problem)
    dual = mechanism["dual"].values
    trees = pricing_trees(pricer, cost, dual)
    priced = proved_bound(pricer, cost, dual)
    # Pricing rounds down in doubles, the reference in 300 bits. A pair without an edge raises a KeyError there.
    assert bound_of(problem, dual, trees) >= priced * (1 - 10 * REORDERED)
    assert bound_of(problem, dual, trees) <= mechanism.attrs["expected_loss"]


def test_children_come_before_parents() -> None:
    problem = lattice((7, 7), 0.4)
    parents = pricing_trees(ConePricer.of(problem), problem.weighted_loss, solve(problem)["dual"].values)
    order = np.empty_like(parents)
    _children_first(parents, order)
    place = np.argsort(order, axis=1)
    own = np.arange(problem.domain.size)
    assert (np.sort(order, axis=1) == own).all()
    behind = np.take_along_axis(place, parents.astype(np.int64), axis=1)
    assert ((behind > place) | (parents == own)).all()
    assert (parents == own).sum(axis=1).tolist() == [1] * len(parents)

"""Reused trees: ratios against a linear program, pricing by all pairs against lists, reductions of any trees."""

from __future__ import annotations

import numpy as np
import pytest
from fixtures.forged_files import rewritten
from fixtures.mechanisms import optimal_design
from fixtures.rows import few_by_default
from fixtures.tolerances import DESIGN_MARGIN, SOLVED
from scipy.optimize import linprog
from test_column_generation import lattice, scattered_problem

import mechdesign as md
from mechdesign import DesignProblem, load_problem
from mechdesign.solvers.cone import pricing
from mechdesign.solvers.cone.tree_simplex import Effort
from mechdesign.solvers.cone.warm_pricing import WarmPricer, proved_bound

RATIO = 1e-6  # of Dinkelbach's method, which ends at 1e-7 here
EXACT = Effort(1e-12, 1e-9, 30, False)
PROBLEMS = {
    "all pairs": lambda: scattered_problem(44, level=0.006),
    "zeros": lambda: scattered_problem(44, level=0.006, zeros=0.5, seed=4),
    "lattice": lambda: lattice((7, 7), 0.4),
    "edges": lambda: load_problem("philadelphia", cells=6, extent=3.0),
    "fewer reports": lambda: scattered_problem(44, level=0.006, reports=12),
}
EACH = pytest.mark.parametrize("name", few_by_default(PROBLEMS, "zeros", "edges", "fewer reports"))


def smallest_price(problem: DesignProblem, dual: np.ndarray, report: int) -> float:
    """min <c_y - dual, g>, g in the cone, sum g = 1, by HiGHS through SciPy."""
    tail, head, length = problem.edges.both_ways()
    rows = np.zeros((len(tail), problem.domain.size))
    rows[np.arange(len(tail)), tail] = 1.0
    rows[np.arange(len(tail)), head] = -np.exp(length)
    cost = problem.weighted_loss[:, report] - dual
    ones = np.ones((1, len(cost)))
    solution = linprog(cost, A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=ones, b_eq=[1.0], method="highs")
    return float(solution.fun)


def multipliers(problem: DesignProblem, seed: int = 0) -> np.ndarray:
    pricer = WarmPricer(pricing.ConePricer.of(problem), problem.weighted_loss)
    return pricer.first_multipliers() * np.random.default_rng(seed).uniform(0.5, 1.5, problem.domain.size)


@EACH
def test_ratios_are_attained_in_the_cone(name: str) -> None:
    problem = PROBLEMS[name]()
    pricer, dual = WarmPricer(pricing.ConePricer.of(problem), problem.weighted_loss), multipliers(problem)
    rays = pricer.price(dual, pricer.all_reports, EXACT)
    tail, head, length = problem.edges.both_ways()
    assert (rays[:, tail] <= np.exp(length) * rays[:, head] * (1 + DESIGN_MARGIN)).all()
    ratio = pricer.costs_of(rays, pricer.all_reports) / (rays @ dual)
    for y in pricer.all_reports[::7]:
        if ratio[y] < 2:  # beyond, a report is nowhere near a negative price
            assert smallest_price(problem, ratio[y] * (1 - RATIO) * dual, y) >= -1e-12
            assert smallest_price(problem, ratio[y] * (1 + RATIO) * dual, y) <= 1e-12


@pytest.mark.parametrize("share", [0.08, 0.01])
def test_core_rays_satisfy_all_pairs(share: float) -> None:
    problem = scattered_problem(60, level=0.01)
    pricer, dual = WarmPricer(pricing.ConePricer.of(problem), problem.weighted_loss), multipliers(problem)
    pricer.set_cores(share)
    assert pricer.trees.core.max() < 60
    tail, head, length = problem.edges.both_ways()
    for effort in (EXACT, EXACT):  # cold, and from the trees before
        rays = pricer.price(dual, pricer.all_reports, effort)
        assert (rays[:, tail] <= np.exp(length) * rays[:, head] * (1 + DESIGN_MARGIN)).all()
    pricer.set_cores(share / 4)
    rays = pricer.price(dual, pricer.all_reports, EXACT)
    assert (rays[:, tail] <= np.exp(length) * rays[:, head] * (1 + DESIGN_MARGIN)).all()


@EACH
def test_pricing_by_all_pairs_is_that_by_lists(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = PROBLEMS[name]()
    dual, bounds = multipliers(problem), {}
    for fewest in (0, 1000):
        monkeypatch.setattr(pricing, "_FEWEST", fewest)
        monkeypatch.setattr(pricing, "_COMPLETE", 0.0)
        pricer = pricing.ConePricer.of(problem)
        assert pricer.is_complete is (fewest == 0)
        bounds[fewest] = pricer.price(problem.weighted_loss, dual).value
    scale = np.abs(problem.weighted_loss).sum()
    assert bounds[0] == pytest.approx(bounds[1000], abs=1e-6 * scale)


@EACH
@pytest.mark.parametrize("seed", few_by_default(range(3), 1))
def test_reductions_of_any_trees_prove_prices(name: str, seed: int) -> None:
    """Random trees, whatever their rays: multipliers less the reductions are admissible, by a linear program."""
    problem, random = PROBLEMS[name](), np.random.default_rng(seed)
    pricer = WarmPricer(pricing.ConePricer.of(problem), problem.weighted_loss)
    dual, n = 3 * multipliers(problem, seed), problem.domain.size
    pricer.set_cores(0.05 * seed)  # 0: all places
    if pricer.cone.is_complete:  # each place hangs at one that comes before it in a random order
        for y in pricer.all_reports:
            root, order = pricer.trees.anchor[y], random.permutation(n)
            order = np.r_[root, order[order != root]]
            for k in range(1, n):
                pricer.trees.parent[y, order[k]] = order[random.integers(k)]
            pricer.trees.rises[y] = random.random(n) < 0.5
    reduction, sums = pricer.reductions(dual)
    assert reduction.min() >= 0
    assert sums.sum() > 0  # these multipliers are far too large
    for y in pricer.all_reports[::5]:
        assert smallest_price(problem, dual - reduction, y) >= -1e-12
        assert smallest_price(problem, dual, y) < 0


@pytest.mark.parametrize("name", few_by_default(PROBLEMS, "lattice", "edges"))
def test_proved_bound_is_below_and_near_optimum(name: str) -> None:
    problem = PROBLEMS[name]()
    design, pricer = optimal_design(problem, gap=1e-3), pricing.ConePricer.of(problem)
    for factor in (0.5, 1.0, 1.1, 3.0):
        assert proved_bound(pricer, problem.weighted_loss, factor * design.dual) <= design.loss
    assert proved_bound(pricer, problem.weighted_loss, design.dual) >= design.lower_bound * (1 - 1e-9)


def test_small_cores_prove_bounds_at_zero_priors() -> None:
    """Places near a core absorb negative amounts beyond it; if all were reduced, the bound would lose 11 %."""
    problem = scattered_problem(60, level=0.006, zeros=0.5, seed=4)
    design = optimal_design(problem, gap=1e-3)
    pricer = WarmPricer(pricing.ConePricer.of(problem), problem.weighted_loss)
    pricer.set_cores(0.05)
    assert pricer.trees.core.max() < 60
    assert pricer.prove(design.dual, 1e-3, widen=False).bound >= 0.93 * design.lower_bound


def test_excessive_bound_is_refused() -> None:
    mechanism = md.solve(scattered_problem(44, level=0.006))
    assert md.verify(mechanism).lower_bound_checked
    raised = rewritten(mechanism, lower_bound=float(mechanism["dual"].sum()) * (1 + SOLVED))
    assert not md.verify(raised).lower_bound_checked
    larger = mechanism.assign(dual=mechanism["dual"] * (1 + SOLVED))
    assert not md.verify(rewritten(larger, lower_bound=float(larger["dual"].sum()))).lower_bound_checked


def test_cores_never_shrink() -> None:
    problem = scattered_problem(60, level=0.01)
    pricer = WarmPricer(pricing.ConePricer.of(problem), problem.weighted_loss)
    pricer.set_cores(0.02)
    before = pricer.trees.core.copy()
    pricer.widen(np.array([3]))
    pricer.set_cores(0.01)
    assert (pricer.trees.core >= before).all()
    assert pricer.trees.core[3] == 60

"""Local bounds: never above a known optimum, near it, the same bits anywhere, and refused if altered.

Their pricing equals that of the whole graph if balls hold everything, and is never above it otherwise.
"""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from fixtures.eikonal_maps import random_map
from fixtures.forged_files import rewritten
from fixtures.problems import SMALL, grid, prior_of, varying_level
from fixtures.random_problems import optimum
from fixtures.rows import few_by_default

import mechdesign as md
from mechdesign import DesignProblem, Eikonal, load_problem
from mechdesign.factored import local_bound as local
from mechdesign.factored.ascent import DualState, dual_step
from mechdesign.factored.ball import Places
from mechdesign.factored.cluster import workers
from mechdesign.factored.pricing import LastTrees, PricingTask, Radii, ratio_block, tree_block, value_block
from mechdesign.factored.work_folder import threads
from mechdesign.losses import Distance, Loss, SquaredDistance, TableLoss, ZeroOne
from mechdesign.solvers.cone.pricing import ConePricer, lower_bound

NEAR = 1e-3  # relative: largest gap of the bound to the optimum
SMOOTH = 4e-2  # relative: the same of passes alone, on a map whose border matters everywhere
ABOVE = 1e-9  # relative; rounding of the other solver
RATIO = 1e-5  # ratios settle to 1e-6, and gains below 1e-7 of the whole are left
PUSHED = 1e-9  # sums in another order, rounded down
EVERYTHING = 1e6
MUTANTS = 12  # of each tree


@pytest.fixture
def passes(monkeypatch):
    """No multipliers of the whole program, whatever the size."""
    monkeypatch.setattr(local, "WHOLE", 0)


@pytest.fixture(scope="module")
def philadelphia():
    return load_problem("philadelphia", cells=8, extent=16)


def bound_of(problem, count=1):
    with threads(count) as executor:
        return local.local_bound(problem, executor)


@pytest.mark.parametrize(
    "seed", [2, pytest.param(5, marks=pytest.mark.exhaustive), pytest.param(9, marks=pytest.mark.exhaustive)]
)
def test_bound_is_below_and_near_optimum(seed):
    problem = random_map(seed, 3, 4)
    truth = optimum(md.Optimal(problem))
    found = bound_of(problem)
    assert found.value <= truth * (1 + ABOVE)
    assert found.value >= truth * (1 - NEAR)


@pytest.mark.parametrize("seed", few_by_default([2, 5, 9, 31], 5))
@pytest.mark.obligation("factored-bound")
def test_bound_from_passes_is_below_optimum(seed, passes):
    problem = random_map(seed, 3, 4)
    found = bound_of(problem)
    assert 0 < found.value <= optimum(md.Optimal(problem)) * (1 + ABOVE)


@pytest.mark.exhaustive
@pytest.mark.obligation("factored-bound")
def test_hundred_bounds_are_below_optimum(passes):
    near, alone = 0, []
    for seed in range(100):
        problem = random_map(seed, 4, 25 if seed % 10 == 0 else 12)
        table = md.solve(problem, gap=1e-4)
        value = table.attrs["expected_loss"]
        by_passes = bound_of(problem)
        assert by_passes.value <= value
        alone.append(1 - by_passes.value / value)
        local.WHOLE = 700
        found = bound_of(problem)
        local.WHOLE = 0
        assert found.value <= value
        assert (found.reach, found.core) == (64.0, 64.0)
        near += found.value >= table.attrs["lower_bound"] * (1 - NEAR)
    print(f"{near} of 100 within {NEAR}; passes alone, quantiles of the gap: {np.quantile(alone, [0.1, 0.5, 0.9])}")
    assert near >= 90


def test_passes_settle_smooth_map(philadelphia, passes):
    table = md.solve(philadelphia, gap=1e-4)
    found = bound_of(philadelphia)
    assert table.attrs["lower_bound"] * (1 - SMOOTH) <= found.value <= table.attrs["expected_loss"]
    pricer = ConePricer(philadelphia.edges, philadelphia.domain.size, philadelphia.anchors)
    whole = lower_bound(found.dual, pricer.price(philadelphia.weighted_loss, found.dual).value)
    assert found.value <= whole
    with threads(1) as executor:
        again = local.recompute_bound(executor, Places.of(philadelphia), found)
    assert found.value < again <= found.value * (1 + 2e-8)


def test_bound_with_loss_table_is_that_of_formula(philadelphia, passes):
    """The same losses as a formula and as a table: the same bits."""
    small = load_problem("philadelphia", cells=8)
    tabled = replace(small, loss=TableLoss(values=small.loss_matrix))
    a, b = bound_of(small), bound_of(tabled)
    assert abs(a.value - b.value) <= 1e-6 * a.value


def test_streets_have_bound(passes):
    problem = load_problem("streets", nodes=60, epsilon=0.01)
    table = md.solve(problem, gap=1e-4)
    found = bound_of(problem)
    assert 0.9 * table.attrs["lower_bound"] <= found.value <= table.attrs["expected_loss"]


def test_trees_of_the_first_pass_prove_the_bound(philadelphia, passes, monkeypatch):
    """Multipliers fall from one pass to the next; trees of reports that are not priced again still hold."""
    places, priced = Places.of(philadelphia), []
    high = bound_of(philadelphia).dual * (1 + 0.02 * (np.arange(places.size) % 7 == 0))
    honest = local.value_block

    def count_reports(task, start, stop):
        priced.append(stop - start)
        return honest(task, start, stop)

    monkeypatch.setattr(local, "value_block", count_reports)
    with threads(1) as executor:
        found = local.certify_bound(executor, places, high)
        assert places.size < sum(priced)
        assert priced.count(places.size) == 1
        priced.clear()
        by_trees = local.recompute_bound(executor, places, found)
        assert sum(priced) < places.size / 4  # those of values just below 0
        by_pivots = local.recompute_bound(executor, places, replace(found, trees=None))
    assert by_trees * (1 - 2e-8) < found.value < by_trees
    assert by_trees == pytest.approx(by_pivots, rel=PUSHED)


def test_bits_do_not_depend_on_threads(passes):
    problem = load_problem("philadelphia", cells=7, extent=14)
    one, two = bound_of(problem, 1), bound_of(problem, 2)
    assert one.value == two.value
    assert one.dual.tobytes() == two.dual.tobytes()


@pytest.mark.exhaustive
def test_bits_do_not_depend_on_lost_worker(philadelphia, passes):
    distributed = pytest.importorskip("distributed", reason="needs the extra: pip install 'mechdesign[distributed]'")
    killed = []
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=60
        ) as started,
        distributed.Client(started.scheduler_address, set_as_default=False) as client,
    ):

        def report(stage, **state):
            if stage.startswith("bound, pass 2") and not killed:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        with workers(started.scheduler_address) as executor:
            found = local.local_bound(philadelphia, executor, report=report)
    assert killed
    assert found.dual.tobytes() == bound_of(philadelphia).dual.tobytes()


def test_no_bound_without_time(philadelphia, passes):
    with threads(1) as executor:
        assert local.local_bound(philadelphia, executor, deadline=-math.inf) is None
    solved = md.solve(md.EikonalWeights(problem=load_problem("philadelphia", cells=6)), method="factored", bound=False)
    assert "lower_bound" not in solved.attrs
    assert "dual" not in solved
    assert md.verify(solved).lower_bound_checked is None


@pytest.fixture(scope="module")
def bounded_mechanism():
    return md.solve(
        md.EikonalWeights(problem=load_problem("philadelphia", cells=7, extent=14)),
        method="factored",
        options=md.factored.FactoredOptions(rounds=6, bound=True),
    )


def test_stored_bound_is_checked(bounded_mechanism):
    checked = md.verify(bounded_mechanism)
    assert checked.certified
    assert checked.lower_bound_checked is True
    assert (
        0
        < bounded_mechanism.attrs["lower_bound"]
        <= bounded_mechanism.attrs["remapped_loss"]
        <= bounded_mechanism.attrs["expected_loss"]
    )
    assert bounded_mechanism["dual"].attrs["units"] == "1"
    states = []
    assert md.verify(bounded_mechanism, bound=False).lower_bound_checked is None
    assert md.verify(bounded_mechanism, on_progress=states.append).certified
    assert states[-1].done == states[-1].total == 49


ALTERED = {
    "a raised bound": lambda m: m.assign_attrs(lower_bound=m.attrs["lower_bound"] * (1 + 1e-6)),
    "a bound above the loss": lambda m: m.assign_attrs(lower_bound=m.attrs["expected_loss"] * 1.01),
    "a multiplier raised": lambda m: change_largest(m, lambda dual: dual * 1.05),
    "a multiplier lowered": lambda m: change_largest(m, lambda dual: dual * 0.9),
    "a multiplier of the other sign": lambda m: change_largest(m, lambda dual: -dual),
    "a multiplier that is nan": lambda m: change_largest(m, lambda dual: np.nan),
    "a radius cut": lambda m: m.assign_attrs(bound_reach=1.5, bound_core=1.0),
    "a radius that is nan": lambda m: m.assign_attrs(bound_reach=float("nan")),
    "a radius too wide": lambda m: m.assign_attrs(bound_reach=1e9),
    "no radius": lambda m: without(m, "bound_reach"),
    "no multipliers": lambda m: m.drop_vars("dual"),
}


def change_largest(mechanism, change):
    dual = mechanism["dual"].values.copy()
    k = int(np.argmax(dual))
    dual[k] = change(dual[k])
    return mechanism.assign(dual=("secret", dual, mechanism["dual"].attrs))


def without(mechanism, name):
    found = mechanism.copy()
    del found.attrs[name]
    return found


@pytest.mark.parametrize("how", ALTERED)
@pytest.mark.obligation("factored-bound")
def test_altered_bound_is_refused(how, bounded_mechanism):
    checked = md.verify(rewritten(ALTERED[how](bounded_mechanism)))
    assert not checked.certified
    assert checked.reasons[0].startswith("lower_bound:")
    assert checked.lower_bound_checked is False


FORGED_TREES = {
    "no trees": lambda m: m.drop_vars(["tree", "tree_size"]),
    "sizes that do not fit": lambda m: m.assign(tree_size=m["tree_size"] + np.uint32(1)),
    "codes beyond all neighbours": lambda m: m.assign(tree=m["tree"] * np.uint8(0) + np.uint8(255)),
    "codes in disorder": lambda m: m.assign(tree=m["tree"][::-1].copy()),
}


@pytest.mark.parametrize("how", FORGED_TREES)
@pytest.mark.obligation("factored-bound")
def test_forged_trees_prove_no_more(how, bounded_mechanism):
    """Reports whose trees prove nothing are priced: the bound holds as before, and a raised one is refused."""
    forged = FORGED_TREES[how](bounded_mechanism)
    assert md.verify(rewritten(forged)).lower_bound_checked is True
    raised = md.verify(rewritten(ALTERED["a raised bound"](forged)))
    assert not raised.certified
    assert raised.lower_bound_checked is False


def test_file_without_bound_verifies(bounded_mechanism):
    old = bounded_mechanism.drop_vars(["dual", "tree", "tree_size"])
    for name in ("lower_bound", "bound_reach", "bound_core"):
        del old.attrs[name]
    checked = md.verify(rewritten(old))
    assert checked.certified
    assert checked.lower_bound_checked is None


def on_grid(size: int, loss: Loss, mask: np.ndarray | None = None, seed: int = 0) -> DesignProblem:
    domain = grid((size, size), mask=mask)
    metric = 1.5 * Eikonal(level=varying_level(seed=seed), stencil=8)
    return DesignProblem(domain=domain, metric=metric, prior=prior_of(domain.size, seed), loss=loss)


def masked_grid() -> DesignProblem:
    mask = np.ones((7, 7), bool)
    mask[2:4, 1:6] = False
    return on_grid(7, Distance(), mask)


PROBLEMS: dict[str, Callable[[], DesignProblem]] = {
    "squared": lambda: on_grid(7, SquaredDistance()),
    "distance, masked": masked_grid,
    "zero-one": lambda: on_grid(6, ZeroOne(), seed=2),
    "graph, table loss": SMALL["graph, table loss"],
    "streets": SMALL["streets"],
}


@cache
def problem_of(name: str) -> DesignProblem:
    return PROBLEMS[name]()


@cache
def multipliers_after_passes(name: str) -> np.ndarray:
    """Multipliers after some passes from a flat guess."""
    problem = problem_of(name)
    cost = problem.weighted_loss * np.exp(-problem.distances)
    state = DualState(dual=cost.mean(axis=1), weight=np.full(len(cost), 0.2), ratio=np.ones(len(cost)))
    with threads(1) as executor:
        for _ in range(12):
            state, _ = dual_step(executor, Places.of(problem), state, Radii())
    return state.dual


@pytest.mark.parametrize("name", PROBLEMS)
def test_widest_ball_prices_as_whole_graph(name: str) -> None:
    problem = problem_of(name)
    dual, n = multipliers_after_passes(name), problem.domain.size
    pricer = ConePricer(problem.edges, n, problem.anchors)
    values = pricer.price(problem.weighted_loss, dual).value
    task = PricingTask.all(Places.of(problem), dual, reach=EVERYTHING, core=EVERYTHING, keep=EVERYTHING)
    found = ratio_block(task, 0, n)
    for y in range(0, n, 5):  # at its ratio a price is zero
        above, below = ((1 + side * RATIO) * found["ratio"][y] * dual for side in (1, -1))
        assert (
            pricer.price(problem.weighted_loss, above).value[y]
            < 0
            <= pricer.price(problem.weighted_loss, below).value[y]
        )
    scale = problem.weighted_loss.sum()
    assert np.allclose(value_block(task, 0, n)["value"], values, rtol=PUSHED, atol=PUSHED * scale)
    rays = found["ray"].reshape(n, n)
    assert (found["count"] == n).all()
    tail, head, length = problem.edges.both_ways()
    by_place = np.empty_like(rays)
    np.put_along_axis(by_place, found["place"].reshape(n, n).astype(np.int64), rays, axis=1)
    assert (by_place[:, tail] <= by_place[:, head] * np.exp(length) * (1 + 1e-6)).all()
    reached = (by_place @ problem.weighted_loss).diagonal() / (by_place @ dual)
    assert np.allclose(reached, found["ratio"], rtol=RATIO, atol=0)


@pytest.mark.parametrize("name", PROBLEMS)
def test_pricing_from_last_trees_finds_the_same(name: str) -> None:
    """Other multipliers move some cores: their trees start anew, and the others must not end elsewhere."""
    problem = problem_of(name)
    before, n = multipliers_after_passes(name), problem.domain.size
    after = before * np.random.default_rng(6).uniform(0.5, 2.0, n)
    task = PricingTask.all(Places.of(problem), before, reach=4.0, core=1.0)
    for block, name_of_result, tolerance in ((ratio_block, "ratio", RATIO), (value_block, "value", PUSHED)):
        last = LastTrees.of([block(task, 0, n)])
        changed = replace(task, dual=after)
        anew, warm = block(changed, 0, n), block(replace(changed, last=last), 0, n)
        scale = problem.weighted_loss.sum()
        assert warm[name_of_result] == pytest.approx(anew[name_of_result], rel=tolerance, abs=tolerance * scale)
        # Without other multipliers a pricing has nothing left to move.
        again = block(replace(task, last=last), 0, n)
        assert np.array_equal(again["link"], last.link)
        kept = np.arange(n) % 2 == 0
        part = block(
            replace(task, reports=task.reports[kept], start=task.start[kept], last=last.select(kept)), 0, sum(kept)
        )
        assert np.array_equal(part["link"], last.select(kept).link)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize(("reach", "core"), [(1.0, 0.0), (4.0, 3.0)])
def test_small_ball_price_is_below_whole_graph(name: str, reach: float, core: float) -> None:
    problem = problem_of(name)
    dual, n = multipliers_after_passes(name), problem.domain.size
    pricer = ConePricer(problem.edges, n, problem.anchors)
    places = Places.of(problem)
    for share in (1.0, 0.7, 0.3):
        values = pricer.price(problem.weighted_loss, share * dual).value
        found = value_block(PricingTask.all(places, share * dual, reach=reach, core=core), 0, n)
        assert (found["value"] <= values + PUSHED * np.abs(values)).all()


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.obligation("factored-bound")
def test_mutants_of_trees_prove_less(name: str) -> None:
    """At most the price over the whole graph; the tree of a pricing proves its value, and more at lower multipliers."""
    problem, random = problem_of(name), np.random.default_rng(7)
    dual, n = multipliers_after_passes(name), problem.domain.size
    cost, scale = problem.weighted_loss, problem.weighted_loss.sum()
    values = ConePricer(problem.edges, n, problem.anchors).price(cost, dual).value
    task = PricingTask.all(Places.of(problem), dual, reach=EVERYTHING, core=EVERYTHING)
    priced = value_block(task, 0, n)
    trees = np.split(priced["codes"], np.cumsum(priced["coded"])[:-1])
    assert np.allclose(tree_block(replace(task, trees=trees), 0, n)["value"], values, rtol=PUSHED, atol=PUSHED * scale)
    lower = tree_block(replace(task, trees=trees, dual=0.9 * dual), 0, n)["value"]
    assert (lower >= priced["value"] - PUSHED * scale).all()
    proofs = 0
    for number in range(MUTANTS):
        mutants = [random_codes(random, tree, n, changes=1 + number % 5) for tree in trees]
        found = tree_block(replace(task, trees=mutants), 0, n)["value"]
        assert (found <= values + PUSHED * np.abs(values)).all()
        proofs += int(np.isfinite(found).sum())
    assert 0 < proofs < MUTANTS * n


def random_codes(random: np.random.Generator, codes: np.ndarray, size: int, *, changes: int) -> np.ndarray:
    """Codes with some places of another parent: a neighbour, itself in a cycle, or none."""
    mutant = np.zeros(size, np.uint8)
    mutant[: len(codes)] = codes
    mutant[random.integers(1, size, changes)] = random.integers(0, 10, changes)
    return mutant


@pytest.mark.obligation("factored-bound")
def test_places_outside_ball_are_checked() -> None:
    """A multiplier above a cost outside the ball makes the value minus infinity; the place is returned with it."""
    problem = problem_of("squared")
    n = problem.domain.size
    dual = 1e-6 * problem.prior_array
    dual[0] = problem.prior_array[0] * 10.5
    places = Places.of(problem)
    distances, cost = problem.distances, problem.weighted_loss
    task = PricingTask.all(places, dual, reach=2.0, core=1.0)
    found = value_block(task, 0, n)
    wrong = (distances[0] > 2.0) & (cost[0] < dual[0])
    assert 0 < wrong.sum() < n
    assert np.array_equal(np.isneginf(found["value"]), wrong)
    by_trees = tree_block(replace(task, trees=[np.zeros(0, np.uint8)] * n), 0, n)
    assert np.array_equal(np.isneginf(by_trees["value"]), wrong)
    assert (found["missed"] == 0).all()
    assert len(found["missed"]) == 1
    assert cost[0][wrong].min() * (1 - 1e-13) <= found["cost"][0] <= cost[0][wrong].min()
    lowered = dual.copy()
    lowered[0] = found["cost"][0]
    assert np.isfinite(value_block(PricingTask.all(places, lowered, reach=2.0, core=1.0), 0, n)["value"]).all()

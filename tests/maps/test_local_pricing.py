"""Local pricing against the whole-graph pricer: equal where balls hold everything, never above it where they do not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from cases import SMALL, grid, prior_of, varying_level

from mechdesign import DesignProblem, Eikonal
from mechdesign.losses import Distance, Loss, SquaredDistance, ZeroOne
from mechdesign.maps.local_pricing import Places, PricingTask, Radii, State, advance, ratio_block, value_block
from mechdesign.maps.work_folder import threads
from mechdesign.solvers.pricing import ConePricer

RATIO = 1e-5  # ratios settle to 1e-6, and gains below 1e-7 of the whole are left
PUSHED = 1e-9  # sums in another order, rounded down
EVERYTHING = 1e6


def on_grid(size: int, loss: Loss, mask: np.ndarray | None = None, seed: int = 0) -> DesignProblem:
    domain = grid((size, size), mask=mask)
    metric = 1.5 * Eikonal(level=varying_level(seed=seed), stencil=8)
    return DesignProblem(domain=domain, metric=metric, prior=prior_of(domain.size, seed), loss=loss)


def masked() -> DesignProblem:
    mask = np.ones((7, 7), bool)
    mask[2:4, 1:6] = False
    return on_grid(7, Distance(), mask)


PROBLEMS: dict[str, Callable[[], DesignProblem]] = {
    "squared": lambda: on_grid(7, SquaredDistance()),
    "distance, masked": masked,
    "zero-one": lambda: on_grid(6, ZeroOne(), seed=2),
    "graph, table loss": SMALL["graph, table loss"],
    "streets": SMALL["streets"],
}


def settled(problem: DesignProblem, passes: int = 12) -> np.ndarray:
    """Multipliers after some passes from a flat guess."""
    cost = problem.weighted_loss * np.exp(-problem.distances)
    state = State(dual=cost.mean(axis=1), weight=np.full(len(cost), 0.2), ratio=np.ones(len(cost)))
    with threads(1) as executor:
        for _ in range(passes):
            state, _ = advance(executor, Places.of(problem), state, Radii())
    return state.dual


@pytest.mark.parametrize("name", PROBLEMS)
def test_balls_that_hold_everything_price_as_the_whole_graph(name: str) -> None:
    problem = PROBLEMS[name]()
    dual, n = settled(problem), problem.domain.size
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
    own = np.empty_like(rays)
    np.put_along_axis(own, found["place"].reshape(n, n).astype(np.int64), rays, axis=1)
    assert (own[:, tail] <= own[:, head] * np.exp(length) * (1 + 1e-6)).all()
    reached = (own @ problem.weighted_loss).diagonal() / (own @ dual)
    assert np.allclose(reached, found["ratio"], rtol=RATIO, atol=0)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize(("reach", "core"), [(1.0, 0.0), (3.0, 1.0), (4.0, 3.0)])
def test_small_balls_are_never_above_the_whole_graph(name: str, reach: float, core: float) -> None:
    problem = PROBLEMS[name]()
    dual, n = settled(problem), problem.domain.size
    pricer = ConePricer(problem.edges, n, problem.anchors)
    places = Places.of(problem)
    for share in (1.0, 0.7, 0.3):
        values = pricer.price(problem.weighted_loss, share * dual).value
        found = value_block(PricingTask.all(places, share * dual, reach=reach, core=core), 0, n)
        assert (found["value"] <= values + PUSHED * np.abs(values)).all()


def test_places_left_out_of_a_ball_are_looked_at() -> None:
    """A multiplier above a cost outside the ball makes the value worth nothing, and is named with that cost."""
    problem = PROBLEMS["squared"]()
    n = problem.domain.size
    dual = 1e-6 * problem.prior_array
    dual[0] = problem.prior_array[0] * 10.5
    places = Places.of(problem)
    distances, cost = problem.distances, problem.weighted_loss
    found = value_block(PricingTask.all(places, dual, reach=2.0, core=1.0), 0, n)
    wrong = (distances[0] > 2.0) & (cost[0] < dual[0])
    assert 0 < wrong.sum() < n
    assert np.array_equal(np.isneginf(found["value"]), wrong)
    assert (found["missed"] == 0).all()
    assert len(found["missed"]) == 1
    assert cost[0][wrong].min() * (1 - 1e-13) <= found["cost"][0] <= cost[0][wrong].min()
    lowered = dual.copy()
    lowered[0] = found["cost"][0]
    assert np.isfinite(value_block(PricingTask.all(places, lowered, reach=2.0, core=1.0), 0, n)["value"]).all()

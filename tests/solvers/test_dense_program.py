"""Weights of given columns, with multipliers free or in a box: against HiGHS, and where rounding spoils a step."""

from __future__ import annotations

import numpy as np
import pytest
from fixtures.tolerances import SOLVED
from numpy.typing import NDArray
from scipy.optimize import linprog

from mechdesign.solvers import interior_point
from mechdesign.solvers.lp.dense_program import weigh

BOX = np.full(12, 2.0), np.full(12, 1e-3)
Vector = NDArray[np.float64]


def columns() -> tuple[Vector, Vector]:
    rng = np.random.default_rng(0)
    return rng.random((60, 12)), rng.random(60)


def test_boxed_weights_equal_highs() -> None:
    """A box that binds on both sides, as it does while columns are few."""
    kernels, cost = columns()
    weighed = weigh(kernels, cost, tolerance=1e-10, box=BOX)
    matrix = np.hstack([kernels.T, np.eye(12), -np.eye(12)])
    oracle = linprog(np.r_[cost, BOX[0], -BOX[1]], A_eq=matrix, b_eq=np.ones(12))
    assert weighed.stopped == "gap"
    assert weighed.x.min() > 0
    assert weighed.value == pytest.approx(oracle.fun, rel=SOLVED)
    assert weighed.dual.sum() == pytest.approx(oracle.fun, rel=SOLVED)
    assert (cost - kernels @ weighed.dual).min() > -SOLVED
    assert (weighed.dual <= BOX[0] + SOLVED).all()
    assert (weighed.dual >= BOX[1] - SOLVED).all()


@pytest.mark.parametrize("seed", range(4))
def test_free_weights_equal_highs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    place, centre = rng.random((12, 2)), rng.uniform(-0.3, 1.3, (60, 2))
    kernels = np.exp(-2 * np.linalg.norm(place - centre[:, None], axis=2))
    kernels = np.vstack([kernels, np.ones(12)])
    cost = rng.uniform(0.5, 1.0, 61) * kernels.sum(axis=1)
    weighed = weigh(kernels, cost, tolerance=1e-7)
    oracle = linprog(cost, A_eq=kernels.T, b_eq=np.ones(12))
    assert weighed.stopped == "gap"
    assert weighed.x.min() >= 0
    assert weighed.x @ kernels == pytest.approx(np.ones(12), abs=1e-8)
    assert cost @ weighed.x == pytest.approx(oracle.fun, rel=1e-6)


@pytest.mark.parametrize("steps", [4, 9])
def test_drifting_row_sums_end_at_the_best_point(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding spoils every later step; the result is the best point before."""
    honest, count = interior_point._direction, [0]

    def wild(*given: object, is_predictor: bool = False) -> interior_point.Point:
        count[0] += 1
        step = honest(*given, is_predictor=is_predictor)  # type: ignore[arg-type]
        return step if count[0] <= steps else step._replace(x=1e30 * np.abs(step.x))

    monkeypatch.setattr(interior_point, "_direction", wild)
    weighed = weigh(*columns(), tolerance=1e-12, box=BOX)
    assert weighed.stopped == "precision"
    assert weighed.x.max() < 1e6
    assert np.isfinite(weighed.dual).all()
    assert count[0] < 40


@pytest.mark.parametrize("ends", ["time", "interrupt"])
def test_early_end_keeps_the_best_point(ends: str) -> None:
    def stop(number: int, *_: float) -> None:
        if ends == "interrupt" and number == 5:
            raise KeyboardInterrupt

    deadline = 0.0 if ends == "time" else np.inf
    weighed = weigh(*columns(), tolerance=1e-12, box=BOX, deadline=deadline, on_step=stop)
    assert weighed.stopped == ends
    assert weighed.x.min() > 0

"""Short edges: ratios of reports, passes over multipliers, and the boxed master, against the whole program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bumps import bump_map
from tolerances import DESIGN_MARGIN, SOLVED

from mechdesign.mechanism.certificate import row_sums_exact, violations
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.program import LinearProgram, Optimal
from mechdesign.solvers import boxed_master
from mechdesign.solvers.boxed_master import Passes, solve_dense
from mechdesign.solvers.design import Progress
from mechdesign.solvers.highs import solve_linear_program
from mechdesign.solvers.optimal import aggregate
from mechdesign.solvers.pricing import ConePricer
from mechdesign.solvers.solve import solve
from mechdesign.verification.verify import verify

GAP = 1e-3
RATIO = 1e-5  # ratios are searched to about 1e-6
SHORT = {"slope": 4e-6, "floor": 0.016}  # with which 7 x 7 cells have edges as short as 20 x 20 have


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> DesignProblem:
    return bump_map(tmp_path_factory.mktemp("maps"), 1, 7, **SHORT)


@pytest.fixture(scope="module")
def optimum(asked: DesignProblem) -> tuple[float, float]:
    whole = aggregate(asked, gap=1e-6, method="whole")
    assert whole.stopped == "gap"
    return whole.lower_bound, whole.loss


def pricer_of(asked: DesignProblem) -> ConePricer:
    return ConePricer(asked.edges, asked.domain.size, asked.anchors)


def test_the_interval_contains_the_optimum_of_the_whole_program(
    asked: DesignProblem, optimum: tuple[float, float]
) -> None:
    mechanism = solve(Optimal(problem=asked), gap=GAP, method="boxed")
    attrs = mechanism.attrs
    assert attrs["stopped"] == "gap"
    assert attrs["lower_bound"] <= optimum[1] * (1 + SOLVED)
    assert attrs["expected_loss"] >= optimum[0] * (1 - SOLVED)
    assert attrs["expected_loss"] - attrs["lower_bound"] <= GAP * attrs["expected_loss"]
    assert row_sums_exact(mechanism["mass"].values)
    assert violations(mechanism["mass"].values, asked.edges) == 0
    checked = verify(mechanism)
    assert checked.certified, checked.reasons
    assert checked.lower_bound_checked


def test_ratios_are_the_smallest_and_are_attained_by_rays_of_the_cone(asked: DesignProblem) -> None:
    """By price: multipliers times the ratio leave no negative price, and a larger ratio leaves one."""
    pricer, cost = pricer_of(asked), asked.weighted_loss
    dual = asked.prior_array * asked.constant_loss / 3 + 1e-3
    ratio, rays = pricer.ratios(cost, dual, np.ones(cost.shape[1]))
    tail, head, length = asked.edges.both_ways()
    assert (rays[:, tail] <= np.exp(length) * rays[:, head] * (1 + 2e-9)).all()
    assert np.einsum("yu,uy->y", rays, cost) / (rays @ dual) == pytest.approx(ratio, rel=DESIGN_MARGIN)
    for factor, sign in ((1 - RATIO, 1), (1 + RATIO, -1)):
        assert (sign * pricer.price(cost / (ratio * factor), dual).value > 0).all()


def test_bounds_of_passes_rise_and_stay_below_the_optimum(asked: DesignProblem, optimum: tuple[float, float]) -> None:
    passes = Passes(asked, pricer_of(asked))
    best = []
    for _ in range(20):
        passes.step()
        assert passes.bound <= optimum[1] * (1 + RATIO)
        best.append(passes.bound)
    assert max(best) >= 0.9 * optimum[0]
    assert max(best) > best[0] * 1.1
    assert passes.table().sum(axis=1) == pytest.approx(1, abs=0.7)


def test_the_dense_interior_point_ends_where_highs_does() -> None:
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    matrix = np.hstack([rng.random((12, 60)), np.eye(12), -np.eye(12)])
    cost = np.r_[rng.random(60), np.full(12, 2.0), np.full(12, -1e-3)]
    program = LinearProgram(
        cost=cost, matrix=sp.csr_array(matrix), row_lower=np.ones(12), row_upper=np.ones(12), linking=12
    )
    x, dual = solve_dense(matrix, cost, 1e-9)
    reference = solve_linear_program(program, tolerance=SOLVED / 10)
    assert x.min() > 0
    assert matrix @ x == pytest.approx(np.ones(12), abs=1e-8)
    assert cost @ x == pytest.approx(reference.objective, rel=SOLVED)
    assert dual.sum() == pytest.approx(reference.objective, rel=SOLVED)
    assert (cost - matrix.T @ dual).min() > -SOLVED


@pytest.mark.parametrize("steps", [4, 9])
def test_row_sums_that_leave_end_at_the_nearest_point(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding that sends every later step far away: the point before it, whose row sums are the nearest to 1."""
    rng, honest, count = np.random.default_rng(0), boxed_master._direction, [0]
    matrix = np.hstack([rng.random((12, 60)), np.eye(12), -np.eye(12)])
    cost = np.r_[rng.random(60), np.full(12, 2.0), np.full(12, -1e-3)]

    def wild(*given: np.ndarray) -> tuple[np.ndarray, ...]:
        count[0] += 1
        found = honest(*given)
        return found if count[0] <= steps else (1e30 * np.abs(found[0]), *found[1:])

    monkeypatch.setattr(boxed_master, "_direction", wild)
    x, dual = solve_dense(matrix, cost, 1e-12)
    assert np.abs(matrix @ x - 1).max() < 1
    assert np.isfinite(dual).all()
    assert count[0] < 40


def test_without_priced_columns_the_gap_stays_open(asked: DesignProblem, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first columns of each report alone make a private table, and not the best."""
    taken = boxed_master.Master.add

    def once(self: boxed_master.Master, rays: np.ndarray) -> None:
        if not self.variables:
            taken(self, rays)

    monkeypatch.setattr(boxed_master.Master, "add", once)
    monkeypatch.setattr(boxed_master, "_ROUNDS", 8)
    found = aggregate(asked, gap=GAP, method="boxed")
    assert found.loss - found.lower_bound > GAP * found.loss
    assert violations(found.mass, asked.edges) == 0


@pytest.mark.parametrize("ends", ["time", "interrupt"])
def test_a_certified_table_and_a_bound_are_kept(ends: str, asked: DesignProblem, optimum: tuple[float, float]) -> None:
    def stop(state: Progress) -> None:
        if ends == "interrupt" and state.round == 12:
            raise KeyboardInterrupt

    limit = 1e-6 if ends == "time" else np.inf
    found = aggregate(asked, gap=1e-6, method="boxed", time_limit=limit, on_progress=stop)
    assert found.stopped == ends
    assert violations(found.mass, asked.edges) == 0
    assert 0 < found.lower_bound <= optimum[1] * (1 + SOLVED)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_bump_maps_of_20_cells_within_the_gap(seed: int, tmp_path: Path) -> None:
    seen: list[str] = []
    mechanism = solve(
        Optimal(problem=bump_map(tmp_path, seed, 20)), gap=GAP, on_progress=lambda state: seen.append(state.method)
    )
    assert mechanism.attrs["stopped"] == "gap"
    assert set(seen) == {"boxed"}
    checked = verify(mechanism)
    assert checked.certified, checked.reasons
    assert checked.lower_bound_checked

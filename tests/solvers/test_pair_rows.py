"""Rows of a metric over all pairs, generated as they are broken: against the whole program, and by hand."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from cases import grid
from tolerances import DESIGN_MARGIN, ORACLE, SOLVED

from mechdesign.mechanism.certificate import row_sums_exact, violations
from mechdesign.problem import losses as priors
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import shortest_paths
from mechdesign.problem.losses import Distance, Loss, SquaredDistance
from mechdesign.problem.metric import Discrete, Euclidean
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.program import Optimal
from mechdesign.programs.restricted import restrict, with_rows
from mechdesign.solvers import pair_rows
from mechdesign.solvers.design import Progress
from mechdesign.solvers.optimal import aggregate
from mechdesign.solvers.pair_rows import PairRows, levelled, spanner, suits_rows
from mechdesign.solvers.pricing import ConePricer
from mechdesign.solvers.solve import solve
from mechdesign.verification.verify import verify

GAP = 1e-3


def scattered(
    count: int, *, level: float = 0.01, seed: int = 0, loss: Loss | None = None, reports: int = 0, skewed: bool = False
) -> DesignProblem:
    """Places in a square of 2 km, all pairs; the first `reports` of them alone are reports, where given."""
    rng = np.random.default_rng(seed)
    domain = Domain.points_at(rng.uniform(0, 2000, (count, 2)), unit="m")
    weights = rng.uniform(0.01, 1, count) if skewed else np.ones(count)
    return DesignProblem(
        domain=domain,
        metric=Euclidean(epsilon=level, unit="m"),
        prior=priors.proportional(weights),
        loss=loss or Distance(),
        reports=Domain.points_at(domain.points[:reports], unit="m") if reports else None,
    )


CASES = {
    "distance": scattered(20),
    "squared, short pairs": scattered(18, level=0.002, seed=1, loss=SquaredDistance()),
    "skewed prior": scattered(22, level=0.004, seed=2, skewed=True),
    "fewer reports": scattered(20, level=0.004, seed=3, reports=9),
    "grid": DesignProblem(
        domain=grid((5, 5)),
        metric=Euclidean(epsilon=0.6, unit="cell"),
        prior=priors.proportional(np.ones(25)),
        loss=Distance(),
    ),
}


@cache
def optimum(name: str) -> tuple[float, float]:
    """Bounds of the program over all pairs, all of it in HiGHS."""
    whole = aggregate(CASES[name], gap=1e-5, method="whole")
    return whole.lower_bound, whole.loss


@pytest.mark.parametrize("name", CASES)
def test_the_interval_contains_the_optimum_of_the_whole_program(name: str) -> None:
    asked = CASES[name]
    low, high = optimum(name)
    mechanism = solve(Optimal(problem=asked), gap=GAP, method="rows")
    attrs = mechanism.attrs
    assert attrs["stopped"] == "gap"
    assert attrs["lower_bound"] <= high * (1 + SOLVED)
    assert attrs["expected_loss"] >= low * (1 - SOLVED)
    assert attrs["expected_loss"] - attrs["lower_bound"] <= GAP * attrs["expected_loss"]
    assert row_sums_exact(mechanism["mass"].values)
    assert violations(mechanism["mass"].values, asked.edges) == 0
    checked = verify(mechanism)
    assert checked.certified, checked.reasons
    assert checked.lower_bound_checked


def test_the_optimum_is_that_of_the_statement() -> None:
    asked = scattered(8, level=0.003, seed=5)
    stated = Optimal(problem=asked).statement().solve()
    found = aggregate(asked, gap=1e-5, method="rows")
    assert found.lower_bound <= stated * (1 + ORACLE)
    assert found.loss >= stated * (1 - ORACLE)
    assert found.loss - found.lower_bound <= 1e-5 * found.loss


def test_paths_of_the_spanner_and_none_that_it_could_do_without() -> None:
    asked = CASES["distance"]
    n, edges = asked.domain.size, asked.edges
    for stretch in (1.1, 1.3, 2.0):
        kept = spanner(edges, n, stretch)
        along, direct = shortest_paths(kept, n), shortest_paths(edges, n)
        assert (along <= stretch * direct * (1 + DESIGN_MARGIN)).all()
        for k in np.argsort(kept.length)[-3:]:
            others = np.arange(len(kept.tail)) != k
            less = replace(kept, tail=kept.tail[others], head=kept.head[others], length=kept.length[others])
            shorter = less.length < kept.length[k]
            before = replace(less, tail=less.tail[shorter], head=less.head[shorter], length=less.length[shorter])
            paths = shortest_paths(before, n)
            assert paths[kept.tail[k], kept.head[k]] > stretch * kept.length[k]
    assert len(spanner(edges, n, 1.0 + 1e-12).tail) == len(edges.tail)


def test_the_rows_taken_in_are_the_worst_of_every_report_and_secret() -> None:
    asked = CASES["fewer reports"]
    n = asked.domain.size
    rows = PairRows(problem=asked, pricer=ConePricer(asked.edges, n, asked.anchors))
    table = np.random.default_rng(1).dirichlet(np.full(9, 0.3), n)
    paths = shortest_paths(asked.edges, n)
    expected = set()
    for y in range(9):
        for v in range(n):
            raised = table[:, y] * np.exp(-paths[:, v])
            if raised.max() > table[v, y] + 3e-3 * GAP / n:
                expected.add((y, int(raised.argmax()), v))
    assert rows.extend(table, GAP)
    assert set(zip(rows.report.tolist(), rows.secret.tolist(), rows.other.tolist(), strict=True)) == expected
    assert not rows.extend(levelled(np.ones((n, 9)) / 9, asked.edges), GAP)


def test_rows_of_a_report_are_its_constraints() -> None:
    """A point keeps the added rows exactly where the table of its program keeps those constraints."""
    asked = CASES["squared, short pairs"]
    n = asked.domain.size
    pricer, paths = ConePricer(asked.edges, n, asked.anchors), shortest_paths(asked.edges, n)
    rng = np.random.default_rng(4)
    base = restrict(asked, 1.0, pricer.distance, pricer.parent, rng.random((n, n)) < 0.5)
    report, tail, head = rng.integers(0, n, (3, 60))
    program = with_rows(base, report, tail, head, paths[tail, head])
    x = np.exp(rng.uniform(-0.5, 0.5, program.variables))
    x[-1] = 0.0
    table = program.table(x)
    block = np.repeat(np.arange(n + 1), np.diff(program.rows))
    kept = x[program.first[block] + program.lower] <= np.exp(program.slack) * x[program.first[block] + program.upper]
    before = np.repeat(np.arange(n + 1), np.diff(base.rows))
    held = x[base.first[before] + base.lower] <= np.exp(base.slack) * x[base.first[before] + base.upper]
    across = base.component[report, tail] != base.component[report, head]
    stated = table[tail, report] <= np.exp(paths[tail, head]) * table[head, report]
    assert stated[~across].all()
    assert kept.sum() == held.sum() + stated[across].sum()
    assert len(kept) == len(held) + across.sum()
    assert 0 < stated[across].sum() < across.sum()


@pytest.mark.parametrize("way", ["none", "another"])
def test_a_wrong_generator_does_not_reach_the_gap(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the rows that are broken, or with others, the loss stays above the optimum: bounds hold all the same."""
    asked, true = CASES["squared, short pairs"], pair_rows._most_broken

    def search(kernel: np.ndarray, columns: np.ndarray, least: float, worst: np.ndarray) -> None:
        true(kernel, columns, least, worst)
        if way == "none":
            worst[:] = -1
        else:
            worst[:] = np.where(worst >= 0, np.arange(worst.shape[1]), -1)

    monkeypatch.setattr(pair_rows, "_most_broken", search)
    low, high = optimum("squared, short pairs")
    found = aggregate(asked, gap=1e-4, method="rows", time_limit=1.0)
    assert found.lower_bound <= high * (1 + SOLVED)
    assert found.loss >= low * (1 - SOLVED)
    assert found.loss - found.lower_bound > 1e-4 * found.loss


def test_which_metrics_have_many_more_pairs_than_a_spanner() -> None:
    line = DesignProblem(
        domain=Domain.points_at(np.arange(40.0), unit="m"),
        metric=Euclidean(epsilon=0.1, unit="m"),
        prior=priors.proportional(np.ones(40)),
        loss=Distance(),
    )
    assert suits_rows(scattered(60))
    assert suits_rows(line)
    assert not suits_rows(scattered(10))
    assert not suits_rows(replace(scattered(60), metric=Discrete(epsilon=1.0)))


def test_auto_generates_rows_where_kernels_do_not_fit() -> None:
    for level, expected in ((0.004, "rows"), (0.05, "blocks")):
        seen: list[Progress] = []
        solve(Optimal(problem=scattered(45, level=level)), gap=3e-2, on_progress=seen.append)
        assert {state.method for state in seen} == {expected}


@pytest.mark.parametrize("ends", ["time", "interrupt"])
def test_a_certified_table_and_a_bound_are_kept(ends: str) -> None:
    def stop(state: Progress) -> None:
        if ends == "interrupt" and state.iteration == 3:
            raise KeyboardInterrupt

    asked = CASES["distance"]
    limit = 1e-6 if ends == "time" else np.inf
    found = aggregate(asked, gap=1e-6, method="rows", time_limit=limit, on_progress=stop)
    assert found.stopped == ends
    assert violations(found.mass, asked.edges) == 0
    assert 0 < found.lower_bound <= optimum("distance")[1] * (1 + SOLVED)


@pytest.mark.slow
@pytest.mark.parametrize(("count", "seed"), [(60, 0), (100, 0), (150, 0), (150, 1), (200, 0), (300, 0)])
def test_scattered_places_within_the_gap(count: int, seed: int) -> None:
    asked = scattered(count, seed=seed)
    mechanism = solve(Optimal(problem=asked), gap=GAP)
    assert mechanism.attrs["stopped"] == "gap"
    assert 1 - mechanism.attrs["lower_bound"] / mechanism.attrs["expected_loss"] <= GAP
    checked = verify(mechanism)
    assert checked.certified, checked.reasons
    assert checked.lower_bound_checked

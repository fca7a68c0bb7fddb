"""The optimal program over all pairs by its near pairs: intervals around the optimum of the whole program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cases import grid
from tolerances import DESIGN_MARGIN, SOLVED

from mechdesign.closed_forms.loss import bayes_remap
from mechdesign.errors import UnsuitableError
from mechdesign.mechanism.certificate import row_sums_exact, violations
from mechdesign.mechanism.dataset import seal
from mechdesign.mechanism.storage import load
from mechdesign.problem import losses as priors
from mechdesign.problem.domain import Domain
from mechdesign.problem.losses import Distance, SquaredDistance
from mechdesign.problem.metric import Discrete, Euclidean
from mechdesign.problem.problem import DesignProblem, load_problem
from mechdesign.programs.near_pairs import excess, near_edges, near_pairs
from mechdesign.programs.program import Optimal
from mechdesign.solvers import near_pairs as solver
from mechdesign.solvers import pair_rows
from mechdesign.solvers.design import Progress
from mechdesign.solvers.near_pairs import solve_near_pairs
from mechdesign.solvers.optimal import Design, aggregate
from mechdesign.solvers.solve import solve, takes_near_pairs
from mechdesign.verification.verify import verify

GAP = 1e-3
APART = 0.25  # of the excess that the interval may be wide, beside the gap: up to 0.15 measured
TIGHT = 1 - 1e-9  # of the claimed level that a table is private at: levelling leaves none of it unused


def problem(domain: Domain, epsilon: float = 0.6, *, skewed: bool = False, squared: bool = False) -> DesignProblem:
    weights = np.random.default_rng(3).uniform(0.2, 1.0, domain.size) if skewed else np.ones(domain.size)
    return DesignProblem(
        domain=domain,
        metric=Euclidean(epsilon=epsilon, unit="cell"),
        prior=priors.proportional(weights),
        loss=SquaredDistance() if squared else Distance(),
    )


def corner() -> np.ndarray:
    """An L of 7 x 7 cells: paths must go around the corner."""
    mask = np.ones((7, 7), bool)
    mask[4:, 4:] = False
    return mask


def comb() -> np.ndarray:
    """Two rows far apart that one column joins: paths are many times as long as distances."""
    mask = np.zeros((9, 5), bool)
    mask[:, 0] = mask[:, 4] = mask[0, :] = True
    return mask


CASES = {
    "square": problem(grid((6, 6))),
    "skewed prior, squared loss": problem(grid((6, 6)), 0.8, skewed=True, squared=True),
    "rectangle": problem(grid((4, 8)), 0.4),
    "mask": problem(grid((7, 7), mask=corner()), skewed=True),
    "multiplied": replace(problem(grid((5, 5))), metric=0.5 * Euclidean(epsilon=1.2, unit="cell")),
    "oblong cells": problem(Domain.grid((5, 5), cell=(1.0, 2.0), unit="cell")),
}


@cache
def optimum(name: str) -> tuple[float, float]:
    """Bounds of the program over all pairs, by HiGHS or blocks on the whole of it."""
    whole = aggregate(CASES[name], gap=1e-4)
    return whole.lower_bound, whole.loss


@pytest.mark.parametrize("name", CASES)
def test_the_interval_contains_the_optimum_over_all_pairs(name: str) -> None:
    asked = CASES[name]
    low, high = optimum(name)
    attrs = (mechanism := solve(Optimal(problem=asked), gap=GAP, method="graph")).attrs
    assert attrs["lower_bound"] <= high * (1 + SOLVED)
    assert attrs["expected_loss"] >= low * (1 - SOLVED)
    share = excess(asked, near_pairs(asked)) - 1
    assert attrs["expected_loss"] - attrs["lower_bound"] <= (GAP + APART * share) * attrs["expected_loss"]
    assert row_sums_exact(mechanism["mass"].values)
    assert violations(mechanism["mass"].values, asked.metric.edges(asked.domain)) == 0
    assert attrs["effective_epsilon"] >= TIGHT
    reached = 1 - attrs["lower_bound"] / attrs["expected_loss"] <= GAP
    assert attrs["stopped"] == ("gap" if reached else "relaxation")
    checked = verify(mechanism)
    assert checked.certified, checked.reasons
    assert checked.lower_bound_checked


def test_near_pairs_are_the_pairs_of_all_that_lie_on_the_stencil() -> None:
    """Every edge of the claim again, one by one: its displacement sorted, its length as the claim has it."""
    asked = CASES["square"]
    steps = {(1, 0), (1, 1), (2, 1), (3, 1), (3, 2)}
    index = asked.domain.index
    assert index is not None
    claimed = zip(asked.edges.tail.tolist(), asked.edges.head.tolist(), asked.edges.length.tolist(), strict=True)
    expected = {
        (u, v): length
        for u, v, length in claimed
        if tuple(sorted(abs(index[u] - index[v]).tolist(), reverse=True)) in steps
    }
    near = near_pairs(asked).edges
    found = zip(near.tail.tolist(), near.head.tolist(), near.length.tolist(), strict=True)
    assert {(u, v): length for u, v, length in found} == expected
    assert len(near.tail) == len(expected) < len(asked.edges.tail)
    assert len(near_edges(asked.edges, asked.domain, 4).tail) == 2 * 6 * 5


def test_excess_around_a_mask_by_hand() -> None:
    """Five cells around a masked one: its neighbours are 2 apart, and two diagonal steps along near pairs."""
    mask = np.array([[True, True], [True, False], [True, True]])
    asked = problem(grid((3, 2), mask=mask))
    assert excess(asked, near_pairs(asked)) == pytest.approx(np.sqrt(2), rel=1e-12)


def test_levelling_betters_the_repair(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round of levelling leaves less slack; the design beneath is the same."""
    losses = []
    for rounds in (0, 1, 6):
        monkeypatch.setattr(solver, "_LEVELLINGS", rounds)
        losses.append(solve_near_pairs(CASES["square"], gap=1e-2).loss)
    assert all(later < earlier for earlier, later in pairwise(losses))


@pytest.mark.parametrize(
    ("asked", "edges_enough", "expected"),
    [
        (CASES["square"], True, True),
        (CASES["square"], False, False),
        (CASES["mask"], True, True),
        (problem(grid((9, 5), mask=comb())), True, False),
        (problem(grid((4, 4), mask=np.arange(16).reshape(4, 4) % 4 != 1)), True, False),
        (problem(Domain.points_at(np.random.default_rng(0).random((20, 2)), unit="cell")), True, False),
        (problem(grid((3, 3, 3))), True, False),
        (replace(CASES["square"], metric=Discrete(epsilon=1.0)), True, False),
    ],
    ids=["many", "few", "mask", "comb", "parts", "points", "3-D", "discrete"],
)
def test_when_auto_takes_near_pairs(
    asked: DesignProblem, edges_enough: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = len(asked.edges.tail) * asked.reports.size + (not edges_enough)
    monkeypatch.setattr("mechdesign.solvers.solve.MANY", many)
    assert takes_near_pairs(asked, "auto") is expected
    assert takes_near_pairs(asked, "graph")
    assert not takes_near_pairs(asked, "blocks")


def test_auto_takes_near_pairs_for_central_paris_and_not_for_half_of_it() -> None:
    assert takes_near_pairs(load_problem("paris"), "auto")
    assert not takes_near_pairs(load_problem("paris", cells=15), "auto")


def test_auto_goes_by_near_pairs_and_the_file_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mechdesign.solvers.solve.MANY", 0)
    attrs = solve(Optimal(problem=CASES["rectangle"]), gap=1e-2).attrs
    assert attrs["bound_stencil"] == 32
    assert "neighbours" in attrs["lower_bound_of"]
    assert "bound_stencil" not in solve(Optimal(problem=CASES["rectangle"]), gap=1e-2, method="whole").attrs


@pytest.mark.parametrize(
    "asked",
    [
        replace(CASES["square"], metric=Discrete(epsilon=1.0)),
        problem(Domain.points_at(np.arange(6.0), unit="cell")),
        problem(grid((3, 3, 3))),
        problem(grid((4, 4), mask=np.arange(16).reshape(4, 4) % 4 != 1)),
    ],
    ids=["discrete", "points", "3-D", "parts"],
)
def test_graph_is_refused_where_near_pairs_stand_for_nothing(asked: DesignProblem) -> None:
    with pytest.raises(UnsuitableError) as caught:
        solve(Optimal(problem=asked), method="graph")
    assert caught.value.field == "method"


@pytest.mark.parametrize("name", ["square", "mask"])
def test_without_time_a_certified_table_is_kept(name: str) -> None:
    design = solve_near_pairs(CASES[name], gap=GAP, time_limit=1e-6)
    assert design.stopped == "time"
    assert violations(design.mass, CASES[name].edges) == 0
    assert design.lower_bound <= optimum(name)[1] <= design.loss * (1 + SOLVED)


def test_the_time_limit_is_kept_for_the_design_and_for_levelling(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that jumps to the limit once near pairs are designed: no round of levelling, still a certificate."""
    now, given = [100.0], []

    def designed(asked: DesignProblem, *, gap: float, time_limit: float, **_: object) -> Design:
        given.extend([time_limit, gap])
        found = aggregate(asked, gap=gap)
        now[0] = 150.0
        return found

    def unasked(*_: object) -> None:
        raise AssertionError("levelled after the time limit")

    monkeypatch.setattr(solver, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(solver, "aggregate", designed)
    monkeypatch.setattr(pair_rows, "envelope", unasked)
    design = solve_near_pairs(CASES["square"], gap=GAP, time_limit=50.0)
    share = excess(CASES["square"], near_pairs(CASES["square"])) - 1
    assert 0 < given[0] < 50.0
    assert GAP / 2 <= given[1] < share
    assert violations(design.mass, CASES["square"].edges) == 0


@pytest.mark.parametrize("where", ["design", "levelling"])
def test_an_interrupt_keeps_what_there_is(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    def in_design(state: Progress) -> None:
        if where == "design" and state.method != "graph":
            raise KeyboardInterrupt

    if where == "levelling":
        monkeypatch.setattr(pair_rows, "envelope", stop)
    design = solve_near_pairs(CASES["square"], gap=1e-9, on_progress=in_design)
    assert design.stopped == "interrupt"
    assert violations(design.mass, CASES["square"].edges) == 0
    assert design.lower_bound <= optimum("square")[1] <= design.loss * (1 + SOLVED)


def test_progress_tells_near_pairs_from_all() -> None:
    seen: list[Progress] = []
    design = solve_near_pairs(CASES["rectangle"], gap=GAP, on_progress=seen.append)
    assert [state.method == "graph" for state in seen] == [False] * (len(seen) - 1) + [True]
    assert all(state.method.startswith("near pairs, ") for state in seen[:-1])
    assert (seen[-1].loss, seen[-1].lower_bound) == (design.loss, design.lower_bound)
    assert seen[-1].gap == pytest.approx(1 - design.lower_bound / design.loss, rel=1e-9)


def test_verification_prices_the_bound_on_the_stencil_that_the_file_names() -> None:
    """On more pairs it follows too, on fewer it does not; a bound that is told too high is refused."""
    mechanism = solve(Optimal(problem=CASES["square"]), gap=GAP, method="graph")
    assert verify(mechanism).lower_bound_checked
    for stencil, follows in ((64, True), (4, False)):
        assert verify(seal(mechanism.assign_attrs(bound_stencil=stencil))).lower_bound_checked is follows
    whole = mechanism.copy()
    del whole.attrs["bound_stencil"]
    assert verify(seal(whole)).lower_bound_checked
    raised = seal(mechanism.assign_attrs(lower_bound=mechanism.attrs["lower_bound"] * (1 + DESIGN_MARGIN * 10)))
    assert not verify(raised).lower_bound_checked
    assert not verify(raised).certified


def test_a_remapped_mechanism_has_no_bound_of_near_pairs() -> None:
    mechanism = solve(Optimal(problem=CASES["square"]), gap=1e-2, method="graph")
    assert not {"bound_stencil", "lower_bound", "lower_bound_of"} & set(bayes_remap(mechanism).attrs)


def test_the_command_line_takes_the_method(tmp_path: Path, run_json: Callable[..., tuple[int, Any]]) -> None:
    file = tmp_path / "paris.nc"
    code, told = run_json("solve", "paris", "--cells", 5, "--distance", 150, "--method", "graph", "-o", file)
    assert code == 0, told
    assert told["certified"]
    assert told["stopped"] in ("gap", "relaxation")
    assert told["lower_bound"] <= told["loss"] == load(file).attrs["expected_loss"]
    code, checked = run_json("verify", file)
    assert code == 0
    assert checked["lower_bound_checked"]

"""The incumbent of a search, the routes that improve it, and their time."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest
from fixtures.problems import CASES

import mechdesign as md
from mechdesign.base import time_budget
from mechdesign.base.time_budget import TimeBudget
from mechdesign.errors import SolverError
from mechdesign.solvers.cone.pricing import CoupledBound
from mechdesign.solvers.incumbent import Certified, Incumbent, Route, Task, plain_bound, run_routes
from mechdesign.solvers.optimal import optimal_task
from mechdesign.solvers.result import Stop

NOTHING = np.zeros(0)


def incumbent(target: float = 1e-3) -> Incumbent:
    return Incumbent(constant=10.0, target=target)


def table(objective: float, *excess: float) -> Certified:
    return Certified(np.full((2, 2), 2**61, np.uint64), np.array(excess), objective)


def task() -> Task:
    return optimal_task(CASES["discrete"]())


def bound(value: float) -> CoupledBound:
    return plain_bound(task(), value, NOTHING)


def test_better_feasible_tables_are_kept() -> None:
    best = incumbent()
    assert best.gap == math.inf
    assert best.try_table(table(4.0, 0.0), closed_form="constant")
    assert not best.try_table(table(5.0, 0.0))
    assert not best.try_table(table(3.0, 0.0, 1e-15))  # breaks a limit
    assert best.objective == 4.0
    assert best.parameters == {"closed_form": "constant"}
    assert best.try_table(table(3.0))
    assert best.objective == 3.0
    assert best.parameters == {}


def test_gap_uses_best_table_and_best_bound() -> None:
    best = incumbent(target=0.25)
    best.try_table(table(4.0))
    assert best.lower_bound == 0.0
    assert best.gap == 1.0
    assert not best.is_close
    assert best.record_bound(bound(3.0))
    assert not best.record_bound(bound(2.0))
    assert best.lower_bound == 3.0
    assert best.gap == 0.25
    assert best.is_close


@dataclass
class Scripted:
    """A route that reaches an objective, then ends for a given reason."""

    ends: Stop | Exception
    objective: float = math.inf
    reason: str | None = None
    name: str = "scripted"
    runs: list[int] = field(default_factory=list)

    def rejection_reason(self, task: Task) -> str | None:
        return self.reason

    def run(self, task: Task, incumbent: Incumbent, budget: TimeBudget) -> Stop:
        self.runs.append(incumbent.round)
        incumbent.try_table(table(self.objective))
        incumbent.report_state(self.name, 1, 1)
        if isinstance(self.ends, Exception):
            raise self.ends
        return self.ends


def run_all(*routes: Route, budget: TimeBudget | None = None, known: float = 1.0) -> Stop:
    best = incumbent()
    best.record_bound(bound(known))
    return run_routes(routes, task(), best, budget or TimeBudget())


def test_routes_run_until_one_meets_the_gap() -> None:
    first, second, third = Scripted(Stop.PRECISION, 2.0), Scripted(Stop.PRECISION, 1.0), Scripted(Stop.PRECISION)
    assert run_all(first, second, third) is Stop.GAP
    # Every route counts its rounds from 0.
    assert first.runs == [0]
    assert second.runs == [0]
    assert third.runs == []


@pytest.mark.parametrize("ends", [Stop.TIME, SolverError("no", field="solver", value=""), Stop.PRECISION])
def test_next_route_follows_an_early_end(ends: Stop | Exception) -> None:
    last = Scripted(Stop.PRECISION)
    assert run_all(Scripted(ends, 2.0), last) is Stop.PRECISION
    assert last.runs == [0]


def test_rejected_route_is_skipped() -> None:
    rejected, last = Scripted(Stop.GAP, reason="too large"), Scripted(Stop.GAP)
    assert run_all(rejected, Scripted(Stop.INTERRUPT, 2.0), last) is Stop.INTERRUPT
    assert rejected.runs == last.runs == []


def test_without_time_no_route_runs() -> None:
    route = Scripted(Stop.GAP)
    assert run_all(route, budget=TimeBudget.of(-1.0)) is Stop.TIME
    assert route.runs == []


def test_budget_keeps_its_reserve(monkeypatch: pytest.MonkeyPatch) -> None:
    now = SimpleNamespace(value=100.0)
    monkeypatch.setattr(time_budget, "time", SimpleNamespace(monotonic=lambda: now.value))
    budget = TimeBudget.of(10.0, reserve=2.0)
    assert budget.remaining() == 8.0
    assert not budget.is_spent()
    assert budget.allows(8.0)
    assert not budget.allows(8.5)
    assert budget.within(0.25).remaining() == 2.0
    now.value = 108.0
    assert budget.is_spent()
    assert TimeBudget().remaining() == math.inf


def test_every_stop_is_documented() -> None:
    assert len(Stop) == 9
    for word in Stop:
        assert word is Stop.NONE or f'"{word}"' in str(md.solve.__doc__)

"""A budget is never overspent, never goes backwards and never loses a payment."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
import threading
from fractions import Fraction
from functools import cache, reduce
from operator import add
from pathlib import Path

import numpy as np
import pytest
from fixtures.factored_mechanisms import factored_mechanism as made_factored
from fixtures.session_designs import reseal_document
from hypothesis import given, settings
from hypothesis import strategies as st

import mechdesign as md
from mechdesign import baselines
from mechdesign.errors import BudgetError, FileFormatError, InputError
from mechdesign.mechanism.build import Extras, build_dataset
from mechdesign.sessions.budget import REMEMBERED


def problem(epsilon: float = 0.5, cells: int = 4) -> md.DesignProblem:
    return md.load_problem("flat", cells=cells, epsilon=epsilon)


@cache
def sampler(multiple: float = 1.0) -> md.Sampler:
    mass = baselines.exponential(problem())["mass"].values
    return md.Sampler(mechanism=build_dataset(problem(), mass, program="test", extras=Extras(scale=multiple)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.json"


@settings(deadline=None, max_examples=15)  # every payment waits for the disk
@given(st.lists(st.floats(1e-9, 3.0), max_size=12), st.floats(0.1, 10.0))
def test_sums_are_exact_and_the_limit_is_kept(amounts: list[float], limit: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        budget = md.sessions.Budget.create(Path(folder) / "b.json", limit=limit)
        spent = Fraction(0)
        for amount in amounts:
            if spent + Fraction(amount) > Fraction(limit):
                with pytest.raises(BudgetError):
                    budget.spend(amount)
            else:
                spent += Fraction(amount)
                assert budget.spend(amount) == Fraction(limit) - spent
            again = md.sessions.Budget(path=budget.path)
            assert (again.spent, again.limit, again.remaining) == (spent, Fraction(limit), Fraction(limit) - spent)


def test_ten_tenths_are_more_than_one(path: Path) -> None:
    """The double 0.1 exceeds a tenth; added in floating point, ten of them stay below 1."""
    assert reduce(add, [0.1] * 10) < 1 < 10 * Fraction(0.1)
    budget = md.sessions.Budget.create(path, limit=1)
    for _ in range(9):
        budget.spend(0.1)
    with pytest.raises(BudgetError) as caught:
        budget.spend(0.1)
    assert (caught.value.field, caught.value.kind, caught.value.exit_code) == ("budget", "budget", 2)
    assert budget.remaining == 1 - 9 * Fraction(0.1)


def test_the_limit_itself_may_be_spent(path: Path) -> None:
    budget = md.sessions.Budget.create(path, limit=2)
    assert budget.spend(2) == 0
    with pytest.raises(BudgetError):
        budget.spend(5e-324)


@pytest.mark.obligation("budget-paid-once")
def test_reports_are_paid_once_and_remembered(path: Path) -> None:
    budget = md.sessions.Budget.create(path, limit=3)
    first = {secret: budget.report(sampler(), secret) for secret in (5, 6)}
    assert budget.spent == 2
    for _ in range(20):
        for secret in (5, 6):
            again = md.sessions.Budget(path=path).report(sampler(), np.int64(secret))  # type: ignore[arg-type]
            assert int(again) == int(first[secret])
            assert {name: float(again[name]) for name in again.coords} == {
                name: float(first[secret][name]) for name in first[secret].coords
            }
            assert again.attrs["cost"] == REMEMBERED
    assert budget.spent == 2
    assert first[6].attrs["cost"] == "1 times the metric; 1 remaining"
    budget.report(sampler(), 0)
    with pytest.raises(BudgetError):
        budget.report(sampler(), 1)
    assert int(budget.report(sampler(), 5)) == int(first[5])
    assert set(first[5].coords) == {"report_x", "report_y", "accuracy"}


def test_what_is_remembered_is_drawn_afresh_in_another_ledger(tmp_path: Path) -> None:
    ledgers = [md.sessions.Budget.create(tmp_path / f"{k}.json", limit=1) for k in range(40)]
    assert len({int(budget.report(sampler(), 5)) for budget in ledgers}) > 1


def test_multiples_of_one_metric_add_up(path: Path) -> None:
    budget, steep = (
        md.sessions.Budget.create(path, limit=3.5),
        md.Sampler(mechanism=baselines.exponential(problem_at_double_scale())),
    )
    budget.report(sampler(), 5)
    budget.report(sampler(1.5), 5)
    assert budget.spent == Fraction(5, 2)
    assert steep.certificate.cost == Fraction(2 * steep.mechanism.attrs["scale"]) > 1
    with pytest.raises(BudgetError, match="costs more than remains"):
        budget.report(steep, 5)
    assert budget.spent == Fraction(5, 2)


def problem_at_double_scale() -> md.DesignProblem:
    given = problem()
    return md.DesignProblem(domain=given.domain, metric=2 * given.metric, prior=given.prior, loss=given.loss)


@pytest.mark.parametrize("other", [problem(0.6), problem(cells=5)], ids=["level", "cells"])
def test_another_metric_or_grid_needs_its_own_ledger(path: Path, other: md.DesignProblem) -> None:
    budget = md.sessions.Budget.create(path, limit=9)
    budget.report(sampler(), 5)
    with pytest.raises(InputError) as caught:
        budget.report(md.Sampler(mechanism=baselines.exponential(other)), 5)
    assert caught.value.field == "mechanism"
    assert budget.spent == 1


def test_other_points_need_their_own_ledger(path: Path) -> None:
    """Equally many places in the same unit: only their positions differ."""

    def over(last: float) -> md.Sampler:
        domain = md.Domain.points_at([[0.0, 0.0], [1.0, 0.0], [0.0, last]], unit="km")
        given = md.DesignProblem(domain, md.Euclidean(1.0, unit="km"), np.full(3, 1 / 3), md.losses.Distance())
        return md.Sampler(baselines.exponential(given))

    budget = md.sessions.Budget.create(path, limit=9)
    budget.report(over(2.0), 1)
    spent = budget.spent
    with pytest.raises(InputError) as caught:
        budget.report(over(2.5), 1)
    assert (caught.value.field, budget.spent) == ("mechanism", spent)


def test_other_lengths_of_a_graph_need_their_own_ledger(path: Path) -> None:
    def street(length: float) -> md.Sampler:
        metric = md.Graph(tail=[0, 1], head=[1, 2], length=[0.3, length])
        given = md.DesignProblem(md.Domain.nodes(3), metric, np.full(3, 1 / 3), md.losses.ZeroOne())
        return md.Sampler(baselines.exponential(given))

    budget = md.sessions.Budget.create(path, limit=9)
    budget.report(street(0.7), 1)
    with pytest.raises(InputError) as caught:
        budget.report(street(0.8), 1)
    assert caught.value.field == "mechanism"
    assert budget.spent == 1


@pytest.mark.parametrize("case", ["ring road", "eikonal, 16 neighbours"])
def test_factored_mechanisms_are_paid_for(path: Path, case: str) -> None:
    budget, factored = md.sessions.Budget.create(path, limit=2), md.Sampler(mechanism=made_factored(case))
    assert int(budget.report(factored, 1)) == int(budget.report(factored, 1))
    assert budget.spent == 1


def test_a_secret_that_is_not_there_costs_nothing(path: Path) -> None:
    budget = md.sessions.Budget.create(path, limit=2)
    for secret in (16, -1, 0.5):
        with pytest.raises(InputError, match="no such secret"):
            budget.report(sampler(), secret)  # type: ignore[arg-type]
    assert budget.spent == 0


def test_only_the_owner_may_read_it(path: Path) -> None:
    before = os.umask(0)
    try:
        md.sessions.Budget.create(path, limit=1).report(sampler(), 5)
    finally:
        os.umask(before)
    assert [stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()] == [0o600, 0o600]


@pytest.mark.parametrize(
    "value", [0, -1, float("nan"), float("inf"), True, np.True_, pytest.param(10**400, id="1e400"), "1", None]
)
def test_amounts_and_limits_that_are_refused(path: Path, value: float) -> None:
    with pytest.raises(InputError) as caught:
        md.sessions.Budget.create(path, limit=value)
    assert caught.value.field == "limit"
    assert not path.exists()
    budget = md.sessions.Budget.create(path, limit=1)
    with pytest.raises(InputError) as caught:
        budget.spend(value)
    assert (caught.value.field, budget.spent) == ("amount", 0)


def test_a_budget_is_shown_by_its_file(path: Path) -> None:
    name, *fields = repr(md.sessions.Budget.create(path, limit=1)).splitlines()
    assert (name, [field.split()[0] for field in fields]) == ("Budget", ["path"])


def test_the_largest_limit_and_none(path: Path) -> None:
    """Any double is a limit; a file without one is damaged, though its checksum is right."""
    assert md.sessions.Budget.create(path, limit=sys.float_info.max).remaining == Fraction(sys.float_info.max)
    path.write_text(reseal_document({**json.loads(path.read_text()), "limit": "0"}))
    with pytest.raises(FileFormatError, match="damaged"):
        md.sessions.Budget(path)


def test_amounts_of_numpy_are_counted_as_python_counts(path: Path) -> None:
    """Sums of 64-bit numerators would wrap."""
    budget = md.sessions.Budget.create(path, limit=np.int64(2) ** 62)
    for _ in range(3):
        budget.spend(np.int64(2) ** 60)
    assert budget.spend(np.float32(0.5)) == 2**62 - 3 * 2**60 - Fraction(1, 2)
    assert type(budget.limit.numerator) is int


def test_a_sum_of_too_many_digits_is_not_paid(path: Path) -> None:
    budget = md.sessions.Budget.create(path, limit=1)
    budget.spend(Fraction(1, 3))
    with pytest.raises(InputError, match="too many digits"):
        budget.spend(Fraction(1, 10**1000))
    assert (budget.spent, budget.spend(Fraction(2, 3))) == (Fraction(1, 3), 0)


def test_a_limit_stays(path: Path) -> None:
    md.sessions.Budget.create(path, limit=1).spend(1)
    with pytest.raises(InputError, match="exists already"):
        md.sessions.Budget.create(path, limit=5)
    assert md.sessions.Budget(path=path).limit == 1
    with pytest.raises(InputError, match="no such ledger"):
        md.sessions.Budget(path=path.parent / "other.json")


def test_a_ledger_never_goes_backwards(path: Path) -> None:
    budget = md.sessions.Budget.create(path, limit=3)
    copy = path.read_bytes()
    budget.spend(1)
    path.write_bytes(copy)
    with pytest.raises(FileFormatError, match="older state"):
        budget.spend(1)
    path.unlink()
    with pytest.raises(FileFormatError, match="deleted"):
        _ = budget.remaining


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_disk_that_refuses_costs_nothing(path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    budget = md.sessions.Budget.create(path, limit=3)
    budget.spend(1)
    before = path.read_bytes()

    def refuse(*given: object) -> None:
        raise OSError(28, "No space left")

    with monkeypatch.context() as patched:
        patched.setattr(os, call, refuse)
        with pytest.raises(FileFormatError):
            budget.report(sampler(), 5)
    assert path.read_bytes() == before
    assert not list(path.parent.glob("*.part"))
    assert budget.spend(2) == 0


SPENDING = """
import os, sys, mechdesign as md
from mechdesign.errors import BudgetError
def spend():
    budgets, paid = [md.sessions.Budget(path=path) for path in sys.argv[3:]], 0
    for k in range(int(sys.argv[2])):
        try:
            budgets[k % len(budgets)].spend(1)
            paid += 1
        except BudgetError:
            pass
    os.write(1, b"%d\\n" % paid)
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        spend()
        os._exit(0)
for _ in range(int(sys.argv[1])):
    assert os.wait()[1] == 0
"""


@pytest.mark.parametrize(
    ("processes", "each", "linked"),
    [
        pytest.param(2, 20, False, marks=pytest.mark.exhaustive),
        (2, 12, True),
        pytest.param(8, 200, True, marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.obligation("budget-paid-once")
def test_processes_do_not_spend_the_last_unit_twice(path: Path, processes: int, each: int, linked: bool) -> None:
    """Every process has two budgets of one ledger; linked: one of them by a symbolic link in another folder."""
    limit, other = processes * each * 3 // 4, path
    if linked:
        other = path.parent / "elsewhere" / "link"
        other.parent.mkdir()
        other.symlink_to(path)
    budget = md.sessions.Budget.create(path, limit=limit)
    command = [sys.executable, "-c", SPENDING, str(processes), str(each), path, other]
    told = subprocess.run(command, stdout=subprocess.PIPE, timeout=600, check=True).stdout
    paid = list(map(int, told.split()))
    assert (len(paid), sum(paid)) == (processes, limit)
    assert budget.spent == limit


def test_threads_share_a_budget(path: Path) -> None:
    budget, paid = md.sessions.Budget.create(path, limit=15), []

    def spend() -> None:
        for _ in range(10):
            try:
                budget.spend(1)
                paid.append(budget.spent)
            except BudgetError:
                pass

    threads = [threading.Thread(target=spend) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(paid), budget.spent) == (15, 15)

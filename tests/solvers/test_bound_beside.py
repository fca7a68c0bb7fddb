"""Bounds beside tables that other programs make: they end by limit, by Ctrl-C or at once, and the table stays."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from typing import Any

import pytest
from fixtures.problems import CASES, SMALL, grid
from fixtures.programs import PROGRAMS as EVERY
from fixtures.tolerances import REORDERED

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.output.sentences import QUOTED_GAP, bound_sentence, stopped_sentence
from mechdesign.solvers import optimal_bound
from mechdesign.solvers.eikonal import weights

PROGRAMS = {
    "eikonal": SMALL["eikonal"],
    "query": SMALL["query"],
}


def stated(name: str) -> Any:
    return EVERY[name].make(PROGRAMS[name]())


def crowded() -> md.EikonalWeights:
    """Half a nat between cells: weights at the border are negative, so edge budgets are needed."""
    domain = grid((6, 6))
    metric = md.Eikonal(level=md.PrivacyLevel.constant(0.5, "cell"), stencil=8)
    uniform = md.priors.uniform(domain)
    return md.EikonalWeights(
        problem=md.DesignProblem(domain=domain, metric=metric, prior=uniform, loss=md.losses.Distance())
    )


def in_the_bound(act: Callable[[], Any]) -> tuple[list[Any], Callable[[Any], None]]:
    """The states of a solve, and a callback that acts once, in the first state of a bound."""
    seen: list[Any] = []

    def on_progress(state: Any) -> None:
        first = "bound" in str(state) and not any("bound" in str(before) for before in seen)
        seen.append(state)
        if first:
            act()

    return seen, on_progress


def press() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.fixture(params=[False, True], ids=["as the optimal program", "by pricing"])
def priced(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Both ways to a bound: small problems take that of the optimal program, larger ones a pricing."""
    if request.param:
        monkeypatch.setattr(optimal_bound, "ENTRIES", 0)
    return bool(request.param)


@pytest.mark.parametrize("name", PROGRAMS)
def test_ctrl_c_in_the_bound_keeps_the_table(name: str, priced: bool) -> None:
    seen, on_progress = in_the_bound(press)
    mechanism = md.solve(stated(name), on_progress=on_progress)
    assert any("bound" in str(state) for state in seen)
    assert mechanism.attrs["stopped"] == "interrupt"
    assert md.verify(mechanism).certified
    whole = md.solve(stated(name))
    assert mechanism.attrs.get("lower_bound", 0.0) <= whole.attrs["lower_bound"] * (1 + REORDERED)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_limit_ends_the_bound_and_not_the_table(name: str, priced: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock of the test, which stands still until the bound is sought and is at the limit from then on."""
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)

    def pass_the_limit() -> None:
        nonlocal now
        now = 99.0

    _, on_progress = in_the_bound(pass_the_limit)
    mechanism = md.solve(stated(name), time_limit=100.0, on_progress=on_progress)
    # The optimal program of a few places may meet its gap in its first round all the same.
    assert mechanism.attrs.get("stopped", "" if priced else "time") == "time"
    assert md.verify(mechanism).certified


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_the_bound_there_is_none(name: str, priced: bool) -> None:
    seen: list[Any] = []
    mechanism = md.solve(stated(name), bound=False, on_progress=seen.append)
    assert "lower_bound" not in mechanism.attrs
    assert md.verify(mechanism).certified
    assert not any("bound" in str(state) for state in seen)


def test_a_program_that_works_towards_its_bound_keeps_it() -> None:
    with pytest.raises(InputError, match="works towards it") as caught:
        md.solve(CASES["discrete"](), bound=False)
    assert caught.value.field == "bound"


def test_ctrl_c_between_table_and_bound_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is there as its repair begins: from then on a first Ctrl-C costs the bound alone."""
    repair = weights.repair
    monkeypatch.setattr(weights, "repair", lambda *given: (press(), repair(*given))[1])
    mechanism = md.solve(stated("eikonal"))
    assert mechanism.attrs["stopped"] == "interrupt"
    assert md.verify(mechanism).certified


def test_ctrl_c_in_the_edge_budgets_leaves_a_table() -> None:
    def on_progress(state: Any) -> None:
        if state.method == "edge budgets" and state.done == 2:
            press()

    mechanism = md.solve(crowded(), on_progress=on_progress)
    assert "edge budgets" in json.loads(mechanism.attrs["parameters"])["remedy"]
    assert mechanism.attrs["stopped"] == "interrupt"
    assert md.verify(mechanism).certified


def test_a_bound_far_below_the_loss_is_in_no_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted before any pricing, the bound of one secret is left: it is checked, and says next to nothing."""
    monkeypatch.setattr(optimal_bound, "ENTRIES", 0)
    _, on_progress = in_the_bound(press)
    mechanism = md.solve(crowded(), on_progress=on_progress)
    checked, stored = md.verify(mechanism), MechanismFile.read(mechanism)
    gap = 1 - mechanism.attrs["lower_bound"] / mechanism.attrs["expected_loss"]
    assert checked.lower_bound_checked
    assert gap > QUOTED_GAP
    assert bound_sentence(stored) is None
    said = stopped_sentence(stored, "interrupt", gap)
    assert said is not None
    assert "it is not known" in said
    assert "avoidable" in str(stopped_sentence(stored, "interrupt", QUOTED_GAP))
    optimum = MechanismFile.read(md.solve(crowded().problem))
    assert "of the loss may be avoidable" in str(stopped_sentence(optimum, "interrupt", gap))  # it sought that gap
    assert bound_sentence(optimum, gap=gap) is None
    assert "does better" in str(bound_sentence(optimum, gap=QUOTED_GAP))

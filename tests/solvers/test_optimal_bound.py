"""Optimal bounds for tables of other programs: the bound ends by limit, by Ctrl-C or at once, and the table stays."""

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


def program_of(name: str) -> Any:
    return EVERY[name].make(PROGRAMS[name]())


def coarse_weights() -> md.EikonalWeights:
    """Half a nat between cells: weights at the border are negative, so edge budgets are needed."""
    domain = grid((6, 6))
    metric = md.Eikonal(level=md.PrivacyLevel.constant(0.5, "cell"), stencil=8)
    uniform = md.priors.uniform(domain)
    return md.EikonalWeights(
        problem=md.DesignProblem(domain=domain, metric=metric, prior=uniform, loss=md.losses.Distance())
    )


def act_during_bound(act: Callable[[], Any]) -> tuple[list[Any], Callable[[Any], None]]:
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
def by_pricing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """True for a bound by pricing, as of large problems; False for that of the optimal program, as of small ones."""
    if request.param:
        monkeypatch.setattr(optimal_bound, "ENTRIES", 0)
    return bool(request.param)


@pytest.mark.parametrize("name", PROGRAMS)
def test_interrupted_bound_keeps_the_table(name: str, by_pricing: bool) -> None:
    seen, on_progress = act_during_bound(press)
    mechanism = md.solve(program_of(name), on_progress=on_progress)
    assert any("bound" in str(state) for state in seen)
    assert mechanism.attrs["stopped"] == "interrupt"
    assert md.verify(mechanism).certified
    whole = md.solve(program_of(name))
    assert mechanism.attrs.get("lower_bound", 0.0) <= whole.attrs["lower_bound"] * (1 + REORDERED)


@pytest.mark.parametrize("name", PROGRAMS)
def test_time_limit_ends_only_the_bound(name: str, by_pricing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the test stands still until the search for the bound, and is at the limit from then on."""
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)

    def pass_the_limit() -> None:
        nonlocal now
        now = 99.0

    _, on_progress = act_during_bound(pass_the_limit)
    mechanism = md.solve(program_of(name), time_limit=100.0, on_progress=on_progress)
    # The optimal program of a few places may meet its gap in its first round all the same.
    assert mechanism.attrs.get("stopped", "" if by_pricing else "time") == "time"
    assert md.verify(mechanism).certified


@pytest.mark.parametrize("name", PROGRAMS)
def test_bound_false_computes_no_bound(name: str, by_pricing: bool) -> None:
    seen: list[Any] = []
    mechanism = md.solve(program_of(name), bound=False, on_progress=seen.append)
    assert "lower_bound" not in mechanism.attrs
    assert md.verify(mechanism).certified
    assert not any("bound" in str(state) for state in seen)


def test_optimal_program_always_has_a_bound() -> None:
    with pytest.raises(InputError, match="always computes its bound") as caught:
        md.solve(CASES["discrete"](), bound=False)
    assert caught.value.field == "bound"


def test_interrupt_waits_between_table_and_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the start of the repair on, a first Ctrl-C ends the bound and not the table."""
    repair = weights.repair
    monkeypatch.setattr(weights, "repair", lambda *given: (press(), repair(*given))[1])
    mechanism = md.solve(program_of("eikonal"))
    assert mechanism.attrs["stopped"] == "interrupt"
    assert md.verify(mechanism).certified


def test_interrupted_edge_budgets_leave_a_table() -> None:
    def on_progress(state: Any) -> None:
        if state.method == "edge budgets" and state.done == 2:
            press()

    mechanism = md.solve(coarse_weights(), on_progress=on_progress)
    assert "edge budgets" in json.loads(mechanism.attrs["parameters"])["remedy"]
    assert mechanism.attrs["stopped"] == "interrupt"
    assert md.verify(mechanism).certified


def test_loose_bound_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any pricing only the bound of one secret exists: it is checked, but too loose to print."""
    monkeypatch.setattr(optimal_bound, "ENTRIES", 0)
    _, on_progress = act_during_bound(press)
    mechanism = md.solve(coarse_weights(), on_progress=on_progress)
    checked, stored = md.verify(mechanism), MechanismFile.read(mechanism)
    gap = 1 - mechanism.attrs["lower_bound"] / mechanism.attrs["expected_loss"]
    assert checked.lower_bound_checked
    assert gap > QUOTED_GAP
    assert bound_sentence(stored) is None
    sentence = stopped_sentence(stored, "interrupt", gap)
    assert sentence is not None
    assert "it is not known" in sentence
    assert "avoidable" in str(stopped_sentence(stored, "interrupt", QUOTED_GAP))
    optimum = MechanismFile.read(md.solve(coarse_weights().problem))
    assert "of the loss may be avoidable" in str(stopped_sentence(optimum, "interrupt", gap))  # it sought that gap
    assert bound_sentence(optimum, gap=gap) is None
    assert "does better" in str(bound_sentence(optimum, gap=QUOTED_GAP))

"""What follows the options on the command line: knobs, and what an audit is made against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mechdesign.errors import InputError

if TYPE_CHECKING:
    from mechdesign.setting.problem import DesignProblem


def knob_values(owner: str, known: Sequence[str], words: list[str]) -> dict[str, str]:
    """--name value and --name=value pairs of the knobs of `owner`; anything else is refused by name.

    Raises: InputError for a word that is no knob, a knob that is not `known`, given twice or without a value.
    """
    knobs: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            raise InputError(
                "not expected here", field="command line", value=word, remedy="knobs are written --KNOB VALUE"
            )
        name, equals, value = word[2:].partition("=")
        name = name.replace("-", "_")
        if name not in known:
            listed = ", ".join(f"--{knob.replace('_', '-')}" for knob in known) or "none"
            raise InputError(
                f"{owner} has no such knob or option", field=word, value=None, remedy=f"its knobs are {listed}"
            )
        if name in knobs:
            raise InputError("given twice", field=f"--{name}", value=None, remedy="give it once")
        if not equals:
            if not rest or rest[0].startswith("--"):
                raise InputError("needs a value", field=word, value=None, remedy=f"write {word} VALUE")
            value = rest.pop(0)
        knobs[name] = value
    return knobs


def audit_setting(
    words: list[str], *, metric: str | None, problem: DesignProblem | None, mechanism: Path | None
) -> Callable[[int], DesignProblem]:
    """What a table of so many rows is audited against: a problem, a mechanism file, or a metric, its knobs in `words`.

    Raises: InputError unless exactly one of the three is given, and what reading it raises.
    """
    from mechdesign.setting.named import SETTINGS, named_problem

    if sum(given is not None for given in (metric, problem, mechanism)) != 1:
        raise InputError(
            "an audit needs one metric",
            field="metric",
            value=metric or "none",
            remedy="pass one of --metric, --problem and --mechanism",
        )
    if problem is not None:
        return lambda secrets: problem
    if mechanism is not None:
        from mechdesign.mechanism.storage import load
        from mechdesign.reports.rebuilding import stored_problem

        knob_values("a mechanism file", (), words)
        stored = stored_problem(load(mechanism))
        return lambda secrets: stored
    name = str(metric)
    knobs = knob_values(name, SETTINGS.get(name, ()), words) if name in SETTINGS else {}
    return lambda secrets: named_problem(name, knobs, secrets=secrets)

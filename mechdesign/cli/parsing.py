"""What follows the options on the command line: parameters, and what an audit is made against."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mechdesign.base.numerals import real_number, whole_number
from mechdesign.errors import InputError

if TYPE_CHECKING:
    from mechdesign.programs.program import Program
    from mechdesign.setting.problems.problem import DesignProblem

PROGRAMS = ("optimal", "eikonal", "dictionary", "query", "minimax", "statistical", "matched", "edge-average", "bounded")


def parameter_values(owner: str, known: Sequence[str], words: list[str]) -> dict[str, str]:
    """--name value and --name=value pairs of the parameters of `owner`; anything else is refused by name.

    Raises: InputError for a word that is no parameter, a parameter that is not `known`, given twice or without a value.
    """
    parameters: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            raise InputError(
                "not expected here", field="command line", value=word, remedy="parameters are written --PARAMETER VALUE"
            )
        name, equals, value = word[2:].partition("=")
        name = name.replace("-", "_")
        if name not in known:
            listed = ", ".join(f"--{parameter.replace('_', '-')}" for parameter in known) or "none"
            raise InputError(
                f"{owner} has no such parameter or option",
                field=word,
                value=None,
                remedy=f"its parameters are {listed}",
            )
        if name in parameters:
            raise InputError("given twice", field=f"--{name}", value=None, remedy="give it once")
        if not equals:
            if not rest or rest[0].startswith("--"):
                raise InputError("needs a value", field=word, value=None, remedy=f"write {word} VALUE")
            value = rest.pop(0)
        parameters[name] = value
    return parameters


def audit_setting(
    words: list[str], *, metric: str | None, problem: DesignProblem | None, mechanism: Path | None
) -> Callable[[int], DesignProblem]:
    """What a table of so many rows is audited against: a problem, a mechanism file, or a metric, its parameters in
    `words`.

    Raises: InputError unless exactly one of the three is given, and what reading it raises.
    """
    from mechdesign.setting.problems.from_words import SETTINGS, named_problem

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
        from mechdesign.mechanism.storage.files import load
        from mechdesign.mechanism.stored import read

        parameter_values("a mechanism file", (), words)
        stored = read(load(mechanism)).problem
        return lambda secrets: stored
    name = str(metric)
    parameters = parameter_values(name, SETTINGS.get(name, ()), words) if name in SETTINGS else {}
    return lambda secrets: named_problem(name, parameters, secrets=secrets)


def place_asked(first: str | None, rest: list[str]) -> list[float] | None:
    """The numbers of --at X Y: the first word, and what follows on the command line; None where there are none.

    Raises: InputError for words that are no numbers, or that follow without --at.
    """
    words = rest if first is None else [*first.replace(",", " ").split(), *rest]
    try:
        numbers = [real_number(word) for word in words]
    except ValueError as error:
        raise InputError(
            "not a location or an option", field="at", value=" ".join(words), remedy="write FILE --at X Y"
        ) from error
    if first is None and rest:
        raise InputError("not expected here", field="command line", value=" ".join(rest), remedy="write FILE --at X Y")
    return numbers or None


def row_range(words: str | None) -> range | None:
    """The range of --rows FIRST:END. Raises: InputError for anything else."""
    if words is None:
        return None
    try:
        first, end = (whole_number(word) for word in words.split(":"))
    except ValueError as error:
        raise InputError(
            "must be two whole numbers", field="rows", value=words, remedy="write FIRST:END, such as 0:100"
        ) from error
    return range(first, end)


def chosen_program(name: str, options: Mapping[str, str | float | None]) -> Callable[[DesignProblem], Program]:
    """States the program of a name for a problem; options that are None are not given.

    Raises: InputError for an unknown name, a missing option, or one of other programs.
    """
    from dataclasses import MISSING, fields

    from mechdesign.solvers.table import stated_programs

    programs = stated_programs(options)
    if name not in programs:
        raise InputError("unknown program", field="program", value=name, remedy="use one of " + ", ".join(programs))
    given = {option: value for option, value in options.items() if value is not None}
    for option in options:
        takers = [other for other, kind in programs.items() if option in {f.name for f in fields(kind)}]
        needed = any(f.name == option and f.default is MISSING for f in fields(programs[name]))
        if (option in given and name not in takers) or (needed and option not in given):
            word = option.replace("_", "-")
            raise InputError(
                f"belongs to the program {' or '.join(takers)}",
                field=word,
                value=given.get(option, "none"),
                remedy=f"pass --program {takers[0]} --{word} VALUE",
            )
    return lambda problem: programs[name](problem, **given)

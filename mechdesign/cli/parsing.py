"""What words on the command line mean: parameters, problems, privacy levels, places, rows, programs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from mechdesign.base.numerals import real_number, whole_number
from mechdesign.errors import InputError

if TYPE_CHECKING:
    import typer

    from mechdesign.programs.program import Program
    from mechdesign.setting.problems.problem import DesignProblem
    from mechdesign.setting.problems.problem_files import ProblemFile

PROGRAMS = (
    *("optimal", "eikonal", "dictionary", "query", "minimax", "statistical", "matched", "edge-average", "bounded"),
    "positions",
)


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


def problem_asked(problem: str, context: typer.Context) -> tuple[ProblemFile, dict[str, str]]:
    """The problem file that a command names, and the words of its parameters.

    Raises: InputError for an option before it, and for a parameter that is called as an option of the command.
    """
    from mechdesign.setting.problems.problem_files import read_problem_file

    if problem.startswith("-"):
        raise InputError(
            "parameters follow the problem, and options must be spelled right",
            field=problem,
            value=" ".join([problem, *context.args]),
            remedy="write: mechdesign COMMAND PROBLEM --PARAMETER VALUE",
        )
    file = read_problem_file(problem)
    taken = {name.lstrip("-").replace("-", "_") for p in context.command.params for name in p.opts}
    for parameter in file.parameters:
        if parameter in taken:
            raise InputError(
                "a parameter may not shadow an option", field=parameter, value=file.path, remedy="rename the parameter"
            )
    return file, parameter_values(file.name, tuple(file.parameters), context.args)


def radius_asked(within: float | None, radius: float | None) -> float:
    """The radius of --within, or of --radius as it was spelled. Raises: InputError unless one is a positive length."""
    name, value = ("radius", radius) if within is None and radius is not None else ("within", within)
    if value is None or (within is not None and radius is not None):
        raise InputError(
            "one distance is needed, within which odds change by the factor at most",
            field=name,
            value=value,
            remedy="pass --within 200 --factor 2",
        )
    if not 0 < value < math.inf:
        raise InputError("must be positive and finite", field=name, value=value, remedy=f"pass --{name} 200")
    return value


def epsilon_asked(
    *, within: float | None, radius: float | None = None, **forms: float | None
) -> tuple[float, dict[str, float]]:
    """The epsilon, in nats per unit, of one of the forms: factor or nats (also spelled level) within a radius, or
    epsilon itself; and the radius and nats, or the epsilon, as the parameters of a design.

    Raises: InputError unless exactly one form is given, with its radius, in range.
    """
    from mechdesign.closed_forms.noise.privacy_radius import epsilon_within, nats_of_factor

    asked = {name: value for name, value in forms.items() if value is not None}
    if len(asked) != 1:
        named = ", ".join(f"--{name}" for name in asked) or "none"
        raise InputError(
            "one form of the level is needed",
            field="factor",
            value=named,
            remedy="pass --within 200 --factor 2, or --epsilon E",
        )
    [(name, value)] = asked.items()
    if name != "factor" and not 0 < value < math.inf:
        raise InputError("must be positive and finite", field=name, value=value, remedy=f"pass --{name} 0.6931")
    if name == "epsilon":
        return value, {"epsilon": value}
    length = radius_asked(within, radius)
    nats = nats_of_factor(value) if name == "factor" else value
    return epsilon_within(length, nats), {"radius": length, "level": nats}


def epsilon_words(parameters: dict[str, str], *, radius: bool) -> dict[str, str]:
    """Parameters of a metric with --factor or --nats (within --within where the metric has a `radius`) as epsilon.

    Raises: InputError where more than one form is given, or a radius without its form.
    """
    names = {"within", "factor", "nats"} & set(parameters)
    if not names:
        return parameters
    numbers: dict[str, float] = {}
    for name in (*names, *({"epsilon"} & set(parameters))):
        try:
            numbers[name] = real_number(parameters[name])
        except ValueError as error:
            raise InputError(str(error), field=name, value=parameters[name], remedy=f"write --{name} 2") from error
    within = numbers.pop("within", None) if radius else 1.0
    epsilon, _ = epsilon_asked(within=within, **numbers)
    return {name: value for name, value in parameters.items() if name not in names} | {"epsilon": repr(epsilon)}


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
        raise InputError(
            "not expected here",
            field="command line",
            value=" ".join(rest),
            remedy="write FILE --at X Y, or --lon E --lat N",
        )
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

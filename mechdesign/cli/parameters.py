"""Parameters of problems and metrics, which follow a command's own options as --NAME VALUE."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from mechdesign.base.numbers import real_number
from mechdesign.cli.values import parse_epsilon
from mechdesign.errors import InputError

if TYPE_CHECKING:
    import typer

    from mechdesign.problem.problem_files import ProblemFile

_NEAR = 0.75  # similarity of words, from 0 to 1, at which one is suggested for another: --aras and --areas have 0.92
_LEVEL = ("within", "factor", "epsilon")


def parameter_values(owner: str, known: Sequence[str], words: list[str]) -> dict[str, str]:
    """The --NAME VALUE and --NAME=VALUE pairs of the parameters of `owner`."""
    parameters: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            raise InputError("not expected here", field="command line", value=word)
        name, equals, value = word[2:].partition("=")
        name = name.replace("-", "_")
        if name not in known:
            raise unknown_option(word, known, owner=owner)
        if name in parameters:
            raise InputError("given twice", field=f"--{name}")
        if not equals:
            if not rest or rest[0].startswith("--"):
                raise InputError("needs a value", field=word)
            value = rest.pop(0)
        parameters[name] = value
    return parameters


def unknown_option(word: str, known: Collection[str], *, owner: str | None = None) -> InputError:
    """The error for an unknown option, with the most similar known ones."""
    from difflib import get_close_matches

    name = word.partition("=")[0]
    options = [option if option.startswith("-") else f"--{option.replace('_', '-')}" for option in known]
    near = get_close_matches(name.replace("_", "-"), options, n=2, cutoff=_NEAR)
    problem = "no such option"
    if owner is not None:
        problem = f"{owner} has no such parameter or option; its parameters are {', '.join(options) or 'none'}"
    return InputError(problem, field=name, remedy=f"did you mean {' or '.join(near)}?" if near else None)


def first_unknown(words: Sequence[str], options: Collection[str], *, parameters: bool) -> InputError | None:
    """The error for the first unknown option among words; `parameters`: those of problems and metrics are known."""
    from pathlib import Path

    from mechdesign.cli.metric_problem import SETTINGS
    from mechdesign.problem.problem_files import read_problem_file, shipped_problems

    # "-5" is a value: a letter must follow the dashes. A short option may be joined to its value, as in -oFILE.
    listed = [word if word.startswith("--") else word[:2] for word in words if re.match("--?[A-Za-z]", word)]
    if {word.partition("=")[0] for word in listed} <= set(options):
        return None
    known = set(options)
    if parameters:
        names = {*_LEVEL, "box", "at", *(name for names in SETTINGS.values() for name in names)}
        names |= {name for file in shipped_problems() for name in file.parameters}
        for word in words:
            if word.endswith(".py") and Path(word).is_file():
                with suppress(InputError):  # it may be another kind of file, or fail as the command said already
                    names |= set(read_problem_file(word).parameters)
        known |= {f"--{name.replace('_', '-')}" for name in names}
    return next((unknown_option(word, known) for word in listed if word.partition("=")[0] not in known), None)


def parse_problem(problem: str, context: typer.Context) -> tuple[ProblemFile, dict[str, str]]:
    """The problem file that a command names, and its parameters as text."""
    from mechdesign.problem.problem_files import read_problem_file

    if problem.startswith("-"):
        remedy = "parameters follow the problem: mechdesign COMMAND PROBLEM --PARAMETER VALUE"
        raise InputError("unknown option", field=problem, remedy=remedy)
    file = read_problem_file(problem)
    taken = {name.lstrip("-").replace("-", "_") for p in context.command.params for name in p.opts}
    # Otherwise the command would take the parameter for its own option, and the problem would not get it.
    for parameter in file.parameters:
        if parameter in taken:
            raise InputError("a parameter must not have the name of an option", field=parameter, value=file.path)
    return file, parameter_values(file.name, tuple(file.parameters), context.args)


def epsilon_words(parameters: dict[str, str], *, radius: bool) -> dict[str, str]:
    """Parameters of a metric with --factor (within --within where the metric has a `radius`) as epsilon."""
    names = {"within", "factor"} & set(parameters)
    if not names:
        return parameters
    numbers: dict[str, float] = {}
    for name in (*names, *({"epsilon"} & set(parameters))):
        try:
            numbers[name] = real_number(parameters[name])
        except ValueError as error:
            raise InputError(str(error), field=name, value=parameters[name], remedy=f"write --{name} 2") from error
    within = numbers.pop("within", None) if radius else 1.0
    epsilon, _ = parse_epsilon(within=within, **numbers)
    return {name: value for name, value in parameters.items() if name not in names} | {"epsilon": repr(epsilon)}

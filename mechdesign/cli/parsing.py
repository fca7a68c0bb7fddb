"""Words on the command line: options, parameters, problems, privacy levels, places, rows, programs."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from mechdesign.base.numbers import list_words, number_list, real_number, whole_number
from mechdesign.base.registry import Registry
from mechdesign.errors import InputError

if TYPE_CHECKING:
    import typer

    from mechdesign.problem.problem import DesignProblem
    from mechdesign.problem.problem_files import ProblemFile
    from mechdesign.programs.program import Program

_CORE = ("optimal", "eikonal", "query", "minimax", "matched", "bounded")
_NEAR = 0.75  # likeness of words, from 0 to 1, at which one is suggested for another: --aras and --areas have 0.92
_NAMED = re.compile(r"[a-z_]+=\w+|`[a-z_]+`(, `[a-z_]+`)*")  # a value that names arguments
_LEVEL = ("within", "factor", "epsilon")
PROGRAMS = (*_CORE, *Registry[object]("solvers"))  # those of the core, and by name those of capabilities


def as_options(text: str) -> str:
    """A text with the options of the command line in the place of Python's arguments: normalise=True is --normalise,
    work=FOLDER is --work FOLDER, columns={'count': 'n'} is --columns count=n, and `time_limit` is --time-limit.
    """
    pairs = r"\bcolumns=\{('[^']*': '[^']*'(?:, '[^']*': '[^']*')*)\}"
    text = re.sub(
        pairs, lambda found: "--columns " + found[1].replace("': '", "=").replace("', '", ",").strip("'"), text
    )
    text = re.sub(r"(?<!--columns )(?<!,)\b([a-z]+(?:_[a-z]+)*)=(True|'[^']*'|\w+)", _option, text)
    return re.sub(r"`([a-z]+(?:_[a-z]+)*)`", lambda found: "--" + found[1].replace("_", "-"), text)


def _option(argument: re.Match[str]) -> str:
    name, value = argument[1].replace("_", "-"), argument[2].strip("'")
    if value == "False":
        name = f"no-{name}"
    return f"--{name}" if value in ("True", "False") else f"--{name} {value}"


@contextmanager
def option_names(**renamed: str) -> Iterator[None]:
    """Errors within name options in the place of arguments; renamed, the options of arguments of other names."""
    try:
        yield
    except InputError as error:
        if error.field is not None:
            error.field = renamed.get(error.field, error.field).replace("_", "-")
        error.message = as_options(error.message)
        if error.value is not None and _NAMED.fullmatch(error.value):
            error.value = as_options(error.value)
        raise


def parameter_values(owner: str, known: Sequence[str], words: list[str]) -> dict[str, str]:
    """The --NAME VALUE and --NAME=VALUE pairs of the parameters of `owner`. Raises: InputError for other words."""
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
    """The error for an option that nothing has, with the nearest of those that are known."""
    from difflib import get_close_matches

    name = word.partition("=")[0]
    options = [option if option.startswith("-") else f"--{option.replace('_', '-')}" for option in known]
    near = get_close_matches(name.replace("_", "-"), options, n=2, cutoff=_NEAR)
    problem = "no such option"
    if owner is not None:
        problem = f"{owner} has no such parameter or option; its parameters are {', '.join(options) or 'none'}"
    return InputError(problem, field=name, remedy=f"did you mean {' or '.join(near)}?" if near else None)


def first_unknown(words: Sequence[str], options: Collection[str], *, parameters: bool) -> InputError | None:
    """The error for the first unknown option among words.

    With `parameters`, those of all metrics, shipped problems and problem files among the words are known too.
    """
    from pathlib import Path

    from mechdesign.cli.metric_problem import SETTINGS
    from mechdesign.problem.problem_files import read_problem_file, shipped_problems

    listed = [word if word.startswith("--") else word[:2] for word in words if re.match("--?[A-Za-z]", word)]
    if {word.partition("=")[0] for word in listed} <= set(options):
        return None
    known = set(options)
    if parameters:
        names = {*_LEVEL, "box", *(name for names in SETTINGS.values() for name in names)}
        names |= {name for file in shipped_problems() for name in file.parameters}
        for word in words:
            if word.endswith(".py") and Path(word).is_file():
                with suppress(InputError):  # it may be another kind of file, or fail as the command said already
                    names |= set(read_problem_file(word).parameters)
        known |= {f"--{name.replace('_', '-')}" for name in names}
    return next((unknown_option(word, known) for word in listed if word.partition("=")[0] not in known), None)


def parse_problem(problem: str, context: typer.Context) -> tuple[ProblemFile, dict[str, str]]:
    """The problem file that a command names, and the words of its parameters."""
    from mechdesign.problem.problem_files import read_problem_file

    if problem.startswith("-"):
        message = "is no option, or a parameter before its problem; write: mechdesign COMMAND PROBLEM --PARAMETER VALUE"
        raise InputError(message, field=problem)
    file = read_problem_file(problem)
    taken = {name.lstrip("-").replace("-", "_") for p in context.command.params for name in p.opts}
    for parameter in file.parameters:
        if parameter in taken:
            raise InputError("a parameter may not shadow an option", field=parameter, value=file.path)
    return file, parameter_values(file.name, tuple(file.parameters), context.args)


def parse_radius(within: float | None) -> float:
    """The radius of --within. Raises: InputError unless it is a positive length."""
    from mechdesign.evaluation.privacy_radius import one_radius

    with option_names():
        return one_radius(within)


def parse_epsilon(*, within: float | None, **forms: float | None) -> tuple[float, dict[str, float]]:
    """The epsilon, in nats per unit, of --within and --factor or of --epsilon; and these as parameters of a design."""
    from mechdesign.evaluation.privacy_radius import level_of_odds

    with option_names():
        return level_of_odds(within=within, **forms)


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


def parse_box(words: str) -> list[float]:
    """The four numbers of --box W,S,E,N."""
    try:
        return number_list(words, count=4)
    except ValueError as error:
        remedy = "write four numbers of degrees, W,S,E,N"
        raise InputError(str(error), field="box", value=words, remedy=remedy) from error


def positive_number(word: str, name: str) -> float:
    """The positive number that a word of an option is. Raises: InputError."""
    from mechdesign.base.validation import positive

    try:
        return positive(real_number(word), name)
    except ValueError as error:
        raise InputError(str(error), field=name, value=word) from error


def parse_place(first: str | None, rest: list[str]) -> list[float] | None:
    """The numbers of --at X Y: the first word, and what follows on the command line; None where there are none."""
    words = rest if first is None else [first, *rest]
    try:
        numbers = [number for word in words for number in number_list(word)]
    except ValueError as error:
        remedy = "write FILE --at X Y, other options before it"
        raise InputError(f"is not a location: {error}", field="at", value=" ".join(words), remedy=remedy) from error
    if first is None and rest:
        message = "not expected here; write FILE --at X Y, or --lon E --lat N"
        raise InputError(message, field="command line", value=" ".join(rest))
    return numbers or None


def row_range(words: str | None) -> range | None:
    """The range of --rows FIRST:END. Raises: InputError for anything else."""
    if words is None:
        return None
    try:
        first, end = (whole_number(word) for word in words.split(":"))
    except ValueError as error:
        raise InputError("must be FIRST:END, such as 0:100", field="rows", value=words) from error
    return range(first, end)


def parse_scales(words: str | None) -> list[float] | None:
    """The scales of --scales, 0.5,1,2 or FIRST:LAST:COUNT. Raises: InputError for anything else."""
    from mechdesign.base.validation import positive

    if words is None:
        return None
    try:
        if ":" in words:
            from mechdesign.output.sweep import scale_range

            first, last, count = words.split(":")
            return scale_range(real_number(first), real_number(last), whole_number(count))
        scales = number_list(words)
    except InputError:
        raise
    except ValueError as error:
        remedy = "write scales such as 0.5,1,2, or FIRST:LAST:COUNT such as 0.25:4:9"
        raise InputError(str(error), field="scales", value=words, remedy=remedy) from error
    if not 1 <= len(set(scales)) == len(scales):
        raise InputError("distinct scales are needed", field="scales", value=words)
    return [positive(scale, "scales") for scale in scales]


def row_list(words: str | None) -> list[int] | None:
    """The numbers of --rows 3,5 or FIRST:END. Raises: InputError for anything else."""
    if words is None or ":" in words:
        return None if words is None else list(row_range(words) or ())
    try:
        return [whole_number(word) for word in list_words(words)]
    except ValueError as error:
        raise InputError(str(error), field="rows", value=words, remedy="write rows such as 3,5 or 0:4") from error


def chosen_program(name: str, options: Mapping[str, str | float | None]) -> Callable[[DesignProblem], Program]:
    """The constructor of a named program from a problem; options that are None are not passed."""
    from dataclasses import MISSING, fields

    from mechdesign.solvers.solve import SOLVERS

    if name not in SOLVERS:
        raise InputError("unknown program", field="program", value=name, remedy="use one of " + ", ".join(PROGRAMS))
    program, arguments = (
        SOLVERS[name].program,
        {option: value for option, value in options.items() if value is not None},
    )
    needed = {each.name: each.default is MISSING for each in fields(program)}
    for option in options:
        wrong = option not in needed if option in arguments else needed.get(option, False)
        if wrong:
            takers = [other for other in _CORE if option in {each.name for each in fields(SOLVERS[other].program)}]
            word = option.replace("_", "-")
            message = f"belongs to the program {' or '.join(takers)}; pass --program {takers[0]} --{word} VALUE"
            raise InputError(message, field=word, value=arguments.get(option, "none"))
    return lambda problem: program(problem, **arguments)

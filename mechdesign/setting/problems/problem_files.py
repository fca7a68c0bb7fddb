"""Problem files: a Python file whose function `problem(**parameters)` returns a DesignProblem.

The keyword parameters of `problem` are its parameters, with their types and defaults. Shipped files are known by name.
A problem file is a program of somebody else. What it prints goes to standard error, whatever it raises becomes an
InputError that names it, and what it returns is looked at here, before anything is computed from it.
"""

from __future__ import annotations

import inspect
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from mechdesign.base.arguments import asked
from mechdesign.base.display import Shown
from mechdesign.base.numerals import LARGEST, real_number, whole_number
from mechdesign.errors import InputError, MechdesignError
from mechdesign.setting.metric.shortest_paths import Edges
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.setting.problems.shipped import shipped_paths

Parameter = int | float | str
MODULE = "mechdesign_problem_"  # and its stem: the name of the module of a problem file
_LARGEST_FILE = 1 << 20  # bytes
_SHOWN = 300  # characters of the message of an exception
_READ: dict[type, Callable[[str], Parameter]] = {int: whole_number, float: real_number, str: str}


@dataclass(frozen=True, kw_only=True)
class ProblemFile(Shown):
    """A problem file: its name, path, first docstring line, the module and the defaults of its parameters."""

    name: str
    path: Path
    summary: str
    module: ModuleType
    parameters: dict[str, Parameter]

    def build(self, /, **given: Parameter | str) -> DesignProblem:
        """The design problem for these parameters; strings are converted to the type of the default.

        Raises: InputError for a parameter that is unknown or of another type, and what `problem` raises; an InputError
        that
            names the file where `problem` fails in another way or returns something else.
        """
        parameters: dict[str, Parameter] = {
            **self.parameters,
            **{name: self._convert(name, value) for name, value in given.items()},
        }
        with _at_work(self.path):
            built = self.module.problem(**parameters)
            if not isinstance(built, DesignProblem):
                raise _unfit(self.path, "problem() must return a DesignProblem", type(built).__name__)
            return _checked(replace(built, name=self.name, parameters=parameters), self.path)

    def published(self, parameters: Mapping[str, Parameter]) -> dict[str, Parameter] | None:
        """What the file's `published()` prints of its mechanisms, given the parameters that it asks for; None without
        one.

        Raises: InputError where the function fails, or returns anything but numbers and words by name.
        """
        with _at_work(self.path):
            function = getattr(self.module, "published", None)
            if not callable(function):
                return None
            asked = inspect.signature(function).parameters
            told = function(**{name: value for name, value in parameters.items() if name in asked})
            if not isinstance(told, Mapping):
                raise _unfit(self.path, "published() must return a mapping", type(told).__name__)
            for name, value in told.items():
                if type(name) is not str or _unfit_parameter(value):
                    raise _unfit(
                        self.path, "published() must give numbers or words by name", f"a {type(value).__name__}"
                    )
            return dict(told)

    def remark(self, problem: DesignProblem) -> str | None:
        """What the file's `remark(problem)` says of the figures of a solve; None without one.

        Raises: InputError where the function fails, or returns anything but a text.
        """
        with _at_work(self.path):
            function = getattr(self.module, "remark", None)
            if not callable(function):
                return None
            told = function(problem)
            if not isinstance(told, str):
                raise _unfit(self.path, "remark() must return a text", type(told).__name__)
            return told

    def _convert(self, name: str, value: Parameter | str) -> Parameter:
        if name not in self.parameters:
            raise InputError(
                f"{self.name} has no such parameter",
                field=name,
                value=value,
                remedy="use one of " + (", ".join(self.parameters) or "none"),
            )
        kind = type(self.parameters[name])
        try:
            converted = _READ[kind](value) if isinstance(value, str) else kind(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"must be of type {kind.__name__}: {error}",
                field=name,
                value=value,
                remedy=f"the default is {self.parameters[name]}",
            ) from error
        if isinstance(value, float) and kind is int and value != converted:
            raise InputError(
                "must be a whole number", field=name, value=value, remedy=f"the default is {self.parameters[name]}"
            )
        if isinstance(converted, float) and math.isnan(converted):
            raise InputError(
                "must be a number", field=name, value=value, remedy=f"the default is {self.parameters[name]}"
            )
        return converted


@asked
def load_problem(name: str | Path, /, **parameters: Parameter | str) -> DesignProblem:
    """The design problem of a file, or of a shipped problem by name, with these parameters.

    Raises: InputError if there is no such problem or parameter.
    """
    return read_problem_file(name).build(**parameters)


def read_problem_file(name: str | Path) -> ProblemFile:
    """Run a problem file, given by path or by the name of a shipped one, and see what it defines.

    Raises: InputError if it is not there, larger than 1 MB, does not run, or has no function `problem` with defaults
        for all parameters.
    """
    path = _find(name)
    module = ModuleType(MODULE + path.stem)
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        with _at_work(path, "does not import"):
            exec(compile(_source(path), path, "exec", dont_inherit=True), module.__dict__)
    except BaseException:
        del sys.modules[module.__name__]
        raise
    with _at_work(path):
        function = getattr(module, "problem", None)
        if not callable(function):
            raise InputError(
                "has no function problem()", field="problem", value=path, remedy="define problem(**parameters)"
            )
        parameters: dict[str, Parameter] = {}
        for parameter in inspect.signature(function).parameters.values():
            if _unfit_parameter(parameter.default):
                raise InputError(
                    "a parameter needs a default of type int (64 bits), float or str",
                    field=parameter.name,
                    value=path,
                    remedy="give it one",
                )
            parameters[parameter.name] = parameter.default
        summary = (inspect.getdoc(module) or path.stem).splitlines()[0]
    return ProblemFile(name=path.stem, path=path, summary=summary, module=module, parameters=parameters)


def failed(path: str | Path, error: BaseException, what: str = "the problem file failed") -> InputError:
    """The error that tells of an exception in a problem file."""
    return InputError(f"{what} ({described(error)})", field="problem", value=path, remedy="repair the file")


def described(error: BaseException) -> str:
    """The type of an exception and its message, cut where it is long."""
    try:
        said = str(error)
    except Exception:
        said = "its message fails too"
    return f"{type(error).__name__}: {said[:_SHOWN]}{'...' * (len(said) > _SHOWN)}"


@contextmanager
def _at_work(path: Path, what: str = "the problem file failed") -> Iterator[None]:
    """A problem file at work: it prints to standard error, and whatever it raises becomes an InputError."""
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (MechdesignError, KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        raise failed(path, error, what) from error


def _unfit(path: Path, message: str, found: str) -> InputError:
    return InputError(message, field="problem", value=f"{path}: {found}", remedy="repair the file")


def _unfit_parameter(value: Any) -> bool:
    """Whether a value is anything but a whole number of 64 bits, a double that is a number, or a text."""
    if type(value) is int:
        return abs(value) > LARGEST
    return math.isnan(value) if isinstance(value, float) else type(value) is not str


def _checked(problem: DesignProblem, path: Path) -> DesignProblem:
    """The problem, if its parts are what they should be; those of classes from elsewhere are tried.

    Cost: nothing for parts of this package, which check themselves; the edges and the table of losses of others.
    """
    if not _ours(problem.metric):
        edges, size = problem.edges, problem.domain.size
        if not isinstance(edges, Edges) or not _sound(edges, size):
            raise _unfit(path, "the metric's edges must be int64 places and float64 lengths", type(edges).__name__)
        if not isinstance(problem.metric.claim(problem.domain), str):
            raise _unfit(path, "the metric's claim must be a text", type(problem.metric).__name__)
        json.dumps(problem.metric.describe())
    if not _ours(problem.loss):
        if problem.loss_matrix.shape != (problem.domain.size, problem.reports.size):
            raise _unfit(path, "the loss must give a table over secrets and reports", type(problem.loss).__name__)
        if not isinstance(problem.loss.unit("m"), str):
            raise _unfit(path, "the unit of the loss must be a text", type(problem.loss).__name__)
    return problem


def _ours(part: object) -> bool:
    return type(part).__module__.startswith("mechdesign.")


def _sound(edges: Edges, size: int) -> bool:
    """Whether edges are arrays of one length that join places below `size`, with lengths above zero."""
    ends, length = (edges.tail, edges.head), edges.length
    arrays = all(isinstance(part, np.ndarray) and part.ndim == 1 and len(part) for part in (*ends, length))
    if not arrays or len({len(part) for part in (*ends, length)}) > 1:
        return False
    typed = length.dtype == np.float64 and all(end.dtype == np.int64 for end in ends)
    return typed and all(end.min() >= 0 and end.max() < size for end in ends) and bool((length > 0).all())


def _source(path: Path) -> bytes:
    with path.open("rb") as stream:
        content = stream.read(_LARGEST_FILE + 1)
    if len(content) > _LARGEST_FILE:
        raise InputError(
            f"is larger than {_LARGEST_FILE:,} bytes", field="problem", value=path, remedy="read data from other files"
        )
    return content


def _find(name: str | Path) -> Path:
    given = Path(name)
    if given.suffix == ".py":
        try:
            found = given.resolve() if given.is_file() else None
        except OSError:  # a name that the system cannot take
            found = None
        if found is None:
            raise InputError("no such file", field="problem", value=given, remedy="give the path of a problem file")
        if not given.stem.isprintable():
            raise InputError(
                "its name holds characters that cannot be printed",
                field="problem",
                value=given,
                remedy="rename the file",
            )
        return found
    shipped = shipped_paths()
    if str(name) in shipped:
        return shipped[str(name)]
    raise InputError(
        "no such problem",
        field="problem",
        value=name,
        remedy="use one of " + ", ".join(shipped) + ", or the path of a .py file",
    )

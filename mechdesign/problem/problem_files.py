"""Problem files: Python files, imported and called, whose function `problem(**parameters)` returns a DesignProblem.

The function may return a program over a problem instead. A file may import other files of its folder by their names.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from mechdesign.base.files import readable
from mechdesign.base.numbers import real_number, whole_number
from mechdesign.base.records import FrozenRecord
from mechdesign.base.validation import validate_call
from mechdesign.errors import InputError, MechdesignError
from mechdesign.problem.problem import DesignProblem, Parameter

MODULE = "mechdesign_problem_"  # and its stem: the name of the module of a problem file
_SHOWN = 300  # characters of the message of an exception
_PACKAGE = Path(__file__).resolve().parents[1]
FOLDERS = (_PACKAGE / "_problems", _PACKAGE.parent / "problems")  # of shipped files: installed, or in a source tree
_NEIGHBOURS: dict[str, str] = {}  # modules that problem files imported from their folders, and these folders
_PARSERS: dict[type, Callable[[str], Parameter]] = {int: whole_number, float: real_number, str: str}


@dataclass(frozen=True, kw_only=True)
class ProblemFile(FrozenRecord):
    """A problem file: its name, path, first docstring line, the module and the defaults of its parameters."""

    name: str
    path: Path
    summary: str
    module: ModuleType
    parameters: dict[str, Parameter]

    def build(self, /, **values: Parameter | str) -> DesignProblem:
        """The problem of the file; of a program, its problem."""
        return self.build_stated(**values)[0]

    def build_stated(self, /, **values: Parameter | str) -> tuple[DesignProblem, Any]:
        """The problem, and the program over it, None where the file returns a problem."""
        parameters = {**self.parameters, **{name: self._convert(name, value) for name, value in values.items()}}
        with redirect_stdout(sys.stderr), neighbours_of(self.path):
            built = self.module.problem(**parameters)
        # Programs are not imported here: they have a problem and a statement.
        has_statement = callable(getattr(built, "statement", None))
        problem = getattr(built, "problem", None) if has_statement else built
        if not isinstance(problem, DesignProblem):
            given_type = type(built).__name__
            message = "problem() must return a DesignProblem or a program"
            raise InputError(message, field="problem", value=f"{self.path}: {given_type}")
        named = replace(problem, name=self.name, parameters=parameters)
        return named, replace(built, problem=named) if has_statement else None

    def published(self, parameters: Mapping[str, Parameter]) -> dict[str, Parameter] | None:
        function = getattr(self.module, "published", None)
        if function is None:
            return None
        known = inspect.signature(function).parameters
        with redirect_stdout(sys.stderr):
            return dict(function(**{name: value for name, value in parameters.items() if name in known}))

    def remark(self, problem: DesignProblem) -> str | None:
        function = getattr(self.module, "remark", None)
        with redirect_stdout(sys.stderr):
            return None if function is None else str(function(problem))

    def _convert(self, name: str, value: Parameter | str) -> Parameter:
        if name not in self.parameters:
            remedy = "use one of " + (", ".join(self.parameters) or "none")
            raise InputError(f"{self.name} has no such parameter", field=name, value=value, remedy=remedy)
        kind = type(self.parameters[name])
        try:
            converted = _PARSERS[kind](value) if isinstance(value, str) else kind(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"must be of type {kind.__name__}: {error}", field=name, value=value) from error
        # int(5.5) is 5, and nan differs from itself.
        if kind in (int, float) and not isinstance(value, str) and converted != value:
            raise InputError(f"must be of type {kind.__name__}", field=name, value=value)
        return converted


@validate_call
def load_problem(name: str | Path, /, **parameters: Parameter | str) -> DesignProblem:
    """The design problem of a file, or of a shipped problem by name.

    Parameters
    ----------
    name : str or Path
        A problem file (.py) or the name of a shipped problem.
    **parameters : int, float or str
        Parameters of its `problem()`; texts are converted to the type of the default.

    Returns
    -------
    DesignProblem

    Examples
    --------
    >>> md.load_problem("line", cells=4).domain.size
    4
    """
    problem, program = read_problem_file(name).build_stated(**parameters)
    if program is not None:
        remedy = "use md.programs.load_program"
        raise InputError("returns a program, not a problem", field="problem", value=name, remedy=remedy)
    return problem


def read_problem_file(name: str | Path) -> ProblemFile:
    """Import a problem file, given by path or by the name of a shipped one."""
    path = _find_file(name)
    module = ModuleType(MODULE + path.stem)
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        with redirect_stdout(sys.stderr), neighbours_of(path):
            # dont_inherit: the file must not get the `annotations` future of this module.
            exec(compile(path.read_bytes(), path, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - a program
    except MechdesignError:
        raise
    except Exception as error:
        del sys.modules[module.__name__]
        raise InputError(f"does not import ({format_exception(error)})", field="problem", value=path) from error
    function = getattr(module, "problem", None)
    if not callable(function):
        raise InputError("has no function problem()", field="problem", value=path)
    parameters = {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}
    for name, default in parameters.items():
        if type(default) not in _PARSERS or default != default:
            raise InputError("needs a default of type int, float or str", field=name, value=path)
    summary = (inspect.getdoc(module) or path.stem).splitlines()[0]
    return ProblemFile(name=path.stem, path=path, summary=summary, module=module, parameters=parameters)


@contextmanager
def neighbours_of(path: Path) -> Iterator[None]:
    """Let a problem file import others of its folder, which come after all installed modules."""
    folder = str(path.parent)
    # A module of one name in another folder is another module.
    for name in [name for name, origin in _NEIGHBOURS.items() if origin != folder]:
        sys.modules.pop(name, None)
        del _NEIGHBOURS[name]
    before = set(sys.modules)
    sys.path.append(folder)
    # The finder of the folder may have listed it before the file was written.
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(folder)
        for name in set(sys.modules) - before:
            origin = getattr(sys.modules[name], "__file__", None)
            if origin and str(Path(origin).parent) == folder and not name.startswith(MODULE):
                _NEIGHBOURS[name] = folder


def shipped_paths() -> dict[str, Path]:
    """The shipped files by name."""
    folder = next((f for f in FOLDERS if f.is_dir()), FOLDERS[0])
    return {path.stem: path for path in sorted(folder.glob("[a-z]*.py"))}


def shipped_problems() -> list[ProblemFile]:
    """The shipped problem files by name, without those that import a capability that is not installed."""
    files = []
    for path in shipped_paths().values():
        try:
            files.append(read_problem_file(path))
        except InputError as error:
            cause = error.__cause__
            if not (isinstance(cause, ModuleNotFoundError) and str(cause.name).startswith("mechdesign.")):
                raise
    return files


def format_exception(error: BaseException) -> str:
    """The type of an exception and its message, cut where it is long."""
    message = str(error)
    return f"{type(error).__name__}: {message[:_SHOWN]}{'...' * (len(message) > _SHOWN)}"


def _find_file(name: str | Path) -> Path:
    if Path(name).suffix == ".py":
        with readable(name, "problem"):
            return Path(name).resolve(strict=True)
    shipped = shipped_paths()
    if str(name) not in shipped:
        remedy = "use one of " + ", ".join(shipped) + ", or the path of a .py file"
        raise InputError("no such problem", field="problem", value=name, remedy=remedy)
    return shipped[str(name)]

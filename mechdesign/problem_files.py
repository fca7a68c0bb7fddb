"""Problem files: a Python file whose function `problem(**knobs)` returns a DesignProblem.

The keyword parameters of `problem` are its knobs, with their types and defaults. Shipped files are known by name.
"""

from __future__ import annotations

import importlib.util
import inspect
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from mechdesign.errors import InputError, MechdesignError
from mechdesign.setting.problem import DesignProblem

Knob = int | float | str
_PACKAGE = Path(__file__).resolve().parent
_FOLDERS = (_PACKAGE / "_problems", _PACKAGE.parent / "problems")


@dataclass(frozen=True, kw_only=True)
class ProblemFile:
    """A problem file: its name, path, first docstring line, the module and the defaults of its knobs."""

    name: str
    path: Path
    summary: str
    module: ModuleType
    knobs: dict[str, Knob]

    def build(self, /, **given: Knob | str) -> DesignProblem:
        """The design problem for these knobs; strings are converted to the type of the default.

        Raises: InputError for a knob that is unknown or of another type, and what `problem` raises.
        """
        knobs: dict[str, Knob] = {**self.knobs, **{name: self._convert(name, value) for name, value in given.items()}}
        built = self._call(self.module.problem, **knobs)
        if not isinstance(built, DesignProblem):
            raise InputError(
                "problem() must return a DesignProblem",
                field="problem",
                value=type(built).__name__,
                remedy="repair the file",
            )
        return replace(built, name=self.name, knobs=knobs)

    def published(self, knobs: Mapping[str, Knob]) -> dict[str, Any] | None:
        """What the file's `published()` prints of its mechanisms, given the knobs that it asks for; None without one.

        Raises: InputError where the function fails.
        """
        function = getattr(self.module, "published", None)
        if not callable(function):
            return None
        asked = inspect.signature(function).parameters
        return dict(self._call(function, **{name: value for name, value in knobs.items() if name in asked}))

    def remark(self, problem: DesignProblem) -> str | None:
        """What the file's `remark(problem)` says of the figures of a solve; None without one.

        Raises: InputError where the function fails.
        """
        function = getattr(self.module, "remark", None)
        return str(self._call(function, problem)) if callable(function) else None

    def _call(self, function: Callable[..., Any], *given: Any, **named: Any) -> Any:
        try:
            return function(*given, **named)
        except MechdesignError:
            raise
        except (Exception, SystemExit) as error:
            raise InputError(
                f"the problem file failed ({type(error).__name__}: {error})",
                field="problem",
                value=self.path,
                remedy="repair the file",
            ) from error

    def _convert(self, name: str, value: Knob | str) -> Knob:
        if name not in self.knobs:
            raise InputError(
                f"{self.name} has no such knob",
                field=name,
                value=value,
                remedy="use one of " + (", ".join(self.knobs) or "none"),
            )
        kind = type(self.knobs[name])
        try:
            converted = kind(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"must be of type {kind.__name__}", field=name, value=value, remedy=f"the default is {self.knobs[name]}"
            ) from error
        if isinstance(value, float) and kind is int and value != converted:
            raise InputError(
                "must be a whole number", field=name, value=value, remedy=f"the default is {self.knobs[name]}"
            )
        if isinstance(converted, float) and math.isnan(converted):
            raise InputError("must be a number", field=name, value=value, remedy=f"the default is {self.knobs[name]}")
        return converted


def shipped_problems() -> list[ProblemFile]:
    """The problem files that come with the package, by name."""
    return [read_problem_file(path) for path in _shipped().values()]


def load_problem(name: str | Path, /, **knobs: Knob | str) -> DesignProblem:
    """The design problem of a file, or of a shipped problem by name, with these knobs.

    Raises: InputError if there is no such problem or knob.
    """
    return read_problem_file(name).build(**knobs)


def read_problem_file(name: str | Path) -> ProblemFile:
    """Import a problem file, by path or by the name of a shipped one. Importing runs the file.

    Raises: InputError if it is not there, does not import, or has no function `problem` with defaults for all knobs.
    """
    path = _find(name)
    spec = importlib.util.spec_from_file_location(f"mechdesign_problem_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[spec.name]
        raise InputError(
            f"does not import ({type(error).__name__}: {error})", field="problem", value=path, remedy="repair the file"
        ) from error
    function = getattr(module, "problem", None)
    if not callable(function):
        raise InputError("has no function problem()", field="problem", value=path, remedy="define problem(**knobs)")
    knobs: dict[str, Knob] = {}
    for parameter in inspect.signature(function).parameters.values():
        if type(parameter.default) not in (int, float, str):
            raise InputError(
                "a knob needs a default of type int, float or str",
                field=parameter.name,
                value=path,
                remedy="give it one",
            )
        knobs[parameter.name] = parameter.default
    summary = (inspect.getdoc(module) or path.stem).splitlines()[0]
    return ProblemFile(name=path.stem, path=path, summary=summary, module=module, knobs=knobs)


def _find(name: str | Path) -> Path:
    given = Path(name)
    if given.suffix == ".py":
        if not given.is_file():
            raise InputError("no such file", field="problem", value=given, remedy="give the path of a problem file")
        return given.resolve()
    shipped = _shipped()
    if str(name) in shipped:
        return shipped[str(name)]
    raise InputError(
        "no such problem",
        field="problem",
        value=name,
        remedy="use one of " + ", ".join(shipped) + ", or the path of a .py file",
    )


def _shipped() -> dict[str, Path]:
    """The shipped files by name: those in the installed package, or beside it in a source tree."""
    folder = next((f for f in _FOLDERS if f.is_dir()), _FOLDERS[0])
    return {path.stem: path for path in sorted(folder.glob("[a-z]*.py"))}

"""The problem files that come with the package: where they are, and what they say without being run.

`mechdesign problems` and shell completion ask here, and import nothing that computes.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[2]
FOLDERS = (_PACKAGE / "_problems", _PACKAGE.parent / "problems")


@dataclass(frozen=True, kw_only=True)
class ShippedProblem:
    """A shipped problem: its name, path, first docstring line and the defaults of its parameters."""

    name: str
    path: Path
    summary: str
    parameters: dict[str, int | float | str]


def shipped_paths() -> dict[str, Path]:
    """The shipped files by name: those in the installed package, or beside it in a source tree."""
    folder = next((f for f in FOLDERS if f.is_dir()), FOLDERS[0])
    return {path.stem: path for path in sorted(folder.glob("[a-z]*.py"))}


def shipped_problems() -> list[ShippedProblem]:
    """What the shipped files say of themselves, by name, read from their text."""
    return [_read(name, path) for name, path in shipped_paths().items()]


def _read(name: str, path: Path) -> ShippedProblem:
    tree = ast.parse(path.read_bytes(), filename=str(path))
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    function = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "problem")
    known = [*function.args.posonlyargs, *function.args.args]
    pairs = [
        *zip(known[len(known) - len(function.args.defaults) :], function.args.defaults, strict=True),
        *zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True),
    ]
    parameters = {
        argument.arg: ast.literal_eval(constants[value.id] if isinstance(value, ast.Name) else value)
        for argument, value in pairs
        if value is not None
    }
    summary = (ast.get_docstring(tree) or name).splitlines()[0]
    return ShippedProblem(name=name, path=path, summary=summary, parameters=parameters)

"""The house: nothing imports to its right or from the public face, every folder says what it is, files stay short."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from conftest import ROOT

PACKAGE = ROOT / "mechdesign"
FLOORS = (
    *("errors", "base", "setting", "mechanism", "closed_forms", "programs", "solvers", "utility"),
    *("verification", "output", "cli"),
)
LONGEST = 600  # lines of a file
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if len(path.relative_to(PACKAGE).parts) > 1]


def imported(path: Path) -> set[str]:
    """The first names below `mechdesign` of what a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names]
                if node.module == "mechdesign"
                else [node.module]
            )
        found |= {name.split(".")[1] for name in names if name.startswith("mechdesign.")}
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_imports_to_its_right(path: Path) -> None:
    floor = path.relative_to(PACKAGE).parts[0]
    allowed = set() if floor == "handover" else set(FLOORS[: FLOORS.index(floor) + 1])
    assert imported(path) <= allowed | ({"handover"} if floor == "output" else set())


def test_every_floor_is_known() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert folders == {*FLOORS, "handover"} - {"errors"}


@pytest.mark.parametrize("folder", sorted({path.parent for path in FILES}), ids=lambda path: path.name)
def test_a_folder_says_what_it_is_and_has_three_files(folder: Path) -> None:
    said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
    assert said is not None
    assert len(said) >= 40
    inside = [path for path in folder.iterdir() if path.name != "__init__.py" and path.suffix in (".py", ".mjs", "")]
    assert len([path for path in inside if path.name != "__pycache__"]) >= (2 if folder.name == "handover" else 3)


def test_files_stay_short() -> None:
    lines = {str(path.relative_to(PACKAGE)): len(path.read_text().splitlines()) for path in PACKAGE.rglob("*.py")}
    assert {name: count for name, count in lines.items() if count > LONGEST} == {}

"""Scripts run from any folder, and what is installed needs neither scripts nor experiments."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

SCRIPTS = sorted(path for path in (ROOT / "scripts").glob("*.py") if "from experiments" in path.read_text())


def imported(path: Path) -> set[str]:
    """The first names of all modules that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize("folder", ["mechdesign", "problems"])
def test_what_is_installed_imports_nothing_beside_it(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert len(files) > 5
    for file in files:
        assert not imported(file) & {"experiments", "scripts", "tests", "benchmarks", "problems"}, file


def test_some_scripts_use_experiments() -> None:
    assert len(SCRIPTS) >= 5


@pytest.mark.parametrize("script", [SCRIPTS[0], *(pytest.param(path, marks=pytest.mark.slow) for path in SCRIPTS[1:])])
def test_a_script_starts_in_another_folder(script: Path, tmp_path: Path) -> None:
    words = [sys.executable, str(script), "--help"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout


def test_table_one_on_several_sizes_ends_without_a_time_limit() -> None:
    """As docs/large-maps.md has it, at tiny sizes: a row for each stencil, the bound below both losses."""
    words = [sys.executable, str(ROOT / "scripts" / "table1.py"), "--sizes", "5", "--gap", "1e-3"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.strip().startswith("5 x 5")]
    assert [row[3] for row in rows] == ["8", "16"]
    for row in rows:
        laplace, eikonal, optimal, bound = map(float, row[4:8])
        assert bound <= optimal <= eikonal * (1 + SHOWN) < laplace


SHOWN = 1e-5  # the table has six digits

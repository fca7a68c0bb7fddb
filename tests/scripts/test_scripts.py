"""Scripts run from any folder, and installed files need none of them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

SCRIPTS = sorted(path for path in (ROOT / "scripts").glob("*.py") if "ArgumentParser" in path.read_text())


def imports_of(path: Path) -> set[str]:
    """The top-level names of the modules that a file imports, one per line."""
    return set(re.findall(r"^\s*(?:from|import)\s+(\w+)", path.read_text(encoding="utf-8"), re.M))


@pytest.mark.parametrize("folder", ["mechdesign", "problems"])
def test_installed_files_import_no_scripts(folder: str) -> None:
    beside = {"scripts", "tests", "benchmarks", "problems", *(path.stem for path in (ROOT / "scripts").glob("*.py"))}
    files = sorted((ROOT / folder).rglob("*.py"))
    assert len(files) > 5
    for file in files:
        assert not imports_of(file) & beside, file


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) >= 5


@pytest.mark.parametrize(
    "script", [SCRIPTS[0], *(pytest.param(path, marks=pytest.mark.exhaustive) for path in SCRIPTS[1:])]
)
def test_a_script_starts_in_another_folder(script: Path, tmp_path: Path) -> None:
    words = [sys.executable, str(script), "--help"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout


@pytest.mark.exhaustive
def test_benchmarks_agree_on_small_cases(tmp_path: Path) -> None:
    words = [
        sys.executable,
        str(ROOT / "benchmarks" / "run.py"),
        "optimal",
        "transport",
        "likelihood",
        "smooth",
        "eikonal",
    ]
    words += ["reports of a table", "verify", "--sizes", "12", "--repeats", "1"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "stopped" not in done.stdout

"""The house: data flows to the right in the core, which knows no capability, and a capability can be taken away."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from conftest import ROOT
from fixtures.absent_capabilities import CAPABILITIES

from mechdesign.base.registry import capabilities

PACKAGE = ROOT / "mechdesign"
CORE = (
    *("errors", "base", "problem", "mechanism", "evaluation", "closed_forms", "programs", "solvers"),
    *("verification", "output", "cli"),
)
COPIED = ("mechdesign", "tests", "problems", "scripts", "benchmarks", "docs")  # loaded or run by tests
WHOLE = ("docs", "package", "package_contents", "readme", "structure")  # tests of a whole checkout
LINES = """
import sys
from mechdesign.cli.main import main
for words in ("--help", "solve philadelphia --cells 4 -o p.nc", "verify p.nc"):
    sys.argv[1:] = words.split()
    try:
        main()
    except SystemExit as ended:
        assert ended.code == 0, words
"""
PUBLIC = {path.stem for path in PACKAGE.glob("*.py")} - {"errors"}  # the public face may import everything


def statements(body: list[ast.AST]) -> Iterator[ast.AST]:
    """Statements at any depth, without their expressions, which do not import and take long to walk."""
    for statement in body:
        yield statement
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from statements(getattr(statement, name, ()))


@cache
def imports() -> dict[Path, set[str]]:
    """The folders of `mechdesign` that every file below a folder imports, anywhere in it."""
    targets = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        names = []
        for node in statements(ast.parse(path.read_text()).body):
            if isinstance(node, ast.Import):
                names += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module == "mechdesign":
                names += [f"mechdesign.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.append(node.module)
        if path.parent != PACKAGE and path.parent.name != "_problems":
            targets[path.relative_to(PACKAGE)] = {
                name.split(".")[1] for name in names if name.startswith("mechdesign.")
            }
    return targets


def declared_needs(capability: str) -> tuple[set[str], ...]:
    """The capabilities that one needs, and those with which it offers more, by the first line of its registration."""
    first = (PACKAGE / capability / "registration.py").read_text().splitlines()[0]
    needs, _, beside = first.partition(" Needs: ")[2].partition(" With: ")
    return tuple({name for name in CAPABILITIES if name in words} for words in (needs, beside))


def test_every_folder_is_known() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert folders == {*CORE, *CAPABILITIES} - {"errors"}
    assert set(capabilities()) == set(CAPABILITIES)


def test_core_imports_only_folders_to_its_left() -> None:
    wrong = {}
    for path, names in imports().items():
        if path.parts[0] in CORE:
            allowed = set(CORE[: CORE.index(path.parts[0]) + 1])
            wrong |= {str(path): names - allowed} if names - allowed else {}
    assert wrong == {}


def test_arrows_between_capabilities_are_declared() -> None:
    arrows = defaultdict(set)
    for path, names in imports().items():
        if path.parts[0] in CAPABILITIES:
            arrows[path.parts[0]] |= names - {path.parts[0]}
    assert not any(names & PUBLIC for names in arrows.values())
    for capability in CAPABILITIES:
        assert arrows[capability] & set(CAPABILITIES) <= set.union(*declared_needs(capability)), capability


CLOCKS = re.compile(r"^\s*(import|from) .*\btime\b|\bsleep\(|Date\.now|performance\.now|wait_for_timeout", re.M)


def test_no_test_sleeps_or_reads_a_clock() -> None:
    """A busy machine must not fail a test: time passes on clocks of the test, other processes report their state and
    are stopped at an event (fixtures/interruption_points.py). Fuzzing is not a test and runs for a number of seconds.
    """
    files = [path for path in (ROOT / "tests").rglob("*") if path.suffix in (".py", ".mjs")]
    read = {
        path.relative_to(ROOT): CLOCKS.findall(path.read_text("utf-8")) for path in files if path.parent.name != "fuzz"
    }
    read.pop(Path(__file__).relative_to(ROOT))
    assert len(read) > 100
    assert {name: found for name, found in read.items() if found} == {}


def without(folder: Path, *capabilities: str, copied: tuple[str, ...] = COPIED) -> tuple[Path, set[str]]:
    """A copy of the checkout without these capabilities, and without those that need one of them; their names."""
    gone = set(capabilities)
    while more := {name for name in set(CAPABILITIES) - gone if declared_needs(name)[0] & gone}:
        gone |= more
    for name in copied:  # with compiled files, which stay valid: a copy keeps the times of its files
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("_problems"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, folder)
    for name in gone:
        shutil.rmtree(folder / "mechdesign" / name)
        shutil.rmtree(folder / "tests" / name, ignore_errors=True)
    return folder, gone


def run(folder: Path, *words: str) -> str:
    """Return the output of Python with these words in a folder whose package comes first."""
    variables = {**os.environ, "PYTHONPATH": str(folder)}
    ended = subprocess.run(
        [sys.executable, *words], cwd=folder, env=variables, check=False, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-2000:]
    return ended.stdout


# With the two that need it; the others, and all at once, take a minute of the processor.
LEADING = (("geo",),)
ALONE_OR_ALL = [
    pytest.param(taken, id="-".join(taken), marks=() if taken in LEADING else pytest.mark.exhaustive)
    for taken in [*((name,) for name in CAPABILITIES), CAPABILITIES]
]


@pytest.mark.parametrize("taken", ALONE_OR_ALL)
def test_capabilities_can_be_taken_away(taken: tuple[str, ...], tmp_path: Path) -> None:
    folder, gone = without(tmp_path, *taken, copied=COPIED if taken == CAPABILITIES else ("mechdesign", "problems"))
    commands = {name: set(tables.get("commands", {})) for name, tables in capabilities().items()}
    shown = run(folder, "-c", LINES).splitlines()
    present = set().union(*(names for name, names in commands.items() if name not in gone))
    assert {word for line in shown for word in line.split()[1:2]} & set().union(*commands.values()) == present
    if taken == CAPABILITIES:  # once, as collecting takes 20 s: modules that load without all of them load without one
        run(
            folder, "-m", "pytest", "-q", "--collect-only", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist"
        )


@pytest.mark.exhaustive
@pytest.mark.parametrize("taken", [*((name,) for name in CAPABILITIES), CAPABILITIES], ids="-".join)
def test_without_capabilities_all_other_tests_pass(taken: tuple[str, ...], tmp_path: Path) -> None:
    folder, _ = without(tmp_path, *taken)
    ignored = [f"--ignore=tests/test_{name}.py" for name in WHOLE]
    # without the project's options, which would print hundreds of skipped tests after the failures
    assert " passed" in run(
        folder, "-m", "pytest", "-q", "-o", "addopts=", "-n", "2", "-p", "no:cacheprovider", *ignored
    )

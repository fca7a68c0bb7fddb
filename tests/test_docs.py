"""The pages of docs/: their commands and snippets run as they stand, in their order.

A comment before a block excludes it from the default run: `<!-- slow: WHY -->` blocks run with --run-all,
`<!-- not run: WHY -->` blocks never do. Lines that install are passed over: the tests run where it is installed.
"""

from __future__ import annotations

import importlib
import math
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import pytest
import typer
from conftest import ROOT
from fixtures.rows import few_by_default
from scipy.stats import gamma

from mechdesign.cli.app import command
from mechdesign.cli.parameters import parse_problem
from mechdesign.factored.schema import FACTORS
from mechdesign.mechanism.schema import TABLE_SCHEMA
from mechdesign.output.compare import ComparisonRow
from mechdesign.output.sweep import SWEEP
from mechdesign.solvers.eikonal.diagnosis import DIAGNOSIS
from mechdesign.surveys.plan import PLAN
from mechdesign.surveys.shares import ESTIMATE
from mechdesign.surveys.weighted_schema import WEIGHTED

DOCS = ROOT / "docs"
BLOCK = re.compile(
    r"(?:<!-- (?P<mark>slow|not run): (?P<why>[^>]+) -->\n+)?^```(?P<language>\w+)\n(?P<text>.*?)^```", re.S | re.M
)
WRITTEN = re.compile(r'^Path\("(\w+\.py)"\)\.write_text\("""(.*?)"""\)', re.S | re.M)
STARTS = ["tutorials/app.md", "tutorials/paper.md", "tutorials/office.md"]
PAGES = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
RUN_BY_DEFAULT = [*STARTS, "explanation/epsilon.md", "explanation/walkthrough.md"]
PRINTED = 5e-3  # figures of three digits


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and whether it is run ("", "slow" or "not run")."""

    language: str
    text: str
    mark: str


def blocks(page: str) -> list[Block]:
    """The shell and Python blocks of a page."""
    found = BLOCK.finditer((DOCS / page).read_text(encoding="utf-8"))
    return [Block(m["language"], m["text"], m["mark"] or "") for m in found if m["language"] in ("sh", "python")]


def commands(block: Block) -> Iterator[list[str]]:
    """The commands of a shell block as words, without those that install."""
    for line in re.sub(r"\\\n", " ", block.text).splitlines():
        if words := shlex.split(line, comments=True):
            yield words


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with the shipped problems and scripts beside it, as in a checkout."""
    for name in ("problems", "scripts"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_page(page: str, folder: Path, run: Callable[..., tuple[int, str, str]], *, slow: bool) -> int:
    """Run the blocks of a page in their order; how many ran."""
    names: dict[str, object] = {"__name__": "__page__"}
    ran = 0
    for block in blocks(page):
        if block.mark == "not run" or (block.mark == "slow" and not slow):
            continue
        ran += 1
        if block.language == "python":
            exec(compile(block.text, page, "exec"), names)
            continue
        for words in commands(block):
            if words[0] == "pip":
                continue
            assert words[0] in ("mechdesign", "python"), words
            if words[0] == "python":
                subprocess.run([sys.executable, *words[1:]], check=True, capture_output=True, cwd=folder)
            else:
                code, _, err = run(*words[1:])
                assert code == 0 or (words[1] == "audit" and code == 1), f"{shlex.join(words)}\n{err}"
    return ran


@pytest.mark.parametrize("page", few_by_default(RUN_BY_DEFAULT, "tutorials/office.md", *RUN_BY_DEFAULT[-2:]))
def test_the_quick_starts_run_as_they_stand(page, folder, run):
    for extra in ("matplotlib", "pyproj", "shapely"):
        pytest.importorskip(extra)
    assert run_page(page, folder, run, slow=False) >= 1


@pytest.mark.study
@pytest.mark.parametrize("page", [page for page in PAGES if page not in RUN_BY_DEFAULT and blocks(page)])
def test_every_page_runs_as_it_stands(page, folder, run):
    assert run_page(page, folder, run, slow=True) == sum(block.mark != "not run" for block in blocks(page))


def test_options_on_pages_are_those_of_commands_and_problems(folder):
    """Of blocks that are not run by default too. Problems that a page writes are written first."""
    program = command()
    for page in PAGES:
        for name, text in WRITTEN.findall((DOCS / page).read_text(encoding="utf-8")):
            (folder / name).write_text(text)
    told = 0
    for words in (
        words for page in PAGES for block in blocks(page) if block.language == "sh" for words in commands(block)
    ):
        found, rest = program, words[1:]
        while words[0] == "mechdesign" and isinstance(found, typer.core.TyperGroup) and rest[0] in found.commands:
            found = found.commands[rest.pop(0)]
        if found is program:
            continue
        asked = found.make_context(found.name, rest)
        if "problem" in asked.params:
            parse_problem(asked.params["problem"], asked)
        told += 1
    assert told > 60


@pytest.mark.parametrize("page", [*STARTS, "how-to/region.md"])
def test_a_quick_start_has_fewer_than_ten_commands(page):
    assert 3 <= sum(len(list(commands(block))) for block in blocks(page) if block.language == "sh") < 10


def test_the_tables_of_which_epsilon_are_computed():
    tables = [
        [[float(cell) for cell in row.strip("|").split("|")] for row in re.findall(r"^\|[ \d.e|]+\|$", part, re.M)]
        for part in (DOCS / "explanation" / "epsilon.md").read_text(encoding="utf-8").split("## Per report")
    ]
    assert [len(table) for table in tables] == [6, 5]
    for factor, *row in tables[0]:
        eps = math.log(factor) / 200
        radius = gamma(2, scale=1 / eps)  # of planar Laplace noise
        assert row == pytest.approx([math.log(factor), eps, radius.mean(), radius.ppf(0.95)], rel=PRINTED)
    for count, *row in tables[1]:
        eps = math.log(2) / 200 / count
        assert row == pytest.approx([2**count, eps, 2 / eps], rel=2 * PRINTED)


def test_marks_say_why():
    for page in PAGES:
        text = (DOCS / page).read_text(encoding="utf-8")
        marks = re.findall(r"<!-- (?:slow|not run)[^>]*-->", text)
        assert len(marks) == sum(bool(block.mark) for block in blocks(page))


@pytest.fixture
def obligations(monkeypatch):
    """The module that writes the table of obligations."""
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("obligations")


def test_obligations_are_those_marked_on_tests(obligations):
    """Otherwise the table on the page would name tests that are gone; python docs/obligations.py writes it."""
    (table,) = obligations.TABLE.findall(obligations.PAGE.read_text(encoding="utf-8"))
    assert table == obligations.render_table()
    assert set(obligations.tests_by_obligation()) == set(obligations.OBLIGATIONS)


def test_proofs_of_obligations_exist(obligations):
    proofs = {proof for obligation in obligations.OBLIGATIONS.values() for proof in obligation.proofs}
    assert [proof for proof in proofs if not (ROOT / "mechdesign" / proof).is_file()] == []


def test_file_formats_names_every_variable():
    """Every variable and attribute of a schema stands on the page, in code."""
    page = (DOCS / "reference" / "file-formats.md").read_text(encoding="utf-8")
    schemas = [TABLE_SCHEMA, FACTORS, SWEEP, DIAGNOSIS, ESTIMATE, WEIGHTED, PLAN]
    names = {name for schema in schemas for name in (*schema.variables, *schema.attribute_types)}
    names |= {field.name for field in fields(ComparisonRow)} | {"worst", "movement", "remembered", "steps", "caps"}
    assert sorted(names - set(re.findall(r"`([a-z_0-9]+)`", page))) == []


def test_security_policy_is_short():
    assert len((ROOT / "SECURITY.md").read_bytes()) <= 7000


@pytest.mark.parametrize("page", PAGES)
def test_page_is_short(page):
    assert len((DOCS / page).read_text(encoding="utf-8").splitlines()) <= 150

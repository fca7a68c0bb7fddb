"""The README is short, its commands and snippets run, and docs/how-to/compare.md shows the computed tables."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from decimal import ROUND_CEILING, Decimal
from pathlib import Path

import pytest
from fixtures.tolerances import UP_TO_ROUNDING

from mechdesign import load_problem, sweep
from mechdesign.baselines import BASELINES
from mechdesign.output.compare import COLUMNS
from mechdesign.output.text_tables import print_table

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
COMPARE = ROOT / "docs" / "how-to" / "compare.md"
FIGURES = r"\d[-+.,%<\de ]*"
LONGEST = (130, 1000)  # lines and words of the README
OTHERS = ("eikonal", *(name for name in BASELINES if name != "constant"))  # beside the optimum along a curve


def _curve_block() -> str:
    """The table after the command of the curve."""
    return COMPARE.read_text(encoding="utf-8").split("## The privacy-utility curve")[1].split("```")[3]


def rounded_up(value: float, digits: int) -> str:
    """A figure as tables print it, to the safe side."""
    exact = Decimal(f"{value:.12g}")  # without the rounding of sums
    return f"{exact.quantize(Decimal(1).scaleb(exact.adjusted() + 1 - digits), ROUND_CEILING).normalize():,f}"


def snippets(page: Path) -> list[str]:
    """The Python blocks of a page."""
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)


def test_the_readme_is_short():
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST[0]
    assert len(text.split()) <= LONGEST[1]


def test_the_two_commands_are_one_line_each():
    for name in ("main", "tests"):
        (block,) = re.findall(rf"<!-- command: {name} -->\n```sh\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
        assert len(block.splitlines()) == 1


def test_the_snippets_of_the_readme_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for snippet in snippets(README):
        exec(compile(snippet, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    assert re.search(r"certified +True", printed)
    assert re.search(r" 1\.43\d", printed), "the README says 1.43 times"


@pytest.mark.study
def test_the_script_of_the_comparison_prints_its_table(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    script = snippets(COMPARE)[0]
    exec(compile(script, "compare.md", "exec"), {})
    first, certified, _, *rows = capsys.readouterr().out.splitlines()
    assert certified == "True"
    found = re.findall(rf"^([a-z]\w+) +({FIGURES})$", COMPARE.read_text(encoding="utf-8"), re.M)
    table = {name: figures.split() for name, figures in found}
    assert len(rows) == len(table) == 8
    for row in rows:
        name, loss, ratio = row.split()
        assert rounded_up(float(loss), 6) == table[name][0]
        assert rounded_up(float(ratio), 5) == table[name][-3]
    loss, bound = map(float, first.split())
    assert [rounded_up(loss, 6), rounded_up(-bound, 6)] == [table["optimal"][0], f"-{table['optimal'][1]}"]


def test_comparison_tables_are_as_printed(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "120")
    text = COMPARE.read_text(encoding="utf-8")
    rows = [line.split() for line in re.findall(rf"^[a-z]\w+ +{FIGURES}$", text, re.M)]
    print_table(["mechanism", *(column.heading for column in COLUMNS)], rows)
    assert capsys.readouterr().out.strip("\n") in text
    curve = _curve_block()
    lines = [line.split() for line in re.findall(r"^\d.*$", curve, re.M)]
    starred = [any(line[k].endswith("*") for line in lines) for k in range(len(lines[0]))]
    padded = [
        [c if not s or c.endswith("*") else f"{c} " for c, s in zip(line, starred, strict=True)] for line in lines
    ]
    names = [name.replace("_", " ") for name in OTHERS]
    print_table(["scale", "loss", "lower bound", "gap", "position loss", *names], padded)
    assert capsys.readouterr().out.strip("\n") in curve


def test_the_curve_of_the_comparison_is_the_computed_one():
    table = {line.split()[0]: line.split()[1:] for line in re.findall(r"^\d.*$", _curve_block(), re.M)}
    assert list(table) == ["0.5", "0.7071", "1", "1.414", "2"]
    gap = 1e-3
    curve = sweep(load_problem("philadelphia", cells=12), [0.5, 2.0], gap=gap).to_dataframe()
    for scale, row in curve.iterrows():
        loss, bound, _, _, *told = table[f"{scale:g}"]
        assert [float(loss), float(bound)] == pytest.approx([row["loss"], row["lower_bound"]], rel=gap)
        for name, figure in zip(OTHERS, told, strict=True):
            broken = row[f"{name}_effective_scale"] > scale * UP_TO_ROUNDING
            assert figure == rounded_up(row[f"{name}_loss"], 4) + "*" * bool(broken)


def commands() -> list[str]:
    """The commands of the README in their order; those that install are not among them."""
    blocks = re.findall(r"```sh\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
    lines = [line for block in blocks for line in re.split(r" && |\n", block.strip())]
    return [line for line in lines if not re.search(r"venv|pip install|pytest", line)]


def run(line: str, folder: Path) -> str:
    """Return the standard output of a command in a folder next to the shipped problems."""
    name, *words = line.split()
    assert name == "mechdesign", line
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}
    started = [sys.executable, "-m", "mechdesign", *words]
    ended = subprocess.run(started, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == 0, f"{line}\n{ended.stderr}"
    return ended.stdout


@pytest.mark.study
def test_commands_run_in_order_and_rome_is_computed(tmp_path):
    pytest.importorskip("pyproj")
    shutil.copytree(ROOT / "problems", tmp_path / "problems")
    printed = [run(line, tmp_path) for line in commands()]
    quoted = README.read_text(encoding="utf-8").split("## Quick start")[1].split("```")[3].strip()
    assert printed[0].startswith(quoted + "\n")


@pytest.mark.parametrize(
    "name", ["README.md", *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md")))]
)
def test_files_that_are_linked_are_there(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", text)
    written_by_the_build = ("examples/index.rst", "commands.rst", "reference/rules.rst")
    files = [link for link in links if "://" not in link and not link.endswith(written_by_the_build)]
    assert [link for link in files if not ((ROOT / name).parent / link).exists()] == []


def test_pictures_are_small():
    for path in (ROOT / "docs" / "pictures").iterdir():
        assert path.stat().st_size < 200_000

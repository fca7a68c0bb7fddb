"""Every command and snippet of the README runs, and its tables and sentences show what is computed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mechdesign.base.figures import cell
from mechdesign.output.compare import COLUMNS
from mechdesign.output.printing import print_table
from mechdesign.output.sweep import baseline_names, baselines_of, sweep, sweep_rows
from mechdesign.problem.problem import load_problem

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
FIGURES = r"\d[-+.,%<\de ]*"


def _curve_block(text: str) -> str:
    """What stands between fences after the command of the curve."""
    return text.split("## The privacy-utility curve")[1].split("```")[3]


def test_the_first_script_prints_the_table_of_the_readme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = README.read_text(encoding="utf-8")
    script = re.search(r"## A first script\n\n```python\n(.*?)```", text, re.S)
    assert script is not None
    monkeypatch.chdir(tmp_path)
    exec(compile(script[1], "README.md", "exec"), {})
    first, certified, _, *rows = capsys.readouterr().out.splitlines()
    assert certified == "True"
    table = {name: figures.split() for name, figures in re.findall(rf"^([a-z]\w+) +({FIGURES})$", text, re.M)}
    assert len(rows) == len(table) == 8
    for row in rows:
        name, loss, effective = row.split()
        assert cell(float(loss), "up 6") == table[name][0]
        assert cell(float(effective), "up 5") == table[name][-3]
    assert [cell(float(x), way) for x, way in zip(first.split(), ("up 6", "down 6"), strict=True)] == (
        table["optimal"][:2]
    )


def test_the_tables_of_the_readme_are_laid_out_as_they_are_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    text = README.read_text(encoding="utf-8")
    rows = [line.split() for line in re.findall(rf"^[a-z]\w+ +{FIGURES}$", text, re.M)]
    print_table(["mechanism", *(heading for heading, _, _ in COLUMNS)], rows)
    assert capsys.readouterr().out.strip("\n") in text
    curve = _curve_block(text)
    lines = [line.split() for line in re.findall(r"^\d.*$", curve, re.M)]
    starred = [any(line[k].endswith("*") for line in lines) for k in range(len(lines[0]))]
    padded = [
        [c if not s or c.endswith("*") else f"{c} " for c, s in zip(line, starred, strict=True)] for line in lines
    ]
    names = [name.replace("_", " ") for name in baseline_names()]
    print_table(["scale", "loss", "lower bound", "gap", "position loss", *names], padded)
    assert capsys.readouterr().out.strip("\n") in curve


def test_the_curve_of_the_readme_is_the_computed_one() -> None:
    text = _curve_block(README.read_text(encoding="utf-8"))
    table = {line.split()[0]: line.split()[1:] for line in re.findall(r"^\d.*$", text, re.M)}
    assert list(table) == ["0.5", "0.7071", "1", "1.414", "2"]
    gap = 1e-3
    for row in sweep_rows(sweep(load_problem("philadelphia", cells=12), [0.5, 2.0], gap=gap)):
        loss, bound, _, _, *baselines = table[f"{row['scale']:g}"]
        assert [float(loss), float(bound)] == pytest.approx([row["loss"], row["lower_bound"]], rel=gap)
        assert baselines == [
            cell(row[f"{name}_loss"], "up 4") + "*" * bool(baselines_of(row)[name]) for name in baselines_of(row)
        ]


def commands() -> list[str]:
    """The commands of the README in their order, lines that go on joined; those that install are not among them."""
    blocks = re.findall(r"```sh\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
    lines = [line for block in blocks for line in re.split(r" &&\n| && |\n", block.strip())]
    return [line for line in lines if not re.search(r"venv|pip install|pytest", line)]


def run(line: str, folder: Path) -> str:
    """What a command says on standard output, in a folder that has the shipped problems beside it."""
    name, *words = line.split()
    assert name in ("mechdesign", "python"), line
    started = [sys.executable, *(["-m", "mechdesign"] if name == "mechdesign" else []), *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}
    ended = subprocess.run(started, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == 0, f"{line}\n{ended.stderr}"
    return ended.stdout


@pytest.mark.slow
def test_the_sentence_about_rome_is_the_computed_one(tmp_path: Path) -> None:
    pytest.importorskip("pyproj")
    (line,) = {line.removesuffix(" --overwrite") for line in commands() if line.startswith("mechdesign area --box")}
    text = README.read_text(encoding="utf-8")
    told = text.split("## A real place")[1].split("```")[3].strip()
    assert run(line, tmp_path).startswith(told + "\n")


@pytest.mark.slow
def test_every_command_and_snippet_runs_in_its_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "problems", tmp_path / "problems")
    monkeypatch.chdir(tmp_path)
    for line in commands():
        if "large.nc" not in line:  # three minutes
            run(line, tmp_path)
    names: dict[str, object] = {}
    for snippet in re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S):
        exec(compile(snippet, "README.md", "exec"), names)
        if "def problem(" in snippet:
            (tmp_path / "my_problem.py").write_text(snippet, encoding="utf-8")
    run("mechdesign solve my_problem.py --cells 10 -o mechanism.nc", tmp_path)
    run("mechdesign export mechanism.nc -o mechanism.csv", tmp_path)
    assert "\nproved:" in run("python verify_table.py mechanism.csv", tmp_path)


@pytest.mark.parametrize("name", ["README.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))])
def test_files_that_are_linked_are_there(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", text)
    assert [link for link in links if not ((ROOT / name).parent / link).exists()] == []


def test_pictures_are_small() -> None:
    for path in (ROOT / "docs" / "pictures").iterdir():
        assert path.stat().st_size < 200_000

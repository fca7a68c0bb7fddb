"""The first script of the README runs, and the README's tables show what is computed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mechdesign.output.tables.compare import COLUMNS
from mechdesign.output.tables.sweep import baseline_names, baselines_of, sweep, sweep_rows
from mechdesign.output.terminal.printing import print_table
from mechdesign.setting.problems.problem_files import load_problem

README = Path(__file__).parent.parent / "README.md"


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
    table = {name: figures.split() for name, figures in re.findall(r"^([a-z]\w+) +(\d[-+.\de ]*)$", text, re.M)}
    assert len(rows) == len(table) == 8
    for row in rows:
        name, loss, effective = row.split()
        assert f"{float(loss):.6g}" == table[name][0]
        assert f"{float(effective):.4f}" == table[name][-3]
    assert [f"{float(x):.6g}" for x in first.split()] == table["optimal"][:2]


def test_the_tables_of_the_readme_are_laid_out_as_they_are_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    text = README.read_text(encoding="utf-8")
    rows = [line.split() for line in re.findall(r"^[a-z]\w+ +\d[-+.\de ]*$", text, re.M)]
    print_table(["mechanism", *(heading for heading, _, _ in COLUMNS)], rows)
    assert capsys.readouterr().out.strip("\n") in text
    curve = _curve_block(text)
    lines = [line.split() for line in re.findall(r"^\d.*$", curve, re.M)]
    starred = [any(line[k].endswith("*") for line in lines) for k in range(len(lines[0]))]
    padded = [
        [c if not s or c.endswith("*") else f"{c} " for c, s in zip(line, starred, strict=True)] for line in lines
    ]
    names = [name.replace("_", " ") for name in baseline_names()]
    print_table(["scale", "loss", "lower bound", "gap", *names], padded)
    assert capsys.readouterr().out.strip("\n") in curve


def test_the_curve_of_the_readme_is_the_computed_one() -> None:
    text = _curve_block(README.read_text(encoding="utf-8"))
    table = {line.split()[0]: line.split()[1:] for line in re.findall(r"^\d.*$", text, re.M)}
    assert list(table) == ["0.5", "0.7071", "1", "1.414", "2"]
    gap = 1e-3
    for row in sweep_rows(sweep(load_problem("philadelphia", cells=12), [0.5, 2.0], gap=gap)):
        loss, bound, _, *baselines = table[f"{row['multiplier']:g}"]
        assert [float(loss), float(bound)] == pytest.approx([row["loss"], row["lower_bound"]], rel=gap)
        assert baselines == [
            f"{row[f'{name}_loss']:.4g}" + "*" * bool(baselines_of(row)[name]) for name in baselines_of(row)
        ]

"""The first script of the README runs and gives the figures of the README's table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


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
    table = {name: figures.split() for name, figures in re.findall(r"^  (\w+) +(\d[-+.\de ]*)$", text, re.M)}
    assert len(rows) == len(table) == 8
    for row in rows:
        name, loss, effective = row.split()
        assert f"{float(loss):.6g}" == table[name][0]
        assert f"{float(effective):.4f}" == table[name][-1]
    assert [f"{float(x):.6g}" for x in first.split()] == table["optimal"][:2]

"""The verifier that is handed over: whatever an export is changed to, an exit code, and one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixtures.export_mechanisms import joined_text, split_text
from fixtures.position_mechanisms import position_mechanism
from fuzzed_exports import export_of

import mechdesign as md
from mechdesign.verification import verify_table

FEW, MANY = 24, 2000
KINDS = pytest.mark.parametrize("kind", ["csv", "json"])
NAMES = ("square", "levels", "quarters", "holes", "plane")


def exit_codes(name: str, kind: str, numbers: range, folder: Path, capsys: pytest.CaptureFixture[str]) -> set[int]:
    """The exit codes over so many changes; every outcome is said in a line that fits it."""
    text = joined_text(md.export(position_mechanism(name), folder / f"{name}.{kind}"))
    path, codes = folder / f"changed.{kind}", set()
    for number in numbers:
        split_text(export_of(text, kind, number), path)
        code = verify_table.main([str(path)])
        last = capsys.readouterr().out.splitlines()[-1]
        codes.add(code)
        assert last.startswith({0: "proved:", 1: "refused:", 2: "error:"}[code]), f"{name} {kind} {number}"
    return codes


@KINDS
def test_every_change_ends_in_an_exit_code_and_a_sentence(kind, tmp_path, capsys):
    found = [exit_codes(name, kind, range(FEW), tmp_path, capsys) for name in ("levels", "holes")]
    assert set.union(*found) == {0, 1, 2}


@pytest.mark.exhaustive
@KINDS
@pytest.mark.parametrize("name", NAMES)
def test_many_more_changes_end_so(name, kind, tmp_path, capsys):
    assert exit_codes(name, kind, range(FEW, FEW + MANY), tmp_path, capsys) == {0, 1, 2}

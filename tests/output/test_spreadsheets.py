"""CSV files open in spreadsheets: no text of anybody's becomes a formula there, and names read back as they were."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixtures.export_mechanisms import exportable, prove_export
from fixtures.forged_files import rewritten
from hypothesis import example, given, settings
from hypothesis import strategies as some

import mechdesign as md
from mechdesign.base.spreadsheets import cell_of, text_of
from mechdesign.geo import Partition, read_areas
from mechdesign.surveys import estimate_shares
from mechdesign.surveys.export import save_shares

NAMES = ("=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "'=1", "''@x", "'quoted'", "north, =1", "-5", "\t=1")


def starts_formulas(path: Path) -> list[str]:
    """The cells of a file that a spreadsheet runs, numbers aside."""
    with path.open(encoding="utf-8", newline="") as stream:
        cells = [cell.strip() for row in csv.reader(stream) for cell in row]
    return [cell for cell in cells if cell[:1] in "=+-@" and cell[:1] and not _is_number(cell)]


def _is_number(cell: str) -> bool:
    try:
        float(cell.strip('] "'))
    except ValueError:
        return False
    return True


@given(text=some.text(alphabet="'=+-@ a1,\t\"", max_size=8))
@example(text="=1")
@settings(max_examples=100, derandomize=True, deadline=None)
def test_every_text_is_read_back_and_none_is_a_formula(text: str) -> None:
    assert text_of(cell_of(text)) == text
    assert not cell_of(text).startswith(("=", "+", "-", "@", "\t"))


def test_numbers_stay_numbers() -> None:
    for number in (-1.5, 0, -3, None, np.float64(-2), True):
        assert cell_of(number) is number


def test_an_estimate_names_its_areas_and_runs_none(tmp_path: Path) -> None:
    mechanism = exportable("plane")
    domain = md.load_problem("flat", cells=3).domain
    printable = [name for name in NAMES if name.isprintable()]
    for start in range(0, len(printable), 3):
        names = printable[start : start + 3]
        areas = Partition(names=tuple(names), label=np.arange(domain.size) % 3)
        counts = np.full(mechanism.sizes["report"], 40)
        found = estimate_shares([mechanism], [counts], areas)
        found = rewritten(found, problem="rome,=1+1,@x")
        path = save_shares(found, tmp_path / f"{start}.csv")
        assert starts_formulas(path) == []
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        assert tuple(text_of(row["area"]) for row in csv.DictReader(lines)) == areas.names


def test_areas_are_read_back_by_their_names(tmp_path: Path) -> None:
    domain = md.load_problem("flat", cells=3).domain
    path = tmp_path / "cells.csv"
    kept = [name for name in NAMES if name == name.strip()]
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["cell", "area"])
        writer.writerows([cell, cell_of(kept[cell % len(kept)])] for cell in range(domain.size))
    assert set(read_areas(path, domain).names) == set(kept[: domain.size])


@pytest.mark.filterwarnings("ignore")
def test_a_comparison_names_its_mechanisms_and_runs_none(tmp_path: Path, run_json: Any) -> None:
    files, path = [tmp_path / f"{name}.npy" for name in ("=HYPERLINK(1)", "-1")], tmp_path / "c.csv"
    for file in files:
        np.save(file, np.full((3, 3), 1 / 3))
    run_json("compare", "discrete", "--secrets", 3, "--with", files[0], "--with", files[1], "-o", path)
    assert starts_formulas(path) == []
    with path.open(encoding="utf-8", newline="") as stream:
        assert {"=HYPERLINK(1)", "-1"} <= {text_of(row["mechanism"]) for row in csv.DictReader(stream)}


def test_export_names_its_problem_without_running_it(tmp_path: Path) -> None:
    name = 'x,=1+1,"@y, -z;=2'
    path = md.export(rewritten(exportable("line"), problem=name), tmp_path / "t.csv")
    assert starts_formulas(path) == []
    assert prove_export(path)["problem"] == name

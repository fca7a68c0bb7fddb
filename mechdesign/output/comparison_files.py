"""Comparisons and sweeps as files: CSV, JSON, LaTeX, and the NetCDF of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from mechdesign.base.atomic_write import check_target, write_atomically
from mechdesign.base.formatting import latex_powers
from mechdesign.base.spreadsheets import csv_of
from mechdesign.errors import InputError
from mechdesign.mechanism.storage import save
from mechdesign.output import compare, sweep
from mechdesign.output.text_tables import json_text, plain

TABLES = (".csv", ".json", ".tex")
CURVES = (".nc", ".csv", ".tex")


def check_table_target(path: str | Path, kinds: Sequence[str] = TABLES, *, overwrite: bool = False) -> Path:
    """Return the path if a table of one of the kinds can be written there."""
    target = check_target(path, overwrite=overwrite)
    if target.suffix.lower() not in kinds:
        raise InputError(f"must end in one of {', '.join(kinds)}", field="output", value=target.name)
    return target


def write_rows(table: Sequence[compare.ComparisonRow], path: str | Path, *, overwrite: bool = False) -> Path:
    """Write the rows of a comparison, atomically: .csv or .json with all digits, .tex rounded for readers."""
    target = check_table_target(path, overwrite=overwrite)
    shown = compare.columns(table)
    head = ["mechanism", *(column.heading for column in shown)]
    lines = [[row.mechanism, *compare.figure_texts(row, shown)] for row in table]
    return _write(target, [row.to_json() for row in table], head, lines)


def save_curve(curve: xr.Dataset, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a sweep, atomically: .nc complete, .csv with all digits, .tex with losses, a star at broken claims."""
    target = check_table_target(path, CURVES, overwrite=overwrite)
    if target.suffix.lower() == ".nc":
        return save(curve, target, overwrite=overwrite)
    points = sweep.curve_points(curve)
    lines = [sweep.printed_losses(point) for point in points]
    return _write(target, sweep.curve_rows(points), sweep.headings(points[0]), lines)


def _write(target: Path, rows: Sequence[Mapping[str, Any]], head: list[str], lines: list[list[str]]) -> Path:
    """Write rows with all digits, or for .tex `lines`, which need the LaTeX package booktabs."""
    suffix = target.suffix.lower()
    if suffix == ".json":
        text = json_text(rows)
    elif suffix == ".csv":
        text = csv_of([plain(row) for row in rows])
    else:
        form = "l" + "r" * (len(head) - 1)
        text = pd.DataFrame(lines, columns=head).to_latex(index=False, escape=True, column_format=form)
        text = latex_powers(text).replace("<", "$<$")  # which the default encoding of text sets as another sign
    write_atomically(target, lambda temporary: temporary.write_bytes(text.encode()))
    return target

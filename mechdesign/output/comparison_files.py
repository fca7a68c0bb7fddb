"""Comparisons and sweeps as files: CSV, JSON, Excel, LaTeX, and the NetCDF of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from mechdesign.base.atomic_write import check_target, write_atomically
from mechdesign.base.optional import import_optional
from mechdesign.base.spreadsheets import csv_of, write_workbook
from mechdesign.errors import InputError
from mechdesign.mechanism.storage import save
from mechdesign.output import compare, sweep
from mechdesign.output.captions import readable_unit
from mechdesign.output.latex import latex_table
from mechdesign.output.reports.comparison import caption, heading_with_unit
from mechdesign.output.text_tables import json_text, plain
from mechdesign.problem.problem import DesignProblem

TABLES = (".csv", ".json", ".xlsx", ".tex")
CURVES = (".nc", ".csv", ".xlsx", ".tex")


def check_table_target(path: str | Path, kinds: Sequence[str] = TABLES, *, overwrite: bool = False) -> Path:
    """Return the path if a table of one of the kinds can be written there."""
    target = check_target(path, overwrite=overwrite)
    if target.suffix.lower() not in kinds:
        raise InputError(f"must end in one of {', '.join(kinds)}", field="output", value=target.name)
    if target.suffix.lower() == ".xlsx":
        import_optional("openpyxl", "xlsx")
    return target


def write_rows(
    table: Sequence[compare.ComparisonRow], path: str | Path, problem: DesignProblem, *, overwrite: bool = False
) -> Path:
    """Write the rows of a comparison, atomically: .csv, .json and .xlsx with all digits, .tex rounded for readers."""
    target = check_table_target(path, overwrite=overwrite)
    shown = compare.columns(table)
    head = ["mechanism", *(heading_with_unit(column, problem) for column in shown)]
    lines = [[row.mechanism, *compare.figure_texts(row, shown)] for row in table]
    return _write(target, [row.to_json() for row in table], head, lines, caption=f"Mechanisms for {caption(problem)}")


def save_curve(curve: xr.Dataset, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a sweep: .nc complete, .csv and .xlsx with all digits, .tex with losses, a star at broken claims."""
    target = check_table_target(path, CURVES, overwrite=overwrite)
    if target.suffix.lower() == ".nc":
        return save(curve, target, overwrite=overwrite)
    points = sweep.curve_points(curve)
    lines = [sweep.printed_losses(point) for point in points]
    named, unit = str(curve.attrs["problem"]), readable_unit(str(curve["loss"].attrs.get("units", "1")))
    words = f"Losses ({unit}) by the scale of the metric: {named}. A star: the claim is broken."
    return _write(target, sweep.curve_rows(points), sweep.headings(points[0]), lines, caption=words)


def _write(
    target: Path, rows: Sequence[Mapping[str, Any]], head: list[str], lines: list[list[str]], *, caption: str
) -> Path:
    """Write rows with all digits, or for .tex `lines`."""
    suffix = target.suffix.lower()
    if suffix == ".xlsx":
        named = [plain(row) for row in rows]
        write_atomically(target, lambda temporary: write_workbook(named, temporary, sheet="mechdesign"))
        return target
    if suffix == ".json":
        text = json_text(rows)
    elif suffix == ".csv":
        text = csv_of([plain(row) for row in rows])
    else:
        text = latex_table(target, head, lines, caption=caption)
    write_atomically(target, lambda temporary: temporary.write_bytes(text.encode()))
    return target

"""Comparisons and sweeps as files: CSV, JSON, LaTeX, and the NetCDF of a sweep."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

import xarray as xr

from mechdesign.base.spreadsheets import cell_of, cells_of
from mechdesign.errors import InputError
from mechdesign.mechanism.storage.files import check_target, save, write_atomically
from mechdesign.output.tables.compare import Row, columns, printed
from mechdesign.output.tables.latex import latex_table
from mechdesign.output.tables.sweep import baselines_of, printed_losses, sweep_rows
from mechdesign.output.tables.sweep import columns as curve_columns

TABLES = (".csv", ".json", ".tex")
CURVES = (".nc", ".csv", ".tex")
OLD_NAMES = {"true_epsilon": "smallest_epsilon", "criterion": "asymptotic_mse"}  # of version 0.1, with the same values


def documented(table: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows as a document gives them: infinite figures are None, and those that have had another name stand under
    both.
    """
    plain: list[dict[str, Any]] = [
        {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()}
        for row in table
    ]
    return [row | {old: row[name] for old, name in OLD_NAMES.items()} for row in plain]


def check_table_target(path: str | Path, *, overwrite: bool = False) -> Path:
    """The path, if `write_rows` can write there. Raises: InputError."""
    return _target(path, TABLES, overwrite=overwrite)


def write_rows(table: Sequence[Row], path: str | Path, *, overwrite: bool = False) -> Path:
    """Write the rows, atomically: .csv or .json with figures in all their digits, .tex as people read them.

    Raises: InputError for another suffix or a file that exists; FileFormatError if the disk refuses.
    """
    target = check_table_target(path, overwrite=overwrite)
    suffix = target.suffix.lower()

    def write(stream: TextIO) -> None:
        if suffix == ".tex":
            shown = columns(table)
            head = ["mechanism", *(heading for heading, _, _ in shown)]
            stream.write(latex_table(head, [[row["mechanism"], *printed(row, shown)] for row in table]))
        elif suffix == ".json":
            json.dump(documented(table), stream, allow_nan=False, indent=2)
        else:
            _write_csv(stream, documented(table), [*Row.__annotations__, *OLD_NAMES])

    return _write(target, write)


def check_curve_target(path: str | Path, *, overwrite: bool = False) -> Path:
    """The path, if `save_curve` can write there. Raises: InputError."""
    return _target(path, CURVES, overwrite=overwrite)


def save_curve(curve: xr.Dataset, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a sweep, atomically: .nc whole, .csv with figures in all their digits, .tex with the losses that people
    read, a star where a baseline breaks its claim.

    Raises: InputError for another suffix or a file that exists; FileFormatError if the disk refuses.
    """
    target = check_curve_target(path, overwrite=overwrite)
    if target.suffix.lower() == ".nc":
        return save(curve, target, overwrite=overwrite)
    rows = sweep_rows(curve)

    def write(stream: TextIO) -> None:
        if target.suffix.lower() == ".tex":
            head = [heading for heading, _, _ in curve_columns(rows[0])]
            head += [name.replace("_", " ") for name in baselines_of(rows[0])]
            stream.write(latex_table(head, [printed_losses(row) for row in rows]))
        else:
            _write_csv(stream, rows, list(rows[0]))

    return _write(target, write)


def _target(path: str | Path, suffixes: Sequence[str], *, overwrite: bool) -> Path:
    target = check_target(path, overwrite=overwrite)
    if target.suffix.lower() not in suffixes:
        raise InputError(
            "unknown kind of table", field="output", value=target.name, remedy="use one of " + ", ".join(suffixes)
        )
    return target


def _write(target: Path, write: Callable[[TextIO], None]) -> Path:
    """Write a text file, atomically."""

    def opened(temporary: Path) -> None:
        with temporary.open("w", newline="", encoding="utf-8") as stream:
            write(stream)

    write_atomically(target, opened)
    return target


def _write_csv(stream: TextIO, rows: Sequence[dict[str, Any]], names: Sequence[str]) -> None:
    writer = csv.DictWriter(stream, [cell_of(name) for name in names], lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(cells_of, rows))

"""export: a mechanism as a table that other programs read."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import xarray as xr

from mechdesign.errors import InputError
from mechdesign.mechanism.factored import SCHEMA as FACTORED
from mechdesign.mechanism.factored_rows import FactoredMechanism
from mechdesign.mechanism.storage import check_target, write_atomically
from mechdesign.mechanism.table import stored_points
from mechdesign.setting.domain import AXES

MOST_ROWS = 1000  # of a factored mechanism in one file: more fill a disk
_COMMENTS = ("claim", "problem", "program", "loss", "expected_loss", "lower_bound", "effective_epsilon", "sha256")


def export(mechanism: xr.Dataset, path: str | Path, *, rows: range | None = None, overwrite: bool = False) -> Path:
    """Write the table as CSV: one line per (secret, report), mass as an exact integer.

    Lines starting with # come first: claim, units, losses, checksum. Then the columns secret, its coordinates,
    report, its coordinates, mass; probability = mass / 2^62. A factored mechanism has a column row_sum instead of that
    common sum: probability = mass / row_sum, both exact. Every report of a row is there, so that sums can be checked.
    Parameters: rows, the secrets to write; all by default, of a factored mechanism at most 1,000.
    Raises: InputError for another suffix than .csv, rows that are not there or too many, an existing file without
        `overwrite`, or a missing folder.
    """
    target = check_target(path, overwrite=overwrite)
    if target.suffix.lower() != ".csv":
        raise InputError("unknown kind of table", field="output", value=target.name, remedy="use a name ending in .csv")
    factored = mechanism.attrs.get("schema") == FACTORED
    asked = _checked_rows(rows, mechanism.sizes["secret"], most=MOST_ROWS if factored else None)
    write_atomically(target, lambda temporary: _write_csv(mechanism, asked, temporary))
    return target


def _checked_rows(rows: range | None, total: int, *, most: int | None) -> range:
    asked = range(total) if rows is None else rows
    if len(asked) == 0 or min(asked) < 0 or max(asked) >= total:
        raise InputError("no such rows", field="rows", value=asked, remedy=f"use secrets from 0 to {total - 1}")
    if most is not None and len(asked) > most:
        raise InputError(
            f"would write {len(asked)} x {total} lines",
            field="rows",
            value=asked,
            remedy=f"name at most {most} rows: --rows 0:{most}",
        )
    return asked


def _write_csv(mechanism: xr.Dataset, rows: range, path: Path) -> None:
    factored = mechanism.attrs.get("schema") == FACTORED
    secrets = stored_points(mechanism, "secret").tolist()
    reports = secrets if factored else stored_points(mechanism, "report").tolist()
    axes = AXES[: len(secrets[0])]
    divisor = "row_sum" if factored else "2^62"
    with path.open("w", newline="", encoding="utf-8") as stream:
        stream.write(f"# mechdesign mechanism table; probability = mass / {divisor}\n")
        stream.write(f"# unit: {mechanism['secret_x'].attrs['units']}\n")
        for name in _COMMENTS:
            if name in mechanism.attrs:
                stream.write(f"# {name}: {json.dumps(_plain(mechanism.attrs[name]))}\n")
        writer = csv.writer(stream, lineterminator="\n")
        names = [f"{dim}_{axis}" for dim in ("secret", "report") for axis in axes]
        sums = ["row_sum"] if factored else []
        writer.writerow(["secret", *names[: len(axes)], "report", *names[len(axes) :], "mass", *sums])
        exact = FactoredMechanism(dataset=mechanism) if factored else None
        for u in rows:
            masses, total = (mechanism["mass"].values[u].tolist(), None) if exact is None else exact.integers(u)
            end = [] if total is None else [total]
            writer.writerows([u, *secrets[u], y, *reports[y], mass, *end] for y, mass in enumerate(masses))


def _plain(value: object) -> object:
    return value.item() if hasattr(value, "item") else value

"""export: a mechanism as a table that other programs read."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import xarray as xr

from mechdesign.errors import InputError
from mechdesign.mechanism.storage import check_target, write_atomically
from mechdesign.mechanism.table import stored_points
from mechdesign.setting.domain import AXES

_COMMENTS = ("claim", "problem", "program", "loss", "expected_loss", "lower_bound", "effective_epsilon", "sha256")


def export(mechanism: xr.Dataset, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write the table as CSV: one line per (secret, report), mass as an exact integer.

    Lines starting with # come first: claim, units, losses, checksum. Then the columns secret, its coordinates,
    report, its coordinates, mass; probability = mass / 2^62. Every row is there, so that the sums can be checked.
    Raises: InputError for another suffix than .csv, an existing file without `overwrite`, or a missing folder.
    """
    target = check_target(path, overwrite=overwrite)
    if target.suffix.lower() != ".csv":
        raise InputError("unknown kind of table", field="output", value=target.name, remedy="use a name ending in .csv")
    write_atomically(target, lambda temporary: _write_csv(mechanism, temporary))
    return target


def _write_csv(mechanism: xr.Dataset, path: Path) -> None:
    secrets, reports = stored_points(mechanism, "secret").tolist(), stored_points(mechanism, "report").tolist()
    axes = AXES[: len(secrets[0])]
    with path.open("w", newline="", encoding="utf-8") as stream:
        stream.write("# mechdesign mechanism table; probability = mass / 2^62\n")
        stream.write(f"# unit: {mechanism['secret_x'].attrs['units']}\n")
        for name in _COMMENTS:
            if name in mechanism.attrs:
                stream.write(f"# {name}: {json.dumps(_plain(mechanism.attrs[name]))}\n")
        writer = csv.writer(stream, lineterminator="\n")
        names = [f"{dim}_{axis}" for dim in ("secret", "report") for axis in axes]
        writer.writerow(["secret", *names[: len(axes)], "report", *names[len(axes) :], "mass"])
        for u, (place, row) in enumerate(zip(secrets, mechanism["mass"].values.tolist(), strict=True)):
            writer.writerows([u, *place, y, *reports[y], mass] for y, mass in enumerate(row))


def _plain(value: object) -> object:
    return value.item() if hasattr(value, "item") else value

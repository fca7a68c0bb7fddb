"""export: a mechanism as a table that other programs read, and what checks and samples it without this package."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import xarray as xr

from mechdesign.base.arguments import asked
from mechdesign.errors import InputError
from mechdesign.mechanism.compact.file import SUFFIX as COMPACT
from mechdesign.mechanism.compact.file import save_compact
from mechdesign.mechanism.storage.files import check_target, write_atomically
from mechdesign.mechanism.stored import read
from mechdesign.output.export.as_csv import write_csv
from mechdesign.output.export.as_json import write_json
from mechdesign.output.export.as_parquet import require_pyarrow, write_parquet
from mechdesign.output.export.content import Content, plane_of
from mechdesign.solvers.factored.compact import compact_map
from mechdesign.solvers.kernels.progress import Reported
from mechdesign.verification.verify import certified

MOST_ROWS = 1000  # of a factored mechanism in one file: more fill a disk
VERIFIER = "verify_table.py"
POSITIONS = "verify_positions.py"  # goes with the verifier, where any position is drawn
SAMPLER = "sample_table.mjs"
_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(async )?(function|class|const) )", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Format:
    """How a kind of file is written.

    write, given what to write and where; factored, whether it has room for rows with sums of their own; partial,
    whether it may contain some rows only; companions, the files of handover/ that read it; require, which raises where
    an extra is missing.
    """

    write: Callable[[Content, Path], None]
    factored: bool = False
    partial: bool = True
    companions: tuple[str, ...] = ()
    require: Callable[[Path], object] | None = None


FORMATS = {
    ".csv": Format(write=write_csv, factored=True, companions=(VERIFIER,)),
    ".json": Format(write=write_json, partial=False, companions=(VERIFIER, SAMPLER)),
    ".parquet": Format(write=write_parquet, require=require_pyarrow),
}  # by suffix; a format of another package is added here


@asked
def export(
    mechanism: xr.Dataset,
    path: str | Path,
    *,
    rows: range | None = None,
    degrees: bool = False,
    with_verifier: bool = False,
    with_sampler: bool = False,
    overwrite: bool = False,
    on_progress: Callable[[Reported], None] | None = None,
) -> Path:
    """Write the table as the suffix of `path` says: .csv, .json or .parquet (extra `parquet`); or .compact, a whole
    factored mechanism of a grid in 5 bytes a place (mechanism/compact/file.py), which `verify` certifies on its own.

    The mechanism is verified first, and what is said of it are the figures found there. Each file says the claim,
    units, losses, the edges of the claim, the checksum of the mechanism and that of its own content; masses are exact
    integers, probability = mass / 2^62. Rows of a factored mechanism go to CSV only, with their own sums.
    output/export/ has a file for each format that says what is where.
    Parameters: rows, the secrets to write; all by default, of a factored mechanism at most 1,000; JSON takes all only.
        degrees adds the longitude and latitude of every place to its coordinates (WGS 84, extra `geo`).
        with_verifier writes verify_table.py beside a CSV or JSON table (and verify_positions.py, where any position
        is drawn), with_sampler sample_table.mjs beside JSON. on_progress is called while a compact map is made.
    Raises: InputError for another suffix, rows that are not there or too many, an existing file without
        `overwrite`, a missing folder or extra; VerificationError for a mechanism that `verify` does not certify.
    Cost: that of `verify`, and 1 microsecond a mass; of a compact map about ten passes over all rows.
    """
    target = check_target(path, overwrite=overwrite)
    if target.suffix.lower() == COMPACT:
        _check_whole(rows=rows, degrees=degrees, with_verifier=with_verifier, with_sampler=with_sampler)
        return save_compact(compact_map(mechanism, on_progress=on_progress), target, overwrite=overwrite)
    written = FORMATS.get(target.suffix.lower())
    if written is None:
        raise InputError(
            "unknown kind of table",
            field="output",
            value=target.name,
            remedy="use a name ending in " + ", ".join([*FORMATS, COMPACT]),
        )
    stored = read(mechanism)
    _check_format(
        target.suffix, written, stored.factored, rows=rows, with_verifier=with_verifier, with_sampler=with_sampler
    )
    asked = _checked_rows(rows, mechanism.sizes["secret"], most=MOST_ROWS if stored.factored else None)
    if written.require is not None:
        written.require(target)
    checked = [VERIFIER, *[POSITIONS] * (stored.positions is not None)]
    beside = checked * with_verifier + [SAMPLER] * with_sampler
    companions = {name: _companion_target(name, target.parent, overwrite=overwrite) for name in beside}
    plane = plane_of(stored) if degrees else None
    content = Content(stored=stored, rows=asked, figures=_figures(mechanism), plane=plane)
    write_atomically(target, lambda temporary: written.write(content, temporary))
    for name, place in companions.items():
        text = handed_over(name)
        write_atomically(place, lambda temporary, text=text: temporary.write_bytes(text))  # type: ignore[misc]
    return target


def _check_whole(**asked: object) -> None:
    for name, value in asked.items():
        if value is not None and value is not False:
            raise InputError(
                "is for tables: a compact map is written whole",
                field=name.replace("_", "-"),
                value=value,
                remedy="leave it away",
            )


def _figures(mechanism: xr.Dataset) -> dict[str, float]:
    """The figures of a mechanism that `verify` found again. Raises: VerificationError where it does not certify it."""
    checked = certified(mechanism)
    proved = {"expected_loss": True, "lower_bound": checked.lower_bound_checked}
    proved["effective_epsilon"] = checked.effective_epsilon is not None and checked.row_ratio is None
    figures = {name: float(mechanism.attrs[name]) for name, found in proved.items() if found}
    ratios = {"ratio": checked.ratio, "row_ratio": checked.row_ratio}
    return figures | {name: value for name, value in ratios.items() if value is not None and checked.row_ratio}


def handed_over(name: str) -> bytes:
    """A file of mechdesign/handover, which needs nothing else of this package: verify_table.py or sample_table.mjs."""
    return resources.files("mechdesign").joinpath("handover", name).read_bytes()


def handed_script(name: str) -> str:
    """A JavaScript file of mechdesign/handover without its imports and exports, to be joined with others."""
    text = _IMPORT.sub("", handed_over(name).decode())
    return _EXPORT.sub("", text).strip("\n") + "\n"


def _companion_target(name: str, folder: Path, *, overwrite: bool) -> Path:
    place = folder / name
    same = place.is_file() and place.read_bytes() == handed_over(name)
    return check_target(place, overwrite=overwrite or same)


def _check_format(
    suffix: str, written: Format, factored: bool, *, rows: range | None, with_verifier: bool, with_sampler: bool
) -> None:
    if factored and not written.factored:
        remedy = "write .csv, or export FactoredMechanism(...).table()"
        raise InputError(
            "rows of a factored mechanism have sums of their own", field="output", value=suffix, remedy=remedy
        )
    if rows is not None and not written.partial:
        raise InputError(
            "is for clients that sample, and contains all rows",
            field="rows",
            value=rows,
            remedy="leave rows away, or write .csv",
        )
    for wanted, name, field in (
        (with_verifier, VERIFIER, "with-verifier"),
        (with_sampler, SAMPLER, "with-sampler"),
    ):
        if wanted and name not in written.companions:
            readable = " or ".join(kind for kind, one in FORMATS.items() if name in one.companions)
            raise InputError(f"{name} does not read it", field=field, value=suffix, remedy=f"write {readable}")


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

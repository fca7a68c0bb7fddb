"""Export of a mechanism to a table of another format, with a program that checks it without this package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import xarray as xr

from mechdesign.base.atomic_write import check_target, write_atomically
from mechdesign.base.optional import import_optional
from mechdesign.base.registry import Registry, Role
from mechdesign.base.spreadsheets import metadata_of
from mechdesign.base.validation import validate_call
from mechdesign.errors import InputError
from mechdesign.evaluation.loss import loss_matrix
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.output.latex import write_latex
from mechdesign.output.packaged import package_file
from mechdesign.output.proof_file import write_proof
from mechdesign.output.table_formats import Content, plane_of, write_beside, write_csv, write_json, write_parquet
from mechdesign.problem.losses import TableLoss
from mechdesign.solvers.result import Progress
from mechdesign.verification.verify import require_certified, trees_prove_bound
from mechdesign.verification.verify_table import LOSSES

MOST_ROWS = 1000  # of a factored mechanism in one file: more would fill a disk
VERIFIER = "verify_table.py"


@dataclass(frozen=True, kw_only=True)
class Format:
    """How a kind of file is written: a row of `FORMATS`.

    Attributes
    ----------
    write, beside : callable
        write(content, path); beside(content, path, table), for a file next to the table.
    whole : callable
        Instead, whole(mechanism, path, on_progress), for kinds that contain all of it.
    factored, partial, verified : bool
        It has room for rows with sums of their own; may contain some rows only; verify_table.py reads it.
    require : callable
        Raises where an extra is missing.

    Examples
    --------
    >>> md.extend.FORMATS[".csv"].verified
    True
    """

    write: Callable[[Content, Path], None] | None = None
    beside: Callable[[Content, Path, Path], None] | None = None
    whole: Callable[[xr.Dataset, Path, Callable[[Progress], None] | None], object] | None = None
    factored: bool = False
    partial: bool = True
    verified: bool = False
    require: Callable[[Path], object] | None = None


@dataclass(frozen=True, kw_only=True)
class ResultWriter:
    """A writer of pages or pictures: check_target(path, *, overwrite), then save(result, path, *, overwrite, ...)."""

    suffixes: tuple[str, ...]
    check_target: Callable[..., Path]
    save: Callable[..., Path]


PAGE_WRITER: Role[ResultWriter] = Role("page")
PICTURE_WRITER: Role[ResultWriter] = Role("picture")
FORMATS: Registry[Format] = Registry(
    "export formats",
    {
        ".csv": Format(write=write_csv, beside=write_beside, factored=True, verified=True),
        ".json": Format(write=write_json, partial=False, verified=True),
        ".tex": Format(write=write_latex),
        ".proof": Format(write=write_proof, partial=False),
        ".parquet": Format(write=write_parquet, require=lambda path: import_optional("pyarrow.parquet", "parquet")),
    },
)  # by suffix; a format of another package is added here


@validate_call
def export(
    mechanism: xr.Dataset,
    path: str | Path,
    *,
    rows: range | None = None,
    degrees: bool = False,
    with_verifier: bool = False,
    overwrite: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> Path:
    """Verify a mechanism and write its table in the format of the suffix: .csv, .json, .proof, .parquet, .tex or
    .compact.

    Each file has the claim, units, losses, edges and checksums; masses are exact integers, probability = mass / 2^62.
    .proof has the claims and the lower bound as integers for the checker of proofs/. .compact is a complete factored
    mechanism of a grid in 5 bytes a place, which `verify` certifies. Rows of a factored mechanism go to CSV only, with
    their own sums. .tex has P(report|secret) in percent for readers, at most 20 reports; .table.tex adds a caption.

    Parameters
    ----------
    mechanism : xarray.Dataset
        A table or a factored mechanism.
    path, overwrite : str or Path, bool
        The file to write, and permission to replace one.
    rows : range
        Secrets to write; all by default, of a factored mechanism at most 1,000. JSON takes all only.
    degrees, with_verifier : bool
        Add longitude and latitude (WGS 84, extra `geo`); write verify_table.py next to a CSV or JSON table.
    on_progress : callable
        Called while a device map is made.

    Returns
    -------
    Path of the file

    Raises
    ------
    VerificationError
        For a mechanism that `verify` does not certify.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     md.export(md.baselines.constant(md.load_problem("discrete", secrets=3)), folder + "/table.csv").name
    'table.csv'
    """
    target = check_target(path, overwrite=overwrite)
    kind = FORMATS.get(target.suffix.lower())
    if kind is None:
        raise InputError(f"must end in one of {', '.join(FORMATS)}", field="output", value=target.name)
    if kind.whole is not None:
        for name, value in {"rows": rows, "degrees": degrees or None, "with-verifier": with_verifier or None}.items():
            if value is not None:
                raise InputError("applies to tables only", field=name, value=value)
        kind.whole(mechanism, target, on_progress)
        return target
    stored = MechanismFile.read(mechanism)
    _check_format(target.suffix, kind, stored.is_factored, rows=rows, with_verifier=with_verifier)
    written = _checked_rows(rows, mechanism.sizes["secret"], most=MOST_ROWS if stored.is_factored else None)
    if kind.require is not None:
        kind.require(target)
    # All targets are checked before anything is written: a refusal leaves no file behind.
    verifier, verifier_target = package_file(f"verification/{VERIFIER}"), target.parent / VERIFIER
    if with_verifier:
        # The same verifier may lie there from an earlier export.
        same = verifier_target.is_file() and verifier_target.read_bytes() == verifier
        check_target(verifier_target, overwrite=overwrite or same)
    if kind.beside is not None:
        check_target(metadata_of(target), overwrite=overwrite)
    plane = plane_of(stored) if degrees else None
    figures = _figures(mechanism)
    with_bound = len(written) == mechanism.sizes["secret"] and _trees_prove(stored, figures)
    content = Content(
        stored=stored, rows=written, figures=figures, plane=plane, name=target.name, with_bound=with_bound
    )
    write_content(content, target)
    if with_verifier:
        write_atomically(verifier_target, lambda temporary: temporary.write_bytes(verifier))
    return target


def write_content(content: Content, target: Path) -> None:
    """Write a table in the format of its suffix, with its metadata file if it has one."""
    kind = FORMATS[target.suffix.lower()]
    write, beside = kind.write, kind.beside
    assert write is not None
    write_atomically(target, lambda temporary: write(content, temporary))
    # The metadata state the checksum of the table, so the table is written first.
    if beside is not None:
        write_atomically(metadata_of(target), lambda temporary: beside(content, temporary, target))


def _figures(mechanism: xr.Dataset) -> dict[str, float]:
    """The figures that `verify` recomputed; VerificationError if it does not certify the mechanism."""
    # An attribute is exported only if `verify` recomputed it; others of the file could be false.
    checked = require_certified(mechanism)
    proved = {"expected_loss": True, "objective": "objective" in mechanism.attrs}
    proved["lower_bound"] = bool(checked.lower_bound_checked)
    proved["ratio"] = checked.ratio is not None and checked.row_ratio is None
    figures = {name: float(mechanism.attrs[name]) for name, holds in proved.items() if holds}
    ratios = {"ratio": checked.ratio, "row_ratio": checked.row_ratio}
    return figures | {name: value for name, value in ratios.items() if value is not None and checked.row_ratio}


def _trees_prove(stored: MechanismFile, figures: Mapping[str, float]) -> bool:
    """True if verify_table.py proves the lower bound of a table from its trees and coordinates."""
    if "objective" in figures or "lower_bound" not in figures or stored.is_factored or stored.positions is not None:
        return False
    is_table = stored.mechanism.attrs["loss"] == TableLoss.name
    if not is_table and (stored.mechanism.attrs["loss"] not in LOSSES or stored.report_unit != stored.domain.unit):
        return False
    cost = stored.mechanism["prior"].values[:, None] * loss_matrix(stored.mechanism)
    return trees_prove_bound(stored.mechanism, stored.edges, cost)


def _check_format(suffix: str, kind: Format, factored: bool, *, rows: range | None, with_verifier: bool) -> None:
    if factored and not kind.factored:
        message, remedy = "rows of a factored mechanism have sums of their own", "write .csv, or export its table()"
        raise InputError(message, field="output", value=suffix, remedy=remedy)
    if rows is not None and not kind.partial:
        raise InputError(f"are for .csv: {suffix} contains all of them", field="rows", value=rows)
    if with_verifier and not kind.verified:
        raise InputError(f"{VERIFIER} reads .csv and .json alone", field="with-verifier", value=suffix)


def _checked_rows(rows: range | None, total: int, *, most: int | None) -> range:
    chosen = range(total) if rows is None else rows
    if len(chosen) == 0 or min(chosen) < 0 or max(chosen) >= total:
        raise InputError(f"no such rows, of 0 to {total - 1}", field="rows", value=chosen)
    if most is not None and len(chosen) > most:
        message, remedy = f"would write {len(chosen)} x {total} lines", f"name at most {most} rows"
        raise InputError(message, field="rows", value=chosen, remedy=remedy)
    return chosen

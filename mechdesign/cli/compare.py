"""`mechdesign compare`: programs, baselines and the user's mechanisms on one problem, or along scales of its metric."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mechdesign.cli.inputs import InputOptions
from mechdesign.cli.options import (
    ColumnsOption,
    GapOption,
    JsonOption,
    LimitOption,
    OverwriteOption,
    ProblemArgument,
)
from mechdesign.cli.parameters import parse_problem
from mechdesign.cli.values import parse_scales
from mechdesign.errors import INTERRUPTED, InputError, MechdesignError

if TYPE_CHECKING:
    from mechdesign.output.own_makers import InputMechanisms
    from mechdesign.problem.problem import DesignProblem

_OUTPUT_HELP = (
    "File to write: .csv, .xlsx, .tex, .table.tex (a whole table with caption), .json or .html. With --scales: also "
    ".nc, .png, .pdf and .svg, not .json."
)
_ONLY_HELP = (
    "Only these mechanisms, separated by commas. Also available here: the design between any two positions and the "
    "mechanisms of the literature. A wrong name lists all."
)
_SCALES_HELP = "Loss along scales of the metric: 0.5,1,2, or FIRST:LAST:COUNT with equal ratios."
_WITH_HELP = "Add a mechanism of yours: a table (.npy, .csv, ...) or a file (.nc). Repeatable."


# Options of typer stand in the signature: each is a word of the command.
def compare(
    context: typer.Context,
    problem: ProblemArgument,
    output: Annotated[Path | None, typer.Option("-o", "--output", help=_OUTPUT_HELP)] = None,
    only: Annotated[str | None, typer.Option("--only", metavar="NAMES", help=_ONLY_HELP)] = None,
    mine: Annotated[list[Path] | None, typer.Option("--with", help=_WITH_HELP)] = None,
    columns: ColumnsOption = None,
    scales: Annotated[str | None, typer.Option("--scales", help=_SCALES_HELP)] = None,
    gap: GapOption = 1e-3,
    time_limit: LimitOption = float("inf"),
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Example: `mechdesign compare line --cells 8`.

    Compare the optimal, the eikonal and the closed-form mechanisms, and yours, on one problem.
    """
    file, parameters = parse_problem(problem, context)
    from mechdesign.output.own_mechanisms import read_mechanisms
    from mechdesign.output.text_tables import note
    from mechdesign.problem.tables import TABLE_ROLES
    from mechdesign.solvers.solve import check_targets

    check_targets(gap, time_limit)
    along = parse_scales(scales)
    if along is not None and only is not None:
        raise InputError("cannot be combined with --scales", field="only", value=only)
    _check_output(output, curve=along is not None, overwrite=overwrite)
    built, stated = file.build_stated(**parameters)
    mechanisms: dict[str, Any] = read_mechanisms(
        mine or (), built, columns=InputOptions(columns).columns_of(*TABLE_ROLES), on_note=note
    )
    if stated is not None:
        mechanisms = {file.name: stated, **mechanisms}
    targets = {"gap": gap, "time_limit": time_limit}
    if along is not None:
        _curve(built, along, mechanisms, targets, output, overwrite=overwrite, as_json=as_json)
        return
    names = None if only is None else [name for name in only.replace(",", " ").split() if name]
    _table(built, names, mechanisms, targets, output, overwrite=overwrite, as_json=as_json)


def _check_output(output: Path | None, *, curve: bool, overwrite: bool) -> None:
    from mechdesign.output.comparison_files import CURVES, TABLES, check_table_target
    from mechdesign.output.export import PAGE_WRITER, PICTURE_WRITER

    if output is None:
        return
    if output.suffix.lower() == ".html":
        PAGE_WRITER.get().check_target(output, overwrite=overwrite)
    elif curve and PICTURE_WRITER.is_filled and output.suffix.lower() in PICTURE_WRITER.get().suffixes:
        PICTURE_WRITER.get().check_target(output, overwrite=overwrite)
    else:
        check_table_target(output, CURVES if curve else TABLES, overwrite=overwrite)


def _table(
    problem: DesignProblem,
    only: list[str] | None,
    mechanisms: InputMechanisms,
    targets: dict[str, float],
    output: Path | None,
    *,
    overwrite: bool,
    as_json: bool,
) -> None:
    from mechdesign.output import text_tables as printing
    from mechdesign.output.compare import ComparisonRow, best_private, each_mechanism, row_of, with_bounds
    from mechdesign.output.comparison_files import write_rows
    from mechdesign.output.export import PAGE_WRITER
    from mechdesign.output.reports.comparison import comparison_words

    printing.note_compiling()
    table: list[ComparisonRow] = []
    tables, interrupted = {}, False
    try:
        with printing.progress(problem.name, limit=targets["time_limit"]) as on_progress:
            gap, limit = targets["gap"], targets["time_limit"]
            results = each_mechanism(
                problem, gap=gap, time_limit=limit, only=only, mechanisms=mechanisms, on_progress=on_progress
            )
            for name, mechanism in results:
                if isinstance(mechanism, MechdesignError):
                    is_late = mechanism.field == "time_limit"
                    words = "was not made within the time limit" if is_late else "does not fit this problem"
                    printing.note(f"{name} {words}: {mechanism}")
                    continue
                interrupted |= mechanism.attrs.get("stopped") == "interrupt"
                table.append(row_of(name, mechanism, problem))
                tables[name] = mechanism
    # Finished rows are worth printing, with the exit code of an interruption.
    except KeyboardInterrupt:
        if not table:
            raise
        interrupted = True
    table = with_bounds(table, tables)
    if output is not None and output.suffix.lower() == ".html":
        if table:
            page_of = best_private(table, tables)
            PAGE_WRITER.get().save(page_of, output, comparison=[row.to_json() for row in table], overwrite=overwrite)
    elif output is not None:
        write_rows(table, output, problem, overwrite=overwrite)
    document = [row.to_json() for row in table]
    printing.show(document, comparison_words(table, problem), as_json=as_json)
    if interrupted:
        printing.note("error: run: interrupted; the finished rows are above")
        raise SystemExit(INTERRUPTED)


def _curve(
    problem: DesignProblem,
    scales: list[float],
    mechanisms: InputMechanisms,
    targets: dict[str, float],
    output: Path | None,
    *,
    overwrite: bool,
    as_json: bool,
) -> None:
    """One row a scale; every scale has an equal share of the time."""
    from mechdesign.output import text_tables as printing
    from mechdesign.output.comparison_files import CURVES, save_curve
    from mechdesign.output.export import PAGE_WRITER, PICTURE_WRITER
    from mechdesign.output.reports.curve import curve_words
    from mechdesign.output.sweep import curve_points, curve_rows, sweep

    printing.note_compiling()
    with printing.progress(problem.name, limit=targets["time_limit"]) as advance:
        done = count(1)
        curve = sweep(
            problem,
            scales,
            mechanisms=mechanisms,
            gap=targets["gap"],
            time_limit=targets["time_limit"] / len(scales),
            on_progress=lambda point: advance(f"{next(done)} of {len(scales)}: scale {point.scale:.4g}"),
        )
    if output is not None:
        suffix = output.suffix.lower()
        if suffix in CURVES:
            save_curve(curve, output, overwrite=overwrite)
        elif suffix == ".html":
            PAGE_WRITER.get().save(curve, output, overwrite=overwrite)
        else:
            PICTURE_WRITER.get().save(curve, output, overwrite=overwrite)
    points = curve_points(curve)
    printing.show(curve_rows(points), curve_words(points, problem), as_json=as_json)

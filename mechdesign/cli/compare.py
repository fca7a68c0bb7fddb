"""`mechdesign compare` and `sweep`: programs, baselines and own mechanisms on one problem; its curve of loss."""

from functools import partial
from itertools import count
from pathlib import Path
from typing import Annotated

import typer

from mechdesign.cli.options import (
    GapOption,
    JsonOption,
    LimitOption,
    OverwriteOption,
    PageOption,
    ProblemArgument,
    WithOption,
    check_outputs,
    check_page,
    real,
    save_page,
    whole,
)
from mechdesign.cli.parsing import problem_asked
from mechdesign.errors import INTERRUPTED, MechdesignError


def compare(
    context: typer.Context,
    problem: ProblemArgument,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Table to write: .csv, .json or .tex.")] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="Only this mechanism; may be repeated.")] = None,
    mine: WithOption = None,
    rivals: Annotated[
        bool, typer.Option("--rivals", help="With the mechanisms of the literature on estimating distributions.")
    ] = False,
    positions: Annotated[
        bool, typer.Option("--positions", help="With the design that is private between any two positions.")
    ] = False,
    gap: GapOption = 1e-3,
    time_limit: LimitOption = float("inf"),
    page: PageOption = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Compare the optimal, the eikonal and the closed-form mechanisms, and your own, on one problem."""
    file, parameters = problem_asked(problem, context)
    from mechdesign.output import printing
    from mechdesign.output.compare import Row, best_private, bounded, each_mechanism, judged
    from mechdesign.output.files import check_table_target, write_rows
    from mechdesign.output.given import read_mechanisms
    from mechdesign.output.summary import comparison_words
    from mechdesign.solvers.solve import check_targets

    check_targets(gap, time_limit)
    check_outputs((output, check_table_target), (page, check_page), overwrite=overwrite)
    built = file.build(**parameters)
    given = read_mechanisms(mine or ())
    printing.note_compiling()
    table: list[Row] = []
    made, interrupted = {}, False
    try:
        with printing.progress(built.name, limit=time_limit) as on_progress:
            mechanisms = each_mechanism(
                built,
                gap=gap,
                time_limit=time_limit,
                only=only,
                given=given,
                rivals=rivals,
                positions=positions,
                on_progress=on_progress,
            )
            for name, mechanism in mechanisms:
                if isinstance(mechanism, MechdesignError):
                    words = "had no time" if mechanism.field == "time_limit" else "does not fit this problem"
                    printing.note(f"{name} {words}: {mechanism}")
                    continue
                interrupted |= mechanism.attrs.get("stopped") == "interrupt"
                table.append(judged(name, mechanism, built))
                made[name] = mechanism
    except KeyboardInterrupt:
        if not table:
            raise
        interrupted = True
    table = bounded(table, made)
    if output is not None:
        write_rows(table, output, overwrite=overwrite)
    if page is not None and table:
        save_page(best_private(table, made), page, comparison=table, overwrite=overwrite)
    printing.show(table, comparison_words(table, built), as_json=as_json)
    if interrupted:
        printing.note("error: run: interrupted; the rows that were finished are above")
        raise SystemExit(INTERRUPTED)


def sweep(
    context: typer.Context,
    problem: ProblemArgument,
    first: Annotated[float, real("--from", help="Smallest scale: the claim is scale times the metric.")] = 0.25,
    last: Annotated[float, real("--to", help="Largest scale.")] = 4.0,
    points: Annotated[int, whole("--points", help="How many scales, equally spaced in the logarithm.")] = 9,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="File to write: .nc, .csv or .tex.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Picture to draw: .png, .pdf or .svg.")] = None,
    mine: WithOption = None,
    gap: GapOption = 1e-3,
    time_limit: Annotated[float, real("--time-limit", help="Seconds for each scale.")] = float("inf"),
    page: PageOption = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Trace the optimal loss against a scale of the metric: the privacy-utility curve, baselines beside it."""
    file, parameters = problem_asked(problem, context)
    from mechdesign.output import printing
    from mechdesign.output.files import CURVES, check_table_target, save_curve
    from mechdesign.output.given import read_mechanisms
    from mechdesign.output.plot import check_plot_target, save_plot
    from mechdesign.output.summary import curve_words
    from mechdesign.output.sweep import multiplier_range, sweep_rows
    from mechdesign.output.sweep import sweep as trace
    from mechdesign.solvers.solve import check_targets

    scales = multiplier_range(first, last, points)
    check_targets(gap, time_limit)
    outputs = ((output, partial(check_table_target, kinds=CURVES)), (plot, check_plot_target), (page, check_page))
    check_outputs(*outputs, overwrite=overwrite)
    built = file.build(**parameters)
    given = read_mechanisms(mine or ())
    printing.note_compiling()
    with printing.progress(built.name) as advance:
        done = count(1)
        curve = trace(
            built,
            scales,
            mechanisms=given,
            gap=gap,
            time_limit=time_limit,
            on_progress=lambda row: advance(f"{next(done)} of {points}: scale {row['scale']:.4g}"),
        )
    if output is not None:
        save_curve(curve, output, overwrite=overwrite)
    if plot is not None:
        save_plot(curve, plot, overwrite=overwrite)
    if page is not None:
        save_page(curve, page, overwrite=overwrite)
    rows = sweep_rows(curve)
    printing.show(rows, curve_words(rows, built), as_json=as_json)

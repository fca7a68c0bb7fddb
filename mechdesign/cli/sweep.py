"""`mechdesign sweep`: the privacy-utility curve of a problem."""

from itertools import count
from pathlib import Path
from typing import Annotated

import typer

from mechdesign.cli.options import (
    GapOption,
    JsonOption,
    OverwriteOption,
    PageOption,
    ProblemArgument,
    WithOption,
    real,
    whole,
)
from mechdesign.cli.parsing import problem_asked


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
    from mechdesign.output.page.page import check_page_target, save_page
    from mechdesign.output.pictures.plot import check_plot_target, save_plot
    from mechdesign.output.tables.files import check_curve_target, save_curve
    from mechdesign.output.tables.given import read_mechanisms
    from mechdesign.output.tables.sweep import multiplier_range, sweep_rows
    from mechdesign.output.tables.sweep import sweep as trace
    from mechdesign.output.terminal import printing
    from mechdesign.output.terminal.curve import print_sweep
    from mechdesign.solvers.solve import check_targets

    scales = multiplier_range(first, last, points)
    check_targets(gap, time_limit)
    if output is not None:
        check_curve_target(output, overwrite=overwrite)
    if plot is not None:
        check_plot_target(plot, overwrite=overwrite)
    if page is not None:
        check_page_target(page, overwrite=overwrite)
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
    if as_json:
        printing.print_json(rows)
    else:
        print_sweep(rows, built)

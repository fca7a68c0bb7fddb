"""`mechdesign solve`: a certified mechanism for a design problem. Heavy imports happen inside."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from mechdesign.base.registry import provider
from mechdesign.cli.options import (
    GapOption,
    JsonOption,
    LimitOption,
    OverwriteOption,
    PageOption,
    ProblemArgument,
    VerboseOption,
    check_outputs,
    check_page,
    real,
    save_page,
    whole,
)
from mechdesign.cli.parsing import PROGRAMS, chosen_program, problem_asked

_METHOD_HELP = (
    "For optimal: auto, highs, columns, blocks or pool. "
    "For eikonal: auto, table or factored. For positions: auto, cones or columns."
)


def solve(
    context: typer.Context,
    problem: ProblemArgument,
    program: Annotated[str, typer.Option("--program", help="One of " + ", ".join(PROGRAMS) + ".")] = "optimal",
    distances: Annotated[
        str | None, typer.Option("--distances", help="For eikonal: graph (default) or fast-marching.")
    ] = None,
    worst_loss: Annotated[float | None, real("--worst-loss", help="For bounded: loss at most.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="NetCDF file to write.")] = None,
    gap: GapOption = 1e-3,
    time_limit: LimitOption = float("inf"),
    method: Annotated[str, typer.Option("--method", help=_METHOD_HELP)] = "auto",
    rounds: Annotated[int | None, whole("--rounds", help="For the factored form: rounds of weights.")] = None,
    work: Annotated[
        Path | None, typer.Option("--work", help="For the factored form: folder that keeps a run, to go on from.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", help="For the factored form: address of a dask scheduler.")
    ] = None,
    bound: Annotated[
        bool | None, typer.Option("--bound/--no-bound", help="For the factored form: also a lower bound of the loss.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Only say which route would be taken, why, its time and memory.")
    ] = False,
    page: PageOption = None,
    overwrite: OverwriteOption = False,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
) -> int:
    """Solve a design problem; its parameters follow PROBLEM, as --PARAMETER VALUE."""
    started = time.monotonic()
    file, parameters = problem_asked(problem, context)
    from mechdesign.errors import InputError
    from mechdesign.mechanism.storage import check_target, save
    from mechdesign.output import printing
    from mechdesign.output.summary import proved, summarise, summary_words
    from mechdesign.programs.program import Optimal
    from mechdesign.solvers.choose import explained, explanation
    from mechdesign.solvers.solve import check_targets
    from mechdesign.solvers.solve import solve as solve_program

    stated = chosen_program(program, {"distances": distances, "worst_loss": worst_loss})
    check_targets(gap, time_limit)
    check_outputs((output, check_target), (page, check_page), overwrite=overwrite)
    built = file.build(**parameters)
    printing.note_compiling()
    beside = {"published": file.published(built.parameters), "remark": file.remark(built)}
    if explain:
        if program != Optimal.name:
            raise InputError("is for the optimal program", field="explain", value=program)
        printing.show(explained(built, method), [explanation(built, method)], as_json=as_json)
        return 0
    if program == Optimal.name:
        printing.note(explanation(built, method))
    target = gap if program != "eikonal" else None
    with printing.progress(f"{built.name}, {program}", limit=time_limit, target=target) as on_progress:
        route: Any = method
        mechanism = solve_program(
            stated(built),
            gap=gap,
            time_limit=time_limit,
            method=route,
            on_progress=on_progress,
            rounds=rounds,
            work=work,
            scheduler=scheduler,
            bound=bound,
        )
    checked = proved(mechanism)
    summary = summarise(mechanism, checked, seconds=time.monotonic() - started, file=output) | beside
    if output is not None:
        save(mechanism, output, overwrite=overwrite)
        if work is not None:
            provider("work").discard_finished(work)
    if page is not None:
        save_page(mechanism, page, overwrite=overwrite)
    words = summary_words(summary, mechanism, checked, verbose=verbose, limit=time_limit)
    printing.show(summary, words, as_json=as_json)
    return _judged(summary, gap, method)


def _judged(summary: Mapping[str, Any], gap: float, method: str) -> int:
    """The exit code; says on stderr where a method ended short of the gap: 1 where it proved nothing at all."""
    if summary["stopped"] != "precision":
        return 0
    unproved = not summary["lower_bound"]
    reached = "no lower bound above 0 was proved" if unproved else f"the gap is {summary['gap']:.1e}"
    other = "use --method auto" if method != "auto" else "ask for a larger gap"
    from mechdesign.output.printing import note

    note(f"warning: {reached}, {gap:g} was asked for: its accuracy ends there. The table is certified; {other}")
    return int(unproved and summary["loss"] > 0)

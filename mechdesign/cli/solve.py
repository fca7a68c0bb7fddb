"""`mechdesign solve`: a certified mechanism for a design problem. Heavy imports happen inside."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from mechdesign.cli.extra_options import with_extra_options
from mechdesign.cli.inputs import InputOptions
from mechdesign.cli.options import (
    BoundOption,
    ColumnsOption,
    CrsOption,
    GapOption,
    JsonOption,
    LimitOption,
    OverwriteOption,
    ProblemArgument,
    VerboseOption,
    check_outputs,
    real,
    whole,
)
from mechdesign.cli.parsing import PROGRAMS, chosen_program, parse_problem

if TYPE_CHECKING:
    from mechdesign.errors import InputError
    from mechdesign.problem.problem import DesignProblem
    from mechdesign.programs.constraints import Constraint

_METHOD_HELP = (
    "For optimal: auto, highs, columns, blocks or pool. "
    "For eikonal: auto, table, factored or fast-marching; factored on the "
    "dask scheduler that DASK_SCHEDULER_ADDRESS names. For positions: auto, cones or columns."
)
MARCHING = "fast-marching"
SCHEDULER = "DASK_SCHEDULER_ADDRESS"  # of the environment, as dask itself reads it


class SolveExtra(Protocol):
    """Options that a capability adds, for a limit on the table of the optimal program."""

    @property
    def files(self) -> tuple[Path | None, ...]:
        """The input files that --crs may be of."""
        ...

    def limit(self, problem: DesignProblem, inputs: InputOptions) -> Constraint | None:
        """The limit for a problem; None if none is asked for."""
        ...

    def refuse(self, program: str) -> InputError:
        """The error for another program than the optimal one."""
        ...


@with_extra_options("solve")
def solve(
    context: typer.Context,
    problem: ProblemArgument,
    program: Annotated[str, typer.Option("--program", help="One of " + ", ".join(PROGRAMS) + ".")] = "optimal",
    worst_loss: Annotated[float | None, real("--worst-loss", help="For bounded: loss at most.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="NetCDF file to write.")] = None,
    gap: GapOption = 1e-3,
    time_limit: LimitOption = float("inf"),
    method: Annotated[str, typer.Option("--method", help=_METHOD_HELP)] = "auto",
    rounds: Annotated[int | None, whole("--rounds", help="For the factored form: rounds of weights.")] = None,
    work: Annotated[
        Path | None, typer.Option("--work", help="For the factored form: folder that keeps a run, to go on from.")
    ] = None,
    bound: BoundOption = None,
    extra: SolveExtra | None = None,
    columns: ColumnsOption = None,
    crs: CrsOption = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Only say which route would be taken, why, its time and memory.")
    ] = False,
    overwrite: OverwriteOption = False,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
) -> int:
    """Example: `mechdesign solve line --cells 8 -o line.nc`.

    Solve a design problem; its parameters follow PROBLEM, as --PARAMETER VALUE.
    """
    started = time.monotonic()
    file, parameters = parse_problem(problem, context)
    from mechdesign.base.interrupts import two_steps
    from mechdesign.errors import InputError
    from mechdesign.mechanism.storage import check_target, save
    from mechdesign.output import text_tables as printing
    from mechdesign.output.reports.solve import SolveReport, proved
    from mechdesign.programs.constrained import Constrained
    from mechdesign.programs.optimal import Optimal
    from mechdesign.solvers.choose import FACTORED_SOLVER
    from mechdesign.solvers.estimate import route_facts, route_sentence
    from mechdesign.solvers.solve import check_targets
    from mechdesign.solvers.solve import solve as solve_program

    distances = None
    if method == MARCHING:
        distances, method = MARCHING, "table"
    stated = chosen_program(program, {"distances": distances, "worst_loss": worst_loss})
    check_targets(gap, time_limit)
    check_outputs((output, check_target), overwrite=overwrite)
    built = file.build(**parameters)
    inputs = InputOptions(columns, crs)
    inputs.refuse_unused_system(*(() if extra is None else extra.files))
    limit = None if extra is None else extra.limit(built, inputs)
    if extra is not None and limit is not None:
        if program != Optimal.name or explain:
            raise extra.refuse(program)
        program = Constrained.name
        stated = lambda problem: Constrained(problem, constraints=[limit])  # noqa: E731
    printing.note_compiling()
    beside = {"published": file.published(built.parameters), "remark": file.remark(built)}
    if explain:
        if program != Optimal.name:
            raise InputError("is for the optimal program", field="explain", value=program)
        printing.show(route_facts(built, method), [route_sentence(built, method)], as_json=as_json)
        return 0
    if program == Optimal.name:
        printing.note(route_sentence(built, method))
    target = gap if program != "eikonal" else None
    with two_steps():  # a first Ctrl-C ends the search: what it found is written and printed
        with printing.progress(f"{built.name}, {program}", limit=time_limit, target=target) as on_progress:
            named = {
                "rounds": rounds,
                "work": work,
                "scheduler": os.environ.get(SCHEDULER) if method == "factored" else None,
            }
            chosen = {name: value for name, value in named.items() if value is not None}
            route: Any = method
            mechanism = solve_program(
                stated(built),
                gap=gap,
                time_limit=time_limit,
                method=route,
                on_progress=on_progress,
                bound=bound,
                options=FACTORED_SOLVER.get().options(**chosen) if chosen else None,
            )
        checked = proved(mechanism)
        # The file comes first: nothing that is said of a design may cost the design.
        if output is not None:
            save(mechanism, output, overwrite=overwrite)
            if work is not None:
                FACTORED_SOLVER.get().discard_finished(work)
        report = SolveReport.of(mechanism, checked, seconds=time.monotonic() - started, file=output)
        report = replace(report, beside=beside)
        printing.show(report.to_json(), report.words(verbose=verbose, limit=time_limit), as_json=as_json)
    remedy = "use --method auto" if method != "auto" else "ask for a larger gap, or a smaller problem"
    return report.exit_code(remedy=remedy)

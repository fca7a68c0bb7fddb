"""`mechdesign solve`: a certified mechanism for a design problem. Heavy imports happen inside."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from mechdesign.base.registry import Registry
from mechdesign.cli.extra_options import with_extra_options
from mechdesign.cli.inputs import InputOptions
from mechdesign.cli.options import (
    BoundOption,
    ColumnsOption,
    CrsOption,
    JsonOption,
    LimitOption,
    OverwriteOption,
    OwnGapOption,
    ProblemArgument,
    VerboseOption,
    check_outputs,
    real,
    whole,
)
from mechdesign.cli.parameters import parse_problem

if TYPE_CHECKING:
    import xarray as xr

    from mechdesign.errors import InputError
    from mechdesign.output.reports.solve import SolveReport
    from mechdesign.problem.problem import DesignProblem
    from mechdesign.problem.problem_files import ProblemFile
    from mechdesign.programs.constraints import Constraint
    from mechdesign.programs.program import Program
    from mechdesign.solvers.result import Progress

_METHOD_HELP = (
    "For optimal: auto, highs, columns, blocks or pool. "
    "For eikonal: auto, table, factored or fast-marching; factored on the "
    "dask scheduler that DASK_SCHEDULER_ADDRESS names. For positions: auto, cones or columns."
)
MARCHING = "fast-marching"
_CORE = ("optimal", "eikonal", "query", "minimax", "matched", "bounded")
PROGRAMS = (*_CORE, *Registry[object]("solvers"))  # those of the core, and by name those of capabilities
SCHEDULER = "DASK_SCHEDULER_ADDRESS"  # of the environment, as dask itself reads it


class SolveExtra(Protocol):
    """Options that a capability adds, for a limit on the table of the optimal program."""

    @property
    def files(self) -> tuple[Path | None, ...]:
        """Input files to which --crs may apply."""
        ...

    def limit(self, problem: DesignProblem, inputs: InputOptions) -> Constraint | None:
        """The limit for a problem; None if none is asked for."""
        ...

    def refuse(self, program: str) -> InputError:
        """The error for another program than the optimal one."""
        ...


@dataclass(frozen=True, kw_only=True)
class SolveRequest:
    """One solve as the options ask for it."""

    file: ProblemFile
    parameters: Mapping[str, str]
    program: str
    distances: str | None
    worst_loss: float | None
    gap: float | None
    time_limit: float
    method: str
    rounds: int | None
    work: Path | None
    bound: bool | None
    extra: SolveExtra | None
    inputs: InputOptions
    explain: bool

    def check(self) -> None:
        """Raise InputError for a program, options or targets that do not fit, before the problem is built."""
        from mechdesign.solvers.solve import check_targets

        self._program_class()
        check_targets(1.0 if self.gap is None else self.gap, self.time_limit)

    def build(self) -> Program:
        from mechdesign.errors import InputError
        from mechdesign.programs.constrained import Constrained
        from mechdesign.programs.optimal import Optimal

        problem, stated = self.file.build_stated(**self.parameters)
        self.inputs.refuse_unused_system(*(() if self.extra is None else self.extra.files))
        if stated is not None:
            return self._own_program(stated)
        limit = None if self.extra is None else self.extra.limit(problem, self.inputs)
        if self.extra is not None and limit is not None:
            if self.program != Optimal.name or self.explain:
                raise self.extra.refuse(self.program)
            return Constrained(problem, constraints=[limit])
        if self.explain and self.program != Optimal.name:
            raise InputError("is for the optimal program", field="explain", value=self.program)
        return self._program_class()(problem, **self._program_options())

    def _own_program(self, program: Program) -> Program:
        """The program that the file returns; refuses options that would state another one."""
        from mechdesign.errors import InputError
        from mechdesign.programs.optimal import Optimal

        options = {"program": None if self.program == Optimal.name else self.program} | self._program_options()
        for name, value in options.items():
            if value is not None:
                raise InputError("the problem file returns a program of its own", field=name, value=value)
        return program

    def run(self, program: Program, on_progress: Callable[[Progress], None]) -> xr.Dataset:
        from mechdesign.solvers.choose import FACTORED_SOLVER
        from mechdesign.solvers.solve import solve as solve_program

        # Only the factored method runs on a cluster; others ignore the variable.
        scheduler = os.environ.get(SCHEDULER) if self.method == "factored" else None
        named = {"rounds": self.rounds, "work": self.work, "scheduler": scheduler}
        chosen = {name: value for name, value in named.items() if value is not None}
        return solve_program(
            program,
            gap=self.gap,
            time_limit=self.time_limit,
            method=self.method,
            on_progress=on_progress,
            bound=self.bound,
            options=FACTORED_SOLVER.get().options(**chosen) if chosen else None,
        )

    def _program_options(self) -> dict[str, str | float]:
        options = {"distances": self.distances, "worst_loss": self.worst_loss}
        return {name: value for name, value in options.items() if value is not None}

    def _program_class(self) -> Callable[..., Program]:
        from mechdesign.errors import InputError
        from mechdesign.solvers.solve import SOLVERS

        if self.program not in SOLVERS:
            remedy = "use one of " + ", ".join(PROGRAMS)
            raise InputError("unknown program", field="program", value=self.program, remedy=remedy)
        program, given = SOLVERS[self.program].program, self._program_options()
        needed = {each.name: each.default is MISSING for each in fields(program)}
        for option in ("distances", "worst_loss"):
            is_wrong = option not in needed if option in given else needed.get(option, False)
            if is_wrong:
                takers = [other for other in _CORE if option in {each.name for each in fields(SOLVERS[other].program)}]
                word = option.replace("_", "-")
                message = f"belongs to the program {' or '.join(takers)}; pass --program {takers[0]} --{word} VALUE"
                raise InputError(message, field=word, value=given.get(option, "none"))
        return program


# Options of typer stand in the signature: each is a word of the command.
@with_extra_options("solve")
def solve(
    context: typer.Context,
    problem: ProblemArgument,
    program: Annotated[str, typer.Option("--program", help="One of " + ", ".join(PROGRAMS) + ".")] = "optimal",
    worst_loss: Annotated[
        float | None, real("--worst-loss", help="For bounded: the maximum loss from any secret.")
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="NetCDF file to write.")] = None,
    gap: OwnGapOption = None,
    time_limit: LimitOption = float("inf"),
    method: Annotated[str, typer.Option("--method", help=_METHOD_HELP)] = "auto",
    rounds: Annotated[int | None, whole("--rounds", help="For the factored form: number of weight updates.")] = None,
    work: Annotated[
        Path | None,
        typer.Option(
            "--work", help="For the factored form: folder of intermediate results, from which the command resumes."
        ),
    ] = None,
    bound: BoundOption = None,
    extra: SolveExtra | None = None,
    columns: ColumnsOption = None,
    crs: CrsOption = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Print the method that would run, with its reason, time and memory. Nothing is solved."
        ),
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
    from mechdesign.base.atomic_write import check_target
    from mechdesign.output import text_tables as printing
    from mechdesign.programs.optimal import Optimal
    from mechdesign.solvers.estimate import default_gap, route_facts, route_sentence

    request = SolveRequest(
        file=file,
        parameters=parameters,
        program=program,
        distances=MARCHING if method == MARCHING else None,
        worst_loss=worst_loss,
        gap=gap,
        time_limit=time_limit,
        method="table" if method == MARCHING else method,
        rounds=rounds,
        work=work,
        bound=bound,
        extra=extra,
        inputs=InputOptions(columns, crs),
        explain=explain,
    )
    request.check()
    check_outputs((output, check_target), overwrite=overwrite)
    built = request.build()
    if gap is None:
        request = replace(request, gap=default_gap(built, request.method))
    printing.note_compiling()
    if explain:
        words = [route_sentence(built.problem, request.method, request.gap)]
        printing.show(route_facts(built.problem, request.method, request.gap), words, as_json=as_json)
        return 0
    if built.name == Optimal.name:
        printing.note(route_sentence(built.problem, request.method, request.gap))
    report = _solve_and_print(request, built, output, started, overwrite=overwrite, verbose=verbose, as_json=as_json)
    remedy = "Use --method auto." if request.method != "auto" else "Use a larger --gap, or a smaller problem."
    return report.exit_code(remedy=remedy)


def _solve_and_print(
    request: SolveRequest,
    program: Program,
    output: Path | None,
    started: float,
    *,
    overwrite: bool,
    verbose: bool,
    as_json: bool,
) -> SolveReport:
    """Solve, verify, save and print; started: the clock (time.monotonic) when the command began."""
    from mechdesign.base.interrupts import two_steps
    from mechdesign.mechanism.storage import save
    from mechdesign.output import text_tables as printing
    from mechdesign.output.reports.solve import SolveReport, require_verified
    from mechdesign.solvers.choose import FACTORED_SOLVER
    from mechdesign.solvers.estimate import expected_words

    problem, file = program.problem, request.file
    beside = {"published": file.published(problem.parameters), "remark": file.remark(problem)}
    # The eikonal program solves one linear system, which has a loss but no gap.
    target = request.gap if program.name != "eikonal" else None
    with two_steps():  # the first Ctrl-C ends the search; its result is written and printed
        expected = expected_words(program, request.method, request.gap) if request.gap is not None else ""
        with printing.progress(
            f"{problem.name}, {program.name}", limit=request.time_limit, target=target, expected=expected
        ) as on_progress:
            mechanism = request.run(program, on_progress)
        checked = require_verified(mechanism)
        # Save before anything is printed: an error in the report must not lose the design.
        if output is not None:
            save(mechanism, output, overwrite=overwrite)
            if request.work is not None:
                FACTORED_SOLVER.get().discard_finished(request.work)
        report = SolveReport.of(mechanism, checked, seconds=time.monotonic() - started, file=output)
        report = replace(report, beside=beside)
        printing.show(report.to_json(), report.words(verbose=verbose, limit=request.time_limit), as_json=as_json)
    return report

"""solve: the one verb. A program goes in, a certified mechanism with its bound comes out.

Before the clock of a time limit starts, tiny problems are solved once where no compiled kernel is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import xarray as xr

from mechdesign.base.arguments import asked
from mechdesign.base.progress import compiled, note_compiling, verbosely
from mechdesign.base.registry import PROVIDERS, provider
from mechdesign.errors import InputError
from mechdesign.mechanism.dataset import make_mechanism
from mechdesign.problem.domain import Domain
from mechdesign.problem.levels import PrivacyLevel
from mechdesign.problem.losses import Distance, uniform
from mechdesign.problem.metric import Eikonal
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.eikonal import EikonalWeights
from mechdesign.programs.program import Optimal, Program
from mechdesign.solvers.design import Design, Progress, Targets
from mechdesign.solvers.optimal import Method, aggregate
from mechdesign.solvers.table import TABLES as TABLES
from mechdesign.solvers.table import Entry, entry_of, solve_entry

_METHODS: tuple[Method, ...] = ("rays", "blocks", "boxed", "whole")  # whose kernels are compiled
_compiled = False


def compile_kernels(program: Program, *, verbose: bool = False) -> None:
    """Compile what optimal programs and eikonal weights run, where none of it is kept yet; verbose, say so."""
    global _compiled
    if _compiled or compiled():
        return
    if verbose:
        note_compiling()
    domain = Domain.grid((4, 4), cell=1.0, unit="cell")
    metric = Eikonal(level=PrivacyLevel.constant(1.0, unit="cell"), stencil=8)
    prior = np.asarray(uniform(domain))
    problem = DesignProblem(domain=domain, metric=metric, prior=prior, loss=Distance(), name="compiling")
    for method in _METHODS:
        aggregate(problem, gap=0.1, method=method)
    if isinstance(program, EikonalWeights) and "factored" in PROVIDERS:
        maps = provider("factored")
        maps.solve_factored(EikonalWeights(problem=problem), maps.Run(bound=False))
    _compiled = True


@asked
def solve(
    program: Program | DesignProblem,
    *,
    gap: float = 1e-3,
    time_limit: float = math.inf,
    method: str = "auto",
    on_progress: Callable[[Progress], None] | None = None,
    rounds: int | None = None,
    work: str | Path | None = None,
    scheduler: str | None = None,
    bound: bool | None = None,
    verbose: bool = False,
) -> xr.Dataset:
    """Solve a program, for a problem its optimal program, and return the mechanism: repaired, certified, sealed.

    Certified at the claim of the problem's metric. solvers/table.py names the solver of each program,
    solvers/optimal.py the methods that "auto" tries for `Optimal`.

    Parameters: gap, target of (loss - lower_bound) / loss, not used for weights; time_limit in seconds; method, for
    `Optimal`: "auto", "graph" (of near pairs), "pool" (of columns) or one of solvers/optimal.py, for
    `EikonalWeights`: "auto", "table" or "factored"; on_progress, called with where the solve stands, after every round,
    iteration or block; verbose, a line of that on standard error. For the factored form of weights: rounds of weights
    and lengths, 24 by default; work, a folder for this run alone that keeps finished blocks, so that the same call goes
    on where a run ended, and at last mechanism.nc: delete it once the mechanism is saved; scheduler, the address of a
    dask scheduler whose workers compute the blocks; bound, whether a lower bound is computed, by default from 1,601 to
    50,000 secrets.
    Returns: the mechanism Dataset; attrs expected_loss and lower_bound enclose the optimum, stopped says why it ended:
        "gap", "time", "interrupt" (a Ctrl-C; what was found by then is certified), "precision" (the accuracy of every
        method is exhausted), "relaxation" (`Constrained`, and `Optimal` by near pairs: the bound leaves constraints
        out), "columns" (`Positions` by weights of columns, the cheapest to `gap`) or "search" (`StatisticalDesign`: no
        ray was found that gains more than `gap`, which proves nothing); for the factored form "kappa" (the weights keep
        the claim to 2e-5) or "rounds" (all are done) instead of "gap". Where attrs hold an objective, that and
        lower_bound enclose the optimum, and objective_of says what it is.
    The time limit is counted from after compilation, and time for the last certificate is kept. The optimal program,
    and those with limits of their own that it keeps, starts from the best closed form
    (closed_forms/best.py): the mechanism is that where no better table was found, its name the parameter
    closed_form.
    Raises: SolverError, with an estimate, where the time limit is too short for any certified table; InputError for a
        gap or limit that is not positive, or a method or option that the program has no use for;
        UnsuitableError for a program without a factored form, or for "graph" a metric without near pairs;
        SizeError before allocating a table that does not fit.
    """
    check_targets(gap, time_limit)
    if isinstance(program, DesignProblem):
        program = Optimal(program)
    if not isinstance(program, Program):
        raise InputError("must be a DesignProblem or a program", field="program", value=type(program).__name__)
    entry = entry_of(program)
    if method not in entry.methods:
        raise InputError(f"the {program.name} program takes {' or '.join(entry.methods)}", field="method", value=method)
    named = {"rounds": rounds, "work": work, "scheduler": scheduler, "bound": bound}
    options = {name: value for name, value in named.items() if value is not None}
    compile_kernels(program, verbose=verbose)
    title = f"{program.problem.name}, {program.name}"
    with verbosely(verbose, title, on_progress, target=gap if entry.closes_gap else None, limit=time_limit) as report:
        targets = Targets(gap=gap, time_limit=time_limit, method=method, on_progress=report, options=options)
        design = solve_entry(program, targets)
    return _mechanism(program, entry, gap, design) if isinstance(design, Design) else design


def check_targets(gap: float, time_limit: float) -> None:
    """Refuse a gap or a time limit that is not positive, with an InputError."""
    if not (gap > 0 and math.isfinite(gap)):
        raise InputError("must be positive", field="gap", value=gap)
    if not time_limit > 0:
        raise InputError("must be positive", field="time-limit", value=time_limit)


def _mechanism(program: Program, entry: Entry, gap: float, design: Design) -> xr.Dataset:
    target = {"gap": gap} if entry.closes_gap else {}
    named = {
        "objective": design.objective,
        "objective_of": design.objective_of,
        "lower_bound_of": design.lower_bound_of,
    }
    return make_mechanism(
        design.problem or program.problem,
        design.mass,
        program=program.name,
        scale=design.scale,
        parameters={**program.parameters(), **target, **design.parameters},
        claimed_epsilon=design.claimed_epsilon,
        dual=design.dual if len(design.dual) else None,
        lower_bound=design.lower_bound if math.isfinite(design.lower_bound) else None,
        stopped=design.stopped or None,
        multipliers=design.multipliers,
        attributes={name: value for name, value in named.items() if value is not None} | dict(design.figures),
        positions=design.positions,
    )

"""solve: the one verb. A program goes in, a certified mechanism with its bound comes out."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import xarray as xr

from mechdesign.base.arguments import asked
from mechdesign.base.progress import verbosely
from mechdesign.errors import InputError
from mechdesign.mechanism.table.dataset import make_mechanism
from mechdesign.programs.optimal.optimal import Optimal
from mechdesign.programs.program import Program
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.kernels.design import Design, Targets
from mechdesign.solvers.kernels.progress import Reported
from mechdesign.solvers.table import TABLES as TABLES
from mechdesign.solvers.table import Entry, entry_of
from mechdesign.solvers.warm import compile_kernels


@asked
def solve(
    program: Program | DesignProblem,
    *,
    gap: float = 1e-3,
    time_limit: float = math.inf,
    method: str = "auto",
    on_progress: Callable[[Reported], None] | None = None,
    rounds: int | None = None,
    work: str | Path | None = None,
    scheduler: str | None = None,
    bound: bool | None = None,
    verbose: bool = False,
) -> xr.Dataset:
    """Solve a program, for a problem its optimal program, and return the mechanism: repaired, certified, sealed.

    Certified at the claim of the problem's metric; the mechanism of `EdgeAverage`, which breaks that claim, at the
    smallest multiple that holds, with the lower bound of its own program among the parameters.

    How: `EikonalWeights` by one dense factorisation, or by its fallback where it has no solution
    (solvers/eikonal/weights.py), on more than 1,600 secrets as factors instead of a table (solvers/factored/run.py);
    `Optimal` by the whole linear program in HiGHS up to 60,000 constraints (10,000 on networks such as roads), beyond
    that, for all pairs of scattered places, by constraints taken in as they are broken, where edges are short by a
    mixture of rays with boxed multipliers, else by tree aggregation with a block interior-point method, then with HiGHS
    (solvers/optimal/attempts.py has the rule), but where a Euclidean metric has many pairs on a grid by the constraints
    of near pairs, levelled and certified over all pairs, with a bound that leaves far pairs out
    (solvers/optimal/near_pairs.py), and on more than 4,900 secrets by a pool of columns, which keeps the mechanism as
    factors (solvers/pool/run.py);
    `Dictionary` as one linear program over its kernels (solvers/eikonal/dictionary.py); `QueryWeights` as one over
    kernels of label sets, with constraints where they are broken (solvers/eikonal/query.py); `Minimax` and
    `Robust`, where that is large, by optimal programs of changing priors (solvers/optimal/changing_prior.py), else, as
    `Bounded` and `Constrained`, by rays or as one whole linear program (solvers/optimal/coupled.py), through cvxpy
    where a constraint is not affine (solvers/optimal/convex.py); `EdgeAverage` as optimal programs of its own edge
    lengths (solvers/optimal/edge_average.py); `StatisticalDesign` by weights of rays that a search extends
    (solvers/statistical/statistical_design.py), on grids of more than 64 secrets by weights of kernels of small
    clusters (solvers/statistical/grid_design.py), with reports of its own, each judged as the best place to read it as;
    `Positions` by an interior-point method on blocks of cones, where that takes longer than about an hour by weights
    of certified columns, without a lower bound (solvers/positions/positions.py has the rule).
    Parameters: gap, target of (loss - lower_bound) / loss, not used for weights; time_limit in seconds; method, for
    `Optimal`: "auto", "graph" (of near pairs), "pool" (of columns) or one of solvers/optimal/attempts.py, for
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
        the claim to 2e-5) or "rounds" (all are done)
        instead of "gap". Where attrs hold an objective, that and lower_bound enclose the optimum, and objective_of says
        what it is.
    The time limit is counted from after compilation, and time for the last certificate is kept. The optimal program,
    and those with limits of their own that it keeps, starts from the best closed form
    (closed_forms/mechanisms/best.py): the mechanism is that where no better table was found, its name the parameter
    closed_form.
    Raises: SolverError, with an estimate, where the time limit is too short for any certified table; InputError for a
        gap or limit that is not positive, or a method or option that the program has no use for;
        UnsuitableError for a program without a factored form, or for "graph" a metric without near pairs;
        SizeError before allocating a table that does not fit.
    """
    check_targets(gap, time_limit)
    asked = _asked(program)
    entry = entry_of(asked)
    if method not in entry.methods:
        raise InputError(
            f"is no method of the {asked.name} program",
            field="method",
            value=method,
            remedy="use " + " or ".join(entry.methods),
        )
    given = {"rounds": rounds, "work": work, "scheduler": scheduler, "bound": bound}
    options = {name: value for name, value in given.items() if value is not None}
    compile_kernels(asked, verbose=verbose)
    title = f"{asked.problem.name}, {asked.name}"
    with verbosely(verbose, title, on_progress, target=gap if entry.closes_gap else None, limit=time_limit) as told:
        targets = Targets(gap=gap, time_limit=time_limit, method=method, on_progress=told, options=options)
        found = entry.solve(asked, targets)
    return _made(asked, entry, gap, found) if isinstance(found, Design) else found


def _asked(program: Program | DesignProblem) -> Program:
    if isinstance(program, DesignProblem):
        return Optimal(program)
    if not isinstance(program, Program):
        remedy = "pass a DesignProblem, or a program such as Optimal(problem)"
        raise InputError("is no program", field="program", value=type(program).__name__, remedy=remedy)
    return program


def check_targets(gap: float, time_limit: float) -> None:
    """Refuse a gap or a time limit that is not positive, with an InputError."""
    if not (gap > 0 and math.isfinite(gap)):
        raise InputError("must be positive", field="gap", value=gap, remedy="give a relative gap such as 1e-3")
    if not time_limit > 0:
        raise InputError("must be positive", field="time-limit", value=time_limit, remedy="give seconds")


def _made(program: Program, entry: Entry, gap: float, found: Design) -> xr.Dataset:
    towards = {"gap": gap} if entry.closes_gap else {}
    named = {
        "objective": found.objective,
        "objective_of": found.objective_of,
        "lower_bound_of": found.lower_bound_of,
    }
    return make_mechanism(
        found.problem or program.problem,
        found.mass,
        program=program.name,
        scale=found.scale,
        parameters={**program.parameters(), **towards, **found.parameters},
        claimed_epsilon=found.claimed_epsilon,
        dual=found.dual if len(found.dual) else None,
        lower_bound=found.lower_bound if math.isfinite(found.lower_bound) else None,
        stopped=found.stopped or None,
        multipliers=found.multipliers,
        attributes={name: value for name, value in named.items() if value is not None} | dict(found.figures),
        positions=found.positions,
    )

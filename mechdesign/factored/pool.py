"""The optimal program over a pool of priced columns, at any size: factors instead of a table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr

from mechdesign.base.arrays import Vector
from mechdesign.base.threads import one_blas_thread
from mechdesign.errors import SizeError, UnsuitableError
from mechdesign.factored import dataset
from mechdesign.factored.column_certifier import ColumnCertifier
from mechdesign.factored.dataset import make_factored
from mechdesign.factored.pool_rounds import CONSTANTS, PoolRun, relative_gap
from mechdesign.factored.row_sums import merged_rows, rounded_words
from mechdesign.factored.work_folder import threads
from mechdesign.mechanism.figures import total_cost
from mechdesign.mechanism.repair import repair
from mechdesign.problem.losses import Distance
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.optimal import Optimal
from mechdesign.solvers.choose import PoolSolver
from mechdesign.solvers.cone.pricing import ConePricer, homogeneous_bound
from mechdesign.solvers.result import SolveResult, Stop, Targets

LARGEST = 50_000  # secrets up to which a pool of columns is made: beyond, minutes become hours
LARGEST_TABLE = 1600  # secrets up to which the result is a table
TABLED = 6_000  # the same where the loss is one, which no factors have room for: six tables of 0.3 GB


def rejection_reason(problem: DesignProblem) -> str | None:
    """Why a problem cannot be solved by a pool of columns; None if it can."""
    if problem.reports is not problem.domain:
        return "reports are other places than the secrets"
    if problem.loss.code is None and problem.metric.sparse and problem.domain.size <= TABLED:
        return None
    return dataset.rejection_reason(problem)


def makes_table(problem: DesignProblem) -> bool:
    """True if the result is a table, not factors."""
    return problem.domain.size <= LARGEST_TABLE or problem.loss.code is None


# 1. Multipliers from passes on a ladder of grids (ladder.py).
# 2. Rounds (pool_rounds.py): every report is priced in its ball. Rays that the pool lacks join it as columns, a few
#    generators each (fields.py). Weights and multipliers move by a proximal interior-point method (pool_master.py).
# 3. Lengths of edges that pay for the row sums, and integers: a certified mechanism (column_certifier.py).
# 4. A proved bound (local_bound.py).
# No proof rests on the rounds. Results do not depend on the number of threads.
def solve_pool(program: Optimal, targets: Targets) -> SolveResult | xr.Dataset:
    """The mechanism of an optimal program, certified, with a proved bound."""
    # `stopped` is "gap" (met, or in sight of the rounds), "rounds" (all ran, or pricing found no new ray), "time" or
    # "interrupt". Memory: some 14 bytes for every place within 12 nats of a column.
    problem = program.problem
    reason = rejection_reason(problem)
    if reason is not None:
        raise UnsuitableError(f"cannot be solved by a pool of columns: {reason}", field="method", value="pool")
    if problem.domain.size > LARGEST:
        message = f"a pool of columns has at most {LARGEST:,} secrets: use the program eikonal"
        raise SizeError(message, field="cells", value=problem.domain.size)
    with threads() as executor, one_blas_thread():
        run = PoolRun(problem, targets, executor)
        for _ in range(CONSTANTS.attempts):
            stopped = run.rounds()
            result, gap = _certified_result(program, run, stopped)
            # The estimate that ended the rounds may be too low: more rounds follow then.
            if stopped != "gap" or gap <= targets.gap:
                break
            run.enough *= CONSTANTS.caution * targets.gap / gap
    return result


def _certified_result(program: Optimal, run: PoolRun, stopped: str) -> tuple[SolveResult | xr.Dataset, float]:
    """The mechanism of the rounds so far, and its gap; infinite without a bound."""
    problem, (columns, target, weight) = program.problem, run.used_columns()
    # A loss that is a table is computed of the table: its certificate by rows takes any loss.
    stated = replace(problem, loss=Distance()) if problem.loss.code is None else problem
    certifier = ColumnCertifier(
        problem=stated, executor=run.executor, columns=columns, target=target, weight=weight, report=run.report
    )
    certified = certifier.certify()
    if makes_table(problem):
        every, total = np.arange(problem.domain.size), rounded_words(certified.rows.row_sum)
        table = merged_rows(certified.data.factors, every, target, total)
        design = _table_design(problem, table, [run.first_dual, run.best_dual], stopped)
        return design, relative_gap(design.loss, design.lower_bound)
    bound = run.bound()
    parameters = {**program.parameters(), "gap": run.targets.gap, "rounds": run.number, "factor": certified.factor}
    mechanism = make_factored(
        problem, certified, program=program.name, parameters=parameters, stopped=stopped, bound=bound
    )
    return mechanism, np.inf if bound is None else relative_gap(mechanism.attrs["expected_loss"], bound.value)


class ColumnPool(PoolSolver):
    """A pool of columns as a route of the optimal program."""

    def rejection_reason(self, problem: DesignProblem) -> str | None:
        if problem.domain.size > LARGEST:
            return f"it takes up to {LARGEST:,} secrets"
        return rejection_reason(problem)

    def makes_table(self, problem: DesignProblem) -> bool:
        return makes_table(problem)

    def needs_closed_form(self, problem: DesignProblem) -> bool:
        return problem.domain.size <= LARGEST_TABLE

    def solve(self, program: Optimal, targets: Targets) -> SolveResult | xr.Dataset:
        return solve_pool(program, targets)


COLUMN_POOL = ColumnPool()


def _table_design(problem: DesignProblem, table: Vector, duals: list[Vector], stopped: str) -> SolveResult:
    mass = repair(table, problem.edges, problem.weighted_loss)
    loss = total_cost(mass, problem.weighted_loss)
    pricer = ConePricer.of(problem)
    bounds = [homogeneous_bound(pricer, problem.weighted_loss, dual, loss=loss) for dual in duals]
    best = max(bounds, key=lambda bound: bound.value)
    return SolveResult(mass=mass, loss=loss, dual=best.dual, lower_bound=best.value, stopped=Stop(stopped))

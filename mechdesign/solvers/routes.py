"""The routes of optimal and coupled programs: mixtures of rays, columns in a box, restricted programs, the whole one.

Every route repairs and certifies its tables, and prices its multipliers for a bound. `BlockRoute` solves restricted
programs (solvers/lp/restricted.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import scipy.linalg

from mechdesign.base.arrays import MaskMatrix, Vector
from mechdesign.base.memory import require_memory
from mechdesign.base.time_budget import TimeBudget
from mechdesign.solvers.blocks import solve_blocks
from mechdesign.solvers.choose import LARGEST
from mechdesign.solvers.column_generation import BoxGeneration, RayGeneration, generate
from mechdesign.solvers.cone.pricing import CoupledBound, homogeneous_bound
from mechdesign.solvers.cone.warm_pricing import WarmPricer
from mechdesign.solvers.cost_model import TIME_MODEL
from mechdesign.solvers.incumbent import Incumbent, Task, plain_bound
from mechdesign.solvers.lp.full import MOST_ROWS, count_rows
from mechdesign.solvers.lp.highs import Method
from mechdesign.solvers.lp.restricted import restrict
from mechdesign.solvers.masters import POSITIVE_PRIORS, ZERO_PRIORS
from mechdesign.solvers.result import Status, Stop
from mechdesign.solvers.symmetry import symmetries

_TRIALS = 8  # solves of a whole program, with margins that grow


@dataclass(frozen=True, kw_only=True, eq=False)
class RayRoute:
    """Column generation at vertices; time_share, of the remaining time."""

    name: str = "rays"
    time_share: float = 1.0

    def rejection_reason(self, task: Task) -> str | None:
        return None

    def run(self, task: Task, incumbent: Incumbent, budget: TimeBudget) -> Stop:
        limit = budget.within(self.time_share) if self.time_share < 1 else budget
        return generate(RayGeneration(self.name, task, incumbent.target), incumbent, limit)


@dataclass(frozen=True, kw_only=True, eq=False)
class BoxRoute:
    """Column generation with multipliers in a box, for programs without side rows."""

    name: str = "boxes"

    def rejection_reason(self, task: Task) -> str | None:
        return (
            f"takes at most {LARGEST:,} secrets, because its columns are dense"
            if task.problem.domain.size > LARGEST
            else None
        )

    def run(self, task: Task, incumbent: Incumbent, budget: TimeBudget) -> Stop:
        problem, cone = task.problem, task.pricer
        require_memory(problem.domain.size, problem.domain.size, tables=18, noun="the columns")
        group = (
            symmetries(problem, [cone.all_distances(), problem.loss_matrix])
            if problem.reports is problem.domain
            else ()
        )
        rule = POSITIVE_PRIORS if problem.prior_array.all() else ZERO_PRIORS
        incumbent.warm = pricer = WarmPricer(cone, problem.weighted_loss, group)
        return generate(BoxGeneration(self.name, task, pricer, rule), incumbent, budget)


Polish = Callable[[Task, CoupledBound, float, float], CoupledBound]


@dataclass(frozen=True, kw_only=True, eq=False)
class WholeRoute:
    """The whole linear program by HiGHS, every limit lowered by a margin that grows until the table satisfies it."""

    method: Method
    cap: float  # nats, of the exponents of its kernels
    polish: Polish | None = None  # improves a bound
    name: str = "whole"

    def rejection_reason(self, task: Task) -> str | None:
        rows = count_rows(task.problem, task.rows.size)
        return None if rows <= MOST_ROWS else f"takes at most {MOST_ROWS} rows, and the program has {rows}"

    def run(self, task: Task, incumbent: Incumbent, budget: TimeBudget) -> Stop:
        # Costs in units of the best objective so far: the tolerances of HiGHS are absolute.
        scaled, margin = replace(task, unit=task.unit_at(incumbent.objective)), task.first_margin
        tolerance = min(1e-4, incumbent.target) / 20
        for _ in range(_TRIALS):
            if budget.is_spent():
                return Stop.TIME
            rows = task.rows.with_margin(margin)
            whole, solution = scaled.solve_whole(rows, self.method, self.cap, tolerance, budget.remaining())
            point = whole.table(solution.x)
            if solution.status is Status.INFEASIBLE or not point.max() > 0:
                break
            # Priced with multipliers that are made valid exactly, so the bound needs no convergence of HiGHS.
            bound = scaled.bound(*whole.multipliers(solution.dual))
            incumbent.record_bound(bound)
            # The side rows are checked on the certified integers, rounded up.
            table = task.certify(point, bound.folded)
            incumbent.try_table(table)
            is_feasible = not table.excess.any()
            if self.polish is not None and is_feasible and not incumbent.is_close and not budget.is_spent():
                incumbent.record_bound(self.polish(task, bound, incumbent.target / 4, budget.remaining()))
            incumbent.report_state(self.name, len(whole.program.cost), whole.program.matrix.shape[0])
            if is_feasible:
                break
            # Twice the excess, because a margin moves the solution and with it the rounding.
            margin = np.where(table.excess > 0, 2 * (margin + table.excess), margin)
        return Stop.PRECISION


@dataclass(frozen=True, kw_only=True)
class BlockOptions:
    """The constants of `BlockRoute`; unless marked otherwise, guesses that no benchmark row depends on."""

    rounds: int = 40
    near: float = 5.0  # nats from the anchor within which every node is cut where eikonal kernels do not fit
    first_gap: float = 5e-4  # gap of the first solve: its cuts are incomplete, and a first bound soon helps
    few_variables: int = 3_000  # up to which programs are solved to `accurate`
    accurate: float = 1e-6  # gap
    finest: float = 1e-10  # tolerance below which nothing is gained
    # Multipliers of a solver are infeasible by its tolerance. Lowered by this share of themselves and of the loss per
    # secret they need one pricing; a share t costs 2 t of the bound.
    lowered: float = 1e-7
    fine: float = 1e-6  # target gap up to which multipliers are priced as they are, and lowered as far as needed


@dataclass(kw_only=True, eq=False)
class BlockRoute:
    """Restricted programs by the block interior-point method, until no cut is left."""

    first_cut: MaskMatrix | None = None  # (m, n): cuts at the start, next to those of the eikonal system
    options: BlockOptions = BlockOptions()
    name: str = "blocks"
    cut: MaskMatrix | None = field(init=False, default=None)  # (m, n): the final cuts

    def rejection_reason(self, task: Task) -> str | None:
        return None

    def run(self, task: Task, incumbent: Incumbent, budget: TimeBudget) -> Stop:
        options, gap = self.options, incumbent.target
        # Objectives near 1 a secret, whatever the unit of the loss.
        scale = task.problem.domain.size / task.unit_at(incumbent.objective)
        # Few variables at first: one eikonal kernel a report, cut where the eikonal multipliers show a gain.
        cut, multipliers = self._eikonal_cuts(task, incumbent, budget)
        if self.first_cut is not None:
            cut |= self.first_cut
        self.cut = cut
        finest = gap / 2
        tolerance = max(finest, options.first_gap)
        for _ in range(options.rounds):
            if budget.is_spent():
                return Stop.TIME
            restricted = restrict(task.problem, scale, task.pricer.distance, task.pricer.parent, cut)
            report_state = partial(incumbent.report_state, self.name, restricted.variables, restricted.constraints)
            solution = solve_blocks(
                restricted,
                dual=multipliers * scale,
                tolerance=min(tolerance, options.accurate)
                if restricted.variables <= options.few_variables
                else tolerance,
                deadline=budget.ends,
                on_progress=report_state,
            )
            multipliers = solution.dual / scale
            # The certified table is an upper bound, exact pricing a lower one. A ray of negative price that leaves the
            # eikonal profile cuts the tree of its report.
            has_table = incumbent.try_table(task.certify(restricted.table(solution.q), task.cost))
            fresh, has_bound = self._price(task, incumbent, multipliers)
            report_state(None)
            if incumbent.is_close:
                return Stop.GAP
            ended = Stop(solution.stopped)
            if ended.is_early:
                return ended
            fresh &= ~cut
            is_exact = ended is Stop.PRECISION or tolerance <= options.finest
            # Without new cuts only a finer solve can gain, and not where the last one was as fine as it gets.
            if not fresh.any() and (is_exact or not (has_table or has_bound)):
                return Stop.PRECISION
            finer = max(options.finest, min(tolerance, incumbent.gap) / (3 if fresh.any() else 10))
            tolerance = finest if tolerance > finest else finer
            cut |= fresh
        return Stop.PRECISION

    def _eikonal_cuts(self, task: Task, incumbent: Incumbent, budget: TimeBudget) -> tuple[MaskMatrix, Vector]:
        """Cuts (m, n) by the multipliers (n,) of the eikonal weight system, and these; no cuts if it fails."""
        distance, n = task.pricer.distance, task.problem.domain.size
        nothing = np.zeros(distance.shape, np.bool_), np.zeros(n)
        if distance.shape[0] != n or not budget.allows(TIME_MODEL.equations * n**3):
            return nothing
        kernel = np.exp(-distance)
        kernel_cost = np.einsum("uy,yu->y", task.problem.weighted_loss, kernel)
        is_grid = task.problem.domain.kind == "grid"
        try:
            weights = None if is_grid else scipy.linalg.solve(kernel.T, np.ones(n))
            # Never overwrite_a: SciPy 1.17 crashes on indefinite matrices.
            multipliers = scipy.linalg.solve(kernel.T, kernel_cost)
        except (scipy.linalg.LinAlgError, scipy.linalg.LinAlgWarning, ValueError):
            return nothing
        cut = self._price(task, incumbent, multipliers)[0]
        # Off grids a negative weight, as at crossings of short roads, means that these multipliers mislead.
        if weights is not None and weights.min() < 0:
            cut = distance <= self.options.near
        return cut, multipliers

    def _price(self, task: Task, incumbent: Incumbent, multipliers: Vector) -> tuple[MaskMatrix, bool]:
        """Price every report: the useful cuts (m, n), and whether the bound improved."""
        loss = min(incumbent.objective, task.constant)
        bound = homogeneous_bound(
            task.pricer,
            task.cost,
            multipliers,
            loss=loss,
            start=self.options.lowered if incumbent.target > self.options.fine else 0.0,
            known=incumbent.lower_bound,
            enough=loss * (1 - incumbent.target),
        )
        return bound.first.cut_candidates, incumbent.record_bound(plain_bound(task, bound.value, bound.dual))

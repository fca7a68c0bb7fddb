"""Search for the best table under limits on posteriors: lazy rows in blocks, and multipliers folded into the cost."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from mechdesign.base.arrays import MaskMatrix, Matrix, Vector
from mechdesign.base.memory import require_memory
from mechdesign.base.time_budget import TimeBudget
from mechdesign.closed_forms.planar_laplace import laplace_clamped
from mechdesign.errors import DesignError, MechdesignError, SolverError
from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.mechanism.figures import RESOLUTION, total_cost
from mechdesign.mechanism.repair import repair
from mechdesign.posteriors.rows import ProgramRows, RowNumbers
from mechdesign.programs.constrained import Constrained
from mechdesign.solvers.blocks import InteriorPoint, solve_blocks
from mechdesign.solvers.cone.pricing import ConePricer, CoupledBound, homogeneous_bound
from mechdesign.solvers.incumbent import Certified, Incumbent
from mechdesign.solvers.lp.restricted import RestrictedProgram, restrict
from mechdesign.solvers.result import SolveResult, Stop


@dataclass(frozen=True, kw_only=True)
class LimitOptions:
    """Constants of the search; a constant without a reason next to it is a guess."""

    # Relative: the solver gets limits lower by this, above its own tolerance of 1e-8, ...
    tighter: float = 2e-7
    # ... and by at most this share of the slack of the constant report.
    share_of_slack: float = 1e-5
    # Secrets up to which every node is cut, from the start ...
    all_cut: int = 300
    # ... and from a round that gained too little: 8 n^3 bytes of blocks are 512 MB then.
    all_cut_later: int = 400
    # A round gained too little if this share of the gap is left.
    slow_gap: float = 0.9
    # Nats: the scale of entries where every node is cut.
    scale: float = 1.0
    # Nats around a report within which nodes are cut elsewhere: at first, and at most.
    near_cut: float = 4.0
    far_cut: float = 6.0
    # Sets a report that the search starts with, and that a round adds.
    first_sets: int = 12
    added_sets: int = 6
    # Overshoot of the exponential mechanism above which a set is among the first.
    first_overshoot: float = -0.5
    # Relative tolerances of the interior-point method: of the first round at most, and of the last.
    rough: float = 1e-3
    finest: float = 1e-8
    rounds: int = 40


OPTIONS = LimitOptions()


# A row of a disc belongs to the block of one report (solvers/blocks.py), and the Schur complement of the row sums stays
# n x n. By area sets are numbered as they are found, the largest entries of reports. A round:
# 1. Solve by the interior-point method, for limits lower by a small share. 2. Lift columns (rows.py), repair, and check
# every row in integers; the lift cannot fail. 3. Fold the multipliers of the rows into the cost, for the limits
# themselves, and price. The right sides are 0, so the
#    cone is that of the metric alone, and the bound is that of an optimal program.
# 4. Add the rows that the table breaks, and cut where rays leave their profiles.
@dataclass(kw_only=True, eq=False)
class BlockSearch:
    """The incumbent and the rows of the next program; bound_rows belong to the multipliers of the best bound."""

    program: Constrained
    limits: ProgramRows
    incumbent: Incumbent
    budget: TimeBudget
    bound_rows: RowNumbers = field(default_factory=lambda: np.empty((0, 3), np.int64))

    def __post_init__(self) -> None:
        problem, options = self.program.problem, OPTIONS
        n = problem.domain.size
        self.cost = problem.weighted_loss
        self.pricer = ConePricer.of(problem)
        distance = self.pricer.distance
        # Blocks of the last round: only nodes within this distance of a report are cut, so that blocks fit in memory.
        widest = math.inf if n <= options.all_cut_later else options.far_cut
        side = math.ceil(math.sqrt(((distance <= widest).sum(axis=1) ** 2.0).sum()))
        require_memory(side, side, tables=2, noun="blocks of a design with caps")
        self.cut, self.distance = distance <= options.near_cut, distance
        self.all_cut = n <= options.all_cut
        if self.all_cut:
            self._cut_all()
        self.dual = np.zeros(n)
        slack = min(caps.slack for caps in self.limits.caps)
        self.tighter = min(options.tighter, options.share_of_slack * slack)
        # The exponential mechanism is private without any solver: a first guess of the sets that bind.
        half = np.exp(-distance.T / 2)
        self.exponential = half / half.sum(axis=1, keepdims=True)
        self.rows = self.limits.most_exceeded(self.exponential, options.first_sets, options.first_overshoot)

    def _cut_all(self) -> None:
        self.all_cut, self.cut = True, np.ones(self.cut.shape, np.bool_)
        self.distance = np.minimum(self.pricer.distance, OPTIONS.scale)

    def next_rows(self, table: Matrix) -> RowNumbers:
        return self.limits.most_exceeded(table, OPTIONS.added_sets, -self.tighter / 4)

    def add_rows(self, rows: RowNumbers) -> None:
        self.rows = np.unique(np.concatenate([self.rows, rows]), axis=0)

    def run(self) -> Stop:
        self._try_closed_forms()
        incumbent, problem = self.incumbent, self.program.problem
        tolerance, scale = max(incumbent.target / 4, min(OPTIONS.rough, 1.0)), problem.domain.size / incumbent.constant
        for _ in range(OPTIONS.rounds):
            known, gap_before = len(self.rows), incumbent.gap
            restricted = restrict(problem, scale, self.distance, self.pricer.parent, self.cut)
            point = solve_blocks(
                restricted,
                dual=self.dual * scale,
                tolerance=tolerance,
                side=self._block_rows(restricted),
                deadline=self.budget.ends,
            )
            table, self.dual = restricted.table(point.q), point.dual / scale
            # Before the table is lifted: rows that it breaks as the solver returned it are those to add.
            new_rows = self.next_rows(table)
            wanted_cuts = self._record_bound(table, point, scale)
            self.add_rows(new_rows)
            self._try_table(table)
            incumbent.report_state("blocks", restricted.variables, restricted.constraints + known)
            if incumbent.is_close:
                return Stop.GAP
            if point.stopped == Stop.INTERRUPT:
                return Stop.INTERRUPT
            if point.stopped == Stop.TIME or self.budget.is_spent():
                return Stop.TIME
            gained_little = incumbent.gap > OPTIONS.slow_gap * gap_before
            # Little progress: take the larger program with all nodes cut, once.
            if not self.all_cut and len(table) <= OPTIONS.all_cut_later and gained_little:
                self._cut_all()
                continue
            new_cuts = wanted_cuts & ~self.cut & (self.pricer.distance <= OPTIONS.far_cut)
            self.cut |= new_cuts
            if new_cuts.any():
                continue
            # Neither a cut nor a row is missing, so only the accuracy of the solver is left to improve.
            if len(self.rows) == known:
                if tolerance <= OPTIONS.finest or point.stopped == Stop.PRECISION:
                    return Stop.PRECISION
                tolerance = max(OPTIONS.finest, tolerance / 10)
            if len(self.rows) < known + len(table) / 4:
                tolerance = min(tolerance, max(incumbent.target / 4, OPTIONS.finest))
        return Stop.PRECISION

    def _block_rows(self, restricted: RestrictedProgram) -> sp.csr_array:
        """The rows over the variables q of a program, G q >= 0, scaled to a largest entry of 1."""
        data, columns, ends = [], [], [0]
        self.sizes = np.ones(len(self.rows))
        inside, limit = self.limits.membership(self.rows)
        entries = self.limits.scaled_priors(self.rows[:, 1]) * (limit[:, None] * (1 - self.tighter) - inside)
        # A variable q stands for all entries of its component, each e^-distance times q: their coefficients add up.
        for row, report in enumerate(self.rows[:, 0]):
            first, last = restricted.first[report : report + 2]
            weights = entries[row] * np.exp(-restricted.distance[report])
            coefficients = np.bincount(restricted.component[report], weights, last - first)
            self.sizes[row] = max(float(np.abs(coefficients).max()), 1e-300)
            data.append(coefficients / self.sizes[row])
            columns.append(np.arange(first, last))
            ends.append(ends[-1] + int(last - first))
        if not data:
            return sp.csr_array((0, restricted.variables))
        shape = len(self.rows), restricted.variables
        return sp.csr_array((np.concatenate(data), np.concatenate(columns), np.asarray(ends)), shape=shape)

    def _record_bound(self, table: Matrix, point: InteriorPoint, scale: float) -> MaskMatrix:
        """Price the multipliers folded into the cost and record the best bound; return the useful cuts (m, n)."""
        multipliers = point.side / scale / self.sizes
        # Multipliers of inequalities are not negative. Dropping the others leaves a valid bound.
        useful = multipliers > 0
        side = self.limits.side_rows(self.rows[useful], table.shape[1])
        folded = side.lagrangian_cost_down(self.cost, multipliers[useful]) if useful.any() else self.cost
        value = min(float((self.cost * table).sum()), self.incumbent.objective)
        # Limits of right side 0 leave no constant term, so folded rows only change the cost (step 3 of the module).
        bound = homogeneous_bound(
            self.pricer,
            folded,
            self.dual,
            loss=max(value, RESOLUTION * self.incumbent.constant),
            known=self.incumbent.lower_bound,
            enough=value * (1 - self.incumbent.target / 4),
        )
        proof = CoupledBound(value=bound.value, dual=bound.dual, multipliers=multipliers[useful], folded=folded)
        if self.incumbent.record_bound(proof):
            self.bound_rows = self.rows[useful]
        return bound.first.cut_candidates

    def _try_closed_forms(self) -> None:
        problem = self.program.problem
        constant = np.zeros_like(self.cost)
        constant[:, problem.best_constant] = 1.0
        tables, level = [constant, self.exponential], problem.metric.smallest_level
        if level is not None:
            with contextlib.suppress(MechdesignError):
                tables.append(laplace_clamped(problem, level))
        for table in tables:
            with contextlib.suppress(DesignError):
                self._try_table(table)

    def _try_table(self, table: Matrix) -> None:
        problem = self.program.problem
        lifted = self.limits.lift_columns(np.maximum(table, 0.0), self.tighter / 2)
        mass = repair(lifted, problem.edges, self.cost)
        if not self.limits.hold(mass):
            # The repair put the missing mass into one rare report, which then breaks a limit. Repaired rows lack almost
            # nothing, so a second repair puts the rest into the likeliest report, where it changes shares least.
            lifted = self.limits.lift_columns(mass / float(ROW_SUM), self.tighter / 4)
            slack_cost = np.zeros_like(self.cost)
            slack_cost[:, np.arange(lifted.shape[1]) != np.argmax(problem.prior_array @ lifted)] = 1.0
            mass = repair(lifted, problem.edges, slack_cost)
            if not self.limits.hold(mass):
                raise DesignError("the repaired table breaks a cap: use a larger share", field="constraints")
        self.incumbent.try_table(Certified(mass, np.zeros(0), total_cost(mass, self.cost)))

    def design(self, stopped: Stop) -> SolveResult:
        """The best table and its bound, 0 without one; SolverError without a table."""
        incumbent, bound = self.incumbent, self.incumbent.bound
        if incumbent.mass is None:
            raise SolverError("stopped before any table was certified: allow more time", field="time_limit")
        multipliers = np.zeros(0) if bound is None else bound.multipliers
        return SolveResult(
            mass=incumbent.mass,
            objective=incumbent.objective,
            objective_of=self.program.objective_of,
            lower_bound_of="the program",
            dual=np.zeros_like(self.dual) if bound is None else bound.dual,
            lower_bound=incumbent.lower_bound,
            stopped=stopped,
            **design_fields(self.limits, self.bound_rows, multipliers),
        )


def design_fields(limits: ProgramRows, rows: RowNumbers, multipliers: Vector) -> dict[str, Any]:
    """The fields of a `SolveResult` for rows with multipliers (k,)."""
    variables, merged = limits.file_fields(rows, multipliers)
    return {"row_variables": {name: values for name, values in variables.items() if len(values)}, "multipliers": merged}

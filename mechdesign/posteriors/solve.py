"""Solve a program with limits on the posterior of discs: lazy rows in blocks, and multipliers folded into the cost.

A row of a disc joins the entries of one report. So it stands inside that report's block of the restricted program
(blocks.py), and the Schur complement of the row sums stays n x n. A round: 1. the interior-point method, for limits
lower by a share of 2e-7.  2. Raise columns (posteriors/limits.py), repair, and check every row in integers; the raise
cannot fail.  3. Fold the multipliers of the rows into the cost, for the limits themselves, and price: with limits of 0
nothing is charged, and the cone is that of the metric alone, so that the bound is that of an optimal program.  4. Take
up the rows that the table breaks, and cut where rays leave their profiles. Up to 300 secrets every node is cut, and
entries are in the scale of e^{-d} down to e^{-1}: caps lift them far above it; up to 400 from the round that gained
too little. Rows of other constraints join reports: beside them whole programs are solved, with rows that tables break.
By area there is no list of sets: they are numbered as they are found, the largest entries of reports.
"""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mechdesign.base.memory import require_memory
from mechdesign.closed_forms.planar_laplace import laplace_clamped
from mechdesign.errors import DesignError, InputError, MechdesignError, SolverError
from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.mechanism.figures import relative_gap, total_cost
from mechdesign.mechanism.repair import repair
from mechdesign.posteriors.rows import Caps, merged_rows, posterior_rows
from mechdesign.programs.constrained import Constrained
from mechdesign.programs.coupled import SideRows, stack_rows
from mechdesign.solvers.blocks import InteriorPoint, solve_blocks
from mechdesign.solvers.cone.pricing import ConePricer, CoupledBound, best_bound, homogeneous_bound
from mechdesign.solvers.coupled import solve_coupled
from mechdesign.solvers.lp.restricted import RestrictedProgram, restrict
from mechdesign.solvers.result import Design, Stop, Targets, reporter

Rows = NDArray[np.int64]  # (k, 3): report, which of the caps, set; by report
TIGHTER, _OF_ROOM = 2e-7, 1e-5  # shares that limits are lower by for the solver: of them, and of what a constant leaves
_ALL_CUT, _ALL_CUT_LAST = 300, 400  # secrets up to which every node is cut, at first and at last
_SLOW = 0.9  # of the gap, from which a round has gained too little, and every node is cut
_SCALED = 1.0  # nats to which entries are scaled then
_NEAR_CUT, _FAR_CUT = 4.0, 6.0  # nats around a report within which nodes are cut elsewhere, at first and at most
_FIRST, _MORE = 12, 6  # rows a report at the start, and taken up in a round
_LIKELY = -0.5  # overshoot of an exponential mechanism from which rows are taken up at the start
_ROUGH, _FINEST = 1e-3, 1e-8  # tolerances of the interior-point method
_ROUNDS = 40


def solve_capped(program: Constrained, targets: Targets) -> Design:
    """Solve a program whose constraints are limits on discs.

    Raises: InputError where there are inequalities besides that are no rows; InfeasibleError where no table keeps the
    limits; SolverError where time ends before any table is certified.
    """
    if program.beyond_rows:
        raise InputError(
            "limits on discs stand beside linear inequalities alone", field="constraints", value=len(program.own)
        )
    search = _Search(program=program, gap=targets.gap, deadline=time.monotonic() + targets.time_limit)
    search.report = reporter(targets.on_progress)
    if program.side_rows().size:
        return search.beside(program.side_rows(), targets)
    return search.design(search.run())


@dataclass(kw_only=True, eq=False)
class _Search:
    """The best certified table and bound so far."""

    program: Constrained
    gap: float
    deadline: float
    mass: NDArray[np.uint64] | None = None
    value: float = math.inf
    proof: CoupledBound | None = None
    proof_rows: Rows = field(default_factory=lambda: np.empty((0, 3), np.int64))

    def __post_init__(self) -> None:
        problem = self.program.problem
        self.report = reporter(None)
        self.cost, self.constant = problem.weighted_loss, problem.constant_loss
        self.pricer = ConePricer.of(problem)
        n = problem.domain.size
        self.all_cut = n <= _ALL_CUT
        distance = self.pricer.distance
        widest = math.inf if n <= _ALL_CUT_LAST else _FAR_CUT
        blocks = float(((distance <= widest).sum(axis=1) ** 2.0).sum())
        require_memory(
            math.ceil(math.sqrt(blocks)), math.ceil(math.sqrt(blocks)), tables=2, what="blocks of a design with caps"
        )
        self.cut, self.distance = distance <= _NEAR_CUT, distance
        if self.all_cut:
            self._cut_all()
        self.dual = np.zeros(n)
        self.tighter = min(TIGHTER, _OF_ROOM * min(caps.room for caps in self.program.caps))
        half = np.exp(-distance.T / 2)
        self.exponential = half / half.sum(axis=1, keepdims=True)
        self.rows = self.worst(self.exponential, _FIRST, _LIKELY)

    def _cut_all(self) -> None:
        self.all_cut, self.cut = True, np.ones(self.cut.shape, np.bool_)
        self.distance = np.minimum(self.pricer.distance, _SCALED)

    @property
    def reached(self) -> float:
        """The relative gap."""
        bound = 0.0 if self.proof is None else self.proof.value
        return math.inf if self.mass is None else relative_gap(self.value, bound, self.constant)

    def worst(self, table: NDArray[np.float64], most: int, over: float) -> Rows:
        """The rows of at most `most` sets a report, those that overshoot most, and by more than `over`."""
        found = [np.insert(c.worst(table, most, over), 1, k, axis=1) for k, c in enumerate(self.program.caps)]
        return np.unique(np.concatenate(found), axis=0)

    def run(self) -> str:
        """Rounds until the gap is met; returns why they ended."""
        self._offer_closed_forms()
        problem, tolerance = self.program.problem, max(self.gap / 4, min(_ROUGH, 1.0))
        scale = problem.domain.size / self.constant
        for number in range(_ROUNDS):
            restricted = restrict(problem, scale, self.distance, self.pricer.parent, self.cut)
            point = solve_blocks(
                restricted,
                dual=self.dual * scale,
                tolerance=tolerance,
                side=self._side(restricted),
                deadline=self.deadline,
            )
            table, self.dual = restricted.table(point.q), point.dual / scale
            new = self.worst(table, _MORE, -self.tighter / 4)
            known, before = len(self.rows), self.reached
            turns = self._bounded(table, point, scale)
            self.rows = np.unique(np.concatenate([self.rows, new]), axis=0)
            self._offer(table)
            self.report(
                "blocks",
                round=number,
                loss=self.value,
                lower_bound=0.0 if self.proof is None else self.proof.value,
                gap=self.reached,
                variables=restricted.variables,
                constraints=restricted.constraints + known,
            )
            if self.reached <= self.gap:
                return "gap"
            if point.stopped in ("time", "interrupt") or time.monotonic() >= self.deadline:
                return "interrupt" if point.stopped == "interrupt" else "time"
            if not self.all_cut and len(table) <= _ALL_CUT_LAST and self.reached > _SLOW * before:
                self._cut_all()
                continue
            fresh = turns & ~self.cut & (self.pricer.distance <= _FAR_CUT)
            if len(self.rows) == known and not fresh.any():
                if tolerance <= _FINEST or point.stopped == "precision":
                    return "precision"
                tolerance = max(_FINEST, tolerance / 10)
            self.cut |= fresh
            if len(self.rows) < known + len(table) / 4 and not fresh.any():
                tolerance = min(tolerance, max(self.gap / 4, _FINEST))
        return "precision"

    def beside(self, others: SideRows, targets: Targets) -> Design:
        """The design with rows of other constraints, which join reports: whole programs, with rows that their tables
        broke. Raises: DesignError where the rows in hand leave a limit broken; what `solve_coupled` raises.
        """
        caps, (n, reports) = self.program.caps, self.cost.shape
        for _ in range(_ROUNDS):
            held = stack_rows([others, side_rows(caps, self.rows, reports, self.tighter)], n * reports)
            left = replace(targets, time_limit=max(0.0, self.deadline - time.monotonic()))
            design = solve_coupled(self.program, left, held)
            if not any(each.breaches(design.mass) for each in caps):
                assert design.multipliers is not None
                exact = stack_rows([others, side_rows(caps, self.rows, reports)], n * reports)
                bound = best_bound(
                    self.pricer,
                    self.cost,
                    exact,
                    design.dual,
                    design.multipliers,
                    loss=max(total_cost(design.mass, self.cost), 1e-9 * self.constant),
                )
                assert bound.multipliers is not None
                own, kept = bound.multipliers[: others.size], self.kept(self.rows, bound.multipliers[others.size :])
                kept["multipliers"] = np.r_[own, kept["multipliers"]]
                return replace(design, dual=bound.dual, lower_bound=bound.value, **kept)
            known = len(self.rows)
            new = self.worst(design.mass / float(ROW_SUM), _MORE, -self.tighter / 4)
            self.rows = np.unique(np.concatenate([self.rows, new]), axis=0)
            if len(self.rows) == known:
                break
        raise DesignError(
            "a rare report breaks a cap beside other constraints: use a larger share", field="constraints"
        )

    def _side(self, restricted: RestrictedProgram) -> sp.csr_array:
        """The rows in hand over the variables of a restricted program, as side q >= 0, the largest entry of each 1: far
        from a report, or where few people live, entries are smaller than rounding would forgive.
        """
        data, columns, ends = [], [], [0]
        self.sizes = np.ones(len(self.rows))
        inside, limit = chosen(self.program.caps, self.rows)
        priors = np.stack([caps.prior / caps.prior.max() for caps in self.program.caps])
        known = zip(self.rows[:, 0], priors[self.rows[:, 1]], inside, limit, strict=True)
        for row, (report, prior, places, share) in enumerate(known):
            entries = prior * (share * (1 - self.tighter) - places)
            first, last = restricted.first[report : report + 2]
            weights = entries * np.exp(-restricted.distance[report])
            joined = np.bincount(restricted.component[report], weights, last - first)
            self.sizes[row] = max(float(np.abs(joined).max()), 1e-300)
            data.append(joined / self.sizes[row])
            columns.append(np.arange(first, last))
            ends.append(ends[-1] + int(last - first))
        if not data:
            return sp.csr_array((0, restricted.variables))
        shape = len(self.rows), restricted.variables
        return sp.csr_array((np.concatenate(data), np.concatenate(columns), np.asarray(ends)), shape=shape)

    def _bounded(self, table: NDArray[np.float64], point: InteriorPoint, scale: float) -> NDArray[np.bool_]:
        """Price the multipliers folded into the cost; where cuts would pay (m, n)."""
        multipliers = point.side / scale / self.sizes
        useful = multipliers > 0
        side = side_rows(self.program.caps, self.rows[useful], table.shape[1])
        folded = side.fold_down(self.cost, multipliers[useful]) if useful.any() else self.cost
        value = float((self.cost * table).sum())
        bound = homogeneous_bound(
            self.pricer,
            folded,
            self.dual,
            loss=max(min(value, self.value), 1e-9 * self.constant),
            known=0.0 if self.proof is None else self.proof.value,
            enough=min(value, self.value) * (1 - self.gap / 4),
        )
        if self.proof is None or bound.value > self.proof.value:
            self.proof = CoupledBound(
                value=bound.value, dual=bound.dual, multipliers=multipliers[useful], folded=folded
            )
            self.proof_rows = self.rows[useful]
        return bound.first.turns

    def _offer_closed_forms(self) -> None:
        """Keep the best of the constant report, the exponential mechanism and planar Laplace noise, as they keep the
        caps: no design is worse, however its search ends.
        """
        problem = self.program.problem
        constant = np.zeros_like(self.cost)
        constant[:, problem.best_constant] = 1.0
        tables, level = [constant, self.exponential], problem.metric.smallest_level
        with contextlib.suppress(MechdesignError):
            tables += [] if level is None else [laplace_clamped(problem, level)]
        for table in tables:
            with contextlib.suppress(DesignError):
                self._offer(table)

    def _offer(self, table: NDArray[np.float64]) -> None:
        """Raise, repair and certify a table, and keep it where it is the best."""
        problem, caps = self.program.problem, self.program.caps
        mass = repair(raised(np.maximum(table, 0.0), caps, self.tighter / 2), problem.edges, self.cost)
        if any(each.breaches(mass) for each in caps):
            # The repair put what rows lacked into one rare report. Now they lack next to nothing, and the report that
            # is made most often takes it up.
            lifted = raised(mass / float(ROW_SUM), caps, self.tighter / 4)
            often = np.zeros_like(self.cost)
            often[:, np.arange(lifted.shape[1]) != np.argmax(problem.prior_array @ lifted)] = 1.0
            mass = repair(lifted, problem.edges, often)
            if any(each.breaches(mass) for each in caps):
                raise DesignError("the repaired table breaks a cap: use a larger share", field="constraints")
        value = total_cost(mass, self.cost)
        if value < self.value:
            self.mass, self.value = mass, value

    def design(self, stopped: str) -> Design:
        """The result; its bound is 0 if no bound was found. Raises: SolverError where there is no table."""
        if self.mass is None:
            raise SolverError("stopped before any table was certified: allow more time", field="time_limit")
        proof = self.proof
        return Design(
            mass=self.mass,
            objective=self.value,
            objective_of=self.program.objective_of,
            lower_bound_of="the program",
            dual=np.zeros_like(self.dual) if proof is None else proof.dual,
            lower_bound=0.0 if proof is None else proof.value,
            stopped=Stop(stopped),
            **self.kept(self.proof_rows, np.zeros(0) if proof is None else proof.multipliers),
        )

    def kept(self, rows: Rows, multipliers: NDArray[np.float64]) -> dict[str, Any]:
        """The fields of a `Design` for multipliers (k,) of rows (k, 3)."""
        kept, merged = merged_rows(self.program.caps, rows, multipliers)
        return {"cap_rows": {name: rows for name, rows in kept.items() if len(rows)}, "multipliers": merged}


def raised(table: NDArray[np.float64], caps: list[Caps], tighter: float) -> NDArray[np.float64]:
    """The table (n, m) with a constant added to every column until all rows hold with limits lower by `tighter`, rows
    divided by their largest sum.
    """
    need = np.max([each.need(table, tighter) for each in caps], axis=0, initial=0.0)
    table = table + need if need.any() else table
    return np.asarray(table / table.sum(axis=1).max())


def chosen(caps: list[Caps], rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Which places the sets of rows (k, 3) contain, (k, n) of 0 and 1, and their limits (k,)."""
    inside, limit = np.empty((len(rows), len(caps[0].persons))), np.empty(len(rows))
    for number, each in enumerate(caps):
        own = rows[:, 1] == number
        inside[own], limit[own] = each.chosen(rows[own, 2])
    return inside, limit


def side_rows(caps: list[Caps], rows: Rows, reports: int, tighter: float = 0.0) -> SideRows:
    """Rows (k, 3) as side rows in their order, limits lower by the share `tighter`."""
    return posterior_rows(caps, rows[:, :2], *chosen(caps, rows), reports=reports, tighter=tighter)

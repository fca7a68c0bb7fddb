"""Solve a coupled program by rays where edges are long, else as one linear program; then repair, certify and bound.

The best closed form that meets the limits is the first table. Designs of changing priors come next where a maximum is
minimised and the whole program has more than 60,000 constraints, else rays (rays.py) where the median edge has 3 nats
or more; elsewhere rays come last. The whole program: 1. HiGHS solves it, every limit lowered by a margin.  2. The point
is repaired and certified.  3. The side rows are checked on the certified integers, rounded up; where one fails its
margin grows and 1. is repeated.  4. The multipliers of the side rows are clipped and scaled until they are valid
exactly, folded into the effective cost, and every report is priced: a lower bound that rests on no convergence.
5. Where it stays apart, the optimal program is solved for the effective cost: its multipliers of the row sums are more
accurate far from the anchors.

The best certified table and the best bound are kept, whatever a later route ends with. Where no table is found the
least common relaxation of the limits is bounded from below in the same way. A bound above zero proves that the
constraints contradict each other, and its multipliers say which.

Designs of changing priors (`generate_designs`), where a maximum is minimised:

    minimise over private P   max over side rows k of (G_k P - h_k) / s_k

By duality this is the maximum over mu >= 0, sum_k s_k mu_k = 1, of the optimal program for the cost sum_k mu_k G_k; for
the worst-case loss mu is a prior over the secrets, and the one that attains it is least favourable. In every round that
program is solved: its bound is one of the coupled program, and every report of its table becomes a column of the master
of rays.py, which recombines them. The master's multipliers, averaged with the best ones so far, are the next mu, within
a factor of the best ones that grows where the bound does and else shrinks: far from them designs take long, of priors
that leave out most of the map, and their tables are of no use. Cutting planes (Kelley 1960, Journal of SIAM 8), one for
every report instead of one for every table, centred at the best point (Wentges 1997, International Transactions in
Operational Research 4), in a trust region (Linderoth and Wright 2003, Computational Optimization and Applications 24).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mechdesign.base import interrupts
from mechdesign.closed_forms.best import certified_closed_forms
from mechdesign.errors import DesignError, InfeasibleError, InputError, SolverError
from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.mechanism.dataset import RESOLUTION, relative_gap
from mechdesign.problem.losses import TableLoss, uniform
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.coupled import Coupled, SideRows, constant_objective, objective
from mechdesign.solvers.choose import DESIGNS, SMALL, VERTICES, nearest
from mechdesign.solvers.cone.pricing import ConePricer, CoupledBound, anchor_bound, project_dual
from mechdesign.solvers.incumbent import FIRST_MARGIN, Route, Search, Task
from mechdesign.solvers.lp.full import count_rows, require_whole
from mechdesign.solvers.optimal import solve_optimal
from mechdesign.solvers.rays import RayGeneration
from mechdesign.solvers.result import Design, Targets, reporter

_SHARE = 0.5  # of the time limit for rays, where the whole program can follow
_DESIGNS = 0.8  # the same for designs of changing priors
_SOON = 2.0  # seconds that closed forms get in any case
_LEAST_TIME = 1.0  # seconds for the proof that limits contradict each other
_LONG = 1.0  # nats to the nearest place, in the median, from which rays are faster than the whole program
# Designs of changing priors.
_CENTRED = 0.5  # share of the best multipliers in the next ones
_AROUND, _NARROWEST, _WIDEST, _GROW = 3.0, 1.5, 8.0, 1.3  # factor of the best multipliers; its square root after a loss
_LEAST = 1e-9  # multiplier, as a share: no secret is without weight
_ROUGH, _FINE = 1e-2, 0.2  # gap of the first design; of later ones, as a share of the gap in hand
_TABLES = 0.1  # of the target gap: no design needs a smaller one
_ROUNDS = 200
_NO_GAIN = 10  # rounds without a better bound or mixture after which this ends
_GAINED = 0.05  # of the target gap: what is a gain
_DESIGN_SHARE = 0.3  # of the time left that one design may take, and the master
_SHORTEST = 1.0  # seconds that they get


@dataclass(frozen=True, kw_only=True, eq=False)
class CoupledTask(Task):
    """A task with what coupled programs do with it."""

    @property
    def rays_first(self) -> bool:
        """Whether rays are few, and side rows no more than secrets: a row for every entry takes a hundred times as long
        by rays as the whole program.
        """
        size = self.problem.domain.size
        return nearest(self.problem) >= _LONG and size <= VERTICES and self.rows.size <= size

    @property
    def designs_first(self) -> bool:
        """Whether the side rows share one maximum, and the whole program is large: multipliers are a prior then."""
        return count_rows(self.problem, self.rows.size) > SMALL and designs_fit(self.problem, self.rows)

    def first_bound(self) -> CoupledBound:
        """A bound that no search is needed for, with equal multipliers of the side rows that have a share."""
        multipliers = project_dual(np.where(self.rows.share > 0, 1.0, 0.0), self.rows.share)
        anchored = anchor_bound(self.pricer, self.rows.fold_down(self.cost, multipliers))
        return self.bound(anchored.dual, multipliers)

    def designed(
        self, folded: NDArray[np.float64], gap: float, time_limit: float, start: Design | None = None
    ) -> tuple[Design, NDArray[np.float64]] | None:
        """The design of the optimal program for an effective cost (n, m), and multipliers (n,) of its row sums; None
        where a constant report costs no more than any table.

        The least entry of every row is taken off that cost, so that it is a loss, and comes back with the multipliers.
        """
        least = folded.min(axis=1)
        loss = (folded - least[:, None]) * len(least)
        if not loss.max() > 0:
            return None
        problem = replace(self.problem, prior=uniform(self.problem.domain), loss=TableLoss(values=loss))
        try:
            design = solve_optimal(problem, Targets(gap=gap, time_limit=time_limit), start=start)
        except InputError:
            return None
        if design.stopped == "interrupt":  # the block method keeps its point: the search around it ends too
            raise KeyboardInterrupt
        return design, design.dual + least

    def polished(self, bound: CoupledBound, gap: float, time_limit: float) -> CoupledBound:
        """The bound with other multipliers of the row sums, those of the optimal program for its effective cost."""
        pair = self.designed(bound.folded, gap, time_limit)
        return bound if pair is None else self.bound(pair[1], bound.multipliers)


def designs_fit(problem: DesignProblem, rows: SideRows) -> bool:
    """Whether the side rows share one maximum, so that multipliers are a prior, and the master is not too large."""
    return problem.domain.size <= DESIGNS and bool((rows.share > 0).all())


def task_of(program: Coupled, rows: SideRows | None = None) -> CoupledTask:
    """The task of a program, or of other side rows. Raises: SizeError before allocating what does not fit."""
    problem = program.problem
    few, what = nearest(problem) >= _LONG and problem.domain.size <= VERTICES, f"the {program.name} program"
    if problem.domain.size > DESIGNS:
        require_whole(problem, problem.domain.size, what=what)
    rows, cost = program.side_rows() if rows is None else rows, program.base_cost()
    if not few and not designs_fit(problem, rows):
        require_whole(problem, rows.size, what=what)
    pricer = ConePricer.of(problem)
    exponential = np.exp(-pricer.distance.T / 2)
    exponential /= exponential.sum(axis=1, keepdims=True)
    constant = constant_objective(cost, rows) or 1.0
    unit = max(min(constant, objective(cost, rows, exponential)), RESOLUTION * constant)
    return CoupledTask(problem=problem, cost=cost, rows=rows, pricer=pricer, constant=constant, unit=unit)


def generate_designs(
    task: CoupledTask, rays: RayGeneration, *, gap: float, deadline: float, take: Callable[[CoupledBound, bool], float]
) -> str:
    """Rounds of a design and the master until the certified gap is met; returns "gap", "time" or "precision".

    take, as in `rays.generate`. Cost of a round: an optimal program, and a linear one of n + k rows.
    Raises: SolverError where the master has no optimum; OutOfTime where pricing is late.
    """
    count, share = task.rows.size, task.rows.share
    multipliers = project_dual(np.ones(count), share)
    best, design, wanted, since, reached, around = None, None, _ROUGH, 0, np.inf, _AROUND
    reports = np.arange(task.cost.shape[1])
    for _ in range(_ROUNDS):
        left = deadline - time.monotonic()
        if left <= 0:
            return "time"
        spread = np.maximum(multipliers, _LEAST / (count * share))
        spread = project_dual(spread, share)
        pair = task.designed(
            task.rows.fold_down(task.cost, spread), wanted, max(_SHORTEST, _DESIGN_SHARE * left), design
        )
        if pair is None:
            return "precision"
        design, dual = pair
        bound = task.bound(dual, spread)
        rays.waiting.append((np.ascontiguousarray(design.mass.T / float(ROW_SUM)), reports))
        before = rays.objective
        rays.solve(max(_SHORTEST, _DESIGN_SHARE * (deadline - time.monotonic())))
        gained = best is None or bound.value > best.value + _GAINED * gap * rays.objective
        since = 0 if gained or rays.objective < before * (1 - _GAINED * gap) else since + 1
        if best is None or bound.value > best.value:
            best = bound
        near = relative_gap(rays.objective, best.value, rays.scale)
        reached = take(best, near <= gap or since == _NO_GAIN)
        if reached <= gap:
            return "gap"
        if since == _NO_GAIN:
            break
        wanted = max(_TABLES * gap, min(_ROUGH, _FINE * near))
        around = min(_GROW * around, _WIDEST) if gained else max(math.sqrt(around), _NARROWEST)
        multipliers = _CENTRED * best.multipliers + (1 - _CENTRED) * project_dual(rays.multipliers, share)
        multipliers = np.clip(multipliers, best.multipliers / around, best.multipliers * around)
    return "precision"


def solve_coupled(program: Coupled, targets: Targets, rows: SideRows | None = None) -> Design:
    """Solve a coupled program, or one of other side rows; see the module docstring. The time limit is passed to HiGHS.

    Raises: SizeError before allocating a program that does not fit; InfeasibleError where the constraints are proved to
    contradict each other; DesignError where no certified table meets them; SolverError where time ends too early.
    """
    search = _Search(
        task=task_of(program, rows),
        gap=targets.gap,
        deadline=time.monotonic() + targets.time_limit,
        report=reporter(targets.on_progress),
    )
    stopped = interrupts.search(search.run, "interrupt")
    if stopped == "interrupt" and search.mass is None:
        raise KeyboardInterrupt
    return search.design(program, stopped, targets.time_limit)


@dataclass(kw_only=True, eq=False)
class _Search(Search):
    """The search with the routes that side rows need."""

    task: CoupledTask

    def run(self) -> str:
        """Closed forms, then one route after another; why the search stopped."""
        task = self.task
        self.by_closed_forms()
        routes: list[Route] = [partial(self.by_whole, method, cap) for method, cap in task.whole_trials]
        share = (_DESIGNS if task.designs_first else _SHARE) if routes else 1.0
        ends = time.monotonic() + share * self.left
        if task.designs_first:
            routes.insert(0, partial(self.by_rays, "designs", ends, partial(generate_designs, task)))
        elif task.rays_first:
            routes.insert(0, partial(self.by_rays, "rays", ends))
        if not task.rays_first and task.problem.domain.size <= VERTICES:
            routes.append(partial(self.by_rays, "rays", self.deadline))
        return self.follow(routes)

    def by_closed_forms(self) -> None:
        """The closed form of the least objective that meets the limits."""
        ends = max(self.deadline, time.monotonic() + _SOON)
        for form in certified_closed_forms(self.task.problem):
            excess, value = self.task.assessed(form.mass)
            if not excess.any():
                self.start_from(form, value)
            if time.monotonic() >= ends:
                break

    def polish(self, bound: CoupledBound) -> None:
        """Prove the bound with multipliers of the optimal program for its effective cost, which are more accurate."""
        self.prove(self.task.polished(bound, self.gap / 4, self.left))

    def design(self, program: Coupled, stopped: str, time_limit: float) -> Design:
        """The result. Raises: InfeasibleError, DesignError, SolverError where there is no certified table."""
        if self.mass is None:
            if stopped == "precision" and (self.task.rows.share == 0).any():
                raise no_table(self.task, program, max(self.left, _LEAST_TIME))
            message = f"stopped ({stopped}) before any table was certified: allow more time, or use fewer cells"
            raise SolverError(message, field="time_limit", value=time_limit)
        if self.proof is None:
            self.prove(self.task.first_bound())
        assert self.proof is not None
        return Design(
            mass=self.mass,
            objective=self.value,
            objective_of=program.objective_of,
            lower_bound_of="the program",
            dual=self.proof.dual,
            multipliers=self.proof.multipliers,
            lower_bound=self.bound,
            stopped="gap" if self.reached <= self.gap else stopped,
            parameters=self.parameters,
        )


def no_table(task: CoupledTask, program: Coupled, time_limit: float = math.inf) -> DesignError:
    """Why there is no table: a proof that the limits contradict each other, or the want of one.

    The proof is a positive lower bound of the least t with G P <= h + t |h|.
    """
    rows = replace(task.rows, share=np.where(task.rows.share > 0, 0.0, task.rows.size_of_limits))
    elastic = replace(task, cost=np.zeros_like(task.cost), rows=rows, constant=1.0, unit=1.0)
    for method, cap in task.whole_trials:
        try:
            whole, solution = elastic.solve_whole(rows, method, cap, FIRST_MARGIN, time_limit)
        except SolverError:
            continue
        bound = elastic.bound(*whole.multipliers(solution.dual))
        if bound.value > 0:
            weight = bound.multipliers * rows.share
            names = [rows.names[k] for k in np.argsort(-weight, kind="stable")[:3] if weight[k] > 0]
            return InfeasibleError(
                f"no mechanism with this claim keeps all limits, which was proved; at fault: {', '.join(names)}",
                field=program.limits_field,
                value=f"{rows.size} limits",
                remedy=f"relax these limits by {math.ceil(1e4 * bound.value) / 100:g} % or more, or use a larger eps",
            )
    message = f"no certified table keeps all {rows.size} limits: they leave less room than the solver resolves"
    return DesignError(message, field=program.limits_field)

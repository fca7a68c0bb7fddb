"""Solve a coupled program by the attempts of choose.py, taken in turn."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mechdesign.base import interrupts
from mechdesign.base.arrays import Matrix, Vector
from mechdesign.base.time_budget import TimeBudget
from mechdesign.closed_forms.best import certified_closed_forms
from mechdesign.errors import DesignError, InfeasibleError, InputError, SolverError
from mechdesign.mechanism.figures import RESOLUTION
from mechdesign.problem.losses import TableLoss
from mechdesign.problem.priors import uniform
from mechdesign.programs.coupled import Coupled, SideRows, constant_objective, objective
from mechdesign.solvers.choose import DESIGNS, Attempt, coupled_attempts, designs_fit, suits_rays, whole_trials
from mechdesign.solvers.column_generation import DesignGeneration, generate
from mechdesign.solvers.cone.pricing import ConePricer, CoupledBound, anchor_bound, project_dual
from mechdesign.solvers.incumbent import FIRST_MARGIN, Incumbent, Route, Task, run_routes
from mechdesign.solvers.lp.full import require_whole
from mechdesign.solvers.optimal import solve_optimal
from mechdesign.solvers.result import SolveResult, Stop, Targets, reporter
from mechdesign.solvers.routes import RayRoute, WholeRoute

_RAY_SHARE = 0.5  # of the time limit for rays, where the whole program can follow; a guess
_DESIGN_SHARE = 0.8  # the same for designs of changing priors; a guess
_CLOSED_FORMS = 2.0  # seconds that closed forms get in any case
_LEAST_TIME = 1.0  # seconds for the proof that limits contradict each other


# The best closed form that meets the limits is the first table.
# Without a table, the least common relaxation of the limits is bounded from below in the same way (`no_table`). A bound
# above zero proves that the constraints contradict each other, and its multipliers identify them.
def task_of(program: Coupled, rows: SideRows | None = None) -> Task:
    """The task of a program, or of other side rows; SizeError before an allocation that does not fit."""
    problem, noun = program.problem, f"the {program.name} program"
    if problem.domain.size > DESIGNS:
        require_whole(problem, problem.domain.size, noun=noun)
    rows, cost = program.side_rows() if rows is None else rows, program.base_cost()
    if not suits_rays(problem) and not designs_fit(problem, rows):
        require_whole(problem, rows.size, noun=noun)
    pricer = ConePricer.of(problem)
    # The table e^{-d/2} with rows divided by their sums is private: its objective is attainable, hence a scale.
    exponential = np.exp(-pricer.distance.T / 2)
    exponential /= exponential.sum(axis=1, keepdims=True)
    constant = constant_objective(cost, rows) or 1.0
    unit = max(min(constant, objective(cost, rows, exponential)), RESOLUTION * constant)
    return Task(problem=problem, cost=cost, rows=rows, pricer=pricer, constant=constant, unit=unit)


def design_of_cost(
    task: Task, folded: Matrix, gap: float, time_limit: float, start: SolveResult | None = None
) -> tuple[SolveResult, Vector] | None:
    """The optimal design for an effective cost (n, m), and multipliers (n,); None if a constant report is optimal."""
    # A loss is not negative: the smallest entry of every row is subtracted here, and added to the multipliers. The
    # factor n cancels the uniform prior.
    offset = folded.min(axis=1)
    loss = (folded - offset[:, None]) * len(offset)
    if not loss.max() > 0:
        return None
    problem = replace(task.problem, prior=uniform(task.problem.domain), loss=TableLoss(values=loss))
    try:
        design = solve_optimal(problem, Targets(gap=gap, time_limit=time_limit), start=start)
    except InputError:
        return None
    # The block method returns its point after Ctrl-C, so the interrupt is raised again for the search around it.
    if design.stopped is Stop.INTERRUPT:
        raise KeyboardInterrupt
    return design, design.dual + offset


def polished_bound(task: Task, bound: CoupledBound, gap: float, time_limit: float) -> CoupledBound:
    """The bound with the multipliers of the row sums of the optimal program for its effective cost."""
    # They are more accurate far from the anchors than those of the whole program.
    pair = design_of_cost(task, bound.folded, gap, time_limit)
    return bound if pair is None else task.bound(pair[1], bound.multipliers)


def first_bound(task: Task) -> CoupledBound:
    """A bound without a search, from equal multipliers of the side rows with s > 0."""
    multipliers = project_dual(np.where(task.rows.epigraph_coefficient > 0, 1.0, 0.0), task.rows.epigraph_coefficient)
    anchored = anchor_bound(task.pricer, task.rows.lagrangian_cost_down(task.cost, multipliers))
    return task.bound(anchored.dual, multipliers)


@dataclass(frozen=True, kw_only=True, eq=False)
class DesignRoute:
    """Designs of changing priors, mixed by a master; time_share, of the remaining time."""

    time_share: float = 1.0
    name: str = "designs"

    def rejection_reason(self, task: Task) -> str | None:
        return None if designs_fit(task.problem, task.rows) else "its side rows do not share one maximum"

    def run(self, task: Task, incumbent: Incumbent, budget: TimeBudget) -> Stop:
        generation = DesignGeneration(self.name, task, partial(design_of_cost, task))
        return generate(generation, incumbent, budget.within(self.time_share) if self.time_share < 1 else budget)


def solve_coupled(program: Coupled, targets: Targets, rows: SideRows | None = None) -> SolveResult:
    """Solve a coupled program, or one of other side rows; InfeasibleError if its limits provably contradict."""
    task, budget = task_of(program, rows), TimeBudget.of(targets.time_limit)
    incumbent = Incumbent(constant=task.constant, target=targets.gap, report=reporter(targets.on_progress))

    def search() -> Stop:
        _try_closed_forms(task, incumbent, budget)
        return run_routes(_routes(task), task, incumbent, budget)

    stopped = interrupts.interruptible(search, Stop.INTERRUPT)
    # Rows with s > 0 can always be satisfied by a larger t; only the others can contradict each other.
    if incumbent.mass is None:
        if stopped is Stop.INTERRUPT:
            raise KeyboardInterrupt
        if stopped is Stop.PRECISION and (task.rows.epigraph_coefficient == 0).any():
            raise no_table(task, program, max(budget.remaining(), _LEAST_TIME))
        message = f"stopped ({stopped}) before any table was certified: allow more time, or use fewer cells"
        raise SolverError(message, field="time_limit", value=targets.time_limit)
    if incumbent.bound is None:
        incumbent.record_bound(first_bound(task))
    design = coupled_design(incumbent, program.objective_of, Stop.GAP if incumbent.is_close else stopped)
    return design if stopped is Stop.INTERRUPT else replace(design, tree=incumbent.tree_steps(task.pricer))


def coupled_design(incumbent: Incumbent, objective_of: str, stopped: Stop) -> SolveResult:
    """The best table of a coupled program and its bound."""
    assert incumbent.mass is not None
    assert incumbent.bound is not None
    return SolveResult(
        mass=incumbent.mass,
        objective=incumbent.objective,
        objective_of=objective_of,
        lower_bound_of="the program",
        dual=incumbent.bound.dual,
        multipliers=incumbent.bound.multipliers,
        lower_bound=incumbent.lower_bound,
        stopped=stopped,
        parameters=incumbent.parameters,
    )


def _routes(task: Task) -> list[Route]:
    attempts = coupled_attempts(task.problem, task.rows)
    trials = whole_trials(task.problem, task.rows.size)
    whole: list[Route] = [WholeRoute(method=method, cap=cap, polish=polished_bound) for method, cap in trials]
    # Only routes that another one can replace give up a part of the time.
    is_followed = attempts[:1] != [Attempt.WHOLE] and Attempt.WHOLE in attempts
    routes: dict[Attempt, list[Route]] = {
        Attempt.DESIGNS: [DesignRoute(time_share=_DESIGN_SHARE if is_followed else 1.0)],
        Attempt.RAYS: [RayRoute(time_share=_RAY_SHARE if is_followed and attempts[0] is Attempt.RAYS else 1.0)],
        Attempt.WHOLE: whole,
    }
    return [route for attempt in attempts for route in routes[attempt]]


def _try_closed_forms(task: Task, incumbent: Incumbent, budget: TimeBudget) -> None:
    limit = budget if budget.allows(_CLOSED_FORMS) else TimeBudget.of(_CLOSED_FORMS)
    # A closed form that breaks a limit is not taken, so all of them are tried, not only the best one.
    for form in certified_closed_forms(task.problem):
        incumbent.try_table(task.assess(form.mass), closed_form=form.name)
        if limit.is_spent():
            break


def no_table(task: Task, program: Coupled, time_limit: float = math.inf) -> DesignError:
    """The error without a table: with a proof that the limits contradict each other, if there is one."""
    # The proof is a positive lower bound of the least t with G P <= h + t |h|.
    rows = replace(
        task.rows, epigraph_coefficient=np.where(task.rows.epigraph_coefficient > 0, 0.0, task.rows.size_of_limits)
    )
    elastic = replace(task, cost=np.zeros_like(task.cost), rows=rows, constant=1.0, unit=1.0)
    for method, cap in whole_trials(task.problem, task.rows.size):
        try:
            whole, solution = elastic.solve_whole(rows, method, cap, FIRST_MARGIN, time_limit)
        except SolverError:
            continue
        # Proved by pricing, whatever the accuracy of HiGHS.
        bound = elastic.bound(*whole.multipliers(solution.dual))
        if bound.value > 0:
            # The limits of the largest multipliers, in relative units, are the ones to relax.
            weight = bound.multipliers * rows.epigraph_coefficient
            names = [rows.names[k] for k in np.argsort(-weight, kind="stable")[:3] if weight[k] > 0]
            return InfeasibleError(
                f"no mechanism with this claim satisfies all limits (proved); conflicting: {', '.join(names)}",
                field=program.limits_field,
                value=f"{rows.size} limits",
                remedy=f"relax these limits by {math.ceil(1e4 * bound.value) / 100:g} % or more, or use a larger eps",
            )
    message = f"no certified table satisfies all {rows.size} limits: relax one, or use a larger eps"
    return DesignError(message, field=program.limits_field)

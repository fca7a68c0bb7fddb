"""Solve the optimal program by the attempts of choose.py in turn, starting from the best closed form; see routes.py."""

from __future__ import annotations

import numpy as np

from mechdesign.base import interrupts
from mechdesign.base.arrays import Masses
from mechdesign.base.memory import require_memory
from mechdesign.base.threads import OutOfTime
from mechdesign.base.time_budget import TimeBudget
from mechdesign.closed_forms.best import ClosedForm
from mechdesign.errors import InputError
from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.coupled import stack_rows
from mechdesign.solvers.choose import Attempt, optimal_attempts, whole_trials
from mechdesign.solvers.cone.pricing import ConePricer, anchor_bound, anchor_multipliers
from mechdesign.solvers.cost_model import TIME_MODEL
from mechdesign.solvers.incumbent import Certified, Incumbent, Route, Task, plain_bound, run_routes
from mechdesign.solvers.result import SolveResult, Stop, Targets, reporter
from mechdesign.solvers.routes import BlockRoute, BoxRoute, RayRoute, WholeRoute


def solve_optimal(
    problem: DesignProblem, targets: Targets, *, start: SolveResult | None = None, floor: ClosedForm | None = None
) -> SolveResult:
    """The best certified table of the optimal program; `stopped` is GAP, TIME, INTERRUPT or PRECISION."""
    # start: a design for a multiple of the same metric, whose cuts are the first. floor: the first table.
    if problem.constant_loss == 0:
        message = "leaves nothing to design: give weight to secrets that reports distinguish"
        raise InputError(message, field="prior", value="a constant report costs nothing")
    attempts = optimal_attempts(problem, None if targets.method == "auto" else targets.method)
    size, limit = problem.domain.size, targets.time_limit
    # Before any work: the block method factors a dense system of n equations.
    if attempts[0] is Attempt.BLOCKS:
        require_memory(size, size, tables=2, noun="the equations of the block method")
    # Time for the last certificate is reserved; a pricing that has begun may end a little later.
    budget = TimeBudget.of(limit, reserve=TIME_MODEL.reserve(problem, limit))
    task = optimal_task(problem, targets.gap)
    task.pricer.deadline = budget.ends + TIME_MODEL.grace(max(budget.remaining(), 0.0))
    incumbent = Incumbent(constant=task.constant, target=targets.gap, report=reporter(targets.on_progress))
    if floor is not None:
        incumbent.try_table(Certified(floor.mass, np.zeros(0), floor.loss), closed_form=floor.name)
    blocks = BlockRoute(first_cut=None if start is None else start.cut)

    def search() -> Stop:
        # A bound that needs no pricing: with it the closed form may meet the gap already.
        if floor is not None:
            incumbent.record_bound(plain_bound(task, *anchor_multipliers(task.pricer, task.cost)))
        return run_routes(_routes(task, attempts, blocks), task, incumbent, budget)

    stopped = interrupts.interruptible(search, Stop.INTERRUPT)
    return _design(task, incumbent, blocks, stopped, ends=budget.deadline + TIME_MODEL.grace(limit))


def _constant_masses(problem: DesignProblem) -> Masses:
    """The best report from every secret, as masses (n, m) that satisfy every claim."""
    count = problem.reports.size
    mass = np.ones((problem.domain.size, count), np.uint64)
    mass[:, problem.best_constant] = ROW_SUM - (count - 1)
    return mass


def _routes(task: Task, attempts: list[Attempt], blocks: BlockRoute) -> list[Route]:
    whole: list[Route] = [WholeRoute(method=method, cap=cap) for method, cap in whole_trials(task.problem, 0)]
    routes: dict[Attempt, list[Route]] = {
        Attempt.VERTICES: [RayRoute(name="vertices")],
        Attempt.BOXES: [BoxRoute()],
        Attempt.BLOCKS: [blocks],
        Attempt.WHOLE: whole,
    }
    return [route for attempt in attempts for route in routes[attempt]]


def optimal_task(problem: DesignProblem, target: float = 1e-3) -> Task:
    """The optimal program: no side rows, and the objective is the expected loss."""
    return Task(
        problem=problem,
        cost=problem.weighted_loss,
        rows=stack_rows([], problem.weighted_loss.size),
        pricer=ConePricer.of(problem),
        constant=problem.constant_loss,
        unit=problem.constant_loss,
        target=target,
    )


def _design(task: Task, incumbent: Incumbent, blocks: BlockRoute, stopped: Stop, *, ends: float) -> SolveResult:
    """The result; pricing for a last bound ends at `ends`."""
    # e^{-d/2} with rows divided by their sums is private, so it needs no search.
    if incumbent.mass is None:
        half = np.exp(-task.pricer.distance.T / 2)
        incumbent.try_table(task.certify(half / half.sum(axis=1, keepdims=True), task.cost))
    # Edges below 2^-30 nats leave no room for a repair: no search is as good as the constant report there.
    if incumbent.objective > task.constant:
        incumbent.try_table(task.assess(_constant_masses(task.problem)), closed_form="constant")
    # A positive bound without a search, priced if time allows.
    if incumbent.lower_bound == 0:
        task.pricer.deadline = ends
        try:
            bound = anchor_bound(task.pricer, task.cost)
            incumbent.record_bound(plain_bound(task, bound.value, bound.dual))
        except OutOfTime:
            incumbent.record_bound(plain_bound(task, *anchor_multipliers(task.pricer, task.cost)))
    assert incumbent.mass is not None
    assert incumbent.bound is not None
    task.pricer.deadline = ends
    if stopped is Stop.PRECISION and incumbent.is_close:
        stopped = Stop.GAP
    return SolveResult(
        mass=incumbent.mass,
        loss=incumbent.objective,
        dual=incumbent.bound.dual,
        lower_bound=incumbent.lower_bound,
        tree=None if stopped is Stop.INTERRUPT else incumbent.tree_steps(task.pricer),
        stopped=stopped,
        parameters=incumbent.parameters,
        cut=np.zeros(task.pricer.distance.shape, np.bool_) if blocks.cut is None else blocks.cut,
    )

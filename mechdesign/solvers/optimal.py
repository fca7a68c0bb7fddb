"""Solve the optimal program: the best certified table and the best bound of the routes of choose.py, taken in turn.

The best closed form is the first table. Whatever a route finds goes through repair and certificate; whatever
multipliers it ends with are priced or charged, for a bound.

Restricted programs, for blocks. 1. Start from programs (solvers/lp/restricted.py) with few variables: one eikonal
kernel per report, cut where the multipliers of the eikonal weight system show it to be improvable.  2. Solve the
restricted
program.  3. Repair and certify its table: an upper bound.  4. Price every report exactly: a lower bound.  5. Where a
ray with a negative price leaves the eikonal profile, cut the tree of that report. Repeat until the bounds meet.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from mechdesign.base import interrupts
from mechdesign.base.memory import require_memory
from mechdesign.base.threads import OutOfTime
from mechdesign.closed_forms.best import ClosedForm
from mechdesign.errors import InputError
from mechdesign.mechanism.dataset import total_cost
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.coupled import stack_rows
from mechdesign.solvers.blocks import solve_blocks
from mechdesign.solvers.choose import MANY, VERTICES, few_rays, routes
from mechdesign.solvers.columns import USUAL, ZEROS, Columns, generate_columns
from mechdesign.solvers.cone.pricing import (
    ConePricer,
    CoupledBound,
    anchor_bound,
    anchor_multipliers,
    homogeneous_bound,
    lower_bound,
)
from mechdesign.solvers.cone.warm_pricing import Forest, Proof
from mechdesign.solvers.incumbent import Route, Search, Task
from mechdesign.solvers.lp.restricted import RestrictedProgram, restrict
from mechdesign.solvers.result import Design, Progress, Targets, reporter
from mechdesign.solvers.symmetry import symmetries

_NEAR = 5.0  # nats from the anchor within which every node is cut at first where eikonal kernels do not fit
_PRICING, _LATE = 0.05, 2.0  # share of the time limit, and seconds, that pricing may take beyond it
_LAST, _LAST_SHARE = 2e-7, 0.25  # seconds a constraint, and share of the time limit, kept for the last certificate
_MADE = 8e-8  # seconds an entry that the mechanism of a table takes
_SYSTEM = 3e-11  # seconds that a system of n equations takes, for each n^3
_ROUNDS = 40
_ROUGH = 5e-4  # gap to which the first blocks are solved: their cuts are incomplete, and a first bound is soon there
_CHEAP, _ACCURATE = 3_000, 1e-6  # variables up to which blocks are solved to this gap, if they can be
_FINEST = 1e-10  # tolerance of a solver below which nothing is gained
# Before pricing, multipliers are lowered by this share of themselves and of the loss per secret: a solver's multipliers
# are infeasible by its tolerance, and one pricing is then enough. A share t costs 2 t of the bound.
_SHRINK = 1e-7
ENTRIES, _BESIDE = 20_000, 1e-3  # of a table, up to which other programs get its bound, to this gap
BOUND_ENDS = 0.9  # of the time limit: the rest is for the certificate and the file
TABLE_ENDS = 0.7  # of the time limit, until which a table with a bound beside it is sought
_EARLY = ("time", "interrupt")  # reasons to stop that leave a better bound out
_SMALLEST = 1e-300
_FINE = 1e-6  # target gap from which they are priced as they are, and lowered by what turns out to be needed


def attempts_for(problem: DesignProblem, route: str | None) -> list[str]:
    """What to try in turn for a route, for None for all of choose.py. Columns are tried with the master that suits the
    problem first, with the other where that ends above the gap; after HiGHS where a route by HiGHS follows.
    """
    first, second = ("vertices", "boxes") if few_rays(problem) else ("boxes", "vertices")
    attempts: list[str] = []
    for name in [name for name, _ in routes(problem)] if route is None else [route]:
        attempts.append(first if name == "columns" else name)
    if first in attempts and (second == "boxes" or problem.domain.size <= VERTICES):
        attempts.append(second)
    if route == "highs" and not problem.prior_array.all():
        attempts.append("vertices")  # a basic solution may leave columns of zeros, which no repair makes positive
    return attempts


def solve_optimal(
    problem: DesignProblem, targets: Targets, *, start: Design | None = None, floor: ClosedForm | None = None
) -> Design:
    """Solve the optimal program of `problem`; see the module docstring.

    Parameters: targets, of the time limit up to a quarter is kept for certifying and pricing the last point; start, a
    design for a multiple of the same metric, whose cuts are added; floor, a closed form that is returned where no table
    found is better.
    Returns: the best certified table found; `stopped` is "gap", "time", "interrupt" (Ctrl-C) or "precision" (the
    accuracy of every route is exhausted above the target). Without a table from any round it returns the
    exponential mechanism e^{-d/2}, which is private as it stands.
    Raises: InputError where a constant report has no loss; SizeError where a route does not fit in memory.
    """
    if problem.constant_loss == 0:
        message = "leaves nothing to design: weigh secrets that reports tell apart"
        raise InputError(message, field="prior", value="a constant report costs nothing")
    route = None if targets.method == "auto" else targets.method
    attempts, size, limit = attempts_for(problem, route), problem.domain.size, targets.time_limit
    if attempts[0] == "blocks":
        require_memory(size, size, tables=2, what="the equations of the block method")
    last = min(_LAST_SHARE * limit, _LAST * 2 * len(problem.edges.tail) * problem.reports.size)
    now = time.monotonic()
    deadline = now + limit - max(last, _MADE * size * problem.reports.size)
    search = _Search(
        task=_task(problem), gap=targets.gap, deadline=deadline, report=reporter(targets.on_progress), start=start
    )
    search.pricer.deadline = deadline + _LATE + _PRICING * max(deadline - now, 0.0)
    if floor is not None:
        search.start_from(floor, floor.loss)
    stopped = interrupts.search(lambda: search.run(attempts, first_bound=floor is not None), "interrupt")
    return search.design(stopped, ends=now + (1 + _PRICING) * limit + _LATE)


def _task(problem: DesignProblem) -> Task:
    """The optimal program: no side rows, and the objective is the expected loss."""
    return Task(
        problem=problem,
        cost=problem.weighted_loss,
        rows=stack_rows([], problem.weighted_loss.size),
        pricer=ConePricer.of(problem),
        constant=problem.constant_loss,
        unit=problem.constant_loss,
    )


class BoundBeside(NamedTuple):
    """A lower bound of the optimal program and the dual (n,) that proves it; stopped, "time" or "interrupt" where a
    better one was not sought to the end, else empty.
    """

    value: float = -np.inf
    dual: NDArray[np.float64] = np.zeros(0)
    stopped: str = ""


def bound_beside(
    problem: DesignProblem,
    duals: Sequence[NDArray[np.float64]],
    *,
    mass: NDArray[np.uint64],
    targets: Targets,
    started: float,
) -> BoundBeside:
    """A lower bound of the optimal program beside a table `mass` that another program found; none with bound=False.

    Up to 20,000 entries and 700 secrets the bound of the optimal program itself, to a gap of 1e-3; else the homogeneous
    bound of given multipliers (n,), lowered as far as they have to be, or that of one secret where it is better.
    The search for it ends at `BOUND_ENDS` of the time limit that began at `started`, and at a first Ctrl-C; then the
    best bound so far is returned, at least that of one secret, which takes no pricing.
    """
    if targets.options.get("bound") is False:
        return BoundBeside()
    if problem.constant_loss == 0:
        return BoundBeside(0.0, np.zeros(problem.domain.size))
    deadline = started + BOUND_ENDS * targets.time_limit
    left, reports = deadline - time.monotonic(), problem.reports.size
    if problem.domain.size * reports <= ENTRIES and problem.domain.size <= MANY and left > 0:
        on_progress = None if targets.on_progress is None else _of_the_bound(targets.on_progress)
        design = solve_optimal(problem, Targets(gap=_BESIDE, time_limit=left, on_progress=on_progress))
        return BoundBeside(design.lower_bound, design.dual, design.stopped if design.stopped in _EARLY else "")
    report, pricer = reporter(targets.on_progress), ConePricer.of(problem)
    best = BoundBeside(*anchor_multipliers(pricer, problem.weighted_loss))
    loss = max(total_cost(mass, problem.weighted_loss), _SMALLEST)

    def keep(value: float, dual: NDArray[np.float64]) -> None:
        nonlocal best
        best = max(best, BoundBeside(value, dual), key=lambda bound: bound.value)

    def count(title: str, done: int) -> None:
        report(title, done=done, total=reports, unit="reports")

    def improve() -> str:
        tried = [dual for dual in duals if dual.any()]  # multipliers of 0 prove nothing
        for number, dual in enumerate(tried, 1):
            pricer.on_done = partial(count, f"bound, multipliers {number} of {len(tried)}")
            homogeneous_bound(
                pricer,
                problem.weighted_loss,
                dual,
                loss=loss,
                known=best.value,
                visit=lambda trial, price: keep(lower_bound(trial, price.value), trial),
            )
        return ""

    pricer.deadline = deadline
    try:
        stopped = interrupts.search(improve, "interrupt")
    except OutOfTime:
        stopped = "time"
    return best._replace(stopped=stopped or ("time" if time.monotonic() > deadline else ""))


def _of_the_bound(on_progress: Callable[[Progress], None]) -> Callable[[Progress], None]:
    """Progress of the search for the bound, whose gap is not that of the table that was made."""
    return lambda state: on_progress(replace(state, gap_of="bound, its gap"))


@dataclass(kw_only=True, eq=False)
class _Search(Search):
    """The search with the routes that the optimal program has alone."""

    start: Design | None = None
    latest: NDArray[np.float64] = field(init=False)  # multipliers from which the interior point starts
    cut: NDArray[np.bool_] = field(init=False)
    scale: float = 1.0  # of the objective in restricted programs: secrets over the best loss known

    def __post_init__(self) -> None:
        self.problem, self.pricer = self.task.problem, self.task.pricer
        self.latest = np.zeros(self.problem.domain.size)
        self.cut = np.zeros(self.pricer.distance.shape, np.bool_)

    def run(self, attempts: list[str], *, first_bound: bool) -> str:
        """Try one attempt after another, from a bound that needs no pricing; why the search stopped."""
        if first_bound:
            self._prove(*anchor_multipliers(self.pricer, self.task.cost))
        ways: dict[str, Route] = {
            "vertices": lambda: self.by_rays("vertices", self.deadline),
            "boxes": self._boxes,
            "blocks": self._rounds,
        }
        whole: list[Route] = [partial(self.by_whole, *trial) for trial in self.task.whole_trials]
        return self.follow([way for name in attempts for way in (whole if name == "highs" else [ways[name]])])

    def _prove(self, value: float, dual: NDArray[np.float64]) -> bool:
        cost = self.task.cost
        return self.prove(CoupledBound(value=value, dual=dual, multipliers=np.zeros(0), folded=cost))

    def _eikonal_cuts(self) -> NDArray[np.bool_]:
        """Cuts that the multipliers of the eikonal weight system call for; none where it is singular, or takes longer
        than there is.

        Off grids a negative weight, as at crossings of short roads, says that no table of eikonal kernels has the right
        row sums, and that its multipliers mislead: the nodes nearest to the anchor are cut instead.
        """
        late = time.monotonic() + _SYSTEM * len(self.cut) ** 3 > self.deadline
        if late or self.cut.shape[0] != self.cut.shape[1]:
            return np.zeros(self.cut.shape, np.bool_)
        kernel = np.exp(-self.pricer.distance)
        own = np.einsum("uy,yu->y", self.problem.weighted_loss, kernel)
        try:
            weights = None if self.problem.domain.kind == "grid" else scipy.linalg.solve(kernel.T, np.ones(len(own)))
            multipliers = scipy.linalg.solve(kernel.T, own)  # never overwrite_a: SciPy 1.17 crashes on indefinite ones
        except (scipy.linalg.LinAlgError, scipy.linalg.LinAlgWarning, ValueError):
            return np.zeros(self.cut.shape, np.bool_)
        self.latest = multipliers
        turns = self._price(multipliers)[0]
        if weights is not None and weights.min() < 0:
            return self.pricer.distance <= _NEAR
        return turns

    def _rounds(self) -> str:
        self.scale = self.problem.domain.size / self.unit  # objectives near 1 a secret, whatever the unit of the loss
        self.cut = self._eikonal_cuts()
        if self.start is not None and self.start.cut is not None:
            self.cut |= self.start.cut
        self.start, finest = None, self.gap / 2
        tolerance = max(finest, _ROUGH)
        for _ in range(_ROUNDS):
            if self.left <= 0:
                return "time"
            near = self.pricer.distance, self.pricer.parent, self.cut
            restricted = restrict(self.problem, self.scale, *near)
            tell = partial(self.tell, "blocks", restricted.variables, restricted.constraints)
            point, dual, ended = self._solve_blocks(restricted, tolerance, tell)
            self.latest = dual / self.scale
            table = restricted.table(point)
            best = self.value
            self.offer(table, self.task.cost)
            fresh, better = self._price(self.latest)  # `fresh`: where a ray leaves its profile, cut from now on
            gained = better or self.value < best
            tell(None)
            if self.reached <= self.gap:
                return "gap"
            if ended in ("time", "interrupt"):
                return ended
            fresh &= ~self.cut
            exact = ended == "precision" or tolerance <= _FINEST
            # Without new cuts only a finer solve can gain, and not where the last one was as fine as it gets.
            if not fresh.any() and (exact or not gained):
                return "precision"
            finer = max(_FINEST, min(tolerance, self.reached) / (3 if fresh.any() else 10))
            tolerance = finest if tolerance > finest else finer
            self.cut |= fresh
        return "precision"

    def _boxes(self) -> str:
        """Column generation, its multipliers in a box; what it calls worth a certificate gets one."""
        problem = self.problem
        require_memory(problem.domain.size, problem.domain.size, tables=18, what="the columns")
        cores = USUAL if problem.prior_array.all() else ZEROS
        own = problem.reports is problem.domain
        ways = symmetries(problem, [self.pricer.apart(), problem.loss_matrix]) if own else ()
        columns = Columns(Forest(self.pricer, problem.weighted_loss, ways), cores, problem.constant_loss)

        def take(proof: Proof | None, table: NDArray[np.float64] | None) -> float:
            if proof is not None:
                self._prove(proof.bound, proof.dual)
            if table is not None:
                self.offer(table, self.task.cost, private=True)
            self.tell("boxes", columns.variables, columns.constraints)
            return self.reached

        return generate_columns(columns, gap=self.gap, deadline=self.deadline, take=take)

    def _solve_blocks(
        self, program: RestrictedProgram, tolerance: float, tell: Callable[[int | None], None]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], str]:
        """A point (v,) by the block interior-point method, multipliers (n,) in the scale of the program, and why the
        method stopped: "precision" where it can do no better.
        """
        if program.variables <= _CHEAP:
            tolerance = min(tolerance, _ACCURATE)
        solution = solve_blocks(
            program, dual=self.latest * self.scale, tolerance=tolerance, deadline=self.deadline, on_progress=tell
        )
        return solution.q, solution.dual, solution.stopped

    def _price(self, multipliers: NDArray[np.float64]) -> tuple[NDArray[np.bool_], bool]:
        """Price every report: where cuts would pay (m, n), and whether the bound improved."""
        loss = min(self.value, self.task.constant)
        bound = homogeneous_bound(
            self.pricer,
            self.task.cost,
            multipliers,
            loss=loss,
            start=_SHRINK if self.gap > _FINE else 0.0,
            known=self.bound,
            enough=loss * (1 - self.gap),
        )
        return bound.first.turns, self._prove(bound.value, bound.dual)

    def design(self, stopped: str, *, ends: float) -> Design:
        """The result: the best table found; without any the exponential mechanism. ends, when the last bound is given
        up too.
        """
        if self.mass is None:
            half = np.exp(-self.pricer.distance.T / 2)
            self.offer(half / half.sum(axis=1, keepdims=True), self.task.cost)
        if self.bound == 0:
            self._bound_late(ends)
        assert self.mass is not None and self.proof is not None
        return Design(
            mass=self.mass,
            loss=self.value,
            dual=self.proof.dual,
            lower_bound=self.bound,
            stopped=stopped,
            parameters=self.parameters,
            cut=self.cut,
        )

    def _bound_late(self, ends: float) -> None:
        """A bound above 0 that no search is needed for: priced where there is time."""
        self.pricer.deadline = ends
        try:
            bound = anchor_bound(self.pricer, self.task.cost)
            self._prove(bound.value, bound.dual)
        except OutOfTime:
            self._prove(*anchor_multipliers(self.pricer, self.task.cost))

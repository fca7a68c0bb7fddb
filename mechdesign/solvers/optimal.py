"""Solve the optimal program: the best table and bound of several methods, tried in turn.

Adaptive tree aggregation, at sizes where the whole linear program does not fit. 1. Start from restricted programs
(programs/restricted.py) with few variables: one eikonal kernel per report, cut where the multipliers of the eikonal
weight system show it to be improvable.  2. Solve the restricted program.  3. Repair and certify its table: an upper
bound.  4. Price every report exactly: a lower bound.  5. Where a ray with a negative price leaves the eikonal profile,
cut the tree of that report. Repeat until the bounds meet.

Methods, in the order in which `auto` tries them; the next one goes on where a method's accuracy ends above the target:

    rays         a mixture of rays, which are added where a price is negative (rays.py): first where the median edge has
                 1.3 nats or more and secrets are at most 450; zeros of the prior, and distances of hundreds of nats, do
                 it no harm
    whole        the whole linear program by HiGHS (simplex up to 3,000 variables, else interior point), up to 60,000
                 constraints: the reference that all else is checked against
    rows         the program of a spanner by the block interior-point method, with further constraints as tables break
                 them (pair_rows.py): first for scattered places and all their pairs, where eikonal kernels do not fit
    boxed        passes over multipliers and a master over rays with its multipliers in a box (boxed_master.py): first
                 up to 700 secrets where eikonal multipliers cut three of ten nodes, as edges are short; not on roads,
                 where its multipliers settle slowly and blocks are sparse
    blocks       restricted programs by the block interior-point method (blocks.py), whose cost hardly depends on the
                 number of constraints: beyond 60,000 constraints always the first
    aggregation  restricted programs by HiGHS, with both of its scalings of far entries: which of them is accurate
                 depends on how the prior and the distances range

`outlook` says before a long run what is known of its time: the size of the program, its class, and measurements.
Classes are what decides the method and its cost: all pairs of scattered places, networks such as roads, and elsewhere
the median length of an edge. Measured by benchmarks/run.py on one core, at the default gap of 1e-3.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Literal, get_args

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from mechdesign.base.memory import require_memory
from mechdesign.base.registry import PROVIDERS, provider
from mechdesign.base.threads import OutOfTime
from mechdesign.closed_forms.best import ClosedForm
from mechdesign.errors import InputError, SolverError
from mechdesign.mechanism.dataset import RESOLUTION, relative_gap, total_cost
from mechdesign.mechanism.repair import repair
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.coupled import stack_rows
from mechdesign.programs.restricted import RestrictedProgram, linear_program, restrict
from mechdesign.solvers.blocks import solve_blocks
from mechdesign.solvers.boxed_master import Master, generate_boxed
from mechdesign.solvers.design import Design, Progress, reporter, with_floor
from mechdesign.solvers.highs import Method as HighsMethod
from mechdesign.solvers.highs import solve_linear_program
from mechdesign.solvers.pair_rows import PairRows, levelled, suits_rows
from mechdesign.solvers.pricing import (
    ConePricer,
    CoupledBound,
    anchor_bound,
    anchor_multipliers,
    homogeneous_bound,
)
from mechdesign.solvers.rays import SECRETS, RayGeneration, generate, suits

Method = Literal["auto", "rays", "rows", "boxed", "whole", "blocks", "aggregation"]
METHODS: tuple[Method, ...] = get_args(Method)
HIGHS = ("whole", "aggregation")  # methods by HiGHS alone
POOLED = 4_900  # secrets beyond which a pool of columns is taken: 70 x 70
WHOLE_LIMIT = 60_000  # constraints of the whole program up to which it is solved at once
NETWORK_LIMIT = 10_000  # the same off grids with fewer than two edges a secret, as on roads, where blocks are faster
NETWORK_EDGES = 2  # for each secret, below which places off grids are such a network
# Shares of nodes that eikonal multipliers cut, below which restricted programs are small, and blocks are faster.
LEAST_CUT = {"rows": 0.1, "boxed": 0.3}
DENSE = 700  # secrets up to which the boxed master is tried: its columns are dense
SIMPLEX_LIMIT = 3_000  # variables up to which the simplex method is used
_CAPS = {"simplex": 18.0, "ipm": 9.0}  # nats up to which far entries are scaled
_FAR = 20.0  # nats from the anchor beyond which the whole program starts from the eikonal profile
_NEAR = 5.0  # nats from the anchor within which every node is cut at first where eikonal kernels do not fit
_FIRST = 1e-2  # gap to which the first program of rows is solved: most rows are yet to come
_PRICING, _LATE = 0.05, 2.0  # share of the time limit, and seconds, that pricing may take beyond it
_LAST, _LAST_SHARE = 2e-7, 0.25  # seconds a constraint, and share of the time limit, kept for the last certificate
_SPREAD_LIMIT = 1_000_000  # entries of a table up to which its repair may solve a system of eikonal weights
_ROUNDS = 40
_BETTER = 0.9  # a mixture of this share of the best loss is certified before the end
_ROUGH = 5e-4  # gap to which the first blocks are solved: their cuts are incomplete, and a first bound is soon there
_CHEAP, _ACCURATE = 3_000, 1e-6  # variables up to which blocks are solved to this gap, if they can be
_FINEST = 1e-10  # tolerance of a solver below which nothing is gained
# Before pricing, multipliers are lowered by this share of themselves and of the loss per secret: a solver's multipliers
# are infeasible by its tolerance, and one pricing is then enough. A share t costs 2 t of the bound.
_SHRINK = 1e-7
_FINE = 1e-6  # target gap from which they are priced as they are, and lowered by what turns out to be needed
_SHORT = 0.6  # median nats below which edges are short
_LONG = 1.3  # and from which they are long
_POOL = "By a pool of columns, kept without a table. Measured: 200 s of one core for 10,000 secrets, to a gap of 5e-3"
# Secrets and seconds to the gap of 1e-3, by class.
KNOWN: dict[str, tuple[tuple[int, int], ...]] = {
    "all pairs of scattered places": ((60, 1), (100, 3), (150, 11), (200, 29), (300, 160)),
    "all pairs of a grid": ((225, 2),),
    "a network": ((128, 10), (300, 80), (500, 180)),
    "short edges": ((400, 60),),
    "edges of middle length": ((400, 7),),
    "long edges": ((225, 2), (1225, 7), (2500, 23), (4900, 119)),
}


def attempts_for(problem: DesignProblem, method: Method) -> list[str]:
    """The methods to try in turn: `method`, before rays where that is by HiGHS and priors are zero; for `auto` those in
    the order of the module docstring.
    """
    edges, size = len(problem.edges.tail), problem.domain.size
    network = problem.domain.kind != "grid" and edges < NETWORK_EDGES * size
    small = 2 * edges * problem.reports.size <= (NETWORK_LIMIT if network else WHOLE_LIMIT)
    if method in HIGHS and not problem.prior_array.all():
        return [method, "rays"]  # a basic solution may leave columns of zeros, which no repair makes positive
    if method != "auto":
        return [method]
    if not small and problem.domain.kind != "grid" and suits_rows(problem):
        return ["rows", "blocks"] if problem.reports.size == size else ["rows"]
    few = suits(problem.edges.length)
    first = ["rays"] if few and size <= SECRETS else []
    late = ["rays"] if (small or few) and not first else []  # slow here, but they end where the others stall
    middle = ["boxed"] if not small and size <= DENSE and not network else []
    return [*first, *["whole"] * small, *middle, "blocks", *late, "aggregation"]


def takes_pool(problem: DesignProblem) -> bool:
    """Whether "auto" solves the optimal program by a pool of columns, which the capability maps has."""
    if problem.domain.size <= POOLED or "pool" not in PROVIDERS:
        return False
    pool = provider("pool")
    return problem.domain.size <= pool.LARGEST and pool.suits(problem) is None


def aggregate(
    problem: DesignProblem,
    *,
    gap: float,
    time_limit: float = np.inf,
    method: Method = "auto",
    start: Design | None = None,
    floor: ClosedForm | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Design:
    """Solve the optimal program of `problem` to a relative gap; see the module docstring for the methods.

    Parameters: gap, target of (loss - lower_bound) / loss; time_limit in seconds, of which up to a quarter is
    kept for certifying and pricing the last point; start, a design for a multiple of the same metric, whose cuts are
    added; floor, a closed form that is returned where no table found is better; on_progress, called after every round
    and iteration.
    Returns: the best certified table found; `stopped` is "gap", "time", "interrupt" (Ctrl-C) or "precision" (every
    method's accuracy is exhausted above the target). Without a table from any round it returns the
    exponential mechanism e^{-d/2}, which is private as it stands.
    Raises: InputError for an unknown method, and where a constant report has no loss; SizeError where the block method
        comes first and does not fit in memory.
    """
    if method not in METHODS:
        raise InputError(f"must be one of {', '.join(METHODS)}", field="method", value=method)
    if problem.constant_loss == 0:
        message = "leaves nothing to design: weigh secrets that reports tell apart"
        raise InputError(message, field="prior", value="a constant report costs nothing")
    attempts, size = attempts_for(problem, method), problem.domain.size
    if attempts[0] == "blocks":
        require_memory(size, size, tables=2, what="the equations of the block method")
    last = min(_LAST_SHARE * time_limit, _LAST * 2 * len(problem.edges.tail) * problem.reports.size)
    deadline = time.monotonic() + time_limit - max(last, 0.0)
    ends = time.monotonic() + (1 + _PRICING) * time_limit + _LATE
    search = _Search(problem=problem, gap=gap, deadline=deadline, ends=ends, report=reporter(on_progress), floor=floor)
    try:
        stopped = search.run(attempts, start)
    except OutOfTime:
        stopped = "time"
    except KeyboardInterrupt:
        stopped = "interrupt"
    return search.design(stopped)


@dataclass(kw_only=True, eq=False)
class _Search:
    """The best table and bound so far, and the means to better them."""

    problem: DesignProblem
    gap: float
    deadline: float
    ends: float  # when the last bound is given up too
    report: Callable[..., None]
    floor: ClosedForm | None = None
    mass: NDArray[np.uint64] | None = None
    loss: float = np.inf
    bound: float = 0.0
    dual: NDArray[np.float64] = field(init=False)
    latest: NDArray[np.float64] = field(init=False)  # multipliers from which the interior point starts
    cut: NDArray[np.bool_] = field(init=False)
    scale: float = 1.0  # of the objective in restricted programs: secrets over the best loss known

    def __post_init__(self) -> None:
        self.started = time.monotonic()
        self.pricer = ConePricer(self.problem.edges, self.problem.domain.size, self.problem.anchors)
        self.pricer.deadline = self.deadline + _LATE + _PRICING * max(self.deadline - self.started, 0.0)
        self.dual = self.latest = np.zeros(self.problem.domain.size)
        self.cut = np.zeros(self.pricer.distance.shape, np.bool_)

    @property
    def reached(self) -> float:
        """The relative gap."""
        return relative_gap(self.least, self.bound, self.problem.constant_loss)

    @property
    def least(self) -> float:
        """The loss of the best certified table, the closed form among them."""
        return self.loss if self.floor is None else min(self.loss, self.floor.loss)

    def run(self, attempts: list[str], start: Design | None) -> str:
        """Try one attempt after another; returns why the search stopped."""
        stopped = "precision"
        for number, attempt in enumerate(attempts):
            # Objectives near 1 a secret, whatever the unit of the loss; a loss of almost nothing must not blow it up.
            known = max(min(self.loss, self.problem.constant_loss), RESOLUTION * self.problem.constant_loss)
            self.scale = self.problem.domain.size / known
            if attempt in LEAST_CUT:
                self.cut = self._eikonal_cuts()
                if len(attempts) > 1 and self.cut.mean() < LEAST_CUT[attempt]:
                    continue  # few nodes are cut: a restricted program is small, and the next attempt faster
            elif attempt == "whole":
                self.cut = self.pricer.distance <= _FAR
            elif attempt != "rays" and (number == 0 or attempts[number - 1] in ("rays", "whole")):
                # After restricted programs the cuts in hand are the better ones.
                self.cut = self._eikonal_cuts()
            if number == 0 and start is not None and start.cut is not None:
                self.cut |= start.cut
            try:
                stopped = {"rays": self._rays, "boxed": self._boxed}.get(attempt, self._rounds)(attempt)
            except SolverError:  # HiGHS gave nothing to work on; what other attempts found is kept
                stopped = "time" if time.monotonic() >= self.deadline else "precision"
            if stopped != "precision":
                break
        return stopped

    def _eikonal_cuts(self) -> NDArray[np.bool_]:
        """Cuts that the multipliers of the eikonal weight system call for; none where it is singular.

        Off grids a negative weight, as at crossings of short roads, says that no table of eikonal kernels has the right
        row sums, and that its multipliers mislead: the nodes nearest to the anchor are cut instead.
        """
        kernel = np.exp(-self.pricer.distance)
        if kernel.shape[0] != kernel.shape[1]:
            return np.zeros(kernel.shape, np.bool_)
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

    def _rounds(self, attempt: str) -> str:
        finest = self.gap / 2
        tolerance = max(finest, _ROUGH) if attempt == "blocks" else min(1e-4, self.gap)
        rows = PairRows(problem=self.problem, pricer=self.pricer) if attempt == "rows" else None
        tolerance = tolerance if rows is None else _FIRST
        for number in range(_ROUNDS):
            if time.monotonic() >= self.deadline:
                return "time"
            near = self.pricer.distance, self.pricer.parent, self.cut
            restricted = rows.program(self.scale) if rows else restrict(self.problem, self.scale, *near)
            tell = partial(self._tell, attempt, number, restricted)
            if attempt in HIGHS:
                point, dual, ended = self._solve_highs(restricted, tolerance)
            else:
                point, dual, ended = self._solve_blocks(restricted, tolerance, tell)
            self.latest = dual / self.scale
            table = restricted.table(point)
            if not table.max() > 0:
                raise SolverError("HiGHS gave no table", field="method", value=attempt)
            broken = rows is not None and rows.extend(table, self.gap)
            gained = self._offer(table if rows is None else levelled(table, self.problem.edges))
            fresh, better = self._price(self.latest)  # `fresh`: where a ray leaves its profile, cut from now on
            gained |= better
            tell(None)
            if self.reached <= self.gap:
                return "gap"
            if ended in ("time", "interrupt"):
                return ended
            fresh &= ~self.cut
            exact = ended == "precision" or tolerance <= _FINEST
            if broken:  # rows come in at any accuracy: they change the optimum more than a finer solve would
                tolerance = max(finest, tolerance / 3)
                continue
            # Without new cuts only a finer solve can gain, and not where the last one was as fine as it gets.
            if not fresh.any() and (exact or not gained):
                return "precision"
            rough = attempt == "blocks" and tolerance > finest
            tolerance = finest if rough else max(_FINEST, min(tolerance, self.reached) / (3 if fresh.any() else 10))
            self.cut |= fresh
        return "precision"

    def _rays(self, attempt: str) -> str:
        """Ray generation until the mixture is within the gap; its tables are certified where they are much better."""
        problem = self.problem
        rays = RayGeneration(
            pricer=self.pricer,
            cost=problem.weighted_loss,
            rows=stack_rows([], problem.weighted_loss.size),
            constant=problem.best_constant,
            scale=problem.constant_loss,
        )
        number = count()

        def take(bound: CoupledBound, close: bool) -> float:
            if bound.value > self.bound:
                self.bound, self.dual = bound.value, bound.dual
            if close or rays.objective < _BETTER * self.loss:
                self._offer(rays.table())
            self._tell(attempt, next(number), rays, None)
            return self.reached

        try:
            return generate(rays, gap=self.gap, deadline=self.deadline, take=take)
        finally:
            if len(rays.x) and rays.objective < self.loss:
                self._offer(rays.table())

    def _boxed(self, attempt: str) -> str:
        """The boxed master; what it calls worth a certificate gets one."""
        number = count()

        def take(dual: NDArray[np.float64] | None, table: NDArray[np.float64] | None, master: Master) -> float:
            if dual is not None:
                self._price(dual)
            if table is not None:
                self._offer(levelled(table, self.problem.edges))
            self._tell(attempt, next(number), master, None)
            return self.reached

        return generate_boxed(self.problem, self.pricer, gap=self.gap, deadline=self.deadline, take=take)

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

    def _solve_highs(
        self, program: RestrictedProgram, tolerance: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], str]:
        """The same by HiGHS."""
        method: HighsMethod = "simplex" if program.variables <= SIMPLEX_LIMIT else "ipm"
        linear, scale = linear_program(program, _CAPS[method])
        left = self.deadline - time.monotonic()
        solution = solve_linear_program(linear, method=method, tolerance=tolerance / 20, time_limit=max(left, 1.0))
        return solution.x * scale, solution.dual, "precision" if method == "simplex" else "gap"

    def _offer(self, table: NDArray[np.float64]) -> bool:
        """Certify a table and keep it if it is the best; whether it is."""
        problem = self.problem
        large = table.size > _SPREAD_LIMIT
        kernel = None if large or table.shape[0] != table.shape[1] else np.exp(-self.pricer.distance).T
        mass = repair(
            table if large else np.maximum(table, 0.0), problem.edges, problem.weighted_loss, kernel, overwrite=large
        )
        value = total_cost(mass, problem.weighted_loss)
        if value >= self.loss:
            return False
        self.mass, self.loss = mass, value
        return True

    def _price(self, multipliers: NDArray[np.float64]) -> tuple[NDArray[np.bool_], bool]:
        """Price every report: where cuts would pay (m, n), and whether the bound improved."""
        loss = self.loss if np.isfinite(self.loss) else self.problem.constant_loss
        bound = homogeneous_bound(
            self.pricer,
            self.problem.weighted_loss,
            multipliers,
            loss=loss,
            start=_SHRINK if self.gap > _FINE else 0.0,
            known=self.bound,
            enough=loss * (1 - self.gap),
        )
        better = bound.value > self.bound
        if better:
            self.bound, self.dual = bound.value, bound.dual
        return bound.first.turns, better

    def _tell(
        self, attempt: str, number: int, program: RestrictedProgram | RayGeneration | Master, iteration: int | None
    ) -> None:
        self.report(
            attempt,
            round=number,
            iteration=iteration,
            loss=self.least,
            lower_bound=self.bound,
            gap=self.reached if np.isfinite(self.least) else np.inf,
            variables=program.variables,
            constraints=program.constraints,
        )

    def design(self, stopped: str) -> Design:
        """The result: the best table found or the closed form; without either the exponential mechanism."""
        if self.mass is None and self.floor is None:
            half = np.exp(-self.pricer.distance.T / 2)
            self._offer(half / half.sum(axis=1, keepdims=True))
        if self.bound == 0:
            self._bound_late()
        design = Design(
            mass=np.zeros((0, 0), np.uint64) if self.mass is None else self.mass,
            loss=self.loss,
            dual=self.dual,
            lower_bound=self.bound,
            stopped=stopped,
            cut=self.cut,
        )
        return with_floor(design, self.floor)

    def _bound_late(self) -> None:
        """A bound above 0 that no search is needed for: priced where there is time."""
        self.pricer.deadline = self.ends
        try:
            bound = anchor_bound(self.pricer, self.problem.weighted_loss)
            self.bound, self.dual = bound.value, bound.dual
        except OutOfTime:
            self.bound, self.dual = anchor_multipliers(self.pricer, self.problem.weighted_loss)


def class_of(problem: DesignProblem) -> str:
    """The class of case: by the kind of metric, else by the median edge in nats."""
    edges, size = problem.edges, problem.domain.size
    pairs = suits_rows(problem)
    if problem.domain.kind != "grid":
        if pairs:
            return "all pairs of scattered places"
        if len(edges.tail) < NETWORK_EDGES * size:
            return "a network"
    if pairs:
        return "all pairs of a grid"
    median = float(np.median(edges.length))
    return "short edges" if median < _SHORT else "long edges" if median >= _LONG else "edges of middle length"


def outlook(problem: DesignProblem) -> str | None:
    """A sentence on the size of the program, the class of case and what is known of its time; None for small programs,
    which take seconds.
    """
    edges, reports = problem.edges, problem.reports.size
    constraints = 2 * len(edges.tail) * reports + problem.domain.size
    if constraints <= WHOLE_LIMIT:
        return None
    name, length = class_of(problem), edges.length
    size = f"{problem.domain.size * reports} variables, {constraints} constraints"
    lengths = f"edges of {length.min():.2g} to {length.max():.2g} nats, median {np.median(length):.2g}"
    known = _POOL if takes_pool(problem) else _known(name, problem.domain.size)
    return f"program: {size}; {name} ({lengths}). {known}"


def _known(name: str, secrets: int) -> str:
    within = [seconds for count, seconds in KNOWN[name] if count >= secrets]
    if within:
        return f"Measured: about {within[0]} s for as many secrets or more, at a gap of 1e-3"
    count, seconds = KNOWN[name][-1]
    return f"Measured: {seconds} s for {count} secrets, at a gap of 1e-3; this is larger, and may not reach it soon"

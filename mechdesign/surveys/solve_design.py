r"""Solve the statistical design: alternate exact weights of the rays and a search for rays that improve the mixture."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from mechdesign.base import interrupts
from mechdesign.base.arrays import Matrix, Vector
from mechdesign.base.threads import one_blas_thread
from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.mechanism.figures import relative_gap, total_cost
from mechdesign.mechanism.repair import repair
from mechdesign.problem.problem import DesignProblem
from mechdesign.solvers.lp.highs import CostSeries
from mechdesign.solvers.lp.linear_program import LinearProgram
from mechdesign.solvers.result import SolveResult, Stop, Targets, reporter
from mechdesign.solvers.solve import ProgramSpec
from mechdesign.solvers.symmetry import invariant_matrices, symmetries
from mechdesign.surveys.a_optimal import MixtureOptimum, optimal_weights
from mechdesign.surveys.criterion_bound import CriterionBound, bound_criterion
from mechdesign.surveys.frequency_estimation import with_bayes_losses
from mechdesign.surveys.grid_design import LIGHT, RayTable, design_norm, design_on_grid
from mechdesign.surveys.statistical_design import FAR, LARGEST, StatisticalDesign

STARTS = (64, 256)  # of a search, and of the last one
_ROUNDS = 200  # of weights and a search
_SHARE = 0.25  # of the time, after which no round of the bound starts
_TRIMS = 10  # times at most that light rays are dropped and the others are weighted again
_IDLE = 1e-8  # share of all reports under which a ray leaves the master problem
_ASCENTS = 50  # tangents from one start, at most
_RISE = 1e-9  # relative rise under which an ascent ends
_SPREADS = (0.5, 1.0, 2.0, 4.0)  # nats; standard deviations of the random changes: from near to anywhere in the cone
_DROP = 1e-9  # coefficients that HiGHS would drop
_SAME = 1e-7  # relative difference under which two rays are one


# 1. A relaxation bounds every mechanism with the claim (surveys/criterion_bound.py).  2. The weights of the rays are
# found exactly (surveys/a_optimal.py).  3. Their multipliers price the cone; rays of a reduced cost above 0 enter with
# their mirror images, rays without weight leave, and 2. is repeated. A search without success is repeated with four
# times its starts.  4. At the bound, after a failed last search or at the time limit, the table is repaired and
# certified.
def solve_statistical(program: StatisticalDesign, targets: Targets) -> SolveResult:
    """Design and certify; up to 64 secrets with a bound, beyond that by kernels of small clusters without a bound."""
    # The gap is also the relative gain that makes a search successful. A quarter of the time limit is for the bound.
    # The reported loss is the objective before repair.
    with one_blas_thread():
        design = (design_on_grid if program.problem.domain.size > LARGEST else _search)(program, targets)
    by_estimates, estimates = with_bayes_losses(program.problem, design.table)
    mass = repair(design.table, by_estimates.edges, by_estimates.weighted_loss)
    loss = total_cost(mass, by_estimates.weighted_loss)
    proof: dict[str, Any] = {}
    if design.bound is not None:
        proof = {"dual": design.bound.dual, "multipliers": design.bound.multipliers, "lower_bound": design.bound.value}
        proof["lower_bound_of"] = "any mechanism with this claim"
    return SolveResult(
        problem=by_estimates,
        mass=mass,
        objective=program.objective(mass / float(ROW_SUM), loss),
        objective_of=program.objective_of,
        stopped=Stop(design.stopped),
        **proof,
        parameters={
            "rounds": design.rounds,
            "largest_gain_found": design.gain if math.isfinite(design.gain) else None,
            "estimates": estimates.tolist(),
            "loss_of_estimates": program.problem.loss.name,
        },
    )


def _search(program: StatisticalDesign, targets: Targets) -> RayTable:
    """The table of up to 64 secrets, unrepaired; see the module docstring."""
    gap, report = targets.gap, reporter(targets.on_progress)
    started = time.monotonic()
    pool, rays, norm = program.rays, program.rays, design_norm(program)
    n = len(pool)
    search = RaySearch(program, np.random.default_rng(program.seed))
    bound: CriterionBound | None = None
    starts, gain, number = STARTS[0], math.inf, 0

    def run() -> str:
        nonlocal bound, starts, gain, number, rays
        if targets.bound is not False:
            report("bound")
            bound = bound_criterion(program, time_limit=_SHARE * targets.time_limit)
        lower = 0.0 if bound is None else bound.value
        while number < _ROUNDS:
            mixture = optimal_weights(rays, norm, cost=program.costs(rays))
            value = mixture.value - program.offset + float(program.costs(rays) @ mixture.theta)
            rays = rays[:, mixture.theta > _IDLE]
            reached = relative_gap(value, lower, value)
            size = {"variables": rays.shape[1], "constraints": n}
            report("rays", round=number, loss=value, lower_bound=lower, gap=reached, **size)
            if reached <= gap or time.monotonic() - started > targets.time_limit:
                return "gap" if reached <= gap else "time"
            images, reduced_cost = search.find(mixture, pool, rays, starts)
            gain, number = max(reduced_cost, 0.0) / value, number + 1
            if gain <= gap and starts == STARTS[1]:
                return "search"
            # One failed search is weak evidence: only a failed search with four times the starts ends the design.
            starts = STARTS[1] if gain <= gap else starts
            rays = distinct(np.column_stack([rays, images[:, : n * (n + 1)]]))
        return "rounds"

    stopped = interrupts.interruptible(run, "interrupt")
    for _ in range(_TRIMS):
        theta = optimal_weights(rays, norm, cost=program.costs(rays)).theta
        if theta.min() > LIGHT:
            break
        rays = rays[:, theta > LIGHT]
    table = rays * optimal_weights(rays, norm, cost=program.costs(rays)).theta
    return RayTable(table=table, stopped=stopped, rounds=number, gain=gain, bound=bound)


# The search maximises the reduced cost, a convex function, over the polytope of rays v with pi^T v = 1:
#
#     (1)  v^T G v - lambda^T v - cost(v)
#
# It ends at a vertex that no tangent improves: a lower bound of the maximum, not a proof of optimality.
class RaySearch:
    """The search over the cone of one problem; repeatable for one sequence of random numbers."""

    def __init__(self, program: StatisticalDesign, random: np.random.Generator) -> None:
        problem = program.problem
        self._program, self._prior, self._random = program, problem.prior_array, random
        self._shrink = np.exp(-np.minimum(problem.distances, FAR))
        self._cone = CostSeries(_slice_of_the_cone(problem))
        self.symmetries = symmetries(
            problem, invariant_matrices(problem, program.norm, with_loss=program.loss_weight > 0)
        )

    def find(self, mixture: MixtureOptimum, pool: Matrix, rays: Matrix, starts: int) -> tuple[Matrix, float]:
        """Rays (n, k) that improve the mixture, the best first, and the largest reduced cost."""
        # A quarter of the starts are the best of the `pool` (n, j), half are changes of `rays` (n, i), the rest random.
        best = np.argsort(-self.reduced_costs(mixture, pool), kind="stable")[: starts // 4]
        ends = [self._ascend(mixture, v) for v in pool[:, best].T]
        for _ in range(starts // 2):
            ends.append(self._ascend(mixture, self._perturb(rays[:, self._random.integers(rays.shape[1])])))
        while len(ends) < starts:
            ends.append(self._ascend(mixture, self._perturb(np.ones(len(rays)))))
        reached = np.column_stack(ends)
        reduced_cost = self.reduced_costs(mixture, reached)
        order = np.argsort(-reduced_cost, kind="stable")
        improving = reached[:, order[: int((reduced_cost > 0).sum())]]
        images = np.stack([improving[way] for way in self.symmetries], axis=2).reshape(len(improving), -1)
        return distinct(images), float(reduced_cost.max())

    def reduced_costs(self, mixture: MixtureOptimum, rays: Matrix) -> Vector:
        """The reduced costs of rays (n, k) with pi^T v = 1, above 0 where one improves the mixture."""
        return np.asarray(mixture.reduced_costs(rays) - self._program.costs(rays))

    def _perturb(self, ray: Vector) -> Vector:
        """The ray with a random change of its logarithm, cut to the cone."""
        spread = self._random.choice(_SPREADS)
        return self._cut_to_cone(ray * np.exp(spread * self._random.normal(size=len(ray))))

    def _ascend(self, mixture: MixtureOptimum, ray: Vector) -> Vector:
        value = -np.inf
        for _ in range(_ASCENTS):
            # The tangent (2 G v - lambda - price_z)^T v of (1) at the ray, z the place that it is read as: its maximum
            # over the cone is a linear program with this cost.
            slope = mixture.multipliers - 2 * mixture.gain @ ray
            if self._program.loss_weight:
                slope = slope + self._program.prices[:, np.argmin(self._program.prices.T @ ray)]
            moved = self._cut_to_cone(self._cone.minimise(slope))
            reached = float(self.reduced_costs(mixture, moved[:, None])[0])
            # The tangent bounds the function from below, so values never fall; a rise within rounding ends the ascent.
            if reached <= value + _RISE * mixture.value:
                break
            ray, value = moved, reached
        return ray

    def _cut_to_cone(self, ray: Vector) -> Vector:
        """The smallest ray of the cone above `ray`, at pi^T v = 1; it also repairs points just outside the cone."""
        # The largest of the kernels e^{-d(u, w)} v(w): a maximum of rays is a ray, and the least one above v.
        raised = (self._shrink * np.maximum(ray, 0.0)).max(axis=1)
        return np.asarray(raised / (self._prior @ raised))


def distinct(rays: Matrix) -> Matrix:
    """The columns (n, k) without repetitions, in order: logarithms that agree to 1e-7 are the same."""
    _, first = np.unique(np.rint(np.log(rays) / _SAME), axis=1, return_index=True)
    return rays[:, np.sort(first)]


def _slice_of_the_cone(problem: DesignProblem) -> LinearProgram:
    """The constraints v >= 0, e^{-d} v(u) <= v(u') on every edge, pi^T v = 1, without factors that HiGHS would drop."""
    tail, head, length = problem.edges.both_ways()
    n, e = problem.domain.size, len(tail)
    rows, factor = np.arange(e), np.exp(-length)
    near = factor > _DROP
    cone = sp.csr_array(
        (np.r_[-factor[near], np.ones(e)], (np.r_[rows[near], rows], np.r_[tail[near], head])), shape=(e, n)
    )
    return LinearProgram(
        cost=np.zeros(n),
        matrix=sp.csr_array(sp.vstack([sp.csr_array(problem.prior_array[None]), cone], format="csr")),
        row_lower=np.r_[1.0, np.zeros(e)],
        row_upper=np.r_[1.0, np.full(e, np.inf)],
        linking=1,
    )


ENTRY = ProgramSpec(
    program=StatisticalDesign,
    solve=solve_statistical,
    takes_bound=True,
    rebuild=lambda problem, parameters: StatisticalDesign(
        problem,
        error=parameters.get("error", "transport"),
        areas=parameters.get("areas"),
        loss_weight=parameters.get("loss_weight", 0.0),
    ),
)

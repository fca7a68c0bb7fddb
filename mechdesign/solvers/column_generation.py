"""Column generation: price the multipliers of a master, add the columns found, and solve the master again.

`generate` is the loop, the same for three pairs of an oracle and a master (masters.py):

| generation | oracle | master |
|---|---|---|
| `RayGeneration` | every report over the privacy cone (cone/pricing.py) | at vertices, side rows |
| `BoxGeneration` | every report by warm-start trees (cone/warm_pricing.py) | multipliers in a box |
| `DesignGeneration` | an optimal design for a prior of the secrets | at vertices, its side rows share a maximum |

Rays. Multipliers of the side rows give an effective cost, for which those of the row sums are priced. A ray of negative
price becomes a column, and the same pricing gives the homogeneous bound.

Columns in a box. A round prices to ratios, moves the box, and solves the master. Near the gap the master is solved with
the box open in effect, and the multipliers at the centre are proved (warm_pricing.py).

Designs of changing priors: `DesignGeneration`. Sources: Kelley 1960, Journal of SIAM 8 (cutting planes); Wentges 1997,
International Transactions in Operational Research 4 (centring); Linderoth and Wright 2003, Computational Optimization
and Applications 24 (trust region).
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from mechdesign.base.arrays import Matrix, Vector
from mechdesign.base.time_budget import TimeBudget
from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.mechanism.figures import RESOLUTION, relative_gap
from mechdesign.solvers.cone.pricing import CoupledBound, Pricing, best_bound, project_dual
from mechdesign.solvers.cone.tree_simplex import Effort
from mechdesign.solvers.cone.warm_pricing import Proof, WarmPricer
from mechdesign.solvers.incumbent import Incumbent, Task, plain_bound
from mechdesign.solvers.masters import BoxMaster, BoxOptions, Columns, TrustRegionRule, VertexMaster
from mechdesign.solvers.result import SolveResult, Stop


class Decision(Enum):
    """The step after a round."""

    CONTINUE = auto()  # price again
    CERTIFY = auto()  # certify the mixture, which may be the best table so far, and price again
    FINISH = auto()  # certify it, and end if that meets the gap, or if the generation can do no better


@dataclass
class StallRule:
    """Counts the rounds without a gain; after `limit` of them the generation has stalled."""

    limit: int
    rounds: int = 0

    def update(self, *, has_gained: bool) -> None:
        self.rounds = 0 if has_gained else self.rounds + 1

    @property
    def is_stalled(self) -> bool:
        return self.rounds >= self.limit


class Generation(ABC):
    """An oracle with its master."""

    name: str
    master: VertexMaster | BoxMaster
    max_rounds: int

    @abstractmethod
    def advance(self, incumbent: Incumbent, budget: TimeBudget) -> bool:
        """Price, add the columns, solve the master; False if there is nothing to price."""

    @abstractmethod
    def decide(self, incumbent: Incumbent, budget: TimeBudget) -> Decision:
        """Judge the round."""

    @abstractmethod
    def certify(self, incumbent: Incumbent, budget: TimeBudget) -> None:
        """Certify the mixture of the master for the incumbent."""

    @abstractmethod
    def refine(self) -> Stop | None:
        """Aim closer after a certificate above the gap, or return the reason to stop."""

    @abstractmethod
    def close(self, incumbent: Incumbent) -> None:
        """Certify the remaining mixture, however the rounds ended."""

    def report_state(self, incumbent: Incumbent) -> None:
        incumbent.report_state(self.name, self.master.variables, self.master.constraints)


def generate(generation: Generation, incumbent: Incumbent, budget: TimeBudget) -> Stop:
    """Run rounds until the incumbent meets its target: GAP, TIME, or PRECISION if the generation can do no better."""
    try:
        stopped = _run_rounds(generation, incumbent, budget)
    # Also after Ctrl-C or a failed solve: the last mixture may be the best table.
    finally:
        generation.close(incumbent)
    return Stop.GAP if incumbent.is_close else stopped


def _run_rounds(generation: Generation, incumbent: Incumbent, budget: TimeBudget) -> Stop:
    for _ in range(generation.max_rounds):
        if budget.is_spent():
            return Stop.TIME
        if not generation.advance(incumbent, budget):
            return Stop.PRECISION
        decision = generation.decide(incumbent, budget)
        if decision is not Decision.CONTINUE:
            generation.certify(incumbent, budget)
        generation.report_state(incumbent)
        if decision is not Decision.FINISH:
            continue
        stopped = Stop.GAP if incumbent.is_close else generation.refine()
        if stopped is not None:
            return stopped
    return Stop.PRECISION


@dataclass(frozen=True, kw_only=True)
class RayOptions:
    """Constants of `RayGeneration` and, up to max_rounds, of `DesignGeneration`. All are guesses."""

    much_better: float = 0.9  # share of the best objective below which a mixture is certified before the end
    shortest_solve: float = 1.0  # seconds that HiGHS gets
    max_rounds: int = 300
    new_ray: float = 1e-14  # ratio from which a ray is new
    trials_taken: int = 3  # trials of a bound whose rays become columns: those of the later ones hardly differ
    mixed: float = 0.7  # share of the best multipliers in those that are priced after the last ones
    near: float = 1e-3  # gap below which they are not priced
    within: float = 0.05  # share of the gap aimed at: another round or two make loss and bound nearly alike
    finest: float = 1e-10  # gap of a mixture below which nothing is gained
    aim_closer: float = 10.0  # factor by which the aim falls after a certificate above the gap
    gain: float = 0.7  # factor by which the gap of a mixture falls, for a gain
    objective_gain: float = 0.1  # share of the target by which its objective falls, for a gain
    switch_rounds: int = 5  # rounds without gain after which the master's method changes
    stall_rounds: int = 15  # such rounds after which rays are given up


_RAYS = RayOptions()


class MixtureGeneration(Generation):
    """A generation with a `VertexMaster`: its tables are certified, and violated limits are lowered."""

    def __init__(self, name: str, task: Task) -> None:
        self.name, self.task, self.margin = name, task, task.first_margin
        start, objective = _first_columns(task)
        self.master: VertexMaster = VertexMaster(
            task.cost, task.rows, start=start, objective=objective, scale=task.constant
        )
        if task.rows.size:
            self.master.tighten(self.margin)
        self.best: CoupledBound | None = None

    @property
    def gap(self) -> float:
        """The relative gap of the mixture to the best bound of this generation; infinite before the first."""
        if self.best is None:
            return math.inf
        return relative_gap(self.master.objective, self.best.value, self.task.constant)

    def is_much_better(self, incumbent: Incumbent) -> bool:
        return self.master.objective < _RAYS.much_better * incumbent.objective

    def certify(self, incumbent: Incumbent, budget: TimeBudget) -> None:
        assert self.best is not None
        table = self.task.certify(self.master.table(), self.best.folded)
        incumbent.try_table(table)
        if table.excess.any():
            self.margin = np.where(table.excess > 0, 2 * (self.margin + table.excess), self.margin)
            self.master.tighten(self.margin)

    def close(self, incumbent: Incumbent) -> None:
        if len(self.master.x) and self.master.objective < incumbent.objective:
            slack_cost = self.task.cost if incumbent.bound is None else incumbent.bound.folded
            incumbent.try_table(self.task.certify(self.master.table(), slack_cost))


def _first_columns(task: Task) -> tuple[list[Columns], float]:
    """Columns that make a table, and an objective that they attain."""
    pricer, (n, m) = task.pricer, task.cost.shape
    reports = np.arange(m)
    # Eikonal kernels and the constant report: the first master is feasible for any program.
    start: list[Columns] = [
        (np.exp(-pricer.distance), reports),
        (np.ones((1, n)), np.array([task.problem.best_constant])),
    ]
    # An answer is that of many secrets, and long edges keep most of them far from its anchor.
    if m < n:
        start.append((np.exp(-pricer.distances_to_answers(task.cost.argmin(axis=1))), reports))
    objective = task.constant
    half = np.exp(-pricer.distance / 2)
    if half.sum(axis=0).min() > 0:
        # e^{-d/2} with rows divided by their sums: each factor uses half of the claim.
        half /= half.sum(axis=0)
        objective = min(objective, float((half * np.ascontiguousarray(task.cost.T)).sum()) or objective)
        start.append((half, reports))
    return start, objective


class RayGeneration(MixtureGeneration):
    """Rays of negative price over the privacy cone."""

    # The first master has columns, so it is solved before the first pricing; the other generations price first. Zeros
    # of the prior do no harm, because no variable of the master is a single entry of the table.

    def __init__(self, name: str, task: Task, target: float, options: RayOptions = _RAYS) -> None:
        super().__init__(name, task)
        self.options, self.max_rounds, self.stall = options, options.max_rounds, StallRule(options.stall_rounds)
        self.aim = options.within * target  # gap of the mixture at which it is certified
        self.best_gap = self.lowest = math.inf

    def advance(self, incumbent: Incumbent, budget: TimeBudget) -> bool:
        options = self.options
        lower_bound = -math.inf if self.best is None else self.best.value
        self.master.solve(max(budget.remaining(), options.shortest_solve), lower_bound)
        self._price(enough=self.master.objective * (1 - self.aim))
        assert self.best is not None
        incumbent.record_bound(self.best)
        return True

    def decide(self, incumbent: Incumbent, budget: TimeBudget) -> Decision:
        options, gap, objective = self.options, self.gap, self.master.objective
        # A fall of the objective counts too: at first bounds say nothing, and the gap cannot show progress.
        has_gained = (
            gap < self.best_gap * options.gain
            or objective < self.lowest * (1 - options.objective_gain * incumbent.target)
        )  # fmt: skip
        self.stall.update(has_gained=has_gained)
        if has_gained:
            self.best_gap = min(gap, self.best_gap)
        self.lowest = min(self.lowest, objective)
        # The multipliers of the other method price other rays.
        if self.stall.rounds == options.switch_rounds:
            self.master.is_interior = not self.master.is_interior
        if gap <= self.aim or self.stall.is_stalled:
            return Decision.FINISH
        return Decision.CERTIFY if self.is_much_better(incumbent) else Decision.CONTINUE

    def refine(self) -> Stop | None:
        if self.stall.is_stalled or self.aim <= self.options.finest:
            return Stop.PRECISION
        # The mixture met the gap, and its repair lost more than the gap allows: aim at a tenth.
        self.aim = max(min(self.aim, self.gap) / self.options.aim_closer, self.options.finest)
        return None

    def _price(self, enough: float) -> None:
        """Price the multipliers and, far from the optimum, a mixture with the best; `enough` ends the trials."""
        master, options = self.master, self.options
        latest = self._bound(master.dual, master.multipliers, enough)
        if self.best is None or latest.value > self.best.value:
            self.best = latest
        elif 1 - self.best.value / master.objective > options.near:
            dual = options.mixed * self.best.dual + (1 - options.mixed) * master.dual
            multipliers = options.mixed * self.best.multipliers + (1 - options.mixed) * master.multipliers
            self.best = max(self.best, self._bound(dual, multipliers, enough), key=lambda bound: bound.value)

    def _bound(self, dual: Vector, multipliers: Vector, enough: float) -> CoupledBound:
        task, options = self.task, self.options
        loss = max(self.master.objective, RESOLUTION * task.constant)
        # The weight of (3) in cone/pricing.py: a price counts relative to it.
        weight = np.abs(dual) + loss / len(dual)
        trials = 0

        def take_rays(folded: Matrix, trial: Vector, price: Pricing) -> None:
            nonlocal trials
            trials += 1
            if price.rays is None or trials > options.trials_taken:
                return
            # An infinite entry gives NaN, which the comparison below rejects.
            with np.errstate(over="ignore", invalid="ignore"):
                flat = price.rays / price.rays.max(axis=1, keepdims=True)
            gain = np.einsum("yu,yu->y", flat, trial - folded.T)
            new = np.flatnonzero(gain > options.new_ray * (flat @ weight))
            self.master.add(flat[new], new)

        return best_bound(
            task.pricer,
            task.cost,
            task.rows,
            dual,
            multipliers,
            loss=loss,
            known=0.0 if self.best is None else self.best.value,
            enough=enough,
            visit=take_rays,
        )


@dataclass(frozen=True, kw_only=True)
class DesignOptions:
    """Constants of `DesignGeneration`. All are guesses."""

    centred: float = 0.5  # share of the best multipliers in the next ones
    radius: float = 3.0  # factor of the best multipliers within which the next ones stay, at first
    radii: tuple[float, float] = (1.5, 8.0)  # its least and largest
    growth: float = 1.3  # factor of the radius after a gain; after none its square root is taken
    least_multiplier: float = 1e-9  # as a share: no secret is without weight
    first_gap: float = 1e-2  # gap of the first design
    gap_share: float = 0.2  # gap of later ones, as a share of the gap of the mixture
    target_share: float = 0.1  # of the target: no design needs a smaller gap
    time_share: float = 0.3  # of the remaining time, for one design, and for the master
    shortest: float = 1.0  # seconds that they get
    gain: float = 0.05  # of the target, by which bound or mixture improve for a gain
    max_rounds: int = 200
    stall_rounds: int = 10  # rounds without a better bound or mixture after which this ends


# A design for an effective cost (n, m) to a gap, in seconds, from a start, with multipliers (n,) of its row sums; None
# where a constant report costs no more than any table.
DesignOracle = Callable[[Matrix, float, float, SolveResult | None], tuple[SolveResult, Vector] | None]


class DesignGeneration(MixtureGeneration):
    """Optimal designs for priors that follow the multipliers of the master."""

    # They minimise a maximum over private tables:
    #
    #     min over P of max over side rows k of (G_k P - h_k) / s_k
    #         = max over mu >= 0, sum_k s_k mu_k = 1, of the optimal program for the cost sum_k mu_k G_k.         (1)
    #
    # For the worst-case loss mu is a prior over the secrets. Every round solves the program of one mu.

    def __init__(self, name: str, task: Task, oracle: DesignOracle, options: DesignOptions = DesignOptions()) -> None:
        super().__init__(name, task)
        self.options, self.oracle, self.max_rounds = options, oracle, options.max_rounds
        self.stall, self.radius = StallRule(options.stall_rounds), options.radius
        self.multipliers = project_dual(np.ones(task.rows.size), task.rows.epigraph_coefficient)
        self.design: SolveResult | None = None
        self.has_better_bound = False

    def advance(self, incumbent: Incumbent, budget: TimeBudget) -> bool:
        task, options, target = self.task, self.options, incumbent.target
        coefficient = task.rows.epigraph_coefficient
        if self.best is not None:
            self._move_multipliers(self.best)
        # A secret of weight 0 leaves its row of the design to chance, which spoils the mixture.
        prior = project_dual(
            np.maximum(self.multipliers, options.least_multiplier / (len(coefficient) * coefficient)), coefficient
        )
        gap = options.first_gap
        if self.best is not None:
            gap = max(options.target_share * target, min(gap, options.gap_share * self.gap))
        pair = self.oracle(task.rows.lagrangian_cost_down(task.cost, prior), gap, self._seconds(budget), self.design)
        if pair is None:
            return False
        self.design, dual = pair
        # (1): the bound of any mu is valid for the coupled program.
        bound = task.bound(dual, prior)
        # Every report of the design is a column, so that the master recombines reports of several designs.
        self.master.add(np.ascontiguousarray(self.design.mass.T / float(ROW_SUM)), np.arange(task.cost.shape[1]))
        before = self.master.objective
        # Without a bound the tolerance is the largest one: the columns are as inaccurate.
        self.master.solve(self._seconds(budget), -math.inf)
        gain = options.gain * target
        self.has_better_bound = self.best is None or bound.value > self.best.value + gain * self.master.objective
        self.stall.update(has_gained=self.has_better_bound or self.master.objective < before * (1 - gain))
        if self.best is None or bound.value > self.best.value:
            self.best = bound
        incumbent.record_bound(self.best)
        return True

    def _seconds(self, budget: TimeBudget) -> float:
        return max(self.options.shortest, self.options.time_share * budget.remaining())

    def _move_multipliers(self, best: CoupledBound) -> None:
        options, (smallest, largest) = self.options, self.options.radii
        if self.has_better_bound:
            self.radius = min(options.growth * self.radius, largest)
        else:
            # The square root halves the radius in logarithms: multipliers are compared by ratios.
            self.radius = max(math.sqrt(self.radius), smallest)
        latest = project_dual(self.master.multipliers, self.task.rows.epigraph_coefficient)
        # The average with the best point, within a trust region of ratios around it: far from it designs are slow, and
        # their tables useless.
        between = options.centred * best.multipliers + (1 - options.centred) * latest
        self.multipliers = np.clip(between, best.multipliers / self.radius, best.multipliers * self.radius)

    def decide(self, incumbent: Incumbent, budget: TimeBudget) -> Decision:
        is_near = self.gap <= incumbent.target or incumbent.is_close
        if is_near or self.stall.is_stalled or self.is_much_better(incumbent):
            return Decision.FINISH
        return Decision.CONTINUE

    def refine(self) -> Stop | None:
        return Stop.PRECISION if self.stall.is_stalled else None


@dataclass(frozen=True, kw_only=True)
class BoxGenerationOptions:
    """Constants of `BoxGeneration`. All are guesses."""

    gains: tuple[float, float] = (1e-7, 1e-6)  # least and largest gain of a pivot, a hundredth of the gap between them
    first_steps: int = 8  # of Dinkelbach's method in the first pricing
    steps: int = 2  # of it later
    in_sight: float = 0.6  # of the target: estimated gap from which rows are to sum to 1
    certified: float = 0.8  # of the target: gap of the unboxed mixture from which it is certified
    unboxed_gap: float = 20.0  # the target, in units of the gap of an unboxed solve
    seldom: int = 5  # rounds between two certificates before the gap is in sight
    promise: float = 0.1  # of the gap certified last, at which the next one is due
    first_certificate: float = 0.3  # of the time limit, after which one is made anyway
    late: float = 1.5  # times the seconds of the last certificate, for another one
    finest: float = 1e-9  # estimated gap from which nothing is gained
    estimate_gain: float = 0.05  # of the target, by which the estimate rises for a gain
    gap_gain: float = 0.95  # factor by which the gap falls for a gain
    max_rounds: int = 300
    stall_rounds: int = 25  # rounds without a better estimate or gap after which it has stalled


FINE_TARGET = 1e-5  # gap below which the constants of `FINE_BOXES` are taken: above, they cost time and gain nothing
FINE_BOXES = BoxGenerationOptions(gains=(1e-10, 1e-6), stall_rounds=60)
FINE_MASTER = BoxOptions(widths=(0.003, 2.0))


class BoxGeneration(Generation):
    """Warm pricing of multipliers in a box, for tasks without side rows."""

    # Cost of a round: a pricing, and some 20 steps of O(columns o^2) for o orbits. Memory: 16 n bytes for each of up to
    # 6 o columns.

    master: BoxMaster

    def __init__(
        self,
        name: str,
        task: Task,
        pricer: WarmPricer,
        rule: TrustRegionRule,
    ) -> None:
        is_fine = task.target < FINE_TARGET
        options = FINE_BOXES if is_fine else BoxGenerationOptions()
        self.name, self.task, self.pricer, self.rule, self.options = name, task, pricer, rule, options
        self.max_rounds, self.stall = options.max_rounds, StallRule(options.stall_rounds)
        self.master = BoxMaster(pricer, rule, task.constant, FINE_MASTER if is_fine else BoxOptions())
        pricer.set_cores(rule.shares[0][1])
        self.round = 0
        self.best_estimate, self.best_gap = -math.inf, math.inf
        self.certified_round, self.certified_gap = -math.inf, math.inf  # of the last certificate
        self.seconds = 0.0  # that the last certificate took
        self.started = time.monotonic()
        self.stop: Stop | None = None  # why the rounds end, after the certificate of this one
        self.is_in_sight = False
        self.proof: Proof | None = None

    def advance(self, incumbent: Incumbent, budget: TimeBudget) -> bool:
        master, pricer, options = self.master, self.pricer, self.options
        is_first = self.round == 0
        if not is_first:
            self._grow_cores()
            master.drop_expensive()
        smallest, largest = options.gains
        # Pricing finer than a hundredth of the gap does not move the master.
        change = min(10 * largest, max(smallest, master.gap / 100))
        effort = Effort(min(largest, change), change, options.first_steps if is_first else options.steps, False)
        master.add(pricer.price(master.dual, pricer.priced, effort), pricer.priced)
        master.move_box(is_first=is_first)
        master.solve(budget.ends)
        self.round += 1
        return True

    def _grow_cores(self) -> None:
        # The shares fall with the gap, so cores only grow.
        share = next(share for gap, share in self.rule.shares if self.master.gap >= gap)
        if share < self.pricer.outer_share:
            self.pricer.set_cores(share)

    def decide(self, incumbent: Incumbent, budget: TimeBudget) -> Decision:
        master, options, target = self.master, self.options, incumbent.target
        self._update_stall(target)
        self.stop = None
        if not budget.allows(options.late * self.seconds):
            self.stop = Stop.TIME
        # Time is checked first: a late stall must be reported as time.
        # An estimate within cores can be finer than its certificate, whose rays raise it again: the next one counts.
        elif self.stall.is_stalled or max(master.gap, self.certified_gap) < options.finest:
            self.stop = Stop.PRECISION
        has_final_cores = self.pricer.outer_share == self.rule.shares[-1][1]
        self.is_in_sight = master.gap < options.in_sight * target and has_final_cores
        is_due = self._is_certificate_due(budget) or master.gap < options.finest
        if self.is_in_sight and self.stop is None:
            # The boxed gap may be small while rows do not sum to 1: only the unboxed mixture is a table.
            self.is_in_sight = self._is_close_unboxed(target, budget)
            if budget.is_spent():
                self.stop = Stop.TIME
        if self.stop is not None or self.is_in_sight or is_due:
            return Decision.FINISH
        return Decision.CONTINUE

    def _update_stall(self, target: float) -> None:
        master, options = self.master, self.options
        has_gained = (
            master.estimate > self.best_estimate * (1 + options.estimate_gain * target)
            or master.gap < options.gap_gain * self.best_gap
        )  # fmt: skip
        self.best_estimate = max(self.best_estimate, master.estimate)
        self.best_gap = min(self.best_gap, master.gap)
        self.stall.update(has_gained=has_gained)

    def _is_certificate_due(self, budget: TimeBudget) -> bool:
        """True if the gap has fallen since a certificate some rounds ago, or if the first one is late."""
        options = self.options
        has_promise = self.master.gap < options.promise * self.certified_gap
        if has_promise and self.round - 1 >= self.certified_round + options.seldom:
            return True
        elapsed = time.monotonic() - self.started
        return self.seconds == 0 and elapsed > options.first_certificate * (budget.ends - self.started)

    def _is_close_unboxed(self, target: float, budget: TimeBudget) -> bool:
        """Solve the unboxed master; True if its mixture is near the estimate, else the box is widened."""
        master, options = self.master, self.options
        objective = master.solve_unboxed(target / options.unboxed_gap, budget.ends)
        is_close = 1 - master.estimate / objective < options.certified * target
        if not is_close:
            master.widen()
        return is_close

    def certify(self, incumbent: Incumbent, budget: TimeBudget) -> None:
        master, options, target = self.master, self.options, incumbent.target
        # Before the certificate, which may take long.
        self.report_state(incumbent)
        began = time.monotonic()
        if not self.is_in_sight:
            gap = max(target / options.unboxed_gap, min(master.gap / 10, master.options.tolerances[0]))
            master.solve_unboxed(gap, max(budget.ends, began + self.seconds))
        may_widen = self.stop is not None or self.is_in_sight
        self.proof = self.pricer.prove(master.centre, min(target, master.gap), widen=may_widen)
        self.certified_round, self.certified_gap = self.round - 1, master.gap
        self.seconds = time.monotonic() - began
        incumbent.record_bound(plain_bound(self.task, self.proof.bound, self.proof.dual))
        incumbent.try_table(self.task.certify(master.table(), self.task.cost, private=True))

    def refine(self) -> Stop | None:
        if self.stop is not None:
            return self.stop
        assert self.proof is not None
        for rays, reports in zip(self.proof.rays, self.proof.reports, strict=True):
            self.master.add(rays, reports)
        if self.is_in_sight:
            # The proved multipliers are admissible, so the next box starts from them.
            self.master.centre = self.pricer.orbit_minimum(self.proof.dual)
        return None

    def close(self, incumbent: Incumbent) -> None:
        pass  # every mixture without a box was certified

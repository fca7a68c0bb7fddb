"""Solve for the least epsilon of a family, or of any mechanism, at one expected distance or at one true level.

The program is programs/matched.py. For a family `find_crossing` brackets the level and bisects, by Brent's method on
the logarithm of eps: for an expected distance, or for a true level,

    largest eps > 0  with  ln P_eps(y|u) - ln P_eps(y|u') <= level |u - u'|   for all secrets u, u' and reports y.

Mechanisms of different kinds are then equally private for the Euclidean metric, whatever they claim.

For all tables every evaluation is an optimal design. The next level follows from the power by which the expected
distance fell between the last two (1). From above: a design at level g of the graph that meets the target is private
over all pairs at k g or less. It is mixed with the best constant report up to the target (2), rounded, and certified at
its true level. From below: multipliers of one level, scaled like the loss, bound the loss at any other (3). The least
eps exceeds every level whose bound exceeds the target.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import xarray as xr
from scipy.optimize import brentq

from mechdesign.base.arrays import Masses
from mechdesign.base.records import FrozenRecord
from mechdesign.base.time_budget import TimeBudget
from mechdesign.base.validation import check_epsilon, validate_call
from mechdesign.closed_forms.build import closed_form_mechanism
from mechdesign.errors import InputError, SolverError, UnsuitableError
from mechdesign.mechanism.certificate import ROW_SUM, max_log_ratio, max_log_ratio_of_doubles
from mechdesign.mechanism.figures import total_cost
from mechdesign.mechanism.repair import repair, round_to_integers
from mechdesign.problem.losses import check_distance
from mechdesign.problem.metrics import Euclidean
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.matched import (
    FAMILIES,
    Family,
    MatchedOptimal,
    TableOfEpsilon,
    family_of,
    require_distances,
    require_euclidean,
)
from mechdesign.solvers.cone.pricing import ConePricer, lower_bound
from mechdesign.solvers.optimal import solve_optimal
from mechdesign.solvers.result import Progress, SolveResult, Stop, Targets


@dataclass(frozen=True, kw_only=True)
class MatchedOptions:
    """Constants of the searches, guesses except the first two; no bound depends on them."""

    distance_accuracy: float = 1e-12  # of ln eps; the docstring of `Matched` promises 1e-10 of eps
    level_accuracy: float = 1e-8  # of ln eps
    level_range: float = 60 * math.log(2)  # of ln eps, on either side of the target level
    bracket_step: float = math.log(2)  # of ln eps
    excess_share: float = 0.2  # of the excess k - 1 of the graph metric: a smaller gap of designs gains nothing
    first_level: float = 0.97  # of the level of clamped noise
    max_designs: int = 12
    max_pricings: int = 8
    min_power_gaps: float = 5.0  # gaps, in ln eps, by which two levels must differ to estimate the power (1)
    power: tuple[float, float] = (0.3, 4.0)  # range of the estimated power
    bound_margin: float = 1e-5  # of the target, by which a bound is aimed above it
    level_margin: float = 1e-9  # of the level: room for the repair
    rounding: float = 1 - 2.0**-40  # factor on levels that are ruled out: edges are rounded down


_OPTIONS = MatchedOptions()


@dataclass(frozen=True, kw_only=True)
class Matched(FrozenRecord):
    """family; epsilon, to a relative 1e-10, in `unit` ("nats" or "nats per" unit of length); its expected distance."""

    family: str
    epsilon: float
    unit: str
    distance: float


@validate_call
def match_distance(problem: DesignProblem, family: str | Family | TableOfEpsilon, distance: float) -> Matched:
    """The eps at which a family of mechanisms has an expected distance under the prior of a problem; some ten tables.

    Parameters
    ----------
    problem : DesignProblem
        Domain, prior and reports.
    family : str, Family or callable
        randomized_response, geometric_normalised, geometric_clamped, laplacian_normalised, laplacian_clamped, or a
        function of (problem, eps in nats per unit) that gives the table (n, m). The clamped ones need a square grid.
    distance : float
        In units; within the range of the family.

    Returns
    -------
    Matched, with `epsilon` and its expected distance

    Examples
    --------
    >>> matched = md.utility.match_distance(md.load_problem("paris", cells=2, distance=60.0), "geometric_clamped", 60.0)
    >>> matched.epsilon > 0
    True
    """
    chosen, target, domain = family_of(family), check_distance(distance), problem.domain
    expected_distance = chosen.expected_distances(problem)
    smallest, middle, largest = map(math.log, chosen.epsilons(domain))
    root = find_crossing(
        lambda log_epsilon: expected_distance(math.exp(log_epsilon)) - target,
        middle,
        smallest,
        largest,
        _OPTIONS.distance_accuracy,
    )
    if root is None:
        nearest, widest = expected_distance(math.exp(largest)), expected_distance(math.exp(smallest))
        span, words = f"between {nearest:.6g} and {widest:.6g} {domain.unit}", chosen.words or chosen.name
        message = f"must lie {span}, the expected distances of {words} under this prior"
        raise InputError(message, field="distance", value=target)
    return _match_at(problem, chosen, math.exp(root))


def _match_at(problem: DesignProblem, family: Family, epsilon: float) -> Matched:
    return Matched(
        family=family.name,
        epsilon=epsilon,
        unit=family.unit(problem.domain),
        distance=family.expected_distances(problem)(epsilon),
    )


def find_crossing(
    falling: Callable[[float], float], start: float, lower: float, upper: float, accuracy: float
) -> float | None:
    """The zero in [lower, upper] of a falling function of ln eps, to an absolute accuracy; None without a zero."""
    # One evaluation is a table or a design, and brentq starts by evaluating both ends of the bracket again.
    excess = functools.cache(falling)
    # At most one of the two loops moves: the function falls.
    low = high = start
    while excess(high) > 0:
        if high >= upper:
            return None
        low, high = high, min(high + _OPTIONS.bracket_step, upper)
    while excess(low) < 0:
        if low <= lower:
            return None
        low, high = max(low - _OPTIONS.bracket_step, lower), low
    return float(brentq(excess, low, high, xtol=accuracy)) if low < high else low


@validate_call
def match_effective_epsilon(problem: DesignProblem, family: str | Family | TableOfEpsilon, level: float) -> Matched:
    """The eps at which a family has an effective epsilon over all pairs; 20 s for 900 places on a grid.

    Parameters
    ----------
    problem, family : DesignProblem; str, Family or callable
        As in `match_distance`; the effective epsilon of the family rises with eps.
    level : float
        The effective epsilon, in nats per unit of Euclidean distance.

    Returns
    -------
    Matched, with `epsilon`, to a relative 1e-8, and its expected distance

    Examples
    --------
    >>> problem = md.load_problem("paris", cells=2, distance=60.0)
    >>> matched = md.utility.match_effective_epsilon(problem, "geometric_clamped", 0.01)
    >>> round(matched.epsilon, 6)
    0.01051
    """
    check_epsilon(level, "level")
    chosen = family_of(family)
    require_distances(problem.domain)
    edges = Euclidean(epsilon=1.0, unit=problem.domain.unit).edges(problem.domain)

    def missing_level(log_epsilon: float) -> float:
        table = np.asarray(chosen.table(problem, math.exp(log_epsilon)), float)
        # Falling in eps, as `find_crossing` expects: the effective epsilon rises.
        return math.log(level / max_log_ratio_of_doubles(table, edges).finite)

    start = math.log(level * float(edges.length.min()) if chosen.nats else level)
    span = _OPTIONS.level_range
    root = find_crossing(missing_level, start, start - span, start + span, _OPTIONS.level_accuracy)
    if root is None:
        sizes = "between the size of a cell and that of the domain"
        message = f"must have an inverse {sizes}: {chosen.words or chosen.name} attains no other level"
        raise InputError(message, field="level", value=level)
    return _match_at(problem, chosen, math.exp(root))


def matched_families(problem: DesignProblem) -> dict[str, Callable[[], xr.Dataset]]:
    """Makers, by name, of the closed forms at the problem's `matched_distance`."""
    require_euclidean(problem)
    return {name: partial(_matched_mechanism, problem, name) for name in FAMILIES}


def _matched_mechanism(problem: DesignProblem, name: str) -> xr.Dataset:
    distance = check_distance(problem.matched_distance)
    return family_mechanism(problem, name, match_distance(problem, name, distance).epsilon, matched_distance=distance)


def family_mechanism(problem: DesignProblem, name: str, epsilon: float, **parameters: float) -> xr.Dataset:
    """The mechanism of a closed form at `epsilon`, over the metric that it claims there."""
    claimed = replace(problem, metric=FAMILIES[name].metric(problem.domain, epsilon))
    table = FAMILIES[name].table(claimed, epsilon)
    return closed_form_mechanism(claimed, table, name=name, claimed_epsilon=epsilon, parameters=parameters or None)


def effective_epsilon(mechanism: xr.Dataset, problem: DesignProblem) -> float | None:
    """Largest log-ratio of a mechanism over all pairs, in nats per unit of distance; None unless it is Euclidean."""
    if not isinstance(problem.metric, Euclidean):
        return None
    level = problem.metric.smallest_level
    return max_log_ratio(mechanism["mass"].values, problem.edges).value * level


def solve_matched_optimal(program: MatchedOptimal, targets: Targets) -> SolveResult:
    """Enclose the least eps to about twice the gap, or the excess of the graph metric if that is larger."""
    # The design is certified at claimed_epsilon; no mechanism private at epsilon_lower_bound or less meets the target.
    search = MatchedSearch(
        program=program,
        gap=max(targets.gap, _OPTIONS.excess_share * (program.excess - 1)),
        budget=TimeBudget.of(targets.time_limit),
        on_progress=targets.on_progress,
    )
    stopped = search.run()
    if search.best is None:
        message = "no mechanism within the distance was found: allow more time, or use fewer cells"
        raise SolverError(message, field="time-limit", value=targets.time_limit)
    level, design = search.best
    # Pricing is much cheaper than the designs that follow where it proves nothing.
    excluded = search.level_excluded_by_pricing(level, design) or search.level_excluded_by_designs(level, design)
    mass, epsilon, constant_share = _mixed_with_constant(program, design, level * program.excess)
    return SolveResult(
        problem=program.at(epsilon),
        mass=mass,
        loss=total_cost(mass, program.at(epsilon).weighted_loss),
        claimed_epsilon=epsilon,
        # Edges are rounded down, so the level that they prove is a little lower than the one that was priced.
        figures={} if excluded is None else {"epsilon_lower_bound": excluded * _OPTIONS.rounding},
        parameters={"constant_share": constant_share},
        stopped=stopped,
    )


@dataclass(kw_only=True, eq=False)
class MatchedSearch:
    """Levels tried, as ln level and ln loss, and the least level whose design meets the target."""

    program: MatchedOptimal
    gap: float
    budget: TimeBudget
    on_progress: Callable[[Progress], None] | None = None
    tried: list[tuple[float, float]] = field(default_factory=list)
    best: tuple[float, SolveResult] | None = None

    def run(self) -> Stop:
        target = self.program.target
        level, design = _first_level(self.program) / self.program.excess, None
        for _ in range(_OPTIONS.max_designs):
            if self.budget.is_spent():
                return Stop.TIME
            design = self._design_at(level, design)
            self.tried.append((math.log(level), math.log(design.loss)))
            if design.loss <= target and (self.best is None or level < self.best[0]):
                self.best = level, design
            if Stop(design.stopped).is_early:
                return Stop(design.stopped)
            if self.best is not None and self.best[1].loss >= target * (1 - self.gap):
                return Stop.GAP
            # (1), aimed at the middle of the gap: either side of it then ends the search.
            level *= float((target * (1 - self.gap / 2) / design.loss) ** (-1 / self.power))
        return Stop.PRECISION

    def _design_at(self, level: float, start: SolveResult | None) -> SolveResult:
        targets = Targets(gap=self.gap, time_limit=self.budget.remaining(), on_progress=self.on_progress)
        return solve_optimal(self.program.at(level, graph=True), targets, start=start)

    @property
    def power(self) -> float:
        """The power of the level by which the loss falls, from the first and the last design; 1 if they are close."""
        (first_level, first_loss), (last_level, last_loss) = self.tried[0], self.tried[-1]
        if abs(last_level - first_level) <= _OPTIONS.min_power_gaps * self.gap:
            return 1.0
        smallest, largest = _OPTIONS.power
        return min(max((first_loss - last_loss) / (last_level - first_level), smallest), largest)

    def level_excluded_by_pricing(self, level: float, design: SolveResult) -> float | None:
        """A level at which the multipliers of a design at another level prove a bound above the target."""
        target, trial = self.program.target, level
        for _ in range(_OPTIONS.max_pricings):
            problem = self.program.at(trial, graph=True)
            pricer, bound = ConePricer.of(problem), 0.5 * target
            # (3), by the two laws that the loss may follow; the better one counts.
            for power in (1.0, self.power):
                dual = design.dual * (level / trial) ** power
                bound = max(bound, lower_bound(dual, pricer.price(problem.weighted_loss, dual).value))
            if bound > target:
                return trial
            # The bound grows as the level falls: the next trial is where it should reach the target.
            trial *= bound / (target * (1 + _OPTIONS.bound_margin))
        return None

    def level_excluded_by_designs(self, level: float, design: SolveResult) -> float | None:
        """A level whose design has a bound above the target."""
        target = self.program.target
        for _ in range(_OPTIONS.max_designs):
            if self.budget.is_spent() or Stop(design.stopped).is_early:
                return None
            level *= float((min(design.lower_bound / target, 1.0) / (1 + self.gap / 2)) ** (1 / self.power))
            design = self._design_at(level, design)
            if design.lower_bound > target:
                return level
        return None


def _first_level(program: MatchedOptimal) -> float:
    try:
        noise = match_distance(program.problem, "geometric_clamped", program.target)
        return _OPTIONS.first_level * noise.epsilon
    except UnsuitableError:
        return 2 / program.target  # planar Laplace noise, whose expected distance is 2 / eps


def _mixed_with_constant(program: MatchedOptimal, design: SolveResult, epsilon: float) -> tuple[Masses, float, float]:
    """A design mixed with the constant report up to the target (2): mass, level over all pairs, its share."""
    problem = program.at(epsilon)
    # (2): a mixture of private mechanisms is private. The loss is linear, so this share meets the target exactly.
    constant_share = (program.target - design.loss) / (problem.constant_loss - design.loss)
    table = design.mass.astype(np.float64) * ((1 - constant_share) / ROW_SUM)
    table[:, problem.best_constant] += constant_share
    true_ratio = max_log_ratio(round_to_integers(table, problem.edges), problem.edges).value
    level = epsilon * true_ratio * (1 + _OPTIONS.level_margin)
    claimed = program.at(level)
    return repair(table, claimed.edges, claimed.weighted_loss, overwrite=True), level, constant_share

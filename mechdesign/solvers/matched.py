"""The least epsilon of a family, or of any mechanism, at one expected distance or at one true level.

`match_distance`, the program of programs/matched_distance.py: the eps at which a family has an expected distance, by
bracketing and Brent's method on the logarithm of eps.

`match_effective_epsilon`: the eps at which the largest log-ratio of a family per unit of distance is a level.

    largest eps > 0  with  ln P_eps(y|u) - ln P_eps(y|u') <= level |u - u'|   for all secrets u, u' and reports y

Mechanisms of different kinds are then equally private for the Euclidean metric, whatever they claim: where mechanisms
are matched by distance (Alvim et al. 2018, section III) their levels differ by an order of magnitude.

`solve_matched_optimal`, the program of programs/matched_optimal.py: two or three optimal designs, and their multipliers
priced at other levels. A design at level g of the graph with expected distance at most the target gives, at up to k g,
a mechanism that is private over all pairs. The expected distance is near a power of the level, so the next level
follows from the last two. The mechanism is mixed with the best constant report, rounded and certified over all pairs at
the level it truly has. From below: multipliers of one level, scaled as the loss is, bound the loss at any other level;
the largest level found whose bound exceeds the target is below the least eps.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from mechdesign.base.records import ReprMixin
from mechdesign.base.validation import check_epsilon, validated
from mechdesign.errors import InputError, SolverError, UnsuitableError
from mechdesign.mechanism.certificate import ROW_SUM, max_log_ratio, worst_ratio
from mechdesign.mechanism.dataset import total_cost
from mechdesign.mechanism.repair import repair, round_to_integers
from mechdesign.problem.metric import Euclidean
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.matched_distance import Family, MatchedDistance, family_of
from mechdesign.programs.matched_optimal import MatchedOptimal
from mechdesign.solvers.cone.pricing import ConePricer, lower_bound
from mechdesign.solvers.optimal import solve_optimal
from mechdesign.solvers.result import Design, Progress, Targets

_DISTANCE_ACCURACY = 1e-12  # of ln eps; 1e-10 of eps is promised
_STEP = math.log(2)  # by which a bracket grows in ln eps
_LEVEL_ACCURACY = 1e-8  # of ln eps
_REACH = 60 * math.log(2)  # of ln eps around the target level
_SHARE = 0.2  # of the excess k - 1 of the graph metric: designs need no smaller gap than this
_START = 0.97  # of the level of clamped noise, near which the search begins
_SOLVES = 12
_PRICINGS = 8
_APART = 5.0  # gaps, in the logarithm, by which levels must differ to tell a power
_ABOVE = 1e-5  # of the target, by which a bound is meant to exceed it
_POWER = (0.3, 4.0)  # of the level that the expected distance may fall with
_SLACK = 1e-9  # by which the claimed level exceeds the true one, so that the repair has its margin
_ROUNDED = 1 - 2.0**-40  # levels that a bound rules out are lowered by this: edges are rounded down


@dataclass(frozen=True, kw_only=True)
class Matched(ReprMixin):
    """family; epsilon, relative accuracy 1e-10, in `unit` ("nats", or "nats per" unit of length); distance, what it
    gives under the prior, in units of length.
    """

    family: str
    epsilon: float
    unit: str
    distance: float


@validated
def match_distance(
    problem: DesignProblem,
    family: str | Family | Callable[[DesignProblem, float], NDArray[np.float64]],
    distance: float,
) -> Matched:
    """The eps at which a family of mechanisms has an expected distance under the prior of a problem.

    Parameters
    ----------
    problem : DesignProblem
        Domain, prior and reports.
    family : str, Family or callable
        randomized_response, geometric_normalised, geometric_clamped, laplacian_normalised, laplacian_clamped, or a
        function of (problem, eps in nats per unit) that gives the table (n, m).
    distance : float
        In units.

    Returns
    -------
    Matched
        `epsilon` and the expected distance it gives.

    Raises
    ------
    InputError
        For an unknown family, and a distance that is not positive, or that the family does not reach, with the range
        that it does reach.
    UnsuitableError
        Off square grids where the family needs one.

    Notes
    -----
    Cost: some ten tables.

    References
    ----------
    Alvim et al. 2018, section III.

    Examples
    --------
    >>> found = md.utility.match_distance(md.load_problem("paris", cells=2, distance=60.0), "geometric_clamped", 60.0)
    >>> found.epsilon > 0
    True
    """
    program = MatchedDistance(problem=problem, family=family_of(family), distance=distance)
    least, middle, most = map(math.log, program.epsilons)

    def excess(log_epsilon: float) -> float:
        return program.expected_distance(math.exp(log_epsilon)) - program.distance

    root = crossing(excess, middle, least, most, _DISTANCE_ACCURACY)
    if root is None:
        nearest, widest = program.reach
        unit = program.problem.domain.unit
        message = f"{program.family.name} reaches from {nearest:.6g} to {widest:.6g} {unit} under this prior"
        raise InputError(message, field="distance", value=program.distance)
    return _matched(program, math.exp(root))


def _matched(program: MatchedDistance, epsilon: float) -> Matched:
    """What a family has at `epsilon`."""
    return Matched(
        family=program.family.name,
        epsilon=epsilon,
        unit=program.unit,
        distance=program.expected_distance(epsilon),
    )


def crossing(
    falling: Callable[[float], float], start: float, least: float, most: float, accuracy: float
) -> float | None:
    """The ln eps within [least, most] at which a falling function of ln eps is 0, to an absolute accuracy.

    It is bracketed from `start` by factors of 2 of eps. None where the function has one sign within the ends.
    """
    excess = functools.cache(falling)
    low = high = start
    while excess(high) > 0:
        if high >= most:
            return None
        low, high = high, min(high + _STEP, most)
    while excess(low) < 0:
        if low <= least:
            return None
        low, high = max(low - _STEP, least), low
    return float(brentq(excess, low, high, xtol=accuracy)) if low < high else low


@validated
def match_effective_epsilon(
    problem: DesignProblem,
    family: str | Family | Callable[[DesignProblem, float], NDArray[np.float64]],
    level: float,
) -> Matched:
    """The eps at which a family of mechanisms has an effective epsilon over all pairs.

    Parameters
    ----------
    problem : DesignProblem
        Domain, prior and reports.
    family : str, Family or callable
        As in `match_distance`; its effective epsilon rises with eps.
    level : float
        The effective epsilon, in nats per unit of Euclidean distance.

    Returns
    -------
    Matched
        `epsilon`, to a relative 1e-8, with the expected distance it gives.

    Raises
    ------
    InputError
        For a level that is not positive and finite, or that the family does not have.

    Notes
    -----
    Cost: some ten tables and their ratios over all pairs: 20 s for 900 places on a grid.

    Examples
    --------
    >>> problem = md.load_problem("paris", cells=2, distance=60.0)
    >>> found = md.utility.match_effective_epsilon(problem, "geometric_clamped", 0.01)
    >>> round(found.epsilon, 6)
    0.01051
    """
    check_epsilon(level, "level")
    program = MatchedDistance(problem=problem, family=family_of(family), distance=1.0)
    edges = Euclidean(epsilon=1.0, unit=problem.domain.unit).edges(problem.domain)

    def lacking(log_epsilon: float) -> float:
        table = np.asarray(program.family.table(problem, math.exp(log_epsilon)), float)
        return math.log(level / worst_ratio(table, edges).finite)

    start = math.log(level * float(edges.length.min()) if program.family.nats else level)
    root = crossing(lacking, start, start - _REACH, start + _REACH, _LEVEL_ACCURACY)
    if root is None:
        levels = "levels whose inverse lies between the size of a cell and that of the domain"
        raise InputError(f"{program.family.name} has {levels}", field="level", value=level)
    return _matched(program, math.exp(root))


def solve_matched_optimal(program: MatchedOptimal, targets: Targets) -> Design:
    """Enclose the least eps to about twice the gap, or the excess of the graph metric where that is more.

    Returns: the design at its claimed_epsilon, nats per unit, certified over all pairs; loss, its expected distance in
        units; epsilon_lower_bound: no mechanism that is private at this or less has the target distance, left out where
        none was proved; constant_share, of the constant report that was mixed in.
    Raises: SolverError where the time ends before a mechanism comes as near as the target.
    Cost: two or three optimal designs, each started from the one before, and some pricings; where these prove nothing,
    one or two designs more.
    """
    least, on_progress = _SHARE * (program.excess - 1), targets.on_progress
    search = _Search(program=program, gap=max(targets.gap, least), ends=time.monotonic() + targets.time_limit)
    stopped = search.run(on_progress)
    if search.nearest is None:
        message = "ended before a mechanism came as near as the target: allow more, or use fewer cells"
        raise SolverError(message, field="time-limit", value=targets.time_limit)
    level, design = search.nearest
    ruled_out = search.ruled_out(level, design) or search.designed_out(level, design, on_progress)
    mass, epsilon, share = _mixed(program, design, level * program.excess)
    return Design(
        problem=program.at(epsilon),
        mass=mass,
        loss=total_cost(mass, program.at(epsilon).weighted_loss),
        claimed_epsilon=epsilon,
        figures={} if ruled_out is None else {"epsilon_lower_bound": ruled_out * _ROUNDED},
        parameters={"constant_share": share},
        stopped=stopped,
    )


@dataclass(kw_only=True, eq=False)
class _Search:
    """Levels tried, ln level and ln loss; the least level with a near enough design."""

    program: MatchedOptimal
    gap: float
    ends: float
    tried: list[tuple[float, float]] = field(default_factory=list)
    nearest: tuple[float, Design] | None = None

    def run(self, on_progress: Callable[[Progress], None] | None) -> str:
        """Solve at one level after another until the loss is within the gap below the target; why the search ended."""
        target = self.program.target
        level, design = _start(self.program) / self.program.excess, None
        for _ in range(_SOLVES):
            left = self.ends - time.monotonic()
            if left <= 0:
                return "time"
            there = self.program.at(level, graph=True)
            targets = Targets(gap=self.gap, time_limit=left, on_progress=on_progress)
            design = solve_optimal(there, targets, start=design)
            self.tried.append((math.log(level), math.log(design.loss)))
            if design.loss <= target and (self.nearest is None or level < self.nearest[0]):
                self.nearest = level, design
            if design.stopped in ("time", "interrupt"):
                return design.stopped
            if self.nearest is not None and self.nearest[1].loss >= target * (1 - self.gap):
                return "gap"
            level *= float((target * (1 - self.gap / 2) / design.loss) ** (-1 / self.power))
        return "precision"

    @property
    def power(self) -> float:
        """The power of the level that the loss falls with, by the first and the last design that lie apart; else 1."""
        (x, y), (z, w) = self.tried[0], self.tried[-1]
        if abs(z - x) <= _APART * self.gap:
            return 1.0
        return min(max((y - w) / (z - x), _POWER[0]), _POWER[1])

    def ruled_out(self, level: float, design: Design) -> float | None:
        """A level whose bound, by the multipliers of a design at another, exceeds the target; None if none is found."""
        target, trial = self.program.target, level
        for _ in range(_PRICINGS):
            there = self.program.at(trial, graph=True)
            pricer, bound = ConePricer.of(there), 0.5 * target
            for power in (1.0, self.power):
                dual = design.dual * (level / trial) ** power
                bound = max(bound, lower_bound(dual, pricer.price(there.weighted_loss, dual).value))
            if bound > target:
                return trial
            trial *= bound / (target * (1 + _ABOVE))
        return None

    def designed_out(
        self, level: float, design: Design, on_progress: Callable[[Progress], None] | None
    ) -> float | None:
        """A level whose own design has a bound above the target, for where multipliers of another do not carry."""
        target = self.program.target
        for _ in range(_SOLVES):
            left = self.ends - time.monotonic()
            if left <= 0 or design.stopped in ("time", "interrupt"):
                return None
            level *= float((min(design.lower_bound / target, 1.0) / (1 + self.gap / 2)) ** (1 / self.power))
            there = self.program.at(level, graph=True)
            targets = Targets(gap=self.gap, time_limit=left, on_progress=on_progress)
            design = solve_optimal(there, targets, start=design)
            if design.lower_bound > target:
                return level
        return None


def _start(program: MatchedOptimal) -> float:
    try:
        return _START * match_distance(program.problem, "geometric_clamped", program.target).epsilon
    except UnsuitableError:
        return 2 / program.target


def _mixed(program: MatchedOptimal, design: Design, epsilon: float) -> tuple[NDArray[np.uint64], float, float]:
    """A design with as much of the constant report as the target allows: mass, its level over all pairs, the share."""
    problem = program.at(epsilon)
    share = (program.target - design.loss) / (problem.constant_loss - design.loss)
    table = design.mass.astype(np.float64) * ((1 - share) / ROW_SUM)
    table[:, problem.best_constant] += share
    level = epsilon * max_log_ratio(round_to_integers(table, problem.edges), problem.edges).value * (1 + _SLACK)
    claimed = program.at(level)
    return repair(table, claimed.edges, claimed.weighted_loss, overwrite=True), level, share

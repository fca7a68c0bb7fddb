"""Solve the matched optimal program: two or three optimal designs, and their multipliers priced at other levels.

A design at level g of the graph (programs/matching/matched_optimal.py) with expected distance at most the target gives,
at up to k g, a mechanism that is private over all pairs. The expected distance is near a power of the level, so the
next level follows from the last two. The mechanism is mixed with the best constant report, rounded and certified over
all pairs at the level it truly has. From below: multipliers of one level, scaled as the loss is, bound the loss at any
other level; the largest level found whose bound exceeds the target is below the least eps.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import SolverError, UnsuitableError
from mechdesign.mechanism.table.certificate import ROW_SUM, max_log_ratio
from mechdesign.mechanism.table.dataset import total_cost
from mechdesign.mechanism.table.repair import repair, round_to_integers
from mechdesign.programs.matching.matched_optimal import MatchedOptimal
from mechdesign.solvers.kernels.design import Design
from mechdesign.solvers.kernels.pricing import ConePricer, lower_bound
from mechdesign.solvers.kernels.progress import Progress
from mechdesign.solvers.matching.matched_distance import match_distance
from mechdesign.solvers.optimal.aggregation import aggregate

_SHARE = 0.2  # of the excess k - 1 of the graph metric: designs need no smaller gap than this
_START = 0.97  # of the level of clamped noise, near which the search begins
_SOLVES = 12
_PRICINGS = 8
_APART = 5.0  # gaps, in the logarithm, by which levels must differ to tell a power
_ABOVE = 1e-5  # of the target, by which a bound is meant to exceed it
_POWER = (0.3, 4.0)  # of the level that the expected distance may fall with
_SLACK = 1e-9  # by which the claimed level exceeds the true one, so that the repair has its margin
_ROUNDED = 1 - 2.0**-40  # levels that a bound rules out are told lower by this: edges are rounded down


def solve_matched_optimal(
    program: MatchedOptimal,
    *,
    gap: float = 1e-3,
    time_limit: float = math.inf,
    on_progress: Callable[[Progress], None] | None = None,
) -> Design:
    """Enclose the least eps to about twice `gap`, or the excess of the graph metric where that is more.

    Returns: the design at its claimed_epsilon, nats per unit, certified over all pairs; loss, its expected distance in
        units; least_epsilon: no mechanism that is private at this or less has the distance asked for, left out where
        none was proved; constant_share, of the constant report that was mixed in.
    Raises: SolverError where the time ends before a mechanism comes as near as asked.
    Cost: two or three optimal designs, each started from the one before, and some pricings; where these prove nothing,
    one or two designs more.
    """
    search = _Search(program=program, gap=max(gap, _SHARE * (program.excess - 1)), ends=time.monotonic() + time_limit)
    stopped = search.run(on_progress)
    if search.nearest is None:
        raise SolverError(
            "the search ended before a mechanism came as near as asked",
            field="time-limit",
            value=time_limit,
            remedy="allow more time, or use fewer cells",
        )
    level, design = search.nearest
    ruled_out = search.ruled_out(level, design) or search.designed_out(level, design, on_progress)
    mass, epsilon, share = _mixed(program, design, level * program.excess)
    return Design(
        problem=program.at(epsilon),
        mass=mass,
        loss=total_cost(mass, program.at(epsilon).weighted_loss),
        claimed_epsilon=epsilon,
        figures={} if ruled_out is None else {"least_epsilon": ruled_out * _ROUNDED},
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
            design = aggregate(there, gap=self.gap, time_limit=left, start=design, on_progress=on_progress)
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
            pricer, bound = ConePricer(there.edges, there.domain.size, there.anchors), 0.5 * target
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
            design = aggregate(there, gap=self.gap, time_limit=left, start=design, on_progress=on_progress)
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

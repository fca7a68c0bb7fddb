"""Sessions simulated for many people at once, by the clock rule and the risk rule, and ranked by their error.

The same steps as `Session` takes one by one for one person: the model's step, the rule on public history, a draw from a
certified table, Bayes' rule, the place of least expected distance. Draws are pseudo-random, beliefs in single
precision.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from mechdesign.sessions.setting import Released, Setting, draw

COUNTS = (1, 2, 3, 4, 6, 8, 12)  # reports a day
SHARES = (0.15, 0.25, 0.35, 0.45, 0.55, 0.65)  # of the constant report's error, above which the risk rule reports
FIRST = 2.0  # times the cost of the others, of a day's first report, where that is tried
HOURS = {2: (9.5, 19.0), 3: (3.0, 9.5, 18.5), 4: (3.0, 9.5, 13.0, 18.5), 6: (3.0, 8.5, 10.0, 17.5, 19.0, 21.5)}
_BITS = 24
_Floats = NDArray[np.float64]
_Places = NDArray[np.int64]
_Timing = Callable[[int, _Floats, _Places], _Floats]


@dataclass(frozen=True, kw_only=True)
class Clocked:
    """A report of `costs[k]` nats at `hours[k]` of every day."""

    hours: tuple[float, ...]
    costs: tuple[float, ...]
    kind = "clock"

    def asks(self, ticks: int) -> _Timing:
        """Nats (N,) at a tick of the day, for expected errors (N,) and reports made that day (N,); 0 for no report."""
        at = {int(hour * ticks / 24): cost for hour, cost in zip(self.hours, self.costs, strict=True)}
        return lambda tick, error, used: np.full(len(error), at.get(tick, 0.0))


@dataclass(frozen=True, kw_only=True)
class Risky:
    """Where the expected error exceeds `above`, the k-th report of the day, of costs[k] nats; len(costs) a day."""

    above: float
    costs: tuple[float, ...]
    kind = "risk"

    def asks(self, ticks: int) -> _Timing:
        """As `Clocked.asks`."""
        costs = np.array([*self.costs, 0.0])
        return lambda tick, error, used: np.where(error > self.above, costs[used], 0.0)


TimingRule = Clocked | Risky


def sessions(setting: Setting, places: _Places, rule: TimingRule, rng: np.random.Generator) -> Released:
    """Simulate a clock or a risk rule for traces (N, L) of whole days; each row is one session.

    Cost: L steps of the model for N people.
    """
    asks, ticks = rule.asks(setting.ticks), setting.ticks
    estimates, nats = np.zeros_like(places), np.zeros(places.shape)
    belief = setting.beliefs(len(places))
    used = np.zeros(len(places), np.int64)
    for tick, here in enumerate(places.T):
        if tick % ticks == 0:
            used[:] = 0
        if tick:
            belief.step(tick)
        estimates[:, tick], error = setting.estimate(belief.places())
        costs = nats[:, tick] = asks(tick % ticks, error, used)
        if not costs.any():
            continue
        for cost in np.unique(costs[costs > 0]):
            people = np.flatnonzero(costs == cost)
            table = setting.table(cost)
            belief.see(table[:, draw(table, here[people], rng)].T, people)
        estimates[:, tick], _ = setting.estimate(belief.places())
        used += costs > 0
    return Released(estimates=estimates, nats=nats, home=belief.homes())


def mean_error(setting: Setting, places: _Places, released: Released) -> float:
    """The mean distance in units between positions (N, L) and estimates."""
    return float(setting.distances[places, released.estimates].mean())


def ranked(
    setting: Setting, places: _Places, rules: Iterable[TimingRule], seed: int, deadline: float = math.inf
) -> list[tuple[float, TimingRule]]:
    """Mean errors in units for these traces, and the rules, the best first; every one with the same random numbers.

    Those that no time is left for, until a deadline of time.monotonic(), are left out, but for the first.
    """
    tried: list[tuple[float, TimingRule]] = []
    for rule in rules:
        if tried and time.monotonic() > deadline:
            break
        released = sessions(setting, places, rule, np.random.default_rng(seed))
        tried.append((mean_error(setting, places, released), rule))
    return sorted(tried, key=lambda pair: pair[0])


def clocks(setting: Setting, total: float) -> list[Clocked]:
    """Clock rules to choose from, of `total` nats a day."""
    counts = [count for count in COUNTS if count <= setting.ticks]
    hours = [even_hours(count) for count in counts]
    hours += [HOURS[count] for count in counts if count in HOURS and count <= setting.ticks / 4]
    return [Clocked(hours=each, costs=split(total, len(each))) for each in hours]


def risks(
    setting: Setting,
    total: float,
    *,
    counts: Iterable[int] = COUNTS,
    shares: Iterable[float] = SHARES,
    firsts: Iterable[float] = (1.0,),
) -> list[Risky]:
    """Risk rules to choose from: reports a day, thresholds as shares of the constant report's error, first costs."""
    unit = setting.constant_error
    return [
        Risky(above=share * unit, costs=split(total, count, first))
        for count, share, first in product(counts, shares, firsts)
        if 1 <= count <= setting.ticks
    ]


def even_hours(count: int) -> tuple[float, ...]:
    """So many hours of a day, from midnight on, equally far apart."""
    return tuple(float(hour) for hour in np.arange(count) * 24 / count)


def split(total: float, count: int, first: float = 1.0) -> tuple[float, ...]:
    """Costs of `count` reports, multiples of 2^-24 that sum to `total` or less, the first `first` times the others."""
    shares = total * np.array([first, *[1.0] * (count - 1)]) / (first + count - 1)
    return tuple(float(x) for x in np.floor(shares * 2**_BITS) / 2**_BITS)

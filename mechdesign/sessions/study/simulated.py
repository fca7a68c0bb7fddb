"""Sessions simulated for many people at once, by the clock rule and the risk rule, and ranked by their error."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from mechdesign.base.arrays import IntegerMatrix
from mechdesign.sessions.rules import Clock, Risk
from mechdesign.sessions.study.setting import Setting, SimulatedRun, draw

COUNTS = (1, 2, 3, 4, 6, 8, 12)  # reports a day
SHARES = (0.15, 0.25, 0.35, 0.45, 0.55, 0.65)  # of the constant report's error, above which the risk rule reports
FIRST = 2.0  # times the cost of the others, of a day's first report, where that is tried
HOURS = {2: (9.5, 19.0), 3: (3.0, 9.5, 18.5), 4: (3.0, 9.5, 13.0, 18.5), 6: (3.0, 8.5, 10.0, 17.5, 19.0, 21.5)}
_BITS = 24  # of a cost: sums of a day's costs are then exact in doubles, and within the total
_TOGETHER = 1 << 14  # numbers of the beliefs that are simulated at a time, so that they fit into a processor's cache


# The steps are those of `Session`. Draws are pseudo-random, beliefs in single precision.
@dataclass(frozen=True, kw_only=True)
class PricedRule:
    """A rule with the cost of its k-th report of a day, in nats within the radius; table j costs the j-th of them."""

    rule: Clock | Risk
    costs: tuple[float, ...]

    @classmethod
    def clock(cls, hours: tuple[float, ...], costs: tuple[float, ...]) -> PricedRule:
        """A report of `costs[k]` nats at `hours[k]` of every day; hours rise."""
        return cls(rule=Clock(hours=hours, table_numbers=_table_numbers(costs)), costs=costs)

    @classmethod
    def risk(cls, threshold: float, costs: tuple[float, ...]) -> PricedRule:
        """Where the expected error exceeds `threshold`, the k-th report of the day; len(costs) a day."""
        return cls(
            rule=Risk(threshold=threshold, max_reports=len(costs), table_numbers=_table_numbers(costs)), costs=costs
        )

    @property
    def table_costs(self) -> list[float]:
        return sorted(set(self.costs))

    def describe(self) -> dict[str, Any]:
        when = {"hours": self.rule.hours} if isinstance(self.rule, Clock) else {"threshold": self.rule.threshold}
        return {"kind": self.rule.kind, **when, "costs": self.costs}


def _table_numbers(costs: tuple[float, ...]) -> tuple[int, ...]:
    tables = sorted(set(costs))
    return tuple(tables.index(cost) for cost in costs)


def sessions(
    setting: Setting, places: IntegerMatrix, rules: Sequence[PricedRule], rng: np.random.Generator
) -> list[SimulatedRun]:
    """Simulate clock and risk rules for traces (N, L) of whole days; all rules share their random numbers."""
    people, ticks = len(places), setting.ticks
    # A cost of 0 behind the last report of every rule: then nothing is drawn, whatever the expected error.
    longest = max(len(priced.costs) for priced in rules)
    costs = np.array([[*priced.costs, *[0.0] * (longest + 1 - len(priced.costs))] for priced in rules])
    thresholds = np.stack([priced.rule.thresholds(ticks) for priced in rules])
    prices = np.unique(costs[costs > 0])
    tables = np.stack([setting.table(cost) for cost in prices])
    chances, drawn = rng.random(places.size), np.zeros(len(rules), np.int64)
    rule, here = np.repeat(np.arange(len(rules)), people), np.tile(places, (len(rules), 1))
    estimates, nats, used = np.zeros_like(here), np.zeros(here.shape), np.zeros(len(here), np.int64)
    chain, belief = setting.filter, setting.beliefs(len(here))
    for tick in range(here.shape[1]):
        # As in `Session`: the model's step, the rule on public history, a draw, Bayes' rule, the best place.
        if tick % ticks == 0:
            used[:] = 0
        if tick:
            belief = chain.step(belief, tick)
        estimates[:, tick], error = setting.estimate(chain.places(belief))
        cost = nats[:, tick] = np.where(error > thresholds[rule, tick % ticks], costs[rule, used], 0.0)
        rows = np.flatnonzero(cost)
        if not len(rows):
            continue
        # The k-th draw of every rule takes the k-th random number: rules are compared on equal luck. Equal costs of one
        # rule are neighbours in this order.
        rows = rows[np.lexsort((cost[rows], rule[rows]))]
        count = np.bincount(rule[rows], minlength=len(rules))
        chance = chances[(drawn - np.cumsum(count) + count)[rule[rows]] + np.arange(len(rows))]
        drawn += count
        table = np.searchsorted(prices, cost[rows])
        likelihood = tables[table, :, draw(tables[table, here[rows, tick]], chance)]
        belief[rows] = chain.update(belief[rows], likelihood)
        estimates[rows, tick], _ = setting.estimate(chain.places(belief)[rows])
        used[rows] += 1
    home = chain.homes(belief)
    parts = (slice(first, first + people) for first in range(0, len(here), people))
    return [SimulatedRun(estimates=estimates[part], nats=nats[part], home=home[part]) for part in parts]


def mean_error(setting: Setting, places: IntegerMatrix, run: SimulatedRun) -> float:
    """The mean distance in units between positions (N, L) and estimates."""
    return float(setting.distances[places, run.estimates].mean())


def rank_rules(
    setting: Setting, places: IntegerMatrix, rules: Sequence[PricedRule], seed: int, deadline: float = math.inf
) -> list[tuple[float, PricedRule]]:
    """Mean errors for these traces and the rules, the best first; a deadline of time.monotonic() leaves some out."""
    ranked: list[tuple[float, PricedRule]] = []
    together = max(1, _TOGETHER // (len(places) * setting.states))
    for first in range(0, len(rules), together):
        if ranked and time.monotonic() > deadline:
            break
        batch = rules[first : first + together]
        # The same seed for every batch: all rules see the same random numbers.
        runs = sessions(setting, places, batch, np.random.default_rng(seed))
        ranked += [(mean_error(setting, places, run), rule) for run, rule in zip(runs, batch, strict=True)]
    return sorted(ranked, key=lambda pair: pair[0])


def clocks(setting: Setting, total: float) -> list[PricedRule]:
    """Clock rules to choose from, of `total` nats a day."""
    counts = [count for count in COUNTS if count <= setting.ticks]
    hours = [even_hours(count) for count in counts]
    hours += [HOURS[count] for count in counts if count in HOURS and count <= setting.ticks / 4]
    return [PricedRule.clock(times, split(total, len(times))) for times in hours]


def risks(
    setting: Setting,
    total: float,
    *,
    counts: Iterable[int] = COUNTS,
    shares: Iterable[float] = SHARES,
    firsts: Iterable[float] = (1.0,),
) -> list[PricedRule]:
    """Risk rules to choose from: reports a day, thresholds as shares of the constant report's error, first costs."""
    unit = setting.constant_error
    return [
        PricedRule.risk(share * unit, split(total, count, first))
        for count, share, first in product(counts, shares, firsts)
        if 1 <= count <= setting.ticks
    ]


def even_hours(count: int) -> tuple[float, ...]:
    """Hours of a day at equal distances, the first at midnight."""
    return tuple(float(hour) for hour in np.arange(count) * 24 / count)


def split(total: float, count: int, first: float = 1.0) -> tuple[float, ...]:
    """Costs of `count` reports, multiples of 2^-24 that sum to `total` or less, the first `first` times the others."""
    shares = total * np.array([first, *[1.0] * (count - 1)]) / (first + count - 1)
    return tuple(float(x) for x in np.floor(shares * 2**_BITS) / 2**_BITS)

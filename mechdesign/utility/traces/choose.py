"""Parameters of rules, chosen by simulation on people that are not those that are measured."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.utility.traces.rivals import Predicting, predictive, remembered
from mechdesign.utility.traces.sessions import Clocked, Moving, Risky, even_hours, moved_sessions, sessions, split
from mechdesign.utility.traces.setting import Released, Setting

COUNTS = (1, 2, 3, 4, 6, 8, 12)  # reports a day
SHARES = (0.15, 0.25, 0.35, 0.45, 0.55, 0.65)  # of the constant report's error, above which the risk rule reports
FIRST = 2.0  # times the cost of the others, of a day's first report, where that is tried
HOURS = {2: (9.5, 19.0), 3: (3.0, 9.5, 18.5), 4: (3.0, 9.5, 13.0, 18.5), 6: (3.0, 8.5, 10.0, 17.5, 19.0, 21.5)}
_Places = NDArray[np.int64]
_Run = Callable[[Setting, _Places, Any, np.random.Generator], Released]


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """A rule, and the mean distance in units between its positions and the true ones of those it was chosen on."""

    rule: Any
    error: float


def mean_error(setting: Setting, places: _Places, released: Released) -> float:
    """The mean distance between positions (N, L) and estimates."""
    return float(setting.distances[places, released.estimates].mean())


def ranked(
    setting: Setting, places: _Places, rules: Iterable[Any], run: _Run, seed: int, deadline: float = math.inf
) -> list[Chosen]:
    """The rules by their error for these traces, the best first; every one with the same random numbers. Those that no
    time is left for, until a deadline of time.monotonic(), are left out, but for the first.
    """
    tried: list[Chosen] = []
    for rule in rules:
        if tried and time.monotonic() > deadline:
            break
        made = run(setting, places, rule, np.random.default_rng(seed))
        tried.append(Chosen(rule=rule, error=mean_error(setting, places, made)))
    return sorted(tried, key=lambda each: each.error)


def choose(
    setting: Setting, places: _Places, rules: Iterable[Any], run: _Run, seed: int, deadline: float = math.inf
) -> Chosen:
    """The first of the `ranked`."""
    return ranked(setting, places, rules, run, seed, deadline)[0]


def clocks(setting: Setting, total: float) -> list[Clocked]:
    """Clock rules to choose from."""
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


def choose_clock(setting: Setting, places: _Places, total: float, seed: int) -> Chosen:
    """Hours and number of reports of the clock rule."""
    return choose(setting, places, clocks(setting, total), sessions, seed)


def choose_risk(setting: Setting, places: _Places, total: float, seed: int) -> Chosen:
    """Threshold, number and first cost of the risk rule: on a coarse grid, then around the best."""
    best = choose(setting, places, risks(setting, total), sessions, seed)
    count, share = len(best.rule.costs), best.rule.above / setting.constant_error
    near = {"counts": (count - 1, count, count + 1), "shares": (share - 0.05, share, share + 0.05)}
    finer = choose(setting, places, risks(setting, total, **near, firsts=(1.0, FIRST)), sessions, seed)
    return min(best, finer, key=lambda each: each.error)


def choose_moved(setting: Setting, places: _Places, total: float, seed: int) -> Chosen:
    """Number, shares of the test and distance of the moved-test."""
    rules = [
        Moving(most=most, above=far * setting.constant_error, offset=a * total / most, slope=b * total / most,
               cost=(1 - a - b) * total / most)
        for most in (1, 2, 3, 4, 6)
        for a, b in ((0.1, 0.3), (0.2, 0.4))
        for far in (0.4, 0.8, 1.6)
    ]  # fmt: skip
    return choose(setting, places, rules, moved_sessions, seed)


def choose_predictive(setting: Setting, places: _Places, total: float, seed: int) -> Chosen:
    """Number of reports, share of the tests, their number and distance of the predictive mechanism."""
    rules = [
        Predicting(above=far * setting.constant_error, check=share * total / tests, cost=(1 - share) * total / count)
        for count in (1, 2, 3, 4, 6)
        for share in (0.1, 0.3, 0.6)
        for tests in sorted({setting.ticks, min(4 * count, setting.ticks)})
        for far in (0.0, 0.35, 0.9)
    ]
    run: _Run = lambda setting, places, rule, rng: predictive(setting, places, total, rule, rng)  # noqa: E731
    return choose(setting, places, rules, run, seed)


def choose_remembered(setting: Setting, places: _Places, total: float, seed: int) -> Chosen:
    """How many places of a day are paid for."""
    run: _Run = lambda setting, places, count, rng: remembered(setting, places, total, count, rng)  # noqa: E731
    return choose(setting, places, COUNTS, run, seed)

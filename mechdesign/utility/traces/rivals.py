"""What sessions are measured against, each at the same certified total a day.

* constant: one place, the best before anything is known; costs nothing.
* independent: a report at every tick, each at a T-th of the total, taken as it is; with a static remap: each report
  replaced by the place of least expected distance given that report alone; with the filter: as a session estimates.
* predictive: the last report is repeated while a test with fresh Laplace noise at every tick says that it is still
  near, and else a new one is drawn (K. Chatzikokolakis, C. Palamidessi, M. Stronati, "A predictive
  differentially-private mechanism for mobility traces", PETS 2014); reports remapped as above. Where too little of the
  day is left, the last report stays.
* remembered: a place that was reported that day is answered with the same report, a further one pays. Its total is a
  claim about traces with the same pattern of equal places only; about others it says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.utility.traces.sessions import Clocked, even_hours, sessions, split
from mechdesign.utility.traces.setting import Released, Setting, draw

_Floats = NDArray[np.float64]
_Places = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Predicting:
    """A test of `check` nats at every tick whether the last report is farther than `above`, in units, and reports of
    `cost` nats.
    """

    above: float
    check: float
    cost: float


def constant(setting: Setting, places: _Places) -> Released:
    """The best place without any report."""
    return _released(setting, np.full(places.shape, setting.constant), np.zeros(places.shape))


def independent(
    setting: Setting, places: _Places, total: float, rng: np.random.Generator, *, remap: bool = False
) -> Released:
    """A report at every tick, of total / T nats each. Cost: O(N L n)."""
    cost = total / setting.ticks
    reports = draw(setting.table(cost), places.ravel(), rng).reshape(places.shape)
    estimates = _targets(setting, cost)[reports] if remap else reports
    return _released(setting, estimates, np.full(places.shape, cost))


def filtered(setting: Setting, places: _Places, total: float, rng: np.random.Generator) -> Released:
    """The same reports with the filter."""
    ticks = setting.ticks
    return sessions(setting, places, Clocked(hours=even_hours(ticks), costs=split(total, ticks)), rng)


def predictive(setting: Setting, places: _Places, total: float, rule: Predicting, rng: np.random.Generator) -> Released:
    """The predictive mechanism; a test that nothing is left for is not made."""
    people, spread = len(places), setting.within / rule.check
    last, left = np.full(people, setting.constant), np.full(people, total)
    estimates, nats = np.zeros_like(places), np.zeros(places.shape)
    table, targets = setting.table(rule.cost), _targets(setting, rule.cost)
    for tick, here in enumerate(places.T):
        if tick % setting.ticks == 0:
            left[:] = total
        tested = left >= rule.check + rule.cost
        away = setting.distances[here, last] > rule.above + rng.laplace(scale=spread, size=people)
        fresh = tested & away
        if fresh.any():
            last[fresh] = targets[draw(table, here[fresh], rng)]
        nats[:, tick] = tested * rule.check + fresh * rule.cost
        left -= nats[:, tick]
        estimates[:, tick] = last
    return _released(setting, estimates, nats)


def remembered(setting: Setting, places: _Places, total: float, count: int, rng: np.random.Generator) -> Released:
    """Reports of total / count nats for the first `count` places of every day; from further places the last report.

    Cost: O(N L n).
    """
    people, ticks, n = len(places), setting.ticks, setting.domain.size
    cost = total / count
    targets = _targets(setting, cost)
    drawn = targets[draw(setting.table(cost), places.ravel(), rng)].reshape(places.shape)
    kept, used = np.full((people, n), -1), np.zeros(people, np.int64)
    last, everyone = np.full(people, setting.constant), np.arange(people)
    estimates, nats = np.zeros_like(places), np.zeros(places.shape)
    for tick, here in enumerate(places.T):
        if tick % ticks == 0:
            kept[:], used[:] = -1, 0
        fresh = (kept[everyone, here] < 0) & (used < count)
        kept[everyone[fresh], here[fresh]] = drawn[fresh, tick]
        used += fresh
        found = kept[everyone, here]
        last = np.where(found >= 0, found, last)
        estimates[:, tick], nats[:, tick] = last, fresh * cost
    return _released(setting, estimates, nats)


def _targets(setting: Setting, cost: float) -> _Places:
    """For every report of a table the place of least expected distance under the model's places away from home."""
    joint = np.asarray(setting.model.away)[:, None] * setting.table(cost)
    return (setting.distances @ joint).argmin(axis=0)


def _released(setting: Setting, estimates: _Places, nats: _Floats) -> Released:
    spent = nats.reshape(len(nats), -1, setting.ticks).sum(axis=2)
    return Released(estimates=estimates, reports=nats > 0, spent=spent)

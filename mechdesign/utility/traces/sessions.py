"""Sessions simulated for many people at once: the clock rule, the risk rule and the moved-test, with the filter.

The same steps as `Session` takes one by one for one person: the model's step, the rule on public history, a draw from a
certified table, Bayes' rule, the place of least expected distance. Draws are pseudo-random, beliefs in single
precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.mechanism.sampling.sampler import Sampler
from mechdesign.mechanism.session.moved import MovedTest, Test
from mechdesign.utility.traces.setting import Beliefs, ExactBeliefs, Released, Setting, draw

_BITS = 24
UNITS = 2  # whole steps between neighbours that a moved-test measures in
_Floats = NDArray[np.float64]
_Places = NDArray[np.int64]
_Timing = Callable[[int, _Floats, _Places], _Floats]


@dataclass(frozen=True, kw_only=True)
class Clocked:
    """A report of `costs[k]` nats at `hours[k]` of every day."""

    hours: tuple[float, ...]
    costs: tuple[float, ...]

    def asks(self, ticks: int) -> _Timing:
        """Nats (N,) at a tick of the day, for expected errors (N,) and reports made that day (N,); 0 for no report."""
        at = {int(hour * ticks / 24): cost for hour, cost in zip(self.hours, self.costs, strict=True)}
        return lambda tick, error, used: np.full(len(error), at.get(tick, 0.0))


@dataclass(frozen=True, kw_only=True)
class Risky:
    """Where the expected error exceeds `above`, the k-th report of the day, of costs[k] nats; len(costs) a day."""

    above: float
    costs: tuple[float, ...]

    def asks(self, ticks: int) -> _Timing:
        """As `Clocked.asks`."""
        costs = np.array([*self.costs, 0.0])
        return lambda tick, error, used: np.where(error > self.above, costs[used], 0.0)


@dataclass(frozen=True, kw_only=True)
class Moving:
    """`most` tests a day, each of offset + slope nats, and of `cost` for the report that ends it, made where the place
    is more than about `above`, in units, from the estimate that stood when the test began.
    """

    most: int
    above: float
    offset: float
    slope: float
    cost: float


def sessions(setting: Setting, places: _Places, rule: Clocked | Risky, rng: np.random.Generator) -> Released:
    """Simulate a clock or a risk rule for traces (N, L) of whole days; each row is one session.

    Cost: L steps of the model for N people.
    """
    asks, ticks = rule.asks(setting.ticks), setting.ticks
    made = _Record.empty(setting, places)
    belief = setting.beliefs(len(places))
    used = np.zeros(len(places), np.int64)
    expected = setting.estimate(belief.places())
    for tick, here in enumerate(places.T):
        if tick % ticks == 0:
            used[:] = 0
        if tick:
            belief.step(tick)
            expected = setting.estimate(belief.places())
        nats = asks(tick % ticks, expected[1], used)
        if nats.any():
            _report(setting, belief, here, nats, rng)
            expected = setting.estimate(belief.places())
        used += nats > 0
        made.keep(tick, expected[0], nats > 0, nats)
    return made.released(belief)


def moved_sessions(setting: Setting, places: _Places, rule: Moving, rng: np.random.Generator) -> Released:
    """Simulate the moved-test, the integers of its certificate as probabilities; its belief about the hidden offset is
    kept beside that about the place, as if the two were independent.
    """
    ticks, people = setting.ticks, len(places)
    made, belief = _Record.empty(setting, places), setting.beliefs(people)
    test = _test(setting, rule)
    prior, far = test.offsets.prior(), test.distance
    chances = np.stack([test.offsets.chances(row) for row in far])  # (n, r, n)
    offset, running = np.zeros(people, np.int64), np.zeros(people, bool)
    hidden, against = np.tile(prior, (people, 1)), np.zeros(people, np.int64)
    used = np.zeros(people, np.int64)
    for tick, here in enumerate(places.T):
        if tick % ticks == 0:
            used[:], running[:] = 0, False
        if tick:
            belief.step(tick)
        begin = ~running & (used < rule.most)
        if begin.any():
            against[begin] = setting.estimate(belief.places())[0][begin]
            offset[begin] = rng.choice(len(prior), size=int(begin.sum()), p=prior)
            hidden[begin] = prior
            used, running = used + begin, running | begin
        nats = begin * (rule.offset + rule.slope)
        on = np.flatnonzero(running)
        if len(on):
            moved = rng.random(len(on)) < chances[against[on], offset[on], here[on]]
            likely = np.where(moved[:, None, None], chances[against[on]], 1 - chances[against[on]])
            where = belief.places()[on]
            belief.see(np.einsum("pr,prn->pn", hidden[on], likely), on)
            told = hidden[on] * np.einsum("prn,pn->pr", likely, where)
            hidden[on] = told / np.maximum(told.sum(axis=1, keepdims=True), np.finfo(float).tiny)
            cost = np.zeros(people)
            cost[on[moved]] = rule.cost
            _report(setting, belief, here, cost, rng)
            running[on[moved]] = False
            nats = nats + cost
        made.keep(tick, setting.estimate(belief.places())[0], nats > 0, nats)
    return made.released(belief)


def _test(setting: Setting, rule: Moving) -> Test:
    """The certified integers of a moved-test; the metric at scale 1 is a nat within the radius."""
    admission = Sampler(setting.mechanism(1.0)).admission
    above = rule.above / setting.within
    asked = MovedTest(above=above, offset=rule.offset, slope=rule.slope, most=rule.most, units=UNITS)
    return Test(rule=asked, admission=admission, edges=replace(admission.metric, scale=1.0).edges(setting.domain))


def _report(
    setting: Setting, belief: Beliefs | ExactBeliefs, here: _Places, nats: _Floats, rng: np.random.Generator
) -> None:
    for cost in np.unique(nats[nats > 0]):
        people = np.flatnonzero(nats == cost)
        table = setting.table(cost)
        belief.see(table[:, draw(table, here[people], rng)].T, people)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Record:
    """What a simulation writes down tick by tick."""

    ticks: int
    estimates: _Places
    reports: NDArray[np.bool_]
    spent: _Floats

    @classmethod
    def empty(cls, setting: Setting, places: _Places) -> _Record:
        days = places.shape[1] // setting.ticks
        return cls(
            ticks=setting.ticks,
            estimates=np.zeros(places.shape, np.int64),
            reports=np.zeros(places.shape, bool),
            spent=np.zeros((len(places), days)),
        )

    def keep(self, tick: int, estimates: _Places, reports: NDArray[np.bool_], nats: NDArray[Any]) -> None:
        self.estimates[:, tick], self.reports[:, tick] = estimates, reports
        self.spent[:, tick // self.ticks] += nats

    def released(self, belief: Beliefs | ExactBeliefs) -> Released:
        return Released(estimates=self.estimates, reports=self.reports, spent=self.spent, home=belief.homes())


def even_hours(count: int) -> tuple[float, ...]:
    """So many hours of a day, from midnight on, equally far apart."""
    return tuple(float(hour) for hour in np.arange(count) * 24 / count)


def split(total: float, count: int, first: float = 1.0) -> tuple[float, ...]:
    """Costs of `count` reports, multiples of 2^-24 that sum to `total` or less, the first `first` times the others."""
    shares = total * np.array([first, *[1.0] * (count - 1)]) / (first + count - 1)
    return tuple(float(x) for x in np.floor(shares * 2**_BITS) / 2**_BITS)

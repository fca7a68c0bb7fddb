"""What mechanisms of traces are simulated with: places, a public model, certified tables by cost; what comes out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.records import ReprMixin
from mechdesign.mechanism.views import probabilities
from mechdesign.problem.domain import Domain
from mechdesign.problem.metric import Euclidean
from mechdesign.sessions.belief import best_places
from mechdesign.sessions.movement import HOUSED, HomeAway, HomeAwayChain
from mechdesign.sessions.tables import report_table

_DIGITS = 9  # of a cost, that tell tables apart
_TINY = float(np.finfo(float).tiny)
_Floats = NDArray[np.float64]
_Places = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Released(ReprMixin):
    """What a mechanism made of the traces of N people over L ticks.

    estimates (N, L), places; nats (N, L) within the radius that were paid at each tick, 0 without a report; home
    (N, n), what a filter believes about homes in the end, where one ran.
    """

    estimates: _Places
    nats: _Floats
    home: _Floats | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting(ReprMixin):
    """domain and model, public; within, the radius in the unit of the domain for which costs are counted; exact,
    whether filters run the chain of the model, as a session does, or factor it (`Beliefs`); made, certified tables
    and their probabilities by cost, as they are asked for.
    """

    domain: Domain
    model: HomeAway
    within: float
    exact: bool = False
    designs: dict[float, tuple[xr.Dataset, _Floats]] = field(default_factory=dict, repr=False)

    @property
    def ticks(self) -> int:
        """Ticks of a day."""
        return self.model.ticks

    @cached_property
    def chain(self) -> HomeAwayChain:
        """The model on the places."""
        metric = Euclidean(epsilon=1 / self.within, unit=self.domain.unit)
        return self.model.over(self.domain, metric, np.asarray(self.model.away))

    @cached_property
    def exactly(self) -> Setting:
        """The same with filters that run the chain. Tables are shared."""
        return replace(self, exact=True)

    @cached_property
    def distances(self) -> _Floats:
        """Euclidean distances (n, n) in the unit of the domain."""
        return self.domain.euclidean_to(self.domain)

    @cached_property
    def constant(self) -> int:
        """The place of least expected distance from where people are over a day."""
        belief, total = self.chain.initial[None], np.zeros(self.domain.size)
        for tick in range(self.ticks):
            belief = self.chain.step(belief, tick) if tick else belief
            total += self.chain.places(belief)[0]
        return int((total @ self.distances).argmin())

    @cached_property
    def constant_error(self) -> float:
        """The expected distance of that place from the model's first position."""
        return float(self.distances[self.constant] @ self.chain.places(self.chain.initial[None])[0])

    def mechanism(self, nats: float) -> xr.Dataset:
        """The certified table for a report that costs at most `nats` within the radius, made once."""
        return self._entry(nats)[0]

    def table(self, nats: float) -> _Floats:
        """Its probabilities (n, n)."""
        return self._entry(nats)[1]

    def _entry(self, nats: float) -> tuple[xr.Dataset, _Floats]:
        key = round(float(nats), _DIGITS)
        if key not in self.designs:
            mechanism = report_table(self.domain, nats, within=self.within)
            self.designs[key] = mechanism, probabilities(mechanism).values
        return self.designs[key]

    @property
    def states(self) -> int:
        """How many states a filter weighs for a person."""
        return len(self.chain.initial) if self.exact else self.domain.size

    def beliefs(self, people: int) -> Beliefs | ExactBeliefs:
        """The filter before anything is released."""
        return (ExactBeliefs if self.exact else Beliefs)(self, people)

    def estimate(self, places: NDArray[Any]) -> tuple[_Places, NDArray[Any]]:
        """For distributions (N, n) the places of least expected distance (N,), and that distance."""
        return best_places(places, self.distances.astype(places.dtype, copy=False))


class Beliefs:
    """What a filter believes about N people at once.

    The state (home, place) of `HomeAway` is factored: home h ~ H (N, n), place when away ~ O (N, n), at home with
    probability p (N,). With the model's rates and J of a tick, and likelihoods P(y|u) of what was released,

        predict   p' = (1 - p) back + p (1 - leave),  O' prop. (1 - p) (1 - back) (O + wander (O J - O)) + p leave H J
        see       H, O, p by Bayes' rule, H as far as the person is at home

    A tick is O(N n^2) instead of O(N n^3) of the chain that a session runs. On days of 50 ticks from midnight on, mean
    errors are those of the chain to 2 %; over two weeks it loses homes that the chain keeps: see `exact`.
    """

    def __init__(self, setting: Setting, people: int) -> None:
        model = setting.model
        self.chain = setting.chain
        self.home = np.tile(np.asarray(model.home, float), (people, 1))
        self.away = np.tile(np.asarray(model.away, float), (people, 1))
        self.housed = np.full(people, HOUSED)

    def step(self, tick: int) -> None:
        """Predict a tick from the one before."""
        leave, back, wander, jump = self.chain.rates(tick)
        stay, left = (1 - self.housed) * (1 - back), self.housed * leave
        away = stay[:, None] * (self.away + wander * (self.away @ jump - self.away)) + left[:, None] * (
            self.home @ jump
        )
        self.away = away / np.maximum(stay + left, _TINY)[:, None]
        self.housed = 1 - stay - left

    def see(self, likelihood: _Floats, people: _Places) -> None:
        """Take in what was released by some of the people, by its probability (people, n) from every place."""
        home, away, p = self.home[people], self.away[people], self.housed[people]
        at_home, at_away = (home * likelihood).sum(axis=1), (away * likelihood).sum(axis=1)
        now = p * at_home / np.maximum(p * at_home + (1 - p) * at_away, _TINY)
        self.home[people] = home * (1 + now[:, None] * (likelihood / np.maximum(at_home, _TINY)[:, None] - 1))
        self.away[people] = away * likelihood / np.maximum(at_away, _TINY)[:, None]
        self.housed[people] = now

    def places(self) -> _Floats:
        """Where people are (N, n)."""
        return self.housed[:, None] * self.home + (1 - self.housed)[:, None] * self.away

    def homes(self) -> _Floats:
        """Where their homes are (N, n)."""
        return self.home


class ExactBeliefs:
    """The same by the chain itself, in single precision: weights (N, n + n^2)."""

    def __init__(self, setting: Setting, people: int) -> None:
        self.chain = setting.chain
        self.first = self.chain.initial.astype(np.float32)
        self.weights: NDArray[Any] = np.tile(self.first, (people, 1))

    def step(self, tick: int) -> None:
        """As `Beliefs.step`."""
        self.weights = self.chain.step(self.weights, tick)

    def see(self, likelihood: _Floats, people: _Places) -> None:
        """As `Beliefs.see`."""
        seen = self.weights[people]
        seen *= likelihood.astype(np.float32)[:, self.chain.place]
        total = seen.sum(axis=1, keepdims=True)
        self.weights[people] = np.where(total > 0, seen / np.maximum(total, np.finfo(np.float32).tiny), self.first)

    def places(self) -> _Floats:
        """As `Beliefs.places`."""
        return self.chain.places(self.weights)

    def homes(self) -> _Floats:
        """As `Beliefs.homes`."""
        return self.chain.homes(self.weights)


def draw(rows: _Floats, chances: _Floats) -> _Places:
    """Simulated reports (N,) by rows of tables (N, n), from numbers (N,) in [0, 1)."""
    summed = np.cumsum(rows, axis=1)
    return np.minimum((chances[:, None] * summed[:, -1:] > summed).sum(axis=1), rows.shape[1] - 1)

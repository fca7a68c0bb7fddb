"""The setting of simulated sessions: places, a public model, certified tables by cost; and the results."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import xarray as xr

from mechdesign.base.arrays import AnyArray, Indices, IntegerMatrix, Matrix, Vector
from mechdesign.base.records import FrozenRecord
from mechdesign.mechanism.views import probabilities
from mechdesign.problem.domain import Domain
from mechdesign.problem.metrics import Euclidean
from mechdesign.sessions.belief import best_places
from mechdesign.sessions.home_away import FactoredHomeAway, HomeAway, HomeAwayChain
from mechdesign.sessions.tables import report_table

_DIGITS = 9  # of a cost in nats: tables of the same digits are one


@dataclass(frozen=True, kw_only=True, eq=False)
class SimulatedRun(FrozenRecord):
    """Estimates (N, L), nats paid at each tick (N, L), and the filter's belief about homes (N, n) if one ran."""

    estimates: IntegerMatrix
    nats: Matrix
    home: Matrix | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting(FrozenRecord):
    """Public domain and model, the radius of costs, and certified tables by cost; `exact` filters run the chain."""

    domain: Domain
    model: HomeAway
    within: float
    exact: bool = False
    designs: dict[float, tuple[xr.Dataset, Matrix]] = field(default_factory=dict, repr=False)

    @property
    def ticks(self) -> int:
        return self.model.ticks

    @cached_property
    def chain(self) -> HomeAwayChain:
        metric = Euclidean(epsilon=1 / self.within, unit=self.domain.unit)
        return self.model.over(self.domain, metric, np.asarray(self.model.away))

    @cached_property
    def exactly(self) -> Setting:
        """The setting with filters that run the chain. Tables are shared."""
        return replace(self, exact=True)

    @cached_property
    def distances(self) -> Matrix:
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

    def table(self, nats: float) -> Matrix:
        return self._entry(nats)[1]

    def _entry(self, nats: float) -> tuple[xr.Dataset, Matrix]:
        key = round(float(nats), _DIGITS)
        if key not in self.designs:
            mechanism = report_table(self.domain, nats, within=self.within)
            self.designs[key] = mechanism, probabilities(mechanism).values
        return self.designs[key]

    @cached_property
    def filter(self) -> HomeAwayChain | FactoredHomeAway:
        return self.chain if self.exact else FactoredHomeAway(chain=self.chain)

    @property
    def states(self) -> int:
        """The number of weights by which the memory of a simulated person is counted."""
        return len(self.chain.initial) if self.exact else self.domain.size

    def beliefs(self, people: int) -> AnyArray:
        """The beliefs of `filter` (people, states) before anything is released."""
        return np.tile(self.filter.initial.astype(np.float32 if self.exact else float), (people, 1))

    def estimate(self, places: AnyArray) -> tuple[Indices, AnyArray]:
        """For distributions (N, n) the places of least expected distance (N,), and that distance."""
        return best_places(places, self.distances.astype(places.dtype, copy=False))


def draw(rows: Matrix, chances: Vector) -> Indices:
    """Simulated reports (N,) by rows of tables (N, n), from numbers (N,) in [0, 1)."""
    # Chances are scaled by the sum of the row, which rounding may leave beside 1.
    summed = np.cumsum(rows, axis=1)
    return np.minimum((chances[:, None] * summed[:, -1:] > summed).sum(axis=1), rows.shape[1] - 1)

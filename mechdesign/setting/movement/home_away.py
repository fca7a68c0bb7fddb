r"""HomeAway: days of people who live somewhere, leave, stay at other places, and come home.

The state is (h, home), or (h, x): at place x with a home at h. At tick t of T, from home: away with probability
leave_t, to a place x with probability J_t(h, x); from away: home with probability back_t, else on with probability
wander_t, to x' with probability J_t(x, x'), else no move.

    J_t = mix_t G + (1 - mix_t) L,    G(x, x') prop. popularity(x'),  L(x, x') prop. e^{-|x - x'| / near},  x' != x

Source: L. Rabiner, "A tutorial on hidden Markov
models", Proc. IEEE 77 (1989), sections III and IV; the model itself is this package's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.checks import positive
from mechdesign.base.descriptions import finites, named
from mechdesign.errors import InputError, SizeError
from mechdesign.setting.metric.metric import Metric
from mechdesign.setting.movement.movement import Chain, Movement
from mechdesign.setting.objective.priors import check_prior
from mechdesign.setting.space.domain import Domain

MOST = 1_000  # places: a belief has the square of it
HOUSED = 0.95  # of a belief that begins, that the person is at home
_RATES = ("leave", "back", "wander", "mix")
_Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class HomeAway(Movement):
    """home (n,), where people live, and away (n,), where they are while they are away, sum 1; popularity (n,), weights;
    near, a length in the unit of the domain; leave, back, wander and mix (T,), probabilities for every tick of a day.

    Raises: InputError for arrays of other lengths and values out of range.
    """

    home: ArrayLike
    away: ArrayLike
    popularity: ArrayLike
    near: float
    leave: ArrayLike
    back: ArrayLike
    wander: ArrayLike
    mix: ArrayLike
    kind = "home-away"

    def __post_init__(self) -> None:
        home = np.asarray(self.home, float)
        places = home.shape[0] if home.ndim == 1 else 0
        for name in ("home", "away"):
            object.__setattr__(self, name, check_prior(getattr(self, name), places))
        popularity = np.asarray(self.popularity, float)
        if popularity.shape != home.shape or not (np.isfinite(popularity) & (popularity > 0)).all():
            raise _refused("must be positive weights of the places", "popularity", popularity.shape)
        object.__setattr__(self, "popularity", popularity)
        object.__setattr__(self, "near", positive(self.near, "near"))
        shape = np.shape(self.leave)
        for name in _RATES:
            rates = np.asarray(getattr(self, name), float)
            if rates.shape != shape or rates.ndim != 1 or not rates.size or not ((rates >= 0) & (rates <= 1)).all():
                raise _refused("must be probabilities, one for every tick of a day", name, rates.shape)
            object.__setattr__(self, name, rates)

    @property
    def ticks(self) -> int:
        """T."""
        return len(np.asarray(self.leave))

    def over(self, domain: Domain, metric: Metric, prior: NDArray[np.float64]) -> HomeAwayChain:
        home, away = np.asarray(self.home, float), np.asarray(self.away, float)
        n = domain.size
        if len(home) != n:
            raise _refused(f"must have one value for each of the {n} places", "home", len(home))
        if n > MOST:
            raise SizeError(
                f"takes at most {MOST:,} places", field="movement", value=n, remedy="use larger cells, or Walk"
            )
        initial = np.concatenate([HOUSED * home, ((1 - HOUSED) * home[:, None] * away).ravel()])
        place = np.concatenate([np.arange(n), np.tile(np.arange(n), n)])
        distances = domain.euclidean_to(domain)
        return HomeAwayChain(size=n, initial=initial, place=place, matrices=(), model=self, distances=distances)

    def describe(self) -> dict[str, Any]:
        listed = {name: np.asarray(getattr(self, name)).tolist() for name in ("home", "away", "popularity", *_RATES)}
        return {"kind": self.kind, "near": float(self.near), **listed}

    @classmethod
    def from_description(cls, told: dict[str, Any]) -> Self:
        names = ("home", "away", "popularity", *_RATES)
        named(told, "movement", ("kind", "near", *names))
        if not isinstance(told["near"], (int, float)):
            raise _refused("must be a length", "near", type(told["near"]).__name__)
        return cls(near=float(told["near"]), **{name: finites(told[name], name) for name in names})


@dataclass(frozen=True, kw_only=True, eq=False)
class HomeAwayChain(Chain):
    """The n + n^2 states: home h first, then away at x with a home at h, x fastest. Cost of a tick: O(n^3)."""

    model: HomeAway
    distances: _Floats = field(repr=False)

    @cached_property
    def kernels(self) -> tuple[_Floats, _Floats]:
        """G and L (n, n)."""
        weights = np.tile(np.asarray(self.model.popularity, float), (self.size, 1))
        return tuple(map(jumping, (weights, np.exp(-self.distances / self.model.near))))  # type: ignore[return-value]

    def rates(self, tick: int) -> tuple[float, float, float, _Floats]:
        """leave, back, wander and J (n, n) of a tick."""
        at = tick % self.model.ticks
        leave, back, wander, mix = (float(np.asarray(getattr(self.model, name))[at]) for name in _RATES)
        far, near = self.kernels
        return leave, back, wander, mix * far + (1 - mix) * near

    def step(self, belief: _Floats, tick: int) -> _Floats:
        n, (leave, back, wander, jump) = self.size, self.rates(tick)
        jump = jump.astype(belief.dtype, copy=False)
        home, away = self._parts(belief)
        new = np.empty_like(belief).reshape(-1, n + n * n)
        moved = (away.reshape(-1, n) @ jump).reshape(away.shape)
        moved *= (1 - back) * wander
        moved += ((1 - back) * (1 - wander)) * away
        moved += leave * home[:, :, None] * jump
        new[:, n:] = moved.reshape(-1, n * n)
        new[:, :n] = (1 - leave) * home + back * away.sum(axis=2)
        return new.reshape(belief.shape)

    def back(self, values: _Floats, tick: int) -> _Floats:
        n, (leave, back, wander, jump) = self.size, self.rates(tick)
        home, away = self._parts(values)
        new = np.empty((len(home), n + n * n))
        new[:, :n] = (1 - leave) * home + leave * (away * jump).sum(axis=2)
        on = (1 - wander) * away + wander * (away @ jump.T)
        new[:, n:] = (back * home[:, :, None] + (1 - back) * on).reshape(-1, n * n)
        return new.reshape(values.shape)

    def places(self, belief: _Floats) -> _Floats:
        home, away = self._parts(belief)
        return (home + away.sum(axis=1)).reshape(*belief.shape[:-1], self.size)

    def homes(self, belief: _Floats) -> _Floats:
        """The distributions (..., n) of where homes are."""
        home, away = self._parts(belief)
        return (home + away.sum(axis=2)).reshape(*belief.shape[:-1], self.size)

    def _parts(self, belief: _Floats) -> tuple[_Floats, _Floats]:
        n = self.size
        flat = belief.reshape(-1, n + n * n)
        return flat[:, :n], flat[:, n:].reshape(-1, n, n)


def jumping(weights: _Floats) -> _Floats:
    """Rows of weights (n, n) as probabilities of another place than that of the row."""
    moving = weights + np.finfo(float).tiny
    np.fill_diagonal(moving, 0.0)
    return moving / moving.sum(axis=1, keepdims=True)


def _refused(problem: str, field: str, value: object) -> InputError:
    return InputError(problem, field=field, value=value, remedy="use a whole file, or fit the model again")

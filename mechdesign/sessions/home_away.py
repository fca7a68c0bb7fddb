"""Days of people who live somewhere: the model of homes, its chain, and an approximation of the chain."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Floats, Matrix, Stack, Vector
from mechdesign.base.json_fields import finite, finites
from mechdesign.base.validation import check_positive, refuse_entries
from mechdesign.errors import InputError, SizeError
from mechdesign.problem.domain import Domain
from mechdesign.problem.metric import Metric
from mechdesign.problem.priors import check_prior
from mechdesign.sessions.movement import Chain, Movement

MOST_HOMES = 1_000  # places of HomeAway: a belief has the square of it, 8 MB
HOUSED = 0.95  # first probability that a person is at home, a guess: sessions begin at midnight
_TINY = float(np.finfo(float).tiny)  # in divisors that may be 0, where the quotient has no weight
_RATES = ("leave", "back", "wander", "mix")


@dataclass(frozen=True, kw_only=True, eq=False)
class HomeAway(Movement):
    """Days of people who live somewhere, leave, stay at other places, and come home.

    The state is (h, home), or (h, x): at place x with a home at h. At tick t of T somebody at home leaves with
    probability leave_t, to x with probability J_t(h, x). Somebody away returns with probability back_t, else moves with
    probability wander_t, to x' with probability J_t(x, x'), else stays. For x' != x,

        (1)  J_t = mix_t G + (1 - mix_t) L,   G(x, x') prop. popularity(x'),   L(x, x') prop. e^{-|x - x'| / near}.

    Parameters
    ----------
    home, away, popularity : (n,) arrays
        Where people live, and are while away, each of sum 1; weights.
    near : float
        A length in the unit of the domain.
    leave, back, wander, mix : (T,) arrays
        Probabilities for every tick of a day.

    Examples
    --------
    >>> uniform, rates = np.full(3, 1 / 3), np.full(2, 0.5)
    >>> places, ticks = dict.fromkeys(["home", "away", "popularity"], uniform), ["leave", "back", "wander", "mix"]
    >>> md.sessions.HomeAway(near=1.0, **places, **dict.fromkeys(ticks, rates)).ticks
    2
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
    described = (("near", finite), *((name, finites) for name in ("home", "away", "popularity", *_RATES)))

    def __post_init__(self) -> None:
        places, ticks = np.size(self.home), np.size(self.leave)
        for name in ("home", "away"):
            object.__setattr__(self, name, check_prior(getattr(self, name), places))
        popularity = np.asarray(self.popularity, float)
        if popularity.shape != (places,):
            raise InputError(f"must have shape ({places},)", field="popularity", value=popularity.shape)
        wrong = ~((popularity > 0) & (popularity < np.inf))
        refuse_entries(wrong, popularity, "must be positive and finite", field="popularity")
        object.__setattr__(self, "popularity", popularity)
        object.__setattr__(self, "near", check_positive(self.near, "near"))
        for name in _RATES:
            rates = np.asarray(getattr(self, name), float)
            if rates.shape != (ticks,) or not ticks or not ((rates >= 0) & (rates <= 1)).all():
                raise InputError("must be probabilities, one for every tick of a day", field=name, value=rates.shape)
            object.__setattr__(self, name, rates)

    @property
    def ticks(self) -> int:
        return np.size(self.leave)

    def over(self, domain: Domain, metric: Metric, prior: Vector) -> HomeAwayChain:
        home, away, n = np.asarray(self.home, float), np.asarray(self.away, float), domain.size
        if len(home) != n:
            raise InputError(f"must have one value for each of the {n} places", field="home", value=len(home))
        if n > MOST_HOMES:
            problem = f"takes at most {MOST_HOMES:,} places"
            raise SizeError(problem, field="movement", value=n, remedy="use larger cells, or RandomWalk")
        # The n states at home come first, then the n^2 away, x fastest: the order that `_parts` reads.
        initial = np.concatenate([HOUSED * home, ((1 - HOUSED) * home[:, None] * away).ravel()])
        place = np.concatenate([np.arange(n), np.tile(np.arange(n), n)])
        distances = domain.euclidean_to(domain)
        return HomeAwayChain(size=n, initial=initial, place=place, matrices=(), model=self, distances=distances)


@dataclass(frozen=True, kw_only=True, eq=False)
class HomeAwayChain(Chain):
    """The n + n^2 states: home h first, then away at x with a home at h, x fastest. Cost of a tick: O(n^3)."""

    model: HomeAway
    distances: Matrix = field(repr=False)

    @cached_property
    def kernels(self) -> tuple[Matrix, Matrix]:
        """G and L (n, n)."""
        weights = np.tile(np.asarray(self.model.popularity, float), (self.size, 1))
        return tuple(map(jumping, (weights, np.exp(-self.distances / self.model.near))))  # type: ignore[return-value]

    @cached_property
    def _rates(self) -> list[list[float]]:
        return np.stack([np.asarray(getattr(self.model, name), float) for name in _RATES], axis=1).tolist()

    def rates(self, tick: int) -> tuple[float, float, float, Matrix]:
        """leave, back, wander and J (n, n) of a tick."""
        leave, back, wander, mix = self._rates[tick % self.model.ticks]
        # (1). The kernels are kept: only their mixture depends on the tick.
        far, near = self.kernels
        return leave, back, wander, mix * far + (1 - mix) * near

    def step(self, belief: Floats, tick: int) -> Floats:
        n, (leave, back, wander, jump) = self.size, self.rates(tick)
        # Simulated beliefs are in single precision; a product with doubles would convert all n^2 entries a person.
        jump = jump.astype(belief.dtype, copy=False)
        home, away = self._parts(belief)
        new = np.empty_like(belief).reshape(-1, n + n * n)
        # From away: home with probability back, else on to J with probability wander, else no move. In place, since the
        # array has n^2 entries a person.
        moved = (away.reshape(-1, n) @ jump).reshape(away.shape)
        moved *= (1 - back) * wander
        moved += ((1 - back) * (1 - wander)) * away
        moved += leave * home[:, :, None] * jump
        new[:, n:] = moved.reshape(-1, n * n)
        new[:, :n] = (1 - leave) * home + back * away.sum(axis=2)
        return new.reshape(belief.shape)

    def back(self, values: Floats, tick: int) -> Floats:
        n, (leave, back, wander, jump) = self.size, self.rates(tick)
        # The transpose of `step`: the expected value one tick later, from home and from away.
        home, away = self._parts(values)
        new = np.empty((len(home), n + n * n))
        new[:, :n] = (1 - leave) * home + leave * (away * jump).sum(axis=2)
        onward = (1 - wander) * away + wander * (away @ jump.T)
        new[:, n:] = (back * home[:, :, None] + (1 - back) * onward).reshape(-1, n * n)
        return new.reshape(values.shape)

    def places(self, belief: Floats) -> Floats:
        home, away = self._parts(belief)
        return (home + away.sum(axis=1)).reshape(*belief.shape[:-1], self.size)

    def homes(self, belief: Floats) -> Floats:
        """The distributions (..., n) of where homes are."""
        home, away = self._parts(belief)
        return (home + away.sum(axis=2)).reshape(*belief.shape[:-1], self.size)

    def _parts(self, belief: Floats) -> tuple[Matrix, Stack]:
        n = self.size
        flat = belief.reshape(-1, n + n * n)
        return flat[:, :n], flat[:, n:].reshape(-1, n, n)


@dataclass(frozen=True, kw_only=True, eq=False)
class FactoredHomeAway:
    """An approximation of `HomeAwayChain` for k people at once: O(n^2) a tick and person instead of O(n^3)."""

    # Home h ~ H (n,), place when away ~ O (n,), at home with probability p; a belief is (k, 1 + 2 n): p, H, O.
    #     (2)  step      p' = (1 - p) back + p (1 - leave).
    #                    O' prop. (1 - p) (1 - back) (O + wander (O J - O)) + p leave H J.
    #     (3)  update    H, O, p by Bayes' rule, H as far as the person is at home.
    # Mean errors on days of 50 ticks agree with the chain to 2 %; over two weeks this model loses some homes.

    chain: HomeAwayChain

    @property
    def initial(self) -> Vector:
        """The belief (1 + 2 n,) before anything is released."""
        model = self.chain.model
        return np.concatenate([[HOUSED], np.asarray(model.home, float), np.asarray(model.away, float)])

    def step(self, belief: Matrix, tick: int) -> Matrix:
        housed, home, away = self._parts(belief)
        leave, back, wander, jump = self.chain.rates(tick)
        # (2), with p' as 1 less the two ways to be away. The home does not move.
        stays, leaves = (1 - housed) * (1 - back), housed * leave
        weights = stays[:, None] * (away + wander * (away @ jump - away)) + leaves[:, None] * (home @ jump)
        return self._join(1 - stays - leaves, home, weights / np.maximum(stays + leaves, _TINY)[:, None])

    def update(self, belief: Matrix, likelihood: Matrix) -> Matrix:
        housed, home, away = self._parts(belief)
        at_home, at_away = (home * likelihood).sum(axis=1), (away * likelihood).sum(axis=1)
        now = housed * at_home / np.maximum(housed * at_home + (1 - housed) * at_away, _TINY)
        # (3) for the home, as far as the person is there: reports while away do not change it.
        homes = home * (1 + now[:, None] * (likelihood / np.maximum(at_home, _TINY)[:, None] - 1))
        return self._join(now, homes, away * likelihood / np.maximum(at_away, _TINY)[:, None])

    def places(self, belief: Matrix) -> Matrix:
        """The distributions (k, n) of where people are."""
        housed, home, away = self._parts(belief)
        return housed[:, None] * home + (1 - housed)[:, None] * away

    def homes(self, belief: Matrix) -> Matrix:
        """The distributions (k, n) of where their homes are."""
        return self._parts(belief)[1]

    def _parts(self, belief: Matrix) -> tuple[Vector, Matrix, Matrix]:
        n = self.chain.size
        return belief[:, 0], belief[:, 1 : 1 + n], belief[:, 1 + n :]

    @staticmethod
    def _join(housed: Vector, home: Matrix, away: Matrix) -> Matrix:
        return np.concatenate([housed[:, None], home, away], axis=1)


def jumping(weights: Matrix) -> Matrix:
    """Row-stochastic (n, n) probabilities of a move to another place, proportional to the weights."""
    # Without the least double a row whose weights all underflow would be divided by 0.
    moving = weights + np.finfo(float).tiny
    np.fill_diagonal(moving, 0.0)
    return moving / moving.sum(axis=1, keepdims=True)

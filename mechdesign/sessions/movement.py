"""Movement: a public model of movement from one tick to the next, for filters between reports.

Filters post-process public reports: a wrong model costs accuracy and weakens no claim.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.json_fields import Reader, check_keys, finite, finites, to_json, whole, wholes
from mechdesign.base.records import FrozenRecord
from mechdesign.base.validation import positive, refuse_entries
from mechdesign.errors import InputError, SizeError, UnsuitableError
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import stencil_pairs
from mechdesign.problem.metric import Metric
from mechdesign.problem.priors import check_prior

ROW_ERROR = 1e-9  # by which the probabilities of a row may miss 1 before they are divided by their sum
MOST_HOMES = 1_000  # places of HomeAway: a belief has the square of it
MOST_STATES = 1 << 20  # of a description
HOUSED = 0.95  # of a belief that begins, that the person is at home
_TINY = float(np.finfo(float).tiny)
_STENCIL = {1: 4, 2: 8, 3: 26}  # by number of axes: cells that share an edge or a corner
_RATES = ("leave", "back", "wander", "mix")
_Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Chain(FrozenRecord):
    """s hidden states, each at one of n places, that move at every tick.

    Another way of moving is a subclass with its own `step` and `back`.

    Attributes
    ----------
    size, initial, place : int, (s,) array, (s,) int array
        The number n of places; the distribution at the first tick; where each state is.
    matrices : tuple of (s, s) sparse arrays
        Row-stochastic: number t mod k of the k of them leads from tick t - 1 to tick t.

    Examples
    --------
    >>> problem = md.load_problem("line", cells=3)
    >>> chain = md.sessions.Walk(stay=0.5).over(problem.domain, problem.metric, problem.prior_array)
    >>> chain.matrices[0].toarray()
    array([[0.5 , 0.5 , 0.  ],
           [0.25, 0.5 , 0.25],
           [0.  , 0.5 , 0.5 ]])
    """

    size: int
    initial: _Floats
    place: NDArray[np.int64]
    matrices: tuple[sp.csr_array, ...]

    def step(self, belief: _Floats, tick: int) -> _Floats:
        """The distributions (s,) or (k, s) at `tick` that follow from those at the tick before."""
        return np.asarray(belief @ self.matrices[tick % len(self.matrices)])

    def back(self, values: _Floats, tick: int) -> _Floats:
        """The expectations, given the state at the tick before, of values (s,) or (k, s) of the state at `tick`."""
        return np.asarray(values @ self.matrices[tick % len(self.matrices)].T)

    def update(self, belief: _Floats, likelihood: _Floats) -> _Floats:
        """The distributions (s,) or (k, s) after likelihoods (n,) or (k, n); one that they rule out stays unchanged."""
        seen = belief * likelihood.astype(belief.dtype, copy=False)[..., self.place]
        total = seen.sum(axis=-1, keepdims=True)
        possible = (total > 0) & (total < np.inf)
        return np.where(possible, seen / np.where(possible, total, 1), belief)

    def places(self, belief: _Floats) -> _Floats:
        """The distributions over places of distributions (s,) or (k, s) over states."""
        return np.asarray(belief @ self._incidence)

    @cached_property
    def _incidence(self) -> sp.csr_array:
        states = len(self.place)
        return sp.csr_array((np.ones(states), (np.arange(states), self.place)), shape=(states, self.size))


@dataclass(frozen=True, kw_only=True, eq=False)
class Movement(FrozenRecord, ABC):
    """A model that any domain makes a `Chain` of. A class of your own is a frozen dataclass with a row in `MOVEMENTS`.

    Attributes
    ----------
    kind, described : str, tuple of (name, reader)
        Its name there and in files; the fields that files keep, and what reads each of them.

    Examples
    --------
    >>> md.sessions.Walk().kind
    'walk'
    """

    kind: ClassVar[str]
    described: ClassVar[tuple[tuple[str, Reader], ...]] = ()

    @abstractmethod
    def over(self, domain: Domain, metric: Metric, prior: _Floats) -> Chain:
        """The chain on the places of `domain`, begun from `prior` (n,). Raises: InputError where it does not fit."""

    def describe(self) -> dict[str, Any]:
        """kind, and what `from_description` needs, as JSON holds it."""
        return {"kind": self.kind, **{name: to_json(getattr(self, name)) for name, _ in self.described}}

    @classmethod
    def from_description(cls, description: dict[str, Any]) -> Self:
        """The model of `describe`; description holds data from anybody. Raises: InputError that names the field."""
        check_keys(description, "movement", ("kind", *(name for name, _ in cls.described)))
        return cls(**{name: read(description[name], name) for name, read in cls.described})


@dataclass(frozen=True, kw_only=True, eq=False)
class Walk(Movement):
    """A random walk: at every tick with probability `stay` no move, else to one of the neighbours, all alike.

    Neighbours on a grid are the cells around (two, eight or 26 of them) that no masked cell cuts off; elsewhere those
    that an edge of the metric joins, where the metric has few (a graph, streets). A place without neighbours stays.

    Parameters
    ----------
    stay : float
        In [0, 1).

    Examples
    --------
    >>> md.sessions.Walk(stay=0.8).stay
    0.8
    """

    stay: float = 0.9
    kind = "walk"
    described = (("stay", finite),)

    def __post_init__(self) -> None:
        if not 0 <= self.stay < 1:
            raise InputError("must be a probability below 1", field="stay", value=self.stay)
        object.__setattr__(self, "stay", float(self.stay))

    def over(self, domain: Domain, metric: Metric, prior: _Floats) -> Chain:
        if domain.kind == "grid":
            tail, head = stencil_pairs(domain, _STENCIL[domain.dimension])
        elif metric.sparse:
            edges = metric.edges(domain)
            tail, head = edges.tail, edges.head
        else:
            raise UnsuitableError(
                "a walk needs a grid, or a metric with few edges",
                field="movement",
                value=domain.kind,
                remedy="give the model: md.sessions.Transitions(matrix)",
            )
        n, ones = domain.size, np.ones(2 * len(tail))
        joined = sp.csr_array((ones, (np.concatenate([tail, head]), np.concatenate([head, tail]))), shape=(n, n))
        degree = np.asarray(joined.sum(axis=1)).ravel()
        moving = sp.diags_array(np.where(degree > 0, (1 - self.stay) / np.maximum(degree, 1), 0.0)) @ joined
        staying = sp.diags_array(np.where(degree > 0, self.stay, 1.0))
        matrix = stochastic(sp.csr_array(moving + staying), "stay")
        return Chain(size=n, initial=prior, place=np.arange(n), matrices=(matrix,))


@dataclass(frozen=True, kw_only=True, eq=False)
class Transitions(Movement):
    """The probabilities P(state at tick t | state at t - 1) as matrices.

    Parameters
    ----------
    matrices : (s, s) array or list of k of them
        Sparse or dense; number t mod k leads to tick t.
    initial, place : (s,) array, (s,) int array
        By default the prior of the tables; the place of each state, by default state k at place k.

    Examples
    --------
    >>> len(md.sessions.Transitions([[0.9, 0.1], [0.2, 0.8]]).matrices)
    1
    """

    matrices: Any = field(kw_only=False)
    initial: ArrayLike | None = None
    place: ArrayLike | None = None
    kind = "transitions"

    def __post_init__(self) -> None:
        listed = isinstance(self.matrices, (list, tuple))
        try:
            several = listed and all(sp.issparse(each) or np.ndim(each) == 2 for each in self.matrices)
            matrices = self.matrices if several else [self.matrices]
            sparse = [sp.csr_array(each, dtype=float, copy=True) for each in matrices]
        except (TypeError, ValueError) as error:
            raise InputError("must be a matrix, or a list of matrices", field="matrices", value=str(error)) from error
        if not sparse or len({each.shape for each in sparse}) != 1:
            raise InputError("must have one shape", field="matrices", value=[each.shape for each in sparse[:5]])
        for each in sparse:
            stochastic(each, "matrices")
        object.__setattr__(self, "matrices", tuple(sparse))

    def over(self, domain: Domain, metric: Metric, prior: _Floats) -> Chain:
        states = self.matrices[0].shape[0]
        place = np.arange(states) if self.place is None else np.asarray(self.place, np.int64)
        if place.shape != (states,) or place.min() < 0 or place.max() >= domain.size:
            problem = f"every one of {states} states needs one of the {domain.size} places"
            raise InputError(problem, field="place")
        initial = prior if self.initial is None else np.asarray(self.initial, float)
        matrices = tuple(stochastic(each, "matrices") for each in self.matrices)
        return Chain(size=domain.size, initial=check_prior(initial, states), place=place, matrices=matrices)

    def describe(self) -> dict[str, Any]:
        listed = [
            {"start": each.indptr.tolist(), "state": each.indices.tolist(), "probability": each.data.tolist()}
            for each in self.matrices
        ]
        description: dict[str, Any] = {"kind": self.kind, "states": self.matrices[0].shape[0], "matrices": listed}
        if self.initial is not None:
            description["initial"] = np.asarray(self.initial, float).tolist()
        if self.place is not None:
            description["place"] = np.asarray(self.place, int).tolist()
        return description

    @classmethod
    def from_description(cls, description: dict[str, Any]) -> Self:
        check_keys(description, "movement", ("kind", "states", "matrices"), ("initial", "place"))
        states, matrices = whole(description["states"], "states", 1, MOST_STATES), []
        if not isinstance(description["matrices"], list):
            raise InputError("must be a list", field="matrices", value=type(description["matrices"]))
        for each in description["matrices"]:
            parts = check_keys(each, "matrices", ("start", "state", "probability"))
            data = finites(parts["probability"], "probability")
            rows = (wholes(parts["state"], "state", 0, states), wholes(parts["start"], "start", 0, len(data)))
            try:
                matrix = sp.csr_array((data, *rows), shape=(states, states))
                matrix.check_format(full_check=True)
            except ValueError as error:
                raise InputError("are no compressed rows", field="matrices", value=str(error)) from error
            matrices.append(matrix)
        initial = None if "initial" not in description else finites(description["initial"], "initial")
        place = None if "place" not in description else wholes(description["place"], "place", 0, MOST_STATES)
        return cls(matrices, initial=initial, place=place)


@dataclass(frozen=True, kw_only=True, eq=False)
class HomeAway(Movement):
    """Days of people who live somewhere, leave, stay at other places, and come home.

    The state is (h, home), or (h, x): at place x with a home at h. At tick t of T, from home: away with probability
    leave_t, to a place x with probability J_t(h, x); from away: home with probability back_t, else on with
    probability wander_t, to x' with probability J_t(x, x'), else no move.

        J_t = mix_t G + (1 - mix_t) L,    G(x, x') prop. popularity(x'),  L(x, x') prop. e^{-|x - x'| / near},  x' != x

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
        object.__setattr__(self, "near", positive(self.near, "near"))
        for name in _RATES:
            rates = np.asarray(getattr(self, name), float)
            if rates.shape != (ticks,) or not ticks or not ((rates >= 0) & (rates <= 1)).all():
                raise InputError("must be probabilities, one for every tick of a day", field=name, value=rates.shape)
            object.__setattr__(self, name, rates)

    @property
    def ticks(self) -> int:
        """T."""
        return np.size(self.leave)

    def over(self, domain: Domain, metric: Metric, prior: _Floats) -> HomeAwayChain:
        home, away, n = np.asarray(self.home, float), np.asarray(self.away, float), domain.size
        if len(home) != n:
            raise InputError(f"must have one value for each of the {n} places", field="home", value=len(home))
        if n > MOST_HOMES:
            problem = f"takes at most {MOST_HOMES:,} places"
            raise SizeError(problem, field="movement", value=n, remedy="use larger cells, or Walk")
        initial = np.concatenate([HOUSED * home, ((1 - HOUSED) * home[:, None] * away).ravel()])
        place = np.concatenate([np.arange(n), np.tile(np.arange(n), n)])
        distances = domain.euclidean_to(domain)
        return HomeAwayChain(size=n, initial=initial, place=place, matrices=(), model=self, distances=distances)


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

    @cached_property
    def _rates(self) -> list[list[float]]:
        return np.stack([np.asarray(getattr(self.model, name), float) for name in _RATES], axis=1).tolist()

    def rates(self, tick: int) -> tuple[float, float, float, _Floats]:
        """leave, back, wander and J (n, n) of a tick."""
        leave, back, wander, mix = self._rates[tick % self.model.ticks]
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


@dataclass(frozen=True, kw_only=True, eq=False)
class FactoredHomeAway:
    """An approximation of `HomeAwayChain` for k people at once: O(n^2) a tick and person instead of O(n^3).

    Home h ~ H (n,), place when away ~ O (n,), at home with probability p; a belief is (k, 1 + 2 n): p, H, O.

        step      p' = (1 - p) back + p (1 - leave),  O' prop. (1 - p) (1 - back) (O + wander (O J - O)) + p leave H J
        update    H, O, p by Bayes' rule, H as far as the person is at home

    Mean errors on days of 50 ticks agree with the chain to 2 %; over two weeks this model loses some homes.
    """

    chain: HomeAwayChain

    @property
    def initial(self) -> _Floats:
        """The belief (1 + 2 n,) before anything is released."""
        model = self.chain.model
        return np.concatenate([[HOUSED], np.asarray(model.home, float), np.asarray(model.away, float)])

    def step(self, belief: _Floats, tick: int) -> _Floats:
        """The beliefs at `tick` that follow from those at the tick before."""
        housed, home, away = self._parts(belief)
        leave, back, wander, jump = self.chain.rates(tick)
        stay, left = (1 - housed) * (1 - back), housed * leave
        weights = stay[:, None] * (away + wander * (away @ jump - away)) + left[:, None] * (home @ jump)
        return self._joined(1 - stay - left, home, weights / np.maximum(stay + left, _TINY)[:, None])

    def update(self, belief: _Floats, likelihood: _Floats) -> _Floats:
        """The beliefs after something whose probability from every place is (k, n)."""
        housed, home, away = self._parts(belief)
        at_home, at_away = (home * likelihood).sum(axis=1), (away * likelihood).sum(axis=1)
        now = housed * at_home / np.maximum(housed * at_home + (1 - housed) * at_away, _TINY)
        homes = home * (1 + now[:, None] * (likelihood / np.maximum(at_home, _TINY)[:, None] - 1))
        return self._joined(now, homes, away * likelihood / np.maximum(at_away, _TINY)[:, None])

    def places(self, belief: _Floats) -> _Floats:
        """The distributions (k, n) of where people are."""
        housed, home, away = self._parts(belief)
        return housed[:, None] * home + (1 - housed)[:, None] * away

    def homes(self, belief: _Floats) -> _Floats:
        """The distributions (k, n) of where their homes are."""
        return self._parts(belief)[1]

    def _parts(self, belief: _Floats) -> tuple[_Floats, _Floats, _Floats]:
        """P (k,), H (k, n) and O (k, n)."""
        n = self.chain.size
        return belief[:, 0], belief[:, 1 : 1 + n], belief[:, 1 + n :]

    @staticmethod
    def _joined(housed: _Floats, home: _Floats, away: _Floats) -> _Floats:
        return np.concatenate([housed[:, None], home, away], axis=1)


def jumping(weights: _Floats) -> _Floats:
    """Rows of weights (n, n) as probabilities of another place than that of the row."""
    moving = weights + np.finfo(float).tiny
    np.fill_diagonal(moving, 0.0)
    return moving / moving.sum(axis=1, keepdims=True)


def stochastic(matrix: sp.csr_array, field: str) -> sp.csr_array:
    """The square matrix with its rows divided by their sums."""
    sums = np.asarray(matrix.sum(axis=-1)).ravel()
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
    good = square and np.isfinite(matrix.data).all() and (matrix.data >= 0).all()
    if not good or not (np.abs(sums - 1) <= ROW_ERROR).all():
        worst = f"{' x '.join(map(str, matrix.shape))}, rows that sum to {sums.min():.6g} to {sums.max():.6g}"
        raise InputError("must be square, not negative, with rows that sum to 1", field=field, value=worst)
    return sp.csr_array(sp.diags_array(1 / sums) @ matrix)


MOVEMENTS: dict[str, type[Movement]] = {kind.kind: kind for kind in (Walk, Transitions, HomeAway)}


def movement_from_description(description: object) -> Movement:
    """The model that `Movement.describe` described, from data of anybody. Raises: InputError."""
    kind = description.get("kind") if isinstance(description, dict) else None
    if not isinstance(description, dict) or kind not in MOVEMENTS:
        raise InputError("unknown model", field="movement", value=kind, remedy=f"use {' or '.join(MOVEMENTS)}")
    return MOVEMENTS[str(kind)].from_description(description)

"""Movement: a public model of movement from one tick to the next, for filters between reports.

Filters post-process public reports: a wrong model costs accuracy but weakens no claim.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Floats, Indices, Vector
from mechdesign.base.json_fields import Reader, check_keys, finite, finites, to_json, whole, wholes
from mechdesign.base.records import FrozenRecord
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import stencil_pairs
from mechdesign.problem.metric import Metric
from mechdesign.problem.priors import check_prior

ROW_ERROR = 1e-9  # by which the probabilities of a row may miss 1 before they are divided by their sum
MOST_STATES = 1 << 20  # of a description
_STENCIL = {1: 4, 2: 8, 3: 26}  # by number of axes: cells that share an edge or a corner


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
    >>> chain = md.sessions.RandomWalk(stay=0.5).over(problem.domain, problem.metric, problem.prior_array)
    >>> chain.matrices[0].toarray()
    array([[0.5 , 0.5 , 0.  ],
           [0.25, 0.5 , 0.25],
           [0.  , 0.5 , 0.5 ]])
    """

    size: int
    initial: Vector
    place: Indices
    matrices: tuple[sp.csr_array, ...]

    def step(self, belief: Floats, tick: int) -> Floats:
        """The distributions (s,) or (k, s) at `tick` that follow from those at the tick before.

        Examples
        --------
        >>> problem = md.load_problem("line", cells=3)
        >>> chain = md.sessions.RandomWalk(stay=0.5).over(problem.domain, problem.metric, problem.prior_array)
        >>> round(float(chain.step(chain.initial, 1).sum()), 9)
        1.0
        """
        return np.asarray(belief @ self.matrices[tick % len(self.matrices)])

    def back(self, values: Floats, tick: int) -> Floats:
        """Conditional expectations, given the state one tick before, of values (s,) or (k, s) at `tick`.

        Examples
        --------
        >>> problem = md.load_problem("line", cells=3)
        >>> chain = md.sessions.RandomWalk(stay=0.5).over(problem.domain, problem.metric, problem.prior_array)
        >>> chain.back(np.ones(3), 1).round(9).tolist()
        [1.0, 1.0, 1.0]
        """
        return np.asarray(values @ self.matrices[tick % len(self.matrices)].T)

    def update(self, belief: Floats, likelihood: Floats) -> Floats:
        """Bayes' rule for likelihoods (n,) or (k, n).

        Examples
        --------
        >>> problem = md.load_problem("line", cells=3)
        >>> chain = md.sessions.RandomWalk(stay=0.5).over(problem.domain, problem.metric, problem.prior_array)
        >>> chain.update(chain.initial, np.array([1.0, 0.0, 0.0])).round(9).tolist()
        [1.0, 0.0, 0.0]
        """
        # A report that the model rules out keeps the belief: the model is public and may simply be wrong.
        joint = belief * likelihood.astype(belief.dtype, copy=False)[..., self.place]
        total = joint.sum(axis=-1, keepdims=True)
        possible = (total > 0) & (total < np.inf)
        return np.where(possible, joint / np.where(possible, total, 1), belief)

    def places(self, belief: Floats) -> Floats:
        """The distributions over places of distributions (s,) or (k, s) over states.

        Examples
        --------
        >>> problem = md.load_problem("line", cells=3)
        >>> chain = md.sessions.RandomWalk(stay=0.5).over(problem.domain, problem.metric, problem.prior_array)
        >>> chain.places(chain.initial).shape
        (3,)
        """
        return np.asarray(belief @ self._incidence)

    @cached_property
    def _incidence(self) -> sp.csr_array:
        states = len(self.place)
        return sp.csr_array((np.ones(states), (np.arange(states), self.place)), shape=(states, self.size))


@dataclass(frozen=True, kw_only=True, eq=False)
class Movement(FrozenRecord, ABC):
    """A model of movement; `over` makes its `Chain` on a domain.

    A class of your own is a frozen dataclass with a row in `MOVEMENTS`.

    Attributes
    ----------
    kind, described : str, tuple of (name, reader)
        Its name there and in files; the fields that files keep, each with its reader.

    Examples
    --------
    >>> md.sessions.RandomWalk().kind
    'walk'
    """

    kind: ClassVar[str]
    described: ClassVar[tuple[tuple[str, Reader], ...]] = ()

    @abstractmethod
    def over(self, domain: Domain, metric: Metric, prior: Vector) -> Chain:
        """The chain on the places of `domain`, begun from `prior` (n,).

        Examples
        --------
        >>> model = md.sessions.Transitions([[0.9, 0.1], [0.1, 0.9]])
        >>> nodes = md.Domain.nodes(2)
        >>> type(model.over(nodes, md.Discrete(1.0), np.array([0.5, 0.5]))).__name__
        'Chain'
        """

    def describe(self) -> dict[str, Any]:
        """Kind and the arguments of `from_description`, in JSON types."""
        return {"kind": self.kind, **{name: to_json(getattr(self, name)) for name, _ in self.described}}

    @classmethod
    def from_description(cls, description: dict[str, Any]) -> Self:
        """The model of an untrusted description made by `describe`."""
        check_keys(description, "movement", ("kind", *(name for name, _ in cls.described)))
        return cls(**{name: read(description[name], name) for name, read in cls.described})


@dataclass(frozen=True, kw_only=True, eq=False)
class RandomWalk(Movement):
    """A random walk: at every tick no move with probability `stay`, else one to a neighbour, uniformly.

    Neighbours on a grid are the two, eight or 26 adjacent cells that no masked cell cuts off. Elsewhere an edge of the
    metric joins neighbours, if it has few (a graph, streets). Somebody at a place without neighbours stays.

    Parameters
    ----------
    stay : float
        In [0, 1).

    Examples
    --------
    >>> md.sessions.RandomWalk(stay=0.8).stay
    0.8
    """

    stay: float = 0.9
    kind = "walk"
    described = (("stay", finite),)

    def __post_init__(self) -> None:
        if not 0 <= self.stay < 1:
            raise InputError("must be a probability below 1", field="stay", value=self.stay)
        object.__setattr__(self, "stay", float(self.stay))

    def over(self, domain: Domain, metric: Metric, prior: Vector) -> Chain:
        if domain.kind == "grid":
            tail, head = stencil_pairs(domain, _STENCIL[domain.dimension])
        elif metric.sparse:
            edges = metric.edges(domain)
            tail, head = edges.tail, edges.head
        else:
            raise UnsuitableError(
                "RandomWalk requires a grid, or a metric with few edges",
                field="movement",
                value=domain.kind,
                remedy="give the model: md.sessions.Transitions(matrix)",
            )
        n, ones = domain.size, np.ones(2 * len(tail))
        joined = sp.csr_array((ones, (np.concatenate([tail, head]), np.concatenate([head, tail]))), shape=(n, n))
        # A place without neighbours has degree 0: it stays with probability 1, or its row would sum to `stay`.
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
        # A list of lists of numbers is one matrix; a list of matrices is several.
        listed = isinstance(self.matrices, (list, tuple))
        try:
            several = listed and all(sp.issparse(part) or np.ndim(part) == 2 for part in self.matrices)
            matrices = self.matrices if several else [self.matrices]
            sparse = [sp.csr_array(matrix, dtype=float, copy=True) for matrix in matrices]
        except (TypeError, ValueError) as error:
            raise InputError("must be a matrix, or a list of matrices", field="matrices", value=str(error)) from error
        if not sparse or len({matrix.shape for matrix in sparse}) != 1:
            raise InputError("must have one shape", field="matrices", value=[matrix.shape for matrix in sparse[:5]])
        # Only checked here: files keep the numbers as they were passed, so that a description is exact.
        for matrix in sparse:
            stochastic(matrix, "matrices")
        object.__setattr__(self, "matrices", tuple(sparse))

    def over(self, domain: Domain, metric: Metric, prior: Vector) -> Chain:
        states = self.matrices[0].shape[0]
        place = np.arange(states) if self.place is None else np.asarray(self.place, np.int64)
        if place.shape != (states,) or place.min() < 0 or place.max() >= domain.size:
            problem = f"every one of {states} states needs one of the {domain.size} places"
            raise InputError(problem, field="place")
        initial = prior if self.initial is None else np.asarray(self.initial, float)
        matrices = tuple(stochastic(matrix, "matrices") for matrix in self.matrices)
        return Chain(size=domain.size, initial=check_prior(initial, states), place=place, matrices=matrices)

    def describe(self) -> dict[str, Any]:
        listed = [
            {"start": matrix.indptr.tolist(), "state": matrix.indices.tolist(), "probability": matrix.data.tolist()}
            for matrix in self.matrices
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
        for listed in description["matrices"]:
            parts = check_keys(listed, "matrices", ("start", "state", "probability"))
            data = finites(parts["probability"], "probability")
            rows = (wholes(parts["state"], "state", 0, states), wholes(parts["start"], "start", 0, len(data)))
            try:
                matrix = sp.csr_array((data, *rows), shape=(states, states))
                # The constructor alone trusts the indices: products with bad ones would read outside the arrays.
                matrix.check_format(full_check=True)
            except ValueError as error:
                raise InputError("is not a valid CSR matrix", field="matrices", value=str(error)) from error
            matrices.append(matrix)
        initial = None if "initial" not in description else finites(description["initial"], "initial")
        place = None if "place" not in description else wholes(description["place"], "place", 0, MOST_STATES)
        return cls(matrices, initial=initial, place=place)


def stochastic(matrix: sp.csr_array, field: str) -> sp.csr_array:
    """The square matrix with its rows divided by their sums."""
    # Sums within ROW_ERROR of 1 are rounding, which would grow over thousands of ticks; other sums are mistakes.
    sums = np.asarray(matrix.sum(axis=-1)).ravel()
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
    good = square and np.isfinite(matrix.data).all() and (matrix.data >= 0).all()
    if not good or not (np.abs(sums - 1) <= ROW_ERROR).all():
        worst = f"{' x '.join(map(str, matrix.shape))}, rows that sum to {sums.min():.6g} to {sums.max():.6g}"
        raise InputError("must be square, not negative, with rows that sum to 1", field=field, value=worst)
    return sp.csr_array(sp.diags_array(1 / sums) @ matrix)

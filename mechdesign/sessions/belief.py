"""Belief: where a public model places somebody after the releases, and the position that it estimates.

A hidden Markov filter (Rabiner 1989, section III) for weights w over states. It is post-processing.

    (1)  a tick                        w <- w T
    (2)  a report y from a table P     w(s) <- w(s) P(y | place of s), normalised
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mechdesign.base.arrays import Indices, Matrix, Vector
from mechdesign.base.records import FrozenRecord
from mechdesign.sessions.movement import Chain

LONGEST = 10_000  # ticks without a call after which the filter begins anew: a guess; it bounds the time of one call


@dataclass(frozen=True, kw_only=True, eq=False)
class Belief(FrozenRecord):
    """The distribution over the states of a chain, given the releases.

    Attributes
    ----------
    chain, loss : Chain, (n, n) array
        The model; the loss of naming a place (across) when another (down) is true.
    weights, tick : (s,) array, int
        The distribution, of sum 1; its tick.

    Examples
    --------
    >>> problem = md.load_problem("line", cells=3)
    >>> chain = md.sessions.RandomWalk().over(problem.domain, problem.metric, problem.prior_array)
    >>> md.sessions.Belief(chain=chain, loss=problem.loss_matrix, weights=chain.initial, tick=0).estimate
    0
    """

    chain: Chain
    loss: Matrix
    weights: Vector
    tick: int

    def at(self, tick: int) -> Belief:
        """The belief at a later tick. Cost: a step of the chain for every tick.

        Examples
        --------
        >>> problem = md.load_problem("line", cells=3)
        >>> chain = md.sessions.RandomWalk(stay=0.5).over(problem.domain, problem.metric, problem.prior_array)
        >>> belief = md.sessions.Belief(chain=chain, loss=problem.loss_matrix, weights=chain.initial, tick=0)
        >>> belief.at(3).tick
        3
        """
        if tick - self.tick > LONGEST:
            return replace(self, weights=self.chain.initial, tick=tick)
        # (1), tick by tick: models of a day have another matrix at every hour.
        weights = self.weights
        for passed in range(self.tick + 1, tick + 1):
            weights = self.chain.step(weights, passed)
        return replace(self, weights=weights, tick=tick)

    def update(self, likelihood: Vector) -> Belief:
        """The belief after a release, given its probabilities from each place (n,): (2).

        Examples
        --------
        >>> problem = md.load_problem("line", cells=3)
        >>> chain = md.sessions.RandomWalk(stay=0.5).over(problem.domain, problem.metric, problem.prior_array)
        >>> belief = md.sessions.Belief(chain=chain, loss=problem.loss_matrix, weights=chain.initial, tick=0)
        >>> belief.update(np.array([1.0, 0.0, 0.0])).estimate
        0
        """
        return replace(self, weights=self.chain.update(self.weights, likelihood))

    @cached_property
    def places(self) -> Vector:
        """The probabilities (n,) of the places."""
        return self.chain.places(self.weights)

    @property
    def estimate(self) -> int:
        """The place with the least expected loss."""
        return self._best[0]

    @property
    def error(self) -> float:
        """The expected loss of the estimate, in the unit of the loss."""
        return self._best[1]

    @cached_property
    def _best(self) -> tuple[int, float]:
        (place,), (error,) = best_places(self.places[None], self.loss)
        return int(place), float(error)


def best_places(distributions: Matrix, loss: Matrix) -> tuple[Indices, Vector]:
    """The places with the least expected loss under distributions, and that loss.

    Parameters
    ----------
    distributions, loss : (b, n) and (n, n) arrays
        Over places; the loss of naming a place (across) when another (down) is true.

    Returns
    -------
    (b,) int array of places, and (b,) array of losses

    Examples
    --------
    >>> md.sessions.best_places(np.array([[0.9, 0.1]]), 1.0 - np.eye(2))
    (array([0]), array([0.1]))
    """
    expected = distributions @ loss
    place = expected.argmin(axis=1)
    return place, expected[np.arange(len(place)), place]

"""Movement: a public model of how somebody moves from one tick to the next, for filters between reports.

It is a model of anybody, never of the person who is protected: what a filter makes of public reports with it is
post-processing, which weakens no claim, however wrong the model is. A wrong model costs accuracy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mechdesign.base.display import Shown
from mechdesign.errors import InputError
from mechdesign.setting.metric.metric import Metric
from mechdesign.setting.space.domain import Domain

ROW_ERROR = 1e-9  # by which the probabilities of a row may miss 1 before they are divided by their sum


@dataclass(frozen=True, kw_only=True, eq=False)
class Chain(Shown):
    """s hidden states, each at one of n places, that move at every tick.

    Fields: size, the number n of places; initial (s,), the distribution at the first tick; place (s,), where each state
    is; matrices, row-stochastic (s, s) and sparse: number t mod k of the k of them leads from tick t - 1 to tick t.
    Another way of moving is a subclass with its own `step` and `back`.
    """

    size: int
    initial: NDArray[np.float64]
    place: NDArray[np.int64]
    matrices: tuple[sp.csr_array, ...]

    def step(self, belief: NDArray[np.float64], tick: int) -> NDArray[np.float64]:
        """The distributions (..., s) at `tick` that follow from those at the tick before."""
        matrix = self.matrices[tick % len(self.matrices)]
        return np.asarray((matrix.T @ belief.reshape(-1, belief.shape[-1]).T).T).reshape(belief.shape)

    def back(self, values: NDArray[np.float64], tick: int) -> NDArray[np.float64]:
        """The expectations (..., s), given the state at the tick before, of values (..., s) of the state at `tick`."""
        matrix = self.matrices[tick % len(self.matrices)]
        return np.asarray((matrix @ values.reshape(-1, values.shape[-1]).T).T).reshape(values.shape)

    def places(self, belief: NDArray[np.float64]) -> NDArray[np.float64]:
        """The distributions (..., n) over places of distributions (..., s) over states."""
        if self._states_are_places:
            return belief
        return np.asarray((self._incidence.T @ belief.reshape(-1, belief.shape[-1]).T).T).reshape(
            *belief.shape[:-1], self.size
        )

    @cached_property
    def _states_are_places(self) -> bool:
        return np.array_equal(self.place, np.arange(self.size))

    @cached_property
    def _incidence(self) -> sp.csr_array:
        states = len(self.place)
        return sp.csr_array((np.ones(states), (np.arange(states), self.place)), shape=(states, self.size))


@dataclass(frozen=True, kw_only=True, eq=False)
class Movement(Shown, ABC):
    """A model that any domain makes a `Chain` of. A class of its own is a frozen dataclass with a row in `MOVEMENTS`;
    kind, its name there and in files.
    """

    kind: ClassVar[str]

    @abstractmethod
    def over(self, domain: Domain, metric: Metric, prior: NDArray[np.float64]) -> Chain:
        """The chain on the places of `domain`, begun from `prior` (n,). Raises: InputError where it does not fit."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """kind, and what `from_description` needs, as JSON holds it."""

    @classmethod
    @abstractmethod
    def from_description(cls, told: dict[str, Any]) -> Self:
        """The model of `describe`; told holds data from anybody. Raises: InputError that names the field."""


def stochastic(matrix: sp.csr_array, field: str) -> sp.csr_array:
    """The square matrix with its rows divided by their sums.

    Raises: InputError for entries that are negative or not finite, and rows that miss 1 by more than 1e-9.
    """
    sums = np.asarray(matrix.sum(axis=-1)).ravel()
    good = (
        matrix.ndim == 2
        and matrix.shape[0] == matrix.shape[1]
        and np.isfinite(matrix.data).all()
        and (matrix.data >= 0).all()
    )
    if not good or not (np.abs(sums - 1) <= ROW_ERROR).all():
        worst = f"{' x '.join(map(str, matrix.shape))}, rows that sum to {sums.min():.6g} to {sums.max():.6g}"
        raise InputError(
            "must be square, not negative, with rows that sum to 1",
            field=field,
            value=worst,
            remedy="divide every row by its sum",
        )
    return sp.csr_array(sp.diags_array(1 / sums) @ matrix)

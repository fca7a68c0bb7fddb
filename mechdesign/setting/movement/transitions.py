"""Transitions: a given row-stochastic matrix, or one for every tick of a period."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.descriptions import finites, named, whole, wholes
from mechdesign.errors import InputError
from mechdesign.setting.metric.metric import Metric
from mechdesign.setting.movement.movement import Chain, Movement, stochastic
from mechdesign.setting.objective.priors import check_prior
from mechdesign.setting.space.domain import Domain

_MOST = 1 << 20  # states of a description


@dataclass(frozen=True, kw_only=True, eq=False)
class Transitions(Movement):
    """P(state at tick t | state at t - 1) as a sparse or dense matrix (s, s), or a list of k of them, of which number
    t mod k leads to tick t.

    initial (s,), the prior of the tables by default; place (s,), where each state is, state k at place k by default.
    Raises: InputError for rows that are negative or do not sum to 1; `over`: for states that are not at places.
    """

    matrices: Any = field(kw_only=False)
    initial: ArrayLike | None = None
    place: ArrayLike | None = None
    kind = "transitions"

    def __post_init__(self) -> None:
        try:
            several = isinstance(self.matrices, (list, tuple)) and all(_flat(each) for each in self.matrices)
            given = self.matrices if several else [self.matrices]
            sparse = [sp.csr_array(each, dtype=float, copy=True) for each in given]
        except (TypeError, ValueError) as error:
            raise InputError(
                "must be a matrix, or a list of matrices", field="matrices", value=str(error), remedy="pass (s, s)"
            ) from error
        if not sparse or len({each.shape for each in sparse}) != 1:
            shapes = [each.shape for each in sparse[:5]]
            raise InputError("must have one shape", field="matrices", value=shapes, remedy="pass (s, s) for every tick")
        for each in sparse:
            stochastic(each, "matrices")
        object.__setattr__(self, "matrices", tuple(sparse))

    def over(self, domain: Domain, metric: Metric, prior: NDArray[np.float64]) -> Chain:
        states = self.matrices[0].shape[0]
        place = np.arange(states) if self.place is None else np.asarray(self.place, np.int64)
        if place.shape != (states,) or place.min() < 0 or place.max() >= domain.size:
            raise InputError(
                f"every state needs one of the {domain.size} places",
                field="place",
                value=f"{states} states",
                remedy="give place=..., the place of every state",
            )
        given = prior if self.initial is None else np.asarray(self.initial, float)
        matrices = tuple(stochastic(each, "matrices") for each in self.matrices)
        return Chain(size=domain.size, initial=check_prior(given, states), place=place, matrices=matrices)

    def describe(self) -> dict[str, Any]:
        listed = [
            {"start": each.indptr.tolist(), "state": each.indices.tolist(), "probability": each.data.tolist()}
            for each in self.matrices
        ]
        told: dict[str, Any] = {"kind": self.kind, "states": self.matrices[0].shape[0], "matrices": listed}
        own = {"initial": (self.initial, float), "place": (self.place, int)}
        return told | {
            name: np.asarray(value, kind).tolist() for name, (value, kind) in own.items() if value is not None
        }

    @classmethod
    def from_description(cls, told: dict[str, Any]) -> Self:
        named(told, "movement", ("kind", "states", "matrices"), ("initial", "place"))
        states = whole(told["states"], "states", 1, _MOST)
        if not isinstance(told["matrices"], list):
            raise InputError(
                "must be a list", field="matrices", value=type(told["matrices"]), remedy="use a whole file"
            )
        initial = None if "initial" not in told else finites(told["initial"], "initial")
        place = None if "place" not in told else wholes(told["place"], "place", 0, _MOST)
        return cls([_matrix(each, states) for each in told["matrices"]], initial=initial, place=place)


def _flat(given: object) -> bool:
    """Whether something is a matrix: of two axes."""
    return sp.issparse(given) or np.ndim(given) == 2  # type: ignore[arg-type]


def _matrix(told: object, states: int) -> sp.csr_array:
    """The matrix of compressed rows that anybody may have written."""
    parts = named(told, "matrices", ("start", "state", "probability"))
    data = finites(parts["probability"], "probability")
    start = wholes(parts["start"], "start", 0, len(data))
    state = wholes(parts["state"], "state", 0, states - 1)
    sound = len(start) == states + 1 and len(state) == len(data) and start[0] == 0 and start[-1] == len(data)
    if not sound or (np.diff(start) < 0).any():
        raise InputError("are no compressed rows", field="matrices", value=len(start), remedy="use a whole file")
    return sp.csr_array((data, state, start), shape=(states, states))

"""Program: a constrained program over the tables of a design problem, stated here and solved in solvers/."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.records import FrozenRecord
from mechdesign.base.validation import refuse_entries
from mechdesign.errors import InputError
from mechdesign.problem.problem import DesignProblem

if TYPE_CHECKING:
    import cvxpy as cp


EXPECTED_LOSS = "the expected loss"  # the objective, unless a program names another


@dataclass(frozen=True, kw_only=True, eq=False)
class Program(FrozenRecord, ABC):
    """A program over a design problem. Subclasses are final; their module docstring states the program.

    Parameters
    ----------
    problem : DesignProblem
        Secrets, metric, prior and loss.

    Examples
    --------
    >>> issubclass(md.Optimal, md.extend.Program)
    True
    """

    problem: DesignProblem = field(kw_only=False)
    name: ClassVar[str]
    between_positions: ClassVar[bool] = False  # whether its tables claim, and are judged, between any two positions

    @property
    def objective_of(self) -> str:
        """The name of the objective."""
        return EXPECTED_LOSS

    @abstractmethod
    def statement(self) -> cp.Problem:
        """The program in cvxpy (DCP), which tests solve on small cases."""

    def parameters(self) -> dict[str, Any]:
        """Parameters of the program for the file."""
        return {}


def place_numbers(places: Sequence[int], size: int, field: str) -> NDArray[np.int64]:
    """Place numbers (k,) in order, each once, checked to be from 0 to size - 1."""
    numbers, message = np.ravel(np.asarray(places)), f"must be place numbers from 0 to {size - 1}"
    if not (numbers.size and np.issubdtype(numbers.dtype, np.integer)):
        raise InputError(message, field=field, value=places)
    refuse_entries((numbers < 0) | (numbers >= size), numbers, message, field=field)
    return np.unique(numbers).astype(np.int64)

"""Solvers of claimed limits, which a program may have more rows of than can be listed.

A solver adds the rows that its tables break, and stores which rows the last multipliers of a file belong to. Then
`verify` forms the same rows again and recomputes the bound.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.registry import Registry
from mechdesign.errors import InputError
from mechdesign.programs.constrained import Constrained
from mechdesign.programs.coupled import SideRows
from mechdesign.solvers.result import Design, Targets


@dataclass(frozen=True, kw_only=True, eq=False)
class LimitSolver(ABC):
    """Solves a program with claimed limits, and checks the tables that others say to keep them."""

    program: Constrained

    @abstractmethod
    def solve(self, targets: Targets) -> Design:
        """A certified table that keeps all limits, with its bound and `row_variables`."""

    @abstractmethod
    def breaches(self, mass: NDArray[np.uint64]) -> list[str]:
        """The limits that integers (n, m) break, compared exactly; a reason for each."""

    @abstractmethod
    def stored_rows(self, mechanism: xr.Dataset) -> SideRows | None:
        """The rows that the last multipliers of a file belong to; None if it stores none.

        Raises: VerificationError for variables that name no such rows.
        """


LIMIT_SOLVERS: Registry[type[LimitSolver]] = Registry("limit solvers")  # by the name of the constraint


def limit_solver(program: Constrained) -> LimitSolver | None:
    """The solver of the claimed limits of a program; None if it has none. Raises: InputError if they need several."""
    solvers = {LIMIT_SOLVERS[limit.name] for limit in program.limits}
    if len(solvers) > 1:
        names = ", ".join(sorted({limit.name for limit in program.limits}))
        raise InputError("no one solver takes all of these limits", field="constraints", value=names)
    return next((solver(program=program) for solver in solvers), None)

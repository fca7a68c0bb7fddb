"""Solvers of claimed limits, which can have more rows than can be listed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import xarray as xr

from mechdesign.base.arrays import Masses
from mechdesign.base.registry import Registry
from mechdesign.errors import InputError
from mechdesign.programs.constrained import Constrained
from mechdesign.programs.coupled import SideRows
from mechdesign.solvers.result import SolveResult, Targets


# A solver stores the rows of the last multipliers in the file; `verify` forms them again.
@dataclass(frozen=True, kw_only=True, eq=False)
class LimitSolver(ABC):
    """Solves a program with claimed limits, and checks tables against them."""

    program: Constrained

    @abstractmethod
    def solve(self, targets: Targets) -> SolveResult:
        """A certified table that satisfies all limits, with its bound and `row_variables`."""

    @abstractmethod
    def breaches(self, mass: Masses) -> list[str]:
        """The limits that integers (n, m) violate, compared exactly; a reason for each."""

    @abstractmethod
    def stored_rows(self, mechanism: xr.Dataset) -> SideRows | None:
        """The rows of the last multipliers of a file, if any; VerificationError if its variables are invalid."""


LIMIT_SOLVERS: Registry[type[LimitSolver]] = Registry("limit solvers")  # by the name of the constraint


def limit_solver(program: Constrained) -> LimitSolver | None:
    """The solver of the claimed limits of a program, if it has any; InputError if they need several."""
    # A program can have several limits, but one solver must take all of them.
    solvers = {LIMIT_SOLVERS[limit.name] for limit in program.limits}
    if len(solvers) > 1:
        names = ", ".join(sorted({limit.name for limit in program.limits}))
        raise InputError(
            "no single solver accepts all of these limits: use limits of one kind", field="constraints", value=names
        )
    return next((solver(program=program) for solver in solvers), None)

"""Program: a constrained program over the tables of a design problem, stated here and solved in solvers/."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from mechdesign.base.records import FrozenRecord
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
        return EXPECTED_LOSS

    @abstractmethod
    def statement(self) -> cp.Problem:
        """The program in cvxpy (DCP), which tests solve on small cases.

        Examples
        --------
        >>> md.Optimal(md.load_problem("line", cells=3)).statement().is_dcp()
        True
        """

    def parameters(self) -> dict[str, Any]:
        """Parameters of the program for the file.

        Examples
        --------
        >>> md.programs.Bounded(md.load_problem("line", cells=3), worst_loss=1.0).parameters()
        {'worst_loss': 1.0}
        """
        return {}

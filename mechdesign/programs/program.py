r"""Program: a constrained program over the tables of a design problem, stated and assembled but never solved here.

`Optimal` is the program of the optimal locally Lipschitz mechanism.

    minimise    sum_u prior(u) sum_y P(y|u) l(u, y)
    over        P (n, m)
    subject to  P >= 0,  sum_y P(y|u) = 1                       for every secret u
                P(y|u) <= e^{d_e} P(y|v)                        for every edge e = (u, v), both ways, and report y

Source: Koufogiannis & Pappas 2016, section IV (the program behind Table I); Koufogiannis 2017, equations (6.22)-(6.24);
the same program under a Euclidean metric is the optimal geo-indistinguishable mechanism of Bordenabe et al. 2014.
Known: 0/1 loss on a line gives the truncated geometric mechanism (Ghosh et al. 2012); the discrete metric with 0/1 loss
gives K-ary randomized response.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mechdesign.base.records import ReprMixin
from mechdesign.base.validation import refuse_entries
from mechdesign.errors import InputError
from mechdesign.problem.problem import DesignProblem

if TYPE_CHECKING:
    import cvxpy as cp


EXPECTED_LOSS = "the expected loss"  # the objective, unless a program names another
LOOSE = 34.0  # slack of cone rows from which they are left out: e^34 exceeds a solver's range


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearProgram:
    """minimise cost x subject to row_lower <= matrix x <= row_upper, x >= 0.

    The first `linking` rows are the row sums of the mechanism; their multipliers are the dual of the design.
    """

    cost: NDArray[np.float64]
    matrix: sp.csr_array
    row_lower: NDArray[np.float64]
    row_upper: NDArray[np.float64]
    linking: int


def cone_rows(
    slack: NDArray[np.float64], lower: NDArray[np.int64], upper: NDArray[np.int64], width: int
) -> sp.csr_array:
    """The rows (c, width) of q[lower] - e^slack q[upper] <= 0, with e^{-slack/2} and e^{slack/2} on the two sides."""
    rows = np.tile(np.arange(len(slack)), 2)
    entries = np.r_[np.exp(-slack / 2), -np.exp(slack / 2)]
    return sp.csr_array((entries, (rows, np.r_[lower, upper])), shape=(len(slack), width))


@dataclass(frozen=True, kw_only=True, eq=False)
class Program(ReprMixin, ABC):
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
        """The program in cvxpy (DCP): the readable truth, and the oracle of the tests on small cases."""

    def parameters(self) -> dict[str, Any]:
        """Parameters of the program that a file keeps."""
        return {}


def place_numbers(places: Sequence[int], size: int, field: str) -> NDArray[np.int64]:
    """Place numbers (k,) in order, each once. Raises: InputError for none, or others than 0 to size - 1."""
    numbers, message = np.ravel(np.asarray(places)), f"must be place numbers from 0 to {size - 1}"
    if not (numbers.size and np.issubdtype(numbers.dtype, np.integer)):
        raise InputError(message, field=field, value=places)
    refuse_entries((numbers < 0) | (numbers >= size), numbers, message, field=field)
    return np.unique(numbers).astype(np.int64)


def simplex(table: cp.Variable) -> list[cp.Constraint]:
    """Rows of a table are probability distributions, in cvxpy: table >= 0, sum over reports = 1.

    Parameters
    ----------
    table : cvxpy.Variable
        (n, m) probabilities.

    Returns
    -------
    list of cvxpy.Constraint
        Both.

    Examples
    --------
    >>> import cvxpy as cp
    >>> len(md.extend.simplex(cp.Variable((3, 3))))
    2
    """
    import cvxpy as cp

    return [table >= 0, cp.sum(table, axis=1) == 1]


def lipschitz(table: cp.Variable, problem: DesignProblem) -> list[cp.Constraint]:
    """The claim in cvxpy: table(u, y) <= e^{d(u, v)} table(v, y) for every report y and every edge (u, v), both ways.

    Written with e^{-d/2} and e^{d/2} on the two sides, so that coefficients stay near 1.

    Parameters
    ----------
    table : cvxpy.Variable
        (n, m) probabilities.
    problem : DesignProblem
        The metric.

    Returns
    -------
    list of cvxpy.Constraint
        One for each direction.

    Examples
    --------
    >>> import cvxpy as cp
    >>> len(md.extend.lipschitz(cp.Variable((3, 3)), md.load_problem("discrete", secrets=3)))
    1
    """
    tail, head, length = problem.edges.both_ways()
    half = np.exp(length / 2)
    n, e = problem.domain.size, len(tail)
    rows = np.arange(e)
    left = sp.csr_array((1 / half, (rows, tail)), shape=(e, n))
    right = sp.csr_array((half, (rows, head)), shape=(e, n))
    return [left @ table <= right @ table]


def private_table(problem: DesignProblem) -> tuple[cp.Variable, list[cp.Constraint]]:
    """The variable P (n, m), and the constraints `simplex` and `lipschitz` on it."""
    import cvxpy as cp

    table = cp.Variable((problem.domain.size, problem.reports.size), name="P")
    return table, [*simplex(table), *lipschitz(table, problem)]


def expected_loss(table: cp.Variable, problem: DesignProblem) -> cp.Expression:
    """The expected loss in cvxpy: the sum over u, y of prior(u) table(u, y) loss(u, y).

    Parameters
    ----------
    table : cvxpy.Variable
        (n, m) probabilities.
    problem : DesignProblem
        Prior and loss.

    Returns
    -------
    cvxpy.Expression
        In loss units.

    Examples
    --------
    >>> import cvxpy as cp
    >>> md.extend.expected_loss(cp.Variable((3, 3)), md.load_problem("discrete", secrets=3)).is_affine()
    True
    """
    import cvxpy as cp

    return cp.sum(cp.multiply(problem.weighted_loss, table))


@dataclass(frozen=True, kw_only=True, eq=False)
class Optimal(Program):
    """The optimal program: the mechanism of least expected loss under the claim of a problem.

    Its statement is in `mechdesign.programs.program`.

    Parameters
    ----------
    problem : DesignProblem
        Secrets, metric, prior and loss.

    References
    ----------
    Koufogiannis & Pappas 2016, section IV; Koufogiannis 2017, equations (6.22)-(6.24).

    Examples
    --------
    >>> program = md.Optimal(md.load_problem("discrete", secrets=3))
    >>> round(float(program.statement().solve(solver="HIGHS")), 6)
    0.308562
    """

    name = "optimal"

    def statement(self) -> cp.Problem:
        import cvxpy as cp

        table, constraints = private_table(self.problem)
        return cp.Problem(cp.Minimize(expected_loss(table, self.problem)), constraints)

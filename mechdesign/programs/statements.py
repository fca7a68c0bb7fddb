"""Parts of statements in cvxpy: (1)-(3) of programs/optimal.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mechdesign.problem.problem import DesignProblem

if TYPE_CHECKING:
    import cvxpy as cp


def simplex(table: cp.Variable) -> list[cp.Constraint]:
    """Rows of a table are probability distributions, in cvxpy: table >= 0, sum over reports = 1.

    Parameters
    ----------
    table : cvxpy.Variable
        (n, m) probabilities.

    Returns
    -------
    list of cvxpy.Constraint

    Examples
    --------
    >>> import cvxpy as cp
    >>> len(md.extend.simplex(cp.Variable((3, 3))))
    2
    """
    import cvxpy as cp

    # Constraints (2).
    return [table >= 0, cp.sum(table, axis=1) == 1]


def lipschitz(table: cp.Variable, problem: DesignProblem) -> list[cp.Constraint]:
    """The claim in cvxpy: table(u, y) <= e^{d(u, v)} table(v, y) for every report y and every edge (u, v), both ways.

    Parameters
    ----------
    table, problem : cvxpy.Variable, DesignProblem
        (n, m) probabilities; the metric.

    Returns
    -------
    list of cvxpy.Constraint, one for each direction

    Examples
    --------
    >>> import cvxpy as cp
    >>> len(md.extend.lipschitz(cp.Variable((3, 3)), md.load_problem("discrete", secrets=3)))
    1
    """
    import scipy.sparse as sp

    tail, head, length = problem.edges.both_ways()
    # (3) as e^{-d/2} P(y|u) <= e^{d/2} P(y|v): the halves keep coefficients near 1, where solvers scale best.
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
    table, problem : cvxpy.Variable, DesignProblem
        (n, m) probabilities; prior and loss.

    Returns
    -------
    cvxpy.Expression, in loss units

    Examples
    --------
    >>> import cvxpy as cp
    >>> md.extend.expected_loss(cp.Variable((3, 3)), md.load_problem("discrete", secrets=3)).is_affine()
    True
    """
    import cvxpy as cp

    # Objective (1).
    return cp.sum(cp.multiply(problem.weighted_loss, table))

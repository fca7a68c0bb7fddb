"""Mechanisms as they are often made: a solver's table used as it comes."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.optimize import linprog

from mechdesign import DesignProblem


def raw_optimum(problem: DesignProblem, method: str = "highs-ds") -> NDArray[np.float64]:
    """The optimal program's table (n, m) as HiGHS returns it, clipped at 0 and with rows divided by their sums."""
    n, m = problem.weighted_loss.shape
    edges = problem.edges
    tail, head = np.concatenate([edges.tail, edges.head]), np.concatenate([edges.head, edges.tail])
    most = np.exp(np.concatenate([edges.length, edges.length]))
    count = len(tail)
    line = np.arange(count)
    cone = scipy.sparse.csr_matrix((np.ones(count), (line, tail)), (count, n))
    cone -= scipy.sparse.csr_matrix((most, (line, head)), (count, n))
    found = linprog(
        problem.weighted_loss.ravel(),
        A_ub=scipy.sparse.kron(cone, scipy.sparse.eye(m), format="csr"),
        b_ub=np.zeros(count * m),
        A_eq=scipy.sparse.kron(scipy.sparse.eye(n), np.ones((1, m)), format="csr"),
        b_eq=np.ones(n),
        method=method,
    )
    table = np.maximum(found.x.reshape(n, m), 0)
    return table / table.sum(axis=1, keepdims=True)

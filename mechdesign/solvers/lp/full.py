"""The whole linear program of a coupled program, with variables and rows scaled for a solver."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from mechdesign.base.arrays import Matrix, Vector
from mechdesign.base.memory import require_memory
from mechdesign.errors import SizeError
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.coupled import SideRows
from mechdesign.solvers.lp.linear_program import LOOSE, LinearProgram, cone_rows

MOST_ROWS = 400_000  # rows of the largest program that is assembled: the solver takes minutes there
_TABLES = 200  # 64-bit numbers per row that assembling and factorising hold at once


# P(y|u) = q(u, y) e^{-E(u, y)},    E = min(D, cap),    D(u, y) the distance from the anchor of report y          (1)
@dataclass(frozen=True, kw_only=True, eq=False)
class WholeProgram:
    """A linear program for a table P = q kernel, and its scales."""

    program: LinearProgram  # rows: sums (n), side rows (k), then the cone
    kernel: Matrix  # (n, m)
    scale: float  # 1 / unit of the objective
    row_scale: Vector  # (k,): divisors of the side rows

    def table(self, x: Vector) -> Matrix:
        return x[: self.kernel.size].reshape(self.kernel.shape) * self.kernel

    def multipliers(self, dual: Vector) -> tuple[Vector, Vector]:
        """Multipliers lambda (n,) of the row sums and mu (k,) >= 0 of the side rows, in units of the objective."""
        n = len(self.kernel)
        return dual[:n] / self.scale, np.maximum(-dual[n:], 0.0) / (self.scale * self.row_scale)


def count_rows(problem: DesignProblem, side: int) -> int:
    """Rows of the whole program with `side` side rows."""
    return 2 * len(problem.edges.tail) * problem.reports.size + problem.domain.size + side


def require_whole(problem: DesignProblem, side: int, *, noun: str) -> None:
    """Raise SizeError for a whole program of more than 400,000 rows, or one that does not fit in memory."""
    rows = count_rows(problem, side)
    if rows > MOST_ROWS:
        message = f"{noun} has {rows} rows, and at most {MOST_ROWS} are solved: use fewer cells or a smaller stencil"
        raise SizeError(message, field="cells", value=problem.domain.size)
    require_memory(rows, 1, tables=_TABLES, noun=noun)


def assemble_whole(
    problem: DesignProblem,
    cost: Matrix,  # (n, m), in loss units
    rows: SideRows,
    distance: Matrix,  # (m, n), in nats from the anchors
    *,
    cap: float,  # nats
    unit: float,  # of the objective and of t, in loss units
) -> WholeProgram:
    """Minimise <cost, P> + t over private tables with side rows; t is the last variable, if a row has s > 0."""
    n, m = cost.shape
    # Tolerances of solvers are absolute: objectives are near n, a cost of about 1 a secret.
    scale = n / unit
    # (1): uncapped kernels of far reports would be smaller than a tolerance.
    capped = np.minimum(distance, cap)
    kernel = np.exp(-capped).T.copy()
    has_t = bool((rows.epigraph_coefficient > 0).any())
    width = n * m + has_t
    flat = np.arange(n * m)
    sums = sp.csr_array((kernel.ravel(), (flat // m, flat)), shape=(n, width))
    row_scale = np.where(rows.epigraph_coefficient > 0, rows.epigraph_coefficient * unit, np.abs(rows.limit))
    # A limit of 0 gives no scale: the largest coefficient of its row does.
    largest = abs(rows.matrix).max(axis=1).toarray().ravel() if rows.size else np.zeros(0)
    row_scale = np.where(row_scale > 0, row_scale, np.where(largest > 0, largest, 1.0))
    side = sp.csr_array(sp.diags_array(1 / row_scale) @ rows.matrix @ sp.diags_array(kernel.ravel()))
    if has_t:
        # t is in units of `unit`, as the objective.
        side = sp.hstack([side, sp.csr_array((-rows.epigraph_coefficient * unit / row_scale)[:, None])], format="csr")
    matrix = sp.csr_array(sp.vstack([sums, side, _cone(problem, capped, width)], format="csr"))
    cone_size = matrix.shape[0] - n - rows.size
    program = LinearProgram(
        cost=np.r_[(cost * kernel).ravel() * scale, np.full(int(has_t), unit * scale)],
        matrix=matrix,
        row_lower=np.r_[np.ones(n), np.full(rows.size + cone_size, -np.inf)],
        row_upper=np.r_[np.ones(n), rows.limit / row_scale, np.zeros(cone_size)],
        linking=n + rows.size,
    )
    return WholeProgram(program=program, kernel=kernel, scale=scale, row_scale=row_scale)


def _cone(problem: DesignProblem, capped: Matrix, width: int) -> sp.csr_array:
    """q(u, y) <= e^k q(v, y) with k = d_e - E(v, y) + E(u, y)."""
    m = problem.reports.size
    tail, head, length = problem.edges.both_ways()
    # (1) inserted into P(u, y) <= e^d P(v, y). k is never negative but for rounding, since D is 1-Lipschitz.
    slack = np.maximum(length - capped[:, head] + capped[:, tail], 0.0)
    # Rows that are left out need not hold: the repair makes the table private.
    report, edge = np.nonzero(slack < LOOSE)
    return cone_rows(slack[report, edge], tail[edge] * m + report, head[edge] * m + report, width)

r"""Coupled programs: a linear objective over private tables, with further rows that couple their entries.

    minimise    sum_{u,y} c(u, y) P(y|u) + t                                                            (1)
    over        private tables P (n, m), t >= 0                                                         (2)
    subject to  sum_{u,y} G_k(u, y) P(y|u) <= h_k + s_k t       for every side row k                    (3)

Bound. Take any mu >= 0 with sum_k s_k mu_k <= 1 and fold the side rows into the effective cost

    c' = c + sum_k mu_k G_k.                                                                            (4)

For any lambda the objective of every feasible table is at least

    sum_u lambda(u) + sum_y min(0, min over the cone of <c'_y - lambda, g> / g(anchor(y))) - sum_k mu_k h_k.

This is the bound of the optimal program for the cost c', less <mu, h>.
Source: Koufogiannis 2017, equations (6.22)-(6.24), with further rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mechdesign.base.arrays import Indices, Matrix, Vector
from mechdesign.programs.program import EXPECTED_LOSS, Program

if TYPE_CHECKING:
    import scipy.sparse as sp


@dataclass(frozen=True, kw_only=True, eq=False)
class SideRows:
    """Side rows (3), G P <= h + s t, over tables (n, m) flattened row by row."""

    matrix: sp.csr_array  # G (k, n m)
    limit: Vector  # h (k,)
    epigraph_coefficient: Vector  # s (k,), >= 0
    names: Sequence[str]  # (k,): of the rows in errors

    @property
    def size(self) -> int:
        return len(self.limit)

    @property
    def size_of_limits(self) -> Vector:
        """|h| (k,), or 1 for h = 0: the scale of margins and relaxations."""
        return np.where(self.limit == 0, 1.0, np.abs(self.limit))

    def with_margin(self, margin: Vector) -> SideRows:
        return replace(self, limit=self.limit - margin)

    def values(self, table: Matrix) -> Vector:
        """G P (k,) of a table (n, m), in floating point."""
        return self.matrix @ table.ravel()

    def excess_up(self, table: Matrix) -> Vector:
        """The excess (k,) of a table (n, m) over the limits, rounded up; 0 on rows with s > 0, which t absorbs."""
        # It holds for any table whose entries differ from `table` by half a unit in the last place. The rounding of a
        # sum of j products is at most (j + 1) 2^-53 times the sum of their absolute values. Twice that, 2^-52,
        # covers the rounding of `size` itself.
        terms = np.diff(self.matrix.indptr)
        size = abs(self.matrix) @ np.abs(table.ravel()) + np.abs(self.limit)
        excess = self.values(table) - self.limit + (terms + 6) * 2.0**-52 * size
        return np.where(self.epigraph_coefficient > 0, 0.0, np.maximum(excess, 0.0))

    def lagrangian_cost_down(self, cost: Matrix, multipliers: Vector) -> Matrix:
        """The effective cost (4), (n, m), rounded down: a smaller cost gives a valid bound."""
        transposed = self.matrix.T.tocsr()
        size = np.abs(cost).ravel() + abs(transposed) @ multipliers
        folded = cost.ravel() + transposed @ multipliers
        # The same rounding bound as in `excess_up`; 1e-300 exceeds the loss of products that underflow.
        return (folded - (np.diff(transposed.indptr) + 4) * 2.0**-52 * size - 1e-300).reshape(cost.shape)


def stack_rows(parts: Sequence[SideRows], entries: int) -> SideRows:
    """All rows of several sets, in order; entries = n m."""
    import scipy.sparse as sp

    return SideRows(
        matrix=sp.csr_array(sp.vstack([sp.csr_array((0, entries)), *(part.matrix for part in parts)], format="csr")),
        limit=np.concatenate([np.zeros(0), *(part.limit for part in parts)]),
        epigraph_coefficient=np.concatenate([np.zeros(0), *(part.epigraph_coefficient for part in parts)]),
        names=[name for part in parts for name in part.names],
    )


def rows_per_secret(
    entries: Matrix,
    *,
    limit: Vector,
    epigraph_coefficient: float = 0.0,
    noun: str,
    secrets: Indices | None = None,
) -> SideRows:
    """sum_y entries(u, y) P(y|u) <= limit(u) + s t for `secrets`, all by default; entries (n, m), limit (n,)."""
    import scipy.sparse as sp

    n, m = entries.shape
    numbers = np.arange(n) if secrets is None else secrets
    k = len(numbers)
    # Compressed rows of m entries each: row u of the table is m consecutive variables.
    columns = (numbers[:, None] * m + np.arange(m)).ravel()
    matrix = sp.csr_array((entries[numbers].ravel(), columns, np.arange(0, k * m + 1, m)), shape=(k, n * m))
    matrix.eliminate_zeros()
    names = [f"{noun} at secret {u}" for u in numbers]
    coefficients = np.full(k, epigraph_coefficient)
    return SideRows(matrix=matrix, limit=limit[numbers], epigraph_coefficient=coefficients, names=names)


@dataclass(frozen=True, kw_only=True, eq=False)
class Coupled(Program):
    """A program (1)-(3); subclasses are final."""

    limits_field: ClassVar[str] = "constraints"
    objective_of: ClassVar[str] = EXPECTED_LOSS

    def base_cost(self) -> Matrix:
        """The cost c (n, m), by default that of the expected loss.

        Examples
        --------
        >>> md.programs.Minimax(md.load_problem("line", cells=3)).base_cost().shape
        (3, 3)
        """
        return self.problem.weighted_loss

    @abstractmethod
    def side_rows(self) -> SideRows:
        """The side rows G, h and s.

        Examples
        --------
        >>> md.programs.Minimax(md.load_problem("line", cells=3)).side_rows().size
        3
        """


def objective(cost: Matrix, rows: SideRows, table: Matrix) -> float:
    """<cost, P> + t of a table (n, m), t at its least value, in floating point."""
    # The smallest t that (3) allows is the largest (G P - h) / s, or 0.
    has_t = rows.epigraph_coefficient > 0
    excess = (rows.values(table) - rows.limit)[has_t] / rows.epigraph_coefficient[has_t]
    return float((cost * table).sum()) + float(excess.max(initial=0.0))


def constant_objective(cost: Matrix, rows: SideRows) -> float:
    """The objective of the best constant report: the scale of objectives."""
    import scipy.sparse as sp

    n, m = cost.shape
    # Column y is the table that always reports y.
    constant_tables = sp.csr_array((np.ones(n * m), (np.arange(n * m), np.tile(np.arange(m), n))), shape=(n * m, m))
    has_t = rows.epigraph_coefficient > 0
    values = (rows.matrix @ constant_tables).toarray()[has_t]
    excess = (values - rows.limit[has_t, None]) / rows.epigraph_coefficient[has_t, None]
    return float((cost.sum(axis=0) + excess.max(axis=0, initial=0.0)).min())

r"""Coupled programs: a linear objective over private tables, with further rows that couple their entries.

    minimise    sum_{u,y} c(u, y) P(y|u) + t
    over        private tables P (n, m), t >= 0
    subject to  sum_{u,y} G_k(u, y) P(y|u) <= h_k + s_k t       for every side row k

Bound. Take any mu >= 0 with sum_k s_k mu_k <= 1 and fold the side rows into the effective cost c' = c + sum_k mu_k G_k.
For any lambda the objective of every feasible table is at least

    sum_u lambda(u) + sum_y min(0, min over the cone of <c'_y - lambda, g> / g(anchor(y))) - sum_k mu_k h_k:

the bound of the optimal program for the cost c'. For the worst-case loss mu is a prior over the secrets, and the bound
is that of the optimal program under it. Source: Koufogiannis 2017, equations (6.22)-(6.24), with further rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mechdesign.programs.program import EXPECTED_LOSS, Program


@dataclass(frozen=True, kw_only=True, eq=False)
class SideRows:
    """Side rows G P <= h + s t over tables (n, m) flattened row by row."""

    matrix: sp.csr_array  # G (k, n m)
    limit: NDArray[np.float64]  # h (k,)
    share: NDArray[np.float64]  # s (k,), >= 0
    names: Sequence[str]  # (k,): of the rows in errors

    @property
    def size(self) -> int:
        return len(self.limit)

    @property
    def size_of_limits(self) -> NDArray[np.float64]:
        """|h| (k,), or 1 for h = 0: the scale of margins and relaxations."""
        return np.where(self.limit == 0, 1.0, np.abs(self.limit))

    def with_margin(self, margin: NDArray[np.float64]) -> SideRows:
        return replace(self, limit=self.limit - margin)

    def values(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """G P (k,) of a table (n, m), in floating point."""
        return self.matrix @ table.ravel()

    def excess_up(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """The excess (k,) of a table (n, m) over the limits, rounded up; 0 on rows with a share."""
        # It holds for any table whose entries differ from `table` by half a unit in the last place. The rounding of a
        # sum of j products is at most (j + 1) 2^-53 times the sum of their absolute values.
        terms = np.diff(self.matrix.indptr)
        size = abs(self.matrix) @ np.abs(table.ravel()) + np.abs(self.limit)
        excess = self.values(table) - self.limit + (terms + 6) * 2.0**-52 * size
        return np.where(self.share > 0, 0.0, np.maximum(excess, 0.0))

    def fold_down(self, cost: NDArray[np.float64], multipliers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The effective cost c + sum_k mu_k G_k (n, m), rounded down: a smaller cost gives a valid bound."""
        turned = self.matrix.T.tocsr()
        size = np.abs(cost).ravel() + abs(turned) @ multipliers
        folded = cost.ravel() + turned @ multipliers
        return (folded - (np.diff(turned.indptr) + 4) * 2.0**-52 * size - 1e-300).reshape(cost.shape)


def stack_rows(parts: Sequence[SideRows], entries: int) -> SideRows:
    """All rows of several sets, in order; entries = n m."""
    return SideRows(
        matrix=sp.csr_array(sp.vstack([sp.csr_array((0, entries)), *(part.matrix for part in parts)], format="csr")),
        limit=np.concatenate([np.zeros(0), *(part.limit for part in parts)]),
        share=np.concatenate([np.zeros(0), *(part.share for part in parts)]),
        names=[name for part in parts for name in part.names],
    )


def rows_per_secret(
    entries: NDArray[np.float64],
    *,
    limit: NDArray[np.float64],
    share: float = 0.0,
    what: str,
    secrets: NDArray[np.int64] | None = None,
) -> SideRows:
    """sum_y entries(u, y) P(y|u) <= limit(u) + share t for `secrets`, all by default; entries (n, m), limit (n,)."""
    n, m = entries.shape
    at = np.arange(n) if secrets is None else secrets
    columns = (at[:, None] * m + np.arange(m)).ravel()
    matrix = sp.csr_array((entries[at].ravel(), columns, np.arange(0, len(at) * m + 1, m)), shape=(len(at), n * m))
    matrix.eliminate_zeros()
    names = [f"{what} at secret {u}" for u in at]
    return SideRows(matrix=matrix, limit=limit[at], share=np.full(len(at), share), names=names)


@dataclass(frozen=True, kw_only=True, eq=False)
class Coupled(Program):
    """A program of the form in the module docstring; subclasses are final."""

    limits_field: ClassVar[str] = "constraints"
    objective_of: ClassVar[str] = EXPECTED_LOSS

    def base_cost(self) -> NDArray[np.float64]:
        """The cost c (n, m), by default that of the expected loss."""
        return self.problem.weighted_loss

    @abstractmethod
    def side_rows(self) -> SideRows:
        """The side rows G, h and s."""


def objective(cost: NDArray[np.float64], rows: SideRows, table: NDArray[np.float64]) -> float:
    """<cost, P> + t of a table (n, m), t at its least value, in floating point."""
    shared = rows.share > 0
    excess = (rows.values(table) - rows.limit)[shared] / rows.share[shared]
    return float((cost * table).sum()) + float(excess.max(initial=0.0))


def constant_objective(cost: NDArray[np.float64], rows: SideRows) -> float:
    """The objective of the best constant report: the scale of objectives."""
    n, m = cost.shape
    everywhere = sp.csr_array((np.ones(n * m), (np.arange(n * m), np.tile(np.arange(m), n))), shape=(n * m, m))
    shared = rows.share > 0
    sums = (rows.matrix @ everywhere).toarray()[shared]
    excess = (sums - rows.limit[shared, None]) / rows.share[shared, None]
    return float((cost.sum(axis=0) + excess.max(axis=0, initial=0.0)).min())

r"""Coupled programs: a linear objective over private tables, with further rows that couple their entries.

    minimise    sum_{u,y} c(u, y) P(y|u) + t
    over        P (n, m), t >= 0
    subject to  P >= 0,  sum_y P(y|u) = 1                       for every secret u
                P(y|u) <= e^{d_e} P(y|v)                        for every edge e = (u, v), both ways, and report y
                sum_{u,y} G_k(u, y) P(y|u) <= h_k + s_k t       for every side row k

Bound. Take any mu >= 0 with sum_k s_k mu_k <= 1 and fold the side rows into the effective cost c' = c + sum_k mu_k G_k.
For any lambda the objective of every feasible table is at least

    sum_u lambda(u) + sum_y min(0, min over the cone of <c'_y - lambda, g> / g(anchor(y))) - sum_k mu_k h_k:

the bound of the optimal program for the cost c'. For the worst-case loss mu is a prior over the secrets, and the bound
is that of the optimal program under it.

Three programs of this kind follow; the fourth, with constraints of the user's own, is programs/constrained.py. Source
of all: the program of 003, equations (6.22)-(6.24), whose constraints (the first two lines of "subject to" above) every
private table P keeps.

`Bounded`: the smallest expected loss with a bound on the loss at every secret.

    minimise    sum_u prior(u) sum_y P(y|u) l(u, y)
    over        private tables P (n, m)
    subject to  sum_y P(y|u) l(u, y) <= B(u)                    for every secret u

Known: between the optimal program (B large) and the minimax program: with one B for all secrets it has a solution if
and only if B is at least the minimax value.

`Minimax`: the smallest worst-case loss over secrets, no prior asked.

    minimise    max over secrets u of sum_y P(y|u) l(u, y)
    over        private tables P (n, m)

Source: the maximum over secrets in place of the mean; for the discrete metric Kairouz et al. 2014.
Known: by duality the value is the largest that the optimal program takes under any prior, so it is at least that of
the optimal program under every prior; the prior that attains it is least favourable. Where a group of symmetries acts
transitively on the secrets and keeps metric and loss, the uniform prior is least favourable: the discrete metric with
0/1 loss gives randomized response. The problem's own prior is not used, except for the expected loss that is reported.

`Robust`: the smallest expected loss under the worst of several priors.

    minimise    max over k of sum_u prior_k(u) sum_y P(y|u) l(u, y)
    over        private tables P (n, m)

Known: by duality the value is the largest that the optimal program takes under any mixture of the priors; so it is at
least that of the optimal program under each, and at most that of the minimax program. With all point priors it is the
minimax program, with one prior the optimal one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.memory import require_memory
from mechdesign.base.records import ReprMixin
from mechdesign.base.validation import as_numbers, refuse_entries
from mechdesign.errors import InputError
from mechdesign.problem.losses import check_prior
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.program import EXPECTED_LOSS, Program, expected_loss, private_table

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True, kw_only=True, eq=False)
class SideRows:
    """Side rows G P <= h + s t over tables (n, m) flattened row by row.

    matrix G (k, n m); limit h (k,); share s (k,), >= 0; names (k,), what each row says, for errors.
    """

    matrix: sp.csr_array
    limit: NDArray[np.float64]
    share: NDArray[np.float64]
    names: Sequence[str]

    @property
    def size(self) -> int:
        """Number of rows k."""
        return len(self.limit)

    @property
    def size_of_limits(self) -> NDArray[np.float64]:
        """|h| (k,), 1 where that is 0: what margins and relaxations are measured against."""
        return np.where(self.limit == 0, 1.0, np.abs(self.limit))

    def tightened(self, margin: NDArray[np.float64]) -> SideRows:
        """The same rows with limits lowered by margin (k,)."""
        return replace(self, limit=self.limit - margin)

    def values(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """G P (k,) of a table (n, m), in floating point."""
        return self.matrix @ table.ravel()

    def excess_up(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """By how much a table (n, m) may exceed the limits (k,), 0 where it does not, and on rows with a share.

        Rounded up, for any table whose entries differ from `table` by half a unit in the last place: the rounding of a
        sum of j products is at most (j + 1) 2^-53 times the sum of their absolute values.
        """
        terms = np.diff(self.matrix.indptr)
        size = abs(self.matrix) @ np.abs(table.ravel()) + np.abs(self.limit)
        excess = self.values(table) - self.limit + (terms + 6) * 2.0**-52 * size
        return np.where(self.share > 0, 0.0, np.maximum(excess, 0.0))

    def fold_down(self, cost: NDArray[np.float64], multipliers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The effective cost c + sum_k mu_k G_k (n, m), rounded down: too small a cost gives a bound that holds."""
        turned = self.matrix.T.tocsr()
        size = np.abs(cost).ravel() + abs(turned) @ multipliers
        folded = cost.ravel() + turned @ multipliers
        return (folded - (np.diff(turned.indptr) + 4) * 2.0**-52 * size - 1e-300).reshape(cost.shape)


def stack_rows(parts: Sequence[SideRows], entries: int) -> SideRows:
    """All rows of several sets, in order; entries = n m, for the case that there are none."""
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
    """One row per secret: sum_y entries(u, y) P(y|u) <= limit(u) + share t.

    entries (n, m), limit (n,); secrets, those that have a row (all by default).
    """
    n, m = entries.shape
    at = np.arange(n) if secrets is None else secrets
    columns = (at[:, None] * m + np.arange(m)).ravel()
    matrix = sp.csr_array((entries[at].ravel(), columns, np.arange(0, len(at) * m + 1, m)), shape=(len(at), n * m))
    matrix.eliminate_zeros()
    names = [f"{what} at secret {u}" for u in at]
    return SideRows(matrix=matrix, limit=limit[at], share=np.full(len(at), share), names=names)


@dataclass(frozen=True, kw_only=True)
class Constraint(ReprMixin, ABC):
    """A constraint on the table; `name` is what files and errors call it."""

    name: ClassVar[str]

    def check(self, problem: DesignProblem) -> None:
        """Refuse a problem that the constraint does not fit, before any work. Raises: InputError."""

    @abstractmethod
    def stated(self, table: cp.Variable, problem: DesignProblem) -> list[cp.Constraint]:
        """The constraint on `table` (n, m) in cvxpy."""

    def describe(self) -> dict[str, Any]:
        """What a file keeps of it."""
        fields = asdict(self).items()
        lists = {name: [int(place) for place in value] for name, value in fields if np.ndim(value)}
        return {"constraint": self.name, **dict(fields), **lists}


@dataclass(frozen=True, kw_only=True)
class RowConstraint(Constraint):
    """A constraint that is a few side rows."""

    @abstractmethod
    def rows(self, problem: DesignProblem) -> SideRows:
        """The constraint as side rows."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Coupled(Program):
    """A program of the kind that the module docstring states; subclasses are final."""

    limits_field: ClassVar[str] = "constraints"
    objective_of: ClassVar[str] = EXPECTED_LOSS

    def base_cost(self) -> NDArray[np.float64]:
        """The cost c (n, m): that of the expected loss, unless a subclass has another."""
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
    """The objective of the best constant report: the scale that objectives are measured against."""
    n, m = cost.shape
    everywhere = sp.csr_array((np.ones(n * m), (np.arange(n * m), np.tile(np.arange(m), n))), shape=(n * m, m))
    shared = rows.share > 0
    sums = (rows.matrix @ everywhere).toarray()[shared]
    excess = (sums - rows.limit[shared, None]) / rows.share[shared, None]
    return float((cost.sum(axis=0) + excess.max(axis=0, initial=0.0)).min())


@dataclass(frozen=True, kw_only=True, eq=False)
class Bounded(Coupled):
    """The program of least expected loss with a bound on the loss at every secret.

    Its statement is in `mechdesign.programs.coupled`.

    Parameters
    ----------
    problem : DesignProblem
        Secrets, metric, prior and loss.
    worst_loss : float or (n,) array
        The bound in loss units, one or one per secret; inf where there is none.

    Examples
    --------
    >>> program = md.programs.Bounded(md.load_problem("discrete", secrets=3), worst_loss=0.5)
    >>> round(md.solve(program).attrs["objective"], 4)
    0.3086
    """

    worst_loss: ArrayLike
    name = "bounded"
    limits_field = "worst-loss"

    def __post_init__(self) -> None:
        values = as_numbers(self.worst_loss, "worst-loss", self.problem.domain.points)
        n = self.problem.domain.size
        if values.shape not in ((), (n,)):
            raise InputError(f"must be a number or have shape ({n},)", field="worst-loss", value=values.shape)
        refuse_entries(~(values > 0), values, "must be positive", field="worst-loss")
        object.__setattr__(self, "worst_loss", values)

    @property
    def bounds(self) -> NDArray[np.float64]:
        """B (n,)."""
        return np.broadcast_to(np.asarray(self.worst_loss, float), (self.problem.domain.size,))

    def statement(self) -> cp.Problem:
        import cvxpy as cp

        table, constraints = private_table(self.problem)
        bounded = np.flatnonzero(np.isfinite(self.bounds))
        at_secret = cp.sum(cp.multiply(self.problem.loss_matrix, table), axis=1)
        constraints.append(at_secret[bounded] <= self.bounds[bounded])
        return cp.Problem(cp.Minimize(expected_loss(table, self.problem)), constraints)

    def parameters(self) -> dict[str, Any]:
        bounds = np.asarray(self.worst_loss, float)
        kept = bounds.astype(object)
        kept[~np.isfinite(bounds)] = None  # JSON has no infinity
        return {"worst_loss": kept.tolist()}

    def side_rows(self) -> SideRows:
        loss = self.problem.loss_matrix
        secrets = np.flatnonzero(self.bounds < loss.max(axis=1))  # a larger bound binds nobody
        return rows_per_secret(loss, limit=self.bounds, what="the bound on the loss", secrets=secrets)


def read_bounds(kept: object) -> Any:
    """`worst_loss` of the parameters of a file, null where a secret has no bound."""
    bounds = [math.inf if bound is None else bound for bound in (kept if isinstance(kept, list) else [kept])]
    return bounds if isinstance(kept, list) else bounds[0]


@dataclass(frozen=True, kw_only=True, eq=False)
class Minimax(Coupled):
    """The program of least worst-case loss over secrets; no prior enters.

    Its statement is in `mechdesign.programs.coupled`.

    Parameters
    ----------
    problem : DesignProblem
        Secrets, metric and loss.

    Examples
    --------
    >>> round(md.solve(md.programs.Minimax(md.load_problem("discrete", secrets=3))).attrs["objective"], 4)
    0.3086
    """

    name = "minimax"
    objective_of = "the largest loss over the secrets"

    def statement(self) -> cp.Problem:
        import cvxpy as cp

        table, constraints = private_table(self.problem)
        at_secret = cp.sum(cp.multiply(self.problem.loss_matrix, table), axis=1)
        return cp.Problem(cp.Minimize(cp.max(at_secret)), constraints)

    def base_cost(self) -> NDArray[np.float64]:
        return np.zeros_like(self.problem.loss_matrix)

    def side_rows(self) -> SideRows:
        limit = np.zeros(self.problem.domain.size)
        return rows_per_secret(self.problem.loss_matrix, limit=limit, share=1.0, what="the loss")


@dataclass(frozen=True, kw_only=True, eq=False)
class Robust(Coupled):
    """The program of least expected loss under the worst of several priors.

    Its statement is in `mechdesign.programs.coupled`.

    Parameters
    ----------
    problem : DesignProblem
        Secrets, metric and loss. Its own prior counts only where it is one of `priors`.
    priors : (k, n) array
        Each a prior over the secrets.

    Examples
    --------
    >>> program = md.programs.Robust(md.load_problem("discrete", secrets=3), priors=[[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
    >>> round(md.solve(program).attrs["objective"], 4)
    0.3086
    """

    priors: ArrayLike
    name = "robust"
    objective_of = "the largest expected loss over the priors"

    def __post_init__(self) -> None:
        values = as_numbers(self.priors, "priors")
        if values.ndim < 2 or not len(values):
            n = self.problem.domain.size
            raise InputError(f"must have shape (k, {n}), a prior a row", field="priors", value=values.shape)
        checked = np.stack([check_prior(prior, self.problem.domain) for prior in values])
        object.__setattr__(self, "priors", checked)

    @property
    def priors_array(self) -> NDArray[np.float64]:
        """The checked priors (k, n)."""
        return np.asarray(self.priors, float)

    def statement(self) -> cp.Problem:
        import cvxpy as cp

        table, constraints = private_table(self.problem)
        costs = [prior[:, None] * self.problem.loss_matrix for prior in self.priors_array]
        worst = cp.max(cp.hstack([cp.sum(cp.multiply(cost, table)) for cost in costs]))
        return cp.Problem(cp.Minimize(worst), constraints)

    def parameters(self) -> dict[str, Any]:
        return {"priors": self.priors_array.tolist()}

    def base_cost(self) -> NDArray[np.float64]:
        return np.zeros_like(self.problem.loss_matrix)

    def side_rows(self) -> SideRows:
        loss, priors = self.problem.loss_matrix, self.priors_array
        require_memory(len(priors), loss.size, tables=4, what="the rows of the priors")
        matrix = sp.csr_array((priors[:, :, None] * loss[None]).reshape(len(priors), -1))
        names = [f"the expected loss under prior {k}" for k in range(len(priors))]
        return SideRows(matrix=matrix, limit=np.zeros(len(priors)), share=np.ones(len(priors)), names=names)

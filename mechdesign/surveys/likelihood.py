r"""The maximum-likelihood distribution of secrets, given how often each report was made.

    maximise    L(p) = sum_y w_y ln sum_u p_u P(y|u),           w_y = N_y / N
    over        p (n,)
    subject to  p >= 0,  sum_u p_u = 1

L is the mean log-likelihood in nats per report; only reports that were made enter. Source: Alvim et al. 2018, section
II (the fixed point of expectation maximization, there also called iterative Bayesian update).
Certificate. For any p of the simplex, however it was found, with q = P^T p,

    (1)  L* - L(p) <= ln max_u g_u,    g_u = sum_y w_y P(y|u) / q_y.

It is 0 exactly where p is optimal. A step of expectation maximization is p_u -> p_u g_u, so its gap is free.
Known: where the counts are proportional to P^T p, p is optimal; for randomized response the optimum has a closed form.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Indices, Matrix, Vector
from mechdesign.base.validation import as_numbers
from mechdesign.errors import InputError

if TYPE_CHECKING:
    import cvxpy as cp

ROW_SUM_TOLERANCE = 1e-6  # larger deviations from 1 are not rounding errors; as in an audit


@dataclass(frozen=True, kw_only=True, eq=False)
class CertifiedPoint:
    """A distribution p (n,) with its certificate: L(p) and the gap ln max g >= L* - L(p), in nats per report."""

    # reported is sum_u p_u P(y|u) / max_v P(y|v) (k,) of the reports that were made; ratio is g (n,), sum_u p_u g_u =
    # 1.

    distribution: Vector
    reported: Vector
    ratio: Vector
    log_likelihood: float
    gap: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Likelihood:
    """The maximum-likelihood program for a table P(y|u) (n, m) and integer counts N_y (m,)."""

    table: Matrix
    counts: Vector

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", _checked_table(self.table))
        object.__setattr__(self, "counts", check_counts(self.counts, self.table.shape[1]))
        impossible = np.flatnonzero((self.counts > 0) & ~self.table.any(axis=0))
        if len(impossible):
            report = f"report {impossible[0]}, made {self.counts[impossible[0]]:.0f} times"
            raise InputError("contains a report that no secret can make", field="counts", value=report)

    @property
    def size(self) -> int:
        return int(self.table.shape[0])

    @cached_property
    def reports(self) -> int:
        return int(self.counts.sum())

    @cached_property
    def observed_reports(self) -> Indices:
        """The reports that were made, (k,)."""
        return np.flatnonzero(self.counts)

    @cached_property
    def share(self) -> Vector:
        """Their shares w, (k,), which sum to 1."""
        return self.counts[self.observed_reports] / self.counts.sum()

    @cached_property
    def largest(self) -> Vector:
        """max_u P(y|u) of the reports that were made, (k,)."""
        return np.asarray(self.table[:, self.observed_reports].max(axis=0))

    @cached_property
    def columns(self) -> Matrix:
        """P(y|u) / max_v P(y|v) of the reports that were made, (n, k): L up to a constant, well scaled."""
        return np.ascontiguousarray(self.table[:, self.observed_reports] / self.largest)

    def judge(self, distribution: Vector) -> CertifiedPoint:
        """The certificate of weights p (n,) >= 0, normalised first; infinite gap if a report is impossible."""
        distribution = distribution / distribution.sum()
        reported = distribution @ self.columns
        # A report of probability 0 makes the log-likelihood -inf, and no gap can be proved.
        if not reported.min() > 0:
            nothing = np.full(self.size, np.nan)
            return CertifiedPoint(
                distribution=distribution, reported=reported, ratio=nothing, log_likelihood=-np.inf, gap=np.inf
            )
        # Proof of (1), for any p* of the simplex. The logarithm is concave and sum_y w_y = 1, so L(p*) - L(p) =
        # sum_y w_y ln(q*_y / q_y) <= ln sum_y w_y q*_y / q_y = ln sum_u p*_u g_u, and a mean is at most the maximum.
        # sum_u p_u g_u = 1, so that the bound is not negative.
        ratio = self.columns @ (self.share / reported)
        logarithm = np.log(reported) + np.log(self.largest)
        return CertifiedPoint(
            distribution=distribution,
            reported=reported,
            ratio=ratio,
            log_likelihood=float(self.share @ logarithm),
            gap=max(float(np.log(ratio.max())), 0.0),
        )

    def statement(self) -> cp.Problem:
        """The program in cvxpy (DCP)."""
        import cvxpy as cp

        distribution = cp.Variable(self.size, name="p")
        reported = self.table[:, self.observed_reports].T @ distribution
        likelihood = cp.sum(cp.multiply(self.share, cp.log(reported)))
        return cp.Problem(cp.Maximize(likelihood), [distribution >= 0, cp.sum(distribution) == 1])


def _checked_table(table: ArrayLike) -> Matrix:
    values = as_numbers(table, "mechanism")
    if values.ndim != 2 or not values.size:
        raise InputError("must be a matrix (n, m) of one row per secret", field="mechanism", value=values.shape)
    wrong = np.argwhere(~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        secret, report = wrong[0]
        entry = f"P({report}|{secret}) = {values[secret, report]:g}"
        raise InputError("must be finite and not negative", field="mechanism", value=entry)
    sums = values.sum(axis=1)
    secret = int(np.argmax(abs(sums - 1)))
    if abs(sums[secret] - 1) > ROW_SUM_TOLERANCE:
        raise InputError(
            f"rows must sum to 1 within {ROW_SUM_TOLERANCE:g}",
            field="mechanism",
            value=f"row {secret} sums to {sums[secret]:.9g}",
            remedy="divide every row by its sum, or transpose a table of one column per secret",
        )
    return values


def check_counts(counts: ArrayLike, size: int, noun: str = "report") -> Vector:
    """The counts (m,), if they are non-negative integers and not all zero, else InputError."""
    values = as_numbers(counts, "counts")
    if values.shape != (size,):
        remedy = f"count every {noun}, those that do not occur as 0 (np.bincount with minlength)"
        raise InputError(f"must have shape ({size},)", field="counts", value=values.shape, remedy=remedy)
    wrong = np.flatnonzero(~((values >= 0) & (values == np.floor(values)) & np.isfinite(values)))
    if len(wrong):
        message = f"must be integers, not negative: how often each {noun} occurs, not its share"
        raise InputError(message, field="counts", value=f"{values[wrong[0]]:g} at {noun} {wrong[0]}")
    if not values.any():
        raise InputError(f"must contain at least one {noun}", field="counts", value="sum 0")
    return values

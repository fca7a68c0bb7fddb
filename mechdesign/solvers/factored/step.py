"""The largest step, about, at which whole weights and edge lengths satisfy the certificate.

Shorter steps shorten every distance, and with them the ratios between rows, in proportion; the row sums, which spend
the rest of an edge, change as well. A step breaks the claim by some kappa > 1, the largest log-ratio over claimed
length; the next one is that much shorter and more. The edges nearest to their claim are tried alone before all rows
are summed. At 0.49 of the step, which is 1/2 less the rounding, the certificate holds for any weights
(mechanism/factored/certificate.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import DesignError
from mechdesign.mechanism.factored.certificate import Factors
from mechdesign.mechanism.factored.dataset import judge
from mechdesign.mechanism.factored.row_sums import LossData, RowBlock, join_words, rounded_words, sum_rows
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.factored.blocks import Arrays
from mechdesign.solvers.factored.rounds import Claim

Told = Callable[[str, int, float | None], None]  # stage, rows done, kappa
Pass = Callable[[LossData, int], Arrays]  # `row_block` of all rows, at a step

OVER_ROWS = ("row_sum", "loss")  # arrays of `row_block`
_LEAST_FACTOR = 0.49
_SHRINK = 1e-6
_MORE = 4e-3  # of an excess up to this, as much again: a shorter step changes the sums as well
_TRIED, _SHARE = 1024, 64  # edges that are tried alone: so many, or one of so many
_TRIALS = 12  # at most


def certified(
    problem: DesignProblem,
    factors: Factors,
    target: NDArray[np.int64],
    claim: Claim,
    expected: NDArray[np.float64],
    *,
    exact: Pass,
    told: Told,
) -> tuple[LossData, RowBlock, float]:
    """Integers that satisfy the certificate, their rows, and the factor of the step, in [0.49, 1].

    factors at the whole step; target (c,), the report of every column; expected (n,), the row sums there up to a
    factor, about, or ones where nothing is known of them.
    Cost: one pass over the exact sums and losses of the rows, rarely two, and sums of up to 2,048 rows a few times.
    Raises: DesignError where half the distances break the claim, which they do for no weights.
    """
    whole, spent = factors.step, claim.spent(expected)
    kappa = float(_strain(factors, claim, spent).max())
    factor = 1.0 if kappa <= 1 else 1 / kappa
    while True:
        factor = _tried(factors, claim, spent, factor)
        scaled = _at(factors, factor)
        judged = judge(problem, scaled, target)
        rows = RowBlock(**exact(judged, scaled.step))
        breaches = scaled.breaches(problem.edges, join_words(rows.row_sum))
        spent = claim.spent(rounded_words(rows.row_sum))
        kappa = float(_strain(scaled, claim, spent).max())
        told(f"certificate, {breaches} breaches", problem.domain.size, kappa)
        if breaches == 0:
            return judged, rows, scaled.step / whole
        if factor <= _LEAST_FACTOR:
            raise DesignError(
                "half the distances break the claim", field="weight", value=scaled.step, remedy="report this problem"
            )
        factor = _shorter(factor, kappa)


def _tried(factors: Factors, claim: Claim, spent: NDArray[np.float64], factor: float) -> float:
    """A factor, at most this one, at which the edges that are the nearest to their claim keep it; spent (e,) of edges,
    about.
    """
    strain = _strain(_at(factors, factor), claim, spent)
    count = min(_TRIED, len(strain) // _SHARE)
    if count == 0:
        return factor
    nearest = claim.of_edges(np.argpartition(-strain, count - 1)[:count])
    ends = np.isin(factors.order, nearest.edges.tail) | np.isin(factors.order, nearest.edges.head)
    secrets, sums = factors.order[ends], np.ones(len(factors.inner))
    for _ in range(_TRIALS):
        scaled = _at(factors, factor)
        sums[secrets] = rounded_words(sum_rows(scaled, secrets))
        kappa = float(_strain(scaled, nearest, nearest.spent(sums)).max())
        if kappa <= 1 or factor <= _LEAST_FACTOR:
            break
        factor = _shorter(factor, kappa)
    return factor


def _strain(factors: Factors, claim: Claim, spent: NDArray[np.float64]) -> NDArray[np.float64]:
    return claim.strain(factors.nats_per_unit * factors.metric.units[claim.own].astype(float), spent)


def _at(factors: Factors, factor: float) -> Factors:
    return replace(factors, step=int(factors.step * max(factor, _LEAST_FACTOR)))


def _shorter(factor: float, kappa: float) -> float:
    excess = max(0.0, kappa - 1.0)
    return factor * (1 - _SHRINK) / (1.0 + excess + min(excess, _MORE))

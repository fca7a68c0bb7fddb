"""The largest step, about, at which whole weights and edge lengths satisfy the certificate.

Shorter steps shorten every distance, and with them the ratios between rows, in proportion. A step breaks the claim by
some kappa > 1, the largest log-ratio over claimed length; the next one is that much shorter. At 0.49 of the step,
which is 1/2 less the rounding, the certificate holds for any weights (mechanism/factored/certificate.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import DesignError
from mechdesign.mechanism.factored.certificate import Factors
from mechdesign.mechanism.factored.dataset import judge
from mechdesign.mechanism.factored.row_sums import LossData, RowBlock, join_words, rounded_words, row_block
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.factored.blocks import Arrays
from mechdesign.solvers.factored.rounds import Claim

Told = Callable[[str, int, float | None], None]  # stage, rows done, kappa
Pass = Callable[[LossData, int], Arrays]  # `exact_block` of all rows, at a step

OVER_ROWS = ("row_sum", "loss")  # arrays of `exact_block`
_LEAST_FACTOR = 0.49
_SHRINK = 1e-6
_MORE = 1e-3  # of an excess up to this, half as much again: a shorter step changes the sums as well


def certified(
    problem: DesignProblem,
    factors: Factors,
    target: NDArray[np.int64],
    claim: Claim,
    kappa: float,
    *,
    exact: Pass,
    told: Told,
) -> tuple[LossData, RowBlock, float]:
    """Integers that satisfy the certificate, their rows, and the factor of the step, in [0.49, 1].

    factors at the whole step; target (c,), the report of every column; kappa, the largest log-ratio over claimed
    length that is expected there.
    Cost: one pass over the exact sums and losses of the rows, rarely two.
    Raises: DesignError where half the distances break the claim, which they do for no weights.
    """
    whole, used = factors.step, factors.metric.units[claim.own].astype(float)
    factor = 1.0 if kappa <= 1 else 1 / kappa
    while True:
        factors = replace(factors, step=int(whole * max(factor, _LEAST_FACTOR)))
        judged = judge(problem, factors, target)
        rows = RowBlock(**exact(judged, factors.step))
        breaches = factors.breaches(problem.edges, join_words(rows.row_sum))
        kappa = claim.kappa(factors.nats_per_unit * used, claim.spent(rounded_words(rows.row_sum)))
        told(f"certificate, {breaches} breaches", problem.domain.size, kappa)
        if breaches == 0:
            return judged, rows, factors.step / whole
        if factor <= _LEAST_FACTOR:
            raise DesignError(
                "half the distances break the claim", field="weight", value=factors.step, remedy="report this problem"
            )
        excess = max(0.0, kappa - 1.0)
        factor *= (1 - _SHRINK) / (1.0 + excess + min(excess, _MORE) / 2)


def exact_block(judged: LossData, start: int, stop: int) -> Arrays:
    """`row_block`, as the work of a pass."""
    return row_block(judged, start, stop)

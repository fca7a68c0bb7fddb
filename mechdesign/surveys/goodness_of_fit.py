r"""A test whether reports can have come from a mechanism, valid at every number of reports.

The p value is twice the smaller of two, at most 1.

    (1)  all reports          P(N KL(f || q) >= x) <= e^{-x} (e x / (m - 1))^{m - 1}   for x > m - 1
    (2)  halves, at random    P(mean of h >= t) <= exp(-n kl(t / B, b / B))            for t > b,
         kl(s, r) = s ln(s / r) + (1 - s) ln((1 - s) / (1 - r))

In (1) m is the number of possible reports. In (2) the first half gives h(y) = (N_y + c) / (N q(y) + c) in [0, B], with
q from its maximum-likelihood p, and the mean is over the n reports of the other half.
Source: R. Agrawal, IEEE Transactions on Information Theory 66 (2020), arXiv 1904.02291; W. Hoeffding, JASA 58 (1963),
theorem 1. Minimum, split and direction are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mechdesign.base.arrays import Vector
from mechdesign.base.records import FrozenRecord
from mechdesign.surveys.channel import Channel
from mechdesign.surveys.estimation import DistributionEstimate, maximum_likelihood

REFUSED = 1e-3  # p values under which reports are said not to fit
_SMOOTHING = 5.0  # c, reports: h is at most (N_y + c) / c
_GAP = 1e-6  # nats per report, of the likelihood that gives the direction: any direction is valid


@dataclass(frozen=True, kw_only=True, eq=False)
class FitTest(FrozenRecord):
    """x in nats, its degrees of freedom, the bounds of the two p values, and twice the smaller (at most 1)."""

    statistic: float
    freedom: int
    p_all: float
    p_halves: float

    @property
    def p_value(self) -> float:
        """An upper bound of the p value of the hypothesis that the reports came from the mechanism."""
        return min(1.0, 2 * min(self.p_all, self.p_halves))


def fit_test(channel: Channel, counts: Vector, best: DistributionEstimate, *, seed: int = 0) -> FitTest:
    """The test for counts (M,) and their maximum-likelihood solution `best`; the seed is that of the split."""
    total = float(counts.sum())
    observed = counts[counts > 0]
    entropy = float(observed @ np.log(observed / total))
    # (1): x = sum_y N_y ln(f(y) / q(y)), q = P^T p of the maximum-likelihood p, is the least N KL(f || P^T p) of all p,
    # so never more than at the truth. The proved gap is subtracted: an unfinished solution must not make the reports
    # look worse.
    statistic = max(entropy - total * (best.log_likelihood + best.gap), 0.0)
    return FitTest(
        statistic=statistic,
        freedom=channel.freedom,
        p_all=tail_bound(statistic, channel.freedom),
        p_halves=_halves(channel, counts, np.random.default_rng(seed)),
    )


def tail_bound(statistic: float, freedom: int) -> float:
    """e^{-x} (e x / d)^d for x > d, else 1."""
    # (1) is the Chernoff bound of a gamma variable of shape m - 1. Independent mechanisms add their x and their m - 1.
    if statistic <= freedom:
        return 1.0
    # One possible report per mechanism: the limit d -> 0 of the bound.
    if freedom == 0:
        return math.exp(-statistic)
    return math.exp(freedom - statistic + freedom * math.log(statistic / freedom))


def mean_bound(mean: float, largest: float, top: float, number: int) -> float:
    """exp(-n kl(t / B, b / B)) for a mean t above b, else 1."""
    if mean <= largest:
        return 1.0
    # The Chernoff bound of (2); s = 1 is a limit, where the second term vanishes.
    s, r = min(mean / top, 1.0), largest / top
    away = s * math.log(s / r) + ((1 - s) * math.log((1 - s) / (1 - r)) if s < 1 else 0.0)
    return math.exp(-number * away)


def _halves(channel: Channel, counts: Vector, random: np.random.Generator) -> float:
    """The bound (2) of the p value; 1 where a half would be empty."""
    parts = np.split(counts.astype(np.int64), channel.starts[1:])
    drawn = [random.binomial(part, 0.5) for part in parts]
    first = np.concatenate(drawn).astype(float)
    second = [part - half for part, half in zip(parts, drawn, strict=True)]
    number = int(sum(half.sum() for half in second))
    if not first.any() or not number:
        return 1.0
    expected = maximum_likelihood(first, channel.table, gap=_GAP).distribution @ channel.table * first.sum()
    # h of (2). Any direction fixed by the first half is valid, so its likelihood need not be solved exactly.
    direction = (first + _SMOOTHING) / (expected + _SMOOTHING)
    pieces = np.split(direction, channel.starts[1:])
    mean = sum(float(half @ piece) for half, piece in zip(second, pieces, strict=True)) / number
    shares = [half.sum() / number for half in second]
    # The mean has the expectation sum_u p_u (P h)_u <= max_u (P h)_u = b of (2). The numbers of reports per mechanism
    # are those of the second half, on which everything is conditioned.
    known = sum(w * (table @ piece) for w, table, piece in zip(shares, channel.tables, pieces, strict=True))
    return mean_bound(mean, float(np.max(known)), float(direction.max()), number)

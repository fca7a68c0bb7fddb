r"""Whether reports can have come from a mechanism at all: a test that holds at every number of reports.

    x = sum_y N_y ln(f(y) / q(y)),    q = P^T p of the maximum-likelihood p

Every distribution of secrets gives a mixture of the rows of P; reports far from all mixtures were made by something
else. x is the least N KL(f || P^T p) over all p: never more than at the truth. There, for the reports of one mechanism
with m possible reports,

    P(N KL(f || q) >= x) <= e^{-x} (e x / (m - 1))^{m - 1}   for x > m - 1,

the Chernoff bound of a gamma variable with shape m - 1, at every N and every q; independent mechanisms add their x and
their m - 1. The bound is what `p_value` says: a p value that is never too small, so that a test at 1 % refuses at most
1 % of the collections that are in order. It is conservative: asymptotically N KL is gamma with half that shape.
What the maximum-likelihood solution lacks is bounded by its proved gap, which is taken off x.
Source: R. Agrawal, "Finite-sample concentration of the multinomial in relative entropy", IEEE Transactions on
Information Theory 66 (2020), theorem I.2; the minimum over mixtures is ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.display import Shown
from mechdesign.utility.population.channel import Channel

REFUSED = 1e-3  # p values under which reports are said not to fit


@dataclass(frozen=True, kw_only=True, eq=False)
class FitTest(Shown):
    """statistic, x in nats; freedom, the number of reports that are free, m - 1; p_value, an upper bound of
    the probability of so large a statistic.
    """

    statistic: float
    freedom: int
    p_value: float

    @property
    def refused(self) -> bool:
        """Whether the reports cannot have come from the mechanism."""
        return self.p_value < REFUSED


def fit_test(channel: Channel, counts: NDArray[np.float64], *, log_likelihood: float, gap: float) -> FitTest:
    """The test for counts (M,) whose maximum-likelihood solution has this log-likelihood over `channel.table` and gap,
    both in nats per report.
    """
    total = float(counts.sum())
    made = counts[counts > 0]
    own = float(made @ np.log(made / total))
    statistic = max(own - total * (log_likelihood + gap), 0.0)
    return FitTest(statistic=statistic, freedom=channel.freedom, p_value=tail_bound(statistic, channel.freedom))


def tail_bound(statistic: float, freedom: int) -> float:
    """e^{-x} (e x / d)^d for x > d, else 1."""
    if statistic <= freedom:
        return 1.0
    if freedom == 0:
        return math.exp(-statistic)
    return math.exp(freedom - statistic + freedom * math.log(statistic / freedom))

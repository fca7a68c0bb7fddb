r"""Expectation maximization for the maximum-likelihood program, plain and accelerated: one judged point after another.

    p_u -> p_u g_u,     g_u = sum_y w_y P(y|u) / sum_v p_v P(y|v)

is the iterative Bayesian update of paper 001 (section II); its log-likelihood never falls. Accelerated: squared
extrapolation (SQUAREM, Varadhan and Roland 2008) over two updates p -> p' -> p'', with r = p' - p, v = p'' - 2 p' + p,

    p - 2 a r + a^2 v,      a = -|r| / |v| at most -1,

where a = -1 is p'' itself, and one plain update after it. A point whose likelihood is below that of p' is not taken:
a is moved half-way to -1.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mechdesign.programs.statistical.likelihood import CertifiedPoint, Likelihood

_PLAIN = -1.01  # extrapolations nearer to -1 than this are the plain double step
_FLOOR = 1e-3  # of p'': entries that an extrapolation would make smaller than this are put there


def updates(program: Likelihood, start: NDArray[np.float64], *, accelerate: bool = False) -> Iterator[CertifiedPoint]:
    """The judged points from `start` (n,) on, the start first, without end; entries that are 0 stay 0.

    Cost: O(n k) an update, k the reports that were made; an accelerated step takes two or more.
    """
    now = program.judge(start)
    while True:
        yield now
        after = program.judge(now.distribution * now.ratio)
        now = _extrapolated(program, now, after) if accelerate else after


def _extrapolated(program: Likelihood, now: CertifiedPoint, after: CertifiedPoint) -> CertifiedPoint:
    """The accelerated step from `now`, whose plain update is `after`."""
    twice = after.distribution * after.ratio
    first = after.distribution - now.distribution
    second = twice - after.distribution - first
    bend = float(np.linalg.norm(second))
    factor = -float(np.linalg.norm(first)) / bend if bend > 0 else -1.0
    while factor < _PLAIN:
        point = now.distribution - 2 * factor * first + factor**2 * second
        found = program.judge(np.maximum(point, _FLOOR * twice))
        if found.log_likelihood >= after.log_likelihood:
            return program.judge(found.distribution * found.ratio)
        factor = (factor - 1) / 2
    return program.judge(twice)

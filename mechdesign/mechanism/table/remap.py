"""Bayes remap of a table: for every report the report with the least posterior expected loss.

Source: paper 000, end of section IV; Chatzikokolakis et al. 2017.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BLOCK = 512  # reports at a time


def best_reports(
    table: NDArray[np.float64], prior: NDArray[np.float64], loss: NDArray[np.float64]
) -> tuple[NDArray[np.int64], float]:
    """For every report y the z that minimises sum_u prior(u) table(u, y) loss(u, z), (m,), y itself on ties; and the
    expected loss with them.

    table (n, m), of probabilities; prior (n,); loss (n, m). Cost: O(n m^2), a block of reports at a time.
    """
    target, total = np.arange(table.shape[1]), 0.0
    for start in range(0, len(target), _BLOCK):
        joint = prior[:, None] * table[:, start : start + _BLOCK]
        posterior_loss = joint.T @ loss
        place = np.arange(len(posterior_loss))
        own, best = posterior_loss[place, start + place], posterior_loss.argmin(axis=1)
        least = posterior_loss[place, best]
        target[start : start + _BLOCK] = np.where(least < own, best, start + place)
        total += float(least.sum())
    return target, total

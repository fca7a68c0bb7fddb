"""Verify a compact map: lengths, kernel and every row sum from its bytes alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mechdesign.mechanism.compact.certificate import above, breaches, loose
from mechdesign.mechanism.compact.map import CompactMap
from mechdesign.mechanism.factored.dataset import effective_epsilon
from mechdesign.mechanism.factored.row_sums import join_words
from mechdesign.solvers.factored.sums import row_sums
from mechdesign.solvers.kernels.progress import Reported
from mechdesign.verification.factored import telling, worst_edge

REBUILT = "levels of the map"


def check_compact(compact: CompactMap, *, on_progress: Callable[[Reported], None] | None = None) -> dict[str, Any]:
    """The fields of a `Verification`; on_progress is called with how many row sums were added up.

    The lengths of the claim and of the kernel, weights and kernel follow from the bytes by formulas.py; every S(u) is
    added up, and every edge checked both ways, in whole numbers. So is S(u) <= Sbar(u) <= 4 S(u), which draws rest on.
    Raises: MechdesignError for numbers that no mechanism has. Cost: one pass over all rows.
    """
    factors, edges = compact.factors, compact.edges
    words = row_sums(factors, told=telling(on_progress, "row sums", compact.secrets))
    sums = join_words(words)
    bad, over, under = breaches(compact, sums), above(compact, sums), loose(compact, sums)
    reasons = [f"potential: {bad} (edge, direction) pairs break the claim"] * bool(bad)
    reasons += [f"bound: {over} rows sum to more than their bound"] * bool(over)
    reasons += [f"bound: {under} rows sum to less than a quarter of their bound, so that draws do not end"] * bool(
        under
    )
    return {
        "violations": bad,
        "claim": compact.claim,
        "rebuilt": REBUILT,
        "effective_epsilon": effective_epsilon(factors, edges, words),
        "worst": worst_edge(factors, edges, words, np.arange(factors.size)),
        "expected_loss": None,
        "lower_bound_checked": None,
        "reasons": reasons,
    }

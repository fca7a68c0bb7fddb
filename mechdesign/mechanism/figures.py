"""Figures of a mechanism: its expected loss, the gap to a lower bound, the smallest scale that integers certify."""

from __future__ import annotations

import math
from collections.abc import Callable

from mechdesign.base.arrays import Masses, Matrix
from mechdesign.errors import DesignError
from mechdesign.mechanism.certificate import ROW_SUM, Count, Doubles, max_log_ratio, violations
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import Edges
from mechdesign.problem.metric import Metric
from mechdesign.problem.problem import DesignProblem

RESOLUTION = 1e-9  # of the loss of the best constant report; a table of 2^62 resolves no smaller gap

# Relative steps by which a scale is first raised. They exceed the rounding of a logarithm, and no printed digit shows
# them.
_STEP_OF_MASSES = 2.0**-40
_STEP_OF_DOUBLES = 2.0**-46


def total_cost(mass: Masses, cost: Matrix) -> float:
    """Sum over u, y of mass(u, y) 2^-62 cost(u, y), rounded; for cost = prior times loss, the expected loss."""
    return math.fsum(float(row.astype(float) @ c) for row, c in zip(mass, cost, strict=True)) / ROW_SUM


def relative_gap(loss: float, bound: float, scale: float) -> float:
    """(loss - bound) / loss, at least 0. A loss below 1e-9 of `scale`, the best constant loss, is replaced by that."""
    return max(0.0, (loss - bound) / max(loss, RESOLUTION * scale))


def certified_scale(problem: DesignProblem, mass: Masses) -> float:
    """The smallest scale of the problem's metric that the integers (n, m) are certified for, to 2^-40."""
    ratio = max(max_log_ratio(mass, problem.edges).value, 0.0)
    return _smallest_scale(
        problem.metric, problem.domain, ratio, _STEP_OF_MASSES, lambda edges: violations(mass, edges) == 0
    )


def true_scale(table: Matrix, metric: Metric, domain: Domain, ratio: float, *, count: Count | None = None) -> float:
    """`ratio`, the largest of a table of doubles, rounded up (by 2^-46 first) until no triple breaches the metric."""
    doubles = Doubles(table)
    start = ratio * (1 + _STEP_OF_DOUBLES)
    return _smallest_scale(
        metric, domain, start, _STEP_OF_DOUBLES, lambda edges: doubles.is_private(edges, count=count)
    )


def _smallest_scale(
    metric: Metric, domain: Domain, scale: float, step: float, is_private: Callable[[Edges], bool]
) -> float:
    """The first of scale, scale (1 + step), that (1 + 2 step) and so on whose edges pass."""
    # The steps double, so that a scale far too small takes few certificates.
    while math.isfinite(scale):
        if is_private((scale * metric).edges(domain)):
            return scale
        # The smallest double makes a scale of 0 grow too.
        scale = scale * (1 + step) + math.ulp(0.0)
        step *= 2
    raise DesignError("no scale of the metric holds", field="table", remedy="report this mechanism")

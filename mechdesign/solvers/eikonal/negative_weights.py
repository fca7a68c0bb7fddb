"""Negative weights of the eikonal system: where they are, and which of two causes explains each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_cdt, maximum_filter

from mechdesign.base.records import FrozenRecord
from mechdesign.problem.domain import Domain
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.curvature import curvature_excess, has_curvature_rule

ZERO = 1e-12  # weights above -ZERO times the largest are rounding, and count as zero
CAUSES = ("boundary", "curvature", "unknown")


@dataclass(frozen=True, kw_only=True, eq=False)
class Diagnosis(FrozenRecord):
    """The negative weights of an unsolvable weight system, and their causes.

    weights (n,): the signed solution of K w = 1; cells: places with a negative weight; cause of each: "curvature" if
    the excess is positive there or in a neighbouring cell, else "boundary" in the rings within a nat of the border
    (`border_rings`), else "unknown"; ring (n,): rings from the border of the domain, 0 at the border; excess (n,): that
    of programs/curvature.py, minus infinity without such a rule; places (n, k): coordinates.

    The rule is first order in the cell size: with the neighbours it explains nearly every negative interior weight.
    They do not belong in a prediction: most cells next to a positive excess have w > 0.
    """

    weights: NDArray[np.float64]
    cells: NDArray[np.int64]
    cause: list[str]
    ring: NDArray[np.int64]
    excess: NDArray[np.float64]
    places: NDArray[np.float64]

    def summary(self) -> str:
        """One sentence: their number, the worst, and the number by cause."""
        if not len(self.cells):
            return f"K w = 1 has a solution w >= 0: none of {len(self.weights)} weights is negative"
        worst = int(np.argmin(self.weights))
        counts = {cause: self.cause.count(cause) for cause in CAUSES}
        causes = ", ".join(f"{count} by {cause}" for cause, count in counts.items() if count)
        at = ", ".join(f"{x:.6g}" for x in self.places[worst])
        return (
            f"K w = 1 has no solution w >= 0: {len(self.cells)} of {len(self.weights)} weights are negative "
            f"({causes}), worst {self.weights[worst]:.3g} at ({at}), ring {int(self.ring[worst])} from the border"
        )

    def as_parameters(self) -> dict[str, Any]:
        """The parameters of a file."""
        return {
            "negative_weights": len(self.cells),
            "negative_by_boundary": self.cause.count("boundary"),
            "negative_by_curvature": self.cause.count("curvature"),
            "diagnosis": self.summary(),
        }


def diagnose(problem: DesignProblem, weights: NDArray[np.float64]) -> Diagnosis:
    """Classify the negative weights of a signed solution (n,) of K w = 1. Cost: O(n)."""
    cells = np.flatnonzero(weights < -ZERO * weights.max())
    domain, metric = problem.domain, problem.metric
    ring, excess = rings(domain), np.full(domain.size, -np.inf)
    if has_curvature_rule(metric, domain):
        excess = curvature_excess(domain, metric)
    curved = _near_positive(problem, excess)
    outer = ring < (border_rings(problem) or 0)
    cause = ["curvature" if curved[c] else "boundary" if outer[c] else "unknown" for c in cells]
    return Diagnosis(weights=weights, cells=cells, cause=cause, ring=ring, excess=excess, places=domain.points)


def _near_positive(problem: DesignProblem, excess: NDArray[np.float64]) -> NDArray[np.bool_]:
    """True if the excess is positive at a cell or one of its neighbours."""
    if problem.domain.kind != "grid":
        return np.zeros(problem.domain.size, bool)
    inside = problem.domain.lookup >= 0
    positive = np.zeros(inside.shape, bool)
    positive[inside] = excess > 0
    return maximum_filter(positive, size=3, mode="constant")[inside]


def rings(domain: Domain) -> NDArray[np.int64]:
    """Rings (n,) from the border of the domain, masked cells included: 0 at the border; 0 everywhere off grids."""
    if domain.kind != "grid":
        return np.zeros(domain.size, np.int64)
    inside = np.pad(domain.lookup >= 0, 1)
    ring = distance_transform_cdt(inside, metric="chessboard") - 1
    core = ring[(slice(1, -1),) * ring.ndim]
    return core[domain.lookup >= 0].astype(np.int64)


def border_step(problem: DesignProblem) -> float | None:
    """The smallest eps h in nats over the border cells of a grid, h the shortest side; None without levels."""
    level, cell = problem.metric.level_at(problem.domain), problem.domain.cell
    if level is None or cell is None:
        return None
    return float(problem.metric.scale * level[rings(problem.domain) == 0].min() * min(cell))


def border_rings(problem: DesignProblem) -> int | None:
    """The number of rings within one nat of the border, at the smallest eps there.

    On flat maps with eps h from 0.15 to 1 and 4 to 32 neighbours no weight farther than 0.9 nats from the border cells
    is negative: negative weights further in have another cause.
    """
    step = border_step(problem)
    return math.ceil(1 / step) if step else None

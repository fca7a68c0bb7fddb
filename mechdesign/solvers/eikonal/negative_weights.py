"""Negative weights of the eikonal system: where they are, and which of two causes explains each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.ndimage import distance_transform_cdt, maximum_filter

from mechdesign.base.arrays import Indices, Mask, Points, Vector
from mechdesign.base.records import FrozenRecord
from mechdesign.problem.domain import Domain
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.curvature import curvature_excess, has_curvature_rule

ZERO = 1e-12  # weights above -ZERO times the largest are rounding, and count as zero
CAUSES = ("boundary", "curvature", "unknown")


@dataclass(frozen=True, kw_only=True, eq=False)
class Diagnosis(FrozenRecord):
    """Where and why the weight system has no solution."""

    weights: Vector  # (n,): the signed solution of K w = 1
    cells: Indices  # places with a negative weight
    cause: list[str]  # of each of them
    ring: Indices  # (n,): rings from the border of the domain, 0 at the border
    excess: Vector  # (n,): of programs/curvature.py, minus infinity without such a rule
    places: Points  # (n, k): coordinates

    def summary(self) -> str:
        if not len(self.cells):
            return f"K w = 1 has a solution w >= 0: none of {len(self.weights)} weights is negative"
        worst = int(np.argmin(self.weights))
        counts = {cause: self.cause.count(cause) for cause in CAUSES}
        causes = ", ".join(f"{count} by {cause}" for cause, count in counts.items() if count)
        place = ", ".join(f"{x:.6g}" for x in self.places[worst])
        return (
            f"K w = 1 has no solution w >= 0: {len(self.cells)} of {len(self.weights)} weights are negative "
            f"({causes}), worst {self.weights[worst]:.3g} at ({place}), ring {int(self.ring[worst])} from the border"
        )

    def as_parameters(self) -> dict[str, Any]:
        return {
            "negative_weights": len(self.cells),
            "negative_by_boundary": self.cause.count("boundary"),
            "negative_by_curvature": self.cause.count("curvature"),
            "diagnosis": self.summary(),
        }


# The cause is "curvature" if the excess is positive at the place or in a neighbouring cell. Otherwise it is "boundary"
# in the rings within a nat of the border (`border_rings`), and "unknown" elsewhere and off grids.
def diagnose(problem: DesignProblem, weights: Vector) -> Diagnosis:
    """Classify the negative weights of a signed solution (n,) of K w = 1."""
    # A factorisation leaves errors of about this size where the exact weight is 0.
    cells = np.flatnonzero(weights < -ZERO * weights.max())
    domain, metric = problem.domain, problem.metric
    ring, excess = rings(domain), np.full(domain.size, -np.inf)
    if has_curvature_rule(metric, domain):
        excess = curvature_excess(domain, metric)
    curved = _near_positive(problem, excess)
    outer = ring < (border_rings(problem) or 0)
    cause = ["curvature" if curved[c] else "boundary" if outer[c] else "unknown" for c in cells]
    return Diagnosis(weights=weights, cells=cells, cause=cause, ring=ring, excess=excess, places=domain.points)


def _near_positive(problem: DesignProblem, excess: Vector) -> Mask:
    """True where the excess is positive at a cell or a neighbour."""
    if problem.domain.kind != "grid":
        return np.zeros(problem.domain.size, bool)
    inside = problem.domain.lookup >= 0
    positive = np.zeros(inside.shape, bool)
    positive[inside] = excess > 0
    # The rule is first order in the cell size: with neighbours it explains nearly every negative weight inside. They do
    # not belong in a prediction, because most neighbours of a positive excess have w > 0.
    return maximum_filter(positive, size=3, mode="constant")[inside]


def rings(domain: Domain) -> Indices:
    """Rings (n,) from the border of the domain, masked cells included: 0 at the border; 0 everywhere off grids."""
    if domain.kind != "grid":
        return np.zeros(domain.size, np.int64)
    inside = np.pad(domain.lookup >= 0, 1)
    # Padded by one cell outside, so that the edge of the grid counts as the border.
    ring = distance_transform_cdt(inside, metric="chessboard") - 1
    core = ring[(slice(1, -1),) * ring.ndim]
    return core[domain.lookup >= 0].astype(np.int64)


def border_step(problem: DesignProblem) -> float | None:
    """Smallest eps h in nats at the border of a grid, h the shortest side of a cell; None without a grid or levels."""
    level, cell = problem.metric.level_at(problem.domain), problem.domain.cell
    if level is None or cell is None:
        return None
    return float(problem.metric.scale * level[rings(problem.domain) == 0].min() * min(cell))


def border_rings(problem: DesignProblem) -> int | None:
    """The number of rings within one nat of the border, at the smallest eps there; None where `border_step` is."""
    # On flat maps, eps h from 0.15 to 1 and 4 to 32 neighbours, negative weights lie within 0.9 nats of the border.
    step = border_step(problem)
    return math.ceil(1 / step) if step else None

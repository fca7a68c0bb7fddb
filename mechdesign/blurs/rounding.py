"""Audit of the rules by which devices round positions: the nats of one report, which no epsilon bounds.

On either axis the report of x is the cell k of a grid of side G that contains x + s Z, Z fresh and standard normal:

    p(k | x) = Phi((k G + G/2 - x) / s) - Phi((k G - G/2 - x) / s).                                             (1)

If s = 0, it is 1 for the true cell and 0 for others. Facts 1 to 4 about it stand at `Rounding`.

Figures are doubles from the tails of the normal law, correct to ten digits. Axes are independent: their nats add up.
Sources: LocationFudger.java of the Android Open Source Project (accuracy 2,000 m, offsets of a quarter of it). The
grid of about 5 km that WebKit states in pull request 233 of the W3C's Geolocation API. The audit is ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scipy.optimize import brentq
from scipy.special import ndtr

from mechdesign.base.validation import validate_call
from mechdesign.blurs.laws import CellLaw
from mechdesign.errors import InputError
from mechdesign.output.text_tables import Block, TextTable

DISTANCES = (50, 100, 250, 500, 1000, 2000)  # m
AWAY = (0, 1, 2, 3, 5)  # cells
PROBABILITIES = ("1e-2", "1e-4", "1e-6")  # of the report, P of fact 1
_POSITIONS, _CELLS = (0, 250, 500, 999, 1000, 1250), (-5, -3, -2, -1, 0, 1, 2, 3, 5)  # of the test vectors


# Facts. x is measured from the centre of the reported cell, p(x) = p(0 | x), and d > 0 is a distance on one axis.
#
# 1. ln p is concave, as an integral of a log-concave function. So ln p(x) - ln p(x + d) never falls as x grows. Over
#    reports at most K cells from x, its maximum is at x = (K + 1/2) G. Over reports with p(x) >= P, it is at the
#    x > 0 with p(x) = P.
# 2. No epsilon is finite. By (1), -p'(x) / p(x) is the mean of (x - y) / s^2 over the noisy positions y = x + s Z in
#    the cell, where y <= G/2. So ln p(x) - ln p(x + d) >= d (x - G/2) / s^2, which grows without limit. If s = 0, a
#    report rules out all positions outside its cell.
# 3. The total variation between x and x + d is at most 2 Phi(d / 2s) - 1, attained if a border lies half-way, and 1
#    if s = 0 and a border lies between. Proof: the likelihood ratio is monotone in k. So p(k | x + d) - p(k | x)
#    changes its sign at one border b, and the variation is Phi((x + d - b) / s) - Phi((x - b) / s).
# 4. For positions spread evenly over the cells, the error on each axis is U + s Z. U is uniform on [-G/2, G/2] and
#    independent of Z. So the mean square over both axes is 2 (G^2 / 12 + s^2).
@dataclass(frozen=True, kw_only=True)
class Rounding(CellLaw):
    """A rounding rule by square cells in the plane: its model and limits in words."""

    modelled: str
    left_out: str

    def mass(self, x: float, cell: int = 0) -> float:
        """p(cell | x) of (1); x in m from the centre of cell 0."""
        low, high = (cell - 0.5) * self.width - x, (cell + 0.5) * self.width - x
        if self.deviation == 0:
            return float(low <= 0 < high)
        # Phi is near 1 on the right, where a difference loses its digits: the mirror image on the left keeps them.
        if low + high > 0:
            low, high = -high, -low
        return float(ndtr(high / self.deviation) - ndtr(low / self.deviation))

    def nats(self, x: float, distance: float) -> float:
        """The nats of fact 1."""
        return math.log(self.mass(x) / self.mass(x + distance))

    def position(self, probability: float) -> float:
        """The x > 0 with p(x) = probability."""
        # 9 deviations beyond the border p is below 1e-18.
        far = self.width + 9 * self.deviation
        return float(brentq(lambda x: math.log(self.mass(x) / probability), 0, far, xtol=1e-9))


ROUNDINGS = {
    "android-coarse": Rounding(
        height=2000,
        width=2000,
        deviation=500,
        modelled="a grid of 2 km in the plane and one report with a fresh normal offset of 500 m on each axis",
        left_out="Offsets are not fresh: one keeps sqrt(1 - 0.03^2) of itself an hour, so that offsets a day apart "
        "correlate by 0.99. A trace that crosses borders therefore reveals more than its reports one by one. The "
        "device also reuses the last coarse location, and its grid is one of degrees. Later versions snap to S2 "
        "cells sized by density. Figures are of one axis; the nats of both axes add up.",
    ),
    "webkit-grid": Rounding(
        height=5000,
        width=5000,
        modelled="a grid of 5 km in the plane; a report is the centre of the true cell, without an offset",
        left_out="The grid on the ellipsoid, and the memory of the device. The moment at which the report of a "
        "moving device changes reveals the border that it crosses. The rule is taken as described, not from "
        "source code. Figures are of one axis; the nats of both axes add up.",
    ),
}


@validate_call
def audit_rounding(name: str) -> dict[str, Any]:
    """Audit one report of a rule; lengths in m, effective_epsilon None with `why`."""
    # distances has a row for each d along one axis: the total variation, and the largest nats in `cells` and
    # `probabilities`. `separated` is the share of pairs that every report distinguishes. laplace has the levels with
    # the same errors, in nats per km.
    rule = named_rounding(name)
    mean, square = rule.mean_error(), 2 * (rule.width**2 / 12 + rule.deviation**2)
    why = "a report rules out every position outside its cell"
    if rule.deviation:
        why = (
            f"the further away a report is, the more it reveals: {10**6 / rule.deviation**2:g} nats per km more for "
            "every km from the border of its cell, without limit"
        )
    return {
        "rule": name,
        "grid": rule.width,
        "deviation": rule.deviation,
        "modelled": rule.modelled,
        "left_out": rule.left_out,
        "effective_epsilon": None,
        "why": why,
        "distances": [_figures_at(rule, distance) for distance in DISTANCES],
        "mean_distance": mean,
        "mean_squared_error": square,
        # Planar Laplace noise has the mean 2 / epsilon and the mean square 6 / epsilon^2; 1,000 m are a km.
        "laplace": {"mean_distance": 2000 / mean, "mean_squared_error": 1000 * math.sqrt(6 / square)},
    }


def named_rounding(name: str) -> Rounding:
    """The rule of a name; InputError for unknown names."""
    if name not in ROUNDINGS:
        raise InputError("unknown rule", field="rule", value=name, remedy="use " + ", ".join(ROUNDINGS))
    return ROUNDINGS[name]


def vectors(name: str) -> dict[str, Any]:
    """Test vectors of a rule: masses to twelve digits, and reports by offset, rounded half up; positions in m."""
    rule = named_rounding(name)
    grid = int(rule.width)
    masses = [{"position": x, "cell": k, "probability": f"{rule.mass(x, k):.12g}"} for x in _POSITIONS for k in _CELLS]
    offsets = (0, -499, 500, 1001, -2750) if rule.deviation else (0,)
    places = (0, 1, grid // 2 - 1, grid // 2, -grid // 2, 10 * grid + 1, -3 * grid - 7)
    reports = [
        {"position": x, "offset": e, "cell": (2 * (x + e) + grid) // (2 * grid)} for x in places for e in offsets
    ]
    return {"rule": name, "grid": grid, "deviation": rule.deviation, "masses": masses, "reports": reports}


def _figures_at(rule: Rounding, distance: int) -> dict[str, Any]:
    by_cells: Mapping[str, float] = {}
    by_probability: Mapping[str, float] = {}
    if rule.deviation:
        # Fact 1: the positions x at which the nats are largest.
        by_cells = {str(k): (k + 0.5) * rule.width for k in AWAY}
        by_probability = {p: rule.position(float(p)) for p in PROBABILITIES}

    def figures(places: Mapping[str, float]) -> dict[str, Any]:
        nats = {name: rule.nats(x, distance) for name, x in places.items()}
        return {name: {"nats": value, "nats_per_km": 1000 * value / distance} for name, value in nats.items()}

    return {
        "distance": distance,
        # Fact 3.
        "total_variation": float(2 * ndtr(distance / (2 * rule.deviation)) - 1) if rule.deviation else 1.0,
        "separated": 0.0 if rule.deviation else min(1.0, distance / rule.width),
        "cells": figures(by_cells),
        "probabilities": figures(by_probability),
    }


def rounding_words(document: Mapping[str, Any]) -> Iterator[Block]:
    """Yield the document of an audit of a rule as text: nats by distance, errors, and the model."""
    yield f"No epsilon bounds {document['rule']}: {document['why']}."
    first, laplace = document["distances"][0], document["laplace"]
    heads = ["true cell" if k == "0" else f"{k} cells off" for k in first["cells"]]
    heads += [f"p >= {p}" for p in first["probabilities"]]
    rows = [
        [
            f"{row['distance']} m",
            f"{row['total_variation']:.3g}",
            f"{row['separated']:.0%}",
            *(f"{loss['nats_per_km']:.3g}" for loss in (*row["cells"].values(), *row["probabilities"].values())),
        ]
        for row in document["distances"]
    ]
    yield TextTable(["distance", "total variation", "separated", *heads], rows)
    yield {
        "columns": "largest nats per km between two positions at this distance along one axis, over reports at most so "
        "many cells off, or at least so probable"
        if heads
        else "0 nats within a cell, infinite across a border; separated: the share of pairs that a border separates",
        "error": f"{document['mean_distance']:.6g} m on average, {document['mean_squared_error']:.6g} m^2",
        "planar Laplace": f"{laplace['mean_distance']:.3g} nats per km at the same mean error, "
        f"{laplace['mean_squared_error']:.3g} at the same mean squared error, for all reports and distances",
        "model": document["modelled"],
        "not modelled": document["left_out"],
    }

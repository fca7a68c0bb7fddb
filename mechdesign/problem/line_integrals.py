"""Line integrals of a level over segments of a raster, exact but for a relative defect that is proved.

    length of the segment from p to q  =  |q - p| * integral_0^1 eps(p + t (q - p)) dt        (nats)

Between the node lines or planes that a segment crosses, eps along it is a quadratic on maps of two axes and a cubic on
maps of three. Simpson's rule is exact on each piece. Computed lengths are multiplied by 1 - defect, so that they never
exceed the exact ones. The defect has three positive terms and 24 u for all others, u = 2^-53:

    (1) rounding of fractions and partial sums, (2) pieces beyond a crossing, (3) pieces read in a wrong cell.

They are derived at `_fractions` and `_misplacement`. Where more than 10^-6 is needed the map is refused.
Source: Koufogiannis & Pappas 2016, Definition 3 and section IV; Koufogiannis 2017, equation (6.18). The bound is ours.
"""

from __future__ import annotations

import numpy as np

from mechdesign.base.arrays import Indices, Points, Vector
from mechdesign.base.json_fields import SMALLEST
from mechdesign.errors import InputError
from mechdesign.problem.raster import Raster, blend, coordinates

# Lengths are multiplied by this, or by less where the sums below need it. Euclidean lengths are right to a relative 6
# u, u = 2^-53. Their product with a rounded factor is right to 3 u more, so that it never exceeds the exact one.
ROUND_DOWN = 1.0 - 2.0**-44
LARGEST_DEFECT = 1e-6
UNIT_ROUNDOFF = 2.0**-53
_CHUNK = 1 << 16  # segments that are integrated at a time


def line_integrals(raster: Raster, start: Points, end: Points) -> Vector:
    """Lengths in nats of the segments start[i] -> end[i] (e, 1..3), rounded down; the bits repeat."""
    # The relative defect is at most 2^-43 while eps varies by less than 128 times and a segment crosses few cells.
    # Beyond that it is as the terms (1) to (3) require. A length under 2^-960 is 0. Cost: O(e (c + 1)) for c crossings
    # each.
    with np.errstate(over="ignore", invalid="ignore"):
        blocks = [
            _integrals(raster, start[lo : lo + _CHUNK], end[lo : lo + _CHUNK]) for lo in range(0, len(start), _CHUNK)
        ]
    return np.concatenate(blocks) if blocks else np.zeros(0)


def _integrals(raster: Raster, start: Points, end: Points) -> Vector:
    axes, count = raster.axes, len(start)
    smallest, largest = float(raster.values.min()), float(raster.values.max())
    p, q = coordinates(start), coordinates(end)
    crossings = [_crossings(nodes, a, b) for nodes, a, b in zip(axes, p, q, strict=False)]
    cuts = np.concatenate([np.zeros((count, 1)), *crossings, np.ones((count, 1))], axis=1)
    cuts.sort(axis=1)

    # Simpson's rule on each piece between crossings, where eps is a polynomial of degree at most 3: exact.
    step = [b - a for a, b in zip(p, q, strict=True)]
    total, doubt = np.zeros(count), np.zeros(count)
    for a, b in zip(cuts[:, :-1].T, cuts[:, 1:].T, strict=True):
        times = (a, 0.5 * (a + b), b)
        places = [_fractions(nodes, low, move, times) for nodes, low, move in zip(axes, p, step, strict=False)]
        (low, below), (middle, within), (high, above) = (
            blend(raster.values, [(node, *shares[k]) for node, shares in places], ()) for k in range(3)
        )
        total += (b - a) * (low + 4.0 * middle + high)
        # (1): errors of the three values, and the rounding of the partial sum.
        doubt += (b - a) * (below + 4.0 * within + above) + UNIT_ROUNDOFF * (b > a) * total
    square = step[0] ** 2 + step[1] ** 2 + step[2] ** 2
    # 1.01 covers the rounding of the bounds themselves.
    needed = 24 * UNIT_ROUNDOFF + 1.01 * doubt / total + _misplacement(raster, p, q, step)
    if not (needed <= LARGEST_DEFECT).all():
        raise InputError(
            f"the integral of eps over an edge cannot be computed to {LARGEST_DEFECT:g} in doubles",
            field="epsilon",
            value=f"levels {smallest:.6g} to {largest:.6g}, relative error up to {needed.max():.3g}",
            remedy="use a map whose nodes lie further apart, or whose levels differ by less",
        )
    # The usual defect where it suffices: files then have the same lengths whatever the sums above are.
    usual = (1.0 - ROUND_DOWN) * max(1.0, largest / smallest / 128)
    length = total / 6.0 * np.sqrt(square) * (1.0 - np.maximum(usual, needed))
    return np.where((square >= SMALLEST) & (length >= SMALLEST), length, 0.0)


def _misplacement(raster: Raster, p: list[Vector], q: list[Vector], step: list[Vector]) -> Vector:
    """Shares (e,) of the integral added by pieces in part beyond their cell, (2) and (3); coordinates (e,) by axis."""
    # g is the least gap of the nodes along an axis, S the step and M the largest coordinate of the segment there, n the
    # largest |S| / g, rho = largest / smallest eps.
    #
    # (2) Within 4 u t of a crossing the segment may be in the next cell, by 4 u n of its width. A linear function that
    # is not negative keeps a share of 1 - 4 u n of its value at the node there. So a piece is at most 25 u n max eps
    # above eps, on 4 (n + 1) stretches of 8 u: together less than 1000 (u (n + 1))^2 rho of the integral.
    #
    # (3) The cell of a piece is looked up at p + t S, rounded by u (M + 2 |S|). A piece in the wrong cell stays within
    # D = u (3 M + 10 |S|) of the node line between, and is read on that line, which adds at most 2 D / g for each axis.
    # By each of |S| / g + 3 lines this lasts at most 2 D / |S|: together at most 2 (D / g) min(1, 2 rho (D / g + 3 D /
    # |S|)) of the integral. Where S = 0 nothing is rounded.
    range_of_eps = float(raster.values.max()) / float(raster.values.min())
    largest_step, added = np.zeros(len(p[0])), np.zeros(len(p[0]))
    for nodes, a, b, move in zip(raster.axes, p, q, step, strict=False):
        if len(nodes) > 1:
            gap, size = np.diff(nodes).min(), np.abs(move)
            # (3): D, and the share of the segment for which a piece may be read in the wrong cell.
            off = UNIT_ROUNDOFF * (3 * np.maximum(np.abs(a), np.abs(b)) + 10 * size)
            lasting = off / gap + 3 * off / np.where(size > 0, size, np.inf)
            added += 2 * (size > 0) * (off / gap) * np.minimum(1.0, 2 * range_of_eps * lasting)
            largest_step = np.maximum(largest_step, size / gap)
    # (2), with n = largest_step.
    return np.asarray(added + 1000 * (UNIT_ROUNDOFF * (largest_step + 1)) ** 2 * range_of_eps)


def _fractions(
    nodes: Vector,
    start: Vector,
    step: Vector,
    times: tuple[Vector, Vector, Vector],
) -> tuple[Indices, list[tuple[Vector, Vector]]]:
    """The left node of the cell at start + times[1] * step; by time the fraction of the cell, and its error bound."""
    if len(nodes) == 1:
        return np.zeros(start.shape, np.int64), [(np.zeros(start.shape), np.zeros(start.shape))] * len(times)
    # (1) The share s of the way through a raster cell of width w is computed from t S, the offset of the cell from p,
    # and w: it rounds by u ((2 |t S| + |offset|) / w + 3 s). Crossings are right to 4 u t, middles of pieces to u t: an
    # end may lie beyond its cell by 4 u |t S| / w, and is cut to it. Where the whole piece lies beyond, its share is at
    # most that of the crossing, 2 u |offset| / w, from the same doubles. So s is off by at most d = u ((4 |t S| +
    # |offset|) / w + 3 s), and by 0 more than 2 d outside the cell.
    left = np.clip(np.searchsorted(nodes, start + times[1] * step, side="right") - 1, 0, len(nodes) - 2)
    offset, width = nodes[left] - start, nodes[left + 1] - nodes[left]
    shares = []
    for t in times:
        moved = t * step
        raw = (moved - offset) / width
        share = np.clip(raw, 0.0, 1.0)
        # d; the fraction is clipped to exactly 0 or 1 more than 2 d outside the cell.
        doubt = UNIT_ROUNDOFF * ((4 * np.abs(moved) + np.abs(offset)) / width + 3 * share)
        shares.append((share, doubt * ((raw > -2 * doubt) & (raw < 1 + 2 * doubt))))
    return left, shares


def _crossings(nodes: Vector, start: Vector, end: Vector) -> Vector:
    """Parameters t in [0, 1] where each segment crosses a node line, padded with 1; shape (e, most crossings)."""
    low, high = np.minimum(start, end), np.maximum(start, end)
    first = np.searchsorted(nodes, low, side="right")
    count = np.searchsorted(nodes, high, side="left") - first
    steps = np.arange(max(int(count.max(initial=0)), 0))
    node = nodes[np.minimum(first[:, None] + steps, len(nodes) - 1)]
    span = (end - start)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (node - start[:, None]) / span
    return np.clip(np.where(steps < count[:, None], t, 1.0), 0.0, 1.0)

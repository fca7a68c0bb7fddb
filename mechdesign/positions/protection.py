r"""Protection between positions: the factor by which one report changes the odds of two of them, within a radius.

By the claim (positions/patches.py) P(y|x) <= e^{D(x, x') + r} P(y|x'). If the straight line between x and x' stays in
the area, D <= eps |x - x'| for the largest eps in the cells. Hence nats = eps (1 + excess) within + r.
On a masked area a line may leave it. There the masses themselves bound the factor (`_factor_around_holes`).
Source: quadratic splines in Bezier form, de Boor, A Practical Guide to Splines, chapter IX; the rest is ours.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numba
import numpy as np

from mechdesign.base.arrays import Floats, Integers, Unsigned
from mechdesign.base.units import plural_unit
from mechdesign.evaluation.protection import (
    MAX_COMPARISONS,
    USUAL_FACTOR,
    Protection,
    displacements_within,
    factor_of,
    rounded_up,
    stretch,
)
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.positions.patches import Patches, rounding_nats
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import displaced_pairs
from mechdesign.problem.metrics import Eikonal, level_range

_MAX_COEFFICIENTS = 40_000_000  # in memory at a time
_FINE = (4, 2, 1)  # f of the module docstring: the first whose work is acceptable


def protection(stored: MechanismFile, patches: Patches, within: float | None) -> Protection:
    """The protection of a mechanism with a claim about positions; within as in `evaluation.protection.protection`."""
    domain, metric = stored.domain, stored.problem_metric
    assert domain.shape is not None
    largest = Fraction(level_range(metric)[1]) * Fraction(metric.scale)
    # The corner levels were certified and nowhere exceed eps, so that their maximum is a sharper bound.
    if isinstance(metric, Eikonal):
        largest = min(largest, Fraction(float(patches.corner_level.max())))
    ground_stretch = stretch(domain)
    ground = largest * ground_stretch
    radius = math.log(USUAL_FACTOR) / float(ground) if within is None else within
    nats = ground * Fraction(radius) + Fraction(rounding_nats(metric, patches.side)) * (1 + Fraction(1, 1 << 40))
    straight = factor_of(nats)
    path = None
    factor = straight
    if domain.size < math.prod(domain.shape):
        path, factor = straight, max(straight, _factor_around_holes(stored, patches, Fraction(radius) * ground_stretch))
    return Protection(
        kind="positions",
        subject="any two positions",
        unit=plural_unit(domain.unit),
        within=radius,
        factor=factor,
        exact=False,
        path=path,
        epsilon=rounded_up(ground),
    )


def _factor_around_holes(stored: MechanismFile, patches: Patches, radius: Fraction) -> float:
    # The cells are cut into f x f squares. Where the squares s, t hold positions within the radius, and the convex hull
    # of both is not inside the area, the factor is
    #     max over y of max over s of P(y|.) / min over t of P(y|.),
    # both bounded by the nine Bezier coefficients of the spline on a square, which are means of the nine rows around.
    # The smaller the squares, the sharper the bound: the finest cut with acceptable work is used.
    domain, mass = stored.domain, stored.mechanism["mass"].values
    assert domain.cell is not None and domain.origin is not None
    for parts in _FINE:
        fine = Domain.grid(
            [parts * count for count in domain.shape or ()],
            cell=domain.cell[0] / parts,
            unit=domain.unit,
            mask=np.kron(domain.lookup >= 0, np.ones((parts, parts))).astype(bool),
        )
        steps, _ = displacements_within(fine, radius * (1 + Fraction(1, 1 << 40)), Fraction(1))
        if fine.size * int(np.abs(steps).sum()) > MAX_COMPARISONS // 4:
            continue
        tail, head = _leaving(fine, steps)
        used = np.unique(np.concatenate([tail, head]))
        if len(used) * mass.shape[1] > _MAX_COEFFICIENTS or len(tail) * mass.shape[1] > MAX_COMPARISONS:
            continue
        low, high = _ranges(mass, patches, domain, fine, parts, used)
        place = np.full(fine.size, -1, np.int64)
        place[used] = np.arange(len(used))
        return float(_steepest_between(low, high, place[tail], place[head])) * (1 + 2.0**-40)
    # Too much work on every cut: the ratio of extreme rows bounds any two positions, since P is a mean of rows.
    low, high = np.full(mass.shape[1], np.inf), np.zeros(mass.shape[1])
    for row in mass:
        low, high = np.minimum(low, row), np.maximum(high, row)
    return float((high / low).max()) * (1 + 2.0**-40)


def _leaving(fine: Domain, steps: Integers) -> tuple[Integers, Integers]:
    table, tails, heads = fine.lookup, [], []
    for step in steps.tolist():
        tail, head = displaced_pairs(fine, tuple(step))
        index = fine.index[tail]  # type: ignore[index]
        inside = np.ones(len(tail), bool)
        for square in _hull(step):
            inside &= table[tuple((index + square).T)] >= 0
        tails.append(tail[~inside])
        heads.append(head[~inside])
    return np.concatenate([np.empty(0, np.int64), *tails]), np.concatenate([np.empty(0, np.int64), *heads])


def _hull(step: list[int]) -> list[tuple[int, int]]:
    # The convex hull of a square and its image by `step` cuts the square at k if |k - t step| < 1 on both axes for a t.
    squares = []
    for square in product(*(range(min(0, s), max(0, s) + 1) for s in step)):
        low, high = Fraction(0), Fraction(1)
        for k, s in zip(square, step, strict=True):
            if s:
                ends = sorted((Fraction(k - 1, s), Fraction(k + 1, s)))
                low, high = max(low, ends[0]), min(high, ends[1])
        if low < high:
            squares.append((square[0], square[1]))
    return squares


def _ranges(
    mass: Unsigned, patches: Patches, domain: Domain, fine: Domain, parts: int, used: Integers
) -> tuple[Floats, Floats]:
    # Bezier coefficients bound the spline on a square: here the smallest and largest (k, m) of each report.
    assert fine.index is not None
    index = fine.index[used]
    cell, part = domain.lookup[tuple((index // parts).T)], index % parts
    along = [_coefficients(Fraction(k, parts), Fraction(k + 1, parts)) for k in range(parts)]
    low, high = np.empty((len(used), mass.shape[1])), np.empty((len(used), mass.shape[1]))
    for k, (u, (i, j)) in enumerate(zip(cell.tolist(), part.tolist(), strict=True)):
        rows = mass[patches.around[u]].astype(float).reshape(3, 3, -1)
        control = np.einsum("ai,bj,ijm->abm", along[i], along[j], rows)
        low[k], high[k] = control.min(axis=(0, 1)), control.max(axis=(0, 1))
    return low, high


def _coefficients(start: Fraction, end: Fraction) -> Floats:
    # Bezier coefficients on [start, end] by the blossom of the weights (1 - t)^2 / 2, (1 + 2 t - 2 t^2) / 2, t^2 / 2 at
    # (a, a), (a, b), (b, b).
    rows = []
    for a, b in ((start, start), (start, end), (end, end)):
        ends = (1 - a) * (1 - b) / 2, a * b / 2
        rows.append([float(ends[0]), float(1 - ends[0] - ends[1]), float(ends[1])])
    return np.array(rows)


@numba.njit(cache=True, nogil=True)
def _steepest_between(low, high, tail, head):  # type: ignore[no-untyped-def]
    # Both directions of every pair: the ratio of the largest to the smallest coefficient bounds that of P.
    best = 1.0
    for e in range(tail.size):
        s, t = tail[e], head[e]
        for y in range(low.shape[1]):
            best = max(best, high[s, y] / low[t, y], high[t, y] / low[s, y])
    return best

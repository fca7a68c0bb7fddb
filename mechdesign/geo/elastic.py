"""Elastic radii: the radius around each place that holds a number of people, as a Lipschitz function.

People are spread evenly over each cell of a raster, the rectangle about its node. For a node v, with j = 0..J,

    r_k(v) = the minimum radius of a disc about v that holds k people,
    q(v) = the first least (most / least)^(j / J) >= r_k(v), or most if none is,
    r(v) = max over nodes u of q(u) - |u - v|.                                                                  (1)

Statements.

1. The disc of radius r(v) about v holds k people, unless that of radius `most` does not. For then r >= q >= r_k.
2. |r(u) - r(v)| <= |u - v|. For r is the smallest function above q with that property.
3. r exceeds c = max(least, min(most, r_k)) by less than (e^STEP - 1) most, some 0.2 % of most (`elastic_radii`).

Source: Koufogiannis & Pappas 2016, section IV; K. Chatzikokolakis, C. Palamidessi and M. Stronati, Constructing elastic
distinguishability metrics for location privacy (PoPETs 2015); the statement is ours.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from mechdesign.base.arrays import Floats, Matrix
from mechdesign.base.memory import require_bytes
from mechdesign.base.validation import check_epsilon, check_positive, refuse_entries, validate_call
from mechdesign.errors import InputError
from mechdesign.problem.line_integrals import ROUND_DOWN
from mechdesign.problem.max_plus import transform
from mechdesign.problem.privacy_level import PrivacyLevel, level_raster
from mechdesign.problem.raster import Raster

STEP = 0.002  # maximum step of the logarithm of a radius; statement 3 is proportional to it, and so is memory inversely
_EVEN = 1e-9  # of a step: how far nodes may lie from evenly spaced ones
_UNIT = 2.0**-53
_AREA = 2.0**-45  # of the square of a radius: bound on the rounding error of an area


@validate_call
def elastic_level(
    density: Raster, *, people: float = 2000.0, nats: float = 2.0, least: float, most: float
) -> PrivacyLevel:
    """The privacy level eps(v) = nats / r(v), r(v) the radius of the disc about v that holds `people`.

    Parameters
    ----------
    density : Raster
        People per square unit on an evenly spaced lattice of two axes. Amounts, as of `md.geo.raster_on`, are people
        of cells.
    people, nats : float
        Number of people in the disc; nats over its radius.
    least, most : float
        Minimum and maximum radius, in the unit of the density.

    Returns
    -------
    PrivacyLevel, in nats per unit, with the properties of statements 1 to 3 of the module

    Examples
    --------
    >>> density = md.Raster(x=np.arange(8.0), y=np.arange(8.0), values=np.full((8, 8), 10.0), unit="km")
    >>> level = md.geo.elastic_level(density, people=50.0, nats=1.0, least=0.5, most=2.0)
    >>> bool(0.5 <= level.smallest <= level.largest <= 2.0)
    True
    """
    nats = check_epsilon(nats, "nats")
    # The stored level is eps = nats / r, rounded down. If nats / eps < most at a node, the disc of that radius about it
    # holds k people. If it is so at any place, the disc of radius nats / eps + D does, D the diagonal of a cell. Proof:
    # at a place nats / eps is a weighted harmonic mean of r at the corners of its cell. So it is at least the smallest
    # of these r, and the disc of that radius about that corner lies in the disc about the place.
    #
    # The integral of eps along a straight line of length s < R = r(u) - D from a node u is at most
    #
    #     nats min(s / least, ln(R / (R - s))).
    #
    # Proof: after a length t, r >= R - t at the corners of the cell, by statement 2. So the integral is at most nats
    # for s <= 0.63 R, where ln(R / (R - s)) <= 1.
    values = nats * ROUND_DOWN / elastic_radii(density, people=people, least=least, most=most)
    return PrivacyLevel(raster=level_raster([density.x, density.y, density.z], values, density.unit))


def elastic_radii(density: Raster, *, people: float, least: float, most: float) -> Matrix:
    """r(v) (kx, ky) in the raster's unit. Cost: O(n log(J) (most / step)^2), 25 s for 10^6 nodes and 10 steps."""
    check_positive(people, "people")
    if not check_positive(least, "least") <= check_positive(most, "most"):
        raise InputError("must not exceed most", field="least", value=f"{least} > {most}")
    steps = _steps(density)
    counts = density.values * (steps[0] * steps[1]) if density.amounts is None else density.amounts
    ends = math.log(least), math.log(most)
    count = 1 + math.ceil((ends[1] - ends[0]) / STEP)
    reach = [math.ceil(min(most / step, 2.0**40) + 0.5) for step in steps]
    size, discs = 16 * count * (reach[0] + 1) * (reach[1] + 1), f"discs of {reach[0]} x {reach[1]} cells"
    require_bytes(size, noun=discs, field="most", value=most, remedy="use larger cells, or a smaller radius")
    radii = np.exp(np.linspace(*ends, count))
    radii[0], radii[-1] = least, most
    # In 64 parts: terms of a share take seven times the memory of the shares.
    parts = np.array_split(radii[:, None, None], 64)
    shares = np.concatenate([_shares(part, steps, reach) for part in parts])
    spans = np.array([[min(math.ceil(radius / step + 0.5), far) for step, far in zip(steps, reach, strict=True)]
                       for radius in radii])  # fmt: skip
    # (2), above `_shares`, with m at most the cells of the largest disc: such a sum proves that k people live there.
    required = people * (1 + 2 * ((2 * reach[0] + 1) * (2 * reach[1] + 1) + 8) * _UNIT)
    first = _first(np.ascontiguousarray(counts), required, shares, spans)
    if (first == len(radii)).all():
        message = f"nowhere do {people:g} people live within {most:g} {density.unit}"
        remedy = "ask for fewer, raise the largest radius, or check that values are people per square unit"
        raise InputError(message, field="people", value=f"{counts.sum():.6g} in all", remedy=remedy)
    # Proof of statement 3. The disc of radius r_k(u) + |u - v| about v contains the disc of radius r_k(u) about u, so
    # r_k and c obey statement 2. Moreover q(u) < e^STEP c(u). So q(u) - |u - v| < c(u) - |u - v| + (e^STEP - 1) c(u) <=
    # c(v) + (e^STEP - 1) most.
    # (1): q, then the smallest function above it that obeys statement 2.
    rounded = radii[np.minimum(first, len(radii) - 1)]
    nodes = np.column_stack([side.ravel() for side in np.meshgrid(density.x, density.y, indexing="ij")])
    return transform(nodes, nodes, rounded.ravel(), 1.0, linear=False).reshape(rounded.shape)


def _steps(density: Raster) -> tuple[float, float]:
    steps = []
    for nodes in density.axes:
        step = (nodes[-1] - nodes[0]) / max(len(nodes) - 1, 1)
        if len(density.axes) != 2 or len(nodes) < 2 or (np.abs(np.diff(nodes) - step) > _EVEN * step).any():
            message = "must be an evenly spaced lattice of two axes, with two nodes or more along each"
            sides = " x ".join(str(len(axis)) for axis in density.axes)
            remedy = "resample it, or make it with md.geo.read_people"
            raise InputError(message, field="density", value=sides, remedy=remedy)
        steps.append(float(step))
    refuse_entries(density.values < 0, density.values, "must not be negative", field="density")
    return steps[0], steps[1]


# The share of a cell in a disc of radius R is a sum of four areas of quarter discs. Each is off by less than 40 u R^2,
# u = 2^-53, for which 2^-45 R^2 is subtracted. A cell counts in full if its farthest corner, rounded up, lies within. A
# sum of m shares times people is off by less than (m + 8) u of itself, so k (1 + 2 (m + 8) u) are required (2).
# Statement 1 therefore holds, statement 2 up to the rounding of one difference. Statement 3 is for exact sums: people
# who are counted up to this rounding may need the next radius.
def _shares(radius: Floats, steps: tuple[float, float], reach: list[int]) -> Floats:
    """The shares (k, a, b) of cells (a, b) in discs of radii (k, 1, 1) about cell (0, 0), rounded down."""
    x, y = (step * np.arange(far + 1, dtype=np.float64) for step, far in zip(steps, reach, strict=True))
    half = steps[0] / 2, steps[1] / 2
    west, east, south, north = (x - half[0])[:, None], (x + half[0])[:, None], y - half[1], y + half[1]
    # The area of a disc in a rectangle is a signed sum of four quarters; rounded down, since fewer people are safe.
    area = _quarter(east, north, radius) - _quarter(west, north, radius)
    area += _quarter(west, south, radius) - _quarter(east, south, radius)
    share = np.clip((area - _AREA * radius**2) / (steps[0] * steps[1]) * (1 - 8 * _UNIT), 0.0, 1.0)
    # A cell inside the disc counts in full, or rounding down would never let its people be complete.
    full = (east**2 + north**2) * (1 + 8 * _UNIT) <= radius**2
    return np.where(full, 1.0, share)


def _quarter(x: Floats, y: Floats, radius: Floats) -> Floats:
    """The area that a disc about the origin shares with [0, x] x [0, y]; odd in both."""
    sign = np.sign(x) * np.sign(y)
    x, y = np.minimum(np.abs(x), radius), np.minimum(np.abs(y), radius)
    # Up to `bend` the border is the side at height y, beyond it the circle.
    bend = np.minimum(np.sqrt(np.maximum(radius**2 - y**2, 0.0)), x)
    return sign * (y * bend + _under(x, radius) - _under(bend, radius))


def _under(t: Floats, radius: Floats) -> Floats:
    """The integral of sqrt(radius^2 - s^2) over s from 0 to t."""
    return 0.5 * (t * np.sqrt(np.maximum(radius**2 - t**2, 0.0)) + radius**2 * np.arcsin(np.minimum(t / radius, 1.0)))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _first(counts, people, shares, spans):  # type: ignore[no-untyped-def]
    """For every node the first radius whose disc holds `people`, or len(shares)."""
    n, m = counts.shape
    first = np.empty((n, m), np.int64)
    for i in range(n):
        for j in range(m):
            # The count grows with the radius, so that bisection finds the first one; index -1 never holds enough.
            low, high = -1, len(shares)
            while high - low > 1:
                k = (low + high) // 2
                total = 0.0
                for a in range(max(0, i - spans[k, 0]), min(n, i + spans[k, 0] + 1)):
                    share = shares[k, abs(a - i)]
                    for b in range(max(0, j - spans[k, 1]), min(m, j + spans[k, 1] + 1)):
                        total += counts[a, b] * share[abs(b - j)]
                    # Terms are not negative, so further rows cannot undo a sufficient total.
                    if total >= people:
                        break
                if total >= people:
                    high = k
                else:
                    low = k
            first[i, j] = high
    return first

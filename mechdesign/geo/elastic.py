"""Elastic radii: the radius around each place that holds a number of people, as a Lipschitz function.

People are spread evenly over each cell of a raster, the rectangle about its node. For a node v

    r_k(v) = the minimum radius of a disc about v that holds k people
    q(v)   = least (most / least)^(j / J), the first of these, j = 0..J, that is not below r_k(v); most where none is
    r(v)   = max over nodes u of q(u) - |u - v|

Statement.

1. The disc of radius r(v) about v holds k people, unless no disc of radius `most` about v does: r >= q >= r_k.
2. |r(u) - r(v)| <= |u - v|, since r is the smallest function above q with that property.
3. r exceeds c = max(least, min(most, r_k)) by less than (e^STEP - 1) most, 0.2 % of it. Proof: the disc of radius
   r_k(u) + |u - v| about v contains the disc of radius r_k(u) about u, so that r_k and c obey (2). With
   q(u) < e^STEP c(u) this gives q(u) - |u - v| < c(u) - |u - v| + (e^STEP - 1) c(u) <= c(v) + (e^STEP - 1) most.

Doubles. The share of a cell in a disc of radius R is a sum of four areas of quarter discs. Each is off by less than
40 u R^2, u = 2^-53, for which 2^-45 R^2 is subtracted. A cell counts in full if its farthest corner, rounded up, lies
within. A sum of m shares times people is off by less than (m + 8) u of itself, and must exceed k by twice that.
Statement 2 holds up to the rounding of one difference.

The stored level is eps = nats / r, rounded. Unless nats / eps >= most, the disc of radius nats / eps about a node holds
k people, and so does the disc of radius nats / eps + D about any place, D the diagonal of a cell. Proof: nats / eps is
a weighted harmonic mean of r at the corners of the cell, and at least r_k - D.

A straight way of length s < R = r(u) - D from a node u costs at most nats min(s / least, ln(R / (R - s))) nats. Proof:
after a length t, r >= R - t at the corners of the cell. So the odds of u and a place within 0.63 R change by at most
e^nats.
Source: Koufogiannis & Pappas 2016, section IV; K. Chatzikokolakis, C. Palamidessi and M. Stronati, Constructing elastic
distinguishability metrics for location privacy (PoPETs 2015); the statement is ours.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from mechdesign.base.memory import require_bytes
from mechdesign.base.validation import check_epsilon, check_positive, refuse_entries, validate_call
from mechdesign.errors import InputError
from mechdesign.problem.line_integrals import ROUND_DOWN
from mechdesign.problem.max_plus import transform
from mechdesign.problem.privacy_level import PrivacyLevel, level_raster
from mechdesign.problem.raster import Raster

STEP = 0.002  # at most, of the logarithm of the radius
_EVEN = 1e-9  # of a step: how far nodes may lie from evenly spaced ones
_UNIT = 2.0**-53
_AREA = 2.0**-45  # of the square of a radius: bound on the rounding error of an area


@validate_call
def elastic_level(
    density: Raster, *, people: float = 2000.0, nats: float = 2.0, least: float, most: float
) -> PrivacyLevel:
    """The privacy level eps(v) = nats / r(v): r(v), from `least` to `most`, is the radius around v that holds `people`.

    Parameters
    ----------
    density : Raster
        People per square unit on an evenly spaced lattice of two axes; amounts, as of `md.geo.raster_on`, are the
        people of each cell.
    people, nats : float
        Number of people in the disc; nats of a way as long as r at the level of its start.
    least, most : float
        Least and largest radius, in the unit of the density.

    Returns
    -------
    PrivacyLevel
        In nats per unit, with the properties that the module docstring proves.

    Examples
    --------
    >>> density = md.Raster(x=np.arange(8.0), y=np.arange(8.0), values=np.full((8, 8), 10.0), unit="km")
    >>> level = md.geo.elastic_level(density, people=50.0, nats=1.0, least=0.5, most=2.0)
    >>> bool(0.5 <= level.smallest <= level.largest <= 2.0)
    True
    """
    nats = check_epsilon(nats, "nats")
    values = nats * ROUND_DOWN / elastic_radii(density, people=people, least=least, most=most)
    return PrivacyLevel(raster=level_raster([density.x, density.y, density.z], values, density.unit))


def elastic_radii(density: Raster, *, people: float, least: float, most: float) -> NDArray[np.float64]:
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
    require_bytes(size, what=discs, field="most", value=most, remedy="use larger cells, or a smaller radius")
    radii = np.exp(np.linspace(*ends, count))
    radii[0], radii[-1] = least, most
    # In 64 parts: terms of a share take seven times the memory of the shares.
    few = np.array_split(radii[:, None, None], 64)
    shares = np.concatenate([_shares(some, steps, reach) for some in few])
    within = np.array([[min(math.ceil(radius / step + 0.5), far) for step, far in zip(steps, reach, strict=True)]
                       for radius in radii])  # fmt: skip
    # Statement (1): sums of doubles must exceed k by twice their rounding error to prove that the disc holds k people.
    enough = people * (1 + 2 * ((2 * reach[0] + 1) * (2 * reach[1] + 1) + 8) * _UNIT)
    first = _first(np.ascontiguousarray(counts), enough, shares, within)
    if (first == len(radii)).all():
        message = f"nowhere do {people:g} people live within {most:g} {density.unit}"
        remedy = "ask for fewer, raise the largest radius, or check that values are people per square unit"
        raise InputError(message, field="people", value=f"{counts.sum():.6g} in all", remedy=remedy)
    # q of the module docstring, then r: the Lipschitz function above it.
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


def _shares(radius: NDArray[np.float64], steps: tuple[float, float], reach: list[int]) -> NDArray[np.float64]:
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


def _quarter(x: NDArray[np.float64], y: NDArray[np.float64], radius: NDArray[np.float64]) -> NDArray[np.float64]:
    """The area that a disc about the origin shares with [0, x] x [0, y]; odd in both."""
    sign = np.sign(x) * np.sign(y)
    x, y = np.minimum(np.abs(x), radius), np.minimum(np.abs(y), radius)
    bend = np.minimum(np.sqrt(np.maximum(radius**2 - y**2, 0.0)), x)  # left of it the side y is the border
    return sign * (y * bend + _under(x, radius) - _under(bend, radius))


def _under(t: NDArray[np.float64], radius: NDArray[np.float64]) -> NDArray[np.float64]:
    """The integral of sqrt(radius^2 - s^2) over s from 0 to t."""
    return 0.5 * (t * np.sqrt(np.maximum(radius**2 - t**2, 0.0)) + radius**2 * np.arcsin(np.minimum(t / radius, 1.0)))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _first(counts, people, shares, within):  # type: ignore[no-untyped-def]
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
                for a in range(max(0, i - within[k, 0]), min(n, i + within[k, 0] + 1)):
                    share = shares[k, abs(a - i)]
                    for b in range(max(0, j - within[k, 1]), min(m, j + within[k, 1] + 1)):
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

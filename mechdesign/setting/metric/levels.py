r"""PrivacyLevel: eps(u) in nats per unit of length, and its exact line integral.

    length of the segment from p to q  =  |q - p| * integral_0^1 eps(p + t (q - p)) dt        (nats)

Between the node lines or planes that a segment crosses, eps is linear along each axis, hence along the segment a
quadratic on maps of two axes and a cubic on maps of three. Simpson's rule is exact for cubics, so it is exact on each
piece; a fixed rule over the whole segment is not (1 % off across kinks). Computed lengths are multiplied by 1 - defect,
so that they never exceed the exact ones.

How large a defect is needed. u = 2^-53; g is the least gap of the nodes along an axis, S the step and M the largest
coordinate of the segment there, n the largest |S| / g, rho = largest / smallest eps. Three things go wrong.

1. The share s of the way through a raster cell of width w is computed from t S, the offset of the cell from p, and w,
   which rounds it by u ((2 |t S| + |offset|) / w + 3 s). Crossings are right to 4 u t, and middles of pieces to u t: an
   end of a piece may lie beyond its cell by 4 u |t S| / w, and is then cut to it. Where the whole piece lies beyond the
   cell, its share is no more than that of the crossing, 2 u |offset| / w, which is computed from the same doubles. So s
   is off by no more than d = u ((4 |t S| + |offset|) / w + 3 s), and not at all more than 2 d outside the cell. If low
   is off by e, high by e' and s by d, then (1 - s) low + s high is off by no more than
   (1 - s + d) e + (s + d) e' + d |high - low|. These are summed beside the integral itself, in the order in which it is
   summed, together with u times every partial sum.
2. Within 4 u t of a crossing the segment may be in the next cell already, by 4 u n of its width. A linear function that
   is never negative keeps a share of 1 - 4 u n of its value at the node there. So a piece is at most 25 u n max eps
   above eps, on 4 (n + 1) stretches of 8 u: together less than 1000 (u (n + 1))^2 rho of the integral.
3. The cell of a piece is looked up at p + t S, which is rounded by u (M + 2 |S|). A piece in the wrong cell stays
   within D = u (3 M + 10 |S|) of the node line between, and is read on that line, which adds at most 2 D / g for each
   axis. By each of |S| / g + 3 lines this lasts no longer than 2 D / |S|: together no more than
   2 (D / g) min(1, 2 rho (D / g + 3 D / |S|)) of the integral. Where S = 0 nothing is rounded.

Everything else has positive terms and takes 24 u. Where more than 10^-6 is needed the map is refused.
Source: paper 000, section II-B (Definition 3) and section IV (the affine map); 003, equation (6.18). The bound is ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.arguments import asked
from mechdesign.base.checks import check_epsilon
from mechdesign.base.descriptions import SMALLEST, finites, named, word
from mechdesign.base.display import Shown
from mechdesign.base.units import unit_ratio, unit_word
from mechdesign.errors import InputError
from mechdesign.setting.metric.elastic import elastic_radii
from mechdesign.setting.space.domain import AXES, Domain
from mechdesign.setting.space.raster import Raster, coordinates

# Lengths are multiplied by this, or by less where the sums below need it. Euclidean ones are right to a relative 6 u,
# u = 2^-53, and a product of such a length with a rounded factor to 3 u more, so that the product never exceeds them.
ROUND_DOWN = 1.0 - 2.0**-44
LARGEST_DEFECT = 1e-6
WIDEST = 2.0**50
_UNIT = 2.0**-53
_CHUNK = 1 << 16


@dataclass(frozen=True, kw_only=True, eq=False)
class PrivacyLevel(Shown):
    """eps(u): smaller means more private. Make one with `constant`, `affine`, `elastic` or `from_values`.

    extend: beyond the raster eps goes on as at its border; else a problem with places there is refused.
    Invariant: at least 2^-960 and finite at every node of `raster`, hence everywhere; largest <= 2^50 smallest.
    """

    raster: Raster
    extend: bool = False

    def __post_init__(self) -> None:
        low = float(np.min(self.raster.values))
        if not low >= SMALLEST:
            zero = " (eps = 0 admits constant mechanisms only)" if low == 0 else ", and at least 2^-960"
            raise InputError(
                f"privacy level must be positive{zero}", field="epsilon", value=low, remedy="raise the floor above zero"
            )
        if not self.largest / WIDEST <= low:
            raise InputError(
                "privacy level ranges over more than 2^50",
                field="epsilon",
                value=f"{low} to {self.largest}",
                remedy="raise the floor, or cut the largest values",
            )

    def facts(self) -> Mapping[str, object]:
        unit = unit_word(self.raster.unit)
        return {"eps": f"{self.smallest:.6g} to {self.largest:.6g} nats per {unit}", "map": self.raster}

    @classmethod
    @asked
    def constant(cls, epsilon: float, unit: str = "1") -> PrivacyLevel:
        """eps(u) = epsilon, in nats per `unit`."""
        value = check_epsilon(epsilon)
        return cls(raster=_level_raster([np.zeros(1)] * 3, np.full((1, 1), value), unit))

    @classmethod
    @asked
    def affine(cls, density: Raster, *, slope: float, floor: float, extend: bool = False) -> PrivacyLevel:
        """eps(u) = slope * density(u) + floor: looser where more people are (paper 000, section IV).

        slope in nats per unit of length per unit of density; floor > 0 in nats per unit of length; extend, beyond the
        raster as at its border.
        """
        for name, value in (("slope", slope), ("floor", floor)):
            if not np.isfinite(value):
                raise InputError("must be finite", field=name, value=value, remedy="give a finite number")
        if floor <= 0:
            raise InputError(
                "must be positive: it is eps where nobody lives, and eps = 0 admits constant mechanisms only",
                field="floor",
                value=floor,
                remedy="give the tightest privacy level in nats per unit, such as 0.4",
            )
        values = slope * density.values + floor
        if not (values > 0).all():
            raise InputError(
                "eps = slope * density + floor must be positive everywhere",
                field="slope",
                value=f"slope {slope}, floor {floor}: smallest eps {values.min():.6g}",
                remedy="raise the floor or the slope",
            )
        return cls(raster=_level_raster([density.x, density.y, density.z], values, density.unit), extend=extend)

    @classmethod
    @asked
    def elastic(
        cls, density: Raster, *, people: float = 2000.0, nats: float = 2.0, least: float, most: float
    ) -> PrivacyLevel:
        """eps(v) = nats / r(v) at the nodes v: r(v), from `least` to `most`, holds so many people around v.

        density, people per square unit on an evenly spaced lattice of two axes, spread evenly over the cell about each
        node; least, most, in its unit; nats, of a way as long as r at the level of its start. `elastic_radii` has the
        statement of r, its proof, and what is raised. Of the level as it is stored, rounding included:

        At a node, the disc of radius nats / eps(v) about v holds `people` people, or nats / eps(v) >= most. Anywhere,
        with the diagonal D of a cell, the disc of radius nats / eps + D does, or nats / eps >= most: nats / eps is a
        weighted harmonic mean of r at the corners of the cell, hence no less than r_k - D. A straight way of length
        s < R = r(u) - D from a node u costs at most nats min(s / least, ln(R / (R - s))) nats, since r is no less than
        R - t at the corners of every cell that it meets after t: the odds of u and a place within 0.63 R change by no
        more than e^nats.
        """
        radii = elastic_radii(density, people=people, least=least, most=most)
        values = check_epsilon(nats, "nats") * ROUND_DOWN / radii
        return cls(raster=_level_raster([density.x, density.y, density.z], values, density.unit))

    @classmethod
    @asked
    def from_values(cls, domain: Domain, values: ArrayLike) -> PrivacyLevel:
        """Eps given at every cell of an unmasked grid, shape `domain.shape`; linear along each axis between centres."""
        array = np.asarray(values, np.float64)
        if domain.shape is None or array.shape != domain.shape:
            raise InputError(
                f"must have the shape of the grid, {domain.shape}",
                field="epsilon",
                value=array.shape,
                remedy="one value per cell, masked cells included (any positive value there)",
            )
        if not np.isfinite(array).all():
            raise InputError(
                "must be finite in every cell", field="epsilon", value="nan or inf", remedy="fill the cells"
            )
        assert domain.cell is not None and domain.origin is not None
        axes: list[NDArray[np.float64]] = [
            np.asarray(o + (np.arange(k) + 0.5) * h, np.float64)
            for o, k, h in zip(domain.origin, domain.shape, domain.cell, strict=True)
        ]
        axes += [np.zeros(1)] * (3 - len(axes))
        return cls(raster=_level_raster(axes, array[:, None] if array.ndim == 1 else array, domain.unit))

    def describe(self) -> dict[str, Any]:
        """What a file keeps; `from_description` reads it."""
        axes = {name: nodes.tolist() for name, nodes in zip(AXES, self.raster.axes, strict=False)}
        return {**axes, "eps": self.raster.values.tolist(), "unit": self.raster.unit}

    @classmethod
    def from_description(cls, description: object) -> PrivacyLevel:
        """The level of `describe`, wherever its places lie. Raises: InputError for a description of another form."""
        told = named(description, "level", ("x", "y", "eps", "unit"), ("z",))
        values, unit = finites(told["eps"], "eps", 2 + ("z" in told)), word(told["unit"], "unit")
        x, y, z = (finites(told.get(name, [0.0]), name) for name in AXES)
        return cls(raster=Raster(x=x, y=y, z=z, values=values, unit=unit, name="level"), extend=True)

    def in_unit(self, unit: str) -> PrivacyLevel:
        """The level on nodes in another unit of length, in nats per that unit: nowhere above the level of this one.

        A converted node may lie off its place by u M, u = 2^-53 and M the largest coordinate; in a cell of width g or
        more that moves eps by no more than 4 u (M / g) of the largest eps, and products take u each.
        Raises: UnitError where one of the two units is no length; InputError where that is more than 10^-6.
        """
        held = self.raster.in_unit(unit)
        if held is self.raster:
            return self
        far = sum(np.abs(nodes).max() / np.diff(nodes).min() for nodes in held.axes if len(nodes) > 1)
        moved = 16 * _UNIT * (1 + far) * self.largest / self.smallest
        if not moved <= LARGEST_DEFECT:
            raise InputError(
                f"cannot be converted to {LARGEST_DEFECT:g} in doubles",
                field="epsilon",
                value=f"levels {self.smallest:.6g} to {self.largest:.6g}",
                remedy=f"state the map in {unit}",
            )
        ratio = float(unit_ratio(unit, self.raster.unit))
        values = held.values * (ratio * (1 - moved))
        return replace(self, raster=_level_raster([held.x, held.y, held.z], values, held.unit))

    def at(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Eps at points (n, 1..3), in nats per unit."""
        return self.raster.at(points)

    @property
    def smallest(self) -> float:
        """Min eps over all places, in nats per unit."""
        return float(self.raster.values.min())

    @property
    def largest(self) -> float:
        """Max eps over all places, in nats per unit."""
        return float(self.raster.values.max())

    def line_integrals(self, start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float64]:
        """Lengths in nats of the segments start[i] -> end[i] (shape (e, 1..3)), rounded down.

        The relative defect of the result against the true integral lies in [0, 2^-43] while eps varies by less than 128
        times over the map and a segment crosses few of its cells; beyond that the upper end grows in proportion to the
        range, or to what the module docstring says is needed. A length under 2^-960 is rounded down to 0.
        Raises: InputError where the needed defect exceeds 10^-6: nodes or levels too far apart for doubles.
        Cost: O(e (c + 1)) for c crossings per segment. Elementwise IEEE arithmetic only: the bits repeat.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            blocks = [
                self._integrals(start[lo : lo + _CHUNK], end[lo : lo + _CHUNK]) for lo in range(0, len(start), _CHUNK)
            ]
        return np.concatenate(blocks) if blocks else np.zeros(0)

    @property
    def _usual_defect(self) -> float:
        return (1.0 - ROUND_DOWN) * max(1.0, self.largest / self.smallest / 128)

    def _integrals(self, start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float64]:
        axes, count = self.raster.axes, len(start)
        p, q = coordinates(start), coordinates(end)
        crossings = [_crossings(nodes, a, b) for nodes, a, b in zip(axes, p, q, strict=False)]
        cuts = np.concatenate([np.zeros((count, 1)), *crossings, np.ones((count, 1))], axis=1)
        cuts.sort(axis=1)

        step = [b - a for a, b in zip(p, q, strict=True)]
        total, doubt = np.zeros(count), np.zeros(count)
        for a, b in zip(cuts[:, :-1].T, cuts[:, 1:].T, strict=True):
            times = (a, 0.5 * (a + b), b)
            places = [_fractions(nodes, at, move, times) for nodes, at, move in zip(axes, p, step, strict=False)]
            (low, below), (middle, within), (high, above) = (
                _blend(self.raster.values, [(node, *shares[k]) for node, shares in places], ()) for k in range(3)
            )
            total += (b - a) * (low + 4.0 * middle + high)
            doubt += (b - a) * (below + 4.0 * within + above) + _UNIT * (b > a) * total
        square = step[0] ** 2 + step[1] ** 2 + step[2] ** 2
        needed = 24 * _UNIT + 1.01 * doubt / total + self._misplaced(p, q, step)
        if not (needed <= LARGEST_DEFECT).all():
            raise InputError(
                f"the integral of eps over an edge cannot be told to {LARGEST_DEFECT:g} in doubles",
                field="epsilon",
                value=f"levels {self.smallest:.6g} to {self.largest:.6g}, relative error up to {needed.max():.3g}",
                remedy="use a map whose nodes lie further apart, or whose levels differ by less",
            )
        found = total / 6.0 * np.sqrt(square) * (1.0 - np.maximum(self._usual_defect, needed))
        return np.where((square >= SMALLEST) & (found >= SMALLEST), found, 0.0)

    def _misplaced(
        self, p: list[NDArray[np.float64]], q: list[NDArray[np.float64]], step: list[NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """The shares (e,) of the integral that pieces in part beyond their cell add: 2. and 3. of the module docstring.

        p, q, step: coordinates (e,) by axis.
        """
        range_of_eps, most, found = self.largest / self.smallest, np.zeros(len(p[0])), np.zeros(len(p[0]))
        for nodes, a, b, move in zip(self.raster.axes, p, q, step, strict=False):
            if len(nodes) > 1:
                gap, size = np.diff(nodes).min(), np.abs(move)
                off = _UNIT * (3 * np.maximum(np.abs(a), np.abs(b)) + 10 * size)
                lasting = off / gap + 3 * off / np.where(size > 0, size, np.inf)
                found += 2 * (size > 0) * (off / gap) * np.minimum(1.0, 2 * range_of_eps * lasting)
                most = np.maximum(most, size / gap)
        return np.asarray(found + 1000 * (_UNIT * (most + 1)) ** 2 * range_of_eps)


def _level_raster(axes: Sequence[NDArray[np.float64]], values: NDArray[np.float64], unit: str) -> Raster:
    x, y, z = axes
    return Raster(x=x, y=y, z=z, values=values, unit=unit, value_unit=f"nats per {unit}", name="eps")


def _fractions(
    nodes: NDArray[np.float64],
    start: NDArray[np.float64],
    step: NDArray[np.float64],
    times: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
) -> tuple[NDArray[np.int64], list[tuple[NDArray[np.float64], NDArray[np.float64]]]]:
    """The left node of the cell that holds start + times[1] * step, and per time the fraction of the way to the next,
    with how far it may be off.

    Measured from the start of each segment: positions far from the origin (projected metres) lose no digits.
    """
    if len(nodes) == 1:
        return np.zeros(start.shape, np.int64), [(np.zeros(start.shape), np.zeros(start.shape))] * len(times)
    left = np.clip(np.searchsorted(nodes, start + times[1] * step, side="right") - 1, 0, len(nodes) - 2)
    offset, width = nodes[left] - start, nodes[left + 1] - nodes[left]
    shares = []
    for t in times:
        moved = t * step
        raw = (moved - offset) / width
        share = np.clip(raw, 0.0, 1.0)
        doubt = _UNIT * ((4 * np.abs(moved) + np.abs(offset)) / width + 3 * share)
        shares.append((share, doubt * ((raw > -2 * doubt) & (raw < 1 + 2 * doubt))))
    return left, shares


def _blend(
    values: NDArray[np.float64],
    places: Sequence[tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]],
    corner: tuple[NDArray[np.int64], ...],
) -> tuple[NDArray[np.float64], NDArray[np.float64] | float]:
    """`Raster.blend` of fractions that may be off by so much, and how far the value may be off for it."""
    if not places:
        return values[corner], 0.0
    *others, (node, share, doubt) = places
    beside = np.minimum(node + 1, values.shape[len(others)] - 1)
    low, below = _blend(values, others, (node, *corner))
    high, above = _blend(values, others, (beside, *corner))
    off = (1 - share + doubt) * below + (share + doubt) * above + doubt * np.abs(high - low)
    return (1 - share) * low + share * high, off


def _crossings(nodes: NDArray[np.float64], start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float64]:
    """Parameters t in [0, 1] where each segment crosses a node line, padded with 1; shape (e, most crossings)."""
    low, high = np.minimum(start, end), np.maximum(start, end)
    first = np.searchsorted(nodes, low, side="right")
    count = np.searchsorted(nodes, high, side="left") - first
    steps = np.arange(max(int(count.max(initial=0)), 0))
    at = nodes[np.minimum(first[:, None] + steps, len(nodes) - 1)]
    span = (end - start)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (at - start[:, None]) / span
    return np.clip(np.where(steps < count[:, None], t, 1.0), 0.0, 1.0)

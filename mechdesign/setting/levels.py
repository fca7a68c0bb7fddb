"""PrivacyLevel: eps(u) in nats per unit of length, and its exact line integral.

    length of the segment from p to q  =  |q - p| * integral_0^1 eps(p + t (q - p)) dt        (nats)

Source: paper 000, section II-B (Definition 3) and section IV (the affine map); 003, equation (6.18).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.errors import InputError
from mechdesign.setting.domain import Domain
from mechdesign.setting.rasters import Raster, coordinates

# Computed integrals are multiplied by this before they are used as edge lengths: the sums below have positive
# terms and, unless eps varies widely, relative rounding error under 2^-48, so the product never exceeds the integral.
ROUND_DOWN = 1.0 - 2.0**-44
_CHUNK = 1 << 16


@dataclass(frozen=True, kw_only=True, eq=False)
class PrivacyLevel:
    """eps(u): smaller means more private. Make one with `constant`, `affine` or `from_values`.

    Invariant: positive and finite at every node of `raster`, hence everywhere.
    """

    raster: Raster

    def __post_init__(self) -> None:
        low = float(np.min(self.raster.values))
        if not low > 0:
            zero = " (eps = 0 admits constant mechanisms only)" if low == 0 else ""
            raise InputError(
                f"privacy level must be positive{zero}", field="epsilon", value=low, remedy="raise the floor above zero"
            )

    @classmethod
    def constant(cls, epsilon: float, unit: str = "1") -> PrivacyLevel:
        """eps(u) = epsilon, in nats per `unit`."""
        value = check_epsilon(epsilon)
        return cls(raster=_level_raster([np.zeros(1)] * 3, np.full((1, 1), value), unit))

    @classmethod
    def affine(cls, density: Raster, *, slope: float, floor: float) -> PrivacyLevel:
        """eps(u) = slope * density(u) + floor: looser where more people are (paper 000, section IV).

        slope in nats per unit of length per unit of density; floor > 0 in nats per unit of length.
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
        return cls(raster=_level_raster([density.x, density.y, density.z], values, density.unit))

    @classmethod
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

        Between the node lines or planes that a segment crosses, eps is linear along each axis, hence along the segment
        a quadratic on maps of two axes and a cubic on maps of three. Simpson's rule is exact for cubics, so it is exact
        on each piece; a fixed rule over the whole segment is not (1 % off across kinks). The relative defect of the
        result against the true integral lies in [0, 2^-43] while eps varies by less than 128 times over the map;
        beyond that the upper end grows in proportion.
        Cost: O(e (c + 1)) for c crossings per segment. Elementwise IEEE arithmetic only: the bits repeat.
        """
        blocks = [
            self._integrals(start[lo : lo + _CHUNK], end[lo : lo + _CHUNK]) for lo in range(0, len(start), _CHUNK)
        ]
        return np.concatenate(blocks) if blocks else np.zeros(0)

    @property
    def _round_down(self) -> float:
        """A position is off by 2^-52 of a raster cell, which shifts eps by that share of its range."""
        return 1.0 - (1.0 - ROUND_DOWN) * max(1.0, self.largest / self.smallest / 128)

    def _integrals(self, start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float64]:
        axes, count = self.raster.axes, len(start)
        p, q = coordinates(start), coordinates(end)
        crossings = [_crossings(nodes, a, b) for nodes, a, b in zip(axes, p, q, strict=False)]
        cuts = np.concatenate([np.zeros((count, 1)), *crossings, np.ones((count, 1))], axis=1)
        cuts.sort(axis=1)

        step = [b - a for a, b in zip(p, q, strict=True)]
        total = np.zeros(count)
        for a, b in zip(cuts[:, :-1].T, cuts[:, 1:].T, strict=True):
            times = (a, 0.5 * (a + b), b)
            places = [_fractions(nodes, at, move, times) for nodes, at, move in zip(axes, p, step, strict=False)]
            low, middle, high = (self.raster.blend([(node, share[k]) for node, share in places]) for k in range(3))
            total += (b - a) * (low + 4.0 * middle + high)
        square = step[0] ** 2 + step[1] ** 2 + step[2] ** 2
        return total / 6.0 * np.sqrt(square) * self._round_down


def check_epsilon(epsilon: float, field: str = "epsilon") -> float:
    """A positive finite privacy level, or an InputError that says which of the two it is not."""
    value = float(epsilon)
    if not (np.isfinite(value) and value > 0):
        zero = "; eps = 0 admits constant mechanisms only" if value == 0 else ""
        raise InputError(
            f"must be positive and finite{zero}",
            field=field,
            value=value,
            remedy="give a positive number of nats per unit",
        )
    return value


def _level_raster(axes: Sequence[NDArray[np.float64]], values: NDArray[np.float64], unit: str) -> Raster:
    x, y, z = axes
    return Raster(x=x, y=y, z=z, values=values, unit=unit, value_unit=f"nats per {unit}", name="eps")


def _fractions(
    nodes: NDArray[np.float64],
    start: NDArray[np.float64],
    step: NDArray[np.float64],
    times: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
) -> tuple[NDArray[np.int64], list[NDArray[np.float64]]]:
    """The left node of the cell that holds start + times[1] * step, and per time the fraction of the way to the next.

    Measured from the start of each segment: positions far from the origin (projected metres) lose no digits.
    """
    if len(nodes) == 1:
        return np.zeros(start.shape, np.int64), [np.zeros(start.shape)] * len(times)
    left = np.clip(np.searchsorted(nodes, start + times[1] * step, side="right") - 1, 0, len(nodes) - 2)
    offset, width = nodes[left] - start, nodes[left + 1] - nodes[left]
    return left, [np.clip((t * step - offset) / width, 0.0, 1.0) for t in times]


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

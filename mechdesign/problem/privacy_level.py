"""Privacy levels: eps(u) in nats per unit of length, on rasters (Koufogiannis & Pappas 2016, Definition 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Floats, Points, Vector
from mechdesign.base.json_fields import SMALLEST, check_keys, finites, word
from mechdesign.base.records import FrozenRecord
from mechdesign.base.units import length_per_nat, unit_ratio, unit_word
from mechdesign.base.validation import check_epsilon, refuse_entries, validate_call
from mechdesign.errors import InputError, UnitError
from mechdesign.problem.domain import AXES, Domain
from mechdesign.problem.line_integrals import LARGEST_DEFECT, UNIT_ROUNDOFF, line_integrals
from mechdesign.problem.raster import Raster

WIDEST = 2.0**50  # largest level / smallest


@dataclass(frozen=True, kw_only=True, eq=False)
class PrivacyLevel(FrozenRecord):
    """A privacy level eps(u) over space, smaller for more privacy; make one with `constant`, `affine` or `from_values`.

    Invariants: from 2^-960 on and finite at every node, hence everywhere; largest <= 2^50 smallest. Source:
    Koufogiannis & Pappas 2016, Definition 3.

    Attributes
    ----------
    raster, extend : Raster, bool
        eps at the nodes in nats per unit of length, linear between them; a `value_unit` such as "1/km" is converted.
        With extend eps is constant beyond the raster; else a problem with places there is refused.

    Examples
    --------
    >>> level = md.PrivacyLevel.constant(0.5, "km")
    >>> level.smallest, level.largest
    (0.5, 0.5)
    """

    raster: Raster
    extend: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "raster", _in_nats(self.raster))
        values = self.raster.values
        low = float(np.min(values))
        _require_positive(values)
        if not self.largest / WIDEST <= low:
            ends = f"{low} to {self.largest}"
            raise InputError("privacy level ranges over more than 2^50; raise the floor", field="epsilon", value=ends)

    def repr_fields(self) -> Mapping[str, object]:
        unit = unit_word(self.raster.unit)
        return {"eps": f"{self.smallest:.6g} to {self.largest:.6g} nats per {unit}", "map": self.raster}

    @classmethod
    @validate_call
    def constant(cls, epsilon: float, unit: str = "1") -> PrivacyLevel:
        """The level eps(u) = epsilon everywhere, in nats per `unit`.

        Examples
        --------
        >>> md.PrivacyLevel.constant(0.5, "km").largest
        0.5
        """
        value = check_epsilon(epsilon)
        return cls(raster=level_raster([np.zeros(1)] * 3, np.full((1, 1), value), unit))

    @classmethod
    @validate_call
    def affine(cls, density: Raster, *, slope: float, floor: float, extend: bool = False) -> PrivacyLevel:
        """The level eps(u) = slope * density(u) + floor, in nats per unit of length: looser where more people are.

        Examples
        --------
        >>> density = md.Raster(x=[0.0, 1.0], y=[0.0], values=[[0.0], [10.0]])
        >>> md.PrivacyLevel.affine(density, slope=0.1, floor=0.5).largest
        1.5
        """
        check_epsilon(floor, "floor")
        if not np.isfinite(slope):
            raise InputError("must be finite", field="slope", value=slope)
        values = slope * density.values + floor
        if not (values > 0).all():
            shown = f"slope {slope}, floor {floor}: smallest eps {values.min():.6g}"
            raise InputError("slope * density + floor must be positive everywhere", field="slope", value=shown)
        return cls(raster=level_raster([density.x, density.y, density.z], values, density.unit), extend=extend)

    @classmethod
    @validate_call
    def from_values(cls, domain: Domain, values: ArrayLike) -> PrivacyLevel:
        """The level with `values` of the shape of an unmasked grid, in nats per unit, linear between centres.

        Examples
        --------
        >>> domain = md.Domain.grid((2, 1), 1.0)
        >>> md.PrivacyLevel.from_values(domain, [[0.5], [1.5]]).smallest
        0.5
        """
        array = np.asarray(values, np.float64)
        if domain.shape is None or array.shape != domain.shape:
            shape = f"{domain.shape}, masked cells included (any positive value there)"
            raise InputError(f"must have the shape of the grid, {shape}", field="epsilon", value=array.shape)
        refuse_entries(~np.isfinite(array), array, "must be finite in every cell", field="epsilon")
        _require_positive(array)
        assert domain.cell is not None and domain.origin is not None
        axes: list[Vector] = [
            np.asarray(o + (np.arange(k) + 0.5) * h, np.float64)
            for o, k, h in zip(domain.origin, domain.shape, domain.cell, strict=True)
        ]
        axes += [np.zeros(1)] * (3 - len(axes))
        return cls(raster=level_raster(axes, array[:, None] if array.ndim == 1 else array, domain.unit))

    def describe(self) -> dict[str, Any]:
        axes = {name: nodes.tolist() for name, nodes in zip(AXES, self.raster.axes, strict=False)}
        return {**axes, "eps": self.raster.values.tolist(), "unit": self.raster.unit}

    @classmethod
    def from_description(cls, description: object, field: str = "level") -> PrivacyLevel:
        fields = check_keys(description, field, ("x", "y", "eps", "unit"), ("z",))
        values, unit = finites(fields["eps"], "eps", 2 + ("z" in fields)), word(fields["unit"], "unit")
        x, y, z = (finites(fields.get(name, [0.0]), name) for name in AXES)
        return cls(raster=Raster(x=x, y=y, z=z, values=values, unit=unit, name="level"), extend=True)

    def in_unit(self, unit: str) -> PrivacyLevel:
        """The level on nodes in another unit, in nats per that unit: nowhere above this one.

        Examples
        --------
        >>> round(md.PrivacyLevel.constant(2.0, "km").in_unit("m").largest, 6)
        0.002
        """
        converted = self.raster.in_unit(unit)
        if converted is self.raster:
            return self
        # Nodes move by u M, M the largest coordinate: in a cell of width g eps moves by at most 4 u M / g max eps.
        coordinates_per_gap = sum(
            np.abs(nodes).max() / np.diff(nodes).min() for nodes in converted.axes if len(nodes) > 1
        )
        relative_error = 16 * UNIT_ROUNDOFF * (1 + coordinates_per_gap) * self.largest / self.smallest
        if not relative_error <= LARGEST_DEFECT:
            levels = f"levels {self.smallest:.6g} to {self.largest:.6g}"
            accuracy = f"{LARGEST_DEFECT:g} in doubles; state the map in {unit}"
            raise InputError(f"cannot be converted to {accuracy}", field="epsilon", value=levels)
        ratio = float(unit_ratio(unit, self.raster.unit))
        values = converted.values * (ratio * (1 - relative_error))
        return replace(self, raster=level_raster([converted.x, converted.y, converted.z], values, converted.unit))

    def at(self, points: Points) -> Vector:
        """The level at points (k, n), in nats per unit.

        Examples
        --------
        >>> md.PrivacyLevel.constant(0.5).at(np.zeros((2, 2))).tolist()
        [0.5, 0.5]
        """
        return self.raster.at(points)

    @property
    def smallest(self) -> float:
        return float(self.raster.values.min())

    @property
    def largest(self) -> float:
        return float(self.raster.values.max())

    def line_integrals(self, start: Points, end: Points) -> Vector:
        """Integrals of the level along straight lines between points (k, n), in nats.

        Examples
        --------
        >>> md.PrivacyLevel.constant(0.5).line_integrals(np.zeros((1, 2)), np.ones((1, 2))).round(6).tolist()
        [0.707107]
        """
        return line_integrals(self.raster, start, end)


def _require_positive(levels: Vector) -> None:
    message = "privacy level must be positive, and at least 2^-960 (eps = 0 admits constant mechanisms only)"
    refuse_entries(~(levels >= SMALLEST), levels, message, field="epsilon")


def _in_nats(raster: Raster) -> Raster:
    # Amounts are for priors: a level depends on the values alone.
    if raster.amounts is not None:
        raster = replace(raster, amounts=None, counts=False)
    declared = raster.value_unit.strip()
    if declared in ("", "1", f"nats per {raster.unit}"):
        return raster
    length = length_per_nat(declared)
    if length is None:
        raise UnitError(
            "the values of a privacy level must be nats per unit of length",
            field=raster.name,
            value=declared,
            remedy=f"convert them and declare a unit such as 1/km or nats per {raster.unit}",
        )
    ratio = float(unit_ratio(raster.unit, length, raster.name))
    return level_raster([raster.x, raster.y, raster.z], raster.values * ratio, raster.unit)


def level_raster(axes: Sequence[Vector], values: Floats, unit: str) -> Raster:
    """Levels at the nodes of a raster, in nats per unit."""
    x, y, z = axes
    return Raster(x=x, y=y, z=z, values=values, unit=unit, value_unit=f"nats per {unit}", name="eps")

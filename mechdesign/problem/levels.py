r"""Privacy levels, eps(u) in nats per unit of length, on rasters, and their exact line integrals.

A raster has values at the nodes of a rectangular lattice, read as a multilinear function of the place.

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
Source: Koufogiannis & Pappas 2016, section II-B (Definition 3) and section IV (the affine map); Koufogiannis 2017,
equation (6.18). The bound is ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.numbers import LARGEST, SMALLEST, finites, named, word
from mechdesign.base.records import ReprMixin
from mechdesign.base.units import canonical_unit, length_per_nat, unit_ratio, unit_word
from mechdesign.base.validation import check_epsilon, refuse_entries, validated
from mechdesign.errors import InputError, UnitError
from mechdesign.problem.domain import AXES, Domain

# Lengths are multiplied by this, or by less where the sums below need it. Euclidean ones are right to a relative 6 u,
# u = 2^-53, and a product of such a length with a rounded factor to 3 u more, so that the product never exceeds them.
ROUND_DOWN = 1.0 - 2.0**-44
LARGEST_DEFECT = 1e-6
WIDEST = 2.0**50  # largest level / smallest
_UNIT = 2.0**-53
_CHUNK = 1 << 16  # segments that are integrated at a time
_REACH = 0.5 + 1e-9  # steps beyond the outermost node that its value still covers
_NODATA = "has nodes without a value; fill them, or crop the raster to where it has data"
Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Raster(ReprMixin):
    """A function f(x, y) or f(x, y, z) of space: linear along each axis between nodes, constant beyond them.

    Parameters
    ----------
    x, y, z : (kx,), (ky,), (kz,) arrays
        Coordinates of the nodes, ascending, in `unit`. A single node on an axis means: constant along that axis; so
        is z where it is left out.
    values : (kx, ky) or (kx, ky, kz) array
        Values at the nodes, finite, in `value_unit`.
    unit, value_unit : str
        Units of the coordinates and of the values; "1" by default.
    name : str
        What it is called in files and messages.
    amounts : array of the shape of values
        How much the pixel about each node holds, for a prior. Without: its value times its size.
    counts : bool
        True if the amounts are numbers of people or things, False if they are densities times sizes.

    Notes
    -----
    Invariants: coordinates within 2^500 with gaps of at least 2^-960, matching shapes.

    Examples
    --------
    >>> raster = md.Raster(x=[0.0, 1.0], y=[0.0, 1.0], values=[[0.0, 1.0], [2.0, 3.0]], unit="km")
    >>> raster.at(np.array([[0.5, 0.5]]))
    array([1.5])
    """

    x: Array
    y: Array
    z: Array = field(default_factory=lambda: np.zeros(1))
    values: Array
    unit: str = "1"
    value_unit: str = "1"
    name: str = "raster"
    amounts: Array | None = None
    counts: bool = False

    def __post_init__(self) -> None:
        canonical_unit(self.unit, f"{self.name}.unit")
        for name in ("x", "y", "z", "values"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), float))
        if any(axis.ndim != 1 for axis in (self.x, self.y, self.z)):
            raise InputError("nodes must be rows of ascending numbers", field=self.name, value="x, y or z")
        shape = (len(self.x), len(self.y), len(self.z))
        fitting = [shape[:2], shape] if len(self.z) == 1 else [shape]
        if self.values.shape not in fitting or self.values.size == 0:
            turned = self.values.shape == (len(self.y), len(self.x))
            remedy = (
                "transpose them, x comes first; md.read.raster takes arrays of xarray and finds out" if turned else None
            )
            message = f"values must have shape {fitting[0]}"
            raise InputError(message, field=self.name, value=self.values.shape, remedy=remedy)
        for axis in (self.x, self.y, self.z):
            if not (np.abs(axis) <= LARGEST).all() or not (np.diff(axis) >= SMALLEST).all():
                message = "nodes must ascend, within 1e150 of zero and at least 1e-289 apart"
                raise InputError(message, field=self.name, value=f"least gap {np.diff(axis).min(initial=np.inf):.3g}")
        missing = int((~np.isfinite(self.values)).sum())
        if missing:
            raise InputError(_NODATA, field=self.name, value=f"{missing} NODATA or non-finite node(s)")
        if self.amounts is not None:
            object.__setattr__(self, "amounts", np.asarray(self.amounts, float))
            if self.amounts.shape != self.values.shape or not np.isfinite(self.amounts).all():
                message = "amounts must be finite and have the shape of values"
                raise InputError(message, field=self.name, value=self.amounts.shape)

    def facts(self) -> Mapping[str, object]:
        nodes = " x ".join(str(len(axis)) for axis in self.axes)
        least, most = (f"{value:.6g}" for value in (self.values.min(), self.values.max()))
        return {"nodes": f"{nodes} nodes in {self.unit}, {self.name} {least} to {most} {self.value_unit}"}

    @property
    def axes(self) -> tuple[Array, ...]:
        """The nodes along each axis of `values`: x and y, or x, y and z."""
        return (self.x, self.y, self.z)[: self.values.ndim]

    def outside(self, points: Array) -> NDArray[np.bool_]:
        """Whether points (n, 1..3) lie further beyond the outermost nodes than half the way to the next ones."""
        outside = np.zeros(len(points), bool)
        for nodes, at in zip(self.axes, coordinates(points), strict=False):
            if len(nodes) > 1:
                low, high = nodes[0] - _REACH * (nodes[1] - nodes[0]), nodes[-1] + _REACH * (nodes[-1] - nodes[-2])
                outside |= (at < low) | (at > high)
        return outside

    def require_cover(self, points: Array) -> None:
        """Refuse points (n, 1..3) of which some lie `outside`. Raises: InputError that counts them."""
        outside = self.outside(points)
        if outside.any():
            axes = [(name, nodes) for name, nodes in zip(AXES, self.axes, strict=False) if len(nodes) > 1]
            ends = " and ".join(f"{name} {nodes[0]:.6g} to {nodes[-1]:.6g}" for name, nodes in axes)
            raise InputError(
                f"{outside.sum()} of {len(points)} places lie outside the raster ({ends} {self.unit})",
                field=self.name,
                value=", ".join(f"{x:.6g}" for x in points[outside.argmax()]),
                remedy="use a raster of the whole area, or `extend` in Python to go on with its border values",
            )

    def in_unit(self, unit: str) -> Raster:
        """The raster with its nodes in another unit of length. Raises: UnitError where one of the two is none."""
        ratio = float(unit_ratio(self.unit, unit, self.name))
        if canonical_unit(self.unit) == canonical_unit(unit):
            return self
        return replace(self, x=self.x * ratio, y=self.y * ratio, z=self.z * ratio, unit=canonical_unit(unit))

    def at(self, points: Array) -> Array:
        """Values at points (n, 1..3); a missing coordinate is 0. Only +, -, * and / are used: the bits repeat."""
        places = [_locate(nodes, at) for nodes, at in zip(self.axes, coordinates(points), strict=False)]
        return _blend(self.values, [(node, share, 0.0) for node, share in places], ())[0]

    def nearest(self, points: Array) -> Array:
        """Values (n,) at the nodes nearest to points (n, 1..3), the lower node half-way; a missing coordinate is 0."""
        places = [_locate(nodes, at) for nodes, at in zip(self.axes, coordinates(points), strict=False)]
        return self.values[tuple(node + (share > 0.5) for node, share in places)]

    def stretched(self, *sizes: float, unit: str = "1") -> Raster:
        """The raster re-parametrised so that its cells fill [0, width] x [0, height], one size per axis of `values`.

        Node (c, r) moves to ((c + 1/2) width / kx, (r + 1/2) height / ky), the convention of Koufogiannis & Pappas 2016
        (section IV).
        """
        if len(sizes) != self.values.ndim:
            raise InputError("one size per axis", field=self.name, value=sizes)
        moved = [(np.arange(k) + 0.5) * (size / k) for k, size in zip(self.values.shape, sizes, strict=True)]
        return replace(self, x=moved[0], y=moved[1], z=moved[2] if len(moved) > 2 else self.z, unit=unit)

    def fingerprint(self) -> str:
        """Twelve hexadecimal digits of the SHA-256 of nodes and values."""
        digest = hashlib.sha256()
        for part in (*self.axes, self.values):
            digest.update(np.ascontiguousarray(part, "<f8").tobytes())
        return digest.hexdigest()[:12]


def _require_positive(levels: Array) -> None:
    message = "privacy level must be positive, and at least 2^-960 (eps = 0 admits constant mechanisms only)"
    refuse_entries(~(levels >= SMALLEST), levels, message, field="epsilon")


def coordinates(points: Array) -> list[Array]:
    """The coordinates (n,) along x, y and z of points (n, 1..3), 0 where they have none."""
    return [*points.T, *np.zeros((3 - points.shape[1], len(points)))]


def _blend(
    values: Array,
    places: Sequence[tuple[NDArray[np.int64], Array, Array | float]],
    corner: tuple[NDArray[np.int64], ...],
) -> tuple[Array, Array | float]:
    """Values at fractions of the way from nodes to the next ones, and how far they may be off for fractions that are.

    places, per axis: the nodes, the fractions, and how far these may be off. One axis after the other: along x first.
    """
    if not places:
        return values[corner], 0.0
    *others, (node, share, doubt) = places
    beside = np.minimum(node + 1, values.shape[len(others)] - 1)
    low, below = _blend(values, others, (node, *corner))
    high, above = _blend(values, others, (beside, *corner))
    off = (1 - share + doubt) * below + (share + doubt) * above + doubt * np.abs(high - low)
    return (1 - share) * low + share * high, off


def _locate(nodes: Array, at: Array) -> tuple[NDArray[np.int64], Array]:
    """Left node and fraction in [0, 1] of the way to the next, clamped to the outermost nodes."""
    if len(nodes) == 1:
        return np.zeros(at.shape, np.int64), np.zeros(at.shape)
    inside = np.clip(at, nodes[0], nodes[-1])
    left = np.clip(np.searchsorted(nodes, inside, side="right") - 1, 0, len(nodes) - 2)
    return left, (inside - nodes[left]) / (nodes[left + 1] - nodes[left])


@dataclass(frozen=True, kw_only=True, eq=False)
class PrivacyLevel(ReprMixin):
    """A privacy level eps(u) over space: smaller means more private.

    Make one with `constant`, `affine` or `from_values`.

    Attributes
    ----------
    raster : Raster
        eps at the nodes, in nats per unit of length, linear between them. Values whose `value_unit` is a level per
        another length, such as "1/km", are converted; a unit that is not a level per length is refused.
    extend : bool
        Whether eps goes on beyond the raster as at its border; else a problem with places there is refused.

    Notes
    -----
    Invariants: at least 2^-960 and finite at every node of the raster, hence everywhere; largest <= 2^50 smallest.

    References
    ----------
    Koufogiannis & Pappas 2016, Definition 3.

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

    def facts(self) -> Mapping[str, object]:
        unit = unit_word(self.raster.unit)
        return {"eps": f"{self.smallest:.6g} to {self.largest:.6g} nats per {unit}", "map": self.raster}

    @classmethod
    @validated
    def constant(cls, epsilon: float, unit: str = "1") -> PrivacyLevel:
        """The level eps(u) = epsilon everywhere.

        Parameters
        ----------
        epsilon : float
            Nats per `unit`.
        unit : str
            Unit of length.

        Returns
        -------
        PrivacyLevel
            The level.

        Examples
        --------
        >>> md.PrivacyLevel.constant(0.5, "km").at(np.array([[3.0, 4.0]]))
        array([0.5])
        """
        value = check_epsilon(epsilon)
        return cls(raster=level_raster([np.zeros(1)] * 3, np.full((1, 1), value), unit))

    @classmethod
    @validated
    def affine(cls, density: Raster, *, slope: float, floor: float, extend: bool = False) -> PrivacyLevel:
        """The level eps(u) = slope * density(u) + floor: looser where more people are.

        Parameters
        ----------
        density : Raster
            The density.
        slope : float
            Nats per unit of length per unit of density.
        floor : float
            Nats per unit of length, positive.
        extend : bool
            Whether the level goes on beyond the raster as at its border.

        Returns
        -------
        PrivacyLevel
            The level.

        References
        ----------
        Koufogiannis & Pappas 2016, section IV.

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
            least = f"slope {slope}, floor {floor}: smallest eps {values.min():.6g}"
            raise InputError("slope * density + floor must be positive everywhere", field="slope", value=least)
        return cls(raster=level_raster([density.x, density.y, density.z], values, density.unit), extend=extend)

    @classmethod
    @validated
    def from_values(cls, domain: Domain, values: ArrayLike) -> PrivacyLevel:
        """The level given at every cell of an unmasked grid; linear along each axis between centres.

        Parameters
        ----------
        domain : Domain
            The grid.
        values : array of shape `domain.shape`
            Nats per unit of length.

        Returns
        -------
        PrivacyLevel
            The level.

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
        axes: list[Array] = [
            np.asarray(o + (np.arange(k) + 0.5) * h, np.float64)
            for o, k, h in zip(domain.origin, domain.shape, domain.cell, strict=True)
        ]
        axes += [np.zeros(1)] * (3 - len(axes))
        return cls(raster=level_raster(axes, array[:, None] if array.ndim == 1 else array, domain.unit))

    def describe(self) -> dict[str, Any]:
        """What a file keeps; `from_description` reads it."""
        axes = {name: nodes.tolist() for name, nodes in zip(AXES, self.raster.axes, strict=False)}
        return {**axes, "eps": self.raster.values.tolist(), "unit": self.raster.unit}

    @classmethod
    def from_description(cls, description: object, field: str = "level") -> PrivacyLevel:
        """The level of `describe`, wherever its places lie. Raises: InputError for a description of another form."""
        fields = named(description, field, ("x", "y", "eps", "unit"), ("z",))
        values, unit = finites(fields["eps"], "eps", 2 + ("z" in fields)), word(fields["unit"], "unit")
        x, y, z = (finites(fields.get(name, [0.0]), name) for name in AXES)
        return cls(raster=Raster(x=x, y=y, z=z, values=values, unit=unit, name="level"), extend=True)

    def in_unit(self, unit: str) -> PrivacyLevel:
        """The level on nodes in another unit of length, in nats per that unit: nowhere above the level of this one.

        A converted node may lie off its place by u M, u = 2^-53 and M the largest coordinate; in a cell of width g or
        more that moves eps by no more than 4 u (M / g) of the largest eps, and products take u each.
        Raises: UnitError where one of the two units is no length; InputError where that is more than 10^-6.
        """
        converted = self.raster.in_unit(unit)
        if converted is self.raster:
            return self
        far = sum(np.abs(nodes).max() / np.diff(nodes).min() for nodes in converted.axes if len(nodes) > 1)
        moved = 16 * _UNIT * (1 + far) * self.largest / self.smallest
        if not moved <= LARGEST_DEFECT:
            levels = f"levels {self.smallest:.6g} to {self.largest:.6g}"
            accuracy = f"{LARGEST_DEFECT:g} in doubles; state the map in {unit}"
            raise InputError(f"cannot be converted to {accuracy}", field="epsilon", value=levels)
        ratio = float(unit_ratio(unit, self.raster.unit))
        values = converted.values * (ratio * (1 - moved))
        return replace(self, raster=level_raster([converted.x, converted.y, converted.z], values, converted.unit))

    def at(self, points: Array) -> Array:
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

    def line_integrals(self, start: Array, end: Array) -> Array:
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

    def _integrals(self, start: Array, end: Array) -> Array:
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
                f"the integral of eps over an edge cannot be computed to {LARGEST_DEFECT:g} in doubles",
                field="epsilon",
                value=f"levels {self.smallest:.6g} to {self.largest:.6g}, relative error up to {needed.max():.3g}",
                remedy="use a map whose nodes lie further apart, or whose levels differ by less",
            )
        usual = (1.0 - ROUND_DOWN) * max(1.0, self.largest / self.smallest / 128)
        length = total / 6.0 * np.sqrt(square) * (1.0 - np.maximum(usual, needed))
        return np.where((square >= SMALLEST) & (length >= SMALLEST), length, 0.0)

    def _misplaced(self, p: list[Array], q: list[Array], step: list[Array]) -> Array:
        """The shares (e,) of the integral that pieces in part beyond their cell add: 2. and 3. of the module docstring.

        p, q, step: coordinates (e,) by axis.
        """
        range_of_eps, most, added = self.largest / self.smallest, np.zeros(len(p[0])), np.zeros(len(p[0]))
        for nodes, a, b, move in zip(self.raster.axes, p, q, step, strict=False):
            if len(nodes) > 1:
                gap, size = np.diff(nodes).min(), np.abs(move)
                off = _UNIT * (3 * np.maximum(np.abs(a), np.abs(b)) + 10 * size)
                lasting = off / gap + 3 * off / np.where(size > 0, size, np.inf)
                added += 2 * (size > 0) * (off / gap) * np.minimum(1.0, 2 * range_of_eps * lasting)
                most = np.maximum(most, size / gap)
        return np.asarray(added + 1000 * (_UNIT * (most + 1)) ** 2 * range_of_eps)


def _in_nats(raster: Raster) -> Raster:
    """Levels in nats per unit of the axes, of a raster that says what its values are.

    Raises: UnitError for values in a unit that is not a level per length. Undeclared values are taken as nats per unit.
    """
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


def level_raster(axes: Sequence[Array], values: Array, unit: str) -> Raster:
    """Levels at the nodes of a raster, in nats per unit."""
    x, y, z = axes
    return Raster(x=x, y=y, z=z, values=values, unit=unit, value_unit=f"nats per {unit}", name="eps")


def _fractions(
    nodes: Array,
    start: Array,
    step: Array,
    times: tuple[Array, Array, Array],
) -> tuple[NDArray[np.int64], list[tuple[Array, Array]]]:
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


def _crossings(nodes: Array, start: Array, end: Array) -> Array:
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

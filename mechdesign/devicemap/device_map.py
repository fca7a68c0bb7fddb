r"""DeviceMap: the numbers of a device map, checked, and the integers that they determine.

Places are the cells of a rectangle of R x C, the last axis fastest: place p = i C + j. The n1 x n2 secrets are those
cells that are `margin` or more cells from the border, R = n1 + 2 margin, C = n2 + 2 margin. A place has

    l   level, 1 to 65,535, in `level_unit` nats per unit of length.
    s   potential, -32,768 to 32,767, in 2^-15 nats; it approximates ln S(u), up to a constant, and is 0 in the margin.
    b   weight, 0 to 255

**Edges.** Neighbours of (i, j) are (i, j) + k and (i, j) - k that lie in the rectangle, for k = (1, 0), (0, 1), (1, 1),
(1, -1) and, with 16 neighbours, (2, 1), (2, -1), (1, 2), (1, -2). The length of the edge from o to e = o + k, in
2^-48 nats, is d = A_k m, with m a sum of 24 levels, those of o and e and of cells between them:

    (1, 0), (0, 1)    12 (l(o) + l(e))
    (1, b)             8 (l(o) + l(e)) + 4 (l(i + 1, j) + l(i, j + b))
    (2, b)             5 (l(o) + l(e)) + 6 (l(i + 1, j) + l(i + 1, j + b)) + l(i, j + b) + l(i + 2, j)
    (1, 2 b)           5 (l(o) + l(e)) + 6 (l(i, j + b) + l(i + 1, j + b)) + l(i + 1, j) + l(i, j + 2 b)

    A_k = floor(2^48 level_unit |k| / 24),  |k|^2 = (k_1 h_1)^2 + (k_2 h_2)^2,  h the sides of a cell,

`length_scales` has A_k for k = (1, 0), (0, 1), (1, 1), (2, 1), (1, 2), in this order; with 8 neighbours three.
(1, -1), (2, -1) and (1, -2) have the A of their mirror images. `level_unit` and h are doubles, taken exactly.

**The claim.** P(y|u) <= exp(d(u, u')) P(y|u') for all reports y and all secrets u, u', d the shortest-path distance of
the edges between secrets. No edge of the claim has a cell of the margin between its ends.

**The kernel.** An edge has x units (`units`). q(u, p) is the least sum of units over paths from u to p, at most cap of
the header, with cap + largest x <= 65,535.
Weights are W(p) = M[b mod 16] 2^(b div 16), with M[a] = 2^(12 + a / 16) rounded to the nearest (MANTISSAS); so
2^12 <= W < 2^28. The kernel is E(0) = 2^58, E(t + 1) = ceil(E(t) 2^shift / ratio) for t < cap. Here ratio 2^-shift is
e^(step 2^-48) rounded down, 2^61 <= ratio < 2^62 (`exp_lower` of mechanism/certificate.py).

**The mechanism** is P(p|u) = E(q(u, p)) W(p) / S(u), S(u) the sum over all places p, margin included. The report of a
place (i, j) is the secret in row min(max(i - margin, 0), n1 - 1), column min(max(j - margin, 0), n2 - 1), with number
row n2 + column. The certificate is that of factored/certificate.py, and `bounds` has a bound Sbar of S.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.arrays import Booleans, Bytes, Integers
from mechdesign.base.records import FrozenRecord
from mechdesign.base.units import METRES
from mechdesign.factored.certificate import Factors
from mechdesign.factored.integer_metric import LARGEST, IntegerMetric
from mechdesign.mechanism.certificate import exp_lower
from mechdesign.mechanism.mechanism_file import COST
from mechdesign.mechanism.schema import file_error
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import Edges
from mechdesign.problem.plane import Plane
from mechdesign.problem.vocabulary import CELLS, words_for

MOST_PLACES = 1 << 24
PROMISE = "One report changes anybody's odds between two cells by a factor of at most e^d, d as claimed."
_STEP_LIMIT = 1 << 54
_LENGTH_SCALE_LIMIT = 1 << 32
_NATS = 2.0**-48
MANTISSAS = (4096, 4277, 4467, 4664, 4871, 5087, 5312, 5547, 5793, 6049, 6317, 6597, 6889, 7194, 7512, 7845)
RISE = 1_082_163_286  # ceil(2^30 e^(1/128))
# Largest Sbar / S. A round of a draw ends with probability S / 2^n >= S / (2 Sbar): at most 8 rounds in the mean.
# Without this limit a map with Sbar = 2^31 S would be certified, and would hardly ever report.
MAX_BOUND_RATIO = 4
POTENTIAL_BITS = 15  # potentials are whole multiples of 2^-15 nats
LARGEST_LEVEL = 65_535
STENCILS = {8: 3, 16: 5}  # kinds of steps by number of neighbours
STEPS = ((1, 0), (0, 1), (1, 1), (1, -1), (2, 1), (2, -1), (1, 2), (1, -2))
_KINDS = ((1, 0), (0, 1), (1, 1), (2, 1), (1, 2))
_SLACK = np.int64(1 << 29)  # in 2^-48 nats: 2^-19 nats, twice the unit to which the certificate rounds ln R_e down
_POTENTIAL = np.int64(1 << 48 - POTENTIAL_BITS)
Along = tuple[Integers, Integers, Integers]
WEIGHTS = np.array([MANTISSAS[b % 16] << b // 16 for b in range(256)], np.uint32)


def _level_sums(level: Integers, a: int, b: int, here: slice) -> Integers:
    # m of "Edges", of the step (a, b) from the columns `here`; at most 24 * 65,535 < 2^20.6.
    # Statement. d is at most 2^48 times the line integral of eps along the segment from centre to centre. Here eps is
    # level_unit l at the centres and bilinear between them. d is below the integral by less than m < 2^21.
    # Proof. Along (1, 0) eps is linear. Along (1, b) it is
    #     (1 - t)^2 l(o) + t (1 - t) (l(i + 1, j) + l(i, j + b)) + t^2 l(e),
    # whose integral is 1/3, 1/6, 1/6, 1/3 of the four. Along (2, b) the first half of the segment lies in the square of
    # (i, j), (i + 1, j), (i, j + b), (i + 1, j + b). The weights of these four integrate to 5/12, 1/3, 1/12, 1/6 along
    # it, and the second half is its mirror image. A_k is rounded down.
    rows = max(0, len(level) - a)

    def cells_at(i: int, j: int) -> Integers:
        return level[i : i + rows, here.start + j : here.stop + j]

    ends, side = cells_at(0, 0) + cells_at(a, b), 1 if b > 0 else -1
    if a == 0 or b == 0:
        return 12 * ends
    if a == abs(b):
        return 8 * ends + 4 * (cells_at(1, 0) + cells_at(0, b))
    if a == 2:
        return 5 * ends + 6 * (cells_at(1, 0) + cells_at(1, b)) + cells_at(0, b) + cells_at(2, 0)
    return 5 * ends + 6 * (cells_at(0, side) + cells_at(1, side)) + cells_at(1, 0) + cells_at(0, b)


def bounds(bound: tuple[int, ...], potential: NDArray[np.int16]) -> list[int]:
    """Sbar (n,) of potentials (n,)."""
    # With `bound` = (g, k), 2^30 <= g < 2^31, 0 <= k <= 64, G(0) = g, G(a + 1) = ceil(G(a) RISE / 2^30),
    #     Sbar(u) = G(t div 256) (2^22 + 129 (t mod 256)) 2^k,      t = s(u) + 32,768.
    # It is certified that S(u) <= Sbar(u) <= 4 S(u) for every secret.
    # Sbar follows exp(s 2^-15) to within a relative 2^-15: G in steps of 1/128 nat, and a line inside a step.
    table = [bound[0]]
    while len(table) < 256:
        table.append(-(-table[-1] * RISE >> 30))
    coarse = np.array(table, np.uint64)
    # Products in 64 bits: G(255) < 2^31 e^2 < 2^34, and the linear part is below 2^23. The shift by k <= 64 needs up to
    # 121 bits, so it is left to Python's integers.
    shifted = (potential.astype(np.int64) + (1 << 15)).astype(np.uint64)
    fine = np.uint64(1 << 22) + np.uint64(129) * (shifted & np.uint64(255))
    return [int(value) << bound[1] for value in (coarse[shifted >> np.uint64(8)] * fine).tolist()]


@dataclass(frozen=True, kw_only=True, eq=False)
class DeviceMap(FrozenRecord):
    """The numbers of a device map: five bytes a cell, from which lengths, weights and every row follow.

    Attributes
    ----------
    cells, margin : (n1, n2) and int
        The secrets along either axis; the cells around them.
    cell, origin, unit, plane
        Sides of a cell and low corner in a unit of length; where on Earth.
    stencil, level_unit : {8, 16} and float
        Neighbours; nats per unit of length of one level.
    level, potential, weight : (R, C) int arrays
        Privacy level, log row sum and weight of every cell.
    grain, step, cap, bound : int, and (g, k)
        In 2^-48 nats; steps beyond which distances are equal; of the row sums.
    source_sha256, problem, program : str
        Checksum of the design; the names of its problem and program.

    Examples
    --------
    >>> import tempfile
    >>> problem = md.load_problem("philadelphia", cells=20)
    >>> factored = md.solve(md.EikonalWeights(problem), method="factored")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     device_map = md.devicemap.load_device_map(md.export(factored, folder + "/map.compact"))
    >>> device_map.cells
    (20, 20)
    """

    cells: tuple[int, ...]
    margin: int
    cell: tuple[float, ...]
    origin: tuple[float, ...]
    unit: str
    plane: Plane | None
    stencil: int
    level_unit: float
    level: NDArray[np.uint16]
    potential: NDArray[np.int16]
    weight: Bytes
    grain: int
    step: int
    cap: int
    bound: tuple[int, ...]
    source_sha256: str
    problem: str
    program: str

    def __post_init__(self) -> None:
        mantissa, doublings = self.bound
        _check_range("cells", min(self.cells), 2, MOST_PLACES)
        _check_range("margin", self.margin, 0, MOST_PLACES)
        _check_range("cells", math.prod(self.shape), 4, MOST_PLACES)
        _check_range("grain", self.grain, 1, _STEP_LIMIT - 1)
        _check_range("step", self.step, 1, _STEP_LIMIT - 1)
        _check_range("cap", self.cap, 1, LARGEST - 1)
        _check_range("bound", mantissa, 1 << 30, (1 << 31) - 1)
        _check_range("bound", doublings, 0, 64)
        if words_for("grid", self.unit, 2) is not CELLS:
            raise file_error(
                "is not a unit of length", "unit", self.unit, "a unit of length: device maps are of places"
            )
        if self.stencil not in STENCILS:
            raise file_error("must be 8 or 16", "stencil", self.stencil, "8 or 16 neighbours")
        for name, dtype in (("level", np.uint16), ("potential", np.int16), ("weight", np.uint8)):
            array = getattr(self, name)
            if array.dtype != dtype or array.shape != self.shape:
                shown = f"{array.dtype} {array.shape}"
                raise file_error("has another type or shape", name, shown, f"{dtype} {self.shape}")
        if self.level.min() < 1:
            raise file_error("must be positive", "level", 0, f"levels from 1 to {LARGEST_LEVEL}")
        if np.any(self.potential[~self.inside]):
            raise file_error("must be 0 in the margin", "potential", "another number", "potentials of secrets alone")
        if not (0 < self.level_unit < math.inf and all(0 < side < math.inf for side in self.cell)):
            raise file_error("must be positive and finite", "level_unit", self.level_unit, "levels and sides of cells")
        for value in self.length_scales:
            _check_range("length_scales", value, 1, _LENGTH_SCALE_LIMIT - 1)

    @property
    def shape(self) -> tuple[int, int]:
        return self.cells[0] + 2 * self.margin, self.cells[1] + 2 * self.margin

    @property
    def secrets(self) -> int:
        return math.prod(self.cells)

    @cached_property
    def inside(self) -> Booleans:
        return np.pad(np.ones(self.cells, bool), self.margin)

    @cached_property
    def inner(self) -> Integers:
        return np.flatnonzero(self.inside)

    @cached_property
    def length_scales(self) -> tuple[int, ...]:
        """A_k of the kinds of steps, exact: three with 8 neighbours, five with 16."""
        quantum = Fraction(self.level_unit) * (1 << 48) / 24
        first, second = (Fraction(side) for side in self.cell)
        squares = (quantum**2 * ((a * first) ** 2 + (b * second) ** 2) for a, b in _KINDS[: STENCILS[self.stencil]])
        # floor(sqrt(x)) = isqrt(floor(x)), of fractions: every reader gets the same integer.
        return tuple(math.isqrt(math.floor(square)) for square in squares)

    @cached_property
    def domain(self) -> Domain:
        return Domain.grid(self.cells, cell=self.cell, unit=self.unit, origin=self.origin, plane=self.plane)

    @cached_property
    def target(self) -> Integers:
        return np.pad(np.arange(self.secrets).reshape(self.cells), self.margin, mode="edge").ravel()

    def edges_by_step(self) -> Iterator[Along]:
        """The places o (m,) and e (m,) and lengths d (m,) of edges, along every step of the stencil in turn."""
        rows, columns = self.shape
        number = np.arange(rows * columns).reshape(rows, columns)
        for a, b in STEPS[: self.stencil // 2]:
            here = slice(max(0, -b), max(0, -b, columns - max(0, b)))
            total = _level_sums(self.level.astype(np.int64), a, b, here)
            origin = number[: max(0, rows - a), here].ravel()
            yield origin, origin + (a * columns + b), (self.length_scales[_KINDS.index((a, abs(b)))] * total).ravel()

    @property
    def longest(self) -> int:
        return max(int(length.max(initial=0)) for _, _, length in self.edges_by_step())

    def units(self, edges: Along) -> NDArray[np.uint16]:
        # The header has `grain` and `step`, both in 2^-48 nats, and `cap`. An edge has max(1, min(cap, floor(c /
        # grain))) units. Here
        #     c = d                                                        where an end lies in the margin
        #     c = max(d - 2^29 - 2^33 |s(o) - s(e)|, floor(3 d / 10))      between secrets
        (origin, end, length), inside, potential = edges, self.inside.ravel(), self.potential.ravel()
        apart = np.abs(potential[origin].astype(np.int64) - potential[end])
        # d < 2^53, as A_k < 2^32 and m < 2^20.6, is exact in readers with doubles; 3 d is not. Hence floor(3 d / 10)
        # from quotient and remainder.
        shortest = 3 * (length // 10) + 3 * (length % 10) // 10
        between = np.maximum(length - _SLACK - _POTENTIAL * apart, shortest)
        nats = np.where(inside[origin] & inside[end], between, length)
        return np.clip(nats // self.grain, 1, self.cap).astype(np.uint16)

    @cached_property
    def edges(self) -> Edges:
        # The claim: edges between secrets alone. Lengths in nats are exact as doubles, since d < 2^53.
        secret = np.full(math.prod(self.shape), -1, np.int64)
        secret[self.inner] = np.arange(self.secrets)
        parts = []
        for origin, end, length in self.edges_by_step():
            between = (secret[origin] >= 0) & (secret[end] >= 0)
            parts.append((secret[origin[between]], secret[end[between]], length[between] * _NATS))
        tail, head, nats = (np.concatenate(each) for each in zip(*parts, strict=True))
        return Edges(tail=tail, head=head, length=nats)

    @cached_property
    def factors(self) -> Factors:
        parts = [(origin, end, self.units((origin, end, length))) for origin, end, length in self.edges_by_step()]
        tail, head, units = (np.concatenate(each) for each in zip(*parts, strict=True))
        points = np.stack(np.unravel_index(np.arange(math.prod(self.shape)), self.shape), axis=1).astype(float)
        metric = IntegerMetric(points=points, tail=tail, head=head, units=units, cap=self.cap)
        return Factors(metric=metric, step=self.step, weight=WEIGHTS[self.weight.ravel()], inner=self.inner)

    def bound_violations(self, row_sums: list[int]) -> tuple[int, int]:
        """Number of secrets with S(u) > Sbar(u), and with Sbar(u) > 4 S(u), for the row sums S(u) of all n secrets."""
        pairs = list(zip(row_sums, bounds(self.bound, self.potential.ravel()[self.inner]), strict=True))
        return sum(s > b for s, b in pairs), sum(b > MAX_BOUND_RATIO * s for s, b in pairs)

    @cached_property
    def claim_digest(self) -> str:
        """64 hexadecimal digits that name the claim: costs of maps add up if they agree."""
        claim = {name: getattr(self, name) for name in ("cell", "cells", "level_unit", "origin", "stencil", "unit")}
        digest = hashlib.sha256(json.dumps({**claim, "plane": self.plane_header()}, sort_keys=True).encode())
        digest.update(np.ascontiguousarray(self.level.ravel()[self.inner], "<u2").tobytes())
        return digest.hexdigest()

    def plane_header(self) -> dict[str, Any] | None:
        """The plane as in the header, keys sorted: readers hash its text, as `claim_digest` does."""
        if self.plane is None:
            return None
        decimals = max(0, self.plane.decimals(self.domain.spacing))
        centre = {"latitude": self.plane.latitude, "longitude": self.plane.longitude}
        return {"decimals": decimals, **centre, "metres": METRES[self.unit]}

    @cached_property
    def claim(self) -> str:
        where, level = f"cells of a {self.cells[0]} x {self.cells[1]} grid", self.level[self.inside]
        if self.plane is not None:
            where += f" on the {self.plane.words()}, {self.plane.accuracy(self.domain.max_radius)}"
        low, high = (int(each) * self.level_unit for each in (level.min(), level.max()))
        return (
            f"One report satisfies P(y|u) <= exp(d(u,u')) P(y|u') for every report y and all {self.secrets} secrets "
            f"({where}), where d is the shortest-path distance of the {self.stencil}-neighbour graph, every edge as "
            "long as the line integral, rounded down by less than 2^-27 nats, of a privacy level that is bilinear "
            f"between the centres of cells, and there an integer multiple of {self.level_unit!r} nats per {self.unit} "
            f"({low:.9g} to {high:.9g}); levels {self.claim_digest[:16]}. k reports cost k times as much."
        )

    def header(self) -> dict[str, Any]:
        ratio, shift = exp_lower(self.step * _NATS)
        numbers = ("unit", "stencil", "level_unit", "grain", "step", "cap")
        header: dict[str, Any] = {
            **{name: list(getattr(self, name)) for name in ("cells", "cell", "origin", "bound")},
            **{name: getattr(self, name) for name in numbers},
            "margin": self.margin,
            "length_scales": list(self.length_scales),
            **{"ratio": str(ratio), "shift": shift, "claim": self.claim, "cost": COST},
            **{"claim_digest": self.claim_digest, "source_sha256": self.source_sha256},
            "about": {"problem": self.problem, "program": self.program, "promise": PROMISE},
        }
        return header if self.plane is None else {**header, "plane": self.plane_header()}

    def repr_fields(self) -> Mapping[str, object]:
        return {"secrets": self.secrets, "margin": self.margin, "claim": self.claim}


def _check_range(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise file_error("is out of range", name, value, f"an integer from {low} to {high}")


def least_bound(potential: NDArray[np.int16], row_sums: list[int]) -> tuple[int, int]:
    """A `bound` (g, k) with S(u) <= Sbar(u) for potentials (n,) and sums of n secrets, the least to 2^-20 of it."""
    # Sbar grows with g at least as fast as g itself but for 255 roundings up, together less than 2^-21 of it.
    ratio = max(s * (1 << 30) // b for s, b in zip(row_sums, bounds((1 << 30, 0), potential), strict=True))
    wanted = max(ratio + (ratio >> 21) + 2, 1 << 30)
    shift = (wanted + (wanted >> 30)).bit_length() - 31  # so that rounding up stays below 2^31
    return -(-wanted >> shift), shift

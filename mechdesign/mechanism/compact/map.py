"""CompactMap: the numbers of a compact map, checked, and what follows from them by formulas.py."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.display import Shown
from mechdesign.mechanism.compact.formulas import (
    LARGEST_LEVEL,
    STENCILS,
    WEIGHTS,
    Along,
    advances,
    in_units,
    kernel_lengths,
    lengths,
)
from mechdesign.mechanism.factored.certificate import Factors
from mechdesign.mechanism.schema import refused
from mechdesign.mechanism.table.certificate import exp_lower
from mechdesign.mechanism.table.dataset import COST
from mechdesign.setting.metric.integer_metric import LARGEST, IntegerMetric
from mechdesign.setting.metric.shortest_paths import Edges
from mechdesign.setting.space.domain import Domain
from mechdesign.setting.space.plane import METRES, Plane

MOST_PLACES = 1 << 24
PROMISE = "One report changes anybody's odds between two cells by a factor of at most e^d, d as claimed."
_MOST_STEP = 1 << 54
_MOST_ADVANCE = 1 << 32
_NATS = 2.0**-48


@dataclass(frozen=True, kw_only=True, eq=False)
class CompactMap(Shown):
    """cells (n1, n2), the secrets along either axis; frame, cells around them; cell and origin, sides and low corner
    in `unit`; plane, where on Earth; stencil, 8 or 16; level_unit, nats per unit; level, potential and weight (R, C);
    grain and step in 2^-48 nats; cap; bound (g, k); mechanism, the checksum of the design it was made from; problem
    and program, its names.

    Raises: VerificationError for numbers that the module docstring of formulas.py or file.py rules out.
    """

    cells: tuple[int, ...]
    frame: int
    cell: tuple[float, ...]
    origin: tuple[float, ...]
    unit: str
    plane: Plane | None
    stencil: int
    level_unit: float
    level: NDArray[np.uint16]
    potential: NDArray[np.int16]
    weight: NDArray[np.uint8]
    grain: int
    step: int
    cap: int
    bound: tuple[int, ...]
    mechanism: str
    problem: str
    program: str

    def __post_init__(self) -> None:
        for name in ("cells", "cell", "origin", "bound"):
            if len(getattr(self, name)) != 2:
                raise refused("must be two numbers", name, getattr(self, name), "a map of two axes")
        _within("cells", min(self.cells), 2, MOST_PLACES)
        _within("frame", self.frame, 0, MOST_PLACES)
        _within("cells", math.prod(self.shape), 4, MOST_PLACES)
        _within("grain", self.grain, 1, _MOST_STEP - 1)
        _within("step", self.step, 1, _MOST_STEP - 1)
        _within("cap", self.cap, 1, LARGEST - 1)
        _within("bound", self.bound[0], 1 << 30, (1 << 31) - 1)
        _within("bound", self.bound[1], 0, 64)
        if self.stencil not in STENCILS:
            raise refused("must be 8 or 16", "stencil", self.stencil, "8 or 16 neighbours")
        for name, dtype in (("level", np.uint16), ("potential", np.int16), ("weight", np.uint8)):
            held = getattr(self, name)
            if held.dtype != dtype or held.shape != self.shape:
                raise refused("has another type or shape", name, f"{held.dtype} {held.shape}", f"{dtype} {self.shape}")
        if self.level.min() < 1:
            raise refused("must be positive", "level", 0, f"levels from 1 to {LARGEST_LEVEL}")
        if np.any(self.potential[~self.inside]):
            raise refused("is not 0 in the frame", "potential", "", "potentials of secrets alone")
        if not (0 < self.level_unit < math.inf and all(0 < side < math.inf for side in self.cell)):
            raise refused("must be positive and finite", "level_unit", self.level_unit, "levels and sides of cells")
        for value in self.advance:
            _within("advance", value, 1, _MOST_ADVANCE - 1)

    @property
    def shape(self) -> tuple[int, int]:
        """(R, C), the cells with the frame."""
        return self.cells[0] + 2 * self.frame, self.cells[1] + 2 * self.frame

    @property
    def secrets(self) -> int:
        """Number of secrets n."""
        return math.prod(self.cells)

    @cached_property
    def inside(self) -> NDArray[np.bool_]:
        """Whether a cell is a secret (R, C)."""
        found = np.zeros(self.shape, bool)
        found[self.frame : self.frame + self.cells[0], self.frame : self.frame + self.cells[1]] = True
        return found

    @cached_property
    def inner(self) -> NDArray[np.int64]:
        """The place of every secret (n,)."""
        return np.flatnonzero(self.inside)

    @cached_property
    def advance(self) -> tuple[int, ...]:
        """A_k."""
        return advances(self.level_unit, self.cell, self.stencil)

    @cached_property
    def domain(self) -> Domain:
        """The secrets."""
        return Domain.grid(self.cells, cell=self.cell, unit=self.unit, origin=self.origin, plane=self.plane)

    def report_of(self, place: int) -> int:
        """The number of the secret whose cell is reported for a place."""
        row, column = divmod(place, self.shape[1])
        row, column = (
            min(max(at - self.frame, 0), count - 1) for at, count in zip((row, column), self.cells, strict=True)
        )
        return row * self.cells[1] + column

    def edges_along(self) -> Iterator[Along]:
        """For every step of the stencil the places o and e (m,) of its edges, and their lengths d (m,)."""
        return lengths(self.level, self.advance, self.stencil)

    def units(self, edges: Along) -> NDArray[np.uint16]:
        """Units x (m,) of the edges along a step."""
        return in_units(kernel_lengths(edges, self.inside.ravel(), self.potential.ravel()), self.grain, self.cap)

    @cached_property
    def edges(self) -> Edges:
        """The edges of the claim, lengths in nats, exact as doubles."""
        secret = np.full(math.prod(self.shape), -1, np.int64)
        secret[self.inner] = np.arange(self.secrets)
        parts = []
        for origin, end, length in self.edges_along():
            own = (secret[origin] >= 0) & (secret[end] >= 0)
            parts.append((secret[origin[own]], secret[end[own]], length[own] * _NATS))
        tail, head, nats = (np.concatenate(each) for each in zip(*parts, strict=True))
        return Edges(tail=tail, head=head, length=nats)

    @cached_property
    def factors(self) -> Factors:
        """The integers of the mechanism. Raises: InputError where one is out of range. Cost: 50 bytes an edge."""
        parts = [(origin, end, self.units((origin, end, length))) for origin, end, length in self.edges_along()]
        tail, head, units = (np.concatenate(each) for each in zip(*parts, strict=True))
        points = np.stack(np.unravel_index(np.arange(math.prod(self.shape)), self.shape), axis=1).astype(float)
        metric = IntegerMetric(points=points, tail=tail, head=head, units=units, cap=self.cap)
        return Factors(metric=metric, step=self.step, weight=WEIGHTS[self.weight.ravel()], inner=self.inner)

    @cached_property
    def ledger(self) -> str:
        """64 hexadecimal digits that name the claim."""
        told = {name: getattr(self, name) for name in ("cell", "cells", "level_unit", "origin", "stencil", "unit")}
        digest = hashlib.sha256(json.dumps({**told, "plane": self.plane_told()}, sort_keys=True).encode())
        digest.update(np.ascontiguousarray(self.level.ravel()[self.inner], "<u2").tobytes())
        return digest.hexdigest()

    def plane_told(self) -> dict[str, Any] | None:
        """What the header says of the plane."""
        if self.plane is None:
            return None
        decimals = max(0, self.plane.decimals(self.domain.spacing))
        told = {"latitude": self.plane.latitude, "longitude": self.plane.longitude}
        return {**told, "metres": METRES[self.unit], "decimals": decimals}

    @cached_property
    def claim(self) -> str:
        """The claim in one sentence."""
        where, held = f"cells of a {self.cells[0]} x {self.cells[1]} grid", self.level.ravel()[self.inner]
        if self.plane is not None:
            where += f" on the {self.plane.words()}, {self.plane.accuracy(self.domain.reach)}"
        low, high = (int(each) * self.level_unit for each in (held.min(), held.max()))
        return (
            f"One report satisfies P(y|u) <= exp(d(u,u')) P(y|u') for every report y and all {self.secrets} secrets "
            f"({where}), where d is the shortest-path distance of the {self.stencil}-neighbour graph, every edge as "
            "long as the line integral, rounded down by less than 2^-27 nats, of a privacy level that is bilinear "
            f"between the centres of cells, and there a whole number of {self.level_unit!r} nats per {self.unit} "
            f"({low:.9g} to {high:.9g}); levels {self.ledger[:16]}. k reports cost k times as much."
        )

    def header(self) -> dict[str, Any]:
        """Everything that the header of a file says."""
        ratio, shift = exp_lower(self.step * _NATS)
        told: dict[str, Any] = {
            "kind": "compact",
            **{name: list(getattr(self, name)) for name in ("cells", "cell", "origin", "advance", "bound")},
            **{
                name: getattr(self, name) for name in ("frame", "unit", "stencil", "level_unit", "grain", "step", "cap")
            },
            **{"ratio": str(ratio), "shift": shift, "claim": self.claim, "cost": COST, "ledger": self.ledger},
            "mechanism": self.mechanism,
            "about": {"problem": self.problem, "program": self.program, "promise": PROMISE},
        }
        return told if self.plane is None else {**told, "plane": self.plane_told()}

    def facts(self) -> Mapping[str, object]:
        return {"secrets": self.secrets, "frame": self.frame, "claim": self.claim}


def _within(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise refused("is out of range", name, value, f"a whole number from {least} to {most}")

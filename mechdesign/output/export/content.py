"""Content: what every export says, whatever its format.

The comments (claim, budget, units, losses, the checksum of the mechanism it came from, sizes), the coordinates, the
edges of the claim, and the masses row by row. From these a reader can check the claim without this package.

A text export ends in a line that holds the SHA-256 of every byte before that line, so that damage shows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import TracebackType

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.errors import InputError
from mechdesign.mechanism.sampling.sampler import rows_of
from mechdesign.mechanism.stored import Stored
from mechdesign.mechanism.table.dataset import COST, stored_points
from mechdesign.setting.space.domain import AXES
from mechdesign.setting.space.plane import Plane

DEGREES = ("x", "y", "longitude", "latitude")  # x and y in `unit`

_KEPT = ("problem", "program", "loss", "sha256")
_OF_POSITIONS = ("position_claim", "position_rule")


@dataclass(frozen=True, kw_only=True, eq=False)
class Content:
    """stored, a table or a factored mechanism; rows, the secrets to write; figures, what was recomputed of it, by name;
    plane, where degrees are added to places.
    """

    stored: Stored
    rows: range
    figures: Mapping[str, float] = field(default_factory=dict)
    plane: Plane | None = None

    @property
    def mechanism(self) -> xr.Dataset:
        """The Dataset."""
        return self.stored.mechanism

    @property
    def factored(self) -> bool:
        """Whether probability = mass / row_sum; otherwise it is mass / 2^62."""
        return self.stored.factored

    @cached_property
    def secrets(self) -> list[list[float]]:
        """Coordinates of all n secrets, in `unit`; then longitude and latitude in degrees where there is a plane."""
        return self._placed(stored_points(self.mechanism, "secret"))

    @cached_property
    def reports(self) -> list[list[float]]:
        """Coordinates of all m reports, in `report_unit`."""
        return self.secrets if self.factored else self._placed(stored_points(self.mechanism, "report"))

    @property
    def axes(self) -> Sequence[str]:
        """Names of the coordinates of a secret: x, y, z as far as they go."""
        return DEGREES if self.plane is not None else AXES[: len(self.secrets[0])]

    @property
    def report_axes(self) -> Sequence[str]:
        """Names of the coordinates of a report."""
        return DEGREES if self.plane is not None else AXES[: len(self.reports[0])]

    @property
    def unit(self) -> str:
        """Unit of the coordinates of secrets."""
        return str(self.mechanism["secret_x"].attrs["units"])

    @property
    def report_unit(self) -> str:
        """Unit of the coordinates of reports: another one where reports are output values."""
        return self.stored.report_unit

    @cached_property
    def edges(self) -> list[tuple[int, int, str]]:
        """Edges of the claim between secrets that are written: tail, head, length in nats as an exact hexadecimal
        float. Each holds both ways: P(y|tail) <= e^length P(y|head), and with the ends exchanged.
        """
        edges = self.stored.edges
        listed = zip(edges.tail.tolist(), edges.head.tolist(), edges.length.tolist(), strict=True)
        return [(u, v, length.hex()) for u, v, length in listed if u in self.rows and v in self.rows]

    @cached_property
    def patches(self) -> list[list[int | str]]:
        """Where any position is drawn, for every cell the nine rows around it and the levels at its corners, or at
        those of its quarters, in nats per `unit` as exact hexadecimal floats (positions/patches.py says in which
        order); only with all rows.
        """
        found = self.stored.positions
        if found is None or len(self.rows) < len(self.secrets):
            return []
        levels = [[level.hex() for level in levels] for levels in found.corner_level.tolist()]
        return [[*rows, *corners] for rows, corners in zip(found.around.tolist(), levels, strict=True)]

    @property
    def comments(self) -> dict[str, str | int | float]:
        """What is said beside the table, by name. sha256 is the checksum of the mechanism that is exported."""
        attrs = self.mechanism.attrs
        return {
            **({name: str(attrs[name]) for name in _OF_POSITIONS} if self.patches else {}),
            "claim": self.stored.claim,
            "budget": COST,
            **({} if self.plane is None else {"plane": self.plane.words(), "coordinates": ", ".join(DEGREES)}),
            **({} if self.report_unit == self.unit else {"report_unit": self.report_unit}),
            **{name: str(attrs[name]) for name in _KEPT},
            **self.figures,
            "secrets": len(self.secrets),
            "reports": len(self.reports),
            "edges": len(self.edges),
        }

    def _placed(self, points: NDArray[np.float64]) -> list[list[float]]:
        if self.plane is None:
            return points.tolist()
        return np.column_stack([points, *self.plane.backward(points)]).tolist()

    def masses(self) -> Iterator[tuple[int, list[int], int | None]]:
        """Every row: secret, masses (m,), and for a factored mechanism their sum."""
        exact = rows_of(self.mechanism)
        for u in self.rows:
            masses, total = exact.integers(u)
            yield u, masses, total if self.factored else None


def plane_of(stored: Stored) -> Plane:
    """The plane of a mechanism whose reports are secrets. Raises: InputError where it has none."""
    if stored.domain.plane is None or stored.report_cells is None:
        raise InputError(
            "the mechanism does not say where on Earth its places are",
            field="degrees",
            value=stored.mechanism.attrs["problem"],
            remedy="leave --degrees away, or design for an area",
        )
    return stored.domain.plane


class SealedText:
    """A text file under way (UTF-8, line feeds), whose last line `close` fills with the SHA-256 of all before it."""

    def __init__(self, path: Path, before: str, after: str) -> None:
        self._stream = path.open("wb")
        self._digest = hashlib.sha256()
        self._before, self._after = before, after

    def write(self, text: str) -> None:
        """Append."""
        data = text.encode()
        self._digest.update(data)
        self._stream.write(data)

    def __enter__(self) -> SealedText:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stream:
            self._stream.write(f"{self._before}{self._digest.hexdigest()}{self._after}\n".encode())


def as_json(value: object) -> str:
    """One line of JSON, floats in the digits that read back exactly."""
    return json.dumps(value, allow_nan=False)

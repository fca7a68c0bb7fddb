"""Loss: what a report costs, l(u, y) >= 0, as a table over secrets and reports."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.arguments import asked
from mechdesign.base.descriptions import SMALLEST
from mechdesign.base.display import Shown
from mechdesign.errors import InputError
from mechdesign.setting.space.domain import Domain

SQUARE, LENGTH, APART = 0, 1, 2  # codes of formulas


@dataclass(frozen=True, kw_only=True, eq=False)
class Loss(Shown, ABC):
    """A loss function l(u, y) >= 0 of two places.

    A class of its own is a frozen dataclass without fields, of which an instance has a row in `LOSSES`: a file keeps
    the name alone. name, its name there and in files; tabled, whether a file keeps its values instead; code, the
    formula that compiled sums over coordinates and best estimates know it by: SQUARE for |u - y|^2, LENGTH for |u - y|,
    APART for 1 where u and y differ, else 0; None for any other, and then it has no factored mechanism.
    """

    name: ClassVar[str]
    tabled: ClassVar[bool] = False
    code: ClassVar[int | None] = None

    @abstractmethod
    def matrix(self, secrets: Domain, reports: Domain) -> NDArray[np.float64]:
        """l(u, y) of shape (n, m)."""

    def unit(self, length: str) -> str:
        """The unit of the loss where lengths are in `length`."""
        return "1"

    def words(self) -> str:
        """What its mean is the mean of, for captions."""
        return "loss"

    def within_cell(self, domain: Domain) -> float | None:
        """Mean loss of snapping a uniform position in a cell to the cell's centre; None where it has no meaning."""
        return None


@dataclass(frozen=True, kw_only=True, eq=False)
class SquaredDistance(Loss):
    """l(u, y) = |u - y|^2, in squared units of length."""

    name = "squared"
    code = SQUARE

    def matrix(self, secrets: Domain, reports: Domain) -> NDArray[np.float64]:
        return secrets.euclidean_to(reports) ** 2

    def unit(self, length: str) -> str:
        return "1" if length == "1" else f"{length}^2"

    def words(self) -> str:
        return "squared distance"

    def within_cell(self, domain: Domain) -> float | None:
        """Sum of h^2 / 12 over the axes: h^2 / 6 for a square cell."""
        return None if domain.cell is None else math.fsum(h * h / 12 for h in domain.cell)


@dataclass(frozen=True, kw_only=True, eq=False)
class Distance(Loss):
    """l(u, y) = |u - y|, in units of length."""

    name = "distance"
    code = LENGTH

    def matrix(self, secrets: Domain, reports: Domain) -> NDArray[np.float64]:
        return secrets.euclidean_to(reports)

    def unit(self, length: str) -> str:
        return length

    def words(self) -> str:
        return "distance"

    def within_cell(self, domain: Domain) -> float | None:
        """On a line h / 4; h (sqrt 2 + ln(1 + sqrt 2)) / 6 in a square cell; None for other cells."""
        if domain.cell is None or len(set(domain.cell)) > 1 or len(domain.cell) > 2:
            return None
        h = domain.cell[0]
        return h / 4 if len(domain.cell) == 1 else h * (math.sqrt(2) + math.asinh(1)) / 6


@dataclass(frozen=True, kw_only=True, eq=False)
class ZeroOne(Loss):
    """l(u, y) = 0 if the report is the secret's own place, else 1."""

    name = "zero-one"
    code = APART

    def matrix(self, secrets: Domain, reports: Domain) -> NDArray[np.float64]:
        secrets.require_alike(reports)
        pairs = zip(secrets.points.T, reports.points.T, strict=True)
        return np.any([a[:, None] != b[None, :] for a, b in pairs], axis=0).astype(float)

    def words(self) -> str:
        return "share of wrong reports"


@dataclass(frozen=True, kw_only=True, eq=False)
class TableLoss(Loss):
    """l(u, y) given as `values` of shape (n, m), in `units`, "1" where they have none."""

    values: ArrayLike = field(kw_only=False)
    units: str = "1"
    name = "table"
    tabled = True

    def matrix(self, secrets: Domain, reports: Domain) -> NDArray[np.float64]:
        table = np.asarray(self.values, float)
        if table.shape != (secrets.size, reports.size):
            raise InputError(
                f"must have shape ({secrets.size}, {reports.size})",
                field="loss",
                value=table.shape,
                remedy="secrets down, reports across",
            )
        return table

    def unit(self, length: str) -> str:
        return self.units


LOSSES: dict[str, Loss] = {
    loss.name: loss for loss in (SquaredDistance(), Distance(), ZeroOne())
}  # name: loss; one from outside the package is one entry more


@asked
def named_loss(name: str) -> Loss:
    """The loss of that name. Raises: InputError for a name that is not in `LOSSES`."""
    if name not in LOSSES:
        raise InputError("unknown loss", field="loss", value=name, remedy="use one of " + ", ".join(LOSSES))
    return LOSSES[name]


def check_loss(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """The loss table, if it is finite, not negative and not all zero; else InputError."""
    if not np.isfinite(matrix).all():
        raise InputError(
            "must be finite", field="loss", value="nan or inf", remedy="give a finite loss for every report"
        )
    if (matrix < 0).any():
        raise InputError(
            "must not be negative", field="loss", value=f"{matrix.min():.6g}", remedy="add a constant to the loss"
        )
    if not matrix.max(initial=0.0) >= SMALLEST:
        raise InputError(
            "is zero everywhere, or below 2^-960: every mechanism is optimal",
            field="loss",
            value=f"{matrix.max(initial=0.0)}",
            remedy="give a loss that tells reports apart",
        )
    return matrix


def check_distance(distance: float | None) -> float:
    """An expected distance in units, if it is positive and finite; else InputError."""
    if not (isinstance(distance, (int, float, np.number)) and 0 < distance < math.inf):
        raise InputError(
            "must be positive and finite", field="distance", value=distance, remedy="give a length such as three cells"
        )
    return float(distance)

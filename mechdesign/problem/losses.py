"""Losses l(u, y) >= 0, the cost of report y for secret u. Privacy does not depend on them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Matrix
from mechdesign.base.json_fields import SMALLEST
from mechdesign.base.records import FrozenRecord
from mechdesign.base.units import canonical_unit
from mechdesign.base.validation import as_numbers, check_not_negative, validate_call
from mechdesign.errors import InputError
from mechdesign.problem.domain import Domain

SQUARE, LENGTH, APART = 0, 1, 2  # codes of formulas in compiled sums


@dataclass(frozen=True, kw_only=True, eq=False)
class Loss(FrozenRecord, ABC):
    """A loss l(u, y) >= 0 of a secret u and a report y.

    A user's class is a frozen dataclass without fields, with a row in `LOSSES`.

    Attributes
    ----------
    name, tabled : str, bool
        Its name in `LOSSES` and in files; True if a file stores its values instead.
    code : int or None
        Formula of compiled sums: SQUARE, LENGTH or APART; without one a loss has no factored mechanism.

    Examples
    --------
    >>> domain = md.Domain.points_at([0.0, 2.0], unit="m")
    >>> md.extend.LOSSES["distance"].matrix(domain, domain)
    array([[0., 2.],
           [2., 0.]])
    """

    name: ClassVar[str]
    tabled: ClassVar[bool] = False
    code: ClassVar[int | None] = None

    @abstractmethod
    def matrix(self, secrets: Domain, reports: Domain) -> Matrix:
        """l(u, y) of shape (n, m).

        Examples
        --------
        >>> line = md.Domain.grid(3, 2.0)
        >>> md.losses.Distance().matrix(line, line)[0].tolist()
        [0.0, 2.0, 4.0]
        """

    def unit(self, length: str) -> str:
        """The unit of the loss for places in units of `length`; "1" without one.

        Examples
        --------
        >>> md.losses.Distance().unit("km")
        'km'
        """
        return "1"

    def words(self) -> str:
        """The loss in words, as sentences name it.

        Examples
        --------
        >>> md.losses.Distance().words()
        'distance'
        """
        return "loss"

    def within_cell(self, domain: Domain) -> float | None:
        """Mean loss of snapping a uniform position in a cell to the cell's centre; None where it has no meaning.

        Examples
        --------
        >>> md.losses.Distance().within_cell(md.Domain.grid(3, 2.0))
        0.5
        """
        return None


@dataclass(frozen=True, kw_only=True, eq=False)
class SquaredDistance(Loss):
    """The loss l(u, y) = |u - y|^2, in squared units of length.

    Examples
    --------
    >>> md.losses.SquaredDistance().unit("km")
    'km^2'
    """

    name = "squared"
    code = SQUARE

    def matrix(self, secrets: Domain, reports: Domain) -> Matrix:
        return secrets.euclidean_to(reports) ** 2

    def unit(self, length: str) -> str:
        """The square of the unit of length.

        Examples
        --------
        >>> md.losses.SquaredDistance().unit("km")
        'km^2'
        """
        return "1" if length == "1" else f"{length}^2"

    def words(self) -> str:
        return "squared distance"

    def within_cell(self, domain: Domain) -> float | None:
        """Sum of h^2 / 12 over the axes: h^2 / 6 for a square cell.

        Examples
        --------
        >>> round(md.losses.SquaredDistance().within_cell(md.Domain.grid((2, 2), 3.0)), 6)
        1.5
        """
        return None if domain.cell is None else math.fsum(h * h / 12 for h in domain.cell)


@dataclass(frozen=True, kw_only=True, eq=False)
class Distance(Loss):
    """The loss l(u, y) = |u - y|, in units of length.

    Examples
    --------
    >>> md.losses.Distance().unit("km")
    'km'
    """

    name = "distance"
    code = LENGTH

    def matrix(self, secrets: Domain, reports: Domain) -> Matrix:
        return secrets.euclidean_to(reports)

    def unit(self, length: str) -> str:
        return length

    def words(self) -> str:
        return "distance"

    def within_cell(self, domain: Domain) -> float | None:
        """On a line h / 4; h (sqrt 2 + ln(1 + sqrt 2)) / 6 in a square cell; None for other cells.

        Examples
        --------
        >>> md.losses.Distance().within_cell(md.Domain.grid(3, 2.0))
        0.5
        """
        if domain.cell is None or len(set(domain.cell)) > 1 or len(domain.cell) > 2:
            return None
        h = domain.cell[0]
        return h / 4 if len(domain.cell) == 1 else h * (math.sqrt(2) + math.asinh(1)) / 6


@dataclass(frozen=True, kw_only=True, eq=False)
class ZeroOne(Loss):
    """The loss l(u, y) = 0 if the report is the secret's own place, else 1.

    Examples
    --------
    >>> md.losses.ZeroOne().matrix(md.Domain.nodes(2), md.Domain.nodes(2))
    array([[0., 1.],
           [1., 0.]])
    """

    name = "zero-one"
    code = APART

    def matrix(self, secrets: Domain, reports: Domain) -> Matrix:
        secrets.require_alike(reports)
        # By coordinates: the distance of two places can round to 0.
        pairs = zip(secrets.points.T, reports.points.T, strict=True)
        return np.any([a[:, None] != b[None, :] for a, b in pairs], axis=0).astype(float)

    def words(self) -> str:
        return "share of wrong reports"


# Without a generated constructor, since the keyword is `unit`, a method of every loss.
@dataclass(frozen=True, kw_only=True, eq=False, init=False)
class TableLoss(Loss):
    """The loss l(u, y) of a table.

    Parameters
    ----------
    values : (n, m) array
        Losses, not negative.
    unit : str
        Of the values; "1" by default. `units` is the same keyword, and the attribute.

    Examples
    --------
    >>> md.losses.TableLoss([[0.0, 2.0], [1.0, 0.0]], unit="EUR").unit("km")
    'EUR'
    """

    values: ArrayLike = field(kw_only=False)
    units: str = "1"
    name = "table"
    tabled = True

    def __init__(self, values: ArrayLike, *, unit: str | None = None, units: str | None = None) -> None:
        if unit is not None and units is not None:
            raise InputError("is given twice, as unit and as units", field="unit", value=f"{unit}, {units}")
        if unit is not None and not isinstance(unit, str):
            raise InputError("must be of type str", field="unit", value=unit)
        object.__setattr__(self, "values", values)
        given = units if unit is None else unit
        object.__setattr__(self, "units", "1" if given is None else given)
        self.__post_init__()

    def __post_init__(self) -> None:
        object.__setattr__(self, "units", canonical_unit(self.units, "units"))
        table = as_numbers(self.values, "loss", ascending=True)
        if table.ndim != 2:
            raise InputError("must be a table, one row for each secret", field="loss", value=f"shape {table.shape}")
        check_loss(table)
        object.__setattr__(self, "values", table)

    def matrix(self, secrets: Domain, reports: Domain) -> Matrix:
        table = np.asarray(self.values, float)
        n, m = table.shape
        if (n, m) != (secrets.size, reports.size):
            other = n == secrets.size and reports is secrets
            remedy = f"pass the reports too, for example reports=md.Domain.nodes({m})" if other and m > 1 else None
            message = f"must have shape ({secrets.size}, {reports.size})"
            raise InputError(message, field="loss", value=table.shape, remedy=remedy)
        return table

    def unit(self, length: str) -> str:
        return self.units


# By name; one from outside the package is one entry more.
LOSSES: dict[str, Loss] = {loss.name: loss for loss in (SquaredDistance(), Distance(), ZeroOne())}


@validate_call
def named_loss(name: str) -> Loss:
    """The loss of a name.

    Parameters
    ----------
    name : str
        A name of `LOSSES`: "zero-one", "distance", "squared".

    Returns
    -------
    Loss

    Examples
    --------
    >>> type(md.losses.named_loss("distance")).__name__
    'Distance'
    """
    if name not in LOSSES:
        raise InputError("unknown loss", field="loss", value=name, remedy="use one of " + ", ".join(LOSSES))
    return LOSSES[name]


def check_loss(matrix: Matrix) -> Matrix:
    """The loss table, if it is finite, not negative and not all zero; else InputError."""
    check_not_negative(matrix, "loss")
    largest = matrix.max(initial=0.0)
    if not largest >= SMALLEST:
        raise InputError("is zero everywhere, or below 2^-960: every mechanism is optimal", field="loss", value=largest)
    return matrix


def check_distance(distance: float | None) -> float:
    """An expected distance in units, if it is positive and finite; else InputError."""
    if not (isinstance(distance, (int, float, np.number)) and 0 < distance < math.inf):
        raise InputError("must be positive and finite", field="distance", value=distance)
    return float(distance)

r"""Losses, what a report costs, priors, the probability of each secret, and queries, what else a report may answer.

A loss is a table l(u, y) >= 0 over secrets and reports. Privacy depends neither on it nor on the prior.

Query: a question about the secret with finitely many answers, q(u) = label of the place u. A query problem has one
report per label. The report y stands at a place of its own label, the one nearest to the mean of q^{-1}(y), so that
distances and units keep their meaning.
Source: Koufogiannis & Pappas 2016, Problem 1: given secrets, a privacy level and a query q, design a mechanism that
approximates q.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from mechdesign.base.labels import unlabelled
from mechdesign.base.numbers import SMALLEST
from mechdesign.base.records import ReprMixin
from mechdesign.base.units import canonical_unit
from mechdesign.base.validation import as_numbers, refuse_entries, validated
from mechdesign.errors import InputError
from mechdesign.problem.domain import Domain
from mechdesign.problem.levels import Raster

SQUARE, LENGTH, APART = 0, 1, 2  # codes of formulas
SUM_TOLERANCE = 1e-9  # a prior further than this from sum 1 is refused, never silently normalised
_SINGLE_TOLERANCE = 64 * 2.0**-24  # entries rounded to single precision, and a sum of them in blocks of 128
Array = NDArray[np.float64]
QueryLoss = Literal["zero-one", "distance"]
_LARGEST = 2.0**53  # labels beyond are no exact doubles


@dataclass(frozen=True, kw_only=True, eq=False)
class Loss(ReprMixin, ABC):
    """A loss function l(u, y) >= 0 of two places.

    A class of its own is a frozen dataclass without fields, of which an instance has a row in `LOSSES`: a file keeps
    the name alone.

    Attributes
    ----------
    name : str
        Its name in `LOSSES` and in files.
    tabled : bool
        Whether a file keeps its values instead.
    code : int or None
        The formula that compiled sums know it by: SQUARE for |u - y|^2, LENGTH for |u - y|, APART for 1 where u and y
        differ; None for any other, and then it has no factored mechanism.

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
    def matrix(self, secrets: Domain, reports: Domain) -> Array:
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
    """The loss l(u, y) = |u - y|^2, in squared units of length.

    Examples
    --------
    >>> md.losses.SquaredDistance().unit("km")
    'km^2'
    """

    name = "squared"
    code = SQUARE

    def matrix(self, secrets: Domain, reports: Domain) -> Array:
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
    """The loss l(u, y) = |u - y|, in units of length.

    Examples
    --------
    >>> md.losses.Distance().unit("km")
    'km'
    """

    name = "distance"
    code = LENGTH

    def matrix(self, secrets: Domain, reports: Domain) -> Array:
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
    """The loss l(u, y) = 0 if the report is the secret's own place, else 1.

    Examples
    --------
    >>> md.losses.ZeroOne().matrix(md.Domain.nodes(2), md.Domain.nodes(2))
    array([[0., 1.],
           [1., 0.]])
    """

    name = "zero-one"
    code = APART

    def matrix(self, secrets: Domain, reports: Domain) -> Array:
        secrets.require_alike(reports)
        pairs = zip(secrets.points.T, reports.points.T, strict=True)
        return np.any([a[:, None] != b[None, :] for a, b in pairs], axis=0).astype(float)

    def words(self) -> str:
        return "share of wrong reports"


@dataclass(frozen=True, kw_only=True, eq=False)
class TableLoss(Loss):
    """The loss l(u, y) of a table.

    Parameters
    ----------
    values : (n, m) array
        Losses, not negative.
    units : str
        Their unit, "1" where they have none.

    Examples
    --------
    >>> md.losses.TableLoss([[0.0, 2.0], [1.0, 0.0]], units="EUR").unit("km")
    'EUR'
    """

    values: ArrayLike = field(kw_only=False)
    units: str = "1"
    name = "table"
    tabled = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "units", canonical_unit(self.units, "units"))
        table = as_numbers(self.values, "loss", ascending=True)
        if table.ndim != 2:
            raise InputError("must be a table, one row for each secret", field="loss", value=f"shape {table.shape}")
        check_loss(table)
        object.__setattr__(self, "values", table)

    def matrix(self, secrets: Domain, reports: Domain) -> Array:
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


@validated
def named_loss(name: str) -> Loss:
    """The loss of a name.

    Parameters
    ----------
    name : str
        A name of `LOSSES`: "zero-one", "distance", "squared".

    Returns
    -------
    Loss
        The loss.

    Raises
    ------
    InputError
        For a name that is not in `LOSSES`.

    Examples
    --------
    >>> type(md.losses.named_loss("distance")).__name__
    'Distance'
    """
    if name not in LOSSES:
        raise InputError("unknown loss", field="loss", value=name, remedy="use one of " + ", ".join(LOSSES))
    return LOSSES[name]


def check_loss(matrix: Array) -> Array:
    """The loss table, if it is finite, not negative and not all zero; else InputError."""
    _check_entries(matrix, "loss")
    largest = matrix.max(initial=0.0)
    if not largest >= SMALLEST:
        raise InputError("is zero everywhere, or below 2^-960: every mechanism is optimal", field="loss", value=largest)
    return matrix


def check_distance(distance: float | None) -> float:
    """An expected distance in units, if it is positive and finite; else InputError."""
    if not (isinstance(distance, (int, float, np.number)) and 0 < distance < math.inf):
        raise InputError("must be positive and finite", field="distance", value=distance)
    return float(distance)


@validated
def uniform(domain: Domain) -> Array:
    """1/n at each of the n places.

    Parameters
    ----------
    domain : Domain
        The places.

    Returns
    -------
    (n,) array
        The prior.

    Examples
    --------
    >>> md.priors.uniform(md.Domain.nodes(4))
    array([0.25, 0.25, 0.25, 0.25])
    """
    return np.full(domain.size, 1.0 / domain.size)


@validated
def proportional(weights: ArrayLike, *, field: str = "prior") -> Array:
    """Weights divided by their sum.

    Parameters
    ----------
    weights : (n,) array
        Not negative, not all 0.
    field : str
        What errors call them.

    Returns
    -------
    (n,) array
        Sums to 1.

    Raises
    ------
    InputError
        For weights that are negative, not finite or all 0.

    Examples
    --------
    >>> md.priors.proportional([1.0, 3.0])
    array([0.25, 0.75])
    """
    values = as_numbers(weights, field, ascending=True)
    _check_weights(values, field)
    return values / values.sum()


def _check_weights(values: Array, field: str) -> None:
    _check_entries(values, field)
    if not values.any():
        raise InputError("is zero everywhere", field=field, value="sum 0")


def _check_entries(values: Array, field: str) -> None:
    refuse_entries(~np.isfinite(values), values, "must be finite", field=field)
    refuse_entries(values < 0, values, "must not be negative", field=field)


def check_prior(prior: ArrayLike, places: int | Domain) -> Array:
    """A prior (n,) over a number of places or those of a domain, if it is one; of a grid also in the shape of the grid.

    One of single precision is divided by its sum in double precision, where that is 1 to its rounding.
    Raises: InputError for a wrong shape, negative, non-finite or all-zero entries, and a sum not 1 within 1e-9.
    """
    values = as_numbers(prior, "prior", places.points if isinstance(places, Domain) else None)
    single = np.asarray(prior).dtype == np.float32
    if isinstance(places, Domain):
        values = _of_places(values, places)
    elif values.shape != (places,):
        raise InputError(f"must have shape ({places},)", field="prior", value=values.shape)
    _check_weights(values, "prior")
    total = float(values.sum())
    if single and abs(total - 1) <= _SINGLE_TOLERANCE:
        return values / total
    if abs(total - 1) > SUM_TOLERANCE:
        raise InputError(
            "must sum to 1", field="prior", value=f"sum {total:.12g}", remedy="use priors.proportional to normalise"
        )
    return values


def _of_places(values: Array, domain: Domain) -> Array:
    """Values (n,) of the places from those, or from values over the lattice that are 0 in masked cells."""
    if values.shape == (domain.size,):
        return values
    if domain.index is None or domain.shape is None or values.shape != domain.shape:
        grid = f" or {domain.shape}" if domain.shape is not None and domain.shape != (domain.size,) else ""
        turned = domain.shape is not None and values.shape == domain.shape[::-1]
        remedy = "transpose it: x is the first axis" if turned else None
        raise InputError(f"must have shape ({domain.size},){grid}", field="prior", value=values.shape, remedy=remedy)
    outside = (domain.lookup < 0) & (values != 0)
    refuse_entries(outside, values, "must be 0 in cells that the mask leaves out", field="prior")
    return values[tuple(domain.index.T)]


@dataclass(frozen=True, kw_only=True, eq=False)
class Query(ReprMixin):
    """A query q(u) over n places; the m answers are the distinct labels, in ascending order.

    Parameters
    ----------
    labels : (n,) int array
        q at each place.

    References
    ----------
    Koufogiannis & Pappas 2016, Problem 1.

    Examples
    --------
    >>> md.losses.Query([3, 3, 7]).values
    array([3, 7])
    """

    labels: ArrayLike = field(kw_only=False)

    def __post_init__(self) -> None:
        labels = np.asarray(unlabelled(self.labels, "labels"))
        numbers = labels.ndim == 1 and labels.dtype.kind in "iuf"
        odd = labels[~((labels == np.rint(labels)) & (np.abs(labels) <= _LARGEST))] if numbers else labels.ravel()
        if not numbers or len(odd):
            description = f"{odd[0]} ({len(odd)} such)" if numbers else f"{labels.dtype} {labels.shape}"
            raise InputError("must be integers, one per place; NODATA is none", field="labels", value=description)
        object.__setattr__(self, "labels", labels.astype(np.int64))
        if len(self.values) < 2:
            raise InputError("needs at least two answers", field="labels", value=self.values.tolist())

    @classmethod
    @validated
    def from_raster(cls, raster: Raster, domain: Domain) -> Query:
        """The labels of a raster: at every place the value of the nearest node, never one between two nodes."""
        converted = raster.in_unit(domain.unit)
        converted.require_cover(domain.points)
        return cls(labels=converted.nearest(domain.points))

    @cached_property
    def values(self) -> NDArray[np.int64]:
        """The answers (m,), ascending: report y says values[y]."""
        return np.unique(np.asarray(self.labels))

    @cached_property
    def answer(self) -> NDArray[np.int64]:
        """The report number (n,) of the true answer at every place."""
        return np.searchsorted(self.values, np.asarray(self.labels))

    @cached_property
    def places(self) -> list[NDArray[np.int64]]:
        """q^{-1}(y) for every report y: place numbers, ascending."""
        order = np.argsort(self.answer, kind="stable")
        return np.split(order, np.searchsorted(self.answer[order], np.arange(1, len(self.values))))

    def reports(self, domain: Domain) -> Domain:
        """One place per answer: of q^{-1}(y) the place nearest to its mean."""
        self._check_size(domain)
        chosen = [
            places[np.argmin(((domain.points[places] - domain.points[places].mean(axis=0)) ** 2).sum(axis=1))]
            for places in self.places
        ]
        return Domain.points_at(domain.points[chosen], unit=domain.unit)

    def loss(self, kind: QueryLoss, domain: Domain) -> TableLoss:
        """l(u, y), (n, m): zero-one, 1 where y is not q(u), so that losses are shares of wrong answers; distance, from
        u to the nearest place of label y in the unit of the domain, 0 for the true answer.
        """
        self._check_size(domain)
        if kind == "zero-one":
            return TableLoss(values=(self.answer[:, None] != np.arange(len(self.values))).astype(float))
        if kind != "distance":
            raise InputError("unknown loss of a query", field="loss", value=kind, remedy="use zero-one or distance")
        nearest = [cKDTree(domain.points[places]).query(domain.points)[0] for places in self.places]
        return TableLoss(values=np.column_stack(nearest), units=domain.unit)

    def check(self, domain: Domain, reports: Domain) -> None:
        """Refuse secrets or reports in other numbers than places or answers, with an InputError."""
        self._check_size(domain)
        if reports.size != len(self.values):
            description = f"{reports.size} reports, {len(self.values)} labels"
            raise InputError("needs one report per label", field="reports", value=description)

    def _check_size(self, domain: Domain) -> None:
        if len(self.answer) != domain.size:
            raise InputError(f"must have shape ({domain.size},)", field="labels", value=self.answer.shape)

r"""Losses, what a report costs, priors, the probability of each secret, and queries, what else a report may answer.

A loss is a table l(u, y) >= 0 over secrets and reports. Privacy depends neither on it nor on the prior.

Loss to the true position, uniform in its cell, of reports for a snapped one. A position x = u + h s in the cell of u,
s uniform in [-1/2, 1/2]^k, is moved to the centre of its cell, or to the centre of one of the 3 x 3 cells around by the
weights of the quadratic B-spline. For a table P

    loss = sum_u prior(u) sum_i sum_y P(y | row of u + i) L_i(u, y),     L_i(u, y) = int b_i(s) l(u + h s, y) ds.

Squared distance, exactly. With the moments of b_i along an axis,

    int b = 1/6, 2/3, 1/6        int b s = -1/24, 0, 1/24        int b s^2 = 1/60, 1/20, 1/60        (i = -1, 0, 1)

of (1/2 - s)^2 / 2, 3/4 - s^2, (1/2 + s)^2 / 2, L_i is a polynomial of u - y. Summed over i the moments are 1, 0, 1/12:
snapping to the centre adds h^2 / 12 for each axis, whatever the table. For the spline, E[row | x] = x and
Var(row | x) = h^2 / 4 along an axis, for sum_i b_i i = s and sum_i b_i i^2 = s^2 + 1/4; and where prior and rows go on
beyond a place k, the position that was moved there has density B((x - k) / h) / h, the cubic spline of three uniforms
of variance h^2 / 12 each: mean k, variance h^2 / 4. So the loss is that between centres under the prior
prior_k = sum_u prior(u) int b_{k - u}, plus h^2 / 4 for each axis: h^2 / 2 in the plane, and h^2 / 6 by centres.

Distance. L_i depends on y - u alone where reports lie on the lattice of the cells; the integral over a cell that y lies
outside of is by Gauss-Legendre rules of 20 x 20 nodes, that over its own in two triangles a quadrant, where the
integrand is a product of analytic functions. Their relative error is below 1e-12: the nearest singularity of a rule
lies on the ellipse of sum of half axes 1 + sqrt 2 or more, and (1 + sqrt 2)^-40 = 5e-16.

Query: a question about the secret with finitely many answers, q(u) = label of the place u. A query problem has one
report per label. The report y stands at a place of its own label, the one nearest to the mean of q^{-1}(y), so that
distances and units keep their meaning.
Source: Koufogiannis & Pappas 2016, Problem 1: given secrets, a privacy level and a query q, design a mechanism that
approximates q.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from mechdesign.base.arguments import as_numbers, refuse_entries, validated
from mechdesign.base.descriptions import SMALLEST
from mechdesign.base.display import ReprMixin
from mechdesign.base.units import canonical_unit
from mechdesign.errors import InputError
from mechdesign.problem.domain import Domain
from mechdesign.problem.levels import Raster

SQUARE, LENGTH, APART = 0, 1, 2  # codes of formulas
SUM_TOLERANCE = 1e-9  # a prior further than this from sum 1 is refused, never silently normalised
_SINGLE_TOLERANCE = 64 * 2.0**-24  # entries rounded to single precision, and a sum of them in blocks of 128
STEPS = (-1, 0, 1)  # i, from the cell of a position to the row that is drawn from; None: always that of the cell
_MOMENTS = {-1: (1 / 6, -1 / 24, 1 / 60), 0: (2 / 3, 0.0, 1 / 20), 1: (1 / 6, 1 / 24, 1 / 60), None: (1.0, 0.0, 1 / 12)}
CENTRE_WEIGHTS = np.outer([1.0, 6.0, 1.0], [1.0, 6.0, 1.0]).ravel() / 64  # of the 3 x 3 rows that a centre draws
_NODES = 20  # of a Gauss-Legendre rule
_ON_LATTICE = 1e-9  # of a cell
Array = NDArray[np.float64]
Step = tuple[int | None, ...]
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
        canonical_unit(self.units, "units")
        table = as_numbers(self.values, "loss")
        if table.ndim != 2:
            raise InputError("must be a table, one row for each secret", field="loss", value=f"shape {table.shape}")
        check_loss(table)

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
    values = as_numbers(weights, field)
    _check_weights(values, field)
    return values / values.sum()


def _check_weights(values: Array, field: str) -> None:
    _check_entries(values, field)
    if not values.any():
        raise InputError("is zero everywhere", field=field, value="sum 0")


def _check_entries(values: Array, field: str) -> None:
    refuse_entries(~np.isfinite(values), values, "must be finite", field=field)
    refuse_entries(values < 0, values, "must not be negative", field=field)


@validated
def from_density(density: Raster, domain: Domain, *, extend: bool = False) -> Array:
    """The prior proportional to a density at the places of a domain.

    Parameters
    ----------
    density : Raster
        The density; nodes in another unit of length are converted.
    domain : Domain
        The n places.
    extend : bool
        Beyond the raster the density goes on as at its border; else places there are refused.

    Returns
    -------
    (n,) array
        Sums to 1.

    References
    ----------
    Koufogiannis & Pappas 2016, section IV.

    Examples
    --------
    >>> density = md.Raster(x=[0.0, 4.0], y=[0.0], values=[[1.0], [5.0]])
    >>> md.priors.from_density(density, md.Domain.grid((2, 2), 1.0), extend=True).round(3)
    array([0.188, 0.188, 0.312, 0.312])
    """
    converted = density.in_unit(domain.unit)
    if not extend:
        converted.require_cover(domain.points)
    return proportional(converted.at(domain.points), field="density")


def check_prior(prior: ArrayLike, places: int | Domain) -> Array:
    """A prior (n,) over a number of places or those of a domain, if it is one; of a grid also in the shape of the grid.

    One of single precision is divided by its sum in double precision, where that is 1 to its rounding.
    Raises: InputError for a wrong shape, negative, non-finite or all-zero entries, and a sum not 1 within 1e-9.
    """
    values = as_numbers(prior, "prior")
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


def position_cost(
    loss: Loss, prior: Array, domain: Domain, reports: Domain, around: NDArray[np.int64] | None = None
) -> Array | None:
    """C (n, m) such that the mean loss to the true position is the sum of C * P, in loss units.

    around (n, 9), the rows of the 3 x 3 cells around each cell, steps along the last axis fastest; None where a
    position is moved to the centre of its cell. None for places that are no cells of one or two axes, for losses other
    than the squared distance and the distance, and for the distance on cells that are not square or with reports off
    their lattice. Cost: O(n m), nine times that with `around`.
    """
    alike = (reports.unit, reports.dimension) == (domain.unit, domain.dimension)
    if domain.cell is None or domain.dimension > 2 or not alike:
        return None
    means = _means(loss, domain, reports, domain.cell)
    if means is None:
        return None
    if around is None:
        return np.asarray(prior[:, None] * means((None,) * domain.dimension))
    cost, size = np.zeros((domain.size, reports.size)), domain.size
    for rows, step in zip(around.T, product(STEPS, repeat=2), strict=True):
        cost += sp.csr_array((prior, (rows, np.arange(size))), shape=(size, size)) @ means(step)
    return cost


def claim_cost(
    loss: Loss, matrix: Array, prior: Array, domain: Domain, reports: Domain, around: NDArray[np.int64] | None
) -> Array:
    """C (n, m) such that the expected loss of a table P under its claim is the sum of C * P, in loss units.

    matrix (n, m), the losses between centres: without `around` it is theirs. Where positions draw the rows `around`
    (n, 9), it is the mean loss to the true position; without such a mean, the loss from the centres of the cells.
    """
    if around is None:
        return prior[:, None] * matrix
    cost = position_cost(loss, prior, domain, reports, around) if reports.size > 1 else None
    if cost is not None:
        return cost
    size, from_centres = domain.size, np.zeros(matrix.shape)
    for rows, weight in zip(around.T, CENTRE_WEIGHTS.tolist(), strict=True):
        from_centres += weight * (sp.csr_array((prior, (rows, np.arange(size))), shape=(size, size)) @ matrix)
    return from_centres


def _means(loss: Loss, domain: Domain, reports: Domain, cell: tuple[float, ...]) -> Callable[[Step], Array] | None:
    """L_i (n, m) as a function of the step i; None where there is none."""
    if type(loss) is SquaredDistance:
        away = (domain.points[:, None, :] - reports.points[None, :, :]).transpose(2, 0, 1)
        return lambda step: _squared(away, cell, step)
    steps = _displacements(domain, reports) if type(loss) is Distance and len(set(cell)) == 1 else None
    return None if steps is None else lambda step: np.asarray(cell[0] * _distance(steps, step))


def _squared(away: Array, cell: tuple[float, ...], step: Step) -> Array:
    """L_i (n, m) from u - y (k, n, m)."""
    moments = [_MOMENTS[one] for one in step]
    weight = np.prod([moment[0] for moment in moments])
    total = np.zeros(away.shape[1:])
    for gap, h, (zeroth, first, second) in zip(away, cell, moments, strict=True):
        total += weight / zeroth * (zeroth * gap**2 + 2 * h * first * gap + h * h * second)
    return total


def _displacements(domain: Domain, reports: Domain) -> NDArray[np.int64] | None:
    """Displacements y - u in square cells (k, n, m); None where reports lie off their lattice."""
    assert domain.cell is not None and domain.index is not None
    place = (reports.points - np.asarray(domain.origin)) / domain.cell[0] - 0.5
    index = np.rint(place)
    if np.abs(place - index).max() > _ON_LATTICE:
        return None
    return (index.astype(np.int64)[None] - domain.index[:, None]).transpose(2, 0, 1)


def _distance(away: NDArray[np.int64], step: Step) -> Array:
    """L_i in sides of a cell, (n, m), from y - u in cells."""
    if len(away) == 1:
        return np.where(away[0] == 0, 0.25, np.abs(away[0]).astype(float))
    low, high = away.reshape(2, -1).min(axis=1), away.reshape(2, -1).max(axis=1)
    table = _cell_distances(np.arange(low[0], high[0] + 1), np.arange(low[1], high[1] + 1), step)
    return table[away[0] - low[0], away[1] - low[1]]


def _cell_distances(across: NDArray[np.int64], along: NDArray[np.int64], step: Step) -> Array:
    """L_i in sides of a cell for reports at displacements across x along."""
    node, weight = leggauss(_NODES)
    at, share = node / 2, weight / 2
    shares = [share * _spline(one, at) for one in step]
    table = np.zeros((len(across), len(along)))
    for s, a in zip(at, shares[0], strict=True):
        for t, b in zip(at, shares[1], strict=True):
            table += a * b * np.hypot((across - s)[:, None], (along - t)[None, :])
    radius, slope = (node + 1) / 4, (node + 1) / 2
    total = 0.0
    for sign_s, sign_t in product((-1, 1), repeat=2):
        s, v = radius[:, None], slope[None, :]
        density = weight[:, None] / 4 * weight[None, :] / 2 * s * s * np.sqrt(1 + v * v)
        for x, y in ((s, s * v), (s * v, s)):
            total += float((density * _spline(step[0], sign_s * x) * _spline(step[1], sign_t * y)).sum())
    table[np.ix_(across == 0, along == 0)] = total
    return table


def _spline(step: int | None, s: Array) -> Array:
    """The weight of a step at s in [-1/2, 1/2]; 1 for none."""
    if step is None:
        return np.ones_like(s)
    return 0.75 - s * s if step == 0 else (0.5 + step * s) ** 2 / 2


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
        labels = np.asarray(self.labels)
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

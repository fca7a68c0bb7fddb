r"""What a stored mechanism loses, to whom, and after which remap: recomputed from its integers.

Expected loss under the stored prior, to the centre of the cell or to the true position, uniform in the cell.

Error of an adversary who knows the prior and the mechanism: the expected error of the best estimate.

    error = sum over y of  min over x of  sum over u of prior(u) P(y|u) l(u, x)

The estimate x of a report y is any point, not only a place: the mean of the posterior for the squared distance, its
geometric median for the distance. So error <= `remapped_loss` <= the expected loss under the same loss, the remap being
the best estimate among the reports; and post-processing a mechanism never lowers the error.
It is the error under this prior alone. An adversary who knows more errs less, and only the claim holds for all of them.
The median is found by Weiszfeld's iteration with the step of Vardi and Zhang at places, from the best place. The error
that is reached is attained, hence an upper bound of the least one; the lower bound is from convexity:
f(x) - f(x*) <= |g| max_u |x - u| for the least subgradient g at x, since x* is between the places. Privacy is promised
by the lower bound.
Source: Andrés et al. 2013, section 3 (the adversary's side information is a prior); Vardi and Zhang 2000 for the
iteration.

Bayes remap: every report replaced by the one with the least posterior expected loss. It is post-processing, so privacy
is kept; the expected loss never rises. Source: Koufogiannis & Pappas 2016, end of section IV ("post-processing the
responses of our approach can further improve performance"); Chatzikokolakis et al. 2017.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.memory import require_memory
from mechdesign.base.records import ReprMixin
from mechdesign.base.validation import validated
from mechdesign.errors import InputError, UnsuitableError, VerificationError
from mechdesign.mechanism.certificate import ROW_SUM, max_log_ratio
from mechdesign.mechanism.claim import stored_domain
from mechdesign.mechanism.dataset import seal, stored_edges, stored_points, total_cost
from mechdesign.mechanism.repair import best_reports
from mechdesign.mechanism.sampler import rows_of
from mechdesign.problem.domain import Domain
from mechdesign.problem.losses import (
    LENGTH,
    LOSSES,
    SQUARE,
    Distance,
    Loss,
    SquaredDistance,
    TableLoss,
    check_prior,
)
from mechdesign.problem.position_loss import CENTRE_WEIGHTS, claim_cost, position_cost

Array = NDArray[np.float64]
_ITERATIONS = 300
_SETTLED = 1e-12  # of the largest distance: a move that ends the iteration
_OF_THE_ORIGINAL = ("lower_bound", "lower_bound_of", "objective", "objective_of", "stopped", "sha256")


def drawn_rows(mechanism: xr.Dataset, secrets: ArrayLike | None = None) -> NDArray[np.float64]:
    """P(y|u) (b, m) in floating point of what `Sampler` draws for secrets (b,), all by default: their rows, or with a
    claim about positions the means of nine rows that their centres draw, weights 1/8, 3/4, 1/8 along either axis.

    A table is not proved first, and secrets must be there. Raises: VerificationError for another Dataset. Cost: O(b m).
    """
    cells = np.arange(mechanism.sizes["secret"]) if secrets is None else np.asarray(secrets, np.int64)
    if "mass" not in mechanism:
        return rows_of(mechanism).probabilities(cells)
    mass = mechanism["mass"].values
    if "around_row" not in mechanism:
        return np.asarray(mass[cells] / float(ROW_SUM))
    around = mechanism["around_row"].values[cells]
    mean = np.zeros((len(cells), mass.shape[1]))
    for row, weight in zip(around.T, CENTRE_WEIGHTS.tolist(), strict=True):
        mean += weight * (mass[row] / float(ROW_SUM))
    return mean


def loss_matrix(mechanism: xr.Dataset) -> NDArray[np.float64]:
    """l(u, y) (n, m) of a mechanism: rebuilt from its coordinates, or the stored table where the loss is one.

    Raises: VerificationError for an unknown loss.
    """
    name = mechanism.attrs["loss"]
    if name == TableLoss.name:
        return np.asarray(mechanism["loss_table"].values, float)
    if name not in LOSSES:
        raise VerificationError("unknown loss: this file was written by another version", field="loss", value=name)
    secrets, reports = (_places(mechanism, dim) for dim in ("secret", "report"))
    return LOSSES[name].matrix(secrets, reports)


@validated
def mechanism_loss(mechanism: xr.Dataset) -> float:
    """The expected loss of a mechanism under the stored prior, in loss units: with a claim about positions that to the
    true position, where the loss has a mean over a cell, else that from the centres of cells.

    Parameters
    ----------
    mechanism : xarray.Dataset
        A table.

    Returns
    -------
    float
        In loss units.

    Examples
    --------
    >>> round(md.utility.mechanism_loss(md.baselines.constant(md.load_problem("discrete", secrets=4))), 6)
    0.75
    """
    return total_cost(mechanism["mass"].values, _cost(mechanism, loss_matrix(mechanism)))


def _cost(mechanism: xr.Dataset, matrix: Array, loss: Loss | None = None) -> Array:
    """`claim_cost` of a table; matrix (n, m), the losses between centres; loss, their kind, by default the file's."""
    if loss is None:
        loss = LOSSES.get(mechanism.attrs["loss"]) or TableLoss(values=matrix)
    around = mechanism["around_row"].values if "around_row" in mechanism else None
    domain, reports = stored_domain(mechanism), _places(mechanism, "report")
    return claim_cost(loss, matrix, mechanism["prior"].values, domain, reports, around)


def constant_loss(mechanism: xr.Dataset) -> float:
    """Expected loss of the best constant report under the stored prior, in loss units."""
    return float((mechanism["prior"].values @ loss_matrix(mechanism)).min())


@validated
def expected_distance(mechanism: xr.Dataset) -> float | None:
    """Mean Euclidean distance from secret to report, in units of length; None where reports have no places. With a
    claim about positions it is that from the true position.

    Parameters
    ----------
    mechanism : xarray.Dataset
        A table.

    Returns
    -------
    float or None
        In units of length.

    Examples
    --------
    >>> md.utility.expected_distance(md.baselines.constant(md.load_problem("discrete", secrets=3))) is None
    True
    """
    distance = report_distances(mechanism)
    if distance is None:
        return None
    return total_cost(mechanism["mass"].values, _cost(mechanism, distance, Distance()))


def report_distances(mechanism: xr.Dataset) -> NDArray[np.float64] | None:
    """|u - y| (n, m) in units of length; None for graph nodes, which have no place, and for reports in another unit or
    with other axes, which are no places.
    """
    secrets, reports = _places(mechanism, "secret"), _places(mechanism, "report")
    alike = (secrets.unit, secrets.dimension) == (reports.unit, reports.dimension)
    if '"nodes"' in mechanism.attrs["domain"] or not alike:
        return None
    return Distance().matrix(secrets, reports)


def _places(mechanism: xr.Dataset, dim: str) -> Domain:
    """The places of a dimension as bare points; a single report is allowed."""
    points = stored_points(mechanism, dim)
    if len(points) > 1:
        return Domain(kind="points", points=points, unit=mechanism[f"{dim}_x"].attrs["units"])
    place = object.__new__(Domain)
    for field, value in (("kind", "points"), ("points", points), ("unit", mechanism[f"{dim}_x"].attrs["units"])):
        object.__setattr__(place, field, value)
    return place


@validated
def position_loss(mechanism: xr.Dataset) -> float | None:
    """Mean loss to the true position under the stored prior, in loss units; recomputed from the integers.

    A position is uniform in its cell; it draws the row of its cell, or of the cells around by the weights of the
    spline where the mechanism has a claim about positions. None where `position_cost` has no such mean, and for
    factored mechanisms with another loss than the squared distance. Cost: O(n m).
    """
    loss = LOSSES.get(mechanism.attrs["loss"])
    if loss is None:
        return None
    if "mass" not in mechanism:
        within = loss.within_cell(stored_domain(mechanism)) if type(loss) is SquaredDistance else None
        return None if within is None else float(mechanism.attrs["expected_loss"]) + within
    if mechanism.sizes["report"] < 2 or "report_x" not in mechanism.coords:
        return None
    around = mechanism["around_row"].values if "around_row" in mechanism else None
    domain, reports = stored_domain(mechanism), _places(mechanism, "report")
    cost = position_cost(loss, mechanism["prior"].values, domain, reports, around)
    return None if cost is None else total_cost(mechanism["mass"].values, cost)


@dataclass(frozen=True, kw_only=True, eq=False)
class AdversaryError(ReprMixin):
    """The error of the best estimate of an adversary and what is proved of it.

    Attributes
    ----------
    value : float
        Expected error of `estimates`, in units (squared units for "squared").
    lower_bound : float
        No estimate errs less, to rounding.
    estimates : (m, k) array
        The point that is guessed at each report.
    chance : (m,) array
        P(y) under the prior.

    Examples
    --------
    >>> found = md.utility.adversary_error(md.baselines.exponential(md.load_problem("line", cells=4)))
    >>> found.lower_bound <= found.value
    True
    """

    value: float
    lower_bound: float
    estimates: Array
    chance: Array


@validated
def adversary_error(mechanism: xr.Dataset, loss: str = "distance", *, prior: ArrayLike | None = None) -> AdversaryError:
    """The least expected error of an adversary who knows the prior and the mechanism.

    Parameters
    ----------
    mechanism : xarray.Dataset
        A table or a factored mechanism, whose integers are taken.
    loss : {"distance", "squared"}
        What the adversary's error is.
    prior : (n,) array
        By default the one of the mechanism.

    Returns
    -------
    AdversaryError
        The error, its lower bound and the estimates.

    Raises
    ------
    InputError
        For another loss or a prior that is none.
    UnsuitableError
        For graph nodes, which have no place.
    SizeError
        Where about twelve tables do not fit.

    Notes
    -----
    Cost: O(n m) for "squared", for "distance" O(n^2 m) and at most 300 passes of O(n m).

    References
    ----------
    Andrés et al. 2013, section 3; Vardi & Zhang 2000.

    Examples
    --------
    >>> mechanism = md.baselines.constant(md.load_problem("line", cells=4))
    >>> round(md.utility.adversary_error(mechanism, "squared").value, 6)
    1.25
    """
    known = {name: one.code for name, one in LOSSES.items() if one.code in (SQUARE, LENGTH)}
    if loss not in known:
        raise InputError("unknown loss", field="loss", value=loss, remedy="use " + " or ".join(known))
    if '"nodes"' in mechanism.attrs["domain"]:
        raise UnsuitableError("nodes of a graph have no place", field="mechanism")
    points, rows = stored_points(mechanism, "secret"), rows_of(mechanism)
    require_memory(rows.secrets, rows.reports, tables=12, what="the estimates of an adversary")
    belief = check_prior(mechanism["prior"].values if prior is None else prior, len(points))
    joint = belief[:, None] * drawn_rows(mechanism)
    chance = joint.sum(axis=0)
    posterior = np.where(chance > 0, joint, belief[:, None]) / np.where(chance > 0, chance, 1.0)
    if known[loss] == SQUARE:
        return _mean_error(points, posterior, chance)
    return _median_error(points, posterior, chance)


def _mean_error(points: Array, posterior: Array, chance: Array) -> AdversaryError:
    """The posterior variances: the mean is the best estimate, so the bound is attained."""
    estimates = posterior.T @ points
    square = ((points[:, None, :] - estimates[None, :, :]) ** 2).sum(axis=2)
    value = float((posterior * square).sum(axis=0) @ chance)
    return AdversaryError(value=value, lower_bound=value, estimates=estimates, chance=chance)


def _median_error(points: Array, posterior: Array, chance: Array) -> AdversaryError:
    """Weiszfeld from the best place of every report; the best point that was met is kept."""
    between = np.sqrt(((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2))
    at = points[(between @ posterior).argmin(axis=0)]
    scale = float(between.max())
    best, least, bound = at, np.full(len(at), np.inf), np.zeros(len(at))
    for _ in range(_ITERATIONS):
        error, slope, following, farthest = _weiszfeld(points, posterior, at)
        better = error < least
        best, least = np.where(better[:, None], at, best), np.where(better, error, least)
        bound = np.maximum(bound, error - slope * farthest)
        moved = np.abs(following - at).max()
        at = following
        if moved <= _SETTLED * scale:
            break
    return AdversaryError(value=float(least @ chance), lower_bound=float(bound @ chance), estimates=best, chance=chance)


def _weiszfeld(points: Array, posterior: Array, at: Array) -> tuple[Array, Array, Array, Array]:
    """At every estimate (m, k): its error, the length of the least subgradient, the next estimate, the farthest place.

    At a place with probability w the pull R of the others counts only beyond w: the least subgradient has length
    max(0, |R| - w), and the next estimate is that share of the way to Weiszfeld's.
    """
    offset = points[:, None, :] - at[None, :, :]
    distance = np.sqrt((offset**2).sum(axis=2))
    there = distance == 0
    weight = np.where(there, 0.0, posterior / np.where(there, 1.0, distance))
    pull = (weight[:, :, None] * offset).sum(axis=0)
    force, own = np.sqrt((pull**2).sum(axis=1)), np.where(there, posterior, 0.0).sum(axis=0)
    slope = np.maximum(force - own, 0.0)
    share = slope / np.where(force > 0, force, 1.0)
    total = weight.sum(axis=0)
    following = at + share[:, None] * pull / np.where(total > 0, total, 1.0)[:, None]
    return (posterior * distance).sum(axis=0), slope, following, distance.max(axis=0)


def remap_targets(mechanism: xr.Dataset) -> NDArray[np.int64]:
    """For every report y the report z of least posterior expected loss, shape (m,); y itself on ties.

    Cost: O(n m^2).
    """
    return _best_replacements(mechanism)[0]


def _best_replacements(mechanism: xr.Dataset) -> tuple[NDArray[np.int64], float]:
    """The targets, and the expected loss with them."""
    return best_reports(mechanism["mass"].values / float(ROW_SUM), _cost(mechanism, loss_matrix(mechanism)))


@validated
def bayes_remap(mechanism: xr.Dataset) -> xr.Dataset:
    """The mechanism whose reports are read as their best estimates under the prior: same claim, same edges.

    Columns are merged; reports that nothing maps to are left out. The ratio is that of the merged columns, which may
    be smaller. The multipliers and the lower bound belong to the original reports and are dropped.

    Parameters
    ----------
    mechanism : xarray.Dataset
        A table.

    Returns
    -------
    xarray.Dataset
        The remapped mechanism; its expected loss is no larger.

    References
    ----------
    Koufogiannis & Pappas 2016, end of section IV.

    Examples
    --------
    >>> mechanism = md.baselines.exponential(md.load_problem("line", cells=4))
    >>> remapped = md.utility.bayes_remap(mechanism)
    >>> remapped.attrs["expected_loss"] <= mechanism.attrs["expected_loss"]
    True
    """
    target = remap_targets(mechanism)
    reports, place = np.unique(target, return_inverse=True)
    mass = np.zeros((mechanism.sizes["secret"], len(reports)), np.uint64)
    np.add.at(mass.T, place, mechanism["mass"].values.T)
    remapped = mechanism.isel(report=reports).drop_vars(["dual", "multiplier"], errors="ignore")
    remapped = remapped.assign(mass=(("secret", "report"), mass, mechanism["mass"].attrs))
    attrs = {key: value for key, value in remapped.attrs.items() if key not in _OF_THE_ORIGINAL}
    attrs["program"] = f"{mechanism.attrs['program']}, remapped"
    remapped.attrs = attrs
    remapped.attrs["expected_loss"] = mechanism_loss(remapped)
    scale = float(mechanism.attrs["scale"])
    remapped.attrs["ratio"] = scale * min(max_log_ratio(mass, stored_edges(mechanism)).value, 1.0)
    return seal(remapped)


@validated
def remapped_loss(mechanism: xr.Dataset) -> float:
    """The expected loss after `bayes_remap`, in loss units.

    Parameters
    ----------
    mechanism : xarray.Dataset
        A table.

    Returns
    -------
    float
        In loss units.

    Notes
    -----
    Cost: O(n m^2).

    Examples
    --------
    >>> mechanism = md.baselines.exponential(md.load_problem("line", cells=4))
    >>> md.utility.remapped_loss(mechanism) <= md.utility.mechanism_loss(mechanism)
    True
    """
    return _best_replacements(mechanism)[1]

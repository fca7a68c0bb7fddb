"""The expected loss of a stored mechanism, recomputed from its integers under the stored prior."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Matrix, Vector
from mechdesign.base.validation import validate_call
from mechdesign.errors import VerificationError
from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.mechanism.figures import total_cost
from mechdesign.mechanism.mechanism_file import stored_domain
from mechdesign.mechanism.sampler import rows_of
from mechdesign.mechanism.schema import stored_points
from mechdesign.problem.domain import Domain
from mechdesign.problem.losses import LOSSES, Distance, Loss, SquaredDistance, TableLoss
from mechdesign.problem.position_loss import CENTRE_WEIGHTS, claim_cost, claim_losses, position_cost

if TYPE_CHECKING:
    import xarray as xr


def drawn_rows(mechanism: xr.Dataset, secrets: ArrayLike | None = None) -> Matrix:
    """P(y|u) (b, m) in floating point as `Sampler` draws for secrets (b,), all by default; the table is not proved."""
    # With a claim about positions a cell has the mean of its nine rows, with weights 1/8, 3/4, 1/8 along either axis.
    cells = np.arange(mechanism.sizes["secret"]) if secrets is None else np.asarray(secrets, np.int64)
    if "mass" not in mechanism:
        return rows_of(mechanism).probabilities(cells)
    mass = mechanism["mass"].values
    if "around_row" not in mechanism:
        return np.asarray(mass[cells] / float(ROW_SUM))
    # The nine rows are added in a fixed order, so the mean has the same bits on every machine.
    neighbours = mechanism["around_row"].values[cells]
    mean = np.zeros((len(cells), mass.shape[1]))
    for row, weight in zip(neighbours.T, CENTRE_WEIGHTS.tolist(), strict=True):
        mean += weight * (mass[row] / float(ROW_SUM))
    return mean


def loss_matrix(mechanism: xr.Dataset) -> Matrix:
    """l(u, y) (n, m) of a mechanism: rebuilt from its coordinates, or the stored table."""
    name = mechanism.attrs["loss"]
    if name == TableLoss.name:
        return np.asarray(mechanism["loss_table"].values, float)
    if name not in LOSSES:
        raise VerificationError("unknown loss: this file was written by another version", field="loss", value=name)
    secrets, reports = (_places(mechanism, dim) for dim in ("secret", "report"))
    return LOSSES[name].matrix(secrets, reports)


@validate_call
def mechanism_loss(mechanism: xr.Dataset) -> float:
    """The expected loss of a mechanism under the stored prior.

    Losses are from centres of cells; with a claim about positions from the true position, if that mean is known.

    Parameters
    ----------
    mechanism : xarray.Dataset
        A table.

    Returns
    -------
    float, in loss units

    Examples
    --------
    >>> round(md.utility.mechanism_loss(md.baselines.constant(md.load_problem("discrete", secrets=4))), 6)
    0.75
    """
    return total_cost(mechanism["mass"].values, table_cost(mechanism, loss_matrix(mechanism)))


def table_cost(mechanism: xr.Dataset, matrix: Matrix, loss: Loss | None = None) -> Matrix:
    """`claim_cost` (n, m) of a table, from the losses between centres (n, m); `loss` defaults to that of the file."""
    if loss is None:
        loss = LOSSES.get(mechanism.attrs["loss"]) or TableLoss(values=matrix)
    neighbours = mechanism["around_row"].values if "around_row" in mechanism else None
    domain, reports = stored_domain(mechanism), _places(mechanism, "report")
    return claim_cost(loss, matrix, mechanism["prior"].values, domain, reports, neighbours)


def constant_loss(mechanism: xr.Dataset) -> float:
    """Expected loss of the best constant report under the stored prior, in loss units."""
    return float((mechanism["prior"].values @ loss_matrix(mechanism)).min())


@validate_call
def expected_distance(mechanism: xr.Dataset) -> float | None:
    """Mean Euclidean distance from the secret, or from the true position with a claim about positions, to the report.

    Parameters
    ----------
    mechanism : xarray.Dataset
        A table.

    Returns
    -------
    float, in units of length, or None if reports have no coordinates

    Examples
    --------
    >>> md.utility.expected_distance(md.baselines.constant(md.load_problem("discrete", secrets=3))) is None
    True
    """
    distance = report_distances(mechanism)
    if distance is None:
        return None
    return total_cost(mechanism["mass"].values, table_cost(mechanism, distance, Distance()))


def mean_distances(mechanism: xr.Dataset) -> Vector | None:
    """The terms (n,) of `expected_distance`, one for each secret: its mean distance to the report; None as there."""
    domain, table = stored_domain(mechanism), rows_of(mechanism).probabilities(np.arange(mechanism.sizes["secret"]))
    if "mass" not in mechanism:
        return np.asarray((table * domain.euclidean_to(domain)).sum(axis=1)) if domain.kind != "nodes" else None
    distance = report_distances(mechanism)
    if distance is None:
        return None
    neighbours = mechanism["around_row"].values if "around_row" in mechanism else None
    return claim_losses(Distance(), distance, table, domain, _places(mechanism, "report"), neighbours)


def report_distances(mechanism: xr.Dataset) -> Matrix | None:
    """|u - y| (n, m) in units of length; None for graph nodes, and for reports in another unit or with other axes."""
    secrets, reports = _places(mechanism, "secret"), _places(mechanism, "report")
    is_comparable = (secrets.unit, secrets.dimension) == (reports.unit, reports.dimension)
    # Nodes of a graph are stored with numbers for coordinates, whose differences are not lengths.
    is_ordered = '"ordered": true' in mechanism.attrs["domain"]
    if ('"nodes"' in mechanism.attrs["domain"] and not is_ordered) or not is_comparable:
        return None
    return Distance().matrix(secrets, reports)


def _places(mechanism: xr.Dataset, dim: str) -> Domain:
    points = stored_points(mechanism, dim)
    if len(points) > 1:
        return Domain(kind="points", points=points, unit=mechanism[f"{dim}_x"].attrs["units"])
    # `Domain` refuses a single place, but the constant mechanism has a single report.
    place = object.__new__(Domain)
    for field, value in (("kind", "points"), ("points", points), ("unit", mechanism[f"{dim}_x"].attrs["units"])):
        object.__setattr__(place, field, value)
    return place


@validate_call
def position_loss(mechanism: xr.Dataset) -> float | None:
    """Mean loss to the true position, uniform in its cell, under the stored prior; in loss units."""
    # None if `position_cost` has no such mean, and for factored mechanisms unless the loss is the squared distance.
    loss = LOSSES.get(mechanism.attrs["loss"])
    if loss is None:
        return None
    if "mass" not in mechanism:
        # |u + t - y|^2 has the mean |u - y|^2 + E|t|^2 over a cell, whatever the report: no table is needed.
        within = loss.within_cell(stored_domain(mechanism)) if type(loss) is SquaredDistance else None
        return None if within is None else float(mechanism.attrs["expected_loss"]) + within
    if mechanism.sizes["report"] < 2 or "report_x" not in mechanism.coords:
        return None
    neighbours = mechanism["around_row"].values if "around_row" in mechanism else None
    domain, reports = stored_domain(mechanism), _places(mechanism, "report")
    cost = position_cost(loss, mechanism["prior"].values, domain, reports, neighbours)
    return None if cost is None else total_cost(mechanism["mass"].values, cost)

"""Expected loss of a stored mechanism, recomputed from its integers."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.arguments import asked
from mechdesign.errors import VerificationError
from mechdesign.mechanism.table.dataset import expected_loss, stored_points
from mechdesign.setting.objective.losses import LOSSES, Distance, TableLoss
from mechdesign.setting.space.domain import Domain


def loss_matrix(mechanism: xr.Dataset) -> NDArray[np.float64]:
    """l(u, y) (n, m) of a mechanism: rebuilt from its coordinates, or the stored table where the loss is one.

    Raises: VerificationError for an unknown loss.
    """
    name = mechanism.attrs["loss"]
    if name == TableLoss.name:
        return np.asarray(mechanism["loss_table"].values, float)
    if name not in LOSSES:
        raise VerificationError("unknown loss", field="loss", value=name, remedy="use a file written by this version")
    secrets, reports = (_places(mechanism, dim) for dim in ("secret", "report"))
    return LOSSES[name].matrix(secrets, reports)


@asked
def mechanism_loss(mechanism: xr.Dataset) -> float:
    """Expected loss under the stored prior, in loss units."""
    return expected_loss(mechanism["mass"].values, mechanism["prior"].values, loss_matrix(mechanism))


def constant_loss(mechanism: xr.Dataset) -> float:
    """Expected loss of the best constant report under the stored prior, in loss units."""
    return float((mechanism["prior"].values @ loss_matrix(mechanism)).min())


@asked
def expected_distance(mechanism: xr.Dataset) -> float | None:
    """Mean Euclidean distance from secret to report, in units of length; None where `report_distances` has none."""
    distance = report_distances(mechanism)
    if distance is None:
        return None
    return expected_loss(mechanism["mass"].values, mechanism["prior"].values, distance)


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

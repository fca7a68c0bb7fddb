"""The loss of a stored mechanism to the true position, uniform in its cell, beside that to the centre of the cell."""

from __future__ import annotations

import xarray as xr

from mechdesign.base.arguments import asked
from mechdesign.mechanism.stored import stored_domain
from mechdesign.mechanism.table.dataset import stored_points, total_cost
from mechdesign.setting.objective.losses import LOSSES, SquaredDistance
from mechdesign.setting.objective.true_position import position_cost
from mechdesign.setting.space.domain import Domain


@asked
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
    around = mechanism["around_row"].values if "around_row" in mechanism else None
    reports = _reports(mechanism)
    if reports is None:
        return None
    cost = position_cost(loss, mechanism["prior"].values, stored_domain(mechanism), reports, around)
    return None if cost is None else total_cost(mechanism["mass"].values, cost)


def _reports(mechanism: xr.Dataset) -> Domain | None:
    """The reports as bare places; None where they lie nowhere, or there is one alone."""
    points = stored_points(mechanism, "report")
    if len(points) < 2 or "report_x" not in mechanism.coords:
        return None
    return Domain(kind="points", points=points, unit=mechanism["report_x"].attrs["units"])

"""Views of a mechanism for looking at: probabilities in floating point, and values over the axes of a grid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.base.validation import validate_call
from mechdesign.errors import InputError
from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.problem.domain import AXES

_MAX_NODES_PER_PLACE = 20  # of the lattice; places that fill less of it are not a grid


@validate_call
def probabilities(mechanism: xr.Dataset) -> xr.DataArray:
    """The probabilities P(y|u) = mass / 2^62 in floating point: to look at, never to certify.

    Parameters
    ----------
    mechanism : xarray.Dataset
        A table.

    Returns
    -------
    xarray.DataArray over (secret, report)

    Examples
    --------
    >>> mechanism = md.baselines.randomized_response(md.load_problem("discrete", secrets=3))
    >>> float(md.probabilities(mechanism).sum())
    3.0
    """
    if "mass" not in mechanism:
        remedy = "use md.factored.FactoredMechanism(mechanism).probabilities(secrets)"
        raise InputError("has no table", field="mechanism", value=mechanism.attrs.get("schema"), remedy=remedy)
    return (mechanism["mass"] / float(ROW_SUM)).rename("probability").assign_attrs(units="1")


@validate_call
def on_grid(values: xr.DataArray) -> xr.DataArray:
    """The values over the axes of the grid, secret_y and secret_x, NaN off the mask; `.plot()` draws a map.

    Parameters
    ----------
    values : xarray.DataArray
        A variable of a mechanism, or `md.probabilities` of one.

    Returns
    -------
    xarray.DataArray with two axes of space

    Examples
    --------
    >>> mechanism = md.baselines.geometric(md.load_problem("flat", cells=3))
    >>> dict(md.on_grid(mechanism["prior"]).sizes)
    {'secret_y': 3, 'secret_x': 3}
    """
    # y before x, as pictures have rows of x.
    parts = {str(dim): [f"{dim}_{a}" for a in reversed(AXES) if f"{dim}_{a}" in values.coords] for dim in values.dims}
    parts = {dim: names for dim, names in parts.items() if len(names) > 1}
    if not parts:
        raise InputError("has no places on two axes", field="values", value=f"dims {values.dims}")
    # unstack drops the units of coordinates.
    units = {name: values[name].attrs for names in parts.values() for name in names}
    for dim, names in parts.items():
        if math.prod(len(np.unique(values[name])) for name in names) > _MAX_NODES_PER_PLACE * values.sizes[dim]:
            raise InputError("the places are not a grid", field="values", value=f"{values.sizes[dim]} places")
        values = values.set_index(dict[Any, Any]({dim: names})).unstack(dim)
    for name, attrs in units.items():
        values[name].attrs.update(attrs)
    return values

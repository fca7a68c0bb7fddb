"""Grid mapping: the coordinate system of a Dataset on Earth, as CF Conventions (section 5.6) and GDAL write it.

The coordinate `spatial_ref` of a Dataset in memory repeats the plane of its attribute `domain`. A file has only the
attribute, so it cannot name another system. `load` makes the coordinate, and the schema refuses a different one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mechdesign.base.units import METRES
from mechdesign.errors import MechdesignError
from mechdesign.problem.plane import Plane

if TYPE_CHECKING:
    import xarray as xr

GRID_MAPPING = "spatial_ref"  # the default name of rioxarray
_SEMI_MAJOR_AXIS, _INVERSE_FLATTENING = 6_378_137.0, 298.257223563  # of WGS 84


def grid_mapping(plane: Plane) -> xr.Variable:
    """The variable without a dimension whose attributes are the coordinate system of a plane, in its unit."""
    import xarray as xr

    return xr.Variable((), np.int64(0), _attributes(plane))


def described_grid_mapping(attrs: Mapping[Any, Any]) -> xr.Variable | None:
    """The grid mapping of a Dataset from its attributes, which are untrusted; None without a plane."""
    try:
        domain = json.loads(attrs["domain"])
        return grid_mapping(Plane.from_description(domain["plane"], domain["unit"]))
    except (KeyError, TypeError, ValueError, RecursionError, MechdesignError):
        return None


def _attributes(plane: Plane) -> dict[str, Any]:
    return {
        "grid_mapping_name": "azimuthal_equidistant",
        "latitude_of_projection_origin": plane.latitude,
        "longitude_of_projection_origin": plane.longitude,
        "false_easting": 0.0,
        "false_northing": 0.0,
        "semi_major_axis": _SEMI_MAJOR_AXIS,
        "inverse_flattening": _INVERSE_FLATTENING,
        "spatial_ref": _well_known_text(plane),
    }


def _well_known_text(plane: Plane) -> str:
    """The system in the form of GDAL, which also names the unit of length."""
    degrees = (
        f'GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",{_SEMI_MAJOR_AXIS:.0f},{_INVERSE_FLATTENING!r}]],'
        'PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]]'
    )
    parameters = {
        "latitude_of_center": plane.latitude,
        "longitude_of_center": plane.longitude,
        "false_easting": 0.0,
        "false_northing": 0.0,
    }
    listed = ",".join(f'PARAMETER["{name}",{float(value)!r}]' for name, value in parameters.items())
    unit = f'UNIT["{plane.unit}",{float(METRES[plane.unit])!r}]'
    return f'PROJCS["plane",{degrees},PROJECTION["Azimuthal_Equidistant"],{listed},{unit}]'

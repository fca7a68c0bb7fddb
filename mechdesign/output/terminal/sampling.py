"""What `mechdesign sample` says: reports as cells, with no more digits than a cell has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.errors import InputError, SizeError
from mechdesign.mechanism.compact.map import CompactMap
from mechdesign.mechanism.sampling.sampler import Sampler
from mechdesign.mechanism.table.dataset import stored_points
from mechdesign.output.terminal.printing import note, print_table
from mechdesign.setting.space.domain import AXES, Domain
from mechdesign.setting.space.locate import (
    identifying_digits,
    place_of_degrees,
    place_on_earth,
    refuse_degrees,
    rounded,
)
from mechdesign.solvers.kernels.progress import Reported
from mechdesign.verification.map_sampler import MapSampler

MOST = 1_000_000  # reports of one document: half a gigabyte


def sample_document(
    mechanism: xr.Dataset | CompactMap,
    *,
    at: Sequence[float] | None = None,
    degrees: tuple[float | None, float | None] = (None, None),
    secret: int | None = None,
    count: int = 1,
    seed: int | None = None,
    on_progress: Callable[[Reported], None] | None = None,
) -> dict[str, Any]:
    """`count` reports for the place `at` (in the unit of the domain), for degrees (east, north) where the domain has a
    plane, or for the number `secret`: one of the three. A mechanism with a claim about positions draws for that very
    place, for a secret at its centre; another one, and a compact map, for the cell that it is in. on_progress, called
    with where the verification of a compact map stands.

    One report without a seed is drawn by the guarded scan (`Sampler.report`), others from alias tables.
    Returns: reports, report_x, report_y, report_z as far as there are, report_longitude and report_latitude
        where degrees were given, unit, bits, claim, cost. Coordinates are
        those of the cells, to a tenth of a cell: further digits would only look precise. The secret is not there: a
        document that says what was protected protects nothing.
    Raises: VerificationError for a mechanism that is not certified; InputError for a place that is not there;
        SizeError for more than a million reports.
    """
    if count > MOST:
        raise SizeError(
            f"at most {MOST:,} reports are written at a time",
            field="n",
            value=count,
            remedy="draw fewer, or use md.sample in Python",
        )
    longitude, latitude = degrees
    asked = sum(given is not None for given in (at, secret, longitude))
    if (longitude is None) != (latitude is None) or asked != 1:
        raise InputError(
            "one place is needed",
            field="at",
            value=f"{asked} places, or half a one" if asked else "none",
            remedy="pass --at X Y, --lon E --lat N, or --secret N",
        )
    sampler: Sampler | MapSampler
    if isinstance(mechanism, CompactMap):
        sampler = MapSampler(mechanism, on_progress=on_progress)
        domain, placed = mechanism.domain, mechanism.domain.points
    else:
        sampler = Sampler(mechanism=mechanism)
        domain, placed = sampler.admission.domain, _report_points(mechanism)
    if at is not None and len(at) == domain.dimension:
        refuse_degrees(domain, np.array([at]), surely=False)
    if longitude is not None and latitude is not None:
        place_of_degrees(domain, longitude, latitude)
        at = place_on_earth(domain, longitude, latitude)
    if isinstance(sampler, Sampler) and count == 1 and seed is None:
        drawn = sampler.report(secret, at=at)
    else:
        drawn = sampler.sample(secret, count, at=at, seed=seed)
    axes = [a for a in AXES if f"report_{a}" in drawn.coords]
    digits = identifying_digits(placed)
    coordinates = {
        f"report_{a}": [rounded(x, kept) for x in np.ravel(drawn[f"report_{a}"].values).tolist()]
        for a, kept in zip(axes, digits, strict=True)
    }
    if longitude is not None:
        coordinates |= _degrees(domain, placed[np.ravel(drawn.values)])
    return {
        "reports": np.ravel(drawn.values).tolist(),
        **coordinates,
        "unit": drawn[f"report_{axes[0]}"].attrs["units"],
        **{name: drawn.attrs[name] for name in ("bits", "claim", "cost")},
    }


def print_sample(drawn: Mapping[str, Any], *, verbose: bool = False) -> None:
    """Reports, a line each, on stdout; bits and cost on stderr, and the claim if `verbose`."""
    columns = [name for name in drawn if name.startswith("report_")]
    unit = "" if drawn["unit"] == "1" else f" [{drawn['unit']}]"
    units = {"report_longitude": " [degree east]", "report_latitude": " [degree north]"}
    lines = zip(drawn["reports"], *(drawn[name] for name in columns), strict=True)
    print_table(
        ["report", *(name + units.get(name, unit) for name in columns)],
        [[f"{value:.15g}" if isinstance(value, float) else str(value) for value in line] for line in lines],
    )
    for name in ("bits", "cost", *(["claim"] if verbose else [])):
        note(f"{name}: {drawn[name]}")


def _report_points(mechanism: xr.Dataset) -> NDArray[np.float64]:
    """Coordinates (m, k) of the reports."""
    return stored_points(mechanism, "report" if "report_x" in mechanism.coords else "secret")


def _degrees(domain: Domain, points: NDArray[np.float64]) -> dict[str, list[float]]:
    """Longitudes and latitudes of reports, to a tenth of a cell, or of the least distance between two places."""
    assert domain.plane is not None
    longitude, latitude = domain.plane.backward(points)
    kept = domain.plane.decimals(domain.spacing)
    return {
        "report_longitude": [rounded(x, kept) for x in longitude.tolist()],
        "report_latitude": [rounded(x, kept) for x in latitude.tolist()],
    }

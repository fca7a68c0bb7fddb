"""Shares of the posterior in one disc after a report of a blur where people live, by reweighting its displacements.

For positions spread evenly, the position given a report at y is y - s, s a displacement. People of density g give it
the weight g(y - s). So over displacements s_i, a disc about c has the share

    share(y, c) = sum_i g(y - s_i) [|y - s_i - c| <= R] / sum_i g(y - s_i).                                     (1)

Some s_i choose c, others count. (1) assumes one law of displacements at all positions, as if a grid lay at random.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.base.arrays import Points, Vector
from mechdesign.base.log import log_note
from mechdesign.base.validation import validate_call
from mechdesign.blurs.audit import BlurAudit
from mechdesign.blurs.disc_audit import FINE, cell_sums, disc_kernel
from mechdesign.errors import InputError
from mechdesign.geo.georeferenced import raster_on
from mechdesign.geo.people import read_people
from mechdesign.problem.columns import Columns
from mechdesign.problem.domain import Domain
from mechdesign.problem.plane import Plane
from mechdesign.problem.tables import Note

WINDOW = 10_000.0  # m: half the side of the square of true positions
_REPORTS, _CENTRES, _MOVES = 200, 40, 2  # reports, and discs that are tried for each: shares vary by some 0.02
_RASTERS = (".tif", ".tiff", ".nc", ".asc")


@validate_call
def blur_disc_shares(
    audit: BlurAudit, path: str | Path, *, columns: Columns = None, crs: str | None = None, on_note: Note = log_note
) -> dict[str, Any]:
    r"""Shares of the posterior in one disc for an adversary who knows where people live, within 10 km of the place.

    Parameters
    ----------
    audit : BlurAudit
        Of `audit_blur`, whose displacements and disc count.
    path : str or Path
        CSV of latitude, longitude and population, or a raster (GeoTIFF, NetCDF, ESRI ASCII) of the population.
    columns, crs, on_note
        As for `md.geo.read_people`.

    Returns
    -------
    dict
        The `radius` in m, and the largest share of people in one disc, `before` a report. Over reports of people the
        mean `share` of the best disc, its `median`, and the share that one report in ten exceeds, `one_in_ten`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> audit = md.blurs.audit_blur(lambda lat, lon: (round(lat, 2), round(lon, 2)), draws=100)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "village.csv"
    ...     _ = path.write_text("latitude,longitude,population\n41.9,12.5,1000\n")
    ...     shares = md.blurs.blur_disc_shares(audit, path)
    >>> shares["before"] < shares["share"]
    True
    """
    steps = audit.displacements[:, ::-1]  # to the east, to the north, as the plane has them
    side = math.ceil((WINDOW + 2 * float(np.hypot(*steps.T).max())) / FINE)
    plane = Plane(latitude=audit.latitude, longitude=audit.longitude)
    domain = Domain.grid((2 * side, 2 * side), cell=FINE, unit="m", origin=-side * FINE, plane=plane)
    is_raster = Path(path).suffix.lower() in _RASTERS
    if is_raster:
        raster = raster_on(domain, path, crs=crs, on_note=on_note)
    else:
        raster = read_people(path, domain, columns=columns, crs=crs, on_note=on_note).density

    def density(points: Points) -> Vector:
        return np.where(raster.outside(points), 0.0, np.maximum(np.nan_to_num(raster.nearest(points)), 0.0))

    persons = density(domain.points) * (np.abs(domain.points).max(axis=1) <= WINDOW)
    if not persons.any():
        raise InputError("has no people within 10 km", field="people", value=path, remedy="choose another --at")
    rng = np.random.default_rng(0)
    homes = domain.points[rng.choice(len(persons), _REPORTS, p=persons / persons.sum())]
    drawn, chosen, counted = (steps[k::3] for k in range(3))
    reports = homes + rng.uniform(-FINE / 2, FINE / 2, homes.shape) + drawn[rng.integers(0, len(drawn), _REPORTS)]
    shares = np.array([_best_share(report, chosen, counted, density, audit.disc, rng) for report in reports])
    sums = cell_sums(persons.reshape(2 * side, 2 * side), disc_kernel(audit.disc))
    shares = shares[np.isfinite(shares)]
    if len(shares) < _REPORTS / 2:
        message = "live where few displacements end; use people of a wider area, or more even ones"
        raise InputError(message, field="people", value=path)
    median, high = np.quantile(shares, [0.5, 0.9])
    return {
        "radius": audit.disc,
        "before": float(sums.max() / persons.sum()),
        "share": float(shares.mean()),
        "median": float(median),
        "one_in_ten": float(high),
    }


def _best_share(
    report: Vector, chosen: Points, counted: Points, density: Any, disc: float, rng: np.random.Generator
) -> float:
    """(1) of one report (2,), with the disc that is the best for the chosen displacements."""
    places, others = report - chosen, report - counted
    weights, others_weights = density(places), density(others)
    if not weights.any() or not others_weights.any():
        return math.nan
    centres = places[rng.choice(len(places), _CENTRES, p=weights / weights.sum())]
    for _ in range(_MOVES):
        inside = weights[:, None] * (np.hypot(*(places[:, None] - centres).transpose(2, 0, 1)) <= disc)
        sums = inside.sum(axis=0)
        best = centres[int(np.argmax(sums))]
        # The mean of the people in a disc is the centre of one that usually has more.
        centres = inside.T @ places / sums[:, None]
    return float(others_weights @ (np.hypot(*(others - best).T) <= disc) / others_weights.sum())

r"""Which neighbourhood am I in? A query with few answers over Greater Philadelphia's density and privacy map.

    secrets   the centres of cells x cells squares over [0, extent]^2, to which the map is re-parametrised
    query     q(u), the label of the place u
    eps(u)    1e-4 * density(u) + 0.4, in nats per unit; density in persons per km^2
    metric    eikonal: shortest paths of the stencil graph with line integrals of eps as lengths
    prior     proportional to the density at the cell centres
    loss      the share of wrong answers, or the distance to the nearest place of the answer

Claim: ours. The labels are constructed, not real neighbourhoods: a place belongs to the nearest of `labels`
centres, and centre k lies at extent * (frac(1/2 + 0.754878 k), frac(1/2 + 0.569840 k)), k = 1, 2, ... (the plastic
number's sequence, which spreads evenly). The extent sets how private an answer is: at extent 100, as in Koufogiannis &
Pappas 2016, a neighbourhood is five times as many nats wide, and answers are hardly ever wrong.
"""

from pathlib import Path

import numpy as np

from mechdesign import DesignProblem, Domain, Eikonal, PrivacyLevel, priors
from mechdesign.base.memory import require_memory
from mechdesign.base.validation import check_positive, check_whole
from mechdesign.errors import InputError
from mechdesign.losses import Query, query_problem
from mechdesign.read import raster as read_raster

SHIPPED = Path(__file__).parent / "data" / "philadelphia_density_2000.asc"
STEP = np.array([0.7548776662466927, 0.5698402909980532])  # 1/p and 1/p^2 for the real root p of p^3 = p + 1


def problem(
    cells: int = 20,
    labels: int = 6,
    stencil: int = 8,
    extent: float = 20.0,
    loss: str = "zero-one",
    label_map: str = "constructed",
) -> DesignProblem:
    """The design problem.

    Parameters: cells per side; labels, the number of constructed neighbourhoods; stencil 4, 8, 16, 32 or 64; extent,
    the side of the square that the map is stretched to; loss, zero-one or distance; label_map, a file of integers
    (ESRI ASCII or NetCDF, axes in miles) that is stretched like the density, or "constructed".
    """
    check_positive(extent, "extent")
    check_whole(cells, "cells", minimum=2)
    if not 2 <= labels <= cells**2:
        raise InputError("must be at least 2 and at most the number of cells", field="labels", value=labels)
    density = read_raster(SHIPPED, unit="mi").stretch(extent, extent)
    domain = Domain.grid((cells, cells), cell=extent / cells, unit="1")
    if label_map == "constructed":
        require_memory(domain.size, labels, tables=6, noun="the table of losses")
        centres = extent * ((0.5 + np.arange(1, labels + 1)[:, None] * STEP) % 1.0)
        squared_distance = ((domain.points[:, None, :] - centres) ** 2).sum(axis=2)
        query = Query(labels=squared_distance.argmin(axis=1))
    else:
        query = Query.from_raster(read_raster(label_map, unit="mi").stretch(extent, extent), domain)
    return query_problem(
        domain=domain,
        metric=Eikonal(level=PrivacyLevel.affine(density, slope=1e-4, floor=0.4), stencil=stencil),
        prior=priors.proportional(density.at(domain.points), field="density"),
        query=query,
        loss=loss,  # type: ignore[arg-type]
    )

r"""Approximate location for a region: 2,000 people around every place, from the north-east of the United States.

    secrets   the centres of cells x cells squares of side `cell` about a centre in degrees, on the plane about it
    r(u)      the smallest radius from `least` to `most` that holds so many people, 1-Lipschitz (`elastic_level`)
    eps(u)    nats / r(u), per m of geodesic distance
    metric    eikonal: shortest paths of the stencil graph with line integrals of eps as lengths
    prior     proportional to the people
    loss      the distance between secret and report, in m

Claim: ours. 50,067,697 people of the census of 2020 live between 38.2 and 42.85 N and between 78 and 71.8 W; about the
default centre 1,000 cells of 500 m are New York, Philadelphia, Baltimore and the country between. Another region is
another file of the same columns (latitude, longitude, population) with its centre. Needs the extra `geo`.
"""

from pathlib import Path

from mechdesign import DesignProblem, Domain
from mechdesign.base.validation import check_whole
from mechdesign.geo import Plane, area_problem, elastic_level, read_people

SHIPPED = Path(__file__).parent / "data" / "northeast_block_groups_2020.csv.gz"


def problem(
    cells: int = 100,
    inhabitants: float = 2000.0,
    stencil: int = 16,
    latitude: float = 40.5,
    longitude: float = -74.9,
    points: str = "shipped",
    cell: float = 500.0,
    nats: float = 2.0,
    least: float = 500.0,
    most: float = 5000.0,
) -> DesignProblem:
    """The design problem.

    Parameters: cells per side; inhabitants within the radius; stencil 4, 8, 16, 32 or 64; latitude and longitude of the
    centre in degrees; points, a CSV file of latitude, longitude and population, or "shipped"; cell, least and most in
    m; nats over the radius.
    """
    check_whole(cells, "cells", minimum=2)
    plane = Plane(latitude=latitude, longitude=longitude)
    domain = Domain.grid((cells, cells), cell=cell, unit="m", origin=-cells * cell / 2, plane=plane)
    density = read_people(SHIPPED if points == "shipped" else points, domain, margin=most).density
    level = elastic_level(density, people=inhabitants, nats=nats, least=least, most=most)
    return area_problem(domain, epsilon=level, density=density, stencil=stencil, name="northeast")


def remark(problem: DesignProblem) -> str:
    """The mean error of planar Laplace noise at the one level that is safe everywhere."""
    level = float(problem.metric.smallest_level or 0.0)
    return (
        f"Planar Laplace noise at the smallest level, {1000 * level:.3g} nats per km, has a mean error of "
        f"{2 / level:,.0f} m: one level for a region must be that of its emptiest place."
    )

"""The design problem of an area on Earth: report a cell of the area, private for eps times geodesic distances.

Between positions, straight lines. What is proved of a mechanism between positions is along paths inside its cells
(mechanism/positions/patches.py), and around a river that is left out a path is longer than the straight line. So the
cells of the problem are those of the whole rectangle about the area, which holds every straight line between two of
its positions; nobody lives on those outside the area, and none of them is reported. `paths` "inside" leaves them out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.arguments import asked
from mechdesign.base.checks import check_epsilon
from mechdesign.errors import InputError
from mechdesign.setting.metric.eikonal import Eikonal
from mechdesign.setting.metric.euclidean import Euclidean
from mechdesign.setting.metric.levels import ROUND_DOWN, PrivacyLevel
from mechdesign.setting.metric.metric import Metric
from mechdesign.setting.objective import priors
from mechdesign.setting.objective.losses import named_loss
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.setting.space.domain import Domain
from mechdesign.setting.space.raster import Raster

PATHS = ("straight", "inside")
_ALL_PAIRS = 1600  # secrets up to which a Euclidean metric is checked over all pairs of rows between positions


@asked
def area_problem(
    domain: Domain,
    *,
    epsilon: float | PrivacyLevel,
    density: Raster | None = None,
    levels: Raster | None = None,
    slope: float = 0.0,
    stencil: int = 8,
    loss: str = "distance",
    positions: bool = False,
    paths: str = "straight",
    extend: bool = False,
    name: str = "area",
    parameters: Mapping[str, int | float | str] | None = None,
) -> DesignProblem:
    """The problem over a domain with a plane; the metric is on the plane, at the level that holds on the ground.

    Parameters: epsilon, in nats per unit of geodesic distance (level / radius for `level` nats within `radius`), or a
        level of two axes, per unit on the ground, that varies over the plane (`PrivacyLevel.elastic`); density, the
        prior is proportional to it, else uniform; levels and slope, for eps(u) = slope levels(u) + epsilon on the
        ground; stencil, neighbours in the metric of a level that varies, else it is Euclidean over all pairs; loss,
        its name; positions, whether the level holds for any position in a cell, and not for the centres alone; paths,
        between positions: "straight", along straight lines, with the rectangle of the area as secrets where it is none
        itself, or "inside", along paths inside the cells of the area; extend, whether density and levels go on beyond
        their rasters as at the border.
    Beyond 1,600 secrets a level between positions that is one number is an eikonal metric: all pairs of rows, which
    no report is drawn from alone, would take longer to check than the design.
    The parameters of the problem keep epsilon, of a level its smallest value around the domain, as `geodesic_epsilon`.
    Raises: InputError for a domain without a plane, places outside a raster without `extend`, levels that are not
        positive, a slope without levels, both levels and a level, a loss without a name, a density that is zero
        everywhere.
    Source: paper 004, section 3; levels that vary are paper 000's, section IV.
    """
    ground = 0.0 if isinstance(epsilon, PrivacyLevel) else check_epsilon(epsilon)
    judged = named_loss(loss)
    if paths not in PATHS:
        raise InputError("unknown paths", field="paths", value=paths, remedy="use " + ", or ".join(PATHS))
    reports = domain
    if positions and paths == "straight":
        domain = rectangle(domain)
    if (levels is None) != (slope == 0):
        raise InputError(
            "levels and slope belong together",
            field="slope",
            value=slope,
            remedy="give a raster of levels and a slope that is not 0, or neither",
        )
    if levels is not None and isinstance(epsilon, PrivacyLevel):
        raise InputError(
            "a level that varies needs no raster of levels",
            field="levels",
            value=levels.name,
            remedy="give one of them",
        )
    share = plane_level(domain, 1.0, positions=positions)
    metric: Metric
    if isinstance(epsilon, PrivacyLevel):
        around = _around(epsilon.in_unit(domain.unit), domain)
        ground = around.smallest
        raster = replace(around.raster, values=around.raster.values * share)
        metric = Eikonal(level=replace(around, raster=raster), stencil=stencil)
    elif levels is None:
        flat = plane_level(domain, ground, positions=positions)
        metric = Euclidean(epsilon=flat, unit=domain.unit)
        if positions and domain.size > _ALL_PAIRS:
            metric = Eikonal(level=PrivacyLevel.constant(flat, domain.unit), stencil=stencil)
    else:
        held = levels.in_unit(domain.unit)
        level = PrivacyLevel.affine(held, slope=slope * share, floor=ground * share, extend=extend)
        metric = Eikonal(level=level, stencil=stencil)
    weights = priors.uniform(reports) if density is None else priors.from_density(density, reports, extend=extend)
    return DesignProblem(
        domain=domain,
        metric=metric,
        prior=np.asarray(weights) if reports is domain else _spread(np.asarray(weights), reports, domain),
        loss=judged,
        reports=reports,
        name=name,
        parameters={"geodesic_epsilon": ground, **(parameters or {})},
    )


@asked
def rectangle(domain: Domain) -> Domain:
    """The smallest rectangle of cells of the lattice that holds a grid; the grid itself where it is one.

    Raises: InputError for places that are no grid.
    """
    if domain.shape is None or domain.index is None or domain.cell is None or domain.origin is None:
        raise InputError("only a grid has a lattice", field="domain", value=domain.kind, remedy="use Area.grid")
    low, high = domain.index.min(axis=0), domain.index.max(axis=0) + 1
    if domain.size == math.prod(domain.shape):
        return domain
    return Domain.grid(
        tuple((high - low).tolist()),
        cell=domain.cell,
        unit=domain.unit,
        origin=(np.asarray(domain.origin) + low * np.asarray(domain.cell)).tolist(),
        plane=domain.plane,
    )


def _spread(weights: NDArray[np.float64], domain: Domain, whole: Domain) -> NDArray[np.float64]:
    """Weights (n,) of the cells of a domain over those of its rectangle, 0 elsewhere."""
    assert domain.index is not None
    found = np.zeros(whole.size)
    found[whole.lookup[tuple((domain.index - domain.index.min(axis=0)).T)]] = weights
    return found


def _around(level: PrivacyLevel, domain: Domain) -> PrivacyLevel:
    """The level at the nodes between which the places of a domain lie: the same function there."""
    kept = []
    for nodes, at in zip(level.raster.axes, domain.points.T, strict=False):
        first = max(int(np.searchsorted(nodes, at.min(), side="right")) - 1, 0)
        kept.append(slice(first, max(int(np.searchsorted(nodes, at.max())), first) + 1))
    x, y = (nodes[part] for nodes, part in zip(level.raster.axes, kept, strict=False))
    return replace(level, raster=replace(level.raster, x=x, y=y, values=level.raster.values[tuple(kept)]))


@asked
def plane_level(domain: Domain, epsilon: float, *, positions: bool = False) -> float:
    """The level on the plane of a domain, in nats per unit, that is private for `epsilon` times geodesic distances.

    epsilon / (1 + excess), rounded down; the excess within the places or, with `positions`, their cells. Raises:
    InputError for a domain without a plane or a level not positive.
    """
    if domain.plane is None:
        raise InputError("the domain has no plane", field="domain", value=domain.kind, remedy="make it with Area.grid")
    return (
        check_epsilon(epsilon) / (1 + domain.plane.excess(domain.farthest if positions else domain.reach)) * ROUND_DOWN
    )

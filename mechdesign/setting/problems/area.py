"""The design problem of an area on Earth: report a cell of the area, private for eps times geodesic distances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

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
    extend: bool = False,
    name: str = "area",
    parameters: Mapping[str, int | float | str] | None = None,
) -> DesignProblem:
    """The problem over a domain with a plane; the metric is on the plane, at the level that holds on the ground.

    Parameters: epsilon, in nats per unit of geodesic distance (level / radius for `level` nats within `radius`), or a
        level of two axes, per unit on the ground, that varies over the plane (`PrivacyLevel.elastic`); density, the
        prior is proportional to it, else uniform; levels and slope, for eps(u) = slope levels(u) + epsilon on the
        ground; stencil, neighbours in the metric of a level that varies, else it is Euclidean over all pairs; loss,
        its name; positions, whether the level holds for any position in a cell, and not for the centres alone; extend,
        whether density and levels go on beyond their rasters as at the border.
    The parameters of the problem keep epsilon, of a level its smallest value around the domain, as `geodesic_epsilon`.
    Raises: InputError for a domain without a plane, places outside a raster without `extend`, levels that are not
        positive, a slope without levels, both levels and a level, a loss without a name, a density that is zero
        everywhere.
    Source: paper 004, section 3; levels that vary are paper 000's, section IV.
    """
    ground = 0.0 if isinstance(epsilon, PrivacyLevel) else check_epsilon(epsilon)
    judged = named_loss(loss)
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
    metric: Metric
    if isinstance(epsilon, PrivacyLevel):
        around = _around(epsilon.in_unit(domain.unit), domain)
        ground, share = around.smallest, plane_level(domain, 1.0, positions=positions)
        raster = replace(around.raster, values=around.raster.values * share)
        metric = Eikonal(level=replace(around, raster=raster), stencil=stencil)
    elif levels is None:
        metric = Euclidean(epsilon=plane_level(domain, ground, positions=positions), unit=domain.unit)
    else:
        share = plane_level(domain, 1.0, positions=positions)
        held = levels.in_unit(domain.unit)
        level = PrivacyLevel.affine(held, slope=slope * share, floor=ground * share, extend=extend)
        metric = Eikonal(level=level, stencil=stencil)
    weights = priors.uniform(domain) if density is None else priors.from_density(density, domain, extend=extend)
    return DesignProblem(
        domain=domain,
        metric=metric,
        prior=np.asarray(weights),
        loss=judged,
        name=name,
        parameters={"geodesic_epsilon": ground, **(parameters or {})},
    )


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

"""Fast marching by scikit-fmm (the extra `fmm`), made safe by a Lipschitz minorant.

A fast-marching field (Koufogiannis & Pappas 2016, section III) overshoots the privacy constraint: by 2 % at constant
eps, by a fifth to a half where eps changes steeply within a cell. Its largest 1-Lipschitz minorant on the graph does
not. The front starts where the straight line integral from the source is least beyond 1.5 cells; inside f is that
integral.
"""

from __future__ import annotations

import numpy as np

from mechdesign.base.arrays import Matrix, Vector
from mechdesign.base.optional import import_optional
from mechdesign.errors import InputError
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import Edges, lipschitz_minorant
from mechdesign.problem.privacy_level import PrivacyLevel

# Cells about the source that the front encloses. Started at one cell, order 2 returns a third of the true value at some
# neighbours.
START_RADIUS = 1.5
_INSIDE = 0.999  # the front lies between cells, never on one


def fast_marching(domain: Domain, level: PrivacyLevel, source: int) -> Vector:
    """Solve |grad f| = eps, f(source) = 0; f (n,) in nats is a metric only after `lipschitz_minorant`."""
    if domain.kind != "grid" or domain.dimension != 2 or domain.cell is None:
        raise InputError("needs a 2-D grid", field="distances", value="fast-marching", remedy="use graph distances")
    table = domain.lookup
    inside = table >= 0
    assert domain.index is not None
    offset = domain.points - domain.points[source]
    radius = START_RADIUS * max(domain.cell)
    away = np.sqrt((offset**2).sum(axis=1))
    straight = level.line_integrals(np.repeat(domain.points[source : source + 1], domain.size, axis=0), domain.points)
    if not (away > radius).any():
        return straight
    skfmm = import_optional("skfmm", "fmm")
    start = float(straight[away > radius].min()) * _INSIDE
    # The front is the zero level of this array.
    front = np.ma.masked_array(np.ones(table.shape), mask=~inside)
    front[inside] = straight - start
    # Speed 1 / eps: the time of travel is then the integral of eps.
    speed = np.ones(table.shape)
    speed[inside] = 1.0 / level.at(domain.points)
    arrival = np.ma.filled(skfmm.travel_time(front, speed, dx=list(domain.cell), order=2), np.nan)[inside]
    field = np.where(straight <= start, straight, arrival + start)
    missed = int((~np.isfinite(field)).sum())
    if missed:
        raise InputError(
            "the front does not reach every cell",
            field="mask",
            value=f"{missed} cells",
            remedy="use graph distances",
        )
    return field


def fast_marching_kernel(domain: Domain, level: PrivacyLevel, edges: Edges) -> Matrix:
    """Distances (n, n), column y the 1-Lipschitz minorant of the fast-marching field from y, in nats; not symmetric."""
    columns = [lipschitz_minorant(fast_marching(domain, level, y), edges) for y in range(domain.size)]
    return np.column_stack(columns)

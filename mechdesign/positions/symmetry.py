"""Symmetries of a program between positions: one block for all reports that a reflection or rotation exchanges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
import scipy.sparse as sp
from scipy.spatial import cKDTree

from mechdesign.base.arrays import Floats, Indices
from mechdesign.positions.program import Positions
from mechdesign.positions.spline import SplineCones
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import Edges
from mechdesign.solvers.symmetry import SAME, Turn, lattice_symmetries

Image = Callable[[Turn, Indices], Floats | None]

SYMMETRIES = 8  # of a square at most
_COST = 2.0**-38  # relative: error of a mean over positions (problem/position_loss.py) and of its sum
_UNIT = 2.0**-52
_ENTRY_UNITS = 24  # units of error of an entry of a bound: 16 at most, as a sum of fewer than 32 rounded terms >= 0
_TINY = 1e-300  # more than products lose by underflow


@dataclass(frozen=True, kw_only=True, eq=False)
class Orbits:
    """The orbits of a group of symmetries."""

    ways: list[Indices]  # renumberings (n,) of the cells, the identity first
    report_ways: list[Indices]  # renumberings (m,) of the reports by the same symmetries
    reports: Indices  # (r,), one of each orbit
    sums: sp.csr_array  # (r, n), the means over the orbits of cells
    raised: Floats  # the numbers of the constraints, each the largest of its images

    def average(self, blocks: Floats, reports: Indices) -> Floats:
        if len(self.ways) == 1:
            return blocks
        total = np.zeros((len(blocks), len(self.report_ways[0])))
        for way, report_way in zip(self.ways, self.report_ways, strict=True):
            total[np.ix_(way, report_way[reports])] += blocks
        return total / len(self.ways)


def position_orbits(program: Positions) -> tuple[Orbits, SplineCones]:
    """The orbits of a program between positions, and its cones at the raised levels."""
    level, shape = program.patches.corner_level, program.problem.domain.shape or ()
    corners = [*shape, *[2] * (2 if level.shape[1] == 4 else 4)]
    problem = program.problem
    group = orbits(
        program.cost, problem.domain, problem.reports, level, lambda turn, _: turn(level.reshape(corners)).ravel()
    )
    if np.array_equal(group.raised, level):
        return group, program.cones
    return group, Positions(program.problem, corner_level=group.raised).cones


def edge_orbits(cost: Floats, domain: Domain, reports: Domain, edges: Edges) -> tuple[Orbits, Edges]:
    """The orbits of a program with the constraints of edges alone, and the edges at the raised lengths."""
    n = domain.size

    def keys(tail: Indices, head: Indices) -> Indices:
        return np.minimum(tail, head) * n + np.maximum(tail, head)

    known = keys(edges.tail, edges.head)
    order = np.argsort(known)

    def image(_: Turn, way: Indices) -> Floats | None:
        wanted = keys(way[edges.tail], way[edges.head])
        edge = order[np.minimum(np.searchsorted(known, wanted, sorter=order), len(order) - 1)]
        return edges.length[edge] if (known[edge] == wanted).all() else None

    group = orbits(cost, domain, reports, edges.length, image)
    return group, Edges(tail=edges.tail, head=edges.head, length=group.raised)


# A convex program that a group leaves alone has an optimum that it leaves alone: P(g u, g y) = P(u, y). A symmetry of
# the lattice of cells is an affine map of the plane, which moves reports too, on or off the lattice. So one block
# x_r stands for the reports of an orbit. It lies in its own cones. The blocks, times the sizes of the orbits, satisfy
# the row sums if their means over the orbits of cells add up to 1.
# A group is chosen where a program and its images differ by 1e-7 at most. No bound rests on that (`orbits`).
def orbits(cost: Floats, domain: Domain, reports: Domain, limits: Floats, image: Image) -> Orbits:
    """The orbits of the flips and exchanges of axes that leave cost (n, m) and limits alone, to 1e-7. Cost: O(n^2)."""
    # limits are numbers of the constraints, and a larger one is at most as strict. image returns those with the cell
    # way[u] in place of u. It returns None if there are no such constraints. They are raised to the largest of their
    # images: the group leaves these alone exactly, and they are at most as strict as those of the program.
    (n, m), same = cost.shape, float(cost.max()) * SAME
    elements, report_elements, images = [], [], []
    for turn in lattice_symmetries(domain.shape, n):
        way = turn(np.arange(n).reshape(domain.shape)).ravel()
        report_way = way if reports is domain else _report_way(domain, reports, way)
        seen = image(turn, way)
        if report_way is None or seen is None or not np.allclose(seen, limits.ravel(), rtol=SAME, atol=0.0):
            continue
        if np.allclose(cost[np.ix_(way, report_way)], cost, rtol=SAME, atol=same):
            elements.append(way)
            report_elements.append(report_way)
            images.append(seen)
    # Tolerances are not transitive: near symmetries may fail to form a group, and then only the identity is used.
    if not _is_group(elements):
        elements, report_elements, images = [np.arange(n)], [np.arange(m)], [limits.ravel()]
    _, number, count = np.unique(np.min(elements, axis=0), return_inverse=True, return_counts=True)
    return Orbits(
        ways=elements,
        report_ways=report_elements,
        reports=np.unique(np.min(report_elements, axis=0)),
        sums=sp.csr_array((1 / count[number], (number, np.arange(n))), shape=(len(count), n)),
        raised=np.max(images, axis=0).reshape(limits.shape),
    )


def _report_way(domain: Domain, reports: Domain, way: Indices) -> Indices | None:
    """The renumbering (m,) of reports by the symmetry that moves cell u to way[u]; None if it moves one off them."""
    middle = domain.points.mean(axis=0)
    cells = domain.points - middle
    # Least squares over the cells finds the linear map about the middle.
    turned = (reports.points - middle) @ np.linalg.lstsq(cells, cells[way], rcond=None)[0]
    away, image = cKDTree(reports.points - middle).query(turned)
    if away.max() > SAME * domain.spacing or len(np.unique(image)) < reports.size:
        return None
    return np.asarray(image)


def row_multipliers(cost: Floats, cones: SplineCones, group: Orbits, slack: Floats) -> Floats:
    """Multipliers lambda(u) (n,), at most C(u, y) - (G' z_y)(u) for every report y, from any vectors z (3, k, r)."""
    # z is untrusted, so it is raised into the dual cones. A number that is not finite, or too large, makes the result
    # nan or minus infinity.
    # G' z is a sum of j rounded terms: its error is at most j 2^-52 times the sum of their absolute
    # values, whatever cancels. Slopes are exact; entries of bounds, which z multiplies by at least 0, add their own
    # error.
    with np.errstate(over="ignore", invalid="ignore"):
        first = np.maximum(slack[0], np.nextafter(np.hypot(slack[1], slack[2]), np.inf))
        parts = ((cones.bound, first), (cones.slope_x, slack[1]), (cones.slope_y, slack[2]))
        taken = np.sum([rows.T @ z for rows, z in parts], axis=0)
        size = np.sum([abs(rows).T @ np.abs(z) for rows, z in parts], axis=0)
        terms = np.sum([np.diff(rows.tocsc().indptr) for rows, _ in parts], axis=0)[:, None]
        over = taken + (terms + _ENTRY_UNITS) * _UNIT * size + _TINY
        multipliers = np.full(len(cost), np.inf)
        for way, report_way in zip(group.ways, group.report_ways, strict=True):
            reports = report_way[group.reports]
            # lambda(u) is the minimum over all reports, those of the other images of a block included.
            reduced = cost[np.ix_(way, reports)] * (1 - _COST) - over
            multipliers[way] = np.minimum(multipliers[way], np.nextafter(reduced.min(axis=1), -np.inf))
    return multipliers


def _is_group(ways: list[Indices]) -> bool:
    known = {way.tobytes() for way in ways}
    return bool(ways) and all(one[other].tobytes() in known for one, other in product(ways, repeat=2))

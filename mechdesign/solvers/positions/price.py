r"""What privacy between positions costs beside privacy between the centres of cells, in loss to the true position.

The program between centres is a program of cones too: P(u, y) and P(v, y) satisfy each other's bound e^d if and only if

    |P(u, y) - P(v, y)| <= tanh(d / 2) (P(u, y) + P(v, y)),

so that the method and the proof of the bound are those of `positions.py`. Its bound holds for every mechanism that is
private between centres and draws the row of the cell; under a Euclidean metric for near pairs alone, and hence for all.
A mechanism that is private between any two positions is private between centres, and as h -> 0 the two draw alike: no
mechanism on the grid does better than the bound then. On a few cells a design between positions may lie below it, for
what is drawn for a position says where in its cell it lies; the price is negative then.

At constant eps the price is of second order in eps h. Measured on 20 x 20 cells with subdivided cones, beside the
bound: 0.04, 0.19, 1.0 and 3.3 % at eps h = 0.05, 0.1, 0.25 and 0.5, so that the cell which would bring it to 1 % is
told by the square root. Where eps varies from cell to cell the price is of first order, for the slope of a spline
cannot follow it within a cell: on Philadelphia's map over 2 units 8.9, 4.5 and 2.4 % on 5, 10 and 20 cells a side, over
5 units 42, 29 and 18 % on 5, 7 and 10. |grad P| <= eps P at 25 positions of each cell alone, which any mechanism by
this spline keeps whatever its cones, costs at least 1.5 % on 20 x 20 cells over 2 units, and at 81 positions 13 % on
10 x 10 over 5.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from mechdesign.mechanism.positions.spline_cones import SplineCones
from mechdesign.programs.optimal.near_pairs import near_edges
from mechdesign.programs.optimal.positions import Positions
from mechdesign.setting.metric.euclidean import Euclidean
from mechdesign.setting.metric.shortest_paths import Edges
from mechdesign.setting.objective.true_position import position_cost
from mechdesign.solvers.kernels.pricing import sum_down
from mechdesign.solvers.positions.cone_blocks import goes, solve_cone_blocks
from mechdesign.solvers.positions.symmetry import SYMMETRIES, edge_orbits, row_multipliers

_WANTED = 0.01  # price from which a smaller cell is named


def cell_lower_bound(program: Positions, *, tolerance: float, deadline: float) -> float | None:
    """A lower bound of the loss to the true position of the program between centres; None where none was found in time
    or memory.

    Cost: `solve_cone_blocks` with one cone an edge.
    """
    problem = program.problem
    edges = near_edges(problem.edges, problem.domain) if isinstance(problem.metric, Euclidean) else problem.edges
    cones = pair_cones(edges, problem.domain.size)
    if not goes(cones, fewest := -(-problem.reports.size // SYMMETRIES), fewest):
        return None
    cost = position_cost(problem.loss, problem.prior_array, problem.domain, problem.reports)
    assert cost is not None
    group, edges = edge_orbits(cost, problem, edges)
    cones = pair_cones(edges, problem.domain.size)
    if not goes(cones, len(group.reports), group.sums.shape[0]):
        return None
    own = np.ascontiguousarray(cost[:, group.reports])
    point = solve_cone_blocks(cones, own, group.sums, tolerance=tolerance, deadline=deadline)
    if point.stopped == "time":
        return None
    found = sum_down(row_multipliers(cost, cones, group, point.slack))
    return found if found > 0 else None


def pair_cones(edges: Edges, size: int) -> SplineCones:
    """The constraints of edges as cones over a column of `size` rows."""
    count = len(edges.tail)
    rows, ends = np.tile(np.arange(count), 2), np.concatenate([edges.tail, edges.head])
    share = np.tanh(edges.length / 2) * (1 + 2.0**-40)
    shape = (count, size)
    return SplineCones(
        bound=sp.csr_array((np.tile(share, 2), (rows, ends)), shape=shape),
        slope_x=sp.csr_array((np.repeat([1.0, -1.0], count), (rows, ends)), shape=shape),
        slope_y=sp.csr_array(shape),
    )


def advised_cell(side: float, price: float, *, varies: bool) -> float | None:
    """The side of a cell at which a price falls to 1 %, of first order where the level varies, else of second; None
    where it is not above that.
    """
    if price <= _WANTED:
        return None
    return side * (_WANTED / price if varies else math.sqrt(_WANTED / price))

r"""The optimal mechanism that is private between any two positions of an area.

    minimise    E l(x, y), the sum of C * P of problem/position_loss.py
    over        P (n, n), a row per cell
    subject to  P >= 0,  sum_y P(y|u) = 1                       for every cell u
                |(slope_x P, slope_y P)(k, y)| <= (bound P)(k, y)    for every cone k of the spline and report y

The loss is to the true position x, uniform in its cell. A position draws the row of one of the 3 x 3 cells around it by
the weights of the quadratic B-spline, then a report from that row.
The cones (positions/spline.py) imply |grad P(y|x)| <= eps(x) P(y|x) at every position x, hence the claim (2) of
positions/patches.py. They are sufficient: the optimum is at least that of exact gradient constraints. P >= 0 follows.
Source: the differential form of local privacy (Koufogiannis and Pappas 2016, section II); the cones are ours.
Second-order cone programming: Boyd and Vandenberghe, Convex Optimization, section 4.4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Floats
from mechdesign.base.validation import refuse_entries
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.positions.levels import quarter_levels
from mechdesign.positions.patches import Patches, patches, square_cells
from mechdesign.positions.spline import SplineCones, spline_cones
from mechdesign.problem.position_loss import position_cost
from mechdesign.programs.program import Program
from mechdesign.programs.statements import simplex

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True, kw_only=True, eq=False)
class Positions(Program):
    """The optimal program between any two positions of square cells; see `mechdesign.positions.program`.

    Parameters
    ----------
    problem : DesignProblem
        A grid of square cells of two axes and a metric with a level.
    corner_level : (n, 4) or (n, 16) array
        Levels at the corners of each cell or of its quarters in nats per unit, by default `quarter_levels`. Low corner
        first, the last axis fastest. Their bilinear interpolant must nowhere exceed eps.

    Examples
    --------
    >>> domain = md.Domain.grid((4, 4), 1.0)
    >>> problem = md.DesignProblem(domain, md.Euclidean(1.0), md.priors.uniform(domain), md.losses.Distance())
    >>> md.positions.Positions(problem).statement().is_dcp()
    True
    """

    corner_level: ArrayLike | None = None
    name = "positions"
    between_positions = True
    objective_of = "the mean loss to the true position"

    def __post_init__(self) -> None:
        if self.corner_level is None:
            return
        levels = np.asarray(self.corner_level, float)
        n = self.problem.domain.size
        shapes = [(n, 4), (n, 16)]
        if levels.shape not in shapes:
            problem = f"must have shape {' or '.join(map(str, shapes))}"
            raise InputError(problem, field="corner_level", value=levels.shape)
        wrong = ~((levels > 0) & (levels < np.inf))
        refuse_entries(wrong, levels, "must be positive and finite", field="corner_level")

    def statement(self) -> cp.Problem:
        import cvxpy as cp

        table = cp.Variable(self.cost.shape, name="P")
        flat = [cp.vec(rows @ table, order="F") for rows in (self.cones.bound, self.cones.slope_x, self.cones.slope_y)]
        inside = cp.SOC(flat[0], cp.vstack(flat[1:]), axis=0)
        return cp.Problem(cp.Minimize(cp.sum(cp.multiply(self.cost, table))), [*simplex(table), inside])

    @cached_property
    def patches(self) -> Patches:
        domain, metric = self.problem.domain, self.problem.metric
        square_cells(domain)
        levels = self.corner_level
        return patches(domain, metric, quarter_levels(domain, metric) if levels is None else np.asarray(levels, float))

    @cached_property
    def cones(self) -> SplineCones:
        return spline_cones(self.patches)

    @cached_property
    def cost(self) -> Floats:
        problem = self.problem
        around = self.patches.around
        cost = position_cost(problem.loss, problem.prior_array, problem.domain, problem.reports, around)
        if cost is None:
            raise UnsuitableError(
                "has no closed-form mean over the positions of a cell",
                field="loss",
                value=problem.loss.name,
                remedy="use the squared distance, or the distance with reports at the centres of square cells",
            )
        return cost

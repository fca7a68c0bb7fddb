r"""Solve the program between positions: cone blocks, one for each orbit of reports, repaired and certified.

Lower bound. For any z_y in the dual cones and any lambda with lambda(u) <= C(u, y) - (G' z_y)(u) for all u and y,

    sum C * P >= sum_y (C_y - G' z_y) P_y >= sum_u lambda(u) sum_y P(u, y) = sum_u lambda(u)

for every table of the program, since (G' z_y) P_y = z_y (G P_y) >= 0 and P >= 0. So the best lambda for the z of the
interior point is its minimum over y, and the bound holds whatever rounding did to the equations.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.mechanism.positions.repair import repair
from mechdesign.mechanism.table.certificate import ROW_SUM
from mechdesign.programs.positions.positions import Positions
from mechdesign.solvers.kernels.progress import Progress
from mechdesign.solvers.positions.cone_blocks import ConePoint, solve_cone_blocks
from mechdesign.solvers.positions.symmetry import Orbits, orbits

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """mass (n, m), certified between positions; loss to the true position, lower_bound of the program; dual (n,);
    stopped: "gap", "time", "interrupt" or "precision".
    """

    mass: NDArray[np.uint64]
    loss: float
    lower_bound: float
    dual: Array
    stopped: str


def design(
    program: Positions,
    *,
    gap: float,
    time_limit: float = np.inf,
    on_progress: Callable[[Progress], None] | None = None,
) -> Found:
    """The optimal program between positions to a relative gap.

    Raises: UnsuitableError for problems without positions, or without a loss to them.
    Cost: `solve_cone_blocks` on one block for each orbit of reports, some 10 to 60 iterations, and a repair.
    """
    started = time.monotonic()
    cones, cost = program.cones, program.cost
    group = orbits(program)
    own = np.ascontiguousarray(cost[:, group.reports])

    def tell(iteration: int, primal: float, dual: float) -> None:
        if on_progress is not None:
            on_progress(
                Progress(
                    method="cone blocks",
                    round=0,
                    iteration=iteration,
                    loss=primal,
                    lower_bound=dual,
                    gap=(primal - dual) / primal if primal > 0 else 0.0,
                    variables=own.size,
                    constraints=cones.size * own.shape[1],
                    seconds=time.monotonic() - started,
                )
            )

    point = solve_cone_blocks(
        cones, own, group.sums, tolerance=gap / 2, deadline=started + time_limit, on_progress=tell
    )
    mass = repair(group.table(point.table), program.patches)
    dual = multipliers(program, group, point)
    loss = position_loss(mass, cost)
    bound = float(dual.sum())
    stopped = "gap" if loss - bound <= gap * loss else point.stopped if point.stopped != "gap" else "precision"
    return Found(mass=mass, loss=loss, lower_bound=bound, dual=dual, stopped=stopped)


def position_loss(mass: NDArray[np.uint64], cost: Array) -> float:
    """The sum of cost (n, m) times the probabilities of mass (n, m)."""
    return float((cost * (mass / float(ROW_SUM))).sum())


def multipliers(program: Positions, group: Orbits, point: ConePoint) -> Array:
    """lambda (n,) of the module docstring from the dual cones of a point; -inf nowhere, whatever the point."""
    cones, slack = program.cones, point.slack.copy()
    slack[0] = np.maximum(slack[0], np.hypot(slack[1], slack[2]))
    taken = cones.bound.T @ slack[0] + cones.slope_x.T @ slack[1] + cones.slope_y.T @ slack[2]
    least = (program.cost[:, group.reports] - taken).min(axis=1)
    return np.asarray(np.min([least[way] for way in group.ways], axis=0))

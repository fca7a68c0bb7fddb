"""Solve the optimal program over all pairs of a lattice by that of near pairs (programs/near_pairs.py).

1. Tree aggregation on the graph of near pairs: multipliers whose bound holds over all pairs, and a table that breaks
the constraints of some far pairs by at most the excess of the graph. 2. Levelling: the smallest table above it that is
private over all pairs (the envelope), every row divided by its sum, and again. Rows of the envelope differ less each
time, and what is left for the slack of the repair falls with them. 3. The repair, which certifies over all pairs.

On 30 x 30 cells of `problems/paris.py` one round of levelling ends 0.9 %, five 0.7 % above the bound (0.3 % of it the
gap of the graph's program), the repair alone 1.5 %. A design at the level eps / excess, private over all pairs as it
is, costs a second search: on 15 x 15 cells it ends 1.2 % above the bound, levelling 0.6 %.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mechdesign.closed_forms.best import ClosedForm
from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.mechanism.dataset import relative_gap, total_cost
from mechdesign.mechanism.repair import repair
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.near_pairs import STENCIL, excess, near_pairs
from mechdesign.solvers.design import Design, Progress, reporter, with_floor
from mechdesign.solvers.optimal import aggregate
from mechdesign.solvers.pair_rows import levellings

_SHARE = 0.3  # of the excess k - 1: the program of near pairs needs no smaller gap than this
_DESIGNING = 0.9  # of the time limit for the program of near pairs; the rest is for levelling
_REPAIR, _SWEEPS = 8.0, 3.0  # seconds of the repair with its mechanism, and of a levelling, for one of a certificate
_SHORTEST = 1e-3  # seconds for the program of near pairs: a table and a bound at least
_LEVELLINGS = 6


def solve_near_pairs(
    problem: DesignProblem,
    *,
    gap: float,
    time_limit: float = np.inf,
    floor: ClosedForm | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Design:
    """A design certified over all pairs, with the bound, multipliers and cuts of the program of near pairs.

    Parameters: as `aggregate`; on_progress is called with the loss and bound of the program of near pairs, as method
    "near pairs", and once, as method "graph", with the certified loss.
    Returns: the design; `stopped` is "gap", "relaxation" (near pairs are solved to a third of their excess or half the
    gap, whichever is more, and the bound stays further apart), "time", "interrupt" or "precision".
    Raises: UnsuitableError where near pairs cannot stand for all.
    Cost: `aggregate` on near pairs, up to seven envelopes over edges x reports, a repair and a certificate. Time for
    the last two is kept, in proportion to what certifying the closed form took; where that leaves none for the rest,
    the closed form is the design.
    """
    started, report = time.monotonic(), reporter(on_progress)
    near = near_pairs(problem)
    wanted = max(gap / 2, _SHARE * (excess(problem, near) - 1))
    certified = 0.0 if floor is None else floor.seconds
    deadline = started + time_limit - _REPAIR * certified
    left = min(deadline, started + _DESIGNING * time_limit) - time.monotonic()

    def tell(state: Progress) -> None:
        if on_progress is not None:
            on_progress(replace(state, method=f"near pairs, {state.method}"))

    relaxed = aggregate(near, gap=wanted, time_limit=max(left, _SHORTEST), on_progress=tell)
    if (
        floor is not None
        and relaxed.stopped == "time"
        and (total_cost(relaxed.mass, problem.weighted_loss) >= floor.loss or time.monotonic() >= deadline)
    ):
        design = replace(relaxed, loss=np.inf)  # its table is not worth a repair, or there is no time for one
    else:
        table, stopped = _levelled(problem, relaxed, deadline, _SWEEPS * certified)
        mass = repair(table, problem.edges, problem.weighted_loss, overwrite=True)
        design = replace(relaxed, mass=mass, loss=total_cost(mass, problem.weighted_loss), stopped=stopped)
    design = with_floor(design, floor)
    loss, stopped = design.loss, design.stopped
    reached = relative_gap(loss, relaxed.lower_bound, problem.constant_loss)
    if reached <= gap:
        stopped = "gap"
    elif stopped == "gap":
        stopped = "relaxation"
    report(
        "graph",
        round=0,
        loss=loss,
        lower_bound=relaxed.lower_bound,
        gap=reached,
        variables=design.mass.size,
        constraints=2 * len(problem.edges.tail) * problem.reports.size,
    )
    bounded = f"the program of {STENCIL} neighbours alone"
    figures = {"bound_stencil": STENCIL}
    return replace(design, stopped=stopped, lower_bound_of=bounded, figures=figures)


def _levelled(
    problem: DesignProblem, relaxed: Design, deadline: float, sweeps: float
) -> tuple[NDArray[np.float64], str]:
    """The table of a design, rows of sum 1, near one that is private over all pairs; and why the search stopped. A
    levelling takes `sweeps` seconds, about.
    """
    table, stopped = relaxed.mass / float(ROW_SUM), relaxed.stopped
    following = levellings(table, problem.edges, _LEVELLINGS)
    try:
        while time.monotonic() + sweeps < deadline:
            table = next(following)
    except StopIteration:
        pass
    except KeyboardInterrupt:
        stopped = "interrupt"
    return table, stopped

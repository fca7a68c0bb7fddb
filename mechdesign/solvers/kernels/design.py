"""Design: what a solver found. One type for every program, and what every solver is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.closed_forms.mechanisms.best import ClosedForm
from mechdesign.mechanism.positions.patches import Patches
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.kernels.progress import Reported


@dataclass(frozen=True, kw_only=True, eq=False)
class Targets:
    """What is asked of a solver.

    gap, target of (objective - lower_bound) / objective; time_limit in seconds; method, one of those of the program;
    on_progress, called with where the solve stands; options of a method, by name.
    """

    gap: float
    time_limit: float = math.inf
    method: str = "auto"
    on_progress: Callable[[Reported], None] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Design:
    """An integer table with what is known of it.

    mass (n, m), certified for `scale` times the metric of the problem; loss, its expected loss, nan where the solver
    had no use for it. dual (n,) and the multipliers (k,) of side rows prove lower_bound: of length 0, none and minus
    infinity where none was priced; lower_bound_of, the program that it bounds, where that is another. objective, where
    it is not the expected loss, and objective_of, what it is. stopped, why the search ended, empty where there was
    none. parameters, what a file keeps beside those of the program, and figures, further attributes. problem, where it
    is not the one that was asked (reports of the design's own, another level). claimed_epsilon, nominal, in nats per
    unit. cut (m, n), the cuts that it ended with, from which a search for another scale of the same metric can start.
    positions, where mass was certified between positions too.
    """

    mass: NDArray[np.uint64]
    loss: float = math.nan
    dual: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    multipliers: NDArray[np.float64] | None = None
    lower_bound: float = -math.inf
    lower_bound_of: str | None = None
    objective: float | None = None
    objective_of: str | None = None
    stopped: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    problem: DesignProblem | None = None
    scale: float = 1.0
    claimed_epsilon: float | None = None
    figures: Mapping[str, str | float] = field(default_factory=dict)
    cut: NDArray[np.bool_] | None = None
    positions: Patches | None = None


def with_floor(design: Design, floor: ClosedForm | None) -> Design:
    """The design, or with its bound and its word the closed form where that loses less; the parameter closed_form is
    its name then.
    """
    if floor is None or design.loss <= floor.loss:
        return design
    parameters = {**design.parameters, "closed_form": floor.name}
    return replace(design, mass=floor.mass, loss=floor.loss, parameters=parameters)

"""Solve a coupled program by rays where edges are long, else as one linear program; then repair, certify and bound.

The best closed form that meets the limits is the first table. Designs of changing priors (changing_prior.py)
come next where a maximum is minimised and the whole program has more than 60,000 constraints, else rays (rays.py) where
the median edge has 3 nats or more; elsewhere rays come last. The whole program: 1. HiGHS solves it,
every limit lowered by a margin.  2. The point is repaired and certified.  3. The side rows are checked on the certified
integers, rounded up; where one fails its margin grows and 1. is repeated.  4. The multipliers of the side rows are
clipped and scaled until they are valid exactly, folded into the effective cost, and every report is priced: a lower
bound that rests on no convergence.  5. Where it stays apart, the optimal program is solved for the effective cost: its
multipliers of the row sums are more accurate far from the anchors.

The best certified table and the best bound are kept, whatever a later route ends with. Where no table is found the
least common relaxation of the limits is bounded from below in the same way. A bound above zero proves that the
constraints contradict each other, and its multipliers say which.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.threads import OutOfTime
from mechdesign.closed_forms.mechanisms.best import certified_closed_forms
from mechdesign.errors import DesignError, InfeasibleError, SolverError
from mechdesign.mechanism.table.dataset import RESOLUTION, relative_gap
from mechdesign.programs.optimal.coupled import Coupled
from mechdesign.solvers.kernels.design import Design
from mechdesign.solvers.kernels.highs import Method
from mechdesign.solvers.kernels.progress import Progress
from mechdesign.solvers.optimal.changing_prior import generate_designs
from mechdesign.solvers.optimal.coupled_bound import Bound
from mechdesign.solvers.optimal.coupled_task import FIRST_MARGIN, Task, task_of
from mechdesign.solvers.optimal.rays import SECRETS, RayGeneration, generate

_SHARE = 0.5  # of the time limit for rays, where the whole program can follow
_DESIGNS = 0.8  # the same for designs of changing priors
_BETTER = 0.9  # a mixture of this share of the best objective is certified before the end
_TRIALS = 8
_SOON = 2.0  # seconds that closed forms get in any case
_LEAST_TIME = 1.0  # seconds for the proof that limits contradict each other


def solve_coupled(
    program: Coupled,
    *,
    gap: float,
    time_limit: float = math.inf,
    on_progress: Callable[[Progress], None] | None = None,
) -> Design:
    """Solve a coupled program to a relative gap; see the module docstring.

    Parameters: gap, target of (objective - lower_bound) / objective; time_limit in seconds, passed to HiGHS;
    on_progress, called after every round.
    Raises: SizeError before allocating a program that does not fit; InfeasibleError where the constraints are proved to
    contradict each other; DesignError where no certified table meets them; SolverError where time ends too early.
    """
    search = _Search(task=task_of(program), gap=gap, time_limit=time_limit, on_progress=on_progress)
    try:
        search.run()
    except KeyboardInterrupt:
        if search.mass is None:
            raise
        search.interrupted = True
    return search.design(program)


@dataclass(kw_only=True, eq=False)
class _Search:
    """The best certified table and bound so far, and the means to better them."""

    task: Task
    gap: float
    time_limit: float
    on_progress: Callable[[Progress], None] | None
    proof: Bound | None = None
    mass: NDArray[np.uint64] | None = None
    value: float = math.inf
    number: int = 0
    interrupted: bool = False
    closed_form: str | None = None  # of the best table, where that is one

    def __post_init__(self) -> None:
        self.started = time.monotonic()

    @property
    def left(self) -> float:
        """Seconds left."""
        return self.time_limit - (time.monotonic() - self.started)

    @property
    def reached(self) -> float:
        """The relative gap, infinite before the first table and bound."""
        if self.mass is None or self.proof is None:
            return math.inf
        return relative_gap(self.value, self.proof.value, self.task.constant)

    def run(self) -> None:
        """Try one route after another until the gap is met or time ends."""
        self.by_closed_forms()
        if self.task.designs_first:
            self.by_rays(_DESIGNS, designs=True)
        elif self.task.rays_first:
            self.by_rays(_SHARE)
        for method, cap in self.task.routes:
            if self.reached <= self.gap or self.left <= 0:
                break
            self.by_whole(method, cap)
            self.task = replace(self.task, unit=max(min(self.value, self.task.unit), RESOLUTION * self.task.constant))
        unmet = self.reached > self.gap and self.left > 0
        if unmet and not self.task.rays_first and self.task.problem.domain.size <= SECRETS:
            self.by_rays(_SHARE)

    def by_closed_forms(self) -> None:
        """The closed form of the least objective that meets the limits."""
        for form in certified_closed_forms(self.task.problem):
            excess, value = self.task.judged(form.mass)
            if not excess.any() and value < self.value:
                self.mass, self.value, self.closed_form = form.mass, value, form.name
            if self.left <= min(0.0, self.time_limit - _SOON):
                break

    def by_rays(self, share: float, *, designs: bool = False) -> None:
        """Ray generation in this share of the time, with columns of whole designs or priced ones; limits that the
        certified table breaks are lowered for the mixture.
        """
        task = self.task
        margin = task.first_margin
        constant = task.problem.best_constant
        rays = RayGeneration(pricer=task.pricer, cost=task.cost, rows=task.rows, constant=constant, scale=task.constant)
        rays.tighten(margin)

        def take(found: Bound, close: bool) -> float:
            nonlocal margin
            self.prove(found)
            if close or rays.objective < _BETTER * self.value:
                excess = self.offer(rays.table(), found.folded)
                if excess.any():
                    margin = np.where(excess > 0, 2 * (margin + excess), margin)
                    rays.tighten(margin)
            self.tell("designs" if designs else "rays", rays.variables, rays.constraints)
            return self.reached

        deadline = self.started + (share if task.routes else 1.0) * self.time_limit
        try:
            if designs:
                generate_designs(task, rays, gap=self.gap, deadline=deadline, take=take)
            else:
                generate(rays, gap=self.gap, deadline=deadline, take=take)
        except (SolverError, OutOfTime):  # what was certified is kept
            pass
        finally:
            if len(rays.x) and self.proof is not None and rays.objective < self.value:
                self.offer(rays.table(), self.proof.folded)

    def by_whole(self, method: Method, cap: float) -> None:
        """The whole linear program by HiGHS, every limit lowered by a margin that grows until the table keeps it."""
        task = self.task
        margin = task.first_margin
        for _ in range(_TRIALS):
            if self.left <= 0:
                return
            try:
                whole, solution = task.solve(
                    task.rows.tightened(margin), method, cap, min(1e-4, self.gap) / 20, self.left
                )
            except SolverError:
                return
            table = whole.table(solution.x)
            if solution.status == "Infeasible" or not table.max() > 0:
                return
            found = task.bound(*whole.multipliers(solution.dual))
            self.prove(found)
            excess = self.offer(table, found.folded)
            if self.reached > self.gap and not excess.any() and self.left > 0:
                self.prove(task.polished(found, self.gap / 4, self.left))
            self.tell("whole", len(whole.program.cost), whole.program.matrix.shape[0])
            if not excess.any():
                return
            margin = np.where(excess > 0, 2 * (margin + excess), margin)

    def prove(self, found: Bound) -> None:
        """Keep a bound if it is the best."""
        if self.proof is None or found.value > self.proof.value:
            self.proof = found

    def offer(self, table: NDArray[np.float64], charge: NDArray[np.float64]) -> NDArray[np.float64]:
        """Certify a table and keep it if it meets the limits and is the best; by how much it exceeds them (k,)."""
        made, excess = self.task.certify(table, charge)
        value = self.task.value(made)
        if not excess.any() and value < self.value:
            self.mass, self.value, self.closed_form = made, value, None
        return excess

    def tell(self, method: str, variables: int, constraints: int) -> None:
        """Report progress after a round."""
        if self.on_progress is not None:
            self.on_progress(
                Progress(
                    method=method,
                    round=self.number,
                    iteration=None,
                    loss=self.value,
                    lower_bound=0.0 if self.proof is None else self.proof.value,
                    gap=self.reached,
                    variables=variables,
                    constraints=constraints,
                    seconds=time.monotonic() - self.started,
                )
            )
        self.number += 1

    def design(self, program: Coupled) -> Design:
        """The result. Raises: InfeasibleError, DesignError, SolverError where there is no certified table."""
        timed_out = self.left <= 0
        if self.mass is not None and self.proof is None:
            self.prove(self.task.first_bound())
        if self.mass is None or self.proof is None:
            if not timed_out and (self.task.rows.share == 0).any():
                raise no_table(self.task, program, max(self.left, _LEAST_TIME))
            raise SolverError(
                f"stopped ({'time' if timed_out else 'precision'}) before any table was certified",
                field="time_limit",
                value=self.time_limit,
                remedy="allow more time, or use fewer cells",
            )
        ended = "interrupt" if self.interrupted else "time" if timed_out else "precision"
        return Design(
            mass=self.mass,
            objective=self.value,
            objective_of=program.objective_of,
            lower_bound_of="the program",
            dual=self.proof.dual,
            multipliers=self.proof.multipliers,
            lower_bound=self.proof.value,
            stopped="gap" if self.reached <= self.gap else ended,
            parameters={} if self.closed_form is None else {"closed_form": self.closed_form},
        )


def no_table(task: Task, program: Coupled, time_limit: float = math.inf) -> DesignError:
    """Why there is no table: a proof that the limits contradict each other, or the want of one.

    The proof is a positive lower bound of the least t with G P <= h + t |h|.
    """
    rows = replace(task.rows, share=np.where(task.rows.share > 0, 0.0, task.rows.size_of_limits))
    elastic = replace(task, cost=np.zeros_like(task.cost), rows=rows, constant=1.0, unit=1.0)
    for method, cap in task.routes:
        try:
            whole, solution = elastic.solve(rows, method, cap, FIRST_MARGIN, time_limit)
        except SolverError:
            continue
        bound = elastic.bound(*whole.multipliers(solution.dual))
        if bound.value > 0:
            weight = bound.multipliers * rows.share
            names = [rows.names[k] for k in np.argsort(-weight, kind="stable")[:3] if weight[k] > 0]
            return InfeasibleError(
                f"no mechanism with this claim keeps all limits, which was proved; at fault: {', '.join(names)}",
                field=program.limits_field,
                value=f"{rows.size} limits",
                remedy=f"relax these limits by {math.ceil(1e4 * bound.value) / 100:g} % or more, or use a larger eps",
            )
    return DesignError(
        "no certified table keeps all limits: they leave less room than the solver resolves",
        field=program.limits_field,
        value=f"{rows.size} limits",
        remedy="relax the limits a little",
    )

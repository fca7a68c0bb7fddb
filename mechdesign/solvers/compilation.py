"""Compile the kernels that a program needs before its time limit starts, unless they are cached on disk."""

from __future__ import annotations

from typing import Literal

import numpy as np

from mechdesign.base import interrupts
from mechdesign.base.garbage import pause_collection
from mechdesign.base.progress import has_compiled_kernels, note_compiling
from mechdesign.problem.domain import Domain
from mechdesign.problem.losses import Distance
from mechdesign.problem.metric import Metric
from mechdesign.problem.metrics import Eikonal, Euclidean
from mechdesign.problem.priors import uniform
from mechdesign.problem.privacy_level import PrivacyLevel
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.coupled import Coupled
from mechdesign.programs.eikonal import EikonalWeights
from mechdesign.programs.matched import MatchedOptimal
from mechdesign.programs.optimal import Optimal
from mechdesign.programs.program import Program
from mechdesign.solvers.choose import FACTORED_SOLVER, Attempt, choose, is_complete, optimal_attempts
from mechdesign.solvers.optimal import solve_optimal
from mechdesign.solvers.result import Targets

Kernels = Literal["edges", "pairs", "blocks", "fields"]
# One kernel of each set, by module and name: pricing over listed edges and over all pairs, the block method, and the
# fields of factored weights.
_ONE_OF: dict[Kernels, str] = {
    "edges": "tree_simplex.price_trees",
    "pairs": "tree_simplex.price_cores",
    "blocks": "blocks._couple",
    "fields": "fields.",
}
_compiled: set[Kernels] = set()


# Compiling takes five to ten seconds. A tiny problem is solved for each set of kernels that the first route needs;
# later routes compile theirs in the time of the search.
def compile_kernels(program: Program, *, method: str = "auto", verbose: bool = False) -> None:
    """Compile the kernels of a program once; verbose, announce it."""
    wanted = [kind for kind in _kernels_of(program, method) if kind not in _compiled]
    wanted = [kind for kind in wanted if not has_compiled_kernels(_ONE_OF[kind])]
    if not wanted:
        return
    if verbose:
        note_compiling(_ONE_OF[wanted[0]])

    def solve_tiny_problems() -> bool:
        with pause_collection():
            for kind in wanted:
                _solve_tiny_problem(kind)
        # False: no interrupt ended the search.
        return False

    if interrupts.interruptible(solve_tiny_problems, True):  # one search: its interrupt ends no other one
        raise KeyboardInterrupt
    _compiled.update(wanted)


def _kernels_of(program: Program, method: str) -> list[Kernels]:
    # Other programs have methods of their own, which price no reports.
    if not isinstance(program, (Optimal, Coupled, MatchedOptimal, EikonalWeights)):
        return []
    problem = program.problem
    kinds: list[Kernels] = ["pairs" if is_complete(problem) else "edges"]
    if isinstance(program, EikonalWeights) and FACTORED_SOLVER.is_filled:
        kinds.append("fields")
    route = choose(problem)[0] if method == "auto" and isinstance(program, Optimal) else method
    attempts = optimal_attempts(problem, route) if route in ("columns", "blocks") else []
    return [*kinds, "blocks"] if attempts[:1] == [Attempt.BLOCKS] else kinds


def _solve_tiny_problem(kind: Kernels) -> None:
    # From 41 places on all pairs are priced as such.
    side = 7 if kind == "pairs" else 4
    domain = Domain.grid((side, side), cell=1.0, unit="cell")
    metric: Metric = Eikonal(level=PrivacyLevel.constant(1.0, unit="cell"), stencil=8)
    if kind == "pairs":
        metric = Euclidean(epsilon=1.0, unit="cell")
    prior = np.asarray(uniform(domain))
    problem = DesignProblem(domain=domain, metric=metric, prior=prior, loss=Distance(), name="compiling")
    if kind == "fields":
        FACTORED_SOLVER.get().solve(EikonalWeights(problem=problem), Targets(gap=0.01, bound=False))
    else:
        solve_optimal(problem, Targets(gap=0.01, method="blocks" if kind == "blocks" else "columns"))

"""Compile kernels before a time limit starts, unless they are cached on disk."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mechdesign.base import interrupts
from mechdesign.base.progress import has_compiled_kernels, note_compiling
from mechdesign.problem.domain import Domain
from mechdesign.problem.losses import Distance
from mechdesign.problem.metrics import Eikonal, Euclidean
from mechdesign.problem.priors import uniform
from mechdesign.problem.privacy_level import PrivacyLevel
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.eikonal import EikonalWeights
from mechdesign.programs.program import Program
from mechdesign.solvers.choose import FACTORED_SOLVER
from mechdesign.solvers.optimal import solve_optimal
from mechdesign.solvers.result import Targets

_has_compiled = False


# Compiling takes half a minute. Tiny problems are solved, one for each set of kernels: columns by trees, by sparse
# trees and by all pairs; blocks; fields of factored weights.
def compile_kernels(program: Program, *, verbose: bool = False) -> None:
    """Compile the kernels of optimal programs and eikonal weights once; verbose, announce it."""
    global _has_compiled
    if _has_compiled or has_compiled_kernels():
        return
    if verbose:
        note_compiling()
    if interrupts.interruptible(
        lambda: _solve_tiny_problems(program), True
    ):  # one search: its interrupt ends no other one
        raise KeyboardInterrupt
    _has_compiled = True


def _solve_tiny_problems(program: Program) -> bool:
    domain = Domain.grid((4, 4), cell=1.0, unit="cell")
    metric = Eikonal(level=PrivacyLevel.constant(1.0, unit="cell"), stencil=8)
    prior = np.asarray(uniform(domain))
    problem = DesignProblem(domain=domain, metric=metric, prior=prior, loss=Distance(), name="compiling")
    sparse = replace(problem, metric=Eikonal(level=PrivacyLevel.constant(0.1, unit="cell"), stencil=4))
    complete = replace(problem, metric=Euclidean(epsilon=0.1, unit="cell"))
    for instance in (problem, sparse, complete):
        solve_optimal(instance, Targets(gap=0.01, method="columns"))
    solve_optimal(problem, Targets(gap=0.01, method="blocks"))
    if isinstance(program, EikonalWeights) and FACTORED_SOLVER.is_filled:
        FACTORED_SOLVER.get().solve(EikonalWeights(problem=problem), Targets(gap=0.01, bound=False))
    # False: no interrupt ended the search.
    return False

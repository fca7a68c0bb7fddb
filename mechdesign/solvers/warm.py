"""Compilation before the clock of a time limit starts: tiny problems, solved once where no compiled kernel is kept."""

from __future__ import annotations

import numpy as np

from mechdesign.base.compiling import compiled, note_compiling
from mechdesign.programs.eikonal.weights import EikonalWeights
from mechdesign.programs.program import Program
from mechdesign.setting.metric.eikonal import Eikonal
from mechdesign.setting.metric.levels import PrivacyLevel
from mechdesign.setting.objective.losses import Distance
from mechdesign.setting.objective.priors import uniform
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.setting.space.domain import Domain
from mechdesign.solvers.factored.run import Run, solve_factored
from mechdesign.solvers.optimal.aggregation import aggregate
from mechdesign.solvers.optimal.attempts import Method

_METHODS: tuple[Method, ...] = ("rays", "blocks", "boxed", "whole")
_done = False


def compile_kernels(program: Program, *, verbose: bool = False) -> None:
    """Compile what optimal programs and eikonal weights run, where none of it is kept yet; verbose, say so."""
    global _done
    if _done or compiled():
        return
    if verbose:
        note_compiling()
    domain = Domain.grid((4, 4), cell=1.0, unit="cell")
    metric = Eikonal(level=PrivacyLevel.constant(1.0, unit="cell"), stencil=8)
    problem = DesignProblem(
        domain=domain, metric=metric, prior=np.asarray(uniform(domain)), loss=Distance(), name="compiling"
    )
    for method in _METHODS:
        aggregate(problem, gap=0.1, method=method)
    if isinstance(program, EikonalWeights):
        solve_factored(EikonalWeights(problem=problem), Run(bound=False))
    _done = True

"""Solve the maximum-likelihood program: the closed form where the table is randomized response, else Newton steps.

What a route returns is judged by the certificate of programs/statistical/likelihood.py, at the point itself, over all
secrets. Where the closed form misses the gap, Newton steps follow; where these stall, accelerated expectation
maximization goes on from the best point. The gap that is returned is the proved one, reached or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mechdesign.programs.statistical.likelihood import CertifiedPoint, Likelihood
from mechdesign.solvers.statistical.em import updates
from mechdesign.solvers.statistical.newton import newton
from mechdesign.solvers.statistical.water_filling import response_levels, water_filling

Route = Literal["auto", "newton", "accelerated"]

ROUTES = ("auto", "newton", "accelerated")
_STEPS = 5_000  # of accelerated expectation maximization


@dataclass(frozen=True, kw_only=True, eq=False)
class LikelihoodSolution:
    """The point with its proved gap; method, the routes that made it; iterations, of all of them together."""

    point: CertifiedPoint
    method: str
    iterations: int


def solve_likelihood(program: Likelihood, *, gap: float = 1e-9, route: Route = "auto") -> LikelihoodSolution:
    """Solve to `gap` nats per report where double precision allows, else as far as the routes come.

    route: "auto" as in the module docstring; "newton" without the closed form; "accelerated" expectation maximization
    alone, from the uniform distribution, at most 5,000 steps.
    Raises: SizeError before matrices that do not fit in memory.
    """
    if route == "auto":
        closed = _closed_form(program)
        if closed is not None and closed.gap <= gap:
            return LikelihoodSolution(point=closed, method="closed form", iterations=0)
    if route == "accelerated":
        return _accelerated(program, np.ones(program.size), gap=gap)
    point, iterations = newton(program, gap=gap)
    if point.gap <= gap:
        return LikelihoodSolution(point=point, method="newton", iterations=iterations)
    after = _accelerated(program, point.distribution, gap=gap)
    return LikelihoodSolution(
        point=after.point, method=f"newton, {after.method}", iterations=iterations + after.iterations
    )


def _closed_form(program: Likelihood) -> CertifiedPoint | None:
    """The judged closed form; None where the table is no randomized response."""
    levels = response_levels(program.table)
    if levels is None:
        return None
    return program.judge(water_filling(program.counts / program.counts.sum(), *levels))


def _accelerated(program: Likelihood, start: NDArray[np.float64], *, gap: float) -> LikelihoodSolution:
    """The point of the least gap of at most 5,000 steps from weights `start` (n,)."""
    points = updates(program, start, accelerate=True)
    best, taken = next(points), 0
    while best.gap > gap and taken < _STEPS:
        best = min(best, next(points), key=lambda point: point.gap)
        taken += 1
    return LikelihoodSolution(point=best, method="accelerated", iterations=taken)

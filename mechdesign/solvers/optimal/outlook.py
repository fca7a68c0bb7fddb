"""What is known, before a long run, of the time that an optimal program takes: its size, its class, and measurements.

Classes are what decides the method and its cost: all pairs of scattered places, networks such as roads, and elsewhere
the median length of an edge. Measured by benchmarks/sizes.py on one core, at the default gap of 1e-3.
"""

from __future__ import annotations

import numpy as np

from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.optimal.attempts import NETWORK_EDGES, WHOLE_LIMIT
from mechdesign.solvers.optimal.pair_rows import suits_rows
from mechdesign.solvers.pool.run import LARGEST, POOLED, suits

_SHORT = 0.6  # median nats below which edges are short
_LONG = 1.3  # and from which they are long

_POOL = "By a pool of columns, kept without a table. Measured: 200 s of one core for 10,000 secrets, to a gap of 5e-3"

# Secrets and seconds to the gap of 1e-3, by class.
KNOWN: dict[str, tuple[tuple[int, int], ...]] = {
    "all pairs of scattered places": ((60, 1), (100, 3), (150, 11), (200, 29), (300, 160)),
    "all pairs of a grid": ((225, 2),),
    "a network": ((128, 10), (300, 80), (500, 180)),
    "short edges": ((400, 60),),
    "edges of middle length": ((400, 7),),
    "long edges": ((225, 2), (1225, 7), (2500, 23), (4900, 119)),
}


def class_of(problem: DesignProblem) -> str:
    """The class of case: by the kind of metric, else by the median edge in nats."""
    edges, size = problem.edges, problem.domain.size
    pairs = suits_rows(problem)
    if problem.domain.kind != "grid":
        if pairs:
            return "all pairs of scattered places"
        if len(edges.tail) < NETWORK_EDGES * size:
            return "a network"
    if pairs:
        return "all pairs of a grid"
    median = float(np.median(edges.length))
    return "short edges" if median < _SHORT else "long edges" if median >= _LONG else "edges of middle length"


def outlook(problem: DesignProblem) -> str | None:
    """A sentence on the size of the program, the class of case and what is known of its time; None for small programs,
    which take seconds.
    """
    edges, reports = problem.edges, problem.reports.size
    constraints = 2 * len(edges.tail) * reports + problem.domain.size
    if constraints <= WHOLE_LIMIT:
        return None
    name, length = class_of(problem), edges.length
    size = f"{problem.domain.size * reports} variables, {constraints} constraints"
    range_ = f"edges of {length.min():.2g} to {length.max():.2g} nats, median {np.median(length):.2g}"
    known = (
        _POOL
        if POOLED < problem.domain.size <= LARGEST and suits(problem) is None
        else _known(name, problem.domain.size)
    )
    return f"program: {size}; {name} ({range_}). {known}"


def _known(name: str, secrets: int) -> str:
    within = [seconds for count, seconds in KNOWN[name] if count >= secrets]
    if within:
        return f"Measured: about {within[0]} s for as many secrets or more, at a gap of 1e-3"
    count, seconds = KNOWN[name][-1]
    return f"Measured: {seconds} s for {count} secrets, at a gap of 1e-3; this is larger, and may not reach it soon"

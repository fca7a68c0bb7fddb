"""Expected time and memory of the routes of the optimal program, as far as they are measured."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from mechdesign.base.memory import BYTES_PER_ENTRY
from mechdesign.errors import InputError
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.optimal import Optimal
from mechdesign.programs.program import Program
from mechdesign.solvers.choose import (
    METHODS,
    MethodName,
    choose,
    constraints,
    has_few_rays,
    is_complete,
    nearest,
    rejection_reason,
)
from mechdesign.solvers.cost_model import GAP, KNOWN, POOL_GAP

# The columns of near places overlap, so a pool takes longer where more are near: the power of their number. Northeast
# takes some fourteen times as long as the map of Philadelphia of its size.
_CROWDING = 2.05
_NEAR, _NEAR_SHARE, _SAMPLE = 12.0, 0.054, 30  # nats; share of all secrets, measured at 100 x 100; secrets looked at
_DECADE = 1.2  # factor on the time for each decade of a gap below `GAP`: 1.1 to 1.2 at 900 to 1,225 secrets


def default_gap(program: Program, method: str = "auto") -> float:
    """The gap that a program is solved to if none is asked for: a pool takes much longer to less than its own."""
    return POOL_GAP if _takes_pool(program, method) else GAP


def expected_words(program: Program, method: str, gap: float) -> str:
    """The expected time of a pool to a gap, for its line of progress; empty for other programs and routes."""
    if not _takes_pool(program, method):
        return ""
    time = f"about {_format_seconds(seconds(program.problem, 'pool'))} CPU s"
    # No run to a smaller gap was timed, so the words name the gap of the time.
    return f"{time} to {100 * POOL_GAP:g} %" if gap < POOL_GAP else f"{time} expected"


def _takes_pool(program: Program, method: str) -> bool:
    if program.name != Optimal.name or method not in ("auto", *METHODS):
        return False
    return (choose(program.problem)[0] if method == "auto" else method) == "pool"


def seconds(problem: DesignProblem, route: MethodName, gap: float | None = None) -> float:
    """CPU seconds to a gap, for a pool at least `POOL_GAP`: measured in the route's class, scaled by the cube."""
    # Beyond the largest size that was timed, the cube extrapolates.
    known, size = KNOWN[_class(problem, route)], problem.domain.size
    count, measured = next(((k, s) for k, s in known if k >= size), known[-1])
    decades = 0.0 if gap is None or route == "pool" else max(0.0, math.log10(GAP / gap))
    crowding = _crowding(problem, known[0][0]) if route == "pool" else 1.0
    return float(measured) * max(1.0, size / count) ** 3 * _DECADE**decades * crowding


def _crowding(problem: DesignProblem, fewest: int) -> float:
    """The factor on the time of a pool for the places near a secret, against those of the timed maps; at least 1."""
    from scipy.sparse.csgraph import dijkstra

    size = problem.domain.size
    some = np.arange(0, size, max(1, size // _SAMPLE))
    near = dijkstra(problem.edges.matrix(size), directed=True, indices=some, limit=_NEAR)
    return max(1.0, float(np.isfinite(near).sum(axis=1).mean()) / (_NEAR_SHARE * max(size, fewest))) ** _CROWDING


def memory(problem: DesignProblem, route: MethodName) -> int:
    """Bytes that a route holds at its peak, without the process itself."""
    n, m = problem.domain.size, problem.reports.size
    tables: dict[MethodName, Callable[[], float]] = {
        "highs": lambda: 25.0 * constraints(problem) / (n * m),
        "columns": lambda: 3.0 + 24.0 * n / m,
        "blocks": lambda: 14.0,
        "pool": lambda: 20_000.0 / m + (7.0 if problem.loss.code is None else 0.0),
    }
    # The models count tables of n m entries.
    return int(BYTES_PER_ENTRY * n * m * tables[route]())


def route_facts(problem: DesignProblem, method: str = "auto", gap: float | None = None) -> dict[str, Any]:
    """The route, its reason, and the expected CPU seconds, gap and memory; with the size of the program."""
    if method not in ("auto", *METHODS):
        raise InputError(f"must be auto, {', '.join(METHODS)}", field="method", value=method)
    route, why = choose(problem) if method == "auto" else (cast(MethodName, method), "by request")
    refused = rejection_reason(route, problem)
    return {
        "route": route,
        "why": why if refused is None else refused,
        "accepted": refused is None,
        "secrets": problem.domain.size,
        "reports": problem.reports.size,
        "constraints": constraints(problem),
        "nearest": nearest(problem),
        "expected_seconds": seconds(problem, route, gap),
        "expected_gap": max(gap or POOL_GAP, POOL_GAP) if route == "pool" else gap or GAP,
        "expected_mb": memory(problem, route) / 2**20,
    }


def route_sentence(problem: DesignProblem, method: str = "auto", gap: float | None = None) -> str:
    """`route_facts` in a sentence or two."""
    facts = route_facts(problem, method, gap)
    if not facts["accepted"]:
        return f"route {facts['route']} does not accept the problem: {facts['why']}"
    # No run of a pool to a smaller gap was timed.
    finer = f". Much longer to the {100 * gap:g} % asked for" if gap and gap < facts["expected_gap"] else ""
    return (
        f"route {facts['route']}: {facts['why']}. {facts['secrets']:,} secrets, {facts['reports']:,} reports, "
        f"{facts['constraints']:,} constraints, median distance to the nearest secret {facts['nearest']:.2g} nats. "
        f"Expected: about {_format_seconds(facts['expected_seconds'])} CPU seconds to a gap of "
        f"{100 * facts['expected_gap']:g} %, {facts['expected_mb']:,.0f} MB{finer}"
    )


def _class(problem: DesignProblem, route: MethodName) -> str:
    if route == "pool":
        return "a pool"
    if route == "highs":
        return "the whole program"
    if route == "columns" and is_complete(problem):
        return "all pairs"
    if route == "columns":
        return "long edges, vertices" if has_few_rays(problem) else "short edges"
    return "long edges, blocks"


def _format_seconds(value: float) -> str:
    return f"{value:.1g}" if value < 10 else f"{float(f'{value:.2g}'):,.0f}"

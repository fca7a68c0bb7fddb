"""Which route solves the optimal program of a problem: the one rule, and what is known of its time and memory.

    highs     the whole linear program by HiGHS, up to 60,000 constraints: where answers are fewer than secrets; and
              after columns, where they end above the gap
    columns   generate and price (columns.py): up to 700 secrets, and up to 2,500 where all pairs are edges or edges
              are short. Vertices (rays.py) where few rays make the table: on maps of up to 25 secrets; where the
              nearest other place, in the median over places, is 2.5 nats away or more; by all pairs from 1 nat up to
              450 secrets, from 0.45 up to 50. Else multipliers in a box (columns.py)
    blocks    the block interior-point method on restricted programs (blocks.py): longer edges beyond, up to 4,900
              secrets
    pool      columns kept without a table, of the capability maps: beyond 4,900 secrets, where reports are the secrets
              and edges are few for each; up to 6,000 where the loss is a table, which the result is then too

Where a route ends above the gap the next one that accepts the problem goes on, in the order of `routes`. Measured by
benchmarks/run.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol, cast, get_args

import numpy as np
import xarray as xr

from mechdesign.base.memory import BYTES_PER_ENTRY
from mechdesign.base.registry import Role
from mechdesign.errors import InputError
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.program import Optimal
from mechdesign.solvers.cone.pricing import many_pairs
from mechdesign.solvers.result import Design, Targets

Route = Literal["highs", "columns", "blocks", "pool"]
ROUTES: tuple[Route, ...] = get_args(Route)
SMALL = 60_000  # constraints of the whole program up to which HiGHS solves it at once
MANY = 700  # secrets up to which columns are taken whatever the edges
LARGEST = 2_500  # secrets up to which columns fit: 8 bytes for each of 24 n columns and blocks of rows
TABLE = 4_900  # secrets beyond which a pool of columns is taken: 70 x 70
VERTICES = 450  # secrets up to which vertices are taken by all pairs, and where boxes end above the gap
DESIGNS = 900  # secrets up to which designs of changing priors are mixed (coupled.py): a master of 2 n rows
FEWEST = 25  # up to which vertices are taken whatever the edges: they end at the optimum
PAIRED, FAR_PAIRS = 50, 1.0  # by all pairs of more places trees that are kept pay, up to so many nats
FAR = 0.45  # nats to the nearest other place, in the median, from which edges are no longer short
FARTHER = 2.5  # the same, from which rays are few where edges are
GAP, POOL_GAP = 1e-3, 5e-3  # to which the seconds below are known
# Secrets and CPU seconds, by class.
KNOWN: dict[str, tuple[tuple[int, float], ...]] = {
    "all pairs": ((100, 1), (225, 3), (300, 6), (900, 50), (1600, 250), (2500, 500)),
    "short edges": ((144, 2), (400, 20), (900, 150)),
    "long edges, vertices": ((225, 1), (450, 4)),
    "long edges, blocks": ((1225, 15), (2500, 25), (4900, 120)),
    "a pool": ((4_900, 25), (10_000, 135), (40_000, 4600)),
    "the whole program": ((100, 5),),
}


class PoolSolver(Protocol):
    """Solves optimal programs by a pool of columns, without a table of all probabilities."""

    def rejection_reason(self, problem: DesignProblem) -> str | None:
        """Why a problem cannot be solved by a pool of columns; None if it can."""
        ...

    def makes_table(self, problem: DesignProblem) -> bool:
        """True if the result is a table, not factors."""
        ...

    def needs_closed_form(self, problem: DesignProblem) -> bool:
        """True if the result is so small that closed forms are compared with it."""
        ...

    def solve(self, program: Optimal, targets: Targets) -> Design | xr.Dataset:
        """The result for a program, or the mechanism itself where it is no table."""
        ...


POOL_SOLVER: Role[PoolSolver] = Role("pool")


def constraints(problem: DesignProblem) -> int:
    """Rows of the whole program."""
    return 2 * len(problem.edges.tail) * problem.reports.size + problem.domain.size


def is_complete(problem: DesignProblem) -> bool:
    """Whether edges are so many that all pairs are priced."""
    return many_pairs(len(problem.edges.tail), problem.domain.size)


def nearest(problem: DesignProblem) -> float:
    """The distance to the nearest other place in nats, the median over places; infinite for one place."""
    edges = problem.edges
    least = np.full(problem.domain.size, np.inf)
    np.minimum.at(least, edges.tail, edges.length)
    np.minimum.at(least, edges.head, edges.length)
    return float(np.median(least))


def few_rays(problem: DesignProblem) -> bool:
    """Whether few rays make the optimal table: long edges, and places, or pairs, that are not too many."""
    size, complete = problem.domain.size, is_complete(problem)
    if size <= FEWEST:
        return True
    if complete:
        return size <= VERTICES and nearest(problem) >= (FAR_PAIRS if size > PAIRED else FAR)
    return size <= MANY and nearest(problem) >= FARTHER


def accepts(route: Route, problem: DesignProblem) -> str | None:
    """Why a route cannot solve the optimal program of a problem; None where it can."""
    size = problem.domain.size
    if route == "pool":
        if not POOL_SOLVER.is_filled:
            return "the capability maps is not installed"
        return POOL_SOLVER.get().rejection_reason(problem)
    if route == "columns" and size > LARGEST:
        return f"its columns are dense: up to {LARGEST:,} secrets"
    if route == "highs" and not _small(problem):
        return f"HiGHS takes up to {SMALL:,} constraints, and {constraints(problem):,} are stated"
    return None


def routes(problem: DesignProblem) -> list[tuple[Route, str]]:
    """The routes to take in turn, each with the reason for its place."""
    size, answers = problem.domain.size, problem.reports.size
    if size > TABLE and accepts("pool", problem) is None:
        return [("pool", f"more than {TABLE:,} secrets")]
    order: list[tuple[Route, str]] = []
    if answers < size and _small(problem):
        order.append(("highs", f"{answers} answers for {size} secrets, {constraints(problem):,} constraints"))
    if size <= LARGEST:
        short = nearest(problem) < FAR
        if is_complete(problem):
            order.append(("columns", "all pairs are edges"))
        elif size <= MANY:
            order.append(("columns", f"no more than {MANY} secrets"))
        elif short:
            order.append(("columns", f"the nearest place is {nearest(problem):.2g} nats away in the median"))
    if not any(route == "columns" for route, _ in order):
        order.append(("blocks", f"more than {MANY if size <= LARGEST else LARGEST:,} secrets, and few edges for each"))
    if _small(problem) and not any(route == "highs" for route, _ in order):
        order.append(("highs", f"{constraints(problem):,} constraints, where the route before ends above the gap"))
    return order


def choose(problem: DesignProblem) -> tuple[Route, str]:
    """The route that "auto" takes first, and why."""
    return routes(problem)[0]


def seconds(problem: DesignProblem, route: Route) -> float:
    """CPU seconds to `GAP` or `POOL_GAP`, about: those measured in its class, scaled by the cube of the secrets."""
    known, size = KNOWN[_class(problem, route)], problem.domain.size
    count, measured = next(((k, s) for k, s in known if k >= size), known[-1])
    return float(measured) * max(1.0, size / count) ** 3


def memory(problem: DesignProblem, route: Route) -> int:
    """Bytes that a route holds at its peak beside the program itself, about."""
    n, m = problem.domain.size, problem.reports.size
    tables: dict[Route, Callable[[], float]] = {
        "highs": lambda: 25.0 * constraints(problem) / (n * m),
        "columns": lambda: 3.0 + 24.0 * n / m,
        "blocks": lambda: 14.0,
        "pool": lambda: 20_000.0 / m + (7.0 if problem.loss.code is None else 0.0),
    }
    return int(BYTES_PER_ENTRY * n * m * tables[route]())


def explained(problem: DesignProblem, method: str = "auto") -> dict[str, Any]:
    """The route, why, and the expected CPU seconds, to which gap, and memory; with the size of the program.

    Raises: InputError for a method that is none.
    """
    if method not in ("auto", *ROUTES):
        raise InputError(f"must be auto, {', '.join(ROUTES)}", field="method", value=method)
    route, why = choose(problem) if method == "auto" else (cast(Route, method), "asked for")
    refused = accepts(route, problem)
    return {
        "route": route,
        "why": why if refused is None else refused,
        "accepted": refused is None,
        "secrets": problem.domain.size,
        "reports": problem.reports.size,
        "constraints": constraints(problem),
        "nearest": nearest(problem),
        "expected_seconds": seconds(problem, route),
        "expected_gap": POOL_GAP if route == "pool" else GAP,
        "expected_mb": memory(problem, route) / 2**20,
    }


def explanation(problem: DesignProblem, method: str = "auto") -> str:
    """The same in a sentence or two."""
    facts = explained(problem, method)
    if not facts["accepted"]:
        return f"route {facts['route']}: cannot be taken: {facts['why']}"
    return (
        f"route {facts['route']}: {facts['why']}. {facts['secrets']:,} secrets, {facts['reports']:,} reports, "
        f"{facts['constraints']:,} constraints, nearest place {facts['nearest']:.2g} nats away in the median. "
        f"Expected: about {_rounded(facts['expected_seconds'])} CPU seconds to a gap of "
        f"{100 * facts['expected_gap']:g} %, {facts['expected_mb']:,.0f} MB"
    )


def _small(problem: DesignProblem) -> bool:
    return constraints(problem) - problem.domain.size <= SMALL


def _class(problem: DesignProblem, route: Route) -> str:
    if route == "pool":
        return "a pool"
    if route == "highs":
        return "the whole program"
    if route == "columns" and is_complete(problem):
        return "all pairs"
    if route == "columns":
        return "long edges, vertices" if few_rays(problem) else "short edges"
    return "long edges, blocks"


def _rounded(value: float) -> str:
    return f"{value:.1g}" if value < 10 else f"{float(f'{value:.2g}'):,.0f}"

"""Dispatch: every rule that chooses the solver of a program.

The optimal program (`rule`, by method "auto"):

1. `pool` alone, if secrets > 4,900 and a pool accepts the problem.
2. `highs`, if reports < secrets and constraints <= 60,000.
3. `columns`, up to 2,500 secrets and if all pairs are edges, or secrets <= 700, or the nearest place is < 0.45 nats
   away; else `blocks`.
4. `highs`, if constraints <= 60,000, unless it was first.

| route | method |
|---|---|
| highs | the whole linear program by HiGHS |
| columns | column generation by vertices if `has_few_rays`, else in a box; the other one follows above the gap |
| blocks | the block interior-point method on restricted programs (blocks.py) |
| pool | columns without a table (factored/); up to 6,000 secrets with a loss given as a table, and a table results |

Coupled programs: `coupled_attempts`. "The nearest place" is the median distance to it in nats. If a route ends above
the gap, the next one that accepts the problem continues.
"""

from __future__ import annotations

from enum import Enum, auto
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, get_args

import numpy as np
import xarray as xr

from mechdesign.base.registry import Role
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.coupled import SideRows
from mechdesign.programs.eikonal import EikonalWeights
from mechdesign.programs.optimal import Optimal
from mechdesign.solvers.cone.pricing import has_many_pairs
from mechdesign.solvers.lp.full import MOST_ROWS, count_rows
from mechdesign.solvers.lp.highs import Method
from mechdesign.solvers.result import SolveResult, Targets

MethodName = Literal["highs", "columns", "blocks", "pool"]  # of the optimal program, as users name them
METHODS: tuple[MethodName, ...] = get_args(MethodName)
# These limits divide routes by the time that they take, on problems as in benchmarks/run.py; no bound rests on them.
SMALL = 60_000  # constraints of the whole program up to which HiGHS solves it at once
MANY = 700  # secrets up to which columns are taken whatever the edges
LARGEST = 2_500  # secrets up to which columns fit: 8 bytes for each of 24 n columns and blocks of rows
TABLE = 4_900  # secrets beyond which a pool of columns is taken: 70 x 70
VERTICES = 450  # secrets up to which vertices are taken by all pairs, and where boxes end above the gap
DESIGNS = 900  # secrets up to which designs of changing priors are mixed (coupled.py): a master of 2 n rows
DESIGNS_FIRST = 60_000  # rows of the whole program beyond which they come first
LARGEST_TABLE = 1_600  # secrets up to which "auto" keeps eikonal weights as a table: 40 x 40
FEWEST = 25  # secrets up to which vertices are taken whatever the edges: they end at the optimum
PAIRED, FAR_PAIRS = 50, 1.0  # by all pairs of more places warm-start trees pay, up to so many nats
FAR = 0.45  # nats to the nearest other place, in the median, from which edges count as long
FARTHER = 2.5  # the same, from which rays are few where edges are
LONG = 1.0  # the same, from which rays are faster than the whole coupled program
SIMPLEX_LIMIT = 10_000  # rows of the whole program up to which the simplex method is used


class PoolSolver(Protocol):
    """Solves optimal programs by a pool of columns, without a table of all probabilities."""

    def rejection_reason(self, problem: DesignProblem) -> str | None:
        """Why a problem cannot be solved by a pool of columns; None if it can."""

    def makes_table(self, problem: DesignProblem) -> bool:
        """True if the result is a table, not factors."""

    def needs_closed_form(self, problem: DesignProblem) -> bool:
        """True if the result is small enough to compare closed forms with it."""

    def solve(self, program: Optimal, targets: Targets) -> SolveResult | xr.Dataset:
        """The result for a program; the mechanism itself if it is not a table."""


POOL_SOLVER: Role[PoolSolver] = Role("pool")


class FactoredSolver(Protocol):
    """Solves eikonal weights in factored form, without a table of all probabilities."""

    def rejection_reason(self, program: EikonalWeights) -> str | None:
        """Why a program has no factored form; None if it has one."""

    def solve(self, program: EikonalWeights, targets: Targets) -> xr.Dataset:
        """The factored mechanism of a program, certified."""

    def options(self, **values: Any) -> object:
        """The options of `md.solve` by name, those of `md.factored.FactoredOptions`."""

    def discard_finished(self, work: str | Path) -> None:
        """Empty the work folder of a finished run, whose mechanism is saved elsewhere."""


FACTORED_SOLVER: Role[FactoredSolver] = Role("factored")


class Attempt(Enum):
    """One attempt at a program; optimal.py and coupled.py map it to routes."""

    VERTICES = auto()
    BOXES = auto()
    BLOCKS = auto()
    WHOLE = auto()
    DESIGNS = auto()
    RAYS = auto()


class WholeTrial(NamedTuple):
    """One trial of the whole program: the method of HiGHS, and the cap in nats of the exponents of its kernels."""

    # At cap 0 the variables are the probabilities themselves, which suits answers that are likely far from their
    # anchors.

    method: Method
    cap: float


_SMALL_TRIALS = (
    WholeTrial("simplex", 9.0),
    WholeTrial("simplex", 18.0),
    WholeTrial("ipm", 9.0),
    WholeTrial("simplex", 0.0),
)
_LARGE_TRIALS = (WholeTrial("ipm", 5.0), WholeTrial("ipm", 9.0), WholeTrial("ipm", 0.0))


def constraints(problem: DesignProblem) -> int:
    """Rows of the whole program."""
    return count_rows(problem, 0)


def is_complete(problem: DesignProblem) -> bool:
    """True if edges are so many that all pairs are priced."""
    return has_many_pairs(len(problem.edges.tail), problem.domain.size)


def nearest(problem: DesignProblem) -> float:
    """The median over places of the distance in nats to the nearest other place; infinite for one place."""
    edges = problem.edges
    # The nearest place is a neighbour, so no shortest paths are needed.
    shortest = np.full(problem.domain.size, np.inf)
    np.minimum.at(shortest, edges.tail, edges.length)
    np.minimum.at(shortest, edges.head, edges.length)
    return float(np.median(shortest))


def has_few_rays(problem: DesignProblem) -> bool:
    """True if few rays make the optimal table: long edges, and few places or pairs."""
    size = problem.domain.size
    # So few vertices always end at the optimum.
    if size <= FEWEST:
        return True
    if is_complete(problem):
        return size <= VERTICES and nearest(problem) >= (FAR_PAIRS if size > PAIRED else FAR)
    return size <= MANY and nearest(problem) >= FARTHER


def rejection_reason(method: MethodName, problem: DesignProblem) -> str | None:
    """Why a method cannot solve the optimal program of a problem; None if it can."""
    size = problem.domain.size
    if method == "pool":
        if not POOL_SOLVER.is_filled:
            return "the capability factored is not installed"
        return POOL_SOLVER.get().rejection_reason(problem)
    if method == "columns" and size > LARGEST:
        return f"takes at most {LARGEST:,} secrets, because its columns are dense"
    if method == "highs" and not _is_small(problem):
        return f"takes at most {SMALL:,} constraints, and the program has {constraints(problem):,}"
    return None


def rule(problem: DesignProblem) -> list[tuple[MethodName, str]]:
    """The methods to try in turn, each with the reason for its place."""
    size, answers = problem.domain.size, problem.reports.size
    if size > TABLE and rejection_reason("pool", problem) is None:
        return [("pool", f"more than {TABLE:,} secrets")]
    order: list[tuple[MethodName, str]] = []
    # Few answers make a whole program of few variables, where HiGHS needs no cuts or columns.
    if answers < size and _is_small(problem):
        order.append(("highs", f"{answers} answers for {size} secrets, {constraints(problem):,} constraints"))
    why = _why_columns(problem)
    if why is not None:
        order.append(("columns", why))
    else:
        order.append(("blocks", f"more than {MANY if size <= LARGEST else LARGEST:,} secrets, and few edges for each"))
    if _is_small(problem) and order[0][0] != "highs":
        order.append(("highs", f"{constraints(problem):,} constraints, if the route before ends above the gap"))
    return order


def _why_columns(problem: DesignProblem) -> str | None:
    size = problem.domain.size
    if size > LARGEST:
        return None
    if is_complete(problem):
        return "all pairs are edges"
    if size <= MANY:
        return f"no more than {MANY} secrets"
    if nearest(problem) < FAR:
        return f"the median distance to the nearest secret is {nearest(problem):.2g} nats"
    return None


def choose(problem: DesignProblem) -> tuple[MethodName, str]:
    """The method that "auto" takes first, and why."""
    return rule(problem)[0]


def optimal_attempts(problem: DesignProblem, method: str | None) -> list[Attempt]:
    """The attempts by a method in turn; for None, those of `rule`."""
    first, second = Attempt.BOXES, Attempt.VERTICES
    if has_few_rays(problem):
        first, second = second, first
    attempt = {"highs": Attempt.WHOLE, "columns": first, "blocks": Attempt.BLOCKS}
    names = [name for name, _ in rule(problem)] if method is None else [method]
    attempts = [attempt[name] for name in names]
    if first in attempts and (second is Attempt.BOXES or problem.domain.size <= VERTICES):
        attempts.append(second)
    # A basic solution may leave columns of zeros, which no repair makes positive.
    if method == "highs" and not problem.prior_array.all():
        attempts.append(Attempt.VERTICES)
    return attempts


def designs_fit(problem: DesignProblem, rows: SideRows) -> bool:
    """True if the side rows share one maximum, so that multipliers are a prior, and the master is small enough."""
    return problem.domain.size <= DESIGNS and bool((rows.epigraph_coefficient > 0).all())


def suits_rays(problem: DesignProblem) -> bool:
    """True if rays are faster than the whole coupled program."""
    return nearest(problem) >= LONG and problem.domain.size <= VERTICES


# 1. Designs of changing priors, if the whole program has > 60,000 rows and `designs_fit`; else rays, if `suits_rays`
# and side rows <= secrets.
# 2. The whole program, if it has <= 400,000 rows: by the simplex method up to 10,000 rows, else by interior points.
# 3. Rays up to 450 secrets, unless `suits_rays` and side rows <= secrets.
def coupled_attempts(problem: DesignProblem, rows: SideRows) -> list[Attempt]:
    """The attempts at a coupled program, in turn."""
    attempts, size = [], problem.domain.size
    # A side row for every entry takes a hundred times as long by rays as by the whole program.
    rays_first = suits_rays(problem) and rows.size <= size
    # Designs come first only where the whole program is large; below, HiGHS needs less time for it.
    if count_rows(problem, rows.size) > DESIGNS_FIRST and designs_fit(problem, rows):
        attempts.append(Attempt.DESIGNS)
    elif rays_first:
        attempts.append(Attempt.RAYS)
    if whole_trials(problem, rows.size):
        attempts.append(Attempt.WHOLE)
    if not rays_first and size <= VERTICES:
        attempts.append(Attempt.RAYS)
    return attempts


def whole_trials(problem: DesignProblem, side: int) -> tuple[WholeTrial, ...]:
    """The trials of the whole program with `side` side rows; none if it is too large."""
    rows = count_rows(problem, side)
    if rows > MOST_ROWS:
        return ()
    return _SMALL_TRIALS if rows <= SIMPLEX_LIMIT else _LARGE_TRIALS


def takes_factors(program: EikonalWeights, method: str) -> bool:
    """True if eikonal weights are solved in factors, not as a table."""
    if method == "factored":
        return True
    # A request above returns before this test: the solver then says why it does not accept the program.
    is_large = program.problem.domain.size > LARGEST_TABLE
    if method != "auto" or not is_large or not FACTORED_SOLVER.is_filled:
        return False
    return FACTORED_SOLVER.get().rejection_reason(program) is None


def _is_small(problem: DesignProblem) -> bool:
    return constraints(problem) - problem.domain.size <= SMALL

"""Solve the program of a query: a small linear program, with constraints added as they are violated.

The program has k weights and, for every edge and either end's answer, a constraint each way: e of them with n = 40,000
are a million, and few bind. It is first solved with a bound on the weights alone, then with the constraints that its
solution violates most, until none is violated.

Lower bound on the optimal program, beyond the sizes of optimal.py. Multipliers of the row sums follow from those of the
constraints, because P(q(u)|u) enters row u with coefficient 1: lambda(u) is its own cost plus its value in the
constraints. The program has few kernels, so these multipliers are too large for the private columns that it lacks, and
are lowered. A second choice is lambda(u) = prior(u) l(u, z) e^{-2 f(u)}, with z the nearest wrong answer and f(u) its
distance: the cost of a wrong answer, where privacy makes it likely.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mechdesign.base import interrupts
from mechdesign.base.time_budget import TimeBudget
from mechdesign.mechanism.repair import repair
from mechdesign.programs.queries import QueryWeights
from mechdesign.solvers.lp.highs import solve_linear_program
from mechdesign.solvers.lp.linear_program import LinearProgram
from mechdesign.solvers.optimal_bound import TABLE_ENDS, optimal_lower_bound
from mechdesign.solvers.result import SolveResult, Targets


@dataclass(frozen=True, kw_only=True)
class QueryOptions:
    """The constants of this solver; unless marked otherwise they are guesses."""

    priced: int = 20_000  # entries of a table up to which multipliers are priced
    broken: float = 1e-8  # relative; constraints broken by less are left to the repair
    rounds: int = 60
    added: int = 500  # constraints taken up in a round
    # Coefficients beyond, of weights that edges of 30 nats and more leave no room, are as good as this.
    largest: float = 1e12
    underflow: float = 1e-300  # least unit of a constraint
    # Largest probability of a kernel that counts as none: its true coefficient may be far beyond `largest`.
    nothing: float = 1e-11
    shortest: float = 1.0  # seconds that the linear program gets


OPTIONS = QueryOptions()


@dataclass(frozen=True, kw_only=True, eq=False)
class _Constraints:
    """e^{-d} P(y|u) - P(y|v) <= 0, each divided by `unit`: secret u, other v, report y, ratio e^{-d}, all (c,)."""

    secret: NDArray[np.int64]
    other: NDArray[np.int64]
    report: NDArray[np.int64]
    ratio: NDArray[np.float64]
    unit: NDArray[np.float64]

    def excess(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        return (self.ratio * table[self.secret, self.report] - table[self.other, self.report]) / self.unit

    def take(self, chosen: NDArray[np.int64]) -> _Constraints:
        return _Constraints(**{name: values[chosen] for name, values in vars(self).items()})


@dataclass(frozen=True, kw_only=True, eq=False)
class _Columns:
    """The kernels that reach places of other labels, each divided by `unit`, its largest value there."""

    used: NDArray[np.int64]  # (k,): kernel numbers
    unit: NDArray[np.float64]  # (k,)
    cost: NDArray[np.float64]  # (k,), in units of `scale`
    mean: NDArray[np.float64]  # (k,), over all secrets
    scale: float
    count: int  # of all kernels

    @classmethod
    def of(cls, program: QueryWeights) -> _Columns:
        cost, answer = program.problem.weighted_loss, program.query.answer
        own = cost[np.arange(len(cost)), answer]
        unit, price, mean = (np.zeros(len(program.answer)) for _ in range(3))
        for k, y in enumerate(program.answer):
            # At places of its own label y takes the rest of the row, so its kernels count elsewhere only.
            column = np.where(answer == y, 0.0, program.kernel[:, k])
            # The true answer loses the probability that y gains, hence the difference of costs.
            unit[k], price[k], mean[k] = column.max(), (cost[:, y] - own) @ column, column.mean()
        used = np.flatnonzero(unit > 0)
        price = price[used] / unit[used]
        scale = float(np.abs(price).max()) or 1.0
        mean = mean[used] / unit[used]
        return cls(used=used, unit=unit[used], cost=price / scale, mean=mean, scale=scale, count=len(unit))

    def weights(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights (k,) of all kernels at a point of the linear program."""
        weights = np.zeros(self.count)
        weights[self.used] = np.where(x > OPTIONS.nothing, x, 0.0) / self.unit
        return weights


def solve_query(program: QueryWeights, targets: Targets) -> SolveResult:
    """Solve, repair, certify; the lower bound on the optimal program only if n m is at most 20,000.

    Cost: k searches and a few linear programs of k variables, 20 s for 40,000 places with 20 labels. Memory: the kernel
    (n, k) of at most 640 MB, and tables (n, m). Beyond 2.5 million entries n m source sets are fewer.
    """
    problem = program.problem
    started = time.monotonic()
    search = _ConstraintSearch(program)
    search.run(TimeBudget(started + TABLE_ENDS * targets.time_limit))
    used = int((search.weights > 0).sum())
    parameters = {**program.parameters(), "kernels_used": used, "constraints_used": len(search.added)}
    interrupts.hold()
    mass = repair(np.maximum(search.table, 0.0), problem.edges, problem.weighted_loss)
    if mass.size > OPTIONS.priced:
        return SolveResult(mass=mass, parameters=parameters)
    duals = (search.row_multipliers(), _border_multipliers(program))
    bound = optimal_lower_bound(problem, duals, mass=mass, targets=targets, started=started)
    return SolveResult(
        mass=mass, dual=bound.dual, lower_bound=bound.value, stopped=bound.stopped, parameters=parameters
    )


class _ConstraintSearch:
    def __init__(self, program: QueryWeights) -> None:
        self.program, self.every, self.columns = program, _constraints(program), _Columns.of(program)
        # The first row: the mean of P(q(u)|u) is not negative. Privacy implies it, and it keeps every weight finite.
        self.matrix, self.upper = [self.columns.mean[None, :]], [np.ones(1)]
        self.added = np.zeros(0, np.int64)

    def run(self, budget: TimeBudget) -> None:
        while True:
            seconds = budget.remaining()
            self._solve(max(OPTIONS.shortest, seconds))
            excess = self.every.excess(self.table)
            excess[self.added] = 0.0
            broken = np.flatnonzero(excess > OPTIONS.broken)
            if len(broken) == 0 or len(self.matrix) > OPTIONS.rounds or seconds < 0:
                return
            self._add(broken[np.argsort(-excess[broken], kind="stable")[: OPTIONS.added]])

    def _solve(self, time_limit: float) -> None:
        rows = np.vstack(self.matrix)
        program = LinearProgram(
            cost=self.columns.cost,
            matrix=sp.csr_array(rows),
            row_lower=np.full(len(rows), -np.inf),
            row_upper=np.concatenate(self.upper),
            linking=len(rows),
        )
        solution = solve_linear_program(program, time_limit=time_limit)
        self.dual, self.weights = solution.dual, self.columns.weights(solution.x)
        self.table = self.program.table(self.weights)

    def _add(self, numbers: NDArray[np.int64]) -> None:
        coefficients, right = _rows(self.program, self.every.take(numbers), self.columns.used)
        self.matrix.append(np.clip(coefficients / self.columns.unit, -OPTIONS.largest, OPTIONS.largest))
        self.upper.append(right)
        self.added = np.concatenate([self.added, numbers])

    def row_multipliers(self) -> NDArray[np.float64]:
        """Multipliers (n,) of the rows: the cost of P(q(u)|u), plus its value in the constraints."""
        constraints, multipliers = self.every.take(self.added), -self.dual * self.columns.scale
        answer = self.program.query.answer
        dual = self.program.problem.weighted_loss[np.arange(len(answer)), answer] - multipliers[0] / len(answer)
        share = multipliers[1:] / constraints.unit
        at, beside = (answer[places] == constraints.report for places in (constraints.secret, constraints.other))
        np.add.at(dual, constraints.secret[at], (constraints.ratio * share)[at])
        np.add.at(dual, constraints.other[beside], -share[beside])
        return dual


def _constraints(program: QueryWeights) -> _Constraints:
    """Both ways of every edge for the answers of both ends; the unit makes the coefficients of a row comparable."""
    tail, head, length = program.problem.edges.both_ways()
    answer = program.query.answer
    crossing = answer[tail] != answer[head]
    secret = np.concatenate([tail, tail[crossing]])
    other = np.concatenate([head, head[crossing]])
    report = np.concatenate([answer[tail], answer[head[crossing]]])
    ratio = np.exp(-np.concatenate([length, length[crossing]]))
    within = answer[secret] == answer[other]
    unit = np.where(within, 1.0 - ratio, np.maximum(np.exp(-program.distances[other, report]), OPTIONS.underflow))
    return _Constraints(secret=secret, other=other, report=report, ratio=ratio, unit=unit)


def _rows(
    program: QueryWeights, constraints: _Constraints, used: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Coefficients (c, k) of the weights and the right-hand sides (c,)."""
    answer = program.answer[used]

    def entry(secret: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        # P of the true answer is 1 less the kernels of the others, hence coefficient -1 and constant 1. P of another
        # answer is the sum of its kernels.
        true = program.query.answer[secret]
        kernel = program.kernel[np.ix_(secret, used)]
        own = true == constraints.report
        sign = np.where(own[:, None], -1.0 * (answer != true[:, None]), answer == constraints.report[:, None])
        return sign * kernel, own.astype(float)

    at, constant = entry(constraints.secret)
    beside, other = entry(constraints.other)
    ratio, unit = constraints.ratio, constraints.unit
    return (ratio[:, None] * at - beside) / unit[:, None], (other - ratio * constant) / unit


def _border_multipliers(program: QueryWeights) -> NDArray[np.float64]:
    """prior(u) l(u, z) e^{-2 f(u)}, (n,)."""
    secrets = np.arange(program.problem.domain.size)
    wrong = program.distances.copy()
    wrong[secrets, program.query.answer] = np.inf
    nearest = wrong.argmin(axis=1)
    return program.problem.weighted_loss[secrets, nearest] * np.exp(-2 * wrong[secrets, nearest])

"""Solve the program of a query: a small linear program, with constraints added as they are violated."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from mechdesign.base import interrupts
from mechdesign.base.arrays import Indices, Matrix, Vector
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
    violation: float = 1e-8  # relative; constraints violated by less are left to the repair
    rounds: int = 60
    added: int = 500  # constraints taken up in a round
    # Coefficients beyond, of weights that edges of 30 nats and more leave no room, are as good as this.
    largest: float = 1e12
    underflow: float = 1e-300  # least unit of a constraint
    # Largest probability of a kernel that counts as 0: its true coefficient may be far beyond `largest`.
    negligible: float = 1e-11
    shortest: float = 1.0  # seconds that the linear program gets


OPTIONS = QueryOptions()


@dataclass(frozen=True, kw_only=True, eq=False)
class _Constraints:
    """e^{-d} P(y|u) - P(y|v) <= 0, each divided by `unit`: secret u, other v, report y, ratio e^{-d}, all (c,)."""

    secret: Indices
    other: Indices
    report: Indices
    ratio: Vector
    unit: Vector

    def excess(self, table: Matrix) -> Vector:
        return (self.ratio * table[self.secret, self.report] - table[self.other, self.report]) / self.unit

    def take(self, chosen: Indices) -> _Constraints:
        return _Constraints(**{name: values[chosen] for name, values in vars(self).items()})


@dataclass(frozen=True, kw_only=True, eq=False)
class _Columns:
    """The kernels that reach places of other labels, each divided by `unit`, its largest value there."""

    used: Indices  # (k,): kernel numbers
    unit: Vector  # (k,)
    cost: Vector  # (k,), in units of `scale`
    mean: Vector  # (k,), over all secrets
    scale: float
    count: int  # of all kernels

    @classmethod
    def of(cls, program: QueryWeights) -> _Columns:
        cost, answer = program.problem.weighted_loss, program.query.answer
        true_cost = cost[np.arange(len(cost)), answer]
        unit, price, mean = (np.zeros(len(program.answer)) for _ in range(3))
        for k, y in enumerate(program.answer):
            # At places of its own label y takes the rest of the row, so its kernels count elsewhere only.
            column = np.where(answer == y, 0.0, program.kernel[:, k])
            # The true answer loses the probability that y gains, hence the difference of costs.
            unit[k], price[k], mean[k] = column.max(), (cost[:, y] - true_cost) @ column, column.mean()
        used = np.flatnonzero(unit > 0)
        price = price[used] / unit[used]
        scale = float(np.abs(price).max()) or 1.0
        mean = mean[used] / unit[used]
        return cls(used=used, unit=unit[used], cost=price / scale, mean=mean, scale=scale, count=len(unit))

    def weights(self, x: Vector) -> Vector:
        """Weights (k,) of all kernels at a point of the linear program."""
        weights = np.zeros(self.count)
        weights[self.used] = np.where(x > OPTIONS.negligible, x, 0.0) / self.unit
        return weights


# The program (programs/queries.py) has k weights and, for 40,000 places, a million constraints (4), of which few bind.
# It is first solved with a bound on the weights alone, then with the constraints that its solution violates most, until
# no constraint is violated. Multipliers of the row sums give a lower bound on the optimal program.
def solve_query(program: QueryWeights, targets: Targets) -> SolveResult:
    """Solve, repair, certify; the lower bound on the optimal program only if n m is at most 20,000."""
    # Cost: k searches and a few linear programs of k variables, 20 s for 40,000 places with 20 labels. Memory: the
    # kernel (n, k) of at most 640 MB, and tables (n, m).
    problem = program.problem
    started = time.monotonic()
    search = _ConstraintSearch(program)
    search.run(TimeBudget(started + TABLE_ENDS * targets.time_limit))
    used = int((search.weights > 0).sum())
    parameters = {**program.parameters(), "kernels_used": used, "constraints_used": len(search.added)}
    # From here on Ctrl-C ends the bound, not the table.
    interrupts.hold()
    # Entries (3) are negative where constraints are violated: the repair starts from 0 there.
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
            # The solver satisfies these to its own tolerance; adding them again would not help.
            excess[self.added] = 0.0
            violated = np.flatnonzero(excess > OPTIONS.violation)
            if len(violated) == 0 or len(self.matrix) > OPTIONS.rounds or seconds < 0:
                return
            self._add(violated[np.argsort(-excess[violated], kind="stable")[: OPTIONS.added]])

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

    def _add(self, numbers: Indices) -> None:
        coefficients, right = _rows(self.program, self.every.take(numbers), self.columns.used)
        self.matrix.append(np.clip(coefficients / self.columns.unit, -OPTIONS.largest, OPTIONS.largest))
        self.upper.append(right)
        self.added = np.concatenate([self.added, numbers])

    def row_multipliers(self) -> Vector:
        """Multipliers (n,) of the rows: the cost of P(q(u)|u), plus its reduced cost in the constraints."""
        # P(q(u)|u) enters row u with coefficient 1 and has no other row sum, so lambda(u) is its price. With few
        # kernels these multipliers are too large for the private columns that the program lacks; pricing lowers them.
        constraints, multipliers = self.every.take(self.added), -self.dual * self.columns.scale
        answer = self.program.query.answer
        dual = self.program.problem.weighted_loss[np.arange(len(answer)), answer] - multipliers[0] / len(answer)
        price = multipliers[1:] / constraints.unit
        # The two ends of a constraint at which its report is the true answer.
        at_secret = answer[constraints.secret] == constraints.report
        at_other = answer[constraints.other] == constraints.report
        np.add.at(dual, constraints.secret[at_secret], (constraints.ratio * price)[at_secret])
        np.add.at(dual, constraints.other[at_other], -price[at_other])
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
    # Within a label the constants of (3) leave 1 - e^{-d} on the right-hand side. Across labels the unit is the kernel
    # of y at the other end, the size of P(y|v) for a weight of 1.
    is_within = answer[secret] == answer[other]
    unit = np.where(is_within, 1.0 - ratio, np.maximum(np.exp(-program.distances[other, report]), OPTIONS.underflow))
    return _Constraints(secret=secret, other=other, report=report, ratio=ratio, unit=unit)


def _rows(program: QueryWeights, constraints: _Constraints, used: Indices) -> tuple[Matrix, Vector]:
    """Coefficients (c, k) of the weights and the right-hand sides (c,)."""
    answer = program.answer[used]

    def entry(secret: Indices) -> tuple[Matrix, Vector]:
        # P of the true answer is 1 less the kernels of the others, hence coefficient -1 and constant 1. P of another
        # answer is the sum of its kernels.
        true = program.query.answer[secret]
        kernel = program.kernel[np.ix_(secret, used)]
        is_true = true == constraints.report
        sign = np.where(is_true[:, None], -1.0 * (answer != true[:, None]), answer == constraints.report[:, None])
        return sign * kernel, is_true.astype(float)

    at_secret, secret_constant = entry(constraints.secret)
    at_other, other_constant = entry(constraints.other)
    ratio, unit = constraints.ratio, constraints.unit
    # (4) with (2) and (3) inserted; the constants go to the right-hand side.
    return (ratio[:, None] * at_secret - at_other) / unit[:, None], (other_constant - ratio * secret_constant) / unit


def _border_multipliers(program: QueryWeights) -> Vector:
    """Multipliers prior(u) l(u, z) e^{-2 f(u)}, (n,): z the nearest wrong answer, f(u) its distance."""
    # The cost of a wrong answer, where privacy makes it likely: near the border of the label.
    secrets = np.arange(program.problem.domain.size)
    distance = program.distances.copy()
    distance[secrets, program.query.answer] = np.inf
    nearest = distance.argmin(axis=1)
    return program.problem.weighted_loss[secrets, nearest] * np.exp(-2 * distance[secrets, nearest])

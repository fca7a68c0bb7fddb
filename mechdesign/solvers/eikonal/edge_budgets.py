"""Edge budgets: a private table of eikonal kernels whose rows are divided by their sums.

Lengths x of edges pay for dividing the rows by their sums s (row_sum_budget.py), with weights w >= 0 and K = e^{-D} for
the distances D of these lengths. Weights follow the expectation-maximisation update

    w <- w K'(1 / K w) / K'1,                                                                                       (1)

which keeps them positive and levels s. A last common factor f in [1/2, 1] on the lengths makes

    f x_e + |ln s(u) - ln s(v)| <= d_e     on every edge e = (u, v),                                                (2)

which holds for any weights at f = 1/2.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from mechdesign.base.arrays import Matrix, Vector
from mechdesign.base.threads import OutOfTime
from mechdesign.problem.lattice import Edges
from mechdesign.problem.problem import DesignProblem
from mechdesign.solvers.eikonal.padding import PaddedProblem
from mechdesign.solvers.eikonal.row_sum_budget import find_fixed_point, remaining_length, used_slack
from mechdesign.solvers.result import Report, silent


@dataclass(frozen=True, kw_only=True)
class BudgetOptions:
    """Constants of edge budgets; the counts are guesses."""

    rounds: int = 12
    updates: int = 40  # of the weights per round (1)
    bisections: int = 12  # of the factor (2)
    slack: float = 1e-12  # nats that lengths leave for rounding
    last: float = 3.0  # rounds' time reserved for the last factor


_OPTIONS = BudgetOptions()


def edge_budget(
    problem: DesignProblem,
    padded: PaddedProblem,
    *,
    deadline: float = math.inf,  # of time.monotonic()
    report: Report = silent,
) -> tuple[Matrix, bool]:
    """A table (n, n), private for the edges of `problem` up to rounding, and whether the deadline left rounds out."""
    budget = _EdgeBudget(padded, deadline, report)
    potential, _ = find_fixed_point(np.zeros(len(padded.inner)), budget.measure, rounds=_OPTIONS.rounds, good_kappa=1.0)
    table = budget.largest_factor(budget.lengths(potential))
    return padded.gather(table), budget.is_late


class _EdgeBudget:
    def __init__(self, padded: PaddedProblem, deadline: float, report: Report) -> None:
        self.padded, self.deadline, self.report = padded, deadline, report
        inner = np.full(padded.size, -1, np.int64)
        inner[padded.inner] = np.arange(len(padded.inner))
        tail, head = inner[padded.edges.tail], inner[padded.edges.head]
        # Edges with an end in the margin claim nothing, because its reports are moved inside.
        self.is_claimed = (tail >= 0) & (head >= 0)  # edges between secrets
        length = padded.edges.length[self.is_claimed]
        self.claim = Edges(tail=tail[self.is_claimed], head=head[self.is_claimed], length=length)
        self.weights = np.ones(padded.size)
        self.slowest, self.began, self.is_late = 0.0, time.monotonic(), False

    def lengths(self, potential: Vector) -> Vector:
        """Lengths of all edges; those between secrets are less the slack that the potential uses."""
        length = self.padded.edges.length.copy()
        length[self.is_claimed] = remaining_length(self.claim, potential, _OPTIONS.slack)
        return length

    def kappa(self, factor: float, length: Vector, log_rows: Vector) -> float:
        """The largest left-hand side of (2) over d_e."""
        used = factor * length[self.is_claimed] + used_slack(self.claim, log_rows)
        return float((used / (self.claim.length + _OPTIONS.slack)).max(initial=0.0))

    def measure(self, number: int, potential: Vector) -> tuple[Vector, float]:
        """Ln s (n,) and kappa at a potential; raises OutOfTime if the last factor would be late."""
        self.is_late = time.monotonic() + _OPTIONS.last * self.slowest > self.deadline
        if self.is_late:
            raise OutOfTime
        length = self.lengths(potential)
        self.weights, log_rows = _level_rows(np.exp(-self.padded.distances(length)), self.weights)
        self.slowest, self.began = max(self.slowest, time.monotonic() - self.began), time.monotonic()
        self._report(number + 1)
        return log_rows, self.kappa(1.0, length, log_rows)

    def largest_factor(self, length: Vector) -> Matrix:
        distance = self.padded.distances(length)
        low, high = 0.5, 1.0
        # (2) holds at 1/2 for any weights, so there is a table before the first trial.
        best = _normalise_rows(distance, low, self.weights)[0]
        for number in range(_OPTIONS.bisections):
            self.is_late |= time.monotonic() + self.slowest > self.deadline
            if self.is_late:
                break
            # 1 is tried first, because no bisection between 1/2 and 1 reaches it.
            factor = 1.0 if number == 0 else (low + high) / 2
            table, log_rows = _normalise_rows(distance, factor, self.weights)
            if self.kappa(factor, length, log_rows) <= 1.0:
                low, best = factor, table
                if factor == 1.0:
                    break
            else:
                high = min(factor, np.nextafter(1.0, 0.0))
            self._report(_OPTIONS.rounds + number + 1)
        return best

    def _report(self, done: int) -> None:
        self.report("edge budgets", done=done, total=_OPTIONS.rounds + _OPTIONS.bisections, unit="steps")


def _level_rows(kernel: Matrix, weights: Vector) -> tuple[Vector, Vector]:
    """Weights after the updates (1), and the logarithms of their row sums."""
    # (1): K'1 does not change from update to update.
    columns = kernel.sum(axis=0)
    for _ in range(_OPTIONS.updates):
        weights = weights * (kernel.T @ (1 / (kernel @ weights))) / columns
    return weights, np.log(kernel @ weights)


def _normalise_rows(distance: Matrix, factor: float, weights: Vector) -> tuple[Matrix, Vector]:
    """The row-normalised table (n, k) at `factor` times the distances, and the logarithms of its row sums."""
    kernel = np.exp(-factor * distance)
    levelled, log_rows = _level_rows(kernel, weights)
    return kernel * levelled / np.exp(log_rows)[:, None], log_rows

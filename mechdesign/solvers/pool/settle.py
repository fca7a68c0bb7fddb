"""From the weights of a pool to a certified mechanism: edge budgets, whole numbers, exact row sums.

Every edge gives up what the row sums spend of it: with lengths x_e and row sums s, the mechanism is private where
x_e + |ln s(u) - ln s(v)| <= d_e (mechanism/factored/certificate.py). Shorter lengths change the row sums a little, so a
few rounds settle both; what is left over in the end is taken off the step, so that the integers certify.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import DesignError
from mechdesign.mechanism.factored.certificate import STEP_BITS, WEIGHT_BITS, Factors
from mechdesign.mechanism.factored.columns import Columns
from mechdesign.mechanism.factored.dataset import ROWS, judge
from mechdesign.mechanism.factored.row_sums import LossData, RowBlock, join_words, rounded_words, sum_block
from mechdesign.setting.metric.integer_metric import IntegerMetric
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.factored.blocks import Arrays, Work, Workers, in_order, together
from mechdesign.solvers.factored.rounds import SLACK, Units
from mechdesign.solvers.factored.run import exact_block
from mechdesign.solvers.factored.work_folder import Folder
from mechdesign.solvers.kernels.threads import in_blocks
from mechdesign.solvers.pool.fields import Generators
from mechdesign.solvers.pool.matrix import Vector

ROUNDS = 24  # passes that move lengths, at most
GOOD = 1.0 + 2e-5  # largest log-ratio over claimed length at which they end early
_LEAST = 0.3  # share of an edge that is kept
_LOWERING = 16  # last rounds, in which lengths only fall
_LEAST_FACTOR = 0.49  # of the step, at which the certificate holds for any weights
_SHRINK = 1e-6

Told = Callable[[str, int, float | None], None]  # stage, rows done, the largest log-ratio over claimed length


def whole_units(problem: DesignProblem, step: int, length: Vector) -> NDArray[np.int64]:
    """Lengths (e,) in nats as whole steps of `step` 2^-48 nats, rounded down, cut at the range."""
    cut = np.minimum(length, np.ldexp(float(Units.for_lengths(problem.edges.length).cap * step), -STEP_BITS))
    return np.floor(np.ldexp(cut, STEP_BITS)).astype(np.int64) // step


class Settling:
    """The columns of a pool with fixed weights (c,) > 0, on their way to a certificate."""

    def __init__(
        self, problem: DesignProblem, crew: Workers, columns: Generators, weight: Vector, *, told: Told
    ) -> None:
        self.problem, self.crew, self.told = problem, crew, told
        self.units = Units.for_lengths(problem.edges.length)
        self.target = columns.report
        self.columns = Columns(
            place=columns.place,
            offset=np.minimum(columns.offset, self.units.cap).astype(np.uint16),
            first=columns.first[:-1].copy(),
        )
        self.weight = np.maximum(np.rint(weight / weight.max() * (1 << WEIGHT_BITS)), 1).astype(np.uint32)

    def certified(self) -> tuple[LossData, RowBlock, float]:
        """Integers that satisfy the certificate, their rows, and the factor of the step.

        Cost: up to 24 passes over the exact sums of the rows, and one or two over their losses.
        Raises: DesignError where half the distances break the claim, which they do for no weights.
        """
        units, kappa = self._lengths()
        factor = 1.0 if kappa <= 1 else 1 / kappa
        while True:
            step = int(self.units.step * max(factor, _LEAST_FACTOR))
            factors = self._factors(units, step)
            judged = judge(self.problem, factors, self.target)
            rows = RowBlock(**self._pass("certificate", exact_block, judged, ("row_sum", "loss")))
            breaches = factors.breaches(self.problem.edges, join_words(rows.row_sum))
            kappa = self._kappa(units * factors.nats_per_unit, self._spent(rows.row_sum))
            self.told(f"certificate, {breaches} breaches", self.problem.domain.size, kappa)
            if breaches == 0:
                return judged, rows, step / self.units.step
            if factor <= _LEAST_FACTOR:
                raise DesignError(
                    "half the distances break the claim", field="weight", value=step, remedy="report this problem"
                )
            factor *= (1 - _SHRINK) / max(1.0, kappa)

    def _lengths(self) -> tuple[NDArray[np.int64], float]:
        """Lengths (e,) in steps that leave what the row sums spend, and the largest log-ratio over claimed length."""
        full, nats = self.problem.edges.length, np.ldexp(self.units.step, -STEP_BITS)
        units = whole_units(self.problem, self.units.step, full)
        for number in range(ROUNDS):
            factors = self._factors(units, self.units.step)
            found = self._pass("row sums", sum_block, factors, ("row_sum",))
            spent = self._spent(found["row_sum"])
            kappa = self._kappa(units * nats, spent)
            self.told(f"row sums, round {number + 1} of {ROUNDS}", self.problem.domain.size, kappa)
            if kappa <= GOOD or number == ROUNDS - 1:
                break
            wanted = whole_units(self.problem, self.units.step, np.maximum(full - spent - SLACK, _LEAST * full))
            units = np.minimum(units, wanted) if number >= ROUNDS - 1 - _LOWERING else (units + wanted) // 2
        return units, kappa

    def _factors(self, units: NDArray[np.int64], step: int) -> Factors:
        edges = self.problem.edges
        metric = IntegerMetric(
            points=self.problem.domain.points,
            tail=edges.tail,
            head=edges.head,
            units=units.astype(np.uint16),
            cap=self.units.cap,
        )
        inner = np.arange(self.problem.domain.size)
        return Factors(metric=metric, step=step, weight=self.weight, inner=inner, columns=self.columns)

    def _spent(self, row_sum: NDArray[np.uint64]) -> Vector:
        logarithm = np.log(rounded_words(row_sum))
        return np.abs(logarithm[self.problem.edges.tail] - logarithm[self.problem.edges.head])

    def _kappa(self, used: NDArray[np.floating[Any]], spent: Vector) -> float:
        return float(((used + spent + SLACK) / self.problem.edges.length).max())

    def _pass(self, name: str, work: Work, state: object, over_rows: tuple[str, ...]) -> Arrays:
        blocks = in_order(self.crew, work, state, self.problem.domain.size, ROWS, folder=Folder(), name=name)

        def told() -> Iterator[Arrays]:
            for _, stop, arrays in blocks:
                self.told(name, stop, None)
                yield arrays

        return together(told(), over_rows)


def table_of(judged: LossData, rows: RowBlock, target: NDArray[np.int64]) -> Vector:
    """P (n, n) in floating point. Memory: n x n."""
    n = len(judged.prior)
    total = rounded_words(rows.row_sum)
    table = np.zeros((n, n))
    kernel, weight = judged.factors.kernel.astype(float), judged.factors.weight.astype(float)

    def fill(start: int, stop: int) -> None:
        mass = kernel[judged.factors.distances(np.arange(start, stop))] * weight[:, None]
        np.add.at(table[start:stop].T, target, mass / total[start:stop])

    in_blocks(fill, n, 128)
    return table

"""From the weights of a pool to a certified mechanism: edge budgets, whole numbers, exact row sums.

Every edge gives up what the row sums spend of it: with lengths x_e and row sums s, the mechanism is private where
x_e + |ln s(u) - ln s(v)| <= d_e (mechanism/factored/certificate.py). Shorter lengths change the row sums a little, so a
few rounds settle both. Then lengths only fall. A length is a few hundred units, and one unit less here moves row sums
there by as much: where an edge stays over its claim, its surroundings fall with it, less the farther they are, until
none is over it by more than a unit brings. What is left over is taken off the step, so that the integers certify.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

from mechdesign.base.threads import in_blocks
from mechdesign.mechanism.factored.certificate import STEP_BITS, WEIGHT_BITS, Factors
from mechdesign.mechanism.factored.columns import Columns
from mechdesign.mechanism.factored.dataset import ROWS
from mechdesign.mechanism.factored.row_sums import LossData, RowBlock, rounded_words, row_block, sum_block
from mechdesign.setting.metric.integer_metric import IntegerMetric
from mechdesign.setting.metric.shortest_paths import Edges
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.factored.blocks import Arrays, Work, Workers, whole_pass
from mechdesign.solvers.factored.rounds import SLACK, Claim, Units
from mechdesign.solvers.factored.step import OVER_ROWS, Told, certified
from mechdesign.solvers.pool.fields import Generators
from mechdesign.solvers.pool.matrix import Vector

ROUNDS = 36  # passes that move lengths, at most
GOOD = 1.0 + 2e-5  # largest log-ratio over claimed length at which they end early
_LEAST = 0.3  # share of an edge that is kept
_FALLING, _TOGETHER = 7, 14  # rounds from which lengths only fall, and from which they do with what is around them
_MORE, _WIDTH = 1.5, 3.0  # of an excess taken off there, e^-1 of it so many nats away
_MOST = 0.02  # of an excess that is passed on


class Settling:
    """The columns of a pool with fixed weights (c,) > 0, on their way to a certificate."""

    def __init__(
        self, problem: DesignProblem, crew: Workers, columns: Generators, weight: Vector, *, told: Told
    ) -> None:
        self.problem, self.crew, self.told = problem, crew, told
        self.units, self.claim = Units.for_lengths(problem.edges.length), Claim.whole(problem.edges)
        self.target = columns.report
        self.columns = Columns(
            place=columns.place,
            offset=np.minimum(columns.offset, self.units.cap).astype(np.uint16),
            first=columns.first[:-1].copy(),
        )
        self.weight = np.maximum(np.rint(weight / weight.max() * (1 << WEIGHT_BITS)), 1).astype(np.uint32)

    def certified(self) -> tuple[LossData, RowBlock, float]:
        """Integers that satisfy the certificate, their rows, and the factor of the step.

        Cost: up to 36 passes over the exact sums of the rows, and one or two over their losses.
        Raises: DesignError where half the distances break the claim, which they do for no weights.
        """
        units, sums = self._lengths()

        def exact(judged: LossData, step: int) -> Arrays:
            return self._pass("certificate", row_block, judged, OVER_ROWS)

        return certified(self.problem, self._factors(units), self.target, self.claim, sums, exact=exact, told=self.told)

    def _lengths(self) -> tuple[NDArray[np.int64], Vector]:
        """Lengths (e,) in steps that leave what the row sums spend, and the row sums (n,): those of the round at which
        the largest log-ratio over claimed length was the least.
        """
        full, nats = self.problem.edges.length, np.ldexp(self.units.step, -STEP_BITS)
        units, least = self.units.whole(full), np.inf
        for number in range(ROUNDS):
            found = self._pass("row sums", sum_block, self._factors(units), ("row_sum",))
            sums = rounded_words(found["row_sum"])
            spent = self.claim.spent(sums)
            strain = self.claim.strain(units * nats, spent)
            kappa = float(strain.max())
            self.told(f"row sums, round {number + 1} of {ROUNDS}", self.problem.domain.size, kappa)
            if kappa < least:
                least, best = kappa, (units, sums)
            if kappa <= GOOD:
                break
            wanted = self.units.whole(np.maximum(full - spent - SLACK, _LEAST * full))
            if number < _FALLING:
                units = (units + wanted) // 2
                continue
            fallen = np.minimum(units, wanted)
            if number >= _TOGETHER:
                share = _MORE * np.minimum(
                    felt(self.problem.edges, np.maximum(strain - 1, 0), self.problem.domain.size), _MOST
                )
                fallen = np.minimum(fallen, units - np.rint(units * share).astype(np.int64))
            units = fallen
        return best

    def _factors(self, units: NDArray[np.int64]) -> Factors:
        edges = self.problem.edges
        metric = IntegerMetric(
            points=self.problem.domain.points,
            tail=edges.tail,
            head=edges.head,
            units=units.astype(np.uint16),
            cap=self.units.cap,
        )
        inner = np.arange(self.problem.domain.size)
        return Factors(metric=metric, step=self.units.step, weight=self.weight, inner=inner, columns=self.columns)

    def _pass(self, name: str, work: Work, state: object, over_rows: tuple[str, ...]) -> Arrays:
        return whole_pass(
            self.crew,
            work,
            state,
            self.problem.domain.size,
            ROWS,
            over_rows=over_rows,
            name=name,
            told=lambda done: self.told(name, done, None),
        )


def felt(edges: Edges, excess: Vector, size: int) -> Vector:
    """The largest x e^(-d / 3) over the excess x of all edges, d nats from an end to an end of an edge (e,)."""
    worst = np.zeros(size)
    np.maximum.at(worst, edges.tail, excess)
    np.maximum.at(worst, edges.head, excess)
    own, (tail, head, length) = np.flatnonzero(worst), edges.both_ways()
    start = 1 + _WIDTH * np.log(worst.max() / worst[own])  # from a place before all others
    ends = np.concatenate([tail, np.full(len(own), size)]), np.concatenate([head, own])
    graph = sp.csr_array((np.concatenate([length, start]), ends), shape=(size + 1, size + 1))
    found = worst.max() * np.exp((1 - dijkstra(graph, indices=size)[:size]) / _WIDTH)
    return np.maximum(found[edges.tail], found[edges.head])


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

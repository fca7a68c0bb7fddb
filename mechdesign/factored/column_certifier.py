"""Level the row sums of columns, and shorten edges to leave room for the rest, until the integers certify."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mechdesign.base.arrays import Floats, Integers, Vector
from mechdesign.factored.certificate import Factors
from mechdesign.factored.certify import GOOD, certify_factors
from mechdesign.factored.columns import Columns
from mechdesign.factored.rounds import SLACK, Units, quantised_weights
from mechdesign.factored.row_sums import (
    OVER_ROWS,
    ROWS,
    CertifiedFactors,
    LossData,
    rounded_words,
    row_block,
    sum_block,
)
from mechdesign.factored.work_folder import Arrays, BlockedWork, Work, Workers, merged_pass
from mechdesign.problem.lattice import Edges
from mechdesign.problem.problem import DesignProblem
from mechdesign.solvers.eikonal.row_sum_budget import remaining_length
from mechdesign.solvers.result import Report, counter

ROUNDS = 40  # passes in which lengths fall, at most, a guess
# Share of the way to the wanted lengths in a round: with a half a third more rounds, for 3e-5 of the loss.
_SHARE = 0.7
# Rounds that divide the weights of columns by the row sum at their report. They take off 0.05 % of the loss, measured
# on two maps; further ones move sums more than they level them.
_WEIGHT_ROUNDS = 5
# A length that falls raises the sums around it by parts of a unit. On short edges, of which many lie within a nat, this
# pushes others over without end, unless edges keep some of a unit free. On 200 x 200 cells all lengths lost 0.1 %.
# Length of such an edge in nats; units that it keeps free; and their largest share of its length.
_SHORT, _SPARE, _SPARE_SHARE = 0.5, 0.5, 1e-3
# Passes without an improvement that end the search, and the least relative one that counts; guesses.
_PATIENCE, _GAIN = 4, 2e-5


def spare_lengths(edges: Edges, units: Units) -> Vector:
    """Nats (c,) that edges keep free of rounding."""
    return np.where(edges.length < _SHORT, np.minimum(_SPARE * units.nats, _SPARE_SHARE * edges.length), 0.0)


# The row sums use part of each claimed length (solvers/eikonal/row_sum_budget.py), and the kernel gets the rest in
# integer units. Lengths only fall. The step then takes up the last excess (certify.py).
@dataclass(frozen=True, kw_only=True, eq=False)
class ColumnCertifier:
    """Columns with their reports target (c,) and weights weight (c,) > 0, on their way to a certificate."""

    problem: DesignProblem
    executor: Workers
    columns: Columns
    target: Integers
    weight: Floats
    report: Report

    @cached_property
    def units(self) -> Units:
        return Units.for_lengths(self.problem.edges.length)

    def certify(self) -> CertifiedFactors:
        """Integers that satisfy the certificate. Cost: up to 40 passes over row sums, one or two over their losses."""
        factors, sums = self._rounds()

        def exact(data: LossData) -> Arrays:
            return self._pass("certificate", row_block, data, OVER_ROWS)

        edges, report = self.problem.edges, self.report
        return certify_factors(self.problem, factors, self.target, edges, sums, exact=exact, report=report)

    def _rounds(self) -> tuple[Factors, Floats]:
        # Returns the round with the largest mean share of claimed lengths once its kappa is divided out: that share
        # decides the loss.
        edges, size = self.problem.edges, self.problem.domain.size
        units, weight = self.units.quantise(edges.length), self.weight
        spare = spare_lengths(edges, self.units)
        best_share, best_round = 0.0, 0
        best = self._factors(units, weight), np.ones(size)
        for number in range(1, ROUNDS + 1):
            factors = self._factors(units, weight)
            sums = rounded_words(self._pass("row sums", sum_block, factors, ("row_sum",))["row_sum"])
            kappa = float(factors.claim_utilisation(edges, sums, SLACK).max())
            self.report(f"row sums, round {number} of {ROUNDS}", done=size, total=size, kappa=kappa)
            length_share = float(np.mean(units / edges.length)) / kappa
            if length_share > best_share:
                if length_share > best_share * (1 + _GAIN):
                    best_round = number
                best_share, best = length_share, (factors, sums)
            if kappa <= GOOD or number - best_round >= _PATIENCE:
                break
            # Shorter lengths change the sums, so a part of the way at a time; and none rises: rounding would bring an
            # excess of one unit back.
            wanted = self.units.quantise(remaining_length(edges, np.log(sums), SLACK) - spare)
            units = np.minimum(units, units + np.floor(_SHARE * (wanted - units)).astype(np.int64))
            if number <= _WEIGHT_ROUNDS:
                weight = weight * np.median(sums) / sums[self.target]
        return best

    def _factors(self, units: Integers, weight: Floats) -> Factors:
        metric = self.units.metric(self.problem.domain.points, self.problem.edges, units)
        offset = np.minimum(self.columns.offset, self.units.cap).astype(np.uint16)
        return Factors(
            metric=metric,
            step=self.units.step,
            weight=quantised_weights(weight),
            inner=np.arange(self.problem.domain.size),
            columns=replace(self.columns, offset=offset),
        )

    def _pass(self, name: str, work: Work, state: object, over_rows: tuple[str, ...]) -> Arrays:
        size = self.problem.domain.size
        blocks = BlockedWork(work=work, state=state, total=size, block=ROWS, name=name)
        return merged_pass(self.executor, blocks, over_rows, on_done=counter(self.report, name, size))

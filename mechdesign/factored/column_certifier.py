"""Shorten edges to leave room for the row sums of columns with fixed weights, until the integers certify."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mechdesign.base.arrays import Floats, Integers
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
from mechdesign.problem.problem import DesignProblem
from mechdesign.solvers.eikonal.row_sum_budget import remaining_length
from mechdesign.solvers.result import Report, counter

ROUNDS = 40  # passes in which lengths fall, at most, a guess
_SHARE = 0.7  # of the way to the wanted lengths in a round: with a half a third more rounds, for 3e-5 of the loss
# Passes without an improvement that end the search, and the least relative one that counts; guesses. On edges of half a
# nat kappa moves by whole units, 1e-3.
_PATIENCE, _GAIN = 4, 2e-5


# The row sums use part of each claimed length (solvers/eikonal/row_sum_budget.py), and the kernel gets the rest in
# integer units. Lengths only fall. The step then takes up the last excess (certify.py).
@dataclass(frozen=True, kw_only=True, eq=False)
class ColumnCertifier:
    """Columns with their reports target (c,) and fixed weights weight (c,) > 0, on their way to a certificate."""

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
        units, sums = self._lengths()

        def exact(data: LossData) -> Arrays:
            return self._pass("certificate", row_block, data, OVER_ROWS)

        factors = self._factors(units)
        edges, report = self.problem.edges, self.report
        return certify_factors(self.problem, factors, self.target, edges, sums, exact=exact, report=report)

    def _lengths(self) -> tuple[Integers, Floats]:
        # Returns the round with the largest mean share of claimed lengths once its kappa is divided out: that share
        # decides the loss.
        edges, size, best_share = self.problem.edges, self.problem.domain.size, 0.0
        units, best_round = self.units.quantise(edges.length), 0
        best = units, np.ones(size)
        for number in range(1, ROUNDS + 1):
            factors = self._factors(units)
            sums = rounded_words(self._pass("row sums", sum_block, factors, ("row_sum",))["row_sum"])
            kappa = float(factors.claim_utilisation(edges, sums, SLACK).max())
            self.report(f"row sums, round {number} of {ROUNDS}", done=size, total=size, kappa=kappa)
            length_share = float(np.mean(units / edges.length)) / kappa
            if length_share > best_share:
                if length_share > best_share * (1 + _GAIN):
                    best_round = number
                best_share, best = length_share, (units, sums)
            if kappa <= GOOD or number - best_round >= _PATIENCE:
                break
            # Shorter lengths change the sums, so a part of the way at a time; and none rises: rounding would bring an
            # excess of one unit back.
            wanted = self.units.quantise(remaining_length(edges, np.log(sums), SLACK))
            units = np.minimum(units, units + np.floor(_SHARE * (wanted - units)).astype(np.int64))
        return best

    def _factors(self, units: Integers) -> Factors:
        metric = self.units.metric(self.problem.domain.points, self.problem.edges, units)
        offset = np.minimum(self.columns.offset, self.units.cap).astype(np.uint16)
        return Factors(
            metric=metric,
            step=self.units.step,
            weight=quantised_weights(self.weight),
            inner=np.arange(self.problem.domain.size),
            columns=replace(self.columns, offset=offset),
        )

    def _pass(self, name: str, work: Work, state: object, over_rows: tuple[str, ...]) -> Arrays:
        size = self.problem.domain.size
        blocks = BlockedWork(work=work, state=state, total=size, block=ROWS, name=name)
        return merged_pass(self.executor, blocks, over_rows, on_done=counter(self.report, name, size))

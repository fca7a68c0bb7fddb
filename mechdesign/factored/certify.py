"""Shorten the step of factors until the integers satisfy the certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.base.arrays import Floats, Integers
from mechdesign.errors import DesignError
from mechdesign.factored.certificate import Factors
from mechdesign.factored.dataset import loss_data
from mechdesign.factored.rounds import SLACK
from mechdesign.factored.row_sums import CertifiedFactors, LossData, RowBlock, join_words, rounded_words, sum_rows
from mechdesign.factored.work_folder import Arrays
from mechdesign.problem.lattice import Edges
from mechdesign.problem.problem import DesignProblem
from mechdesign.solvers.result import Report

GOOD = 1.0 + 2e-5  # kappa at which rounds end early
Pass = Callable[[LossData], Arrays]  # `row_block` of all rows


# kappa is the largest log-ratio over claimed length. While it exceeds 1 the step is divided by it, and by a little
# more.
@dataclass(frozen=True, kw_only=True)
class StepSearch:
    """How the factor of the step is found: all guesses that cost time, not accuracy."""

    # 1/2 of the step less the rounding: any weights certify there, as row sums differ by no more than the distances do.
    least_factor: float = 0.49
    shrink: float = 1e-6  # relative: by which a factor falls more than kappa asks for
    more: float = 4e-3  # kappa - 1 up to which as much is taken off again: a shorter step changes the sums as well
    edges: int = 1024  # tried alone at most
    edge_share: int = 64  # one edge of so many is tried alone
    trials: int = 12  # at most, of the edges alone


STEP_SEARCH = StepSearch()


def certify_factors(
    problem: DesignProblem,
    factors: Factors,
    target: Integers,
    claim: Edges,
    expected: Floats,
    *,
    exact: Pass,
    report: Report,
) -> CertifiedFactors:
    """Integers that satisfy the certificate, with their rows and the factor of the step, in [0.49, 1]."""
    # Expected row sums save a pass: they are nearly those of the exact pass, whose cost is that of a round.
    size, sums = problem.domain.size, expected
    factor = 1 / max(1.0, _kappa(factors, claim, sums))
    while True:
        factor = _factor_of_tight_edges(factors, claim, sums, factor)
        scaled = _with_factor(factors, factor)
        # Exact sums of all rows: only they certify, whatever the tries before said.
        data = loss_data(problem, scaled, target)
        rows = RowBlock(**exact(data))
        breaches = scaled.breaches(problem.edges, join_words(rows.row_sum))
        sums = rounded_words(rows.row_sum)
        kappa = _kappa(scaled, claim, sums)
        report(f"certificate, {breaches} breaches", done=size, total=size, kappa=kappa)
        if breaches == 0:
            return CertifiedFactors(data=data, rows=rows, target=target, factor=scaled.step / factors.step)
        if factor <= STEP_SEARCH.least_factor:
            raise DesignError(
                "half of the distances break the claim: report this problem", field="weight", value=scaled.step
            )
        factor = _shorter(factor, kappa)


def _factor_of_tight_edges(factors: Factors, claim: Edges, expected: Floats, factor: float) -> float:
    # Only the rows at the ends of the tightest edges are summed: a wrong factor costs a pass over all rows.
    utilisation = _with_factor(factors, factor).claim_utilisation(claim, expected, SLACK)
    count = min(STEP_SEARCH.edges, len(utilisation) // STEP_SEARCH.edge_share)
    if count == 0:
        return factor
    chosen = np.argpartition(-utilisation, count - 1)[:count]
    tight = Edges(tail=claim.tail[chosen], head=claim.head[chosen], length=claim.length[chosen])
    ends = np.isin(factors.order, tight.tail) | np.isin(factors.order, tight.head)
    secrets, sums = factors.order[ends], np.ones(len(factors.inner))
    for _ in range(STEP_SEARCH.trials):
        scaled = _with_factor(factors, factor)
        sums[secrets] = rounded_words(sum_rows(scaled, secrets))
        kappa = _kappa(scaled, tight, sums)
        if kappa <= 1 or factor <= STEP_SEARCH.least_factor:
            break
        factor = _shorter(factor, kappa)
    return factor


def _kappa(factors: Factors, edges: Edges, row_sum: Floats) -> float:
    return float(factors.claim_utilisation(edges, row_sum, SLACK).max())


def _with_factor(factors: Factors, factor: float) -> Factors:
    return replace(factors, step=int(factors.step * max(factor, STEP_SEARCH.least_factor)))


def _shorter(factor: float, kappa: float) -> float:
    excess = max(0.0, kappa - 1.0)
    return factor * (1 - STEP_SEARCH.shrink) / (1.0 + excess + min(excess, STEP_SEARCH.more))

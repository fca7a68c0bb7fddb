"""Five constraints of one's own against cvxpy: fairness, entropy, mutual information, chi-square, best guess."""

from __future__ import annotations

from itertools import product

import cvxpy as cp
import numpy as np
import pytest
from fixtures.rows import few_by_default

import mechdesign as md

PROBLEM = md.load_problem("euclidean", cells=3, loss="distance")
PRIOR, LOSSES = PROBLEM.prior_array, PROBLEM.loss_matrix
GROUP = np.arange(9) < 3
SOLVED = 1e-4  # of the loss: the gap of a design here, and the accuracy of Clarabel


def mean_loss(table, members):
    by_secret = cp.sum(cp.multiply(LOSSES, table), axis=1)
    return by_secret[members] @ (PRIOR[members] / PRIOR[members].sum())


def joint_excess(table):
    """The mutual information of secret and report, in nats."""
    reports = np.ones((9, 1)) @ (PRIOR @ table)[None, :]
    return cp.sum(cp.rel_entr(cp.multiply(1 / 9, table), cp.multiply(1 / 9, reports)))


RULES = {
    "fairness": lambda table: [
        mean_loss(table, GROUP) - mean_loss(table, ~GROUP) <= 0.02,
        mean_loss(table, ~GROUP) - mean_loss(table, GROUP) <= 0.02,
    ],
    "entropy": lambda table: [cp.sum(cp.entr(PRIOR @ table)) >= 2.19],
    "mutual information": lambda table: [joint_excess(table) <= 0.30],
    "chi-square": lambda table: [cp.sum_squares(9 * (PRIOR @ table) - 1) / 9 <= 0.01],
    "best guess": lambda table: [cp.sum(cp.max(cp.multiply(1 / 9, table), axis=0)) <= 0.33],
}


@pytest.mark.parametrize("name", few_by_default(RULES, "fairness", "chi-square"))
def test_constraints_have_the_optimum_of_cvxpy(name):
    """All 72 pairs of secrets written out, and no part of the package but its numbers."""
    table = cp.Variable((9, 9), nonneg=True)
    away = PROBLEM.distances
    pairs = [table[u] <= np.exp(away[u, v]) * table[v] for u, v in product(range(9), repeat=2) if u != v]
    least = cp.Minimize(cp.sum(cp.multiply(PRIOR[:, None] * LOSSES, table)))
    reference = cp.Problem(least, [cp.sum(table, axis=1) == 1, *pairs, *RULES[name](table)]).solve(solver=cp.CLARABEL)
    free = md.solve(PROBLEM).attrs["expected_loss"]
    mechanism = md.solve(md.programs.Constrained(PROBLEM, constraints=[RULES[name]]), gap=SOLVED)
    attrs = mechanism.attrs
    assert attrs["objective"] == pytest.approx(reference, rel=2 * SOLVED)
    assert attrs["lower_bound"] <= reference * (1 + 1e-7)
    assert attrs["lower_bound"] == pytest.approx(reference, rel=2 * SOLVED)
    assert attrs["objective"] > free * (1 + 2 * SOLVED)
    certified = md.verify(mechanism)
    assert certified.certified

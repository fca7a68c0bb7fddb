"""Constraints of one's own against cvxpy: fairness, entropy, mutual information, chi-square, best guess, and others.

Those of AUXILIARY have variables besides the table, which the bound eliminates.
"""

from __future__ import annotations

from itertools import product

import cvxpy as cp
import numpy as np
import pytest
from fixtures.rows import few_by_default

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.solvers.auxiliary import auxiliary_row

PROBLEM = md.load_problem("euclidean", cells=3, loss="distance")
PRIOR, LOSSES = PROBLEM.prior_array, PROBLEM.loss_matrix
GROUP = np.arange(9) < 3
SOLVED = 1e-4  # of the loss: the gap of a design here, and the accuracy of Clarabel
ACCURATE = 1e-7  # of a value of Clarabel


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


def losses_of(table):
    """The expected loss at every secret (9,)."""
    return cp.sum(cp.multiply(LOSSES, table), axis=1)


def epigraph(table):
    """Fairness by an absolute value."""
    most = cp.Variable()
    return [cp.abs(mean_loss(table, GROUP) - mean_loss(table, ~GROUP)) <= most, most <= 0.02]


def worst_quarter(table):
    """The mean loss of the worst quarter of secrets, as a conditional value at risk."""
    quantile = cp.Variable()
    return quantile + cp.sum(cp.pos(losses_of(table) - quantile)) / 9 / 0.25 <= 0.95


def deviations(table):
    middle, away = cp.Variable(), cp.Variable(9, nonneg=True)
    return [cp.abs(losses_of(table) - middle) <= away, cp.sum(away) <= 0.5]


def norms(table):
    length = cp.Variable(2)
    return [
        cp.norm(table[0] - table[4], 2) <= length[0],
        cp.norm(table[8] - table[4], 2) <= length[1],
        cp.sum(length) <= 0.7,
    ]


def guesses(table):
    best = cp.Variable((1, 9))
    return [cp.multiply(1 / 9, table) <= np.ones((9, 1)) @ best, cp.sum(best) <= 0.33]


def informations(table):
    part, reports = cp.Variable(9), np.ones((9, 1)) @ (PRIOR @ table)[None, :]
    divergence = cp.sum(cp.rel_entr(cp.multiply(1 / 9, table), cp.multiply(1 / 9, reports)), axis=1)
    return [divergence <= part, cp.sum(part) <= 0.30]


AUXILIARY = [epigraph, worst_quarter, deviations, norms, guesses, informations]
RULES |= {f.__name__: f for f in AUXILIARY}


def claims(table):
    """A table and its claim: all 72 pairs of secrets written out, and no part of the package but its numbers."""
    away = PROBLEM.distances
    pairs = [table[u] <= np.exp(away[u, v]) * table[v] for u, v in product(range(9), repeat=2) if u != v]
    return [cp.sum(table, axis=1) == 1, *pairs]


def as_list(inequalities):
    return inequalities if isinstance(inequalities, list) else [inequalities]


@pytest.mark.parametrize("name", few_by_default(RULES, "fairness", "worst_quarter", "norms", "informations"))
def test_constraints_have_the_optimum_of_cvxpy(name):
    table = cp.Variable((9, 9), nonneg=True)
    least = cp.Minimize(cp.sum(cp.multiply(PRIOR[:, None] * LOSSES, table)))
    reference = cp.Problem(least, [*claims(table), *as_list(RULES[name](table))]).solve(solver=cp.CLARABEL)
    free = md.solve(PROBLEM).attrs["expected_loss"]
    mechanism = md.solve(md.programs.Constrained(PROBLEM, constraints=[RULES[name]]), gap=SOLVED)
    attrs = mechanism.attrs
    assert attrs["objective"] == pytest.approx(reference, rel=2 * SOLVED)
    assert attrs["lower_bound"] <= reference * (1 + 1e-7)
    assert attrs["lower_bound"] == pytest.approx(reference, rel=2 * SOLVED)
    assert attrs["objective"] > free * (1 + 2 * SOLVED)
    certified = md.verify(mechanism)
    assert certified.certified


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # of Clarabel, on norms
@pytest.mark.parametrize("constraint", few_by_default(AUXILIARY, epigraph, norms, informations))
def test_eliminated_row_follows_from_the_constraint(constraint):
    """Among all private tables that meet the constraint, the largest left side of the row is its limit."""
    program = md.programs.Constrained(PROBLEM, constraints=[constraint])
    row = auxiliary_row(program, 1.0)
    assert row.size == 1
    table = cp.Variable((9, 9), nonneg=True)
    left = row.matrix @ cp.vec(table, order="C")
    largest = cp.Problem(cp.Maximize(left[0]), [*claims(table), *as_list(constraint(table))]).solve(solver=cp.CLARABEL)
    assert largest <= row.limit[0] + ACCURATE
    assert largest == pytest.approx(row.limit[0], abs=1e-5)
    # The row excludes tables that do not meet the constraint, such as the best one.
    assert row.values(md.probabilities(md.solve(PROBLEM)).to_numpy())[0] > row.limit[0] + 1e-4


def test_other_variables_and_equalities_are_refused():
    for wrong in (
        lambda table: [table[0, 0] <= cp.Variable(boolean=True)],
        lambda table: [table[0, 0] <= cp.Parameter(value=0.5)],
        lambda table: [table[0, 0] == cp.Variable()],
        lambda table: [table[0, 0] * cp.Variable() <= 1],
    ):
        with pytest.raises(InputError) as caught:
            md.programs.Constrained(PROBLEM, constraints=[wrong])
        assert caught.value.field == "constraints"

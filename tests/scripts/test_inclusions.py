"""Inclusions of reports that are sets: counted over all sets, and the errors that papers print."""

from __future__ import annotations

import itertools
import math

import inclusions
import numpy as np
import pytest
from fixtures.integer_oracles import asymptotic_error, centring_matrix
from fixtures.problems import euclidean_grid

import mechdesign as md
from mechdesign.surveys import frequency_estimation as forms


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_unary_encoding_has_the_variance_that_its_paper_prints(epsilon):
    """4 e^eps / (e^eps - 1)^2 for a frequency that tends to 0.

    That is half of the variance of the difference of two rare frequencies, whose bits are independent.
    """
    problem = euclidean_grid(4, epsilon)
    rare = 1e-9
    object.__setattr__(problem, "prior", np.array([rare, rare, *np.full(2, 0.5 - rare)]))
    difference = np.outer([1, -1, 0, 0], [1, -1, 0, 0])
    printed = 4 * math.exp(epsilon) / (math.exp(epsilon) - 1) ** 2
    assert inclusions.unary_encoding_inclusions(problem).mse(difference) == pytest.approx(2 * printed, rel=1e-7)


INCLUDED = {
    "subset selection": (
        lambda p: inclusions.subset_selection_inclusions(p),
        lambda p: forms.subset_selection_table(6, 0.8, forms.subset_size(6, 0.8)),
        lambda: [set(s) for s in itertools.combinations(range(6), forms.subset_size(6, 0.8))],
    ),
    "unary encoding": (
        lambda p: inclusions.unary_encoding_inclusions(p),
        lambda p: forms.unary_encoding_table(6, 0.8),
        lambda: [{u for u in range(6) if bits >> u & 1} for bits in range(64)],
    ),
    **{
        f"subset exponential, {k}": (
            lambda p, k=k: inclusions.subset_exponential_inclusions(p, subset=k),
            lambda p, k=k: forms.subset_exponential_table(p.distances, k),
            lambda k=k: [*map(set, itertools.combinations(range(6), k)), set()],
        )
        for k in (1, 2, 3)
    },
}


@pytest.mark.parametrize("name", INCLUDED)
def test_inclusions_are_those_of_the_table(name):
    """Inclusions counted over all reports agree; their error is at least the asymptotic one of the table."""
    problem = euclidean_grid((2, 3), 0.8, seed=3)
    make, table_of, sets = INCLUDED[name]
    found, table, reports = make(problem), table_of(problem), sets()
    member = np.array([[float(u in report) for report in reports] for u in range(6)])
    assert found.hit == pytest.approx(table @ member.T, rel=1e-10)
    seen = problem.prior_array @ table
    assert found.pairs == pytest.approx((member * seen) @ member.T, rel=1e-10)
    for norm in (centring_matrix(6), md.surveys.StatisticalDesign(problem=problem).norm):
        least = asymptotic_error(table, problem.prior_array, norm)
        assert least * (1 - 1e-9) <= found.mse(norm) <= 1.5 * least
    assert found.scale == pytest.approx(1)
    singular = inclusions.Inclusions(hit=np.ones((2, 2)), pairs=np.eye(2), scale=1.0)
    assert singular.mse(centring_matrix(2)) == math.inf

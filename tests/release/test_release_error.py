"""The error of one private answer and of the mean of many, compared with simulated users."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
import xarray as xr
from fixtures.problems import shipped_problem
from numpy.typing import NDArray
from scipy import stats

import mechdesign as md
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.release import error_of_mean, laws, query_functions, smooth_sensitivity

CELLS, INVERSE, THRESHOLD, WIDTH = 60, 20_000.0, 500_000.0, 40_000.0


@cache
def income_release() -> tuple[md.DesignProblem, NDArray[np.float64], xr.Dataset]:
    problem = md.load_problem("income", threshold=THRESHOLD, epsilon=1 / INVERSE, cells=CELLS, outputs=21)
    x, gamma = problem.domain.points[:, 0], 1 / INVERSE / 9
    values = query_functions.threshold(x, THRESHOLD, WIDTH)
    bound = smooth_sensitivity.threshold(x, THRESHOLD, WIDTH, gamma)
    return problem, values, md.release.release_mechanism(problem, values, bound, law=laws.StudentT(3), gamma=gamma)


def test_income_problem_is_the_soft_threshold() -> None:
    problem, _, _ = income_release()
    income = shipped_problem("income")
    law = stats.lognorm(income.SIGMA, scale=math.exp(income.MU))
    assert problem.prior_array[:-1] == pytest.approx(np.diff(law.cdf(np.arange(CELLS) * 20_000.0)), rel=1e-9)
    truth = np.clip((problem.domain.points[:, 0] - THRESHOLD) / WIDTH + 0.5, 0, 1)
    assert problem.loss_matrix == pytest.approx((truth[:, None] - np.linspace(-0.5, 1.5, 21)) ** 2, abs=1e-12)
    assert query_functions.band_width(THRESHOLD, 1 / INVERSE) == WIDTH
    low, high = np.array([0.0, 5e4, 1e6]), np.array([5e4, 1e6, math.inf])
    assert income.income_mass(low, high) == pytest.approx(law.cdf(high) - law.cdf(low), rel=1e-12)


def test_errors_of_means_are_those_of_drawn_users() -> None:
    """The formula against the mean of a hundred reports drawn from the certified integers, many times."""
    problem, values, mechanism = income_release()
    rng = np.random.default_rng(5)
    table = md.probabilities(mechanism).values.cumsum(axis=1)
    users = rng.choice(CELLS, (3000, 100), p=problem.prior_array)
    drawn = (rng.random((3000, 100, 1)) > table[users]).sum(axis=-1).clip(max=20)
    square = (mechanism["report_x"].values[drawn].mean(axis=1) - values[users].mean(axis=1)) ** 2
    assert abs(square.mean() - error_of_mean(mechanism, values, 100)) < 5 * square.std() / math.sqrt(3000)
    assert error_of_mean(mechanism, values) == pytest.approx(mechanism.attrs["expected_loss"], rel=1e-9)
    bias = md.probabilities(mechanism).values @ mechanism["report_x"].values - values
    assert error_of_mean(mechanism, values, 10**12) == pytest.approx((problem.prior_array @ bias) ** 2, rel=1e-6)
    there = np.eye(CELLS)[7]
    assert error_of_mean(mechanism, values, 10**15, population=there) == pytest.approx(bias[7] ** 2, rel=1e-6)


@pytest.mark.parametrize(
    ("make", "error", "field"),
    [
        (lambda: md.load_problem("income", threshold=0.0), InputError, "threshold"),
        (lambda: md.load_problem("income", threshold=2e6), InputError, "threshold"),
        (lambda: md.load_problem("income", epsilon=0.0), InputError, "epsilon"),
        (lambda: md.load_problem("income", cells=1), InputError, "cells"),
        (lambda: error_of_mean(income_release()[2], [1.0], 5), InputError, "values"),
        (lambda: error_of_mean(income_release()[2], np.zeros(CELLS), 0), InputError, "users"),
        (lambda: error_of_mean(income_release()[2], np.zeros(CELLS), population=[1.0]), InputError, "prior"),
        (
            lambda: error_of_mean(md.baselines.constant(md.load_problem("flat", cells=3)), np.zeros(9)),
            UnsuitableError,
            "reports",
        ),
    ],
)
def test_refusals_name_the_field(make, error, field) -> None:
    with pytest.raises(error) as caught:
        make()
    assert caught.value.field == field

r"""Synthetic populations of the experiments of paper 002, for use where its data are not at hand.

    income   ln x ~ N(mu, sigma^2), mu = 11.49399503122476, sigma = 0.8290709468895202: median 98,124 USD
    debt     ln x ~ N(mu + ln 1.791, sigma^2), correlation 0.4 with ln income
    places   four normal clouds over 60 km x 55 km, in m; half of the places within 300 m or so of one of 150 spots

The income law is the fit of the authors to weighted percentiles of Californian household incomes of 2022; 1.791 is the
ratio of household debt to income there. The places imitate no city: a kernel density depends on dense and thin parts,
and on spots narrower than its kernel, as crossings are.
Source: paper 002, section 5 (incomes, debts); the places are ours.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mechdesign.setting.problems.problem_files import read_problem_file

_INCOME = read_problem_file("income").module  # the law is that of the problem
MU, SIGMA = _INCOME.MU, _INCOME.SIGMA
CORRELATION = 0.4
DEBT_TO_INCOME = 1.791
# share of users, centre and standard deviations in m, of each cloud of places
_CLOUDS = (
    (0.40, (0.0, 0.0), (4_000.0, 6_000.0)),
    (0.30, (9_000.0, -9_000.0), (7_000.0, 4_000.0)),
    (0.20, (15_000.0, 8_000.0), (5_000.0, 5_000.0)),
    (0.10, (-15_000.0, -14_000.0), (3_000.0, 3_000.0)),
)
_SPOTS, _AT_SPOTS, _SPREAD = 150, 0.5, 300.0  # how many, share of places, standard deviation in m
_REACH = 3.0  # standard deviations at which a cloud ends


def incomes(n: int, seed: int) -> NDArray[np.float64]:
    """Household incomes (n,), USD."""
    return np.random.default_rng(seed).lognormal(MU, SIGMA, n)


def incomes_and_debts(n: int, seed: int) -> NDArray[np.float64]:
    """Household incomes and debts (n, 2), USD."""
    first, second = np.random.default_rng(seed).standard_normal((2, n))
    debt = CORRELATION * first + math.sqrt(1 - CORRELATION**2) * second
    return np.exp(MU + np.column_stack([SIGMA * first, math.log(DEBT_TO_INCOME) + SIGMA * debt]))


def places(n: int, seed: int) -> NDArray[np.float64]:
    """Places (n, 2), m, in random order."""
    from scipy.stats import truncnorm

    rng = np.random.default_rng(seed)
    cloud = rng.choice(len(_CLOUDS), n + _SPOTS, p=[share for share, _, _ in _CLOUDS])
    middle, spread = (np.array([entry[place] for entry in _CLOUDS])[cloud] for place in (1, 2))
    found = middle + spread * truncnorm.ppf(rng.uniform(size=(n + _SPOTS, 2)), -_REACH, _REACH)
    spots, users = found[:_SPOTS], found[_SPOTS:]
    near = spots[rng.integers(_SPOTS, size=n)] + _SPREAD * rng.standard_normal((n, 2))
    return np.where(rng.uniform(size=(n, 1)) < _AT_SPOTS, near, users)

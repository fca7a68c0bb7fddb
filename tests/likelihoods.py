"""Programs of maximum likelihood for the tests: tables of every kind, and counts drawn from skewed distributions."""

from __future__ import annotations

import itertools

import numpy as np
from cases import CASES

from mechdesign import DesignProblem, Domain, Euclidean, baselines, priors, probabilities
from mechdesign.losses import Distance
from mechdesign.surveys.likelihood import Likelihood


def skewed(n, seed):
    return np.random.default_rng(seed).dirichlet(np.full(n, 0.5))


def drawn(table, reports, seed=0):
    """Counts of `reports` independent reports of secrets from a skewed distribution."""
    shares = skewed(len(table), seed) @ table
    return np.random.default_rng(seed).multinomial(reports, shares / shares.sum())


def with_zeros(n, m, seed):
    """Rows that are 0 at most reports; the last report is impossible."""
    random = np.random.default_rng(seed)
    table = random.dirichlet(np.full(m, 0.5), n) * (random.random((n, m)) < 0.4)
    table[np.arange(n), np.arange(n) % (m - 1)] += 0.2
    table[:, -1] = 0
    return table / table.sum(axis=1, keepdims=True)


def steep(n, epsilon):
    table = np.exp(-epsilon * abs(np.subtract.outer(np.arange(n), np.arange(n))))
    return table / table.sum(axis=1, keepdims=True)


def honest(n, epsilon):
    """Randomized response: e^epsilon to 1 for the own answer."""
    return (np.expm1(epsilon) * np.eye(n) + 1) / (np.expm1(epsilon) + n)


def normalised(problem, epsilon):
    """Geometric rows divided by what is inside."""
    return probabilities(baselines.geometric(problem, epsilon, border="normalised")).values


def twins(n, m, seed):
    """Secrets in pairs that no report tells apart."""
    return np.repeat(np.random.default_rng(seed).dirichlet(np.ones(m), n), 2, axis=0)


TABLES = {name: lambda case=case: probabilities(baselines.exponential(case())).values for name, case in CASES.items()}
TABLES |= {
    "randomized response": lambda: honest(9, 1.1),
    "randomized response, weak": lambda: honest(9, 1e-3),
    "zeros": lambda: with_zeros(12, 8, 1),
    "zeros, more reports": lambda: with_zeros(7, 20, 2),
    "nearly flat": lambda: steep(15, 1e-3),
    "flat": lambda: np.full((4, 6), 1 / 6),
    "steep": lambda: steep(15, 60.0),
    "twins": lambda: twins(5, 12, 3),
    "one secret": lambda: np.array([[0.2, 0.5, 0.3]]),
}
REPORTS = (1, 60, 10**6)
ROWS = list(itertools.product(TABLES, REPORTS))


def program_of(name, reports, seed=0):
    table = TABLES[name]()
    return Likelihood(table=table, counts=drawn(table, reports, seed))


def lattice_problem(side):
    domain = Domain.grid((side, side), cell=150.0, unit="m")
    metric = Euclidean(epsilon=0.004, unit="m")
    return DesignProblem(domain=domain, metric=metric, prior=priors.uniform(domain), loss=Distance())

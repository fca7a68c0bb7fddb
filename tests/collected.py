"""Collections of reports for the tests: 10 x 10 cells around Les Halles, their truths, mechanisms and areas."""

from __future__ import annotations

from functools import cache

import numpy as np

from mechdesign import load_problem
from mechdesign.programs.matched import FAMILIES
from mechdesign.surveys.channel import Channel

SIDE = 10
MECHANISMS = {
    "geometric, 0.004 per m": ("geometric_clamped", 0.004),
    "Laplacian, 0.01 per m": ("laplacian_clamped", 0.01),
    "randomized response, 3 nats": ("randomized_response", 3.0),
}


def block(rows, columns):
    mark = np.zeros((SIDE, SIDE))
    mark[rows, columns] = 1
    return mark.ravel()


AREAS = {
    "centre": block(slice(3, 7), slice(3, 7)),
    "corner": block(slice(0, 3), slice(0, 3)),
    "edge": block(slice(9, 10), slice(0, 10)),
}


@cache
def truths():
    """Smooth (check-ins), uniform and sparse distributions (n,): the sparse one has no one in corner and edge."""
    counted = load_problem("paris", prior="checkins", epsilon=0.004).prior_array.reshape(30, 30)[10:20, 10:20].ravel()
    sparse = np.zeros(SIDE**2)
    sparse[[33, 34, 45, 56, 71, 88, 15, 9]] = np.random.default_rng(1).dirichlet(np.full(8, 2.0))
    return {"check-ins": counted / counted.sum(), "uniform": np.full(SIDE**2, 1 / SIDE**2), "sparse": sparse}


@cache
def channel(name):
    family, epsilon = MECHANISMS[name]
    return Channel.of(FAMILIES[family].table(load_problem("paris", cells=SIDE, epsilon=0.004), epsilon))


def simulated(held, truth, reports, simulations, seed=5):
    """Counts (simulations, M) of reports of people from a truth."""
    law = truth @ held.table
    return np.random.default_rng(seed).multinomial(reports, law / law.sum(), size=simulations).astype(float)

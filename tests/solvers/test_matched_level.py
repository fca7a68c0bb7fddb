"""Families tuned to one true level, beside the largest log-ratio over all pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mechdesign import load_problem
from mechdesign.errors import InputError
from mechdesign.programs.matched_distance import FAMILIES
from mechdesign.utility import match_effective_epsilon

MATCHED = 1e-6  # asked of distances and levels


def paris():
    return load_problem("paris", cells=4, distance=150.0)


def max_log_ratio(table, problem):
    """Second route: the largest log-ratio per unit over all pairs and reports, without edges."""
    log = np.log(table)
    apart = problem.domain.euclidean_to(problem.domain) + np.diag(np.full(len(table), np.inf))
    return (abs(log[:, None, :] - log).max(axis=2) / apart).max()


@pytest.mark.parametrize("level", [0.002, 0.007, 0.03])
@pytest.mark.parametrize("name", FAMILIES)
def test_a_matched_level_is_that_of_all_pairs(name, level):
    problem = paris()
    found = match_effective_epsilon(problem, name, level)
    table = FAMILIES[name].table(problem, found.epsilon)
    assert max_log_ratio(table, problem) == pytest.approx(level, rel=MATCHED)
    assert found.distance == pytest.approx(float(np.sum(table * problem.weighted_loss)), rel=1e-12)
    if name == "randomized_response":
        assert (found.epsilon, found.unit) == (pytest.approx(level * 150, rel=MATCHED), "nats")
    elif name == "geometric_clamped":
        assert (found.epsilon, found.unit) == (pytest.approx(level, rel=MATCHED), "nats per m")


@pytest.mark.parametrize("level", [0.0, -1.0, math.nan, math.inf])
def test_levels_that_are_none_are_refused(level):
    with pytest.raises(InputError) as caught:
        match_effective_epsilon(paris(), "geometric_normalised", level)
    assert caught.value.field == "level"


def test_a_family_without_such_a_level_is_refused():
    def constant(problem, epsilon):
        return np.full((16, 16), 1 / 16) + 0 * epsilon + 1e-9 * np.eye(16)

    with pytest.raises(InputError) as caught:
        match_effective_epsilon(paris(), constant, 0.01)
    assert caught.value.field == "level"

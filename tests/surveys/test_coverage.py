"""Coverage of 95 % intervals, simulated: in thirty settings, and simultaneous ones.

A setting whose people are too few gets no interval; those that are given must hold as often as they say.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from fixtures.report_collections import AREAS, MECHANISMS, channel, simulate_counts, truths

from mechdesign.surveys.intervals import fewest_effective, means, quantile
from mechdesign.surveys.linear_estimator import linear_weights

BAND = (0.925, 0.975)
CASES = [
    ("check-ins", "centre"),
    ("check-ins", "edge"),
    ("sparse", "centre"),
    ("sparse", "corner"),
    ("uniform", "corner"),
]
SETTINGS = list(itertools.product(MECHANISMS, CASES, (1_000, 100_000)))
FEW = list(itertools.product(MECHANISMS, CASES, (50, 200)))
Z = quantile(0.95)


def coverage(mechanism, case, reports, simulations):
    """The share of simulations with an interval, and the share of those whose interval contains the truth."""
    held, truth, mark = channel(mechanism), truths()[case[0]], AREAS[case[1]]
    weights = linear_weights(held, mark[:, None], np.full(len(mark), 1 / len(mark)))
    shares = simulate_counts(held, truth, reports, simulations) / reports
    found = means(held, weights.values, weights.law, shares, reports, Z)
    given = found.effective[:, 0] >= fewest_effective(Z)
    held_up = abs(found.mean[:, 0] - truth @ mark) <= Z * found.standard_error[:, 0] + weights.bias[0]
    return given.mean(), held_up[given].mean() if given.any() else np.nan


def spread(simulations, share=0.95):
    """Four standard errors of a simulated coverage."""
    return 4 * np.sqrt(share * (1 - share) / simulations)


@pytest.mark.parametrize(("mechanism", "case", "reports"), SETTINGS[::5])
def test_intervals_hold_in_a_few_settings(mechanism, case, reports):
    given, holds = coverage(mechanism, case, reports, 500)
    assert given == 1
    assert abs(holds - 0.95) <= spread(500)


@pytest.mark.study
def test_intervals_hold_in_thirty_settings():
    found = {setting: coverage(*setting, 2_000) for setting in SETTINGS}
    for (mechanism, (truth, area), reports), (given, holds) in found.items():
        print(f"{mechanism:28} {truth:10} {area:7} {reports:>7,} given {given:.3f} holds {holds:.4f}")
    assert len(found) == 30
    kept = [given < 0.5 or BAND[0] <= holds <= BAND[1] for given, holds in found.values()]
    assert sum(kept) >= 27


@pytest.mark.study
def test_intervals_of_few_reports_hold_or_are_not_given():
    found = {setting: coverage(*setting, 2_000) for setting in FEW}
    for (mechanism, (truth, area), reports), (given, holds) in found.items():
        print(f"{mechanism:28} {truth:10} {area:7} {reports:>7,} given {given:.3f} holds {holds:.4f}")
    for given, holds in found.values():
        assert given * (1 - holds if given else 0) <= 1 - BAND[0]  # given and wrong


def test_without_the_threshold_intervals_fail():
    """Randomized response of large epsilon, a share of 0, 300 people: without the threshold the coverage is 49 %."""
    family = np.eye(100) * np.exp(9.0) + 1 - np.eye(100)
    held = type(channel(next(iter(MECHANISMS)))).of(family / family.sum(axis=1, keepdims=True))
    mark, truth = AREAS["corner"], truths()["sparse"]
    weights = linear_weights(held, mark[:, None], np.full(100, 0.01))
    shares = simulate_counts(held, truth, 300, 500) / 300
    found = means(held, weights.values, weights.law, shares, 300, Z)
    holds = abs(found.mean[:, 0] - truth @ mark) <= Z * found.standard_error[:, 0]
    assert holds.mean() < 0.6
    assert (found.effective[:, 0] < fewest_effective(Z)).all()


@pytest.mark.parametrize("reports", [1_000])
def test_simultaneous_intervals_hold_together(reports):
    held, truth = channel("geometric, 0.004 per m"), truths()["check-ins"]
    label = (np.arange(100) // 10 // 5) * 2 + (np.arange(100) % 10) // 5
    wanted = (label[:, None] == np.arange(4)).astype(float)
    weights = linear_weights(held, wanted, truth)
    z = quantile(0.95, intervals=4)
    found = means(held, weights.values, weights.law, simulate_counts(held, truth, reports, 1000) / reports, reports, z)
    assert (found.effective >= fewest_effective(z)).all()
    together = (abs(found.mean - truth @ wanted) <= z * found.standard_error).all(axis=1).mean()
    assert together >= 0.95 - spread(1000)
    alone = (abs(found.mean - truth @ wanted) <= Z * found.standard_error).all(axis=1).mean()
    assert alone < 0.93

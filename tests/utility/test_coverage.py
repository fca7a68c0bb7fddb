"""Coverage of 95 % intervals, simulated: the linear ones in thirty settings, affine ones, simultaneous ones.

A setting whose people are too few gets no interval; those that are given must hold as often as they say.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from collected import AREAS, MECHANISMS, channel, simulated, truths

from mechdesign.utility.population.affine_bounds import affine_weights
from mechdesign.utility.population.intervals import fewest_effective, means, quantile
from mechdesign.utility.population.linear_estimator import linear_weights
from mechdesign.utility.population.shares import maximum_likelihood

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
    """The share of simulations that get an interval, and the share of those whose interval holds."""
    held, truth, mark = channel(mechanism), truths()[case[0]], AREAS[case[1]]
    weights = linear_weights(held, mark[:, None], np.full(len(mark), 1 / len(mark)))
    shares = simulated(held, truth, reports, simulations) / reports
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


@pytest.mark.slow
def test_intervals_hold_in_thirty_settings():
    found = {setting: coverage(*setting, 2_000) for setting in SETTINGS}
    for (mechanism, (truth, area), reports), (given, holds) in found.items():
        print(f"{mechanism:28} {truth:10} {area:7} {reports:>7,} given {given:.3f} holds {holds:.4f}")
    assert len(found) == 30
    kept = [given < 0.5 or BAND[0] <= holds <= BAND[1] for given, holds in found.values()]
    assert sum(kept) >= 27


@pytest.mark.slow
def test_intervals_of_few_reports_hold_or_are_not_given():
    found = {setting: coverage(*setting, 2_000) for setting in FEW}
    for (mechanism, (truth, area), reports), (given, holds) in found.items():
        print(f"{mechanism:28} {truth:10} {area:7} {reports:>7,} given {given:.3f} holds {holds:.4f}")
    for given, holds in found.values():
        assert given * (1 - holds if given else 0) <= 1 - BAND[0]  # given and wrong


def test_without_the_threshold_intervals_fail():
    """Randomized response that mostly tells the truth, a share of 0 and 300 people: without the threshold 49 % hold."""
    family = np.eye(100) * np.exp(9.0) + 1 - np.eye(100)
    held = type(channel(next(iter(MECHANISMS)))).of(family / family.sum(axis=1, keepdims=True))
    mark, truth = AREAS["corner"], truths()["sparse"]
    weights = linear_weights(held, mark[:, None], np.full(100, 0.01))
    shares = simulated(held, truth, 300, 500) / 300
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
    found = means(held, weights.values, weights.law, simulated(held, truth, reports, 1000) / reports, reports, z)
    assert (found.effective >= fewest_effective(z)).all()
    together = (abs(found.mean - truth @ wanted) <= z * found.standard_error).all(axis=1).mean()
    assert together >= 0.95 - spread(1000)
    alone = (abs(found.mean - truth @ wanted) <= Z * found.standard_error).all(axis=1).mean()
    assert alone < 0.93


def affine_coverage(truth, mark, guess, shares, reports):
    held = channel("geometric, 0.004 per m")
    lower, upper, law = affine_weights(held, mark[:, None], guess, reports, Z)
    below, above = (means(held, weights, law, shares, reports, Z) for weights in (lower, upper))
    low, high = below.mean - Z * below.standard_error, above.mean + Z * above.standard_error
    share = truth @ mark
    return ((low <= share + 1e-9) & (share - 1e-9 <= high))[:, 0].mean(), (high - low).mean()


@pytest.mark.parametrize(("guess", "area"), [("check-ins", "centre"), ("uniform", "corner"), ("sparse", "corner")])
def test_affine_bounds_hold_whatever_the_guess_and_a_right_one_makes_them_shorter(guess, area):
    truth, mark = truths()["check-ins"], AREAS[area]
    held = channel("geometric, 0.004 per m")
    shares = simulated(held, truth, 10_000, 400) / 10_000
    holds, width = affine_coverage(truth, mark, truths()[guess], shares, 10_000)
    assert holds >= 0.95 - spread(400)
    if guess == "check-ins":
        weights = linear_weights(held, mark[:, None], truth)
        linear = 2 * Z * means(held, weights.values, weights.law, shares, 10_000, Z).standard_error.mean()
        assert width < linear


def test_affine_bounds_from_a_pilot_hold_and_from_the_same_reports_do_not():
    """A fifth of the reports makes the guess; where the guess is made of all reports and used on them, bounds fail."""
    truth, mark, held = truths()["sparse"], AREAS["centre"], channel("geometric, 0.004 per m")
    main, pilot = (simulated(held, truth, count, 16, seed) for count, seed in ((8_000, 1), (2_000, 2)))
    good = bad = 0.0
    for own, before in zip(main, pilot, strict=True):
        guess = maximum_likelihood(before, held.table).distribution
        good += affine_coverage(truth, mark, guess, own[None] / 8_000, 8_000)[0] / 16
        same = maximum_likelihood(own, held.table).distribution
        bad += affine_coverage(truth, mark, same, own[None] / 8_000, 8_000)[0] / 16
    assert good >= 0.95 - spread(16)
    assert bad < 0.7

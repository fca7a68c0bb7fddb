"""Frequency oracles, the baselines of the literature: laws, levels from both sides, printed errors, inclusions."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from fixtures.integer_oracles import asymptotic_error, centring_matrix
from fixtures.problems import SMALL, euclidean_grid
from fixtures.rows import few_by_default
from fixtures.tolerances import DESIGN_MARGIN, LINEAR_ALGEBRA, REORDERED

import mechdesign as md
from mechdesign.baselines import BASELINES, FREQUENCY_ORACLES
from mechdesign.errors import UnsuitableError
from mechdesign.surveys import asymptotic_mse
from mechdesign.surveys import frequency_estimation as forms

USUAL = (
    "eikonal, masked",
    "euclidean line",
    "scattered points",
    "reports apart from secrets",
    "graph, doubled",
    "area",
)
LEVELS = [0.05, 0.6, 1.5, 4.0]
SERIES = 1e-8  # the closed form of a width loses eight digits at 1e-3 nats, where a series takes over


def worst_ratio(table):
    """The largest logarithm of P(y|u) / P(y|v), pair by pair."""
    return max(float(np.log(a / b).max()) for a, b in itertools.permutations(table, 2))


TABLES = {
    "subset selection": lambda e: forms.subset_selection_table(6, e, forms.subset_size(6, e)),
    "unary encoding": lambda e: forms.unary_encoding_table(5, e),
    "hadamard response": lambda e: forms.hadamard_response_table(6, e),
    "hadamard response, full": lambda e: forms.hadamard_response_table(7, e),
    "square wave": lambda e: forms.square_wave_table(7, e, math.floor(7 * forms.square_wave_width(e))),
    "disk area": lambda e: forms.disk_area_table(
        np.indices((4, 4)).reshape(2, -1).T, e, math.floor(4 * forms.disk_area_radius(e))
    ),
}


@pytest.mark.parametrize("epsilon", LEVELS)
@pytest.mark.parametrize("name", TABLES)
def test_local_privacy_is_exactly_epsilon(name, epsilon):
    table = TABLES[name](epsilon)
    assert table.sum(axis=1) == pytest.approx(np.ones(len(table)), rel=LINEAR_ALGEBRA)
    assert worst_ratio(table) == pytest.approx(epsilon, rel=LINEAR_ALGEBRA)


@pytest.mark.parametrize("epsilon", LEVELS)
@pytest.mark.parametrize("subset", [1, 2, 3])
def test_the_subset_exponential_law_is_exactly_at_its_metric(subset, epsilon):
    distances = euclidean_grid((2, 3), epsilon).distances
    table = forms.subset_exponential_table(distances, subset)
    apart = ~np.eye(6, dtype=bool)
    ratio = np.abs(np.log(table[:, None, :] / table[None, :, :])).max(axis=2)
    assert table.sum(axis=1) == pytest.approx(np.ones(6), rel=LINEAR_ALGEBRA)
    assert (ratio[apart] / distances[apart]).max() == pytest.approx(1, rel=1e-10)


def test_a_smaller_divisor_breaks_the_subset_exponential_law():
    """The empty report of a divisor one percent smaller exceeds the claim, or has a negative probability."""
    distances = euclidean_grid((1, 5), 0.7).distances
    total = np.exp(-distances).sum(axis=1)
    size = 0.99 * forms.subset_exponential_divisor(distances, total)
    empty = 1 - total / size
    apart = ~np.eye(5, dtype=bool)
    with np.errstate(invalid="ignore", divide="ignore"):
        rise = np.log(empty[:, None] / empty[None, :])[apart] - distances[apart]
    assert empty.min() <= 0 or rise.max() > 0


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("subset", [1, 2, 3])
def test_subset_selection_has_the_error_that_its_paper_prints(subset, epsilon):
    """Ye and Barg's formula, against the Fisher information of the table: the inclusions lose nothing."""
    n, k, e = 7, subset, math.exp(epsilon)
    printed = (n - 1) ** 2 * (k * e + n - k) ** 2 / (n * k * (n - k) * (e - 1) ** 2)
    found = asymptotic_error(forms.subset_selection_table(n, epsilon, k), np.full(n, 1 / n), centring_matrix(n))
    assert found == pytest.approx(printed, rel=1e-10)


@pytest.mark.parametrize("epsilon", LEVELS)
@pytest.mark.parametrize("size", [3, 7, 12])
def test_hadamard_response_is_within_the_bound_of_its_paper(size, epsilon):
    e = math.exp(epsilon)
    found = asymptotic_error(
        forms.hadamard_response_table(size, epsilon), np.full(size, 1 / size), centring_matrix(size)
    )
    assert found <= 4 * size * (e + 1) ** 2 / (e - 1) ** 2
    assert forms.hadamard_response_table(size, epsilon).shape[1] < 2 * (size + 1)


@pytest.mark.parametrize("epsilon", [0.9e-3, 1.1e-3, 0.5, 1.0, 5.0])
def test_the_width_of_the_square_wave_in_exact_arithmetic(epsilon):
    from fractions import Fraction

    x = Fraction(epsilon)
    e = sum(x**k / math.factorial(k) for k in range(40))
    exact = float((x * e - e + 1) / (2 * e * (e - 1 - x)))
    assert forms.square_wave_width(epsilon) == pytest.approx(exact, rel=SERIES)
    twice = 2 * exact
    assert forms.disk_area_radius(epsilon) == pytest.approx(
        (2 * twice + math.sqrt(4 * twice**2 + math.pi * twice)) / math.pi, rel=SERIES
    )


def test_widths_fall_with_the_level_and_disks_are_whole():
    widths = [forms.square_wave_width(e) for e in (1e-6, 0.01, 0.1, 1.0, 5.0, 50.0)]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == pytest.approx(0.5, rel=1e-5)
    table = forms.disk_area_table(np.indices((3, 5)).reshape(2, -1).T, 1.0, 2)
    assert (table > table.min() * 1.1).sum(axis=1).tolist() == [13] * 15


@pytest.mark.parametrize("name", FREQUENCY_ORACLES)
@pytest.mark.parametrize("case", few_by_default(SMALL, *USUAL))
def test_frequency_oracles_are_certified_or_refused(case, name):
    problem = SMALL[case]()
    try:
        made = FREQUENCY_ORACLES[name](problem)
    except UnsuitableError as error:
        assert name in ("square_wave", "disk_area"), error  # noqa: PT017
        return
    checked = md.verify(made)
    assert checked.certified, checked.reasons
    assert made.attrs["ratio"] <= 1 + DESIGN_MARGIN
    assert len(json.loads(made.attrs["parameters"])["estimates"]) == made.sizes["report"]


def test_equal_distances_up_to_rounding_get_reports():
    """The table of randomized response, in closed form; sums of it differ in the last bit of some places."""
    apart = 1 - np.eye(6)
    for seed in range(20):
        jitter = np.random.default_rng(seed).integers(-1, 2, (6, 6)) * 2.0**-52
        table = forms.subset_exponential_table(apart * (1 + np.triu(jitter) + np.triu(jitter).T))
        assert table == pytest.approx(np.exp(-apart) / (1 + 5 * math.exp(-1)), rel=LINEAR_ALGEBRA)


@pytest.mark.parametrize("name", FREQUENCY_ORACLES)
def test_a_larger_level_is_a_larger_effective_epsilon(name):
    """From both sides: certified at the claim, and not below it, where the metric is the level of an edge."""
    problem = euclidean_grid((9,) if name == "square_wave" else (3, 3), 0.7)
    made = FREQUENCY_ORACLES[name](problem)
    assert made.attrs["ratio"] == pytest.approx(1, rel=DESIGN_MARGIN)
    if name != "subset_exponential":
        assert made.attrs["claimed_epsilon"] == pytest.approx(0.7, rel=1e-9)


def test_compare_includes_frequency_oracles_on_request():
    problem = euclidean_grid((2, 2), 0.6)
    names = list(md.compare(problem, gap=0.1)["mechanism"])
    assert not set(names) & set(FREQUENCY_ORACLES)
    table = md.compare(problem, gap=0.1, frequency_oracles=True).set_index("mechanism")
    assert list(table.index) == [*names, *(name for name in FREQUENCY_ORACLES if name != "square_wave")]
    assert set(BASELINES) <= set(names)
    made = FREQUENCY_ORACLES["disk_area"](problem)
    assert table.loc["disk_area", "asymptotic_mse"] == pytest.approx(asymptotic_mse(made), rel=REORDERED)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: forms.square_wave(euclidean_grid((2, 2), 0.6)), "domain"),
        (lambda: forms.disk_area(euclidean_grid(4, 0.6)), "domain"),
        (lambda: forms.unary_encoding(euclidean_grid(13, 0.6)), "cells"),
        (lambda: forms.subset_selection(euclidean_grid(20, 0.6)), "subset"),
        (lambda: forms.subset_exponential(euclidean_grid(30, 0.6), subset=4), "subset"),
    ],
)
def test_refusals_name_the_field(make, field):
    with pytest.raises(UnsuitableError) as caught:
        make()
    assert caught.value.field == field


@pytest.mark.parametrize("n", [2, 3, 7, 20, 41])
def test_the_size_of_subsets_is_the_best_of_all(n: int) -> None:
    """Against the error of every size, in fractions of e^eps; at n = 7 and 1.3 nats it gains 2.4 % on the nearest."""
    for epsilon in (0.01, 0.3, 0.8, 1.3, 2.0, 4.0, 50.0, 900.0):
        odds = Fraction(math.exp(min(epsilon, 300.0)))
        error = {k: (k * odds + n - k) ** 2 / (k * (n - k)) for k in range(1, n)}
        assert error[forms.subset_size(n, epsilon)] <= min(error.values()) * (1 + Fraction(1, 10**12))
    assert forms.subset_size(7, 1.3) == 2

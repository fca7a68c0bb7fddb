from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t as student
from utility_study import ESTIMATORS, Study, bands, utility_loss, utility_study

from mechdesign import DesignProblem, Domain, Euclidean, baselines, priors, probabilities
from mechdesign.errors import InputError
from mechdesign.losses import Distance
from mechdesign.utility import kantorovich

DEVIATIONS = 5.0  # standard errors: a chance of 6e-7 a comparison
REORDERED = 1e-12  # the same sums in another order
COUNTS = np.array([0, 7, 1, 0, 12, 3])


def on_grid(epsilon=1.0, shape=(2, 3), reports=None):
    domain = Domain.grid(shape, cell=2.0, unit="km")
    metric = Euclidean(epsilon=epsilon, unit="km")
    return DesignProblem(domain=domain, metric=metric, prior=priors.uniform(domain), loss=Distance(), reports=reports)


def two_mechanisms(**given):
    return {
        "geometric_normalised": baselines.geometric(on_grid(**given), border="normalised"),
        "randomized_response": baselines.randomized_response(on_grid(**given)),
    }


def simulate(*, repetitions=3, workers=1, mechanisms=None, **given):
    study = Study(**{"mechanisms": mechanisms or two_mechanisms(), "counts": COUNTS, "sizes": [4, 23]} | given)
    return utility_study(study, repetitions=repetitions, workers=workers)


@pytest.mark.parametrize("repetitions", [30, pytest.param(400, marks=pytest.mark.exhaustive)])
def test_loss_of_plain_reports_sums_over_all_pairs(repetitions):
    """Second route: a dataset of two secrets has n^2 pairs of reports, whose laws and distances are listed."""
    mechanism = two_mechanisms()["geometric_normalised"]
    counts = np.array([0, 1, 0, 0, 1, 0])
    table, domain = probabilities(mechanism).values, on_grid().domain
    first, second = np.nonzero(counts)[0]
    exact = spread = 0.0
    for y in range(6):
        for z in range(6):
            estimate = (np.arange(6) == y) / 2 + (np.arange(6) == z) / 2
            chance = table[first, y] * table[second, z]
            distance = kantorovich(estimate, counts / 2, domain).value
            exact, spread = exact + chance * distance, spread + chance * distance**2
    found = utility_loss(mechanism, counts, estimator="empirical", repetitions=repetitions, seed=3)
    error = math.sqrt((spread - exact**2) / repetitions)
    assert abs(float(found["mean"]) - exact) < DEVIATIONS * error


def test_bands_are_students_intervals_and_quantiles():
    """Second route: the figures of one line of the study by NumPy's and SciPy's own functions."""
    study = simulate(repetitions=7, estimators=ESTIMATORS)
    summary = bands(study)
    line = study["kantorovich"].sel(mechanism="randomized_response", estimator="stopped", size=23).values
    own = summary.sel(mechanism="randomized_response", estimator="stopped", size=23)
    low, high = student.interval(0.95, 6, loc=line.mean(), scale=line.std(ddof=1) / math.sqrt(7))
    expected = {"mean": line.mean(), "mean_low": low, "mean_high": high}
    expected |= {"low": np.quantile(line, 0.05), "high": np.quantile(line, 0.95)}
    for name, value in expected.items():
        assert float(own[name]) == pytest.approx(value, rel=REORDERED), name
    assert study["kantorovich"].attrs["units"] == summary.attrs["unit"] == "km"


def test_a_single_repetition_has_no_interval():
    summary = bands(simulate(repetitions=1))
    assert np.isnan(summary["mean_low"]).all()
    assert (summary["low"] == summary["mean"]).all()


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
def test_figures_do_not_depend_on_process_count(workers):
    alone, again = simulate(seed=5), simulate(seed=5, workers=workers)
    assert alone["kantorovich"].values.tolist() == again["kantorovich"].values.tolist()
    assert alone["kantorovich"].values.tolist() != simulate(seed=6)["kantorovich"].values.tolist()


def test_datasets_are_nested_and_the_last_is_the_whole():
    """Sizes do not disturb each other, nor do mechanisms: adding one changes no figure of another."""
    few = simulate(sizes=[23], estimators=["empirical"])
    many = simulate(sizes=[1, 4, 22, 23], estimators=["empirical", "maximum_likelihood"])
    alone = simulate(
        mechanisms={"geometric_normalised": two_mechanisms()["geometric_normalised"]}, estimators=["empirical"]
    )
    own = many["kantorovich"].sel(estimator="empirical")
    assert own.sel(size=23).values.tolist() == few["kantorovich"].isel(estimator=0, size=0).values.tolist()
    assert (
        own.sel(mechanism="geometric_normalised", size=[4, 23]).values.tolist()
        == alone["kantorovich"].isel(mechanism=0, estimator=0).values.tolist()
    )


def test_mechanisms_draw_independently():
    own = two_mechanisms()["geometric_normalised"]
    distances = simulate(mechanisms={"one": own, "other": own}, estimators=["empirical"])["kantorovich"]
    assert (distances.sel(mechanism="one") != distances.sel(mechanism="other")).any()


def test_one_report_of_one_secret_is_as_far_as_it_lies():
    distances = simulate(sizes=[1], estimators=["empirical"], repetitions=9)["kantorovich"].values
    possible = on_grid().domain.euclidean_to(on_grid().domain)
    assert np.isclose(distances.ravel()[:, None], possible.ravel()[None], rtol=REORDERED, atol=1e-9).any(axis=1).all()


def test_a_mechanism_that_tells_the_truth_costs_nothing():
    truthful = {"randomized_response": baselines.randomized_response(on_grid(), 35.0)}
    distances = simulate(mechanisms=truthful, estimators=ESTIMATORS)["kantorovich"].values
    assert distances.max() < 1e-6


def test_reports_of_progress_count_the_repetitions():
    heard: list[str] = []
    study = Study(mechanisms=two_mechanisms(), counts=COUNTS, sizes=[4])
    utility_study(study, repetitions=2, on_progress=heard.append)
    assert heard == ["repetition 1 of 2", "repetition 2 of 2"]


OTHER = Domain.points_at([[0.0, 0.0], [1.0, 1.0]], unit="km")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"counts": -COUNTS}, "counts"),
        ({"counts": COUNTS[:-1]}, "counts"),
        ({"counts": 0 * COUNTS}, "counts"),
        ({"sizes": []}, "sizes"),
        ({"sizes": [0, 4]}, "sizes"),
        ({"sizes": [4, 4]}, "sizes"),
        ({"sizes": [4, 24]}, "sizes"),
        ({"sizes": [2.5]}, "sizes"),
        ({"estimators": ["inversion"]}, "estimators"),
        ({"seed": -1}, "seed"),
        ({"mechanisms": {}}, "mechanisms"),
        (
            {"mechanisms": two_mechanisms() | {"other": baselines.exponential(on_grid(shape=(3, 2)))}},
            "mechanisms",
        ),
        (
            {
                "mechanisms": {"a": baselines.exponential(on_grid(reports=OTHER))},
                "estimators": ["empirical"],
            },
            "estimators",
        ),
    ],
)
def test_studies_that_make_no_sense_are_refused(given, field):
    with pytest.raises(InputError) as caught:
        Study(**{"mechanisms": two_mechanisms(), "counts": COUNTS, "sizes": [4]} | given)
    assert caught.value.field == field


@pytest.mark.parametrize("field", ["repetitions", "workers"])
def test_numbers_of_repetitions_and_workers_are_positive(field):
    with pytest.raises(InputError) as caught:
        simulate(**{field: 0})
    assert caught.value.field == field

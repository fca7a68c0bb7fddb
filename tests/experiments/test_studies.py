"""Mechanisms at one distance or at one true level, their studies as tables, files and pictures."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest

from experiments import studies
from experiments.study_curves import plot_bands
from mechdesign.closed_forms.mechanisms import geometric
from mechdesign.errors import InputError
from mechdesign.mechanism.table.dataset import probabilities
from mechdesign.output.pictures.plot import save_figure
from mechdesign.output.tables.matched import smallest_epsilon
from mechdesign.output.terminal.study import print_study
from mechdesign.programs.matching.matched_distance import FAMILIES
from mechdesign.setting.problems.problem_files import load_problem
from mechdesign.solvers.matching.matched_level import match_smallest_epsilon
from mechdesign.utility.population.study import Study, bands, utility_study

MATCHED = 1e-6  # asked of distances and levels
NAMES = ("randomized_response", "geometric_normalised")
COUNTS = np.arange(16)


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
    found = match_smallest_epsilon(problem, name, level)
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
        match_smallest_epsilon(paris(), "geometric_normalised", level)
    assert caught.value.field == "level"


def test_a_family_without_such_a_level_is_refused():
    def constant(problem, epsilon):
        return np.full((16, 16), 1 / 16) + 0 * epsilon + 1e-9 * np.eye(16)

    with pytest.raises(InputError, match="no such true level"):
        match_smallest_epsilon(paris(), constant, 0.01)


def test_comparisons_are_equal_in_what_they_say():
    problem = paris()
    near = studies.at_distance(problem, NAMES, 150.0)
    level = studies.at_level(problem, NAMES, 0.005)
    for name in NAMES:
        assert studies.mechanism_figures(near[name], problem)["expected_distance"] == pytest.approx(150, rel=MATCHED)
        assert smallest_epsilon(level[name], problem) == pytest.approx(0.005, rel=MATCHED)


def test_figures_of_a_mechanism_are_those_of_its_table():
    problem = load_problem("paris", cells=4, distance=150.0)
    mechanism = geometric.mechanism(problem, border="normalised")
    figures = studies.mechanism_figures(mechanism, problem)
    table = probabilities(mechanism).values
    assert figures["truthful"] == pytest.approx(np.mean([table[u, u] for u in range(16)]), rel=1e-12)
    assert figures["claimed_epsilon"] == problem.metric.smallest_level
    assert figures["smallest_epsilon"] == pytest.approx(max_log_ratio(table, problem), rel=1e-9)


def simulated(problem):
    mechanisms = studies.at_distance(problem, NAMES, 150.0)
    study = Study(mechanisms=mechanisms, counts=COUNTS, sizes=[10, 120], estimators=["stopped", "empirical"])
    return mechanisms, bands(utility_study(study, repetitions=3))


def test_a_study_is_one_line_per_mechanism_estimator_and_size(tmp_path, capsys):
    problem = paris()
    mechanisms, found = simulated(problem)
    table = studies.study_table(problem, {"expected distance": (mechanisms, found)})
    path = studies.write_study(table, tmp_path / "study.csv")
    with path.open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert len(lines) == 2 * 2 * 2
    for line in lines:
        own = found.sel(mechanism=line["mechanism"], estimator=line["estimator"], size=int(line["size"]))
        for name in ("mean", "mean_low", "mean_high", "low", "high"):
            assert float(line[name]) == float(own[name])
        figures = studies.mechanism_figures(mechanisms[line["mechanism"]], problem)
        assert {name: float(line[name]) for name in figures} == figures
        assert (line["equal"], line["unit"], line["repetitions"], line["seed"]) == ("expected distance", "m", "3", "0")
    with pytest.raises(InputError, match="exists already"):
        studies.write_study(table, path)
    print_study(table)
    shown = capsys.readouterr().out
    for name in NAMES:
        mean = float(found["mean"].sel(mechanism=name, estimator="stopped", size=120))
        assert any(name in line and f"{mean:.1f}" in line for line in shown.splitlines())


def test_the_picture_shows_means_and_bands(tmp_path):
    _, found = simulated(paris())
    figure = plot_bands({"left": found.sel(estimator="stopped"), "right": found.sel(estimator="empirical")})
    for axes, estimator in zip(figure.axes, ("stopped", "empirical"), strict=True):
        means = found["mean"].sel(estimator=estimator)
        drawn = {container.get_label(): container.lines[0].get_ydata().tolist() for container in axes.containers}
        assert drawn == {name.replace("_", " "): means.sel(mechanism=name).values.tolist() for name in NAMES}
    assert save_figure(figure, tmp_path / "bands.png").stat().st_size > 10_000
    with pytest.raises(InputError, match="is empty"):
        plot_bands({})

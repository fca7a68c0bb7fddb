"""Releases of a number on an output grid: masses, certificates at true multiples, baselines and the optimum."""

from __future__ import annotations

import json
import math
from functools import cache

import numpy as np
import pytest
import xarray as xr
from fixtures.export_mechanisms import prove_export
from fixtures.tolerances import SOLVED
from scipy import stats

import mechdesign as md
from mechdesign import DesignProblem
from mechdesign.baselines import from_table as closed_form_mechanism
from mechdesign.errors import InputError, UnitError, VerificationError
from mechdesign.release import laws, release_problem
from mechdesign.release import released as release

RATIO = 1e-9  # masses are rounded to doubles, then to multiples of 2^-62, before they are compared
MASS = 1e-13  # probabilities as differences of a cdf
EPSILON, WIDTH, THRESHOLD, CELLS = 0.5, 4.0, 9.5, 25  # the band is 2 / eps wide, as in the experiments of the paper
OUTPUTS = np.linspace(-1, 2, 31)
LAWS = [laws.StudentT(3), laws.StudentT(0.8), laws.GeneralizedCauchy(4), laws.GeneralizedCauchy(1.5)]


def soft(x, gamma):
    """A soft threshold and its gamma-smooth sensitivity (Liang & Yi 2024, Lemma 4.1)."""
    away = np.maximum(np.abs(x - THRESHOLD) - WIDTH / 2, 0)
    values = np.clip((x - THRESHOLD) / WIDTH + 0.5, 0, 1)
    return values, np.maximum(1 / (away + WIDTH), np.exp(-gamma * away) / WIDTH)


def threshold(outputs=OUTPUTS, cells=CELLS, cell=1.0) -> tuple[DesignProblem, np.ndarray]:
    domain = md.Domain.grid(cells, cell=cell, unit="km")
    values, _ = soft(domain.points[:, 0], 0.1)
    metric = md.Euclidean(epsilon=EPSILON, unit="km")
    prior = md.priors.uniform(domain)
    return release_problem(domain=domain, metric=metric, prior=prior, values=values, outputs=outputs), values


def smooth(law, gamma, tight=True) -> xr.Dataset:
    problem, values = threshold()
    bound = soft(problem.domain.points[:, 0], gamma)[1]
    return release.release_mechanism(problem, values, bound, law=law, gamma=gamma, tight=tight)


@cache
def baselines() -> dict[str, xr.Dataset]:
    problem, values = threshold()
    tables = {
        "lipschitz": release.noise_table(values, np.full(CELLS, 1 / WIDTH / EPSILON), OUTPUTS, law=laws.Laplace()),
        "local": release.noise_table(values, np.full(CELLS, 1.0), OUTPUTS, law=laws.Laplace()),
    }
    made = {name: closed_form_mechanism(problem, t, name=name, claimed_epsilon=EPSILON) for name, t in tables.items()}
    made |= {f"student, tight {tight}": smooth(laws.StudentT(3), EPSILON / 9, tight) for tight in (True, False)}
    made["cauchy"] = smooth(laws.GeneralizedCauchy(4), EPSILON / 15)
    return made


@cache
def optimum() -> xr.Dataset:
    return md.solve(md.Optimal(problem=threshold()[0]), gap=1e-3)


def test_masses_are_differences_of_the_cdf():
    values, scale = np.array([0.1, -3.0]), np.array([0.4, 2.0])
    given = np.array([-1.0, 0.0, 0.5, 2.0])
    found = release.noise_table(values, scale, given, law=laws.StudentT(3))
    ends = np.array([-np.inf, -0.5, 0.25, 1.25, np.inf])
    cdf = stats.t(3).cdf((ends - values[:, None]) / scale[:, None])
    assert found == pytest.approx(np.diff(cdf, axis=1), abs=MASS)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("tight", [True, False])
def test_smooth_releases_are_certified_within_the_claim(law, tight):
    gamma = 0.3 * EPSILON / law.scale_rate
    found = smooth(law, gamma, tight)
    assert found.attrs["scale"] <= 1 + RATIO
    assert found.attrs["claimed_epsilon"] == EPSILON
    assert md.verify(found).certified
    kept = json.loads(found.attrs["parameters"])
    assert law.epsilon(kept["gamma"], kept["eta"], tight) == pytest.approx(EPSILON, rel=1e-9)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("flip", [1, -1])
def test_the_joint_constant_is_attained(law, flip):
    """Two close secrets between which f and ln B change at their largest rates: certified at 0.99 to 1 of the claim."""
    step, gamma = 0.01, 0.3 * EPSILON / law.scale_rate
    domain = md.Domain.points_at([0.0, step], unit="km")
    bound = np.array([1.0, math.exp(gamma * step)])[::flip]
    values = np.array([0.0, step])
    outputs = np.sinh(np.linspace(-11, 11, 4001))
    problem = release_problem(
        domain=domain, metric=md.Euclidean(epsilon=EPSILON, unit="km"), prior=[0.5, 0.5], values=values, outputs=outputs
    )
    found = release.release_mechanism(problem, values, bound, law=law, gamma=gamma)
    assert 0.99 <= found.attrs["scale"] <= 1 + 1e-7  # the loss is 0.005 nats: masses are rounded to 1e-9 of it
    looser = release.release_mechanism(problem, values, bound, law=law, gamma=gamma, tight=False)
    assert looser.attrs["scale"] < 0.97


def test_baselines_have_the_multiples_that_theory_gives():
    made = baselines()
    assert made["lipschitz"].attrs["scale"] == pytest.approx(1, rel=RATIO)
    assert made["local"].attrs["scale"] == pytest.approx(1.0 / (WIDTH * EPSILON), rel=RATIO)
    for mechanism in made.values():
        assert md.verify(mechanism).certified


def test_the_optimum_is_below_every_baseline():
    best = optimum()
    loss, bound = best.attrs["expected_loss"], best.attrs["lower_bound"]
    assert (loss - bound) / loss <= 1e-3
    assert md.verify(best).lower_bound_checked
    for name, baseline in baselines().items():
        assert baseline.attrs["scale"] <= 1 + RATIO, name
        assert bound <= baseline.attrs["expected_loss"] * (1 + SOLVED), name
        assert loss <= baseline.attrs["expected_loss"], name
    student = [baselines()[f"student, tight {tight}"].attrs["expected_loss"] for tight in (True, False)]
    assert student[0] < student[1]


def test_laplace_error_on_fine_grid_is_continuous():
    values = np.array([0.0, 0.3, 1.0])
    outputs = np.linspace(-12, 13, 2501)
    found = release.noise_table(values, np.full(3, 0.5), outputs, law=laws.Laplace())
    error = (found * (values[:, None] - outputs) ** 2).sum(axis=1)
    assert error == pytest.approx(2 * 0.5**2 + 0.01**2 / 12, rel=2e-5)


def test_files_reports_and_budgets_work_on_a_release(tmp_path):
    made = smooth(laws.StudentT(3), EPSILON / 9)
    md.save(made, tmp_path / "release.nc")
    found = md.load(tmp_path / "release.nc")
    assert md.verify(tmp_path / "release.nc").certified
    drawn = md.sample(found, 20, 200_000, rng=1)
    assert drawn["report_x"].attrs["units"] == "1"
    assert set(np.unique(drawn["report_x"])) <= set(OUTPUTS)
    row = md.probabilities(found)[20].values
    error = np.abs(np.bincount(drawn.values.ravel(), minlength=31) / 200_000 - row)
    assert (error < 6 * np.sqrt(row / 200_000) + 1e-4).all()
    one = md.Sampler(mechanism=found).report(3)
    assert float(one["report_x"]) == OUTPUTS[int(one)]
    broken = found.copy(deep=True)
    broken["mass"].values[3, 5] += 1
    with pytest.raises(VerificationError):
        md.Sampler(mechanism=broken).report(3)


@pytest.mark.exhaustive
def test_compare_leaves_out_what_needs_places():
    table = md.compare(threshold()[0])
    assert {"optimal", "exponential", "constant"} <= set(table["mechanism"])
    assert "geometric_normalised" not in set(table["mechanism"])
    assert table["expected_distance"].isna().all()


def test_exports_name_the_unit_of_the_outputs_and_their_axis(tmp_path):
    domain = md.Domain.grid((3, 2), cell=1.0, unit="km")
    values = domain.points.sum(axis=1) * 100
    problem = release_problem(
        domain=domain,
        metric=md.Euclidean(epsilon=0.4, unit="km"),
        prior=md.priors.uniform(domain),
        values=values,
        outputs=np.linspace(0, 500, 11),
        unit="USD",
    )
    made = release.release_mechanism(problem, values, np.full(6, 150.0), law=laws.StudentT(3), gamma=0.0)
    assert made["report_x"].attrs["units"] == "USD"
    for name in ("table.csv", "table.json"):
        told = prove_export(md.export(made, tmp_path / name))
        assert (told["unit"], told["report_unit"]) == ("km", "USD")
    header = (tmp_path / "table.csv").read_text().splitlines()[0]
    assert header == "secret,secret_x,secret_y,report,report_x,probability,mass"


def problem_with(**given):
    problem, values = threshold()
    asked = {"domain": problem.domain, "metric": problem.metric, "prior": problem.prior, "values": values}
    return release_problem(**{**asked, "outputs": OUTPUTS, **given})


def on_a_plane():
    problem = md.load_problem("philadelphia", cells=3)
    return release.release_mechanism(problem, np.arange(9), np.full(9, 1.0), law=laws.StudentT(3), gamma=0.0)


def made_with(bound, gamma=0.05, epsilon=None):
    problem, values = threshold()
    return release.release_mechanism(problem, values, bound, law=laws.StudentT(3), gamma=gamma, epsilon=epsilon)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: problem_with(values=[1.0, 2.0]), "values"),
        (lambda: problem_with(values=np.full(CELLS, math.nan)), "values"),
        (lambda: problem_with(outputs=[0.0]), "outputs"),
        (lambda: problem_with(outputs=[0.0, 0.0, 1.0]), "outputs"),
        (lambda: problem_with(outputs=[0.0, math.inf]), "outputs"),
        (lambda: made_with(np.full(CELLS, 0.24)), "sensitivity"),
        (lambda: made_with(np.where(np.arange(CELLS) == 9, 0.5, 0.25)), "sensitivity"),
        (lambda: made_with(np.zeros(CELLS)), "sensitivity"),
        (lambda: made_with(np.full(3, 1.0)), "sensitivity"),
        (lambda: made_with(np.full(CELLS, 0.25), gamma=0.2), "gamma"),
        (lambda: made_with(np.full(CELLS, 0.25), epsilon=-1.0), "epsilon"),
        (on_a_plane, "reports"),
        (lambda: release.noise_table([0.0], [0.0], OUTPUTS, law=laws.Laplace()), "scale"),
    ],
)
def test_refusals_name_the_field(make, field):
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.field == field


def test_unit_of_outputs_is_any_name_but_a_misspelt_length():
    assert problem_with(unit="votes").reports.unit == "votes"
    with pytest.raises(UnitError, match="unit"):
        problem_with(unit="meterss")

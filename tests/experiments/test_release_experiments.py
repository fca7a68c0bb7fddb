"""What the experiments of paper 002 are made of: readers, populations, the optimal release and baselines, reports."""

from __future__ import annotations

import math
import subprocess
import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from conftest import ROOT
from scipy import stats
from tolerances import SOLVED

import mechdesign as md
from experiments.populations import MU, SIGMA, incomes, incomes_and_debts, places
from experiments.release_claims import Claim, income_claims, kernel_claims, two_way_claims
from experiments.release_comparison import release_mechanisms, release_rows
from experiments.release_curves import plot_releases
from experiments.release_queries import ThresholdQuery, TwoWayQuery
from experiments.releases import print_claims, print_comparison, print_rankings, print_releases, ranked
from experiments.releases import release_table as table_of
from mechdesign.closed_forms.sensitivity.query_functions import band_width
from mechdesign.errors import FileFormatError, InputError, UnsuitableError
from mechdesign.setting.problems.problem_files import read_problem_file
from mechdesign.setting.readers.microdata import read_microdata
from mechdesign.setting.readers.positions import RADIUS, mercator, read_coordinates
from mechdesign.utility.release_error import error_of_mean, release_bias

NYC = ROOT.parent / "shared" / "data" / "nyc_collisions_2020_sample.csv"
CELLS, INVERSE, FAR = 60, 20_000.0, 500_000.0


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_microdata_are_weighted_and_codes_dropped(tmp_path):
    text = "YEAR,HHINCOME,hhwt\n2022,50000,3\n2022,9999999,5\n2022,80000,1\n2022,,2\n2022,-200,0\n"
    found = read_microdata(
        written(tmp_path / "a.csv", text), value="hhincome", weight="HHWT", missing=(9999998, 9999999)
    )
    assert (found.values.tolist(), found.weights.tolist(), found.dropped) == ([50000, 80000, -200], [3, 1, 0], 2)
    drawn = found.sample(20_000, seed=1)
    share = np.mean(drawn == 50_000)
    assert abs(share - 0.75) < 5 * math.sqrt(0.75 * 0.25 / 20_000)
    assert not (drawn == -200).any()
    assert read_microdata(tmp_path / "a.csv", value="HHINCOME").weights.tolist() == [1.0] * 4


@pytest.mark.parametrize(
    ("text", "given", "error", "field"),
    [
        (None, {}, FileFormatError, "microdata"),
        ("", {}, FileFormatError, "microdata"),
        ("value,weight\n1,2\n", {"value": "income"}, FileFormatError, "microdata"),
        ("value,weight\n1,2\n", {"weight": "w"}, FileFormatError, "microdata"),
        ("value,VALUE,weight\n1,2,3\n", {}, FileFormatError, "microdata"),
        ("value,weight\nmany,2\n", {}, FileFormatError, "microdata"),
        ("value,weight\n", {}, InputError, "microdata"),
        ("value,weight\n7,2\n", {"missing": (7,)}, InputError, "microdata"),
        ("value,weight\ninf,2\n", {}, InputError, "value"),
        ("value,weight\n1,-2\n3,4\n", {}, InputError, "weight"),
        ("value,weight\n1,0\n3,0\n", {}, InputError, "weight"),
    ],
)
def test_microdata_that_are_refused(tmp_path, text, given, error, field):
    path = tmp_path / "a.csv"
    if text is not None:
        written(path, text)
    with pytest.raises(error) as caught:
        read_microdata(path, **{"value": "value", "weight": "weight", **given})
    assert caught.value.field == field


@pytest.mark.parametrize("header", ["LATITUDE,LONGITUDE", "lat,lng", "Lat,Lon"])
def test_coordinates_are_projected_and_those_missing_dropped(tmp_path, header):
    """Mercator beside its definition by asinh(tan); the equidistant plane beside great circles."""
    text = f"{header}\n40.70,-74.00\n,\n0,0\n40.70,-73.99\n40.71,-74.00\n0.0,-74\n"
    path = written(tmp_path / "a.csv", text)
    found = read_coordinates(path)
    assert (found.dropped, found.unit) == (3, "m")
    latitude, longitude = np.radians([40.70, 40.70, 40.71]), np.radians([-74.0, -73.99, -74.0])
    plain = np.column_stack([longitude, np.arcsinh(np.tan(latitude))]) * 6_371_000
    assert found.points == pytest.approx(plain, rel=1e-12)
    east, north = found.points[1] - found.points[0], found.points[2] - found.points[0]
    ground = np.radians(0.01) * RADIUS
    assert east[0] == pytest.approx(ground, rel=1e-9)
    assert north[1] == pytest.approx(ground / math.cos(math.radians(40.705)), rel=1e-6)
    pytest.importorskip("pyproj")
    flat = read_coordinates(path, projection="equidistant").points
    assert np.linalg.norm(flat[2] - flat[0]) == pytest.approx(1110.4, abs=0.5)  # 0.01 degrees of a meridian of WGS 84
    assert np.linalg.norm(flat[1] - flat[0]) == pytest.approx(845.1, abs=0.5)  # of the parallel of 40.7 degrees


@pytest.mark.parametrize(
    ("text", "projection", "error", "field"),
    [
        (None, "mercator", FileFormatError, "coordinates"),
        ("x,y\n1,2\n", "mercator", FileFormatError, "coordinates"),
        ("lat,lng\n0,0\n", "mercator", InputError, "coordinates"),
        ("lat,lng\n86,10\n", "mercator", InputError, "coordinates"),
        ("lat,lng\n40,181\n", "mercator", InputError, "coordinates"),
        ("lat,lng\n40,inf\n", "mercator", InputError, "coordinates"),
        ("lat,lng\n40,10\n", "polar", InputError, "projection"),
    ],
)
def test_coordinates_that_are_refused(tmp_path, text, projection, error, field):
    path = tmp_path / "a.csv"
    if text is not None:
        written(path, text)
    with pytest.raises(error) as caught:
        read_coordinates(path, projection=projection)
    assert caught.value.field == field


def test_collisions_fall_into_the_window_of_the_paper():
    if not NYC.is_file():
        pytest.skip("the sample of collisions is not at hand")
    found = read_coordinates(NYC)
    assert len(found.points) + found.dropped == 1601
    low, high = found.points.min(axis=0), found.points.max(axis=0)
    assert (low > [-8.30e6, 4.91e6]).all()
    assert (high < [-8.19e6, 5.00e6]).all()
    assert mercator(np.array([45.0]), np.array([90.0]))[0] == pytest.approx(
        [RADIUS * math.pi / 2, RADIUS * math.log(1 + math.sqrt(2))], rel=1e-12
    )


def test_populations_have_the_laws_they_claim():
    both = np.log(incomes_and_debts(40_000, 3))
    assert both.mean(axis=0) == pytest.approx([MU, MU + math.log(1.791)], abs=5 * SIGMA / 200)
    assert both.std(axis=0) == pytest.approx([SIGMA, SIGMA], rel=5 / math.sqrt(80_000))
    assert np.corrcoef(both.T)[0, 1] == pytest.approx(0.4, abs=5 * 0.84 / 200)
    drawn = incomes(40_000, 3)
    law = stats.lognorm(SIGMA, scale=math.exp(MU))
    assert stats.kstest(drawn, law.cdf).pvalue > 1e-4
    low, high = np.array([0.0, 5e4, 1e6]), np.array([5e4, 1e6, math.inf])
    income_mass = read_problem_file("income").module.income_mass
    assert income_mass(low, high) == pytest.approx(law.cdf(high) - law.cdf(low), rel=1e-12)
    spots = places(5_000, 3)
    assert (np.abs(spots) < 33_000).all()
    near = np.sort(np.linalg.norm(spots[:, None] - spots[None, :400], axis=-1), axis=0)[10]
    assert np.quantile(near, 0.4) < 500 < np.quantile(near, 0.6)
    assert places(10, 3).tolist() == places(10, 3).tolist()


@cache
def compared(threshold=FAR) -> tuple[md.DesignProblem, ThresholdQuery, dict[str, xr.Dataset]]:
    problem = md.load_problem("income", threshold=threshold, epsilon_inverse=INVERSE, cells=CELLS, outputs=21)
    query = ThresholdQuery(threshold=threshold, width=band_width(threshold, 1 / INVERSE))
    return problem, query, release_mechanisms(problem, query, span=INVERSE)


def rows(**given) -> pd.DataFrame:
    problem, query, made = compared()
    return release_rows(made, problem, query, span=INVERSE, **given).set_index("mechanism")


def test_the_income_problem_is_the_soft_threshold_under_the_log_normal_law():
    problem, query, made = compared()
    at = problem.domain.points[:, 0]
    assert problem.prior_array[:-1] == pytest.approx(
        np.diff(stats.lognorm(SIGMA, scale=math.exp(MU)).cdf(np.arange(CELLS) * 20_000.0)), rel=1e-9
    )
    truth = np.clip((at - FAR) / 40_000.0 + 0.5, 0, 1)
    outputs = np.linspace(-0.5, 1.5, 21)
    assert problem.loss_matrix == pytest.approx((truth[:, None] - outputs) ** 2, abs=1e-12)
    assert made["optimal"].attrs["expected_loss"] - made["optimal"].attrs["lower_bound"] < SOLVED
    assert query.width == 40_000.0


def test_no_release_beats_the_bound_and_smooth_beats_the_global_constant_far_away():
    found = rows()
    private = found[found["multiple"] <= 1 + 2.0**-40]
    assert set(private.index) >= {"optimal", "smooth", "smooth_tight", "lipschitz", "input_perturbation", "constant"}
    assert (private["error"] >= private["lower_bound"]).all()
    assert found["lower_bound"].nunique() == 1
    assert found.loc["smooth_tight", "error"] < found.loc["smooth", "error"] < found.loc["lipschitz", "error"] / 1.5
    assert (found["remapped"] <= found["error"] * (1 + 1e-12)).all()
    assert found["smallest_epsilon"].values == pytest.approx(found["multiple"].values / INVERSE)


def test_errors_of_means_are_those_of_drawn_users():
    """The formula against the mean of a hundred reports drawn from the certified integers, many times."""
    problem, query, made = compared()
    values = query.values(problem.domain.points[:, 0])
    rng = np.random.default_rng(5)
    for name in ("lipschitz", "input_perturbation"):
        mechanism = made[name]
        table = md.probabilities(mechanism).values.cumsum(axis=1)
        users = rng.choice(CELLS, (3000, 100), p=problem.prior_array)
        drawn = (rng.random((3000, 100, 1)) > table[users]).sum(axis=-1).clip(max=20)
        square = (mechanism["report_x"].values[drawn].mean(axis=1) - values[users].mean(axis=1)) ** 2
        exact = error_of_mean(mechanism, values, 100)
        assert abs(square.mean() - exact) < 5 * square.std() / math.sqrt(3000)
        assert error_of_mean(mechanism, values) == pytest.approx(mechanism.attrs["expected_loss"], rel=1e-9)
        bias = float(problem.prior_array @ release_bias(mechanism, values))
        assert error_of_mean(mechanism, values, 10**12) == pytest.approx(bias**2, rel=1e-6)
        there = np.eye(CELLS)[7]
        assert error_of_mean(mechanism, values, 10**15, population=there) == pytest.approx(
            release_bias(mechanism, values)[7] ** 2, rel=1e-6
        )


def test_continuous_errors_are_variances_over_users_and_squared_biases():
    problem, query, _ = compared()
    found = rows(users=(10, 1000))
    assert found.loc["lipschitz", "continuous"] == pytest.approx(2 * (INVERSE / 40_000) ** 2 / 1000, rel=1e-12)
    assert found.loc["ldp", "continuous"] == pytest.approx(2 / 1000, rel=1e-12)
    x, prior = problem.domain.points[:, 0], problem.prior_array
    bound = query.sensitivity(x, 1 / INVERSE / 9)
    assert found.loc["smooth", "continuous"] == pytest.approx(9 * INVERSE**2 * (prior @ bound**2) / 1000, rel=1e-12)
    rng = np.random.default_rng(2)
    users = rng.choice(CELLS, (4000, 1000), p=prior)
    moved = x[users] + rng.laplace(scale=INVERSE, size=users.shape)
    square = (query.values(moved) - query.values(x)[users]).mean(axis=1) ** 2
    assert abs(square.mean() - found.loc["input_perturbation", "continuous"]) < 5 * square.std() / math.sqrt(4000)
    assert math.isnan(found.loc["optimal", "continuous"])


@pytest.mark.parametrize(
    ("make", "error", "field"),
    [
        (lambda: md.load_problem("income", threshold=0.0), InputError, "threshold"),
        (lambda: md.load_problem("income", threshold=2e6), InputError, "threshold"),
        (lambda: md.load_problem("income", epsilon_inverse=0.0), InputError, "epsilon_inverse"),
        (lambda: md.load_problem("income", cells=1), InputError, "cells, outputs"),
        (lambda: error_of_mean(compared()[2]["smooth"], [1.0], 5), InputError, "values"),
        (lambda: error_of_mean(compared()[2]["smooth"], np.zeros(CELLS), 0), InputError, "users"),
        (lambda: error_of_mean(compared()[2]["smooth"], np.zeros(CELLS), population=[1.0]), InputError, "prior"),
        (lambda: plot_releases({}), InputError, "panels"),
        (
            lambda: release_mechanisms(compared()[0], TwoWayQuery(thresholds=(1.0, 1.0), width=1.0), span=1.0),
            UnsuitableError,
            "domain",
        ),
        (
            lambda: release_bias(md.baselines.constant(md.load_problem("flat", cells=3)), np.zeros(9)),
            UnsuitableError,
            "reports",
        ),
    ],
)
def test_refusals_name_the_field(make, error, field):
    with pytest.raises(error) as caught:
        make()
    assert caught.value.field == field


def panel(scale, **attrs):
    """Bands in which every error is scale * 1e-3 / size, smooth being 4 times less and input_perturbation flat."""
    names, size = ["smooth", "smooth_tight", "lipschitz", "input_perturbation", "noisy_distance"], np.array([100, 1600])
    rate = np.array([0.25, 0.15, 1.0, 2.0, 2.0])[:, None] * scale * 1e-3 / size
    rate[3:] = rate[3:, 1:]
    dims = ("truth_kind", "mechanism", "size")
    figures = dict.fromkeys(("mean", "mean_low", "mean_high", "low", "high", "expected"), (dims, np.stack([rate] * 2)))
    coords = {"truth_kind": ["soft", "hard"], "mechanism": names, "size": size}
    return xr.Dataset(figures, coords=coords, attrs={"repetitions": 3, "queries": 2, **attrs})


def test_claims_hold_where_they_should_and_name_where_they_do_not(capsys):
    panels = {
        f"{threshold}, {inverse}": panel(inverse**2, threshold=threshold, epsilon_inverse=inverse)
        for threshold in (100_000, 500_000)
        for inverse in (2, 1)
    }
    claims = income_claims(panels)
    told = {claim.sentence.split(":")[0] + claim.sentence[-20:]: claim for claim in claims}
    assert len(told) == len(claims)
    assert [claim.failing for claim in claims[:2]] == [[], ["500000, 1"]]
    assert claims[0].ratios == pytest.approx(dict.fromkeys(("500000, 2", "500000, 1"), 4.0))
    assert claims[2].ratios == pytest.approx(dict.fromkeys(("100000, 2", "100000, 1"), 8.0))
    assert claims[3].failing == ["100000, 2", "100000, 1"]
    assert [len(claim.failing) for claim in claims[4:7]] == [0, 0, 0]
    assert list(claims[7].ratios.values()) == [pytest.approx(4.0)]
    assert claims[7].failing
    levels = {str(inverse): panel(inverse, epsilon_inverse=inverse) for inverse in (1, 2, 3)}
    assert [claim.ratios for claim in two_way_claims(levels)[:3]] == [{"3 / 1": pytest.approx(3.0)}] * 3
    assert not any(claim.failing for claim in two_way_claims(levels))
    pairs = ((1, 2), (2, 1), (2, 2), (2, 3), (3, 2))
    widths = {f"{i}, {h}": panel(i / h, epsilon_inverse=i, bandwidth=h) for i, h in pairs}
    failing = [claim.sentence.split(":")[0] for claim in kernel_claims(widths) if claim.failing]
    assert failing == ["input_perturbation"]
    assert Claim(sentence="", ratios={"a": 0.5, "b": 3.0}, most=2.0).failing == ["a", "b"]
    print_claims(claims)
    assert "500000, 1: 0.5" in " ".join(capsys.readouterr().out.split())


def test_tables_rankings_and_pictures_hold_every_figure(capsys):
    panels = {"one": panel(1.0, threshold=5), "two": panel(2.0, threshold=6)}
    table = table_of(panels)
    assert len(table) == 2 * 2 * 5 * 2
    line = table.query("setting == 'two' and mechanism == 'lipschitz' and truth_kind == 'hard' and size == 1600")
    assert line["mean"].tolist() == [2e-3 / 1600]
    assert line["threshold"].tolist() == [6]
    assert [name for name, _ in ranked(panels["one"])][:3] == ["smooth_tight", "smooth", "lipschitz"]
    print_releases(panels)
    print_rankings(panels)
    print_comparison(rows().reset_index())
    assert "smooth_tight 9.4e-08 < smooth 1.6e-07" in capsys.readouterr().out
    pytest.importorskip("matplotlib")
    figure = plot_releases(panels, columns=2)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["one", "two"]
    drawn = figure.axes[1].containers[2].lines[0]
    assert (
        drawn.get_ydata().tolist()
        == panels["two"]["mean"].sel(truth_kind="soft", mechanism="lipschitz").values.tolist()
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["income_threshold", "income_and_debt", "collisions_kde", "optimal_release"])
def test_scripts_run_in_their_quick_setting(name, tmp_path):
    pytest.importorskip("matplotlib")
    given = ["-o", str(tmp_path / "a.csv")]
    given += [] if name == "optimal_release" else ["--repetitions", "1", "--plot", str(tmp_path / "a.png")]
    command = [sys.executable, str(ROOT / "scripts" / f"{name}.py"), *given]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "wrote" in done.stdout
    assert len(pd.read_csv(tmp_path / "a.csv")) >= 21

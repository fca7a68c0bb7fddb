"""scripts/liang_yi.py: its closed forms beside users that are drawn, its populations, its comparison of releases."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

import liang_yi
import numpy as np
import pytest
from scipy import stats

SIGMAS = 5.0  # standard errors of a seeded Monte Carlo mean
SPLINE = 1e-5  # of 1, the largest kernel
USERS, DRAWN = 60, 4000
LINE = np.random.default_rng(4).lognormal(11.5, 0.8, USERS)
PLANE = np.random.default_rng(3).normal(0, 3, (USERS, 2))
BOTH = np.column_stack([LINE, 1.8 * LINE[::-1]])
CASES = {  # query, secrets, epsilon, span
    "threshold": (liang_yi.threshold(100_000, 1 / 12_000), LINE, 1 / 12_000, 15_000.0),
    "two way": (liang_yi.two_way((100_000, 150_000), 1 / 12_000), BOTH, 1 / 12_000, 15_000.0),
    "kernel": (liang_yi.kernel(np.array([1.0, -0.5]), 1.5), PLANE, 0.8, 1.0),
}


def add_noise(x, epsilon, rng):
    """Secrets (DRAWN, n) or (DRAWN, n, 2) with Laplace noise, in the plane by a radius and an angle."""
    if x.ndim == 1:
        return x + rng.laplace(scale=1 / epsilon, size=(DRAWN, len(x)))
    radius, angle = rng.gamma(2, 1 / epsilon, (DRAWN, len(x))), rng.uniform(0, 2 * np.pi, (DRAWN, len(x)))
    return x + radius[..., None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def draw_answers(case, method, rng):
    """The answers that users send, (DRAWN, n), by the definition of the method."""
    query, x, epsilon, span = CASES[case]
    f, size = query.values(x), (DRAWN, len(x))
    if method.startswith("smooth"):
        eta = liang_yi.T3.eta(epsilon, epsilon / 9, method == "smooth_tight")
        return f + query.smooth(x, epsilon / 9) / eta * rng.standard_t(3, size)
    if method in ("lipschitz", "ldp"):
        scale = query.constant if method == "lipschitz" else 1 / span
        return f + scale / epsilon * rng.laplace(size=size)
    if method == "noisy_distance":
        away = np.hypot(*(x - [1.0, -0.5]).T) + rng.laplace(scale=1 / epsilon, size=size)
        return np.exp(-((away / 1.5) ** 2) / 2)
    noisy = add_noise(x, epsilon, rng)
    if case == "two way":
        return (noisy > [100_000, 150_000]).all(axis=-1).astype(float)
    return query.values(noisy.reshape(-1, *x.shape[1:])).reshape(size)


METHODS = ("smooth", "smooth_tight", "lipschitz", "ldp", "input_perturbation")


@pytest.mark.parametrize(
    ("case", "method"), [*((case, method) for case in CASES for method in METHODS), ("kernel", "noisy_distance")]
)
def test_errors_are_those_of_drawn_users(case, method):
    """T_3 has no fourth moment, so that its squares have no standard error: its law is tested with the laws."""
    query, x, epsilon, span = CASES[case]
    variance, bias = liang_yi.user_errors(query, x, epsilon, span)[method]
    error = draw_answers(case, method, np.random.default_rng(1)) - query.values(x)
    mean = error.mean(axis=1)
    assert abs(mean.mean() - bias.mean()) < SIGMAS * math.sqrt(variance.mean() / len(x) / DRAWN)
    square = mean**2
    found = liang_yi.errors([query], x, epsilon, span, [len(x)])[method].iloc[0]
    if not method.startswith("smooth"):
        assert abs(square.mean() - found) < SIGMAS * square.std() / math.sqrt(DRAWN)
    assert np.median(square) < found  # a mean of squares of sums is above its median


@pytest.mark.parametrize("case", CASES)
def test_smooth_bounds_cover_their_steps(case):
    """S(x) >= |f(x) - f(x')| / |x - x'| and S(x) <= e^{gamma d} S(x'), by all pairs; the global constant is above."""
    query, x, epsilon, _ = CASES[case]
    values, bound = query.values(x), query.smooth(x, epsilon / 9)
    flat = x.reshape(len(x), -1)
    away = np.linalg.norm(flat[:, None] - flat, axis=-1)
    assert (np.abs(values[:, None] - values) <= bound[:, None] * away * (1 + 1e-9) + 1e-15).all()
    assert (np.log(bound)[:, None] - np.log(bound) <= epsilon / 9 * away + 1e-9).all()
    assert 0.5 * query.constant < bound.max() <= query.constant * (1 + 1e-12)


def test_errors_to_the_hard_truth_move_the_bias_alone():
    query, x, epsilon, span = CASES["threshold"]
    soft, hard = (liang_yi.errors([query], x, epsilon, span, [10, 10**12], hard=hard) for hard in (False, True))
    shift = np.mean(query.values(x) - (x > 100_000))
    assert hard["smooth"].iloc[1] == pytest.approx(shift**2, rel=1e-6)
    assert hard["smooth"].iloc[0] - soft["smooth"].iloc[0] == pytest.approx(shift**2, rel=1e-9)


@pytest.mark.parametrize(("k", "v"), [(0.5, 0.0), (2.0, 1.7), (0.9, 4.0), (4.0, 0.4)])
def test_kernels_after_noise_beside_a_sum_over_the_plane(k, v):
    radius, angle = stats.gamma(2, scale=1 / k).ppf((np.arange(4000) + 0.5) / 4000), np.arange(360) * 2 * np.pi / 360
    square = v**2 + radius[:, None] ** 2 + 2 * v * radius[:, None] * np.cos(angle)
    found = liang_yi.kernel_of_noisy_place(np.array([v, 40.0]), k)
    assert found[0] == pytest.approx(np.exp(-square / 2).mean(), rel=2e-3, abs=1e-6)
    if v == 0:
        exact = k**2 - k**3 * math.sqrt(math.pi / 2) * math.exp(k**2 / 2) * math.erfc(k / math.sqrt(2))
        assert found[0] == pytest.approx(exact, abs=SPLINE)


def test_synthetic_places_are_half_at_hot_spots():
    places = liang_yi.clouds(5_000, 3)
    assert (np.abs(places) < 33_000).all()
    near = np.sort(np.linalg.norm(places[:, None] - places[None, :400], axis=-1), axis=0)[10]
    assert np.quantile(near, 0.4) < 500 < np.quantile(near, 0.6)
    points = np.array([[100.0, 7.0], [1075.0, 500.5]])
    centres, diagonal = liang_yi.kernel_grid(points, 1)
    assert centres.shape == (3721, 2)
    low, high = centres.min(axis=0), centres.max(axis=0)
    assert (high - low).tolist() == [1080.0, 600.0]
    assert ((low + high) / 2).tolist() == ((points[0] + points[1]) / 2).tolist()
    assert diagonal == pytest.approx(math.hypot(18, 10))


def test_orders_of_the_paper():
    """Far from the incomes smooth sensitivity beats the global constant, near them it loses; a bias does not fall."""
    given = argparse.Namespace(seed=0, users=20_000, data=None, hard=False)
    tables = dict(liang_yi.incomes(given))
    for title in ("T = 10,000, 1/eps = 1,200 USD", "T = 1,000,000, 1/eps = 48,000 USD"):
        assert tables[title]["lipschitz"].iloc[-1] / tables[title]["smooth"].iloc[-1] > 2
    near = tables["T = 100,000, 1/eps = 12,000 USD"]
    assert 1 < near["smooth"].iloc[-1] / near["lipschitz"].iloc[-1] < 3
    falls = near.iloc[0] / near.iloc[-1]
    assert falls[["smooth", "lipschitz"]].values == pytest.approx(16, rel=1e-9)
    assert falls["input_perturbation"] < 1.1
    assert near["smooth"].values / near["smooth_tight"].values == pytest.approx(5 / 3, rel=1e-9)


def test_no_release_beats_the_bound():
    given = argparse.Namespace(thresholds=[500_000.0], inverse=20_000.0, cells=60)
    [(_, table)] = liang_yi.answer(given)
    private = table[table["ratio"] <= (1 + 2.0**-40)]
    assert set(private.index) >= {"optimal", "smooth", "smooth_tight", "lipschitz", "input_perturbation", "constant"}
    assert (private["error"] >= table.loc["optimal", "lower_bound"]).all()
    assert table.loc["smooth_tight", "error"] < table.loc["smooth", "error"] < table.loc["lipschitz", "error"] / 1.5
    assert (table["remapped"] <= table["error"] * (1 + 1e-12)).all()
    assert table.loc["lipschitz", "continuous"] == pytest.approx(2 * (20_000 / 40_000) ** 2 / 1e6, rel=1e-12)
    assert table.loc["ldp", "continuous"] == pytest.approx(2 / 1e6, rel=1e-12)


@pytest.mark.parametrize("header", ["LATITUDE,LONGITUDE", "lat,lng"])
def test_places_are_projected_and_those_missing_dropped(tmp_path: Path, header):
    """Mercator beside its integral, ln tan(pi / 4 + phi / 2); the equidistant plane beside great circles."""
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\n40.70,-74.00\n,\n0,0\n40.70,-73.99\n40.71,-74.00\n")
    found = liang_yi.project_positions(path, "mercator")
    latitude, longitude = np.radians([40.70, 40.70, 40.71]), np.radians([-74.0, -73.99, -74.0])
    plain = np.column_stack([longitude, np.log(np.tan(math.pi / 4 + latitude / 2))]) * 6_371_000
    assert found == pytest.approx(plain, rel=1e-12)
    pytest.importorskip("pyproj")
    flat = liang_yi.project_positions(path, "equidistant")
    assert np.linalg.norm(flat[2] - flat[0]) == pytest.approx(1110.4, abs=0.5)  # 0.01 degrees of a meridian of WGS 84
    assert np.linalg.norm(flat[1] - flat[0]) == pytest.approx(845.1, abs=0.5)  # of the parallel of 40.7 degrees


@pytest.mark.exhaustive
def test_a_file_of_incomes_is_read_and_tables_are_written(tmp_path: Path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    file = tmp_path / "incomes.csv"
    file.write_text("YEAR,HHINCOME,HHWT\n2022,50000,3\n2022,9999999,5\n2022,80000,1\n2022,,2\n")
    words = ["incomes", "--data", file, "--users", "50", "-o", tmp_path / "a.csv", "--plot", tmp_path / "a.png"]
    monkeypatch.setattr(sys, "argv", ["liang_yi.py", *map(str, words)])
    liang_yi.main()
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 1 + 12 * 5
    assert (tmp_path / "a.png").stat().st_size > 10_000
    assert "T = 500,000, 1/eps = 16,000 USD" in capsys.readouterr().out

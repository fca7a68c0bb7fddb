"""Release studies: simulated errors against closed forms, quadrature and other ways to draw the same estimates."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from tolerances import REORDERED

from experiments.populations import incomes, incomes_and_debts, places
from experiments.release_queries import KernelQuery, ThresholdQuery, TwoWayQuery, kernel_grid
from experiments.release_study import (
    METHODS,
    ReleaseStudy,
    expected_errors,
    laplace_sums,
    perturbed,
    release_bands,
    release_study,
    smooth_eta,
    user_errors,
)
from mechdesign.closed_forms.noise import input_perturbation
from mechdesign.closed_forms.noise.laws import Laplace, StudentT
from mechdesign.closed_forms.sensitivity import query_functions as queries
from mechdesign.closed_forms.sensitivity.query_functions import band_width
from mechdesign.errors import InputError, UnsuitableError

SIGMAS = 5.0  # standard errors of a seeded Monte Carlo mean
SPLINE = 1e-5  # of 1, the largest kernel
LEVEL, SPAN = 1 / 12_000, 15_000.0  # per USD; USD
LINE = ("smooth", "smooth_tight", "lipschitz", "input_perturbation", "ldp")


def threshold_query(threshold=100_000.0):
    return ThresholdQuery(threshold=threshold, width=band_width(threshold, LEVEL))


def line_study(**given):
    asked = {"secrets": incomes(300, 4), "queries": [threshold_query()], "epsilon": LEVEL, "sizes": [40, 300]}
    return ReleaseStudy(**{**asked, "span": SPAN, "methods": LINE, **given})


def kernel_study(**given):
    centres = [(1.0, -0.5), (4.0, 2.0)]
    asked = {
        "secrets": np.random.default_rng(3).normal(0, 3, (200, 2)),
        "queries": [KernelQuery(center=centre, bandwidth=1.5) for centre in centres],
        "epsilon": 0.8,
        "sizes": [50, 200],
    }
    return ReleaseStudy(**{**asked, "span": 1.0, "methods": METHODS, **given})


@pytest.mark.parametrize(("make", "count"), [(line_study, 800), (kernel_study, 300)], ids=["line", "plane"])
def test_means_and_variances_of_estimates_are_the_closed_forms(make, count):
    """T_3 has no fourth moment, so that its simulated variance has no standard error: the next test has its law."""
    found = release_study(make(), repetitions=count)
    error = found["estimate"] - found["truth"].sel(truth_kind="soft")
    for name in found["mechanism"].values.tolist():
        own = error.sel(mechanism=name)
        spread = np.sqrt(found["variance"].sel(mechanism=name))
        off = (own.mean("repetition") - found["bias"].sel(mechanism=name)) / (spread / math.sqrt(count))
        assert float(abs(off).max()) < SIGMAS
        if not name.startswith("smooth"):
            square = ((own - found["bias"].sel(mechanism=name)) / spread) ** 2
            standard = square.std("repetition") / math.sqrt(count)
            assert float((abs(square.mean("repetition") - 1) / standard).max()) < SIGMAS


def test_a_single_user_sends_what_the_laws_say():
    x = np.array([130_000.0])
    study = line_study(secrets=x, sizes=[1])
    found = release_study(study, repetitions=1500)
    soft, query = float(found["truth"].sel(truth_kind="soft")[0, 0]), threshold_query()
    bound = float(query.sensitivity(x, LEVEL / 9)[0])
    for name, law, scale in [
        ("smooth", StudentT(3), bound / (LEVEL / math.sqrt(3))),
        ("smooth_tight", StudentT(3), bound / StudentT(3).eta(LEVEL, LEVEL / 9, True)),
        ("lipschitz", Laplace(), 1 / 20_000 / LEVEL),
        ("ldp", Laplace(), 1 / (LEVEL * SPAN)),
    ]:
        drawn = (found["estimate"].sel(mechanism=name).values.ravel() - soft) / scale
        assert stats.kstest(drawn, law.cdf).pvalue > 1e-4, name
    answers = found["estimate"].sel(mechanism="input_perturbation").values.ravel()
    above = [float(np.mean(answers >= level)) for level in (0.25, 0.75)]
    exact = [1 - stats.laplace.cdf(20_000 * (level - 0.5) - 30_000, scale=1 / LEVEL) for level in (0.25, 0.75)]
    assert above == pytest.approx(exact, abs=SIGMAS * 0.5 / math.sqrt(1500))


def test_datasets_are_nested_and_the_last_users_count():
    """Two methods of the same users: the sum over all minus the sum over the first is the rest, as a study of its own
    says in closed form.
    """
    x = incomes(300, 4)
    both, rest = line_study(), line_study(secrets=x[40:], sizes=[260])
    found, other = release_study(both, repetitions=1), release_study(rest, repetitions=1)
    for figure, weight in (("variance", lambda n: n**2), ("bias", lambda n: n)):
        total = found[figure][..., 1] * weight(300) - found[figure][..., 0] * weight(40)
        assert total.values == pytest.approx((other[figure][..., 0] * weight(260)).values, rel=1e-9, abs=1e-9)
    for kind in ("soft", "hard"):
        truth = found["truth"].sel(truth_kind=kind)[0]
        rest_truth = float(other["truth"].sel(truth_kind=kind)[0, 0])
        assert float(truth[1] * 300 - truth[0] * 40) == pytest.approx(260 * rest_truth, rel=1e-12)


def test_laplace_sums_have_the_law_of_sums():
    drawn = np.array([laplace_sums(np.array([3, 10]), np.random.default_rng(seed)) for seed in range(4000)])
    plain = np.random.default_rng(9).laplace(size=(4000, 10))
    for size, own in ((3, drawn[:, 0]), (10, drawn[:, 1]), (7, drawn[:, 1] - drawn[:, 0])):
        assert stats.ks_2samp(own, plain[:, :size].sum(axis=1)).pvalue > 1e-4
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 1] - drawn[:, 0])[0, 1]) < SIGMAS / math.sqrt(4000)


def test_noise_in_the_plane_has_the_radii_and_directions_of_planar_laplace():
    moved = perturbed(np.tile([[3.0, -1.0]], (20_000, 1)), 0.5, np.random.default_rng(1)) - [3.0, -1.0]
    radius = np.hypot(*moved.T)
    assert stats.kstest(radius, stats.gamma(2, scale=2).cdf).pvalue > 1e-4
    turned = np.arctan2(moved[:, 1], moved[:, 0])
    assert stats.kstest(turned, stats.uniform(-math.pi, 2 * math.pi).cdf).pvalue > 1e-4


def test_methods_and_repetitions_do_not_depend_on_each_other():
    whole = release_study(line_study(), repetitions=3)["estimate"]
    for name in LINE:
        alone = release_study(line_study(methods=[name]), repetitions=2)["estimate"]
        assert alone.sel(mechanism=name).values.tolist() == whole.sel(mechanism=name)[..., :2].values.tolist()
    again = release_study(line_study(seed=1), repetitions=3)["estimate"]
    assert not np.isclose(again.values, whole.values, rtol=1e-9).any()
    flat = whole.sel(mechanism=["smooth", "lipschitz", "input_perturbation", "ldp"]).values[:, 0, 1]
    assert len(np.unique(flat)) == flat.size


def test_smooth_methods_share_their_noise_and_differ_by_the_constants():
    found = release_study(line_study(), repetitions=2)
    error = (found["estimate"] - found["truth"].sel(truth_kind="soft")).sel(mechanism=["smooth", "smooth_tight"])
    ratio = error.sel(mechanism="smooth").values / error.sel(mechanism="smooth_tight").values
    assert ratio**2 == pytest.approx(5 / 3, rel=1e-9)
    assert smooth_eta(0.3, tight=False) == pytest.approx(0.3 / math.sqrt(3), rel=1e-12)
    assert smooth_eta(0.3, tight=True) == pytest.approx(0.3 * math.sqrt(5) / 3, rel=1e-12)


def test_one_noisy_place_answers_all_kernels_and_distances_are_noised_anew():
    twice = [KernelQuery(center=(1.0, 0.0), bandwidth=1.5)] * 2
    found = release_study(kernel_study(queries=twice), repetitions=2)["estimate"]
    same = (found[:, 0] == found[:, 1]).all(["size", "repetition"])
    assert dict(zip(METHODS, same.values.tolist(), strict=True)) == {
        name: name == "input_perturbation" for name in METHODS
    }


def test_blocks_of_users_change_nothing_but_the_order_of_sums(monkeypatch):
    values = threshold_query().values(incomes(300, 4))
    before = release_study(line_study(methods=["input_perturbation"]), repetitions=2)
    monkeypatch.setattr("experiments.release_study._BLOCK", 7)
    after = release_study(line_study(methods=["input_perturbation"]), repetitions=2)
    assert after["estimate"].values == pytest.approx(before["estimate"].values, rel=REORDERED)
    assert float(after["truth"][0, 0, 1]) == pytest.approx(values.mean(), rel=REORDERED)


def test_bands_are_means_of_squares_to_either_truth():
    found = release_study(kernel_study(), repetitions=6)
    bands = release_bands(found)
    estimate, truth = found["estimate"].values, found["truth"].values
    square = ((estimate[None] - truth[:, None, :, :, None]) ** 2).mean(axis=2)
    assert bands["mean"].values == pytest.approx(square.mean(axis=-1), rel=1e-12)
    assert bands["total"].values == pytest.approx(2 * square.mean(axis=-1), rel=1e-12)
    assert bands["high"].values == pytest.approx(np.quantile(square, 0.95, axis=-1), rel=1e-12)
    assert (bands.attrs["repetitions"], bands.attrs["queries"]) == (6, 2)


def test_expected_errors_are_those_of_input_perturbation_and_count_the_softening():
    study = line_study()
    bands = release_bands(release_study(study, repetitions=1))
    x = np.asarray(study.secrets)
    own = bands["expected"].sel(mechanism="input_perturbation")
    for place, size in enumerate([40, 300]):
        exact = input_perturbation.mse(x[:size], 100_000.0, LEVEL, width=20_000.0)
        assert float(own.sel(truth_kind="soft")[place]) == pytest.approx(exact, rel=1e-12)
        rule = float(np.mean(queries.threshold(x[:size], 100_000.0, 20_000.0)) - np.mean(x[:size] > 100_000))
        lipschitz = bands["expected"].sel(mechanism="lipschitz", truth_kind="hard")
        assert float(lipschitz[place]) == pytest.approx(2 * 0.6**2 / size + rule**2, rel=1e-12)


def test_errors_expected_at_other_sizes_keep_their_bias():
    simulated = release_study(line_study(), repetitions=1)
    bands, other = release_bands(simulated), expected_errors(simulated, [300, 1200])
    assert other["expected"].isel(size=0).values == pytest.approx(bands["expected"].isel(size=1).values, rel=1e-12)
    four = release_bands(release_study(line_study(secrets=np.tile(incomes(300, 4), 4), sizes=[1200]), repetitions=1))
    assert other["expected"].isel(size=1).values == pytest.approx(four["expected"].isel(size=0).values, rel=1e-9)
    assert np.isnan(other["mean"]).all()


def test_two_way_input_perturbation_has_no_closed_form_and_asks_the_hard_rule():
    query = TwoWayQuery(thresholds=(100_000.0, 150_000.0), width=20_000.0)
    people = incomes_and_debts(200, 1)
    variance, bias = user_errors("input_perturbation", query, people, LEVEL, SPAN)
    assert np.isnan(variance).all()
    assert np.isnan(bias).all()
    answers = query.after_noise(np.array([[100_001.0, 150_001.0], [99_999.0, 1e6], [1e6, 149_999.0]]))
    assert answers.tolist() == [1.0, 0.0, 0.0]
    sizes = [1, 5, 6, 77, 200]
    study = ReleaseStudy(
        secrets=people, queries=[query], epsilon=1.0, sizes=sizes, span=SPAN, methods=["input_perturbation"]
    )
    found = release_study(study, repetitions=1)
    shares = [float(np.mean((people[:size] > [100_000, 150_000]).all(axis=1))) for size in sizes]
    assert found["estimate"].values.ravel() == pytest.approx(shares, abs=1e-12)
    assert found["truth"].sel(truth_kind="hard").values.ravel() == pytest.approx(shares, abs=1e-12)


@pytest.mark.parametrize(("epsilon", "bandwidth"), [(0.5, 1.0), (2.0, 1.3), (0.9, 9.0), (20.0, 0.8)])
def test_kernels_after_noise_by_two_routes(epsilon, bandwidth):
    """The integral over radii and a sum over the plane; the spline of a query beside."""
    away = np.array([0.0, 0.4, 1.7, 4.0]) * bandwidth
    found = input_perturbation.kernel_after_noise(away, epsilon, bandwidth)
    radius, share = stats.gamma(2, scale=1 / epsilon).ppf((np.arange(4000) + 0.5) / 4000), 2 * np.pi / 360
    angle = np.arange(360) * share
    for l, value in zip(away, found, strict=True):
        square = l**2 + radius[:, None] ** 2 + 2 * l * radius[:, None] * np.cos(angle)
        assert value == pytest.approx(np.exp(-square / (2 * bandwidth**2)).mean(), rel=2e-3, abs=1e-6)
    query = KernelQuery(center=(2.0, 1.0), bandwidth=bandwidth)
    points = np.column_stack([2.0 + away, np.full(4, 1.0)])
    mean, square = query.moments(points, epsilon)
    assert mean == pytest.approx(found, abs=SPLINE)
    narrow = input_perturbation.kernel_after_noise(away, epsilon, bandwidth / math.sqrt(2))
    assert square == pytest.approx(narrow, abs=SPLINE)


def test_smooth_bounds_of_queries_cover_their_steps():
    """B(x) >= |f(x) - f(x')| / |x - x'| and B(x) <= e^{gamma d} B(x'), by all pairs of sampled users."""
    people, spots = incomes_and_debts(60, 2), places(60, 2)
    cases = [
        (threshold_query(), people[:, 0], LEVEL),
        (TwoWayQuery(thresholds=(90_000.0, 160_000.0), width=20_000.0), people, LEVEL),
        (KernelQuery(center=(0.0, 0.0), bandwidth=6_000.0), spots, 1e-3),
    ]
    for query, x, epsilon in cases:
        values, bound = query.values(x), query.sensitivity(x, epsilon / 9)
        flat = x.reshape(len(x), -1)
        away = np.linalg.norm(flat[:, None] - flat, axis=-1)
        assert (np.abs(values[:, None] - values) <= bound[:, None] * away * (1 + 1e-9) + 1e-15).all()
        assert (np.log(bound)[:, None] - np.log(bound) <= epsilon / 9 * away + 1e-9).all()
        assert bound.max() <= query.constant * (1 + 1e-12)
        assert bound.max() > 0.5 * query.constant


def test_errors_order_as_the_paper_says():
    """Far from the incomes smooth sensitivity beats the global constant, near them it loses; a bias does not fall."""
    people = incomes(20_000, 0)
    errors = {}
    for threshold, inverse in ((10_000.0, 1_200.0), (100_000.0, 12_000.0), (1_000_000.0, 48_000.0)):
        query = ThresholdQuery(threshold=threshold, width=band_width(threshold, 1 / inverse))
        study = ReleaseStudy(
            secrets=people, queries=[query], epsilon=1 / inverse, sizes=[20_000], span=inverse, methods=LINE
        )
        other = expected_errors(release_study(study, repetitions=1), [400_000, 6_400_000])
        errors[threshold] = other["expected"].sel(truth_kind="soft")
    for threshold in (10_000.0, 1_000_000.0):
        own = errors[threshold].isel(size=0)
        assert float(own.sel(mechanism="lipschitz") / own.sel(mechanism="smooth")) > 2
    near = errors[100_000.0]
    assert 1 < float((near.sel(mechanism="smooth") / near.sel(mechanism="lipschitz"))[0]) < 3
    falls = near.isel(size=0) / near.isel(size=1)
    assert falls.sel(mechanism=["smooth", "lipschitz"]).values == pytest.approx(16, rel=1e-9)
    assert float(falls.sel(mechanism="input_perturbation")) < 1.1


def test_widths_and_grids_are_those_of_the_experiments():
    assert band_width(10_000.0, 1 / 1200) == pytest.approx(2000)
    assert band_width(100_000.0, 1 / 8000) == pytest.approx(16_000)
    assert band_width((30_000.0, 40_000.0), 1 / 20_000) == pytest.approx(10_000)
    points = np.array([[100.0, 7.0], [1075.0, 500.5]])
    centres, diagonal = kernel_grid(points)
    assert centres.shape == (3721, 2)
    low, high = centres.min(axis=0), centres.max(axis=0)
    assert (high - low).tolist() == [1080.0, 600.0]
    assert ((low + high) / 2).tolist() == ((points[0] + points[1]) / 2).tolist()
    assert diagonal == pytest.approx(math.hypot(18, 10))
    coarse, same = kernel_grid(points, every=6)
    assert coarse.tolist() == centres.reshape(61, 61, 2)[::6, ::6].reshape(-1, 2).tolist()
    assert same == diagonal


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: line_study(secrets=np.full(300, math.nan)), "secrets"),
        (lambda: line_study(secrets=np.zeros((300, 2))), "secrets"),
        (lambda: kernel_study(secrets=np.zeros((200, 3))), "secrets"),
        (lambda: kernel_study(secrets=np.zeros(200)), "secrets"),
        (lambda: line_study(queries=[]), "queries"),
        (lambda: line_study(epsilon=0.0), "epsilon"),
        (lambda: line_study(span=-1.0), "span"),
        (lambda: line_study(sizes=[]), "sizes"),
        (lambda: line_study(sizes=[0, 300]), "sizes"),
        (lambda: line_study(sizes=[300, 40]), "sizes"),
        (lambda: line_study(sizes=[301]), "sizes"),
        (lambda: line_study(sizes=[2.5]), "sizes"),
        (lambda: line_study(methods=["smooth", "smooth"]), "methods"),
        (lambda: line_study(methods=["gaussian"]), "methods"),
        (lambda: line_study(methods=[]), "methods"),
        (lambda: line_study(seed=-1), "seed"),
        (lambda: release_study(line_study(), repetitions=0), "repetitions"),
        (lambda: expected_errors(release_study(line_study(), repetitions=1), [0]), "sizes"),
        (lambda: ThresholdQuery(threshold=math.inf, width=1.0), "threshold"),
        (lambda: ThresholdQuery(threshold=1.0, width=0.0), "width"),
        (lambda: TwoWayQuery(thresholds=(1.0,), width=1.0), "thresholds"),
        (lambda: KernelQuery(center=(0.0, 0.0), bandwidth=0.0), "bandwidth"),
        (lambda: KernelQuery(center=(0.0,), bandwidth=1.0), "center"),
        (lambda: band_width(0.0, 1.0), "threshold"),
        (lambda: kernel_grid(np.zeros(4)), "points"),
        (lambda: kernel_grid(np.zeros((4, 2)), every=7), "every"),
    ],
)
def test_refusals_name_the_field(make, field):
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.field == field


def test_distances_are_for_kernels():
    with pytest.raises(UnsuitableError, match="kernels only"):
        line_study(methods=["noisy_distance"])

"""Input perturbation: moments against other formulas, quadrature and Monte Carlo."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erfc

from mechdesign.closed_forms.noise import input_perturbation
from mechdesign.errors import InputError

SIGMAS = 5.0  # standard errors of a seeded Monte Carlo mean
FORMULA = 1e-11  # the same moment by integrals that cancel, at widths of the order of the noise
QUADRATURE = 1e-9  # what the adaptive rules of SciPy are asked for
SECRETS = np.array([-3.0, 0.2, 0.9, 1.0, 1.3, 1.6, 2.0, 2.4, 4.0, 9.0])
THRESHOLD = 1.5
SETTINGS = pytest.mark.parametrize(("epsilon", "width"), [(0.7, 0.0), (0.7, 1.2), (3.0, 0.8), (0.2, 5.0)])


def ramp(a, x, epsilon):
    """E max(y - a, 0) and E max(y - a, 0)^2 for y = x + Lap(1 / epsilon)."""
    u = a - x
    fade = np.exp(-epsilon * np.abs(u)) / epsilon
    square = np.where(u >= 0, fade / epsilon, u**2 + 2 / epsilon**2 - fade / epsilon)
    return np.maximum(-u, 0) + fade / 2, square


def simulated(x, epsilon, width, draws, seed):
    """The aggregate errors (draws,) of the mean rule after noise, relative to the rule at x."""
    rng = np.random.default_rng(seed)
    noisy = x + rng.laplace(scale=1 / epsilon, size=(draws, len(x)))
    truth = input_perturbation.rule(x, THRESHOLD, width=width)
    return (input_perturbation.rule(noisy, THRESHOLD, width=width) - truth).mean(axis=1)


@pytest.mark.parametrize(("epsilon", "width"), [(0.7, 1.2), (3.0, 0.8), (0.2, 5.0)])
def test_soft_moments_are_differences_of_ramps(epsilon, width):
    low, high = (ramp(THRESHOLD + side * width / 2, SECRETS, epsilon) for side in (-1, 1))
    mean, square = input_perturbation.moments(SECRETS, THRESHOLD, epsilon, width=width)
    assert mean == pytest.approx((low[0] - high[0]) / width, abs=FORMULA)
    assert square == pytest.approx((low[1] - high[1] - 2 * width * high[0]) / width**2, abs=FORMULA)


def test_narrow_bands_are_the_hard_rule():
    away = SECRETS[SECRETS != THRESHOLD]
    hard = input_perturbation.moments(away, THRESHOLD, 0.7)
    soft = input_perturbation.moments(away, THRESHOLD, 0.7, width=1e-9)
    for one, other in zip(hard, soft, strict=True):
        assert one == pytest.approx(other, abs=1e-9)
    beta = math.exp(-0.7 * 2.5) / 2
    assert hard[0][-2] == pytest.approx(1 - beta, rel=1e-15)
    assert input_perturbation.moments([THRESHOLD], THRESHOLD, 0.7)[0][0] == 0.5


@SETTINGS
def test_bias_and_mse_agree_with_simulation(epsilon, width):
    errors = simulated(SECRETS, epsilon, width, 200_000, seed=5)
    for found, sample in [
        (input_perturbation.bias(SECRETS, THRESHOLD, epsilon, width=width), errors),
        (input_perturbation.mse(SECRETS, THRESHOLD, epsilon, width=width), errors**2),
    ]:
        assert abs(found - sample.mean()) < SIGMAS * sample.std() / math.sqrt(len(sample))


@SETTINGS
def test_a_count_is_n_means_and_the_bias_stays(epsilon, width):
    n, given = len(SECRETS), {"width": width}
    bias, mse = (f(SECRETS, THRESHOLD, epsilon, **given) for f in (input_perturbation.bias, input_perturbation.mse))
    assert input_perturbation.bias(SECRETS, THRESHOLD, epsilon, aggregate="count", **given) == pytest.approx(n * bias)
    assert input_perturbation.mse(SECRETS, THRESHOLD, epsilon, aggregate="count", **given) == pytest.approx(n * n * mse)
    crowd = np.repeat(SECRETS, 1000)
    assert input_perturbation.bias(crowd, THRESHOLD, epsilon, **given) == pytest.approx(bias, rel=1e-9)
    assert input_perturbation.mse(crowd, THRESHOLD, epsilon, **given) - bias**2 == pytest.approx(
        (mse - bias**2) / 1000, rel=1e-6
    )


@pytest.mark.parametrize(("epsilon", "bandwidth"), [(0.5, 1.0), (2.0, 1.3), (0.01, 30.0), (4.0, 5.0)])
def test_the_kernel_at_its_centre(epsilon, bandwidth):
    k = epsilon * bandwidth
    found = float(input_perturbation.kernel_after_noise(0.0, epsilon, bandwidth))
    by_quadrature = quad(lambda r: epsilon**2 * r * math.exp(-epsilon * r - (r / bandwidth) ** 2 / 2), 0, math.inf)[0]
    assert found == pytest.approx(by_quadrature, rel=QUADRATURE)
    plain = k**2 - k**3 * math.sqrt(math.pi / 2) * math.exp(k**2 / 2) * erfc(k / math.sqrt(2))
    assert found == pytest.approx(plain, rel=QUADRATURE)
    radius = np.random.default_rng(6).gamma(2.0, 1 / epsilon, 200_000)
    kernel = np.exp(-((radius / bandwidth) ** 2) / 2)
    assert abs(found - kernel.mean()) < SIGMAS * kernel.std() / math.sqrt(len(kernel))
    assert 0 < found < 1


@pytest.mark.parametrize(("epsilon", "bandwidth"), [(0.5, 1.0), (2.0, 1.3), (0.01, 30.0), (4.0, 5.0), (3000.0, 2.0)])
def test_the_kernel_of_a_noisy_distance(epsilon, bandwidth):
    distance = np.array([0.0, 0.3, 1.0, 4.0]) * bandwidth
    found = input_perturbation.kernel_of_noisy_distance(distance, epsilon, bandwidth)

    def integrand(w, l, sign):
        return math.exp(-w - ((l + sign * w / epsilon) / bandwidth) ** 2 / 2) / 2

    for l, value in zip(distance, found, strict=True):
        halves = [quad(integrand, 0, 60, args=(l, sign), limit=200)[0] for sign in (1, -1)]
        assert value == pytest.approx(sum(halves), rel=1e-7)
    drawn = np.random.default_rng(8).laplace(scale=1 / epsilon, size=200_000)
    kernel = np.exp(-(((distance[2] + drawn) / bandwidth) ** 2) / 2)
    assert abs(found[2] - kernel.mean()) < SIGMAS * kernel.std() / math.sqrt(len(kernel))


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: input_perturbation.bias([], 1.0, 1.0), "x"),
        (lambda: input_perturbation.bias([math.nan], 1.0, 1.0), "x"),
        (lambda: input_perturbation.mse([1.0], math.inf, 1.0), "threshold"),
        (lambda: input_perturbation.mse([1.0], 1.0, 0.0), "epsilon"),
        (lambda: input_perturbation.mse([1.0], 1.0, 1.0, width=-1.0), "width"),
        (lambda: input_perturbation.mse([1.0], 1.0, 1.0, aggregate="sum"), "aggregate"),
        (lambda: input_perturbation.kernel_after_noise(0.0, 1.0, 0.0), "bandwidth"),
    ],
)
def test_refusals_name_the_field(make, field):
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.field == field

"""Input perturbation: moments against other formulas, quadrature and Monte Carlo."""

from __future__ import annotations

import math

import input_perturbation
import numpy as np
import pytest

from mechdesign.errors import InputError

SIGMAS = 5.0  # standard errors of a seeded Monte Carlo mean
FORMULA = 1e-11  # the same moment by integrals that cancel, at widths of the order of the noise
SECRETS = np.array([-3.0, 0.2, 0.9, 1.0, 1.3, 1.6, 2.0, 2.4, 4.0, 9.0])
THRESHOLD = 1.5
SETTINGS = pytest.mark.parametrize(("epsilon", "width"), [(0.7, 0.0), (0.7, 1.2), (3.0, 0.8), (0.2, 5.0)])


def ramp(a, x, epsilon):
    """E max(y - a, 0) and E max(y - a, 0)^2 for y = x + Lap(1 / epsilon)."""
    u = a - x
    fade = np.exp(-epsilon * np.abs(u)) / epsilon
    square = np.where(u >= 0, fade / epsilon, u**2 + 2 / epsilon**2 - fade / epsilon)
    return np.maximum(-u, 0) + fade / 2, square


def simulate_errors(x, epsilon, width, draws, seed):
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
    errors = simulate_errors(SECRETS, epsilon, width, 200_000, seed=5)
    for found, sample in [
        (input_perturbation.bias(SECRETS, THRESHOLD, epsilon, width=width), errors),
        (input_perturbation.mse(SECRETS, THRESHOLD, epsilon, width=width), errors**2),
    ]:
        assert abs(found - sample.mean()) < SIGMAS * sample.std() / math.sqrt(len(sample))


@SETTINGS
def test_the_bias_stays_as_users_grow(epsilon, width):
    given = {"width": width}
    bias, mse = (f(SECRETS, THRESHOLD, epsilon, **given) for f in (input_perturbation.bias, input_perturbation.mse))
    crowd = np.repeat(SECRETS, 1000)
    assert input_perturbation.bias(crowd, THRESHOLD, epsilon, **given) == pytest.approx(bias, rel=1e-9)
    assert input_perturbation.mse(crowd, THRESHOLD, epsilon, **given) - bias**2 == pytest.approx(
        (mse - bias**2) / 1000, rel=1e-6
    )


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: input_perturbation.bias([], 1.0, 1.0), "x"),
        (lambda: input_perturbation.bias([math.nan], 1.0, 1.0), "x"),
        (lambda: input_perturbation.mse([1.0], math.inf, 1.0), "threshold"),
        (lambda: input_perturbation.mse([1.0], 1.0, 0.0), "epsilon"),
        (lambda: input_perturbation.mse([1.0], 1.0, 1.0, width=-1.0), "width"),
    ],
)
def test_refusals_name_the_field(make, field):
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.field == field

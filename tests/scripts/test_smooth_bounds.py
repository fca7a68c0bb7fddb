"""scripts/smooth_bounds.py: bounds of any growth beside their program's optimum, level sets beside the least bound."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from smooth_bounds import MARGIN, SLACK, check_growth, least_bound, level_set_bound

from mechdesign import Domain
from mechdesign.errors import InputError

ROUNDED = 1e-12  # logarithms and exponentials within a few hundred nats
SOLVED = 1e-7  # of HiGHS
GROWTHS = {"exponential": lambda d: np.exp(d), "linear": lambda d: 1 + d}
GRIDS = [
    Domain.grid((12, 17), cell=1.0, unit="km"),
    Domain.grid((9, 14), cell=(1.0, 2.5), unit="km", origin=-3.0),
    Domain.grid((11, 12), cell=1.0, unit="km", mask=np.random.default_rng(0).random((11, 12)) < 0.7),
    Domain.grid((4, 5, 6), cell=1.0, unit="km"),
]


def random_field(rng, domain):
    """Noise, or steep noise with zeros."""
    if rng.integers(2):
        return rng.random(domain.size)
    return np.where(rng.random(domain.size) < 0.3, 0.0, np.exp(2 * rng.standard_normal(domain.size)))


@pytest.mark.parametrize("growth", GROWTHS)
def test_level_sets_are_a_bound_and_close_on_random_fields(growth):
    rng = np.random.default_rng(7)
    for trial in range(50):
        domain = GRIDS[trial % 4]
        distance = domain.euclidean_to(domain)
        gamma = float(np.exp(rng.uniform(-4, 1.5)))
        lipschitz = random_field(rng, domain)

        def growth_at(d, gamma=gamma):
            return GROWTHS[growth](gamma * d)

        expected = (lipschitz / growth_at(distance)).max(axis=1)
        found = level_set_bound(domain, lipschitz, growth_at)
        assert (expected <= found).all()
        assert ((1 + SLACK) * MARGIN**2 * expected >= found).all()
        assert (found[:, None] <= growth_at(distance) * found * (1 + ROUNDED)).all()


def test_smallest_bound_is_optimum_of_its_program():
    domain = Domain.grid((3, 4), cell=1.0, unit="km")
    distance = domain.euclidean_to(domain)
    lipschitz = np.random.default_rng(6).random(domain.size) ** 2
    for growth in (lambda d: (1 + 0.3 * d) * (1 + 0.5 * d), lambda d: (1 + d) ** 2):
        bound = cp.Variable(domain.size)
        first, second = np.nonzero(distance)
        smooth = bound[first] <= cp.multiply(growth(distance[first, second]), bound[second])
        cp.Problem(cp.Minimize(cp.sum(bound)), [bound >= lipschitz, smooth]).solve(solver="HIGHS")
        assert least_bound(lipschitz, distance, growth) == pytest.approx(bound.value, rel=SOLVED)


@pytest.mark.parametrize(
    "growth",
    [
        lambda d: 2 + d,
        lambda d: np.exp(d**2),
        lambda d: 1 + d**2 / 100,
        lambda d: 1 / (1 + d),
        lambda d: 1 + 0.1 * np.sin(d),
        lambda d: np.where(d > 3, np.inf, 1.0),
        lambda d: 1.0,
    ],
)
def test_invalid_growth_functions_are_refused(growth):
    with pytest.raises(InputError) as caught:
        check_growth(growth, 16.0)
    assert caught.value.field == "growth"

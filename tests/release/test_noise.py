"""Noise laws of smooth sensitivity: distributions, privacy levels by two routes, the loss over all pairs."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from fixtures.rows import few_by_default
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from mechdesign.errors import InputError, UnsuitableError
from mechdesign.release import laws

IDENTITY = 1e-12  # incomplete beta functions and elementary ones in double precision
QUADRATURE = 1e-9  # the tolerance of the adaptive rules of SciPy
SUPREMUM = 1e-7  # a supremum searched on a grid and refined; quadratic in the error of the place
QUANTILE = 3e-14  # a logarithm of the odds of up to 70 is rounded, and its rounding multiplied
PRINTED = 2e-5  # figures with five digits
REACHED = 0.99  # share of the level that the worst pair of a small distance must attain
SIMPSON = 1e-11  # the error of the rule is p^4 share^4 / 2880, under 1e-13 here; the rest is rounding
LOGARITHMS = 1e-9  # relative; logarithms of densities, subtracted, at distances down to 1e-3 nats

LAWS = [laws.GeneralizedCauchy(p) for p in (1.2, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 6.0, 8.0)]
LAWS += [laws.StudentT(nu) for nu in (0.4, 1.0, 1.7, 2.0, 3.0, 5.0, 12.0)]
SYMMETRIC = [*LAWS, laws.Laplace()]
EACH = pytest.mark.parametrize("law", LAWS)
EVERY = pytest.mark.parametrize("law", SYMMETRIC)
PLACES = np.array([1e-9, 1e-4, 0.03, 0.4, 0.999, 1.0, 1.7, 4.0, 29.0])


def slope(law, z):
    """h = -(ln q)' for z >= 0."""
    if isinstance(law, laws.StudentT):
        return (law.nu + 1) * z / (law.nu + z * z)
    return law.p * z ** (law.p - 1) / (1 + z**law.p)


def largest(law, gamma, eta):
    """sup_z [gamma |z h - 1| + eta |h|] by search: the definition of the joint form."""

    def rate(log):
        z = np.exp(log)
        return gamma * abs(z * slope(law, z) - 1) + eta * slope(law, z)

    logs = np.linspace(-16, 16, 3201)
    k = int(np.argmax(rate(logs)))
    near = minimize_scalar(
        lambda log: -rate(log), bounds=(logs[max(k - 1, 0)], logs[min(k + 1, 3200)]), method="bounded"
    )
    return max(-near.fun, float(rate(logs).max()), gamma)


def atan_form(p, a):
    """P(Z <= a) of the generalized Cauchy laws whose density has an elementary integral, a >= 0."""
    if p == 2:
        return 0.5 + np.arctan(a) / np.pi
    if p == 4:
        r = math.sqrt(2) * a
        logs = np.log((a * a + r + 1) / (a * a - r + 1))
        return 0.5 + (logs + 2 * np.arctan(r + 1) + 2 * np.arctan(r - 1)) / (4 * np.pi)
    r = math.sqrt(3) * a
    logs = math.sqrt(3) * np.log((a * a + r + 1) / (a * a - r + 1))
    angles = 2 * np.arctan(2 * a + math.sqrt(3)) + 2 * np.arctan(2 * a - math.sqrt(3)) + 4 * np.arctan(a)
    return 0.5 + (logs + angles) / (8 * np.pi)


@pytest.mark.parametrize("p", [2, 4, 6])
def test_cauchy_cdf_is_the_elementary_one(p):
    law = laws.GeneralizedCauchy(p)
    assert law.cdf(PLACES) == pytest.approx(atan_form(p, PLACES), abs=IDENTITY)
    assert law.cdf(-PLACES) == pytest.approx(1 - atan_form(p, PLACES), abs=IDENTITY)


@pytest.mark.parametrize("p", [1.2, 2.5, 4.0, 8.0])
def test_cauchy_tails_are_their_series(p):
    """1 / (1 + z^p) = z^-p - z^-2p + ..., integrated term by term: all digits of small probabilities."""
    law, a = laws.GeneralizedCauchy(p), np.array([10.0, 1e3, 1e7])
    power = p * np.arange(1, 40)[:, None] - 1
    series = p * math.sin(math.pi / p) / (2 * math.pi) * ((-1.0) ** np.arange(39)[:, None] * a**-power / power).sum(0)
    assert law.cdf(-a) == pytest.approx(series, rel=IDENTITY, abs=0)
    assert law.mass(a, np.inf) == pytest.approx(series, rel=IDENTITY, abs=0)


@pytest.mark.parametrize("nu", [0.4, 1.0, 3.0, 12.0])
def test_student_is_that_of_scipy(nu):
    law, other = laws.StudentT(nu), stats.t(nu)
    z = np.concatenate([-np.array([1e4, 300.0]), -PLACES[1:], PLACES[1:]])  # SciPy rounds 1e-9 to the centre
    assert law.cdf(z) == pytest.approx(other.cdf(z), rel=IDENTITY, abs=0)
    assert law.pdf(z) == pytest.approx(other.pdf(z), rel=IDENTITY, abs=0)


@EVERY
def test_the_cdf_is_the_integral_of_the_density(law):
    for z in (0.05, 0.8, 3.0, 40.0):
        inside = quad(law.pdf, 0, z, epsabs=1e-13, epsrel=1e-11, limit=200, points=[min(1.0, z)])[0]
        assert float(law.cdf(z)) == pytest.approx(0.5 + inside, abs=QUADRATURE)
        assert float(law.mass(-z, 0.3 * z)) == pytest.approx(
            inside + quad(law.pdf, 0, 0.3 * z, epsabs=1e-13, limit=200)[0], rel=QUADRATURE
        )


@EVERY
def test_quantiles_invert_the_cdf(law):
    """Against the cdf, the mirrored quantile, and the density integrated by SciPy up to the quantile."""
    shares = np.array([1e-30, 1e-9, 0.02, 0.3, 0.5 - 2.0**-20, 0.5])
    places = law.ppf(shares)
    assert law.cdf(places) == pytest.approx(shares, rel=QUANTILE, abs=0)
    assert law.ppf(1 - shares[2:]) == pytest.approx(-places[2:], rel=QUANTILE, abs=0)
    assert list(law.ppf([0.0, 1.0])) == [-np.inf, np.inf]

    for share in (0.02, 0.3):
        top = math.log(-law.ppf(share))
        inner = quad(lambda t: float(law.pdf(math.exp(t))) * math.exp(t), -40, top, epsrel=1e-11, limit=400)[0]
        assert inner == pytest.approx(0.5 - share, abs=QUADRATURE)


@pytest.mark.parametrize("probability", [-1e-9, 1.5, math.nan])
def test_quantiles_refuse_invalid_probabilities(probability):
    with pytest.raises(InputError, match="between 0 and 1") as caught:
        laws.GeneralizedCauchy(4.0).ppf([0.5, probability])
    assert caught.value.field == "probability"


@pytest.mark.parametrize("law", [*SYMMETRIC, laws.GeneralizedCauchy(40.0)])
def test_masses_of_cells_keep_their_digits(law):
    """Narrow cells are the density times the width (Simpson), split ones their sum, mirrored ones the same."""
    a = np.array([1e-3, 0.2, 0.9, 3.0, 1e3, 1e5] if not isinstance(law, laws.Laplace) else [1e-3, 0.2, 0.9, 3.0, 30.0])
    for share in (1e-9, 1e-6, 1e-4):
        b = a * (1 + share)
        simpson = (law.pdf(a) + 4 * law.pdf((a + b) / 2) + law.pdf(b)) / 6 * (b - a)
        assert law.mass(a, b) == pytest.approx(simpson, rel=SIMPSON, abs=0)
    for ratio in (1.01, 1.4, 1.7, 3.0, 50.0):
        b, half = a * ratio, a * (1 + ratio) / 2
        whole = law.mass(a, b)
        assert law.mass(a, half) + law.mass(half, b) == pytest.approx(whole, rel=IDENTITY, abs=0)
        assert law.mass(-b, -a) == pytest.approx(whole, rel=1e-15, abs=0)
    ends = np.concatenate([[-np.inf], np.linspace(-7, 11, 61), [np.inf]])
    assert law.mass(ends[:-1], ends[1:]).sum() == pytest.approx(1, abs=IDENTITY)


@pytest.mark.parametrize("law", few_by_default(SYMMETRIC, *SYMMETRIC[::4]))
def test_variance_is_the_second_moment_or_infinite(law):
    tails = {laws.GeneralizedCauchy: lambda: law.p - 1, laws.StudentT: lambda: law.nu}.get(
        type(law), lambda: math.inf
    )()
    if tails <= 2:
        assert law.variance == math.inf
        return
    by_parts = 4 * quad(lambda t: math.exp(2 * t) * float(law.mass(math.exp(t), np.inf)), -30, 60, limit=400)[0]
    assert law.variance == pytest.approx(by_parts, rel=1e-6 if tails < 3 else QUADRATURE)


@EACH
def test_the_joint_level_is_the_supremum(law):
    for gamma, eta in [(1e-6, 1.0), (0.1, 0.3), (1.0, 1.0), (2.0, 0.5), (3.0, 0.01), (0.02, 9.0)]:
        found = law.epsilon(gamma, eta)
        assert found == pytest.approx(largest(law, gamma, eta), rel=SUPREMUM)
        assert found <= law.epsilon(gamma, eta, tight=False) * (1 + IDENTITY)


@EACH
def test_the_separate_level_adds_two_suprema(law):
    for gamma, eta in [(0.1, 0.3), (2.0, 0.5)]:
        apart = gamma * largest(law, 1.0, 0.0) + eta * largest(law, 0.0, 1.0)
        assert law.epsilon(gamma, eta, tight=False) == pytest.approx(apart, rel=1e-5)
    assert law.epsilon(0.0, 0.7) == pytest.approx(law.epsilon(0.0, 0.7, tight=False), rel=IDENTITY, abs=0)


@EACH
@pytest.mark.parametrize("tight", [True, False])
def test_eta_inverts_epsilon(law, tight):
    for gamma, eta in [(0.0, 0.4), (0.1, 0.3), (2.0, 0.5)]:
        level = law.epsilon(gamma, eta, tight)
        assert law.eta(level, gamma, tight) == pytest.approx(eta, rel=1e-9)


def test_published_figures():
    """Noise relative to S / eps at the splits of Liang & Yi 2024, and levels at gamma = eta = 1."""
    student, cauchy = laws.StudentT(3), laws.GeneralizedCauchy(4)
    sd = {tight: math.sqrt(3) / student.eta(1, 1 / 9, tight) for tight in (True, False)}
    assert sd[False] == pytest.approx(3, rel=IDENTITY, abs=0)
    assert sd[True] == pytest.approx(2.3238, rel=PRINTED)
    assert (sd[False] / sd[True]) ** 2 == pytest.approx(5 / 3, rel=1e-12)
    assert 1 / cauchy.eta(1, 1 / 15) == pytest.approx(2.6517, rel=PRINTED)
    assert 1 / cauchy.eta(1, 1 / 15, tight=False) == pytest.approx(2.8494, rel=PRINTED)
    for law, paper, joint in [
        (cauchy, 5.2795, 4.6813),
        (laws.GeneralizedCauchy(6), 8.8236, 8.2073),
        (student, 4.1547, 3.3094),
        (laws.StudentT(5), 6.3416, 5.2863),
    ]:
        assert law.epsilon(1, 1, tight=False) == pytest.approx(paper, rel=PRINTED)
        assert law.epsilon(1, 1) == pytest.approx(joint, rel=PRINTED)


def worst_loss(law, eta, shift, log_ratio):
    """max over y of |ln density at (f, B) = (0, 1) - ln density at (shift, e^log_ratio)|, noise at B / eta."""
    width = math.exp(log_ratio)
    z = np.concatenate([-np.logspace(6, -4, 2000), [0.0], np.logspace(-4, 6, 2000)])
    y = np.concatenate([z / eta, shift + z * width / eta])
    return np.abs(np.log(law.pdf(y * eta)) - np.log(law.pdf((y - shift) * eta / width)) + log_ratio).max()


def test_privacy_loss_reaches_but_keeps_the_level():
    """60 settings: at small distances the worst corner reaches 99 % of eps d, and no pair at any distance exceeds."""
    rng = np.random.default_rng(3)
    for k in range(60):
        law = LAWS[k % len(LAWS)]
        gamma, eta = np.exp(rng.uniform(-3, 1, 2))
        level = law.epsilon(gamma, eta)
        short = 1e-3 / level
        turns = gamma * short, -gamma * short
        corner = max(worst_loss(law, eta, short * min(1, math.exp(turn)), turn) for turn in turns)
        assert corner >= REACHED * level * short
        assert corner <= level * short * (1 + LOGARITHMS)
        d = np.exp(rng.uniform(-4, 2)) / level
        turn = gamma * d * rng.choice([-1.0, 1.0, rng.uniform(-1, 1)])
        shift = d * min(1, math.exp(turn)) * rng.choice([-1.0, 1.0, rng.uniform(-1, 1)])
        assert worst_loss(law, eta, shift, turn) <= level * d * (1 + LOGARITHMS)


def exact_delta(level, shift, ratio, eta):
    """The integral of max(0, p - e^level q) for Laplace p at 0 of scale 1 / eta, q at `shift` of scale ratio / eta."""
    here, there = 1 / eta, ratio / eta

    def excess(y):
        return math.log(ratio) - abs(y) / here + abs(y - shift) / there - level

    kinks = sorted([0.0, shift])
    ends = [-math.inf, *kinks, math.inf]
    cuts = set(kinks)
    for low, high in pairwise(ends):
        a = high - 1 if math.isinf(low) else low
        b = a + 1 if math.isinf(high) or math.isinf(low) else high
        if b > a and excess(a) != excess(b):
            root = a - excess(a) * (b - a) / (excess(b) - excess(a))
            cuts |= {root} if low < root < high else set()
    ordered = [-math.inf, *sorted(cuts), math.inf]

    def below(y, centre, scale):
        half = math.exp(-abs(y - centre) / scale) / 2
        return half if y < centre else 1 - half

    total = 0.0
    for low, high in pairwise(ordered):
        middle = high - 1 if math.isinf(low) else low + 1 if math.isinf(high) else (low + high) / 2
        if excess(middle) > 0:
            total += below(high, 0, here) - below(low, 0, here)
            total -= math.exp(level) * (below(high, shift, there) - below(low, shift, there))
    return total


def test_laplace_keeps_its_delta_with_linear_growth():
    rng = np.random.default_rng(4)
    used = []
    for _ in range(300):
        gamma, eta, d = np.exp(rng.uniform(-3, 1, 3))
        delta = 10 ** rng.uniform(-6, -0.1)
        level = laws.laplace_epsilon(gamma, eta, delta)
        assert laws.laplace_eta(level, gamma, delta) == pytest.approx(eta, rel=1e-9)
        for ratio in (1 + gamma * d, 1 / (1 + gamma * d), 1.0):
            for shift in (d * min(1, ratio), 0.0, -d * min(1, ratio)):
                used.append(exact_delta(level * d, shift, ratio, eta) / delta)
    assert max(used) <= 1
    assert max(used) > 0.05  # the bound is not empty


def test_laplace_level_is_that_of_the_lemma():
    assert laws.laplace_epsilon(0.36, 0.67, 5.3e-4) == pytest.approx(0.67 + 0.36 * 7.5426, rel=1e-5)
    assert laws.laplace_epsilon(0.5, 0.25, 0.9) == 0.75  # ln(1 / 0.9) is under 1


def test_laplace_breaks_its_delta_with_exponential_growth():
    gamma, eta, d, delta = 0.36, 0.67, 4.0, 5.3e-4
    level, ratio = laws.laplace_epsilon(gamma, eta, delta), math.exp(-gamma * d)
    worst = max(exact_delta(level * d, sign * d * ratio, ratio, eta) for sign in (1, -1))
    assert worst == pytest.approx(1.0e-2, rel=0.05)
    assert worst > 18 * delta
    for asked in (laws.laplace_epsilon, laws.laplace_eta):
        with pytest.raises(UnsuitableError, match="linear growth"):
            asked(5.0, gamma, delta, growth="exponential")


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: laws.GeneralizedCauchy(1.0), "p"),
        (lambda: laws.StudentT(0.0), "nu"),
        (lambda: laws.StudentT(math.nan), "nu"),
        (lambda: laws.StudentT(3).epsilon(-0.1, 1), "gamma"),
        (lambda: laws.StudentT(3).epsilon(0.1, 0.0), "eta"),
        (lambda: laws.StudentT(3).eta(1, 1 / 3), "gamma"),
        (lambda: laws.GeneralizedCauchy(4).eta(1, 0.34), "gamma"),
        (lambda: laws.GeneralizedCauchy(1.5).eta(1, 1.0), "gamma"),
        (lambda: laws.StudentT(3).eta(0.0, 0.1), "epsilon"),
        (lambda: laws.laplace_epsilon(0.1, 1, 0.0), "delta"),
        (lambda: laws.laplace_epsilon(0.1, 1, 1.0), "delta"),
        (lambda: laws.laplace_epsilon(0.1, 1, 0.1, growth="cubic"), "growth"),
        (lambda: laws.laplace_eta(1.0, 0.5, 1e-6), "gamma"),
    ],
)
def test_refusals_name_the_field(make, field):
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.field == field

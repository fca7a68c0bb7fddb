"""The privacy level in plain words: one report changes odds between places r apart by at most a factor e^l.

    l = eps r                          for mechanisms private for eps |x - x'|, any prior and any attacker        (1)
    disc share = 1 - (1 + x) e^{-x}    for x = eps R, if people live evenly on the whole plane                    (2)

Two places within r of a person may be 2 r apart, with l = 2 eps r. For k independent reports the factor is e^{k l}.
(2) bounds the probability that one report leaves in one disc of radius R. Planar Laplace noise attains it. On a map
with coasts and towns it can be more.
Source: Andrés et al. 2013, section 3 (l-privacy within r).
"""

from __future__ import annotations

import math

from mechdesign.base.validation import check_epsilon, check_positive, validate_call
from mechdesign.errors import InputError


@validate_call
def epsilon_within(radius: float, nats: float) -> float:
    """The level eps = nats / radius: odds between places up to `radius` apart change by a factor of at most e^nats.

    Parameters
    ----------
    radius, nats : float
        In units; within the radius.

    Returns
    -------
    float, nats per unit

    Examples
    --------
    >>> md.utility.epsilon_within(200.0, 0.5)
    0.0025
    """
    return check_epsilon(check_positive(nats, "nats") / check_positive(radius, "radius"))


@validate_call
def nats_within(radius: float, epsilon: float) -> float:
    """The nats eps * radius: odds between places up to `radius` apart change by a factor of at most e^nats.

    Parameters
    ----------
    radius, epsilon : float
        In units; nats per unit.

    Returns
    -------
    float

    Examples
    --------
    >>> md.utility.nats_within(200.0, 0.0025)
    0.5
    """
    return check_epsilon(epsilon) * check_positive(radius, "radius")


def odds_factor(nats: float) -> float:
    """e^l, the largest factor by which a report changes odds; inf from l = 709 on."""
    return math.exp(level) if (level := check_positive(nats, "nats")) < 709 else math.inf


def nats_of_factor(factor: float) -> float:
    """L = ln(factor) in nats."""
    if not 1 < float(factor) < math.inf:
        raise InputError("must be above 1 and finite: 1 admits constant reports only", field="factor", value=factor)
    return math.log(factor)


def level_of_odds(
    *, within: float | None, factor: float | None = None, epsilon: float | None = None
) -> tuple[float, dict[str, float]]:
    """Epsilon in nats per unit, from a factor and its radius or from epsilon; and the parameters of the design."""
    if (factor is None) == (epsilon is None):
        forms = "none" if factor is None else "`factor`, `epsilon`"
        message = "one form of the level is needed; pass within=200 factor=2, or epsilon=E"
        raise InputError(message, field="factor", value=forms)
    if factor is None:
        assert epsilon is not None
        return check_positive(epsilon, "epsilon"), {"epsilon": epsilon}
    radius, nats = one_radius(within), nats_of_factor(factor)
    return epsilon_within(radius, nats), {"within": radius, "nats": nats}


def one_radius(within: float | None) -> float:
    """Check that the radius is a positive length."""
    if within is None:
        message = "one distance is needed, within which odds change by the factor at most; pass within=200 factor=2"
        raise InputError(message, field="within")
    return check_positive(within, "within")


def disc_share(nats: float) -> float:
    """1 - (1 + x) e^-x for x = `nats` over the radius: the largest probability of one disc on an even plane.

    >>> round(disc_share(nats_of_disc_share(0.2)), 12)
    0.2
    """
    # (2): averaging a report's column over rotations about the disc's centre keeps the metric and the masses inside and
    # outside. By (1) the mean is at most g(R) e^{eps (R - r)} inside, and at least g(R) e^{-eps (r - R)} outside, with
    # equality for g = e^{-eps r}.
    x = check_positive(nats, "nats", infinite=True)
    return -math.expm1(-x) - (x * math.exp(-x) if x < math.inf else 0.0)


def nats_of_disc_share(share: float) -> float:
    """The x at which `disc_share` is `share`."""
    from scipy.optimize import brentq

    if not 0 < share < 1:
        raise InputError("must lie in (0, 1)", field="share", value=share)
    # The share rises from 0 to 1, so doubling brackets the root.
    high = 2.0
    while disc_share(high) < share:
        high *= 2
    return float(brentq(lambda x: disc_share(x) - share, 1e-12, high, xtol=1e-15, rtol=1e-14))

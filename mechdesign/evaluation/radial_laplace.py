r"""The Laplace law in k dimensions: report = location + noise, density proportional to e^{-eps |noise|}."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainc, gammaincinv

from mechdesign.base.arrays import Floats, Points
from mechdesign.base.validation import check_epsilon, check_finite, check_whole, refuse_entries
from mechdesign.errors import InputError


def radius_cdf(r: ArrayLike, epsilon: float, dimension: int = 2) -> Floats:
    """P(R <= r), shape of r; r >= 0 in units, inf allowed; epsilon in nats per unit."""
    radius = np.asarray(r, float)
    refuse_entries(~(radius >= 0), radius, "must not be negative", field="r")
    return gammainc(check_whole(dimension, "dimension"), check_epsilon(epsilon) * radius)


def radius_ppf(p: ArrayLike, epsilon: float, dimension: int = 2) -> Floats:
    """The r with P(R <= r) = p, in units, shape of p: 0 at 0, inf at 1; in the plane sqrt(2 p) / eps for tiny p."""
    # The inverse of (1). Andrés et al. 2013 write -(W(-1, (p - 1) / e) + 1) / eps; branch -1 of Lambert's W is
    # the one with r >= 0. In doubles (p - 1) / e loses every digit of a p below 1e-16; this inverse does not.
    return gammaincinv(check_whole(dimension, "dimension"), check_shares(p, "p")) / check_epsilon(epsilon)


def mean_radius(epsilon: float, dimension: int = 2) -> float:
    """E R = k / eps, in units."""
    return check_whole(dimension, "dimension") / check_epsilon(epsilon)


#     R = |noise| ~ Gamma(k, 1 / eps)      P(R <= r) = P(k, eps r), the regularised incomplete gamma function     (1)
#     k = 2: P(R <= r) = 1 - (1 + eps r) e^{-eps r}      E R = k / eps      E R^2 = k (k + 1) / eps^2             (2)
# The direction is uniform and independent of R. Reports with this noise satisfy the claim eps |u - u'| of `Euclidean`.
# Source: Andrés et al. 2013, section 4.1; k dimensions by integrating the density over spheres.
def sample(location: ArrayLike, epsilon: float, rng: np.random.Generator, size: int) -> Points:
    """`size` simulated reports (size, k) for one location (k,), in the unit of epsilon's inverse."""
    # The last digits of these doubles depend on the location, and no certificate covers them. For release use a table
    # (`md.baselines.planar_laplace` with `Sampler`), or round to a grid at the level of `finite_precision_epsilon`.
    place, count = check_finite(location, "location"), check_whole(size, "size", minimum=0)
    if place.ndim != 1 or not len(place):
        raise InputError("must be one place, a (k,) array", field="location", value=place.shape)
    level, dimension = check_epsilon(epsilon), len(place)
    radius = rng.gamma(dimension, 1 / level, count)
    # A standard normal vector has a uniform direction in any dimension.
    direction = rng.standard_normal((count, dimension))
    return place + direction * (radius / np.linalg.norm(direction, axis=1))[:, None]


def check_radius(r: float, field: str) -> float:
    """The radius, checked to be finite and not negative."""
    if not 0 <= float(r) < np.inf:
        raise InputError("must be finite and not negative", field=field, value=r)
    return float(r)


def check_shares(p: ArrayLike, field: str) -> Floats:
    """Probabilities of any shape, checked to lie in [0, 1]."""
    share = np.asarray(p, float)
    if not ((share >= 0) & (share <= 1)).all():
        raise InputError("must be from 0 to 1", field=field, value=np.ravel(share)[:3])
    return share

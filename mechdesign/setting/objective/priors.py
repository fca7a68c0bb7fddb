"""Prior: the probability of each secret, for which expected losses are computed. Privacy does not depend on it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.arguments import asked
from mechdesign.errors import InputError
from mechdesign.setting.space.domain import Domain
from mechdesign.setting.space.raster import Raster

SINGLE_TOLERANCE = 64 * 2.0**-24  # entries rounded to single precision, and a sum of them in blocks of 128
SUM_TOLERANCE = 1e-9  # a prior further than this from sum 1 is refused, never silently normalised


@asked
def uniform(domain: Domain) -> NDArray[np.float64]:
    """1/n at each of the n places."""
    return np.full(domain.size, 1.0 / domain.size)


@asked
def proportional(weights: ArrayLike, *, field: str = "prior") -> NDArray[np.float64]:
    """Weights divided by their sum.

    Raises: InputError for negative or non-finite weights, and where all are zero.
    """
    values = np.asarray(weights, float)
    _check_weights(values, field)
    return values / values.sum()


@asked
def from_density(density: Raster, domain: Domain, *, extend: bool = False) -> NDArray[np.float64]:
    """Proportional to the density at the places of the domain, as pi(u) ~ d(u) in paper 000 (section IV).

    extend: beyond the raster the density goes on as at its border. Nodes in another unit of length are converted.
    Raises: InputError for places outside the raster, without `extend`; UnitError where its unit is no length and not
        that of the domain.
    """
    held = density.in_unit(domain.unit)
    if not extend:
        held.require_cover(domain.points)
    return proportional(held.at(domain.points), field="density")


def check_prior(prior: ArrayLike, size: int) -> NDArray[np.float64]:
    """A prior over `size` places, if it is one.

    One of single precision is divided by its sum in double precision, where that is 1 to its rounding.
    Raises: InputError for a wrong shape, negative, non-finite or all-zero entries, and a sum not 1 within 1e-9.
    """
    single = np.asarray(prior).dtype == np.float32
    values = np.asarray(prior, float)
    if values.shape != (size,):
        raise InputError(
            f"must have shape ({size},)", field="prior", value=values.shape, remedy="one probability per unmasked place"
        )
    _check_weights(values, "prior")
    total = float(values.sum())
    if single and abs(total - 1) <= SINGLE_TOLERANCE:
        return values / total
    if abs(total - 1) > SUM_TOLERANCE:
        raise InputError(
            "must sum to 1", field="prior", value=f"sum {total:.12g}", remedy="use priors.proportional to normalise"
        )
    return values


def _check_weights(values: NDArray[np.float64], field: str) -> None:
    if not np.isfinite(values).all():
        raise InputError(
            "must be finite", field=field, value="nan or inf", remedy="give a finite weight to every place"
        )
    if (values < 0).any():
        raise InputError("must not be negative", field=field, value=f"{values.min():.6g}", remedy="give weights >= 0")
    if not values.any():
        raise InputError("is zero everywhere", field=field, value="sum 0", remedy="give some place a positive weight")

"""Priors: the probability of each secret, for which losses are expected. Privacy does not depend on them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Vector
from mechdesign.base.validation import as_numbers, check_not_negative, refuse_entries, validate_call
from mechdesign.errors import InputError
from mechdesign.problem.domain import Domain

SUM_TOLERANCE = 1e-9  # a prior further than this from sum 1 is refused, never silently normalised
_SINGLE_TOLERANCE = 64 * 2.0**-24  # entries rounded to single precision, and a sum of them in blocks of 128


@validate_call
def uniform(domain: Domain) -> Vector:
    """1/n at each of the n places.

    Parameters
    ----------
    domain : Domain
        The places.

    Returns
    -------
    (n,) array

    Examples
    --------
    >>> md.priors.uniform(md.Domain.nodes(4))
    array([0.25, 0.25, 0.25, 0.25])
    """
    return np.full(domain.size, 1.0 / domain.size)


@validate_call
def proportional(weights: ArrayLike, *, field: str = "prior") -> Vector:
    """Weights divided by their sum.

    Parameters
    ----------
    weights, field : (n,) array, str
        Not negative, not all 0; their name in errors.

    Returns
    -------
    (n,) array, of sum 1

    Examples
    --------
    >>> md.priors.proportional([1.0, 3.0])
    array([0.25, 0.75])
    """
    values = as_numbers(weights, field, ascending=True)
    _check_weights(values, field)
    return values / values.sum()


def _check_weights(values: Vector, field: str) -> None:
    check_not_negative(values, field)
    if not values.any():
        raise InputError("is zero everywhere", field=field, value="sum 0")


def check_prior(prior: ArrayLike, places: int | Domain) -> Vector:
    """A checked prior (n,), of a grid also in its shape; single precision is divided by its sum in doubles."""
    values = as_numbers(prior, "prior", places.points if isinstance(places, Domain) else None)
    single = np.asarray(prior).dtype == np.float32
    if isinstance(places, Domain):
        values = _of_places(values, places)
    elif values.shape != (places,):
        raise InputError(f"must have shape ({places},)", field="prior", value=values.shape)
    _check_weights(values, "prior")
    total = float(values.sum())
    # Entries of single precision sum to 1 only to their own rounding.
    if single and abs(total - 1) <= _SINGLE_TOLERANCE:
        return values / total
    if abs(total - 1) > SUM_TOLERANCE:
        raise InputError(
            "must sum to 1", field="prior", value=f"sum {total:.12g}", remedy="use priors.proportional to normalise"
        )
    return values


def _of_places(values: Vector, domain: Domain) -> Vector:
    if values.shape == (domain.size,):
        return values
    if domain.index is None or domain.shape is None or values.shape != domain.shape:
        grid = f" or {domain.shape}" if domain.shape is not None and domain.shape != (domain.size,) else ""
        turned = domain.shape is not None and values.shape == domain.shape[::-1]
        remedy = "transpose it: x is the first axis" if turned else None
        raise InputError(f"must have shape ({domain.size},){grid}", field="prior", value=values.shape, remedy=remedy)
    outside = (domain.lookup < 0) & (values != 0)
    refuse_entries(outside, values, "must be 0 in cells that the mask leaves out", field="prior")
    return values[tuple(domain.index.T)]

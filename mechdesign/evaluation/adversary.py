"""The error of an adversary who knows the prior and the mechanism: the expected error of the best estimate.

    error = sum over y of  min over x of  sum over u of prior(u) P(y|u) l(u, x)

The estimate x of a report y is any point: the posterior mean for the squared distance, the geometric median for the
distance. So error <= `remapped_loss` <= the expected loss under the same loss, and post-processing never lowers the
error. It holds under this prior alone: an adversary who knows more errs less.

Weiszfeld's iteration with the step of Vardi and Zhang at places finds the median, starting from the best place. Its
error is an upper bound of the least one. The lower bound follows from convexity: f(x) - f(x*) <= |g| max_u |x - u| for
the least subgradient g at x, since x* lies between the places.
Source: Andrés et al. 2013, section 3 (the side information is a prior); Vardi and Zhang 2000 (the iteration).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.memory import require_memory
from mechdesign.base.records import FrozenRecord
from mechdesign.base.validation import validate_call
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.evaluation.loss import drawn_rows
from mechdesign.mechanism.sampler import rows_of
from mechdesign.mechanism.schema import stored_points
from mechdesign.problem.losses import LENGTH, LOSSES, SQUARE
from mechdesign.problem.priors import check_prior

Array = NDArray[np.float64]


_ITERATIONS = 300
_SETTLED = 1e-12  # of the largest distance: a move that ends the iteration


@dataclass(frozen=True, kw_only=True, eq=False)
class AdversaryError(FrozenRecord):
    """The error of an adversary's best estimates, and its proved lower bound.

    Attributes
    ----------
    value : float
        Expected error of `estimates`, in units (squared units for "squared").
    lower_bound : float
        No estimate errs less, up to rounding.
    estimates : (m, k) array
        The estimate at each report.
    chance : (m,) array
        P(y) under the prior.

    Examples
    --------
    >>> error = md.utility.adversary_error(md.baselines.exponential(md.load_problem("line", cells=4)))
    >>> error.lower_bound <= error.value
    True
    """

    value: float
    lower_bound: float
    estimates: Array
    chance: Array


@validate_call
def adversary_error(mechanism: xr.Dataset, loss: str = "distance", *, prior: ArrayLike | None = None) -> AdversaryError:
    """The least expected error of an adversary who knows the prior and the mechanism.

    Cost: O(n m) for "squared"; for "distance" O(n^2 m) and at most 300 passes of O(n m). About twelve tables must fit.

    Parameters
    ----------
    mechanism : xarray.Dataset
        A table or a factored mechanism whose secrets have coordinates.
    loss : {"distance", "squared"}
        The adversary's error.
    prior : (n,) array
        By default the one of the mechanism.

    Returns
    -------
    AdversaryError
        The error, its lower bound and the estimates.

    Examples
    --------
    >>> mechanism = md.baselines.constant(md.load_problem("line", cells=4))
    >>> round(md.utility.adversary_error(mechanism, "squared").value, 6)
    1.25
    """
    known = {name: one.code for name, one in LOSSES.items() if one.code in (SQUARE, LENGTH)}
    if loss not in known:
        raise InputError("unknown loss", field="loss", value=loss, remedy="use " + " or ".join(known))
    if '"nodes"' in mechanism.attrs["domain"]:
        raise UnsuitableError("nodes of a graph have no place", field="mechanism")
    points, rows = stored_points(mechanism, "secret"), rows_of(mechanism)
    require_memory(rows.secrets, rows.reports, tables=12, what="the estimates of an adversary")
    belief = check_prior(mechanism["prior"].values if prior is None else prior, len(points))
    joint = belief[:, None] * drawn_rows(mechanism)
    chance = joint.sum(axis=0)
    posterior = np.where(chance > 0, joint, belief[:, None]) / np.where(chance > 0, chance, 1.0)
    if known[loss] == SQUARE:
        return _mean_error(points, posterior, chance)
    return _median_error(points, posterior, chance)


def _mean_error(points: Array, posterior: Array, chance: Array) -> AdversaryError:
    estimates = posterior.T @ points
    square = ((points[:, None, :] - estimates[None, :, :]) ** 2).sum(axis=2)
    value = float((posterior * square).sum(axis=0) @ chance)
    return AdversaryError(value=value, lower_bound=value, estimates=estimates, chance=chance)


def _median_error(points: Array, posterior: Array, chance: Array) -> AdversaryError:
    """Weiszfeld's iteration from the best place of every report; returns the best point of all steps."""
    between = np.sqrt(((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2))
    at = points[(between @ posterior).argmin(axis=0)]
    scale = float(between.max())
    best, least, bound = at, np.full(len(at), np.inf), np.zeros(len(at))
    for _ in range(_ITERATIONS):
        error, slope, following, farthest = _weiszfeld(points, posterior, at)
        better = error < least
        best, least = np.where(better[:, None], at, best), np.where(better, error, least)
        # Convexity: no point is better than here by more than the slope times the distance to the farthest place.
        bound = np.maximum(bound, error - slope * farthest)
        moved = np.abs(following - at).max()
        at = following
        if moved <= _SETTLED * scale:
            break
    return AdversaryError(value=float(least @ chance), lower_bound=float(bound @ chance), estimates=best, chance=chance)


def _weiszfeld(points: Array, posterior: Array, at: Array) -> tuple[Array, Array, Array, Array]:
    """Error, length of the least subgradient, next estimate and largest distance to a place, at estimates (m, k)."""
    offset = points[:, None, :] - at[None, :, :]
    distance = np.sqrt((offset**2).sum(axis=2))
    there = distance == 0
    weight = np.where(there, 0.0, posterior / np.where(there, 1.0, distance))
    pull = (weight[:, :, None] * offset).sum(axis=0)
    force, own = np.sqrt((pull**2).sum(axis=1)), np.where(there, posterior, 0.0).sum(axis=0)
    # Vardi and Zhang: at a place its own probability pulls back, and the estimate stays if the others pull less.
    slope = np.maximum(force - own, 0.0)
    share = slope / np.where(force > 0, force, 1.0)
    total = weight.sum(axis=0)
    following = at + share[:, None] * pull / np.where(total > 0, total, 1.0)[:, None]
    return (posterior * distance).sum(axis=0), slope, following, distance.max(axis=0)

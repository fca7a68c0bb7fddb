"""The error of an adversary who knows the prior and the mechanism: the expected error of the best estimate.

    error = sum over y of  min over x of  sum over u of prior(u) P(y|u) l(u, x)                      (1)
    f(x) - f(x*) <= |g| max over u of |x - u|                                                        (2)

The estimate x of a report y is any point: the posterior mean for the squared distance, the geometric median for the
distance. So error <= `remapped_loss` <= the expected loss under the same loss, and post-processing never lowers the
error. It holds under this prior alone: an adversary who knows more has a smaller error.
Source: Andrés et al. 2013, section 3 (the side information is a prior); Vardi and Zhang 2000 (the iteration).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Matrix, Points, Vector
from mechdesign.base.memory import require_memory
from mechdesign.base.records import FrozenRecord
from mechdesign.base.validation import validate_call
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.evaluation.loss import drawn_rows
from mechdesign.mechanism.sampler import rows_of
from mechdesign.mechanism.schema import stored_points
from mechdesign.problem.losses import LENGTH, LOSSES, SQUARE
from mechdesign.problem.priors import check_prior

# Both are guesses. An early end only widens the gap: the error of any step is an upper bound, and (2) a lower one.
_MAX_STEPS = 300
_LAST_STEP = 1e-12  # of the largest distance: a shorter step ends the iteration


@dataclass(frozen=True, kw_only=True, eq=False)
class AdversaryError(FrozenRecord):
    """The error of an adversary's best estimates, and its proved lower bound.

    Attributes
    ----------
    value : float
        Expected error of `estimates`, in units (squared units for "squared").
    lower_bound : float
        No estimates have a smaller error, up to rounding.
    estimates, chance : (m, k) array, (m,) array
        The estimate at each report; P(y) under the prior.

    Examples
    --------
    >>> error = md.utility.adversary_error(md.baselines.exponential(md.load_problem("line", cells=4)))
    >>> error.lower_bound <= error.value
    True
    """

    value: float
    lower_bound: float
    estimates: Points
    chance: Vector


@validate_call
def adversary_error(mechanism: xr.Dataset, loss: str = "distance", *, prior: ArrayLike | None = None) -> AdversaryError:
    """The minimum expected error of an adversary who knows the prior and the mechanism.

    Cost: O(n m) for "squared"; for "distance" O(n^2 m) and at most 300 passes of O(n m). Memory: about twelve tables.

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

    Examples
    --------
    >>> mechanism = md.baselines.constant(md.load_problem("line", cells=4))
    >>> round(md.utility.adversary_error(mechanism, "squared").value, 6)
    1.25
    """
    codes = {name: known.code for name, known in LOSSES.items() if known.code in (SQUARE, LENGTH)}
    if loss not in codes:
        raise InputError("unknown loss", field="loss", value=loss, remedy="use " + " or ".join(codes))
    if '"nodes"' in mechanism.attrs["domain"]:
        raise UnsuitableError("nodes of a graph have no coordinates", field="mechanism")
    points, rows = stored_points(mechanism, "secret"), rows_of(mechanism)
    require_memory(rows.secrets, rows.reports, tables=12, noun="the estimates of an adversary")
    belief = check_prior(mechanism["prior"].values if prior is None else prior, len(points))
    joint = belief[:, None] * drawn_rows(mechanism)
    chance = joint.sum(axis=0)
    # A report of probability 0 has no posterior. The prior replaces it, and its error has weight 0.
    posterior = np.where(chance > 0, joint, belief[:, None]) / np.where(chance > 0, chance, 1.0)
    if codes[loss] == SQUARE:
        return _mean_error(points, posterior, chance)
    return _median_error(points, posterior, chance)


def _mean_error(points: Points, posterior: Matrix, chance: Vector) -> AdversaryError:
    # The posterior mean minimises the mean square, so the error is its own lower bound.
    estimates = posterior.T @ points
    square = ((points[:, None, :] - estimates[None, :, :]) ** 2).sum(axis=2)
    value = float((posterior * square).sum(axis=0) @ chance)
    return AdversaryError(value=value, lower_bound=value, estimates=estimates, chance=chance)


def _median_error(points: Points, posterior: Matrix, chance: Vector) -> AdversaryError:
    """Weiszfeld's iteration from the best place of every report; returns the best point of all steps."""
    between = np.sqrt(((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2))
    estimates = points[(between @ posterior).argmin(axis=0)]
    scale = float(between.max())
    # The objective need not fall at every step in floating point, so the best point of all steps is remembered.
    best, best_error, bound = estimates, np.full(len(estimates), np.inf), np.zeros(len(estimates))
    for _ in range(_MAX_STEPS):
        error, slope, next_estimates, farthest = _weiszfeld(points, posterior, estimates)
        is_better = error < best_error
        best, best_error = np.where(is_better[:, None], estimates, best), np.where(is_better, error, best_error)
        # (2): f is convex, and its minimum lies between the places, at most `farthest` away.
        bound = np.maximum(bound, error - slope * farthest)
        step = np.abs(next_estimates - estimates).max()
        estimates = next_estimates
        if step <= _LAST_STEP * scale:
            break
    value, lower_bound = float(best_error @ chance), float(bound @ chance)
    return AdversaryError(value=value, lower_bound=lower_bound, estimates=best, chance=chance)


def _weiszfeld(points: Points, posterior: Matrix, estimates: Points) -> tuple[Vector, Vector, Points, Vector]:
    """Error, length of the smallest subgradient, next estimate and largest distance to a place, at (m, k) estimates."""
    offset = points[:, None, :] - estimates[None, :, :]
    distance = np.sqrt((offset**2).sum(axis=2))
    # The iteration divides by distances. A place under the estimate leaves the sums, and enters as `resistance`.
    is_under = distance == 0
    weight = np.where(is_under, 0.0, posterior / np.where(is_under, 1.0, distance))
    pull = (weight[:, :, None] * offset).sum(axis=0)
    force, resistance = np.sqrt((pull**2).sum(axis=1)), np.where(is_under, posterior, 0.0).sum(axis=0)
    # Vardi and Zhang: at a place its own probability pulls back, and the estimate stays if the others pull less.
    slope = np.maximum(force - resistance, 0.0)
    fraction = slope / np.where(force > 0, force, 1.0)
    total = weight.sum(axis=0)
    next_estimates = estimates + fraction[:, None] * pull / np.where(total > 0, total, 1.0)[:, None]
    return (posterior * distance).sum(axis=0), slope, next_estimates, distance.max(axis=0)

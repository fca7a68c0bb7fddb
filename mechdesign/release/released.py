r"""Releases of a number f(x) on an output grid: the design problem, noise at the scale of a smooth bound, the error.

Reports are output values with the squared error as loss: the optimal program bounds any private release on the grid.

    (1)  y = f(x) + (B(x) / eta) Z,    Z generalized Cauchy or Student

is moved to the nearest output, as post-processing. The table is certified at the smallest multiple of the metric that
holds for its integers. `noise_table` with `laws.Laplace` and one scale makes the baselines of Liang & Yi 2024.

    (2)  one user   E[(y - f(u))^2] = E[Var(y | u)] + E[b(u)^2],   b(u) = E[y | u] - f(u)
    (3)  n users    E[(mean y - mean f)^2] = E[(y - f(u))^2] / n + (1 - 1/n) (E b)^2

with users drawn independently from the population: for large n the mean bias E b remains. In the optimal program
(programs/optimal.py) E b = 0 under its prior on fine outputs, but under no other.
Source: Liang & Yi 2024, sections 3.2, 4.1 and 5; the grid is ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Matrix, Vector
from mechdesign.base.memory import require_memory
from mechdesign.base.validation import check_finite, check_whole, refuse_entries, validate_call
from mechdesign.closed_forms.build import closed_form_mechanism, level_or_default
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.mechanism.views import probabilities
from mechdesign.problem.domain import Domain
from mechdesign.problem.losses import TableLoss
from mechdesign.problem.metric import Metric
from mechdesign.problem.priors import check_prior
from mechdesign.problem.problem import DesignProblem
from mechdesign.release.laws import NoiseLaw, SmoothLaw

_ROUNDING = 1e-9  # relative; smooth bounds are computed in floating point, often by a root search


@validate_call
def release_problem(
    *, domain: Domain, metric: Metric, prior: ArrayLike, values: ArrayLike, outputs: ArrayLike, unit: str = "1"
) -> DesignProblem:
    """The design problem with secrets `domain`, reports `outputs` and loss (f(x) - y)^2.

    Reports are values on one axis, not places of the domain.

    Parameters
    ----------
    domain, metric, prior : Domain, Metric, (n,) array
        The n secrets, the claim, and probabilities.
    values, outputs : (n,) and ascending (m,) arrays
        f at the secrets, and the reports, in `unit`.
    unit : str
        Any name, such as USD; the loss is in its square.

    Returns
    -------
    DesignProblem

    Examples
    --------
    >>> secrets = {"domain": md.Domain.grid((2,), 1.0), "metric": md.Euclidean(1.0), "prior": [0.5, 0.5]}
    >>> md.release.release_problem(**secrets, values=[0.0, 1.0], outputs=[0.0, 0.5, 1.0]).loss_matrix
    array([[0.  , 0.25, 1.  ],
           [1.  , 0.25, 0.  ]])
    """
    true, reports = check_values(values, domain.size), check_outputs(outputs)
    require_memory(domain.size, len(reports), tables=4, noun="the table of losses")
    return DesignProblem(
        domain=domain,
        metric=metric,
        prior=prior,
        loss=TableLoss(values=(true[:, None] - reports) ** 2),
        reports=Domain.points_at(reports, unit=unit),
        name="release",
    )


def check_values(values: ArrayLike, size: int, field: str = "values") -> Vector:
    """Finite numbers (size,), one per secret, or an InputError."""
    numbers = np.asarray(values, float)
    if numbers.shape != (size,):
        raise InputError(f"must have shape ({size},)", field=field, value=numbers.shape)
    return check_finite(numbers, field)


def check_outputs(outputs: ArrayLike) -> Vector:
    """Finite strictly ascending numbers (m,), m at least 2, or an InputError."""
    numbers = np.asarray(outputs, float)
    if numbers.ndim != 1 or len(numbers) < 2 or not np.isfinite(numbers).all() or not (np.diff(numbers) > 0).all():
        raise InputError("must be at least two finite ascending numbers", field="outputs", value=numbers.shape)
    return numbers


@validate_call
def release_mechanism(
    problem: DesignProblem,
    values: ArrayLike,
    sensitivity: ArrayLike,
    *,
    law: SmoothLaw,
    gamma: float,
    epsilon: float | None = None,
    tight: bool = True,
) -> xr.Dataset:
    """The smooth sensitivity release of a number, certified at the smallest scale of the metric that holds.

    Parameters
    ----------
    problem : DesignProblem
        Made by `release_problem`.
    values, sensitivity : (n,) arrays
        f at the secrets, in the unit of the outputs; a gamma-smooth bound of its pointwise Lipschitz constants, in that
        unit per unit of length.
    law, gamma : SmoothLaw, float
        The noise; gamma per unit of length.
    epsilon : float
        Per unit of length; by default the smallest level of the metric.
    tight : bool
        True for the joint constants, else those of the paper.

    Returns
    -------
    xarray.Dataset, in O(n^2 + n m) time

    Examples
    --------
    >>> secrets = {"domain": md.Domain.grid((2,), 1.0), "metric": md.Euclidean(4.0), "prior": [0.5, 0.5]}
    >>> problem = md.release.release_problem(**secrets, values=[0.0, 1.0], outputs=[0.0, 1.0])
    >>> law = md.release.laws.StudentT(3.0)
    >>> mechanism = md.release.release_mechanism(problem, [0.0, 1.0], [1.0, 1.0], law=law, gamma=0.5)
    >>> md.verify(mechanism).certified
    True
    """
    if problem.reports.dimension != 1:
        raise UnsuitableError("must be output values: make the problem with release_problem", field="reports")
    level = level_or_default(problem, epsilon)
    eta = law.eta(level, gamma, tight)
    true = check_values(values, problem.domain.size)
    bound = check_bound(problem.domain, true, sensitivity, gamma)
    parameters: dict[str, Any] = {"law": repr(law), "gamma": float(gamma), "eta": eta, "tight": tight}
    # (1). The table becomes integers unrepaired, so that its level does not depend on floating-point masses.
    probabilities = noise_table(true, bound / eta, problem.reports.points[:, 0], law=law)
    return closed_form_mechanism(
        problem, probabilities, name="smooth_release", claimed_epsilon=level, parameters=parameters
    )


def noise_table(values: ArrayLike, scale: ArrayLike, outputs: ArrayLike, *, law: NoiseLaw) -> Matrix:
    """Probabilities (n, m) of the outputs nearest to values + scale Z, each to twelve digits however small."""
    reports = check_outputs(outputs)
    centre = check_values(values, np.size(values))
    spread = check_values(scale, len(centre), "scale")
    refuse_entries(~(spread > 0), spread, "must be positive", field="scale")
    require_memory(len(centre), len(reports), tables=16, noun="a release")
    # The nearest output: borders are half-way, and the end cells take everything beyond.
    ends = np.concatenate([[-np.inf], (reports[1:] + reports[:-1]) / 2, [np.inf]])
    borders = (ends - centre[:, None]) / spread[:, None]
    return law.mass(borders[:, :-1], borders[:, 1:])


def check_bound(domain: Domain, values: Vector, bound: ArrayLike, gamma: float) -> Vector:
    """A gamma-smooth bound (n,) of the slopes of `values` (n,) between secrets, or an InputError."""
    smooth = check_values(bound, domain.size, "sensitivity")
    least = f"{smooth.min():.6g}"
    refuse_entries(~(smooth > 0), smooth, "must be positive: a constant f needs no noise", field="sensitivity")
    # Both conditions of the theorem (laws.py, (1)), on the secrets: |f(u) - f(v)| <= B(u) d, and B is gamma-smooth.
    distance = domain.euclidean_to(domain)
    if (np.abs(values[:, None] - values) > smooth[:, None] * distance * (1 + _ROUNDING)).any():
        message = "is below a slope |f(u) - f(v)| / |u - v| between two secrets"
        raise InputError(message, field="sensitivity", value=least)
    if (np.log(smooth)[:, None] - np.log(smooth) > gamma * distance + _ROUNDING).any():
        message = f"grows faster than e^(gamma d) with gamma = {gamma:.6g}"
        raise InputError(message, field="sensitivity", value=f"{least} to {smooth.max():.6g}")
    return smooth


@validate_call
def error_of_mean(
    mechanism: xr.Dataset, values: ArrayLike, users: int = 1, *, population: ArrayLike | None = None
) -> float:
    """The expected squared error of the mean of some users' reports.

    Parameters
    ----------
    mechanism, values : xarray.Dataset, (n,) array
        A release of numbers; f at the secrets, in the unit of the outputs.
    users : int
        The number of users.
    population : (n,) array
        The distribution of the users' secrets; by default the prior of the mechanism.

    Returns
    -------
    float, in squared units of the outputs

    Examples
    --------
    >>> secrets = {"domain": md.Domain.grid((2,), 1.0), "metric": md.Euclidean(1.0), "prior": [0.5, 0.5]}
    >>> problem = md.release.release_problem(**secrets, values=[0.0, 1.0], outputs=[0.0, 1.0])
    >>> round(md.release.error_of_mean(md.baselines.constant(problem), [0.0, 1.0]), 6)
    0.5
    """
    check_whole(users, "users")
    if "report_y" in mechanism.coords or "report_x" not in mechanism.coords:
        raise UnsuitableError("are not output values", field="reports")
    table = probabilities(mechanism).values
    offset = mechanism["report_x"].values - check_values(values, len(table))[:, None]
    weights = check_prior(mechanism["prior"].values if population is None else population, len(table))
    square, bias = float(weights @ (table * offset**2).sum(axis=1)), float(weights @ (table * offset).sum(axis=1))
    # (3), from the two moments of the error of one user.
    return square / users + (1 - 1 / users) * bias**2

r"""Releases of a number f(x) on an output grid: noise on f at the scale of a smooth bound, and the baselines of paper
002.

    smooth sensitivity   y = f(x) + (B(x) / eta) Z, Z generalized Cauchy or Student      `mechanism`, `table`
    global Lipschitz     y = f(x) + (K / eps) Lap(1)                                     `lipschitz_table`
    local privacy        y = f(x) + (range / eps_L) Lap(1), eps_L in nats                `local_table`
    input perturbation       y = f(x + noise), noise Laplace or planar Laplace               `input_perturbation_table`

y is moved to the nearest output (end cells take everything beyond), so that the probability of an output is the mass of
its cell. This is post-processing: the guarantee of the continuous mechanism carries over. A table becomes integers
unrepaired and is certified at the smallest multiple of the metric that holds, so its level does not rest on this
argument, nor on the floating-point masses. Live reports are drawn from it with whole numbers
(mechanism/sampling/sampler.py).
Source: paper 002, sections 3.2, 4.1 and 5; the grid is ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from mechdesign.base.arguments import asked
from mechdesign.base.checks import check_epsilon
from mechdesign.base.memory import require_memory
from mechdesign.closed_forms.mechanisms import planar_laplace
from mechdesign.closed_forms.mechanisms.build import closed_form_mechanism, level_or_default
from mechdesign.closed_forms.noise.laws import Laplace, NoiseLaw, SmoothLaw
from mechdesign.closed_forms.noise.noise_law import Array
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.setting.metric.euclidean import Euclidean
from mechdesign.setting.objective import priors
from mechdesign.setting.objective.losses import SquaredDistance
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.setting.problems.release import check_outputs, check_values
from mechdesign.setting.space.domain import Domain

_ROUNDING = 1e-9  # relative; smooth bounds are computed in floating point, often by a root search


@asked
def mechanism(
    problem: DesignProblem,
    values: ArrayLike,
    sensitivity: ArrayLike,
    *,
    law: SmoothLaw,
    gamma: float,
    epsilon: float | None = None,
    tight: bool = True,
) -> xr.Dataset:
    """The smooth sensitivity release of a release problem (`release_problem`), certified at its true multiple.

    values (n,), f at the secrets, in the unit of the outputs; sensitivity (n,), a gamma-smooth bound of its pointwise
    Lipschitz constants, in that unit per unit of length; gamma and epsilon (default: the smallest level of the metric)
    per unit of length; tight: the joint constants, else those of the paper.
    Raises: InputError where the bound is below a slope |f(u) - f(v)| / |u - v| between two secrets or grows by more
        than e^{gamma |u - v|}, and for a gamma that leaves no budget; UnsuitableError where reports are no numbers.
    Cost: O(n^2 + n m).
    """
    if problem.reports.dimension != 1:
        raise UnsuitableError(
            "the reports are no output values",
            field="reports",
            value=f"{problem.reports.dimension} axes",
            remedy="use release_problem",
        )
    level = level_or_default(problem, epsilon)
    eta = law.eta(level, gamma, tight)
    true = check_values(values, problem.domain.size)
    bound = check_bound(problem.domain, true, sensitivity, gamma)
    kept: dict[str, Any] = {"law": repr(law), "gamma": float(gamma), "eta": eta, "tight": tight}
    probabilities = table(true, bound / eta, problem.reports.points[:, 0], law=law)
    return closed_form_mechanism(problem, probabilities, name="smooth_release", claimed_epsilon=level, parameters=kept)


def table(values: ArrayLike, scale: ArrayLike, outputs: ArrayLike, *, law: NoiseLaw) -> Array:
    """Probabilities (n, m) of the outputs nearest to values + scale Z; values and scale (n,), outputs (m,) ascending.

    All in the unit of f. Every probability keeps twelve digits, however small. Raises: InputError; SizeError.
    """
    given = check_outputs(outputs)
    centre = check_values(values, np.size(values))
    spread = check_values(scale, len(centre), "scale")
    if not (spread > 0).all():
        raise InputError("must be positive", field="scale", value=f"{spread.min():.6g}", remedy="give a scale > 0")
    require_memory(len(centre), len(given), tables=16, what="a release")
    ends = np.concatenate([[-np.inf], (given[1:] + given[:-1]) / 2, [np.inf]])
    at = (ends - centre[:, None]) / spread[:, None]
    return law.mass(at[:, :-1], at[:, 1:])


def check_bound(domain: Domain, values: Array, bound: ArrayLike, gamma: float) -> Array:
    """A gamma-smooth bound (n,) of the slopes of `values` (n,) between secrets, or an InputError."""
    given = check_values(bound, domain.size, "sensitivity")
    if not (given > 0).all():
        raise InputError(
            "must be positive", field="sensitivity", value=f"{given.min():.6g}", remedy="a constant f needs no noise"
        )
    distance = domain.euclidean_to(domain)
    if (np.abs(values[:, None] - values) > given[:, None] * distance * (1 + _ROUNDING)).any():
        raise InputError(
            "is below a slope between two secrets",
            field="sensitivity",
            value=f"{given.min():.6g}",
            remedy="give a bound of |f(u) - f(v)| / |u - v|",
        )
    if (np.log(given)[:, None] - np.log(given) > gamma * distance + _ROUNDING).any():
        raise InputError(
            f"grows faster than e^(gamma d) with gamma = {gamma:.6g}",
            field="sensitivity",
            value=f"{given.min():.6g} to {given.max():.6g}",
            remedy="give the smooth sensitivity for this gamma",
        )
    return given


def lipschitz_table(values: ArrayLike, outputs: ArrayLike, *, constant: float, epsilon: float) -> Array:
    """Laplace noise of scale constant / epsilon, (n, m): epsilon-private for a global Lipschitz constant.

    constant in the unit of f per unit of length, epsilon in nats per unit of length.
    Source: paper 002, Lemma 2.3 and Corollary 3.1.
    """
    return _constant_scale(values, outputs, check_epsilon(constant, "constant") / check_epsilon(epsilon))


def local_table(values: ArrayLike, outputs: ArrayLike, *, span: float, epsilon: float) -> Array:
    """Laplace noise of scale span / epsilon, (n, m): locally private at `epsilon` nats for values in a range of `span`.

    In a metric of level eps it is private where epsilon |f(u) - f(v)| <= span eps |u - v|.
    Source: paper 002, section 5.
    """
    return _constant_scale(values, outputs, check_epsilon(span, "span") / check_epsilon(epsilon))


def input_perturbation_table(domain: Domain, values: ArrayLike, outputs: ArrayLike, *, epsilon: float) -> Array:
    """The Laplace mechanism on the cells of a square grid of one or two axes, then f of the cell, (n, m).

    epsilon in nats per unit of length. Raises: InputError off square grids of one or two axes. Source: paper 002,
    section 4.1.1; the cells are those of closed_forms/mechanisms/planar_laplace.py.
    """
    true = check_values(values, domain.size)
    uniform = priors.uniform(domain)
    places = DesignProblem(
        domain=domain, metric=Euclidean(epsilon=epsilon, unit=domain.unit), prior=uniform, loss=SquaredDistance()
    )
    reported = planar_laplace.clamped_table(places, epsilon)
    released = np.zeros((domain.size, len(check_outputs(outputs))))
    np.add.at(released.T, nearest_output(true, outputs), reported.T)
    return released


def nearest_output(values: ArrayLike, outputs: ArrayLike) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The number of the output nearest to every value, the lower one of two; outputs (m,) ascending."""
    given = check_outputs(outputs)
    return np.searchsorted((given[1:] + given[:-1]) / 2, np.asarray(values, float)).astype(np.int64)


def _constant_scale(values: ArrayLike, outputs: ArrayLike, scale: float) -> Array:
    return table(values, np.full(np.size(values), scale), outputs, law=Laplace())

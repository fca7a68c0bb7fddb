"""The planar Laplace mechanism of machines with finite precision.

A machine draws a multiple of d_theta as angle and a multiple of d_r as radius, with the probability of the sector
[r, r + d_r) x [theta, theta + d_theta). It reports the nearest point of a grid of pitch u.

Theorem 4.1 (Andrés et al. 2013). Let q = u / (r_max d_theta), and d_r < r_max d_theta. The machine, run at eps', is
private for eps |x - x'| between all grid points x, x' at most r_max from the report, where

    eps = eps' + (1 / u) ln((q + 2 e^{eps' u}) / (q - 2 e^{eps' u}))                                      (1)
    some eps' > 0 reaches eps  if and only if  q > 2 / tanh(eps u / 2)                                    (2)

Theorem 4.2 (Andrés et al. 2013). Reports moved to the nearest point of a set of diameter r_max keep eps between its
points. Both are theorems about an idealised machine, not certificates: the table of `truncated` has one.
"""

from __future__ import annotations

import math

import xarray as xr
from scipy.spatial.distance import cdist

from mechdesign.base.validation import check_epsilon, check_positive
from mechdesign.closed_forms.build import closed_form_mechanism, level_or_default
from mechdesign.closed_forms.lattice_noise import lattice_problem
from mechdesign.closed_forms.planar_laplace import laplace_clamped
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.problem.domain import Domain
from mechdesign.problem.problem import DesignProblem

_ROWS = 256  # places at a time whose distances to all others are in memory


def truncated(problem: DesignProblem, epsilon: float | None = None, *, angle_precision: float) -> xr.Dataset:
    """The planar Laplace table at the eps' with which a sampler of finite precision satisfies `epsilon`."""
    # By Theorem 4.2 a machine with angles of `angle_precision` radians that runs at eps' and reports the nearest cell
    # is private for `epsilon`. The table is certified in integers; reports drawn by `Sampler` need no theorem.
    level = level_or_default(problem, epsilon)
    shape, cell = lattice_problem(problem, "the truncated Laplace mechanism")
    if len(shape) != 2:
        raise UnsuitableError("angles need a grid of two axes", field="domain", value=f"{len(shape)} axis")
    # The pitch is a cell. Reports outside the domain move to its nearest cell: Theorem 4.2 with the diameter as r_max.
    r_max = diameter(problem.domain)
    running = finite_precision_epsilon(level, cell, angle_precision, r_max)
    parameters = {"running_epsilon": running, "angle_precision": angle_precision, "r_max": r_max}
    return closed_form_mechanism(
        problem,
        laplace_clamped(problem, running),
        name="planar_laplace_truncated",
        claimed_epsilon=level,
        parameters=parameters,
    )


def finite_precision_bound(running_epsilon: float, step: float, angle_precision: float, r_max: float) -> float:
    """(1): the eps, in nats per unit, that Theorem 4.1 guarantees of a machine that runs at eps'.

    Parameters as in `finite_precision_epsilon`; r_max is the largest distance between a grid point and the report.

    >>> from mechdesign.closed_forms.finite_precision import finite_precision_bound
    >>> round(finite_precision_bound(0.3, 1.0, angle_precision=0.001, r_max=10.0), 6)
    0.354007
    """
    level, q = check_epsilon(running_epsilon, "running_epsilon"), _quotient(step, angle_precision, r_max)
    bound = _bound(level, step, q)
    if math.isinf(bound):
        raise InputError(
            f"guarantees nothing: 2 e^(eps' u) must be below q = u / (r_max d_theta) = {q:.6g}",
            field="running_epsilon",
            value=level,
            remedy="use a smaller angle_precision, a smaller r_max or a smaller running_epsilon",
        )
    return bound


def finite_precision_epsilon(epsilon: float, step: float, angle_precision: float, r_max: float) -> float:
    """The largest eps', in nats per unit, with `finite_precision_bound` at most `epsilon`."""
    # step, the pitch u of the grid, and r_max in units; angle_precision in radians.
    level = check_epsilon(epsilon)
    q = _quotient(step, angle_precision, r_max)
    # (2), solved for d_theta, for the message.
    finest = step * math.tanh(level * step / 2) / (2 * r_max)
    # (1) rises with eps'. Bisection to neighbouring doubles keeps a bound of at most eps at `low`, so that no tolerance
    # enters. It takes some 1,100 steps at most, as many as a double has exponents and bits.
    low, high = 0.0, level
    while low < (middle := low + (high - low) / 2) < high:
        low, high = (middle, high) if _bound(middle, step, q) <= level else (low, middle)
    if low == 0:
        raise InputError(
            f"too coarse: no eps' > 0 reaches eps unless q = u / (r_max d_theta) = {q:.6g} is over 2 / tanh(eps u / 2)",
            field="angle_precision",
            value=angle_precision,
            remedy=f"use angles finer than {finest:.6g} radians, a smaller r_max or a coarser grid",
        )
    return low


def _quotient(step: float, angle_precision: float, r_max: float) -> float:
    """The q of Theorem 4.1."""
    return check_positive(step, "step") / (
        check_positive(r_max, "r_max") * check_positive(angle_precision, "angle_precision")
    )


def _bound(level: float, step: float, q: float) -> float:
    """(1), inf where 2 e^{eps' u} is q or more."""
    # (1) with x = 2 e^{eps' u} / q is eps' + (2 / u) artanh(x), which keeps the digits of a small x. It comes from the
    # logarithm of x, because e^{eps' u} alone overflows beyond 709 nats a cell.
    exponent = math.log(2 / q) + level * step
    return level + 2 / step * math.atanh(math.exp(exponent)) if exponent < 0 else math.inf


def diameter(domain: Domain) -> float:
    """The largest distance between two places of the domain, in units. Cost: O(n^2) time, O(n) memory."""
    points = domain.points
    blocks = (points[start : start + _ROWS] for start in range(0, len(points), _ROWS))
    return max(float(cdist(block, points).max()) for block in blocks)

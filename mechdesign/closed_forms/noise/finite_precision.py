r"""What a machine of finite precision does to the planar Laplace mechanism, and the smaller level that makes up for it.

The machine draws an angle that is a multiple of the angle precision d_theta, and a radius that is a multiple of the
radius precision d_r, with the probability that the law gives to the sector [r, r + d_r) x [theta, theta + d_theta), and
reports the nearest point of a grid of pitch u. What a grid point gathers then depends on where the true one is.

Theorem 4.1 (paper 004). Let q = u / (r_max d_theta), and d_r < r_max d_theta. The machine, run at eps', is private for
eps |x - x'| between all grid points x, x' at most r_max from the report, where

    eps = eps' + (1 / u) ln((q + 2 e^{eps' u}) / (q - 2 e^{eps' u})) = eps' + (2 / u) artanh(2 e^{eps' u} / q)

Some eps' > 0 reaches eps exactly where q > 2 / tanh(eps u / 2). The bound rises with eps', which bisection uses.
Theorem 4.2 (paper 004). Reports moved to the nearest point of a set of diameter r_max keep eps between its points.
Both are theorems about an idealised machine, and neither is a certificate: `planar_laplace.truncated` has one.
"""

from __future__ import annotations

import math

from mechdesign.base.checks import check_epsilon, positive
from mechdesign.errors import InputError


def finite_precision_bound(epsilon_prime: float, step: float, angle_precision: float, r_max: float) -> float:
    """The eps in nats per unit that the machine guarantees when it is run at `epsilon_prime`, within r_max.

    step, the pitch u of the grid, and r_max in units; angle_precision in radians.
    Raises: InputError for numbers that are not positive, and where 2 e^{eps' u} >= q: nothing is guaranteed there.
    """
    level = check_epsilon(epsilon_prime, "epsilon_prime")
    q = _quotient(step, angle_precision, r_max)
    bound = _bound(level, step, q)
    if bound == math.inf:
        raise InputError(
            f"guarantees nothing: 2 e^(eps' u) must stay below q = u / (r_max d_theta) = {q:.6g}",
            field="epsilon_prime",
            value=level,
            remedy="use a finer angle, a smaller r_max or a smaller eps'",
        )
    return bound


def finite_precision_epsilon(epsilon: float, step: float, angle_precision: float, r_max: float) -> float:
    """The eps' in nats per unit to run the machine at: the largest with `finite_precision_bound` at most `epsilon`.

    step, the pitch u of the grid, and r_max in units; angle_precision in radians.
    Raises: InputError for numbers that are not positive, and where no eps' > 0 reaches epsilon.
    Cost: bisection to neighbouring doubles, at most some 1,100 steps.
    """
    level = check_epsilon(epsilon)
    q = _quotient(step, angle_precision, r_max)
    finest = step * math.tanh(level * step / 2) / (2 * r_max)
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
    pitch, angle, far = positive(step, "step"), positive(angle_precision, "angle_precision"), positive(r_max, "r_max")
    return pitch / (far * angle)


def _bound(level: float, step: float, q: float) -> float:
    """The bound of Theorem 4.1, inf where 2 e^{eps' u} is q or more."""
    exponent = math.log(2 / q) + level * step
    return level + 2 / step * math.atanh(math.exp(exponent)) if exponent < 0 else math.inf

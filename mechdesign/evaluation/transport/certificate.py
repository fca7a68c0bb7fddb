r"""The certificate of a Kantorovich distance: bounds from any potentials and any plan.

p and q are distributions up to the rounding of their normalisation, s = p - q in floating point, D the diameter,
u = 2^-53 the unit roundoff.

    f(x) = min over targets y of v(y) + d(x, y), 1-Lipschitz in exact arithmetic                     (1)
    lower = sum f s - D (MASS + 2^-49 sum |s|) - slack                                               (2)
    upper = (sum plan d + D (MASS + residual + 2 u k sum |s|)) (1 + 2^-50)                           (3)

The residual is the sum over places of |s - marginals of the plan|; a place has at most k entries of the plan.
Source: weak duality of the two programs of `evaluation/transport/program.py`; Alvim et al. 2018, equations (1) and (3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mechdesign.base.arrays import Indices, Vector
from mechdesign.evaluation.transport.ground import Ground
from mechdesign.evaluation.transport.program import Excess

MASS = 2.0**-50  # error of masses from normalising p and q and subtracting them, of a total of 1
_NEGLIGIBLE = 2.0**-46  # of the moved mass: a smaller residual is added to (3) at the cost D, not moved


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """mass (e,) moves from places source (e,) to target (e,); zeros and repetitions are allowed."""

    source: Indices
    target: Indices
    mass: Vector


@dataclass(frozen=True, kw_only=True, eq=False)
class Certified:
    """lower <= distance <= upper, the cost of the plan (all in ground units), potentials f (n,) and the plan."""

    lower: float
    upper: float
    cost: float
    potentials: Vector
    plan: Plan

    @property
    def gap(self) -> float:
        """(upper - lower) / upper, 0 if both are 0."""
        return (self.upper - self.lower) / self.upper if self.upper > 0 else 0.0


def nothing_to_move(size: int) -> Certified:
    """The certificate of equal distributions over `size` places: 0 on both sides."""
    none = np.empty(0, np.int64)
    plan = Plan(source=none, target=none, mass=np.empty(0))
    return Certified(lower=0.0, upper=0.0, cost=0.0, potentials=np.zeros(size), plan=plan)


def certify(ground: Ground, moved: Excess, values: Vector, plan: Plan) -> Certified:
    """Bounds from values v (c,) at the targets and a plan between places, valid for any of them. Cost: O(n c)."""
    if len(moved.sources) and len(moved.targets):
        # (1) turns any finite values into a feasible function. Centred, they are at most D, and so is their rounding
        # relative to D.
        values = values if np.isfinite(values).all() else np.zeros(len(moved.targets))
        values = values - (values.max() + values.min()) / 2
        potentials = ground.extend(moved.targets, values)
        potentials -= (potentials.max() + potentials.min()) / 2
        plan = balance(plan, moved, ground.size)
    else:
        potentials, plan = np.zeros(ground.size), nothing_to_move(ground.size).plan
    # (2): a distance is computed within 4 u of itself, v + d within u (|v| + d). So f is within 16 u D of an exact
    # Lipschitz function, and products are within u: together 2^-49 D sum |s|. Normalising p and q and subtracting them
    # moves at most MASS, where |f| <= D. A table breaks the triangle inequality by at most `slack`, which a unit of
    # mass meets once. `fsum` adds without error.
    total = math.fsum(abs(moved.difference))
    lower = math.fsum(potentials * moved.difference) - ground.diameter * (MASS + 2.0**-49 * total) - ground.slack
    cost = math.fsum(plan.mass * ground.along(plan.source, plan.target))
    # (3): any plan is an upper bound, once the mass that it does not balance pays the diameter.
    residual = moved.difference - marginals(plan, ground.size)
    entries = max(np.bincount(plan.source, minlength=1).max(), np.bincount(plan.target, minlength=1).max())
    unbalanced = MASS + math.fsum(abs(residual)) + 2.0**-52 * int(entries) * total
    upper = (cost + ground.diameter * unbalanced) * (1 + 2.0**-50)
    return Certified(
        lower=max(lower, 0.0), upper=upper, cost=min(max(cost, lower, 0.0), upper), potentials=potentials, plan=plan
    )


def marginals(plan: Plan, size: int) -> Vector:
    """The outflow minus the inflow of the plan at each place, (n,)."""
    outflow, inflow = np.bincount(plan.source, plan.mass, size), np.bincount(plan.target, plan.mass, size)
    return np.asarray(outflow - inflow, float)


def balance(plan: Plan, moved: Excess, size: int) -> Plan:
    """The plan without negative, infinite or surplus mass, and with the residual moved in order of number."""
    supply, demand = np.maximum(moved.difference, 0.0), np.maximum(-moved.difference, 0.0)
    mass = np.where((plan.mass > 0) & (plan.mass < np.inf), plan.mass, 0.0)
    for place, allowed in ((plan.source, supply), (plan.target, demand)):
        load = np.bincount(place, mass, size)
        is_over = load > allowed
        # The entries of an overloaded place shrink in proportion.
        if is_over.any():
            mass = mass * np.where(is_over, allowed / np.where(is_over, load, 1.0), 1.0)[place]
    is_used = mass > 0
    source, target, mass = plan.source[is_used], plan.target[is_used], mass[is_used]
    supply = np.maximum(supply - np.bincount(source, mass, size), 0.0)
    demand = np.maximum(demand - np.bincount(target, mass, size), 0.0)
    if min(supply.sum(), demand.sum()) > _NEGLIGIBLE * moved.supply.sum():
        rows, columns, rest = in_order(supply, demand)
        source, target = np.concatenate([source, rows]), np.concatenate([target, columns])
        mass = np.concatenate([mass, rest])
    return Plan(source=source, target=target, mass=mass)


def in_order(supply: Vector, demand: Vector) -> tuple[Indices, Indices, Vector]:
    """Rows, columns and masses of the plan that serves demand (c,) from supply (r,) first come, first served."""
    # On a line with places in order it is optimal. If the sums differ, the surplus stays.
    # Both sides are intervals of [0, total] in order of place. Every piece between two ends has one row and one column.
    offered, demanded = np.cumsum(supply), np.cumsum(demand)
    end = min(offered[-1], demanded[-1])
    cuts = np.unique(np.concatenate([[0.0], offered[offered < end], demanded[demanded < end], [end]]))
    start, mass = cuts[:-1], np.diff(cuts)
    rows = np.searchsorted(offered, start, side="right")
    columns = np.searchsorted(demanded, start, side="right")
    return rows, columns, mass

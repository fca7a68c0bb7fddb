"""The bound of a coupled program from any multipliers; the statement is in programs/optimal/coupled.py."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.programs.optimal.coupled import SideRows
from mechdesign.solvers.kernels.pricing import ConePricer, Pricing, homogeneous_bound, lower_bound, sum_down

_ADMISSIBLE = 1 - 2.0**-45  # total share of the multipliers: rounding of sum, quotient and product stays below 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Bound:
    """A lower bound with the dual (n,) and the admissible multipliers (k,) that prove it, and its effective cost."""

    value: float
    dual: NDArray[np.float64]
    multipliers: NDArray[np.float64]
    folded: NDArray[np.float64]


def best_bound(
    pricer: ConePricer,
    cost: NDArray[np.float64],
    rows: SideRows,
    dual: NDArray[np.float64],
    multipliers: NDArray[np.float64],
    *,
    loss: float,
    known: float = 0.0,
    enough: float = math.inf,
    visit: Callable[[NDArray[np.float64], NDArray[np.float64], Pricing], None] | None = None,
) -> Bound:
    """The homogeneous bound for the effective cost that multipliers (k,), made admissible, give.

    Parameters: as `homogeneous_bound`; visit is called with the effective cost (n, m) before trial and pricing.
    """
    admissible = project_dual(multipliers, rows.share)
    folded = rows.fold_down(cost, admissible) if rows.size else cost
    found = homogeneous_bound(
        pricer,
        folded,
        dual,
        loss=loss,
        known=known,
        enough=enough,
        charge=charge_of(rows.limit, admissible),
        visit=None if visit is None else lambda trial, price: visit(folded, trial, price),
    )
    return Bound(value=found.value, dual=found.dual, multipliers=admissible, folded=folded)


def project_dual(multipliers: NDArray[np.float64], share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Multipliers (k,) made >= 0, and scaled until sum share mu is at most 1 exactly, and 1 up to rounding."""
    clipped = np.maximum(multipliers, 0.0)
    shared = clipped * share
    total = -sum_down(-shared) if shared.any() else 0.0
    return clipped if total == 0 else np.where(share > 0, clipped * (_ADMISSIBLE / total), clipped)


def charge_of(limit: NDArray[np.float64], multipliers: NDArray[np.float64]) -> NDArray[np.float64]:
    """The terms -mu h (k,) of the bound, rounded down."""
    return np.nextafter(-multipliers * limit, -np.inf)


def coupled_bound(
    pricer: ConePricer,
    folded: NDArray[np.float64],
    limit: NDArray[np.float64],
    dual: NDArray[np.float64],
    multipliers: NDArray[np.float64],
) -> float:
    """The bound sum lambda + sum_y min(0, price_y) - sum mu h for the effective cost `folded` (n, m), rounded down.

    dual lambda (n,), any numbers; multipliers mu (k,), as `project_dual` returns them; limit h (k,).
    """
    return lower_bound(np.r_[dual, charge_of(limit, multipliers)], pricer.price(folded, dual).value)

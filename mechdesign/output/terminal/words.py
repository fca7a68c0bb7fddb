"""The words that tables and sentences share: what a loss is the mean of, and in which unit."""

from __future__ import annotations

import numpy as np
import xarray as xr

from mechdesign.mechanism.stored import stored_domain
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.setting.space.domain import Domain

_SEEN, _LEAST = 5e-3, 1e-3  # probability from which a place is named, and from which it counts


def judged(problem: DesignProblem) -> str:
    """The loss of a problem with its unit."""
    unit = problem.loss.unit(problem.domain.unit)
    return f"{problem.loss.name} loss" + ("" if unit == "1" else f" in {unit}")


def worst_prior(mechanism: xr.Dataset) -> str:
    """A sentence on the prior under which no mechanism does better than the worst case of a minimax mechanism: its
    three likeliest places. It is made of the multipliers of the secrets' losses.
    """
    weight, domain = mechanism["multiplier"].values, stored_domain(mechanism)
    share = weight / weight.sum()
    places = [
        f"{share[u]:.0%} on {_place(domain, u)}" for u in np.argsort(-share, kind="stable")[:3] if share[u] >= _SEEN
    ]
    others = int((share >= _LEAST).sum()) - len(places)
    rest = f", and the rest on {others} more" if others > 0 else ""
    return f"The worst prior for it puts {', '.join(places)}{rest}"


def _place(domain: Domain, secret: int) -> str:
    if domain.kind == "nodes":
        return f"secret {secret}"
    words = ", ".join(f"{x:.4g}" for x in domain.points[secret])
    return (f"({words})" if domain.dimension > 1 else words) + ("" if domain.unit == "1" else f" {domain.unit}")

"""reports: how likely the true place is reported, and how far reports lie: the figures of captions."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.units import unit_word
from mechdesign.mechanism.sampling.sampler import drawn_rows
from mechdesign.mechanism.stored import read
from mechdesign.setting.space.domain import Domain

SHARE = 0.95  # of the reports that a radius holds


def radius_of(distance: NDArray[np.float64], probability: NDArray[np.float64], share: float = SHARE) -> float:
    """The least r among the distances with `share` of the probability within r. Arrays of one shape; any sum."""
    order = np.argsort(distance, axis=None, kind="stable")
    far, mass = distance.ravel()[order], np.cumsum(probability.ravel()[order])
    return float(far[np.searchsorted(mass, share * mass[-1] * (1 - 1e-12))])


def row_words(domain: Domain, u: int, row: NDArray[np.float64]) -> str:
    """Of P(.|u) (n,) over the places of the domain: how likely u is, and the radius that holds 95 % of the reports."""
    away = np.sqrt(((domain.points - domain.points[u]) ** 2).sum(axis=1))
    return f"true place {percent(row[u])}, {_held(radius_of(away, row), domain.unit)}"


def over_places(mechanism: xr.Dataset, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows (b, m) over the reports of a mechanism, which are secrets, as (b, n) over the secrets; 0 elsewhere."""
    stored = read(mechanism)
    found = np.zeros((len(rows), stored.domain.size))
    found[:, stored.report_cells] = rows
    return found


def table_sentence(mechanism: xr.Dataset, domain: Domain) -> str:
    """The same of a table over its own places, under the prior, with the range over the places; "" for factors."""
    if "mass" not in mechanism:
        return ""
    table = over_places(mechanism, drawn_rows(mechanism))
    prior = np.asarray(mechanism["prior"].values, float)
    true = np.diagonal(table)
    likely = prior > 0
    radius = radius_of(domain.euclidean_to(domain), table * prior[:, None])
    low, high = percent(true[likely].min()), percent(true[likely].max())
    ranged = "" if low == high else f" ({low} to {high})"
    said = f"the true place is reported with probability {percent(float(prior @ true))}{ranged}"
    return f"{said}; {_held(radius, domain.unit)} of it"


def percent(share: float) -> str:
    """A probability in per cent, three digits; what is above 99.9 % or under 0.001 %, and not certain, says so."""
    if 0.999 < share < 1:
        return "over 99.9 %"
    return "under 0.001 %" if 0 < share < 1e-5 else f"{100 * share:.3g} %"


def _held(radius: float, unit: str) -> str:
    shown, word = (radius / 1000, "km") if unit == "m" and radius >= 1000 else (radius, unit_word(unit))
    return f"{percent(SHARE)} within {shown:.3g} {'units' if unit == '1' else word}"

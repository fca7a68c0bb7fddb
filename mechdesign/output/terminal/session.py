"""What `mechdesign session` says: estimates as cells, with no more digits than a cell has, and exact accounts."""

from __future__ import annotations

from typing import Any

import numpy as np

from mechdesign.mechanism.session.session import Account, Estimate
from mechdesign.output.terminal.printing import listing, say
from mechdesign.setting.space.domain import AXES, Domain
from mechdesign.setting.space.locate import identifying_digits, rounded


def said_estimate(told: Estimate, domain: Domain) -> dict[str, Any]:
    """What may be released, and nothing else: estimate in the unit of the domain, and in degrees where it has a plane,
    both to a tenth of a cell; expected error; what was drawn; charge and what is left, exact fractions as text.
    """
    digits = identifying_digits(domain.points)
    location = {axis: rounded(x, kept) for axis, x, kept in zip(AXES, told.location, digits, strict=False)}
    degrees: dict[str, float] = {}
    if domain.plane is not None:
        kept = domain.plane.decimals(domain.spacing)
        east, north = domain.plane.backward(np.array([told.location]))
        degrees = {"longitude": round(float(east[0]), kept), "latitude": round(float(north[0]), kept)}
    return {
        "tick": told.tick,
        "place": told.place,
        **location,
        "unit": told.unit,
        **degrees,
        "expected_error": told.error,
        "drawn": told.drawn,
        "report": told.report,
        "moved": told.moved,
        "charge": str(told.charge),
        "left": str(told.left),
    }


def print_estimate(told: Estimate, domain: Domain) -> None:
    """The same in words."""
    said = said_estimate(told, domain)
    where = " ".join(f"{said[axis]:.12g}" for axis in AXES if axis in said)
    unit = "" if told.unit == "1" else f" {told.unit}"
    degrees = f", longitude {said['longitude']} latitude {said['latitude']}" if "longitude" in said else ""
    say(f"Tick {told.tick}: place {told.place}, at {where}{unit}{degrees}.")
    drawn = f"report {told.report}" if told.drawn else "nothing"
    answer = {None: "", True: "; the test answered far", False: "; the test answered near"}[told.moved]
    listing(
        {
            "expected error": f"{told.error:.6g}{unit}",
            "drawn": f"{drawn}{answer}",
            "cost": f"{float(told.charge):.9g} times the metric; {float(told.left):.9g} left in its window",
        }
    )


def said_account(told: Account) -> dict[str, Any]:
    """An account as JSON: amounts are exact fractions as text."""
    amounts = {name: str(getattr(told, name)) for name in ("limit", "spent", "worst", "left", "promised")}
    return {"window": told.window, **amounts, "first": told.first, "last": told.last, "reports": told.reports}


def print_account(told: Account) -> None:
    """The same in words."""
    exact = {
        name: f"{float(value):.12g} ({value})" if value.denominator > 1 else str(value)
        for name, value in (
            ("limit", told.limit),
            ("spent", told.spent),
            ("worst", told.worst),
            ("promised", told.promised),
            ("left", told.left),
        )
    }
    say(f"{told.reports} reports up to tick {told.last}; no window is above the limit.")
    listing(
        {
            "window": told.window,
            "limit": exact["limit"],
            "spent in all": exact["spent"],
            "worst window": exact["worst"] + (f", from tick {told.first}" if told.worst else ""),
            "left": exact["left"] + " in the window that ends with the last tick",
            "promised": exact["promised"] + " at most, whatever is reported",
        }
    )

"""Units of length: which names are known, how long they are, and which are angles, never to be taken for lengths."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from mechdesign.errors import UnitError

_ALIASES = {
    "m": ("m", "meter", "meters", "metre", "metres"),
    "km": ("km", "kilometer", "kilometers", "kilometre", "kilometres"),
    "cm": ("cm", "centimeter", "centimeters", "centimetre", "centimetres"),
    "mi": ("mi", "mile", "miles"),
    "ft": ("ft", "foot", "feet", "us-ft", "us survey foot"),
    "yd": ("yd", "yard", "yards"),
    "cell": ("cell", "cells"),
    "USD": ("usd", "dollar", "dollars"),
    "kWh": ("kwh",),
    "1": ("1", "dimensionless"),
    "degree": (
        "deg",
        *(f"{word}{way}" for word in ("degree", "degrees") for way in ("", "_north", "_east", "_n", "_e")),
    ),
}
LENGTHS = {
    "m": Fraction(1),
    "km": Fraction(1000),
    "cm": Fraction("0.01"),
    "mi": Fraction("1609.344"),
    "ft": Fraction("0.3048"),
    "yd": Fraction("0.9144"),
}  # in m
_PER_LENGTH = re.compile(
    r"(?:(?:1\s*)?(?:nats?|eps|epsilon)|1)?[\s.·*]*"
    r"(?:(?:/|\bper\b)\s*(?P<per>[a-z1][a-z -]*)|(?P<inverse>[a-z]+)\s*(?:\^|\*\*)?\s*(?:-1|\(-1\)))",
    re.I,
)
METRES = {unit: float(length) for unit, length in LENGTHS.items()}
_CANONICAL = {alias: name for name, aliases in _ALIASES.items() for alias in aliases}
KNOWN_UNITS = tuple(_ALIASES)


def canonical_unit(name: str, field: str = "unit") -> str:
    """The canonical name of a unit, for example "m" for "metres"."""
    unit = _CANONICAL.get(str(name).strip().lower())
    if unit is None:
        raise UnitError("unknown unit", field=field, value=repr(name), remedy="use one of " + ", ".join(KNOWN_UNITS))
    return unit


def require_unit(declared: str, wanted: str, field: str) -> None:
    """Refuse data whose declared unit differs from the `wanted` one: degrees are never taken for metres."""
    declared, wanted = canonical_unit(declared, field), canonical_unit(wanted, field)
    if declared == wanted:
        return
    remedy = (
        "project the data to a plane first, as md.geo.raster_on(domain, path) does; degrees are not lengths"
        if declared == "degree"
        else f"convert the axes to {wanted}, or ask for {declared}"
    )
    raise UnitError(
        f"axes are declared in {declared} while {wanted} was asked for", field=field, value=declared, remedy=remedy
    )


def unit_ratio(unit: str, wanted: str, field: str = "unit") -> Fraction:
    """How many `wanted` are one `unit`, exactly: 1 for a unit and itself, 1000 for km and m."""
    unit, wanted = canonical_unit(unit, field), canonical_unit(wanted, field)
    if unit == wanted:
        return Fraction(1)
    if unit not in LENGTHS or wanted not in LENGTHS:
        raise UnitError(
            f"is in {unit} while the domain is in {wanted}; state it in {wanted}: no conversion is known",
            field=field,
            value=unit,
        )
    return LENGTHS[unit] / LENGTHS[wanted]


def length_per_nat(value_unit: str) -> str | None:
    """The unit of length of a privacy level: "km" of "1/km", "km-1", "nats per km" and "nat km^-1"; else None."""
    match = _PER_LENGTH.fullmatch(value_unit.strip().replace("\u207b\u00b9", "-1").replace("\u2212", "-"))
    name = None if match is None else _CANONICAL.get((match["per"] or match["inverse"]).lower())
    return name if name in (*LENGTHS, "1", "cell") else None


def rounded_down(value: Fraction) -> float:
    """The largest double that is not above a positive number."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, 0.0)


def unit_word(unit: str) -> str:
    """One unit of length in a sentence: "km", or "unit" where lengths are dimensionless."""
    return "unit" if unit == "1" else unit


def lengths(unit: str, count: float = 2) -> str:
    """A unit of length after a number."""
    return {"1": "units", "cell": "cells"}.get(unit, unit) if count != 1 else unit_word(unit)

"""Units of length: which names are known, and which of them are angles that must never be taken for lengths."""

from __future__ import annotations

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
        "degree",
        "degrees",
        "deg",
        "degree_north",
        "degrees_north",
        "degree_east",
        "degrees_east",
        "degree_n",
        "degrees_n",
        "degree_e",
        "degrees_e",
    ),
}
_CANONICAL = {alias: name for name, aliases in _ALIASES.items() for alias in aliases}
KNOWN_UNITS = tuple(_ALIASES)


def canonical_unit(name: str, field: str = "unit") -> str:
    """The canonical name of a unit, for example "m" for "metres".

    Raises: UnitError if the name is not one of `KNOWN_UNITS` or their usual spellings.
    """
    found = _CANONICAL.get(str(name).strip().lower())
    if found is None:
        raise UnitError("unknown unit", field=field, value=repr(name), remedy="use one of " + ", ".join(KNOWN_UNITS))
    return found


def require_unit(declared: str, wanted: str, field: str) -> None:
    """Refuse data whose declared unit differs from the one asked for: degrees are never taken for metres.

    Raises: UnitError naming both units.
    """
    declared, wanted = canonical_unit(declared, field), canonical_unit(wanted, field)
    if declared == wanted:
        return
    remedy = (
        "project the data to a plane first; geographic coordinates are not lengths"
        if declared == "degree"
        else f"convert the axes to {wanted}, or ask for {declared}"
    )
    raise UnitError(
        f"axes are declared in {declared} while {wanted} was asked for", field=field, value=declared, remedy=remedy
    )


def unit_word(unit: str) -> str:
    """One unit of length in a sentence: "km", or "unit" where lengths are dimensionless."""
    return "unit" if unit == "1" else unit

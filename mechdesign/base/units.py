"""Units: lengths, which convert into each other; angles; and any other name, such as EUR, which converts to nothing."""

from __future__ import annotations

import difflib
import math
import re
import unicodedata
from fractions import Fraction

from mechdesign.errors import UnitError

_ALIASES = {
    "m": ("m", "meter", "meters", "metre", "metres", "mtr", "mtrs", "metro", "metros"),
    "km": ("km", "kms", "kilometer", "kilometers", "kilometre", "kilometres"),
    "cm": ("cm", "cms", "centimeter", "centimeters", "centimetre", "centimetres"),
    "mm": ("mm", "millimeter", "millimeters", "millimetre", "millimetres"),
    "mi": ("mi", "mile", "miles", "statute mile", "statute miles"),
    "nmi": ("nmi", "nautical mile", "nautical miles"),
    "ft": ("ft", "foot", "feet", "us-ft", "us survey foot"),
    "yd": ("yd", "yds", "yard", "yards"),
    "in": ("in", "inch", "inches"),
    "cell": ("cell", "cells"),
    "USD": ("usd", "dollar", "dollars"),
    "kWh": ("kwh",),
    "1": ("1", "dimensionless", "unit", "units"),
    "degree": (
        "deg",
        "\N{DEGREE SIGN}",
        *(f"{word}{way}" for word in ("degree", "degrees") for way in ("", "_north", "_east", "_n", "_e")),
    ),
}
LENGTHS = {
    "m": Fraction(1),
    "km": Fraction(1000),
    "cm": Fraction("0.01"),
    "mm": Fraction("0.001"),
    "mi": Fraction("1609.344"),
    "nmi": Fraction(1852),
    "ft": Fraction("0.3048"),
    "yd": Fraction("0.9144"),
    "in": Fraction("0.0254"),
}  # in m
_PER_LENGTH = re.compile(
    r"(?:(?:1\s*)?(?:nats?|eps|epsilon)|1)?[\s.·*]*"
    r"(?:(?:/|\bper\b)\s*(?P<per>[a-z1][a-z -]*)|(?P<inverse>[a-z]+)\s*(?:\^|\*\*)?\s*(?:-1|\(-1\)))",
    re.I,
)
METRES = {unit: float(length) for unit, length in LENGTHS.items()}
# Lengths that are not converted; nm is a nanometre to some, and a nautical mile to others.
_OTHER_LENGTHS = frozenset(
    {"nm", "um", "\u03bcm", "dm", "dam", "hm", "micron", "angstrom", "parsec", "furlong", "fathom"}
)
KNOWN_UNITS = tuple(_ALIASES)  # those of several spellings
LONGEST, _SPACES = 40, 3  # characters of a name, and spaces in it
_CLAUSE = re.compile(r'[,;:!?"]|\. ')  # punctuation of a sentence, which an untrusted file could smuggle in as a unit
_SIMILARITY = 0.85  # likeness of two names, from 0 to 1: "kilomters" has 0.94 to kilometers, "years" 0.8 to yards
_MIN_LETTERS = 4  # letters of a name that is compared with those of lengths
_FORBIDDEN_START = "+-.,=@'\"`"  # signs, and characters that start a formula in spreadsheets


# A name close to that of a length ("meterss") is refused as a mistake.
def canonical_unit(name: str, field: str = "unit") -> str:
    """The canonical name: "m" for "metres", other printable names unchanged; UnitError for mistakes."""
    stripped = unicodedata.normalize("NFC", str(name).strip())
    plain = _plain(stripped)
    if plain in _CANONICAL:
        return _CANONICAL[plain]
    is_sentence = _CLAUSE.search(stripped) is not None or stripped.count(" ") > _SPACES
    is_short = 0 < len(stripped) <= LONGEST and stripped.isprintable()
    # A file is untrusted: no unit may continue a sentence, or be a formula in a spreadsheet.
    if not is_short or stripped[0].isdigit() or stripped[0] in _FORBIDDEN_START or is_sentence:
        message = f"must be a printable name of at most {LONGEST} characters and four words that begins with a letter"
        shown = repr(stripped if len(stripped) <= LONGEST else stripped[: LONGEST - 1] + "\N{HORIZONTAL ELLIPSIS}")
        raise UnitError(message, field=field, value=shown, remedy="write for example m, km, USD or points")
    # A misspelt length must not pass as a unit of its own: "kilomters" would convert to nothing.
    matches = (
        difflib.get_close_matches(plain, _LENGTH_SPELLINGS, 1, _SIMILARITY)
        if plain.isalpha() and len(plain) >= _MIN_LETTERS
        else []
    )
    singular = plain.removesuffix("s")
    is_metre = singular.isalpha() and stripped.isalpha() and singular.endswith(("meter", "metre"))
    if matches or singular in _OTHER_LENGTHS or is_metre:
        remedy = f"write {_CANONICAL[matches[0]]}" if matches else "lengths are in " + ", ".join(LENGTHS)
        raise UnitError("unknown unit of length", field=field, value=repr(stripped), remedy=remedy)
    return stripped


def _plain(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name) if name.replace("\N{DEGREE SIGN}", "x").isalpha() else name
    plain = (letter for letter in letters.lower() if not (unicodedata.combining(letter) or letter in " _-"))
    return "".join(plain).removesuffix(".")


_CANONICAL = {_plain(alias): name for name, aliases in _ALIASES.items() for alias in aliases}
_LENGTH_SPELLINGS = [alias for alias, unit in _CANONICAL.items() if unit in LENGTHS and len(alias) >= _MIN_LETTERS]


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
    """The exact number of `wanted` in one `unit`: 1000 for km and m."""
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
    name = None if match is None else _CANONICAL.get(_plain(match["per"] or match["inverse"]))
    return name if name in (*LENGTHS, "1", "cell") else None


def round_down(value: Fraction) -> float:
    """The largest double that is not above a positive number."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, 0.0)


def unit_word(unit: str) -> str:
    """One unit of length in a sentence: "km", or "unit" where lengths are dimensionless."""
    return "unit" if unit == "1" else unit


def plural_unit(unit: str, count: float = 2) -> str:
    """A unit of length after a number."""
    return {"1": "units", "cell": "cells"}.get(unit, unit) if count != 1 else unit_word(unit)

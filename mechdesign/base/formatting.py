"""Figures as people read them: plain digits, rounded to the safe side, with their unit."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

from mechdesign.base.units import METRES, plural_unit

TIMES = "\N{MULTIPLICATION SIGN}"
DIGITS = 4  # of a figure that people read
_KILOMETRES = 10_000  # metres from which a length is in km
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_DIGIT_OF_SUPERSCRIPT = {superscript: digit for digit, superscript in _SUPERSCRIPTS.items()}
_POWER = re.compile(f"(-?[0-9.,]+) {TIMES} 10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)")
_SMALLEST_SHARE = 1e-6  # of shares in percent
_NOISE = 1e-12  # relative: a figure so close above a shorter one is that one, but for rounding in doubles


def number(value: float, *, up: bool | None = None, digits: int = DIGITS) -> str:
    """A figure in plain digits, beyond 10^9 and below 10^-4 with a power of ten; up: round up, down, or to nearest."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    # Scaled by 10^-exponent the figure has `digits` digits before the point: rounding is then to an integer.
    exponent = math.floor(math.log10(abs(value))) - digits + 1
    # In two factors: 10^-exponent alone may overflow.
    if exponent <= -300:
        scaled = value * 1e300 * 10.0 ** (-exponent - 300)
    else:
        scaled = value * 10.0**-exponent if exponent < 300 else value / 10.0**exponent
    rounded = round(scaled)
    if up is not None and abs(scaled - rounded) > _NOISE * abs(scaled):
        rounded = math.ceil(scaled) if up else math.floor(scaled)
    size = abs(rounded) * 10.0**exponent
    # 0.99e-4 instead of 1e-4: the product above may round to below it.
    if 0.99e-4 <= size < 1e9:
        text = f"{rounded * 10**exponent:,d}" if exponent >= 0 else f"{rounded / 10**-exponent:,.{-exponent}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    shown, power = f"{Decimal(rounded).scaleb(exponent):.{digits - 1}e}".split("e")
    mantissa = shown.rstrip("0").rstrip(".") if "." in shown else shown
    return f"{mantissa} {TIMES} 10{str(int(power)).translate(_SUPERSCRIPTS)}"


def latex_powers(text: str) -> str:
    """The text with the powers of ten that `number` writes as formulas of LaTeX."""
    return _POWER.sub(lambda power: f"${power[1]} \\times 10^{{{power[2].translate(_DIGIT_OF_SUPERSCRIPT)}}}$", text)


def length(value: float, unit: str, *, up: bool | None = None, digits: int = DIGITS) -> str:
    """A length in `unit` with its unit; metres from 10,000 on in km."""
    if unit == "m" and abs(value) >= _KILOMETRES:
        return f"{number(value / 1000, up=up, digits=digits)} km"
    text = number(value, up=up, digits=digits)
    return f"{text} {plural_unit(unit, 1 if text == '1' else 2)}"


def percent(share: float, *, up: bool | None = None, digits: int = 2) -> str:
    """A share in percent: 0.0008 is "0.08 %". One below 10^-6 is under 0.0001 %."""
    if up and 0 < share < _SMALLEST_SHARE:
        return f"under {number(100 * _SMALLEST_SHARE)} %"
    return f"{number(100 * share, up=up, digits=digits)} %"


def sentence(text: str) -> str:
    """Capitalise the first letter, unless a symbol stands first: "n reports", "h^-1 error", "k-anonymity"."""
    first = text.split(" ", 1)[0].split("-", 1)[0].rstrip(",;:.")
    is_word = first.isalpha() and (len(first) > 1 or first == "a")
    return text[:1].upper() + text[1:] if is_word else text


class Rounding(Enum):
    """How a figure of a table is rounded; its value is `up` of `number`."""

    UP = True
    DOWN = False
    NEAREST = None


def format_cell(value: float | str | None, *, rounding: Rounding = Rounding.NEAREST, digits: int) -> str:
    """A figure in a table, "-" for None; a text as it is."""
    if value is None or isinstance(value, str):
        return "-" if value is None else value
    return number(value, up=rounding.value, digits=digits)


def format_share(value: float | None) -> str:
    """A share in percent in a table, rounded up to three digits, "-" for None."""
    if value is None:
        return "-"
    return (
        f"<{number(100 * _SMALLEST_SHARE)}%"
        if 0 < value < _SMALLEST_SHARE
        else f"{number(100 * value, up=True, digits=3)}%"
    )


@dataclass(frozen=True)
class Column:
    """A column of a table of results: its heading, the name of its figure, and how that is rounded."""

    heading: str
    figure: str
    rounding: Rounding = Rounding.UP
    digits: int = 6
    is_share: bool = False

    def value(self, row: object) -> Any:
        return row[self.figure] if isinstance(row, Mapping) else getattr(row, self.figure)

    def text(self, row: object) -> str:
        value = self.value(row)
        if self.is_share:
            return format_share(value)
        return format_cell(value, rounding=self.rounding, digits=self.digits)


def amount(value: float, unit: str, *, up: bool | None = None) -> str:
    """A loss in the unit of its table: a length, its square, or a bare number."""
    root = unit.removesuffix("^2")
    if root in METRES or root in ("cell", "units"):
        squared = unit.endswith("^2")
        text = number(value, up=up) if squared else length(value, "1" if root == "units" else root, up=up)
        return f"{text} {'squared units' if root == 'units' else f'{root}²'}" if squared else text
    return number(value, up=up) if unit == "1" else f"{number(value, up=up)} {unit.replace('^2', '²')}"

"""Shares of a posterior, and factors, as exact fractions of integers below 2^16."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from mechdesign.errors import InputError

MAX_PART = 2**16  # numerators and denominators are below it: sums in integers have room for them (rows.py)
_SHARE = re.compile(r"[0-9]{1,20}(/[0-9]{1,20}|\.[0-9]{1,20})?(?!\n)")


def exact_fraction(value: Fraction | float | str, field: str) -> Fraction:
    """A share or factor as a fraction: "1/5", "20%", "0.2" and the double 0.2 are all 1/5."""
    text = str(value).strip()
    # The text of a double has its shortest digits, so that 0.2 becomes 1/5 and not the binary fraction that it is.
    percent, digits = text.endswith("%"), text.removesuffix("%").strip()
    if isinstance(value, bool) or not _SHARE.fullmatch(digits) or digits.endswith("/0"):
        raise InputError("must be a share such as 1/5, 20% or 0.2", field=field, value=value)
    exact = Fraction(digits) / (100 if percent else 1)
    if max(exact.numerator, exact.denominator) >= MAX_PART:
        remedy = "use a fraction of smaller numbers, or fewer digits"
        raise InputError(f"must be a fraction of numbers below {MAX_PART}", field=field, value=value, remedy=remedy)
    return exact


def fraction_below(value: Fraction) -> Fraction:
    """The value, or one below it whose numerator and denominator are below 2^16."""
    if max(value.numerator, value.denominator) < MAX_PART:
        return value
    # The largest denominator with which neither part reaches 2^16: rounding down costs little.
    denominator = math.floor((MAX_PART - 1) / max(value, Fraction(1)))
    return Fraction(math.floor(value * denominator), denominator)


def share_if_wrong(share: Fraction, factor: Fraction) -> Fraction:
    """The largest share of the posterior if each count is off by up to a factor (limits.py, fact 2)."""
    # Counts too high inside a disc and too low outside: ratios of counts are off by the square.
    ratio = factor**2
    return ratio * share / (1 + (ratio - 1) * share)


def share_to_design(share: Fraction, ratio: Fraction) -> Fraction:
    """The share under the stated counts that implies `share` if ratios differ by at most `ratio` (limits.py, 2)."""
    return fraction_below(share / (ratio - (ratio - 1) * share))

"""Numbers as people type them: digits 0-9, a sign, a decimal point, an exponent.

Python reads more than that as a number: digits of other scripts, 1_0, spaces around. Here these are refused, and so are
numbers that 64 bits have no room for, or arithmetic with doubles.
"""

from __future__ import annotations

import re

LARGEST = (1 << 63) - 1
SMALLEST_REAL, LARGEST_REAL = 1e-100, 1e100
_WHOLE = re.compile(r"[+-]?[0-9]+")
_REAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.I)
_LONGEST = 1000  # characters of a whole number that are read at all


def whole_number(text: str) -> int:
    """The whole number that `text` writes. Raises: ValueError for another text, and beyond 64 bits."""
    if _WHOLE.fullmatch(text) is None:
        raise ValueError("must be a whole number in the digits 0-9")
    if len(text) > _LONGEST or abs(value := int(text)) > LARGEST:
        raise ValueError("must be a whole number of at most 64 bits")
    return value


def real_number(text: str) -> float:
    """The double nearest to the number that `text` writes; `inf` and `infinity`, in any case, are infinite.

    Raises: ValueError for another text (nan is no number), and for a number beyond 1e100 or nearer to 0 than 1e-100:
        squares of numbers that are let through, and quotients, are doubles.
    """
    if _INFINITE.fullmatch(text) is not None:
        return float(text)
    if _REAL.fullmatch(text) is None:
        raise ValueError("must be a number in the digits 0-9, such as 0.5 or 1e-3")
    value = float(text)
    zero = re.search("[1-9]", re.split("[eE]", text)[0]) is None
    if not (zero or SMALLEST_REAL <= abs(value) <= LARGEST_REAL):
        raise ValueError("must be 0, or between 1e-100 and 1e100 in size")
    return value

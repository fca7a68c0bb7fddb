"""Numbers as people type them: digits 0-9, sign, decimal point, exponent.

Python also reads digits of other scripts, 1_0 and spaces; here they are refused, as are numbers beyond 64 bits. Lists
have commas or spaces: 250,564,1000. A separator between one to three digits and three more may mean thousands (1,850):
refused, unless a space follows every comma or some number has four digits. 1.850,5 is refused too.
"""

from __future__ import annotations

import re

# Of typed numbers; squares and quotients of the latter stay in the range of doubles.
LARGEST_WHOLE = (1 << 63) - 1
_SMALLEST_REAL, _LARGEST_REAL = 1e-100, 1e100
_WHOLE = re.compile(r"[+-]?[0-9]+")
_REAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.I)
# 1,850 or 1 850: one to three digits, then groups of three.
_GROUPED = re.compile(r"(?<![0-9.])[1-9][0-9]{0,2}(?:[,\s][0-9]{3})+(?![0-9])(?:\.[0-9]+)?")
# 1.850,5
_DECIMAL_COMMA = re.compile(r"(?<![0-9.])[1-9][0-9]{0,2}(?:\.[0-9]{3})+,[0-9]+(?![0-9.])")
_UNGROUPED = re.compile(r"(?<![0-9.])[0-9]{4}")  # a thousand and more without a separator
_LONGEST = 1000  # characters of an integer that are read at all


def whole_number(text: str) -> int:
    """The integer that `text` writes; ValueError for other text, and beyond 64 bits."""
    if _WHOLE.fullmatch(text) is None:
        raise ValueError("must be an integer in the digits 0-9" + _separators(text))
    if len(text) > _LONGEST or abs(value := int(text)) > LARGEST_WHOLE:
        raise ValueError("must be an integer of at most 64 bits")
    return value


def real_number(text: str) -> float:
    """The nearest double; infinite for inf and infinity. ValueError for other text, beyond 1e100 and below 1e-100."""
    if _INFINITE.fullmatch(text) is not None:
        return float(text)
    if _REAL.fullmatch(text) is None:
        raise ValueError("must be a number in the digits 0-9, such as 0.5 or 1e-3" + _separators(text))
    value = float(text)
    zero = re.search("[1-9]", re.split("[eE]", text)[0]) is None
    if not (zero or _SMALLEST_REAL <= abs(value) <= _LARGEST_REAL):
        raise ValueError("must be 0, or between 1e-100 and 1e100 in size")
    return value


def _separators(text: str) -> str:
    """The remedy for a number with commas, or other separators of digits."""
    return ", thousands without a separator and decimals after a point" * bool(re.search(r"[0-9][,'_\s][0-9]", text))


def list_words(text: str, *, count: int | None = None) -> list[str]:
    """Split a list at commas or spaces; ValueError if a separator may mean thousands, or for another `count`."""
    words = re.split(r"\s*,\s*|\s+", text.strip())
    if count is not None:
        if len(words) != count:
            raise ValueError(f"must be {count} numbers, got {len(words)}")
        return words
    # A number of four digits without a separator shows that the others do not group digits.
    decimal = _DECIMAL_COMMA.search(text)
    grouped = decimal or (None if _UNGROUPED.search(text) else _GROUPED.search(text))
    if grouped:
        number = grouped[0].replace(".", "").replace(",", ".") if decimal else re.sub(r"[,\s]", "", grouped[0])
        separate = re.sub(r"[,\s]", ", ", grouped[0])
        raise ValueError(f"{grouped[0]} may be one number or several; write {number}, or '{separate}' with spaces")
    return words


def number_list(text: str, *, count: int | None = None) -> list[float]:
    """The numbers of a list such as 0.5,1,2. ValueError as `list_words` and `real_number`."""
    return [real_number(word) for word in list_words(text, count=count)]

"""Numbers from outside: of descriptions, the JSON that a file keeps of places and metrics, and as people type them.

Descriptions may be written by anyone: names, types, sizes and ranges are checked before an array is made. JSON as
Python reads it has true, NaN, Infinity and integers of any length; none of these is taken for a number here.

Range of a description. u = 2^-53. A sum of two doubles is right to a relative u unless it overflows; a product, a
quotient or a root if the result is no less than 2^-1022. Coordinates are at most LARGEST, so that sums of three squares
of differences do not overflow. Squared distances, privacy levels, gaps between nodes and lengths are at least SMALLEST,
so that what one more product of two of them loses below 2^-1022, at most 2^-1075, is less than 2^-110 of what it is
added to.

Typed numbers have digits 0-9, a sign, a decimal point and an exponent. Python reads more: digits of other scripts, 1_0,
spaces around. Here these are refused, and so are numbers beyond 64 bits, or beyond arithmetic with doubles.

Typed lists have commas or spaces between numbers: 250,564,1000. A comma or space between one to three digits and three
others may separate thousands instead: 1,850. Such a list is refused, unless a space follows each comma, or a number of
four digits shows that it has no separators of thousands. So is 1.850,5: one number in some countries, two in others.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import reprlib
from collections.abc import Callable, Collection, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from mechdesign.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Reader = Callable[[Any, str], Any]  # of a value of a description and the name of its field
SMALLEST = 2.0**-960
LARGEST = 2.0**500
LARGEST_WHOLE = (1 << 63) - 1  # typed
_EXACT = 2**53  # the integers up to here are doubles
_SMALLEST_REAL, _LARGEST_REAL = 1e-100, 1e100  # typed: squares and quotients are doubles
_WHOLE = re.compile(r"[+-]?[0-9]+")
_REAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.I)
_GROUPED = re.compile(r"(?<![0-9.])[1-9][0-9]{0,2}(?:[,\s][0-9]{3})+(?![0-9])(?:\.[0-9]+)?")
_DECIMAL_COMMA = re.compile(r"(?<![0-9.])[1-9][0-9]{0,2}(?:\.[0-9]{3})+,[0-9]+(?![0-9.])")
_UNGROUPED = re.compile(r"(?<![0-9.])[0-9]{4}")  # a thousand and more without a separator
_LONGEST = 1000  # characters of an integer that are read at all


def read_json(text: str | bytes) -> Any:
    """What JSON says in which no name stands twice in an object, and neither NaN nor Infinity anywhere.

    Raises: ValueError for any other text; RecursionError where lists and objects are too deep in each other.
    """
    return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)


def json_sha256(description: Mapping[str, Any]) -> str:
    """SHA-256 of a description as JSON, names in order: 64 hexadecimal digits."""
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()


def named(description: object, field: str, names: Collection[str], optional: Collection[str] = ()) -> dict[str, Any]:
    """The description, a table that has all of `names`, perhaps some of `optional`, and nothing else."""
    if not isinstance(description, dict):
        raise _refused("must be a table of names and values", field, description)
    for problem, odd in (
        ("misses a name", set(names) - set(description)),
        ("has a name that is not known", set(description) - set(names) - set(optional)),
    ):
        if odd:
            raise _refused(problem, field, min(odd))
    return description


def word(value: object, field: str) -> str:
    """A string."""
    if not isinstance(value, str):
        raise _refused("must be a word", field, value)
    return value


def whole(value: object, field: str, least: int, most: int) -> int:
    """An integer from `least` to `most`."""
    if type(value) is not int or not least <= value <= most:
        raise _refused(f"must be an integer from {least} to {most}", field, value)
    return value


def finite(value: object, field: str) -> float:
    """A finite number of a description, as it is: what `Metric.described` reads a number of a file by.

    Parameters
    ----------
    value : object
        Of anybody.
    field : str
        Its name, for the error.

    Returns
    -------
    float
        The value. A whole one is an int that a double holds.

    Raises
    ------
    InputError
        For anything else: text, a truth value, nan, an infinity.

    Examples
    --------
    >>> md.extend.finite(0.25, "epsilon")
    0.25
    """
    good = abs(value) <= _EXACT if type(value) is int else isinstance(value, float) and math.isfinite(value)
    if not good:
        raise _refused("must be a finite number", field, value)
    return value  # type: ignore[return-value]


def wholes(value: object, field: str, least: int, most: int) -> NDArray[np.int64]:
    """Integers from `least` to `most`, within 64 bits; shape (k,)."""
    import numpy as np  # where it is needed: every command imports this file for its options

    return np.array([whole(entry, field, least, most) for entry in _listed(value, field)], np.int64)


def finites(value: object, field: str, axes: int = 1) -> NDArray[np.float64]:
    """Finite numbers in lists of lists, `axes` deep and equally long at every depth."""
    import numpy as np

    rows, shape = [value], [1]
    for _ in range(axes):
        lists = [_listed(row, field) for row in rows]
        if len({len(row) for row in lists}) > 1:
            raise _refused("must be lists of one length", field, value)
        shape.append(len(lists[0]) if lists else 0)
        rows = list(chain.from_iterable(lists))
    if set(map(type, rows)) != {float}:
        rows = [finite(entry, field) for entry in rows]
    values = np.array(rows, np.float64).reshape(shape[1:])
    if not np.isfinite(values).all():
        raise _refused("must be finite numbers", field, "nan or inf")
    return values


def written(value: Any) -> Any:
    """A field as JSON holds it: arrays as lists, objects as their own descriptions."""
    if hasattr(value, "describe"):
        return value.describe()
    return value.tolist() if hasattr(value, "tolist") else value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise ValueError(f"{key:.80} stands twice")
        table[key] = value
    return table


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number")


def _listed(value: object, field: str) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise _refused("must be a list", field, value)
    return list(value)


def _refused(problem: str, field: str, value: object) -> InputError:
    return InputError(problem, field=field, value=reprlib.repr(value), remedy="use a file as it was written")


def whole_number(text: str) -> int:
    """The integer that `text` writes. Raises: ValueError for another text, and beyond 64 bits."""
    if _WHOLE.fullmatch(text) is None:
        raise ValueError("must be an integer in the digits 0-9" + _separators(text))
    if len(text) > _LONGEST or abs(value := int(text)) > LARGEST_WHOLE:
        raise ValueError("must be an integer of at most 64 bits")
    return value


def real_number(text: str) -> float:
    """The double nearest to the number that `text` writes; `inf` and `infinity`, in any case, are infinite.

    Raises: ValueError for another text (nan is no number), and for a number beyond 1e100 or nearer to 0 than 1e-100.
    """
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
    """The words of a list with commas or spaces between them; where `count` are needed, only so many have a meaning.

    Raises: ValueError where a comma or space may belong to a number instead, and for another count.
    """
    words = re.split(r"\s*,\s*|\s+", text.strip())
    if count is not None:
        if len(words) != count:
            raise ValueError(f"must be {count} numbers, got {len(words)}")
        return words
    decimal = _DECIMAL_COMMA.search(text)
    grouped = decimal or (None if _UNGROUPED.search(text) else _GROUPED.search(text))
    if grouped:
        number = grouped[0].replace(".", "").replace(",", ".") if decimal else re.sub(r"[,\s]", "", grouped[0])
        separate = re.sub(r"[,\s]", ", ", grouped[0])
        raise ValueError(f"{grouped[0]} may be one number or several; write {number}, or '{separate}' with spaces")
    return words


def number_list(text: str, *, count: int | None = None) -> list[float]:
    """The numbers of a list such as 0.5,1,2. Raises: ValueError as `list_words` and `real_number`."""
    return [real_number(word) for word in list_words(text, count=count)]

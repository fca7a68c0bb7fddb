"""Fields of untrusted JSON: names, types, sizes and ranges, checked before an array is made.

Python's JSON has true, NaN, Infinity and integers of any length; here none of these is a number.

Range, with u = 2^-53. A sum of two doubles has relative error u unless it overflows; a product, quotient or root if it
is at least 2^-1022. Coordinates are at most LARGEST: sums of three squared differences do not overflow. Squared
distances, levels, gaps and lengths are at least SMALLEST: a further product of two loses at most 2^-1075, under 2^-110
of the sum.
"""

from __future__ import annotations

import hashlib
import json
import math
import reprlib
from collections.abc import Callable, Collection, Mapping
from itertools import chain
from typing import Any

import numpy as np

from mechdesign.base.arrays import Floats, Indices
from mechdesign.errors import InputError

Reader = Callable[[Any, str], Any]  # of a value of a description and the name of its field
SMALLEST = 2.0**-960
LARGEST = 2.0**500
_EXACT = 2**53  # the integers up to here are doubles


def read_json(text: str | bytes) -> Any:
    """Parse JSON; raises ValueError for duplicate names, NaN and Infinity, RecursionError for deep nesting."""
    return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)


def json_sha256(description: Mapping[str, Any]) -> str:
    """SHA-256 of a description as JSON, names in order: 64 hexadecimal digits."""
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()


def check_keys(
    description: object, field: str, names: Collection[str], optional: Collection[str] = ()
) -> dict[str, Any]:
    """The description, a table that has all of `names`, perhaps some of `optional`, and nothing else."""
    if not isinstance(description, dict):
        raise _refused("must be a table of names and values", field, description)
    for problem, odd in (
        ("lacks a name", set(names) - set(description)),
        ("has an unknown name", set(description) - set(names) - set(optional)),
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
    """Return the value if it is a finite number: the parser of numbers in `Metric.described`.

    Parameters
    ----------
    value, field : object, str
        The untrusted value, and its name for errors.

    Returns
    -------
    float
        The value; integers stay int.

    Examples
    --------
    >>> md.extend.finite(0.25, "epsilon")
    0.25
    """
    # `type` and not isinstance: True is an int to isinstance. Integers beyond 2^53 would change as doubles.
    good = abs(value) <= _EXACT if type(value) is int else isinstance(value, float) and math.isfinite(value)
    if not good:
        raise _refused("must be a finite number", field, value)
    return value  # type: ignore[return-value]


def wholes(value: object, field: str, least: int, most: int) -> Indices:
    """Integers from `least` to `most`, within 64 bits; shape (k,)."""
    return np.array([whole(entry, field, least, most) for entry in _listed(value, field)], np.int64)


def finites(value: object, field: str, axes: int = 1) -> Floats:
    """Finite numbers in lists of lists, `axes` deep and equally long at every depth."""
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


def to_json(value: Any) -> Any:
    """A field as JSON holds it: arrays as lists, objects as their own descriptions."""
    if hasattr(value, "describe"):
        return value.describe()
    return value.tolist() if hasattr(value, "tolist") else value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise ValueError(f"{key:.80} is repeated")
        table[key] = value
    return table


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is not a number")


def _listed(value: object, field: str) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise _refused("must be a list", field, value)
    return list(value)


def _refused(problem: str, field: str, value: object) -> InputError:
    return InputError(problem, field=field, value=reprlib.repr(value), remedy="use a file as it was written")

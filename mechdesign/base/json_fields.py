"""Fields of untrusted JSON: names, types, sizes and ranges, checked before an array is made."""

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

# A sum of two doubles has relative error 2^-53 unless it overflows; a product, quotient or root if it is at least
# 2^-1022. Squared distances, levels, gaps and lengths are at least SMALLEST: a further product of two loses at most
# 2^-1075, under 2^-110 of the sum. Coordinates are at most LARGEST: sums of three squared differences do not overflow.
SMALLEST = 2.0**-960
LARGEST = 2.0**500
_EXACT = 2**53  # the integers up to here are doubles


# Python's JSON has true, NaN, Infinity and integers of any length; here none of these is a number.
def read_json(text: str | bytes) -> Any:
    """Parse JSON; raises ValueError for duplicate names, NaN and Infinity, RecursionError for deep nesting."""
    return json.loads(text, object_pairs_hook=_refuse_duplicates, parse_constant=_refuse_constant)


def json_sha256(description: Mapping[str, Any]) -> str:
    """SHA-256 of a description as JSON, names in order: 64 hexadecimal digits."""
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()


def check_keys(
    description: object, field: str, names: Collection[str], optional: Collection[str] = ()
) -> dict[str, Any]:
    """Return the description if it is a table with all of `names`, and further ones of `optional` alone."""
    if not isinstance(description, dict):
        raise _field_error("must be a table of names and values", field, description)
    for problem, wrong in (
        ("lacks a name", set(names) - set(description)),
        ("has an unknown name", set(description) - set(names) - set(optional)),
    ):
        if wrong:
            raise _field_error(problem, field, min(wrong))
    return description


def word(value: object, field: str) -> str:
    """A string."""
    if not isinstance(value, str):
        raise _field_error("must be a word", field, value)
    return value


def whole(value: object, field: str, minimum: int, maximum: int) -> int:
    """Return the value if it is an integer from `minimum` to `maximum`."""
    if type(value) is not int or not minimum <= value <= maximum:
        raise _field_error(f"must be an integer from {minimum} to {maximum}", field, value)
    return value


def finite(value: object, field: str) -> float:
    """Return the value if it is a finite number: the parser of numbers in `Metric.described`.

    Parameters
    ----------
    value, field : object, str
        The untrusted value, and its name for errors.

    Returns
    -------
    float, or int for an integer

    Examples
    --------
    >>> md.extend.finite(0.25, "epsilon")
    0.25
    """
    # `type` and not isinstance: True is an int to isinstance. Integers beyond 2^53 would change as doubles.
    is_finite = abs(value) <= _EXACT if type(value) is int else isinstance(value, float) and math.isfinite(value)
    if not is_finite:
        raise _field_error("must be a finite number", field, value)
    return value  # type: ignore[return-value]


def wholes(value: object, field: str, minimum: int, maximum: int) -> Indices:
    """An array (k,) of integers from `minimum` to `maximum`, within 64 bits."""
    return np.array([whole(entry, field, minimum, maximum) for entry in _as_list(value, field)], np.int64)


def finites(value: object, field: str, axes: int = 1) -> Floats:
    """Finite numbers in lists of lists, `axes` deep and equally long at every depth."""
    rows, shape = [value], [1]
    for _ in range(axes):
        lists = [_as_list(row, field) for row in rows]
        if len({len(row) for row in lists}) > 1:
            raise _field_error("must be lists of one length", field, value)
        shape.append(len(lists[0]) if lists else 0)
        rows = list(chain.from_iterable(lists))
    # A level map has a million floats and nothing else: they need no check one by one.
    if set(map(type, rows)) != {float}:
        rows = [finite(entry, field) for entry in rows]
    values = np.array(rows, np.float64).reshape(shape[1:])
    if not np.isfinite(values).all():
        raise _field_error("must be finite numbers", field, "nan or inf")
    return values


def finite_array(axes: int = 1) -> Reader:
    """The parser of an array of finite numbers in `Metric.described`.

    Parameters
    ----------
    axes : int
        The number of axes of the array.

    Returns
    -------
    callable, from the untrusted value and the name of its field to the array

    Examples
    --------
    >>> md.extend.finite_array(2)([[0.0, 1.5], [1.5, 0.0]], "distance")
    array([[0. , 1.5],
           [1.5, 0. ]])
    """
    return lambda value, field: finites(value, field, axes)


def to_json(value: Any) -> Any:
    """A field as JSON holds it: arrays as lists, objects as their own descriptions."""
    if hasattr(value, "describe"):
        return value.describe()
    return value.tolist() if hasattr(value, "tolist") else value


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise ValueError(f"{key:.80} is repeated")
        table[key] = value
    return table


def _refuse_constant(word: str) -> float:
    raise ValueError(f"{word} is not a number")


def _as_list(value: object, field: str) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise _field_error("must be a list", field, value)
    return list(value)


def _field_error(problem: str, field: str, value: object) -> InputError:
    return InputError(problem, field=field, value=reprlib.repr(value), remedy="use a file as it was written")

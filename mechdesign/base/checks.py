"""Arguments that people give: positive numbers, finite arrays, arrays to keep, privacy levels, whole numbers."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.errors import InputError


def positive(value: float | None, name: str, *, infinite: bool = False) -> float:
    """`value` as a positive number, finite unless `infinite`. Raises: InputError that names the field."""
    number = float("nan") if value is None else float(value)
    if not number > 0 or (np.isinf(number) and not infinite):
        raise InputError(
            "must be positive" if infinite else "must be positive and finite",
            field=name,
            value=value,
            remedy="give a positive number in the unit of the distance (gamma: per that unit)",
        )
    return number


def finite(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """`values` as an array of doubles. Raises: InputError where one is not finite."""
    array = np.asarray(values, float)
    if not np.isfinite(array).all():
        raise InputError(
            "must be finite", field=name, value=f"{int((~np.isfinite(array)).sum())} that are not", remedy="drop those"
        )
    return array


def own_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """`values` as a read-only array that shares no memory with what the caller can write to.

    Raises: InputError for rows of different lengths.
    """
    if type(values) is np.ndarray and values.flags.owndata and not values.flags.writeable:
        return values
    try:
        own = np.array(values)
    except ValueError as error:
        raise InputError(
            "must be an array", field=name, value=f"a {type(values).__name__}", remedy="give rows of one length"
        ) from error
    own.setflags(write=False)
    return own


def check_epsilon(epsilon: float, field: str = "epsilon") -> float:
    """A positive finite privacy level, or an InputError that says which of the two it is not."""
    value = float(epsilon)
    if not (np.isfinite(value) and value > 0):
        zero = "; eps = 0 admits constant mechanisms only" if value == 0 else ""
        raise InputError(
            f"must be positive and finite{zero}",
            field=field,
            value=value,
            remedy="give a positive number of nats per unit",
        )
    return value


def check_whole(value: int, field: str, *, least: int = 1) -> int:
    """A whole number that is not below `least`, or an InputError that names the field."""
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise InputError(
            f"must be a whole number from {least} on", field=field, value=value, remedy=f"give {least} or more"
        )
    return number

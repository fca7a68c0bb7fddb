"""Labels of rows and columns: places are taken by their labels, never by position against them.

Labels that number places from 0 or 1, in any order, give the order. Ascending numbers and words leave it as it is.
Refused are other numbers that do not ascend, a label that is given twice, and rows and columns that have the same words
in two orders: nothing says which order is that of the places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.errors import InputError

_SHOWN = 4  # labels that an error lists
_SIDES = ("secret", "report")
_UNNAMED = "dim_"  # what xarray calls the axes of an array that names none


def place_order(labels: Sequence[Any], field: str, side: str) -> NDArray[np.int64]:
    """The positions (n,) of the places 0 to n - 1 among labels. Raises: InputError."""
    words = [str(label) for label in labels]
    repeated = next((word for word in words if words.count(word) > 1), None) if len(set(words)) < len(words) else None
    if repeated is not None:
        raise InputError(f"two {side}s have one label", field=field, value=repeated)
    numbers = _numbers(labels)
    if numbers is None or (np.diff(numbers) > 0).all():
        return np.arange(len(words))
    order = np.argsort(numbers, kind="stable")
    if any(np.array_equal(numbers[order], np.arange(first, first + len(words))) for first in (0, 1)):
        return order
    raise InputError(
        f"labels of {side}s are numbers that do not ascend",
        field=field,
        value=listed(words),
        remedy="sort by label, or number the places from 0",
    )


def refuse_two_orders(rows: Sequence[Any] | None, columns: Sequence[Any] | None, field: str) -> None:
    """Refuse rows and columns that have the same labels in two orders."""
    if rows is None or columns is None:
        return
    ours, theirs = [str(label) for label in rows], [str(label) for label in columns]
    if ours != theirs and sorted(ours) == sorted(theirs):
        raise InputError(
            "rows and columns have the same labels in two orders",
            field=field,
            value=f"rows {listed(ours)}; columns {listed(theirs)}",
            remedy="write both in the order of the places, with pandas table.loc[labels, labels]",
        )


def listed(labels: Sequence[Any]) -> str:
    """The first labels, with commas."""
    return ", ".join(map(str, labels[:_SHOWN])) + (", ..." if len(labels) > _SHOWN else "")


def unlabelled(values: ArrayLike, field: str, points: Sequence[NDArray[np.float64] | None] = (None, None)) -> ArrayLike:
    """The values of a Series, DataFrame or DataArray in the order of the places; anything else as it is.

    points: coordinates of the places of each axis, where they are known: coordinates of a DataArray are compared with
        them. Raises: InputError for labels that name no order, or other places.
    """
    module = type(values).__module__.partition(".")[0]
    if module == "pandas":
        return _of_pandas(values, field)
    if module == "xarray" and hasattr(values, "dims") and hasattr(values, "values"):
        return _of_xarray(values, field, points)
    return values


def _numbers(labels: Sequence[Any]) -> NDArray[np.float64] | None:
    """The labels as numbers; None where one is not a number."""
    try:
        return np.array([float(label) for label in labels])
    except (TypeError, ValueError):
        return None


def _of_pandas(values: Any, field: str) -> ArrayLike:
    names = [getattr(axis, "name", None) for axis in values.axes] if hasattr(values, "axes") else []
    if names == list(_SIDES[::-1]):
        values = values.T
    axes = list(getattr(values, "axes", []))
    array = np.asarray(values)
    for number, (axis, side) in enumerate(zip(axes, _SIDES, strict=False)):
        if axis.nlevels > 1:
            spatial = [name for name in axis.names if name is not None]
            if spatial != sorted(spatial, key=str) or not axis.is_monotonic_increasing:
                message = f"labels of {side}s on several levels do not ascend"
                raise InputError(message, field=field, value=", ".join(map(str, axis.names)), remedy="sort by label")
            continue
        array = np.take(array, place_order(list(axis), field, side), axis=number)
    if len(axes) == 2:
        rows, columns = (list(np.take(np.asarray(axis, object), place_order(list(axis), field, side)))
                         if axis.nlevels == 1 else None for axis, side in zip(axes, _SIDES, strict=True))  # fmt: skip
        refuse_two_orders(rows, columns, field)
    return array


def _of_xarray(values: Any, field: str, points: Sequence[NDArray[np.float64] | None]) -> ArrayLike:
    dims = [str(dim) for dim in values.dims]
    if len(dims) == 2 and dims == list(_SIDES[::-1]):
        values, dims = values.transpose(*_SIDES), list(_SIDES)
    named = [dim for dim in dims if not dim.startswith(_UNNAMED)]
    if named and dims != list(_SIDES[: len(dims)]) and not (len(dims) == 1 and dims[0] in _SIDES):
        message = "has other axes than secret and report"
        raise InputError(message, field=field, value=", ".join(dims), remedy="rename and order them, or pass .values")
    array, labels = np.asarray(values), []
    for number, dim in enumerate(dims):
        known = points[number] if number < len(points) else None
        names = [name for axis in "xyz" if (name := f"{dim}_{axis}") in values.coords]
        order = np.arange(array.shape[number])
        if known is not None and len(names) == known.shape[1] and len(known) == len(order):
            order = _positions(np.column_stack([np.asarray(values.coords[name]) for name in names]), known, field, dim)
        elif dim in values.coords:
            order = place_order(values.coords[dim].values.tolist(), field, dim)
        array = np.take(array, order, axis=number)
        labels.append(values.coords[dim].values[order].tolist() if dim in values.coords else None)
    if len(labels) == 2:
        refuse_two_orders(labels[0], labels[1], field)
    return array


def _positions(given: NDArray[np.float64], places: NDArray[np.float64], field: str, side: str) -> NDArray[np.int64]:
    """The position of every place among given coordinates. Raises: InputError where they are not the same places."""
    order, own = np.lexsort(given.T), np.lexsort(places.T)
    if not np.array_equal(given[order], places[own]):
        message = f"has coordinates of other {side}s than the problem"
        raise InputError(message, field=field, value=f"{side} 0 at {given[0].tolist()}", remedy="pass .values")
    positions = np.empty(len(own), np.int64)
    positions[own] = order
    return positions

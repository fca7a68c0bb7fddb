"""Labels of rows and columns: places are matched by their labels, never by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Indices, Matrix, Points, Vector
from mechdesign.errors import InputError

_TOTALS = {"all", "total", "totals", "sum", "gesamt", "summe", "total général", "totale"}
_FEWEST, _ROUNDED = 3, 1e-3  # labels with a total among them; how far rounding moves a sum
_SHOWN = 4  # labels that an error lists
_SIDES, _AXES = ("secret", "report"), "xyz"
_INDEX = {"index", "id", "secret", "level_0", "unnamed: 0"}  # names in pandas of an index that became a column
_UNNAMED = "dim_"  # prefix in xarray of axes without names


# Labels that number places from 0 or 1 give the order. Ascending numbers and words leave it. Other numbers, duplicates,
# and rows and columns with the same words in two orders are refused.
def place_order(labels: Sequence[Any], field: str, side: str) -> Indices:
    """The positions (n,) of the places 0 to n - 1 among labels."""
    words = [str(label) for label in labels]
    repeated = next((word for word in words if words.count(word) > 1), None) if len(set(words)) < len(words) else None
    if repeated is not None:
        raise InputError(f"two {side}s have one label", field=field, value=repeated)
    # Words and ascending numbers leave the order; other numbers must count the places from 0 or 1.
    numbers = _as_numbers(labels)
    if numbers is None or (np.diff(numbers) > 0).all():
        return np.arange(len(words))
    order = np.argsort(numbers, kind="stable")
    if any(np.array_equal(numbers[order], np.arange(first, first + len(words))) for first in (0, 1)):
        return order
    raise InputError(
        f"labels of {side}s are numbers that do not ascend",
        field=field,
        value=join_labels(words),
        remedy="sort by label, or number the places from 0",
    )


def refuse_two_orders(rows: Sequence[Any] | None, columns: Sequence[Any] | None, field: str) -> None:
    """Refuse rows and columns that have the same labels in two orders."""
    if rows is None or columns is None:
        return
    row_words, column_words = [str(label) for label in rows], [str(label) for label in columns]
    if row_words != column_words and sorted(row_words) == sorted(column_words):
        raise InputError(
            "rows and columns have the same labels in two orders",
            field=field,
            value=f"rows {join_labels(row_words)}; columns {join_labels(column_words)}",
            remedy="write both in the order of the places, with pandas table.loc[labels, labels]",
        )


def words_of_rows(values: object) -> list[str]:
    """The labels of the rows of a Series, DataFrame or DataArray if all are words; else an empty list."""
    index: Any = getattr(values, "indexes", {}).get("secret", getattr(values, "index", None))
    labels = index.tolist() if hasattr(index, "tolist") else []
    return labels if labels and all(isinstance(label, str) for label in labels) else []


def refuse_totals(table: Matrix, labels: Sequence[Any] | None, axis: int, field: str) -> None:
    """Refuse a last row or column that is named a total and is the sum of the others."""
    if labels is None or len(labels) < _FEWEST or str(labels[-1]).strip().lower() not in _TOTALS:
        return
    last = np.take(table, -1, axis=axis)
    if np.allclose(last, table.sum(axis=axis) - last, rtol=_ROUNDED, atol=0):
        line = "row" if axis == 0 else "column"
        raise InputError(
            f"the last {line} is the sum of the others", field=field, value=labels[-1], remedy="leave it out"
        )


def join_labels(labels: Sequence[Any]) -> str:
    """The first labels, with commas."""
    return ", ".join(map(str, labels[:_SHOWN])) + (", ..." if len(labels) > _SHOWN else "")


def values_in_place_order(
    values: ArrayLike,
    field: str,
    *places: Points | None,
    ascending: bool = False,
) -> ArrayLike:
    """The values of a Series, DataFrame or DataArray in the order of the places; other values unchanged."""
    # places: coordinates (n, k) of each axis, where known. ascending: without them, coordinates must ascend.
    module = type(values).__module__.partition(".")[0]
    if module == "pandas" and hasattr(values, "axes"):
        return _of_pandas(values, field)
    if module == "xarray" and hasattr(values, "coords") and hasattr(values, "transpose"):
        return _of_xarray(values, field, places, ascending=ascending)
    return values


def _as_numbers(labels: Sequence[Any]) -> Vector | None:
    try:
        return np.array([float(label) for label in labels])
    except (TypeError, ValueError):
        return None


def _of_pandas(values: Any, field: str) -> ArrayLike:
    # A table with reports as rows, as `.T` makes it, says so by the names of its axes.
    if [axis.name for axis in values.axes] == list(_SIDES[::-1]):
        values = values.T
    index_columns = [
        name for name in getattr(values, "columns", []) if isinstance(name, str) and name.lower() in _INDEX
    ]
    if index_columns:
        message = "has a column that names its rows among its numbers"
        raise InputError(
            message, field=field, value=index_columns[0], remedy=f"pass frame.set_index('{index_columns[0]}')"
        )
    array = np.asarray(values)
    known: list[list[Any] | None] = []
    for number, (axis, side) in enumerate(zip(values.axes, _SIDES, strict=False)):
        if axis.nlevels > 1:
            _refuse_levels(axis, field, side)
            known.append(None)
            continue
        labels = axis.tolist()
        order = place_order(labels, field, side)
        array = np.take(array, order, axis=number)
        known.append([labels[k] for k in order])
    if len(known) == 2:
        refuse_two_orders(known[0], known[1], field)
        if array.dtype.kind in "iuf":
            for axis in (0, 1):
                refuse_totals(array.astype(float), known[axis], axis, field)
    return array


def _refuse_levels(axis: Any, field: str, side: str) -> None:
    """Refuse labels of several levels, such as x and y, that do not ascend as the cells of a grid do."""
    named = [str(name) for name in axis.names if name is not None]
    if named != sorted(named) or not axis.is_monotonic_increasing:
        message = f"labels of {side}s on several levels do not ascend"
        raise InputError(message, field=field, value=", ".join(named), remedy="sort by label, x first")


def _of_xarray(values: Any, field: str, places: Sequence[Points | None], *, ascending: bool) -> ArrayLike:
    dims = [str(dim) for dim in values.dims]
    if len(dims) == 2 and dims == list(_SIDES[::-1]):
        values, dims = values.transpose(*_SIDES), list(_SIDES)
    # Axes such as secret_x and secret_y, or x and y: values over a grid, not rows of secrets.
    spatial = {dim: dim.removeprefix("secret_").removeprefix("report_") for dim in dims}
    if dims and set(spatial.values()) <= set(_AXES) and len(set(spatial.values())) == len(dims):
        return _of_grid(values, spatial, field, places[0] if places else None)
    if dims != list(_SIDES[: len(dims)]) and not (len(dims) == 1 and dims[0] in _SIDES):
        if all(dim.startswith(_UNNAMED) for dim in dims):
            return np.asarray(values)
        message = "has other axes than secret and report"
        raise InputError(message, field=field, value=", ".join(dims), remedy="rename them, or pass .values")
    array, known = np.asarray(values), []
    for number, dim in enumerate(dims):
        points = places[number] if number < len(places) else None
        order = _dim_order(values, dim, field, points, ascending=ascending)
        array = np.take(array, order, axis=number)
        known.append(values.coords[dim].values[order].tolist() if dim in values.coords else None)
    if len(known) == 2:
        refuse_two_orders(known[0], known[1], field)
    return array


def _dim_order(values: Any, dim: str, field: str, places: Points | None, *, ascending: bool) -> Indices:
    """The positions of the places along an axis of secrets or reports: by coordinates, or by labels."""
    names = [name for axis in _AXES if (name := f"{dim}_{axis}") in values.coords]
    coordinates = np.column_stack([np.asarray(values.coords[name], float) for name in names]) if names else None
    if coordinates is not None and places is not None and coordinates.shape == places.shape:
        return _positions_of_places(coordinates, places, field, dim)
    if dim in values.coords:
        return place_order(values.coords[dim].values.tolist(), field, dim)
    if (
        ascending
        and coordinates is not None
        and places is None
        and (np.lexsort(coordinates.T[::-1]) != np.arange(len(coordinates))).any()
    ):
        message = f"has coordinates of {dim}s that do not ascend"
        raise InputError(
            message, field=field, value=f"{names[0]} {join_labels(coordinates[:, 0].tolist())}", remedy="pass .values"
        )
    return np.arange(values.sizes[dim])


def _of_grid(values: Any, spatial: dict[str, str], field: str, places: Points | None) -> ArrayLike:
    order = sorted(spatial, key=lambda dim: spatial[dim])
    values = values.transpose(*order)
    for number, dim in enumerate(order):
        if dim not in values.coords:
            continue
        # Ascending, as the cells of a grid run.
        values = values.sortby(dim)
        if places is not None and number < places.shape[1]:
            axis = np.unique(places[:, number])
            if len(axis) == values.sizes[dim] and not np.array_equal(axis, values.coords[dim].values):
                message = "has coordinates of other places"
                raise InputError(message, field=field, value=f"{dim} {join_labels(values.coords[dim].values.tolist())}")
    return np.asarray(values)


def _positions_of_places(coordinates: Points, places: Points, field: str, side: str) -> Indices:
    order, sorted_places = np.lexsort(coordinates.T), np.lexsort(places.T)
    if not np.array_equal(coordinates[order], places[sorted_places]):
        message = f"has coordinates of other {side}s than the problem"
        raise InputError(message, field=field, value=f"{side} 0 at {coordinates[0].tolist()}", remedy="pass .values")
    positions = np.empty(len(sorted_places), np.int64)
    positions[sorted_places] = order
    return positions

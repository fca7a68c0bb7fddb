"""Places: coordinates of a text file with one place a line."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mechdesign.base.arrays import Points
from mechdesign.base.labels import join_labels
from mechdesign.base.validation import validate_call
from mechdesign.errors import FileFormatError, InputError
from mechdesign.problem.columns import (
    LATITUDE,
    LONGITUDE,
    Columns,
    is_missing,
    matching_columns,
    named_column,
    number_column,
    number_of,
    numbers_in,
)
from mechdesign.problem.matrix_labels import FEWEST, WHOLE
from mechdesign.problem.text import TextFile

PLACE_ROLES = ("x", "y", "z")
_AXES = (("x", "easting", "secretx", "reportx"), ("y", "northing", "secrety", "reporty"), ("z", "secretz", "reportz"))


@validate_call
def read_places(path: str | Path, *, columns: Columns = None) -> Points:
    r"""Coordinates of a text file with one place a line; columns other than x, y and z are ignored.

    Parameters
    ----------
    path, columns : str or Path, mapping of str to str
        The file, and its columns by our names: {"x": "east", "y": "north"}.

    Returns
    -------
    (n, k) array of coordinates, k = 1 to 3, in the unit of the file

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "places.csv"
    ...     _ = path.write_text("id,x,y\n7,0,0\n8,1,2\n")
    ...     md.read.places(path)
    array([[0., 0.],
           [1., 2.]])
    """
    text = TextFile(path, "places")
    words = text.words()
    first = list(words.iloc[0])
    has_header = text.has_short_header or any(
        not _is_number(word, text.decimal) and not is_missing(word) for word in first
    )
    if has_header or columns:
        return _named_places(text, columns)
    places = numbers_in(words.to_numpy(object), text.decimal, text.doubtful, "places")
    if not 1 <= places.shape[1] <= 3:
        raise InputError("coordinates have 1 to 3 columns", field="places", value=f"{places.shape[1]} columns")
    are_integers = all(WHOLE.fullmatch(word) for word in words[0])
    counts_up = are_integers and (np.diff(places[:, 0]) == 1).all() and places[0, 0] in (0, 1) and len(places) >= FEWEST
    are_distinct = are_integers and len(np.unique(places[:, 0])) == len(places)
    # Integers before one or two further columns may be ids as well as coordinates.
    is_index_line = _counts_up(first) and len(first) > 1
    if (
        is_index_line
        or (places.shape[1] == 2 and counts_up)
        or (places.shape[1] == 3 and are_distinct and len(places) > 1)
    ):
        line = "the first line" if is_index_line else "the first column"
        raise InputError(
            f"{line} may be labels or coordinates",
            field="places",
            value=join_labels(first if is_index_line else list(words[0])),
            remedy="write a header: x,y for coordinates, id,x,y where the first column names places",
        )
    return places


def _named_places(text: TextFile, columns: Columns) -> Points:
    frame = text.frame(columns=columns, roles=PLACE_ROLES)
    if frame.empty:
        raise FileFormatError("has a header and no rows", field="places", value=", ".join(frame.columns))
    axes = [names for names in _AXES if matching_columns(frame, names)]
    if not axes and (matching_columns(frame, LATITUDE) or matching_columns(frame, LONGITUDE)):
        raise InputError(
            "are longitudes and latitudes, which are not lengths",
            field="places",
            value=", ".join(frame.columns),
            remedy="project them: md.geo.Plane(latitude=LAT, longitude=LON, unit='m').forward(longitudes, latitudes) "
            "with LAT, LON in the middle gives columns x and y",
        )
    if axes != list(_AXES[: len(axes)]) or not axes:
        if not axes and len(frame.columns) == 1:
            return number_column(frame, (frame.columns[0],), "places")[:, None]
        names = _AXES[0] if not axes else next(names for names in _AXES if names not in axes)
        named_column(frame, names, "places")
    return np.column_stack([number_column(frame, names, "places") for names in axes])


def _counts_up(words: list[str]) -> bool:
    return words == [str(k) for k in range(len(words))]


def _is_number(word: str, decimal: str) -> bool:
    return not np.isnan(number_of(word, decimal, shares=True))

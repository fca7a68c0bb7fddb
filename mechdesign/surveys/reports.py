"""Reports of a collection, counted: a CSV file with a header, a report a line.

| columns (any case) | what a line is |
|---|---|
| report, or cell | the number of the report, from 0 |
| longitude and latitude (lon, lng; lat; also report_longitude, ...) | degrees: the report there, for files on Earth |
| x, y, z as many as there are axes (also report_x, ...) | the report there, in the unit of the file |
| count, beside any of these | how often it was made; 1 without |
| mechanism, beside any of these | SHA-256 of the file that made it, or its first 8 digits or more |

Any other column of numbers is refused, for it may be the count; other columns of words are left aside.

A line "# mechanism: SHA-256" before the header names the file that made them all. Of several forms the first of the
table is read. On a grid a position belongs to the cell around it (its lower borders are its own), elsewhere to the
report that is nearest, no further than half of the least distance between two. Compressed files are read as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import FileFormatError, InputError
from mechdesign.problem.domain import AXES, Domain
from mechdesign.problem.tables import number_column, opening_comments, read_frame, refuse_line

_FEWEST = 8  # digits that name a checksum
_MOST = 2.0**53  # reports: sums of counts are exact below
_NUMBER = ("report", "cell")
_DEGREES = (("longitude", "lon", "lng", "report_longitude"), ("latitude", "lat", "report_latitude"))
_PLANE = tuple((axis, f"report_{axis}") for axis in AXES)
_KNOWN = {"count", "mechanism"}.union(_NUMBER, *_DEGREES, *_PLANE)
_NAMED = re.compile(r"#\s*mechanism:\s*\"?([0-9a-fA-F]+)\"?\s*")


def read_reports(
    path: str | Path, places: Mapping[str, Domain], *, on_note: Callable[[str], None] | None = None
) -> dict[str, NDArray[np.int64]]:
    r"""How often each report was made, by the checksum of the mechanism that made it.

    Parameters
    ----------
    path : str or Path
        A CSV file; see the module docstring for its columns.
    places : mapping of str to Domain
        What the reports of each mechanism are, by its SHA-256: where there are several, the file must say which made
        each report.
    on_note : callable
        Called with a sentence on columns that were left aside.

    Returns
    -------
    dict of str to (m,) int array
        The counts.

    Raises
    ------
    FileFormatError
        For a file that is missing, empty or without such columns.
    InputError
        For a column of numbers that is none of these, and, with the line, for a field that is no number, a report or
        position that the mechanism does not have, a negative or fractional count, another mechanism, and where no
        report is left.

    Notes
    -----
    Cost: 0.2 s a million lines of numbers, 0.5 s of positions; memory of the whole file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "reports.csv"
    ...     _ = path.write_text("report,count\n0,5\n2,1\n")
    ...     md.surveys.read_reports(path, {"a" * 64: md.Domain.nodes(3)})["a" * 64]
    array([5, 0, 1])
    """
    source = Path(path)
    named = [match[1] for line in opening_comments(source, "reports") if (match := _NAMED.fullmatch(line.strip()))]
    frame = read_frame(source, "reports", texts=("mechanism",), encoding_errors="replace")
    columns = _columns(frame, next(iter(places.values())))
    aside = _aside(frame)
    fields = [number_column(frame, (name,), "reports") for name in columns]
    times = np.ones(len(frame))
    if "count" in frame.columns:
        times = number_column(frame, ("count",), "reports")
        odd = ~((times >= 0) & (times == np.floor(times)) & (times <= _MOST))
        refuse_line(odd, frame, ["count"], "reports", "counts are integers, not negative")
    if not 0 < times.sum() <= _MOST:
        raise InputError("must hold from 1 to 2^53 reports", field="reports", value=f"{times.sum():.6g} in {source}")
    maker = _makers(frame, places, named)
    counts = {}
    for k, (name, domain) in enumerate(places.items()):
        lines = np.flatnonzero(maker == k)
        numbers = _places([values[lines] for values in fields], frame.iloc[lines], columns, domain)
        counts[name] = np.bincount(numbers, times[lines], minlength=domain.size).astype(np.int64)
    if aside and on_note is not None:
        on_note(f"{source.name}: left aside the column{'s' * (len(aside) > 1)} {', '.join(aside)}.")
    return counts


def _columns(frame: Any, places: Domain) -> list[str]:
    """The columns that say what was reported."""
    for names in ((_NUMBER,), _DEGREES, _PLANE[: places.dimension]):
        present = [[name for name in spellings if name in frame.columns] for spellings in names]
        if all(present):
            if max(map(len, present)) > 1:
                raise FileFormatError("has two columns of one kind", field="reports", value=", ".join(frame.columns))
            return [name for [name] in present]
    message = "has no column that says what was reported; give report, or x and y, or longitude and latitude"
    raise FileFormatError(message, field="reports", value=", ".join(frame.columns))


def _aside(frame: Any) -> list[str]:
    """The columns that are not read. Raises: InputError where one holds nothing but numbers: it may be the count."""
    import pandas as pd

    aside = [name for name in frame.columns if name not in _KNOWN]
    for name in aside:
        values = frame[name].dropna()
        if len(values) and pd.to_numeric(values, errors="coerce").notna().all():
            message = "has a column of numbers that is not known; is it the count? rename it count; else remove it"
            raise InputError(message, field="reports", value=name)
    return aside


def _makers(frame: Any, places: Mapping[str, Domain], named: list[str]) -> NDArray[np.int64]:
    """Which of the mechanisms made the report of every line."""
    if "mechanism" in frame.columns:
        words = frame["mechanism"].fillna("").str.strip().str.lower()
        numbers = {word: _number(word, places) for word in words.unique()}
        return np.asarray(words.map(numbers), np.int64)
    if named:
        return np.full(len(frame), _number(named[-1].lower(), places))
    if len(places) > 1:
        raise FileFormatError(
            "does not say which mechanism made each report",
            field="reports",
            value=f"{len(places)} mechanisms",
            remedy="add a column mechanism with the first 8 digits or more of the checksum of each file",
        )
    return np.zeros(len(frame), np.int64)


def _number(word: str, places: Mapping[str, Domain]) -> int:
    """The number of the mechanism whose checksum begins with a word."""
    matches = [k for k, name in enumerate(places) if len(word) >= _FEWEST and name.startswith(word)]
    if len(matches) != 1:
        raise InputError(
            "were made by another mechanism",
            field="reports",
            value=f"mechanism {word[:80]}",
            remedy="use the file that made them: its checksum is " + " or ".join(f"{name[:16]}..." for name in places),
        )
    return matches[0]


def _places(fields: list[NDArray[np.float64]], frame: Any, columns: list[str], domain: Domain) -> NDArray[np.int64]:
    """The number of the report (k,) of every line."""
    if columns[0] in _NUMBER:
        (values,) = fields
        odd = ~((values >= 0) & (values < domain.size) & (values == np.floor(values)))
        refuse_line(odd, frame, columns, "reports", f"no such report: use 0 to {domain.size - 1}")
        return values.astype(np.int64)
    key, points = _distinct(fields)
    if columns[0] in _DEGREES[0]:
        if domain.plane is None:
            raise InputError(
                "are in degrees, and the mechanism does not say where on Earth it is",
                field="reports",
                value=", ".join(columns),
                remedy="give cells, or positions in the unit of the file",
            )
        odd = ~((abs(points[:, 0]) <= 180) & (abs(points[:, 1]) <= 90))
        refuse_line(odd[key], frame, columns, "reports", "no longitude and latitude")
        points = domain.plane.forward(points[:, 0], points[:, 1])
    place = _nearest(domain, points)
    refuse_line(place[key] < 0, frame, columns, "reports", "lies in no cell of the file")
    return place[key]


def _distinct(fields: list[NDArray[np.float64]]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Which of the distinct positions every line has, and those (k, axes): reports are few places, many times."""
    import pandas as pd

    key = np.zeros(len(fields[0]), np.int64)
    for values in fields:
        codes, uniques = pd.factorize(values)
        key, _ = pd.factorize(key * (len(uniques) + 1) + codes)
    _, first = np.unique(key, return_index=True)
    return key, np.column_stack([values[first] for values in fields]).reshape(-1, len(fields))


def _nearest(domain: Domain, points: NDArray[np.float64]) -> NDArray[np.int64]:
    """The place of every point (k, axes), -1 where there is none."""
    if domain.shape is None:
        from scipy.spatial import cKDTree

        away, place = cKDTree(domain.points).query(points)
        return np.where(away <= domain.spacing / 2, place, -1).astype(np.int64)
    shape = np.asarray(domain.shape)
    position = (points - np.asarray(domain.origin)) / np.asarray(domain.cell)
    inside = ((position >= 0) & (position <= shape)).all(axis=1)
    index = np.minimum(np.floor(position[inside]).astype(np.int64), shape - 1)
    place = np.full(len(points), -1, np.int64)
    place[inside] = domain.lookup[tuple(index.T)]
    return place

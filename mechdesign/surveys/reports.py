"""Count the reports of a survey from a text file with a header (`problem/text.py`) and one report a line.

| columns (any case) | meaning |
|---|---|
| report, or cell | the number of the report, from 0, or the label of a class |
| longitude and latitude (lon, lng; lat; also report_longitude, ...) | degrees: the report there, for files on Earth |
| x, y, z as many as there are axes (also report_x, ...) | the report there, in the unit of the file |
| count, with any of these | how often it was made; default 1 |
| mechanism, with any of these | SHA-256 of the file that made it, or its first 8 digits or more |

A file with two forms is refused unless `columns` names one. True positions (secret_x, true_lon, home_lat), an index in
the first column and text columns are ignored and listed. Any other numeric column is refused unless `columns` names
the count, because it may be the count.

A line "# mechanism: SHA-256" before the header names the file that made them all. On a grid a position belongs to its
cell (with the lower borders), elsewhere to the nearest report within half the smallest distance of two reports.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.base.arrays import AnyArray, Indices, Points, Vector
from mechdesign.base.labels import join_labels
from mechdesign.base.log import log_note
from mechdesign.errors import FileFormatError, InputError
from mechdesign.problem.columns import (
    INDEX,
    LATITUDE,
    LONGITUDE,
    Columns,
    Names,
    degree_columns,
    is_missing,
    matching_columns,
    named_column,
    number_column,
    number_of,
    plain_name,
    refuse_line,
)
from mechdesign.problem.domain import AXES, Domain
from mechdesign.problem.locate import places_of, refuse_degrees
from mechdesign.problem.text import read_frame

ROLES = ("report", "longitude", "latitude", *AXES, "count", "mechanism")
_FEWEST = 8  # digits of a checksum: two of a hundred files share them with a probability of 1e-6
MOST = 2.0**53  # reports: sums of counts in double precision are exact up to here
NUMBER = ("report", "cell")
DEGREES = (
    (*LONGITUDE, "reportlongitude", "reportlon", "reportlng"),
    (*LATITUDE, "reportlatitude", "reportlat"),
)
_PLANE = tuple((axis, f"report{axis}") for axis in AXES)
COUNT = ("count", "counts")
_NAMED = re.compile(r"#\s*mechanism:\s*\"?([0-9a-fA-F]+)\"?\s*")
_TRUE = re.compile(  # columns of true positions, which must not be read as reports
    r"(true|secret|home|actual|real|orig|origin|original|exact)"
    r"(x|y|z|lat|lon|lng|long|latitude|longitude|cell|place|position|location|id)?"
)


@dataclass(frozen=True, kw_only=True)
class CountedReports:
    """counts (m,) by the checksum of the mechanism; names of the columns read and ignored."""

    counts: dict[str, Indices]
    read: list[str]
    ignored: list[str]

    def words(self, name: str) -> str:
        """A sentence on the columns of the file of this name."""
        rest = ", ".join(column or "the index" for column in self.ignored)
        return f"{name}: read columns {', '.join(self.read)}{f'; ignored {rest}' if rest else ''}."


def read_reports(
    path: str | Path,
    places: Mapping[str, Domain],
    *,
    columns: Columns = None,
    on_note: Callable[[str], None] = log_note,
) -> dict[str, Indices]:
    r"""Count each report, by the checksum of the mechanism that made it.

    Parameters
    ----------
    path : str or Path
        A text file; see the module docstring for its columns.
    places : mapping of str to Domain
        The reports of each mechanism, by its SHA-256. With several, the file must name the mechanism of each report.
    columns : mapping of str to str
        The names of columns in the file, by ours: {"report": "answer", "count": "n"}.
    on_note : callable
        Called with a sentence on the columns that were read and ignored.

    Returns
    -------
    dict of str to (m,) int array
        The counts.

    Notes
    -----
    Cost: 0.5 s a million lines of numbers, 0.5 s of positions; memory of the whole file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "reports.csv"
    ...     _ = path.write_text("report,count\n0,5\n2,1\n")
    ...     md.surveys.read_reports(path, {"a" * 64: md.Domain.nodes(3)})["a" * 64]
    array([5, 0, 1])
    """
    counted = count_reports(path, places, columns=columns)
    on_note(counted.words(Path(path).name))
    return counted.counts


def count_reports(path: str | Path, places: Mapping[str, Domain], *, columns: Columns = None) -> CountedReports:
    """The counts of `read_reports` and the columns that they come from."""
    source = Path(path)
    are_classes = any(domain.labels is not None for domain in places.values())
    texts = ("mechanism", *(NUMBER if are_classes else ()))
    frame = read_frame(
        source, "reports", texts=texts, columns=columns, roles=ROLES, whole=COUNT, encoding_errors="replace"
    )
    named = [match[1] for line in frame.attrs["comments"] if (match := _NAMED.fullmatch(line.strip()))]
    form = report_form(frame, next(iter(places.values())))
    positions = [named_column(frame, names, "reports") for names in form]
    count, maker_column = _column(frame, COUNT), _column(frame, ("mechanism",))
    read = [*positions, *(name for name in (count, maker_column) if name is not None)]
    ignored = ignored_columns(frame, read, count)
    fields = report_fields(frame, form, positions, are_classes=are_classes)
    times = np.ones(len(frame))
    if count is not None:
        times = number_column(frame, COUNT, "reports", whole=True)
        invalid = ~((times >= 0) & (times == np.floor(times)) & (times <= MOST))
        refuse_line(invalid, frame, [count], "reports", "counts must be non-negative integers")
    if not 0 < times.sum() <= MOST:
        raise InputError("must hold from 1 to 2^53 reports", field="reports", value=f"{times.sum():.6g} in {source}")
    maker = _mechanism_index(frame, places, named, maker_column)
    counts = {}
    # Each mechanism numbers its own reports: a position is located among those of its mechanism.
    for k, (name, domain) in enumerate(places.items()):
        lines = np.flatnonzero(maker == k)
        numbers = report_numbers([values[lines] for values in fields], frame.iloc[lines], positions, form, domain)
        counts[name] = np.bincount(numbers, times[lines], minlength=domain.size).astype(np.int64)
    return CountedReports(counts=counts, read=read, ignored=ignored)


def _column(frame: Any, names: Names) -> str | None:
    """The column of these names, or None. Refuses two."""
    return named_column(frame, names, "reports") if matching_columns(frame, names) else None


def report_form(frame: Any, places: Domain) -> tuple[Names, ...]:
    """The names of the columns of reports. Refuses a file without them, or with two forms."""
    forms: list[tuple[Names, ...]] = [(NUMBER,), DEGREES, _PLANE[: max(places.dimension, 2)]]
    roles = frame.attrs["columns"]
    named = [form for form in forms if any(names[0].rstrip("*") in roles for names in form)]
    present = [form for form in named or forms if any(matching_columns(frame, names) for names in form)]
    if len(present) > 1:
        several = [column for form in present for names in form for column in matching_columns(frame, names)]
        raise FileFormatError(
            "has two forms of a report",
            field="reports",
            value=", ".join(several),
            remedy=f"name the columns of one: columns={{'{present[0][0][0].rstrip('*')}': '{several[0]}'}}",
        )
    for form in present:
        needed = _PLANE[: places.dimension] if form[0] == _PLANE[0] else form
        # With one axis a column y is refused, not ignored: the file may be that of another survey.
        if all(matching_columns(frame, names) for names in needed):
            if len(form) > len(needed) and matching_columns(frame, form[-1]):
                value = ", ".join(frame.columns)
                raise FileFormatError("has x and y, but reports have one axis", field="reports", value=value)
            return tuple(needed)
    message = "has no column of reports; give report, or x and y, or longitude and latitude"
    raise FileFormatError(message, field="reports", value=", ".join(frame.columns))


def ignored_columns(frame: Any, read: list[str], count: str | None) -> list[str]:
    """The ignored columns. Refuses a numeric one, which may be the count."""
    import pandas as pd

    ignored = [name for name in frame.columns if name not in read]
    for name in ignored:
        key = plain_name(name)
        index = name == frame.columns[0] and key in INDEX
        altitude = key in ("z", "reportz")
        if index or altitude or _TRUE.fullmatch(key) or "count" in frame.attrs["columns"]:
            continue
        # A column of counts under another name, if ignored, would count every line once without a word.
        words = frame[name].dropna()
        values = words[~words.astype(str).map(is_missing)]
        if len(values) and pd.to_numeric(values, errors="coerce").notna().all():
            if count is None:
                message = "has an unknown numeric column; rename it to count, or drop it"
                raise InputError(message, field="reports", value=name, remedy=f"or pass columns={{'count': '{name}'}}")
            message = "has two numeric columns, either of which may be the count"
            value, remedy = f"{count}, {name}", f"pass columns={{'count': '{count}'}}, or remove the other"
            raise InputError(message, field="reports", value=value, remedy=remedy)
    return ignored


def _mechanism_index(frame: Any, places: Mapping[str, Domain], named: list[str], column: str | None) -> Indices:
    if column is not None:
        words = frame[column].fillna("").str.strip().str.lower()
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


def _classes(words: AnyArray, frame: Any, columns: list[str], domain: Domain) -> Indices:
    """The numbers of reports (k,) by their labels or numbers."""
    labels = domain.labels or ()
    known = {label: k for k, label in enumerate(labels)}
    # No label is the number of another class (problem/classes.py).
    known |= {str(k): k for k in range(domain.size)}
    numbers = np.array([known.get(word, -1) for word in words.tolist()], np.int64)
    refuse_line(numbers < 0, frame, columns, "reports", f"no such class: use {join_labels(labels)}")
    return numbers


def report_fields(frame: Any, form: tuple[Names, ...], positions: list[str], *, are_classes: bool) -> list[Any]:
    """The columns (k,) of a form as numbers, or as words where reports are classes with labels."""
    if form == (NUMBER,) and are_classes:
        return [frame[positions[0]].fillna("").astype(str).str.strip().to_numpy(object)]
    if form == DEGREES:
        return list(degree_columns(frame, form, "reports").T)
    return [number_column(frame, names, "reports") for names in form]


def report_numbers(
    fields: list[Any], frame: Any, columns: list[str], form: tuple[Names, ...], domain: Domain
) -> Indices:
    """The numbers (k,) of reports in columns of one form. Refuses a line whose report lies in no place."""
    if form == (NUMBER,):
        (values,) = fields
        if values.dtype == object:
            if domain.labels is not None:
                return _classes(values, frame, columns, domain)
            values = np.array([number_of(word, ".") for word in values.tolist()])
        invalid = ~((values >= 0) & (values < domain.size) & (values == np.floor(values)))
        refuse_line(invalid, frame, columns, "reports", f"no such report: use 0 to {domain.size - 1}")
        return values.astype(np.int64)
    key, points = _distinct(fields)
    if form == DEGREES:
        if domain.plane is None:
            raise InputError(
                "are in degrees, but the mechanism has no position on Earth",
                field="reports",
                value=", ".join(columns),
                remedy="give cells, or positions in the unit of the file",
            )
        points = domain.plane.forward(points[:, 0], points[:, 1])
    else:
        _refuse_degrees(domain, points, columns)
    place = places_of(domain, points)
    nouns = "places" if domain.cell is None else "cells"
    refuse_line(place[key] < 0, frame, columns, "reports", f"lies outside all {nouns} of the mechanism")
    return place[key]


def _refuse_degrees(domain: Domain, points: Points, columns: list[str]) -> None:
    try:
        refuse_degrees(domain, points)
    except InputError as error:
        # The remedy names the columns in the order in which they hold longitude and latitude.
        north_first = "latitude and longitude" in error.message
        names = columns[::-1] if north_first else columns
        raise InputError(
            error.message,
            field="reports",
            value=error.value,
            remedy=f"pass columns={{'longitude': '{names[0]}', 'latitude': '{names[1]}'}}",
        ) from error


def _distinct(fields: list[Vector]) -> tuple[Indices, Points]:
    """The index of each line into the distinct positions, and these (k, axes)."""
    import pandas as pd

    # Reports repeat few places many times: locating only distinct ones saves most of the time of a large file.
    key = np.zeros(len(fields[0]), np.int64)
    for values in fields:
        # One number for each tuple of codes; factorized again on every axis, so that it stays below lines squared.
        codes, uniques = pd.factorize(values)
        key, _ = pd.factorize(key * (len(uniques) + 1) + codes)
    _, first = np.unique(key, return_index=True)
    return key, np.column_stack([values[first] for values in fields]).reshape(-1, len(fields))

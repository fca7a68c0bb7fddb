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

import csv
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.memory import within_memory
from mechdesign.base.opening import open_lines
from mechdesign.errors import FileFormatError, InputError
from mechdesign.setting.space.domain import AXES, Domain

_LINES = 1 << 20  # at a time
_LONGEST = 1 << 12  # bytes of a line
_FEWEST = 8  # digits that name a checksum
_MOST = 2.0**53  # reports: sums of counts are exact below
_NUMBER = ("report", "cell")
_DEGREES = (
    ("longitude", "lon", "lng", "report_longitude"),
    ("latitude", "lat", "report_latitude"),
)
_PLACED = {f"{before}{axis}" for before in ("", "report_") for axis in AXES}
_NAMED = re.compile(r"#\s*mechanism:\s*\"?([0-9a-fA-F]+)\"?\s*")
_REMEDY = "give a CSV file with a header: report, or x and y, or longitude and latitude"


@dataclass(frozen=True, kw_only=True)
class _Form:
    """How the lines of a file are read: kind, "report", "degrees" or "plane"; columns, the numbers of the fields that
    say where; count and mechanism, those fields, None where there are none; aside, names of columns that are not read,
    by number.
    """

    kind: str
    columns: tuple[int, ...]
    count: int | None
    mechanism: int | None
    aside: dict[int, str]


def read_reports(
    path: str | Path, places: Mapping[str, Domain], *, on_note: Callable[[str], None] | None = None
) -> dict[str, NDArray[np.int64]]:
    """How often each report was made (m,), by the checksum of the mechanism that made it; see the module docstring.

    Parameters: places, what the reports of each mechanism are, by its SHA-256: where there are several, the file must
        say which made each report; on_note, called with a sentence on columns that were left aside.
    Raises: FileFormatError for a file that is missing, empty, without such columns or with a field that is no number;
        InputError for a column of numbers that is none of these, and, with the line, for an empty field or nan, a
        report or position that the mechanism does not have, a negative or fractional count, another mechanism, and
        where no report is left.
    Cost: 0.2 s a million lines of numbers, 0.5 s of positions; memory of a million lines.
    """
    source = Path(path)
    counts = {name: np.zeros(domain.size, np.int64) for name, domain in places.items()}
    try:
        with (
            within_memory("reports", source),
            open_lines(source, field="reports", remedy=_REMEDY, longest=_LONGEST) as stream,
        ):
            named, header, line = _opening(stream)
            form = _form(header, next(iter(places.values())))
            everyone = None if named is None else _known(named, places, "line 1")
            if form.mechanism is None and everyone is None:
                everyone = _only(places)
            for first, lines in _chunks(stream, header, form, line):
                if first == line:
                    _check_aside(lines, form)
                _count(lines, first, form, places, everyone, counts)
    except (ValueError, OSError, EOFError) as error:
        raise FileFormatError(f"cannot be read ({error})", field="reports", value=source, remedy=_REMEDY) from error
    if not any(made.any() for made in counts.values()):
        raise InputError("holds no report", field="reports", value=source, remedy="give at least one line")
    if form.aside and on_note is not None:
        on_note(f"{source.name}: left aside the column{'s' * (len(form.aside) > 1)} {', '.join(form.aside.values())}.")
    return counts


def _opening(stream: IO[bytes]) -> tuple[str | None, list[str], int]:
    """What a comment says of the mechanism, the names of the columns, and the number of the first line below them."""
    named, line = None, 1
    while (text := stream.readline().decode("utf-8-sig", "replace").strip()).startswith("#"):
        found = _NAMED.fullmatch(text)
        named, line = (found[1] if found else named), line + 1
    if not text:
        raise ValueError("no header")
    return named, [name.strip().lower() for name in next(csv.reader([text]))], line + 1


def _form(header: list[str], places: Domain) -> _Form:
    def one(names: tuple[str, ...]) -> int | None:
        found = [k for k, name in enumerate(header) if name in names]
        if len(found) > 1:
            raise FileFormatError(
                "has two columns of one kind", field="reports", value=", ".join(header), remedy="keep one of them"
            )
        return found[0] if found else None

    axes = AXES[: places.dimension]
    forms = {
        "report": (one(_NUMBER),),
        "degrees": tuple(one(names) for names in _DEGREES),
        "plane": tuple(one((axis, f"report_{axis}")) for axis in axes),
    }
    for kind, columns in forms.items():
        if None not in columns:
            found = tuple(k for k in columns if k is not None)
            count, mechanism = one(("count",)), one(("mechanism",))
            known = {*_NUMBER, *_DEGREES[0], *_DEGREES[1], *_PLACED, "count", "mechanism"}
            aside = {k: name for k, name in enumerate(header) if name not in known}
            return _Form(kind=kind, columns=found, count=count, mechanism=mechanism, aside=aside)
    raise FileFormatError(
        "has no column that says what was reported", field="reports", value=", ".join(header), remedy=_REMEDY
    )


def _chunks(stream: IO[bytes], header: list[str], form: _Form, line: int) -> Any:
    """Data frames of at most `_LINES` lines with the number of the first line of each."""
    import pandas as pd

    used = [*form.columns, *(k for k in (form.count, form.mechanism) if k is not None)]
    types: dict[int, Any] = {k: float for k in used} | {k: str for k in form.aside}
    if form.mechanism is not None:
        types[form.mechanism] = "category"
    try:
        with pd.read_csv(
            stream,
            header=None,
            names=list(range(len(header))),
            usecols=[*used, *form.aside],
            dtype=types,
            chunksize=_LINES,
            skip_blank_lines=False,
            skipinitialspace=True,
            index_col=False,
            encoding_errors="replace",
        ) as reader:
            for lines in reader:
                yield line, lines
                line += len(lines)
    except pd.errors.EmptyDataError:
        return


def _check_aside(lines: Any, form: _Form) -> None:
    """Raises: InputError where a column that is not read holds nothing but numbers: it may be the count."""
    import pandas as pd

    for k, name in form.aside.items():
        held = lines[k].dropna()
        if len(held) and pd.to_numeric(held, errors="coerce").notna().all():
            raise InputError(
                "has a column of numbers that is not known",
                field="reports",
                value=name or f"column {k + 1} without a name",
                remedy="is it the count? rename it count; else remove it",
            )


def _count(
    lines: Any,
    first: int,
    form: _Form,
    places: Mapping[str, Domain],
    everyone: str | None,
    counts: dict[str, NDArray[np.int64]],
) -> None:
    """Add the reports of some lines to `counts`."""
    fields = [lines[k].to_numpy(float) for k in form.columns]
    for values in fields:
        _refuse(~np.isfinite(values), values, first, "is empty or not finite", "give a number in every line")
    times = None if form.count is None else lines[form.count].to_numpy(float)
    if times is not None:
        odd = ~((times >= 0) & (times == np.floor(times)) & (times <= _MOST))
        _refuse(odd, times, first, "counts are whole numbers, not negative", "give how often each report was made")
    own: NDArray[np.int64] | None = None
    if everyone is None:
        column = lines[form.mechanism]
        if column.isna().any():
            _refuse(column.isna().to_numpy(), column.to_numpy(), first, "names no mechanism", "name one in every line")
        names = list(places)
        known = [names.index(_known(str(word), places, f"lines from {first} on")) for word in column.cat.categories]
        own = np.array(known, np.int64)[column.cat.codes.to_numpy()]
    for k, (name, domain) in enumerate(places.items()):
        if own is None and name != everyone:
            continue
        taken = slice(None) if own is None else np.flatnonzero(own == k)
        lines_of = np.arange(first, first + len(lines))[taken] if own is not None else first
        found = _places([values[taken] for values in fields], form.kind, domain, lines_of)
        weights = None if times is None else times[taken]
        added = counts[name] + np.bincount(found, weights, minlength=domain.size)
        if not added.sum() <= _MOST:
            raise InputError(
                "are too many to count", field="reports", value=f"{added.sum():.3g}", remedy="give fewer than 2^53"
            )
        counts[name] = added.astype(np.int64)


def _places(
    fields: list[NDArray[np.float64]], kind: str, domain: Domain, lines: NDArray[np.int64] | int
) -> NDArray[np.int64]:
    """The number of the report (k,) of every line."""
    if kind == "report":
        (values,) = fields
        odd = ~((values >= 0) & (values < domain.size) & (values == np.floor(values)))
        _refuse(odd, values, lines, "no such report", f"use whole numbers from 0 to {domain.size - 1}")
        return values.astype(np.int64)
    if kind == "degrees" and domain.plane is None:
        raise InputError(
            "are in degrees, and the mechanism does not say where on Earth it is",
            field="reports",
            value="longitude, latitude",
            remedy="give cells, or positions in the unit of the file",
        )
    key, distinct = _distinct(fields)
    if kind == "degrees":
        assert domain.plane is not None
        odd = ~((abs(distinct[:, 0]) <= 180) & (abs(distinct[:, 1]) <= 90))
        _refuse(odd[key], fields[0], lines, "no longitude and latitude", "give degrees east and degrees north")
        points = domain.plane.forward(distinct[:, 0], distinct[:, 1])
    else:
        points = distinct
    found = _nearest(domain, points)
    _refuse(found[key] < 0, distinct[key] if (found < 0).any() else fields[0], lines, "lies in no cell of the file",
            "use the mechanism that made the reports")  # fmt: skip
    return found[key]


def _distinct(fields: list[NDArray[np.float64]]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The distinct positions (k, axes), and which of them every line has: reports are few places, many times."""
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


def _known(word: str, places: Mapping[str, Domain], where: str) -> str:
    """The checksum that a word names."""
    found = [name for name in places if len(word) >= _FEWEST and name.startswith(word.strip().lower())]
    if len(found) != 1:
        raise InputError(
            "were made by another mechanism",
            field="reports",
            value=f"mechanism {word[:80]}, {where}",
            remedy="use the file that made them: its checksum is " + " or ".join(f"{name[:16]}..." for name in places),
        )
    return found[0]


def _only(places: Mapping[str, Domain]) -> str:
    if len(places) > 1:
        raise FileFormatError(
            "does not say which mechanism made each report",
            field="reports",
            value=f"{len(places)} mechanisms",
            remedy="add a column mechanism with the first 8 digits or more of the checksum of each file",
        )
    return next(iter(places))


def _refuse(
    odd: NDArray[np.bool_], values: NDArray[Any], lines: NDArray[np.int64] | int, message: str, remedy: str
) -> None:
    """Raise an InputError that names the first odd line, where there is one."""
    if not odd.any():
        return
    at = int(np.argmax(odd))
    line = lines + at if isinstance(lines, int) else int(lines[at])
    shown = " ".join(f"{x:.9g}" if isinstance(x, float) else str(x) for x in np.atleast_1d(values[at]).tolist())
    raise InputError(message, field="reports", value=f"{shown}, line {line} ({int(odd.sum())} such)", remedy=remedy)

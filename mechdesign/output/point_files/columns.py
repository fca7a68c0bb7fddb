"""The columns of a file of points: the one that holds the place, those that are kept, and those that are left out.

A place is longitude and latitude, or x, y, z in the unit of the mechanism, or the number of a secret. Columns that look
like a position, its height or its address are left out of a file of reports: beside them a report protects nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechdesign.base.arrays import Indices, Points
from mechdesign.errors import FileFormatError, InputError
from mechdesign.mechanism.collection import Collection, Located
from mechdesign.output.point_files.parts import Part
from mechdesign.problem.columns import (
    EASTING,
    LATITUDE,
    LONGITUDE,
    NORTHING,
    Columns,
    Names,
    columns_named,
    doubtful_number,
    is_missing,
    numbers_of,
    plain_name,
)

FIELD = "points"
ROLES = ("longitude", "latitude", "x", "y", "z", "secret")
_SECRET: Names = ("secret", "cell", "label")
_DEGREES = (LONGITUDE, LATITUDE)
_AXES = (EASTING, NORTHING, ("z",))
_PARTS = (  # of a name without case, spaces and punctuation
    *("latitude", "longitude", "easting", "northing", "geometry", "geometrie", "wkt", "wkb", "geohash", "geojson"),
    *("coordinates", "koordinaten", "address", "adresse", "postcode", "postalcode", "zipcode", "altitude", "elevation"),
    *("what3words", "pluscode", "gridref"),
)
_WHOLE = ("geom", "thegeom", "shape", "ele", "alt", "height", "street", "zip", "plz")
_AXIS = ("x", "y", "z", "lat", "lon", "lng", "long", "cell", "place", "position", "location")
_TRUE = ("true", "secret", "home", "actual", "real", "orig", "origin", "original", "exact")
_POSITION = re.compile(
    "|".join(_PARTS) + f"|^({'|'.join(_WHOLE)})$|^h3|^({'|'.join(_TRUE)})?({'|'.join(_AXIS)})$|^({'|'.join(_TRUE)})$"
)


@dataclass(frozen=True, kw_only=True)
class PlaceColumns:
    """How a file holds its places: its columns of the place, of the person, kept, and left out."""

    # form: "geometry", "degrees", "axes" or "secret".

    form: str
    place: list[str]
    person: str | None
    kept: list[str]
    left_out: list[str]


def place_columns(
    part: Part, collection: Collection, *, columns: Columns = None, person: str | None = None, keep: Sequence[str] = ()
) -> PlaceColumns:
    """Find the columns of a file by their usual names; `columns` names others, `keep` positions that stay."""
    names = [str(name) for name in part.frame.columns]
    for wanted, field in [*((name, "id") for name in [person] if name), *((name, "keep") for name in keep)]:
        if wanted not in names:
            raise InputError("is not a column of the file", field=field, value=wanted, remedy=", ".join(names))
    chosen = {ours: _column_of(names, theirs, ours) for ours, theirs in (columns or {}).items()}
    others = [name for name in names if name not in (person, *keep)]
    form, place = "geometry", list[str]()
    if part.degrees is None:
        form, place = _form(others, chosen, collection)
        if form == "secret" and plain_name(place[0]) == "cell" and not chosen:
            _refuse_reported_cells(place[0], collection)
    looks_like = {name for name in others if _is_position(name)}
    left_out = [name for name in others if name in looks_like or name in place]
    kept = [name for name in names if name not in left_out]
    return PlaceColumns(form=form, place=place, person=person, kept=kept, left_out=left_out)


def _column_of(names: Sequence[str], theirs: str, ours: str) -> str:
    matches = [name for name in names if name.strip().lower() == theirs.strip().lower()]
    if not matches:
        message = f"has no column named {theirs}, which was given for {ours}"
        raise FileFormatError(message, field=FIELD, value=", ".join(names))
    return matches[0]


def _is_position(name: str) -> bool:
    plain = plain_name(name)
    return bool(_POSITION.search(plain)) or any(
        columns_named([name], {}, spellings) for spellings in (LONGITUDE, LATITUDE, EASTING, NORTHING)
    )


def _form(names: list[str], chosen: dict[str, str], collection: Collection) -> tuple[str, list[str]]:
    axes = _AXES[: collection.domain.dimension]
    forms: dict[str, tuple[Names, ...]] = {"degrees": _DEGREES, "axes": axes, "secret": (_SECRET,)}
    named = {
        form: spellings for form, spellings in forms.items() if any(one[0].rstrip("*") in chosen for one in spellings)
    }
    found = {
        form: [columns_named(names, chosen, one) for one in spellings] for form, spellings in (named or forms).items()
    }
    complete = {form: columns for form, columns in found.items() if all(columns)}
    if len(complete) != 1 or any(len(columns) > 1 for columns in next(iter(complete.values()))):
        several = [name for columns in complete.values() for names in columns for name in names]
        message = "has several columns for the place" if complete else "has no column for the place"
        remedy = "name them: columns={'longitude': 'NAME', 'latitude': 'NAME'}, or x and y, or secret"
        raise FileFormatError(message, field=FIELD, value=", ".join(several or names), remedy=remedy)
    form, columns = next(iter(complete.items()))
    return form, [matches[0] for matches in columns]


def _refuse_reported_cells(name: str, collection: Collection) -> None:
    """Refuse numbers of cells where reports and layers number other cells than the secrets."""
    if not np.array_equal(collection.source.report_points, collection.domain.points):
        message = "is ambiguous: reports and layers number cells, and the secrets of this mechanism are others"
        remedy = f"give positions, or name numbers of secrets: columns={{'secret': '{name}'}}"
        raise InputError(message, field=FIELD, value=name, remedy=remedy)


def locate(part: Part, columns: PlaceColumns, collection: Collection) -> Located:
    """The places of the rows of a part; a row without a position is in none."""
    if part.degrees is not None:
        return collection.locate_degrees(part.degrees)
    labels = collection.domain.labels
    if columns.form == "secret" and labels is not None:
        # No label is the number of another class (problem/classes.py).
        known = {str(k): k for k in range(len(labels))} | {label: k for k, label in enumerate(labels)}
        words = part.frame[columns.place[0]].astype(str).str.strip()
        return collection.locate_secrets(words.map(known).to_numpy(float, na_value=np.nan))
    numbers = np.column_stack([_numbers(part, name, columns.form) for name in columns.place])
    if columns.form == "degrees":
        _refuse_lengths(numbers, part)
        return collection.locate_degrees(numbers)
    if columns.form == "secret":
        return collection.locate_secrets(numbers[:, 0])
    try:
        return collection.locate(numbers)
    except InputError as error:
        # Its message has a position, which a log must not hold.
        names = dict(zip(("longitude", "latitude"), columns.place, strict=False))
        message = f"are in degrees, and the map is in {collection.domain.unit}"
        remedy = f"name them: columns={names}"
        raise InputError(message, field=FIELD, value=", ".join(columns.place), remedy=remedy) from error


def are_exchanged(part: Part, columns: PlaceColumns, collection: Collection, rows: Indices) -> bool:
    """True if these rows, which are in no cell, would all be with longitude and latitude exchanged."""
    if part.degrees is None and columns.form != "degrees":
        return False
    degrees = part.degrees
    if degrees is None:
        degrees = np.column_stack([_numbers(part, name, columns.form) for name in columns.place])
    exchanged = degrees[rows][:, ::-1]
    if not (np.abs(exchanged[:, 1]) <= 90).all():
        return False
    return bool(collection.locate_degrees(exchanged).is_inside.all())


def _numbers(part: Part, name: str, form: str) -> Any:
    """The numbers of a column, nan where a value is missing; any other word is refused."""
    words = part.frame[name]
    if words.dtype.kind in "iuf":
        return words.to_numpy(dtype=float, na_value=np.nan)
    numbers = numbers_of(words, part.decimal)
    for k in np.flatnonzero(~np.isfinite(numbers)).tolist():
        word = words.iloc[k]
        if isinstance(word, str) and not is_missing(word):
            # Without the word, which may be a position such as 12°29'E.
            raise InputError(f"{name} must be a number", field=FIELD, value=f"row {part.first + k}")
    # Degrees cannot exceed 1,000, so that a mark in them separates decimals.
    if part.doubtful is not None and form != "degrees":
        raise doubtful_number(part.doubtful, FIELD)
    return numbers


def _refuse_lengths(degrees: Points, part: Part) -> None:
    with np.errstate(invalid="ignore"):
        wrong = (np.abs(degrees[:, 0]) > 180) | (np.abs(degrees[:, 1]) > 90)
    if wrong.any():
        row = int(np.argmax(wrong))
        message = "must be a longitude within 180 and a latitude within 90 degrees"
        raise InputError(message, field=FIELD, value=f"row {part.first + row}")

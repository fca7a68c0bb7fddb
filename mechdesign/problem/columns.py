"""Columns of a text file by their usual names in any case, and the numbers in them; ambiguous ones are refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from mechdesign.base.arrays import AnyArray, Floats, Mask, Matrix, Points
from mechdesign.errors import FileFormatError, InputError
from mechdesign.problem.plane import wrap_degrees

Names = tuple[str, ...]
Columns = Mapping[str, str] | None  # the column of a file by the name that this package gives it

# Usual names without case, spaces and punctuation; a star stands for a year: POP20, pop_2020, POP100.
LATITUDE: Names = ("latitude*", "lat*", "decimallatitude", "intptlat*", "centlat*")
LONGITUDE: Names = (
    "longitude*", "lng*", "lon*", "long*", "decimallongitude", "intptlon*", "intptlong*", "intptlng*", "centlon*"
)  # fmt: skip
EASTING: Names = ("x", "easting*", "eastings", "oseast1m")
NORTHING: Names = ("y", "northing*", "northings", "osnrth1m")
POPULATION: Names = (
    "population*", "people*", "pop*", "persons*", "inhabitants*", "residents*", "totpop*", "poptotal*", "totalpop*",
    "totalpopulation*",
)  # fmt: skip
INDEX = {"", "index", "id", "ids", "row", "rows", "rowname", "rownames", "unnamed0", "nr", "fid", "ogcfid", "objectid"}

_YEAR = re.compile(r"((19|20)\d\d|100|[12]0)$")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}([ '\u2019\u00a0\u202f_.,]\d{3})+([.,]\d+)?")
GROUPED = re.compile(r"(?<![\d.,])[1-9]\d{0,2}[.,]\d{3}(?![\d.,])")  # decimals, or one thousand and more
_MISSING = {
    "", "-", "--", "\u2013", "\u2014", "na", "n/a", "n.a.", "#n/a", "nan", "null", "none", "nil", ".", "..", "...", "*",
    "**", ":", "x", "c", "s", "d", "(d)", "missing", "suppressed",
}  # fmt: skip
# Small counts that statistical offices hide, such as "<5".
_SUPPRESSED = re.compile(r"[<>≤≥]\s*\d.*")


def plain_name(name: str) -> str:
    """A name without case, spaces and punctuation."""
    return "".join(c for c in name.lower() if c.isalnum())


def matching_columns(frame: Any, names: Names) -> list[str]:
    """The columns that one of these names may mean; * ends names that a year may follow."""
    return columns_named(list(frame.columns), frame.attrs.get("columns", {}), names)


def columns_named(columns: list[str], chosen: Mapping[str, str], names: Names) -> list[str]:
    """The columns that one of these names may mean; chosen: columns by our names, which decide."""
    role = names[0].rstrip("*")
    if role in chosen:
        return [chosen[role]]
    # A year may follow a dated name: pop2020 is pop, and lat is not lat2.
    exact = {plain_name(name) for name in names}
    dated = {plain_name(name) for name in names if name.endswith("*")}
    keys = {name: plain_name(name) for name in columns if name not in chosen.values()}
    return [name for name, key in keys.items() if key and (key in exact or _YEAR.sub("", key) in dated)]


def named_column(frame: Any, names: Names, field: str) -> str:
    """The column that one of these names means."""
    matches = matching_columns(frame, names)
    role = names[0].rstrip("*")
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise FileFormatError(
            f"has {len(matches)} columns that may be the {role}",
            field=field,
            value=", ".join(matches),
            remedy=f"name one: columns={{'{role}': '{matches[0]}'}}",
        )
    wanted = " or ".join(name.rstrip("*") for name in names[:2])
    shown = ", ".join(name for name in frame.columns)
    remedy = f"name it: columns={{'{role}': 'NAME'}}"
    raise FileFormatError(f"has no column named {wanted}", field=field, value=shown, remedy=remedy)


def number_column(frame: Any, names: Names, field: str, *, shares: bool = False, whole: bool = False) -> Matrix:
    """The numbers (k,) of a column, or percentages if `shares`; if `whole`, 1.000 may be a thousand."""
    name = named_column(frame, names, field)
    values = numbers_of(frame[name], frame.attrs.get("decimal", "."), shares=shares)
    invalid = np.flatnonzero(~np.isfinite(values))
    if len(invalid):
        value, line = frame[name].iloc[invalid[0]], frame.index[invalid[0]]
        word = "" if value != value else str(value)  # a field that a short line lacks
        more = f", and {len(invalid) - 1} more" if len(invalid) > 1 else ""
        shown = f"{word.strip() or 'nothing'} in line {line}{more}"
        raise InputError(
            f"{name} must be a finite number", field=field, value=shown, remedy=advice(word, shares=shares)
        )
    # Counts have no decimals: 1.000 in all marked fields is a thousand or a count of 1.
    if whole and frame[name].dtype.kind not in "iuf":
        marked = frame[name].astype(str).str.strip()
        marked = marked[marked.str.contains(r"[.,]")]
        if len(marked) and marked.map(lambda word: GROUPED.fullmatch(word) is not None).all():
            raise doubtful_number(marked.iloc[0], field)
    doubtful = frame.attrs.get("doubtful")
    # Degrees cannot exceed 1,000, so that a mark in them separates decimals.
    if doubtful is not None and names not in (LATITUDE, LONGITUDE):
        words = frame[name]
        if words.dtype.kind == "f" or (words.dtype.kind not in "iu" and words.astype(str).str.contains(r"[.,]").any()):
            raise doubtful_number(doubtful, field)
    return values


def degree_columns(frame: Any, names: tuple[Names, ...], field: str) -> Points:
    """Longitudes in [-180, 180) and latitudes (k, 2) of the columns with these names."""
    longitude, latitude = (number_column(frame, spellings, field) for spellings in names)
    is_invalid = ~((np.abs(longitude) <= 360) & (np.abs(latitude) <= 90))
    is_exchanged = bool((np.abs(longitude) <= 90).all() and (np.abs(latitude) <= 360).all())
    reason = "the two seem to be exchanged" if is_exchanged else "give degrees, not projected metres"
    message = f"must be a longitude within 360 and a latitude within 90 degrees; {reason}"
    refuse_line(is_invalid, frame, [named_column(frame, spellings, field) for spellings in names], field, message)
    return np.column_stack([wrap_degrees(longitude), latitude])


def doubtful_number(word: str, field: str) -> InputError:
    """The error for a number whose mark may separate decimals or thousands."""
    other = re.sub(r"\D", "", word)
    message = f"may be {word.replace(',', '.')} or {other}: the mark in it may separate decimals or thousands"
    return InputError(message, field=field, value=word, remedy="write decimal points and commas between columns")


def numbers_of(words: Any, decimal: str, *, shares: bool = False) -> Floats:
    """The numbers of a column, nan where a field is not a number."""
    if words.dtype.kind in "iuf":
        return np.asarray(words, float)
    if words.dtype.kind == "b":
        return np.full(len(words), np.nan)
    return np.array([number_of(str(word), decimal, shares=shares) for word in words], float)


def number_of(word: str, decimal: str, *, shares: bool = False) -> float:
    """The number that a field holds, nan if it does not hold one; a percentage of a share is divided by 100."""
    plain = word.strip()
    if decimal == "," and "," in plain:
        plain = plain.replace(",", ".") if plain.count(",") == 1 and "." not in plain else ""
    if shares and plain.endswith("%"):
        plain = plain[:-1].rstrip()
        return float(f"{plain}e-2") if _NUMBER.fullmatch(plain) and "e" not in plain.lower() else np.nan
    return float(plain) if _NUMBER.fullmatch(plain) else np.nan


def numbers_in(words: AnyArray, decimal: str, doubtful: str | None, field: str) -> Floats:
    """The numbers (n, m) of texts."""
    shares = field == "table"
    read = np.vectorize(lambda word: number_of(word, decimal, shares=shares), otypes=[float])
    # NumPy is faster, but reads 1_0 and digits of other scripts too.
    every = "".join(words.ravel().tolist())
    try:
        table = words.astype(float) if every.isascii() and "_" not in every else read(words)
    except ValueError:
        table = read(words)
    invalid = np.argwhere(~np.isfinite(table))
    if len(invalid):
        row, column = invalid[0]
        word = words[row, column]
        message = f"row {row}, column {column} is not a number"
        raise InputError(message, field=field, value=repr(word), remedy=advice(word, shares=shares))
    if doubtful is not None:
        raise doubtful_number(doubtful, field)
    return np.ascontiguousarray(table)


def advice(word: str, *, shares: bool = False) -> str | None:
    """The remedy for a field that is not a number."""
    plain = word.strip()
    if is_missing(plain):
        return "write the number or remove the line: missing and suppressed values are not replaced"
    if plain.endswith("%") and not shares:
        return "write a number without %"
    if _THOUSANDS.fullmatch(plain):
        return "write it without a thousands separator, and with a decimal point"
    return None


def is_missing(word: str) -> bool:
    """True if a field stands for a value that is missing or suppressed."""
    plain = word.strip().lower()
    return plain in _MISSING or _SUPPRESSED.fullmatch(plain) is not None


def refuse_line(invalid: Mask, frame: Any, columns: list[str], field: str, message: str) -> None:
    """Refuse an invalid line: the error has the number of the first, and its fields in these columns."""
    if invalid.any():
        first = int(np.argmax(invalid))
        shown = " ".join(str(value) for value in frame[columns].iloc[first])
        more = f", and {int(invalid.sum()) - 1} more" if invalid.sum() > 1 else ""
        raise InputError(message, field=field, value=f"{shown} in line {frame.index[first]}{more}")

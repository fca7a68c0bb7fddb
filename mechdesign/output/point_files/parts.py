"""Files of points in parts: the types that readers yield and writers take, and those of a format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from mechdesign.base.arrays import Points

COMPRESSED: Mapping[str, str] = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz"}
ROWS = 65_536  # rows of a part: 20 MB of texts, and long enough for array operations


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """Consecutive points of a file.

    Attributes
    ----------
    frame : DataFrame
        The columns of the file.
    first : int
        The number of the first row, from 1, for messages.
    degrees : (b, 2) array or None
        Longitude and latitude of points that are geometries, nan for a missing one; None if columns hold them.
    decimal, doubtful : str
        As in `problem/text.py`, for columns of texts.
    """

    frame: Any
    first: int
    degrees: Points | None = None
    decimal: str = "."
    doubtful: str | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportedPart:
    """Reports of consecutive points: a data frame, and the degrees (b, 2) of reports, nan for points without one."""

    frame: Any
    degrees: Points | None


class PointReader(Protocol):
    """Yields the parts of a file of points."""

    def __call__(self, path: Path, *, crs: str | None, on_note: Callable[[str], None]) -> Iterator[Part]: ...


class PointWriter(Protocol):
    """Writes a file of reports from its parts."""

    def __call__(self, path: Path, parts: Iterable[ReportedPart]) -> object: ...


@dataclass(frozen=True, kw_only=True)
class PointFormat:
    """How files of points of one suffix are read and written."""

    # is_layer: reports are geometries in degrees, not columns. allows_empty: False if rows without a report are left
    # out. require: raises where an extra is missing.

    read: PointReader
    write: PointWriter
    is_layer: bool = False
    allows_empty: bool = True
    require: Callable[[], object] = lambda: None

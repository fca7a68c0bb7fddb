"""Check-ins: how many of a file of positions fall into each cell of a grid. Only counts leave this file.

The format is that of the SNAP location networks (loc-gowalla, loc-brightkite): no header, one check-in a line, five
fields separated by tabs: user, time, latitude, longitude (degrees, WGS 84), location. Compressed files (.gz, .bz2, .xz,
.zip) are read as they are.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.arguments import asked
from mechdesign.base.display import Shown
from mechdesign.base.memory import within_memory
from mechdesign.base.opening import open_lines
from mechdesign.errors import FileFormatError, InputError
from mechdesign.setting.space.domain import Domain
from mechdesign.setting.space.plane import METRES, Plane

_FIELDS = 5
_LATITUDE, _LONGITUDE = 2, 3
_LINES = 1 << 18  # at a time
_LONGEST = 1 << 12  # bytes of a line


@dataclass(frozen=True, kw_only=True, eq=False)
class CheckIns(Shown):
    """counts (n,), check-ins per place of the domain; outside, how many fell elsewhere; dropped, how many lines had no
    position: an empty field, or one that is no latitude or longitude.
    """

    counts: NDArray[np.int64]
    outside: int
    dropped: int


@asked
def read_checkins(path: str | Path, domain: Domain, *, latitude: float, longitude: float) -> CheckIns:
    """Count the check-ins of a SNAP-format file in the cells of a grid whose origin (0, 0) lies at a position on Earth.

    The plane is the azimuthal equidistant projection about (latitude, longitude) in degrees, x east and y north, in the
    unit of the domain; 10 km from its centre it stretches lengths by less than one part in a million. A cell holds its
    lower borders and not its upper ones.
    Parameters: domain, a grid of two axes in a unit of length, possibly masked.
    Raises: FileFormatError for a file that is missing or of another format, InputError for a domain or centre that does
        not fit; InputError with the command to run where pyproj is not installed (the extra `geo`).
    Cost: 1 s per million lines; memory of a quarter of a million lines.
    """
    plane = _plane(domain, latitude, longitude)
    source = Path(path)
    counts = np.zeros(domain.size, np.int64)
    outside = dropped = 0
    for latitudes, longitudes in _positions(source):
        real = (abs(latitudes) <= 90) & (abs(longitudes) <= 180)
        dropped += int((~real).sum())
        place = _places(domain, plane.forward(longitudes[real], latitudes[real]))
        outside += int((place < 0).sum())
        counts += np.bincount(place[place >= 0], minlength=domain.size)
    return CheckIns(counts=counts, outside=outside, dropped=dropped)


def _plane(domain: Domain, latitude: float, longitude: float) -> Plane:
    if domain.shape is None or domain.dimension != 2 or domain.unit not in METRES:
        raise InputError(
            "check-ins are counted on a grid of two axes in a unit of length",
            field="domain",
            value=f"{domain.kind}, {domain.dimension} axes, in {domain.unit}",
            remedy="use Domain.grid with a unit such as m",
        )
    return Plane(latitude=latitude, longitude=longitude, unit=domain.unit)


def _positions(source: Path) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Latitudes and longitudes of the lines, in degrees, nan where empty; a quarter of a million at a time."""
    import pandas as pd

    try:
        with (
            within_memory("checkins", source),
            open_lines(source, field="checkins", remedy="give the path of a file", longest=_LONGEST) as stream,
            pd.read_csv(
                stream,
                sep="\t",
                header=None,
                dtype={_LATITUDE: float, _LONGITUDE: float},
                chunksize=_LINES,
                quoting=csv.QUOTE_NONE,
            ) as reader,
        ):
            for lines in reader:
                if lines.shape[1] != _FIELDS:
                    raise ValueError(f"{lines.shape[1]} fields in a line")
                yield lines[_LATITUDE].to_numpy(float), lines[_LONGITUDE].to_numpy(float)
    except (ValueError, OSError, EOFError) as error:
        raise FileFormatError(
            f"is no check-in file ({error})",
            field="checkins",
            value=source,
            remedy="give lines of user, time, latitude, longitude, location, separated by tabs",
        ) from error


def _places(domain: Domain, points: NDArray[np.float64]) -> NDArray[np.int64]:
    """The place of every point (k, 2), -1 where there is none."""
    shape = np.asarray(domain.shape)
    index = np.floor((points - np.asarray(domain.origin)) / np.asarray(domain.cell))
    inside = ((index >= 0) & (index < shape)).all(axis=1)
    place = np.full(len(points), -1, np.int64)
    place[inside] = domain.lookup[tuple(index[inside].astype(np.int64).T)]
    return place

"""Areas of a file, or of words: polygons (GeoJSON), a label raster, a list of cells (CSV), or 3x3 blocks of a grid.

| file | what is read |
|---|---|
| .geojson .json | polygons in degrees: every feature is an area, of features with one name together |
| .csv | columns cell (numbers of places from 0) and area (names), every place once |
| .asc .txt .grd .nc .nc4 .cdf .h5 .tif | whole numbers: the label of the nearest node |
| 3x3 | no file: blocks of a grid |

A feature has the name of its property name, NAME, Name, label or id, else of its id. A place belongs to the polygon
that its point lies in; on the border of two, to the first. A place in two polygons is refused, by name; one in none
too, unless `rest` names the area of what is left.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.memory import within_memory
from mechdesign.base.opening import open_lines
from mechdesign.base.spreadsheets import text_of
from mechdesign.errors import FileFormatError, InputError
from mechdesign.setting.objective.queries import Query
from mechdesign.setting.readers.geojson import read_features
from mechdesign.setting.readers.georeferenced import raster_on
from mechdesign.setting.readers.raster_files import read_raster
from mechdesign.setting.space.area import Area
from mechdesign.setting.space.areas import Areas
from mechdesign.setting.space.domain import Domain

_BLOCKS = re.compile(r"([0-9]{1,6})x([0-9]{1,6})")
_POLYGONS = {".geojson", ".json"}
_NAMES = ("name", "NAME", "Name", "label", "id")
_UNFOLDS = 64  # bytes of memory for a byte of text
_SHOWN = 5  # places that an error lists


def read_areas(source: str | Path, domain: Domain, *, rest: str | None = None) -> Areas:
    """The areas that a file, or words such as 3x3, cut the places of a domain into; see the module docstring.

    Parameters: rest, the name of the area of places that no polygon and no line of a CSV file names.
    Raises: InputError for polygons that overlap or miss places, each named; for a domain without a plane where there
        are polygons; FileFormatError for a file that is missing or of another format; what `read_raster` raises.
    """
    blocks = _BLOCKS.fullmatch(str(source))
    path = Path(source)
    suffix = path.suffix.lower()
    if rest is not None and (blocks or suffix not in (*_POLYGONS, ".csv")):
        raise InputError("is for polygons and lists of cells", field="rest", value=rest, remedy="leave it out")
    if blocks:
        return Areas.blocks(domain, int(blocks[1]), int(blocks[2]))
    if suffix in _POLYGONS:
        return _of_polygons(path, domain, rest)
    if suffix == ".csv":
        return _of_cells(path, domain, rest)
    raster = read_raster(path, unit=domain.unit) if domain.plane is None else raster_on(domain, path, labels=True)
    return Areas.of_labels(Query.from_raster(raster, domain).labels)


def _of_polygons(path: Path, domain: Domain, rest: str | None) -> Areas:
    plane = domain.plane
    if plane is None:
        raise InputError(
            "polygons are in degrees, and the domain does not say where on Earth it is",
            field="areas",
            value=path,
            remedy="give a label raster or a CSV of cell and area, or design with `mechdesign area`",
        )
    features = read_features(path)
    names = [_name(properties, given, k) for k, (_, properties, given) in enumerate(features)]
    regions: dict[str, list[Area]] = {}
    for name, (area, _, _) in zip(names, features, strict=True):
        regions.setdefault(name, []).append(area)
    longitude, latitude = plane.backward(domain.points)
    inside = np.column_stack([_any(parts, longitude, latitude, border=False) for parts in regions.values()])
    touched = np.column_stack([_any(parts, longitude, latitude, border=True) for parts in regions.values()])
    return _assigned(list(regions), inside, touched, rest)


def _any(
    parts: list[Area], longitude: NDArray[np.float64], latitude: NDArray[np.float64], *, border: bool
) -> NDArray[np.bool_]:
    found = [
        area.contains(longitude, latitude) if border else area.contains_within(longitude, latitude) for area in parts
    ]
    return np.logical_or.reduce(found)


def _assigned(names: list[str], inside: NDArray[np.bool_], touched: NDArray[np.bool_], rest: str | None) -> Areas:
    """The areas of memberships (n, K): strictly inside, and inside or on the border."""
    twice = np.flatnonzero(inside.sum(axis=1) > 1)
    if len(twice):
        both = [names[k] for k in np.flatnonzero(inside[twice[0]])]
        raise InputError(
            "polygons overlap",
            field="areas",
            value=f"{' and '.join(both)} share {_listed(twice)}",
            remedy="correct the polygons: a place belongs to one area",
        )
    label = np.where(inside.any(axis=1), inside.argmax(axis=1), touched.argmax(axis=1))
    missed = np.flatnonzero(~touched.any(axis=1))
    if len(missed) and rest is None:
        raise _missed(missed)
    kept = [k for k in range(len(names)) if (label[touched.any(axis=1)] == k).any()]
    empty = [name for k, name in enumerate(names) if k not in kept]
    if empty:
        raise InputError(
            "holds no place of the domain",
            field="areas",
            value=", ".join(empty[:_SHOWN]),
            remedy="drop such areas, or use smaller cells",
        )
    label[missed] = len(names)
    return Areas(names=(*names, *([str(rest)] if len(missed) else [])), label=label.astype(np.int64))


def _of_cells(path: Path, domain: Domain, rest: str | None) -> Areas:
    import pandas as pd

    remedy = "give a CSV file with the columns cell and area"
    try:
        with (
            within_memory("areas", path),
            open_lines(path, field="areas", remedy=remedy, unfolds=_UNFOLDS) as stream,
        ):
            frame: Any = pd.read_csv(stream, dtype=str, keep_default_na=False, comment="#", skipinitialspace=True)
    except (ValueError, OSError, EOFError) as error:
        raise FileFormatError(f"cannot be read ({error})", field="areas", value=path, remedy=remedy) from error
    columns = {str(name).strip().lower(): name for name in frame.columns}
    if not {"cell", "area"} <= set(columns):
        raise FileFormatError(
            "lacks the column cell or area", field="areas", value=", ".join(map(str, frame.columns)), remedy=remedy
        )
    words: list[str | None] = [None] * domain.size
    for line, (cell, area) in enumerate(zip(frame[columns["cell"]], frame[columns["area"]], strict=True), 2):
        place = int(cell) if re.fullmatch("[0-9]{1,9}", cell) else domain.size
        if place >= domain.size:
            raise InputError(
                "no such cell", field="areas", value=f"{cell!r}, line {line}", remedy=f"use 0 to {domain.size - 1}"
            )
        if words[place] is not None:
            raise InputError(
                "a cell is listed twice", field="areas", value=f"{place}, line {line}", remedy="list every cell once"
            )
        words[place] = text_of(area.strip())
    missed = np.flatnonzero([word is None for word in words])
    if len(missed) and rest is None:
        raise _missed(missed)
    return Areas.of_words([str(rest) if word is None else word for word in words])


def _missed(places: NDArray[np.int64]) -> InputError:
    return InputError(
        "places lie in no area",
        field="areas",
        value=_listed(places),
        remedy="cover them, or name the area of what is left: --rest elsewhere",
    )


def _listed(places: NDArray[np.int64]) -> str:
    shown = ", ".join(map(str, places[:_SHOWN].tolist()))
    return f"cell {shown}" if len(places) == 1 else f"{len(places)} cells: {shown}{', ...' * (len(places) > _SHOWN)}"


def _name(properties: Any, given: Any, number: int) -> str:
    held = properties if isinstance(properties, dict) else {}
    found = next((held[key] for key in _NAMES if key in held), given)
    if found is None:
        return f"area {number + 1}"
    return found if isinstance(found, str) else json.dumps(found)

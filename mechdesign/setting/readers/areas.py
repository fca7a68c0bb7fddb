"""Areas of a file, or of words: polygons (GeoJSON), a label raster, a list of cells (CSV), or 3x3 blocks of a grid.

| file | what is read |
|---|---|
| .geojson .json | polygons in degrees: every feature is an area, of features with one name together |
| .csv | columns cell (numbers of places from 0) and area (names), every place once |
| .asc .txt .grd .nc .nc4 .cdf .h5 .tif | whole numbers: the label of the nearest node |
| 3x3 | no file: blocks of a grid |

A feature has the name of its property name, NAME, Name, label or id, or of the property that `name_field` says, else of
its id. A place belongs to the area that its point lies in; on the border of two, to the first. A place in two areas is
refused, by name; one in none too, unless `rest` names the area of what is left. So are two names that differ in case or
spaces alone, and polygons that all have one name.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
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


def read_areas(
    source: str | Path,
    domain: Domain,
    *,
    rest: str | None = None,
    name_field: str | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Areas:
    """The areas that a file, or words such as 3x3, cut the places of a domain into; see the module docstring.

    Parameters: rest, the name of the area of places that no polygon and no line of a CSV file names; name_field, the
        property of polygons that names them; on_note, called with a sentence where polygons have no name, or several
        have one name and are one area.
    Raises: InputError for polygons that overlap or miss places, each named; for a domain without a plane where there
        are polygons; FileFormatError for a file that is missing or of another format; what `read_raster` raises.
    """
    blocks = _BLOCKS.fullmatch(str(source))
    path = Path(source)
    suffix = path.suffix.lower()
    if rest is not None and (blocks or suffix not in (*_POLYGONS, ".csv")):
        raise InputError("is for polygons and lists of cells", field="rest", value=rest, remedy="leave it out")
    if name_field is not None and (blocks or suffix not in _POLYGONS):
        raise InputError("is for polygons", field="name-field", value=name_field, remedy="leave it out")
    if blocks:
        return Areas.blocks(domain, int(blocks[1]), int(blocks[2]))
    if suffix in _POLYGONS:
        return _of_polygons(path, domain, rest, name_field, on_note or (lambda told: None))
    if suffix == ".csv":
        return _of_cells(path, domain, rest)
    raster = read_raster(path, unit=domain.unit) if domain.plane is None else raster_on(domain, path, labels=True)
    return Areas.of_labels(Query.from_raster(raster, domain).labels)


def _of_polygons(
    path: Path, domain: Domain, rest: str | None, name_field: str | None, on_note: Callable[[str], None]
) -> Areas:
    plane = domain.plane
    if plane is None:
        raise InputError(
            "polygons are in degrees, and the domain does not say where on Earth it is",
            field="areas",
            value=path,
            remedy="give a label raster or a CSV of cell and area, or design with `mechdesign area`",
        )
    features = read_features(path)
    names = _names(path, features, name_field, on_note)
    regions: dict[str, list[Area]] = {}
    for name, (area, _, _) in zip(names, features, strict=True):
        regions.setdefault(name, []).append(area)
    if len(features) > len(regions) == 1 and rest is None:
        raise InputError(
            f"all {len(features)} polygons have one name, and the share of one area is 100 %",
            field="areas",
            value=names[0],
            remedy=f"name the property that tells them apart: --name-field NAME ({_properties(features)})",
        )
    several = [f"{len(parts)} polygons named {name}" for name, parts in regions.items() if len(parts) > 1]
    if several:
        on_note(f"{path.name}: {', '.join(several[:_SHOWN])} are one area{' each' * (len(several) > 1)}.")
    longitude, latitude = plane.backward(domain.points)
    inside = np.column_stack([_any(parts, longitude, latitude, border=False) for parts in regions.values()])
    touched = np.column_stack([_any(parts, longitude, latitude, border=True) for parts in regions.values()])
    if not touched.any() and (np.abs(latitude) <= 180).all() and (np.abs(longitude) <= 90).all():
        turned = [_any(parts, latitude, longitude, border=True) for parts in regions.values()]
        if np.any(turned):
            raise InputError(
                "polygons lie elsewhere",
                field="areas",
                value=path,
                remedy="longitude and latitude seem to be exchanged: write the longitude first",
            )
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
    remedy = "give a CSV file with the columns cell and area"
    words: list[str | None] = [None] * domain.size
    try:
        with (
            within_memory("areas", path),
            open_lines(path, field="areas", remedy=remedy, unfolds=_UNFOLDS) as stream,
        ):
            for line, cell, area in _cells(stream, remedy):
                place = int(cell) if re.fullmatch("[0-9]{1,9}", cell) else domain.size
                if place >= domain.size:
                    raise InputError(
                        "no such cell",
                        field="areas",
                        value=f"{cell!r}, line {line}",
                        remedy=f"use 0 to {domain.size - 1}",
                    )
                if words[place] is not None:
                    raise InputError(
                        "a cell is listed twice",
                        field="areas",
                        value=f"{place}, line {line}",
                        remedy="list every cell once",
                    )
                if not area:
                    raise InputError(
                        "has no name", field="areas", value=f"cell {place}, line {line}", remedy="name every area"
                    )
                words[place] = text_of(area)
    except (ValueError, OSError, EOFError, csv.Error) as error:
        raise FileFormatError(f"cannot be read ({error})", field="areas", value=path, remedy=remedy) from error
    missed = np.flatnonzero([word is None for word in words])
    if len(missed) and rest is None:
        raise _missed(missed)
    return Areas.of_words([str(rest) if word is None else word for word in words])


def _cells(stream: Any, remedy: str) -> Iterator[tuple[int, str, str]]:
    """The number, the cell and the area of every line of a CSV file that is no comment."""
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
    columns: tuple[int, int] | None = None
    reader = csv.reader(text, skipinitialspace=True)
    for row in reader:
        fields = [field.strip() for field in row]
        if not any(fields) or fields[0].startswith("#"):
            continue
        if any("\udc80" <= letter <= "\udcff" for field in fields for letter in field):
            raise FileFormatError(
                "is not UTF-8 text", field="areas", value=f"line {reader.line_num}", remedy="save it as CSV UTF-8"
            )
        if columns is None:
            header = [field.lower() for field in fields]
            if header.count("cell") != 1 or header.count("area") != 1:
                raise FileFormatError(
                    "needs one column cell and one column area", field="areas", value=", ".join(fields), remedy=remedy
                )
            columns = header.index("cell"), header.index("area")
        elif len(fields) <= max(columns):
            raise FileFormatError("has too few fields", field="areas", value=f"line {reader.line_num}", remedy=remedy)
        else:
            yield reader.line_num, fields[columns[0]], fields[columns[1]]
    if columns is None:
        raise ValueError("no header")


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


def _names(
    path: Path, features: list[tuple[Area, Any, Any]], name_field: str | None, on_note: Callable[[str], None]
) -> list[str]:
    """The name of every feature; those without are numbered, and a note says so."""
    fields = _NAMES if name_field is None else (name_field,)
    found = []
    for number, (_, properties, given) in enumerate(features):
        held = properties if isinstance(properties, dict) else {}
        name = next((held[key] for key in fields if held.get(key) is not None), None)
        if name is None and name_field is not None:
            raise InputError(
                f"polygon {number + 1} has no such property",
                field="name-field",
                value=name_field,
                remedy=f"name one of all polygons ({_properties(features)})",
            )
        name = given if name is None else name
        found.append(name if isinstance(name, str) or name is None else json.dumps(name))
    if None in found:
        on_note(
            f"{path.name}: areas without a name are numbered; --name-field NAME names them ({_properties(features)})."
        )
    return [f"area {k + 1}" if name is None else name for k, name in enumerate(found)]


def _properties(features: list[tuple[Area, Any, Any]]) -> str:
    """The properties of features, in words."""
    names = dict.fromkeys(str(key) for _, held, _ in features if isinstance(held, dict) for key in held)
    shown = ", ".join(list(names)[:12])
    return f"properties: {shown}{', ...' * (len(names) > 12)}" if names else "they have no properties"

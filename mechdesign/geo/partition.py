"""A partition of the places of a domain into named areas, and its files.

| file | contents |
|---|---|
| .geojson .json .gpkg .shp .fgb | polygons: every feature is an area, of features with one name together |
| .csv | columns cell (numbers of places from 0, or labels of classes) and area (names), every place once |
| .asc .txt .grd .nc .nc4 .cdf .h5 .tif | integers: the label of the nearest node |
| 3x3 | no file: blocks of a grid |
| classes | no file: every class with a label is an area |

The name of a feature is its property `name_field`, or name, NAME, Name, label or id, else its id. A place on the
border of two areas belongs to the first. The remaining places form the area `rest`. Refused: places inside two areas,
names that differ only in case or spaces, and several polygons of one name that cover all places.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Indices, MaskMatrix, Matrix, Vector
from mechdesign.base.log import log_note
from mechdesign.base.records import FrozenRecord
from mechdesign.base.spreadsheets import text_of
from mechdesign.base.validation import validate_call
from mechdesign.errors import InputError
from mechdesign.geo.area import Area, area_of
from mechdesign.geo.geojson import Feature, polygon_features, rings_of
from mechdesign.geo.georeferenced import raster_on
from mechdesign.geo.layers import SUFFIXES
from mechdesign.problem.classes import label_numbers
from mechdesign.problem.columns import Columns, named_column, number_column, refuse_line
from mechdesign.problem.domain import Domain
from mechdesign.problem.queries import Query
from mechdesign.problem.rasters import read_raster
from mechdesign.problem.tables import Note
from mechdesign.problem.text import is_csv, read_frame

MOST = 1_000  # areas; shares of more are a distribution
_CELL = ("cell", "class", "secret")  # columns of places; the latter two for classes
_EACH = "classes"  # the word for an area of each class
_BLOCKS = re.compile(r"([0-9]{1,6})x([0-9]{1,6})")
_POLYGONS = {".geojson", ".json", *SUFFIXES}
_NAMES = ("name", "NAME", "Name", "label", "id")  # properties that name a feature
_SHOWN, _PROPERTIES = 5, 12  # places and names, and properties, that an error lists


@dataclass(frozen=True, kw_only=True, eq=False)
class Partition(FrozenRecord):
    """A partition of the places of a domain into named areas.

    Attributes
    ----------
    names, label : tuple of str, (n,) int array
        Names of the K areas; the area number, from 0, of each place. Every area has a place.

    Examples
    --------
    >>> md.geo.Partition.blocks(md.Domain.grid((2, 2), 1.0), 2, 1).label
    array([0, 0, 1, 1])
    """

    names: tuple[str, ...]
    label: Indices

    def __post_init__(self) -> None:
        if not 1 <= len(self.names) <= MOST:
            raise InputError(f"must be 1 to {MOST} areas", field="areas", value=len(self.names))
        for name in self.names:
            if not name.strip() or not name.isprintable():
                raise InputError("needs a printable name", field="areas", value=repr(name))
        # Compared without case, width and spaces: tables of two such areas would look as if they were of one.
        by_plain_name: dict[str, str] = {}
        for name in self.names:
            folded = unicodedata.normalize("NFKC", name).casefold()
            other = by_plain_name.setdefault(" ".join(folded.split()), name)
            if other == name and self.names.count(name) > 1:
                raise InputError("two areas have one name", field="areas", value=name)
            if other != name:
                pair = f"{other!r} and {name!r}"
                raise InputError("two names differ only in case or spaces", field="areas", value=pair)
        empty = np.setdiff1d(np.arange(len(self.names)), self.label)
        if len(empty):
            problem = "holds no place of the domain; drop such areas, or use smaller cells"
            raise InputError(problem, field="areas", value=", ".join(self.names[k] for k in empty[:_SHOWN]))

    @classmethod
    def of_labels(cls, labels: ArrayLike, *, names: Mapping[int, str] | None = None) -> Partition:
        """The partition by integer labels (n,); names by label, by default the labels.

        Examples
        --------
        >>> md.geo.Partition.of_labels([0, 0, 1]).label.tolist()
        [0, 0, 1]
        """
        values, label = np.unique(np.asarray(labels, np.int64), return_inverse=True)
        known = names or {}
        return cls(names=tuple(known.get(value, str(value)) for value in values.tolist()), label=label)

    @classmethod
    def of_words(cls, words: Sequence[str]) -> Partition:
        """One area for each different word.

        Examples
        --------
        >>> md.geo.Partition.of_words(["a", "b", "a"]).label.tolist()
        [0, 1, 0]
        """
        order = {word: k for k, word in enumerate(dict.fromkeys(words))}
        return cls(names=tuple(order), label=np.array([order[word] for word in words], np.int64))

    @classmethod
    def blocks(cls, domain: Domain, across: int, along: int) -> Partition:
        """A grid of two axes in `across` x `along` blocks of nearly equal sides, named "column-row" from 1 on.

        Examples
        --------
        >>> md.geo.Partition.blocks(md.Domain.grid((4, 4), 1.0), 2, 2).names
        ('1-1', '1-2', '2-1', '2-2')
        """
        if domain.shape is None or domain.index is None or len(domain.shape) != 2:
            raise InputError("blocks require a grid of two axes", field="areas", value=domain.kind)
        for blocks, cells in zip((across, along), domain.shape, strict=True):
            if not 1 <= blocks <= cells:
                raise InputError(f"must be from 1 to {cells} along this axis", field="areas", value=blocks)
        column, row = (
            side * blocks // cells
            for side, blocks, cells in zip(domain.index.T, (across, along), domain.shape, strict=True)
        )
        names = {k: f"{k // along + 1}-{k % along + 1}" for k in range(across * along)}
        return cls.of_labels(column * along + row, names=names)

    @property
    def indicator(self) -> Matrix:
        return np.asarray(self.label[:, None] == np.arange(len(self.names)), float)


@validate_call
def read_areas(
    source: str | Path,
    domain: Domain,
    *,
    rest: str = "elsewhere",
    name_field: str | None = None,
    crs: str | None = None,
    columns: Columns = None,
    on_note: Note = log_note,
) -> Partition:
    """Read the areas of a file, or make those of words such as 3x3 or classes, over the places of a domain.

    Parameters
    ----------
    source, domain : str or Path, Domain
        A file of polygons, cells or labels, or words such as 3x3, or classes for one area a class; the n places.
    rest, name_field : str
        Name of the area of places that lie in no other; property that has the names of polygons.
    crs, columns : str, mapping of str to str
        As for `read_area`; our names of columns to those of a text file, such as {"cell": "id", "area": "district"}.
    on_note : callable
        Called with a sentence about places without an area and about the names of polygons, and as by `read_area`.

    Returns
    -------
    Partition

    Examples
    --------
    >>> md.geo.read_areas("2x1", md.Domain.grid((2, 2), 1.0)).names
    ('1-1', '2-1')
    """
    if str(source) == _EACH and domain.labels is not None:
        return Partition(names=domain.labels, label=np.arange(domain.size))
    blocks = _BLOCKS.fullmatch(str(source))
    path = Path(source)
    suffix = path.suffix.lower()
    if name_field is not None and (blocks or suffix not in _POLYGONS):
        raise InputError("applies only to polygons", field="name-field", value=name_field, remedy="leave it out")
    if blocks:
        return Partition.blocks(domain, int(blocks[1]), int(blocks[2]))
    if suffix in _POLYGONS:
        return _of_polygons(path, domain, rest, name_field, crs, on_note)
    if is_csv(path):
        if crs is not None:
            on_note(f"{path.name}: has no coordinates; the coordinate system {crs} is not applied to it.")
        return _of_cells(path, domain, rest, columns, on_note)
    raster = (
        read_raster(path, unit=domain.unit) if domain.plane is None else raster_on(domain, path, crs=crs, labels=True)
    )
    return Partition.of_labels(Query.from_raster(raster, domain).labels)


def are_polygons(source: str | Path) -> bool:
    """True for a file of polygons by its name."""
    return Path(source).suffix.lower() in _POLYGONS


def _of_polygons(
    path: Path, domain: Domain, rest: str, name_field: str | None, crs: str | None, on_note: Note
) -> Partition:
    plane = domain.plane
    if plane is None:
        raise InputError(
            "polygons are in degrees, and the domain does not say where on Earth it is",
            field="areas",
            value=path,
            remedy="give a label raster or a CSV of cell and area, or design with `mechdesign area`",
        )
    features = polygon_features(path, crs=crs, on_note=on_note)
    regions: dict[str, list[Area]] = {}
    for name, feature in zip(names_of_features(path, features, name_field, on_note), features, strict=True):
        regions.setdefault(name, []).append(area_of(rings_of(feature), source=path, on_note=on_note))
    longitude, latitude = plane.backward(domain.points)

    def members(longitude: Vector, latitude: Vector, *, border: bool) -> MaskMatrix:
        columns = ([area.contains(longitude, latitude, border=border) for area in parts] for parts in regions.values())
        return np.column_stack([np.logical_or.reduce(column) for column in columns])

    inside, touched = members(longitude, latitude, border=False), members(longitude, latitude, border=True)
    if not touched.any():
        problem, is_in_range = "no place of the map lies in a polygon", (np.abs(latitude) <= 180).all()
        if is_in_range and (np.abs(longitude) <= 90).all() and members(latitude, longitude, border=True).any():
            problem += "; longitude and latitude seem to be exchanged: write the longitude first"
        raise InputError(problem, field="areas", value=path)
    if len(features) > len(regions) == 1 and touched.all():
        raise InputError(
            f"all {len(features)} polygons have one name, and the share of one area is 100 %",
            field="areas",
            value=next(iter(regions)),
            remedy=f"name the property that distinguishes them, name_field=NAME ({_properties(features)})",
        )
    several = [f"{len(parts)} polygons named {name}" for name, parts in regions.items() if len(parts) > 1]
    if several:
        on_note(f"{path.name}: {', '.join(several[:_SHOWN])} are one area{' each' * (len(several) > 1)}.")
    return _assign_places(list(regions), inside, touched, rest, on_note)


def _assign_places(
    names: list[str],
    inside: MaskMatrix,
    touched: MaskMatrix,
    rest: str,
    on_note: Note,
) -> Partition:
    twice = np.flatnonzero(inside.sum(axis=1) > 1)
    if len(twice):
        both = [names[k] for k in np.flatnonzero(inside[twice[0]])]
        raise InputError("polygons overlap", field="areas", value=f"{' and '.join(both)} share {_cell_words(twice)}")
    # A place on a common border lies inside neither area: argmax takes the first that it touches.
    label = np.where(inside.any(axis=1), inside.argmax(axis=1), touched.argmax(axis=1))
    outside = np.flatnonzero(~touched.any(axis=1))
    if len(outside):
        on_note(_rest_words(outside, rest))
    label[outside] = len(names)
    return Partition(names=(*names, *([rest] if len(outside) else [])), label=label.astype(np.int64))


def _of_cells(path: Path, domain: Domain, rest: str, columns: Columns, on_note: Note) -> Partition:
    texts = ("area",) if domain.labels is None else ("area", *_CELL)
    frame = read_frame(path, "areas", texts=texts, columns=columns, roles=("cell", "area"))
    names = _CELL[:1] if domain.labels is None else _CELL
    shown = [named_column(frame, allowed, "areas") for allowed in (names, ("area",))]
    area = frame[shown[1]]
    if domain.labels is None:
        cell = number_column(frame, names, "areas")
    else:
        words = frame[shown[0]].fillna("").tolist()
        found = label_numbers(words, domain.labels, "areas", "class")
        cell = number_column(frame, names, "areas") if found is None else found.astype(float)
    wrong = ~((cell >= 0) & (cell < domain.size) & (cell == np.floor(cell)))
    refuse_line(wrong, frame, shown, "areas", f"no such cell: use 0 to {domain.size - 1}")
    refuse_line(frame[shown[0]].duplicated().to_numpy(), frame, shown, "areas", "a cell is listed twice")
    refuse_line(area.fillna("").str.strip().eq("").to_numpy(), frame, shown, "areas", "has no name")
    by_place = dict(zip(cell.astype(int).tolist(), area.str.strip().map(text_of), strict=True))
    outside = np.setdiff1d(np.arange(domain.size), cell)
    if len(outside):
        on_note(_rest_words(outside, rest))
    return Partition.of_words([by_place.get(place, rest) for place in range(domain.size)])


def _rest_words(places: Indices, rest: str) -> str:
    return f"Cells outside all areas are assigned to an area named {rest!r}: {_cell_words(places)}."


def _cell_words(places: Indices) -> str:
    shown = ", ".join(map(str, places[:_SHOWN].tolist()))
    return f"cell {shown}" if len(places) == 1 else f"{len(places)} cells: {shown}{', ...' * (len(places) > _SHOWN)}"


def names_of_features(path: Path, features: list[Feature], name_field: str | None, on_note: Note) -> list[str]:
    """The name of the area of each feature."""
    fields = _NAMES if name_field is None else (name_field,)
    names: list[str | None] = []
    for number, feature in enumerate(features):
        record = feature.properties if isinstance(feature.properties, dict) else {}
        name = next((record[key] for key in fields if record.get(key) is not None), None)
        if name is None and name_field is not None:
            raise InputError(
                f"polygon {number + 1} has no such property; name one of all polygons ({_properties(features)})",
                field="name-field",
                value=name_field,
            )
        name = feature.id if name is None else name
        names.append(name if isinstance(name, str) or name is None else json.dumps(name))
    if None in names:
        on_note(
            f"{path.name}: areas without a name are numbered; name_field=NAME names them ({_properties(features)})."
        )
    return [f"area {k + 1}" if name is None else name for k, name in enumerate(names)]


def _properties(features: list[Feature]) -> str:
    names = dict.fromkeys(
        str(key) for feature in features if isinstance(feature.properties, dict) for key in feature.properties
    )
    shown = ", ".join(list(names)[:_PROPERTIES])
    return f"properties: {shown}{', ...' * (len(names) > _PROPERTIES)}" if names else "they have no properties"

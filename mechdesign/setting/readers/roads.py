r"""Road networks: places joined by streets, from tables of nodes and edges such as OSMnx writes.

    d(u, u') = epsilon * (length of the shortest path from u to u' along streets)

Nodes: a column osmid (or id) and either lon and lat in degrees or x and y. Edges: u, v and length in m; other columns,
oneway and key among them, are ignored: a metric is symmetric, so that a one-way street counts both ways. Of parallel
edges the shortest counts, loops are dropped.

Degrees become metres of the plane about the middle of the nodes (`setting/space/plane.py`, the extra `geo`), which a
file keeps: `mechdesign sample --lon --lat` takes the nearest node and answers in degrees. The plane only places the
nodes: distances along streets are sums of the lengths in the table, and the claim is about these, between nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from mechdesign.base.arguments import asked
from mechdesign.base.display import Shown
from mechdesign.base.memory import within_memory
from mechdesign.base.opening import line_not_utf8, open_lines
from mechdesign.base.units import canonical_unit
from mechdesign.errors import FileFormatError, InputError, UnitError
from mechdesign.setting.metric.shortest_paths import Edges, shortest_paths
from mechdesign.setting.metric.streets import Streets
from mechdesign.setting.space.domain import Domain
from mechdesign.setting.space.plane import WIDEST, Plane

_IDS, _LONGITUDES, _LATITUDES = ("osmid", "id"), ("lon", "longitude", "lng"), ("lat", "latitude")
_SHOWN = 5  # parts that an error names
_UNFOLDS = 32  # bytes of memory for a byte of text: fields as Python's texts
_LIKELY = (0.5, 10.0)  # of a street's length over the straight line between its ends: the median of a real network


@dataclass(frozen=True, kw_only=True, eq=False)
class Roads(Shown):
    """A connected network of n nodes and e streets.

    ids (n,), the nodes as their table calls them; points (n, 2), x and y in m; degrees (n, 2), longitude and latitude,
    where the table has them; tail < head (e,), node numbers, length (e,) in m; left_out, how many nodes lay outside
    the part that was kept; plane, on which the points lie, where they were made from degrees.
    """

    ids: NDArray[np.str_]
    points: NDArray[np.float64]
    degrees: NDArray[np.float64] | None
    tail: NDArray[np.int64]
    head: NDArray[np.int64]
    length: NDArray[np.float64]
    left_out: int = 0
    plane: Plane | None = None

    @property
    def domain(self) -> Domain:
        """The nodes as secrets, at their points in m, on their plane.

        Raises: InputError where two nodes coincide, or reach 490 km from the middle of the plane.
        """
        return Domain.points_at(self.points, unit="m", plane=self.plane)

    def metric(self, epsilon: float) -> Streets:
        """The distance along streets times epsilon, in nats per m."""
        return Streets(epsilon=epsilon, unit="m", tail=self.tail, head=self.head, length=self.length)

    def distances(self) -> NDArray[np.float64]:
        """Lengths (n, n) of the shortest paths along streets, in m. Cost: O(n (e + n log n))."""
        return shortest_paths(Edges(tail=self.tail, head=self.head, length=self.length), len(self.ids))


@asked
def read_roads(
    nodes: str | Path, edges: str | Path, *, unit: str | None = None, largest_component: bool = False
) -> Roads:
    """Read a road network from CSV tables of its nodes and edges; see the module docstring for their columns.

    Parameters: unit of the coordinates x and y, m or degree; by default lon and lat are taken where there are no x and
    y, and x and y in m otherwise, which lie on no plane of ours (unit degree takes lon and lat instead);
    largest_component, keep the largest connected part and count the other nodes in `left_out`.
    Raises: FileFormatError for a table that is missing or lacks a column; InputError for a node given twice, an edge to
    an unknown node, a length or coordinate that is no finite number, a length that is not positive, parts without a
    street between them; UnitError for coordinates that are not in the unit, such as degrees where m were asked for;
    for degrees, InputError with the command to run where pyproj is not installed.
    Cost: memory of the two tables.
    """
    table = _read(nodes, "nodes")
    ids = _words(table, _IDS, "nodes")
    repeated = table[ids].duplicated()
    if repeated.any():
        raise InputError(
            f"{int(repeated.sum())} node(s) given twice",
            field="nodes",
            value=table[ids][repeated].iloc[0],
            remedy="keep one line per node",
        )
    points, degrees, plane = _places(table, unit)
    names = table[ids].to_numpy(str)
    tail, head, length = _streets(_read(edges, "edges"), names)
    whole = Roads(ids=names, points=points, degrees=degrees, tail=tail, head=head, length=length, plane=plane)
    roads = _joined(whole, largest=largest_component)
    _check_lengths(roads)
    return roads


def _read(path: str | Path, field: str) -> Any:
    """A CSV table with a header, every field as text."""
    import pandas as pd

    source = Path(path)
    try:
        remedy = "give the path of a CSV file"
        with within_memory(field, source), open_lines(source, field=field, remedy=remedy, unfolds=_UNFOLDS) as stream:
            table = pd.read_csv(stream, dtype=str, skipinitialspace=True)
    except UnicodeDecodeError as error:
        with open_lines(source, field=field, remedy=remedy) as stream:
            line = line_not_utf8(stream)
        raise FileFormatError(
            "is not UTF-8 text", field=field, value=f"{source}, line {line}", remedy="save it as CSV UTF-8"
        ) from error
    except (ValueError, OSError, EOFError) as error:
        raise FileFormatError(
            f"cannot be read ({error})", field=field, value=source, remedy="give a CSV file with a header"
        ) from error
    if len(table) == 0:
        raise FileFormatError("has no lines", field=field, value=source, remedy="give a line for each of them")
    return table.rename(columns={name: str(name).strip().lower() for name in table.columns})


def _words(table: Any, spellings: tuple[str, ...], field: str) -> str:
    """The name of the column with one of these spellings, without an empty field."""
    found = [name for name in spellings if name in table.columns]
    if not found:
        raise FileFormatError(
            "has no column named " + " or ".join(spellings),
            field=field,
            value=", ".join(table.columns),
            remedy="name the columns as OSMnx does",
        )
    empty = table[found[0]].isna()
    if empty.any():
        raise InputError(
            f"{found[0]} is empty", field=field, value=f"line {int(np.argmax(empty)) + 2}", remedy="fill or drop it"
        )
    return found[0]


def _numbers(table: Any, spellings: tuple[str, ...], field: str) -> NDArray[np.float64]:
    import pandas as pd

    name = _words(table, spellings, field)
    found = pd.to_numeric(table[name], errors="coerce").to_numpy(float)
    odd = ~np.isfinite(found)
    if odd.any():
        line = int(np.argmax(odd))
        raise InputError(
            f"{name} must be a finite number",
            field=field,
            value=f"{table[name].iloc[line]} in line {line + 2}",
            remedy="correct or drop it",
        )
    return found


def _places(table: Any, unit: str | None) -> tuple[NDArray[np.float64], NDArray[np.float64] | None, Plane | None]:
    """Points (n, 2) in m, longitudes and latitudes (n, 2) where the table has them, and the plane of the points where
    they are made from those.
    """
    geographic = any(name in table.columns for name in _LONGITUDES)
    planar = "x" in table.columns
    asked = canonical_unit(unit or ("m" if planar else "degree"))
    if asked not in ("m", "degree"):
        raise UnitError("must be m or degree", field="unit", value=unit, remedy="convert the coordinates to m")
    if asked == "m" and not planar and geographic:
        raise UnitError(
            "longitudes and latitudes are degrees, not lengths", field="unit", value=unit, remedy="use degree"
        )
    if asked == "degree":
        named = (_LONGITUDES, _LATITUDES) if geographic else (("x",), ("y",))
        degrees = np.column_stack([_numbers(table, spellings, "nodes") for spellings in named])
        plane = _plane(degrees)
        return plane.forward(*degrees.T), degrees, plane
    points = np.column_stack([_numbers(table, (axis,), "nodes") for axis in ("x", "y")])
    if not geographic:
        return points, None, None
    return points, np.column_stack([_numbers(table, names, "nodes") for names in (_LONGITUDES, _LATITUDES)]), None


def _plane(degrees: NDArray[np.float64]) -> Plane:
    """The plane about the middle of the degrees, to six decimals."""
    longitude, latitude = degrees.T
    odd = ~((abs(longitude) <= 180) & (abs(latitude) <= WIDEST))
    if odd.any():
        raise UnitError(
            f"must be longitudes within 180 and latitudes within {WIDEST:g} degrees",
            field="nodes",
            value=f"{longitude[odd][0]:g}, {latitude[odd][0]:g}",
            remedy="pass unit m for projected coordinates",
        )
    east, north = ((degrees.min(axis=0) + degrees.max(axis=0)) / 2).round(6).tolist()
    return Plane(latitude=north, longitude=east, unit="m")


def _streets(table: Any, names: NDArray[np.str_]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Ends tail < head (e,) and length (e,), without loops, the shortest of parallel edges."""
    import pandas as pd

    number = pd.Index(names)
    ends = []
    for end in ("u", "v"):
        given = table[_words(table, (end,), "edges")]
        found = number.get_indexer(given)
        if (found < 0).any():
            line = int(np.argmax(found < 0))
            raise InputError(
                "an edge ends at a node that the nodes do not list",
                field="edges",
                value=f"{given.iloc[line]} in line {line + 2}",
                remedy="give both tables of one network",
            )
        ends.append(found.astype(np.int64))
    length = _numbers(table, ("length",), "edges")
    if not (length > 0).all():
        line = int(np.argmax(length <= 0))
        raise InputError(
            "a length must be positive",
            field="edges",
            value=f"{length[line]:g} in line {line + 2}",
            remedy="merge nodes at distance 0",
        )
    tail, head = np.minimum(*ends), np.maximum(*ends)
    order = np.lexsort((length, head, tail))
    order = order[tail[order] != head[order]]
    _, first = np.unique(np.column_stack([tail[order], head[order]]), axis=0, return_index=True)
    kept = order[first]
    return tail[kept], head[kept], length[kept]


def _joined(whole: Roads, *, largest: bool) -> Roads:
    """The network where it is connected; else its largest part where that was asked for."""
    ids, tail, head, length = whole.ids, whole.tail, whole.head, whole.length
    count, label = connected_components(sp.csr_array((length, (tail, head)), shape=(len(ids),) * 2), directed=False)
    sizes = np.bincount(label)
    order = np.argsort(-sizes, kind="stable")
    if count > 1 and not largest:
        shown = [f"{sizes[k]} node(s) with {ids[np.argmax(label == k)]}" for k in order[:_SHOWN]]
        more = f" and {count - _SHOWN} more" if count > _SHOWN else ""
        raise InputError(
            f"the network falls into {count} parts that no street joins, {int((sizes == 1).sum())} of them one node",
            field="edges",
            value="; ".join(shown) + more,
            remedy="add what joins them, or keep the largest part alone (largest_component)",
        )
    kept = label == order[0]
    number = np.cumsum(kept) - 1
    inside = kept[tail]
    return replace(
        whole,
        ids=ids[kept],
        points=whole.points[kept],
        degrees=None if whole.degrees is None else whole.degrees[kept],
        tail=number[tail[inside]],
        head=number[head[inside]],
        length=length[inside],
        left_out=int((~kept).sum()),
    )


def _check_lengths(roads: Roads) -> None:
    """Refuse coordinates and lengths in different units: a street is about as long as the line between its ends."""
    straight = np.hypot(*(roads.points[roads.tail] - roads.points[roads.head]).T)
    low, high = _LIKELY
    typical = float(np.median(straight / roads.length))
    if not 1 / high <= typical <= 1 / low:
        raise UnitError(
            "streets are not about as long as the straight lines between their ends: the coordinates are degrees where "
            "m were asked for, or the lengths are not in m",
            field="unit",
            value=f"a median line of {typical:.3g} per unit of length",
            remedy="pass unit degree for longitudes and latitudes in x and y; lengths are in m",
        )

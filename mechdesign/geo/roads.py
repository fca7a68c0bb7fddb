"""Road networks: places joined by streets, the metric along them, and tables of both such as OSMnx writes.

    d(u, u') = epsilon * (length of the shortest path from u to u' along streets)

Nodes have a column osmid (or id), and either lon and lat in degrees or x and y. Edges have u, v and length in m. A
one-way street counts both ways. Of parallel edges the shortest counts, and loops are dropped. Degrees become metres on
the plane about the middle of the nodes. They serve only for display and loss: the claim is about lengths in the table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components

from mechdesign.base.arrays import Indices, Matrix, Points, Vector
from mechdesign.base.json_fields import finites, wholes
from mechdesign.base.records import FrozenRecord
from mechdesign.base.units import canonical_unit, unit_ratio, unit_word
from mechdesign.base.validation import validate_call
from mechdesign.errors import InputError, UnitError
from mechdesign.problem.columns import (
    LATITUDE,
    LONGITUDE,
    degree_columns,
    matching_columns,
    named_column,
    number_column,
    refuse_line,
)
from mechdesign.problem.domain import MOST_PLACES, Domain
from mechdesign.problem.lattice import Edges, shortest_paths
from mechdesign.problem.line_integrals import ROUND_DOWN
from mechdesign.problem.metric import check_unit, scale_down
from mechdesign.problem.metrics import Graph, PerLength
from mechdesign.problem.plane import WIDEST, Plane, middle_longitude
from mechdesign.problem.text import read_frame

_IDS = ("osmid", "id")
_SHOWN = 5  # parts that an error names
_LIKELY = (0.5, 10.0)  # of a street's length over the straight line between its ends: the median of a real network


def _place_numbers(value: object, field: str) -> Indices:
    return wholes(value, field, 0, MOST_PLACES)


@dataclass(frozen=True, kw_only=True, eq=False)
class Streets(PerLength):
    """The distance along streets: d(u, u') = epsilon times the length of the shortest path from u to u'.

    If no street is shorter than the straight line between its ends, d >= epsilon |u - u'|. Such a claim is weaker than
    geo-indistinguishability at the same epsilon, for less loss. Source: Alvim et al. 2018, section III.

    Parameters
    ----------
    epsilon, scale, unit : float, float, str
        Nats per `unit` of length; factor of every length, 1 by default.
    tail, head, length : (e,) arrays
        Place numbers, as of `md.Graph`; length of each street in `unit`.

    Examples
    --------
    >>> metric = md.geo.Streets(0.01, unit="m", tail=[0], head=[1], length=[100.0])
    >>> metric.edges(md.Domain.points_at([[0.0, 0.0], [80.0, 0.0]], unit="m")).length.round(6)
    array([1.])
    """

    tail: ArrayLike
    head: ArrayLike
    length: ArrayLike
    kind = "streets"
    described = (*PerLength.described, ("tail", _place_numbers), ("head", _place_numbers), ("length", finites))
    edge_source = "streets"
    sparse = True
    network = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._graph()

    def _graph(self) -> Graph:
        return Graph(tail=self.tail, head=self.head, length=self.length)

    def in_unit_of(self, domain: Domain) -> Self:
        ratio = unit_ratio(self.unit, domain.unit)
        self._graph().in_unit_of(domain)
        if ratio == 1:
            return self
        return replace(super().in_unit_of(domain), length=np.asarray(self.length, float) * ROUND_DOWN * float(ratio))

    def unscaled_edges(self, domain: Domain) -> Edges:
        check_unit(self.unit, domain)
        return scale_down(self._graph().unscaled_edges(domain), self.epsilon)

    def claim(self, domain: Domain) -> str:
        return (
            "the shortest-path distance along the streets listed in this file, either way, times "
            f"{self.epsilon:.17g} nats per {unit_word(domain.unit)}"
        )

    def words(self, unit: str, axes: int) -> str:
        streets = len(np.asarray(self.length))
        return f"distance along {streets} streets, eps = {self.epsilon * self.scale:.3g} nats per {unit_word(unit)}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Roads(FrozenRecord):
    """A connected network of n nodes and e streets.

    Attributes
    ----------
    ids, points : (n,) str array, (n, 2) array
        The names of the nodes in their table; x and y in m, on `plane` if made from degrees.
    degrees, plane : (n, 2) array or None, Plane or None
        Longitude and latitude, if the table has them.
    tail, head, length : (e,) arrays
        Node numbers, tail < head; length in m.
    left_out : int
        Number of nodes outside the largest component.

    Examples
    --------
    >>> names, points = np.array(["a", "b"]), np.array([[0.0, 0.0], [90.0, 0.0]])
    >>> tail, head, length = np.array([0]), np.array([1]), np.array([100.0])
    >>> md.geo.Roads(ids=names, points=points, degrees=None, tail=tail, head=head, length=length).distances()[0]
    array([  0., 100.])
    """

    ids: NDArray[np.str_]
    points: Points
    degrees: Points | None
    tail: Indices
    head: Indices
    length: Vector
    left_out: int = 0
    plane: Plane | None = None

    @property
    def domain(self) -> Domain:
        return Domain.points_at(self.points, unit="m", plane=self.plane)

    def metric(self, epsilon: float) -> Streets:
        """Privacy along streets at epsilon, in nats per m.

        Examples
        --------
        >>> names, points = np.array(["a", "b"]), np.array([[0.0, 0.0], [90.0, 0.0]])
        >>> tail, head, length = np.array([0]), np.array([1]), np.array([100.0])
        >>> roads = md.geo.Roads(ids=names, points=points, degrees=None, tail=tail, head=head, length=length)
        >>> roads.metric(0.01).edges(roads.domain).length.round(6)
        array([1.])
        """
        return Streets(epsilon=epsilon, unit="m", tail=self.tail, head=self.head, length=self.length)

    def distances(self) -> Matrix:
        """Distances (n, n) along streets, in m.

        Examples
        --------
        >>> names, points = np.array(["a", "b"]), np.array([[0.0, 0.0], [90.0, 0.0]])
        >>> tail, head, length = np.array([0]), np.array([1]), np.array([100.0])
        >>> roads = md.geo.Roads(ids=names, points=points, degrees=None, tail=tail, head=head, length=length)
        >>> roads.distances()[0]
        array([  0., 100.])
        """
        return shortest_paths(Edges(tail=self.tail, head=self.head, length=self.length), len(self.ids))


@validate_call
def read_roads(
    nodes: str | Path, edges: str | Path, *, unit: str | None = None, largest_component: bool = False
) -> Roads:
    r"""Read a road network from CSV tables of its nodes and edges; see the module docstring for their columns.

    Parameters
    ----------
    nodes, edges : str or Path
        The tables.
    unit : {"m", "degree"}
        Unit of the coordinates. By default x and y in m, without a plane, else lon and lat; "degree" prefers these.
    largest_component : bool
        True to keep only the largest connected part; `left_out` counts the other nodes.

    Returns
    -------
    Roads

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nodes, edges = pathlib.Path(folder) / "nodes.csv", pathlib.Path(folder) / "edges.csv"
    ...     _ = nodes.write_text("id,x,y\na,0,0\nb,100,0\n"), edges.write_text("u,v,length\na,b,100\n")
    ...     md.geo.read_roads(nodes, edges).ids.tolist()
    ['a', 'b']
    """
    table = read_frame(nodes, "nodes", texts=_IDS)
    ids = table[_complete_column(table, _IDS, "nodes")]
    refuse_line(ids.duplicated().to_numpy(), table, [str(ids.name)], "nodes", "a node is listed twice")
    points, degrees, plane = _places(table, unit)
    names = ids.to_numpy(str)
    tail, head, length = _streets(read_frame(edges, "edges", texts=("u", "v")), names)
    whole = Roads(ids=names, points=points, degrees=degrees, tail=tail, head=head, length=length, plane=plane)
    roads = _connected_part(whole, largest=largest_component)
    _check_lengths(roads)
    return roads


def _complete_column(table: Any, names: tuple[str, ...], field: str) -> str:
    """The name of a column that has an entry in every line."""
    name = named_column(table, names, field)
    refuse_line((table[name].isna() | table[name].eq("")).to_numpy(), table, [name], field, f"{name} is empty")
    if len(table) == 0:
        raise InputError("has no lines", field=field, value=name)
    return name


def _places(table: Any, unit: str | None) -> tuple[Points, Points | None, Plane | None]:
    """Points (n, 2) in m; longitudes and latitudes (n, 2), if known; the plane, if points are made from these."""
    geographic = bool(matching_columns(table, LONGITUDE))
    planar = "x" in table.columns
    known = canonical_unit(unit or ("m" if planar else "degree"))
    if known not in ("m", "degree"):
        raise UnitError("must be m or degree", field="unit", value=unit)
    if known == "m" and not planar and geographic:
        raise UnitError("longitudes and latitudes are degrees, not lengths; use degree", field="unit", value=unit)
    if known == "degree":
        named = (LONGITUDE, LATITUDE) if geographic else (("x",), ("y",))
        degrees = degree_columns(table, named, "nodes")
        plane = _plane(degrees)
        return plane.forward(*degrees.T), degrees, plane
    points = np.column_stack([number_column(table, (axis,), "nodes") for axis in ("x", "y")])
    if not geographic:
        return points, None, None
    return points, degree_columns(table, (LONGITUDE, LATITUDE), "nodes"), None


def _plane(degrees: Points) -> Plane:
    longitude, latitude = degrees.T
    wrong = ~((abs(longitude) <= 360) & (abs(latitude) <= WIDEST))
    if wrong.any():
        raise UnitError(
            f"must be longitudes within 360 and latitudes within {WIDEST:g} degrees",
            field="nodes",
            value=f"{longitude[wrong][0]:g}, {latitude[wrong][0]:g}",
            remedy="pass unit m for projected coordinates",
        )
    east, _ = middle_longitude(longitude)
    north = float(latitude.min() + latitude.max()) / 2
    return Plane(latitude=round(north, 6), longitude=round(east, 6), unit="m")


def _streets(table: Any, names: NDArray[np.str_]) -> tuple[Indices, Indices, Vector]:
    import pandas as pd

    number = pd.Index(names)
    ends = []
    for end in ("u", "v"):
        node = number.get_indexer(table[_complete_column(table, (end,), "edges")])
        refuse_line(node < 0, table, [end], "edges", "an edge ends at a node that the nodes do not list")
        ends.append(node.astype(np.int64))
    length = number_column(table, ("length",), "edges")
    refuse_line(length <= 0, table, ["length"], "edges", "a length must be positive")
    tail, head = np.minimum(*ends), np.maximum(*ends)
    # Of parallel edges the shortest comes first, and `unique` keeps the first: privacy follows the shortest way.
    order = np.lexsort((length, head, tail))
    order = order[tail[order] != head[order]]
    _, first = np.unique(np.column_stack([tail[order], head[order]]), axis=0, return_index=True)
    chosen = order[first]
    return tail[chosen], head[chosen], length[chosen]


def _connected_part(whole: Roads, *, largest: bool) -> Roads:
    ids, tail, head = whole.ids, whole.tail, whole.head
    graph = sp.csr_array((whole.length, (tail, head)), shape=(len(ids),) * 2)
    # Without a path between two nodes no distance is finite, and nothing would bound their odds.
    count, label = connected_components(graph, directed=False)
    sizes = np.bincount(label)
    order = np.argsort(-sizes, kind="stable")
    if count > 1 and not largest:
        shown = [f"{sizes[k]} node(s) with {ids[np.argmax(label == k)]}" for k in order[:_SHOWN]]
        more = f" and {count - _SHOWN} more" if count > _SHOWN else ""
        raise InputError(
            f"the network has {count} disconnected components ({int((sizes == 1).sum())} are single nodes)",
            field="edges",
            value="; ".join(shown) + more,
            remedy="add the missing streets, or pass largest_component=True",
        )
    selected = label == order[0]
    number = np.cumsum(selected) - 1
    inside = selected[tail]
    return replace(
        whole,
        ids=ids[selected],
        points=whole.points[selected],
        degrees=None if whole.degrees is None else whole.degrees[selected],
        tail=number[tail[inside]],
        head=number[head[inside]],
        length=whole.length[inside],
        left_out=int((~selected).sum()),
    )


def _check_lengths(roads: Roads) -> None:
    """Refuse coordinates and lengths in different units: a street is about as long as the line between its ends."""
    straight = np.hypot(*(roads.points[roads.tail] - roads.points[roads.head]).T)
    low, high = _LIKELY
    typical = float(np.median(straight / roads.length))
    if not 1 / high <= typical <= 1 / low:
        raise UnitError(
            "streets are not about as long as the straight lines between their ends",
            field="unit",
            value=f"a median line of {typical:.3g} per unit of length",
            remedy="lengths are in m; pass unit degree for longitudes and latitudes in x and y",
        )

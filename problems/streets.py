r"""Privacy along streets: report a crossing of a road network, hard to distinguish from those a short walk away.

    secrets   the nodes of a road network: synthetic, or read from tables of nodes and edges such as OSMnx writes
    prior     uniform, or proportional to the length of the streets that meet at a node
    metric    epsilon times the length of the shortest path along streets, both directions of a street alike
    loss      the distance from secret to report in m, along streets or straight

Synthetic networks have crossings at random places. Their streets are the edges of the relative neighbourhood graph (no
third node is nearer to both ends than the ends to each other), and a share of the other edges of the Gabriel graph
(their diametral circle is empty). Both are planar and connected. A street is longer than its straight line by up to
30 %, uniformly.
Source: Toussaint, The relative neighbourhood graph of a finite planar set, Pattern Recognition 12 (1980).

Claim: ours. scripts/streets.py compares privacy along streets with straight-line privacy on one network.
"""

import numpy as np
from numpy.typing import NDArray

from mechdesign import DesignProblem, priors
from mechdesign.base.memory import require_memory, require_places
from mechdesign.base.validation import check_whole
from mechdesign.errors import InputError
from mechdesign.geo.roads import Roads, read_roads
from mechdesign.losses import Distance, TableLoss

SPACING = 100.0  # m: a node per square of this side
_SHORTCUTS = 0.3  # share of the other Gabriel edges that are streets
_MAX_BEND = 0.3  # relative excess of a street over its straight line
_MIN_NODES = 3
_BLOCK = 1 << 20  # entries of a table of distances; four tables are in memory


def problem(
    nodes: int = 500,
    seed: int = 1,
    epsilon: float = 0.01,
    prior: str = "uniform",
    loss: str = "streets",
    nodes_file: str = "synthetic",
    edges_file: str = "synthetic",
    unit: str = "auto",
    largest_component: str = "no",
) -> DesignProblem:
    """The design problem.

    Parameters: nodes and seed of the synthetic network, a node per hectare; epsilon in nats per m; prior, uniform or
    length; loss, streets or straight; nodes_file and edges_file, CSV tables (both, or neither); unit of their x and y,
    m or degree, or auto (columns lon and lat are degrees, x and y m); largest_component, yes to keep that part only.
    Nodes in degrees are projected to a plane; queries and reports are in degrees.
    """
    for name, value, known in (
        ("prior", prior, ("uniform", "length")),
        ("loss", loss, ("streets", "straight")),
        ("largest_component", largest_component, ("yes", "no")),
    ):
        if value not in known:
            raise InputError("unknown choice", field=name, value=value, remedy="use " + " or ".join(known))
    if (nodes_file == "synthetic") != (edges_file == "synthetic"):
        raise InputError(
            "a network has two tables", field="edges_file", value=edges_file, remedy="give nodes_file and edges_file"
        )
    if nodes_file == "synthetic":
        require_memory(nodes, nodes, tables=7, noun="a mechanism over the nodes", field="nodes", remedy="use fewer")
        roads = synthetic_roads(nodes, seed)
    else:
        file_unit = None if unit == "auto" else unit
        roads = read_roads(nodes_file, edges_file, unit=file_unit, largest_component=largest_component == "yes")
    domain = roads.domain
    street_length = np.bincount(np.concatenate([roads.tail, roads.head]), np.tile(roads.length, 2), domain.size)
    return DesignProblem(
        domain=domain,
        metric=roads.metric(epsilon),
        prior=priors.uniform(domain) if prior == "uniform" else priors.proportional(street_length),
        loss=TableLoss(values=roads.distances(), unit="m") if loss == "streets" else Distance(),
    )


def synthetic_roads(nodes: int, seed: int) -> Roads:
    """A connected network of `nodes` crossings in a square of one node per 100 m x 100 m. Cost: O(e n)."""
    from scipy.spatial import Delaunay

    check_whole(nodes, "nodes", minimum=_MIN_NODES)
    check_whole(seed, "seed", minimum=0)
    require_places(nodes, field="nodes")
    rng = np.random.default_rng(seed)
    points = SPACING * np.sqrt(nodes) * rng.uniform(size=(nodes, 2))
    corners = Delaunay(points).simplices
    pairs = np.unique(np.sort(np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]])), axis=0)
    tail, head = pairs.T.astype(np.int64)
    straight, relative, gabriel = _neighbours(points, tail, head)
    is_street = relative | (gabriel & (rng.uniform(size=len(pairs)) < _SHORTCUTS))
    length = straight * (1 + _MAX_BEND * rng.uniform(size=len(pairs)))
    return Roads(
        ids=np.arange(nodes).astype(str),
        points=points,
        degrees=None,
        tail=tail[is_street],
        head=head[is_street],
        length=length[is_street],
    )


def _neighbours(
    points: NDArray[np.float64], tail: NDArray[np.int64], head: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
    """The lengths (e,) of pairs of points (n, 2), and masks of relative neighbourhood and of Gabriel edges."""
    from scipy.spatial.distance import cdist

    straight = np.empty(len(tail))
    relative, gabriel = np.empty(len(tail), bool), np.empty(len(tail), bool)
    rows = max(_BLOCK // len(points), 1)
    for first in range(0, len(tail), rows):
        block = slice(first, first + rows)
        ends, pair = (tail[block], head[block]), np.arange(len(tail[block]))
        from_tail, from_head = (cdist(points[end], points) for end in ends)
        straight[block] = from_tail[pair, ends[1]]
        farther, circles = np.maximum(from_tail, from_head), from_tail**2 + from_head**2
        # The two ends of a pair are not third nodes.
        for table in (farther, circles):
            for end in ends:
                table[pair, end] = np.inf
        relative[block] = farther.min(axis=1) >= straight[block]
        gabriel[block] = circles.min(axis=1) >= straight[block] ** 2
    return straight, relative, gabriel

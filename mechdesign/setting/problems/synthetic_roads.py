r"""Synthetic road networks, for use where no map is at hand: crossings at random places, streets between neighbours.

Streets are the edges of the relative neighbourhood graph, those with no third node nearer to both ends than they are to
each other, and a share of the other edges of the Gabriel graph, whose diametral circle is empty. Both are planar and
connected. A street is longer than its straight line by up to 30 %, uniformly. The spacing sets the scale.
Source: Toussaint, The relative neighbourhood graph of a finite planar set, Pattern Recognition 12 (1980).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.arguments import asked
from mechdesign.base.memory import require_places
from mechdesign.errors import InputError
from mechdesign.setting.readers.roads import Roads

SPACING = 100.0  # m: a node per square of this side
_SHORTCUTS = 0.3  # share of the other Gabriel edges
_BENDS = 0.3
_FEWEST = 3
_TABLE = 1 << 20  # distances held at once, four times


@asked
def synthetic_roads(nodes: int, seed: int) -> Roads:
    """A connected network of `nodes` crossings in a square of one node per 100 m x 100 m.

    Raises: InputError for fewer than three nodes or a negative seed; SizeError for more nodes than a domain has.
    Cost: O(e n), 10 ns each.
    """
    from scipy.spatial import Delaunay

    if nodes < _FEWEST:
        raise InputError("must be at least 3", field="nodes", value=nodes, remedy="use 500")
    if seed < 0:
        raise InputError("must be 0 or more", field="seed", value=seed, remedy="use seed 1")
    require_places(nodes, field="nodes")
    rng = np.random.default_rng(seed)
    points = SPACING * np.sqrt(nodes) * rng.uniform(size=(nodes, 2))
    corners = Delaunay(points).simplices
    pairs = np.unique(np.sort(np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]])), axis=0)
    tail, head = pairs.T.astype(np.int64)
    straight, relative, gabriel = _neighbours(points, tail, head)
    kept = relative | (gabriel & (rng.uniform(size=len(pairs)) < _SHORTCUTS))
    length = straight * (1 + _BENDS * rng.uniform(size=len(pairs)))
    return Roads(
        ids=np.arange(nodes).astype(str),
        points=points,
        degrees=None,
        tail=tail[kept],
        head=head[kept],
        length=length[kept],
    )


def _neighbours(
    points: NDArray[np.float64], tail: NDArray[np.int64], head: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
    """The lengths (e,) of pairs of points (n, 2), and which of them are edges of the relative neighbourhood graph and
    of the Gabriel graph. Memory: 32 MB.
    """
    from scipy.spatial.distance import cdist

    straight = np.empty(len(tail))
    relative, gabriel = np.empty(len(tail), bool), np.empty(len(tail), bool)
    rows = max(_TABLE // len(points), 1)
    for first in range(0, len(tail), rows):
        block = slice(first, first + rows)
        ends, own = (tail[block], head[block]), np.arange(len(tail[block]))
        from_tail, from_head = (cdist(points[end], points) for end in ends)
        straight[block] = from_tail[own, ends[1]]
        farther, circles = np.maximum(from_tail, from_head), from_tail**2 + from_head**2
        for table in (farther, circles):
            for end in ends:
                table[own, end] = np.inf
        relative[block] = farther.min(axis=1) >= straight[block]
        gabriel[block] = circles.min(axis=1) >= straight[block] ** 2
    return straight, relative, gabriel

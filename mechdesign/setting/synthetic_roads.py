r"""Synthetic road networks, for use where no map is at hand: crossings at random places, streets between neighbours.

Streets are the edges of the relative neighbourhood graph, those with no third node nearer to both ends than they are to
each other, and a share of the other edges of the Gabriel graph, whose diametral circle is empty. Both are planar and
connected. A street is longer than its straight line by up to 30 %, uniformly. The spacing sets the scale.
Source: Toussaint, The relative neighbourhood graph of a finite planar set, Pattern Recognition 12 (1980).
"""

from __future__ import annotations

import numpy as np

from mechdesign.errors import InputError
from mechdesign.setting.roads import Roads

SPACING = 100.0  # m: a node per square of this side
_SHORTCUTS = 0.3  # share of the other Gabriel edges
_BENDS = 0.3
_FEWEST = 3


def synthetic_roads(nodes: int, seed: int) -> Roads:
    """A connected network of `nodes` crossings in a square of one node per 100 m x 100 m.

    Raises: InputError for fewer than three nodes. Cost: O(n^2) memory for a row of distances per edge.
    """
    from scipy.spatial import Delaunay
    from scipy.spatial.distance import cdist

    if nodes < _FEWEST:
        raise InputError("must be at least 3", field="nodes", value=nodes, remedy="use 500")
    rng = np.random.default_rng(seed)
    points = SPACING * np.sqrt(nodes) * rng.uniform(size=(nodes, 2))
    corners = Delaunay(points).simplices
    pairs = np.unique(np.sort(np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]])), axis=0)
    tail, head = pairs.T.astype(np.int64)
    apart = cdist(points, points)
    straight = apart[tail, head]
    rivals = np.array([np.maximum(apart[a], apart[b]) for a, b in pairs])
    circles = np.array([apart[a] ** 2 + apart[b] ** 2 for a, b in pairs])
    own = np.arange(len(pairs))
    for table in (rivals, circles):
        table[own, tail] = table[own, head] = np.inf
    relative, gabriel = rivals.min(axis=1) >= straight, circles.min(axis=1) >= straight**2
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

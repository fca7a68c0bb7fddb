r"""The dual Sobolev norm H^-1 on a domain: H^-1, for differences of distributions of secrets.

    |z|^2 = z^T L^+ z = max over f of (sum_u f(u) z(u))^2
            subject to  sum over pairs of neighbours of (f(u) - f(v))^2 / l(u, v)^2 <= 1

L is the graph Laplacian with weight 1 / l^2 on a pair of neighbours at distance l, L^+ its pseudo-inverse, z (n,) sums
to 0. The Kantorovich distance has the same form with |f(u) - f(v)| <= l(u, v) for all pairs in place of the sum of
squares; this one is a quadratic form, so that the mean over random z needs their covariance alone.
Neighbours: of places with coordinates the pairs that no third place is nearer to both of (the relative neighbourhood
graph, which holds a shortest spanning tree and so is connected): on a grid the cells beside each other on an axis, and
the nearest ones across masked cells. Nodes of a graph have no coordinates with a meaning: the edges of the metric, each
of length 1.
Unit: z^T L^+ z is in squared units of the domain (1 for nodes); cells of twice the size have four times the norm.
Source: Peyre, "Comparison between W2 distance and H^-1 norm", 2018, for the linearisation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import SizeError
from mechdesign.setting.metric.shortest_paths import Edges
from mechdesign.setting.space.domain import Domain
from mechdesign.setting.space.lattice import Pairs, stencil_pairs

LARGEST = 1600  # secrets: 40 x 40; dense algebra of O(n^3), seconds there
_TIE = 1e-9  # relative; a place nearer by less than this does not part two others
_FACES = {1: 4, 2: 4, 3: 6}  # by number of axes, the stencil of cells that share a face


def dual_sobolev_norm(domain: Domain, edges: Edges) -> NDArray[np.float64]:
    """L^+ (n, n), symmetric, rows of sum 0, in squared units of the domain; edges of the metric, for nodes.

    Raises: SizeError beyond 1,600 places. Cost: O(n^3).
    """
    n = domain.size
    if n > LARGEST:
        raise SizeError(
            f"the dual Sobolev norm inverts an n x n matrix, and takes at most {LARGEST} secrets",
            field="cells",
            value=n,
            remedy="use fewer cells",
        )
    tail, head = neighbours(domain, edges)
    length = np.ones(len(tail))
    if domain.kind != "nodes":
        length = np.sqrt(((domain.points[tail] - domain.points[head]) ** 2).sum(axis=1))
    scale = float(length.min())
    weight = (scale / length) ** 2
    laplacian = np.zeros((n, n))
    np.add.at(laplacian, (np.r_[tail, head], np.r_[head, tail]), -np.r_[weight, weight])
    np.fill_diagonal(laplacian, -laplacian.sum(axis=1))
    lifted = np.linalg.inv(laplacian + 1 / n) - 1 / n
    return np.asarray(scale**2 * (lifted + lifted.T) / 2)


def neighbours(domain: Domain, edges: Edges) -> Pairs:
    """The pairs (tail, head) that the module docstring names. Cost: O(n^3), on a whole grid O(n)."""
    if domain.kind == "nodes":
        return edges.tail, edges.head
    if domain.shape is not None and domain.size == int(np.prod(domain.shape)):
        return stencil_pairs(domain, _FACES[domain.dimension])
    return relative_neighbours(domain)


def relative_neighbours(domain: Domain) -> Pairs:
    """Pairs u < v with no place w at which max(|u - w|, |w - v|) < |u - v|."""
    distance = domain.euclidean_to(domain)
    parts = []
    for u in range(domain.size - 1):
        detour = np.maximum(distance[u], distance[u + 1 :]).min(axis=1)
        parts.append(u + 1 + np.flatnonzero(detour >= distance[u, u + 1 :] * (1 - _TIE)))
    tail = np.repeat(np.arange(domain.size - 1), [len(part) for part in parts])
    return tail, np.concatenate(parts)

r"""The error of an estimated distribution, as a quadratic form z^T W z, z (n,) the difference of two distributions.

    transport   W = L^+, the dual Sobolev norm H^-1, a proxy of the earth mover's distance squared
    square      W = I: the squared error, summed over the secrets
    areas       W = A A^T, A (n, k) with A(u, j) = 1 where secret u lies in area j

z sums to 0, so W is returned as C W C, C = I - 1 1^T / n, with rows of sum 0. Unit: squared units of the domain for
transport (1 for nodes), 1 for the others.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Indices, Matrix
from mechdesign.errors import InputError, SizeError
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import Edges, Pairs, stencil_pairs
from mechdesign.problem.problem import DesignProblem

ErrorKind = Literal["transport", "square", "areas"]
KINDS: tuple[str, ...] = get_args(ErrorKind)
NOWHERE = -1  # label of a secret that lies in no area
LARGEST = 1600  # secrets: 40 x 40; dense algebra of O(n^3), seconds there
_TIE = 1e-9  # relative; a place nearer by less than this does not part two others
_FACES = {1: 4, 2: 4, 3: 6}  # by number of axes, the stencil of cells that share a face


#     (1)  z^T L^+ z = max over f of (sum_u f(u) z(u))^2
#                      subject to  sum over pairs of neighbours of (f(u) - f(v))^2 / l(u, v)^2 <= 1.
# L is the graph Laplacian with weight 1 / l^2 on neighbours at distance l. Neighbours are the pairs of places that no
# third place is nearer to both of (the connected relative neighbourhood graph). For nodes, they are the edges of the
# metric with length 1. Source: Peyre, "Comparison between W2 distance and H^-1 norm", 2018, for the linearisation.
def dual_sobolev_norm(domain: Domain, edges: Edges) -> Matrix:
    """L^+ (n, n), symmetric, rows of sum 0, in squared units of the domain; edges of the metric, for nodes."""
    n = domain.size
    if n > LARGEST:
        raise SizeError(f"the dual Sobolev norm takes at most {LARGEST} secrets", field="cells", value=n)
    tail, head = neighbours(domain, edges)
    length = np.ones(len(tail))
    if domain.kind != "nodes":
        length = np.sqrt(((domain.points[tail] - domain.points[head]) ** 2).sum(axis=1))
    # L of (1), with lengths in units of the shortest: in metres the weights would be tiny next to the 1/n below.
    scale = float(length.min())
    weight = (scale / length) ** 2
    laplacian = np.zeros((n, n))
    np.add.at(laplacian, (np.r_[tail, head], np.r_[head, tail]), -np.r_[weight, weight])
    np.fill_diagonal(laplacian, -laplacian.sum(axis=1))
    # Adding 1/n lifts the eigenvalue 0 of the constants, which is subtracted again: the pseudo-inverse by one inverse.
    lifted = np.linalg.inv(laplacian + 1 / n) - 1 / n
    return np.asarray(scale**2 * (lifted + lifted.T) / 2)


def neighbours(domain: Domain, edges: Edges) -> Pairs:
    """The pairs (tail, head) of neighbours in (1). Cost: O(n^3), on a whole grid O(n)."""
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
        # A grid has many equal distances: without the tolerance rounding would decide which pairs are neighbours.
        detour = np.maximum(distance[u], distance[u + 1 :]).min(axis=1)
        parts.append(u + 1 + np.flatnonzero(detour >= distance[u, u + 1 :] * (1 - _TIE)))
    tail = np.repeat(np.arange(domain.size - 1), [len(part) for part in parts])
    return tail, np.concatenate(parts)


def error_norm(problem: DesignProblem, kind: ErrorKind, areas: Indices | None) -> Matrix:
    """W (n, n), symmetric and positive semidefinite, rows of sum 0; areas (n,), labels, for kind "areas"."""
    n = problem.domain.size
    if kind == "transport":
        return dual_sobolev_norm(problem.domain, problem.edges)
    if areas is None:
        return np.asarray(np.eye(n) - 1 / n)
    # C A A^T C by centring the columns of A first.
    inside = area_indicators(areas)
    inside = inside - inside.mean(axis=0)
    return np.asarray(inside @ inside.T)


def root_of(norm: Matrix) -> Matrix:
    """R (n, n - 1) with R R^T = W, whose eigenvalue 0 of the constants is left out."""
    value, vector = np.linalg.eigh(norm)
    return np.asarray((vector * np.sqrt(np.maximum(value, 0.0)))[:, 1:])


def area_indicators(areas: Indices) -> Matrix:
    """A (n, k), one column for each label, in ascending order."""
    return np.asarray((areas[:, None] == np.unique(areas[areas != NOWHERE])).astype(float))


def check_kind(kind: str, areas: ArrayLike | None, n: int) -> Indices | None:
    """The labels of areas (n,), None where the kind of error has none; InputError for anything else."""
    if kind not in KINDS:
        raise InputError("must be transport, square or areas", field="error", value=kind)
    if (areas is None) != (kind != "areas"):
        raise InputError('must be passed if error is "areas", and only then', field="areas")
    if areas is None:
        return None
    labels = np.asarray(areas)
    if labels.shape != (n,) or labels.dtype.kind not in "iu" or labels.min() < NOWHERE:
        message = f"must be {n} integers, one label for each secret, or -1 for a secret in no area"
        raise InputError(message, field="areas", value=f"{labels.dtype} {labels.shape}")
    if len(np.unique(labels)) < 2:
        raise InputError("needs at least two labels", field="areas", value=f"label {labels[0]} everywhere")
    return labels.astype(np.int64)

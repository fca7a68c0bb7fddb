r"""The program of near pairs: the constraints of a Euclidean metric between the neighbours of a stencil only.

    minimise    the objective of the program over all pairs
    subject to  P >= 0,  sum_y P(y|u) = 1                       for every secret u                      (1)
                P(y|u) <= e^{eps |u - v|} P(y|v)                for all neighbours u, v and reports y   (2)

Known: with fewer constraints the optimum can only fall, so its lower bounds hold over all pairs. Along shortest paths g
of the graph of near pairs |u - v| <= g(u, v) <= k |u - v|, so privacy for near pairs at eps / k is privacy over all
pairs at eps. Without a mask, k <= 1.0131 for square cells and the 32 neighbours taken here. Source: ours.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mechdesign.errors import InputError, UnsuitableError
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import Edges, shortest_paths, stencil_pairs
from mechdesign.problem.metrics import Euclidean, Graph
from mechdesign.problem.problem import DesignProblem

STENCIL = 32


def near_edges(edges: Edges, domain: Domain, stencil: int = STENCIL) -> Edges:
    """The edges between neighbours of a stencil, as long as they were."""
    # (2): a pair (u, v) as the single number u n + v
    tail, head = stencil_pairs(domain, stencil)
    is_near = np.isin(edges.tail * domain.size + edges.head, tail * domain.size + head)
    return Edges(tail=edges.tail[is_near], head=edges.head[is_near], length=edges.length[is_near])


def near_pairs(problem: DesignProblem) -> DesignProblem:
    """The problem with near pairs alone, on a grid of one or two axes; its edges are among those of `problem`."""
    domain = problem.domain
    if not isinstance(problem.metric, Euclidean) or domain.kind != "grid" or domain.dimension > 2:
        message = "near pairs need a Euclidean metric on a grid of one or two axes"
        value = f"graph, for a {problem.metric.kind} metric on {domain.kind} of {domain.dimension} axes"
        raise UnsuitableError(message, field="method", value=value)
    edges = near_edges(problem.edges, domain)
    near = replace(problem, metric=Graph(tail=edges.tail, head=edges.head, length=edges.length))
    # A mask can leave parts that no neighbour of the stencil joins; edges check that the graph is connected.
    try:
        near.edges  # noqa: B018
    except InputError as error:
        raise UnsuitableError(
            "near pairs leave the domain disconnected: no neighbour of the stencil joins its parts",
            field="method",
            value="graph",
        ) from error
    return near


def excess(problem: DesignProblem, near: DesignProblem) -> float:
    """The factor k >= 1: the largest distance along near pairs over the distance itself. Cost: n searches."""
    # A ratio below 1 is rounding: no path is shorter than the distance.
    paths, edges = shortest_paths(near.edges, near.domain.size), problem.edges
    return max(1.0, float((paths[edges.tail, edges.head] / edges.length).max()))

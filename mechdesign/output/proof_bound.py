"""The lower bound of a table as integers: multipliers, costs, and a tree of edges for each report.

Costs are rounded down to 2^-b, so that 2^b times the bound has 90 bits. The residual of a report is its cost less the
multipliers, by secret. A step of its tree settles a child. A negative residual is taken from the parent times e^d, a
positive one is given to it times e^-d, both rounded to the safe side. `mechdesign-check` repeats these steps in the
same integers. Where the root ends below 0, its multiplier is lowered by that much: the trees then prove all reports.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.arrays import Matrix
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.mechanism.schema import stored_points
from mechdesign.problem.losses import LENGTH, SQUARE
from mechdesign.programs.coupled import Coupled
from mechdesign.solvers.cone.pricing import ConePricer, limit_terms, project_dual, sum_down
from mechdesign.solvers.cone.pricing_trees import pricing_trees
from mechdesign.solvers.solve import rebuilt_program
from mechdesign.verification.objectives import bounded_rows

BOUND, GRAPH = 6, 7  # numbers of sections
COST_BITS = 90  # of the bound, in units of the costs
PLACES, SQUARINGS = 320, 140  # of the exponential, as in proofs/checker/main.ml

Step = tuple[int, int]  # the number of an edge, from 1 on, and 1 if the child is its tail, else 0


class Plane(Protocol):
    """Coordinates and level of a Euclidean claim."""

    def square(self, u: int, v: int) -> int: ...
    def length(self, square: int, denominator: int, *, up: bool = False) -> int: ...
    def denominator(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class Graph:
    """Edges (tail, head, length), each in nats times the denominator."""

    edges: list[tuple[int, int, int]]
    denominator: int
    is_new: bool = False  # True if no other section lists these edges

    def steps(self) -> dict[tuple[int, int], Step]:
        """The step of every child and parent that an edge joins."""
        forth = {(tail, head): (number, 1) for number, (tail, head, _) in enumerate(self.edges, 1)}
        return {**{(head, tail): (number, 0) for (tail, head), (number, _) in forth.items()}, **forth}


@dataclass(frozen=True, kw_only=True, eq=False)
class Costs:
    """Costs (n, m) whose sum has multipliers; the side cost of any mechanism within the limits is at most `limit`."""

    objective: Matrix
    side: Matrix | None = None
    limit: float = 0.0


@dataclass(frozen=True, kw_only=True)
class BoundProof:
    """Multipliers (n,), costs (m, n) by objective and a tree for each report, all in units of 2^-bits."""

    bits: int
    graph: Graph
    multipliers: list[int]
    limits: list[int]  # of the second objective, if there is one
    costs: list[list[list[int]]]
    trees: list[list[Step]]

    @property
    def value(self) -> Fraction:
        """The bound that the integers prove."""
        return Fraction(sum(self.multipliers) - sum(self.limits), 1 << self.bits)

    def tokens(self) -> Iterator[list[int]]:
        if self.graph.is_new:
            yield [GRAPH, len(self.graph.edges), self.graph.denominator, *chain(*self.graph.edges)]
        # Every objective has weight 1.
        count = len(self.costs)
        yield [BOUND, self.bits, count, *[1] * count, *self.limits, *self.multipliers, len(self.trees)]
        for *columns, tree in zip(*self.costs, self.trees, strict=True):
            yield [*chain(*columns), len(tree), *chain(*tree)]


def bound_of(stored: MechanismFile, plane: Plane | None) -> BoundProof | None:
    """The proof of the lower bound of a file; None without multipliers, or for a claim between positions."""
    mechanism = stored.mechanism
    if "lower_bound" not in mechanism.attrs or "dual" not in mechanism or stored.positions is not None:
        return None
    dual, cost = mechanism["dual"].values, costs_of(stored)
    if cost is None or not np.isfinite(dual).all():
        return None
    effective = cost.objective if cost.side is None else cost.objective + cost.side
    parents = _parents(stored, effective)
    bits = max(0, COST_BITS - math.frexp(abs(float(dual.sum())))[1])
    graph = _edges_of_file(stored) if plane is None else _edges_of_trees(parents, plane)
    steps = graph.steps()
    trees = [_tree(parent, steps) for parent in parents.tolist()]
    costs = [_exact_costs(stored, bits) or _integers(cost.objective, bits)]
    if cost.side is not None:
        costs.append(_integers(cost.side, bits))
    multipliers = [math.floor(Fraction(value) * (1 << bits)) for value in dual.tolist()]
    return BoundProof(
        bits=bits,
        graph=graph,
        multipliers=_lower(multipliers, costs, trees, graph),
        limits=[] if cost.side is None else [math.ceil(Fraction(cost.limit) * (1 << bits))],
        costs=costs,
        trees=trees,
    )


def _parents(stored: MechanismFile, cost: Matrix) -> NDArray[np.int32]:
    """The parents (m, n) of the trees of a file; computed for a file without trees."""
    dual = stored.mechanism["dual"].values
    if "tree" not in stored.mechanism:
        return pricing_trees(ConePricer.of(stored.problem), cost, dual)
    place = np.arange(len(dual), dtype=np.int32)
    parent = (place + stored.mechanism["tree"].values).astype(np.uint16).astype(np.int32)
    # A parent beyond the table makes its child a root.
    return np.where(parent < len(dual), parent, place)


def costs_of(stored: MechanismFile) -> Costs | None:
    """The costs that the multipliers of a file bound; None if constraints of it are not in the file."""
    if "objective" not in stored.mechanism.attrs:
        return Costs(objective=stored.problem.weighted_loss)
    program = rebuilt_program(stored.mechanism.attrs["program"], stored.problem, stored.parameters)
    rows = bounded_rows(stored, program) if isinstance(program, Coupled) else None
    if rows is None or "multiplier" not in stored.mechanism:
        return None
    assert isinstance(program, Coupled)
    admissible = project_dual(stored.mechanism["multiplier"].values, rows.epigraph_coefficient)
    # Rows with s > 0 bound the objective, and those with s = 0 are limits.
    of_objective = np.where(rows.epigraph_coefficient > 0, admissible, 0.0)
    of_limits = admissible - of_objective
    if (of_objective * rows.limit).any():
        return None
    cost = rows.lagrangian_cost_down(program.base_cost(), of_objective)
    if not of_limits.any():
        return Costs(objective=cost)
    limit = -sum_down(limit_terms(rows.limit, of_limits))
    return Costs(objective=cost, side=rows.lagrangian_cost_down(np.zeros_like(cost), of_limits), limit=limit)


def _integers(cost: Matrix, bits: int) -> list[list[int]]:
    """The costs (m, n) in units of 2^-bits, rounded down."""
    return [[math.floor(Fraction(value) * (1 << bits)) for value in column] for column in cost.T.tolist()]


def _exact_costs(stored: MechanismFile, bits: int) -> list[list[int]] | None:
    """The expected loss (m, n) by exact coordinates, in units of 2^-bits, rounded down; None for another objective."""
    code = None if "objective" in stored.mechanism.attrs else stored.loss.code
    if code not in (SQUARE, LENGTH):
        return None
    secrets, reports = stored.domain.points, stored_points(stored.mechanism, "report")
    fine = max(number.as_integer_ratio()[1] for number in (*secrets.ravel().tolist(), *reports.ravel().tolist()))
    places = [[int(Fraction(x) * fine) for x in point] for point in secrets.tolist()]
    prior = [Fraction(value) for value in stored.mechanism["prior"].values.tolist()]
    columns = []
    for report in reports.tolist():
        at = [int(Fraction(x) * fine) for x in report]
        squares = [sum((a - b) ** 2 for a, b in zip(place, at, strict=True)) for place in places]
        # prior square / fine^2, or the root of its square.
        terms = zip(prior, squares, strict=True)
        if code == SQUARE:
            columns.append([(p.numerator * s << bits) // (p.denominator * fine**2) for p, s in terms])
        else:
            over = [(p.numerator**2 * s << 2 * bits, p.denominator * fine) for p, s in terms]
            columns.append([math.isqrt(square // under**2) for square, under in over])
    return columns


def _edges_of_file(stored: MechanismFile) -> Graph:
    edges = stored.edges
    lengths = [Fraction(length) for length in edges.length.tolist()]
    denominator = max(length.denominator for length in lengths)
    ends = zip(edges.tail.tolist(), edges.head.tolist(), lengths, strict=True)
    return Graph(edges=[(u, v, int(length * denominator)) for u, v, length in ends], denominator=denominator)


def _edges_of_trees(parents: NDArray[np.int32], plane: Plane) -> Graph:
    """The edges of the trees, each at least as long as its distance."""
    n, denominator = parents.shape[1], plane.denominator()
    child = np.broadcast_to(np.arange(n), parents.shape)
    keys = np.unique(np.minimum(child, parents).astype(np.int64) * n + np.maximum(child, parents))
    pairs = [(int(key) // n, int(key) % n) for key in keys if key // n != key % n]
    edges = [(u, v, plane.length(plane.square(u, v), denominator, up=True)) for u, v in pairs]
    return Graph(edges=edges, denominator=denominator, is_new=True)


def _tree(parent: list[int], steps: dict[tuple[int, int], Step]) -> list[Step]:
    """The steps of a tree, children before their parents. A pair that is not an edge is left out, as is a circle."""
    children = [0] * len(parent)
    for v, up in enumerate(parent):
        children[up] += v != up
    ready, tree = [v for v, up in enumerate(parent) if v != up and not children[v]], []
    while ready:
        v = ready.pop()
        up = parent[v]
        if (v, up) in steps:
            tree.append(steps[v, up])
        children[up] -= 1
        if not children[up] and parent[up] != up:
            ready.append(up)
    return tree


def _lower(multipliers: list[int], costs: list[list[list[int]]], trees: list[list[Step]], graph: Graph) -> list[int]:
    """The multipliers, lowered where a tree leaves a residual below 0."""
    factors = {length: exp_down(-length, graph.denominator) for _, _, length in graph.edges}
    ways = {step: (child, up, factors[graph.edges[step[0] - 1][2]]) for (child, up), step in graph.steps().items()}
    lacks = [0] * len(multipliers)
    for *columns, tree in zip(*costs, trees, strict=True):
        rest = [(sum(parts) - multiplier) << PLACES for *parts, multiplier in zip(*columns, multipliers, strict=True)]
        for step in tree:
            child, up, factor = ways[step]
            x = rest[child]
            if x < 0:
                amount = -(x // max(1, factor))
                rest[child] += amount * factor
                rest[up] -= amount << PLACES
            else:
                amount = x >> PLACES
                rest[child] -= amount << PLACES
                rest[up] += amount * factor
        # Settling never falls where a residual rises: one lowering proves every report.
        lacks = [max(lack, -(x >> PLACES)) for lack, x in zip(lacks, rest, strict=True)]
    return [multiplier - lack for multiplier, lack in zip(multipliers, lacks, strict=True)]


def exp_down(numerator: int, denominator: int) -> int:
    """An integer of at most 2^320 times e^(numerator / denominator), by 1 + x <= e^x and squares rounded down."""
    value = (1 << PLACES) + (numerator << PLACES) // (denominator << SQUARINGS)
    for _ in range(SQUARINGS):
        value = value * value >> PLACES
    return value

"""The weights of a pool of columns, and multipliers of their row sums: a proximal interior-point method.

    minimise    sum_k w_k c_k  +  sum_u kappa scale_u (1 - s(u))^2 / 2  +  sum_u lambda0(u) (1 - s(u))
    over        w >= 0,  where  s = G' w  are the row sums

Its dual is the linear program over the pool with a pull to the multipliers before. It maximises sum lambda less
sum (lambda - lambda0)^2 / (2 kappa scale) subject to G lambda <= c. The pull keeps them where they were priced.
Residuals 1 - s = (lambda - lambda0) / (kappa scale) show missing columns, and fall as pricing brings them. It also
makes the normal equations of a step,

    (G' diag(w / z) G + diag(1 / (kappa scale))) dlambda = right side,     z = c - G lambda,

well enough conditioned for conjugate gradients; the steps are those of solvers/interior_point.py. The equations of a
step, solved to one per cent, see the large entries of G alone; row sums and prices see all of it.
Preconditioner: additive Schwarz methods, e.g. Toselli and Widlund, Domain Decomposition Methods, 2005; use here ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np
import scipy.linalg.lapack
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from mechdesign.base.arrays import Floats, Indices32, Integers, Singles, Vector
from mechdesign.base.threads import in_blocks
from mechdesign.factored.ball import Places
from mechdesign.solvers.interior_point import Point, run_predictor_corrector


@dataclass(frozen=True, kw_only=True)
class MasterConstants:
    """Constants of the master: guesses, but where a measurement is named; nothing that is proved depends on them."""

    pull: float = 3.0  # kappa
    floor: float = 1.0  # of the mean multiplier: the least scale; less leaves steep row sums where the prior is small
    start: float = 3e-3  # complementarity at the start, relative to the loss
    steps: int = 12  # Newton steps at most
    row_error: float = 0.02  # residual of row sums with which it may end
    price_error: float = 0.02  # the same of prices, relative to costs
    way: float = 0.99  # share of the way to the boundary
    smallest_target: float = 0.3  # share of the wanted complementarity below which no target is set
    tolerance: float = 1e-2  # relative, of conjugate gradients
    iterations: int = 60  # of conjugate gradients, at most
    faint: float = 1e-4  # price of a column relative to its cost, at least, at the start
    block_size: int = 150  # secrets of a block, before it is widened
    overlap: float = 2.5  # nats by which a block is widened
    visible: float = 1e-3  # of a field: smaller entries are left out of the equations of a step
    lift: float = 1e-6  # of the unit diagonal, against rounding
    lift_growth: float = 10.0  # factor of the lift where it is not enough
    chunk: int = 2048  # entries of a product for one thread


CONSTANTS = MasterConstants()


@dataclass(frozen=True, kw_only=True, eq=False)
class FieldMatrix:
    """G (c, n): column k of the mechanism has value[first[k]:first[k + 1]] at the secrets place[...]."""

    first: Integers
    place: Indices32
    value: Singles
    secrets: int

    @classmethod
    def of(cls, count: Integers, place: Indices32, value: Singles, secrets: int) -> FieldMatrix:
        first = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
        return cls(first=first, place=place, value=value, secrets=secrets)

    @classmethod
    def empty(cls, secrets: int) -> FieldMatrix:
        return cls.of(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), secrets)

    @property
    def size(self) -> int:
        return len(self.first) - 1

    @cached_property
    def transpose(self) -> tuple[Integers, Indices32, Singles]:
        narrow = self.first[-1] <= np.iinfo(np.int32).max
        first = self.first.astype(np.int32) if narrow else self.first  # SciPy widens all its indices to this type
        matrix = csr_array((self.value, self.place, first), shape=(self.size, self.secrets)).tocsc()
        return np.asarray(matrix.indptr, np.int64), np.asarray(matrix.indices, np.int32), matrix.data

    def across(self, values: Vector) -> Vector:
        return _product(self.first, self.place, self.value, values)

    def down(self, weight: Vector) -> Vector:
        return _product(*self.transpose, weight)

    @cached_property
    def visible(self) -> FieldMatrix:
        large = np.flatnonzero(self.value >= CONSTANTS.visible)
        first = np.searchsorted(large, self.first)
        return FieldMatrix(first=first, place=self.place[large], value=self.value[large], secrets=self.secrets)

    @cached_property
    def short_place(self) -> NDArray[np.uint16] | Indices32:
        """The places in half the memory, if they fit: a product waits for memory."""
        return self.place.astype(np.uint16) if self.secrets <= 1 << 16 else self.place

    def normal(self, scale: Vector, values: Vector) -> Vector:
        """G' diag(scale) G values, in one pass over the entries."""
        chunk, size = CONSTANTS.chunk, self.size
        # A sum for each chunk, added in their order: the same bits on any number of threads.
        sums = np.zeros((-(-size // chunk), self.secrets))

        def add(start: int, stop: int) -> None:
            first = self.first[start : stop + 1]
            _add_normal(first, self.short_place, self.value, scale[start:stop], values, sums[start // chunk])

        in_blocks(add, size, chunk)
        return np.asarray(sums.sum(axis=0))

    def with_more(self, more: FieldMatrix) -> FieldMatrix:
        return FieldMatrix(
            first=np.concatenate([self.first, more.first[1:] + self.first[-1]]),
            place=np.concatenate([self.place, more.place]),
            value=np.concatenate([self.value, more.value]),
            secrets=self.secrets,
        )


def _product(first: Integers, place: Indices32, value: Singles, values: Vector) -> Vector:
    product = np.empty(len(first) - 1)
    in_blocks(lambda a, b: _rows(first[a : b + 1], place, value, values, product[a:b]), len(product), CONSTANTS.chunk)
    return product


@numba.njit(cache=True, nogil=True, fastmath=True)
def _rows(first, place, value, values, sums):  # type: ignore[no-untyped-def]
    # One sum in one order for every entry: the same bits on any number of threads.
    for i in range(sums.size):
        total = 0.0
        for a in range(first[i], first[i + 1]):
            total += value[a] * values[place[a]]
        sums[i] = total


@numba.njit(cache=True, nogil=True, fastmath=True)
def _add_normal(first, place, value, scale, values, sums):  # type: ignore[no-untyped-def]
    for i in range(scale.size):
        total = 0.0
        for a in range(first[i], first[i + 1]):
            total += value[a] * values[place[a]]
        total *= scale[i]
        # The row is still in the cache.
        for a in range(first[i], first[i + 1]):
            sums[place[a]] += value[a] * total


@numba.njit(cache=True, nogil=True)
def dense_part(nodes, first, column, value, root, mark, columns, part):  # type: ignore[no-untyped-def]
    """Write root_k g_k(u) for the secrets of nodes (b,) to part (rows, b); return the rows, or minus those needed."""
    # One row for every column with an entry there. mark (c,) is -1 on entry and exit; columns (c,) is room.
    count = 0  # columns are numbered before anything is written: `part` may be too small for them
    for i in range(nodes.size):
        for a in range(first[nodes[i]], first[nodes[i] + 1]):
            if mark[column[a]] < 0:
                mark[column[a]] = count
                columns[count] = column[a]
                count += 1
    if count <= part.shape[0]:
        part[:count] = 0
        for i in range(nodes.size):
            for a in range(first[nodes[i]], first[nodes[i] + 1]):
                part[mark[column[a]], i] = value[a] * root[column[a]]
    for i in range(count):
        mark[columns[i]] = -1
    return count if count <= part.shape[0] else -count


class OverlappingBlocks:
    """Overlapping blocks of places: by recursive halving of their coordinates, widened by some nats."""

    def __init__(self, places: Places) -> None:
        # G smooths over some nats, and the inverse of G' D G is nearly local: blocks widened by some nats are inverted
        # on their own. With it ln s differs by 0.05 % of the edges on average after three rounds of columns on 50 x 50
        # cells of Philadelphia; passes that move weights multiplicatively end at 1 %.
        self.size, edges = places.size, places.graph
        graph = csr_array((edges.length, edges.near, edges.first), shape=(places.size, places.size))
        cores = _halve(places.costs.points, np.arange(places.size))
        self.nodes = []
        for core in cores:
            away = dijkstra(graph, indices=core, min_only=True, limit=CONSTANTS.overlap)
            self.nodes.append(np.flatnonzero(away <= CONSTANTS.overlap))
        count = np.zeros(places.size)
        for nodes in self.nodes:
            count[nodes] += 1
        # The square root on both sides keeps the preconditioner symmetric, as conjugate gradients need it.
        self.overlap_weights = [1 / np.sqrt(count[nodes]) for nodes in self.nodes]
        self.inverse: list[Singles] = []

    def factor(self, matrix: FieldMatrix, scale: Vector, ridge: Vector) -> None:
        root = np.sqrt(scale).astype(np.float32)
        transpose = matrix.transpose
        self.inverse = [np.zeros((0, 0), np.float32)] * len(self.nodes)

        def invert(start: int, stop: int) -> None:
            mark, columns = np.full(matrix.size, -1, np.int64), np.empty(matrix.size, np.int64)
            room = np.empty(0, np.float32)
            for i in range(start, stop):
                nodes = self.nodes[i]
                while True:
                    part = room[: room.size // len(nodes) * len(nodes)].reshape(-1, len(nodes))
                    rows = dense_part(nodes, *transpose, root, mark, columns, part)
                    if rows >= 0:
                        break
                    room = np.empty(-rows * len(nodes) * 5 // 4, np.float32)
                self.inverse[i] = _inverse(part[:rows], ridge[nodes], self.overlap_weights[i])

        in_blocks(invert, len(self.nodes), 8)

    def apply(self, values: Vector) -> Vector:
        parts: list[Singles] = [np.zeros(0, np.float32)] * len(self.nodes)
        single = values.astype(np.float32)

        def multiply(start: int, stop: int) -> None:
            for i in range(start, stop):
                parts[i] = self.inverse[i] @ single[self.nodes[i]]

        # Added in the order of blocks, on one thread: the same bits on any number of threads.
        in_blocks(multiply, len(self.nodes), 64)
        sums = np.zeros(self.size)
        for nodes, part in zip(self.nodes, parts, strict=True):
            sums[nodes] += part
        return sums


def conjugate_gradients(
    apply: Callable[[Vector], Vector], precondition: Callable[[Vector], Vector], right: Vector, *, tolerance: float,
    iterations: int,
) -> Vector:  # fmt: skip
    """X with apply(x) = right, to a tolerance of the preconditioned residual, or after `iterations` of them."""
    x, residual = np.zeros_like(right), right.copy()
    guess = precondition(residual)
    direction, size = guess, float(residual @ guess)
    first = size
    for _ in range(iterations):
        if not size > tolerance**2 * first:
            break
        image = apply(direction)
        along = size / float(direction @ image)
        x += along * direction
        residual -= along * image
        guess = precondition(residual)
        before, size = size, float(residual @ guess)
        direction = guess + size / before * direction
    return x


def _halve(points: Floats, numbers: Integers) -> list[Integers]:
    if len(numbers) <= CONSTANTS.block_size:
        return [np.sort(numbers)]
    place = points[numbers]
    axis = int(np.argmax(np.ptp(place, axis=0)))
    order = np.argsort(place[:, axis], kind="stable")
    half = len(numbers) // 2
    return _halve(points, numbers[order[:half]]) + _halve(points, numbers[order[half:]])


def _inverse(part: Singles, ridge: Vector, overlap_weight: Vector) -> Singles:
    normal = (part.T @ part).astype(float)
    diagonal = np.arange(len(ridge))
    normal[diagonal, diagonal] += ridge
    unit = 1 / np.sqrt(normal[diagonal, diagonal])
    normal *= unit[:, None] * unit
    # Scaled to a unit diagonal first, so that one lift suits all rows. Single precision may make a block indefinite; a
    # wrong preconditioner costs iterations, not accuracy.
    lift = CONSTANTS.lift
    while True:
        normal[diagonal, diagonal] = 1 + lift
        factor, broken = scipy.linalg.lapack.dpotrf(normal, lower=1)
        if not broken:
            break
        lift *= CONSTANTS.lift_growth
    lower, _ = scipy.linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
    full = np.tril(lower) + np.tril(lower, -1).T
    outer = unit * overlap_weight
    return np.asarray(full * (outer[:, None] * outer), np.float32)


class _Proximal:
    # The interface of `run_predictor_corrector`. The equations of a step see the visible entries alone; residuals see
    # all of G.
    def __init__(
        self, matrix: FieldMatrix, blocks: OverlappingBlocks, cost: Vector, before: Vector, gap: float
    ) -> None:
        self.visible, self.blocks, self.cost, self.before, self.gap = matrix.visible, blocks, cost, before, gap
        self.loss = float(before.sum())
        self.ridge = 1 / (CONSTANTS.pull * np.maximum(before, CONSTANTS.floor * float(before.mean())))
        self._scale = np.zeros(0)
        self.sums, self.prices = matrix.down, matrix.across

    def lacking(self, point: Point) -> Vector:
        return 1 - self.sums(point.x) - self.ridge * (point.dual - self.before)

    def error(self, point: Point, lacking: Vector, wrong: Vector) -> float:
        gap = float(point.x @ point.z) / (self.gap * self.loss)
        row_error = float(np.abs(lacking).max()) / CONSTANTS.row_error
        price_error = float(np.abs(wrong / self.cost).max()) / CONSTANTS.price_error
        return max(gap, row_error, price_error)

    def factor(self, scale: Vector) -> None:
        self._scale = scale
        self.blocks.factor(self.visible, scale, self.ridge)

    def solve(self, right: Vector) -> Vector:
        def apply(x: Vector) -> Vector:
            return self.visible.normal(self._scale, x) + self.ridge * x

        return conjugate_gradients(
            apply, self.blocks.apply, right, tolerance=CONSTANTS.tolerance, iterations=CONSTANTS.iterations
        )


def improve(
    matrix: FieldMatrix,
    blocks: OverlappingBlocks,
    cost: Vector,
    weight: Vector,
    dual: Vector,
    *,
    gap: float,
    deadline: float = np.inf,
) -> tuple[Vector, Vector, Vector]:
    """Better weights (c,) > 0 and multipliers (n,), to a relative complementarity `gap`, and the row sums (n,)."""
    # Cost: some ten steps of two systems, each some tens of products with the visible parts of G and G'. Memory: G',
    # the visible parts of both, and the inverse blocks.
    system = _Proximal(matrix, blocks, cost, dual, gap)
    # A start near the central path: every product of weight and price is at least `products`, as far as prices allow.
    products = CONSTANTS.start * system.loss / matrix.size
    price = np.maximum(cost - matrix.across(dual), products / np.maximum(weight, 1e-300))
    price = np.maximum(price, CONSTANTS.faint * cost)
    start = Point(np.maximum(weight, products / price), dual, price)
    target = CONSTANTS.smallest_target * gap * system.loss / matrix.size
    point, stopped = run_predictor_corrector(
        system,
        start,
        steps=CONSTANTS.steps,
        way=CONSTANTS.way,
        smallest_product=target,
        patience=CONSTANTS.steps,
        deadline=deadline,
    )
    if stopped == "interrupt":
        raise KeyboardInterrupt
    return point.x, point.dual, matrix.down(point.x)

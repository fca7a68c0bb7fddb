"""The weights of a pool of columns, and multipliers of their row sums: a proximal interior-point method.

    minimise    sum_k w_k c_k  +  sum_u kappa scale_u (1 - s(u))^2 / 2  +  sum_u lambda0(u) (1 - s(u))
    over        w >= 0,  where  s = G' w  are the row sums

Its dual is the linear program over the pool with a pull to the multipliers before. It maximises sum lambda less
sum (lambda - lambda0)^2 / (2 kappa scale) subject to G lambda <= c. The pull keeps them where they were priced.
Residuals 1 - s = (lambda - lambda0) / (kappa scale) show missing columns, and fall as pricing brings them. It also
makes the normal equations of a step,

    (G' diag(w / z) G + diag(1 / (kappa scale))) dlambda = right side,     z = c - G lambda,

well enough conditioned for conjugate gradients; the steps are those of solvers/interior_point.py. The equations of a
step, solved to some per cent, see the large entries of G alone; row sums and prices see all of it.
Preconditioner: G smooths over some nats, and the inverse of G' D G is nearly local. Blocks of neighbouring places are
therefore inverted on their own (block Jacobi, e.g. Saad, Iterative Methods for Sparse Linear Systems, 2003, 10.5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numba
import numpy as np
import scipy.linalg.lapack

from mechdesign.base.arrays import Floats, Integers, Singles, Vector
from mechdesign.base.threads import in_blocks
from mechdesign.factored.ball import Places
from mechdesign.factored.field_matrix import FieldMatrix
from mechdesign.solvers.interior_point import Point, run_predictor_corrector


@dataclass(frozen=True, kw_only=True)
class MasterConstants:
    """Constants of the master: guesses, but where a measurement is named; nothing that is proved depends on them."""

    floor: float = 1.0  # of the mean multiplier: the least scale; less leaves steep row sums where the prior is small
    start: float = 3e-3  # complementarity at the start, relative to the loss
    steps: int = 16  # Newton steps at most
    row_error: float = 0.02  # residual of row sums with which it may end
    price_error: float = 0.02  # the same of prices, relative to costs
    way: float = 0.99  # share of the way to the boundary
    smallest_target: float = 0.3  # share of the wanted complementarity below which no target is set
    # Relative, of conjugate gradients. At 100 x 100 both at 0.01 take 1.8 times as many, for no better weights.
    predictor_tolerance: float = 0.1
    corrector_tolerance: float = 0.03
    iterations: int = 60  # of conjugate gradients, at most
    faint: float = 1e-2  # price of a column relative to its cost, at least, at the start
    # Places of a block, at most. Blocks that overlap by 1.5 nats take twice the iterations, each twice as long.
    block_size: int = 300
    lift: float = 1e-6  # of the unit diagonal, against rounding
    lift_growth: float = 10.0  # factor of the lift where it is not enough


CONSTANTS = MasterConstants()


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


class PlaceBlocks:
    """Blocks of neighbouring places, and the inverses of the equations of a step within each."""

    def __init__(self, places: Places) -> None:
        self.size, self.nodes = places.size, _halve(places.costs.points, np.arange(places.size))
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
                self.inverse[i] = _inverse(part[:rows], ridge[nodes])

        in_blocks(invert, len(self.nodes), 8)

    def apply(self, values: Vector) -> Vector:
        """The inverses times values (n,)."""
        product, single = np.empty(self.size), values.astype(np.float32)

        def multiply(start: int, stop: int) -> None:
            for nodes, inverse in zip(self.nodes[start:stop], self.inverse[start:stop], strict=True):
                product[nodes] = inverse @ single[nodes]

        in_blocks(multiply, len(self.nodes), 64)
        return product


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


def _inverse(part: Singles, ridge: Vector) -> Singles:
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
    return np.asarray(full * (unit[:, None] * unit), np.float32)


class _Proximal:
    # The interface of `run_predictor_corrector`. The equations of a step see the visible entries alone; residuals see
    # all of G.
    def __init__(
        self, matrix: FieldMatrix, blocks: PlaceBlocks, cost: Vector, before: Vector, *, pull: float, gap: float
    ) -> None:
        self.visible, self.blocks, self.cost, self.before, self.gap = matrix.visible, blocks, cost, before, gap
        self.loss = float(before.sum())
        self.ridge = 1 / (pull * np.maximum(before, CONSTANTS.floor * float(before.mean())))
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

    def solve(self, right: Vector, *, is_predictor: bool = False) -> Vector:
        def apply(x: Vector) -> Vector:
            return self.visible.normal(self._scale, x) + self.ridge * x

        tolerance = CONSTANTS.predictor_tolerance if is_predictor else CONSTANTS.corrector_tolerance
        return conjugate_gradients(
            apply, self.blocks.apply, right, tolerance=tolerance, iterations=CONSTANTS.iterations
        )


def improve(
    matrix: FieldMatrix,
    blocks: PlaceBlocks,
    cost: Vector,
    weight: Vector,
    dual: Vector,
    *,
    pull: float,
    gap: float,
    deadline: float = np.inf,
) -> tuple[Vector, Vector, Vector]:
    """Better weights (c,) > 0 and multipliers (n,), to a relative complementarity `gap`, and the row sums (n,)."""
    # `pull` is kappa: a larger one brings row sums closer to 1, and multipliers farther from those that were priced.
    # Cost: some ten steps of two systems, each some ten or twenty products with the visible part of G. Memory: this
    # part, its transpose, and the inverse blocks.
    system = _Proximal(matrix, blocks, cost, dual, pull=pull, gap=gap)
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

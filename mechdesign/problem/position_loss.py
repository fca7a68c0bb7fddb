"""The mean loss to the true position, uniform in its cell, and the expected loss of a claim.

A position x = u + h s lies in the cell of u, s uniform in [-1/2, 1/2]^k. It is moved to the centre of its cell, or to
the centre of one of the 3 x 3 cells around by the weights b_i of the quadratic B-spline. For a table P

    loss = sum_u prior(u) sum_i sum_y P(y | row of u + i) L_i(u, y),     L_i(u, y) = int b_i(s) l(u + h s, y) ds.   (1)

L_i is exact for squared distances (`_MOMENTS`), and right to a relative 1e-12 for distances (`_cell_distances`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from itertools import product

import numpy as np
from numpy.polynomial.legendre import leggauss

from mechdesign.base.arrays import Floats, IntegerMatrix, Integers, Matrix, Points, Vector
from mechdesign.problem.domain import Domain
from mechdesign.problem.losses import Distance, Loss, SquaredDistance

STEPS = (-1, 0, 1)  # i, from the cell of a position to the row that is drawn from; None: always that of the cell
# Squared distance, exactly. L_i of (1) is a polynomial of u - y. Its coefficients are moments of b_i along an axis,
#
#     int b_i, int b_i s, int b_i s^2     of     b_i(s) = (1/2 - s)^2 / 2, 3/4 - s^2, (1/2 + s)^2 / 2,     i = -1, 0, 1.
#
# Summed over i the moments are 1, 0, 1/12: moving to the centre adds h^2 / 12 for each axis, whatever the table. For
# the spline E[row | x] = x and Var(row | x) = h^2 / 4 along an axis. Where prior and rows extend beyond a place k, the
# position moved there has density B((x - k) / h) / h, the cubic spline, of mean k and variance h^2 / 4. So the loss is
# that between centres, plus h^2 / 4 for each axis, under the prior prior_k = sum_u prior(u) int b_{k - u}.
_MOMENTS = {-1: (1 / 6, -1 / 24, 1 / 60), 0: (2 / 3, 0.0, 1 / 20), 1: (1 / 6, 1 / 24, 1 / 60), None: (1.0, 0.0, 1 / 12)}
CENTRE_WEIGHTS = np.outer([1.0, 6.0, 1.0], [1.0, 6.0, 1.0]).ravel() / 64  # of the 3 x 3 rows that a centre draws
_NODES = 20  # of a Gauss-Legendre rule
_ON_LATTICE = 1e-9  # of a cell
Step = tuple[int | None, ...]


def position_cost(
    loss: Loss, prior: Vector, domain: Domain, reports: Domain, around: IntegerMatrix | None = None
) -> Matrix | None:
    """C (n, m): the mean loss to the true position is the sum of C * P; None if unknown; around (n, 9), 3 x 3 cells."""
    means = _means(loss, domain, reports)
    if means is None:
        return None
    if around is None:
        return np.asarray(prior[:, None] * means((None,) * domain.dimension))
    import scipy.sparse as sp

    cost, size = np.zeros((domain.size, reports.size)), domain.size
    # The row drawn for step i from cell u gets the share of u: a sparse matrix adds up the cells of each row.
    for rows, step in zip(around.T, product(STEPS, repeat=2), strict=True):
        cost += sp.csr_array((prior, (rows, np.arange(size))), shape=(size, size)) @ means(step)
    return cost


def claim_cost(
    loss: Loss, matrix: Matrix, prior: Vector, domain: Domain, reports: Domain, around: IntegerMatrix | None
) -> Matrix:
    """C (n, m): the expected loss of P under its claim is the sum of C * P; matrix (n, m), losses between centres."""
    if around is None:
        return prior[:, None] * matrix
    cost = position_cost(loss, prior, domain, reports, around) if reports.size > 1 else None
    if cost is not None:
        return cost
    import scipy.sparse as sp

    size, from_centres = domain.size, np.zeros(matrix.shape)
    for rows, weight in zip(around.T, CENTRE_WEIGHTS.tolist(), strict=True):
        from_centres += weight * (sp.csr_array((prior, (rows, np.arange(size))), shape=(size, size)) @ matrix)
    return from_centres


def claim_losses(
    loss: Loss, matrix: Matrix, table: Matrix, domain: Domain, reports: Domain, around: IntegerMatrix | None
) -> Vector:
    """The loss (n,) of each place under its claim, whose mean under the prior is that of `claim_cost`; table (n, m)."""
    if around is None:
        return np.asarray((table * matrix).sum(axis=1))
    means = _means(loss, domain, reports) if reports.size > 1 else None
    losses = np.zeros(domain.size)
    for rows, step, weight in zip(around.T, product(STEPS, repeat=2), CENTRE_WEIGHTS.tolist(), strict=True):
        losses += (table[rows] * (weight * matrix if means is None else means(step))).sum(axis=1)
    return losses


def _means(loss: Loss, domain: Domain, reports: Domain) -> Callable[[Step], Matrix] | None:
    alike, cell = (reports.unit, reports.dimension) == (domain.unit, domain.dimension), domain.cell
    if cell is None or domain.dimension > 2 or not alike:
        return None
    if type(loss) is SquaredDistance:
        away = (domain.points[:, None, :] - reports.points[None, :, :]).transpose(2, 0, 1)
        return lambda step: _mean_squares(away, cell, step)
    steps = _displacements(domain, reports) if type(loss) is Distance and len(set(cell)) == 1 else None
    if steps is None:
        return None
    # Only the halves that occur: reports at centres, or at corners, of cells have every second one.
    different = [np.unique(axis, return_inverse=True) for axis in steps]
    halves = [(values, place.reshape(steps[0].shape)) for values, place in different]
    return lambda step: np.asarray(cell[0] * _distance(halves, step))


def _mean_squares(away: Points, cell: tuple[float, ...], step: Step) -> Matrix:
    moments = [_MOMENTS[index] for index in step]
    weight = np.prod([moment[0] for moment in moments])
    total = np.zeros(away.shape[1:])
    for gap, h, (zeroth, first, second) in zip(away, cell, moments, strict=True):
        total += weight / zeroth * (zeroth * gap**2 + 2 * h * first * gap + h * h * second)
    return total


def _displacements(domain: Domain, reports: Domain) -> Integers | None:
    """Twice the displacements y - u in square cells (k, n, m); None for reports off centres and corners of cells."""
    assert domain.cell is not None and domain.index is not None
    place = 2 * (reports.points - np.asarray(domain.origin)) / domain.cell[0] - 1
    index = np.rint(place)
    if np.abs(place - index).max() > _ON_LATTICE:
        return None
    return (index.astype(np.int64)[None] - 2 * domain.index[:, None]).transpose(2, 0, 1)


def _distance(halves: list[tuple[Integers, Integers]], step: Step) -> Matrix:
    """L_i in sides of a cell; halves: the different displacements of each axis, and where they are."""
    # On a line: the mean distance within the cell of y is h / 4, elsewhere that between centres.
    if len(halves) == 1:
        ((away, i),) = halves
        return np.asarray(np.where(away == 0, 0.25, np.abs(away) / 2)[i])
    (across, i), (along, j) = halves
    return np.asarray(_cell_distances(tuple((across / 2).tolist()), tuple((along / 2).tolist()), step)[i, j])


@lru_cache(maxsize=20)  # the ten steps of two sets of places: a design asks for each some eight times
def _cell_distances(across_sides: tuple[float, ...], along_sides: tuple[float, ...], step: Step) -> Floats:
    """L_i in sides of a cell for displacements across x along, multiples of 1/2; not to be changed in place."""
    # Gauss-Legendre rules of 20 x 20 nodes; for a report in the closed cell in two triangles a quadrant about it, where
    # the integrand is a product of analytic functions. The relative error is below 1e-12. The nearest singularity of a
    # rule lies on the ellipse of sum of half axes 1 + sqrt 2 or more, and (1 + sqrt 2)^-40 = 5e-16.
    node, weight = _gauss_rule()
    position, share = node / 2, weight / 2
    across, along = np.array(across_sides), np.array(along_sides)
    shares = [share * _spline(one, position) for one in step]
    table = np.zeros((len(across), len(along)))
    for s, a in zip(position, shares[0], strict=True):
        for t, b in zip(position, shares[1], strict=True):
            table += a * b * np.hypot((across - s)[:, None], (along - t)[None, :])
    for i, j in product(np.flatnonzero(np.abs(across) <= 0.5), np.flatnonzero(np.abs(along) <= 0.5)):
        table[i, j] = _distance_within(float(across[i]), float(along[j]), step)
    return table


@cache
def _gauss_rule() -> tuple[Floats, Floats]:
    """Nodes and weights; not to be changed in place."""
    return leggauss(_NODES)


@cache  # some 90 triples: reports at centres, sides and corners, and the steps
def _distance_within(x: float, y: float, step: Step) -> float:
    """L_i in sides of a cell for a report at (x, y) of the closed cell, measured from its centre."""
    # Quadrants about the report have sides of 0, 1/2 or 1. In each, two triangles: r the share of the long side and v
    # the slope, an area of r dr dv times the product of the sides.
    node, weight = _gauss_rule()
    r, v = (node[:, None] + 1) / 2, (node[None, :] + 1) / 2
    area = weight[:, None] / 2 * weight[None, :] / 2 * r
    total = 0.0
    for sign_s, sign_t in product((-1, 1), repeat=2):
        width, height = 0.5 * sign_s - x, 0.5 * sign_t - y
        for s, t in ((r * width, r * v * height), (r * v * width, r * height)):
            density = area * abs(width * height) * np.hypot(s, t)
            total += float((density * _spline(step[0], x + s) * _spline(step[1], y + t)).sum())
    return total


def _spline(step: int | None, s: Floats) -> Floats:
    if step is None:
        return np.ones_like(s)
    return 0.75 - s * s if step == 0 else (0.5 + step * s) ** 2 / 2

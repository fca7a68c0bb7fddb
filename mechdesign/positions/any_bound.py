r"""A lower bound of the loss to the true position over every mechanism with a claim between positions and its reports.

The claim on a full rectangle: P(y|x) <= e^{D(x, x') + r} P(y|x') for all positions x, x', where D is the least integral
of the level eps along a path.                                                                                      (1)

No spline, and no other form, is assumed. P'(y|x) = sup over x' of e^{-D(x, x')} P(y|x') lies between P and e^r P.
It satisfies (1) without r, and S(x) = sum_y P'(y|x) is in [1, e^r]. Cut the rectangle into squares c of side s, and let
p(y|c) be the mean of P'(y|x) over c.

    (pairs)   p(y|c) <= e^{eps |d|} p(y|c + d) for two squares at a displacement d: the mean of (1) for x and x + d.
              Here eps is the largest on the smallest rectangle of both. It holds every segment from x to x + d.
    (loss)    the mean over c of l(x, y) P'(y|x) is at least L(c, y) p(y|c), L of (3).                              (2)

So for any lambda with sum_c prior(c) L(c, y) g(c) >= sum_c lambda(c) g(c) for every g with (pairs) and every y,

    loss >= e^{-r} sum_c lambda(c) S(c) >= e^{-r} sum lambda_+ - sum lambda_-.

The pairs of 32 neighbours are cones (solve.py), and any multipliers prove a lambda (`row_multipliers`). Only the second
component b of a multiplier (|b|, b, 0) is stored.

L. Let w = P'(y|.) / p(y|c) on c: its mean is 1, and |grad w| <= eps w almost everywhere, with the largest eps on c. Let
f be constant on each of N x N parts of c, and q a field with -div q = f - mean f on c and q n = 0 on its sides. By
parts, with |q| <= a on each part and a field for a in the same way, whose length is at most b,

    mean f w = mean f + mean q grad w >= mean f - eps mean a w,    mean a w <= mean a + eps mean b w,
    mean b w <= min(max b, max w mean b),    max w <= e^{eps s D}, D = (sqrt 2 + asinh 1) / 3.

D s is the largest mean distance from a point of c to all others, and max w follows by Jensen. With f = l at the middles
of the parts, l - f has a mean >= 0 on each part, since l is convex. On a part of diameter t sqrt 2, t = s / N, w is
within (e^{eps t sqrt 2} - 1) / 2 of one number, times its mean there. If l has the slope G, the mean of |l - mean l|
over a part is at most 0.5215 t G, the mean distance of two points. So

    L = mean f - eps (mean a + eps min(max b, max w mean b)) - 0.5215 t G (e^{eps t sqrt 2} - 1) / 2.               (3)

q is the field of lowest order of Raviart and Thomas, whose components are linear along their own axis and constant
along the other. The values on the sides of a part give its divergence and its length there. Cosines find it, and the
remaining divergence is subtracted.
Source: ours; the field is that of Raviart and Thomas 1977.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy.sparse as sp
from scipy.fft import dctn, idctn

from mechdesign.base.arrays import Floats, Integers, Vector
from mechdesign.positions.cone_blocks import fits_in_memory_and_time, solve_cone_blocks, step_operations
from mechdesign.positions.levels import CONSTANTS as LEVELS
from mechdesign.positions.patches import rounding_nats
from mechdesign.positions.program import Positions
from mechdesign.positions.spline import SplineCones
from mechdesign.positions.symmetry import SYMMETRIES, Orbits, edge_orbits, row_multipliers
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import Edges, stencil_pairs
from mechdesign.problem.losses import Distance, Loss, SquaredDistance
from mechdesign.problem.metric import Metric
from mechdesign.problem.metrics import level_range, plane_level_map
from mechdesign.problem.problem import DesignProblem
from mechdesign.solvers.cone.pricing import sum_down

_START = 0.03  # mean costs of a row at the start: a fifth fewer steps than `ConeBlockConstants.start` on pairs
_STENCIL = 32  # neighbours of (pairs): 16 cost 0.5 % of the bound, 48 gain 0.2 %
_GRID = 32  # N of (3)
_AT_ONCE = 128  # fields of (3)
_WIDEST = (math.sqrt(2) + math.asinh(1)) / 3  # D of (3)
_MOST = 2 * math.log(_GRID) + 1  # nats: e to this exceeds max b / mean b of (3)
_MEAN_DISTANCE = 0.5215  # of two points of a unit square, rounded up: 0.52140543
_UP = 1 + 2.0**-40
_MARGIN = 2.0**-20  # of half a square: more than coordinates lose by rounding
_CLASS = 0.02  # nats, of the logarithm of levels that vary: rounded up to multiples, for 0.1 % of the bound
_SMALL = 1e-5  # of the largest multiplier: smaller ones are dropped, for the size of the file; 0.001 % of the bound
_DIGITS = 9  # of displacements in sides of a square, by which equal ones are found
_MAX_SQUARES = 1 << 14  # that a file may ask for: their table is made before anything is known of them
_MAX_PARTS = 1 << 22  # of cells and squares together, on which densities are compared
_FINE = 0.25  # nats along a square: the form of the bound then loses about 0.3 %, and smaller squares are not used


@dataclass(frozen=True, kw_only=True, eq=False)
class AnyBound:
    """The bound, its multipliers (k r,), and the number of squares along the first axis."""

    value: float
    multipliers: Vector
    squares: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Squares:
    """The program of (2) on squares: costs (n, m), cones of (pairs), and symmetries."""

    cost: Floats
    cones: SplineCones
    group: Orbits
    rounding: float  # r of (1)

    @property
    def fits(self) -> bool:
        return fits_in_memory_and_time(self.cones, len(self.group.reports), self.group.sums.shape[0])

    @property
    def operations(self) -> float:
        return step_operations(self.cones, len(self.group.reports), self.group.sums.shape[0])

    def bound(self, multipliers: Vector) -> float:
        """The bound that any multipliers (k r,) prove; minus infinity if they do not prove one."""
        signed = multipliers.reshape(self.cones.size, len(self.group.reports))
        dual = row_multipliers(
            self.cost, self.cones, self.group, np.stack([np.abs(signed), signed, np.zeros_like(signed)])
        )
        if not np.isfinite(dual).all():
            return -math.inf
        positive = sum_down(np.maximum(dual, 0.0)) * math.exp(-self.rounding) * (1 - 2.0**-40)
        return math.nextafter(positive + sum_down(np.minimum(dual, 0.0)), -math.inf)


def any_bound(program: Positions, count: int, *, tolerance: float, deadline: float = math.inf) -> AnyBound | None:
    """The bound with `count` squares along the first axis; None if none was found in time, or none is known."""
    squares = squares_of(program, count)
    if squares is None or not squares.fits or not squares.cost.any():
        return None
    costs = np.ascontiguousarray(squares.cost[:, squares.group.reports])
    point = solve_cone_blocks(
        squares.cones, costs, squares.group.sums, tolerance=tolerance, deadline=deadline, start=_START
    )
    if point.stopped in ("time", "interrupt"):
        return None
    signed = point.slack[1].ravel()
    # Small multipliers are dropped, others rounded to single precision: any numbers prove a bound.
    signed = np.where(np.abs(signed) < _SMALL * np.abs(signed).max(), 0.0, signed).astype(np.float32).astype(float)
    value = squares.bound(signed)
    return AnyBound(value=value, multipliers=signed, squares=count) if value > 0 else None


def proved_any_bound(program: Positions, count: int, multipliers: Vector) -> float:
    """The bound that untrusted multipliers prove; minus infinity if they do not prove one."""
    squares = squares_of(program, count)
    if squares is None or multipliers.shape != (squares.cones.size * len(squares.group.reports),):
        return -math.inf
    return squares.bound(multipliers)


def finest_squares(program: Positions, operations: float) -> int | None:
    """The largest number of squares along the first axis with a step of at most so many operations; None if none."""
    level = level_range(program.problem.metric)[1] * program.problem.metric.scale
    counts = []
    for count in range(1, _MAX_SQUARES):
        grid = _grid_of(program, count)
        if grid is None:
            continue
        # A lower estimate, by the symmetries of a square, before any table.
        fewest = -(-program.problem.reports.size // SYMMETRIES)
        if fewest * (grid.size / SYMMETRIES) ** 2 * grid.size > operations:
            break
        counts.append(count)
        if level * grid.spacing <= _FINE:
            break
    # The most first: their tables take longer than those of all others, and are often small enough.
    for count in reversed(counts):
        squares = squares_of(program, count)
        if squares is not None and squares.fits and squares.operations <= operations:
            return count
    return None


def _grid_of(program: Positions, count: int) -> Domain | None:
    """The squares, `count` along the first axis, on a full rectangle; None if they do not fit it."""
    problem = program.problem
    domain = problem.domain
    if domain.shape is None or domain.size < math.prod(domain.shape) or domain.cell is None:
        return None
    if not count >= 1 or count * domain.shape[1] % domain.shape[0]:
        return None
    shape = count, count * domain.shape[1] // domain.shape[0]
    if not 2 <= math.prod(shape) <= _MAX_SQUARES or _prior_of(problem, shape) is None:
        return None
    side = domain.cell[0] * (domain.shape[0] / count)
    grid = Domain.grid(shape, cell=side, unit=domain.unit, origin=domain.origin or (0.0, 0.0))
    # Reports at middles or corners of squares: few displacements differ.
    place = 2 * (problem.reports.points - np.asarray(grid.origin)) / side
    return grid if np.abs(place - np.rint(place)).max() <= 10.0**-_DIGITS else None


def _prior_of(problem: DesignProblem, shape: tuple[int, ...]) -> Vector | None:
    """The prior of squares; None if the density is not constant on one of them."""
    sides, prior = problem.domain.shape, problem.prior_array
    assert sides is not None
    if np.ptp(prior) == 0:
        return np.full(math.prod(shape), 1 / math.prod(shape))
    # On common parts of cells and squares.
    parts = math.lcm(sides[0], shape[0])
    of_cell, of_square = parts // sides[0], parts // shape[0]
    if prior.size * of_cell**2 > _MAX_PARTS:
        return None
    density = np.kron(prior.reshape(sides), np.full((of_cell, of_cell), of_cell**-2.0))
    squares = density.reshape(shape[0], of_square, shape[1], of_square).transpose(0, 2, 1, 3).reshape(*shape, -1)
    return np.asarray(squares.sum(axis=2)).ravel() if (squares == squares[..., :1]).all() else None


def squares_of(program: Positions, count: int) -> Squares | None:
    """The program of (2), with `count` squares along the first axis; None if (1) or the loss has another form."""
    problem = program.problem
    grid, domain, reports = _grid_of(program, count), problem.domain, problem.reports
    if grid is None or type(problem.loss) not in (Distance, SquaredDistance) or reports.dimension != 2:
        return None
    assert grid.index is not None and grid.shape is not None and domain.shape is not None and domain.cell is not None
    level = largest_levels(grid, problem.metric)
    tail, head = stencil_pairs(grid, _STENCIL)
    away = (grid.index[head] - grid.index[tail]).astype(float)
    between = _largest_between(level.reshape(grid.shape), grid.index[tail], grid.index[head])
    edges = Edges(tail=tail, head=head, length=between * grid.spacing * np.hypot(*away.T) * _UP)
    prior = _prior_of(problem, grid.shape)
    assert prior is not None
    cost = prior[:, None] * square_losses(grid, reports, problem.loss, level)
    group, edges = edge_orbits(cost, grid, reports, edges)
    return Squares(
        cost=cost,
        cones=pair_cones(edges, grid.size),
        group=group,
        rounding=rounding_nats(problem.metric, domain.cell[0]) * _UP,
    )


def largest_levels(grid: Domain, metric: Metric) -> Vector:
    """Numbers (n,) that eps nowhere exceeds on the squares of a grid, in nats per unit."""
    low, high = (Fraction(bound) * Fraction(metric.scale) for bound in level_range(metric))
    # Rounded up: a larger level only weakens (pairs) and (3).
    if low == high:
        return np.full(grid.size, float(high) * _UP)
    # A bilinear level on a rectangle between lines of nodes is largest at one of its corners.
    level = plane_level_map(metric)
    reach, lines, starts = (1 + _MARGIN) * grid.spacing / 2, [], []
    for nodes, places in zip(level.raster.axes, grid.points.T, strict=True):
        ends = [(centre - reach, centre + reach) for centre in np.unique(places)]
        parts = [np.array([left, *nodes[(nodes > left) & (nodes < right)], right]) for left, right in ends]
        lines.append(np.clip(np.concatenate(parts), nodes[0], nodes[-1]))
        starts.append(np.cumsum([0, *map(len, parts[:-1])]))
    crossings = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 2)
    largest = level.at(crossings).reshape(len(lines[0]), len(lines[1]))
    for axis in (0, 1):
        largest = np.maximum.reduceat(largest, starts[axis], axis=axis)
    # In classes, so that few tables of (3) differ. The levels are right to 2^-31 (`levels.CONSTANTS.margin`).
    nats = np.log(largest.ravel() * metric.scale * (1 + LEVELS.margin))
    return np.asarray(np.exp(np.ceil(nats / _CLASS) * _CLASS) * _UP)


def _largest_between(level: Floats, tail: Integers, head: Integers) -> Vector:
    """The largest level (k,) on the rectangles of squares with the corners tail and head (k, 2)."""
    low, high = np.minimum(tail, head), np.maximum(tail, head)
    largest = np.zeros(len(low))
    for i, j in np.ndindex(*((high - low).max(axis=0) + 1)):
        at = np.minimum(low + np.array([i, j]), high)
        largest = np.maximum(largest, level[tuple(at.T)])
    return largest


def square_losses(fine: Domain, reports: Domain, loss: Loss, level: Vector) -> Floats:
    """L (n, m) of (3) of squares at levels (n,) and reports, in loss units, at least 0."""
    side = fine.spacing
    classes, own = np.unique(level, return_inverse=True)
    # By the displacement alone; equal ones differ by rounding.
    away = np.abs(reports.points[None, :, :] - fine.points[:, None, :]) / side
    across, i = np.unique(np.round(away[..., 0], _DIGITS), return_inverse=True)
    along, j = np.unique(np.round(away[..., 1], _DIGITS), return_inverse=True)
    places = np.stack(np.meshgrid(across, along, indexing="ij"), axis=-1).reshape(-1, 2)
    parts = [
        _lowered_losses(places[start : start + _AT_ONCE], type(loss) is SquaredDistance, classes * side)
        for start in range(0, len(places), _AT_ONCE)
    ]
    table = np.concatenate(parts, axis=1).reshape(len(classes), len(across), len(along))
    table *= side**2 if type(loss) is SquaredDistance else side
    return np.asarray(table[own[:, None], i.reshape(away.shape[:2]), j.reshape(away.shape[:2])])


def _lowered_losses(away: Floats, squared: bool, nats: Floats) -> Floats:
    """L of (3) (l, k) in sides of a square for reports at displacements (k, 2), and z = eps s in nats (l,)."""
    z = nats[:, None]
    middles = (np.arange(_GRID) + 0.5) / _GRID - 0.5
    f = (away[:, :1, None] - middles[:, None]) ** 2 + (away[:, 1:, None] - middles[None, :]) ** 2
    slope = np.ones(len(away))
    if squared:
        slope = 2 * (np.hypot(away[:, 0], away[:, 1]) + math.sqrt(0.5))
    else:
        f = np.sqrt(f)
    a, excess = _field_lengths(f)
    b, excess_of_a = _field_lengths(a)
    # Larger exponents change neither the minimum nor a bound that is negative already, but overflow.
    within = np.minimum(b.max(axis=(1, 2)), np.exp(np.minimum(z * _WIDEST, _MOST)) * b.mean(axis=(1, 2)))
    of_a = a.mean(axis=(1, 2)) + z * within + excess_of_a
    part = np.minimum(math.sqrt(2) * z / _GRID, 700.0)
    lowered = f.mean(axis=(1, 2)) - z * of_a - excess - _MEAN_DISTANCE / _GRID * slope * np.expm1(part) / 2
    lowered -= slope * 10.0**-_DIGITS  # displacements were rounded
    # l >= 0, so that 0 is a bound too. The last factor covers rounding of the means.
    return np.asarray(np.maximum(lowered, 0.0) * (1 - 2.0**-38))


def _field_lengths(f: Floats) -> tuple[Floats, Floats]:
    """For f (k, N, N): an upper bound of |q| on each part, and the largest divergence that q leaves (k,)."""
    step = np.arange(_GRID)
    eigenvalue = (2 - 2 * np.cos(np.pi * step / _GRID)) * _GRID**2
    total = eigenvalue[:, None] + eigenvalue[None, :]
    total[0, 0] = 1.0
    rest = f - f.mean(axis=(1, 2), keepdims=True)
    coefficient = dctn(rest, type=2, axes=(1, 2))
    coefficient[:, 0, 0] = 0.0
    potential = idctn(coefficient / total, type=2, axes=(1, 2))
    qx, qy = np.zeros((len(f), _GRID + 1, _GRID)), np.zeros((len(f), _GRID, _GRID + 1))
    qx[:, 1:-1] = np.diff(potential, axis=1) * _GRID
    qy[:, :, 1:-1] = np.diff(potential, axis=2) * _GRID
    left = np.abs(np.diff(qx, axis=1) * _GRID + np.diff(qy, axis=2) * _GRID + rest).max(axis=(1, 2))
    # On a part each component is linear along its axis: largest at one of the two sides.
    length = np.hypot(
        np.maximum(np.abs(qx[:, 1:]), np.abs(qx[:, :-1])), np.maximum(np.abs(qy[:, :, 1:]), np.abs(qy[:, :, :-1]))
    )
    return length, left


def pair_cones(edges: Edges, size: int) -> SplineCones:
    """The constraints of edges as cones over a column of `size` rows: (2) of solve.py."""
    count = len(edges.tail)
    rows, ends = np.tile(np.arange(count), 2), np.concatenate([edges.tail, edges.head])
    # The rounding of tanh is on the side of weaker constraints: the bound stays below.
    tanh_half = np.tanh(edges.length / 2) * _UP
    shape = (count, size)
    return SplineCones(
        bound=sp.csr_array((np.tile(tanh_half, 2), (rows, ends)), shape=shape),
        slope_x=sp.csr_array((np.repeat([1.0, -1.0], count), (rows, ends)), shape=shape),
        slope_y=sp.csr_array(shape),
    )

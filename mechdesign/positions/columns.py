r"""Weights of certified columns: designs between positions that are too large for the program of cones.

    minimise    sum_k w_k min_y sum_u C(u, y) p_k(u)    over w >= 0    subject to    sum_k w_k p_k(u) = 1 for every u

The cones of the gradient bind each report alone and are homogeneous, so columns within them may be scaled and added. A
weighted sum that is 1 in every row is a table of the program. The optimum here is an upper bound of the program's.

Columns. The constant column, so that there are weights, and noise of the plane around cells of the lattice. To this is
added the least constant a that brings it within the cones of every cell:

    |slope p|(k) <= bound p(k) + a bound 1(k)    for every cone k.                                                   (1)

Each report is the cell at which its column costs least.

Source: ours; weights of fixed columns as in scripts/dictionary.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.spatial import cKDTree

from mechdesign.base.arrays import Floats, Integers, Unsigned
from mechdesign.base.memory import require_bytes
from mechdesign.closed_forms.lattice_noise import clamp_to_border, displacements
from mechdesign.errors import UnsuitableError
from mechdesign.positions.cone_blocks import solve_cone_blocks
from mechdesign.positions.cones import HIGHEST
from mechdesign.positions.patches import AROUND, Patches
from mechdesign.positions.program import Positions
from mechdesign.positions.repair import repair
from mechdesign.positions.spline import SplineCones, spline_cones
from mechdesign.positions.symmetry import Orbits, position_orbits
from mechdesign.problem.domain import Domain
from mechdesign.problem.losses import Loss, SquaredDistance
from mechdesign.problem.problem import DesignProblem
from mechdesign.solvers.lp.dense_program import weigh


@dataclass(frozen=True, kw_only=True)
class ColumnConstants:
    """Constants of columns and of the noise of the plane."""

    # Guesses that change the loss by little, but `within` and `floor`, which leave room for rounding. With these, plane
    # noise has losses of 24.0 h^2 at 0.5 nats a cell and 6.13 h^2 at 1, without the h^2 / 2 of the spline. Planar
    # Laplace noise has 6 / eps^2.

    beyond: float = 2.0  # nats beyond the border up to which cells have columns, at most twice the largest side
    levels: int = 6  # at which there is noise, at most
    level_ratio: float = 1.2  # of a level to the one before, at least
    above: float = 1.05  # times the level at its centre: noise above has a large constant
    within: float = 1 - 1e-7  # share of the cones that columns use
    large: float = 1e-3  # share of the mean of a column: where its constant is more, powers of the column are added
    powers: int = 3  # of a column, at most
    floor: float = 2.0**-22  # share of the mean row mixed in: above the changes by rounding to integers
    candidate_reports: int = 9  # reports from which that of a column is chosen
    columns_at_once: int = 256
    tables: int = 7  # of cells by reports in memory at once
    noise_nats: float = 16.0  # from the centre, to which noise of the plane is followed
    noise_cells: int = 150  # the same in cells
    noise_gap: float = 1e-5  # relative
    far_nats: float = 30.0  # the same where noise is the design: all of its mass counts
    noise_share: float = 2.0**-24  # of the common row in it: found at once, for 1e-7 of the loss


CONSTANTS = ColumnConstants()


@dataclass(frozen=True, kw_only=True, eq=False)
class Centres:
    """Centres of columns: lattice cells index (k, 2), and level (k,), indices of `nats` (l,) in nats a cell."""

    index: Integers
    level: Integers
    nats: Floats


def column_table(
    program: Positions,
    *,
    gap: float,
    deadline: float = np.inf,
    on_progress: Callable[[int, float, float, int, int], None] | None = None,
) -> tuple[Unsigned, str]:
    """The certified table (n, m) of the cheapest weights, in integers, and the reason why their search ended."""
    problem, cost = program.problem, program.cost
    centres = _centres(program)
    group, _ = position_orbits(program)
    centres = _one_of_each(centres, group, problem.domain)
    require_columns(problem.domain.size, _with_powers(centres, problem.domain), group.sums.shape[0])
    columns = _columns(centres, program)
    reports, price = _reports(columns, cost, problem)
    reduced = np.asarray(group.sums @ columns)

    def on_iteration(iteration: int, primal: float, dual: float) -> None:
        if on_progress is not None:
            on_progress(iteration, primal, dual, *reduced.shape[::-1])

    # Columns of mean 1 make a well-scaled program. Its solution sums to 1 only to the gap, hence the division below;
    # the floor then keeps every entry above the errors of rounding to integers.
    scale = reduced.mean(axis=0)
    weighed = weigh((reduced / scale).T.copy(), price / scale, tolerance=gap, deadline=deadline, on_step=on_iteration)
    weight, stopped = weighed.x / scale, weighed.stopped
    shares = sp.csr_array((weight, (np.arange(len(weight)), reports)), shape=(len(weight), cost.shape[1]))
    table = group.average(np.ascontiguousarray((shares.T @ columns.T).T), np.arange(cost.shape[1]))
    table /= table.sum(axis=1, keepdims=True)
    table += CONSTANTS.floor * (table.mean(axis=0) + 1 / table.shape[1])
    return repair(table, program.patches), stopped if stopped in ("time", "interrupt") else "columns"


def merged_mass(program: Positions) -> Unsigned:
    """The masses (n, m) of the noise of the plane on rows finer than reports: a cell has the masses of its squares."""
    problem, patches = program.problem, program.patches
    domain, reports, parts = problem.domain, problem.reports, int(problem.parameters.get("parts", 1))
    assert domain.shape is not None and domain.origin is not None
    side, level = patches.side, float(patches.corner_level.min())
    if domain.size < math.prod(domain.shape) or any(count % parts for count in domain.shape):
        raise UnsuitableError("noise needs a full rectangle of cells", field="domain", value=f"{domain.size} squares")
    # Sums of columns within the cones are within them. Displacements beyond those of the noise count as the farthest.
    noise = plane_noise(
        min(CONSTANTS.within * level * side, HIGHEST), domain.size, problem.loss, nats=CONSTANTS.far_nats
    )
    steps = np.minimum(np.arange(displacements(domain.shape, side, level)), len(noise) - 1)
    table = clamp_to_border(noise[np.ix_(steps, steps)], domain, parts)
    # The masses of a cell without a report go to the nearest cell with one.
    index = np.floor((reports.points - np.asarray(domain.origin)) / (parts * side))
    cells = np.stack(np.meshgrid(*(np.arange(count // parts) for count in domain.shape), indexing="ij"), axis=-1)
    _, report = cKDTree(index).query(cells.reshape(-1, 2))
    if not np.array_equal(report, np.arange(table.shape[1])):
        moves = sp.csr_array(
            (np.ones(len(report)), (report, np.arange(len(report)))), shape=(reports.size, len(report))
        )
        table = np.ascontiguousarray((moves @ table.T).T)
    return repair(table, patches, first=CONSTANTS.noise_share)


def column_count(program: Positions, group: Orbits) -> int:
    """Count the columns of a program after symmetry, with powers; an upper estimate."""
    domain = program.problem.domain
    return _with_powers(_one_of_each(_centres(program), group, domain), domain)


def _with_powers(centres: Centres, domain: Domain) -> int:
    # At one level on a full rectangle powers are rare, elsewhere every column may have all of them: an upper estimate.
    flat = len(centres.nats) == 1 and bool((domain.lookup >= 0).all())
    return math.ceil((1.5 if flat else 1 + CONSTANTS.powers) * len(centres.index))


def require_columns(rows: int, columns: int, orbits_of_rows: int) -> None:
    """Raise a SizeError before columns, powers included, and tables of so many rows that do not fit in memory."""
    # Columns exist twice, and three times for each orbit of rows; tables are the cost, the mechanism and temporaries.
    require_bytes(
        int(8 * ((2 * rows + 3 * orbits_of_rows) * columns + CONSTANTS.tables * rows * rows)),
        noun=f"{columns} columns of {rows} cells between positions",
        field="cells",
        value=rows,
        remedy="use fewer cells, or the closed form: md.positions.spline_laplace(problem)",
    )


def _centres(program: Positions) -> Centres:
    domain, patches = program.problem.domain, program.patches
    assert domain.shape is not None and domain.index is not None
    # Every cell, and cells up to two nats beyond the border at growing distances: their steps are Fibonacci numbers.
    # Where levels vary, noise at some levels up to that of its centre.
    highest = patches.corner_level.max(axis=1) * patches.side
    low, high = float(patches.corner_level.min()) * patches.side, float(highest.max())
    count = min(CONSTANTS.levels, 1 + int(np.ceil(np.log(high / low) / np.log(CONSTANTS.level_ratio) - 1e-6)))
    nats = np.minimum(np.geomspace(low, high, count) if count > 1 else np.array([low]), HIGHEST)
    steps = [1, 2]
    while steps[-1] * low < CONSTANTS.beyond and sum(steps[-2:]) <= 2 * max(domain.shape):
        steps.append(steps[-1] + steps[-2])
    away = np.array(steps)
    axes = [np.concatenate([-away[::-1], np.arange(side), side - 1 + away]) for side in domain.shape]
    index = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    _, nearest = cKDTree(domain.index).query(index)
    cell, level = np.nonzero((nats <= CONSTANTS.above * highest[nearest][:, None]) | (np.arange(count) == 0))
    return Centres(index=index[cell], level=level, nats=nats)


def _one_of_each(centres: Centres, group: Orbits, domain: Domain) -> Centres:
    assert domain.shape is not None
    if len(group.ways) == 1 or min(domain.shape) == 1:
        return centres
    assert domain.index is not None
    # A symmetry of the lattice is an affine map: least squares over the cells finds it, and it moves the centres
    # outside the domain too. Of each orbit the smallest image stands for all.
    cells = np.column_stack([domain.index, np.ones(domain.size)])
    affine = np.column_stack([centres.index, np.ones(len(centres.index))])
    images = [np.rint(affine @ np.linalg.lstsq(cells, cells[way, :2], rcond=None)[0]) for way in group.ways]
    width = float(np.abs(images).max()) * 2 + 1
    smallest = np.min([image[:, 0] * width + image[:, 1] for image in images], axis=0)
    _, representatives = np.unique(np.column_stack([smallest, centres.level]), axis=0, return_index=True)
    return Centres(index=centres.index[representatives], level=centres.level[representatives], nats=centres.nats)


def _columns(centres: Centres, program: Positions) -> Floats:
    domain, cones = program.problem.domain, program.cones
    assert domain.index is not None
    low, high = centres.index.min(axis=0), centres.index.max(axis=0)
    reach = int(np.maximum(domain.index.max(axis=0) - low, high - domain.index.min(axis=0)).max())
    noises = [plane_noise(float(z), reach, program.problem.loss) for z in centres.nats]
    columns, powers = np.ones((domain.size, len(centres.index) + 1), order="F"), []
    # In blocks, so that displacements of all centres never exist at once.
    for start in range(0, len(centres.index), CONSTANTS.columns_at_once):
        part = slice(start, min(start + CONSTANTS.columns_at_once, len(centres.index)))
        away = np.abs(domain.index[:, None, :] - centres.index[None, part, :])
        for level in np.unique(centres.level[part]):
            chosen = np.flatnonzero(centres.level[part] == level)
            steps = np.minimum(away[:, chosen], len(noises[level]) - 1)
            columns[:, start + chosen] = noises[level][steps[..., 0], steps[..., 1]]
        block = columns[:, part]
        constant, excess = _constants(block, cones)
        # A large constant wastes mass. p^(1/a) has slopes of the noise at level / a, so it needs a smaller one.
        large = np.flatnonzero(constant > CONSTANTS.large * block.mean(axis=0))
        for _ in range(CONSTANTS.powers if len(large) else 0):
            powers.append(block[:, large] ** (1 / excess[large]))
            excess[large] *= np.maximum(_constants(powers[-1], cones)[1], 1.0)
            powers[-1] += _constants(powers[-1], cones)[0]
        block += constant
    return np.concatenate([columns, *powers], axis=1) if powers else columns


def _constants(columns: Floats, cones: SplineCones) -> tuple[Floats, Floats]:
    # The constants a of (1), and the largest slope over bound, one of each for every column.
    unit = np.asarray(cones.bound.sum(axis=1))[:, None]
    slope = np.hypot(cones.slope_x @ columns, cones.slope_y @ columns) / CONSTANTS.within
    bound = cones.bound @ columns
    return np.maximum(((slope - bound) / unit).max(axis=0), 0.0), (slope / bound).max(axis=0)


def _reports(columns: Floats, cost: Floats, problem: DesignProblem) -> tuple[Integers, Floats]:
    # Only the reports nearest to the mean place of a column are compared: all of them would cost a product of tables.
    # The 1e-9 keeps their means defined where the prior is 0.
    prior = problem.prior_array + 1e-9 / problem.domain.size
    mass = prior @ columns
    mean = (columns.T @ (prior[:, None] * problem.domain.points)) / mass[:, None]
    count = min(CONSTANTS.candidate_reports, problem.reports.size)
    nearest = cKDTree(problem.reports.points).query(mean, k=count)[1].reshape(-1, count)
    price, report = np.full(len(nearest), np.inf), np.zeros(len(nearest), np.int64)
    for candidate in nearest.T:
        for start in range(0, len(nearest), CONSTANTS.columns_at_once):
            part = slice(start, start + CONSTANTS.columns_at_once)
            value = np.einsum("uk,uk->k", cost[:, candidate[part]], columns[:, part])
            less = value < price[part]
            price[part][less], report[part][less] = value[less], candidate[part][less]
    return report, price


# The column of least mean loss in the cones of one level, by displacement:
#
#     minimise    sum_d l(d) p(d)    over columns p on the lattice with sum_d p(d) = 1, in the cones at z nats a cell.
#
# At one level and far from the border no mechanism within the cones has a smaller loss, since the mean of a mechanism
# over its translations is noise.
def plane_noise(z: float, reach: int, loss: Loss, *, nats: float = CONSTANTS.noise_nats) -> Floats:
    """The noise p (r, r) by displacements of 0, 1, ..., r - 1 cells along the axes, 1 at its centre."""
    # One eighth of a square stands for all of it, since the mean of a column over flips and turns is as good. These are
    # the cells (i, j) with j <= i, each with the number of its images. The rows around a cell are those of the images
    # of its neighbours. Displacements beyond the border count as the border: the cones hold for such a column too, and
    # at 16 nats it is e^-16 of its maximum.
    far = max(2, min(reach, math.ceil(nats / z), CONSTANTS.noise_cells))
    i, j = np.tril_indices(far + 1)
    places = [(np.minimum(np.abs(i + a), far), np.minimum(np.abs(j + b), far)) for a, b in AROUND]
    rows = [np.maximum(a, b) * (np.maximum(a, b) + 1) // 2 + np.minimum(a, b) for a, b in places]
    around = Patches(around=np.column_stack(rows), corner_level=np.full((len(i), 4), z), side=1.0)
    images = np.where(i == 0, 1.0, np.where((j == 0) | (i == j), 4.0, 8.0))
    away = (i * i + j * j).astype(float)
    cost = images * (away if type(loss) is SquaredDistance else np.sqrt(away))
    sums = sp.csr_array(images[None, :] / images.sum())
    cones = spline_cones(around)
    column = solve_cone_blocks(cones, np.ascontiguousarray(cost[:, None]), sums, tolerance=CONSTANTS.noise_gap).table[
        :, 0
    ]
    noise = np.empty((far + 1, far + 1))
    noise[i, j] = noise[j, i] = column / column[0]
    return noise

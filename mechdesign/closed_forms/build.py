r"""Closed forms: the constant report, randomized response, the exponential and the geometric mechanism.

Each is a table by a formula, and `closed_form_mechanism` makes a mechanism of it that claims what it really satisfies.

Constant report: the place with the least expected loss, from everywhere. It reveals nothing.

K-ary randomized response: the truth with probability e^eps / (K - 1 + e^eps), any other secret with 1 / (K - 1 +
e^eps). eps-locally private (Kairouz et al. 2014; Alvim et al. 2018, section V); optimal for the discrete metric under
0/1 loss and a uniform prior. eps in nats: the default is the smallest distance between two secrets, so that it is
d-private.

Exponential mechanism of a metric: P(y|u) proportional to e^{-d(u, y) / 2}, rows normalised. Halving d pays for the row
sums: ratios are at most e^{d/2} e^{d/2}, so it is d-private on any metric space (McSherry and Talwar 2007; libqif's
`exponential`).

Geometric mechanism of a metric space: P(y|u) proportional to e^{-eps |u - y|}.

* normalised: each row over the domain is divided by its own sum, as Alvim et al. 2018 do (section IV-B). The sums
  differ from row to row, so the true level exceeds eps: on 30 x 30 cells of 150 m at 0.0040154449 per m it is 1.525
  eps.
* clamped: noise on the infinite lattice, with one normaliser, and reports outside the domain moved to the border.
  Post-processing of an eps-private mechanism: exactly eps.
Known: on the infinite line P(y|u) = tanh(eps h / 2) e^{-eps |u - y|}; it is optimal under 0/1 loss (Ghosh et al. 2012).

Noise on a lattice, for the geometric and the Laplace mechanism (planar_laplace.py): the table of translation-invariant
masses with everything outside the domain moved to its border.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from mechdesign.base.memory import require_memory
from mechdesign.base.validation import check_epsilon, validated
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.mechanism.dataset import certified_scale, make_mechanism
from mechdesign.mechanism.repair import round_to_integers
from mechdesign.problem.domain import Domain
from mechdesign.problem.problem import DesignProblem

Border = Literal["normalised", "clamped"]
Tables = Callable[[DesignProblem, float], NDArray[np.float64]]
TAIL_NATS = 45.0  # noise is followed this far beyond the domain: the rest is under e^-45 of a row
_NODES = 12  # Gauss-Legendre nodes per panel and axis: relative error under 1e-12 for panels of at most one nat
_FAR_NODES, _NEAR = 6, 4  # the same from so many cells off the cusp
_ANGLES = 40  # nodes of the polar form of the cell that holds the cusp
_LARGEST = 700.0  # nats: e^700 is a double


@validated
def closed_form_mechanism(
    problem: DesignProblem,
    table: NDArray[np.float64],
    *,
    name: str,
    claimed_epsilon: float | None,
    parameters: Mapping[str, Any] | None = None,
) -> xr.Dataset:
    """The mechanism of a table of probabilities, unrepaired, certified at the smallest scale of the metric that
    holds.

    Parameters
    ----------
    problem : DesignProblem
        The metric, prior and loss.
    table : (n, m) array
        Probabilities P(y|u).
    name : str
        What made it.
    claimed_epsilon : float or None
        The nominal parameter, in nats per unit.
    parameters : mapping
        What the file keeps beside it.

    Returns
    -------
    xarray.Dataset
        The mechanism. Attribute `ratio` is the scale before rounding: 1.525 is not private at the claim, but at 1.525
        of it.

    Examples
    --------
    >>> problem = md.DesignProblem(md.Domain.nodes(2), md.Discrete(1.0), [0.5, 0.5], md.losses.ZeroOne())
    >>> table = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> round(md.baselines.from_table(problem, table, name="mine", claimed_epsilon=1.0).attrs["ratio"], 4)
    1.0986
    """
    mass = round_to_integers(table, problem.edges)
    scale = certified_scale(problem, mass)
    return make_mechanism(
        problem, mass, program=name, scale=scale, parameters=parameters, claimed_epsilon=claimed_epsilon
    )


@validated
def constant_mechanism(problem: DesignProblem) -> xr.Dataset:
    """The best constant report: what any mechanism must beat.

    Parameters
    ----------
    problem : DesignProblem
        Prior and loss decide which report.

    Returns
    -------
    xarray.Dataset
        The mechanism; its ratio is 0.

    Examples
    --------
    >>> md.baselines.constant(md.load_problem("line", cells=4)).attrs["ratio"]
    0.0
    """
    return closed_form_mechanism(problem, constant_table(problem), name="constant", claimed_epsilon=None)


def constant_table(problem: DesignProblem) -> NDArray[np.float64]:
    """The best report from every secret, (n, m)."""
    table = np.zeros((problem.domain.size, problem.reports.size))
    table[:, problem.best_constant] = 1.0
    return table


@validated
def randomized_response_mechanism(problem: DesignProblem, epsilon: float | None = None) -> xr.Dataset:
    """Randomized response over the secrets: the own one with odds e^epsilon against any other.

    Parameters
    ----------
    problem : DesignProblem
        A problem whose reports are its secrets.
    epsilon : float
        Nats; by default the smallest edge of the metric.

    Returns
    -------
    xarray.Dataset
        The mechanism, certified at the smallest scale that holds.

    Raises
    ------
    UnsuitableError
        Where reports are not the secrets.

    References
    ----------
    Alvim et al. 2018, section V; Kairouz, Oh & Viswanath 2014.

    Examples
    --------
    >>> mechanism = md.baselines.randomized_response(md.load_problem("discrete", secrets=3), epsilon=1.0)
    >>> round(float(md.probabilities(mechanism)[0, 0]), 6)
    0.576117
    """
    if problem.reports is not problem.domain:
        raise UnsuitableError("randomized response needs reports = secrets", field="reports")
    level = shortest_edge(problem, epsilon)
    return closed_form_mechanism(
        problem,
        randomized_response_table(problem.domain.size, level),
        name="randomized_response",
        claimed_epsilon=level,
    )


def randomized_response_table(size: int, epsilon: float) -> NDArray[np.float64]:
    """The (K, K) table for K = size; that of 700 nats where epsilon is larger."""
    odds = np.exp(min(epsilon, _LARGEST))
    other = 1.0 / (size - 1 + odds)
    probabilities = np.full((size, size), other)
    np.fill_diagonal(probabilities, other * odds)
    return probabilities


def shortest_edge(problem: DesignProblem, epsilon: float | None) -> float:
    """`epsilon` in nats, or by default the smallest distance between two secrets, so that epsilon-local privacy is
    privacy for the metric.
    """
    return float(problem.edges.length.min()) if epsilon is None else check_epsilon(epsilon, "epsilon")


@validated
def exponential_mechanism(problem: DesignProblem) -> xr.Dataset:
    """The exponential mechanism of the problem's metric: P(y|u) falls off as e^(-d(u, y) / 2).

    Reports are reached through the secret they stand for.

    Parameters
    ----------
    problem : DesignProblem
        The metric, and the reports.

    Returns
    -------
    xarray.Dataset
        The mechanism, certified at the smallest scale that holds.

    Examples
    --------
    >>> mechanism = md.baselines.exponential(md.load_problem("discrete", secrets=3))
    >>> round(mechanism.attrs["ratio"], 6)
    0.5
    """
    return closed_form_mechanism(
        problem,
        decaying_table(problem.distances[:, problem.anchors], 0.5),
        name="exponential",
        claimed_epsilon=problem.metric.smallest_level,
    )


def decaying_table(distances: NDArray[np.float64], rate: float) -> NDArray[np.float64]:
    """e^{-rate d} for distances d (n, m), each row divided by its sum."""
    weight = np.exp(-rate * (distances - distances.min(axis=1, keepdims=True)))  # the nearest report never vanishes
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


@validated
def mechanism(problem: DesignProblem, epsilon: float | None = None, *, border: Border = "clamped") -> xr.Dataset:
    """The geometric mechanism on a grid: P(y|u) falls off as e^(-epsilon |u - y|).

    Parameters
    ----------
    problem : DesignProblem
        The domain, metric, prior and loss.
    epsilon : float
        Nats per unit; by default the smallest level of the metric.
    border : {"clamped", "normalised"}
        "clamped" moves outside mass to the border (square grids of one or two axes); "normalised" divides rows by
        their sums (any domain with coordinates), which breaks the claim.

    Returns
    -------
    xarray.Dataset
        The mechanism, certified at the smallest scale that holds.

    References
    ----------
    Alvim et al. 2018, section IV-B; Ghosh, Roughgarden & Sundararajan 2012.

    Examples
    --------
    >>> problem = md.load_problem("line", cells=4)
    >>> round(md.baselines.geometric(problem).attrs["ratio"], 6)
    1.0
    >>> md.baselines.geometric(problem, border="normalised").attrs["ratio"] > 1
    True
    """
    level = level_or_default(problem, epsilon)
    table = bordered(border, normalised=normalised_table, clamped=clamped_table)(problem, level)
    return closed_form_mechanism(
        problem, table, name=f"geometric_{border}", claimed_epsilon=level, parameters={"border": border}
    )


def normalised_table(problem: DesignProblem, epsilon: float) -> NDArray[np.float64]:
    """e^{-eps |u - y|} with each row divided by its sum, (n, m)."""
    return decaying_table(problem.domain.euclidean_to(problem.reports), epsilon)


def clamped_table(problem: DesignProblem, epsilon: float) -> NDArray[np.float64]:
    """The infinite-lattice mechanism with outside mass moved to the border, (n, n)."""
    shape, cell = lattice_problem(problem, "the clamped geometric mechanism")
    count = displacements(shape, cell, epsilon)
    step = np.arange(count) * cell
    offsets = np.exp(-epsilon * (step if len(shape) == 1 else np.hypot(step[:, None], step[None, :])))
    table = clamp_to_border(offsets, problem.domain)
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def laplace_clamped(problem: DesignProblem, epsilon: float) -> NDArray[np.float64]:
    """Cell integrals of the density, outside mass at the border, (n, n); rows sum to 1."""
    shape, cell = lattice_problem(problem, "the Laplace mechanism")
    clamped = clamp_to_border(_masses(shape, displacements(shape, cell, epsilon), cell, epsilon), problem.domain)
    return np.asarray(clamped / clamped.sum(axis=1, keepdims=True))


def laplace_normalised(problem: DesignProblem, epsilon: float) -> NDArray[np.float64]:
    """Cell integrals of the density with each row divided by its sum, (n, n)."""
    shape, cell = lattice_problem(problem, "the Laplace mechanism")
    index = problem.domain.index
    assert index is not None
    away = tuple(np.abs(axis[:, None] - axis[None, :]) for axis in index.T)
    weight = _masses(shape, max(shape), cell, epsilon)[away]
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _masses(shape: tuple[int, ...], count: int, cell: float, epsilon: float) -> NDArray[np.float64]:
    """Masses at the first `count` displacements of every axis; all in the own cell where less than e^-45 leaves it."""
    if epsilon * cell > 2 * TAIL_NATS:
        masses = np.zeros((count,) * len(shape))
        masses.flat[0] = 1.0
        return masses
    return line_masses(count, cell, epsilon) if len(shape) == 1 else cell_masses(count, cell, epsilon)


def line_masses(count: int, cell: float, epsilon: float) -> NDArray[np.float64]:
    """Masses (count,) of the cells at 0, 1, ... cells from the centre, on the line; exact."""
    half = epsilon * cell / 2
    masses = np.exp(-2 * half * np.arange(count)) * math.sinh(half)
    masses[0] = -math.expm1(-half)
    return masses


def cell_masses(count: int, cell: float, epsilon: float) -> NDArray[np.float64]:
    """Masses (count, count) of the square cells at non-negative displacements, in the plane.

    Tensor Gauss-Legendre rules on panels of at most one nat; the cell around the centre, where the density has a cusp,
    in polar coordinates: 8 integral_0^{pi/4} [1 - (1 + s) e^{-s}] dtheta / 2 pi with s = eps h / (2 cos theta).
    """
    masses, near = _rule(count, epsilon * cell, _FAR_NODES), _rule(min(count, _NEAR), epsilon * cell, _NODES)
    masses[: len(near), : len(near)] = near
    angle, angle_weight = leggauss(_ANGLES)
    theta = (angle + 1) * math.pi / 8
    radius = epsilon * cell / 2 / np.cos(theta)
    masses[0, 0] = (
        8 * float((angle_weight * (-np.expm1(-radius) - radius * np.exp(-radius))).sum()) * math.pi / 8 / (2 * math.pi)
    )
    return masses


def _rule(count: int, cell: float, nodes: int) -> NDArray[np.float64]:
    """Integrals (count, count) of the density over cells of so many nats by so many nodes a panel and axis."""
    panels = max(1, math.ceil(cell))
    node, weight = leggauss(nodes)
    inner = (np.arange(panels)[:, None] + (node + 1) / 2) / panels - 0.5
    share = np.tile(weight / 2 / panels, panels) * cell
    squares = (cell * (inner.reshape(-1, 1) + np.arange(count))) ** 2
    masses = np.zeros((count, count))
    for i in range(len(share)):  # nodes (j, i) give the transpose of (i, j)
        decay = squares[i][:, None, None] + squares[: i + 1].T
        np.exp(-np.sqrt(decay, out=decay), out=decay)
        masses += share[i] * (decay @ np.append(share[:i], share[i] / 2))
    return np.asarray((masses + masses.T) / (2 * math.pi))


def bordered(border: Border, *, normalised: Tables, clamped: Tables) -> Tables:
    """The tables of one border: rows divided by their sums, or noise outside the domain moved to its border.

    Raises: InputError for another border.
    """
    tables = {"normalised": normalised, "clamped": clamped}
    if border not in tables:
        raise InputError("unknown border", field="border", value=border, remedy="use normalised or clamped")
    return tables[border]


def level_or_default(problem: DesignProblem, epsilon: float | None) -> float:
    """`epsilon`, or by default the smallest level of the metric: then eps |u - u'| <= d(u, u') everywhere.

    Raises: UnsuitableError where the metric has no level and none is given.
    """
    if epsilon is not None:
        return check_epsilon(epsilon, "epsilon")
    level = problem.metric.smallest_level
    if level is None:
        raise UnsuitableError("the metric has no level: pass one", field="epsilon", value=problem.metric.kind)
    return level


def lattice_problem(problem: DesignProblem, name: str) -> tuple[tuple[int, ...], float]:
    """Shape and cell size of a problem on square cells of one or two axes with reports = secrets.

    Raises: UnsuitableError for other problems.
    """
    domain = problem.domain
    if (
        domain.shape is None
        or domain.cell is None
        or domain.dimension > 2
        or len(set(domain.cell)) > 1
        or problem.reports is not domain
    ):
        message = f"{name} needs a 1-D or 2-D grid of square cells whose reports are its secrets"
        raise UnsuitableError(message, field="domain", value=f"{domain.kind}, cell {domain.cell}")
    return domain.shape, domain.cell[0]


def displacements(shape: tuple[int, ...], cell: float, epsilon: float) -> int:
    """Number of displacements 0, 1, ... cells that noise at `epsilon` per unit must be followed for.

    Raises: SizeError where their masses would not fit: `epsilon` times `cell` is too small for this lattice.
    """
    count = max(shape) + math.ceil(TAIL_NATS / (epsilon * cell))
    require_memory(2 * count, 2 * count if len(shape) > 1 else 1, tables=2, what=f"noise at {epsilon:.3g} per unit")
    return count


def clamp_to_border(offsets: NDArray[np.float64], domain: Domain) -> NDArray[np.float64]:
    """The table (n, n) of noise with masses `offsets` at displacement (|a|, |b|), outside mass at the nearest cell.

    offsets (k,) or (k, k), non-negative displacements in cells, k at least the largest side of the domain.
    Displacements of k or more carry no mass. A masked cell passes its mass to the nearest cell of the domain.
    Cost: O(a k^2 + n a k) time for a the longest side, O(n^2 + k^2) memory.
    """
    assert domain.shape is not None and domain.index is not None
    kernel = offsets[:, None] if offsets.ndim == 1 else offsets
    shape = (domain.shape[0], 1) if len(domain.shape) == 1 else (domain.shape[0], domain.shape[1])
    cells = shape[0] * shape[1]
    require_memory(cells, cells, tables=2, what="a closed form")
    full = _mirror(kernel)
    table = np.empty((*shape, cells))
    for i in range(shape[0]):
        rows = _clamp(full, i, shape[0])
        for j in range(shape[1]):
            table[i, j] = _clamp(rows.T, j, shape[1]).T.ravel()
    inside = (domain.lookup >= 0).ravel()
    table = table.reshape(cells, cells)[inside]
    if inside.all():
        return table
    assert domain.cell is not None and domain.origin is not None
    everywhere = Domain.grid(domain.shape, cell=domain.cell, unit=domain.unit, origin=domain.origin)
    _, target = cKDTree(domain.points).query(everywhere.points)
    merged = np.zeros((domain.size, domain.size))
    np.add.at(merged.T, target, table.T)
    return merged


def _mirror(kernel: NDArray[np.float64]) -> NDArray[np.float64]:
    """Masses at all signed displacements from those at non-negative ones."""
    for axis in (0, 1):
        flipped = np.flip(kernel, axis=axis)
        keep = [slice(None), slice(None)]
        keep[axis] = slice(0, -1)
        kernel = np.concatenate([flipped[tuple(keep)], kernel], axis=axis)
    return kernel


def _clamp(masses: NDArray[np.float64], position: int, side: int) -> NDArray[np.float64]:
    """Masses (side, ...) on the cells of an axis, from those at all signed displacements of a place at `position`."""
    first = masses.shape[0] // 2 - position
    landed = masses[first : first + side].copy()
    landed[0] += masses[:first].sum(axis=0)
    landed[-1] += masses[first + side :].sum(axis=0)
    return landed

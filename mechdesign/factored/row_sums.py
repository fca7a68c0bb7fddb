"""The share of a block of rows of a factored mechanism: exact row sums, expected losses, posterior moments."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np
from scipy.spatial.distance import cdist

from mechdesign.base.arrays import Floats, Indices, Integers, Masses, Matrix, Unsigned, Unsigned32, Vector
from mechdesign.base.validation import read_only
from mechdesign.errors import UnsuitableError
from mechdesign.factored.certificate import KERNEL_BITS, Factors
from mechdesign.factored.integer_metric import BLOCK, Distances, Window
from mechdesign.factored.work_folder import Arrays, BlockedWork, OnDone, merged_pass, threads
from mechdesign.problem.domain import UNDERFLOW_LIMIT
from mechdesign.problem.losses import APART, LENGTH, LOSSES, SQUARE, Loss

_LOW = (1 << 64) - 1
_NODES = {1: 4096, 2: 1024, 3: 96}  # of an axis whose coordinates are not evenly spaced, by the number of axes
_MOST = 1 << 22  # nodes in all
_EVEN = 1e-6  # of a step
ROWS = 1024  # of a block: the last bits of sums depend on it
OVER_ROWS = ("row_sum", "loss")  # arrays of `row_block`


def far_losses(secrets: Vector, reports: Vector, weight: Unsigned32, code: int) -> Vector:
    """T (n,), for secrets (n, a), reports (c, a) and weight (c,); code of the loss. Cost: O((n + c) log(n + c))."""
    # Squared distances take three sums, the 0/1 loss one, and lengths a convolution on a lattice. The convolution is
    # exact but for rounding if the coordinates are evenly spaced; else it is right to some 1e-5 of T, of which a share
    # of e^-28 or so enters a loss.
    centre = secrets.mean(axis=0)
    u, y, w = secrets - centre, reports - centre, weight.astype(float)
    if code == SQUARE:
        return np.asarray((u**2).sum(axis=1) * w.sum() - 2 * u @ (w @ y) + w @ (y**2).sum(axis=1))
    if code == LENGTH:
        return _lengths(u, y, w)
    _, place = np.unique(np.concatenate([secrets, reports]), axis=0, return_inverse=True)
    place = place.ravel()
    return np.asarray(w.sum() - np.bincount(place[len(u) :], w, len(place))[place[: len(u)]])


def _lengths(u: Vector, y: Vector, weight: Vector) -> Vector:
    # Pair by pair where these are no more than the nodes; else the weights are spread to the nodes around each report,
    # and the sums at the nodes are interpolated.
    axes = u.shape[1]
    sides = [_side(np.concatenate([u[:, a], y[:, a]]), axes) for a in range(axes)]
    if np.prod([float(count) for _, _, count in sides]) > _MOST:
        sides = [(low, step * (count - 1) / (_NODES[axes] - 1), _NODES[axes]) for low, step, count in sides]
    shape = tuple(count for _, _, count in sides)
    if len(u) * len(y) <= math.prod(shape):
        return np.asarray(cdist(u, y) @ weight)

    from scipy.signal import fftconvolve  # half a second, of which most programs need nothing

    spread = np.zeros(math.prod(shape))
    for node, node_weight in _corners(y, sides):
        spread += np.bincount(np.ravel_multi_index(node, shape), weight * node_weight, len(spread))
    offsets = [step * np.arange(1 - count, count) for _, step, count in sides]
    apart = np.sqrt(np.sum(np.square(np.meshgrid(*offsets, indexing="ij")), axis=0))
    convolved = fftconvolve(apart, spread.reshape(shape), mode="valid")
    total = np.zeros(len(u))
    for node, node_weight in _corners(u, sides):
        total += node_weight * convolved[node]
    return total


def _side(values: Vector, axes: int) -> tuple[float, float, int]:
    nodes = np.unique(values)
    low, span = float(nodes[0]), float(nodes[-1] - nodes[0])
    step = span / max(len(nodes) - 1, 1)
    if step == 0:
        return low, 1.0, 1
    even = np.abs(nodes - low - step * np.arange(len(nodes))).max() <= _EVEN * step
    count = len(nodes) if even else _NODES[axes]
    return low, span / (count - 1), count


def _corners(points: Vector, sides: list[tuple[float, float, int]]) -> list[tuple[tuple[Integers, ...], Vector]]:
    along_axes = []
    for values, (low, step, count) in zip(points.T, sides, strict=True):
        # Linear interpolation between the two nodes around a value; rounding may put one just outside.
        position = np.clip((values - low) / step, 0.0, count - 1)
        node = np.minimum(position.astype(np.int64), max(count - 2, 0))
        along_axes.append([(node, 1 - position + node), (np.minimum(node + 1, count - 1), position - node)])
    return [
        (tuple(node for node, _ in chosen), np.prod([node_weight for _, node_weight in chosen], axis=0))
        for chosen in itertools.product(*along_axes)
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class LossData:
    """Factors, with coordinates, prior and loss."""

    factors: Factors
    secrets: Matrix  # (n, a), coordinates
    reports: Matrix  # (c, a), coordinates of the cell that each column reports
    prior: Vector  # (n,)
    loss: Loss  # one with a code

    def __post_init__(self) -> None:
        if self.loss.code is None:
            known = ", ".join(name for name, loss in LOSSES.items() if loss.code is not None)
            remedy = f"use {known}, or a grid small enough for a table"
            message = "a factored mechanism computes its loss from coordinates"
            raise UnsuitableError(message, field="loss", value=self.loss.name, remedy=remedy)
        largest = np.abs(self.secrets).max()
        if not largest >= UNDERFLOW_LIMIT:
            message = "squares of coordinates lose their digits below 2^-400: use a smaller unit"
            raise UnsuitableError(message, field="points", value=largest)

    @property
    def floor(self) -> float:
        return float(self.factors.kernel[-1]) * 2.0**-KERNEL_BITS

    @cached_property
    def far(self) -> Floats:
        assert self.loss.code is not None
        return far_losses(self.secrets, self.reports, self.factors.weight, self.loss.code)


@dataclass(frozen=True, kw_only=True, eq=False)
class RowBlock:
    """All n rows."""

    row_sum: Masses  # (n, 2), high and low 64 bits of S(u)
    loss: Vector  # (n,), expected loss from each secret
    # (c, 1 + a), for the squared distance: sums over u of prior(u) (E(q_k(u)) - E(F)) W(k) / S(u) times 1 and the
    # coordinates from the mean of the secrets
    moments: Floats | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class CertifiedFactors:
    """Factors that satisfy the certificate."""

    data: LossData
    rows: RowBlock
    target: Indices  # (c,), the secret that each column reports
    factor: float  # by which the step was shortened


def all_rows(data: LossData, *, on_done: OnDone = lambda done: None) -> RowBlock:
    """Sums and losses of all rows, on the cores of this machine; on_done is called with the rows done."""
    blocked = BlockedWork(work=row_block, state=data, total=len(data.prior), block=ROWS, name="rows")
    return RowBlock(**_on_this_machine(blocked, OVER_ROWS, on_done))


def row_sums(factors: Factors, *, on_done: OnDone = lambda done: None) -> Unsigned:
    """High and low 64 bits of S(u) (n, 2); the same for a quarter of the cost."""
    blocked = BlockedWork(work=sum_block, state=factors, total=len(factors.inner), block=ROWS, name="sums")
    return _on_this_machine(blocked, ("row_sum",), on_done)["row_sum"]


def _on_this_machine(blocked: BlockedWork, over_rows: tuple[str, ...], on_done: OnDone) -> Arrays:
    with threads() as executor:
        return merged_pass(executor, blocked, over_rows, on_done=on_done)


# Rows are taken in the order of tiles (`Factors.order`). All sums run over windows. With F the cap, E(q_k(u)) is
# (E(q_k(u)) - E(F)) + E(F). The first term is 0 outside the window. The second is the same for all columns and is added
# for all rows at once: exactly in row sums (certificate.py), else in `far` and `loss_figures`.
# Columns at the cap add T(u) = sum over columns of W l(u, report) to losses, for all secrets at once (`far_losses`).
# Losses and moments enter figures only.
def row_block(data: LossData, start: int, stop: int) -> Arrays:
    """The sums of the rows start..stop in the order of tiles (`RowBlock`), and their share of the columns' moments."""
    factors = data.factors
    centre = data.secrets.mean(axis=0)
    above = factors.kernel * 2.0**-KERNEL_BITS - data.floor
    weight = factors.weight.astype(float)
    secrets = factors.order[start:stop]
    sums: list[int] = []
    losses = np.empty(len(secrets))
    moments = np.zeros((factors.size, 1 + data.secrets.shape[1]) if data.loss.code == SQUARE else (0, 0))
    for tile, window in tiles_of(factors, secrets):
        chosen = secrets[tile]
        exact = factors.row_sums(window)
        total = np.array([s * 2.0**-KERNEL_BITS for s in exact])
        inside = np.zeros(len(chosen))
        places = np.ascontiguousarray(data.secrets[chosen].T)
        _add_losses(window.field, window.places, above, weight, read_only(data.reports), places, data.loss.code, inside)
        # Inside the window E - E(F), everywhere E(F), as in the module docstring.
        losses[tile] = (inside + data.floor * data.far[chosen]) / total
        if moments.size:
            prior_over_sum = data.prior[chosen] / total
            _add_moments(window.field, window.places, above, prior_over_sum, data.secrets[chosen] - centre, moments)
        sums += exact
    block = {"secret": secrets, "row_sum": split_words(sums), "loss": losses}
    if moments.size:
        column = np.flatnonzero(moments[:, 0])
        summed = moments[column] * weight[column, None]
        block |= {"column": column, "moments": summed, "size": np.array([factors.size])}
    return block


def sum_block(factors: Factors, start: int, stop: int) -> Arrays:
    """S(u) alone of the rows start..stop in the order of tiles: secret (b,) and row_sum (b, 2)."""
    secrets = factors.order[start:stop]
    return {"secret": secrets, "row_sum": sum_rows(factors, secrets)}


def sum_rows(factors: Factors, secrets: Integers) -> Unsigned:
    """High and low 64 bits of S(u) (b, 2) of b secrets. Cost: 1 ns for each column of the windows around 128."""
    return split_words([s for _, window in tiles_of(factors, secrets) for s in factors.row_sums(window)])


def tiles_of(factors: Factors, secrets: Integers) -> Iterator[tuple[slice, Window]]:
    """The windows around `BLOCK` secrets at a time, each to be used before the next is asked for."""
    room = factors.metric.windows()
    for first in range(0, len(secrets), BLOCK):
        tile = slice(first, min(first + BLOCK, len(secrets)))
        yield tile, factors.window_of(secrets[tile], room)


def dense_rows(factors: Factors, secrets: Integers) -> Iterator[tuple[slice, Distances]]:
    """q_k(u) (c, b) of all columns, for `BLOCK` of the secrets (m,) at a time."""
    for tile, window in tiles_of(factors, secrets):
        yield tile, window.dense(factors.size, factors.metric.cap)


def merged_rows(factors: Factors, secrets: Integers, target: Integers, total: Vector) -> Vector:
    """P(y|u) (b, n) of secrets (b,) with the row sums total (b,), in doubles; target (c,), the reports of columns."""
    kernel, weight = factors.kernel.astype(float), factors.weight.astype(float)
    rows = np.zeros((len(secrets), len(factors.inner)))
    for tile, distances in dense_rows(factors, secrets):
        # Added, not written: several columns may have one report.
        np.add.at(rows[tile].T, target, kernel[distances] * weight[:, None] / total[tile])
    return rows


def split_words(numbers: list[int]) -> Unsigned:
    """Integers under 2^128 as high and low words (n, 2)."""
    return np.array([[s >> 64, s & _LOW] for s in numbers], np.uint64).reshape(-1, 2)


def join_words(words: Unsigned) -> list[int]:
    """The integers of `split_words`."""
    return [(high << 64) + low for high, low in words.tolist()]


def rounded_words(words: Unsigned) -> Floats:
    """The integers of `split_words` as doubles (n,)."""
    return np.asarray(words[:, 0] * 2.0**64 + words[:, 1])


@numba.njit(cache=True, nogil=True)
def _add_losses(distances, columns, kernel, weight, reports, secrets, code, total):  # type: ignore[no-untyped-def]
    sources = distances.shape[1]
    square, mass = np.empty(sources), np.empty(sources)
    for p in range(columns.size):
        k, row = columns[p], distances[p]
        for b in range(sources):
            mass[b] = weight[k] * kernel[row[b]]
        if code == APART:  # the loss is decided once a column, not once an entry: the loops below have no branch
            for b in range(sources):
                apart = False
                for axis in range(secrets.shape[0]):
                    apart |= secrets[axis, b] != reports[k, axis]
                total[b] += mass[b] if apart else 0.0
            continue
        for b in range(sources):
            square[b] = 0.0
        for axis in range(secrets.shape[0]):
            report, coordinate = reports[k, axis], secrets[axis]
            for b in range(sources):
                square[b] += (coordinate[b] - report) ** 2
        if code == LENGTH:
            for b in range(sources):
                total[b] += mass[b] * np.sqrt(square[b])
        else:
            for b in range(sources):
                total[b] += mass[b] * square[b]


@numba.njit(cache=True, nogil=True)
def _add_moments(distances, columns, kernel, scale, secrets, moments):  # type: ignore[no-untyped-def]
    for p in range(columns.size):
        k = columns[p]
        for b in range(distances.shape[1]):
            mass = scale[b] * kernel[distances[p, b]]
            moments[k, 0] += mass
            for axis in range(secrets.shape[1]):
                moments[k, 1 + axis] += mass * secrets[b, axis]

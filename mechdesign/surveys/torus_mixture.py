r"""Kernels of small clusters on a torus, mixed for the least error of an estimated distribution.

A cell u of the torus Z_T1 x Z_T2 reports y with probability k(u - y), k(u) = e^{-d(u, S)} / sum. d is the
distance around the torus to the nearest cell of a cluster S. This is private for d, so for the longer distances of a
grid inside the torus too. With a share w_S of the reports for each cluster and uniform truth the information is
diagonal in Fourier modes, and

    (1)  minimise  sum over modes o != 0 of W(o) / (n s(o)),   s = sum_S w_S |k_S^(o)|^2,   over w >= 0, sum w = 1

is convex, n the number of cells of the torus, W the eigenvalues of the norm. Source: ours.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from mechdesign.base.arrays import Floats, Matrix, Vector
from mechdesign.solvers.symmetry import axis_orders
from mechdesign.surveys.statistical_design import FAR

Cell = tuple[int, ...]
Cluster = tuple[Cell, ...]

_WIDTH = {1: 11, 2: 5}  # cells along a side of the window that clusters start in, by number of axes
_MOST = 6  # cells of a cluster to start with
_REACH = 2  # cells around a cluster where one more may lie
_ROUNDS = 16
_GROWN = 12  # heaviest clusters that are changed in a round
_TAKEN = 200  # changed clusters that come into the next round
_STEPS = 3000
_PRECISE = 1e-4  # relative, of the weights
_SETTLED = 2e-3  # relative improvement of a round under which it was the last
_LIGHT = 0.02  # share of the reports under which a cluster is left out
_FEWEST = 1e-3  # of the heaviest, for clusters kept between rounds


@dataclass(frozen=True, kw_only=True, eq=False)
class Torus:
    """shape, cells along each axis; step, nats along a cell of each axis."""

    shape: tuple[int, ...]
    step: tuple[float, ...]

    @cached_property
    def single(self) -> Floats:
        """e^{-d(u, 0)}, (T1, T2) or (T1,)."""
        axes = [np.minimum(np.arange(t), t - np.arange(t)) * h for t, h in zip(self.shape, self.step, strict=True)]
        square = np.add.reduce(np.meshgrid(*[axis**2 for axis in axes], indexing="ij"))
        return np.asarray(np.exp(-np.minimum(np.sqrt(square), FAR)))

    @cached_property
    def orders(self) -> list[tuple[int, ...]]:
        """The exchanges of axes that leave the torus as it is."""
        return axis_orders(list(zip(self.shape, self.step, strict=True)))

    def kernel(self, cluster: Cluster) -> Floats:
        """The kernel k (T1, T2), of sum 1."""
        axes = tuple(range(len(self.shape)))
        value = np.maximum.reduce([np.roll(self.single, cell, axes) for cell in cluster])
        return np.asarray(value / value.sum())

    def images(self, cluster: Cluster) -> list[Cluster]:
        """The mirror images of a cluster, itself among them, each moved to the corner."""
        images = {
            move_to_corner(
                tuple(tuple(sign * cell[axis] for sign, axis in zip(signs, order, strict=True)) for cell in cluster)
            )
            for order in self.orders
            for signs in itertools.product((1, -1), repeat=len(self.shape))
        }
        return sorted(images)

    def spectrum(self, cluster: Cluster) -> Vector:
        """|k^|^2 without the constant mode, the mean over the images: (n - 1,)."""
        # Moving a cluster changes the phase of its transform only, so the images need no further transforms.
        square = np.abs(np.fft.fftn(self.kernel(cluster))) ** 2
        axes = range(len(self.shape))
        for axis in axes:
            # Flip and roll take frequency o to -o, the transform of the mirror image.
            square = (square + np.roll(np.flip(square, axis), 1, axis)) / 2
        square = np.add.reduce([square.transpose(order) for order in self.orders]) / len(self.orders)
        return np.asarray(square.ravel()[1:])


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixture:
    """clusters, the heaviest first, with weights (j,) that sum to 1; criterion on the torus."""

    clusters: list[Cluster]
    weights: Vector
    criterion: float


def choose_mixture(torus: Torus, eigenvalue: Vector) -> Mixture:
    """The best mixture of the search, without light clusters; eigenvalue (n - 1,), W(o) of (1) as `fftn` orders it."""
    cost = eigenvalue / math.prod(torus.shape)
    clusters = first_clusters(torus)
    spectra = np.stack([torus.spectrum(cluster) for cluster in clusters])
    weights, value = torus_weights(spectra, cost)
    seen = set(clusters)
    for _ in range(_ROUNDS):
        active = np.flatnonzero(weights > _FEWEST * weights.max())
        heavy = active[np.argsort(-weights[active], kind="stable")[:_GROWN]]
        fresh = sorted({n for i in heavy for n in _neighbours_of(torus, clusters[i])} - seen)
        seen.update(fresh)
        if not fresh:
            break
        changed = np.stack([torus.spectrum(cluster) for cluster in fresh])
        gains = changed @ (cost / (weights @ spectra) ** 2)
        best = np.argsort(-gains, kind="stable")[:_TAKEN]
        # The optimality condition of `torus_weights`: others cannot improve the mixture.
        best = best[gains[best] > value * (1 + _PRECISE)]
        clusters = [clusters[i] for i in active] + [fresh[i] for i in best]
        spectra = np.vstack([spectra[active], changed[best]])
        before = value
        weights, value = torus_weights(spectra, cost)
        if value > before * (1 - _SETTLED):
            break
    order = np.argsort(-weights, kind="stable")
    order = order[weights[order] > min(_LIGHT, weights.max() / 2)]
    return Mixture(
        clusters=[clusters[i] for i in order], weights=weights[order] / weights[order].sum(), criterion=value
    )


def torus_weights(spectra: Matrix, cost: Vector) -> tuple[Vector, float]:
    """Weights (j,) with the least sum of cost / (weights @ spectra), and that sum: (1) by multiplicative updates."""
    weights = np.full(len(spectra), 1 / len(spectra))
    for _ in range(_STEPS):
        mixed = weights @ spectra
        value, slope = float((cost / mixed).sum()), spectra @ (cost / mixed**2)
        # At the optimum no slope exceeds the value: the largest one is the relative duality gap.
        if slope.max() <= value * (1 + _PRECISE):
            break
        weights = weights * np.sqrt(slope / value)
        weights /= weights.sum()
    return weights, float((cost / (weights @ spectra)).sum())


def first_clusters(torus: Torus) -> list[Cluster]:
    """One of each class of subsets of one colour in the window, under moves and the symmetries of the torus."""
    return list(_classes(len(torus.shape), tuple(torus.orders)))


@cache
def _classes(axes: int, orders: tuple[tuple[int, ...], ...]) -> tuple[Cluster, ...]:
    # Only the exchanges of axes matter here: any torus with the same ones serves.
    plain = Torus(shape=(64,) * axes, step=tuple(float(len(orders) == 1) * i + 1.0 for i in range(axes)))
    # One colour of a checkerboard: 513 clusters up to symmetry in the plane. Both colours would give dozens of times as
    # many.
    window = itertools.product(range(_WIDTH[axes]), repeat=axes)
    cells = [cell for cell in window if sum(cell) % 2 == 0]
    clusters = {
        min(plain.images(chosen)) for size in range(1, _MOST + 1) for chosen in itertools.combinations(cells, size)
    }
    return tuple(sorted(clusters, key=lambda cluster: (len(cluster), cluster)))


def _neighbours_of(torus: Torus, cluster: Cluster) -> set[Cluster]:
    """The clusters with one cell more, one less, or one elsewhere, of the same colour, each as its first image."""
    steps = [
        step for step in itertools.product(range(-_REACH, _REACH + 1), repeat=len(torus.shape)) if sum(step) % 2 == 0
    ]
    near = {tuple(c + s for c, s in zip(cell, step, strict=True)) for cell in cluster for step in steps} - set(cluster)
    clusters = [(*cluster, cell) for cell in near]
    if len(cluster) > 1:
        for gone in cluster:
            rest = tuple(cell for cell in cluster if cell != gone)
            clusters += [rest, *((*rest, cell) for cell in near)]
    return {min(torus.images(changed)) for changed in clusters}


def move_to_corner(cluster: Cluster) -> Cluster:
    """The cluster moved so that its least coordinates are 0, cells in order."""
    low = [min(axis) for axis in zip(*cluster, strict=True)]
    return tuple(sorted(tuple(c - l for c, l in zip(cell, low, strict=True)) for cell in cluster))

r"""Cones of the gradient of a quadratic spline, as sparse rows over one column of a table.

On a cell, with s, t in [0, 1] along its sides, a column p of rows is the spline

    p(s, t) = sum_ab B_a(s) B_b(t) beta_ab,        grad p = sum_ab B_a(s) B_b(t) G_ab / h,        B Bernstein, degree 2

where beta and G are sums over the 3 x 3 cells around. Along one axis, from rows (w, c, e),

    beta = ((w + c) / 2, c, (c + e) / 2),          G = (c - w, (e - w) / 2, e - c).

With levels e_kl at the corners of the cell, e p has the Bernstein coefficients (e beta)_ab of degree 3, as G has when
multiplied with 1; |G_ab| <= h (e beta)_ab for all ab implies |grad p| <= e p on the cell: both sides are sums of
coefficients with the same weights >= 0. Where the four levels of a cell are equal degree 2 suffices.
All weights of slopes are small multiples of a power of two, and exact; those of bounds are sums of terms >= 0.
Sharpness: a plane wave e^{eps x} exceeds the cones at eps by a relative (eps h)^2 / 6. `subdivided` has the cones of
the four quarters of each cell instead, by de Casteljau: weaker conditions, four times as many, exceeded by (eps h)^2 /
24. A level above `HIGHEST` nats a cell counts as that, as in the check of whole numbers (cones.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mechdesign.mechanism.positions.cones import HIGHEST
from mechdesign.mechanism.positions.patches import Patches

_VALUE = np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.5, 0.5]])  # beta_a over (w, c, e)
_SLOPE = np.array([[-1.0, 1.0, 0.0], [-0.5, 0.0, 0.5], [0.0, -1.0, 1.0]])  # G_a over (w, c, e)
# Three quarters of coefficient a of degree 3 of a product, exact in doubles: sum over (i, k) of share beta_i e_k.
_RAISED = (((0, 0, 0.75),), ((1, 0, 0.5), (0, 1, 0.25)), ((2, 0, 0.25), (1, 1, 0.5)), ((2, 1, 0.75),))
_HALVES = (  # from the coefficients of an interval to those of its halves
    (np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.25, 0.5, 0.25]]), np.array([[1.0, 0.0], [0.5, 0.5]])),
    (np.array([[0.25, 0.5, 0.25], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]), np.array([[0.5, 0.5], [0.0, 1.0]])),
)
_LEAST = 2.0**-900  # nats a cell; a lower level counts as this, so that no weight vanishes: the cones are weaker
_WHOLE = ((np.eye(3), np.eye(2)),)
_COLUMNS = 64  # of a table at a time
_DIGITS = 10  # of fingerprints by which equal rows are told


@dataclass(frozen=True, kw_only=True, eq=False)
class SplineCones:
    """Sparse rows (k, n) over a column p of n rows: |(slope_x p, slope_y p)| <= bound p for each of k cones; in
    probability, the lengths of cells being part of `bound`.
    """

    bound: sp.csr_array
    slope_x: sp.csr_array
    slope_y: sp.csr_array

    @property
    def size(self) -> int:
        """The number k of cones."""
        return int(self.bound.shape[0])

    def excess(self, table: NDArray[np.float64]) -> float:
        """The largest slope over bound of a table (n, m) > 0: at most 1 where every column lies in its cones."""
        found = 0.0
        for start in range(0, table.shape[1], _COLUMNS):
            part = table[:, start : start + _COLUMNS]
            slope = np.hypot(self.slope_x @ part, self.slope_y @ part)
            found = max(found, float((slope / (self.bound @ part)).max()))
        return found


def spline_cones(patches: Patches, *, subdivided: bool = False) -> SplineCones:
    """The cones of all cells; those that two cells share stand once. Cost: O(n).

    Levels (n, 16) are those of quarters, and their cones have to be `subdivided`.
    """
    given = np.clip(patches.corner_level * patches.side, _LEAST, HIGHEST)
    around, n = patches.around, len(patches.around)
    cells, weights = [], []
    for q, halves in enumerate(product(_HALVES if subdivided else _WHOLE, repeat=2)):
        level = np.einsum("ik,jl,nkl->nij", halves[0][1], halves[1][1], given[:, :4].reshape(-1, 2, 2)).reshape(-1, 4)
        if given.shape[1] == 16:
            level = given[:, 4 * q : 4 * q + 4]
        flat = (level == level[:, :1]).all(axis=1)
        for chosen, coefficients in ((flat, _equal), (~flat, _raised)):
            found = coefficients(level[chosen], *halves)
            cells.append(np.repeat(around[chosen], found.shape[1], axis=0))
            weights.append(found.reshape(-1, 3, 9))
    cell, weight = np.concatenate(cells), np.concatenate(weights)
    rows = np.repeat(np.arange(len(cell)), 9)
    parts = [sp.csr_array((weight[:, k].ravel(), (rows, cell.ravel())), shape=(len(cell), n)) for k in range(3)]
    probe = np.random.default_rng(0).random(n)
    prints = np.column_stack([part @ probe for part in parts])
    _, kept = np.unique(prints.round(_DIGITS), axis=0, return_index=True)
    kept = np.sort(kept[np.abs(prints[kept, 1:]).max(axis=1) > 10.0**-_DIGITS])
    for part in parts:
        part.eliminate_zeros()
    bound, slope_x, slope_y = (part[kept] for part in parts)
    return SplineCones(bound=bound, slope_x=slope_x, slope_y=slope_y)


Half = tuple[NDArray[np.float64], NDArray[np.float64]]


def _equal(level: NDArray[np.float64], across: Half, along: Half) -> NDArray[np.float64]:
    """Weights (n, 9, 3, 9) of bound and two slopes over the cells around, for parts of cells of one level each."""
    weights = np.stack([_outer(across[0], along[0], i, j) for i in range(3) for j in range(3)])
    found = np.tile(weights, (len(level), 1, 1, 1))
    found[:, :, 0] *= level[:, :1, None]
    return found


def _raised(level: NDArray[np.float64], across: Half, along: Half) -> NDArray[np.float64]:
    """As `_equal`, (n, 16, 3, 9), for parts whose four levels differ."""
    corner = level.reshape(-1, 2, 2)
    found = np.zeros((len(level), 4, 4, 3, 9))
    for a, b in product(range(4), repeat=2):
        for (i, k, share), (j, l, other) in product(_RAISED[a], _RAISED[b]):
            weights = share * other * _outer(across[0], along[0], i, j)
            found[:, a, b, 0] += corner[:, k, l, None] * weights[0]
            found[:, a, b, 1:] += weights[1:]
    return found.reshape(-1, 16, 3, 9)


def _outer(across: NDArray[np.float64], along: NDArray[np.float64], i: int, j: int) -> NDArray[np.float64]:
    """Value and two slopes (3, 9) of the coefficient i, j."""
    value, slope = (across @ _VALUE, along @ _VALUE), (across @ _SLOPE, along @ _SLOPE)
    pairs = ((value[0], value[1]), (slope[0], value[1]), (value[0], slope[1]))
    return np.stack([np.outer(x[i], y[j]).ravel() for x, y in pairs])

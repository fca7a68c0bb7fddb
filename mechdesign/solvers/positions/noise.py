r"""Noise of the plane: the column of least mean loss that lies in the cones of one level, by displacement.

    minimise    sum_d l(d) p(d)    over columns p on the lattice with sum_d p(d) = 1, in the cones at z nats a cell

Its mean over flips and turns is as good, so that one eighth of a square is solved for, whose other cells have the rows
of their images. Beyond `reach` cells along an axis p goes on as it is there: the cones hold for that column too, and at
16 nats it is e^-16 of its largest number.
Known: at one level and far from the border no mechanism within the cones does better than this noise, since the mean of
a mechanism over its translations is noise. Measured beside 6 / eps^2, the loss of planar Laplace noise, and without the
h^2 / 2 of the spline: 24.0 at z = 0.5 and 6.13 at z = 1, in h^2.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mechdesign.mechanism.positions.patches import AROUND, Patches
from mechdesign.mechanism.positions.spline_cones import spline_cones
from mechdesign.setting.objective.losses import Loss, SquaredDistance
from mechdesign.solvers.positions.cone_blocks import solve_cone_blocks

Array = NDArray[np.float64]

NATS = 16.0  # from the centre, where the noise is followed no farther
CELLS = 150  # nor so many cells
_GAP = 1e-5


def plane_noise(z: float, reach: int, loss: Loss) -> Array:
    """The noise p (r, r) by displacements of 0, 1, ..., r - 1 cells along the axes, 1 at its centre; r - 1 is `reach`,
    or the cells of 16 nats or 150 where they are fewer. Beyond, it stays as it is at r - 1.

    The mean loss is that of the squared distance for this loss, else that of the distance.
    Cost: some 25 steps of one banded system of r^2 / 2 rows: 0.2 s at r = 40, 20 s at r = 130.
    """
    far = max(2, min(reach, math.ceil(NATS / z), CELLS))
    i, j = np.tril_indices(far + 1)
    places = [(np.minimum(np.abs(i + a), far), np.minimum(np.abs(j + b), far)) for a, b in AROUND]
    rows = [np.maximum(a, b) * (np.maximum(a, b) + 1) // 2 + np.minimum(a, b) for a, b in places]
    around = Patches(around=np.column_stack(rows), corner_level=np.full((len(i), 4), z), side=1.0)
    images = np.where(i == 0, 1.0, np.where((j == 0) | (i == j), 4.0, 8.0))
    away = (i * i + j * j).astype(float)
    cost = images * (away if type(loss) is SquaredDistance else np.sqrt(away))
    sums = sp.csr_array(images[None, :] / images.sum())
    cones = spline_cones(around, subdivided=True)
    found = solve_cone_blocks(cones, np.ascontiguousarray(cost[:, None]), sums, tolerance=_GAP).table[:, 0]
    noise = np.empty((far + 1, far + 1))
    noise[i, j] = noise[j, i] = found / found[0]
    return noise

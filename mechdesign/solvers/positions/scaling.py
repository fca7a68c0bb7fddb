"""Second-order cones of three numbers as an algebra: the scaling of Nesterov and Todd, products, and longest steps.

Source: Nesterov and Todd 1997; Vandenberghe, The CVXOPT linear and quadratic cone program solvers, section 4.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Scaling:
    """W of Nesterov and Todd for cones s and z (3, k, m): W z = W^-1 s."""

    def __init__(self, s: Array, z: Array) -> None:
        ds, dz = norm(s), norm(z)
        unit_s, unit_z = s / ds, z / dz
        gamma = np.sqrt((1 + (unit_s * unit_z).sum(axis=0)) / 2)
        turned = unit_z.copy()
        turned[1:] *= -1
        self.point = (unit_s + turned) / (2 * gamma)
        self.root = self.point.copy()
        self.root[0] += 1
        self.root /= np.sqrt(2 * self.root[0])
        self.size = np.sqrt(ds / dz)

    def times(self, vector: Array) -> Array:
        """W vector."""
        found = 2 * (self.root * vector).sum(axis=0) * self.root
        found[0] -= vector[0]
        found[1:] += vector[1:]
        return np.asarray(found * self.size)

    def inverse(self, vector: Array) -> Array:
        """W^-1 vector."""
        turned = self.root.copy()
        turned[1:] *= -1
        found = 2 * (turned * vector).sum(axis=0) * turned
        found[0] -= vector[0]
        found[1:] += vector[1:]
        return np.asarray(found / self.size)

    def inverse_square(self) -> Array:
        """The entries 00, 01, 02, 11, 12, 22 of W^-2, (6 k, m)."""
        a, b, c = self.point[0], -self.point[1], -self.point[2]
        entries = np.stack([2 * a * a - 1, 2 * a * b, 2 * a * c, 2 * b * b + 1, 2 * b * c, 2 * c * c + 1])
        entries /= self.size**2
        return entries.reshape(-1, entries.shape[2])


def norm(vector: Array) -> Array:
    """sqrt(a^2 - b^2 - c^2), by factors that do not cancel."""
    tail = np.hypot(vector[1], vector[2])
    return np.asarray(np.sqrt(np.maximum((vector[0] - tail) * (vector[0] + tail), 1e-300)))


def product(a: Array, b: Array) -> Array:
    """A o b, the product of the Jordan algebra of the cones."""
    return np.stack([(a * b).sum(axis=0), a[0] * b[1] + b[0] * a[1], a[0] * b[2] + b[0] * a[2]])


def quotient(a: Array, d: Array) -> Array:
    """The x with a o x = d."""
    first = (a[0] * d[0] - a[1] * d[1] - a[2] * d[2]) / norm(a) ** 2
    return np.stack([first, (d[1] - first * a[1]) / a[0], (d[2] - first * a[2]) / a[0]])


def longest_step(s: Array, ds: Array) -> float:
    """The largest step along ds that stays in the cones.

    For s in a cone, b^2 - a c >= 0; where ds is a multiple of s it is 0, and rounding may turn its sign.
    """
    a = ds[0] ** 2 - ds[1] ** 2 - ds[2] ** 2
    b = s[0] * ds[0] - s[1] * ds[1] - s[2] * ds[2]
    c = norm(s) ** 2
    below = np.sqrt(np.maximum(b * b - a * c, 0)) - b
    with np.errstate(divide="ignore"):
        return float(np.where(below > 0, c / below, np.inf).min())

"""Second-order cones Q = {(a, b, c): |(b, c)| <= a}: their product, the longest step in them, and their scaling.

Source: Nesterov and Todd 1997; Vandenberghe, The CVXOPT linear and quadratic cone program solvers, sections 4 and 5.
"""

from __future__ import annotations

import numpy as np

from mechdesign.base.arrays import Floats


class Scaling:
    """W of Nesterov and Todd for cones s and z (d, k, m): W z = W^-1 s."""

    def __init__(self, s: Floats, z: Floats) -> None:
        # Nesterov and Todd: the hyperbolic reflection that takes z / |z| to the mirror image of s / |s|, times
        # sqrt(|s| / |z|). `root` gives W, and `point` its square.
        ds, dz = norm(s), norm(z)
        unit_s, unit_z = s / ds, z / dz
        gamma = np.sqrt((1 + (unit_s * unit_z).sum(axis=0)) / 2)
        self.point = (unit_s + _mirror(unit_z)) / (2 * gamma)
        self.root = self.point.copy()
        self.root[0] += 1
        self.root /= np.sqrt(2 * self.root[0])
        self.size = np.sqrt(ds / dz)

    def times(self, vector: Floats) -> Floats:
        return _reflect(vector, self.root) * self.size

    def inverse(self, vector: Floats) -> Floats:
        return _reflect(vector, _mirror(self.root)) / self.size

    def inverse_twice(self, vector: Floats) -> Floats:
        return _reflect(vector, _mirror(self.point)) / self.size**2

    def inverse_square(self) -> Floats:
        """The entries 00, 01, 02, 11, 12, 22 of W^-2, (6 k, m); in two dimensions 00, 01, 11."""
        first = _mirror(self.point)
        form = np.diag([1.0, *[-1.0] * (len(first) - 1)])
        pairs = zip(*np.triu_indices(len(first)), strict=True)
        entries = np.stack([2 * first[p] * first[q] - form[p, q] for p, q in pairs])
        entries /= self.size**2
        return entries.reshape(-1, entries.shape[2])


def _mirror(vector: Floats) -> Floats:
    mirrored = vector.copy()
    mirrored[1:] *= -1
    return mirrored


def _reflect(vector: Floats, root: Floats) -> Floats:
    image = 2 * (root * vector).sum(axis=0) * root
    image[0] -= vector[0]
    image[1:] += vector[1:]
    return np.asarray(image)


def norm(vector: Floats) -> Floats:
    """sqrt(a^2 - b^2 - c^2), by factors that do not cancel."""
    tail = np.abs(vector[1]) if len(vector) == 2 else np.hypot(vector[1], vector[2])
    return np.asarray(np.sqrt(np.maximum((vector[0] - tail) * (vector[0] + tail), 1e-300)))


def product(a: Floats, b: Floats) -> Floats:
    """A o b, the product of the Jordan algebra of the cones."""
    return np.stack([(a * b).sum(axis=0), *(a[0] * b[1:] + b[0] * a[1:])])


def quotient(a: Floats, d: Floats) -> Floats:
    """The x with a o x = d."""
    first = _form(a, d) / norm(a) ** 2
    return np.stack([first, *((d[1:] - first * a[1:]) / a[0])])


def _form(a: Floats, b: Floats) -> Floats:
    """a_0 b_0 - a_1 b_1 - ..., the bilinear form of the cones."""
    value = a[0] * b[0]
    for p in range(1, len(a)):
        value -= a[p] * b[p]
    return np.asarray(value)


def longest_step(s: Floats, ds: Floats) -> float:
    """The largest step along ds that stays in the cones."""
    # |s + t ds|^2 = a t^2 + 2 b t + c has its first root at c / (sqrt(b^2 - a c) - b), a form without cancellation. For
    # s in a cone b^2 - a c >= 0; if ds is a multiple of s it is 0, and rounding may change its sign.
    a, b, c = _form(ds, ds), _form(s, ds), norm(s) ** 2
    below = np.sqrt(np.maximum(b * b - a * c, 0)) - b
    with np.errstate(divide="ignore"):
        return float(np.where(below > 0, c / below, np.inf).min())

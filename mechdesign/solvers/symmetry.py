r"""Symmetries of a grid: flips and exchanges of axes that leave a design unchanged."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from mechdesign.base.arrays import AnyArray, Indices, Matrix
from mechdesign.problem.problem import DesignProblem

SAME = 1e-7  # relative; distances, priors, norms, costs and constraints nearer than this are taken for one

Turn = Callable[[AnyArray], AnyArray]  # of an array whose axes are those of the lattice, once or several times


def axis_orders(sides: Sequence[object]) -> list[tuple[int, ...]]:
    """The exchanges of axes that leave their sides unchanged; the identity first."""
    orders = itertools.permutations(range(len(sides)))
    return [order for order in orders if [sides[axis] for axis in order] == list(sides)]


def lattice_symmetries(shape: tuple[int, ...] | None, size: int) -> list[Turn]:
    """The flips and exchanges of axes of a lattice of `size` cells, the identity first; none if cells are masked."""
    if shape is None or math.prod(shape) != size:
        return []
    signs = list(itertools.product((1, -1), repeat=len(shape)))
    return [partial(_apply, order=order, steps=steps) for order in axis_orders(shape) for steps in signs]


def _apply(values: AnyArray, *, order: tuple[int, ...], steps: tuple[int, ...]) -> AnyArray:
    """Values over groups of axes of the lattice, all groups turned alike."""
    groups = range(0, values.ndim, len(order))
    # The same axes of every group change places, then the same axes are flipped.
    exchanged = values.transpose([group + axis for group in groups for axis in order])
    return exchanged[tuple(slice(None, None, step) for _ in groups for step in steps)]


# A mixture of rays may be averaged over the group: neither its objective nor its row sums get worse. A ray v then
# represents its orbit, with A = mean over g of (g v)(g v)^T. In a basis of functions that are even or odd under every
# flip, A falls into blocks: means of (t v)(t v)^T over one t for each coset of the flips.
@dataclass(frozen=True, kw_only=True, eq=False)
class Symmetry:
    """A group of renumberings of n secrets."""

    ways: list[Indices]  # its members (n,), the identity first
    coset_representatives: list[Indices]  # one for each coset of the flips
    blocks: list[Matrix]  # bases (n, n_b), together orthonormal, one for each parity
    orbits: Indices  # (n,): the orbit of each secret

    @property
    def mean(self) -> Matrix:
        """The matrix (o, n) of means over the orbits of secrets."""
        member = (np.arange(self.orbits.max() + 1)[:, None] == self.orbits).astype(float)
        return np.asarray(member / member.sum(axis=1, keepdims=True))


def no_symmetry(size: int) -> Symmetry:
    """The group of the identity alone."""
    everywhere = np.arange(size)
    return Symmetry(ways=[everywhere], coset_representatives=[everywhere], blocks=[np.eye(size)], orbits=everywhere)


def symmetry_group(problem: DesignProblem, norm: Matrix, *, with_loss: bool = False) -> Symmetry:
    """The group of `symmetries` of distances, prior, norm and, with_loss, the loss; O(n^2) for each member."""
    domain, ways = problem.domain, symmetries(problem, invariant_matrices(problem, norm, with_loss=with_loss))
    if len(ways) == 1:
        return no_symmetry(domain.size)
    assert domain.shape is not None
    # A flip of the lattice counts only if it keeps the problem.
    members = {way.tobytes() for way in ways}
    cells, axes = np.arange(domain.size).reshape(domain.shape), tuple(range(domain.dimension))
    flips = []
    for signs in itertools.product((1, -1), repeat=domain.dimension):
        way = _apply(cells, order=axes, steps=signs).ravel()
        if way.tobytes() in members:
            flips.append((signs, way))
    # All members of a coset have the same smallest product with a flip, which names it.
    cosets: dict[bytes, Indices] = {}
    for way in ways:
        cosets.setdefault(min(way[flip].tobytes() for _, flip in flips), way)
    # The smallest image of a secret names its orbit.
    _, orbits = np.unique(np.min(ways, axis=0), return_inverse=True)
    return Symmetry(
        ways=ways,
        coset_representatives=list(cosets.values()),
        blocks=_parity_bases(flips, domain.dimension),
        orbits=orbits,
    )


def _parity_bases(flips: list[tuple[tuple[int, ...], Indices]], dimension: int) -> list[Matrix]:
    """Orthonormal bases of the functions that are even or odd under every flip, one for each parity."""
    size = len(flips[0][1])
    # One secret of each orbit of the flips: values there determine an even or odd function.
    corner = np.unique(np.min([way for _, way in flips], axis=0))
    bases, parities = [], set()
    for exponents in itertools.product((0, 1), repeat=dimension):
        parity = tuple(int(np.prod(np.array(signs) ** np.array(exponents))) for signs, _ in flips)
        # With fewer flips than axes, different exponents give the same parity.
        if parity in parities:
            continue
        parities.add(parity)
        basis = np.zeros((size, len(corner)))
        for sign, (_, way) in zip(parity, flips, strict=True):
            np.add.at(basis, (way[corner], np.arange(len(corner))), sign)
        # A secret that an odd flip maps to itself has a basis function of zeros.
        norm = np.linalg.norm(basis, axis=0)
        bases.append(basis[:, norm > 0] / norm[norm > 0])
    return bases


def invariant_matrices(problem: DesignProblem, norm: Matrix, *, with_loss: bool) -> list[Matrix]:
    """The matrices that symmetries of a mixture keep; none if with_loss and reports are not the secrets."""
    if not with_loss:
        return [problem.distances, norm]
    return [problem.distances, norm, problem.loss_matrix] if problem.reports is problem.domain else []


def symmetries(problem: DesignProblem, matrices: Sequence[Matrix]) -> list[Indices]:
    """The flips and exchanges of axes (n,) that keep the prior and matrices (n, n); the identity first."""
    domain = problem.domain
    everywhere = np.arange(domain.size)
    lattice = lattice_symmetries(domain.shape, domain.size)
    if not lattice or not matrices:
        return [everywhere]
    ways = []
    for turn in lattice:
        way = turn(everywhere.reshape(domain.shape)).ravel()
        pairs = np.ix_(way, way)
        # The prior first, which is cheaper to compare than the matrices.
        if np.allclose(problem.prior_array[way], problem.prior_array, rtol=SAME, atol=0) and all(
            np.allclose(matrix[pairs], matrix, rtol=SAME, atol=SAME * abs(matrix).max()) for matrix in matrices
        ):
            ways.append(way)
    return ways

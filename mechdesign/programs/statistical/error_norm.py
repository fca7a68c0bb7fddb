r"""What a statistical design takes for the error of an estimated distribution: a quadratic form, z^T W z.

    transport   W = L^+ of programs/statistical/dual_sobolev_norm.py, a proxy of the earth mover's distance squared
    square      W = I: the squared error, summed over the secrets
    areas       W = A A^T, A (n, k) with A(u, j) = 1 where secret u lies in area j: the squared error of the areas'
                shares, summed over the areas

z (n,) is the difference of two distributions and sums to 0, so that W may be replaced by C W C, C = I - 1 1^T / n,
whose rows sum to 0: that is the form returned. Unit: squared units of the domain for transport, 1 for the others.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.errors import InputError
from mechdesign.programs.statistical.dual_sobolev_norm import dual_sobolev_norm
from mechdesign.setting.problems.problem import DesignProblem

ErrorKind = Literal["transport", "square", "areas"]
KINDS: tuple[str, ...] = get_args(ErrorKind)
NOWHERE = -1  # label of a secret that lies in no area


def error_norm(problem: DesignProblem, kind: ErrorKind, areas: NDArray[np.int64] | None) -> NDArray[np.float64]:
    """W (n, n), symmetric and positive semidefinite, rows of sum 0; areas (n,), labels, for kind "areas".

    Raises: SizeError for transport beyond 1,600 secrets. Cost: O(n^3) for transport, O(n^2) otherwise.
    """
    n = problem.domain.size
    if kind == "transport":
        return dual_sobolev_norm(problem.domain, problem.edges)
    if areas is None:
        return np.asarray(np.eye(n) - 1 / n)
    inside = area_indicators(areas)
    inside = inside - inside.mean(axis=0)
    return np.asarray(inside @ inside.T)


def area_indicators(areas: NDArray[np.int64]) -> NDArray[np.float64]:
    """A (n, k), one column for each label, in ascending order."""
    return np.asarray((areas[:, None] == np.unique(areas[areas != NOWHERE])).astype(float))


def check_kind(kind: str, areas: ArrayLike | None, n: int) -> NDArray[np.int64] | None:
    """The labels of areas (n,), None where the kind of error has none.

    Raises: InputError for another kind, areas without a need or missing, or labels that are no whole numbers >= -1,
        not one for each secret, or all the same.
    """
    if kind not in KINDS:
        raise InputError("unknown kind of error", field="error", value=kind, remedy="use transport, square or areas")
    if (areas is None) != (kind != "areas"):
        raise InputError(
            "labels of areas go with the error of areas, and only with it",
            field="areas",
            value="none" if areas is None else "given",
            remedy='give areas together with error="areas"',
        )
    if areas is None:
        return None
    labels = np.asarray(areas)
    if labels.shape != (n,) or labels.dtype.kind not in "iu" or labels.min() < NOWHERE:
        raise InputError(
            "must be one label for each secret, whole numbers from 0, or -1 for a secret in no area",
            field="areas",
            value=f"{labels.dtype} {labels.shape}",
            remedy=f"give {n} whole numbers",
        )
    if len(np.unique(labels)) < 2:
        raise InputError(
            "one area of all secrets has a share of 1, and no area has none",
            field="areas",
            value=f"label {labels[0]} everywhere",
            remedy="give at least two labels, or -1 for places outside",
        )
    return labels.astype(np.int64)

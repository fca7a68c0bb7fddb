r"""What a release study asks: the mean of f over users, f a soft threshold, a two-way threshold or a Gaussian kernel.

| query | secrets | f, released with noise | answer to a noisy secret (input perturbation) | hard truth |
|---|---|---|---|---|
| `ThresholdQuery` | (n,) | `queries.threshold` | the same soft rule | 1{x > T} |
| `TwoWayQuery` | (n, 2) | `queries.two_way` | 1{y1 > T1 and y2 > T2} | 1{x1 > T1 and x2 > T2} |
| `KernelQuery` | (n, 2) | `queries.kde` | the same kernel | the kernel itself |

The grid of kernel centres and the bandwidths of the experiments are here too.
Source: paper 002, section 5. Its text does not say which rule is asked of noisy secrets, nor which truth errors are
relative to: a study has both truths.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.checks import finite, positive
from mechdesign.closed_forms.noise import input_perturbation
from mechdesign.closed_forms.sensitivity import query_functions as queries
from mechdesign.closed_forms.sensitivity import smooth_sensitivity
from mechdesign.errors import InputError

Array = NDArray[np.float64]
Moments = tuple[Array, Array]

_KNOTS = 16  # a bandwidth, of the spline of expected kernels
_STEPS = 60  # of the grid of kernel centres, per axis


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleaseQuery(ABC):
    """f of a secret; x is (n,) where `axes` is 1, else (n, axes); every result is (n,)."""

    axes: ClassVar[int]

    @abstractmethod
    def values(self, x: Array) -> Array:
        """f(x), between 0 and 1."""

    @abstractmethod
    def hard(self, x: Array) -> Array:
        """What f softens."""

    @abstractmethod
    def after_noise(self, y: Array) -> Array:
        """The answer that input perturbation gives for noisy secrets y, in the shape of x."""

    @abstractmethod
    def sensitivity(self, x: Array, gamma: float) -> Array:
        """The smooth sensitivity of f, 1 per unit of x; gamma > 0 per that unit."""

    @property
    @abstractmethod
    def constant(self) -> float:
        """The global Lipschitz constant of f, 1 per unit of x."""

    def moments(self, x: Array, epsilon: float) -> Moments | None:
        """E and E of the square of `after_noise`, in closed form; None where there is none."""
        return None


@dataclass(frozen=True, kw_only=True, eq=False)
class ThresholdQuery(ReleaseQuery):
    """The share of secrets above a threshold, softened over a band of full `width`, both in the unit of x."""

    axes: ClassVar[int] = 1
    threshold: float
    width: float

    def __post_init__(self) -> None:
        finite(self.threshold, "threshold")
        positive(self.width, "width")

    def values(self, x: Array) -> Array:
        return queries.threshold(x, self.threshold, self.width)

    def hard(self, x: Array) -> Array:
        return (x > self.threshold).astype(float)

    def after_noise(self, y: Array) -> Array:
        return queries.threshold(y, self.threshold, self.width)

    def sensitivity(self, x: Array, gamma: float) -> Array:
        return smooth_sensitivity.threshold(x, self.threshold, self.width, gamma)

    @property
    def constant(self) -> float:
        return 1 / self.width

    def moments(self, x: Array, epsilon: float) -> Moments:
        return input_perturbation.moments(x, self.threshold, epsilon, width=self.width)


@dataclass(frozen=True, kw_only=True, eq=False)
class TwoWayQuery(ReleaseQuery):
    """The share of secrets with both coordinates above their thresholds (2,), softened over `width`."""

    axes: ClassVar[int] = 2
    thresholds: ArrayLike
    width: float

    def __post_init__(self) -> None:
        positive(self.width, "width")
        queries.two_way(np.zeros(2), self.thresholds, self.width)

    def values(self, x: Array) -> Array:
        return queries.two_way(x, self.thresholds, self.width)

    def hard(self, x: Array) -> Array:
        return (x > np.asarray(self.thresholds)).all(axis=-1).astype(float)

    def after_noise(self, y: Array) -> Array:
        return self.hard(y)

    def sensitivity(self, x: Array, gamma: float) -> Array:
        return smooth_sensitivity.two_way(x, self.thresholds, self.width, gamma)

    @property
    def constant(self) -> float:
        return 1 / self.width


@dataclass(frozen=True, kw_only=True, eq=False)
class KernelQuery(ReleaseQuery):
    """The mean of exp(-|x - t|^2 / (2 h^2)), t = `center` (2,) and h = `bandwidth` in the unit of x."""

    axes: ClassVar[int] = 2
    center: ArrayLike
    bandwidth: float

    def __post_init__(self) -> None:
        queries.kde(np.zeros(2), self.center, self.bandwidth)

    def values(self, x: Array) -> Array:
        return queries.kde(x, self.center, self.bandwidth)

    def hard(self, x: Array) -> Array:
        return self.values(x)

    def after_noise(self, y: Array) -> Array:
        return self.values(y)

    def sensitivity(self, x: Array, gamma: float) -> Array:
        return smooth_sensitivity.kde(x, self.center, self.bandwidth, gamma)

    @property
    def constant(self) -> float:
        return math.exp(-0.5) / self.bandwidth

    def moments(self, x: Array, epsilon: float) -> Moments:
        """As of the base class, by a cubic spline over distances that all centres share: to 1e-5 of 1."""
        away = self.distance(x) / self.bandwidth
        reach = 1 << math.ceil(math.log2(max(1.0, float(away.max()))))
        scaled = epsilon * self.bandwidth
        return _expected_kernel(scaled, 1.0, reach)(away), _expected_kernel(scaled, math.sqrt(0.5), reach)(away)

    def distance(self, x: Array) -> Array:
        """|x - t|, in the unit of x."""
        return queries.scaled_radius(x, self.center, 1.0)

    def of_distance(self, distance: Array) -> Array:
        """The kernel at a distance, which noise may have made negative."""
        return np.exp(-((distance / self.bandwidth) ** 2) / 2)

    def distance_moments(self, x: Array, epsilon: float) -> Moments:
        """E and E of the square of `of_distance` after noise; the square is a kernel of bandwidth h / sqrt 2."""
        away = self.distance(x)
        mean, square = (
            input_perturbation.kernel_of_noisy_distance(away, epsilon, h)
            for h in (self.bandwidth, self.bandwidth / math.sqrt(2))
        )
        return mean, square


@lru_cache(maxsize=8)
def _expected_kernel(epsilon: float, bandwidth: float, reach: int) -> Callable[[Array], Array]:
    """`kernel_after_noise` as a spline over distances 0 to reach."""
    from scipy.interpolate import CubicSpline

    knots = np.linspace(0.0, reach, _KNOTS * reach + 1)
    return CubicSpline(knots, input_perturbation.kernel_after_noise(knots, epsilon, bandwidth))


def kernel_grid(points: ArrayLike, every: int = 1) -> tuple[Array, float]:
    """Kernel centres (k, 2) over the box of points (n, 2), and the diagonal of a cell of the finest grid.

    The finest grid has 61 x 61 centres; every second, third ... of them per axis with `every`. The box is padded on
    either side so that a cell is a whole number of units. The experiments take floor(c diagonal), c = 0.8, 1 and 1.2,
    as bandwidth. Raises: InputError for points of another shape, and for a step that does not divide 60.
    Source: paper 002, section 5.
    """
    places = finite(points, "points")
    if places.ndim != 2 or places.shape[1] != 2 or len(places) == 0:
        raise InputError(
            "must have shape (n, 2)", field="points", value=places.shape, remedy="give x and y of every user"
        )
    if isinstance(every, bool) or int(every) != every or every < 1 or _STEPS % every:
        raise InputError(f"must divide {_STEPS}", field="every", value=every, remedy="use 1, 2, 3, 4, 5 or 6")
    low, extent = places.min(axis=0), np.ptp(places, axis=0)
    wide = extent + 2 * _STEPS - extent % _STEPS
    axes = [
        start + np.linspace(0.0, width, _STEPS // int(every) + 1)
        for start, width in zip(low - (wide - extent) / 2, wide, strict=True)
    ]
    centres = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    return centres, float(np.hypot(*(wide / _STEPS)))

"""Grounds: what a picture draws values on, the cells of a grid or the nodes of a network of streets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.errors import UnsuitableError
from mechdesign.mechanism.stored import stored_domain
from mechdesign.output.pictures.captions import axis_label
from mechdesign.setting.metric.shortest_paths import Edges
from mechdesign.setting.space.domain import Domain
from mechdesign.setting.space.plane import METRES, Plane

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.image import AxesImage

_BLANK = "0.8"  # grey
_MARGIN = 0.05  # of a network, on each side


@dataclass(frozen=True, kw_only=True, eq=False)
class Lattice:
    """The grid of a Dataset, as pictures see it."""

    domain: Domain
    over: Sequence[NDArray[np.float64]] = ()
    per = "cell"

    @classmethod
    def of(cls, result: xr.Dataset, over: Sequence[NDArray[np.float64]] = ()) -> Lattice:
        """The grid of a Dataset, with lines (k, 2) in its unit that are drawn over it.

        Raises: UnsuitableError for places off a grid, and on three axes.
        """
        domain = stored_domain(result)
        if domain.kind != "grid" or domain.dimension > 2:
            raise UnsuitableError(
                "only grids of one or two axes have a map",
                field="domain",
                value=f"{domain.kind} with {domain.dimension} axes",
                remedy="export the table, and draw what you are after",
            )
        return cls(domain=domain, over=over)

    def image(self, values: NDArray[Any]) -> np.ma.MaskedArray[Any, Any]:
        """Values (n,) on the lattice, (rows along y, columns along x), masked where no secret is."""
        inside = self.domain.lookup >= 0
        whole = np.full(inside.shape, np.nan)
        whole[inside] = values
        return np.ma.masked_array(whole, mask=~inside).T

    def size(self, columns: int, rows: int, panel: float = 2.7) -> tuple[float, float]:
        """Width and height in inches of a figure of panels that are `panel` inches wide, with room for their words."""
        left, right, bottom, top = self.extent
        high = min(max(panel * (top - bottom) / (right - left), 1.0), 2 * panel)
        return columns * (panel + 1.6), 1.1 + rows * (high + 0.85)

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top of the lattice in the unit of the domain."""
        domain = self.domain
        assert domain.origin is not None and domain.cell is not None and domain.shape is not None
        (x, y), (wide, high) = domain.origin, np.multiply(domain.cell, domain.shape).tolist()
        return x, x + wide, y, y + high

    @property
    def centres(self) -> list[NDArray[np.float64]]:
        """The coordinates of the columns and of the rows of an image."""
        domain = self.domain
        assert domain.origin is not None and domain.cell is not None and domain.shape is not None
        sizes = zip(domain.origin, domain.cell, domain.shape, strict=True)
        return [np.asarray(o + h * (np.arange(k) + 0.5), np.float64) for o, h, k in sizes]

    def draw(self, axes: Axes, values: NDArray[Any], title: str, **style: Any) -> AxesImage:
        """An image of values (n,), axes in the unit of the domain."""
        given: dict[str, Any] = {
            "origin": "lower",
            "extent": self.extent,
            "interpolation": "nearest",
            "aspect": "equal",
        }
        drawn = axes.imshow(self.image(values), **given, **style)
        axes.set_facecolor(_BLANK)
        _furnish(axes, self, title)
        return drawn


@dataclass(frozen=True, kw_only=True, eq=False)
class Network:
    """The streets of a Dataset over a plane, as pictures see them."""

    domain: Domain
    streets: Edges
    over: Sequence[NDArray[np.float64]] = ()
    per = "node"

    def size(self, columns: int, rows: int, panel: float = 2.7) -> tuple[float, float]:
        """Width and height in inches of a figure of panels, a third wider than those of grids."""
        wide = 1.35 * panel
        return columns * (wide + 1.6), 1.1 + rows * (wide + 0.85)

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top of the network with a margin, in the unit of the domain."""
        low, high = self.domain.points.min(axis=0), self.domain.points.max(axis=0)
        wide, tall = np.maximum(high - low, (high - low).max() / 4) * _MARGIN
        return float(low[0] - wide), float(high[0] + wide), float(low[1] - tall), float(high[1] + tall)

    def draw(self, axes: Axes, values: NDArray[Any], title: str, **style: Any) -> PathCollection:
        """Draw `values` (n,) as dots at the nodes, over the streets."""
        points = self.domain.points
        ends = points[np.column_stack([self.streets.tail, self.streets.head])]
        lines = np.concatenate([ends, np.full((len(ends), 1, 2), np.nan)], axis=1).reshape(-1, 2)
        axes.plot(*lines.T, color=_BLANK, linewidth=1.0, zorder=1)
        rim: dict[str, Any] = {"edgecolors": "0.55", "linewidths": 0.4}
        drawn = axes.scatter(points[:, 0], points[:, 1], c=values, s=16.0, zorder=2, **rim, **style)
        axes.set_aspect("equal")
        _furnish(axes, self, title)
        return drawn


def _furnish(axes: Axes, ground: Lattice | Network, title: str) -> None:
    """Title, labels, degrees where the domain stands on Earth, the lines over it and a scale bar."""
    domain = ground.domain
    axes.set_title(title, loc="left", fontsize=9)
    axes.set_xlabel(axis_label("x", domain.unit))
    axes.set_ylabel(axis_label("y", domain.unit))
    for line in ground.over:
        for colour, width in (("white", 2.0), ("#1b4f72", 1.0)):
            axes.plot(*line.T, color=colour, linewidth=width, zorder=1.5, scalex=False, scaley=False)
    left, right, bottom, top = ground.extent
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    if domain.plane is not None:
        _in_degrees(axes, domain.plane, ground)
    if domain.unit in METRES:
        _scale_bar(axes, ground)


def _in_degrees(axes: Axes, plane: Plane, ground: Lattice | Network) -> None:
    """Ticks in degrees: longitudes along the middle of the map, latitudes up the middle."""
    left, right, bottom, top = ground.extent
    kept = plane.decimals(ground.domain.spacing)

    def east(x: float, _: object) -> str:
        return f"{plane.backward(np.array([[x, (bottom + top) / 2]]))[0][0]:.{kept}f}"

    def north(y: float, _: object) -> str:
        return f"{plane.backward(np.array([[(left + right) / 2, y]]))[1][0]:.{kept}f}"

    axes.locator_params(nbins=4)
    axes.xaxis.set_major_formatter(east)
    axes.yaxis.set_major_formatter(north)
    axes.set_xlabel("longitude (degrees)")
    axes.set_ylabel("latitude (degrees)")


def bar_length(width: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is at most a third of `width`."""
    power = 10.0 ** math.floor(math.log10(width / 3))
    return max(step * power for step in (1.0, 2.0, 5.0) if step * power <= width / 3 * (1 + 1e-12))


def _scale_bar(axes: Axes, ground: Lattice | Network) -> None:
    """A bar of a round length in the lower left corner, with its length in m, km or the unit of the domain."""
    left, right, bottom, top = ground.extent
    unit = ground.domain.unit
    length = bar_length(right - left)
    x, y = left + 0.05 * (right - left), bottom + 0.05 * (top - bottom)
    shown = f"{length / 1000:g} km" if unit == "m" and length >= 1000 else f"{length:g} {unit}"
    for colour, width in (("white", 5.0), ("black", 2.5)):
        line = axes.plot([x, x + length], [y, y], color=colour, linewidth=width, solid_capstyle="butt", zorder=4)
    line[0].set_gid("scale bar")
    box = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.75}
    axes.text(x, y + 0.025 * (top - bottom), shown, fontsize=7, va="bottom", zorder=4, bbox=box)

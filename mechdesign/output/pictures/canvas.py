"""Grounds: what a picture draws values on, the cells of a grid or the nodes of a network of streets."""

from __future__ import annotations

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
from mechdesign.setting.space.plane import Plane

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.image import AxesImage

_BLANK = "0.8"  # grey


@dataclass(frozen=True, kw_only=True, eq=False)
class Lattice:
    """The grid of a Dataset, as pictures see it."""

    domain: Domain
    per = "cell"

    @classmethod
    def of(cls, result: xr.Dataset) -> Lattice:
        domain = stored_domain(result)
        if domain.kind != "grid" or domain.dimension > 2:
            raise UnsuitableError(
                "only grids of one or two axes have a map",
                field="domain",
                value=f"{domain.kind} with {domain.dimension} axes",
                remedy="export the table, and draw what you are after",
            )
        return cls(domain=domain)

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
        return columns * (panel + 1.6), 0.9 + rows * (high + 0.85)

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
        axes.set_title(title, loc="left", fontsize=9)
        axes.set_xlabel(axis_label("x", self.domain.unit))
        axes.set_ylabel(axis_label("y", self.domain.unit))
        if self.domain.plane is not None:
            self._in_degrees(axes, self.domain.plane)
        return drawn

    def _in_degrees(self, axes: Axes, plane: Plane) -> None:
        """Ticks in degrees: longitudes along the middle of the map, latitudes up the middle."""
        left, right, bottom, top = self.extent
        kept = plane.decimals(min(self.domain.cell or (1.0,)))

        def east(x: float, _: object) -> str:
            return f"{plane.backward(np.array([[x, (bottom + top) / 2]]))[0][0]:.{kept}f}"

        def north(y: float, _: object) -> str:
            return f"{plane.backward(np.array([[(left + right) / 2, y]]))[1][0]:.{kept}f}"

        axes.locator_params(nbins=4)
        axes.xaxis.set_major_formatter(east)
        axes.yaxis.set_major_formatter(north)
        axes.set_xlabel("longitude (degrees)")
        axes.set_ylabel("latitude (degrees)")


@dataclass(frozen=True, kw_only=True, eq=False)
class Network:
    """The streets of a Dataset over a plane, as pictures see them."""

    domain: Domain
    streets: Edges
    per = "node"

    def draw(self, axes: Axes, values: NDArray[Any], title: str, **style: Any) -> PathCollection:
        """Draw `values` (n,) as dots at the nodes, over the streets."""
        points = self.domain.points
        ends = points[np.column_stack([self.streets.tail, self.streets.head])]
        lines = np.concatenate([ends, np.full((len(ends), 1, 2), np.nan)], axis=1).reshape(-1, 2)
        axes.plot(*lines.T, color=_BLANK, linewidth=1.0, zorder=1)
        drawn = axes.scatter(points[:, 0], points[:, 1], c=values, s=16.0, zorder=2, **style)
        axes.set_aspect("equal")
        axes.set_title(title, loc="left", fontsize=9)
        axes.set_xlabel(axis_label("x", self.domain.unit))
        axes.set_ylabel(axis_label("y", self.domain.unit))
        return drawn

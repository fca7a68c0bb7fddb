"""diagnosis: the picture of where K w = 1 has negative weights: the level, the excess of curvature, the weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from mechdesign.base.arguments import asked
from mechdesign.errors import UnsuitableError
from mechdesign.output.pictures.canvas import Lattice
from mechdesign.output.pictures.panels import EXCESS, Panel, bar, entitle, laid_out, setting_panels
from mechdesign.programs.eikonal.weights import CAUSES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLES: dict[str, Any] = {  # Okabe and Ito's palette, and shapes
    "boundary": {"color": "#0072B2", "marker": "x"},
    "curvature": {"color": "#000000", "marker": "."},
    "unknown": {"color": "#CC79A7", "marker": "+"},
}


@asked
def plot_diagnosis(found: xr.Dataset) -> Figure:
    """The figure of a diagnosis over a grid of two axes: eps(u) where it varies, and the excess, with the negative
    weights where known.

    Raises: UnsuitableError for a diagnosis without the curvature rule, or on another number of axes.
    """
    lattice = Lattice.of(found)
    if lattice.domain.dimension != 2 or "excess" not in found:
        raise UnsuitableError(
            "only the curvature rule in the plane has a map",
            field="domain",
            value=f"{lattice.domain.dimension} axes",
            remedy="diagnose an eikonal metric on a grid of two axes",
        )

    def right(axes: Axes) -> None:
        draw_excess(axes, found, lattice, found.attrs.get("border_rings"))
        _draw_negatives(axes, found, lattice)

    panels: list[Panel] = setting_panels(found, lattice)
    if not panels or (found["excess"].values > 0).any() or ("cause" in found and found["cause"].values.any()):
        panels.append(right)
    figure = laid_out(lattice, panels, panel=4.0)
    entitle(figure, found, "", found.attrs["diagnosis"].replace(", worst", ",\nworst"))
    return figure


def draw_excess(axes: Axes, result: xr.Dataset, lattice: Lattice, outer: int | None) -> None:
    """Where the excess is positive, and the end of the `outer` rings within a nat of the border."""
    excess, ring, unit = result["excess"].values, result["ring"].values, lattice.domain.unit
    title = f"curvature excess > 0 in {int((excess > 0).sum())} of {len(excess)} cells"
    if outer is not None and 0 < outer <= ring.max():
        inner = lattice.image(ring).filled(-1) >= outer
        axes.contour(*lattice.centres, inner, levels=[0.5], colors="0.35", linestyles="--", linewidths=1)
        title += f"\ndashed: {outer} {'ring' if outer == 1 else 'rings'} within a nat of the border"
    shown = np.maximum(excess, 0.0)
    drawn = lattice.draw(axes, shown, title, cmap=EXCESS, vmin=0.0, vmax=shown.max() or 1.0)
    if shown.max() > 0:
        bar(axes, drawn, "Laplacian(log eps) - eps²" + ("" if unit == "1" else f" (per {unit}²)"))


def _draw_negatives(axes: Axes, found: xr.Dataset, lattice: Lattice) -> None:
    """The negative weights of a diagnosis that has them, by cause."""
    if "cause" not in found:
        return
    drawn = []
    for code, name in enumerate(CAUSES, 1):
        at = lattice.domain.points[found["cause"].values == code]
        if len(at):
            label = f"{len(at)} negative: {name}"
            drawn += axes.plot(*at.T, linestyle="", markersize=3.5, label=label, **_STYLES[name])
    if drawn:
        axes.figure.legend(handles=drawn, fontsize=9, frameon=False, loc="outside lower right", ncols=len(CAUSES))

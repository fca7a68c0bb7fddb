"""The picture of a release study: the mean squared error of every method over growing datasets, a panel a setting."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from mechdesign.errors import InputError
from mechdesign.output.pictures.palette import COLOURS, MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LEAST = 0.25  # of the mean: intervals reach below 0 where repetitions are few
WORDS = {
    "smooth": "smooth sensitivity, paper's constants",
    "smooth_tight": "smooth sensitivity, joint constants",
    "lipschitz": "global Lipschitz constant",
    "input_perturbation": "input perturbation",
    "noisy_distance": "noise on the distance",
    "ldp": "local privacy at the span",
}


def plot_releases(panels: Mapping[str, xr.Dataset], *, columns: int = 3, truth: str = "soft") -> Figure:
    """The figure of settings by title, 3.6 x 3.1 inches each, both axes logarithmic, one scale a row.

    panels: what `experiments.release_study.release_bands` returns: a line for the simulated mean, bars for its 95 %
    confidence interval, cut where it is below a quarter of the mean, a dotted line for the error in closed form.
    Raises: InputError without panels, or for columns not positive.
    """
    from matplotlib.figure import Figure

    if not panels or columns < 1:
        raise InputError("is empty", field="panels", value=len(panels), remedy="give a study by title, columns >= 1")
    rows = math.ceil(len(panels) / columns)
    wide = min(columns, len(panels))
    figure = Figure(figsize=(3.6 * wide, 3.1 * rows + 0.7), layout="constrained")
    places = figure.subplots(rows, wide, sharey="row", squeeze=False).ravel()
    for axes, (title, bands) in zip(places, panels.items(), strict=False):
        _draw(axes, bands.sel(truth_kind=truth))
        axes.set_title(title, loc="left", fontsize=9)
    for axes in places[len(panels) :]:
        axes.set_visible(False)
    for row in range(rows):
        places[row * wide].set_ylabel(f"mean squared error\nto the {truth} truth")
    handles, labels = places[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(3, len(labels)), fontsize=8, frameon=False)
    return figure


def _draw(axes: Axes, bands: xr.Dataset) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    size = bands["size"].values
    for name in bands["mechanism"].values.tolist():
        own, colour = bands.sel(mechanism=name), COLOURS[name]
        mean = own["mean"].values
        axes.errorbar(
            size,
            mean,
            [mean - own["mean_low"].values.clip(_LEAST * mean), own["mean_high"].values - mean],
            color=colour,
            marker=MARKERS[name],
            markersize=4,
            linewidth=1.4,
            elinewidth=0.8,
            label=WORDS[name],
        )
        if np.isfinite(own["expected"].values).all():
            axes.plot(size, own["expected"].values, color=colour, linestyle=":", linewidth=1.2)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(size)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(labelsize=7)
    axes.set_xlabel("users", fontsize=8)
    axes.grid(visible=True, color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)

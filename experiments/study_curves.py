"""The picture of a utility study: the mean loss over growing datasets, with bands, in one panel a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import xarray as xr

from mechdesign.errors import InputError
from mechdesign.output.pictures.palette import COLOURS, MARKERS, mechanism_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_bands(panels: Mapping[str, xr.Dataset]) -> Figure:
    """The figure of panels by title, 4.2 x 4.4 inches each, each with its own scale from 0.

    panels: what `utility.study.bands` returns, with one estimator selected: a line for every mechanism's mean, a band
    from the 5 % to the 95 % quantile of single repetitions, bars for the confidence interval of the mean.
    Raises: InputError without panels.
    """
    from matplotlib.figure import Figure

    if not panels:
        raise InputError("is empty", field="panels", value=0, remedy="give a study by title")
    figure = Figure(figsize=(4.2 * len(panels), 4.4), layout="constrained")
    columns = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (title, study) in zip(columns, panels.items(), strict=True):
        _draw(axes, study)
        axes.set_title(title, loc="left", fontsize=9)
        axes.set_ylim(bottom=0)
    first = next(iter(panels.values()))
    columns[0].set_ylabel(f"Kantorovich distance to the dataset ({first.attrs['unit']})")
    return figure


def _draw(axes: Axes, study: xr.Dataset) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    size = study["size"].values
    for name in study["mechanism"].values.tolist():
        own = study.sel(mechanism=name)
        mean = own["mean"].values
        error = [mean - own["mean_low"].values, own["mean_high"].values - mean]
        colour = COLOURS.get(name, "0.4")
        axes.fill_between(size, own["low"].values, own["high"].values, color=colour, alpha=0.18, linewidth=0)
        axes.errorbar(
            size,
            mean,
            error,
            color=colour,
            marker=MARKERS.get(name, "o"),
            markersize=4,
            linewidth=1.4,
            elinewidth=1,
            label=mechanism_words(name),
        )
    axes.set_xscale("log")
    axes.set_xticks(size[:: max(1, len(size) // 5)])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("check-ins in the dataset")
    axes.grid(visible=True, color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, edgecolor="none", framealpha=0.85)

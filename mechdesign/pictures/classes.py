"""The picture of a mechanism over classes: P(y|u) in colours, a row for each class, a column for each report.

A cell has its probability in percent while there is room for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from mechdesign.errors import UnsuitableError
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.mechanism.sampler import rows_of
from mechdesign.pictures.canvas import ROWS, new_figure
from mechdesign.pictures.panels import drawn_secrets

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_CLASSES = 100  # rows or columns: beyond, a row is thinner than a line of text
_MOST_NUMBERED = 15  # rows or columns with percentages in their cells
_MOST_NAMED = 40  # rows or columns with names
_LONGEST = 24  # characters of a name at an axis
_DARK = 0.55  # of the colour scale: from here on numbers are white


def draws_classes(mechanism: xr.Dataset, stored: MechanismFile) -> bool:
    """True for a table over classes or nodes without a network on a plane."""
    return "mass" in mechanism and stored.domain.kind == "nodes" and not stored.metric.network


def classes_figure(mechanism: xr.Dataset, stored: MechanismFile, secrets: Sequence[int] | None) -> Figure:
    """The figure of the module docstring, without its heading."""
    size = stored.domain.size
    chosen = list(range(size)) if secrets is None else drawn_secrets(secrets, size)
    table = rows_of(mechanism).probabilities(np.array(chosen))
    rows, columns = table.shape
    if max(rows, columns) > MOST_CLASSES:
        message, remedy = "has too many classes for a picture", f"name at most {MOST_CLASSES}"
        raise UnsuitableError(message, field="secrets", value=max(rows, columns), remedy=remedy)
    reports = stored.domain if stored.same_places else stored.report_domain
    names = [_cut(stored.domain.name_of(u)) for u in chosen], [_cut(reports.name_of(y)) for y in range(columns)]
    wide = min(max(0.62 * columns, 4.0), 11.0) + 3.0
    figure = new_figure(figsize=(wide, min(max(0.42 * rows, 2.6), 9.0) + 2.2), layout="constrained")
    axes = figure.subplots()
    drawn = axes.imshow(table, cmap=ROWS, vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest")
    for axis, labels in ((axes.yaxis, names[0]), (axes.xaxis, names[1])):
        step = 1 + (len(labels) - 1) // _MOST_NAMED
        axis.set_ticks(range(0, len(labels), step), labels[::step])
    tilted = max(map(len, names[1])) * columns > 80
    axes.tick_params(axis="x", labelrotation=45 if tilted else 0)
    axes.set_xlabel("reported class")
    axes.set_ylabel("true class")
    axes.set_title("probability of each report, by true class", loc="left", fontsize=9)
    figure.colorbar(drawn, ax=axes, label="probability P(y|u)")
    if max(rows, columns) <= _MOST_NUMBERED:
        for (u, y), share in np.ndenumerate(table):
            colour = "white" if share > _DARK else "black"
            axes.text(y, u, _percent(share), ha="center", va="center", color=colour, fontsize=8)
    return figure


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share >= 1e-3 else f"{100 * share:.2g} %"


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"

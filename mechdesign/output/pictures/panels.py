"""panels: what several pictures are built from: where panels stand, colour bars, marks, levels and priors, titles."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.units import unit_word
from mechdesign.errors import InputError
from mechdesign.output.pictures.canvas import Lattice, Network
from mechdesign.output.pictures.captions import metric_sentence, metric_told, problem_sentence
from mechdesign.setting.space.domain import Domain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

Ground = Lattice | Network
Panel = Callable[["Axes"], None]
FLOOR = 1e-5  # of the largest probability shown: what is smaller has the lightest colour
MOST_ROWS = 9
LEVELS, ROWS, EXCESS = (
    "cividis",
    "magma_r",
    "YlOrBr",
)  # brightness is monotone: read with any colour vision, and in grey
LINES = (("#0072B2", "-"), ("#D55E00", "--"), ("#009E73", "-."), ("#CC79A7", ":"))
_FEW = 3.3  # inches of a map where there are one or two in a row
_SAME = 1e-9  # relative range of values below which a panel of them would say nothing


def varies(values: NDArray[np.float64]) -> bool:
    """Whether values (n,) differ enough for a panel of them."""
    low, high = float(np.min(values)), float(np.max(values))
    return high - low > _SAME * max(abs(low), abs(high))


def laid_out(ground: Ground, panels: Sequence[Panel], panel: float = 2.7) -> Figure:
    """The figure of panels in reading order, two in a row where there are two or four, else up to three; maps of grids
    are `panel` inches wide.
    """
    from matplotlib.figure import Figure

    columns = min(len(panels), 2 if len(panels) == 4 else 3)
    rows = math.ceil(len(panels) / columns)
    figure = Figure(figsize=ground.size(columns, rows, max(panel, _FEW if columns < 3 else 0)), layout="constrained")
    places = figure.add_gridspec(rows, columns)
    for k, draw in enumerate(panels):
        draw(figure.add_subplot(places[k // columns, k % columns]))
    return figure


def entitle(figure: Figure, result: xr.Dataset, claim: str, *last: str) -> None:
    """The heading: the problem, with a prior that is uniform and has no panel, the claim, the metric, what is given."""
    uniform = ", uniform prior" if "prior" in result and not varies(result["prior"].values) else ""
    first = problem_sentence(result, result.sizes["secret"]) + uniform
    lines = [*filter(None, (first, claim, metric_sentence(result), *last))]
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=10)


def levels_of(result: xr.Dataset, domain: Domain) -> tuple[NDArray[np.float64], str]:
    """eps(u) (n,), times the scale of the metric, and its label."""
    times = float(json.loads(metric_told(result))["multiplier"])
    return times * result["level"].values, f"eps (nats per {unit_word(domain.unit)})"


def setting_panels(result: xr.Dataset, ground: Ground) -> list[Panel]:
    """Panels of the level and of the prior, each where it varies."""
    panels: list[Panel] = []
    if "level" in result and varies(result["level"].values):
        level, label = levels_of(result, ground.domain)

        def draw_level(axes: Axes) -> None:
            bar(axes, ground.draw(axes, level, "privacy level: larger is less private", cmap=LEVELS), label)

        panels.append(draw_level)
    if "prior" in result and varies(result["prior"].values):

        def draw_prior(axes: Axes) -> None:
            drawn = ground.draw(axes, result["prior"].values, "prior", cmap=LEVELS, vmin=0.0)
            bar(axes, drawn, f"probability per {ground.per}")

        panels.append(draw_prior)
    return panels


def bar(axes: Axes, drawn: AxesImage | PathCollection, label: str, **style: Any) -> None:
    """A colour bar as high as the map that it stands beside."""
    axes.figure.colorbar(drawn, cax=axes.inset_axes((1.04, 0.0, 0.05, 1.0)), label=label, **style)


def mark(axes: Axes, points: NDArray[np.float64]) -> None:
    """White circles around points (k, 2), rimmed so that they show on any ground."""
    for colour, width in (("black", 2.6), ("white", 1.4)):
        circles: dict[str, Any] = {"marker": "o", "markersize": 9, "markerfacecolor": "none", "zorder": 3}
        axes.plot(*points.T, linestyle="", color=colour, markeredgewidth=width, **circles)


def checked_secrets(secrets: Sequence[int], size: int) -> list[int]:
    """Place numbers whose rows are drawn. Raises: InputError for none, more than 9, and what is no place number."""
    listed = secrets if isinstance(secrets, Sequence) and not isinstance(secrets, str) else np.ravel(secrets).tolist()
    if not 1 <= len(listed) <= MOST_ROWS:
        raise InputError(
            f"one to {MOST_ROWS} rows are drawn", field="secret", value=len(listed), remedy="name fewer secrets"
        )
    for u in listed:
        if isinstance(u, (str, bool, float)) or not 0 <= u < size:
            raise InputError("no such secret", field="secret", value=u, remedy=f"use whole numbers 0..{size - 1}")
    return [int(u) for u in listed]


def tidy(axes: Axes) -> None:
    """A grid behind the curves, and no frame above and to the right."""
    axes.grid(visible=True, which="major", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)

"""Panels that several pictures share, and `plot_diagnosis`: where K w = 1 has negative weights."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.streams import visible
from mechdesign.base.units import unit_word
from mechdesign.base.validation import validate_call
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.evaluation.loss import loss_matrix
from mechdesign.mechanism.mechanism_file import stored_domain
from mechdesign.mechanism.rows import check_secrets
from mechdesign.output.captions import claimed_metric, loss_words, metric_sentence, problem_sentence
from mechdesign.pictures.canvas import (
    BLACK,
    BLUE,
    EXCESS,
    LEVELS,
    LINES,
    PINK,
    Ground,
    furnish,
    ground_of,
    new_figure,
)
from mechdesign.problem.domain import Domain
from mechdesign.problem.losses import LOSSES
from mechdesign.solvers.eikonal.negative_weights import CAUSES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
Panel = Callable[..., None]  # of axes
FLOOR = 1e-5  # of the largest probability shown: smaller ones get the lightest colour
MOST_ROWS = 9
_FEW = 3.3  # inches of a map where there are one or two in a row
_PER_INCH = 13  # characters of a heading, at most
_SAME = 1e-9  # relative range of values below which a panel of them would say nothing
_STYLES: dict[str, Any] = {
    "boundary": {"color": BLUE, "marker": "x"},
    "curvature": {"color": BLACK, "marker": "."},
    "unknown": {"color": PINK, "marker": "+"},
}


def draw_map(
    axes: Axes,
    *,
    ground: Ground,
    values: NDArray[Any],
    title: str,
    label: str = "",
    marks: Array | None = None,
    bar: Mapping[str, Any] | None = None,
    **style: Any,
) -> None:
    """Draw values (n,) on a ground, with a colour bar if labelled, and circles around points `marks` (k, 2)."""
    drawn = ground.draw(axes, values, **{"cmap": LEVELS, **style})
    furnish(axes, ground, title)
    if marks is not None:
        circles: dict[str, Any] = {"marker": "o", "markersize": 9, "markerfacecolor": "none", "zorder": 3}
        # White within black: visible on every colour of a map.
        for colour, width in (("black", 2.6), ("white", 1.4)):
            axes.plot(*marks.T, linestyle="", color=colour, markeredgewidth=width, **circles)
    if label:
        axes.figure.colorbar(drawn, cax=axes.inset_axes((1.04, 0.0, 0.05, 1.0)), label=label, **(bar or {}))


def setting_maps(result: xr.Dataset, ground: Ground) -> list[Panel]:
    """Maps of the level and of the prior, each where it varies."""
    maps: list[Panel] = []
    if "level" in result and varies(result["level"].values):
        level, label = levels_of(result, ground.domain)
        title = "privacy level: larger is less private"
        maps.append(partial(draw_map, ground=ground, values=level, title=title, label=label))
    if "prior" in result and varies(result["prior"].values[ground.inside]):
        prior, label = result["prior"].values, f"probability per {ground.per}"
        maps.append(partial(draw_map, ground=ground, values=prior, title="prior", label=label, vmin=0.0))
    return maps


def loss_map(mechanism: xr.Dataset, ground: Ground, table: Array) -> Panel:
    """The map of sum_y P(y|u) l(u, y), of a table (n, m)."""
    name, unit = mechanism.attrs["loss"], ground.domain.unit
    tabled = visible(mechanism["loss_table"].attrs["units"]) if "loss_table" in mechanism else "1"
    noun, unit = loss_words(name, LOSSES[name].unit(unit) if name in LOSSES else tabled)
    losses = np.einsum("uy,uy->u", table, loss_matrix(mechanism))
    label, title = noun + (f" ({unit})" if unit else ""), f"expected {noun} by {ground.per}"
    return partial(draw_map, ground=ground, values=losses, title=title, label=label, vmin=0.0)


def draw_rows(axes: Axes, at: Array, rows: Iterable[Array], names: Iterable[str], places: Iterable[int] = ()) -> None:
    """Rows of probabilities as lines over `at`, logarithmic down to `FLOOR`; a circle at each of the places."""
    lines = list(zip(rows, names, strict=True))
    # Colour and dashes change together: lines differ in grey too.
    for k, (row, name) in enumerate(lines):
        colour, dashes = LINES[k % len(LINES)]
        axes.plot(at, row, color=colour, linestyle=dashes, marker=".", linewidth=1.2, label=name)
        for u in list(places)[k : k + 1]:
            axes.plot(at[u], row[u], color=colour, marker="o", markersize=9, markerfacecolor="none", linestyle="")
    axes.set_yscale("log")
    tidy(axes)
    axes.figure.legend(fontsize=9, frameon=False, loc="outside lower center")


def laid_out(ground: Ground, panels: Sequence[Panel], panel: float = 2.7) -> Figure:
    """Draw panels in reading order, up to three in a row, on maps of grids `panel` inches wide."""
    columns = min(len(panels), 2 if len(panels) == 4 else 3)
    rows = math.ceil(len(panels) / columns)
    wide, high = ground.size(max(panel, _FEW if columns < 3 else 0))
    figure = new_figure(figsize=(columns * (wide + 1.6), 1.1 + rows * (high + 0.85)), layout="constrained")
    for k, draw in enumerate(panels, 1):
        draw(figure.add_subplot(rows, columns, k))
    return figure


def entitle(figure: Figure, result: xr.Dataset, claim: str, *last: str) -> None:
    """Add the heading: the problem, a uniform prior, which has no panel, the claim, the metric, and `last`."""
    first = problem_sentence(result, result.sizes["secret"]) + _uniform_words(result)
    sentences = "\n".join(filter(None, (first, claim, metric_sentence(result), *last))).split("\n")
    # Matplotlib does not wrap a heading, and would cut it at the edge.
    lines = [line for sentence in sentences for line in textwrap.wrap(sentence, int(_PER_INCH * figure.get_figwidth()))]
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=10)


def _uniform_words(result: xr.Dataset) -> str:
    """The words for a prior that is uniform, or uniform where it is positive; "" for others."""
    if "prior" not in result:
        return ""
    prior = result["prior"].values
    likely = prior[prior > 0]
    if varies(likely):
        return ""
    return ", uniform prior" if len(likely) == len(prior) else f", prior uniform on {len(likely):,} of them"


def varies(values: Array) -> bool:
    """True if values (n,) differ enough for a panel of their own."""
    low, high = float(np.min(values)), float(np.max(values))
    return high - low > _SAME * max(abs(low), abs(high))


def levels_of(result: xr.Dataset, domain: Domain) -> tuple[Array, str]:
    """eps(u) (n,), times the scale of the metric, and its label."""
    times = float(json.loads(claimed_metric(result))["multiplier"])
    return times * result["level"].values, f"eps (nats per {unit_word(domain.unit)})"


def drawn_secrets(secrets: Sequence[int], size: int) -> list[int]:
    """The checked numbers of the secrets whose rows are drawn."""
    numbers: list[int] = check_secrets(secrets, size).tolist()
    if len(numbers) > MOST_ROWS:
        raise InputError(f"at most {MOST_ROWS} rows are drawn", field="secret", value=len(numbers))
    return numbers


def tidy(axes: Axes) -> None:
    """Draw a grid behind the curves, and no frame above and to the right."""
    axes.grid(visible=True, which="major", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


@validate_call
def plot_diagnosis(diagnosis: xr.Dataset) -> Figure:
    """Draw a diagnosis over two axes: eps(u) where it varies, the excess of curvature, and negative weights.

    Parameters
    ----------
    diagnosis : xarray.Dataset
        A result of `md.diagnosis` with the curvature rule.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> len(md.plot.diagnosis(md.diagnosis(md.load_problem("philadelphia", cells=6))).axes) > 0
    True
    """
    ground = ground_of(stored_domain(diagnosis))
    if ground.domain.dimension != 2 or "excess" not in diagnosis:
        raise UnsuitableError("only the curvature rule on a grid of two axes has a map", field="domain")
    causes = diagnosis["cause"].values if "cause" in diagnosis else np.zeros(ground.domain.size)

    def right(axes: Axes) -> None:
        draw_excess(axes, diagnosis, ground, diagnosis.attrs.get("border_rings"))
        _draw_negatives(axes, ground.domain.points, causes)

    panels = setting_maps(diagnosis, ground)
    if not panels or (diagnosis["excess"].values > 0).any() or causes.any():
        panels.append(right)
    figure = laid_out(ground, panels, panel=4.0)
    entitle(figure, diagnosis, "", diagnosis.attrs["diagnosis"].replace(", worst", ",\nworst"))
    return figure


def draw_excess(axes: Axes, result: xr.Dataset, ground: Ground, outer: int | None) -> None:
    """Draw the positive excess, and the end of the `outer` rings within a nat of the border."""
    excess, ring, unit = result["excess"].values, result["ring"].values, ground.domain.unit
    title = f"curvature excess > 0 in {int((excess > 0).sum())} of {len(excess)} cells"
    if outer is not None and 0 < outer <= ring.max():
        inner = ground.image(ring).filled(-1) >= outer
        style: dict[str, Any] = {"levels": [0.5], "colors": "0.35", "linestyles": "--", "linewidths": 1}
        axes.contour(inner, origin="lower", extent=ground.extent, **style)
        title += f"\ndashed: {outer} {'ring' if outer == 1 else 'rings'} within a nat of the border"
    shown, most = np.maximum(excess, 0.0), max(excess.max(), 0.0) or 1.0
    label = "Laplacian(log eps) - eps²" + ("" if unit == "1" else f" (per {unit}²)")
    label *= bool(shown.any())
    draw_map(axes, ground=ground, values=shown, title=title, label=label, cmap=EXCESS, vmin=0.0, vmax=most)


def _draw_negatives(axes: Axes, points: Array, causes: NDArray[Any]) -> None:
    """Draw negative weights by cause (n,): 0 if a weight is not negative, else its number in CAUSES, from 1."""
    drawn = []
    for code, name in enumerate(CAUSES, 1):
        at = points[causes == code]
        if len(at):
            label = f"{len(at)} negative: {name}"
            drawn += axes.plot(*at.T, linestyle="", markersize=3.5, label=label, **_STYLES[name])
    if drawn:
        axes.figure.legend(handles=drawn, fontsize=9, frameon=False, loc="outside lower right", ncols=len(CAUSES))

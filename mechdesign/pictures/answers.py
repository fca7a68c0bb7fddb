"""Pictures of mechanisms whose reports are not places of their domain: answers of queries, released numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.formatting import percent
from mechdesign.base.optional import import_optional
from mechdesign.base.streams import visible
from mechdesign.evaluation.loss import loss_matrix
from mechdesign.mechanism.sampler import rows_of
from mechdesign.pictures.canvas import (
    BLUE,
    OKABE_ITO,
    ROWS,
    SKY,
    Ground,
    axis_label,
    ground_of,
    new_figure,
    place_words,
)
from mechdesign.pictures.panels import (
    FLOOR,
    Array,
    Panel,
    draw_map,
    draw_rows,
    drawn_secrets,
    laid_out,
    loss_map,
    tidy,
)
from mechdesign.problem.domain import Domain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PLAIN = 1e4  # from here on integers with commas instead of powers of ten
_MAPPED = 4  # answers that have a map
SHARE = 0.95  # of the reports that a radius holds


def probability(share: float) -> str:
    """A probability in percent, three digits, rounded down: none but a certain one is 100 %."""
    return percent(share, up=False, digits=3)


# Two axes: maps of the likeliest answer, of the expected loss, and of P(y|u) for the most reported answers; or bars,
# for secrets that are named. One axis: P(y|u) as an image with the cheapest answer as a line, and a few rows below.
def draws_answers(mechanism: xr.Dataset, domain: Domain) -> bool:
    """True for a table over one or two axes whose reports are not its places."""
    lattice = domain.kind == "grid" and domain.dimension <= 2 and "around_row" not in mechanism
    return lattice and "mass" in mechanism and not np.array_equal(rows_of(mechanism).report_points, domain.points)


def answers_figure(
    mechanism: xr.Dataset, domain: Domain, secrets: Sequence[int] | None, over: Sequence[NDArray[np.float64]]
) -> Figure:
    """The figure of the module docstring, without its heading."""
    rows = rows_of(mechanism)
    table = rows.probabilities(np.arange(rows.secrets))
    chosen = None if secrets is None else drawn_secrets(secrets, domain.size)
    if domain.dimension == 1:
        return _release_figure(mechanism, domain, table, chosen)
    ground = ground_of(domain, over=over)
    return laid_out(ground, _maps(mechanism, ground, table, chosen))


def _maps(mechanism: xr.Dataset, ground: Ground, table: Array, chosen: list[int] | None) -> list[Panel]:
    colours = import_optional("matplotlib.colors", "plot")
    count, points = table.shape[1], rows_of(mechanism).report_points
    style: dict[str, Any] = {}
    # One colour an answer while the palette suffices; its bounds lie half-way between the numbers of answers.
    if count <= len(OKABE_ITO):
        style = {
            "cmap": colours.ListedColormap(OKABE_ITO[:count]),
            "norm": colours.BoundaryNorm(np.arange(-0.5, count), count),
        }
    likeliest = partial(
        draw_map,
        ground=ground,
        values=table.argmax(axis=1),
        title="likeliest answer",
        label="answer",
        bar={"ticks": range(count)} if style else {},
        **style,
    )
    panels: list[Panel] = [likeliest, loss_map(mechanism, ground, table)]
    if chosen is not None:
        return [*panels, *(partial(_draw_bars, domain=ground.domain, row=table[u], u=u) for u in chosen)]
    reported = mechanism["prior"].values @ table
    for y in np.argsort(-reported, kind="stable")[:_MAPPED].tolist():
        title = f"probability of answer {y} by place,\n{probability(float(reported[y]))} of all answers"
        marks = points[[y]] if points.shape[1] == 2 else None
        answered = partial(draw_map, ground=ground, values=table[:, y], title=title, label="probability")
        panels.append(partial(answered, marks=marks, vmin=0.0, vmax=1.0))
    return panels


def _draw_bars(axes: Axes, *, domain: Domain, row: Array, u: int) -> None:
    axes.bar(np.arange(len(row)), row, color=BLUE)
    axes.set_title(f"answers of somebody at {place_words(domain, u)}", loc="left", fontsize=9)
    axes.set_xlabel("answer")
    axes.set_ylabel("probability")
    axes.set_ylim(0.0, 1.0)
    tidy(axes)


def _release_figure(mechanism: xr.Dataset, domain: Domain, table: Array, chosen: list[int] | None) -> Figure:
    from matplotlib.colors import LogNorm

    figure = new_figure(figsize=(8.0, 7.6), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=[3, 2])
    at, points, losses = domain.points[:, 0], rows_of(mechanism).report_points, loss_matrix(mechanism)
    ordered = points.shape[1] == 1 and bool((np.diff(points[:, 0]) > 0).all())
    # Released numbers that increase are drawn at their values, other answers at their numbers.
    value = points[:, 0] if ordered else np.arange(table.shape[1], dtype=float)
    unit = visible(mechanism["report_x"].attrs.get("units", "1")) if ordered else "1"
    label = "released number" if unit == "1" else f"released number ({unit})"
    top = float(table.max())
    norm = LogNorm(vmin=FLOOR * top, vmax=top)
    drawn = above.pcolormesh(at, value, table.T, cmap=ROWS, norm=norm, shading="nearest", rasterized=True)
    figure.colorbar(drawn, ax=above, label="probability", extend="min")
    cheapest = value[np.argmin(losses, axis=1)]
    above.step(at, cheapest, where="mid", color=SKY, linewidth=1.6, label="answer with the least loss")
    above.set_xlabel(axis_label("true number", domain.unit))
    if at.max() >= _PLAIN:
        above.xaxis.set_major_formatter("{x:,.0f}")
    above.set_ylabel(label)
    # By default two quartiles, and the secret whose answers cost most.
    costliest = int(np.argmax((table * losses).sum(axis=1)))
    usual = {domain.size // 4: "", costliest: ", where the loss is largest", 3 * domain.size // 4: ""}
    words = usual if chosen is None else dict.fromkeys(chosen, "")
    names = [f"released at {place_words(domain, u)}{word}" for u, word in words.items()]
    draw_rows(below, value, table[list(words)], names)
    below.set_ylim(FLOOR * top, 2 * top)
    below.set_xlabel(label)
    below.set_ylabel("probability")
    return figure

"""answers: pictures of mechanisms whose reports are no places of their domain: answers of queries, released numbers.

Over a grid of two axes: which answer is likeliest at every place, the expected loss, and P(y|u) of the answers that are
reported most, each as a map over the secrets u; with secrets named, their rows as bars instead. Over one axis, such as
incomes: P(y|u) as an image, secrets to the right and answers upwards, with the cheapest answer as a line, and a few
rows below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.mechanism.sampling.sampler import rows_of
from mechdesign.output.pictures.canvas import Lattice
from mechdesign.output.pictures.captions import axis_label, judged, plain
from mechdesign.output.pictures.panels import (
    FLOOR,
    LEVELS,
    LINES,
    ROWS,
    Panel,
    bar,
    checked_secrets,
    entitle,
    laid_out,
    mark,
    tidy,
)
from mechdesign.output.pictures.reports import percent
from mechdesign.setting.space.domain import Domain
from mechdesign.utility.loss.loss import loss_matrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PLAIN = 1e4  # from here on whole numbers with commas instead of powers of ten
_MAPPED = 4  # answers that have a map
_PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")  # Okabe and Ito


def draws_answers(mechanism: xr.Dataset, domain: Domain) -> bool:
    """Whether it is a table over a grid of one or two axes whose reports are other things than its places; between
    positions reports are places of an area within its rectangle.
    """
    lattice = domain.kind == "grid" and domain.dimension <= 2 and "around_row" not in mechanism
    return lattice and "mass" in mechanism and not np.array_equal(rows_of(mechanism).report_points, domain.points)


def answers_figure(
    mechanism: xr.Dataset, secrets: Sequence[int] | None, claim: str, over: Sequence[NDArray[np.float64]]
) -> Figure:
    """The figure of the module docstring. Raises: InputError for secrets that are not there."""
    lattice = Lattice.of(mechanism, over)
    rows = rows_of(mechanism)
    table = rows.probabilities(np.arange(rows.secrets))
    losses = np.einsum("uy,uy->u", table, loss_matrix(mechanism))
    asked = None if secrets is None else checked_secrets(secrets, lattice.domain.size)
    if lattice.domain.dimension == 1:
        figure = _released(mechanism, lattice.domain, table, losses, asked)
    else:
        figure = laid_out(lattice, _maps(mechanism, lattice, table, losses, asked))
    entitle(figure, mechanism, claim, f"{rows.reports} possible answers")
    return figure


def _maps(
    mechanism: xr.Dataset,
    lattice: Lattice,
    table: NDArray[np.float64],
    losses: NDArray[np.float64],
    asked: list[int] | None,
) -> list[Panel]:
    what, unit = judged(mechanism)
    reported = mechanism["prior"].values @ table
    points = rows_of(mechanism).report_points

    def likeliest(axes: Axes) -> None:
        from matplotlib.colors import BoundaryNorm, ListedColormap

        count = table.shape[1]
        few = count <= len(_PALETTE)
        norm = BoundaryNorm(np.arange(-0.5, count), count) if few else None
        colours = ListedColormap(_PALETTE[:count]) if few else LEVELS
        drawn = lattice.draw(axes, table.argmax(axis=1), "likeliest answer", cmap=colours, norm=norm)
        bar(axes, drawn, "answer", **({"ticks": range(count)} if few else {}))

    def expected(axes: Axes) -> None:
        drawn = lattice.draw(axes, losses, f"expected {what} by {lattice.per}", cmap=LEVELS, vmin=0.0)
        bar(axes, drawn, what + (f" ({unit})" if unit else ""))

    def answered(axes: Axes, y: int) -> None:
        title = f"P(answer {y} | u) at every place u,\n{percent(float(reported[y]))} of all answers"
        drawn = lattice.draw(axes, table[:, y], title, cmap=LEVELS, vmin=0.0, vmax=1.0)
        if points.shape[1] == 2:
            mark(axes, points[[y]])
        bar(axes, drawn, "probability")

    def row(axes: Axes, u: int) -> None:
        axes.bar(np.arange(table.shape[1]), table[u], color=_PALETTE[0])
        x, y = lattice.domain.points[u]
        axes.set_title(f"P(y|u) at u = secret {u}\nat {x:.4g}, {y:.4g}", loc="left", fontsize=9)
        axes.set_xlabel("answer y")
        axes.set_ylabel("probability")
        axes.set_ylim(0.0, 1.0)
        tidy(axes)

    if asked is not None:
        return [likeliest, expected, *(partial(row, u=u) for u in asked)]
    most = np.argsort(-reported, kind="stable")[:_MAPPED]
    return [likeliest, expected, *(partial(answered, y=int(y)) for y in most)]


def _released(
    mechanism: xr.Dataset,
    domain: Domain,
    table: NDArray[np.float64],
    losses: NDArray[np.float64],
    asked: list[int] | None,
) -> Figure:
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 7.6), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=[3, 2])
    at, points = domain.points[:, 0], rows_of(mechanism).report_points
    ordered = points.shape[1] == 1 and bool((np.diff(points[:, 0]) > 0).all())
    value = points[:, 0] if ordered else np.arange(table.shape[1], dtype=float)
    unit = plain(mechanism["report_x"].attrs.get("units", "1")) if ordered else "1"
    label = "report y" if unit == "1" else f"report y ({unit})"
    top = float(table.max())
    norm = LogNorm(vmin=FLOOR * top, vmax=top)
    drawn = above.pcolormesh(at, value, table.T, cmap=ROWS, norm=norm, shading="nearest", rasterized=True)
    figure.colorbar(drawn, ax=above, label="P(y|u)", extend="min")
    cheapest = value[np.argmin(loss_matrix(mechanism), axis=1)]
    above.step(at, cheapest, where="mid", color="#56B4E9", linewidth=1.6, label="answer with the least loss")
    above.set_xlabel(axis_label("secret u", domain.unit))
    if at.max() >= _PLAIN:
        above.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    above.set_ylabel(label)
    n = domain.size
    usual = {n // 4: "", int(np.argmax(losses)): ", where the loss is largest", 3 * n // 4: ""}
    for k, u in enumerate(dict.fromkeys(usual if asked is None else asked)):
        colour, dashes = LINES[k % len(LINES)]
        word = usual.get(u, "") if asked is None else ""
        name = f"P(y|u) at u = secret {u}, {at[u]:.6g} {'' if domain.unit == '1' else domain.unit}".rstrip() + word
        below.plot(value, table[u], color=colour, linestyle=dashes, marker=".", linewidth=1.2, label=name)
    below.set_yscale("log")
    below.set_ylim(FLOOR * top, 2 * top)
    below.set_xlabel(label)
    below.set_ylabel("probability")
    tidy(below)
    figure.legend(fontsize=9, frameon=False, loc="outside lower center")
    return figure

"""maps: pictures of mechanisms over grids and along streets, through matplotlib's objects: no global state, no display.

A mechanism over a grid of two axes, whose reports are secrets: the privacy level eps(u), times the scale of the
metric, and the prior, each where it varies; the expected loss of every cell or, where the file has them, excess and
rings of its diagnosis; and P(.|u) at a few secrets, all on one logarithmic colour scale that ends at 10^-5 of the
largest probability shown. Over one axis the maps are lines. Masked cells are grey. A mechanism along streets is drawn
on its network, values as dots at the nodes. Headings say how likely the true place is reported, and the radius that
holds 95 % of the reports. Other reports, answers of queries and released numbers, are in answers.py.
Source: paper 000, Figures 2 and 3 (density; rows at points of high, medium and low density).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.arguments import asked
from mechdesign.errors import UnsuitableError
from mechdesign.mechanism.sampling.sampler import drawn_rows, rows_of
from mechdesign.mechanism.stored import read
from mechdesign.output.pictures.answers import answers_figure, draws_answers
from mechdesign.output.pictures.canvas import Lattice, Network
from mechdesign.output.pictures.captions import axis_label, claim_sentence, judged
from mechdesign.output.pictures.diagnosis import draw_excess
from mechdesign.output.pictures.overlay import lines_over
from mechdesign.output.pictures.panels import (
    FLOOR,
    LEVELS,
    LINES,
    ROWS,
    Ground,
    Panel,
    bar,
    checked_secrets,
    entitle,
    laid_out,
    levels_of,
    mark,
    setting_panels,
    tidy,
    varies,
)
from mechdesign.output.pictures.reports import over_places, row_words, table_sentence
from mechdesign.programs.eikonal.weights import rings
from mechdesign.setting.space.domain import Domain
from mechdesign.utility.loss.loss import loss_matrix
from mechdesign.verification.verify import certified

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@asked
def plot_mechanism(
    mechanism: xr.Dataset, secrets: Sequence[int] | None = None, *, over: str | Path | None = None
) -> Figure:
    """The figure of a mechanism, a table or a factored one, over a grid of one or two axes or along streets, or of one
    that answers queries or releases numbers; see the module docstring.

    Parameters: secrets, up to 9 place numbers whose rows are drawn; by default three: of the highest, the median and
    the lowest prior among the cells that are at least a third as deep in the domain as the deepest, or among all nodes;
    under a uniform prior the place nearest to the middle, the one farthest from it and one half-way in rank. over, a
    GeoJSON file in degrees whose lines and borders are drawn on the maps of a domain that stands on Earth.
    Raises: UnsuitableError for other domains; InputError for secrets that are not there, and for `over` where the
    domain has no plane; FileFormatError for a file that holds no lines; VerificationError for a mechanism that `verify`
    does not certify.
    Cost: that of `verify`, and the rows that are drawn.
    """
    checked = certified(mechanism)
    stored = read(mechanism)
    above = lines_over(over, stored.domain)
    claim = claim_sentence(mechanism, checked)
    if draws_answers(mechanism, stored.domain):
        return answers_figure(mechanism, secrets, claim, above)
    ground: Ground
    if stored.metric.network:
        if stored.domain.dimension != 2:
            raise UnsuitableError(
                "only networks in a plane have a map",
                field="domain",
                value=f"{stored.domain.dimension} axes",
                remedy="give nodes with x and y",
            )
        ground = Network(domain=stored.domain, streets=stored.edges, over=above)
    else:
        ground = Lattice.of(mechanism, above)
    asked, words = _asked(mechanism, ground, secrets)
    rows = _rows(mechanism, asked)
    named = [_row_title(mechanism, ground, u, word, row) for u, word, row in zip(asked, words, rows, strict=True)]
    if ground.domain.dimension == 1:
        figure = _line_figure(mechanism, ground.domain, asked, rows, named)
    else:
        figure = laid_out(ground, _panels(mechanism, ground, asked, rows, named))
    entitle(figure, mechanism, claim, table_sentence(mechanism, ground.domain))
    return figure


def _panels(
    mechanism: xr.Dataset, ground: Ground, asked: list[int], rows: NDArray[np.float64], named: list[str]
) -> list[Panel]:
    """The level, the prior, the losses or the diagnosis, and the rows."""
    from matplotlib.colors import LogNorm

    points, top = ground.domain.points, float(rows.max())
    scale = LogNorm(vmin=FLOOR * top, vmax=top)
    panels = setting_panels(mechanism, ground)
    diagnosed = isinstance(ground, Lattice) and "ring" in mechanism and "excess" in mechanism
    if not diagnosed and "mass" in mechanism:
        panels.append(partial(draw_losses, mechanism, ground))

    def marked(panel: Panel, axes: Axes) -> None:
        panel(axes)
        mark(axes, points[asked])

    def row_panel(axes: Axes, u: int, row: NDArray[np.float64], title: str) -> None:
        drawn = ground.draw(axes, row, title, cmap=ROWS, norm=scale)
        mark(axes, points[[u]])
        bar(axes, drawn, f"probability per {ground.per}", extend="min")

    panels = [partial(marked, panel) for panel in panels]
    if diagnosed and isinstance(ground, Lattice) and (mechanism["excess"].values > 0).any():
        step = json.loads(mechanism.attrs["parameters"]).get("shortest_border_step")
        outer = math.ceil(1 / step) if step else None
        panels.append(partial(draw_excess, result=mechanism, lattice=ground, outer=outer))
    each = zip(asked, rows, named, strict=True)
    return panels + [partial(row_panel, u=u, row=row, title=title) for u, row, title in each]


def draw_losses(mechanism: xr.Dataset, ground: Ground, axes: Axes) -> None:
    """sum_y P(y|u) l(u, y) of every secret u."""
    losses = np.einsum("uy,uy->u", drawn_rows(mechanism), loss_matrix(mechanism))
    what, unit = judged(mechanism)
    drawn = ground.draw(axes, losses, f"expected {what} by {ground.per}", cmap=LEVELS, vmin=0.0)
    bar(axes, drawn, what + (f" ({unit})" if unit else ""))


def _asked(mechanism: xr.Dataset, ground: Ground, secrets: Sequence[int] | None) -> tuple[list[int], list[str]]:
    """The secrets whose rows are drawn, and what each is: of a high prior, or in the middle."""
    domain, prior = ground.domain, np.asarray(mechanism["prior"].values, float)
    if secrets is not None:
        asked = checked_secrets(secrets, domain.size)
        return asked, [""] * len(asked)
    if varies(prior):
        deep = np.arange(domain.size)
        if isinstance(ground, Lattice):
            ring = rings(domain)
            deep = np.flatnonzero(ring >= ring.max() / 3)
        ranked, words = deep[np.argsort(prior[deep], kind="stable")][::-1], ("high", "median", "low")
    else:
        away = ((domain.points - domain.points.mean(axis=0)) ** 2).sum(axis=1)
        ranked, words = np.argsort(away, kind="stable"), ("in the middle", "half-way out", "farthest out")
    usual = {int(ranked[k]): word for k, word in zip((0, (len(ranked) - 1) // 2, -1), words, strict=True)}
    told = [f"{word} prior {prior[u]:.2g}" if varies(prior) else word for u, word in usual.items()]
    return list(usual), told


def _rows(mechanism: xr.Dataset, asked: list[int]) -> NDArray[np.float64]:
    """P(y|u) (b, n) of the secrets asked for, 0 where no report stands."""
    if read(mechanism).report_cells is None:
        raise UnsuitableError(
            "only reports that are secrets, or answers, have a map",
            field="reports",
            value=f"{rows_of(mechanism).reports} other places",
            remedy="export the table, and draw what you are after",
        )
    return over_places(mechanism, drawn_rows(mechanism, asked))


def _row_title(mechanism: xr.Dataset, ground: Ground, u: int, word: str, row: NDArray[np.float64]) -> str:
    named = word or f"prior {float(mechanism['prior'].values[u]):.2g}"
    return f"P(y|u) at u = secret {u}, {named}\n{row_words(ground.domain, u, row)}"


def _line_figure(
    mechanism: xr.Dataset, domain: Domain, asked: list[int], rows: NDArray[np.float64], named: list[str]
) -> Figure:
    """Over one axis: the level, or else the prior, where it varies, above the rows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 6.4), layout="constrained")
    at, prior = domain.points[:, 0], np.asarray(mechanism["prior"].values, float)
    levelled = "level" in mechanism and varies(mechanism["level"].values)
    if levelled or varies(prior):
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1, 2])
        shown, label = levels_of(mechanism, domain) if levelled else (prior, "prior")
        above.plot(at, shown, color="0.2", marker=".", linewidth=1)
        above.set_ylabel(label)
        above.set_ylim(0.0, 1.1 * float(shown.max()))
        tidy(above)
    else:
        below = figure.subplots()
    for k, (u, row, title) in enumerate(zip(asked, rows, named, strict=True)):
        colour, dashes = LINES[k % len(LINES)]
        label = title.replace("\n", "; ")
        below.plot(at, row, color=colour, linestyle=dashes, marker=".", linewidth=1.2, label=label)
        below.plot(at[u], row[u], color=colour, marker="o", markersize=9, markerfacecolor="none", linestyle="")
    below.set_yscale("log")
    below.set_ylim(max(FLOOR * rows.max(), float(rows.min()) / 2), 2 * rows.max())
    below.set_ylabel("probability per cell")
    below.set_xlabel(axis_label("x", domain.unit))
    tidy(below)
    figure.legend(fontsize=9, frameon=False, loc="outside lower center")
    return figure

"""maps: pictures of mechanisms and of diagnoses over grids, through matplotlib's objects: no global state, no display.

A mechanism over a grid of two axes. Above: the privacy level eps(u), times the scale of the metric; the prior; and
the expected loss of every cell or, where the file has them, excess and rings of its diagnosis. Below: P(.|u) at a few
secrets, all on one logarithmic colour scale that ends at 10^-5 of the largest probability shown. Over one axis the maps
are lines. Masked cells are grey. A mechanism along streets is drawn on its network: the prior and the rows as dots at
the nodes.
Source: paper 000, Figures 2 and 3 (density; rows at points of high, medium and low density).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.units import unit_word
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.mechanism.sampling.sampler import rows_of
from mechdesign.mechanism.stored import read
from mechdesign.mechanism.table.certificate import ROW_SUM
from mechdesign.output.pictures.canvas import Lattice, Network
from mechdesign.output.pictures.captions import axis_label, loss_words, metric_sentence, plain, problem_sentence
from mechdesign.programs.eikonal.weights import CAUSES, rings
from mechdesign.setting.objective.losses import LOSSES
from mechdesign.setting.space.domain import Domain
from mechdesign.utility.loss.loss import loss_matrix
from mechdesign.verification.verify import Verification, certified

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

FLOOR = 1e-5  # of the largest probability shown: what is smaller has the darkest colour
MOST_ROWS = 9
_COLUMNS = 3
_LEVELS, _ROWS, _EXCESS = "cividis", "magma", "YlOrBr"  # brightness ascends: read with any colour vision, and in grey
_STYLES: dict[str, Any] = {  # Okabe and Ito's palette, and shapes
    "boundary": {"color": "#0072B2", "marker": "x"},
    "curvature": {"color": "#000000", "marker": "."},
    "unknown": {"color": "#CC79A7", "marker": "+"},
}
_LINES = (("#0072B2", "-"), ("#D55E00", "--"), ("#009E73", "-."), ("#CC79A7", ":"))


def plot_mechanism(mechanism: xr.Dataset, secrets: Sequence[int] | None = None) -> Figure:
    """The figure of a mechanism, a table or a factored one, over a grid of one or two axes or along streets; see the
    module docstring.

    Parameters: secrets, up to 9 place numbers whose rows are drawn; by default three, of the highest, the median and
    the lowest prior among the cells that are at least a third as deep in the domain as the deepest, or among all nodes.
    Raises: UnsuitableError for other domains, and reports that are not the secrets; InputError for secrets that are not
    there; VerificationError for a mechanism that `verify` does not certify.
    Cost: that of `verify`, and the rows that are drawn.
    """
    from matplotlib.figure import Figure

    checked = certified(mechanism)
    if read(mechanism).metric.network:
        return _network_figure(mechanism, secrets, checked)

    lattice = Lattice.of(mechanism)
    asked = _usual_secrets(lattice.domain, mechanism["prior"].values) if secrets is None else _checked(secrets, lattice)
    rows = _rows(mechanism, lattice, asked)
    named = [_row_title(mechanism, u, word) for u, word in zip(asked, _words(secrets, asked), strict=True)]
    if lattice.domain.dimension == 1:
        figure = Figure(figsize=(8.0, 6.4), layout="constrained")
        _draw_lines(figure, mechanism, lattice, asked, rows, named)
    else:
        deep = 1 + math.ceil(len(asked) / _COLUMNS)
        figure = Figure(figsize=lattice.size(_COLUMNS, deep), layout="constrained")
        places = figure.add_gridspec(deep, _COLUMNS)
        above = [figure.add_subplot(places[0, k]) for k in range(2 if "level" in mechanism else 1)]
        _draw_prior(above[-1], mechanism, lattice)
        if "level" in mechanism:
            _draw_level(above[0], mechanism, lattice)
        diagnosed = "excess" in mechanism and "ring" in mechanism
        if not diagnosed and "mass" in mechanism:
            above.append(figure.add_subplot(places[0, len(above)]))
            _draw_losses(above[-1], mechanism, lattice)
        for axes in above:
            _mark(axes, lattice, asked)
        if diagnosed:
            step = json.loads(mechanism.attrs["parameters"]).get("shortest_border_step")
            outer = math.ceil(1 / step) if step else None
            _draw_diagnosis(figure.add_subplot(places[0, 2]), mechanism, lattice, outer)
        below = [figure.add_subplot(places[1 + k // _COLUMNS, k % _COLUMNS]) for k in range(len(asked))]
        _draw_rows(below, lattice, asked, rows, named)
    _entitle(figure, mechanism, _claim(mechanism, checked))
    return figure


def plot_diagnosis(found: xr.Dataset) -> Figure:
    """The figure of a diagnosis over a grid of two axes: eps(u) and the excess, with the negative weights where known.

    Raises: UnsuitableError for a diagnosis without the curvature rule, or on another number of axes.
    """
    from matplotlib.figure import Figure

    lattice = Lattice.of(found)
    if lattice.domain.dimension != 2 or "excess" not in found:
        raise UnsuitableError(
            "only the curvature rule in the plane has a map",
            field="domain",
            value=f"{lattice.domain.dimension} axes",
            remedy="diagnose an eikonal metric on a grid of two axes",
        )
    figure = Figure(figsize=lattice.size(2, 1, panel=4.0), layout="constrained")
    level, excess = figure.subplots(1, 2)
    _draw_level(level, found, lattice)
    _draw_diagnosis(excess, found, lattice, found.attrs.get("border_rings"))
    _draw_negatives(excess, found, lattice)
    _entitle(figure, found, found.attrs["diagnosis"].replace(", worst", ",\nworst"))
    return figure


def _network_figure(mechanism: xr.Dataset, secrets: Sequence[int] | None, checked: Verification) -> Figure:
    """The prior and the rows of a few secrets, two panels side by side."""
    from matplotlib.figure import Figure

    stored = read(mechanism)
    domain = stored.domain
    if domain.dimension != 2:
        raise UnsuitableError(
            "only networks in a plane have a map",
            field="domain",
            value=f"{domain.dimension} axes",
            remedy="give nodes with x and y",
        )
    network = Network(domain=domain, streets=stored.edges)
    ranked = np.argsort(mechanism["prior"].values, kind="stable")
    usual = [int(ranked[k]) for k in (-1, len(ranked) // 2, 0)]
    asked = list(dict.fromkeys(usual)) if secrets is None else _checked(secrets, network)
    rows = _rows(mechanism, network, asked)
    deep = math.ceil((1 + len(asked)) / 2)
    figure = Figure(figsize=(11.0, 0.9 + 4.3 * deep), layout="constrained")
    places = figure.add_gridspec(deep, 2)
    panels = [figure.add_subplot(places[k // 2, k % 2]) for k in range(1 + len(asked))]
    _draw_prior(panels[0], mechanism, network)
    _mark(panels[0], network, asked)
    named = [_row_title(mechanism, u, "") for u in asked]
    _draw_rows(panels[1:], network, asked, rows, named)
    _entitle(figure, mechanism, _claim(mechanism, checked))
    return figure


def _rows(mechanism: xr.Dataset, lattice: Lattice | Network, asked: list[int]) -> NDArray[np.float64]:
    """P(y|u) (b, n) of the secrets asked for."""
    rows = rows_of(mechanism)
    if not np.array_equal(rows.report_points, lattice.domain.points):
        raise UnsuitableError(
            "only reports that are the secrets have a map",
            field="reports",
            value=f"{rows.reports} other places",
            remedy="export the table, and draw what you are after",
        )
    return rows.probabilities(asked)


def _usual_secrets(domain: Domain, prior: NDArray[np.float64]) -> list[int]:
    """Secrets of the highest, the median and the lowest prior, away from the border; ties in the order of the cells."""
    ring = rings(domain)
    deep = np.flatnonzero(ring >= ring.max() / 3)
    ranked = deep[np.argsort(prior[deep], kind="stable")]
    return [int(ranked[k]) for k in (-1, len(ranked) // 2, 0)]


def _checked(secrets: Sequence[int], lattice: Lattice | Network) -> list[int]:
    size = lattice.domain.size
    if not 1 <= len(secrets) <= MOST_ROWS:
        raise InputError(
            f"one to {MOST_ROWS} rows are drawn", field="secret", value=len(secrets), remedy="name fewer secrets"
        )
    for u in secrets:
        if not 0 <= u < size:
            raise InputError("no such secret", field="secret", value=u, remedy=f"use whole numbers 0..{size - 1}")
    return [int(u) for u in secrets]


def _words(given: Sequence[int] | None, asked: list[int]) -> list[str]:
    return ["high ", "median ", "low "] if given is None else [""] * len(asked)


def _row_title(mechanism: xr.Dataset, u: int, word: str) -> str:
    return f"P(y|u) at u = secret {u},\n{word}prior {float(mechanism['prior'].values[u]):.2g}"


def _levels(result: xr.Dataset, domain: Domain) -> tuple[NDArray[np.float64], str]:
    """eps(u) (n,), times the scale of the metric, and its label."""
    times = float(json.loads(result.attrs["metric"])["multiplier"])
    return times * result["level"].values, f"eps (nats per {unit_word(domain.unit)})"


def _draw_level(axes: Axes, result: xr.Dataset, lattice: Lattice) -> None:
    level, label = _levels(result, lattice.domain)
    _bar(axes, lattice.draw(axes, level, "privacy level: larger is less private", cmap=_LEVELS), label)


def _draw_prior(axes: Axes, mechanism: xr.Dataset, lattice: Lattice | Network) -> None:
    drawn = lattice.draw(axes, mechanism["prior"].values, "prior", cmap=_LEVELS, vmin=0.0)
    _bar(axes, drawn, f"probability per {lattice.per}")


def _draw_losses(axes: Axes, mechanism: xr.Dataset, lattice: Lattice) -> None:
    """sum_y P(y|u) l(u, y) of every secret u."""
    losses = np.einsum("uy,uy->u", mechanism["mass"].values / float(ROW_SUM), loss_matrix(mechanism))
    what, unit = _judged(mechanism)
    drawn = lattice.draw(axes, losses, f"expected {what} by cell", cmap=_LEVELS, vmin=0.0)
    _bar(axes, drawn, what + (f" ({unit})" if unit else ""))


def _draw_diagnosis(axes: Axes, result: xr.Dataset, lattice: Lattice, outer: int | None) -> None:
    """Where the excess is positive, and the end of the `outer` rings within a nat of the border."""
    excess, ring, unit = result["excess"].values, result["ring"].values, lattice.domain.unit
    title = f"curvature excess > 0 in {int((excess > 0).sum())} of {len(excess)} cells"
    if outer is not None and 0 < outer <= ring.max():
        inner = lattice.image(ring).filled(-1) >= outer
        axes.contour(*lattice.centres, inner, levels=[0.5], colors="0.35", linestyles="--", linewidths=1)
        title += f"\ndashed: {outer} {'ring' if outer == 1 else 'rings'} within a nat of the border"
    shown = np.maximum(excess, 0.0)
    drawn = lattice.draw(axes, shown, title, cmap=_EXCESS, vmin=0.0, vmax=shown.max() or 1.0)
    _bar(axes, drawn, "Laplacian(log eps) - eps²" + ("" if unit == "1" else f" (per {unit}²)"))


def _draw_negatives(axes: Axes, found: xr.Dataset, lattice: Lattice) -> None:
    """The negative weights of a diagnosis that has them, by cause."""
    if "cause" not in found:
        return
    for code, name in enumerate(CAUSES, 1):
        at = lattice.domain.points[found["cause"].values == code]
        if len(at):
            axes.plot(*at.T, linestyle="", markersize=3.5, label=f"{len(at)} negative: {name}", **_STYLES[name])
    if axes.lines:
        axes.figure.legend(fontsize=9, frameon=False, loc="outside lower right", ncols=len(CAUSES))


def _bar(axes: Axes, drawn: AxesImage | PathCollection, label: str, **style: Any) -> None:
    """A colour bar as high as the map that it stands beside."""
    axes.figure.colorbar(drawn, cax=axes.inset_axes((1.04, 0.0, 0.05, 1.0)), label=label, **style)


def _draw_rows(
    panels: list[Axes], lattice: Lattice | Network, asked: list[int], rows: NDArray[np.float64], named: list[str]
) -> None:
    from matplotlib.colors import LogNorm

    top = float(rows.max())
    scale = LogNorm(vmin=FLOOR * top, vmax=top)
    for axes, u, row, title in zip(panels, asked, rows, named, strict=True):
        drawn = lattice.draw(axes, row, title, cmap=_ROWS, norm=scale)
        _mark(axes, lattice, [u])
        _bar(axes, drawn, f"probability per {lattice.per}", extend="min")


def _mark(axes: Axes, lattice: Lattice | Network, asked: list[int]) -> None:
    """White circles around the secrets, rimmed so that they show on any ground."""
    at = lattice.domain.points[asked].T
    for colour, width in (("black", 2.6), ("white", 1.4)):
        axes.plot(
            *at, linestyle="", marker="o", markersize=9, markerfacecolor="none", color=colour, markeredgewidth=width
        )


def _draw_lines(
    figure: Figure,
    mechanism: xr.Dataset,
    lattice: Lattice,
    asked: list[int],
    rows: NDArray[np.float64],
    named: list[str],
) -> None:
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1, 2])
    at = lattice.domain.points[:, 0]
    levelled = "level" in mechanism
    shown, label = _levels(mechanism, lattice.domain) if levelled else (mechanism["prior"].values, "prior")
    above.plot(at, shown, color="0.2", marker=".", linewidth=1)
    above.set_ylabel(label)
    above.set_ylim(0.0, 1.1 * float(shown.max()))
    for k, (u, row, title) in enumerate(zip(asked, rows, named, strict=True)):
        colour, dashes = _LINES[k % len(_LINES)]
        below.plot(at, row, color=colour, linestyle=dashes, marker=".", linewidth=1.2, label=title.replace("\n", " "))
        below.plot(at[u], row[u], color=colour, marker="o", markersize=9, markerfacecolor="none", linestyle="")
    below.set_yscale("log")
    below.set_ylim(FLOOR * rows.max(), 2 * rows.max())
    below.set_ylabel("probability per cell")
    below.set_xlabel(axis_label("x", lattice.domain.unit))
    figure.legend(fontsize=9, frameon=False, loc="outside lower center")
    for axes in (above, below):
        axes.grid(visible=True, color="0.9", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)


def _judged(mechanism: xr.Dataset) -> tuple[str, str]:
    """What the loss of a mechanism is the mean of, and its unit."""
    judged, unit = mechanism.attrs["loss"], json.loads(mechanism.attrs["domain"])["unit"]
    return loss_words(judged, LOSSES[judged].unit(unit) if judged in LOSSES else _table_unit(mechanism))


def _claim(mechanism: xr.Dataset, checked: Verification) -> str:
    what, shown = _judged(mechanism)
    program = plain(mechanism.attrs["program"])
    said = f"{program} mechanism, mean {what} {checked.expected_loss:.5g} {shown}".rstrip()
    return f"{said}; claims P(y|u) ≤ exp(d(u, u')) P(y|u')"


def _table_unit(mechanism: xr.Dataset) -> str:
    return plain(mechanism["loss_table"].attrs["units"]) if "loss_table" in mechanism else "1"


def _entitle(figure: Figure, result: xr.Dataset, last: str) -> None:
    lines = problem_sentence(result, result.sizes["secret"]), metric_sentence(result), last
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=10)

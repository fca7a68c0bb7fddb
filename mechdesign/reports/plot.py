"""plot: the picture of a sweep, through matplotlib's objects: no global state, no display.

Above, the loss against the privacy level: the certified interval [lower_bound, loss] of the optimum, and every rival at
the level it truly has, hollow where that breaks the claim it was made for. Below, how far the certified mechanisms are
from the lower bound, in per cent.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from mechdesign.errors import InputError
from mechdesign.mechanism.storage import check_target, write_atomically
from mechdesign.mechanism.table import RESOLUTION
from mechdesign.reports.compare import AT_CLAIM
from mechdesign.reports.sweep import RIVALS
from mechdesign.setting.units import unit_word

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = (".png", ".pdf", ".svg")
_COLOURS = {  # Okabe and Ito's palette, told apart by readers with any colour vision
    "optimal": "#000000",
    "eikonal": "#D55E00",
    "exponential": "#009E73",
    "geometric_clamped": "#0072B2",
    "geometric_normalised": "#CC79A7",
    "planar_laplace": "#56B4E9",
    "randomized_response": "#E69F00",
}
_MARKERS = {
    "eikonal": "s", "exponential": "^", "geometric_clamped": "D", "geometric_normalised": "v", "planar_laplace": "P",
    "randomized_response": "X",
}  # fmt: skip
_JUDGED = {"squared": "squared distance", "distance": "distance", "zero-one": "share of wrong reports", "table": "loss"}
_LOG_RANGE = 10.0  # losses that range further than this are shown on a logarithmic axis


def check_plot_target(path: str | Path, *, overwrite: bool = False) -> Path:
    """The path to draw to, if matplotlib is there, the suffix is .png, .pdf or .svg and `check_target` allows it.

    Raises: InputError, before any work is done.
    """
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise InputError(
            "needs matplotlib", field="plot", value=path, remedy="install the extra: pip install 'mechdesign[plot]'"
        ) from error
    target = check_target(path, overwrite=overwrite)
    if target.suffix.lower() not in KINDS:
        raise InputError(
            "unknown kind of picture",
            field="plot",
            value=target.name,
            remedy="use a name ending in " + ", ".join(KINDS),
        )
    return target


def save_plot(curve: xr.Dataset, path: str | Path, *, overwrite: bool = False) -> Path:
    """Draw a sweep to a file, atomically. Raises: as `check_plot_target`; FileFormatError if the disk refuses."""
    target = check_plot_target(path, overwrite=overwrite)
    figure = plot_sweep(curve)
    write_atomically(target, lambda temporary: figure.savefig(temporary, format=target.suffix[1:].lower(), dpi=160))
    return target


def plot_sweep(curve: xr.Dataset) -> Figure:
    """The figure of a sweep, 7 x 6.4 inches: losses above, distance from the lower bound below."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 6.4), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    _draw_losses(above, curve)
    _draw_excess(below, curve)
    above.set_title(_title(curve), loc="left", fontsize=10)
    _draw_level_axis(below, curve)
    for axes in (above, below):
        axes.grid(visible=True, which="major", color="0.9", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_losses(axes: Axes, curve: xr.Dataset) -> None:
    at, loss, bound = (curve[name].values for name in ("multiplier", "loss", "lower_bound"))
    axes.axhline(curve.attrs["constant_loss"], color="0.5", linestyle=":", label="best constant report")
    broken = False
    for name in reversed(RIVALS):
        if f"{name}_loss" not in curve:
            continue
        rival, level = curve[f"{name}_loss"].values, curve[f"{name}_effective_epsilon"].values
        breaks = level > at * AT_CLAIM
        broken |= bool(breaks.any())
        style: dict[str, Any] = {"color": _COLOURS[name], "marker": _MARKERS[name], "markersize": 5}
        axes.plot(level, rival, **style, linewidth=1, label=_word(name))
        axes.plot(level[breaks], rival[breaks], **style, linestyle="", markerfacecolor="white")
    label = f"optimal, certified within {_percent(float(np.max(curve['gap'].values)))}"
    axes.fill_between(at, np.maximum(bound, 0), loss, color=_COLOURS["optimal"], alpha=0.25, linewidth=0)
    axes.plot(at, loss, color=_COLOURS["optimal"], marker="o", markersize=4, linewidth=1.8, label=label)
    values = np.concatenate([curve[name].values for name in curve if str(name).endswith("loss")])
    shown = values[values > RESOLUTION * curve.attrs["constant_loss"]]
    if len(shown) and shown.max() > _LOG_RANGE * shown.min():
        axes.set_yscale("log")
        axes.set_ylim(shown.min() / 2, shown.max() * 2)
    if broken:
        axes.plot([], [], color="0.3", marker="o", linestyle="", markerfacecolor="white", label="breaks its claim")
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], fontsize=8, edgecolor="none", framealpha=0.85)
    axes.set_ylabel(_loss_label(curve))


def _draw_excess(axes: Axes, curve: xr.Dataset) -> None:
    from matplotlib.ticker import FuncFormatter

    at, bound = curve["multiplier"].values, curve["lower_bound"].values
    for name, marker in (("eikonal", "s"), ("optimal", "o")):
        variable = "loss" if name == "optimal" else f"{name}_loss"
        if variable in curve:
            with np.errstate(divide="ignore", invalid="ignore"):
                excess = np.where(bound > 0, 100 * (curve[variable].values / bound - 1), np.nan)
            axes.plot(at, excess, color=_COLOURS[name], marker=marker, markersize=4, linewidth=1, label=name)
    axes.set_yscale("symlog", linthresh=0.1, linscale=0.5)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylim(-0.02, max(2.0, 2 * axes.dataLim.ymax if math.isfinite(axes.dataLim.ymax) else 0.0))
    axes.set_ylabel("above the\nlower bound (%)")
    axes.legend(fontsize=8, frameon=False)


def _draw_level_axis(axes: Axes, curve: xr.Dataset) -> None:
    """Levels on a logarithmic axis, down to a third of the smallest multiplier: near 0 lie constant reports."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(LogLocator(base=2))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    levels = np.concatenate([curve[name].values for name in curve if str(name).endswith("effective_epsilon")])
    least, most = float(curve["multiplier"].values.min()), float(np.nanmax(levels))
    low = max(least / 3, float(np.nanmin(levels)))
    axes.set_xlim(low / 1.15, max(most, float(curve["multiplier"].values.max())) * 1.15)
    axes.set_xlabel("privacy level, as a multiple of the problem's metric (smaller is more private)")


def _title(curve: xr.Dataset) -> str:
    shape, secrets = json.loads(curve.attrs["domain"]).get("shape"), int(curve.attrs["secrets"])
    where = f"{secrets} places" if shape is None else " x ".join(map(str, shape)) + " cells"
    masked = "" if shape is None or math.prod(shape) == secrets else f", {secrets} of them secrets"
    return f"{curve.attrs['problem']}: {where}{masked}\n{_metric(curve)}"


def _metric(curve: xr.Dataset) -> str:
    metric, domain = json.loads(curve.attrs["metric"]), json.loads(curve.attrs["domain"])
    times = float(metric["multiplier"])
    per = f"nats per {unit_word(domain['unit'])}"
    if metric["kind"] == "eikonal":
        level = np.array(metric["level"]["eps"]) * times
        low, high = f"{level.min():.3g}", f"{level.max():.3g}"
        eps = low if low == high else f"{low} to {high}"
        neighbours = 2 if len(domain["shape"]) == 1 else metric["stencil"]
        return f"eikonal metric, {neighbours} neighbours, eps = {eps} {per}"
    if metric["kind"] == "euclidean":
        return f"Euclidean metric, eps = {metric['epsilon'] * times:.3g} {per}"
    if metric["kind"] == "discrete":
        return f"discrete metric, eps = {metric['epsilon'] * times:.3g} nats"
    return "graph metric"


def _loss_label(curve: xr.Dataset) -> str:
    judged, unit = curve.attrs["loss"], curve["loss"].attrs["units"]
    lengths = {"squared": "squared units", "distance": "units"}
    shown = lengths.get(judged, "") if unit == "1" else unit.replace("^2", "²")
    return f"mean {_JUDGED[judged]}" + (f" ({shown})" if shown else "")


def _word(name: str) -> str:
    return name.replace("_", " ").replace("laplace", "Laplace")


def _percent(share: float) -> str:
    """One digit, rounded up."""
    if not 0 < share < math.inf:
        return f"{100 * share:g} %"
    digit = 10.0 ** math.floor(math.log10(100 * share))
    return f"{math.ceil(100 * share / digit) * digit:.12g} %"

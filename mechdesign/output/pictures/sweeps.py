"""sweeps: the picture of a sweep.

Above, the loss against the privacy level: the certified interval [lower_bound, loss] of the optimum, and every baseline
at the level it truly has, hollow where that breaks the claim it was made for; a baseline that goes on at levels left of
the axis has an arrow there, with the least level that it has. Below, how far the certified mechanisms are from the
lower bound, in per cent. Levels are scales of the metric; where the metric is stated with one level, or has a smallest
one, that stands above, in nats per unit.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.arguments import asked
from mechdesign.base.units import unit_word
from mechdesign.errors import InputError
from mechdesign.mechanism.table.dataset import RESOLUTION
from mechdesign.output.pictures.captions import loss_words, metric_sentence, problem_sentence
from mechdesign.output.pictures.palette import COLOURS, mechanism_style, mechanism_words
from mechdesign.output.pictures.panels import tidy
from mechdesign.output.tables.compare import AT_CLAIM
from mechdesign.output.tables.sweep import SWEEP, baselines_of, sweep_rows
from mechdesign.setting.metric.metrics import metric_from_description

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LOG_RANGE = 10.0  # losses that range further than this are shown on a logarithmic axis
_LEAST = 1e-300  # a level of 0, of reports that say nothing, on a logarithmic axis
_REACH = 3.0  # the axis goes down to the least scale divided by this: further down lie constant reports


@asked
def plot_sweep(curve: xr.Dataset) -> Figure:
    """The figure of a sweep, 9 x 6.4 inches: losses above, distance from the lower bound below.

    Raises: InputError for a Dataset that is no sweep.
    """
    if curve.attrs.get("schema") != SWEEP.name:
        raise InputError(
            "is no sweep", field="schema", value=curve.attrs.get("schema"), remedy="pass what md.sweep(problem) returns"
        )
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 6.4), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    low = _draw_level_axis(below, curve)
    _draw_losses(above, curve, low)
    _draw_excess(below, curve)
    title = f"{problem_sentence(curve, int(curve.attrs['secrets']))}\n{metric_sentence(curve)}"
    above.set_title(title, loc="left", fontsize=10)
    for axes in (above, below):
        tidy(axes)
    _draw_nats(above, curve)
    handles, labels = above.get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], fontsize=8, frameon=False, loc="outside right upper")
    return figure


def _draw_losses(axes: Axes, curve: xr.Dataset, low: float) -> None:
    at, loss, bound = (curve[name].values for name in ("multiplier", "loss", "lower_bound"))
    axes.axhline(curve.attrs["constant_loss"], color="0.5", linestyle=":", label="best constant report")
    broken = False
    for name in reversed(baselines_of(sweep_rows(curve)[0])):
        baseline, level = curve[f"{name}_loss"].values, curve[f"{name}_effective_epsilon"].values
        breaks = level > at * AT_CLAIM
        broken |= bool(breaks.any())
        style: dict[str, Any] = {**mechanism_style(name), "markersize": 5}
        axes.plot(level, baseline, **style, linewidth=1, label=mechanism_words(name))
        axes.plot(level[breaks], baseline[breaks], **style, linestyle="", markerfacecolor="white")
        _draw_leaving(axes, level, baseline, low, style["color"])
    label = f"optimal, certified within {_percent(float(np.max(curve['gap'].values)))}"
    axes.fill_between(at, np.maximum(bound, 0), loss, color=COLOURS["optimal"], alpha=0.25, linewidth=0)
    axes.plot(at, loss, color=COLOURS["optimal"], marker="o", markersize=4, linewidth=1.8, label=label)
    values = np.concatenate([curve[name].values for name in curve if str(name).endswith("loss")])
    shown = values[values > RESOLUTION * curve.attrs["constant_loss"]]
    if len(shown) and shown.max() > _LOG_RANGE * shown.min():
        axes.set_yscale("log")
        axes.set_ylim(shown.min() / 2, shown.max() * 2)
    if broken:
        axes.plot([], [], color="0.3", marker="o", linestyle="", markerfacecolor="white", label="breaks its claim")
    axes.set_ylabel(_loss_label(curve))


def _draw_leaving(axes: Axes, level: NDArray[np.float64], loss: NDArray[np.float64], low: float, colour: str) -> None:
    """An arrow at the left end `low` of the axis where a curve goes on, with the least level that it has."""
    order = np.argsort(level, kind="stable")
    sorted_level, sorted_loss = level[order], loss[order]
    if not sorted_level[0] < low:
        return
    known = sorted_loss > 0
    at = math.exp(np.interp(math.log(low), np.log(np.maximum(sorted_level[known], _LEAST)), np.log(sorted_loss[known])))
    axes.plot([low], [at], color=colour, marker="<", markersize=7, linestyle="", clip_on=False, gid="leaves the axis")
    said = f"down to {float(sorted_level[0]):.2g}"
    axes.annotate(said, (low, at), xytext=(7, 4), textcoords="offset points", fontsize=7, color=colour)


def _draw_excess(axes: Axes, curve: xr.Dataset) -> None:
    from matplotlib.ticker import FuncFormatter

    at, bound = curve["multiplier"].values, curve["lower_bound"].values
    for name, marker in (("eikonal", "s"), ("optimal", "o")):
        variable = "loss" if name == "optimal" else f"{name}_loss"
        if variable in curve:
            with np.errstate(divide="ignore", invalid="ignore"):
                excess = np.where(bound > 0, 100 * (curve[variable].values / bound - 1), np.nan)
            axes.plot(at, excess, color=COLOURS[name], marker=marker, markersize=4, linewidth=1, label=name)
    axes.set_yscale("symlog", linthresh=0.1, linscale=0.5)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylim(-0.02, max(2.0, 2 * axes.dataLim.ymax if math.isfinite(axes.dataLim.ymax) else 0.0))
    axes.set_ylabel("above the\nlower bound (%)")


def _draw_level_axis(axes: Axes, curve: xr.Dataset) -> float:
    """Levels on a logarithmic axis; returns its left end."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(LogLocator(base=2))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    levels = np.concatenate([curve[name].values for name in curve if str(name).endswith("effective_epsilon")])
    least, most = float(curve["multiplier"].values.min()), float(np.nanmax(levels))
    low = max(least / _REACH, float(np.nanmin(levels))) / 1.15
    axes.set_xlim(low, max(most, float(curve["multiplier"].values.max())) * 1.15)
    axes.set_xlabel("privacy level, as a scale of the problem's metric (smaller is more private)")
    return low


def _draw_nats(axes: Axes, curve: xr.Dataset) -> None:
    """The same axis in nats per unit, above, for a metric with a level."""
    domain = json.loads(curve.attrs["domain"])
    metric = metric_from_description(json.loads(curve.attrs["metric"]))
    stated, smallest = metric.stated_level(domain["unit"]), metric.smallest_level
    if stated is not None:
        level, label = stated[0], f"eps ({stated[1]})"
    elif smallest is not None:
        level, label = smallest, f"eps where it is smallest (nats per {unit_word(domain['unit'])})"
    else:
        return
    if not level > 0:
        return
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    nats = axes.secondary_xaxis("top", functions=(lambda x: np.multiply(x, level), lambda x: np.divide(x, level)))
    nats.xaxis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5)))
    nats.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    nats.xaxis.set_minor_formatter(NullFormatter())
    nats.set_xlabel(label)


def _loss_label(curve: xr.Dataset) -> str:
    what, unit = loss_words(curve.attrs["loss"], curve["loss"].attrs["units"])
    return f"mean {what}" + (f" ({unit})" if unit else "")


def _percent(share: float) -> str:
    """One digit, rounded up."""
    if not 0 < share < math.inf:
        return f"{100 * share:g} %"
    digit = 10.0 ** math.floor(math.log10(100 * share))
    return f"{math.ceil(100 * share / digit) * digit:.12g} %"

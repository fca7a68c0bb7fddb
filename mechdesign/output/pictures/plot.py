"""plot: pictures as files, and the picture of a sweep, through matplotlib's objects: no global state, no display.

`save_plot` draws what it is given: a sweep (below), a mechanism or a diagnosis (maps.py).

The picture of a sweep. Above, the loss against the privacy level: the certified interval [lower_bound, loss] of the
optimum, and every baseline at the level it truly has, hollow where that breaks the claim it was made for. Below, how
far the certified mechanisms are from the lower bound, in per cent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from mechdesign.errors import InputError, MechdesignError
from mechdesign.mechanism.schema import FACTORED, FACTORS, MECHANISM, TABLE
from mechdesign.mechanism.storage.files import check_target, load_sealed, write_atomically
from mechdesign.mechanism.stored import contradiction
from mechdesign.mechanism.table.dataset import RESOLUTION
from mechdesign.output.pictures.captions import loss_words, metric_sentence, problem_sentence
from mechdesign.output.pictures.maps import plot_diagnosis, plot_mechanism
from mechdesign.output.pictures.palette import COLOURS, mechanism_style, mechanism_words
from mechdesign.output.tables.compare import AT_CLAIM
from mechdesign.output.tables.sweep import SWEEP, baselines_of, sweep_rows
from mechdesign.solvers.eikonal.diagnosis import DIAGNOSIS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = (".png", ".pdf", ".svg")
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


def load_drawable(path: str | Path) -> xr.Dataset:
    """Read a file that `save_plot` draws: a mechanism, a sweep or a diagnosis. Raises what `load` raises."""
    return load_sealed(path, MECHANISM, FACTORS, SWEEP, DIAGNOSIS, what="a mechanism, sweep or diagnosis")


def save_plot(
    result: xr.Dataset, path: str | Path, *, overwrite: bool = False, secrets: Sequence[int] | None = None
) -> Path:
    """Draw a mechanism, a sweep or a diagnosis to a file, atomically; its schema says which picture it is.

    Parameters: secrets, the place numbers whose rows are drawn, for mechanisms only.
    Raises: as `check_plot_target` and the pictures; InputError for a Dataset of another schema, or secrets without
    rows; FileFormatError if the disk refuses.
    """
    target = check_plot_target(path, overwrite=overwrite)
    schema = result.attrs.get("schema")
    if secrets is not None and schema in (SWEEP.name, DIAGNOSIS.name):
        raise InputError("is for the rows of a mechanism", field="secret", value=list(secrets), remedy="leave it out")
    figure = plot_mechanism(result, secrets) if schema in (TABLE, FACTORED) else _picture(result)
    return save_figure(figure, target, overwrite=overwrite)


def save_figure(figure: Figure, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a figure to a file, atomically. Raises: as `check_plot_target`; FileFormatError if the disk refuses."""
    target = check_plot_target(path, overwrite=overwrite)
    write_atomically(target, lambda temporary: figure.savefig(temporary, format=target.suffix[1:].lower(), dpi=160))
    return target


def _picture(result: xr.Dataset) -> Figure:
    """The picture of a sweep or a diagnosis. Raises: VerificationError where the Dataset contradicts itself."""
    schema = result.attrs.get("schema")
    known = {SWEEP.name: plot_sweep, DIAGNOSIS.name: plot_diagnosis}
    if schema not in known:
        raise InputError(
            "has no picture", field="schema", value=schema, remedy="draw a mechanism, a sweep or a diagnosis"
        )
    try:
        return known[schema](result)
    except MechdesignError:
        raise
    except Exception as error:
        raise contradiction(error) from error


def plot_sweep(curve: xr.Dataset) -> Figure:
    """The figure of a sweep, 7 x 6.4 inches: losses above, distance from the lower bound below."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 6.4), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    _draw_losses(above, curve)
    _draw_excess(below, curve)
    title = f"{problem_sentence(curve, int(curve.attrs['secrets']))}\n{metric_sentence(curve)}"
    above.set_title(title, loc="left", fontsize=10)
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
    for name in reversed(baselines_of(sweep_rows(curve)[0])):
        baseline, level = curve[f"{name}_loss"].values, curve[f"{name}_effective_epsilon"].values
        breaks = level > at * AT_CLAIM
        broken |= bool(breaks.any())
        style: dict[str, Any] = {**mechanism_style(name), "markersize": 5}
        axes.plot(level, baseline, **style, linewidth=1, label=mechanism_words(name))
        axes.plot(level[breaks], baseline[breaks], **style, linestyle="", markerfacecolor="white")
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
            axes.plot(at, excess, color=COLOURS[name], marker=marker, markersize=4, linewidth=1, label=name)
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
    axes.set_xlabel("privacy level, as a scale of the problem's metric (smaller is more private)")


def _loss_label(curve: xr.Dataset) -> str:
    what, unit = loss_words(curve.attrs["loss"], curve["loss"].attrs["units"])
    return f"mean {what}" + (f" ({unit})" if unit else "")


def _percent(share: float) -> str:
    """One digit, rounded up."""
    if not 0 < share < math.inf:
        return f"{100 * share:g} %"
    digit = 10.0 ** math.floor(math.log10(100 * share))
    return f"{math.ceil(100 * share / digit) * digit:.12g} %"

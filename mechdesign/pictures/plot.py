"""Plot: the picture of a sweep, and pictures as files. maps.py draws a mechanism, panels.py a diagnosis."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.atomic_write import check_target, write_atomically
from mechdesign.base.formatting import percent
from mechdesign.base.optional import import_optional
from mechdesign.base.streams import visible
from mechdesign.base.units import unit_word
from mechdesign.base.validation import validate_call
from mechdesign.errors import InputError
from mechdesign.mechanism.figures import RESOLUTION
from mechdesign.mechanism.mechanism_file import verification_errors
from mechdesign.mechanism.schema import MECHANISMS
from mechdesign.mechanism.storage import load_sealed
from mechdesign.output.captions import loss_words, mechanism_words, metric_sentence, problem_sentence
from mechdesign.output.compare import AT_CLAIM
from mechdesign.output.export import ResultWriter
from mechdesign.output.sweep import SWEEP, curve_points
from mechdesign.pictures.canvas import (
    BLACK,
    mechanism_style,
    new_figure,
)
from mechdesign.pictures.maps import plot_mechanism
from mechdesign.pictures.panels import plot_diagnosis, tidy
from mechdesign.problem.metrics import metric_from_description
from mechdesign.solvers.eikonal.diagnosis import DIAGNOSIS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

KINDS = (".png", ".pdf", ".svg")
_LOG_RANGE = 10.0  # losses that range further than this are shown on a logarithmic axis
_LEAST = 1e-300  # a level of 0, of reports that say nothing, on a logarithmic axis
_FINEST = 1e-6  # relative: gaps are stated as no smaller
_REACH = 3.0  # the axis goes down to the least scale divided by this: further down lie constant reports


# The upper panel of a sweep has the loss against the privacy level, and the interval [lower_bound, loss] of the
# optimum. Every baseline is drawn at its effective level, hollow if it breaks its claim; an arrow marks one that
# continues left of the axis. The lower panel has the excess over the lower bound in percent. The top axis converts
# scales to nats per unit.
@validate_call
def plot_sweep(curve: xr.Dataset) -> Figure:
    """Draw a sweep, 9 x 6.4 inches: losses above, distance from the lower bound below.

    Parameters
    ----------
    curve : xarray.Dataset
        A result of `md.sweep`.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> len(md.plot.sweep(md.sweep(md.load_problem("discrete", secrets=3), [0.5, 1.0])).axes)
    2
    """
    if curve.attrs.get("schema") != SWEEP.name:
        raise InputError("is not a sweep", field="schema", value=curve.attrs.get("schema"))
    figure = new_figure(figsize=(9.0, 6.4), layout="constrained")
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
    # Curves were drawn in reverse: the legend lists them as compare does.
    figure.legend(handles[::-1], labels[::-1], fontsize=8, frameon=False, loc="outside right upper")
    return figure


def _draw_losses(axes: Axes, curve: xr.Dataset, low: float) -> None:
    at, loss, bound = (curve[name].values for name in ("scale", "loss", "lower_bound"))
    axes.axhline(curve.attrs["constant_loss"], color="0.5", linestyle=":", label="best constant report")
    broken = False
    # In reverse, so that the first baselines lie on top; `plot_sweep` reverses the legend again.
    for name in reversed(list(curve_points(curve)[0].baselines)):
        baseline, level = curve[f"{name}_loss"].values, curve[f"{name}_effective_scale"].values
        breaks = level > at * AT_CLAIM
        broken |= bool(breaks.any())
        style: dict[str, Any] = {**mechanism_style(name), "markersize": 5}
        nowhere = ", private at no scale" if np.isinf(level).all() else ""
        axes.plot(level, baseline, **style, linewidth=1, label=mechanism_words(name, curve) + nowhere)
        axes.plot(level[breaks], baseline[breaks], **style, linestyle="", markerfacecolor="white")
        _draw_leaving(axes, level, baseline, low, style["color"])
    label = f"optimal, certified within {percent(max(float(np.max(curve['gap'].values)), _FINEST), up=True, digits=1)}"
    axes.fill_between(at, np.maximum(bound, 0), loss, color=BLACK, alpha=0.25, linewidth=0)
    axes.plot(at, loss, color=BLACK, marker="o", markersize=4, linewidth=1.8, label=label)
    values = np.concatenate([curve[name].values for name in curve if str(name).endswith("loss")])
    # Losses that are rounding alone would stretch a logarithmic axis.
    shown = values[values > RESOLUTION * curve.attrs["constant_loss"]]
    if len(shown) and shown.max() > _LOG_RANGE * shown.min():
        axes.set_yscale("log")
        axes.set_ylim(shown.min() / 2, shown.max() * 2)
    if broken:
        # An empty curve, for the legend alone.
        axes.plot([], [], color="0.3", marker="o", linestyle="", markerfacecolor="white", label="breaks its claim")
    noun, unit = loss_words(curve.attrs["loss"], curve["loss"].attrs["units"])
    axes.set_ylabel(f"mean {noun}" + (f" ({unit})" if unit else ""))


def _draw_leaving(axes: Axes, level: NDArray[np.float64], loss: NDArray[np.float64], low: float, colour: str) -> None:
    """An arrow at the left end `low` of the axis if a curve continues there, with its smallest level."""
    order = np.argsort(level, kind="stable")
    sorted_level, sorted_loss = level[order], loss[order]
    if not sorted_level[0] < low:
        return
    # Interpolated between logarithms, as both axes may be; a loss of 0 has none.
    known = sorted_loss > 0
    at = math.exp(np.interp(math.log(low), np.log(np.maximum(sorted_level[known], _LEAST)), np.log(sorted_loss[known])))
    axes.plot([low], [at], color=colour, marker="<", markersize=7, linestyle="", clip_on=False, gid="leaves the axis")
    axes.annotate(
        f"down to {float(sorted_level[0]):.2g}",
        (low, at),
        xytext=(7, 4),
        textcoords="offset points",
        fontsize=7,
        color=colour,
    )


def _draw_excess(axes: Axes, curve: xr.Dataset) -> None:
    at, bound = curve["scale"].values, curve["lower_bound"].values
    for name in ("eikonal", "optimal"):
        variable = "loss" if name == "optimal" else f"{name}_loss"
        if variable in curve:
            with np.errstate(divide="ignore", invalid="ignore"):
                excess = np.where(bound > 0, 100 * (curve[variable].values / bound - 1), np.nan)
            style: dict[str, Any] = {**mechanism_style(name), "markersize": 4}
            axes.plot(at, excess, **style, linewidth=1, label=name)
    # Linear below 0.1 %, so that an excess of 0 has a place on the axis.
    axes.set_yscale("symlog", linthresh=0.1, linscale=0.5)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylim(-0.02, max(2.0, 2 * axes.dataLim.ymax if math.isfinite(axes.dataLim.ymax) else 0.0))
    axes.set_ylabel("above the\nlower bound (%)")


def _draw_level_axis(axes: Axes, curve: xr.Dataset) -> float:
    """Levels on a logarithmic axis; returns its left end."""
    axes.set_xscale("log", base=2)
    _tick(axes.xaxis, base=2)
    levels = np.concatenate([curve[name].values for name in curve if str(name).endswith("effective_scale")])
    levels = levels[np.isfinite(levels)]
    least, most = float(curve["scale"].values.min()), float(levels.max())
    low = max(least / _REACH, float(levels.min())) / 1.15
    axes.set_xlim(low, max(most, float(curve["scale"].values.max())) * 1.15)
    axes.set_xlabel("privacy level, as a scale of the problem's metric (smaller is more private)")
    return low


def _draw_nats(axes: Axes, curve: xr.Dataset) -> None:
    """The same axis in nats per unit, above, for a metric with a level."""
    domain = json.loads(curve.attrs["domain"])
    metric = metric_from_description(json.loads(curve.attrs["metric"]))
    stated, smallest = metric.stated_level(domain["unit"]), metric.smallest_level
    if stated is not None:
        level, label = stated[0], f"eps ({stated[1]})"
    else:
        level, label = smallest or 0.0, f"eps where it is smallest (nats per {unit_word(domain['unit'])})"
    if not level > 0:
        return
    nats = axes.secondary_xaxis("top", functions=(lambda x: np.multiply(x, level), lambda x: np.divide(x, level)))
    _tick(nats.xaxis, base=10, subs=(1, 2, 5))
    nats.set_xlabel(label)


def _tick(axis: Axis, **ticks: Any) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(**ticks))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def check_plot_target(path: str | Path, *, overwrite: bool = False) -> Path:
    """Return the path if matplotlib is installed, the suffix is .png, .pdf or .svg and `check_target` allows it."""
    import_optional("matplotlib.figure", "plot")
    target = check_target(path, overwrite=overwrite)
    if target.suffix.lower() not in KINDS:
        raise InputError(f"must end in one of {', '.join(KINDS)}", field="plot", value=target.name)
    return target


@validate_call
def load_drawable(path: str | Path) -> xr.Dataset:
    """Read a file that `md.plot.save` draws; VerificationError if it is damaged or of another schema.

    Parameters
    ----------
    path : str or Path
        A NetCDF file.

    Returns
    -------
    xarray.Dataset of a mechanism, a sweep or a diagnosis

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = md.save(md.diagnosis(md.load_problem("line", cells=4)), folder + "/diagnosis.nc")
    ...     md.plot.load(path).attrs["problem"]
    'line'
    """
    return load_sealed(path, *MECHANISMS.values(), SWEEP, DIAGNOSIS, noun="a mechanism, sweep or diagnosis")


@validate_call
def save_plot(
    result: xr.Dataset | Figure | str | Path,
    path: str | Path,
    *,
    overwrite: bool = False,
    secrets: Sequence[int] | None = None,
    over: str | Path | None = None,
    title: str | None = None,
) -> Path:
    """Draw a mechanism, a sweep or a diagnosis to a file, atomically, or write a figure.

    Parameters
    ----------
    result : Dataset, Figure, str or Path
        A Dataset, its path, or a matplotlib figure.
    path, overwrite : str or Path, bool
        A .png, .pdf or .svg file, and permission to replace one.
    secrets, over : sequence of int, str or Path
        Of a mechanism: places whose rows are drawn; a GeoJSON file of lines.
    title : str
        A line above the heading.

    Returns
    -------
    Path of the file

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     md.plot.save(md.baselines.exponential(md.load_problem("line", cells=4)), folder + "/line.png").name
    'line.png'
    """
    target = check_plot_target(path, overwrite=overwrite)
    figure = _figure(load_drawable(result) if isinstance(result, (str, Path)) else result, secrets, over)
    if title is not None:
        figure.suptitle(f"{visible(title)}\n{figure.get_suptitle()}".rstrip("\n"), x=0.01, ha="left", fontsize=10)
    write_atomically(target, lambda temporary: figure.savefig(temporary, format=target.suffix[1:].lower(), dpi=160))
    return target


PICTURES = ResultWriter(suffixes=KINDS, check_target=check_plot_target, save=save_plot)


def _figure(result: object, secrets: Sequence[int] | None, over: str | Path | None) -> Figure:
    from matplotlib.figure import Figure

    schema = result.attrs.get("schema") if isinstance(result, xr.Dataset) else type(result).__name__
    if isinstance(result, xr.Dataset) and schema in MECHANISMS:
        return plot_mechanism(result, secrets, over=over)
    for field, value in (("secret", secrets), ("over", over)):
        if value is not None:
            raise InputError("is for a mechanism", field=field, value=value)
    if isinstance(result, Figure):
        return result
    known = {SWEEP.name: plot_sweep, DIAGNOSIS.name: plot_diagnosis}
    if not isinstance(result, xr.Dataset) or schema not in known:
        raise InputError(
            "is not a mechanism, sweep or diagnosis", field="result", value=schema or type(result).__name__
        )
    with verification_errors():
        return known[schema](result)

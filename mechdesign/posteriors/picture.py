"""The picture of audits of discs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mechdesign.base.units import unit_word
from mechdesign.pictures.canvas import LINES, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LABELS = {
    "worst": "after the worst report",
    "one_in_hundred": "after one report in a hundred, or more",
    "median": "after the median report",
    "before": "before any report",
}


def plot_discs(audits: Sequence[Mapping[str, Any]]) -> Figure:
    """The figure of audits as documents, 7 x 4.4 inches: by radius, the share of the probability in one disc."""
    figure = new_figure(figsize=(7, 4.4), layout="constrained")
    axes = figure.subplots()
    found = sorted(audits, key=lambda audit: audit["radius"])
    radii = [audit["radius"] for audit in found]
    for name, (colour, dashes) in zip(_LABELS, LINES, strict=True):
        shares = [100 * audit[name] for audit in found]
        axes.plot(radii, shares, color=colour, linestyle=dashes, marker="o", label=_LABELS[name])
    # Of noise the distance of discs from a report depends on the radius: the axis says the kind alone.
    about, exact = found[0]["about"].partition(" within ")[0], all(audit["exact"] for audit in found)
    shape, area = found[0]["shape"], found[0]["centres"] == "area"
    where = f"{found[0]['many']} no larger than one disc" if area else f"one {shape} {about}".strip()
    label = f"probability in {where}{'' if exact else ', at most'}, %"
    axes.set(xlabel=f"radius, {unit_word(found[0]['unit'])}", ylabel=label, ylim=(0, 102))
    axes.legend()
    figure.suptitle(f"After one report, in {where}; a second report adds to that", x=0.01, ha="left", fontsize=10)
    return figure

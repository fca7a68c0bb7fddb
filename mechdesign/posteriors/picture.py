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
    by_radius = sorted(audits, key=lambda audit: audit["radius"])
    radii, kind = [audit["radius"] for audit in by_radius], by_radius[0]
    for name, (colour, dashes) in zip(_LABELS, LINES, strict=True):
        shares = [100 * audit[name] for audit in by_radius]
        axes.plot(radii, shares, color=colour, linestyle=dashes, marker="o", label=_LABELS[name])
    # For noise, discs are searched up to a distance that depends on the radius: the label leaves it out.
    about, exact = kind["about"].partition(" within ")[0], all(audit["exact"] for audit in by_radius)
    shape, by_area = kind["shape"], kind["centres"] == "area"
    where = f"{kind['many']} no larger than one disc" if by_area else f"one {shape} {about}".strip()
    label = f"probability in {where}{'' if exact else ', at most'}, %"
    axes.set(xlabel=f"radius, {unit_word(kind['unit'])}", ylabel=label, ylim=(0, 102))
    axes.legend()
    figure.suptitle(f"After one report, in {where}; a second report adds to that", x=0.01, ha="left", fontsize=10)
    return figure

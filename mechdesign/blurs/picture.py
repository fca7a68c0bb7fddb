"""The picture of an audit of a blur: displacements with the disc, and the reports themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mechdesign.base.formatting import length, percent
from mechdesign.blurs.audit import BlurAudit
from mechdesign.blurs.calls import displacements
from mechdesign.pictures.canvas import BLUE, VERMILION, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_QUANTILE = 0.99  # of the distances that the picture shows


def plot_blur(audit: BlurAudit) -> Figure:
    """The figure of an audit, 9 x 4.8 inches, in km to the east and to the north."""
    figure = new_figure(figsize=(9, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    middle = np.broadcast_to([audit.latitude, audit.longitude], audit.reports.shape)
    clouds = audit.displacements, displacements(middle, audit.reports)
    beyond = audit.disc + float(np.abs(audit.disc_shift).max())
    for axes, cloud in zip((left, right), clouds, strict=True):
        far = np.abs(cloud[np.isfinite(cloud[:, 0])])
        reach = max(float(np.quantile(far, _QUANTILE)), beyond if axes is left else 0.0) * 1.1 / 1000
        axes.plot(cloud[:, 1] / 1000, cloud[:, 0] / 1000, ".", color=BLUE, markersize=2, mew=0)
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel="km to the east")
    left.set(title="displacements of reports from true positions", ylabel="km to the north")
    right.set(title="reports of positions spread evenly")
    turn = np.linspace(0, 2 * np.pi, 200)
    north, east = audit.disc_shift
    label = f"disc of {length(audit.disc, 'm')}: {percent(audit.share)}"
    left.plot(
        (east + audit.disc * np.cos(turn)) / 1000,
        (north + audit.disc * np.sin(turn)) / 1000,
        color=VERMILION,
        label=label,
    )
    left.legend(loc="upper right")
    found = "; ".join(finding.kind for finding in audit.findings) or "no defect found"
    figure.suptitle(f"{audit.name}: {found}", x=0.01, ha="left", fontsize=11)
    return figure

"""The pictures of these pages that no command draws: python docs/draw.py; the rest are those of the tutorials."""

import runpy
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np

from mechdesign.closed_forms.noise.radial_laplace import mean_radius

HERE = Path(__file__).parent
TUTORIALS = {
    "start": "5_geo_indistinguishability",
    "people": "2_reports_of_many_people",
    "answers": "3_smooth_sensitivity",
}


def main() -> None:
    """Draw and write them."""
    figures = {name: runpy.run_path(str(HERE / "gallery" / f"{file}.py"))["figure"] for name, file in TUTORIALS.items()}
    figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
    radii = np.geomspace(20, 2000, 50)
    for factor in (1.5, 2, 4, 10):
        ax.loglog(radii, [mean_radius(np.log(factor) / radius) for radius in radii])
        ax.annotate(f"odds of {factor:g}", (radii[-1], mean_radius(np.log(factor) / radii[-1])), xytext=(4, -3),
                    textcoords="offset points")  # fmt: skip
    ax.set(xlabel="radius within which odds change by at most the factor, m", ylabel="mean distance of a report, m")
    ax.set_xlim(right=4500)
    ax.grid(alpha=0.3)
    for name, drawn in {**figures, "epsilon": figure}.items():
        drawn.savefig(HERE / "pictures" / f"{name}.png", dpi=90)


if __name__ == "__main__":
    main()

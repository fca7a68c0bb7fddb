"""The pictures of these pages that no command draws: python docs/draw.py; the rest are those of the tutorials."""

import runpy
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import mechdesign as md
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
    for name, drawn in {**figures, "epsilon": figure, "positions": positions()}.items():
        drawn.savefig(HERE / "pictures" / f"{name}.png", dpi=90)


def positions() -> Figure:
    """The probability of one report along a street, for a design between centres of cells and one between positions."""
    domain = md.Domain.grid((9, 9), cell=100.0, unit="m")
    level = md.Euclidean(epsilon=0.005, unit="m")
    problem = md.DesignProblem(
        domain=domain, metric=level, prior=md.priors.uniform(domain), loss=md.losses.SquaredDistance()
    )
    centres, anywhere = md.solve(problem, gap=1e-3), md.solve(md.programs.Positions(problem), gap=1e-3)
    report = 9 * 4 + 5
    along = np.linspace(0.05, 899.95, 1800)
    figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
    for mechanism, name in ((centres, "moved to the centre of its cell"), (anywhere, "drawn by the spline")):
        rows = md.probabilities(mechanism).values[:, report].reshape(9, 9)[:, 4]
        cell = (along // 100).astype(int)
        if "around_row" in mechanism:
            s = along / 100 - cell - 0.5
            weights = ((0.5 - s) ** 2 / 2, 0.75 - s**2, (0.5 + s) ** 2 / 2)
            shown = sum(w * rows[np.clip(cell + k - 1, 0, 8)] for k, w in enumerate(weights))
        else:
            shown = rows[cell]
        ax.semilogy(along, shown, label=name)
    ax.set(xlabel="position along a street, m", ylabel="probability of one report")
    ax.legend()
    ax.grid(alpha=0.3)
    return figure


if __name__ == "__main__":
    main()

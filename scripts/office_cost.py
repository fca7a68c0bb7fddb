"""The cost of privacy to a statistics office: people needed to estimate shares of neighbourhoods, against epsilon.

python scripts/office_cost.py [--blocks 3] [--error 0.02] [--plot office_cost.png]
                              [--checkins FILE --latitude N --longitude E]

The area has 30 x 30 cells of 150 m, cut into 3 x 3 neighbourhoods. People are distributed as the shipped check-ins in
Paris, or as a SNAP file around a place (New York: 40.7580 N, 73.9855 W; needs the extra geo). The error is half
the length of a 95 % interval for the share of the worst neighbourhood. The picture needs the extra plot.
"""

import argparse
import math
from pathlib import Path

import numpy as np

import mechdesign as md
from mechdesign.output.captions import mechanism_words
from mechdesign.output.text_tables import print_table, say
from mechdesign.pictures.canvas import mechanism_style
from mechdesign.pictures.plot import check_plot_target, save_plot
from mechdesign.problem.problem_files import read_problem_file
from mechdesign.programs.matched import FAMILIES

LEVELS = (0.0035, 0.005, 0.0075, 0.01, 0.015, 0.02)  # nats per m
MECHANISMS = ("geometric_clamped", "laplacian_clamped")
PEOPLE = (10_000, 100_000, 1_000_000)
WITHIN = 200.0  # m, of the factor on odds


def main() -> None:
    """Plan every mechanism at every level, print the table, draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=3, help="neighbourhoods along each side")
    parser.add_argument("--error", type=float, default=0.02, help="half an interval, a share of 1")
    parser.add_argument("--checkins", type=Path)
    parser.add_argument("--latitude", type=float)
    parser.add_argument("--longitude", type=float)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    if options.plot is not None:
        check_plot_target(options.plot, overwrite=True)

    problem = md.load_problem("paris", prior="checkins", epsilon=LEVELS[0])
    truth = problem.prior_array
    if options.checkins is not None:
        centre = {"latitude": options.latitude, "longitude": options.longitude}
        read_checkins = read_problem_file("paris").module.read_checkins
        truth = md.priors.proportional(read_checkins(options.checkins, problem.domain, **centre).counts)
    areas = md.geo.Partition.blocks(problem.domain, options.blocks, options.blocks)
    plans = {}
    for name in MECHANISMS:
        tables = {f"{level:g}": FAMILIES[name].table(problem, level) for level in LEVELS}
        plans[name] = md.surveys.plan(tables, areas, problem.domain, people=PEOPLE[0], truth=truth, error=options.error)
    without = plans["geometric_clamped"]["people_without"].max()
    rows = []
    for d, level in enumerate(LEVELS):
        geometric, laplacian = (plans[name].isel(design=d) for name in MECHANISMS)
        factor = geometric["people"] / geometric["people_without"]
        errors = " / ".join(f"{100 * float(geometric['deviation'].max()) / math.sqrt(n):.2f}" for n in PEOPLE)
        rows.append(
            [
                f"{level:g}",
                f"{math.exp(WITHIN * level):.3g}",
                errors,
                f"{float(geometric['people'].max()):,.0f}",
                f"{float(factor.median()):,.3g} / {float(factor.max()):,.3g}",
                f"{float(laplacian['people'].max()):,.0f}",
            ]
        )
    headings = [
        "eps, nats per m",
        f"odds within {WITHIN:g} m times",
        "worst standard error, points, of " + " / ".join(f"{n:,}" for n in PEOPLE),
        f"people for +-{100 * options.error:g} points",
        "times without privacy, median / worst",
        "Laplacian: people",
    ]
    print_table(headings, rows)
    say(f"Without privacy {float(without):,.0f} people are needed.")
    if options.plot is not None:
        path = save_plot(picture(plans, float(without), 100 * options.error), options.plot, overwrite=True)
        print(f"wrote {path}")


def picture(plans, without: float, error: float):
    """People against epsilon, on logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    axes = figure.add_subplot()
    for name, plan in plans.items():
        people = np.asarray(plan["people"].max("area"))
        axes.plot(LEVELS, people, **mechanism_style(name), linewidth=1.6, markersize=5, label=mechanism_words(name))
    axes.axhline(without, color="0.4", linestyle=":", label=f"without privacy: {without:,.0f}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(LEVELS, [f"{level:g}" for level in LEVELS])
    axes.minorticks_off()
    axes.set_xlabel("epsilon (nats per m; smaller is more private)")
    axes.set_ylabel(f"people for ±{error:g} points in every neighbourhood")
    axes.grid(visible=True, color="0.9", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure


if __name__ == "__main__":
    main()

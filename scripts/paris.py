r"""Compare the three epsilons of Alvim et al. 2018 for 450 m with ours, and draw its Figure 2 for check-ins in Paris.

python scripts/paris.py
python scripts/paris.py --figure [--repetitions 20] [--sizes 100 200 ...] [--prior checkins] [--checkins FILE]
                        [--distance 450] [--workers 2] [-o paris_figure2.csv] [--plot paris_figure2.png]

Without --figure: the epsilons, and the priors that would explain those of the paper. These are priors (n,) with
sum_u prior(u) sum_y P_k(y|u) |u - y| = 450 m for the first two mechanisms k. The prior nearest to uniform minimises
n sum_u (prior(u) - 1/n)^2. The expected distance of the third mechanism under such priors fills an interval.
With --figure: the statistical utility loss, first as in the paper, with mechanisms at one expected distance; then at
one true level, that of clamped geometric noise at this distance. FILE is a check-in file of the SNAP format (needs the
extra geo); the picture needs the extra plot.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import cvxpy as cp
import numpy as np
import pandas as pd
import xarray as xr
from utility_study import ESTIMATORS, Study, bands, utility_study

import mechdesign as md
from mechdesign.evaluation.loss import expected_distance
from mechdesign.pictures.canvas import mechanism_style
from mechdesign.problem.problem_files import read_problem_file
from mechdesign.programs.matched import FAMILIES
from mechdesign.solvers.matched import effective_epsilon, family_mechanism

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DISTANCE = 450.0  # m
BORDERS = ("normalised", "clamped")
FLAT = "randomized_response"
PAPER = (FLAT, "geometric_normalised", "laplacian_normalised")
SIZES = (50, 100, 200, 400, 750, 1000, 2000, 4000, 5500, 7542)


def epsilons() -> None:
    """Print the epsilons with their deviations, then the priors that explain them."""
    file = read_problem_file("paris")
    published, rows = file.module.published(), []
    problems = [file.build(prior=prior, distance=DISTANCE) for prior in ("uniform", "checkins")]
    for kind, paper in published.items():
        for family in [kind] if kind == FLAT else [f"{kind}_{border}" for border in BORDERS]:
            matched = [md.utility.match_distance(problem, family, DISTANCE) for problem in problems]
            figures = [text for m in matched for text in (f"{m.epsilon:.9g}", f"{m.epsilon / paper - 1:+.2%}")]
            rows.append([family, matched[0].unit, f"{paper:.9g}", *figures])
    names = ["mechanism", "unit", "published", "uniform prior", "deviation", "check-ins", "deviation"]
    print(pd.DataFrame(rows, columns=names).to_string(index=False))
    for border in BORDERS:
        names = [FLAT, f"geometric_{border}", f"laplacian_{border}"]
        reported = dict(zip(names, published.values(), strict=True))
        chi_square, low, high = explaining_priors(problems[0], reported)
        verdict = "possible" if low <= DISTANCE <= high else "impossible under every prior"
        print(
            f"\n{names[0]} and {names[1]}: explained by a prior at chi-square distance {chi_square:.4f} from uniform. "
            f"Under all priors that explain them, {names[2]} at {reported[names[2]]} has an expected distance of "
            f"{low:.2f} to {high:.2f} m. So {DISTANCE:g} m is {verdict}."
        )


def explaining_priors(problem: md.DesignProblem, reported: dict[str, float]) -> tuple[float, float, float]:
    """The smallest chi-square distance of a prior that explains all mechanisms but the last; its distances (m)."""
    profiles = [(FAMILIES[name].table(problem, e) * problem.loss_matrix).sum(axis=1) for name, e in reported.items()]
    n = problem.domain.size
    prior = cp.Variable(n)
    explains = [prior >= 0, cp.sum(prior) == 1, np.array(profiles[:-1]) / DISTANCE @ prior == 1]
    chi_square = cp.Problem(cp.Minimize(n * cp.sum_squares(prior - 1 / n)), explains).solve()
    low, high = (cp.Problem(goal(profiles[-1] @ prior), explains).solve("HIGHS") for goal in (cp.Minimize, cp.Maximize))
    return float(chi_square), float(low), float(high)


def figure(options: argparse.Namespace) -> None:
    """Simulate both comparisons, print, save and draw their figures."""
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(12.6, 4.4), layout="constrained")
    file = read_problem_file("paris")
    problem = file.build(prior=options.prior, distance=options.distance)
    counts = file.module.counts(problem.domain, options.checkins)
    level = problem.metric.smallest_level
    match, match_level = md.utility.match_distance, md.utility.match_effective_epsilon
    matched = {
        "expected distance": {name: match(problem, name, options.distance).epsilon for name in PAPER},
        "true level": {name: match_level(problem, name, level).epsilon for name in (*PAPER, "geometric_clamped")},
    }
    summary, tables = {}, []
    for equal, levels in matched.items():
        mechanisms = {name: family_mechanism(problem, name, epsilon) for name, epsilon in levels.items()}
        study = Study(
            mechanisms=mechanisms, counts=counts, sizes=options.sizes, estimators=ESTIMATORS, seed=options.seed
        )
        simulated = utility_study(
            study,
            repetitions=options.repetitions,
            workers=options.workers,
            on_progress=partial(print, file=sys.stderr),
        )
        summary[equal] = bands(simulated)
        figures = pd.DataFrame({name: figures_of(mechanism, problem) for name, mechanism in mechanisms.items()}).T
        mean = summary[equal]["mean"].stack(row=("estimator", "mechanism")).transpose("row", "size").to_pandas()
        print(f"\nequal {equal}\n{figures.to_string(float_format='{:.6g}'.format)}")
        print(mean.to_string(float_format="{:.1f}".format))
        table = summary[equal].to_dataframe().reset_index().merge(figures, left_on="mechanism", right_index=True)
        tables.append(table.assign(equal=equal, seed=options.seed, repetitions=options.repetitions))
    pd.concat(tables).to_csv(options.output, index=False)
    panels = {
        f"mean distance {options.distance:g} m, early stopping": ("expected distance", "stopped"),
        f"mean distance {options.distance:g} m, maximum likelihood": ("expected distance", "maximum_likelihood"),
        f"private at {level:.3g} nats per m, early stopping": ("true level", "stopped"),
    }
    for axes, (title, (equal, name)) in zip(canvas.subplots(1, 3), panels.items(), strict=True):
        draw(axes, summary[equal].sel(estimator=name))
        axes.set_title(title, loc="left", fontsize=9)
    canvas.savefig(options.plot)
    print(f"wrote {options.output} and {options.plot}")


def figures_of(mechanism: xr.Dataset, problem: md.DesignProblem) -> dict[str, float | None]:
    """Claimed and true level (nats, or nats per m), expected distance (m), share of reports that are true."""
    return {
        "claimed_epsilon": mechanism.attrs["claimed_epsilon"],
        "effective_epsilon": effective_epsilon(mechanism, problem),
        "expected_distance": expected_distance(mechanism),
        "truthful": float(problem.prior_array @ np.diagonal(md.probabilities(mechanism).values)),
    }


def draw(axes: Axes, study: xr.Dataset) -> None:
    """Draw the mean of each mechanism, its confidence interval (bars), and 5 % to 95 % of repetitions (band)."""
    size = study["size"].values
    for name in study["mechanism"].values.tolist():
        figures, style = study.sel(mechanism=name), mechanism_style(name)
        words = name.replace("_", " ").replace("laplac", "Laplac")
        error = abs(np.stack([figures["mean_low"], figures["mean_high"]]) - figures["mean"].values)
        axes.fill_between(size, figures["low"], figures["high"], color=style["color"], alpha=0.18, linewidth=0)
        axes.errorbar(size, figures["mean"], error, **style, markersize=4, label=words)
    axes.set(xscale="log", xlabel="check-ins in the dataset", ylabel="Kantorovich distance to the dataset (m)")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8)


def main() -> None:
    """Print the epsilons, or make the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figure", action="store_true")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--prior", default="checkins")
    parser.add_argument("--checkins", default="shipped")
    parser.add_argument("--distance", type=float, default=DISTANCE)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path, default=Path("paris_figure2.csv"))
    parser.add_argument("--plot", type=Path, default=Path("paris_figure2.png"))
    options = parser.parse_args()
    if options.figure:
        figure(options)
    else:
        epsilons()


if __name__ == "__main__":
    main()

"""Figure 2 of paper 001: the statistical utility loss of mechanisms over growing datasets of check-ins in Paris.

python scripts/paris_figure2.py [--repetitions 20] [--sizes 100 200 ...] [--prior checkins] [--checkins FILE]
                                [--distance 450] [--workers 2] [-o paris_figure2.csv] [--plot paris_figure2.png]

First as the paper: mechanisms at one expected distance; then at one true privacy level, that of clamped geometric noise
at this distance. FILE is a check-in file of the SNAP format (needs the extra geo); the picture needs the extra plot.
"""

import argparse
import sys
from pathlib import Path

from mechdesign.output.pictures.plot import check_plot_target, save_figure
from mechdesign.output.terminal.printing import progress
from mechdesign.output.terminal.study import print_study
from mechdesign.setting.problems.problem_files import read_problem_file
from mechdesign.utility.population.study import ESTIMATORS, Study, bands, utility_study

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for experiments, beside this folder

from experiments import studies
from experiments.study_curves import plot_bands

PAPER = ("randomized_response", "geometric_normalised", "laplacian_normalised")
SIZES = (50, 100, 200, 400, 750, 1000, 2000, 4000, 5500, 7542)


def main() -> None:
    """Simulate both comparisons, print and save their figures, draw them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--prior", default="checkins")
    parser.add_argument("--checkins", default="shipped")
    parser.add_argument("--distance", type=float, default=450.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path, default=Path("paris_figure2.csv"))
    parser.add_argument("--plot", type=Path, default=Path("paris_figure2.png"))
    given = parser.parse_args()
    check_plot_target(given.plot, overwrite=True)

    file = read_problem_file("paris")
    problem = file.build(
        prior=given.prior,
        distance=given.distance,
    )
    counts = file.module.counts(problem.domain, given.checkins)
    level = problem.metric.smallest_level
    matchings = {
        "expected distance": studies.at_distance(problem, PAPER, given.distance),
        "true level": studies.at_level(problem, (*PAPER, "geometric_clamped"), level),
    }
    found = {}
    for equal, mechanisms in matchings.items():
        study = Study(mechanisms=mechanisms, counts=counts, sizes=given.sizes, estimators=ESTIMATORS, seed=given.seed)
        with progress(f"equal {equal}") as advance:
            simulated = utility_study(study, repetitions=given.repetitions, workers=given.workers, on_progress=advance)
        found[equal] = mechanisms, bands(simulated)
    table = studies.study_table(problem, found)
    print_study(table)
    print(f"wrote {studies.write_study(table, given.output, overwrite=True)}")

    at_distance, at_level = (bounds for _, bounds in found.values())
    panels = {
        f"all {given.distance:g} m from the truth, estimates stopped in time": at_distance.sel(estimator="stopped"),
        f"all {given.distance:g} m from the truth, maximum likelihood": at_distance.sel(estimator="maximum_likelihood"),
        f"all private at {level:.3g} nats per m, stopped in time": at_level.sel(estimator="stopped"),
    }
    print(f"wrote {save_figure(plot_bands(panels), given.plot, overwrite=True)}")


if __name__ == "__main__":
    main()

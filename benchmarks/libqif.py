"""The optimal geo-indistinguishable mechanism on a square lattice: ours against libqif, on libqif's own case.

pip install qif; python benchmarks/libqif.py [--cells 8] [--repeats 1]

Uniform prior, Euclidean metric on all pairs, eps = 1 per cell, loss the expected Euclidean distance: libqif's
`mechanism.d_privacy.min_loss_given_d` returns an uncertified table, ours is certified, with a bound, to a gap of 1e-6.
"""

import argparse

import numpy as np
import qif
from paired import paired

from mechdesign.setting.problems.problem_files import load_problem
from mechdesign.solvers.optimal.aggregation import aggregate

GAP = 1e-6
AGREE = 2e-6  # our gap, and the tolerance of libqif's solver


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=1)
    given = parser.parse_args()
    problem = load_problem("euclidean", cells=given.cells, loss="distance")
    apart = problem.loss_matrix

    def libqif() -> float:
        uniform = np.full(len(apart), 1 / len(apart))
        metric = qif.metric.from_distance_matrix(apart)
        table = qif.mechanism.d_privacy.min_loss_given_d(uniform, len(apart), metric, metric)
        return float(uniform @ (table * apart).sum(axis=1))

    routes = {"libqif": libqif, "ours": lambda: aggregate(problem, gap=GAP).loss}
    paired(f"{given.cells} x {given.cells} lattice, all pairs", routes, repeats=given.repeats, agree=AGREE)


if __name__ == "__main__":
    main()

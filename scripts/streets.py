"""Privacy along streets against straight-line privacy, on one road network.

python scripts/streets.py [--nodes 150] [--seed 1] [--epsilon 0.01] [--gap 1e-3]
                          [--nodes-file N.csv --edges-file E.csv]

Three optimal mechanisms at eps nats per m: for the distance along streets, for the straight line, and for the straight
line at the eps that buys the privacy along streets. Beside the loss of each, in m along streets and straight: the
smallest eps per m with which it is private in either metric. A way along streets is rarely shorter than the straight
line, so the straight-line design is private along streets at eps or less, and the other one is not the other way round.
"""

import argparse
from dataclasses import replace

import numpy as np

import mechdesign as md


def main() -> None:
    """Design, cross-examine, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epsilon", type=float, default=0.01)
    parser.add_argument("--gap", type=float, default=1e-3)
    parser.add_argument("--nodes-file", default="synthetic")
    parser.add_argument("--edges-file", default="synthetic")
    given = vars(parser.parse_args())
    gap, epsilon = given.pop("gap"), given["epsilon"]

    along = md.load_problem("streets", **given)
    straight = replace(along, metric=md.Euclidean(epsilon=epsilon, unit="m"))
    detour = along.distances / np.maximum(straight.distances, 1e-300)
    detour = detour[straight.distances > 0]
    print(f"{along.domain.size} nodes, {len(along.edges.tail)} streets, eps = {epsilon:g} nats per m")
    print(
        f"way along streets over straight line: {detour.min():.4g} to {detour.max():.4g}, median {np.median(detour):.4g}"
    )
    print(
        f"\n{'designed for':<24}{'loss, streets':>14}{'bound':>10}{'straight':>10}{'eps, streets':>14}{'straight':>10}"
    )
    least = replace(along, metric=(1 / float(detour.max())) * along.metric)
    for name, problem in (("streets", along), ("straight lines", straight), ("streets, eps reduced", least)):
        mechanism = md.solve(md.Optimal(problem=problem), gap=gap)
        table = md.probabilities(mechanism).values
        losses = [float((along.prior_array[:, None] * table * l).sum()) for l in (along.loss_matrix, apart(along))]
        levels = [epsilon * md.audit(table, p).effective_epsilon for p in (along, straight)]
        bound = float(mechanism.attrs["lower_bound"])
        print(f"{name:<24}{losses[0]:14.5g}{bound:10.5g}{losses[1]:10.5g}{levels[0]:14.5g}{levels[1]:10.5g}")
    print(
        "\nlosses in m, eps in nats per m; bound: no mechanism with the claim of its row has a smaller loss along streets"
    )


def apart(problem: md.DesignProblem) -> np.ndarray:
    """Straight lines (n, m) in m."""
    return md.Distance().matrix(problem.domain, problem.reports)


if __name__ == "__main__":
    main()

"""Privacy along streets against straight-line privacy, on one road network.

python scripts/streets.py [--nodes 60] [--seed 1] [--epsilon 0.01] [--gap 1e-3]
                          [--nodes-file N.csv --edges-file E.csv]

The script designs three optimal mechanisms: for eps along streets, for eps in a straight line, and along streets at eps
divided by the longest detour. The last gives straight-line privacy too. The table has the mean loss of each, along
streets and in a straight line, and its effective eps in either metric.
"""

import argparse
from dataclasses import replace

import numpy as np

import mechdesign as md


def main() -> None:
    """Design three mechanisms, evaluate each in both metrics, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epsilon", type=float, default=0.01)
    parser.add_argument("--gap", type=float, default=1e-3)
    parser.add_argument("--nodes-file", default="synthetic")
    parser.add_argument("--edges-file", default="synthetic")
    options = vars(parser.parse_args())
    gap, epsilon = options.pop("gap"), options["epsilon"]

    along = md.load_problem("streets", **options)
    straight = replace(along, metric=md.Euclidean(epsilon=epsilon, unit="m"))
    detour = along.distances / np.maximum(straight.distances, 1e-300)
    detour = detour[straight.distances > 0]
    print(f"{along.domain.size} nodes, {len(along.edges.tail)} streets, eps = {epsilon:g} nats per m")
    print(f"detours (streets over straight): {detour.min():.4g} to {detour.max():.4g}, median {np.median(detour):.4g}")
    print(f"\n{'designed for':<22}{'loss, streets':>14}{'bound':>9}{'straight':>9}{'eps, streets':>14}{'straight':>12}")
    lines = md.losses.Distance().matrix(along.domain, along.reports)
    reduced = replace(along, metric=(1 / float(detour.max())) * along.metric)
    for name, problem in (("streets", along), ("straight lines", straight), ("streets, eps reduced", reduced)):
        mechanism = md.solve(md.Optimal(problem=problem), gap=gap)
        table = md.probabilities(mechanism).values
        losses = [float((along.prior_array[:, None] * table * l).sum()) for l in (along.loss_matrix, lines)]
        levels = [epsilon * md.audit(table, p).ratio for p in (along, straight)]
        bound = float(mechanism.attrs["lower_bound"])
        print(f"{name:<22}{losses[0]:14.5g}{bound:9.5g}{losses[1]:9.5g}{levels[0]:14.5g}{levels[1]:12.5g}")
    print(
        "\nlosses in m, eps in nats per m. bound: on the loss along streets of any mechanism with the claim of its row"
    )


if __name__ == "__main__":
    main()

"""The cost of several points at one epsilon: a centroid, n reports, and a trace on a budget (Andrés et al. 2013, 3.3).

python scripts/tuples.py [--points 5] [--epsilon 0.01] [--draws 20000] [--seed 0]

epsilon is in nats per m, for the largest distance between two tuples. The centroid has sensitivity 1 and gets all of
it; n independent reports get an n-th each. The trace has reports of one certified mechanism, each recorded in a ledger.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

import mechdesign as md
from mechdesign.closed_forms.planar_laplace import planar_laplace_mechanism
from mechdesign.evaluation import radial_laplace


def main() -> None:
    """Simulate the routes, then spend a budget on a trace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=5, help="n")
    parser.add_argument("--epsilon", type=float, default=0.01, help="nats per m")
    parser.add_argument("--draws", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    rng, n = np.random.default_rng(options.seed), options.points
    points = rng.uniform(-1000, 1000, (n, 2))
    center = points.mean(axis=0)
    direct = radial_laplace.sample(center, options.epsilon, rng, options.draws)
    separate = np.stack([radial_laplace.sample(point, options.epsilon / n, rng, options.draws) for point in points])
    routes = {
        "report of the centroid": (direct - center, radial_laplace.mean_radius(options.epsilon)),
        f"each of {n} reports": (separate - points[:, None], radial_laplace.mean_radius(options.epsilon / n)),
        "centroid of the reports": (separate.mean(axis=0) - center, None),
    }
    print(f"{n} points, {options.epsilon:g} nats per m in total: mean distance in m")
    for name, (error, expected) in routes.items():
        closed = "" if expected is None else f", closed form {expected:.1f}"
        print(f"  {name:24} simulated {np.linalg.norm(error, axis=-1).mean():7.1f}{closed}")

    domain = md.Domain.grid((8, 8), cell=100.0, unit="m")
    metric = md.Euclidean(epsilon=options.epsilon, unit="m")
    problem = md.DesignProblem(domain=domain, metric=metric, prior=md.priors.uniform(domain), loss=md.losses.Distance())
    sampler = md.Sampler(mechanism=planar_laplace_mechanism(problem))
    print(f"A trace with a limit of {n} reports")
    with tempfile.TemporaryDirectory() as folder:
        budget = md.sessions.Budget.create(Path(folder) / "ledger.json", limit=n)
        try:
            for secret in (0, 1, 1, *range(10, 64)):
                report = budget.report(sampler, secret)
                print(f"  cell {secret:2} reported as {int(report):2}: {report.attrs['cost']}")
        except md.errors.BudgetError as error:
            print(f"  cell {secret:2} refused: {error}")


if __name__ == "__main__":
    main()

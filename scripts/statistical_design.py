"""Compare mechanisms with one claim by the distribution estimated from their reports, on one small grid.

python scripts/statistical_design.py [--cells 4] [--epsilon 0.6]

criterion: N times the mean squared error of the distribution estimated from N reports, in the H^-1 norm, in squared
units. With half the criterion, half as many people give the same error. The loss is the mean distance from secret to
report, in units. Below rank n, no number of reports distinguishes some distributions. This can happen to a mechanism of
minimum expected distance.
"""

import argparse
import math

import mechdesign as md
from mechdesign.surveys.information import asymptotic_mse, channel_rank
from mechdesign.surveys.statistical_design import StatisticalDesign


def main() -> None:
    """Design for the criterion and for the distance, add closed forms, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=4, help="cells along each side")
    parser.add_argument("--epsilon", type=float, default=0.6, help="nats per unit, the side of a cell")
    options = parser.parse_args()

    domain = md.Domain.grid((options.cells, options.cells), cell=1.0, unit="1")
    metric = md.Euclidean(epsilon=options.epsilon, unit="1")
    problem = md.DesignProblem(domain=domain, metric=metric, prior=md.priors.uniform(domain), loss=md.losses.Distance())
    mechanisms = {
        "statistical design": md.solve(StatisticalDesign(problem=problem)),
        "minimum expected distance": md.solve(md.Optimal(problem=problem)),
        "geometric, clamped": md.baselines.geometric(problem),
        "exponential": md.baselines.exponential(problem),
        "randomized response": md.baselines.randomized_response(problem),
    }
    print(f"{domain.size} secrets, {options.epsilon:g} nats per cell, uniform truth")
    print(f"{'mechanism':26}{'criterion':>10}{'rank':>6}{'reports':>9}{'loss':>8}{'effective eps':>15}")
    for name, mechanism in mechanisms.items():
        value, attrs = asymptotic_mse(mechanism), mechanism.attrs
        criterion = "infinite" if math.isinf(value) else f"{value:.4g}"
        used_reports = int((md.probabilities(mechanism).max("secret") > 1e-6).sum())
        print(
            f"{name:26}{criterion:>10}{channel_rank(mechanism):>6}{used_reports:>9}"
            f"{attrs['expected_loss']:>8.3f}{attrs['ratio']:>15.4f}"
        )
    bound = mechanisms["statistical design"].attrs.get("lower_bound")
    if bound is not None:
        print(f"No mechanism with this claim has a criterion below {bound:.4g}.")


if __name__ == "__main__":
    main()

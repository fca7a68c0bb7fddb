"""Compare mechanisms with one claim by the distribution estimated from their reports, on one small grid.

python scripts/statistical_design.py [--cells 4] [--epsilon 0.6]

criterion: N times the mean squared error of the distribution that is estimated from N reports, in the H^-1 norm, in
squared units: half of it takes half as many people. Below rank n no number of reports distinguishes some
distributions. A mechanism of minimum expected distance can have such a rank. loss: mean distance from secret to report.
"""

import argparse
import math

import mechdesign as md
from mechdesign.surveys.information import asymptotic_mse, channel_rank
from mechdesign.surveys.statistical_design import StatisticalDesign


def main() -> None:
    """Design both ways, add the closed forms, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=4, help="cells along each side")
    parser.add_argument("--epsilon", type=float, default=0.6, help="nats per unit, the side of a cell")
    given = parser.parse_args()

    domain = md.Domain.grid((given.cells, given.cells), cell=1.0, unit="1")
    metric = md.Euclidean(epsilon=given.epsilon, unit="1")
    problem = md.DesignProblem(domain=domain, metric=metric, prior=md.priors.uniform(domain), loss=md.losses.Distance())
    made = {
        "statistical design": md.solve(StatisticalDesign(problem=problem)),
        "least expected distance": md.solve(md.Optimal(problem=problem)),
        "geometric, clamped": md.baselines.geometric(problem),
        "exponential": md.baselines.exponential(problem),
        "randomized response": md.baselines.randomized_response(problem),
    }
    print(f"{domain.size} secrets, {given.epsilon:g} nats a cell, uniform truth")
    print(f"{'mechanism':26}{'criterion':>10}{'rank':>6}{'reports':>9}{'loss':>8}{'effective eps':>15}")
    for name, mechanism in made.items():
        value, attrs = asymptotic_mse(mechanism), mechanism.attrs
        told = "infinite" if math.isinf(value) else f"{value:.4g}"
        seen = int((md.probabilities(mechanism).max("secret") > 1e-6).sum())
        print(
            f"{name:26}{told:>10}{channel_rank(mechanism):>6}{seen:>9}"
            f"{attrs['expected_loss']:>8.3f}{attrs['ratio']:>15.4f}"
        )
    bound = made["statistical design"].attrs.get("lower_bound")
    if bound is not None:
        print(f"No mechanism with this claim has a criterion below {bound:.4g}.")


if __name__ == "__main__":
    main()

"""Compare a statistical design on hundreds of cells with mechanisms of the literature, all at one claim.

python scripts/statistical_baselines.py [--cells 20] [--epsilon 0.6] [--reports 10000] [--repetitions 5]

The first table has the criterion: N times the mean squared H^-1 error of the distribution estimated from N reports at
the uniform truth, in squared cells. A star marks reports that are sets of secrets, with the inclusion estimator.
The second table has the earth mover's distance, in cells, from the truth to its estimate, averaged over repetitions.
The design does not know these truths. Estimates are by expectation maximization with its default stopping, and by
maximum likelihood; for a star by the inclusion estimator on the simplex.
"""

import argparse

import inclusions
import numpy as np

import mechdesign as md
from mechdesign.base.arrays import Indices, Vector
from mechdesign.closed_forms.planar_laplace import planar_laplace_mechanism
from mechdesign.surveys import frequency_estimation as forms
from mechdesign.surveys.information import asymptotic_mse
from mechdesign.surveys.statistical_design import StatisticalDesign

TABLES = ("subset_exponential", "disk_area", "hadamard_response")


def truths(cells: int, random: np.random.Generator) -> dict[str, Vector]:
    """Three distributions over (cells, cells): three hot spots, a few places only, the middle of Paris."""
    x, y = (np.indices((cells, cells)) + 0.5) / cells
    spots = sum(
        weight * np.exp(-((x - a) ** 2 + (y - b) ** 2) / (2 * width**2))
        for a, b, width, weight in ((0.25, 0.3, 0.07, 1.0), (0.7, 0.6, 0.1, 0.7), (0.4, 0.85, 0.05, 0.8))
    )
    sparse = random.gamma(0.15, size=(cells, cells))
    paris = np.asarray(md.load_problem("paris", prior="checkins").prior).reshape(30, 30)
    skip = (30 - min(cells, 30)) // 2
    middle = paris[skip : skip + cells, skip : skip + cells]
    densities = {"hot spots": spots + 0.01, "few places": sparse, "Paris": middle}
    return {name: (value / value.sum()).ravel() for name, value in densities.items() if value.size == cells**2}


def on_simplex(values: Vector) -> Vector:
    """The distribution nearest to numbers (n,)."""
    ordered = np.sort(values)[::-1]
    level = (np.cumsum(ordered) - 1) / np.arange(1, len(values) + 1)
    return np.asarray(np.maximum(values - level[np.flatnonzero(ordered > level)[-1]], 0.0))


def inclusion_shares(name: str, problem: md.DesignProblem, secrets: Indices, random: np.random.Generator) -> Vector:
    """The share of the reports of `secrets` (N,) that contain each secret, (n,)."""
    n = problem.domain.size
    level = float(problem.edges.length.min())
    if name == "unary_encoding":
        wrong = 1 / (np.exp(level) + 1)
        people = np.bincount(secrets, minlength=n)
        ones = random.binomial(people, 0.5) + random.binomial(len(secrets) - people, wrong)
        return np.asarray(ones / len(secrets))
    size = forms.subset_size(n, level)
    truthful = size * np.exp(level) / (size * np.exp(level) + n - size)
    count = np.zeros(n)
    for secret in secrets:
        others = random.permutation(n - 1)[: size - 1 if random.random() < truthful else size]
        count[others + (others >= secret)] += 1
        count[secret] += len(others) < size
    return count / len(secrets)


def main() -> None:
    """Make all mechanisms, print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=20, help="cells along each side")
    parser.add_argument("--epsilon", type=float, default=0.6, help="nats per cell")
    parser.add_argument("--reports", type=int, default=10_000, help="people, each of whom reports once")
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()

    domain = md.Domain.grid((options.cells, options.cells), cell=1.0, unit="1")
    metric = md.Euclidean(epsilon=options.epsilon, unit="1")
    problem = md.DesignProblem(domain=domain, metric=metric, prior=md.priors.uniform(domain), loss=md.losses.Distance())
    program = StatisticalDesign(problem=problem)
    mechanisms = {
        "statistical design": md.solve(program),
        "geometric, clamped": md.baselines.geometric(problem),
        "planar Laplace, clamped": planar_laplace_mechanism(problem),
        "exponential": md.baselines.exponential(problem),
        "randomized response": md.baselines.randomized_response(problem),
        **{name: md.baselines.FREQUENCY_ORACLES[name](problem) for name in TABLES},
    }
    sets: dict[str, inclusions.Inclusions] = {
        "subset_exponential, 2": inclusions.subset_exponential_inclusions(problem, subset=2),
        "subset_selection": inclusions.subset_selection_inclusions(problem),
        "unary_encoding": inclusions.unary_encoding_inclusions(problem),
    }
    print(f"{domain.size} secrets, {options.epsilon:g} nats per cell, uniform truth")
    print(f"{'mechanism':26}{'criterion':>11}{'reports':>9}{'effective eps':>15}")
    for name, mechanism in mechanisms.items():
        value, level = asymptotic_mse(mechanism), float(mechanism.attrs["ratio"])
        print(f"{name:26}{value:>11.4g}{mechanism.sizes['report']:>9}{level:>15.6f}", flush=True)
    for name, law in sets.items():
        print(f"{name + ' *':26}{law.mse(program.norm):>11.4g}{'sets':>9}{law.scale:>15.6f}", flush=True)

    random = np.random.default_rng(1)
    true_distributions = truths(options.cells, random)
    heads = "".join(f"{name:>13}" for name in true_distributions)
    print(f"earth mover's distance in cells, {options.reports:,} reports, {options.repetitions} repetitions")
    print(f"{'mechanism':26}{'stopped:':10}{heads}   likelihood:{heads}")
    for name in [*mechanisms, "subset_selection", "unary_encoding"]:
        distances = np.zeros((2, len(true_distributions), options.repetitions))
        for column, truth in enumerate(true_distributions.values()):
            for seed in range(options.repetitions):
                random = np.random.default_rng(seed)
                if name in mechanisms:
                    reported = truth @ md.probabilities(mechanisms[name]).values
                    counts = random.multinomial(options.reports, reported / reported.sum())
                    likeliest = md.surveys.maximum_likelihood(counts, mechanisms[name]).distribution
                    estimates = [md.surveys.expectation_maximization(counts, mechanisms[name]).distribution, likeliest]
                else:
                    secrets = random.choice(domain.size, options.reports, p=truth)
                    shares = inclusion_shares(name, problem, secrets, random)
                    estimates = [on_simplex(np.linalg.solve(sets[name].hit.T, shares))] * 2
                for which, estimate in enumerate(estimates):
                    distances[which, column, seed] = md.utility.kantorovich(estimate, truth, domain).value
        columns = ["".join(f"{value:>13.3f}" for value in row) for row in distances.mean(axis=2)]
        print(f"{name + (' *' if name in sets else ''):36}{columns[0]}              {columns[1]}", flush=True)


if __name__ == "__main__":
    main()

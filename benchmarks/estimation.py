"""Maximum likelihood of 900 secrets: Newton steps against the cvxpy statement and expectation maximization.

python benchmarks/estimation.py [--reports 750 5000 20000] [--seconds 3] [--repeats 3]

30 x 30 cells of 150 m, reports of secrets from a mixture of 14 hot spots, one thread. `statement` is the program as
cvxpy hands it to Clarabel at its default tolerances, run once, statement included; `auto` is maximum_likelihood, the
closed form for randomized response; `newton` its Newton steps; both are medians. `accelerated` and `plain` are
expectation maximization for `--seconds`. gap: the proved bound on what the log-likelihood lacks, in nats per report, by
the same certificate for every route. ratio: seconds of the statement / seconds of the route, in one run.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from mechdesign.closed_forms.mechanisms import geometric, planar_laplace, randomized_response
from mechdesign.programs.statistical.likelihood import CertifiedPoint, Likelihood
from mechdesign.setting.metric.euclidean import Euclidean
from mechdesign.setting.objective import priors
from mechdesign.setting.objective.losses import Distance
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.setting.space.domain import Domain
from mechdesign.solvers.statistical.em import updates
from mechdesign.solvers.statistical.likelihood import solve_likelihood

CELLS, CELL = 30, 150.0  # per axis, and in m
GEOMETRIC, LAPLACE = 0.0040154449, 0.004136012  # nats per m: 450 m from secret to report in the mean, uniform prior
RESPONSE = 8.24041  # nats: the same distance
SPOTS = 14


def tables() -> dict[str, NDArray[np.float64]]:
    """P(y|u) (900, 900) of the three mechanisms."""
    domain = Domain.grid((CELLS, CELLS), cell=CELL, unit="m")
    metric = Euclidean(epsilon=GEOMETRIC, unit="m")
    problem = DesignProblem(domain=domain, metric=metric, prior=priors.uniform(domain), loss=Distance())
    return {
        "geometric": geometric.normalised_table(problem, GEOMETRIC),
        "Laplace": planar_laplace.table(problem, LAPLACE),
        "randomized response": randomized_response.table(domain.size, RESPONSE),
    }


def hot_spots(random: np.random.Generator) -> NDArray[np.float64]:
    """A prior of Gaussian hot spots 1 to 4 cells wide, (900,)."""
    places = np.stack(np.meshgrid(*[np.arange(CELLS)] * 2, indexing="ij"), axis=-1).reshape(-1, 2)
    centre, width = random.uniform(0, CELLS, (SPOTS, 2)), random.uniform(1, 4, SPOTS)
    square = ((places[:, None] - centre) ** 2).sum(axis=-1)
    density = (random.dirichlet(np.ones(SPOTS)) * np.exp(-square / (2 * width**2)) / width**2).sum(axis=1)
    return np.asarray(density / density.sum())


def stated(program: Likelihood) -> CertifiedPoint:
    """The statement, solved and judged."""
    statement = program.statement()
    statement.solve(solver="CLARABEL")
    return program.judge(np.maximum(statement.variables()[0].value, 0))


def updated(program: Likelihood, *, accelerate: bool, seconds: float) -> CertifiedPoint:
    """The point of the least gap of expectation maximization within so many seconds."""
    end = time.perf_counter() + seconds
    points = updates(program, np.ones(program.size), accelerate=accelerate)
    best = next(points)
    while time.perf_counter() < end:
        best = min(best, next(points), key=lambda point: point.gap)
    return best


def timed(route: Callable[[Likelihood], CertifiedPoint], table: NDArray[np.float64], counts: NDArray[np.int64]):
    """The judged point of a route on a program of its own, and the seconds it took."""
    started = time.perf_counter()
    point = route(Likelihood(table=table, counts=counts))
    return point, time.perf_counter() - started


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reports", type=int, nargs="*", default=[750, 5_000, 20_000])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    once = {
        "statement": stated,
        "accelerated": partial(updated, accelerate=True, seconds=given.seconds),
        "plain": partial(updated, accelerate=False, seconds=given.seconds),
    }
    often = {
        "auto": lambda program: solve_likelihood(program).point,
        "newton": lambda program: solve_likelihood(program, route="newton").point,
    }
    random = np.random.default_rng(0)
    prior = hot_spots(random)
    printed = Table("mechanism", "reports", "route", "seconds", "gap", "log-likelihood", "ratio")
    for name, table in tables().items():
        for reports in given.reports:
            counts = random.multinomial(reports, prior @ table)
            runs = {route: [timed(call, table, counts)] for route, call in once.items()}
            runs |= {route: [timed(call, table, counts) for _ in range(given.repeats)] for route, call in often.items()}
            base = runs["statement"][0][1]
            top = runs["newton"][0][0]
            for route, found in runs.items():
                point, seconds = found[0][0], float(np.median([run[1] for run in found]))
                if not point.log_likelihood <= top.log_likelihood + top.gap:
                    raise SystemExit(f"{name}, {reports} reports: {route} is above the bound")
                figures = f"{seconds:.3f}", f"{point.gap:.1e}", f"{point.log_likelihood:.9f}", f"{base / seconds:.0f}"
                printed.add_row(name, str(reports), route, *figures)
    Console(width=110).print(printed)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()

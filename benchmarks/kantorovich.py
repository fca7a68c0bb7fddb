"""How fast certified Kantorovich distances are, beside POT on the same reduced problem.

python benchmarks/kantorovich.py [--sizes 30 50 70 100] [--kinds sparse smooth dirichlet] [--pairs 3]
                                 [--limit 300]

n x n cells of 150 m. sparse: 750 check-ins drawn from a mixture of Gaussians against n^2 / 9 spikes of random height;
smooth: two mixtures of six Gaussians; dirichlet: two draws from the uniform distribution over distributions. Every pair
runs in one process per route that is stopped after --limit seconds, one thread, compiled code loaded before. Seconds
are those of the processor, which other work disturbs less; the mean of the pairs, and the ratio of the means. POT gets
what has to move only, and its time leaves the certificate out: it is that of its distances and `ot.emd2`. Ours has
everything in it: distances, certificate and checks.
"""

import argparse
import multiprocessing
import queue
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

import mechdesign as md
from mechdesign.utility.population.kantorovich import kantorovich

KINDS = ("sparse", "smooth", "dirichlet")
CELL = 150.0
Route = Callable[[np.ndarray, np.ndarray, md.Domain], tuple[float, float, float]]


def mixture(side: int, random: np.random.Generator) -> np.ndarray:
    """A mixture of six Gaussians over side x side cells."""
    x, y = np.divmod(np.arange(side**2), side)
    weights = np.zeros(side**2)
    for _ in range(6):
        centre, width = random.uniform(0, side, 2), random.uniform(0.05, 0.25) * side
        weights += random.random() * np.exp(-((x - centre[0]) ** 2 + (y - centre[1]) ** 2) / (2 * width**2))
    return weights / weights.sum()


def pair(kind: str, side: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two distributions over side x side cells."""
    random, places = np.random.default_rng(seed), side**2
    if kind == "smooth":
        return mixture(side, random), mixture(side, random)
    if kind == "dirichlet":
        return random.dirichlet(np.ones(places)), random.dirichlet(np.ones(places))
    visits = np.bincount(random.choice(places, 750, p=mixture(side, random)), minlength=places) / 750
    spikes = np.zeros(places)
    chosen = random.choice(places, places // 9, replace=False)
    spikes[chosen] = random.dirichlet(np.ones(len(chosen)))
    return visits, spikes


def by_pot(p: np.ndarray, q: np.ndarray, domain: md.Domain) -> tuple[float, float, float]:
    """Seconds, value, and no gap: POT's on the places where p and q differ."""
    import ot

    started = time.process_time()
    more, less = np.flatnonzero(p > q), np.flatnonzero(p < q)
    supply, demand = (p - q)[more], (q - p)[less]
    total = supply.sum()
    cost = np.hypot(*(domain.points[more][:, None] - domain.points[less]).transpose(2, 0, 1))
    value = ot.emd2(supply / total, demand / demand.sum(), cost, numItermax=10**9, numThreads=1) * total
    return time.process_time() - started, float(value), np.nan


def ours(p: np.ndarray, q: np.ndarray, domain: md.Domain) -> tuple[float, float, float]:
    """Seconds, value and certified relative gap."""
    started = time.process_time()
    found = kantorovich(p, q, domain)
    return time.process_time() - started, found.value, found.gap


def work(route: Route, kind: str, side: int, pairs: int, answers: multiprocessing.Queue) -> None:
    """Put one (seconds, value, gap) per pair; small pairs first, which load the compiled code."""

    def one(p: np.ndarray, q: np.ndarray, side: int) -> tuple[float, float, float]:
        domain = md.Domain.grid((side, side), cell=CELL, unit="m")
        return route(p, q, domain)

    for seed in range(2):
        one(*pair(kind, 15, seed), 15)
    for seed in range(pairs):
        answers.put(one(*pair(kind, side, seed), side))


def within(route: Route, kind: str, side: int, pairs: int, limit: float) -> list[tuple[float, float, float]]:
    """The answers of a process that is stopped when the next is not there in `limit` seconds."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=work, args=(route, kind, side, pairs, answers))
    process.start()
    found = []
    try:
        for _ in range(pairs):
            found.append(answers.get(timeout=limit))
    except queue.Empty:
        process.kill()
    process.join()
    return found


def main() -> None:
    """Run and print, row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[30, 50, 70, 100])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one pair")
    given = parser.parse_args()
    table = Table("cells", "kind", "seconds", "POT seconds", "ratio", "largest gap", "largest difference")
    for side in given.sizes:
        for kind in given.kinds:
            pot, own = (
                np.array(within(route, kind, side, given.pairs, given.limit)).reshape(-1, 3) for route in (by_pot, ours)
            )
            both = min(len(pot), len(own))
            table.add_row(
                f"{side} x {side}",
                kind,
                shown(own, given.pairs, given.limit),
                shown(pot, given.pairs, given.limit),
                f"{own[:, 0].sum() / pot[:, 0].sum():.2f}" if both == given.pairs else "-",
                f"{own[:, 2].max():.1e}" if len(own) else "-",
                f"{abs(own[:both, 1] / pot[:both, 1] - 1).max():.1e}" if both else "-",
            )
            Console(width=150).print(" ".join(str(list(column.cells)[-1]) for column in table.columns))
    Console(width=150).print(table)


def shown(found: np.ndarray, pairs: int, limit: float) -> str:
    """Mean seconds a pair, or that the limit ended it."""
    return f"{found[:, 0].mean():.3f}" if len(found) == pairs else f"stopped at {limit:.0f}"


if __name__ == "__main__":
    main()

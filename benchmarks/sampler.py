"""Reports of a table: alias tables in whole numbers against binary search, and against numpy in floating point.

python benchmarks/sampler.py [--cells 30] [--draws 1000000] [--repeats 5]

Bits come from the operating system, except for numpy.choice, which is neither exact nor unpredictable. The answers are
mean report numbers: they agree to a hundredth. The factored form is timed by benchmarks/sampling.py.
"""

import argparse
import os
import time

import numpy as np
from paired import paired
from rich.console import Console
from rich.table import Table

import mechdesign as md
from mechdesign.closed_forms.mechanisms import exponential
from mechdesign.mechanism.sampling.sampler import Scan

CALLS = 300  # live reports of one secret
SCANS: tuple[Scan, ...] = ("table", "row")


def main() -> None:
    """Print a table for one secret, one for all, and the microseconds of live reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=30)
    parser.add_argument("--draws", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    mechanism = exponential.mechanism(md.load_problem("flat", cells=given.cells))
    started = time.perf_counter()
    sampler = md.Sampler(mechanism=mechanism)
    console = Console(width=100)
    proof = time.perf_counter() - started
    n, mass = len(sampler.mass), sampler.mass
    generator = np.random.default_rng()

    def floating(secrets: list[int], each: int) -> float:
        rows = md.probabilities(mechanism).values[secrets]
        rows /= rows.sum(axis=1, keepdims=True)
        return float(np.mean([generator.choice(n, each, p=row) for row in rows]))

    def searched(secrets: list[int], each: int) -> float:
        drawn = []
        for secret in secrets:
            x = np.frombuffer(os.urandom(8 * each), np.uint64) >> np.uint64(2)
            drawn.append(np.searchsorted(np.cumsum(mass[secret]), x, side="right"))
        return float(np.mean(drawn))

    for secrets in ([n // 2], list(range(n))):
        each = given.draws // len(secrets)
        routes = {
            "numpy.choice": lambda s=secrets, k=each: floating(s, k),
            "searchsorted": lambda s=secrets, k=each: searched(s, k),
            "alias": lambda s=secrets, k=each: float(sampler.sample(s, k).mean()),
        }
        paired(f"{len(secrets)} of {n} secrets, {each} reports each", routes, repeats=given.repeats, agree=0.01)

    table = Table("live report, scan of the", *(f"secret {u}, us" for u in (0, n // 2, n - 1)))
    for scan in SCANS:
        table.add_row(scan, *(f"{microseconds(sampler, u, scan):.0f}" for u in (0, n // 2, n - 1)))
    console.print(table, f"proof, once: {proof:.3f} s")


def microseconds(sampler: md.Sampler, secret: int, scan: Scan) -> float:
    """Median over calls, labels included."""
    seconds = []
    for _ in range(CALLS):
        started = time.perf_counter()
        sampler.report(secret, scan=scan)
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds)) * 1e6


if __name__ == "__main__":
    main()

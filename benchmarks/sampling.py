"""How fast exact reports are drawn from a factored mechanism, and whether they follow the row.

python benchmarks/sampling.py [FILE.nc | --cells 200]

FILE: a mechanism that `mechdesign solve --method factored -o FILE.nc` wrote; without one, a quick design of so many
cells. Bits come from the operating system. The baseline takes as long as numpy needs to draw as many from the row in
floating point, which is not exact. Chi-square: reports expected less than five times are counted together.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import chisquare

import mechdesign as md

FROM_ONE, SECRETS, FROM_EACH = 1_000_000, 1000, 100


def main() -> None:
    """Draw and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--cells", type=int, default=200)
    given = parser.parse_args()
    if given.file is None:
        problem = md.load_problem("philadelphia", cells=given.cells, stencil=16)
        dataset = md.solve(md.EikonalWeights(problem=problem), method="factored", rounds=5)
    else:
        dataset = md.load(given.file)
    mechanism = md.FactoredMechanism(dataset=dataset)
    mechanism.sample(0, 10)
    middle = mechanism.size // 2
    row = mechanism.row(middle).values

    started = time.perf_counter()
    drawn = mechanism.sample(middle, FROM_ONE)[0]
    one = time.perf_counter() - started
    started = time.perf_counter()
    np.random.default_rng().choice(len(row), FROM_ONE, p=row / row.sum())
    floating = time.perf_counter() - started
    chosen = np.random.default_rng(0).choice(mechanism.size, min(SECRETS, mechanism.size), replace=False)
    started = time.perf_counter()
    mechanism.sample(chosen, FROM_EACH)
    many = time.perf_counter() - started

    common = row * FROM_ONE >= 5
    seen = np.bincount(drawn, minlength=len(row))
    observed, expected = np.append(seen[common], seen[~common].sum()), np.append(row[common], row[~common].sum())
    test = chisquare(observed, expected / expected.sum() * FROM_ONE)
    table = Table("what", "draws", "seconds", "draws a second")
    for what, draws, seconds in (
        (f"one secret of {mechanism.size}", FROM_ONE, one),
        ("the same in floating point (numpy)", FROM_ONE, floating),
        (f"{len(chosen)} secrets, {FROM_EACH} each", len(chosen) * FROM_EACH, many),
    ):
        table.add_row(what, f"{draws:,}", f"{seconds:.3f}", f"{draws / seconds:,.0f}")
    Console(width=100).print(table, f"chi-square over {len(observed)} groups: p = {test.pvalue:.3f}")


if __name__ == "__main__":
    main()

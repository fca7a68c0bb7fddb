"""What the optimal program costs as it grows: seconds, peak memory and certified gap, each case in its own process.

python benchmarks/sizes.py [--only NAME ...]

Philadelphia, 8 neighbours. "hard" cases stretch the map over a smaller square, so that an edge is as short as 0.2 nats;
there the optimum is far from eikonal and most of a table is free. Euclidean cases are libqif's: all pairs, eps = 1 per
cell, expected distance. Seconds include start-up and compiled-code loading; peak memory is that of the process.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

CASES = {
    "35 x 35": ["philadelphia", "--cells", "35", "--gap", "1e-4"],
    "50 x 50": ["philadelphia", "--cells", "50", "--gap", "1e-3"],
    "70 x 70": ["philadelphia", "--cells", "70", "--gap", "1e-3"],
    "100 x 100": ["philadelphia", "--cells", "100", "--gap", "3e-3"],
    "hard, 20 x 20 of 0.5": ["philadelphia", "--cells", "20", "--extent", "10", "--gap", "1e-3"],
    "hard, 35 x 35 of 1": ["philadelphia", "--cells", "35", "--extent", "35", "--gap", "1e-2"],
    "euclidean 10 x 10": ["euclidean", "--cells", "10", "--loss", "distance", "--gap", "1e-6"],
    "euclidean 12 x 12": ["euclidean", "--cells", "12", "--loss", "distance", "--gap", "1e-4"],
    "euclidean 15 x 15": ["euclidean", "--cells", "15", "--loss", "distance", "--gap", "1e-4"],
}


def main() -> None:
    """Run the cases and print a row each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(CASES), choices=list(CASES))
    given = parser.parse_args()
    console = Console(width=110)
    table = Table("case", "seconds", "peak MB", "lower bound", "loss", "gap", "stopped")
    for name in given.only:
        command = [str(Path(sys.executable).parent / "mechdesign"), "solve", *CASES[name], "--json"]
        console.print(f"{name}: mechdesign {' '.join(command[1:])}", style="dim")
        done = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        bounds = f"{done['lower_bound']:.7g}", f"{done['loss']:.7g}", f"{done['gap']:.1e}"
        table.add_row(name, f"{done['seconds']:.1f}", f"{done['peak_mb']:.0f}", *bounds, done["stopped"])
    console.print(table)


if __name__ == "__main__":
    main()

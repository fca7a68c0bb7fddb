"""What the optimal program costs as it grows: seconds, peak memory and certified gap, each case in its own process.

python benchmarks/sizes.py [--only NAME ...]

Philadelphia, 8 neighbours; 100 x 100 and 200 x 200 cells by pools of columns. "hard" cases stretch the map over a
smaller square, so that an edge is as short as 0.2 nats; there the optimum is far from eikonal and most of a table is
free. Euclidean cases are libqif's: all pairs, eps = 1 per cell, expected distance. "bumps" are seeded maps of nine
Gaussian bumps with edges of 0.2 to 1.4 nats, "points" are scattered places in a square of 2 km with all their pairs at
0.01 per m, "roads" are synthetic networks at 0.003 per m.
"minimax" asks for the smallest worst-case loss. "eikonal" cases are factored mechanisms with their bounds, the last on
10,000 crossings at 0.01 per m. Seconds include start-up and compiled-code loading; peak memory is that of the process.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

BUMPS = ["--slope", "1e-5", "--floor", "0.04", "--gap", "1e-3"]
ROADS = ["--epsilon", "0.003", "--gap", "1e-3"]
EIKONAL = ["--program", "eikonal", "--method", "factored"]
CASES = {
    "35 x 35": ["philadelphia", "--cells", "35", "--gap", "1e-4"],
    "50 x 50": ["philadelphia", "--cells", "50", "--gap", "1e-3"],
    "70 x 70": ["philadelphia", "--cells", "70", "--gap", "1e-3"],
    "100 x 100": ["philadelphia", "--cells", "100", "--gap", "5e-3"],
    "200 x 200": ["philadelphia", "--cells", "200", "--gap", "1e-2"],
    "hard, 20 x 20 of 0.5": ["philadelphia", "--cells", "20", "--extent", "10", "--gap", "1e-3"],
    "hard, 35 x 35 of 1": ["philadelphia", "--cells", "35", "--extent", "35", "--gap", "1e-2"],
    "euclidean 10 x 10": ["euclidean", "--cells", "10", "--loss", "distance", "--gap", "1e-6"],
    "euclidean 12 x 12": ["euclidean", "--cells", "12", "--loss", "distance", "--gap", "1e-4"],
    "euclidean 15 x 15": ["euclidean", "--cells", "15", "--loss", "distance", "--gap", "1e-4"],
    **{f"bumps {seed}": ["philadelphia", "--cells", "20", "--raster", f"{seed}.asc", *BUMPS] for seed in range(3)},
    **{f"roads {count}": ["streets", "--nodes", count, *ROADS] for count in ("300", "500")},
    "minimax 15 x 15": ["philadelphia", "--cells", "15", "--program", "minimax", "--gap", "1e-3"],
    **{f"eikonal {cells}": ["philadelphia", "--cells", cells, *EIKONAL] for cells in ("50", "70", "100", "150", "200")},
    "eikonal 200, 16 neighbours": ["philadelphia", "--cells", "200", "--stencil", "16", *EIKONAL],
    "eikonal 10,000 crossings": ["streets", "--nodes", "10000", "--loss", "straight", *EIKONAL],
    **{f"points {count}": [f"points_{count}.py", "--gap", "1e-3"] for count in (60, 100, 150, 200, 300)},
}
POINTS = """import numpy as np
from mechdesign import DesignProblem, Domain, Euclidean
from mechdesign.losses import Distance


def problem(seed: int = 0) -> DesignProblem:
    places = np.random.default_rng(seed).uniform(0, 2000, ({count}, 2))
    return DesignProblem(domain=Domain.points_at(places, unit="m"), metric=Euclidean(epsilon=0.01, unit="m"),
                         prior=np.full({count}, 1 / {count}), loss=Distance())
"""


def write_inputs(folder: Path) -> None:
    """The rasters of the bump maps and the problem files of scattered places."""
    for seed in range(3):
        rng, place = np.random.default_rng(seed), np.linspace(0, 100, 24)
        x, y = np.meshgrid(place, place)
        total = np.zeros((24, 24))
        for _ in range(9):
            a, b = rng.uniform(0, 100, 2)
            width = rng.uniform(4, 12)
            total += rng.uniform(0.2, 1) * np.exp(-((x - a) ** 2 + (y - b) ** 2) / (2 * width**2))
        head = f"ncols 24\nnrows 24\nxllcenter 0\nyllcenter 0\ncellsize {100 / 23:.17g}\n"
        rows = (" ".join(f"{value:.6g}" for value in row) for row in (total * 16_000 / total.max())[::-1])
        (folder / f"{seed}.asc").write_text(head + "\n".join(rows) + "\n")
    for count in (60, 100, 150, 200, 300):
        (folder / f"points_{count}.py").write_text(POINTS.replace("{count}", str(count)))


def main() -> None:
    """Run the cases and print a row each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(CASES), choices=list(CASES))
    given = parser.parse_args()
    console = Console(width=110)
    table = Table("case", "seconds", "peak MB", "lower bound", "loss", "gap", "stopped")
    folder = tempfile.TemporaryDirectory()
    write_inputs(Path(folder.name))
    for name in given.only:
        command = [sys.executable, "-m", "mechdesign", "solve", *CASES[name], "--json"]
        console.print(f"{name}: mechdesign {' '.join(command[3:])}", style="dim")
        done = json.loads(
            subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=folder.name).stdout
        )
        bounds = f"{done['lower_bound']:.7g}", f"{done['loss']:.7g}", f"{done['gap']:.1e}"
        table.add_row(name, f"{done['seconds']:.1f}", f"{done['peak_mb']:.0f}", *bounds, done["stopped"])
    console.print(table)


if __name__ == "__main__":
    main()

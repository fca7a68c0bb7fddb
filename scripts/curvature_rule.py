"""Compare the condition Laplacian(log eps) <= eps^2 for weights w >= 0 of Algorithm 1 with exact weights.

python scripts/curvature_rule.py [--cells 50]

Koufogiannis & Pappas 2016 leave the condition open. Here K w = 1 is solved exactly on smooth, sharp and real maps.
"""

import argparse
from functools import partial

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table

import mechdesign as md

HEADINGS = (
    "eps h, nats", "negative", "rings", "border", "inside", "predicted", "both", "correlation", "slope"
)  # fmt: skip
READING = (
    "negative: cells with w < 0. border: those in the rings within a nat of the border. On flat maps all are there if "
    "eps h >= 0.15.",
    "inside: negative cells elsewhere. predicted: cells elsewhere where the condition fails. both: cells in both.",
    "slope: of exact weights against local weights. It is low where eps h > 1.",
    "Philadelphia is bilinear: between its kinks Laplacian(log eps) = -|grad log eps|^2. So it fails at kinks "
    "only, where second differences grow as 1 / h. At 100 units the condition fails at",
)


def hill(cells: int, steepness: float) -> md.DesignProblem:
    """A round hill of eps from 0.4 to 2 nats per unit on 25 x 25 units, halfway up at radius 8."""
    domain = md.Domain.grid((cells, cells), cell=25 / cells, unit="1")
    rise = 1 / (1 + np.exp(steepness * (np.hypot(*(domain.points - 12.5).T) - 8)))
    level = md.PrivacyLevel.from_values(domain, (0.4 + 1.6 * rise).reshape(cells, cells))
    metric, prior = md.Eikonal(level=level, stencil=16), md.priors.uniform(domain)
    return md.DesignProblem(domain=domain, metric=metric, prior=prior, loss=md.losses.SquaredDistance())


def main() -> None:
    """Solve each map, count negative weights and predictions, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=50)
    cells, read = parser.parse_args().cells, partial(md.load_problem, "philadelphia", stencil=16)
    maps = {"smooth hill": hill(cells, 0.5), "sharp hill": hill(cells, 2.0)}
    maps |= {f"Philadelphia, {side}": read(cells=cells, extent=side) for side in (100, 50, 25)}
    table = Table("map", *(Column(name, justify="right") for name in HEADINGS), box=SIMPLE_HEAD)
    for name, problem in maps.items():
        diagnosis, steps = md.diagnosis(problem), problem.metric.level_at(problem.domain) * problem.domain.cell[0]
        inside = diagnosis.isel(secret=np.flatnonzero(diagnosis["ring"] >= diagnosis.attrs["border_rings"]))
        negative, predicted = inside["negative"] == 1, inside["predicted"] == 1
        counts = [int(x.sum()) for x in (diagnosis["negative"], negative, predicted, negative & predicted)]
        rings = diagnosis.attrs["border_rings"]
        row = f"{steps.min():.2f} to {steps.max():.2f}", counts[0], rings, counts[0] - counts[1]
        pair = inside["local_weight"], inside["weight"]
        fit = f"{np.corrcoef(*pair)[0, 1]:.3f}", f"{np.polyfit(*pair, 1)[0]:.3f}"
        table.add_row(name, *map(str, (*row, *counts[1:], *fit)))
    finer = [(k, md.diagnosis(read(cells=k))) for k in (100, 200, 400)]
    failures = ", ".join(f"{diagnosis.attrs['cells_with_excess']} of {k} x {k} cells" for k, diagnosis in finer)
    Console(width=118).print(table, *(f"- {line}" for line in READING), f"  {failures}.", sep="\n")


if __name__ == "__main__":
    main()

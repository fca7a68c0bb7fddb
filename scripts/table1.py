"""Table I of paper 000 beside ours: on one grid, and along a refinement curve.

python scripts/table1.py [--cells 15] [--refine 10 15 20 25]
"""

import argparse

from rich.console import Console
from rich.table import Table

import mechdesign as md
from mechdesign.closed_forms import planar_laplace
from mechdesign.problem_files import read_problem_file
from mechdesign.reports.summary import within_cell_error

DIFFERENCES = (
    "Laplace: 6 / 0.4^2 = 37.5 is the continuous mechanism at the floor of the map; ours agrees to the printed digits. "
    "On a grid the same mechanism pays for snapping to cells and gains from the border, which cuts noise off.",
    "Eikonal: the paper's 5.78 is at 200 x 200 on GRUMPv1 data. The loss between cell centres grows with refinement, "
    "because coarse cells hide noise smaller than a cell; add the within-cell error to compare grids.",
    "Optimal: the paper's 1.37 is at 35 x 35, set against an eikonal mechanism at 200 x 200, so most of that "
    "difference is the grid. On one grid the optimum is within a few percent of the eikonal mechanism: the bounds "
    "prove it. We know of no private discretization that gives 1.37 at 35 x 35.",
)


def main() -> None:
    """Print both tables and the reasons for the differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=15)
    parser.add_argument("--refine", type=int, nargs="*", default=[10, 15, 20, 25])
    given = parser.parse_args()
    console, file = Console(width=118), read_problem_file("philadelphia")
    printed = file.module.published()

    ours = {row["mechanism"]: row for row in md.compare(file.build(cells=given.cells))}
    table = Table("mechanism", "paper 000", f"ours, {given.cells} x {given.cells}", "lower bound", "effective eps")
    for name, figure in printed.items():
        row = ours[name]
        bound = "-" if row["lower_bound"] is None else f"{row['lower_bound']:.6g}"
        table.add_row(name, figure, f"{row['loss']:.6g}", bound, f"{row['effective_epsilon']:.4f}")
    console.print(table)
    console.print(f"continuous Laplace mechanism at eps = 0.4: {planar_laplace.mean_squared_error(0.4):.4g}")

    curve = Table("cells", "eikonal", "optimal", "lower bound", "eikonal / bound", "within-cell error")
    for cells in given.refine:
        problem = file.build(cells=cells)
        eikonal, optimal = (
            md.solve(program) for program in (md.EikonalWeights(problem=problem), md.Optimal(problem=problem))
        )
        losses = eikonal.attrs["expected_loss"], optimal.attrs["expected_loss"], optimal.attrs["lower_bound"]
        error = within_cell_error(optimal)
        curve.add_row(str(cells), *(f"{x:.6g}" for x in losses), f"{losses[0] / losses[2]:.4f}", f"{error:.4g}")
    console.print(curve)
    for sentence in DIFFERENCES:
        console.print(f"- {sentence}")


if __name__ == "__main__":
    main()

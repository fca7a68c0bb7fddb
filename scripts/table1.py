"""Compare Table I of Koufogiannis & Pappas 2016 with ours, under refinement, and with a lower discretization.

python scripts/table1.py [--cells 15] [--refine 10 15 20 25] [--average 20 25 30 35]
python scripts/table1.py --sizes 35 70 100 200 [--stencils 8 16] [--gap 1e-2] [--time-limit SECONDS]

--sizes compares the planar Laplace, the eikonal and the optimal mechanism on each of these grids, and prints rows when
they are ready. --gap and --time-limit (seconds) are the stopping criteria of each optimal program. 200 x 200 cells take
hours of a core.
"""

import argparse
import math
from dataclasses import replace

import numpy as np
import xarray as xr
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table

import mechdesign as md
from mechdesign.closed_forms.lattice_noise import displacements, lattice_problem
from mechdesign.closed_forms.planar_laplace import cell_masses, mean_squared_error
from mechdesign.evaluation.remap import remapped_loss
from mechdesign.mechanism.certificate import violations
from mechdesign.output.reports.solve import within_cell_error
from mechdesign.problem.problem_files import ProblemFile, read_problem_file

FLOOR = 0.4  # nats per km, the smallest level of the map and the level of the continuous Laplace mechanism
FREE_NATS = 30.0  # of an edge that the edge average does not bind: it allows a loss of e^-30 of the largest
SIZES = "{:>11} {:>10} {:>17} {:>17} {:>17} {:>9} {:>11} {:>15}"

READING = (
    "Laplace: 6 / 0.4^2 = 37.5 is the continuous mechanism at the floor of the map; ours agrees to the printed digits. "
    "On a grid the same mechanism loses by rounding to cells and gains at the border, which cuts off noise.",
    "Eikonal: the paper's 5.78 is at 200 x 200 on GRUMPv1 data. The loss between cell centres grows with refinement, "
    "because coarse cells hide noise smaller than a cell. Add the within-cell error to compare grids.",
    "Optimal: the paper compares 1.37 at 35 x 35 with an eikonal mechanism at 200 x 200, so much of the difference is "
    "the grid. On one grid the bounds prove the optimum within a few percent of the eikonal mechanism. At 35 x 35 of "
    "this map (last table) no mechanism private on the 8-neighbour graph has a loss as low as 1.37.",
    "Edge average: |g(u) - g(v)| <= d (g(u) + g(v)) / 2 is a natural discretization of ||grad g|| <= eps g, with d the "
    "line integral of eps along the edge. It does go below 1.37, but it is not private. An edge of d nats may have a "
    "log-ratio of 2 atanh(d / 2) > d, and an edge of 2 nats or more is free. If every edge is free, it reports the "
    "truth. The certificate counts the (edge, direction, report) triples that break the claim.",
    "Open: which discretization the paper solved, and on which data. It states neither scheme nor tolerance, GRUMPv1 "
    "is not shipped here, and no discretization that we tried gives 1.37. That the edge average goes as low does not "
    "show that the paper used it. Rounding to a cell costs h^2 / 6 = 1.361 at 35 x 35: this is close, but does not "
    "explain 1.37 either. We do not aim at 1.37.",
)


def main() -> None:
    """Print the three tables and notes on them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=15)
    parser.add_argument("--refine", type=int, nargs="*", default=[10, 15, 20, 25])
    parser.add_argument("--average", type=int, nargs="*", default=[20, 25, 30, 35])
    parser.add_argument("--sizes", type=int, nargs="*", default=[])
    parser.add_argument("--stencils", type=int, nargs="*", default=[8, 16])
    parser.add_argument("--gap", type=float, default=1e-2)
    parser.add_argument("--time-limit", type=float, default=math.inf)
    options = parser.parse_args()
    console, file = Console(width=118), read_problem_file("philadelphia")
    if options.sizes:
        _print_sizes(file, options)
        return

    ours = {row["mechanism"]: row for row in md.compare(file.build(cells=options.cells)).to_dict("records")}
    table = _table("mechanism", "published", f"ours, {options.cells} x {options.cells}", "lower bound", "ratio")
    for name, published in file.module.published().items():
        figures = (f"{ours[name][figure]:.6g}" for figure in ("loss", "lower_bound", "ratio"))
        table.add_row(name, published, *figures)
    console.print(table, f"continuous Laplace mechanism at eps = 0.4: {mean_squared_error(0.4):.4g}")

    curve = _table("cells", "eikonal", "optimal", "lower bound", "eikonal / bound", "within-cell error")
    for cells in options.refine:
        problem = file.build(cells=cells)
        eikonal, optimal = md.solve(md.EikonalWeights(problem=problem)), md.solve(md.Optimal(problem=problem))
        losses = eikonal.attrs["expected_loss"], optimal.attrs["expected_loss"], optimal.attrs["lower_bound"]
        figures = *(f"{x:.6g}" for x in losses), f"{losses[0] / losses[2]:.4f}"
        curve.add_row(str(cells), *figures, f"{within_cell_error(optimal):.4g}")
    console.print(curve)

    lower = _table("cells", "edge average", "bound if private", "free edges", "triples broken")
    for cells in options.average:
        problem = file.build(cells=cells)
        average, bound = md.solve(edge_average(problem)), md.solve(md.EikonalWeights(problem=problem))
        triples = 2 * len(problem.edges.tail) * problem.reports.size
        broken = violations(average["mass"].values, problem.edges) / triples
        free = f"{(problem.edges.length >= 2).mean():.1%}"
        losses = f"{average.attrs['expected_loss']:.4f}", f"{bound.attrs['lower_bound']:.4g}"
        lower.add_row(str(cells), *losses, free, f"{broken:.2%}")
    console.print(lower, *(f"- {sentence}\n" for sentence in READING), sep="\n")


def edge_average(problem: md.DesignProblem) -> md.DesignProblem:
    """The problem whose optimum solves the edge average: edges of 2 atanh(d / 2) nats, at most `FREE_NATS`."""
    edges = problem.edges
    half = np.minimum(edges.length / 2, math.tanh(FREE_NATS / 2))
    return replace(problem, metric=md.Graph(tail=edges.tail, head=edges.head, length=2 * np.arctanh(half)))


def _print_sizes(file: ProblemFile, options: argparse.Namespace) -> None:
    names = "Laplace, clamped", "eikonal, remapped", "optimal, remapped", "bound", "optimal gap", "eikonal / bound"
    print(SIZES.format("cells", "neighbours", *names))
    print(SIZES.format("published", "", *file.module.published().values(), "", "", ""), flush=True)
    for cells in options.sizes:
        for stencil in options.stencils:
            problem = file.build(cells=cells, stencil=stencil)
            # The choice of methods makes a table of small grids, where exact weights lose less than factored ones.
            eikonal = md.solve(md.EikonalWeights(problem=problem), bound=False)
            optimal = md.solve(md.Optimal(problem=problem), gap=options.gap, time_limit=options.time_limit)
            bound, losses = optimal.attrs["lower_bound"], [_loss_after_remap(eikonal), _loss_after_remap(optimal)]
            figures = (f"{x:.6g}" for x in (_clamped_laplace(problem), *losses, bound))
            last = f"{1 - bound / losses[1]:.1e}", f"{losses[0] / bound:.4f}"
            print(SIZES.format(f"{cells} x {cells}", stencil, *figures, *last), flush=True)


def _clamped_laplace(problem: md.DesignProblem) -> float:
    """The expected squared distance of the clamped planar Laplace mechanism at the floor, without a table."""
    # The nearest cell of a rectangle is the nearest on each axis, so the marginal masses of one axis suffice.

    shape, side = lattice_problem(problem, "the Laplace mechanism")
    masses = cell_masses(displacements(shape, side, FLOOR), side, FLOOR)
    along = masses[:, 0] + 2 * masses[:, 1:].sum(axis=1)
    along = np.concatenate([along[:0:-1], along])
    displacement = np.arange(len(along)) - len(along) // 2
    place = np.arange(shape[0])[:, None]
    clamped = np.clip(place + displacement, 0, shape[0] - 1) - place
    squares = (side * clamped) ** 2 @ along / along.sum()
    return float(problem.prior_array @ squares[problem.domain.index].sum(axis=1))


def _loss_after_remap(mechanism: xr.Dataset) -> float:
    """The expected loss with every report moved to the best cell."""
    if "mass" in mechanism:
        return remapped_loss(mechanism)
    return float(mechanism.attrs["remapped_loss"])


def _table(*names: str) -> Table:
    return Table(*(Column(name, justify="right") for name in names), box=SIMPLE_HEAD)


if __name__ == "__main__":
    main()

"""The eikonal mechanism by factors against the naive route to Algorithm 1, each in its own process.

python benchmarks/eikonal.py [--cells 60 100] [--stencil 16]

Naive: one fast-marching field per report as users write it (a signed start in one cell), the dense kernel K, numpy's
solve of K w = 1, then what is left to do with negative weights: cut them off and divide rows by their sums. Effective
epsilon is the largest log-ratio over the claimed length of an edge, recomputed from the resulting table: above 1 the
claim is broken. The signed loss is that of K diag(w), which is no mechanism where a weight is negative.
"""

import argparse
import json
import subprocess
import sys
import time

import numpy as np
from rich.console import Console
from rich.table import Table

import mechdesign as md
from mechdesign.mechanism.table.certificate import max_log_ratio
from mechdesign.mechanism.table.repair import round_to_integers
from mechdesign.output.terminal.summary import peak_memory_mb
from mechdesign.setting.problems.problem import DesignProblem

ROUTES = ("naive", "factored")


def naive(problem: DesignProblem) -> dict[str, float]:
    """Algorithm 1 literally."""
    import skfmm

    domain = problem.domain
    speed = 1 / problem.metric.level_at(domain).reshape(domain.shape)
    kernel = np.empty((domain.size, domain.size))
    for report in range(domain.size):
        front = np.ones(domain.shape)
        front.flat[report] = -1.0
        field = np.asarray(skfmm.travel_time(front, speed, dx=list(domain.cell), order=2)).ravel()
        np.exp(-field, out=kernel[:, report])
    weight = np.linalg.solve(kernel, np.ones(domain.size))
    cost = problem.weighted_loss
    signed = float(sum(row @ (k * weight) for row, k in zip(cost, kernel, strict=True)))
    kernel *= np.maximum(weight, 0.0)
    kernel /= kernel.sum(axis=1, keepdims=True)
    mass = round_to_integers(kernel, problem.edges)
    loss = float(sum(row @ k for row, k in zip(cost, kernel, strict=True)))
    return {
        "negative": int((weight < 0).sum()),
        "signed": signed,
        "loss": loss,
        "epsilon": max_log_ratio(mass, problem.edges).value,
    }


def factored(problem: DesignProblem) -> dict[str, float]:
    """The certified mechanism."""
    attrs = md.solve(md.EikonalWeights(problem=problem), method="factored").attrs
    return {"negative": 0, "signed": np.nan, "loss": attrs["expected_loss"], "epsilon": attrs["effective_epsilon"]}


def run(route: str, cells: int, stencil: int) -> None:
    """One route in this process; prints its figures as JSON."""
    problem = md.load_problem("philadelphia", cells=cells, stencil=stencil)
    warm = md.load_problem("philadelphia", cells=6, stencil=stencil)
    globals()[route](warm)
    started = time.perf_counter()
    found = globals()[route](problem)
    print(json.dumps({**found, "seconds": time.perf_counter() - started, "peak": peak_memory_mb()}))


def main() -> None:
    """Run every route at every size and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, nargs="*", default=[60, 100])
    parser.add_argument("--stencil", type=int, default=16)
    parser.add_argument("--route", choices=ROUTES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.route:
        run(given.route, given.cells[0], given.stencil)
        return
    table = Table("cells", "route", "seconds", "peak MB", "negative w", "signed loss", "loss", "effective eps", "ratio")
    for cells in given.cells:
        baseline = None
        for route in ROUTES:
            command = [
                sys.executable,
                __file__,
                "--route",
                route,
                "--cells",
                str(cells),
                "--stencil",
                str(given.stencil),
            ]
            done = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
            baseline = baseline or done["seconds"]
            figures = f"{done['seconds']:.1f}", f"{done['peak']:.0f}", str(done["negative"])
            losses = f"{done['signed']:.4f}", f"{done['loss']:.4f}", f"{done['epsilon']:.4f}"
            table.add_row(f"{cells}²", route, *figures, *losses, f"{baseline / done['seconds']:.1f}")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()

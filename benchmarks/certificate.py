"""The integer certificate: 128-bit arithmetic in compiled code against plain Python integers; then what `verify` takes
on all pairs of a Euclidean claim, where the exponential mechanism is the table. With --before, `verify` of this version
against that of another checkout, each in a process of its own, on the all-pairs table and on a factored mechanism.

python benchmarks/certificate.py [--cells 15] [--all-pairs 35] [--repeats 5] [--before FOLDER [--factored FILE.nc]]
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import xarray as xr
from paired import paired

import mechdesign as md
from mechdesign.closed_forms.mechanisms import exponential, planar_laplace
from mechdesign.mechanism.table.certificate import reference_violations, violations
from mechdesign.mechanism.table.dataset import stored_edges


def main() -> None:
    """Print two tables. The answers are numbers of violated triples: of the first at 0.9 of the claim, so that there
    are some; of the second none. Start-up, compilation and the making of the tables are not in the seconds.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=15)
    parser.add_argument("--all-pairs", type=int, default=35)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--before", type=Path, help="checkout of the version to compare with")
    parser.add_argument(
        "--factored", type=Path, help="factored mechanism to verify; by default 60 x 60 cells are designed"
    )
    given = parser.parse_args()
    problem = md.load_problem("flat", cells=given.cells)
    mass = planar_laplace.mechanism(problem)["mass"].values
    edges = (0.9 * problem.metric).edges(problem.domain)
    routes = {
        "Python integers": lambda: float(reference_violations(mass, edges)),
        "compiled": lambda: float(violations(mass, edges)),
    }
    title = f"certificate of {given.cells}^2 x {given.cells}^2 entries on {len(edges.tail)} edges"
    paired(title, routes, repeats=given.repeats, agree=0.0)
    every_pair(given.all_pairs, given.repeats)
    if given.before is not None:
        with tempfile.TemporaryDirectory() as folder:
            table = md.save(
                exponential.mechanism(md.load_problem("euclidean", cells=given.all_pairs)), Path(folder, "t.nc")
            )
            factored = given.factored or md.save(_designed(), Path(folder, "f.nc"))
            versions(f"all pairs of {given.all_pairs}^2", table, given.before, given.repeats)
            versions(f"factors in {factored.name}", factored, given.before, given.repeats)


def every_pair(cells: int, repeats: int) -> None:
    """The whole of `verify` against the certificate alone."""
    mechanism = exponential.mechanism(md.load_problem("euclidean", cells=cells))
    mass, edges = mechanism["mass"].values, stored_edges(mechanism)
    routes = {
        "verify": lambda: float(md.verify(mechanism).violations or 0),
        "certificate": lambda: float(violations(mass, edges)),
    }
    title = f"all pairs of {cells}^2 x {cells}^2 entries: {len(edges.tail)} edges, the others follow from these"
    paired(title, routes, repeats=repeats, agree=0.0)


def versions(title: str, file: Path, before: Path, repeats: int) -> None:
    """Violations that two versions of `verify` count in one file; loading is not in the seconds."""
    checkouts = {"before": before, "this version": Path(__file__).resolve().parent.parent}
    served = {name: _served(checkout.resolve(), file.resolve()) for name, checkout in checkouts.items()}
    routes = {name: lambda process=process: _asked(process) for name, process in served.items()}
    paired(title, routes, repeats=repeats, agree=0.0)
    for process in served.values():
        process.communicate()


_SERVE = """
import sys, mechdesign as md
mechanism = md.load(sys.argv[1])
for _ in sys.stdin:
    print(float(md.verify(mechanism).violations), flush=True)
"""


def _served(checkout: Path, file: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    command = [sys.executable, "-c", _SERVE, str(file)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=checkout, env=environment, stdin=pipe, stdout=pipe, text=True)


def _asked(process: subprocess.Popen[str]) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("again\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def _designed() -> xr.Dataset:
    problem = md.load_problem("philadelphia", cells=60, stencil=16)
    return md.solve(md.EikonalWeights(problem=problem), method="factored")


if __name__ == "__main__":
    main()

"""The integer certificate: 128-bit arithmetic in compiled code against plain Python integers.

python benchmarks/certificate.py [--cells 15] [--repeats 5]
"""

import argparse

from paired import paired

from mechdesign.closed_forms import planar_laplace
from mechdesign.mechanism.certificate import reference_violations, violations
from mechdesign.problem_files import load_problem


def main() -> None:
    """Print one table; the answers are the numbers of violated triples at 0.9 of the claim, so that there are some."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=15)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    problem = load_problem("flat", cells=given.cells)
    mass = planar_laplace.mechanism(problem)["mass"].values
    edges = (0.9 * problem.metric).edges(problem.domain)
    routes = {
        "Python integers": lambda: float(reference_violations(mass, edges)),
        "compiled": lambda: float(violations(mass, edges)),
    }
    title = f"certificate of {given.cells}^2 x {given.cells}^2 entries on {len(edges.tail)} edges"
    paired(title, routes, repeats=given.repeats, agree=0.0)


if __name__ == "__main__":
    main()

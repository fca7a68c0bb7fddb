"""The integer certificate: 128-bit arithmetic in compiled code against plain Python integers; then what `verify` takes
on all pairs of a Euclidean claim, where the exponential mechanism is the table.

python benchmarks/certificate.py [--cells 15] [--all-pairs 35] [--repeats 5]
"""

import argparse

from paired import paired

import mechdesign as md
from mechdesign.closed_forms import exponential, planar_laplace
from mechdesign.mechanism.certificate import reference_violations, violations
from mechdesign.mechanism.table import stored_edges


def main() -> None:
    """Print two tables. The answers are numbers of violated triples: of the first at 0.9 of the claim, so that there
    are some; of the second none. Start-up, compilation and the making of the tables are not in the seconds.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=15)
    parser.add_argument("--all-pairs", type=int, default=35)
    parser.add_argument("--repeats", type=int, default=5)
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


if __name__ == "__main__":
    main()

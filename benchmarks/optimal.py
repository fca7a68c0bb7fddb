"""The optimal program on Philadelphia: our solver against the cvxpy statement and against the whole linear program.

python benchmarks/optimal.py [--cells 10] [--repeats 3]

`statement` is the program as cvxpy hands it to HiGHS, without a certificate; `whole` is ours with the whole linear
program, `aggregation` with restricted programs in HiGHS, `blocks` with restricted programs in the block interior-point
method; all three end with a certified table and a bound. The
statement's objective lies about 1e-5 below the bound that ours prove: probabilities under the solver's feasibility
tolerance of 1e-7 escape their constraints.
"""

import argparse

from paired import paired

from mechdesign.programs.optimal.optimal import Optimal
from mechdesign.setting.problems.problem_files import load_problem
from mechdesign.solvers.optimal.aggregation import aggregate

GAP = 1e-5
UNSCALED = 1e-4  # relative error left to the statement in unscaled variables


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    problem = load_problem("philadelphia", cells=given.cells)

    def statement() -> float:
        program = Optimal(problem=problem).statement()
        return float(program.solve(solver="HIGHS"))

    routes = {
        "statement": statement,
        "whole": lambda: aggregate(problem, gap=GAP, method="whole").loss,
        "aggregation": lambda: aggregate(problem, gap=GAP, method="aggregation").loss,
        "blocks": lambda: aggregate(problem, gap=GAP, method="blocks").loss,
    }
    title = f"optimal program, {given.cells} x {given.cells} cells, 8 neighbours, gap {GAP:g}"
    paired(title, routes, repeats=given.repeats, agree=UNSCALED)


if __name__ == "__main__":
    main()

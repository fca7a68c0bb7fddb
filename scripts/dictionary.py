r"""Mix eikonal kernels of small source sets at minimum expected loss, and compare with the optimal program.

python scripts/dictionary.py [--problem flat] [--cells 10] [--epsilon 0.5]

    minimise    sum_S w(S) sum_u prior(u) e^{-f_S(u)} l(u, y(S))
    over        w >= 0, one weight per source set S
    subject to  sum_S w(S) e^{-f_S(u)} = 1                      for every secret u
    then        P(y|u) = sum over S with y(S) = y of w(S) e^{-f_S(u)}

    f_S(u) = min over s in S of d(u, s)
    y(S) = the y that minimises sum_u prior(u) e^{-f_S(u)} l(u, y)

f_S solves |grad f_S| = eps with f_S = 0 on S. Every kernel has one column, that of its Bayes report y(S).

Source: Koufogiannis & Pappas 2016, Algorithm 1 with several kernels per place. The program chooses the boundary
conditions, which the paper leaves open.
Known: e^{-f_S} is the maximum of e^{-d(u, s)}, s in S. So every mixture is private, and its value is at least that of
the optimal program. With single places among the source sets it is at most that of the eikonal weights, if these
exist with w >= 0. With the entire domain among them (a constant kernel) a solution always exists.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

import mechdesign as md
from mechdesign.surveys.source_sets import source_sets

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True, kw_only=True, eq=False)
class Dictionary(md.extend.Program):
    """The program over weights of several kernels per place; sources, by default those of `source_sets`."""

    sources: Sequence[Sequence[int]] | None = None
    name = "dictionary"

    @cached_property
    def sets(self) -> list[NDArray[np.int64]]:
        """The source sets k, each an array of place numbers."""
        if self.sources is None:
            return source_sets(self.problem)
        return [np.unique(np.asarray(source, np.int64)) for source in self.sources]

    @cached_property
    def kernel(self) -> NDArray[np.float64]:
        """e^{-f_S(u)}, (n, k)."""
        distances = self.problem.distances
        return np.exp(-np.column_stack([distances[:, source].min(axis=1) for source in self.sets]))

    @cached_property
    def report(self) -> NDArray[np.int64]:
        """y(S), (k,)."""
        return np.argmin(self.kernel.T @ self.problem.weighted_loss, axis=1)

    @property
    def kernel_cost(self) -> NDArray[np.float64]:
        """The expected loss of every kernel at weight 1, (k,)."""
        return (self.kernel * self.problem.weighted_loss[:, self.report]).sum(axis=0)

    def statement(self) -> "cp.Problem":
        import cvxpy as cp

        weights = cp.Variable(self.kernel.shape[1], name="w")
        return cp.Problem(cp.Minimize(self.kernel_cost @ weights), [weights >= 0, self.kernel @ weights == 1])

    def table(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """P (n, m) for weights (k,)."""
        table = np.zeros((self.problem.domain.size, self.problem.reports.size))
        np.add.at(table.T, self.report, (self.kernel * weights).T)
        return table

    def parameters(self) -> dict[str, Any]:
        return {"source_sets": len(self.sets), "largest_source_set": max(map(len, self.sets))}


def solve_dictionary(program: Dictionary, targets: md.extend.Targets) -> md.extend.SolveResult:
    """Solve the linear program of the weights, and repair its table."""
    problem = program.problem
    scale = problem.domain.size / (problem.constant_loss or 1.0)
    solution = scipy.optimize.linprog(
        program.kernel_cost * scale, A_eq=program.kernel, b_eq=np.ones(problem.domain.size), method="highs-ds"
    )
    if solution.x is None:
        message = f"no weights w >= 0 of {len(program.sets)} kernels sum to 1 at every secret: add the whole domain"
        raise md.errors.InfeasibleError(message, field="sources")
    kernels = np.exp(-problem.distances) if problem.reports is problem.domain else None
    table = program.table(np.maximum(solution.x, 0.0))
    return md.extend.SolveResult(mass=md.extend.repair(table, problem.edges, problem.weighted_loss, kernels))


ENTRY = md.extend.ProgramSpec(program=Dictionary, solve=solve_dictionary, closes_gap=False)


def main() -> None:
    """Print the expected losses of the dictionary, of eikonal weights and of the optimum."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problem", default="flat")
    parser.add_argument("--cells", type=int, default=10)
    parser.add_argument("--epsilon", type=float, default=0.5, help="nats per cell")
    options = parser.parse_args()
    md.extend.SOLVERS[Dictionary.name] = ENTRY
    problem = md.load_problem(options.problem, cells=options.cells, epsilon=options.epsilon)
    for program in (Dictionary(problem), md.EikonalWeights(problem), md.Optimal(problem)):
        print(f"{program.name:10} loss {md.solve(program).attrs['expected_loss']:.4g}")


if __name__ == "__main__":
    main()

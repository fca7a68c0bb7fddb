r"""Search for rays of the privacy cone that improve a mixture: v^T G v - lambda^T v - charge(v), over pi^T v = 1.

A convex function over a polytope, the charge being a minimum of linear ones: its maximum is at an extreme ray, and
finding it is hard in general. From every start the function is replaced by a tangent, (2 G v - lambda - price_z)^T v
for the place z that v is read as, whose maximum is a linear program; it never falls, and ends at a vertex that no
tangent improves. The largest value over many starts is what the search says: a lower bound of the maximum, no proof
that there is no better ray.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mechdesign.programs.program import LinearProgram
from mechdesign.programs.statistical.statistical_design import FAR, StatisticalDesign
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.kernels.highs import CostSeries
from mechdesign.solvers.statistical.a_optimal import Experiment
from mechdesign.solvers.statistical.symmetry import symmetries

_ASCENTS = 50  # tangents from one start, at most
_RISE = 1e-9  # relative rise under which an ascent ends
_SPREADS = (0.5, 1.0, 2.0, 4.0)  # nats; standard deviations of the random changes
_DROP = 1e-9  # coefficients that HiGHS would drop
_SAME = 1e-7  # relative difference under which two rays are one


class RaySearch:
    """The search over the cone of one problem; repeatable for one sequence of random numbers."""

    def __init__(self, program: StatisticalDesign, random: np.random.Generator) -> None:
        problem = program.problem
        self._program, self._prior, self._random = program, problem.prior_array, random
        self._shrink = np.exp(-np.minimum(problem.distances, FAR))
        self._cone = CostSeries(_slice_of_the_cone(problem))
        self.symmetries = symmetries(problem, program.norm, with_loss=program.loss_weight > 0)

    def find(
        self, mixture: Experiment, pool: NDArray[np.float64], rays: NDArray[np.float64], starts: int
    ) -> tuple[NDArray[np.float64], float]:
        """Rays (n, k) that improve the mixture with their mirror images, the best first, and the largest worth found.

        A quarter of the starts are the best of the `pool` (n, j), a half those of the mixture, `rays` (n, i), at
        random and disturbed, the rest random.
        """
        best = np.argsort(-self.worth(mixture, pool), kind="stable")[: starts // 4]
        found = [self._ascend(mixture, v) for v in pool[:, best].T]
        for _ in range(starts // 2):
            found.append(self._ascend(mixture, self._disturbed(rays[:, self._random.integers(rays.shape[1])])))
        while len(found) < starts:
            found.append(self._ascend(mixture, self._disturbed(np.ones(len(rays)))))
        reached = np.column_stack(found)
        worth = self.worth(mixture, reached)
        order = np.argsort(-worth, kind="stable")
        kept = reached[:, order[: int((worth > 0).sum())]]
        images = np.stack([kept[way] for way in self.symmetries], axis=2).reshape(len(kept), -1)
        return distinct(images), float(worth.max())

    def worth(self, mixture: Experiment, rays: NDArray[np.float64]) -> NDArray[np.float64]:
        """What rays (n, k) with pi^T v = 1 are worth after their charge: above 0 where one improves the mixture."""
        return np.asarray(mixture.worth(rays) - self._program.charges(rays))

    def _disturbed(self, ray: NDArray[np.float64]) -> NDArray[np.float64]:
        """The ray with a random change of its logarithm, cut to the cone."""
        spread = self._random.choice(_SPREADS)
        return self._scaled(ray * np.exp(spread * self._random.normal(size=len(ray))))

    def _ascend(self, mixture: Experiment, ray: NDArray[np.float64]) -> NDArray[np.float64]:
        value = -np.inf
        for _ in range(_ASCENTS):
            slope = mixture.multipliers - 2 * mixture.gain @ ray
            if self._program.loss_weight:
                slope = slope + self._program.prices[:, np.argmin(self._program.prices.T @ ray)]
            moved = self._scaled(self._cone.minimise(slope))
            reached = float(self.worth(mixture, moved[:, None])[0])
            if reached <= value + _RISE * mixture.value:
                break
            ray, value = moved, reached
        return ray

    def _scaled(self, ray: NDArray[np.float64]) -> NDArray[np.float64]:
        """The smallest ray of the cone above `ray`, at pi^T v = 1: what the solver left outside is cut to it."""
        raised = (self._shrink * np.maximum(ray, 0.0)).max(axis=1)
        return np.asarray(raised / (self._prior @ raised))


def distinct(rays: NDArray[np.float64]) -> NDArray[np.float64]:
    """The columns (n, k) without repetitions, in order: logarithms that agree to 1e-7 are the same."""
    _, first = np.unique(np.rint(np.log(rays) / _SAME), axis=1, return_index=True)
    return rays[:, np.sort(first)]


def _slice_of_the_cone(problem: DesignProblem) -> LinearProgram:
    """The rows v >= 0, e^{-d} v(u) <= v(u') on every edge, both ways, and pi^T v = 1; factors that HiGHS would drop
    are left out, and what leaves the cone by that is cut to it afterwards.
    """
    tail, head, length = problem.edges.both_ways()
    n, e = problem.domain.size, len(tail)
    rows, factor = np.arange(e), np.exp(-length)
    near = factor > _DROP
    cone = sp.csr_array(
        (np.r_[-factor[near], np.ones(e)], (np.r_[rows[near], rows], np.r_[tail[near], head])), shape=(e, n)
    )
    return LinearProgram(
        cost=np.zeros(n),
        matrix=sp.csr_array(sp.vstack([sp.csr_array(problem.prior_array[None]), cone], format="csr")),
        row_lower=np.r_[1.0, np.zeros(e)],
        row_upper=np.r_[1.0, np.full(e, np.inf)],
        linking=1,
    )

"""Seconds that work takes on the machine of the benchmarks: the only wall-clock times in solvers/."""

from __future__ import annotations

from dataclasses import dataclass

from mechdesign.problem.problem import DesignProblem

GAP, POOL_GAP = 1e-3, 5e-3  # to which the seconds below are known
# Secrets and CPU seconds, by class.
KNOWN: dict[str, tuple[tuple[int, float], ...]] = {
    "all pairs": ((100, 1), (225, 3), (300, 6), (900, 50), (1600, 250), (2500, 500)),
    "short edges": ((144, 2), (400, 20), (900, 150)),
    "long edges, vertices": ((225, 1), (450, 4)),
    "long edges, blocks": ((1225, 15), (2500, 25), (4900, 120)),
    "a pool": ((4_900, 15), (10_000, 65), (40_000, 1800)),
    "the whole program": ((100, 5),),
}


# Measured by benchmarks/run.py on two cores. Tables and bounds depend on them only when time is short.
@dataclass(frozen=True, kw_only=True)
class TimeModel:
    """Seconds of single steps, and how a time limit is shared out."""

    pricing_share: float = 0.05  # of the limit that pricing may take beyond it; a guess
    pricing: float = 2.0  # seconds that it may take beyond it in any case; a guess
    certificate: float = 4e-7  # seconds an edge and report that the last certificate takes
    certificate_share: float = 0.25  # largest share of the limit reserved for it; a guess
    mechanism: float = 8e-8  # seconds an entry that the mechanism of a table takes
    equations: float = 3e-11  # seconds for each n^3 of a dense system of n equations

    def reserve(self, problem: DesignProblem, limit: float) -> float:
        reports = problem.reports.size
        certificate = min(self.certificate_share * limit, self.certificate * len(problem.edges.tail) * reports)
        return max(certificate, self.mechanism * problem.domain.size * reports)

    def grace(self, seconds: float) -> float:
        """Seconds that pricing may take beyond a limit of `seconds`."""
        return self.pricing + self.pricing_share * seconds


TIME_MODEL = TimeModel()

r"""Geo-indistinguishability on a square lattice: uniform prior, Euclidean metric over all pairs.

Claim: equal. Optimal losses at one nat per cell, as found by an independent implementation of the program: squared loss
2.0955708459 (5 x 5) and 3.161644487 (8 x 8), expected distance 1.2286772664 (5 x 5) and 1.449671254 (8 x 8).
"""

from mechdesign import DesignProblem, Domain, Euclidean, losses, priors


def problem(
    cells: int = 5, epsilon: float = 1.0, cell: float = 1.0, unit: str = "cell", loss: str = "squared"
) -> DesignProblem:
    """Parameters: cells per side; epsilon in nats per unit; cell, the size of a cell in units; loss: squared, distance
    or zero-one.
    """
    domain = Domain.grid((cells, cells), cell=cell, unit=unit)
    return DesignProblem(
        domain=domain,
        metric=Euclidean(epsilon=epsilon, unit=unit),
        prior=priors.uniform(domain),
        loss=losses.named_loss(loss),
    )


def published() -> dict[str, float]:
    """Optimal losses at epsilon = 1 per cell, keyed by loss and cells per side."""
    return {"squared 5": 2.0955708459, "squared 8": 3.161644487, "distance 5": 1.2286772664, "distance 8": 1.449671254}

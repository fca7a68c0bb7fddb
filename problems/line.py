r"""Line of cells, uniform prior, 0/1 loss, constant privacy level.

Claim: equal. The optimum is the truncated geometric mechanism (Ghosh et al. 2012), which is also the eikonal mechanism:
weights tanh(eps h / 2) inside and 1 / (1 + e^{-eps h}) at the two ends, so its expected loss is
1 - (2 / (1 + e^{-eps h}) + (cells - 2) tanh(eps h / 2)) / cells.
"""

import math

from mechdesign import DesignProblem, Domain, Eikonal, PrivacyLevel, priors
from mechdesign.losses import ZeroOne


def problem(cells: int = 10, epsilon: float = 0.9, cell: float = 1.0, unit: str = "km") -> DesignProblem:
    """Parameters: cells; epsilon in nats per unit; cell, the size of a cell in units."""
    domain = Domain.grid(cells, cell=cell, unit=unit)
    metric = Eikonal(level=PrivacyLevel.constant(epsilon, unit))
    return DesignProblem(domain=domain, metric=metric, prior=priors.uniform(domain), loss=ZeroOne())


def published(cells: int = 10, epsilon: float = 0.9, cell: float = 1.0) -> dict[str, float]:
    """The closed-form optimum."""
    end, inside = 1 / (1 + math.exp(-epsilon * cell)), math.tanh(epsilon * cell / 2)
    return {"optimal": 1 - (2 * end + (cells - 2) * inside) / cells}

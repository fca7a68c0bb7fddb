r"""K secrets without structure, uniform prior, 0/1 loss, the discrete metric: local differential privacy.

Claim: equal. The optimum is K-ary randomized response (Kairouz et al. 2014), with expected loss
(K - 1) / (K - 1 + e^epsilon).
"""

import math

from mechdesign import DesignProblem, Discrete, Domain, priors
from mechdesign.losses import ZeroOne


def problem(secrets: int = 8, epsilon: float = 1.5) -> DesignProblem:
    """Parameters: secrets, their number K; epsilon in nats."""
    domain = Domain.nodes(secrets)
    return DesignProblem(domain=domain, metric=Discrete(epsilon=epsilon), prior=priors.uniform(domain), loss=ZeroOne())


def published(secrets: int = 8, epsilon: float = 1.5) -> dict[str, float]:
    """The closed-form optimum."""
    others = (secrets - 1) * math.exp(-epsilon)
    return {"optimal": others / (1 + others)}

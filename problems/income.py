r"""Is a household's income above a threshold? One private answer on a grid of outputs, as in Liang & Yi 2024.

    secrets   income cells from 0 USD, each represented by its centre; prior: the log-normal fit of Liang & Yi 2024
    reports   outputs from -1/2 to 3/2, in answers
    loss      (f(x) - y)^2, f the soft threshold with a band of min(0.2 threshold, 2 / eps)
    metric    Euclidean, eps nats per USD, by default 1 / 12,000

The cells go to 1.2 million USD, at least ten bands from the threshold on either side; higher incomes count for the last
cell. Outputs beyond [0, 1] are for noise that is centred on the answer; the optimal mechanism does not need them.
Claim: the paper has no optimal release; scripts/liang_yi.py compares its mechanisms with the optimum.
"""

import numpy as np
from numpy.typing import NDArray

from mechdesign import DesignProblem, Domain, Euclidean, priors
from mechdesign.base.memory import require_places
from mechdesign.base.validation import check_epsilon, check_whole
from mechdesign.errors import InputError
from mechdesign.release import query_functions as queries
from mechdesign.release.released import release_problem

TOP = 1_200_000.0  # USD
LOW, HIGH = -0.5, 1.5  # outputs
MU, SIGMA = 11.49399503122476, 0.8290709468895202  # of ln(income / USD): the fit of the authors


def income_mass(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probability of incomes between low and high (k,), USD, both positive or infinite."""
    from scipy.special import ndtr

    with np.errstate(divide="ignore"):
        ends = [(np.log(end) - MU) / SIGMA for end in (low, high)]
    return ndtr(ends[1]) - ndtr(ends[0])


def problem(
    threshold: float = 500_000.0, epsilon: float = 1 / 12_000, cells: int = 120, outputs: int = 41
) -> DesignProblem:
    """The design problem.

    Parameters: threshold in USD; epsilon in nats per USD; cells up to 1.2 million USD; outputs, how many.
    """
    check_epsilon(epsilon)
    check_whole(cells, "cells", minimum=2)
    check_whole(outputs, "outputs", minimum=2)
    require_places(outputs, field="outputs")
    if not 0 < threshold < TOP:
        raise InputError(f"must be between 0 and {TOP:g}", field="threshold", value=threshold, remedy="use 500000 USD")
    domain = Domain.grid(cells, cell=TOP / cells, unit="USD")
    ends = np.append(np.arange(cells) * (TOP / cells), np.inf)
    return release_problem(
        domain=domain,
        metric=Euclidean(epsilon=epsilon, unit="USD"),
        prior=priors.proportional(income_mass(ends[:-1], ends[1:])),
        values=queries.threshold(domain.points[:, 0], threshold, queries.band_width(threshold, epsilon)),
        outputs=np.linspace(LOW, HIGH, outputs),
    )

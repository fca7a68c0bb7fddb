"""The exponential mechanism of a metric: P(y|u) proportional to e^{-d(u, y) / 2}, rows normalised.

Ratios of weights and of row sums are each at most e^{d/2}, so the table is d-private on any metric space.
Source: McSherry and Talwar 2007; libqif's `exponential`.
"""

from __future__ import annotations

import xarray as xr

from mechdesign.base.validation import validate_call
from mechdesign.closed_forms.build import closed_form_mechanism, decaying_table
from mechdesign.problem.problem import DesignProblem


@validate_call
def exponential_mechanism(problem: DesignProblem) -> xr.Dataset:
    """The exponential mechanism of the problem's metric: P(y|u) falls off as e^(-d(u, y) / 2).

    Parameters
    ----------
    problem : DesignProblem
        The metric, and the reports, whose distance is that of their anchor secret.

    Returns
    -------
    xarray.Dataset, certified at the smallest scale that holds

    Examples
    --------
    >>> mechanism = md.baselines.exponential(md.load_problem("discrete", secrets=3))
    >>> round(mechanism.attrs["ratio"], 6)
    0.5
    """
    # Half of d for the weights: the ratio of the row sums takes the other half.
    return closed_form_mechanism(
        problem,
        decaying_table(problem.distances[:, problem.anchors], 0.5),
        name="exponential",
        claimed_epsilon=problem.metric.smallest_level,
    )

"""The constant report: one place of smallest expected loss, whatever the secret. It reveals nothing."""

from __future__ import annotations

import numpy as np
import xarray as xr

from mechdesign.base.arrays import Matrix
from mechdesign.base.validation import validate_call
from mechdesign.closed_forms.build import closed_form_mechanism
from mechdesign.problem.problem import DesignProblem


@validate_call
def constant_mechanism(problem: DesignProblem) -> xr.Dataset:
    """The best constant report, which any useful mechanism must beat.

    Parameters
    ----------
    problem : DesignProblem
        Its prior and loss determine the report.

    Returns
    -------
    xarray.Dataset, of ratio 0

    Examples
    --------
    >>> md.baselines.constant(md.load_problem("line", cells=4)).attrs["ratio"]
    0.0
    """
    return closed_form_mechanism(problem, constant_table(problem), name="constant", claimed_epsilon=None)


def constant_table(problem: DesignProblem) -> Matrix:
    """The best report from every secret, (n, m)."""
    table = np.zeros((problem.domain.size, problem.reports.size))
    table[:, problem.best_constant] = 1.0
    return table

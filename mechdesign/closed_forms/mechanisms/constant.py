"""The constant report: the place with the least expected loss, from everywhere. It reveals nothing."""

from __future__ import annotations

import numpy as np
import xarray as xr

from mechdesign.base.arguments import asked
from mechdesign.closed_forms.mechanisms.build import closed_form_mechanism
from mechdesign.setting.problems.problem import DesignProblem


@asked
def mechanism(problem: DesignProblem) -> xr.Dataset:
    """The best constant report: what any mechanism must beat."""
    table = np.zeros((problem.domain.size, problem.reports.size))
    table[:, problem.best_constant] = 1.0
    return closed_form_mechanism(problem, table, name="constant", claimed_epsilon=None)

"""The design problem of releasing a number f(x): reports are output values, judged by the squared error.

Its optimal program gives the least expected squared error of any private release on this output grid, with a bound.
Smooth sensitivity (paper 002) and its baselines on the same grid are in closed_forms/mechanisms/release.py.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.arguments import asked
from mechdesign.base.memory import require_memory
from mechdesign.errors import InputError
from mechdesign.setting.metric.metric import Metric
from mechdesign.setting.objective.losses import TableLoss
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.setting.space.domain import Domain


@asked
def release_problem(
    *, domain: Domain, metric: Metric, prior: ArrayLike, values: ArrayLike, outputs: ArrayLike, unit: str = "1"
) -> DesignProblem:
    """The design problem with secrets `domain`, reports `outputs` and loss (f(x) - y)^2.

    Parameters: domain, the n secrets; metric, the claim; prior (n,); values (n,), f at the secrets, and outputs (m,),
    ascending, both in `unit`, see `units.KNOWN_UNITS`. The loss is in squared `unit`. Reports stand at their output on
    one axis: they are values, no places of the domain.
    Raises: InputError for values or outputs that do not fit; UnitError; SizeError.
    """
    true, given = check_values(values, domain.size), check_outputs(outputs)
    require_memory(domain.size, len(given), tables=4, what="the table of losses")
    return DesignProblem(
        domain=domain,
        metric=metric,
        prior=prior,
        loss=TableLoss(values=(true[:, None] - given) ** 2),
        reports=Domain.points_at(given, unit=unit),
        name="release",
    )


def check_values(values: ArrayLike, size: int, field: str = "values") -> NDArray[np.float64]:
    """Finite numbers (size,), one per secret, or an InputError."""
    given = np.asarray(values, float)
    if given.shape != (size,) or not np.isfinite(given).all():
        raise InputError(
            f"must be finite, of shape ({size},)", field=field, value=given.shape, remedy="one number per secret"
        )
    return given


def check_outputs(outputs: ArrayLike) -> NDArray[np.float64]:
    """Finite strictly ascending numbers (m,), m at least 2, or an InputError."""
    given = np.asarray(outputs, float)
    if given.ndim != 1 or len(given) < 2 or not np.isfinite(given).all() or not (np.diff(given) > 0).all():
        raise InputError(
            "must be at least two finite ascending numbers",
            field="outputs",
            value=given.shape,
            remedy="use np.linspace(low, high, count)",
        )
    return given

"""Reports with no place of their own, judged as the place that it is best to read each as."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from mechdesign.setting.objective.losses import TableLoss
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.setting.space.domain import Domain


def judged_by_estimates(problem: DesignProblem, table: NDArray[np.float64]) -> tuple[DesignProblem, NDArray[np.int64]]:
    """The problem with the m reports of `table` (n, m), and the estimates z(y) (m,) that judge them.

    z(y) is the report of the problem with the least posterior expected loss after y, and the loss of y is that of z(y):
    what the design costs when each report has to be read as one place. The reports of one estimate stand in a row
    through its place, along the first axis, shorter than half the least distance of two places.
    """
    loss, places = problem.loss_matrix, problem.reports
    estimates = np.argmin((problem.prior_array[:, None] * table).T @ loss, axis=1)
    gap = float(pdist(places.points).min())
    points = places.points[estimates]
    for place in np.unique(estimates):
        row = np.flatnonzero(estimates == place)
        points[row, 0] += gap / 4 * (2 * np.arange(1, len(row) + 1) / (len(row) + 1) - 1)
    kind: Literal["nodes", "points"] = "nodes" if places.kind == "nodes" else "points"
    reports = Domain(kind=kind, points=points, unit=places.unit)
    return replace(problem, loss=TableLoss(values=loss[:, estimates]), reports=reports, query=None), estimates

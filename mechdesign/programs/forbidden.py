"""Forbidden reports leave the set of reports, because a report that is impossible at one secret is impossible at all.

Every edge is finite and the domain is connected, so P(y|u) = 0 forces P(y|v) = 0 for every secret v.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from mechdesign.errors import InputError
from mechdesign.problem.domain import Domain
from mechdesign.problem.losses import TableLoss
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.constraints import all_or_places


def without_reports(problem: DesignProblem, forbidden: Sequence[int]) -> DesignProblem:
    """The problem without some reports. The others are renumbered in order.

    Parameters
    ----------
    problem, forbidden : DesignProblem, sequence of int
        The problem, and numbers of reports.

    Returns
    -------
    DesignProblem

    Examples
    --------
    >>> md.programs.without_reports(md.load_problem("line", cells=4), [3]).reports.size
    3
    """
    numbers = all_or_places(forbidden, problem.reports.size, "forbidden")
    places = np.setdiff1d(np.arange(problem.reports.size), numbers)
    if len(places) < 2:
        value = f"{len(numbers)} of {problem.reports.size}"
        raise InputError("must leave at least two reports", field="forbidden", value=value)
    # A grid that lacks cells becomes a list of points; nodes stay nodes, since they have no coordinates.
    kind: Literal["nodes", "points"] = "nodes" if problem.reports.kind == "nodes" else "points"
    known = problem.reports
    labels = None if known.labels is None else tuple(known.labels[y] for y in places.tolist())
    reports = Domain(kind=kind, points=known.points[places], unit=known.unit, labels=labels, ordered=known.ordered)
    loss = problem.loss
    # Only a loss given as a table has a column for every report; the others are computed from the places.
    if isinstance(loss, TableLoss):
        loss = replace(loss, values=problem.loss_matrix[:, places])
    return replace(problem, reports=reports, loss=loss)

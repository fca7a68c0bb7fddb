r"""Several points at once: tuples x = (x_1, ..., x_n) with d_inf(x, x') = max over i of d(x_i, x'_i).

Every point is reported on its own, by mechanisms private for c_i d:

    P(z|x) <= e^{sum c_i d(x_i, x'_i)} P(z|x') <= e^{(c_1 + ... + c_n) d_inf(x, x')} P(z|x')

This is tight if all mechanisms have the same worst pair: n points cost n times the epsilon. One report of an aggregate
f costs less: if d(f(x), f(x')) <= Delta d_inf(x, x') and K is private for c d, then K(f(x)) is private for Delta c
d_inf. The centroid has Delta = 1. N = m^n tuples over m places have N^2 / 2 edges: for examples on small domains.
Source: Andrés et al. 2013, section 3.3. `Budget` adds up the costs of independent reports without any table.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
import xarray as xr

from mechdesign.base.arrays import Matrix
from mechdesign.base.memory import require_memory
from mechdesign.base.validation import check_whole
from mechdesign.closed_forms.build import closed_form_mechanism
from mechdesign.errors import InputError
from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.problem.domain import Domain
from mechdesign.problem.losses import TableLoss
from mechdesign.problem.metrics import Graph
from mechdesign.problem.problem import DesignProblem


def tuple_distances(problem: DesignProblem, count: int) -> Matrix:
    """d_inf (N, N) in nats between all tuples of `count` secrets of the problem, the first point slowest."""
    points, size = check_whole(count, "count"), problem.domain.size
    require_memory(size**points, size**points, tables=5, noun=f"the pairs of all tuples of {points} points")
    places = np.unravel_index(np.arange(size**points), (size,) * points)
    return functools.reduce(np.maximum, (problem.distances[np.ix_(point, point)] for point in places))


def tuple_problem(problem: DesignProblem, count: int) -> DesignProblem:
    """The problem over tuples of `count` secrets, for d_inf: reports are tuples of reports, points are independent."""
    # The loss is the mean of the points' losses, so that it compares with the loss of one point.
    distances = tuple_distances(problem, count)
    report_count = problem.reports.size**count
    require_memory(len(distances), report_count, tables=4, noun="a table over tuples")
    # Every pair is an edge, because no rule says which pairs of tuples suffice.
    tail, head = np.triu_indices(len(distances), 1)
    prior = _over_tuples([problem.prior_array[:, None]] * count, np.multiply).ravel()
    return DesignProblem(
        domain=Domain.nodes(len(distances)),
        metric=Graph(tail=tail, head=head, length=distances[tail, head]),
        prior=prior / math.fsum(prior),
        loss=TableLoss(values=_over_tuples([problem.loss_matrix / count] * count, np.add)),
        reports=Domain.nodes(report_count) if problem.reports is not problem.domain else None,
        name=f"{problem.name}, tuples of {count}",
    )


def independent(problem: DesignProblem, mechanisms: Sequence[xr.Dataset]) -> xr.Dataset:
    """One report for every point, each by its mechanism over the secrets and reports of `problem`."""
    # A mechanism for `tuple_problem`, certified at its multiple of d_inf: at most c_1 + ... + c_n if mechanism i is
    # private for c_i times the metric.
    shape = (problem.domain.size, problem.reports.size)
    for mechanism in mechanisms:
        if mechanism["mass"].shape != shape:
            raise InputError(
                f"every mechanism must have {shape[0]} secrets and {shape[1]} reports, as the problem has",
                field="mechanisms",
                value=mechanism["mass"].shape,
            )
    joint_problem = tuple_problem(problem, len(mechanisms))
    tables = [mechanism["mass"].values / float(ROW_SUM) for mechanism in mechanisms]
    return closed_form_mechanism(
        joint_problem,
        _over_tuples(tables, np.multiply),
        name="independent",
        claimed_epsilon=None,
        parameters={"mechanisms": [str(mechanism.attrs["program"]) for mechanism in mechanisms]},
    )


def _over_tuples(tables: Sequence[Matrix], combine: np.ufunc) -> Matrix:
    """Tables (m, k) over points, one each, combined entry by entry to a table (m^n, k^n) over tuples."""
    combined, *others = tables
    for table in others:
        # The first point varies slowest, as in `unravel_index`.
        pairs = combine(combined[:, None, :, None], table[None, :, None, :])
        combined = np.asarray(pairs.reshape(len(combined) * len(table), -1))
    return combined

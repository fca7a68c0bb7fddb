r"""Several points at once: tuples x = (x_1, ..., x_n) with d_inf(x, x') = max over i of d(x_i, x'_i).

* independent: every point reported on its own, by mechanisms private for c_i d:

      P(z|x) <= e^{sum c_i d(x_i, x'_i)} P(z|x') <= e^{(c_1 + ... + c_n) d_inf(x, x')} P(z|x')

  and no less, where the worst pair of each mechanism is the worst pair of all: n points cost n times the epsilon.
* of_aggregate: one report of f(x) by a mechanism K. If d(f(x), f(x')) <= Delta d_inf(x, x') and K is private for c d,
  then K(f(x)) is private for Delta c d_inf. The centroid has Delta = 1, |mean(x_i - x'_i)| <= max |x_i - x'_i|, with
  equality where the whole tuple is moved.
At one total eps in the plane, a centroid is reported at a mean distance of 2 / eps, each of n points at 2 n / eps.

Tuples are the nodes of a `Graph` with one edge for each two of them, of length d_inf: N = m^n tuples over m places, the
first point varying slowest, with N^2 / 2 edges. That is for small domains: to prove these statements on examples.
Source: paper 004, section 3.3. Related: `Budget` adds up the costs of independent reports without any table.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.checks import check_whole
from mechdesign.base.memory import require_memory
from mechdesign.closed_forms.mechanisms.build import closed_form_mechanism
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.mechanism.table.certificate import ROW_SUM
from mechdesign.mechanism.table.dataset import certified_scale, make_mechanism, stored_points
from mechdesign.setting.metric.graph import Graph
from mechdesign.setting.objective.losses import TableLoss
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.setting.space.domain import Domain


def tuple_places(size: int, count: int) -> NDArray[np.int64]:
    """The places (size^count, count) of all tuples of `count` points among `size` places, the first point slowest."""
    points, places = check_whole(count, "count"), check_whole(size, "size")
    require_memory(places**points, places**points, tables=5, what=f"the pairs of all tuples of {points} points")
    return np.stack(np.unravel_index(np.arange(places**points), (places,) * points), axis=1)


def tuple_distances(problem: DesignProblem, count: int) -> NDArray[np.float64]:
    """d_inf (N, N) in nats between all tuples of `count` secrets of the problem."""
    places = tuple_places(problem.domain.size, count)
    return functools.reduce(np.maximum, (problem.distances[np.ix_(at, at)] for at in places.T))


def tuple_problem(problem: DesignProblem, count: int) -> DesignProblem:
    """The problem over tuples of `count` secrets, for d_inf: reports are tuples of reports.

    Prior: independent points. Loss: the mean of the points' losses, so that it compares with the loss of one point.
    Raises: SizeError where the pairs of tuples do not fit.
    """
    tuple_places(problem.domain.size, count)
    answers = problem.reports.size**count
    require_memory(problem.domain.size**count, answers, tables=4, what="a table over tuples")
    mean = _over_tuples([problem.loss_matrix / count] * count, np.add)
    reports = Domain.nodes(answers) if problem.reports is not problem.domain else None
    return _tuples(problem, count, mean, reports)


def independent(problem: DesignProblem, mechanisms: Sequence[xr.Dataset]) -> xr.Dataset:
    """One report for every point, each by its mechanism over the secrets and reports of `problem`: one mechanism for
    `tuple_problem`, its table the product of their tables, certified in integers at the multiple of d_inf that it has.

    Where mechanism i is for c_i times the metric, that is c_1 + ... + c_n at most.
    Raises: InputError for no mechanism, or one with other secrets or reports; SizeError where tuples do not fit.
    """
    shape = (problem.domain.size, problem.reports.size)
    for mechanism in mechanisms:
        if mechanism["mass"].shape != shape:
            raise InputError(
                f"every mechanism must have {shape[0]} secrets and {shape[1]} reports, as the problem has",
                field="mechanisms",
                value=mechanism["mass"].shape,
                remedy="give mechanisms made for the problem",
            )
    asked = tuple_problem(problem, len(mechanisms))
    tables = [mechanism["mass"].values / float(ROW_SUM) for mechanism in mechanisms]
    return closed_form_mechanism(
        asked,
        _over_tuples(tables, np.multiply),
        name="independent",
        claimed_epsilon=None,
        parameters={"mechanisms": [str(mechanism.attrs["program"]) for mechanism in mechanisms]},
    )


def of_aggregate(problem: DesignProblem, count: int, answers: ArrayLike, mechanism: xr.Dataset) -> xr.Dataset:
    """One report of an aggregate f of `count` secrets: row x is the row of f(x) in `mechanism`, integer for integer.

    answers: f(x) for every tuple as a secret of `mechanism`, (N,), in the order of `tuple_places`. Certified at the
    multiple of d_inf that the table has; for a mechanism private for c d that is Delta c at most. Loss: the distance
    between f(x) and the report, in the unit of the mechanism's places.
    Raises: InputError for answers that are not secrets of the mechanism, one for each tuple.
    """
    asked = _answers(answers, problem.domain.size ** check_whole(count, "count"), mechanism.sizes["secret"])
    unit = str(mechanism["report_x"].attrs["units"])
    secrets, reports = (Domain.points_at(stored_points(mechanism, dim), unit=unit) for dim in ("secret", "report"))
    built = _tuples(problem, count, secrets.euclidean_to(reports)[asked], reports)
    mass = np.ascontiguousarray(mechanism["mass"].values[asked])
    return make_mechanism(
        built,
        mass,
        program="of_aggregate",
        scale=certified_scale(built, mass),
        parameters={"points": count, "mechanism": str(mechanism.attrs["program"])},
    )


def sensitivity(problem: DesignProblem, count: int, distances: ArrayLike, answers: ArrayLike) -> float:
    """Delta = max d(f(x), f(x')) / d_inf(x, x') over all tuples x != x' of `count` secrets: exhaustive, not a bound.

    distances (a, a), d between the answers in nats, of the level that d between the secrets has; answers (N,) among
    them, in the order of `tuple_places`. Infinite nowhere: tuples that differ are apart.
    Raises: InputError for answers that are not among them.
    """
    between, apart = np.asarray(distances, float), tuple_distances(problem, count)
    asked = _answers(answers, len(apart), len(between))
    np.fill_diagonal(apart, np.inf)
    return float((between[np.ix_(asked, asked)] / apart).max())


def centroids(domain: Domain, count: int) -> tuple[Domain, NDArray[np.int64]]:
    """The lattice of all centroids of `count` cells of a grid, and the centroid of every tuple as a place of it, (N,).

    The lattice has cells 1/count of the size, from the first centre to the last on every axis.
    Raises: UnsuitableError off grids.
    """
    if domain.shape is None or domain.cell is None or domain.origin is None or domain.index is None:
        raise UnsuitableError("centroids need a lattice", field="domain", value=domain.kind, remedy="use Domain.grid")
    places = tuple_places(domain.size, count)
    shape = [count * (side - 1) + 1 for side in domain.shape]
    cell = [h / count for h in domain.cell]
    low = [o + (h - fine) / 2 for o, h, fine in zip(domain.origin, domain.cell, cell, strict=True)]
    sums = domain.index[places].sum(axis=1)
    return Domain.grid(shape, cell=cell, unit=domain.unit, origin=low), np.ravel_multi_index(sums.T, shape)


def _answers(answers: ArrayLike, size: int, known: int) -> NDArray[np.int64]:
    asked = np.asarray(answers)
    if asked.shape != (size,) or asked.dtype.kind not in "iu" or asked.min() < 0 or asked.max() >= known:
        raise InputError(
            f"must be {size} whole numbers from 0 to {known - 1}",
            field="answers",
            value=f"{asked.dtype} {asked.shape}",
            remedy="give the answer to each tuple, in the order of tuple_places",
        )
    return asked.astype(np.int64)


def _tuples(problem: DesignProblem, count: int, loss: NDArray[np.float64], reports: Domain | None) -> DesignProblem:
    """The problem over tuples with d_inf as its metric, from a loss (N, reports)."""
    apart = tuple_distances(problem, count)
    tail, head = np.triu_indices(len(apart), 1)
    prior = _over_tuples([problem.prior_array[:, None]] * count, np.multiply).ravel()
    return DesignProblem(
        domain=Domain.nodes(len(apart)),
        metric=Graph(tail=tail, head=head, length=apart[tail, head]),
        prior=prior / math.fsum(prior),
        loss=TableLoss(values=loss),
        reports=reports,  # type: ignore[arg-type]
        name=f"{problem.name}, tuples of {count}",
    )


def _over_tuples(tables: Sequence[NDArray[np.float64]], combine: np.ufunc) -> NDArray[np.float64]:
    """Tables (m, k) over points, one each, combined entry by entry to a table (m^n, k^n) over tuples."""
    whole, *others = tables
    for table in others:
        paired = combine(whole[:, None, :, None], table[None, :, None, :])
        whole = np.asarray(paired.reshape(len(whole) * len(table), -1))
    return whole

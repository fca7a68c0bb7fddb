"""The best closed form that satisfies the claim of a problem, remapped under its prior: no design may lose more.

Clamped planar Laplace and geometric noise, the exponential mechanism, randomized response and the constant report are
private by theorem, and so are normalised rows of geometric noise with equal sums. Remapping keeps privacy. Each form is
made for lengths slightly shorter than claimed, so that its integers are certified at the claim itself. (`BASELINES`
keep their level and certify the scale after rounding.) With over 1,000 secrets and a short time limit, some forms and
the remap are skipped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.threads import OutOfTime
from mechdesign.closed_forms.build import decaying_table
from mechdesign.closed_forms.constant import constant_table
from mechdesign.closed_forms.geometric import clamped_table, normalised_table
from mechdesign.closed_forms.lattice_noise import displacements, lattice_problem
from mechdesign.closed_forms.planar_laplace import laplace_clamped
from mechdesign.closed_forms.randomized_response import randomized_response_table
from mechdesign.errors import SizeError, SolverError, UnsuitableError
from mechdesign.mechanism.certificate import certifying_seconds, violations
from mechdesign.mechanism.figures import total_cost
from mechdesign.mechanism.repair import SHORTEST, best_reports, round_private, rounding_share
from mechdesign.problem.metrics import Euclidean
from mechdesign.problem.problem import DesignProblem

REMAPPED = 1000  # secrets up to which every closed form is remapped; beyond, only the best one
CERTIFICATES = 2.2  # time of a returned table in certificates: its mechanism and ratio are computed too
_SHARE = 0.3  # of the time, after which no further closed form of over REMAPPED secrets is made
_OVER = 1.2  # factor by which a certificate may exceed the remaining time
_FEW, _EACH = 1_000_000, 2_000  # masses that noise is followed for, at least, and for each secret: a second or more
_SMALL = 10_000_000  # edges times reports, certified in a fraction of a second
_SOON = 2.0  # seconds of certifying that are not worth an estimate

Table = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class ClosedForm:
    """An integer table (n, m) certified for the metric of its problem, and the seconds that certifying it took."""

    name: str
    mass: NDArray[np.uint64]
    loss: float
    seconds: float = 0.0


def best_closed_form(problem: DesignProblem, *, deadline: float = math.inf) -> ClosedForm:
    """The certified closed form of least expected loss, or the constant report. Cost: O(n m^2) and one certificate.

    deadline, of time.monotonic(): tables of more than 1,000 secrets leave most of the time until then to a search.
    Raises SolverError with an estimate if certifying would end after the deadline.
    """
    now = time.monotonic()
    until = now + _SHARE * (deadline - now) if problem.domain.size > REMAPPED else math.inf
    constant = _constant_report(problem)
    # The constant report is the fastest to certify: if time is short for it, it is for any other.
    _require_time(problem, constant.mass, time.monotonic(), deadline)
    for name, table in _tables_by_loss(problem, until):
        mass = round_private(table, problem.edges)
        started = time.monotonic()
        _require_time(problem, mass, started, deadline)
        try:
            if violations(mass, problem.edges, deadline=max(deadline, started + _SOON)) == 0:
                seconds = time.monotonic() - started
                loss = total_cost(mass, problem.weighted_loss)
                return ClosedForm(name=name, mass=mass, loss=loss, seconds=seconds)
        except OutOfTime:
            break
    return constant


def certified_closed_forms(problem: DesignProblem) -> Iterator[ClosedForm]:
    """Every certified closed form, plain and remapped, the constant report last."""
    for name, make in _fitting_tables(problem):
        # Made for slightly shorter lengths, so that rounding to integers stays within the claimed ones.
        table = make(1 - rounding_share(problem.edges, problem.reports.size))
        for called, one in ((name, table), (f"{name}, remapped", _remap_table(problem, table)[0])):
            mass = round_private(one, problem.edges)
            if violations(mass, problem.edges) == 0:
                yield ClosedForm(name=called, mass=mass, loss=total_cost(mass, problem.weighted_loss))
    yield _constant_report(problem)


def _require_time(problem: DesignProblem, mass: NDArray[np.uint64], now: float, deadline: float) -> None:
    left = deadline - now
    if left == math.inf or len(problem.edges.tail) * mass.shape[1] < _SMALL:
        return
    need = CERTIFICATES * certifying_seconds(mass, problem.edges)
    if need > max(_OVER * left, _SOON):
        raise SolverError(
            f"is too short to certify any table of {mass.shape[0]:,} x {mass.shape[1]:,} on "
            f"{len(problem.edges.tail):,} pairs, which takes about {math.ceil(need):,} s here",
            field="time_limit",
            value=f"{max(left, 0.0):.0f} s left",
            remedy=f"allow {10 * math.ceil(0.3 * need):,} s, or use larger cells",
        )


def _tables_by_loss(problem: DesignProblem, until: float) -> Iterator[tuple[str, Table]]:
    """The remapped closed forms by increasing expected loss; none is made or remapped after `until`."""
    share, cost = 1 - rounding_share(problem.edges, problem.reports.size), problem.weighted_loss
    makers, every = dict(_fitting_tables(problem)), problem.domain.size <= REMAPPED
    losses: list[tuple[float, str]] = []
    best: Table | None = None
    for name, make in makers.items():
        if best is not None and time.monotonic() >= until:
            break
        table = make(share)
        losses.append((_remap_table(problem, table)[1] if every else float((cost * table).sum()), name))
        best = table if losses[-1] == min(losses) else best
    for loss, name in sorted(losses):
        if every and loss >= problem.constant_loss:
            return
        table = makers[name](share) if best is None else best
        # Memory for one table: the next one is computed again.
        best = None
        yield name, _remap_table(problem, table)[0] if time.monotonic() < until else table


def _fitting_tables(problem: DesignProblem) -> Iterator[tuple[str, Callable[[float], Table]]]:
    """The closed forms that fit a problem, as functions of the share of the claimed lengths."""
    lengths, level = problem.edges.length, problem.metric.smallest_level or 0.0
    if not len(lengths) or lengths.min() < SHORTEST:
        return
    noise = level > 0 and _holds_noise(problem, level)
    if not (noise and problem.domain.size > REMAPPED and _half_of_edges_below(problem, 2 * level)):
        yield "exponential", lambda share: _exponential(problem, share)
    if noise:
        yield "geometric_clamped", lambda share: clamped_table(problem, level * share)
        yield "planar_laplace", lambda share: laplace_clamped(problem, level * share)
    alike = (problem.domain.unit, problem.domain.dimension) == (problem.reports.unit, problem.reports.dimension)
    if alike and level and problem.domain.size <= REMAPPED:  # private where rows sum alike
        yield "geometric_normalised", lambda share: normalised_table(problem, level * share)
    if problem.reports is problem.domain:
        shortest = float(lengths.min())
        size = problem.domain.size
        yield "randomized_response", lambda share: randomized_response_table(size, shortest * share)


def _holds_noise(problem: DesignProblem, level: float) -> bool:
    """True if noise at a level has a table: square cells, and masses that take no longer than the rest."""
    # There are more masses only on maps of D << 1 nats across, where noise is followed for 45 / D maps. There
    # P(y|u) >= e^{-D} P(y|v), so that no table loses less than e^{-D} times the best constant report: nothing is lost.
    try:
        shape, cell = lattice_problem(problem, "noise")
        followed = displacements(shape, cell, level) ** len(shape)
    except (UnsuitableError, SizeError):
        return False
    return followed <= max(_FEW, _EACH * problem.domain.size)


def _half_of_edges_below(problem: DesignProblem, most: float) -> bool:
    """True if at least half of the edges have at most `most` nats per unit."""
    # The exponential mechanism works at half the distances: it is then worse than noise at half of `most`.
    edges, points = problem.edges, problem.domain.points
    away = np.linalg.norm(points[edges.tail] - points[edges.head], axis=1)
    return bool(np.median(edges.length / away) <= most)


def _exponential(problem: DesignProblem, share: float) -> Table:
    metric = problem.metric
    if isinstance(metric, Euclidean):
        distances = metric.smallest_level * problem.domain.euclidean_to(problem.domain)
    else:
        distances = problem.distances
    return decaying_table(distances[:, problem.anchors], share / 2)


def _remap_table(problem: DesignProblem, table: Table) -> tuple[Table, float]:
    target, loss = best_reports(table, problem.weighted_loss)
    moved = np.zeros_like(table)
    np.add.at(moved.T, target, table.T)
    return moved, loss


def _constant_report(problem: DesignProblem) -> ClosedForm:
    """The best constant report, with equal rows: private whatever the metric."""
    mass = np.tile(round_private(constant_table(problem)[:1], problem.edges), (problem.domain.size, 1))
    return ClosedForm(name="constant", mass=mass, loss=total_cost(mass, problem.weighted_loss))

"""The best closed form that satisfies the claim of a problem, remapped under its prior: no design may lose more."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from mechdesign.base.arrays import Masses, Matrix
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

MAX_REMAPPED_SECRETS = 1000  # up to these, every closed form is remapped; beyond, only the best one
CERTIFICATES_PER_TABLE = 2.2  # time of a returned table in certificates: its mechanism and ratio are computed too
# Guesses: they change the time, and which forms are tried, not their certificates.
_TIME_SHARE = 0.3  # of the time, after which no further closed form of over MAX_REMAPPED_SECRETS secrets is made
_MAX_OVERRUN = 1.2  # factor by which a certificate may exceed the remaining time
_NOISE_MASSES, _NOISE_MASSES_PER_SECRET = 1_000_000, 2_000  # of noise on a lattice: the larger of the two limits
_UNTIMED_WORK = 10_000_000  # edges times reports: certifying is too fast to estimate
_UNTIMED_SECONDS = 2.0  # certificates up to this long need no estimate, and may end after the deadline


@dataclass(frozen=True, kw_only=True, eq=False)
class ClosedForm:
    """An integer table (n, m) certified for the metric of its problem, and the seconds that certifying it took."""

    name: str
    mass: Masses
    loss: float
    seconds: float = 0.0


# All forms are private by theorem, normalised geometric noise if its rows have equal sums. Remapping keeps privacy.
# `BASELINES` keep their level and certify the scale after rounding; these forms are certified at the claim itself.
def best_closed_form(problem: DesignProblem, *, deadline: float = math.inf) -> ClosedForm:
    """The certified closed form of smallest expected loss, or the constant report."""
    # Cost: O(n m^2) and one certificate. Raises SolverError with an estimate if certifying would end after the
    # deadline, which is of time.monotonic().
    # Large problems leave most of the time to a search.
    now = time.monotonic()
    until = now + _TIME_SHARE * (deadline - now) if problem.domain.size > MAX_REMAPPED_SECRETS else math.inf
    constant = _constant_report(problem)
    # The constant report is the fastest to certify: if time is short for it, it is for any other.
    _require_time(problem, constant.mass, time.monotonic(), deadline)
    for name, table in _tables_by_loss(problem, until):
        mass = round_private(table, problem.edges)
        started = time.monotonic()
        _require_time(problem, mass, started, deadline)
        try:
            if violations(mass, problem.edges, deadline=max(deadline, started + _UNTIMED_SECONDS)) == 0:
                seconds = time.monotonic() - started
                loss = total_cost(mass, problem.weighted_loss)
                return ClosedForm(name=name, mass=mass, loss=loss, seconds=seconds)
        except OutOfTime:
            break
    return constant


def certified_closed_forms(problem: DesignProblem) -> Iterator[ClosedForm]:
    """Every certified closed form, plain and remapped, the constant report last."""
    for name, make in _fitting_tables(problem):
        # For slightly shorter lengths, so that rounding to integers stays within the claimed ones.
        table = make(1 - rounding_share(problem.edges, problem.reports.size))
        for form_name, form in ((name, table), (f"{name}, remapped", _remap_table(problem, table)[0])):
            mass = round_private(form, problem.edges)
            if violations(mass, problem.edges) == 0:
                yield ClosedForm(name=form_name, mass=mass, loss=total_cost(mass, problem.weighted_loss))
    yield _constant_report(problem)


def _require_time(problem: DesignProblem, mass: Masses, now: float, deadline: float) -> None:
    remaining = deadline - now
    if remaining == math.inf or len(problem.edges.tail) * mass.shape[1] < _UNTIMED_WORK:
        return
    need = CERTIFICATES_PER_TABLE * certifying_seconds(mass, problem.edges)
    if need > max(_MAX_OVERRUN * remaining, _UNTIMED_SECONDS):
        raise SolverError(
            f"is too short to certify any table of {mass.shape[0]:,} x {mass.shape[1]:,} on "
            f"{len(problem.edges.tail):,} pairs, which takes about {math.ceil(need):,} s here",
            field="time_limit",
            value=f"{max(remaining, 0.0):.0f} s left",
            remedy=f"allow {10 * math.ceil(0.3 * need):,} s, or use larger cells",
        )


def _tables_by_loss(problem: DesignProblem, until: float) -> Iterator[tuple[str, Matrix]]:
    """The remapped closed forms by increasing expected loss; none is made or remapped after `until`."""
    share, cost = 1 - rounding_share(problem.edges, problem.reports.size), problem.weighted_loss
    makers, remaps_all = dict(_fitting_tables(problem)), problem.domain.size <= MAX_REMAPPED_SECRETS
    losses: list[tuple[float, str]] = []
    best: Matrix | None = None
    for name, make in makers.items():
        if best is not None and time.monotonic() >= until:
            break
        table = make(share)
        losses.append((_remap_table(problem, table)[1] if remaps_all else float((cost * table).sum()), name))
        best = table if losses[-1] == min(losses) else best
    for loss, name in sorted(losses):
        # Later forms lose no less: the constant report, which the caller has, is as good.
        if remaps_all and loss >= problem.constant_loss:
            return
        table = makers[name](share) if best is None else best
        # Memory for one table: the next one is computed again.
        best = None
        yield name, _remap_table(problem, table)[0] if time.monotonic() < until else table


def _fitting_tables(problem: DesignProblem) -> Iterator[tuple[str, Callable[[float], Matrix]]]:
    """The closed forms that fit a problem, as functions of the share of the claimed lengths."""
    # At the smallest level of the metric, eps |u - u'| <= d(u, u') holds everywhere, so noise at that level is private.
    lengths, level = problem.edges.length, problem.metric.smallest_level or 0.0
    if not len(lengths) or lengths.min() < SHORTEST:
        return
    has_noise = level > 0 and _holds_noise(problem, level)
    if not (has_noise and problem.domain.size > MAX_REMAPPED_SECRETS and _half_of_edges_below(problem, 2 * level)):
        yield "exponential", lambda share: _exponential(problem, share)
    if has_noise:
        yield "geometric_clamped", lambda share: clamped_table(problem, level * share)
        yield "planar_laplace", lambda share: laplace_clamped(problem, level * share)
    is_comparable = (problem.domain.unit, problem.domain.dimension) == (problem.reports.unit, problem.reports.dimension)
    # Private only if all rows have one sum before normalising, as on a circle. The certificate decides.
    if is_comparable and level and problem.domain.size <= MAX_REMAPPED_SECRETS:
        yield "geometric_normalised", lambda share: normalised_table(problem, level * share)
    # Randomized response has one ratio for all pairs, so the shortest distance limits it.
    if problem.reports is problem.domain:
        shortest = float(lengths.min())
        size = problem.domain.size
        yield "randomized_response", lambda share: randomized_response_table(size, shortest * share)


def _holds_noise(problem: DesignProblem, level: float) -> bool:
    """True if noise at a level has a table: square cells, and not too many masses."""
    # There are more masses only on maps of D << 1 nats across, where noise is followed for 45 / D maps. There
    # P(y|u) >= e^{-D} P(y|v), so that no table loses less than e^{-D} times the best constant report: nothing is lost.
    try:
        shape, cell = lattice_problem(problem, "noise")
        masses = displacements(shape, cell, level) ** len(shape)
    except (UnsuitableError, SizeError):
        return False
    return masses <= max(_NOISE_MASSES, _NOISE_MASSES_PER_SECRET * problem.domain.size)


def _half_of_edges_below(problem: DesignProblem, level: float) -> bool:
    """True if at least half of the edges have at most `level` nats per unit."""
    # The exponential mechanism works at half the distances: it is then worse than noise at half of `level`.
    edges, points = problem.edges, problem.domain.points
    straight = np.linalg.norm(points[edges.tail] - points[edges.head], axis=1)
    return bool(np.median(edges.length / straight) <= level)


def _exponential(problem: DesignProblem, share: float) -> Matrix:
    metric = problem.metric
    # The Euclidean metric needs no shortest paths.
    if isinstance(metric, Euclidean):
        distances = metric.smallest_level * problem.domain.euclidean_to(problem.domain)
    else:
        distances = problem.distances
    return decaying_table(distances[:, problem.anchors], share / 2)


def _remap_table(problem: DesignProblem, table: Matrix) -> tuple[Matrix, float]:
    target, loss = best_reports(table, problem.weighted_loss)
    remapped = np.zeros_like(table)
    np.add.at(remapped.T, target, table.T)
    return remapped, loss


def _constant_report(problem: DesignProblem) -> ClosedForm:
    # Rounded once and repeated: equal rows are private for any metric.
    mass = np.tile(round_private(constant_table(problem)[:1], problem.edges), (problem.domain.size, 1))
    return ClosedForm(name="constant", mass=mass, loss=total_cost(mass, problem.weighted_loss))

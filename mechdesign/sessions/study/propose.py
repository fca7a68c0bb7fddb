"""A session designed by simulation: rule, reports a day and their table for a total, with its measured error.

The public model is fitted to some synthetic people (synthetic.py), clock and risk rules are ranked on others, and error
and attacks are measured on a third group. Every session lasts two weeks. Totals are nats within a radius, a day.
No attack over D days at C nats within a radius r changes the odds of two homes d apart by a factor above

    (1)  e^{D C d / r},

if nothing else of the two traces is farther apart.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mechdesign.base.arrays import IntegerMatrix, Points
from mechdesign.base.records import FrozenRecord
from mechdesign.base.threads import Seed, seed_of
from mechdesign.base.validation import check_positive, check_whole, validate_call
from mechdesign.errors import SizeError
from mechdesign.problem.domain import Domain
from mechdesign.problem.losses import Distance
from mechdesign.sessions.design import SessionDesign
from mechdesign.sessions.study.setting import Setting, SimulatedRun
from mechdesign.sessions.study.simulated import FIRST, PricedRule, clocks, mean_error, rank_rules, risks, sessions
from mechdesign.sessions.study.synthetic import Trajectories, fit_home_away, nights, synthetic_days

MOST_PLACES = 400
TIMES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the limit, at which the curve has a point
DAYS = 14
PUBLIC, OTHERS = 200, 12  # people whom the model is fitted to, and on whom a rule is chosen
SHORTLIST = 6  # rules that the exact filter compares
_SEEDS = 3  # groups of people: a seed for each, so that no person is in two
_CHOOSING, _SHORTLISTING = 0.5, 0.6  # of the remaining time, for the rule of a point; and of that, for its shortlist


@dataclass(frozen=True, kw_only=True, eq=False)
class Point(FrozenRecord):
    """A total and the best rule at it: mean error, share of homes that each attack identifies, certified nats."""

    # nats is the exponent of (1) for two weeks and homes at a distance of the radius.

    total: float
    rule: PricedRule
    error: float
    reports: float
    identified: dict[str, float]
    nats: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Proposal(FrozenRecord):
    """A proposed session, with the curve that it was chosen from.

    Attributes
    ----------
    design, points : SessionDesign, tuple of Point
        For the limit; the curve, with one point at the limit.
    limit, within, constant : float
        Nats of a day within a radius; the radius, and the error of the best single place, in units of the domain.
    people, stopped : int, str
        The number of measured people; "time" where a time limit left out rules or points.

    Examples
    --------
    >>> sorted(md.sessions.Proposal.__annotations__)[:3]
    ['constant', 'design', 'limit']
    """

    design: SessionDesign
    points: tuple[Point, ...]
    limit: float
    within: float
    constant: float
    people: int
    stopped: str = ""

    @property
    def point_at_limit(self) -> Point:
        return next(point for point in self.points if point.total == self.limit)


@validate_call
def propose(
    domain: Domain,
    *,
    ticks: int,
    limit: float,
    within: float,
    people: int = 30,
    rng: Seed = 0,
    time_limit: float = math.inf,
    on_progress: Callable[[str], None] | None = None,
) -> Proposal:
    """Propose a session: the best rule and tables for a limit on a day, measured on synthetic people.

    Parameters
    ----------
    domain : Domain
        A grid of two axes, of at most 400 places.
    ticks, people, rng : int
        Of a day; that are measured; the seed, or a generator of NumPy, of the synthetic people and their reports.
    limit, within : float
        Nats that a calendar day may cost within the radius, in the unit of the domain.
    time_limit : float
        Seconds. The point at the limit is simulated first; points for which no time remains are skipped.
    on_progress : callable
        Called with a line of text.

    Returns
    -------
    Proposal
        The design, and the curve that it was chosen from. Cost: O(n^3) a person and tick, 10 s a point on 144 places
        with 50 ticks and 30 people.

    Examples
    --------
    >>> md.sessions.propose(md.Domain.nodes(4), ticks=24, limit=2.0, within=200.0)  # two axes are needed
    Traceback (most recent call last):
        ...
    mechdesign.errors.UnsuitableError: domain: must have two axes (got 1)
    """
    started, seed = time.monotonic(), seed_of(rng)
    check_positive(limit, "limit")
    for value, name in ((ticks, "ticks"), (people, "people")):
        check_whole(value, name)
    if domain.size > MOST_PLACES:
        raise SizeError(f"gives more than {MOST_PLACES} places; use larger cells", field="cell", value=domain.size)
    public, others, measured = (
        synthetic_days(domain, people=count, days=DAYS, ticks=ticks, rng=_SEEDS * seed + group)
        for group, count in enumerate((PUBLIC, OTHERS, people))
    )
    setting = Setting(domain=domain, model=fit_home_away(public), within=check_positive(within, "within"))
    points: list[Point] = []
    slowest, late = 0.0, False
    # The point of the limit comes first: the design needs it, the others only complete the curve.
    for number, share in enumerate(sorted(TIMES, key=lambda times: times != 1.0)):
        began = time.monotonic()
        if points and began + slowest > started + time_limit:
            late = True
            break
        if on_progress is not None:
            on_progress(f"{number + 1} of {len(TIMES)}: {share * limit:g} nats a day")
        choosing = began + _CHOOSING * (started + time_limit - began)
        point, all_tried = _point(setting, others, measured, share * limit, seed, choosing)
        points.append(point)
        late |= not all_tried
        slowest = max(slowest, time.monotonic() - began)
    points.sort(key=lambda point: point.total)
    traces = measured.places.reshape(people, -1)
    return Proposal(
        design=session_design(setting, next(point for point in points if point.total == limit).rule),
        points=tuple(points),
        limit=float(limit),
        within=float(within),
        constant=float(setting.distances[setting.constant, traces].mean()),
        people=people,
        stopped="time" if late else "",
    )


def session_design(setting: Setting, priced: PricedRule) -> SessionDesign:
    """The design of a rule: a certified table for every cost, the public model, expected distances."""
    tables = [setting.mechanism(cost) for cost in priced.table_costs]
    return SessionDesign(tables=tables, rule=priced.rule, ticks=setting.ticks, movement=setting.model, loss=Distance())


def homes_found(setting: Setting, run: SimulatedRun, homes: Points) -> dict[str, float]:
    """The share of people whose home (people, 2) each attack names within the radius; "filter" only if a filter ran."""
    # An attack names the mean or mode of a person's estimates at night, or the best home by the filter's belief.
    points = setting.domain.points
    days = run.estimates.shape[1] // setting.ticks
    dark = run.estimates[:, np.tile(nights(setting.ticks), days)]
    modes = [np.bincount(night, minlength=len(points)).argmax() for night in dark]
    guesses = {"mean": [points[dark].mean(axis=1)], "mode": [points[modes]]}
    if run.home is not None:
        # The better of two guesses counts: the place of least expected distance, and the likeliest one.
        best, _ = setting.estimate(run.home)
        guesses["filter"] = [points[best], points[run.home.argmax(axis=1)]]
    return {
        name: max(float((np.linalg.norm(guess - homes, axis=1) <= setting.within).mean()) for guess in variants)
        for name, variants in guesses.items()
    }


def _point(
    setting: Setting, others: Trajectories, measured: Trajectories, total: float, seed: int, deadline: float
) -> tuple[Point, bool]:
    """The best rule at a total, measured on other people; and True if there was time to try all rules."""
    best = _best_rule(setting, others.places.reshape(len(others.places), -1), total, seed, deadline)
    in_time = time.monotonic() <= deadline
    traces = measured.places.reshape(len(measured.places), -1)
    [released] = sessions(setting.exactly, traces, [best], np.random.default_rng([seed, 1]))
    point = Point(
        total=total,
        rule=best,
        error=mean_error(setting, traces, released),
        reports=float((released.nats > 0).sum() / (traces.size / setting.ticks)),
        identified=homes_found(setting, released, measured.homes),
        nats=DAYS * total,
    )
    return point, in_time


def _best_rule(setting: Setting, traces: IntegerMatrix, total: float, seed: int, deadline: float) -> PricedRule:
    """The best rule for traces (N, L): a shortlist by the factored filter, decided by the chain."""
    rules: list[PricedRule] = [*clocks(setting, total), *risks(setting, total, firsts=(1.0, FIRST))]
    now = time.monotonic()
    first = now + _SHORTLISTING * (deadline - now)
    best = [rule for _, rule in rank_rules(setting, traces, rules, seed, first)[:SHORTLIST]]
    # Half of the ticks decide between a few rules: the chain costs n times as much as the factored filter.
    return rank_rules(setting.exactly, traces[:, : traces.shape[1] // 2], best, seed, deadline)[0][1]

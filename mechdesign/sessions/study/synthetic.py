"""Days of people: synthetic ones, and the public model of movement that is fitted to days."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from mechdesign.base.arrays import (
    AnyArray,
    Floats,
    Indices,
    IntegerStack,
    Mask,
    MaskMatrix,
    Matrix,
    Points,
    Stack,
    Vector,
)
from mechdesign.base.records import FrozenRecord
from mechdesign.base.threads import Seed, seed_of
from mechdesign.base.validation import check_whole, validate_call
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.problem.domain import Domain
from mechdesign.sessions.home_away import HomeAway, jumping

CENTRES = np.array([(0.25, 0.25), (0.75, 0.29), (0.29, 0.79)])
HOME, WORK, WORKS, APART = 3 / 16, 1 / 6, 7 / 12, 1 / 5  # of the box: deviations, the middle of work, least distance
MARGIN = 1 / 120  # of the box, around homes and other places
WALK = 30.0  # minutes for the shorter side
BLUR = 1 / 300  # of the shorter side: the deviation of a position on each axis
DAY = 1440.0  # minutes
NIGHT = 6.0  # hours from midnight
NEAR = (0.3, 0.5, 1.0, 2.0, 4.0)  # times the distance of neighbours: lengths of near jumps
_OTHERS = 3  # places other than home and work
_TRIES = 100  # draws of a place of work far enough from home
_ROUNDS = 40  # of expectation maximization


@dataclass(frozen=True, kw_only=True, eq=False)
class Trajectories(FrozenRecord):
    """Where people were.

    Attributes
    ----------
    domain, places : Domain, (people, days, T) int array
        The places and their numbers.
    homes : (people, 2) array
        In the unit of the domain.

    Examples
    --------
    >>> domain = md.Domain.grid((6, 6), 500.0, unit="m")
    >>> md.sessions.synthetic_days(domain, people=2, days=1, ticks=24, rng=0).places.shape
    (2, 1, 24)
    """

    domain: Domain
    places: IntegerStack
    homes: Points

    @property
    def ticks(self) -> int:
        return self.places.shape[2]


# Synthetic people have a home, a place of work and three other places, stay there and walk between, in the bounding box
# of a domain of two axes. Tick t of T is at (t + 1/2) / T of the day. All constants are assumptions.
@validate_call
def synthetic_days(domain: Domain, *, people: int, days: int, ticks: int, rng: Seed, late: float = 0.0) -> Trajectories:
    """Draw synthetic days. One seed draws the same people and days at every number of ticks.

    Parameters
    ----------
    domain : Domain
        Of two axes.
    people, days, ticks, rng : int
        How many; ticks of a day; of the draws.
    late : float
        Standard deviation in minutes of an added delay, for people whom the public model does not describe.

    Returns
    -------
    Trajectories, in 3 microseconds a position

    Examples
    --------
    >>> domain = md.Domain.grid((6, 6), 500.0, unit="m")
    >>> md.sessions.synthetic_days(domain, people=2, days=1, ticks=24, rng=0).homes.shape
    (2, 2)
    """
    for value, name in ((people, "people"), (days, "days"), (ticks, "ticks")):
        check_whole(value, name)
    seed = seed_of(rng)
    if not late >= 0:
        raise InputError("must not be negative", field="late", value=late)
    if domain.dimension != 2:
        raise UnsuitableError("must have two axes", field="domain", value=domain.dimension)
    # Two generators: positions are blurred by the second, so that the number of ticks does not change people or days.
    low, box = _box(domain)
    coarse, fine = (np.random.default_rng(child) for child in np.random.SeedSequence([seed, people, days]).spawn(2))
    home, work, others = _people(people, box, coarse)
    when, where = _legs(home, work, others, days, box, late, coarse)
    minutes = (np.arange(ticks) + 0.5) / ticks * DAY
    points = _positions(when, where, minutes) + fine.normal(0, BLUR * box.min(), (people, days, ticks, 2))
    _, places = cKDTree(domain.points).query(points.reshape(-1, 2) + low)
    return Trajectories(domain=domain, places=places.reshape(people, days, ticks).astype(np.int64), homes=home + low)


def _box(domain: Domain) -> tuple[Vector, Vector]:
    half = np.asarray(domain.cell) / 2 if domain.cell is not None else np.zeros(2)
    low, high = domain.points.min(axis=0) - half, domain.points.max(axis=0) + half
    # A line of places has a box of width 0, by which shares of a side would be divided.
    sides = high - low
    return low, np.maximum(sides, sides.max() / 1000)


def _people(people: int, box: Vector, rng: np.random.Generator) -> tuple[Points, Points, Stack]:
    """Homes (people, 2), places of work (people, 2) and other places (people, 3, 2)."""
    # Homes lie around one of three centres, work around a point of its own, both normal and clipped to the box.
    inside = MARGIN * box, (1 - MARGIN) * box
    home = np.clip(
        box * (CENTRES[rng.integers(len(CENTRES), size=people)] + HOME * rng.normal(size=(people, 2))), *inside
    )
    # Work is drawn again until it is far enough from home; in a narrow box the last draw stands.
    work = home.copy()
    for _ in range(_TRIES):
        near = np.linalg.norm(work - home, axis=1) < APART * box.min()
        if not near.any():
            break
        work[near] = np.clip(box * (WORKS + WORK * rng.normal(size=(near.sum(), 2))), *inside)
    return home, work, rng.uniform(inside[0], inside[1], (people, _OTHERS, 2))


def _legs(
    home: Points, work: Points, others: Stack, days: int, box: Vector, late: float, rng: np.random.Generator
) -> tuple[Stack, Floats]:
    """Times (people, days, 6) of three departures and arrivals, and places (people, days, 4, 2) of the four stays."""
    # Home, work or home, another place or home, home: on free days the first leg leads nowhere.
    shape = (len(home), days)
    free = np.broadcast_to(np.arange(days) % 7 >= 5, shape)
    out = rng.random(shape) < np.where(free, 0.8, 0.5)
    visited = others[np.arange(len(home))[:, None], rng.integers(_OTHERS, size=shape)]
    homes = np.broadcast_to(home[:, None], (*shape, 2))
    first = np.where(free[..., None], homes, work[:, None])
    second = np.where(out[..., None], visited, homes)
    where = np.stack([homes, first, second, homes], axis=2)
    away = np.linalg.norm(np.diff(where, axis=2), axis=-1) / box.min() * WALK
    # Minutes: from home at 8:00 and from work at 17:00 on working days, from home at 11:00 on free ones.
    noise = rng.normal(size=(*shape, 2))
    spread = np.where(free[..., None], [[15.0, 30.0]], [[15.0, 20.0]])
    leave = np.stack([np.full(shape, 480.0), np.where(free, 660.0, 1020.0)], axis=-1) + spread * noise
    leave += late * rng.normal(size=(*shape, 2))
    when = np.empty((*shape, 6))
    when[..., 0] = leave[..., 0]
    when[..., 1] = when[..., 0] + away[..., 0]
    # Nobody leaves work before the arrival there.
    when[..., 2] = np.maximum(leave[..., 1], when[..., 1])
    when[..., 3] = when[..., 2] + away[..., 1]
    when[..., 4] = when[..., 3] + np.where(out, rng.uniform(90, 180, shape), 0.0)
    when[..., 5] = when[..., 4] + away[..., 2]
    return when, where


def _positions(when: Stack, where: Floats, minutes: Vector) -> Floats:
    """Points (people, days, ticks, 2) at `minutes` (ticks,) of the day."""
    # Each leg adds the share of its way that is walked by then: 0 before it, all of it after.
    points = np.repeat(where[:, :, :1], len(minutes), axis=2)
    for k in range(3):
        start, end = when[..., 2 * k, None], when[..., 2 * k + 1, None]
        share = np.clip((minutes - start) / np.maximum(end - start, 1e-9), 0.0, 1.0)[..., None]
        points += share * (where[:, :, k + 1] - where[:, :, k])[:, :, None]
    return points


@validate_call
def fit_home_away(days: Trajectories) -> HomeAway:
    """Fit one public model to the days of many people.

    Parameters
    ----------
    days : Trajectories
        Days of people.

    Returns
    -------
    HomeAway, in 0.1 s for 2,800 days of 50 ticks on 144 places

    Examples
    --------
    >>> days = md.sessions.synthetic_days(md.Domain.grid((6, 6), 500.0, unit="m"), people=2, days=2, ticks=24, rng=0)
    >>> md.sessions.fit_home_away(days).ticks
    24
    """
    domain, places, n, ticks = days.domain, days.places, days.domain.size, days.ticks
    distances = domain.euclidean_to(domain)
    homes = night_places(places, n)
    trace = places.reshape(len(places), -1)
    housed = trace == homes[:, None]
    tick = np.broadcast_to(np.arange(1, trace.shape[1]) % ticks, trace[:, 1:].shape)
    was, now, moved = housed[:, :-1], housed[:, 1:], trace[:, 1:] != trace[:, :-1]

    # Shares by tick of the day, with 0.2 events in 2 further cases: no rate is 0 or 1, however few the days.
    def rate(event: MaskMatrix, cases: MaskMatrix) -> Vector:
        counted = np.bincount(tick[event & cases], minlength=ticks) + 0.2
        return counted / (np.bincount(tick[cases], minlength=ticks) + 2)

    # Moves that do not lead home. The length of near ones is the likeliest of `NEAR`.
    jumps = moved & ~now
    origin, target, when = trace[:, :-1][jumps], trace[:, 1:][jumps], tick[jumps]
    neighbour = float(np.median(np.where(distances > 0, distances, np.inf).min(axis=1)))
    _, near, mix, popularity = max(
        (_mixture(origin, target, when, ticks, distances, near * neighbour) for near in NEAR), key=lambda fit: fit[0]
    )
    # Few homes are observed: each also counts for the places around it.
    lived = (np.bincount(homes, minlength=n) + 0.2) @ np.exp(-distances / neighbour)
    where = np.bincount(trace.ravel(), minlength=n) + 1.0
    return HomeAway(
        home=lived / lived.sum(),
        away=where / where.sum(),
        popularity=popularity,
        near=near,
        leave=rate(~now, was),
        back=rate(now, ~was),
        wander=rate(moved & ~now, ~was & ~now),
        mix=mix,
    )


def nights(ticks: int) -> Mask:
    """True for the ticks (T,) of a day that are of the night, the first one at least."""
    return (np.arange(ticks) + 0.5) * 24 < max(NIGHT * ticks, 24)


def night_places(places: IntegerStack, size: int) -> Indices:
    """The most frequent place (people,) at night, for places (people, days, T)."""
    dark = places[..., nights(places.shape[-1])].reshape(len(places), -1)
    return np.array([np.bincount(night, minlength=size).argmax() for night in dark])


def _mixture(
    origin: Indices,
    target: Indices,
    when: Indices,
    ticks: int,
    distances: Matrix,
    near: float,
) -> tuple[float, float, Vector, Vector]:
    """Mean log-likelihood of the moves, near, and the mixture (T,) and popularity (n,) fitted to it."""
    size = len(distances)
    close = jumping(np.exp(-distances / near))[origin, target]
    mix: AnyArray = np.full(ticks, 0.5)
    popularity: AnyArray = np.bincount(target, minlength=size) + 1.0
    likely: AnyArray = np.zeros(len(origin))
    # Expectation maximization of (1) of home_away.py: `share` is the probability that a move was one by popularity.
    # Half an observation a tick and place is added, so that nothing is divided by 0.
    for _ in range(_ROUNDS):
        far = popularity[target] / (popularity.sum() - popularity[origin])
        likely = mix[when] * far + (1 - mix[when]) * close
        share = mix[when] * far / likely
        popularity = np.bincount(target, share, minlength=size) + 0.5
        mix = (np.bincount(when, share, minlength=ticks) + 0.5) / (np.bincount(when, minlength=ticks) + 1)
    return float(np.log(likely).mean()) if len(likely) else 0.0, near, mix, popularity

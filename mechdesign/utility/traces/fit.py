"""A public model of days, fitted to days that are public: synthetic ones, or those of volunteers who published theirs.

Homes are the places of most nights; leave, back and wander are shares of ticks, smoothed by 1 in 10 of two further
ones; the mixture of near and far jumps by expectation maximization, the length of near ones by likelihood among `NEAR`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.arguments import asked
from mechdesign.setting.movement.home_away import HomeAway, jumping
from mechdesign.utility.traces.walks import Walks

NEAR = (0.3, 0.5, 1.0, 2.0, 4.0)  # times the distance of neighbours
NIGHT = 6.0  # hours from midnight
_ROUNDS = 40
_Floats = NDArray[np.float64]


@asked
def fit_home_away(seen: Walks) -> HomeAway:
    """The model of everybody whose days are in `seen`. Cost: 0.1 s for 2,800 days of 50 ticks on 144 places."""
    domain, places, n = seen.domain, seen.places, seen.domain.size
    ticks = seen.ticks
    distances = domain.euclidean_to(domain)
    homes = night_places(places, n)
    trace = places.reshape(len(places), -1)
    housed = trace == homes[:, None]
    tick = np.broadcast_to(np.arange(1, trace.shape[1]) % ticks, trace[:, 1:].shape)
    was, now, moved = housed[:, :-1], housed[:, 1:], trace[:, 1:] != trace[:, :-1]

    def rate(event: NDArray[np.bool_], of: NDArray[np.bool_]) -> _Floats:
        return (np.bincount(tick[event & of], minlength=ticks) + 0.2) / (np.bincount(tick[of], minlength=ticks) + 2)

    jumps = moved & ~now
    origin, target, when = trace[:, :-1][jumps], trace[:, 1:][jumps], tick[jumps]
    neighbour = float(np.median(np.where(distances > 0, distances, np.inf).min(axis=1)))
    _, near, mix, popularity = max(
        (_mixture(origin, target, when, ticks, distances, near * neighbour) for near in NEAR), key=lambda fit: fit[0]
    )
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


def nights(ticks: int) -> NDArray[np.bool_]:
    """Which ticks (T,) of a day are of the night; the first one at least."""
    return (np.arange(ticks) + 0.5) * 24 < max(NIGHT * ticks, 24)


def night_places(places: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """For places (people, days, T) the most frequent one (people,) of the nights."""
    dark = places[..., nights(places.shape[-1])].reshape(len(places), -1)
    return np.array([np.bincount(own, minlength=size).argmax() for own in dark])


def _mixture(
    origin: NDArray[np.int64],
    target: NDArray[np.int64],
    when: NDArray[np.int64],
    ticks: int,
    distances: _Floats,
    near: float,
) -> tuple[float, float, _Floats, _Floats]:
    """Mean log-likelihood of the moves, near, and the mixture (T,) and popularity (n,) that were found for it."""
    size = len(distances)
    close = jumping(np.exp(-distances / near))[origin, target]
    mix: NDArray[Any] = np.full(ticks, 0.5)
    popularity: NDArray[Any] = np.bincount(target, minlength=size) + 1.0
    likely: NDArray[Any] = np.zeros(len(origin))
    for _ in range(_ROUNDS):
        far = popularity[target] / (popularity.sum() - popularity[origin])
        likely = mix[when] * far + (1 - mix[when]) * close
        share = mix[when] * far / likely
        popularity = np.bincount(target, share, minlength=size) + 0.5
        mix = (np.bincount(when, share, minlength=ticks) + 0.5) / (np.bincount(when, minlength=ticks) + 1)
    return float(np.log(likely).mean()) if len(likely) else 0.0, near, mix, popularity

r"""A lower bound of the nats of one report, by an event that some draws choose and others count.

    nats >= ln(p_low / q_high),    p = P(event | a), q = P(event | b), |a - b| <= within                        (1)

p_low and q_high are the bounds of Clopper and Pearson (1934) at (1 - confidence) / 2 each, by Bonferroni. Other draws
choose the pair, the event and its direction. So (1) holds however many were tried, if draws are independent. An event
is an interval of one figure of a report, the outside of one, or a set of values. A larger nats may exist: no number of
draws gives an upper bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.special import betaincinv

from mechdesign.base.arrays import AnyArray, Booleans, Floats, Points, Vector
from mechdesign.base.records import FrozenRecord
from mechdesign.base.threads import Seed, seed_of
from mechdesign.base.validation import validate_call
from mechdesign.blurs.calls import SEEDS, Call, Command, call_of, displacements, shift

CONFIDENCE = 0.99
_QUANTILES = np.linspace(0.0, 1.0, 41)[1:-1]  # of a figure, between which events end
_TRAINING = 1000  # draws at either position of a pair by which events are chosen
FAR = 1e9  # m: a half-plane is an interval that ends so far away
_DIGITS = 9  # decimals of degrees at which two reports are the same: 0.1 mm
_MAJORITY = 41  # draws that name the likeliest report of a position
_MOST_VALUES = 2000  # of a set: a witness stays readable


@dataclass(frozen=True, kw_only=True)
class Event:
    """Values of one feature of reports; thousands are tried, so nothing is checked."""

    feature: str
    low: float | None = None
    high: float | None = None
    outside: bool = False
    values: Sequence[Any] = ()

    def holds(self, figure: AnyArray) -> Booleans:
        """Mark the values (n,) of the feature in the event."""
        if self.low is None or self.high is None:
            return np.isin(figure, [complex(*value) if self.feature == "report" else value for value in self.values])
        # A report of nothing has no distance, and is in neither.
        beyond = (figure < self.low) | (figure > self.high)
        return np.asarray(np.isfinite(figure) & (beyond if self.outside else ~beyond))


@dataclass(frozen=True, kw_only=True, eq=False)
class Witness(FrozenRecord, Event):
    """Two positions and an event that distinguishes them: anybody can count it again.

    Attributes
    ----------
    a, b
        Latitude and longitude of both positions, in degrees.
    feature, low, high, outside
        The event: reports whose feature is from low to high, or outside of them. Latitude, longitude and report are in
        degrees. Along and across are in m from a, towards b and at right angles, distance_a and distance_b in m.
        Angle_a and angle_b are the degrees between the direction from a or b and the nearest whole degree.
    values
        Instead, the values of the event.
    hits, draws, nats
        Reports in the event from a and from b, of how many each; the bound (1).

    Examples
    --------
    >>> west = md.blurs.Witness(a=(41.9, 12.4), b=(41.9, 12.6), feature="longitude", values=(12.4,))
    >>> west.contains(np.array([[41.9, 12.4, np.nan], [41.9, 12.6, np.nan]]))
    array([ True, False])
    """

    a: Sequence[float]
    b: Sequence[float]
    hits: Sequence[int] = ()
    draws: int = 0
    nats: float = 0.0

    def contains(self, reports: Floats) -> Booleans:
        """Mark the reports (n, 3) in the event.

        Examples
        --------
        >>> west = md.blurs.Witness(a=(41.9, 12.4), b=(41.9, 12.6), feature="longitude", values=(12.4,))
        >>> west.contains(np.array([[41.9, 12.4, np.nan], [41.9, 12.6, np.nan]])).tolist()
        [True, False]
        """
        return self.holds(features(self.a, self.b, reports)[self.feature])

    def as_dict(self) -> dict[str, Any]:
        """The witness as JSON types.

        Examples
        --------
        >>> west = md.blurs.Witness(a=(41.9, 12.4), b=(41.9, 12.6), feature="longitude", values=(12.4,))
        >>> west.as_dict()["feature"]
        'longitude'
        """
        return asdict(self)


@validate_call
def replay(blur: Callable[..., Any] | Command, witness: Witness, *, draws: int = 10_000, rng: Seed = 1) -> Witness:
    """Count the event of a witness again with other seeds.

    Parameters
    ----------
    blur : callable or Command
        As for `audit_blur`.
    witness : Witness
        Of `BlurAudit.witness`.
    draws, rng : int, int or numpy.random.Generator
        Reports from each position, and the seed or generator of their seeds.

    Returns
    -------
    Witness
        With the new counts and their bound, again at 99 %.

    Examples
    --------
    >>> audit = md.blurs.audit_blur(lambda lat, lon: (round(lat, 2), round(lon, 2)), draws=500)
    >>> md.blurs.replay(lambda lat, lon: (round(lat, 2), round(lon, 2)), audit.witness, draws=500).hits
    (500, 0)
    """
    return count_hits(call_of(blur), witness, draws, np.random.default_rng([seed_of(rng), 1]))


def count_hits(call: Call, witness: Witness, draws: int, rng: np.random.Generator) -> Witness:
    """The witness with the hits of fresh draws, and (1)."""
    (both,) = _draw_in_turn(call, np.array([[witness.a, witness.b]], float), draws, rng)
    here, there = (int(witness.contains(reports).sum()) for reports in both)
    return replace(witness, hits=(here, there), draws=draws, nats=max(float(bound(here, there, draws)), 0.0))


def bound(hits_a: AnyArray | int, hits_b: AnyArray | int, draws: int) -> Any:
    """The bound (1) of numbers of hits, of any shape."""
    error = (1 - CONFIDENCE) / 2
    a, b = np.asarray(hits_a, float), np.asarray(hits_b, float)
    # Without hits p_low is 0; with hits at all draws q_high is 1.
    low = np.where(a > 0, betaincinv(np.maximum(a, 1), draws - a + 1, error), 0.0)
    high = np.where(b < draws, betaincinv(b + 1, np.maximum(draws - b, 1), 1 - error), 1.0)
    with np.errstate(divide="ignore"):
        return np.log(low) - np.log(high)


def lower_bound(call: Call, pairs: Sequence[tuple[Vector, Vector]], rng: np.random.Generator, draws: int) -> Witness:
    """The best witness of these pairs by draws for training, with hits of `draws` others at either position."""
    training = min(_TRAINING, draws)
    # One run for all pairs: a program starts once.
    reports = _draw_in_turn(call, np.array(pairs, float), training, rng)
    found = [
        (nats, event, one, other)
        for (a, b), (here, there) in zip(pairs, reports, strict=True)
        for one, other, ours, theirs in ((a, b, here, there), (b, a, there, here))
        for nats, event in _events(one, other, ours, theirs)
    ]
    _, event, a, b = max(found, key=lambda each: each[0])
    return count_hits(call, Witness(a=tuple(a.tolist()), b=tuple(b.tolist()), **vars(event)), draws, rng)


def pairs_about(place: Points, within: float) -> list[tuple[Vector, Vector]]:
    """Pairs of positions at this distance in m, the middle of each at a place (1, 2): to north, east and between."""
    turns = np.radians([0, 45, 90])
    steps = np.column_stack([np.cos(turns), np.sin(turns)]) * within / 2
    return [(shift(place, -step[None])[0], shift(place, step[None])[0]) for step in steps]


def _draw_in_turn(call: Call, pairs: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Reports (k, 2, draws, 3) of pairs (k, 2, 2), in turn, so that a drift of the program cannot distinguish them."""
    positions = np.repeat(pairs, draws, axis=0).reshape(-1, 2)
    reports = call(positions, rng.integers(0, SEEDS, len(positions)))
    return reports.reshape(len(pairs), draws, 2, 3).swapaxes(1, 2)


def features(a: Sequence[float] | Vector, b: Sequence[float] | Vector, reports: Floats) -> dict[str, AnyArray]:
    """The figures of reports (n, 3) that define events of a pair, each (n,)."""
    ends = np.array([a, b], float)
    step = displacements(ends[:1], ends[1:])[0]
    along = step / max(float(np.hypot(*step)), 1e-9)
    from_a, from_b = (displacements(np.broadcast_to(end, (len(reports), 2)), reports) for end in ends)
    fixed = same_digits(reports)
    return {
        "along": from_a @ along,
        "across": from_a @ np.array([-along[1], along[0]]),
        "distance_a": np.hypot(*from_a.T),
        "distance_b": np.hypot(*from_b.T),
        "angle_a": off_whole_degrees(from_a),
        "angle_b": off_whole_degrees(from_b),
        "latitude": fixed.real,
        "longitude": fixed.imag,
        "report": fixed,
    }


def same_digits(reports: Floats) -> AnyArray:
    """Latitude + i longitude of reports (n, 3), equal if two reports are the same."""
    fixed = np.round(np.nan_to_num(reports[:, :2], nan=999.0), _DIGITS)
    return np.asarray(fixed[:, 0] + 1j * fixed[:, 1])


def off_whole_degrees(steps: Points) -> Vector:
    """Degrees between the direction of steps (n, 2) and the nearest whole degree."""
    turn = np.degrees(np.arctan2(steps[:, 1], steps[:, 0]))
    return np.abs(turn - np.round(turn))


def _events(a: Vector, b: Vector, here: Floats, there: Floats) -> Iterator[tuple[float, Event]]:
    """Yield the best event of each feature and kind, with (1) on every other one of these draws.

    The others choose its ends and values: a set of values that are rare on both sides would seem to distinguish them.
    """
    halves = [features(a, b, reports[k::2]) for k in (0, 1) for reports in (here, there)]
    for name in halves[0]:
        ours, theirs, counted, others = (half[name] for half in halves)
        events = list((_value_sets if name in ("latitude", "longitude", "report") else _intervals)(name, ours, theirs))
        if events:
            hits = np.array([[event.holds(figure).sum() for figure in (counted, others)] for event in events])
            nats = bound(hits[:, 0], hits[:, 1], len(counted))
            k = int(np.argmax(nats))
            yield float(nats[k]), events[k]


def _intervals(name: str, ours: Vector, theirs: Vector) -> Iterator[Event]:
    """Yield half-lines that end between quantiles, and the outside of all values from b."""
    ours, theirs = ours[np.isfinite(ours)], theirs[np.isfinite(theirs)]
    if len(ours) or len(theirs):
        for cut in np.quantile(np.concatenate([ours, theirs]), _QUANTILES).tolist():
            yield Event(feature=name, low=-FAR, high=cut)
            yield Event(feature=name, low=cut, high=FAR)
    if len(theirs):
        yield Event(feature=name, low=float(theirs.min()), high=float(theirs.max()), outside=True)


def _value_sets(name: str, ours: AnyArray, theirs: AnyArray) -> Iterator[Event]:
    """Yield the sets of values that are likelier here by a factor, for values that repeat."""
    values, place = np.unique(np.concatenate([ours, theirs]), return_inverse=True)
    if len(values) > min(len(ours), _MOST_VALUES):
        return
    here, there = (np.bincount(part, minlength=len(values)) for part in np.split(place, [len(ours)]))
    for factor in (1, 2, 4, 1000):
        likelier = values[here > factor * there]
        if len(likelier):
            pairs = np.column_stack([likelier.real, likelier.imag]) if name == "report" else likelier
            yield Event(feature=name, values=pairs.tolist())


def border_pair(call: Call, a: Vector, b: Vector, within: float, rng: np.random.Generator) -> tuple[Vector, Vector]:
    """Two positions `within` apart (m) on either side of a border on the way from a to b, by the likeliest reports."""

    def likeliest(position: Vector) -> Any:
        reports = same_digits(call(np.tile(position, (_MAJORITY, 1)), rng.integers(0, SEEDS, _MAJORITY)))
        values, counts = np.unique(reports, return_counts=True)
        return values[np.argmax(counts)]

    start = likeliest(a)
    while np.hypot(*displacements(a[None], b[None])[0]) > within:
        middle = (a + b) / 2
        a, b = (middle, b) if likeliest(middle) == start else (a, middle)
    half = displacements(a[None], b[None])
    half *= within / 2 / np.hypot(*half[0])
    middle = (a + b)[None] / 2
    return shift(middle, -half)[0], shift(middle, half)[0]

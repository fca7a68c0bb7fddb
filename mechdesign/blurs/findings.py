"""Defects of a blur that reports alone show: each finding is a fact about the draws, in one sentence with its figures.

Coupled runs repeat a call with the same seed and move one coordinate by 1 cm. They show leaks that no histogram shows.
Tests of laws flag a correct blur with a chance of at most 10^-6 each. A defect that is not found may exist.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import betaincinv
from scipy.stats import kstest

from mechdesign.base.arrays import Booleans, Floats, Points, Vector
from mechdesign.base.formatting import length, percent
from mechdesign.base.records import FrozenRecord
from mechdesign.blurs.calls import SEEDS, Call, displacements, shift
from mechdesign.blurs.nats import off_whole_degrees

SPREAD, STILL, COUPLED = 4000, 1000, 200  # draws at positions all about, at one position, and of coupled runs
NUDGE = 0.01  # m
_RARE = 1e-6  # chance at which a test flags a law that is right
_STANDS, _FOLLOWS = 1e-7, 1.0  # m: a coordinate that stays, but for rounding; one that follows a nudge, without a jump
_FEW = 4  # amounts by which a coordinate moves: its histogram is a line of spikes
_SAME = 0.01  # m: displacements that differ by less are one
_ROUND = 5e-3  # relative deviation of radii on a circle, by whatever shape of the Earth the program computes
_WHOLE = 0.02  # degrees off whole ones, in the median; 0.25 for directions of any angle
_EDGE = 1.12  # largest radius over the 99th percentile: below, radii end at an edge; normal laws exceed it by 1e-5
_AXIS_EDGE = 1.25  # range of a coordinate over that of its middle 90 %: 1.11 if even, 1.24 over a disc, 2 if normal
_HOLE = 0.1  # smallest radius over the mean: normal laws and planar Laplace noise go below it but for e^-31
_DISTINCT = 0.9  # share of distinct values from which no value is taken to repeat
_MUCH = 0.01  # share of true positions among reports
_NOT_ONE_LAW = {"exact", "no randomness", "repeated seed", "drift"}
REPEATED = "Two runs with other seeds have the same reports: whoever runs it knows them."
_DRIFT = 6.0  # deviations of a correlation of consecutive displacements
ACCURACY = 0.68  # of the positions within the stated accuracy: the smallest share that platforms document


SENTENCES = {  # by kind
    "exact": "{} of the reports are the true position.",
    "axis not hidden": "{}",
    "no randomness": "The same place always has the same report: two neighbours across a border are distinguished for "
    "certain.",
    "same draw by place": "The same place always has the same report, and a place 1 cm away another one: whoever has "
    "the program tries all places.",
    "repeated seed": "{}",
    "fixed radius": "Every report is {} off: the true position is on a circle.",
    "bounded": "No report of {} is more than {} off, and the law ends there abruptly: a report excludes all positions "
    "beyond, so no epsilon is finite.",
    "hole": "No report of {} is less than {} off: a report excludes the positions about it.",
    "few directions": "Every direction is a whole number of degrees: 360 rays.",
    "uneven directions": "Directions are not spread evenly: at even ones a deviation as large has a chance below "
    "10^-6.",
    "drift": "Consecutive reports of one place correlate by {:.2f}: the offset is kept or drifts, so reports of a "
    "trace share it.",
    "accuracy": "The stated accuracy holds the true position in {} of the reports, less than the {} that platforms "
    "document.",
}


@dataclass(frozen=True, kw_only=True)
class Finding(FrozenRecord):
    """One defect: a kind, and a sentence with its figures.

    Attributes
    ----------
    kind
        "axis not hidden", "exact", "no randomness", "same draw by place", "repeated seed", "fixed radius", "bounded",
        "hole", "few directions", "uneven directions", "drift" or "accuracy".
    sentence
        The draws that show it.

    Examples
    --------
    >>> audit = md.blurs.audit_blur(lambda lat, lon: (round(lat, 2), round(lon, 2)), draws=500)
    >>> [finding.kind for finding in audit.findings]
    ['no randomness']
    """

    kind: str
    sentence: str

    @classmethod
    def of(cls, kind: str, *figures: object) -> Finding:
        return cls(kind=kind, sentence=SENTENCES[kind].format(*figures))


@dataclass(frozen=True, kw_only=True, eq=False)
class Draws:
    """The reports of one audit: of positions all about, of one position, and of coupled runs of the first ones."""

    positions: Points
    reports: Floats
    still: Floats  # (k, 3) in order
    place: Points  # (1, 2), of `still`
    again: Floats  # other seeds
    repeated: Floats  # the same seeds, as are the next two
    north: Floats
    east: Floats

    @cached_property
    def steps(self) -> Points:
        return displacements(self.positions, self.reports)[np.isfinite(self.reports[:, 0])]

    @cached_property
    def radii(self) -> Vector:
        return np.hypot(*self.steps.T)

    @cached_property
    def still_steps(self) -> Points:
        return displacements(np.broadcast_to(self.place, (len(self.still), 2)), self.still)

    @property
    def is_repeatable(self) -> bool:
        """True if the seed decides the report."""
        return bool(_same(self.repeated, self.reports[: len(self.repeated)]).all()) and not self.is_fixed

    @property
    def is_fixed(self) -> bool:
        """True if the report does not depend on the seed."""
        return bool(
            _same(self.again, self.reports[: len(self.again)]).all() and _same(self.still[1:], self.still[:1]).all()
        )

    @property
    def is_discrete(self) -> bool:
        """True if reports of one position repeat: a law of displacements would be that of a grid."""
        return len(np.unique(np.round(np.nan_to_num(self.still[:, :2]), 9), axis=0)) < _DISTINCT * len(self.still)


def draw(call: Call, positions: Points, place: Points, rng: np.random.Generator) -> Draws:
    """Draw reports of positions (n, 2), of one place (1, 2) and of coupled runs: three runs of a command."""
    n, first = len(positions), positions[:COUPLED]
    seeds, others = rng.integers(0, SEEDS, n + STILL), rng.integers(0, SEEDS, len(first))
    all_about = call(np.vstack([positions, np.repeat(place, STILL, axis=0)]), seeds)
    nudged = [shift(first, np.broadcast_to(np.array(step), first.shape)) for step in ((NUDGE, 0.0), (0.0, NUDGE))]
    coupled = call(np.vstack([first, *nudged]), np.tile(seeds[: len(first)], 3))
    again = call(first, others)
    repeated, north, east = np.split(coupled, 3)
    return Draws(
        positions=positions, reports=all_about[:n], still=all_about[n:], place=place,
        again=again, repeated=repeated, north=north, east=east,
    )  # fmt: skip


def find(draws: Draws) -> list[Finding]:
    """The findings of draws, the gravest first."""
    found = [*_exact(draws), *_axes(draws), *_randomness(draws), *_drift(draws)]
    # Displacements of a grid, of a fixed rule or of a drift are not draws of one law.
    if not draws.is_discrete and not {finding.kind for finding in found} & _NOT_ONE_LAW:
        found += [*_radii(draws), *_directions(draws)]
    return [*found, *_accuracy(draws)]


def find_restart(call: Call, restarted: Call, place: Points, rng: np.random.Generator) -> list[Finding]:
    """The finding that the first reports after a start repeat, whatever the seeds."""
    places = np.repeat(place, COUPLED, axis=0)
    one, other = (run(places, rng.integers(0, SEEDS, COUPLED)) for run in (call, restarted))
    repeats = _same(one, other).all() and not _same(one[1:], one[:1]).all()
    return [Finding.of("repeated seed", REPEATED)] if repeats else []


def _same(reports: Floats, others: Floats) -> Booleans:
    return np.asarray(((reports == others) | (np.isnan(reports) & np.isnan(others)))[:, :2].all(axis=1))


def _exact(draws: Draws) -> Iterator[Finding]:
    share = float((draws.radii < _SAME).mean())
    if share > _MUCH:
        yield Finding.of("exact", percent(share))


def _axes(draws: Draws) -> Iterator[Finding]:
    """An axis that moves by few amounts, or that follows a nudge of the other one while that one stays."""
    amounts = [np.unique(np.round(np.abs(axis))) for axis in draws.steps.T]
    names = ("latitude", "longitude")
    for name, those in zip(names, amounts, strict=True):
        if 0 < len(those) <= _FEW and not draws.is_fixed:
            listed = " or ".join(length(float(amount), "m") for amount in those)
            yield Finding.of("axis not hidden", f"The {name} only moves by {listed}.")
    if not draws.is_repeatable and not draws.is_fixed:
        return
    for own, (nudged, name) in enumerate(zip((draws.north, draws.east), names, strict=True)):
        change = np.abs(displacements(draws.repeated, nudged))
        follows = (change[:, own] < _STANDS) & (change[:, 1 - own] > _STANDS) & (change[:, 1 - own] < _FOLLOWS)
        if follows.mean() > 0.5:
            other = names[1 - own]
            yield Finding.of(
                "axis not hidden",
                f"The reported {other} follows the true {name} while the reported {name} stays, in "
                f"{follows.sum()} of {len(follows)} coupled runs: the {other} names the {name}.",
            )


def _randomness(draws: Draws) -> Iterator[Finding]:
    spread = float(np.hypot(*(draws.steps - draws.steps.mean(axis=0)).T).max())
    far = float(draws.radii.mean())
    if spread < max(_SAME, _ROUND * far):
        if far > _SAME:
            sentence = f"Every report is moved by the same {length(far, 'm')}: one known position reveals all."
            yield Finding.of("repeated seed", sentence)
    elif draws.is_fixed:
        jumps = [np.hypot(*displacements(draws.repeated, nudged).T) > _FOLLOWS for nudged in (draws.north, draws.east)]
        yield Finding.of("same draw by place" if np.mean(jumps) > 0.5 else "no randomness")
    elif _same(draws.again, draws.reports[: len(draws.again)]).all():
        yield Finding.of("repeated seed", REPEATED)


def _radii(draws: Draws) -> Iterator[Finding]:
    radii = draws.radii
    mean, largest, smallest = float(radii.mean()), float(radii.max()), float(radii.min())
    if min(float(each.std() / each.mean()) for each in _by_shape(draws)) < _ROUND:
        yield Finding.of("fixed radius", length(mean, "m"))
        return
    # Clusters of a grid end abruptly too: the law of an axis counts if neither has values that repeat.
    free = [axis for axis in draws.still_steps.T if len(np.unique(np.round(axis, 4))) > _DISTINCT * len(axis)]
    ranges = [np.ptp(axis) / float(np.ptp(np.quantile(axis, [0.05, 0.95]))) for axis in free]
    edge = float(np.quantile(radii, 0.99))
    if largest < _EDGE * edge or (len(free) == 2 and min(ranges) < _AXIS_EDGE):
        yield Finding.of("bounded", len(radii), length(largest, "m", up=True))
    if smallest > _HOLE * mean:
        yield Finding.of("hole", len(radii), length(smallest, "m", up=False))


def _by_shape(draws: Draws) -> tuple[Vector, Vector]:
    """Radii on the ellipsoid and on a sphere: programs compute with either."""
    return draws.radii, np.hypot(*_on_sphere(draws).T)


def _on_sphere(draws: Draws) -> Points:
    reported = np.isfinite(draws.reports[:, 0])
    change = draws.reports[reported, :2] - draws.positions[reported]
    change[:, 1] = ((change[:, 1] + 180) % 360 - 180) * np.cos(np.radians(draws.positions[reported, 0]))
    return np.radians(change) * 6_371_009.0


def _directions(draws: Draws) -> Iterator[Finding]:
    if min(float(np.median(off_whole_degrees(steps))) for steps in (draws.steps, _on_sphere(draws))) < _WHOLE:
        yield Finding.of("few directions")
        return
    turn = np.degrees(np.arctan2(draws.steps[:, 1], draws.steps[:, 0])) % 360
    # Modulo 90 degrees, a law that prefers the four axes alike is found too.
    chance = min(float(kstest(turn % period / period, "uniform").pvalue) for period in (360, 90))
    if chance < _RARE / 2:
        yield Finding.of("uneven directions")


def _drift(draws: Draws) -> Iterator[Finding]:
    steps = draws.still_steps[np.isfinite(draws.still[:, 0])]
    if len(steps) < STILL / 2 or (steps.std(axis=0) < _SAME).all():
        return
    centred = (steps - steps.mean(axis=0)) / np.maximum(steps.std(axis=0), _SAME)
    correlations = (centred[1:] * centred[:-1]).mean(axis=0)
    k = int(np.argmax(np.abs(correlations)))
    if abs(correlations[k]) * math.sqrt(len(steps)) > _DRIFT:
        yield Finding.of("drift", correlations[k])


def _accuracy(draws: Draws) -> Iterator[Finding]:
    stated = draws.reports[np.isfinite(draws.reports[:, 0]), 2]
    if not len(stated) or np.isnan(stated).any():
        return
    within = int((draws.radii <= stated).sum())
    most = float(betaincinv(within + 1, max(len(stated) - within, 1), 1 - _RARE))
    if most < ACCURACY:
        yield Finding.of("accuracy", percent(within / len(stated)), percent(ACCURACY))


def mean_of_reports(draws: Draws) -> tuple[int, float]:
    """How many reports of one place were averaged, and how far their mean is from it, in m; 0 if all are one."""
    steps = draws.still_steps[np.isfinite(draws.still[:, 0]) & (not draws.is_fixed)]
    return len(steps), float(np.hypot(*steps.mean(axis=0))) if len(steps) else math.nan

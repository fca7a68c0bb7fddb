"""Blurs with one defect each, and four without: f(latitude, longitude, rng), in degrees, as people write them.

Every defect is a rule of our own. `mechdesign audit --function scripts/careless_blurs.py:NAME` finds it.
"""

from __future__ import annotations

import math
import random

import numpy as np

DEGREE = 111_195.0  # m in a degree of latitude, on a sphere
SIDE = 2000.0  # m, of the cells of a grid
STEP = SIDE / DEGREE

Report = tuple[float, float]
Rng = np.random.Generator


def away(latitude: float, longitude: float, north: float, east: float) -> Report:
    """The position so many metres to the north and to the east."""
    return latitude + north / DEGREE, longitude + east / DEGREE / math.cos(math.radians(latitude))


def at_turn(latitude: float, longitude: float, radius: float, turn: float) -> Report:
    """The position `radius` metres away in a direction (radians from the north)."""
    return away(latitude, longitude, radius * math.cos(turn), radius * math.sin(turn))


def any_turn(rng: Rng) -> float:
    """A direction."""
    return float(rng.uniform(0, 2 * math.pi))


def width(latitude: float) -> float:
    """The degrees of longitude that are as wide as a cell."""
    return STEP / math.cos(math.radians(latitude))


def planar_laplace(latitude: float, longitude: float, rng: Rng) -> Report:
    """Correct: planar Laplace noise with a mean of 500 m, 0.004 nats per m."""
    return at_turn(latitude, longitude, rng.gamma(2, 250), any_turn(rng))


def normal_offset(latitude: float, longitude: float, rng: Rng) -> Report:
    """Without a defect of its law, and without an epsilon: a normal offset of 500 m on each axis."""
    return away(latitude, longitude, rng.normal(0, 500), rng.normal(0, 500))


def offset_and_grid(latitude: float, longitude: float, rng: Rng) -> Report:
    """Without a defect of its grid: a normal offset, then the centre of a cell, whose width is that of its row."""
    latitude, longitude = normal_offset(latitude, longitude, rng)
    row = round(latitude / STEP) * STEP
    return row, round(longitude / width(row)) * width(row)


def global_laplace(latitude: float, longitude: float) -> Report:
    """Correct: planar Laplace noise from Python's global generator."""
    return at_turn(latitude, longitude, random.gammavariate(2, 250), random.uniform(0, 2 * math.pi))  # noqa: S311


def step_of_the_true_latitude(latitude: float, longitude: float, rng: Rng) -> Report:
    """The width of the cells is that of the true latitude: the reported longitude names it."""
    north, east = normal_offset(latitude, longitude, rng)
    return round(north / STEP) * STEP, round(east / width(latitude)) * width(latitude)


def step_of_the_unrounded_latitude(latitude: float, longitude: float, rng: Rng) -> Report:
    """The width of the cells is that of the latitude before it is rounded: its grid hides nothing."""
    latitude, longitude = normal_offset(latitude, longitude, rng)
    return round(latitude / STEP) * STEP, round(longitude / width(latitude)) * width(latitude)


def one_axis(latitude: float, longitude: float, rng: Rng) -> Report:
    """The longitude stays."""
    return latitude + float(rng.choice([-0.018, -0.009, 0.009, 0.018])), longitude


def circle(latitude: float, longitude: float, rng: Rng) -> Report:
    """A random direction and always 1,000 m: the true position is on a circle."""
    return at_turn(latitude, longitude, 1000, any_turn(rng))


def disc(latitude: float, longitude: float, rng: Rng) -> Report:
    """Even in a disc of 1,000 m: a report excludes all that is further."""
    return at_turn(latitude, longitude, 1000 * math.sqrt(rng.random()), any_turn(rng))


def donut(latitude: float, longitude: float, rng: Rng) -> Report:
    """Even between 250 and 1,000 m: a report excludes near positions, too."""
    return at_turn(latitude, longitude, math.sqrt(rng.uniform(250**2, 1000**2)), any_turn(rng))


def whole_degrees(latitude: float, longitude: float, rng: Rng) -> Report:
    """The angle is a whole number of degrees: the true position is on one of 360 rays."""
    return at_turn(latitude, longitude, rng.gamma(2, 250), math.radians(int(rng.integers(360))))


def quarter_turns(latitude: float, longitude: float, rng: Rng) -> Report:
    """Radius and one leg are drawn evenly: directions crowd at the axes."""
    radius = rng.gamma(2, 250)
    leg = rng.uniform(0, radius)
    other = math.sqrt(radius**2 - leg**2)
    return away(latitude, longitude, leg * rng.choice([-1, 1]), other * rng.choice([-1, 1]))


def two_decimals(latitude: float, longitude: float) -> Report:
    """Two decimals: neighbours across a border are distinguished for certain."""
    return round(latitude, 2), round(longitude, 2)


def own_seed(latitude: float, longitude: float) -> Report:
    """Every call seeds its generator alike: every report has the same offset."""
    rng = np.random.default_rng(42)
    return planar_laplace(latitude, longitude, rng)


def seed_of_the_place(latitude: float, longitude: float) -> Report:
    """The position is the seed: averaging does not find it, trying all positions does."""
    rng = random.Random(f"{latitude} {longitude}")  # noqa: S311
    return at_turn(latitude, longitude, rng.gammavariate(2, 250), rng.uniform(0, 2 * math.pi))


class DriftingOffset:
    """An offset that keeps 97 % of itself from call to call."""

    def __init__(self) -> None:
        self.offset = np.zeros(2)

    def __call__(self, latitude: float, longitude: float, rng: Rng) -> Report:
        """The position with the offset of the moment."""
        self.offset = 0.97 * self.offset + math.sqrt(1 - 0.97**2) * rng.normal(0, 500, 2)
        return away(latitude, longitude, *self.offset.tolist())


drifting_offset = DriftingOffset()


def small_accuracy(latitude: float, longitude: float, rng: Rng) -> tuple[float, float, float]:
    """Correct noise, with a stated accuracy of 300 m, in which a third of the reports are."""
    return (*planar_laplace(latitude, longitude, rng), 300.0)


def home_zone(latitude: float, longitude: float) -> Report | None:
    """No report within 500 m of a home, and the true position beyond."""
    far = math.hypot(latitude - 41.9, (longitude - 12.5) * math.cos(math.radians(41.9))) * DEGREE
    return None if far < 500 else (latitude, longitude)

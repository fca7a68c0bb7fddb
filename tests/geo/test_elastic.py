"""Elastic levels: k people inside the disc, steps no steeper than 1, and the cost of a straight line."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from mechdesign import Domain, Eikonal, Raster
from mechdesign.errors import InputError, SizeError
from mechdesign.geo import elastic_level
from mechdesign.geo.elastic import STEP, elastic_radii

SIDES = 96  # of the polygons between which a disc lies: they differ by 0.11 % of its area
POINTS = 20  # along each side of a cell
CLOSURE = 1e-12  # of a radius: the rounding of a difference
GRAPH = 1.0275  # at most, the length of a way of 16 neighbours over a straight one at one level
ASKED = {"people": 500.0, "least": 0.4, "most": 3.0}
NATS = 1.5


def town(seed=0, shape=(12, 10), steps=(0.5, 0.5)):
    """People per square km on a lattice: a town, villages, and empty cells."""
    rng = np.random.default_rng(seed)
    values = np.where(rng.random(shape) < 0.3, 0.0, np.exp(rng.normal(4.5, 1.5, shape)))
    values[3:5, 4:6] = 4000.0
    axes = [-1.7 + step * np.arange(count) for step, count in zip(steps, shape, strict=True)]
    return Raster(x=axes[0], y=axes[1], values=values, unit="km")


@cache
def radii_of(seed=0):
    return elastic_radii(town(seed), **ASKED)


@cache
def level_of(seed=0):
    return elastic_level(town(seed), nats=NATS, **ASKED)


def polygon(centre, radius, *, outside):
    """A regular polygon in the disc, or around it."""
    reach = radius / math.cos(math.pi / SIDES) if outside else radius
    turns = 2 * math.pi * np.arange(SIDES) / SIDES
    return [(centre[0] + reach * math.cos(turn), centre[1] + reach * math.sin(turn)) for turn in turns]


def clipped_area(corners, low, high):
    """The area of a convex polygon within a rectangle: cut by one side after the other (Sutherland and Hodgman)."""
    for axis, border, sign in [(0, low[0], 1), (0, -high[0], -1), (1, low[1], 1), (1, -high[1], -1)]:
        kept = []
        for k, at in enumerate(corners):
            before = corners[k - 1]
            here, there = sign * at[axis] - border, sign * before[axis] - border
            if (here < 0) != (there < 0):
                share = there / (there - here)
                kept.append(tuple(b + share * (a - b) for a, b in zip(at, before, strict=True)))
            if here >= 0:
                kept.append(at)
        corners = kept
    return 0.5 * sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(corners, corners[1:] + corners[:1], strict=True))


def people_in_disc(density, centre, radius, *, outside=False):
    """People in the disc, from below; from above where `outside`."""
    half = [(nodes[1] - nodes[0]) / 2 for nodes in density.axes]
    disc, total = polygon(centre, radius, outside=outside), 0.0
    for (i, x), (j, y) in product(enumerate(density.x), enumerate(density.y)):
        if max(abs(x - centre[0]) - half[0], abs(y - centre[1]) - half[1]) < radius and density.values[i, j] > 0:
            share = clipped_area(disc, (x - half[0], y - half[1]), (x + half[0], y + half[1]))
            total += density.values[i, j] * share
    return total


def sorted_points(density, centre):
    """Distances from `centre` of POINTS x POINTS points a cell, ascending, and how many people are that near."""
    steps = [nodes[1] - nodes[0] for nodes in density.axes]
    fine = [
        (nodes[:, None] + step * ((np.arange(POINTS) + 0.5) / POINTS - 0.5)).ravel() - at
        for nodes, step, at in zip(density.axes, steps, centre, strict=True)
    ]
    away = np.hypot(fine[0][:, None], fine[1]).ravel()
    order = np.argsort(away)
    each = np.repeat(np.repeat(density.values, POINTS, axis=0), POINTS, axis=1).ravel() * math.prod(steps) / POINTS**2
    return away[order], np.cumsum(each[order])


@pytest.mark.parametrize("steps", [pytest.param((0.5, 0.5), marks=pytest.mark.exhaustive), (0.6, 0.35)])
@pytest.mark.obligation("elastic-level")
def test_radius_is_smallest_that_holds_people(steps):
    """Second route: every cell as 400 points in order of their distance. A point lies within half a diagonal of all
    people it stands for, so that the radius of the points is right to that.
    """
    density = town(shape=(9, 8), steps=steps)
    result = elastic_radii(density, **ASKED)
    least = np.empty(result.shape)
    for place in np.ndindex(result.shape):
        away, count = sorted_points(density, (density.x[place[0]], density.y[place[1]]))
        least[place] = away[np.searchsorted(count, 500.0)] if count[-1] >= 500 else np.inf
    off = math.hypot(*steps) / POINTS / 2
    assert (np.clip(least - off, 0.4, 3.0) <= result).all()
    assert (result <= np.clip(least + off, 0.4, 3.0) + math.expm1(STEP) * 3.0).all()
    assert (result == 0.4).any()
    assert ((result > 0.5) & (result < 2.9)).mean() > 0.5


def test_a_lone_town_is_as_far_as_it_is():
    """The radius grows by the whole step away from it, and ends at the largest."""
    density = replace(town(), values=np.where(np.arange(120).reshape(12, 10) == 5, 1e6, 0.0))
    radii = elastic_radii(density, **ASKED)
    assert (radii[0, 5], radii[11, 5]) == (0.4, 3.0)
    assert np.abs(np.diff(radii[:, 5])).max() == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.exhaustive)])
@pytest.mark.obligation("elastic-level")
def test_the_stored_level_has_the_people_and_no_steep_step(seed):
    """nats / eps in fractions: no less than the radius, and 1-Lipschitz between all nodes."""
    density = town(seed)
    level, radii = level_of(seed), radii_of(seed)
    stored = [Fraction(NATS) / Fraction(eps) for eps in level.raster.values.ravel()]
    assert all(
        r <= s <= r * (1 + Fraction(1, 2**43)) for r, s in zip(map(Fraction, radii.ravel()), stored, strict=True)
    )
    nodes = np.array([(x, y) for x in density.x for y in density.y])
    apart = np.hypot(*(nodes[:, None] - nodes).transpose(2, 0, 1))
    steep = np.abs(radii.ravel()[:, None] - radii.ravel()) - apart
    assert steep.max() <= CLOSURE
    for place in ((0, 0), (3, 5), (11, 2)):
        inside = people_in_disc(density, (density.x[place[0]], density.y[place[1]]), radii[place], outside=True)
        assert inside >= 500 or radii[place] == 3.0


def test_a_straight_way_costs_no_more_than_is_stated():
    density = town()
    domain = Domain.grid((12, 10), cell=0.5, unit="km", origin=-1.95)
    level = level_of()
    assert domain.points[0] == pytest.approx((density.x[0], density.y[0]))
    radii, diagonal = NATS / level.at(domain.points), 0.5 * math.sqrt(2)
    u, v = (side.ravel() for side in np.indices((domain.size, domain.size)))
    length = np.hypot(*(domain.points[u] - domain.points[v]).T)
    room = radii[u] - diagonal
    with np.errstate(divide="ignore", invalid="ignore"):
        content = NATS * np.minimum(length / 0.4, np.where(length < room, np.log(room / (room - length)), np.inf))
    costs = level.line_integrals(domain.points[u], domain.points[v])
    assert (costs <= content).all()
    assert (costs > 0.5 * content)[length > 0].any()
    near = (length <= (1 - 1 / math.e) * room) & (length > 0)
    assert near.any()
    assert costs[near].max() <= NATS
    graph = Eikonal(level=level, stencil=16).distances(domain).ravel()
    assert (graph <= costs * GRAPH)[near].mean() > 0.99


def test_between_nodes_the_disc_and_a_diagonal_hold_the_people():
    density = town(1)
    level = level_of(1)
    rng = np.random.default_rng(5)
    ends = [(nodes[0], nodes[-1]) for nodes in density.axes]
    for point in np.column_stack([rng.uniform(*end, 6) for end in ends]):
        radius = NATS / float(level.at(point[None])[0])
        assert radius >= 3.0 * (1 - CLOSURE) or people_in_disc(density, point, radius + 0.5 * math.sqrt(2)) >= 500


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"people": 0.0}, "people"),
        ({"people": math.inf}, "people"),
        ({"people": 1e7}, "people"),
        ({"people": math.nan}, "people"),
        ({"least": 0.0}, "least"),
        ({"least": 4.0}, "least"),
        ({"most": math.inf}, "most"),
        ({"nats": 0.0}, "nats"),
    ],
)
def test_bad_figures_are_named(changed, field):
    with pytest.raises(InputError) as caught:
        elastic_level(town(), **(ASKED | changed))
    assert caught.value.field == field


@pytest.mark.parametrize(
    "changed",
    [
        {"values": np.full((12, 10), -1.0)},
        {"x": np.cumsum(np.arange(1.0, 13.0))},
        {"x": np.zeros(1), "values": np.ones((1, 10))},
        {"z": np.arange(2.0), "values": np.ones((12, 10, 2))},
    ],
)
def test_rasters_not_of_people_per_square_are_refused(changed):
    with pytest.raises(InputError) as caught:
        elastic_level(replace(town(), **changed), **ASKED)
    assert caught.value.field == "density"


def test_discs_with_too_many_cells_are_refused_early(monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=1e6))
    with pytest.raises(SizeError, match="discs of") as caught:
        elastic_level(town(), **(ASKED | {"most": 300.0}))
    assert caught.value.field == "most"

"""Pictures of an area in its rectangle: cells outside are not drawn, examples lie inside, titles fit their columns."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from fixtures.position_mechanisms import LAND, position_mechanism
from fixtures.rows import few_by_default

import mechdesign as md
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.pictures import maps
from mechdesign.pictures.canvas import ground_of, place_words
from mechdesign.pictures.panels import laid_out, loss_map, setting_maps

OUTSIDE = np.array([[0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [0, 0, 0, 0]], bool)  # neither prior nor reports


def area(prior: np.ndarray):
    """The mechanism whose reports lie on land, with another prior (4, 4), and its ground."""
    mechanism = position_mechanism("land").copy()
    mechanism["prior"] = ("secret", prior.ravel() / prior.sum())
    stored = replace(MechanismFile.read(position_mechanism("land")), mechanism=mechanism)
    return mechanism, ground_of(stored.domain, inside=maps.inside_region(stored))


def test_cells_outside_have_no_colour_and_an_outline() -> None:
    assert (LAND == ~OUTSIDE).all()
    mechanism, ground = area(np.where(OUTSIDE, 0.0, 1.0))
    values = np.where(OUTSIDE.ravel(), 1e9, np.arange(16.0))
    figure = laid_out(ground, [loss_map(mechanism, ground, md.probabilities(mechanism).values)])
    shown = ground.image(values)
    assert (np.ma.getmaskarray(shown) == OUTSIDE.T).all()
    assert shown.max() == 15
    axes = figure.axes[0]
    assert axes.get_facecolor()[:3] == (1.0, 1.0, 1.0)
    sides = ground.outline()
    assert len(sides) == 16 + _sides_between(OUTSIDE)
    assert np.abs(np.diff(sides, axis=1)).sum(axis=2) == pytest.approx(200.0)
    assert [line.get_gid() for line in axes.lines].count("outline") == 1


def _sides_between(outside: np.ndarray) -> int:
    """Sides between two cells of the square one of which is outside, and less those of the rim that are outside."""
    between = int((outside[1:] != outside[:-1]).sum() + (outside[:, 1:] != outside[:, :-1]).sum())
    return between - int(sum(edge.sum() for edge in (outside[0], outside[-1], outside[:, 0], outside[:, -1])))


def test_cells_without_people_that_are_reported_are_drawn() -> None:
    prior = np.where(OUTSIDE, 0.0, 1.0)
    prior[0, 0] = 0.0
    _, ground = area(prior)
    assert (ground.inside.reshape(4, 4) == ~OUTSIDE).all()


def test_frame_is_that_of_the_cells_inside() -> None:
    _, ground = area(np.ones((4, 4)))
    assert ground.frame == ground.extent
    part = ground_of(ground.domain, inside=ground.domain.points[:, 0] > 0)
    left, _, low, high = ground.extent
    assert part.frame[0] == left + 300
    assert part.frame[2:] == (low - 100, high + 100)


def test_examples_have_a_prior_and_lie_inside() -> None:
    """A prior that rises along x: its least value above 0, and not the 0 of the cells outside."""
    rising = np.arange(1.0, 17.0).reshape(4, 4)
    mechanism, ground = area(np.where(OUTSIDE, 0.0, rising))
    places, words = maps._places(mechanism, ground, None)
    assert words[-1] == "where the prior is low"
    assert not OUTSIDE.ravel()[places].any()
    assert places[0] == 15
    assert places[-1] == 0
    mechanism, ground = area(np.where(OUTSIDE, 0.0, 1.0))
    places, words = maps._places(mechanism, ground, None)
    assert words == ["in the middle", "half-way out", "farthest out"]
    assert not OUTSIDE.ravel()[places].any()
    # Uniform inside: it needs no panel.
    assert setting_maps(mechanism, ground) == []


def test_places_on_earth_are_named_north_and_east() -> None:
    domain = MechanismFile.read(position_mechanism("land")).domain
    south = replace(domain, plane=replace(domain.plane, latitude=-33.45, longitude=-70.66))
    for place, letters in ((domain, "NE"), (south, "SW")):
        latitude, north, longitude, east = place_words(place, 0).replace(",", "").split()
        assert north + east == letters
        assert float(latitude) == pytest.approx(abs(place.plane.latitude), abs=0.01)
        assert float(longitude) == pytest.approx(abs(place.plane.longitude), abs=0.01)


@pytest.mark.parametrize("count", few_by_default([2, 3], 3))
def test_titles_fit_their_columns(count) -> None:
    mechanism, ground = area(np.ones((4, 4)))
    draw = loss_map(mechanism, ground, md.probabilities(mechanism).values)
    draw.keywords["title"] = "reports of somebody where the prior is median, at 41.89958 N, 179.99376 E and further"
    figure = laid_out(ground, [draw] * count)
    figure.draw_without_rendering()
    boxes = [
        axes.title.get_window_extent() if axes.get_title() else axes._left_title.get_window_extent()
        for axes in figure.axes
    ]
    boxes = [box for box in boxes if box.width > 20]
    assert len(boxes) == count
    assert max(box.x1 for box in boxes) <= figure.bbox.x1
    assert all(a.x1 < b.x0 for a, b in pairwise(boxes))

"""Many positions at once: the places of `place_at`, and the points of exact fractions, on borders too."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from fixtures.absent_capabilities import needs

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.problem.locate import place_at
from mechdesign.problem.located import floors, places_at

MASK = np.ones((7, 9), bool)
MASK[3, 4] = False
DOMAINS = [
    md.Domain.grid((7, 9), cell=(0.1, 1 / 3), unit="km", origin=(-0.7, 1 / 7), mask=MASK),
    md.Domain.grid((2, 3), cell=(0.25, 1.5), unit="km", origin=(-0.25, 10.0)),
    md.Domain.points_at([[0.0, 1.0], [0.5, 0.1], [-0.0, 3.0]], unit="km"),
]


def border_positions(domain: md.Domain, count: int) -> np.ndarray:
    """Positions on borders of cells, one double next to them, and anywhere."""
    random = np.random.default_rng(1)
    if domain.cell is None:
        return np.vstack([domain.points, domain.points + 1e-9])
    low, side, shape = np.array(domain.origin), np.array(domain.cell), np.array(domain.shape)
    positions = low + random.integers(-1, shape + 2, (count, 2)) * side
    nudged = np.nextafter(positions, np.where(random.random(positions.shape) < 0.5, -np.inf, np.inf))
    chosen = random.integers(0, 3, positions.shape)
    return np.choose(chosen, [positions, nudged, low + random.random(positions.shape) * shape * side])


@pytest.mark.parametrize("domain", DOMAINS)
def test_places_are_those_of_one_position(domain) -> None:
    positions = border_positions(domain, 1500)

    def one(position):
        try:
            return place_at(domain, position)
        except InputError:
            return -1

    expected = [one(position) for position in positions.tolist()]
    assert places_at(domain, positions).tolist() == expected
    assert {-1, 0} < set(expected)
    assert places_at(domain, np.array([[np.nan, 0.0], [np.inf, 0.0], [1e308, -1e308]])).tolist() == [-1, -1, -1]


def test_floors_are_those_of_fractions() -> None:
    low, side, parts = -0.7, 0.1, 1 << 16
    steps = np.random.default_rng(2).integers(0, 7 * parts, 1000)
    values = low + (steps + 0.5) * side / parts
    values = np.concatenate([values, np.nextafter(values, np.inf), np.nextafter(values, -np.inf)])
    exact = [
        math.floor((Fraction(x) - Fraction(low)) / Fraction(side) * parts + Fraction(1, 2)) for x in values.tolist()
    ]
    computed = floors(values, low, side, parts=parts, half=True)
    assert computed.tolist() == exact
    # Doubles alone would put some of these on the other side.
    assert (np.floor((values - low) / side * parts + 0.5) != exact).any()


@needs("positions")
def test_points_of_a_claim_are_exact() -> None:
    from mechdesign.positions.patches import HALF, Patches

    domain = DOMAINS[1]
    positions = border_positions(domain, 600)
    positions = positions[places_at(domain, positions) >= 0]
    cells, points = Patches.snap(domain, positions)
    assert cells.tolist() == [place_at(domain, position) for position in positions.tolist()]
    for position, index, point in zip(positions.tolist(), domain.index[cells].tolist(), points.tolist(), strict=True):
        for x, low, side, i, found in zip(position, domain.origin, domain.cell, index, point, strict=True):
            share = (Fraction(x) - Fraction(low)) / Fraction(side) - i - Fraction(1, 2)
            assert found == math.floor(share * 2 * HALF + Fraction(1, 2))
    with pytest.raises(InputError, match="outside"):
        Patches.snap(domain, np.array([[50.0, 50.0]]))

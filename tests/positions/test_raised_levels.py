"""Levels at the corners of cells: below eps everywhere, and as high as one corner at a time can be."""

from __future__ import annotations

import pytest
from fixtures.problems import varying_level

from mechdesign import Domain, Eikonal, Euclidean
from mechdesign.positions.levels import corner_levels, level_faults, quarter_levels, raise_levels

BITS = 2.0**-24  # relative: the margins of both, several times
ROOM = 2.0**-10  # relative: exceeds a bound even where a corner has a small share in it
DOMAIN = Domain.grid((4, 4), cell=1.0, unit="cell")


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_raised_levels_stay_below_eps(seed: int) -> None:
    metric = 1.7 * Eikonal(level=varying_level(seed=seed))
    plain, raised = corner_levels(DOMAIN, metric), raise_levels(DOMAIN, metric)
    assert level_faults(DOMAIN, metric, raised) == []
    assert (raised >= plain * (1 - BITS)).all()
    assert raised.mean() > plain.mean() * 1.002
    for corner in range(4):
        more = raised.copy()
        more[:, corner] *= 1 + ROOM
        assert level_faults(DOMAIN, metric, more) == ["corner_level: 16 cells have levels above that of the metric"]


def test_quarter_levels_equal_half_size_squares() -> None:
    metric = Eikonal(level=varying_level(seed=0))
    found = quarter_levels(DOMAIN, metric)
    fine = Domain.grid((8, 8), cell=0.5, unit="cell")
    expected = raise_levels(fine, metric)
    assert level_faults(DOMAIN, metric, found) == []
    assert (found.reshape(4, 4, 2, 2, 4).transpose(0, 2, 1, 3, 4).reshape(64, 4) == expected).all()
    found[5, 9] *= 1 + ROOM
    assert level_faults(DOMAIN, metric, found) == ["corner_level: 1 cells have levels above that of the metric"]
    assert level_faults(DOMAIN, metric, found[:, :9])[0].startswith("corner_level: must be")


def test_constant_level_is_unchanged() -> None:
    metric = Euclidean(epsilon=0.3, unit="cell")
    for levels in (raise_levels, quarter_levels):
        assert (levels(DOMAIN, metric) == corner_levels(DOMAIN, metric)).all()

"""Losses of columns at the cap: against the sums over all pairs, for every loss with a code."""

from __future__ import annotations

import numpy as np
import pytest

from mechdesign import Domain
from mechdesign.factored.row_sums import far_losses
from mechdesign.losses import LOSSES

BETWEEN = 1e-4  # relative: lengths read between the nodes of a lattice, a few of them as long as its steps
ROUNDED = 1e-12  # relative
RANDOM = np.random.default_rng(2)

PLACES = {
    "line": (np.arange(70.0)[:, None], ROUNDED),
    "grid": (np.argwhere(np.ones((20, 31))) * [2.0, 0.5] + [1e6, -3.0], ROUNDED),
    "three axes": (np.argwhere(np.ones((6, 5, 4))).astype(float), ROUNDED),
    "one row": (np.argwhere(np.ones((1, 9))).astype(float), ROUNDED),
    "scattered line": (RANDOM.random((60, 1)), BETWEEN),
    "few": (RANDOM.random((40, 2)), ROUNDED),
    "scattered": (RANDOM.random((760, 2)), BETWEEN),
    "scattered on three axes": (RANDOM.random((700, 3)), 100 * BETWEEN),
}
SLOW = ("scattered", "scattered on three axes")


@pytest.mark.parametrize("loss", [name for name, loss in LOSSES.items() if loss.code is not None])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.exhaustive] * (name in SLOW)) for name in PLACES]
)
def test_far_losses_equal_sums_over_columns(name: str, loss: str) -> None:
    points, near = PLACES[name]
    domain = Domain.points_at(points, unit="1")
    target = RANDOM.integers(0, len(points), 2 * len(points))
    weight = RANDOM.integers(1, 1 << 28, len(target)).astype(np.uint32)
    expected = LOSSES[loss].matrix(domain, domain)[:, target] @ weight.astype(float)
    found = far_losses(points, points[target], weight, LOSSES[loss].code)
    assert found == pytest.approx(expected, rel=near if loss == "distance" else ROUNDED)

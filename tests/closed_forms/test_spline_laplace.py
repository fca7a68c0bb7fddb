"""The certifiable planar Laplace mechanism: certified between positions, and nearly as good as the planar one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mechdesign.closed_forms.mechanisms import planar_laplace, spline_laplace
from mechdesign.errors import UnsuitableError
from mechdesign.mechanism.positions.cones import breaches
from mechdesign.mechanism.stored import read
from mechdesign.setting.metric.euclidean import Euclidean
from mechdesign.setting.objective import priors
from mechdesign.setting.objective.losses import SquaredDistance
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.setting.space.domain import Domain
from mechdesign.utility.loss.true_position import position_loss
from mechdesign.verification.verify import verify

SIMULATED = 0.02  # relative: 40,000 positions, five standard errors


def problem(z: float, shape: tuple[int, ...] = (6, 7), **given) -> DesignProblem:
    domain = Domain.grid(shape, cell=2.0, unit="m", **given)
    return DesignProblem(
        domain=domain, metric=Euclidean(epsilon=z / 2, unit="m"), prior=priors.uniform(domain), loss=SquaredDistance()
    )


@pytest.mark.parametrize("z", [0.1, 1.0])
def test_it_is_certified_between_positions(z: float) -> None:
    made = spline_laplace.mechanism(problem(z))
    checked = verify(made)
    assert (checked.certified, checked.reasons, checked.position_breaches) == (True, [], 0)
    stored = read(made)
    assert stored.positions is not None
    assert (
        breaches(made["mass"].values, replace(stored.positions, corner_level=0.97 * stored.positions.corner_level)) > 0
    )


def test_masked_cells_are_certified_too() -> None:
    mask = np.ones((5, 5), bool)
    mask[2, 1:4] = mask[0, 0] = False
    assert verify(spline_laplace.mechanism(problem(0.3, (5, 5), mask=mask))).certified


def test_the_share_of_the_level_falls_with_its_square() -> None:
    lost = [1 - spline_laplace.kappa(z) for z in (0.1, 0.2, 0.4)]
    assert 2.5 < lost[1] / lost[0] < 5
    assert 2.5 < lost[2] / lost[1] < 5


def test_its_loss_is_little_above_that_of_planar_laplace() -> None:
    ours, laplace = (position_loss(form.mechanism(problem(0.5))) for form in (spline_laplace, planar_laplace))
    assert laplace < ours < 1.06 * laplace


def test_the_error_of_a_rounded_report_is_that_of_drawing_it() -> None:
    rng = np.random.default_rng(5)
    x = rng.uniform(0, 2.0, (40_000, 2))
    angle, radius = rng.uniform(0, 2 * np.pi, 40_000), rng.gamma(2.0, 1 / 0.7, 40_000)
    report = (np.floor((x + radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])) / 2) + 0.5) * 2
    drawn = float(((report - x) ** 2).sum(axis=1).mean())
    assert spline_laplace.rounded_squared_error(0.7, 2.0) == pytest.approx(drawn, rel=SIMULATED)


def test_a_line_is_refused() -> None:
    with pytest.raises(UnsuitableError, match="two axes"):
        spline_laplace.mechanism(problem(0.5, (5,)))

"""The certifiable planar Laplace mechanism: certified between positions, and nearly as good as the planar one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mechdesign import DesignProblem, Domain, Euclidean, Sampler, baselines, priors, verify
from mechdesign.errors import UnsuitableError
from mechdesign.evaluation.loss import position_loss
from mechdesign.losses import SquaredDistance
from mechdesign.positions import spline as spline_laplace


def problem(z: float, shape: tuple[int, ...] = (6, 7), **given) -> DesignProblem:
    domain = Domain.grid(shape, cell=2.0, unit="m", **given)
    return DesignProblem(
        domain=domain, metric=Euclidean(epsilon=z / 2, unit="m"), prior=priors.uniform(domain), loss=SquaredDistance()
    )


@pytest.mark.parametrize("z", [0.1, 1.0])
def test_spline_laplace_is_certified(z: float) -> None:
    mechanism = spline_laplace.spline_laplace(problem(z))
    checked = verify(mechanism)
    assert checked.certified
    assert checked.reasons == []
    assert checked.position_breaches == 0
    claim: Any = Sampler(mechanism).certificate.positions
    assert replace(claim, corner_level=0.97 * claim.corner_level).breaches(mechanism["mass"].values) > 0


def test_spline_laplace_on_masked_cells_certifies() -> None:
    mask = np.ones((5, 5), bool)
    mask[2, 1:4] = mask[0, 0] = False
    assert verify(spline_laplace.spline_laplace(problem(0.3, (5, 5), mask=mask))).certified


def test_kappa_falls_with_squared_level() -> None:
    loss_of_level = [1 - spline_laplace.kappa(z) for z in (0.1, 0.2, 0.4)]
    assert 2.5 < loss_of_level[1] / loss_of_level[0] < 5
    assert 2.5 < loss_of_level[2] / loss_of_level[1] < 5


def test_loss_is_near_planar_laplace() -> None:
    forms = (spline_laplace.spline_laplace, baselines.planar_laplace)
    ours, laplace = (position_loss(form(problem(0.5))) for form in forms)
    assert laplace < ours < 1.06 * laplace


def test_spline_laplace_on_a_line_is_refused() -> None:
    with pytest.raises(UnsuitableError, match="two axes"):
        spline_laplace.spline_laplace(problem(0.5, (5,)))

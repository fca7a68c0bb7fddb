"""A mechanism in memory: its variables over the axes of a map, and gaps as shares of the loss."""

from __future__ import annotations

import numpy as np
import pytest

import mechdesign as md
from mechdesign.errors import InputError, VerificationError
from mechdesign.mechanism.figures import relative_gap


def test_grid_arrays_match_places() -> None:
    mask = np.array([[1, 1, 1], [1, 0, 1]], bool)
    domain = md.Domain.grid((2, 3), cell=0.5, unit="km", mask=mask)
    prior = md.priors.proportional(np.arange(1.0, 6.0))
    mechanism = md.baselines.exponential(
        md.DesignProblem(domain, md.Euclidean(1.0, unit="km"), prior, md.losses.Distance())
    )
    on_axes = md.on_grid(mechanism["prior"])
    assert on_axes.dims == ("secret_y", "secret_x")
    assert [on_axes[name].attrs for name in on_axes.dims] == [{"units": "km"}] * 2
    for (x, y), share in zip(domain.points.tolist(), prior.tolist(), strict=True):
        assert float(on_axes.sel(secret_x=x, secret_y=y)) == share
    assert int(np.isnan(on_axes).sum()) == 1
    both = md.on_grid(md.probabilities(mechanism))
    assert set(both.dims) == {"secret_y", "secret_x", "report_y", "report_x"}
    assert float(both.sum()) == pytest.approx(5)


def test_values_without_two_axes_are_refused() -> None:
    line = md.baselines.exponential(md.load_problem("line", cells=3))
    with pytest.raises(InputError, match="no places on two axes"):
        md.on_grid(line["prior"])
    points = md.Domain.points_at(np.random.default_rng(0).random((40, 2)), unit="km")
    problem = md.DesignProblem(points, md.Euclidean(1.0, unit="km"), np.full(40, 1 / 40), md.losses.Distance())
    with pytest.raises(InputError, match="the places are not a grid"):
        md.on_grid(md.baselines.exponential(problem)["prior"])


def test_gap_is_relative_unless_the_loss_is_tiny() -> None:
    assert relative_gap(0.02, 0.01, 1.0) == 0.5
    assert relative_gap(0.0, -1e-10, 1.0) == pytest.approx(0.1)


def test_claim_states_the_scale() -> None:
    domain = md.Domain.grid(3, 1.0, unit="km")
    for scale, times in ((1.0, ""), (2.0, "2.0 times ")):
        problem = md.DesignProblem(
            domain, scale * md.Euclidean(0.5, unit="km"), np.full(3, 1 / 3), md.losses.Distance()
        )
        claim = md.solve(md.Optimal(problem=problem)).attrs["claim"]
        assert f"where d is {times}the Euclidean distance over all pairs times 0.5 nats per km;" in claim


def test_refusal_names_the_expected_value() -> None:
    mechanism = md.baselines.exponential(md.load_problem("line", cells=3))
    with pytest.raises(VerificationError) as caught:
        md.verify(mechanism.assign_attrs(loss="nothing"))
    assert caught.value.remedy == "use an unaltered file, with squared or distance or zero-one or table"
    mechanism["secret_x"][1] = np.nan
    with pytest.raises(VerificationError) as caught:
        md.verify(mechanism.assign_attrs(expected_loss=0.0))
    assert caught.value.remedy == "use an unaltered file, with coordinates"

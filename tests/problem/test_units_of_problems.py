"""Units that differ are converted where both are lengths, never to the unsafe side, and refused when a problem is made.

Levels are compared with fractions, and a converted problem with one in the unit of its domain.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from fixtures.tolerances import REORDERED as LAST_BITS

import mechdesign as md
from mechdesign.base.units import LENGTHS, round_down, unit_ratio
from mechdesign.errors import InputError, UnitError, UnsuitableError

GRID = md.Domain.grid((4, 3), cell=0.5, unit="km", origin=(2.0, -1.0))
UNIFORM = np.full(GRID.size, 1 / GRID.size)


def problem(metric: md.Discrete | md.Euclidean, **changed: object) -> md.DesignProblem:
    fields = {"domain": GRID, "metric": metric, "prior": UNIFORM, "loss": md.losses.Distance()}
    return md.DesignProblem(**(fields | changed))


@pytest.mark.parametrize("unit", sorted(LENGTHS))
@pytest.mark.parametrize("epsilon", [0.0015, 1 / 3, 1e-7, 123.456])
def test_converted_level_is_rounded_down(unit: str, epsilon: float) -> None:
    converted = problem(md.Euclidean(epsilon=epsilon, unit=unit))
    exact = Fraction(epsilon) * 1000 / LENGTHS[unit]
    assert converted.metric.unit == "km"
    assert Fraction(converted.metric.epsilon) <= exact < Fraction(np.nextafter(converted.metric.epsilon, np.inf))
    assert converted.metric.claim(GRID).endswith(f"{converted.metric.epsilon:.17g} nats per km")
    assert replace(converted, name="again").metric is converted.metric


def test_metres_and_kilometres_give_one_mechanism() -> None:
    from_metres = md.solve(problem(md.Euclidean(epsilon=0.0015, unit="m")), gap=1e-3)
    from_kilometres = md.solve(problem(md.Euclidean(epsilon=round_down(Fraction(0.0015) * 1000), unit="km")), gap=1e-3)
    assert from_metres.attrs["claim"] == from_kilometres.attrs["claim"]
    assert "nats per km" in from_metres.attrs["claim"]
    assert md.verify(from_metres).certified


def test_streets_and_levels_never_exceed_input() -> None:
    tail, head = np.arange(11), np.arange(1, 12)
    length = np.linspace(100.0, 977.0, 11) / 3
    streets = md.geo.Streets(epsilon=0.0015, unit="m", tail=tail, head=head, length=length)
    for rounded, street in zip(problem(streets).edges.length, length, strict=True):
        stated = Fraction(0.0015) * Fraction(street)
        assert stated * (1 - Fraction(1, 2**40)) < Fraction(rounded) <= stated
    x, y = 2000.0 + 250 + 500 * np.arange(4), -1000 + 250 + 500.0 * np.arange(3)
    values = 1e-3 * (1 + np.random.default_rng(1).random((4, 3)))
    level = md.PrivacyLevel(raster=md.Raster(x=x, y=y, values=values, unit="m"))
    converted = problem(md.Eikonal(level))
    assert converted.metric.level.raster.unit == "km"
    in_metres = md.Domain.grid((4, 3), cell=500.0, unit="m", origin=(2000.0, -1000.0))
    stated = md.Eikonal(level).edges(in_metres).length
    assert (converted.edges.length <= stated).all()
    np.testing.assert_allclose(converted.edges.length, stated, rtol=2.0**-30)
    points = np.random.default_rng(2).uniform((2.0, -1.0), (4.0, 0.5), (200, 2))
    assert (converted.metric.level.at(points) <= 1000 * level.at(1000 * points)).all()


@pytest.mark.parametrize(
    "metric",
    [
        md.Euclidean(epsilon=1.0, unit="USD"),
        md.Euclidean(epsilon=1.0, unit="1"),
        md.Eikonal(md.PrivacyLevel.constant(1.0, "cell")),
        md.geo.Streets(epsilon=1.0, unit="USD", tail=[0], head=[1], length=[1.0]),
    ],
)
def test_unconvertible_unit_of_problem_is_refused(metric: md.Euclidean) -> None:
    with pytest.raises(UnitError, match="while the domain is in km"):
        problem(metric)
    with pytest.raises(UnsuitableError, match="share unit"):
        problem(md.Discrete(1.0), reports=md.Domain.grid((2, 2), cell=1.0, unit="USD"))


def test_ratios_are_exact() -> None:
    assert unit_ratio("mi", "ft") == 5280
    assert unit_ratio("yd", "ft") == 3
    assert unit_ratio("km", "cm") == 100_000
    assert unit_ratio("USD", "dollars") == 1
    assert round_down(Fraction(1, 3)) == np.nextafter(1 / 3, 0) or Fraction(1 / 3) <= Fraction(1, 3)
    assert Fraction(round_down(Fraction(2, 3))) <= Fraction(2, 3)


def test_a_prior_of_single_precision_is_normalised_in_double() -> None:
    single = np.random.default_rng(0).random(GRID.size).astype(np.float32)
    single /= single.sum()
    assert single.astype(float).sum() != 1
    converted = problem(md.Discrete(1.0), prior=single)
    np.testing.assert_allclose(converted.prior_array, single.astype(float) / single.astype(float).sum(), rtol=LAST_BITS)
    large = np.random.default_rng(1).random(10_000).astype(np.float32)
    md.DesignProblem(
        domain=md.Domain.nodes(10_000),
        metric=md.Discrete(1.0),
        prior=large / large.sum(),
        loss=md.losses.ZeroOne(),
    )
    for wrong in (single * np.float32(1.001), (UNIFORM * (1 + 1e-7))):
        with pytest.raises(InputError, match="must sum to 1"):
            problem(md.Discrete(1.0), prior=wrong)


def density(low: float, high: float, unit: str = "km") -> md.Raster:
    nodes = np.linspace(low, high, 6)
    return md.Raster(x=nodes, y=nodes, values=1.0 + np.add.outer(nodes - low, nodes - low), unit=unit)


def test_raster_smaller_than_grid_is_refused() -> None:
    with pytest.raises(InputError, match="12 of 12 places lie outside the raster"):
        md.priors.from_density(density(500.0, 600.0), GRID)
    assert md.priors.from_density(density(500.0, 600.0), GRID, extend=True) == pytest.approx(UNIFORM, rel=LAST_BITS)
    part = density(-3.0, 3.0)
    with pytest.raises(InputError, match=r"3 of 12 places.*extend"):  # the column at 3.75 km
        md.priors.from_density(part, GRID)
    with pytest.raises(InputError, match="3 of 12 places"):
        problem(md.Eikonal(md.PrivacyLevel.affine(part, slope=0.1, floor=0.4)))
    with pytest.raises(InputError, match="3 of 12 places"):
        problem(md.Eikonal(md.PrivacyLevel(raster=part)))
    converted = problem(md.Eikonal(md.PrivacyLevel.affine(part, slope=0.1, floor=0.4, extend=True)))
    again = md.solve(md.EikonalWeights(converted))
    assert md.verify(again).certified  # the file holds the extended level, so that verification needs no option


def test_densities_in_metres_are_read_on_a_grid_in_km() -> None:
    in_km = md.priors.from_density(density(-5.0, 5.0), GRID)
    nodes = np.linspace(-5000.0, 5000.0, 6)
    in_m = md.Raster(x=nodes, y=nodes, values=density(-5.0, 5.0).values, unit="m")
    np.testing.assert_allclose(md.priors.from_density(in_m, GRID), in_km, rtol=LAST_BITS)
    with pytest.raises(UnitError, match="is in 1 while the domain is in km"):
        md.priors.from_density(density(-5.0, 5.0, "1"), GRID)

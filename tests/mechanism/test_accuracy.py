"""Accuracy: the radius about a report that holds the true position with 95 %, against positions that are drawn."""

from __future__ import annotations

import json

import numpy as np
import pytest
from fixtures.absent_capabilities import needs

import mechdesign as md
from mechdesign.mechanism.accuracy import SHARE, accuracy

POSITIONS = 6_000
DEVIATIONS = 5  # of a share over the draws: one test in a million fails by chance
DISTANCE_TO_CENTRE = 1e-9


def problem(sides=(100.0, 160.0), shape=(6, 5)):
    """A lattice of cells, oblong ones by default, a prior that leans to a corner, and more than one cell of noise."""
    domain = md.Domain.grid(shape, cell=sides, unit="m")
    prior = np.linspace(1, 9, domain.size) ** 2
    metric = md.Euclidean(epsilon=0.006, unit="m")
    return md.DesignProblem(domain=domain, metric=metric, prior=prior / prior.sum(), loss=md.losses.Distance())


def positions(domain, prior, rng):
    """Positions that follow the prior, uniform in their cells."""
    cells = rng.choice(domain.size, POSITIONS, p=prior)
    return domain.points[cells] + (rng.random((POSITIONS, 2)) - 0.5) * np.asarray(domain.cell)


@pytest.mark.parametrize("any_position", [False, pytest.param(True, marks=needs("positions"))])
def test_the_radius_holds_the_share_and_little_more(any_position):
    """Second route: positions are drawn, the sampler reports them, and those within the radius are counted."""
    design = problem(sides=160.0, shape=(4, 3)) if any_position else problem()
    mechanism = md.solve(md.positions.Positions(design) if any_position else md.Optimal(design), gap=0.05)
    true_positions = positions(design.domain, design.prior, np.random.default_rng(5))
    drawn = md.sample(mechanism, at=true_positions, rng=4)
    reports, radii = drawn.values[:, 0], drawn["accuracy"].values[:, 0]
    assert np.array_equal(radii, accuracy(mechanism)[reports])
    distance = np.hypot(*(true_positions - np.column_stack([drawn["report_x"][:, 0], drawn["report_y"][:, 0]])).T)
    share_inside = (distance <= radii).mean()
    assert share_inside > SHARE - DEVIATIONS * np.sqrt(SHARE * (1 - SHARE) / POSITIONS)
    shares = []
    for y in range(design.domain.size):
        count = (reports == y).sum()
        if count > POSITIONS / 40:
            share = (distance[reports == y] <= radii[reports == y]).mean()
            assert share > SHARE - DEVIATIONS * np.sqrt(SHARE * (1 - SHARE) / count)
            shares.append(share)
    assert len(shares) > 3
    assert np.mean(shares) < 0.995


def test_places_without_cells_need_no_margin():
    """The posterior by hand: two places, the prior and a table of two rows."""
    domain = md.Domain.points_at([[0.0], [10.0]], unit="km")
    metric = md.Euclidean(epsilon=0.01, unit="km")
    design = md.DesignProblem(domain=domain, metric=metric, prior=[0.99, 0.01], loss=md.losses.Distance())
    mechanism = md.baselines.exponential(design)
    assert accuracy(mechanism) == pytest.approx([0.0, 10.0], abs=DISTANCE_TO_CENTRE)


def test_a_line_of_cells_by_hand():
    """Constant reports under a uniform prior on ten cells of 1 km: 95 % of 10 km is within 9.5 km of an end.

    Halves of 0.5 km: the 19th of them from the low end has its centre at 9.25 km, the report stands at 0.5 km.
    """
    design = md.load_problem("line", cells=10, epsilon=1e-6)
    mechanism = md.baselines.constant(design)
    report = int(mechanism["mass"].values[0].argmax())
    radius = accuracy(mechanism, [report])[0]
    true = max(abs(x - (report + 0.5)) for x in (0.0, 10.0))
    assert radius <= true * (1 + DISTANCE_TO_CENTRE)
    assert radius >= true - 0.5 - 0.25


def test_mechanisms_without_places_have_no_accuracy():
    design = md.load_problem("discrete", secrets=4)
    assert accuracy(md.baselines.exponential(design)) is None


def test_command_prints_accuracy(run_json, run, tmp_path):
    mechanism = md.baselines.exponential(problem())
    md.save(mechanism, tmp_path / "m.nc")
    code, document = run_json("sample", tmp_path / "m.nc", "--secret", 7, "-n", 3, "--seed", 1)
    exact = accuracy(mechanism, document["reports"])
    assert code == 0
    for shown, radius in zip(document["accuracy"], exact, strict=True):
        assert radius <= shown <= radius * 1.01
    assert "accuracy" in run("sample", tmp_path / "m.nc", "--secret", 7)[1]
    assert json.loads(json.dumps(document)) == document

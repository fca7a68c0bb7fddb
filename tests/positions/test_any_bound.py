"""The bound over every mechanism between positions: its loss on squares, its program, and files that state it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fixtures.rows import few_by_default
from scipy.optimize import linprog

import mechdesign as md
from mechdesign.evaluation.position_noise import snapped_noise_loss
from mechdesign.positions import Positions, symmetry
from mechdesign.positions import any_bound as every

LOSSES = {"distance": md.losses.Distance(), "squared": md.losses.SquaredDistance()}


def program_of(shape=(4, 3), parts=1, *, nats=1.0, loss="distance", prior=None):
    """Cells of side 1 that are reported, and rows on a lattice `parts` times finer; nats along a cell."""
    rows = md.Domain.grid(tuple(parts * side for side in shape), cell=1 / parts, unit="m")
    reports = md.Domain.grid(shape, cell=1.0, unit="m")
    weights = np.ones(rows.size) if prior is None else prior
    problem = md.DesignProblem(
        rows, md.Euclidean(nats, unit="m"), weights / weights.sum(), LOSSES[loss], reports=reports
    )
    return Positions(problem)


def unfriendly_densities(z):
    """Densities of a unit square with slopes of up to z times themselves, at the middles of 64 x 64 parts."""
    at = (np.arange(64) + 0.5) / 64 - 0.5
    x, y = np.meshgrid(at, at, indexing="ij")
    for angle in np.linspace(0, 2 * np.pi, 8, endpoint=False):
        yield np.exp(z * (x * np.cos(angle) + y * np.sin(angle)))
    for a, b in ((0, 0), (0.5, 0.5), (0.5, 0), (-0.3, 0.2)):
        away = np.hypot(x - a, y - b)
        yield np.exp(-z * away)
        yield np.exp(z * away)
        yield np.exp(-z * np.abs(away - 0.2))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("z", few_by_default([0.2, 0.7, 1.5, 3.0], 0.7, 3.0))
def test_square_loss_is_below_that_of_any_density(loss, z):
    """Against 20 densities that are as steep as the claim allows, by the mean over a finer grid than the bound's."""
    away = np.array([[0, 0], [0.5, 0.5], [1, 0], [1.5, 0.5], [3, 2], [9, 1]], float)
    (lowered,) = every._lowered_losses(away, loss == "squared", np.array([z]))
    at = (np.arange(64) + 0.5) / 64 - 0.5
    square = (away[:, :1, None] - at[:, None]) ** 2 + (away[:, 1:, None] - at) ** 2
    values = square if loss == "squared" else np.sqrt(square)
    means = np.array([(values * w).mean(axis=(1, 2)) / w.mean() for w in unfriendly_densities(z)])
    # The middles of parts underestimate the mean of a convex loss, by less than this.
    assert (lowered <= means.min(axis=0) + 1e-4).all()
    if z < 1:  # and the bound is near: the worst density gains at least a third as much
        even = values.mean(axis=(1, 2))
        assert (even - means.min(axis=0) >= (even - lowered) / 3)[1:].all()


@pytest.mark.parametrize("loss", LOSSES)
def test_square_loss_of_many_nats_is_zero(loss):
    """Also where exponentials of the nats overflow; a bound of 0 is not searched for."""
    lowered = every._lowered_losses(np.array([[1.0, 0.5], [3, 2]]), loss == "squared", np.array([1.0, 1e3, 1e100]))
    assert (lowered[0] > 0).all()
    assert not lowered[1:].any()
    assert every.any_bound(program_of((2, 2), nats=1e4, loss=loss), 2, tolerance=0.1) is None


@pytest.mark.parametrize("loss", LOSSES)
def test_bound_is_the_optimum_of_its_linear_program(loss):
    """Over all pairs of squares and without symmetry, by HiGHS; neighbours and reflections lose little."""
    prior = np.random.default_rng(3).random(6)
    for program in (program_of((3, 2), loss=loss), program_of((3, 2), loss=loss, prior=prior)):
        squares = every.squares_of(program, 6)
        n, m = squares.cost.shape
        grid = md.Domain.grid((6, 4), cell=0.5, unit="m")
        distances = grid.euclidean_to(grid)
        tail, head = (side.ravel() for side in np.nonzero(distances))
        rows = np.zeros((len(tail), n))
        rows[np.arange(len(tail)), tail], rows[np.arange(len(tail)), head] = 1.0, -np.exp(distances[tail, head])
        every_report = np.kron(np.eye(m), rows)
        sums = np.tile(np.eye(n), m)
        stated = linprog(
            squares.cost.T.ravel(), A_ub=every_report, b_ub=np.zeros(len(every_report)), A_eq=sums, b_eq=np.ones(n)
        )
        found = every.any_bound(program, 6, tolerance=1e-5)
        assert found.value <= stated.fun
        assert found.value >= 0.985 * stated.fun


def test_bound_is_below_every_design_and_noise():
    """Designs with rows as wide as cells and half as wide, and noise. Smaller squares raise the bound."""
    prior = np.random.default_rng(4).random(6)
    bounds = [every.any_bound(program_of((3, 2)), count, tolerance=1e-4).value for count in (3, 6)]
    assert bounds == sorted(bounds)
    designs = [float(md.solve(program_of((3, 2), parts=k), bound=False, gap=0.02).attrs["objective"]) for k in (1, 2)]
    assert designs == sorted(designs, reverse=True)
    rows = program_of((3, 2)).problem
    noise = snapped_noise_loss(rows.domain, rows.reports, rows.prior_array, 1.0, rows.loss)
    assert 0.85 * designs[-1] < bounds[-1] < min(*designs, noise)
    coarse = program_of((3, 2), prior=prior)
    assert every.any_bound(coarse, 6, tolerance=1e-3).value < md.solve(coarse, bound=False).attrs["objective"]


def test_symmetry_leaves_the_bound(monkeypatch):
    whole = every.any_bound(program_of((3, 3)), 6, tolerance=1e-6).value
    monkeypatch.setattr(symmetry, "lattice_symmetries", lambda shape, size: [lambda values: values])
    assert every.any_bound(program_of((3, 3)), 6, tolerance=1e-6).value == pytest.approx(whole, rel=1e-4)


def test_bound_includes_rounding_of_positions():
    """Any multipliers of sum lambda_+ and lambda_- : e^-r on one side alone."""
    squares = every.squares_of(program_of(), 4)
    zero = np.zeros(squares.cones.size * len(squares.group.reports))
    smallest = squares.cost.min(axis=1).sum()
    assert squares.rounding == pytest.approx(1.01 * math.sqrt(2) / 2**16, rel=1e-9)
    assert squares.bound(zero) == pytest.approx(math.exp(-squares.rounding) * smallest, rel=1e-10)
    assert squares.bound(zero) < smallest


def test_no_bound_where_the_proof_does_not_hold():
    mask = np.ones((4, 3), bool)
    mask[0, 0] = False
    holed = md.Domain.grid((4, 3), cell=1.0, unit="m", mask=mask)
    metric = md.Euclidean(1.0, unit="m")
    problem = md.DesignProblem(holed, metric, md.priors.uniform(holed), md.losses.Distance())
    assert every.squares_of(Positions(problem), 4) is None
    assert every.squares_of(program_of(), 5) is None  # 5 x 3.75 squares
    assert every.squares_of(program_of(), 0) is None
    people = np.random.default_rng(4).random(8)
    assert every.squares_of(program_of((4, 2), prior=people), 4) is not None
    assert every.squares_of(program_of((4, 2), prior=people), 6) is None  # squares across cells have no one density


def test_squares_may_lie_across_rows_of_one_density():
    """Rows in thirds of a cell whose people are spread evenly in it: halves of cells have one density too."""
    people = np.array([0.3, 0.0, 0.1, 0.6])
    program = program_of((2, 2), parts=3, prior=np.kron(people.reshape(2, 2), np.ones((3, 3))).ravel())
    prior = every._prior_of(program.problem, (4, 4))
    assert np.allclose(prior.reshape(4, 4), np.kron(people.reshape(2, 2), np.full((2, 2), 1 / 4)))
    assert np.allclose(every._prior_of(program.problem, (6, 6)), program.problem.prior_array)
    assert every._prior_of(program.problem, (5, 5)) is None
    coarse, between, fine = (every.any_bound(program, count, tolerance=1e-4).value for count in (2, 4, 6))
    assert coarse < between < fine < md.solve(program, bound=False, gap=0.01).attrs["objective"]


def varying_program(parts=1):
    """4 x 3 cells of side 1 at levels of 0.5 to 1.5, bilinear between nodes off the lattice."""
    at = np.linspace(-0.3, 4.4, 7)
    values = 1 + 0.5 * np.sin(2.0 * at)[:, None] * np.cos(1.5 * at)[None, :]
    level = md.PrivacyLevel(raster=md.Raster(x=at, y=at, values=values, unit="m"))
    problem = program_of(parts=parts).problem
    metric = md.Eikonal(level=level, stencil=8)
    return level, Positions(
        md.DesignProblem(problem.domain, metric, problem.prior_array, problem.loss, reports=problem.reports)
    )


def test_largest_levels_exceed_those_on_segments():
    """On segments from a random position of a square to its image in another; small squares nearly reach them."""
    level, program = varying_program()
    grid, rng = every._grid_of(program, 16), np.random.default_rng(7)
    largest = every.largest_levels(grid, program.problem.metric)
    tail = rng.integers(grid.size, size=20_000)
    head = grid.lookup[tuple(np.clip(grid.index[tail] + rng.integers(-3, 4, (len(tail), 2)), 0, [15, 11]).T)]
    between = every._largest_between(largest.reshape(grid.shape), grid.index[tail], grid.index[head])
    start = grid.points[tail] + grid.spacing * (rng.random((len(tail), 2)) - 0.5)
    on_segment = start + rng.random((len(tail), 1)) * (grid.points[head] - grid.points[tail])
    assert (level.at(on_segment) <= between).all()
    assert (level.at(start) <= largest[tail]).all()
    assert np.mean(largest[tail] / level.at(start)) < 1.15


def test_bound_of_levels_that_vary(tmp_path):
    """Above that of the largest level alone, below the design, and proved from a file."""
    _, program = varying_program()
    found = every.any_bound(program, 4, tolerance=1e-3)
    highest = every.any_bound(program_of(nats=1.5), 4, tolerance=1e-3)
    design = md.solve(program, gap=0.05)
    assert highest.value < found.value < design.attrs["objective"]
    assert every.proved_any_bound(program, 4, found.multipliers) == found.value
    file = md.save(design, tmp_path / "a.nc")
    assert md.verify(file).certified
    altered = design.assign_attrs(any_lower_bound=design.attrs["any_lower_bound"] * 1.001)
    assert any("any_lower_bound" in reason for reason in md.verify(altered).reasons)


@pytest.fixture(scope="module")
def design():
    return md.solve(program_of(), gap=0.01)


def test_file_states_a_bound_that_verify_proves(design):
    checked = md.verify(design)
    assert checked.certified
    assert 0 < design.attrs["any_lower_bound"] < design.attrs["objective"]
    own = md.solve(program_of(), bound=False, gap=0.01)
    assert "any_lower_bound" not in own.attrs
    assert "any_multiplier" not in own


@pytest.mark.parametrize("edit", ["value", "multiplier", "infinite", "squares", "missing", "above"])
def test_altered_bound_is_refused(design, edit):
    altered = design.copy(deep=True)
    if edit == "value":
        altered.attrs["any_lower_bound"] *= 1 + 1e-6
    elif edit == "above":
        altered.attrs["any_lower_bound"] = altered.attrs["objective"] * 1.1
    elif edit == "multiplier":
        altered["any_multiplier"].values[np.abs(altered["any_multiplier"].values).argmax()] *= -1
    elif edit == "infinite":
        altered["any_multiplier"].values[0] = np.inf
    elif edit == "squares":
        altered.attrs["any_squares"] = int(altered.attrs["any_squares"]) * 2
    else:
        del altered.attrs["any_squares"]
    checked = md.verify(altered)
    assert not checked.certified
    assert any("any_lower_bound" in reason for reason in checked.reasons)


def test_other_programs_state_no_such_bound():
    program = program_of().problem
    square = md.DesignProblem(program.domain, program.metric, program.prior_array, program.loss)
    noise = md.positions.spline_laplace(square)
    forged = noise.assign_attrs(any_lower_bound=0.1, any_squares=4)
    assert "any_lower_bound: only the program between positions has one" in md.verify(forged).reasons

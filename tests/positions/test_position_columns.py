"""Weights of certified columns: each column within the cones, in integers; designs compared with the optimum.

Also with the clamped kernel and after a changed number; weights and noise by another solver.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import psutil
import pytest
from fixtures.integer_oracles import are_rows, mean_cost
from fixtures.mechanisms import design_of
from fixtures.rows import few_by_default
from reference.checking import ROW_SUM

import mechdesign as md
from mechdesign import DesignProblem, Domain, Eikonal, Euclidean, PrivacyLevel, priors
from mechdesign.errors import InputError, SizeError
from mechdesign.losses import LOSSES, SquaredDistance
from mechdesign.positions import Positions, cone_blocks
from mechdesign.positions import columns as by_columns
from mechdesign.positions import spline as spline_laplace
from mechdesign.positions.cone_algebra import longest_step
from mechdesign.positions.patches import Patches, patches

GAP = 1e-5
ROUNDED = 1e-5  # of an objective: change by weights to the gap and by repair to integers


def problem(shape, epsilon: float, loss: str = "squared", *, prior=None, **given) -> DesignProblem:
    domain = Domain.grid(shape, cell=1.0, unit="cell", **given)
    chosen = (
        priors.uniform(domain) if prior is None else np.random.default_rng(prior).dirichlet(np.full(domain.size, 3))
    )
    return DesignProblem(domain=domain, metric=Euclidean(epsilon=epsilon, unit="cell"), prior=chosen, loss=LOSSES[loss])


def mask_with_holes() -> np.ndarray:
    mask = np.ones((6, 5), bool)
    mask[2:4, 2] = mask[0, 4] = False
    return mask


def varying() -> DesignProblem:
    domain = Domain.grid((4, 3), cell=0.5, unit="cell")
    corners = Domain.grid((5, 4), cell=0.5, unit="cell", origin=(-0.25, -0.25))
    level = PrivacyLevel.from_values(corners, np.random.default_rng(1).uniform(0.8, 1.4, (5, 4)))
    return DesignProblem(
        domain=domain, metric=Eikonal(level=level), prior=priors.uniform(domain), loss=SquaredDistance()
    )


# Above the optimum of the program, relative, at most: a little more than measured.
CASES = {
    "square": (lambda: Positions(problem((8, 8), 0.5)), 0.03),
    "square, long edges": (lambda: Positions(problem((8, 8), 1.2)), 0.06),
    "rectangle, distance": (lambda: Positions(problem((4, 7), 0.6, "distance")), 0.05),
    "a prior without symmetry": (lambda: Positions(problem((5, 5), 0.6, prior=3)), 0.05),
    "masked": (lambda: Positions(problem((6, 5), 0.6, mask=mask_with_holes())), 0.20),
    "varying level": (lambda: Positions(varying()), 0.10),
}
EACH = pytest.mark.parametrize("case", few_by_default(CASES, "rectangle, distance", "varying level"))


@functools.cache
def columns_of(case: str) -> tuple[Positions, np.ndarray]:
    program = CASES[case][0]()
    return program, by_columns.column_table(program, gap=GAP)[0]


@EACH
def test_every_column_is_within_integer_cones(case: str) -> None:
    """Each by itself, without its weight; one that is lowered at one place is not."""
    program, _ = columns_of(case)
    columns = by_columns._columns(by_columns._centres(program), program)
    whole = (columns / columns.max(axis=0) * 2.0**61).astype(np.uint64)
    assert program.patches.breaches(whole) == 0
    place = int(whole[:, 0].argmin())
    whole[place, 0] //= 4
    assert program.patches.breaches(whole) > 0


@EACH
@pytest.mark.usefixtures("coarse_any_bound")
def test_columns_lie_between_optimum_and_noise(case: str) -> None:
    program, mass = columns_of(case)
    optimum = design_of(program, gap=1e-4, method="cones")
    found = mean_cost(mass, program.cost)
    assert program.patches.breaches(mass) == 0
    assert (mass.sum(axis=1) == ROW_SUM).all()
    assert found >= optimum.lower_bound
    assert found <= optimum.objective * (1 + CASES[case][1])
    clamped = spline_laplace.spline_laplace(program.problem)["mass"].values
    assert found <= mean_cost(clamped, program.cost) * (1 + ROUNDED)


@EACH
def test_changed_column_or_weight_is_noticed(case: str) -> None:
    """A weight a fifth larger, taken from the largest other mass of each row; a mass that is moved."""
    program, mass = columns_of(case)
    chosen, rows = int(mass.sum(axis=0, dtype=float).argmax()), np.arange(len(mass))
    others = mass.copy()
    others[:, chosen] = 0
    heavier, more = mass.copy(), np.minimum(mass[:, chosen] // np.uint64(5), others.max(axis=1) // np.uint64(2))
    heavier[:, chosen] += more
    assert not are_rows(heavier)
    heavier[rows, others.argmax(axis=1)] -= more
    assert are_rows(heavier)
    assert program.patches.breaches(heavier) > 0
    other, row = mass.copy(), int(mass[:, chosen].argmin())
    moved = other[row, chosen] // np.uint64(2)
    other[row, chosen] -= moved
    other[row, int(others[row].argmax())] += moved
    assert program.patches.breaches(other) > 0


@pytest.mark.parametrize(
    ("shape", "epsilon"),
    few_by_default([((1, 9), 0.5), ((3, 3), 1e-6), ((3, 4), 5.0), ((2, 2), 60.0)], ((1, 9), 0.5), ((2, 2), 60.0)),
)
def test_thin_small_and_steep_maps_certify(shape: tuple[int, int], epsilon: float) -> None:
    program = Positions(problem(shape, epsilon))
    mass, stopped = by_columns.column_table(program, gap=1e-3)
    assert stopped == "columns"
    assert program.patches.breaches(mass) == 0
    assert mean_cost(mass, program.cost) <= program.cost.sum(axis=0).min() * (1 + ROUNDED)


def test_plane_noise_is_best_column_of_window() -> None:
    """By Clarabel on a whole window, whose centre alone is reported; border cells share the rows of neighbours."""
    z, reach = 0.8, 4
    noise = by_columns.plane_noise(z, reach, SquaredDistance())
    side = 2 * reach + 1
    window = Domain.grid((side, side), cell=1.0, unit="cell", origin=(-side / 2, -side / 2))
    cones = spline_laplace.spline_cones(patches(window, Euclidean(epsilon=z, unit="cell")))
    away = (window.points**2).sum(axis=1)
    p = cp.Variable(side * side)
    inside = cp.SOC(cones.bound @ p, cp.vstack([cones.slope_x @ p, cones.slope_y @ p]), axis=0)
    stated = cp.Problem(cp.Minimize(away @ p), [cp.sum(p) == 1, inside])
    stated.solve(solver="CLARABEL")
    steps = np.abs(np.rint(window.points)).astype(int)
    found = noise[steps[:, 0], steps[:, 1]]
    assert found @ away / found.sum() == pytest.approx(stated.value, rel=1e-4)
    assert cones.excess(found[:, None]) <= 1 + 1e-9


def test_longest_step_towards_zero_is_exact() -> None:
    """Where a step is a multiple of its point, the discriminant is 0 but for rounding."""
    rng = np.random.default_rng(0)
    tail = rng.normal(size=(2, 1000))
    s = np.stack([np.hypot(*tail) + rng.exponential(size=1000), *tail])
    s[1:, :500] = 0
    for point in s.T[:, :, None]:
        assert longest_step(point, -3.0 * point) == pytest.approx(1 / 3, rel=1e-6)
        assert longest_step(point, 3.0 * point) == np.inf


def test_command_and_file_name_method(run, tmp_path) -> None:
    path = tmp_path / "columns.nc"
    words = ["solve", "philadelphia", "--cells", 3, "--extent", 2, "--program", "positions", "--method", "columns"]
    code, output, _ = run(*words, "-o", path)
    assert code == 0
    assert "No mechanism at all with this claim and these reports does better than " in " ".join(output.split())
    mechanism, checked = md.load(path), md.verify(path)
    assert checked.certified
    assert checked.position_breaches == 0
    assert mechanism.attrs["stopped"] == "columns"
    assert "lower_bound" not in mechanism.attrs
    assert '"method": "columns"' in mechanism.attrs["parameters"]
    with pytest.raises(InputError, match="cones or columns"):
        md.solve(CASES["square"][0](), method="pool")


@pytest.mark.parametrize("ends", few_by_default(["time", "interrupt"], "interrupt"))
def test_search_cut_short_is_certified(ends: str) -> None:
    program = CASES["square"][0]()

    def stop(*_: object) -> None:
        if ends == "interrupt":
            raise KeyboardInterrupt

    mass, stopped = by_columns.column_table(
        program, gap=GAP, deadline=-np.inf if ends == "time" else np.inf, on_progress=stop
    )
    assert stopped == ends
    assert program.patches.breaches(mass) == 0
    assert (mass.sum(axis=1) == ROW_SUM).all()


@pytest.mark.usefixtures("coarse_any_bound")
def test_auto_uses_columns_where_cones_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    program = CASES["square"][0]()
    assert design_of(program, gap=1e-2).stopped == "gap"
    monkeypatch.setattr(cone_blocks, "CONSTANTS", replace(cone_blocks.CONSTANTS, most_operations=1.0))
    assert design_of(program, gap=1e-2).stopped == "columns"
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=300_000))
    with pytest.raises(SizeError, match="spline_laplace"):
        design_of(program, gap=1e-2, method="columns")


@pytest.mark.study
def test_ten_thousand_places_certify() -> None:
    """Some 90 seconds of one core, 7 GB; far from the border the loss is that of the noise of the plane."""
    domain = Domain.grid((100, 100), cell=1.0, unit="cell")
    level = PrivacyLevel.from_values(domain, np.full((100, 100), 0.25))
    program = Positions(
        DesignProblem(domain=domain, metric=Eikonal(level=level), prior=priors.uniform(domain), loss=LOSSES["squared"])
    )
    mass, stopped = by_columns.column_table(program, gap=1e-3)
    assert stopped == "columns"
    assert program.patches.breaches(mass) == 0
    assert 0.8 * 6 / 0.25**2 < mean_cost(mass, program.cost) < 6 / 0.25**2
    changed = Patches(
        around=program.patches.around, corner_level=0.99 * program.patches.corner_level, side=program.patches.side
    )
    assert changed.breaches(mass) > 0

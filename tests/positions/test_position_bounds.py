"""Bounds between positions: any multipliers prove a true bound, whatever their sizes and rounding.

The second route is in fractions: multipliers and cones as given, sums without rounding.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from fixtures.forged_files import rewritten
from fixtures.integer_oracles import mean_cost
from fixtures.mechanisms import design_of
from fixtures.rows import few_by_default
from fixtures.unproved_bounds import flat_program, in_doubles, noise

from mechdesign import DesignProblem, Discrete, Domain, Euclidean, Optimal, priors, solve, verify
from mechdesign.extend import Edges
from mechdesign.losses import LOSSES, TableLoss
from mechdesign.mechanism.build import Extras, build_dataset
from mechdesign.mechanism.figures import certified_scale
from mechdesign.positions import Positions
from mechdesign.positions.solve import proved_bound
from mechdesign.positions.symmetry import edge_orbits, position_orbits, row_multipliers
from mechdesign.solvers.cone.pricing import sum_down

NOISE = 1e-10  # relative: largest cost of rounding down to a bound of ordinary multipliers
HALF_OPEN = 1e-7  # relative: nearer than this costs and levels are products for one


def problem_of(side: int = 3, prior: np.ndarray | None = None) -> DesignProblem:
    domain = Domain.grid((side, side), cell=1.0, unit="cell")
    chosen_prior = priors.uniform(domain) if prior is None else prior / prior.sum()
    metric = Euclidean(epsilon=0.5, unit="cell")
    return DesignProblem(domain=domain, metric=metric, prior=chosen_prior, loss=LOSSES["squared"])


def exact_taken(program: Positions, slack: np.ndarray) -> list[list[Fraction]]:
    """G' z of vectors (3, k, r) whose first parts are raised enough, in fractions: (n, r)."""
    cones = program.cones
    rows = [part.toarray() for part in (cones.bound, cones.slope_x, cones.slope_y)]

    def entry(u: int, y: int) -> Fraction:
        terms = (
            Fraction(part[k, u]) * Fraction(z[k, y])
            for part, z in zip(rows, slack, strict=True)
            for k in np.flatnonzero(part[:, u])
        )
        return sum(terms, Fraction(0))

    return [[entry(u, y) for y in range(slack.shape[2])] for u in range(len(program.cost))]


def exact_bound(program: Positions, slack: np.ndarray) -> Fraction:
    """The bound of vectors (3, k, r), one for a report of each orbit, over all of them, in fractions."""
    group, products = position_orbits(program)[0], exact_taken(program, slack)
    smallest: dict[int, Fraction] = {}
    for way in group.ways:
        for u, place in enumerate(way.tolist()):
            for r, y in enumerate(group.reports.tolist()):
                one = Fraction(program.cost[place, way[y]]) - products[u][r]
                smallest[place] = min(smallest.get(place, one), one)
    return sum(smallest.values(), Fraction(0))


def in_cones(slack: np.ndarray) -> np.ndarray:
    """Vectors (3, k, r) with their first parts raised."""
    raised = slack.copy()
    raised[0] = np.maximum(slack[0], np.nextafter(np.hypot(slack[1], slack[2]), np.inf))
    return raised


def noise_multipliers() -> tuple[Positions, np.ndarray]:
    program = flat_program()
    return program, noise(program, 2.95, tries=6000, seed=0)


def test_rounding_noise_proves_no_bound() -> None:
    """Attack: levels of 1e-25, and slopes times 2^50 that cancel: above 1.5, which equal rows attain."""
    program, multipliers = noise_multipliers()
    attained = float(program.cost.sum(axis=0).min())
    assert in_doubles(program, multipliers) > 1.05 * attained
    assert proved_bound(program, multipliers) <= attained


def test_file_with_noise_as_bound_is_refused() -> None:
    program, multipliers = noise_multipliers()
    cost, m = program.cost, program.cost.shape[1]
    row = np.full(m, 2**62 // (m - 1), np.uint64)
    row[0], row[-1] = 1, int(row[-1]) + 2**62 - 1 - (m - 1) * int(row[-1])
    mass = np.tile(row, (len(cost), 1))
    objective = {"objective": mean_cost(mass, cost), "objective_of": "the mean loss to the true position"}
    extras = Extras(
        scale=certified_scale(program.problem, mass),
        parameters=program.parameters(), lower_bound=in_doubles(program, multipliers), multipliers=multipliers,
        dual=np.zeros(len(cost)), stopped="gap", positions=program.patches, attributes=objective,
    )  # fmt: skip
    mechanism = build_dataset(program.problem, mass, program="positions", extras=extras)
    checked = verify(mechanism)
    assert checked.position_breaches == 0
    assert not checked.lower_bound_checked
    assert checked.reasons == ["lower_bound: does not follow from the stored multipliers"]
    honest = mechanism.assign_attrs(lower_bound=proved_bound(program, multipliers))
    assert verify(rewritten(honest)).certified


@pytest.mark.parametrize(("part", "other"), [("mask", False), ("grid", False), ("points", False), ("reversed", True)])
def test_bound_follows_for_reports_on_secrets(part: str, other: bool) -> None:
    """A file tells by coordinates whether reports are the secrets, and so must a design, which uses symmetries then."""
    domain = Domain.grid((3, 2), cell=1.0)
    mask = np.pad(np.ones((3, 2), bool), ((0, 1), (0, 2)))
    reports = {
        "mask": Domain.grid((4, 4), cell=1.0, mask=mask),
        "grid": Domain.grid((3, 2), cell=1.0),
        "points": Domain.points_at(domain.points, unit="1"),
        "reversed": Domain.points_at(domain.points[::-1], unit="1"),
    }[part]
    problem = DesignProblem(domain, Euclidean(0.5), priors.uniform(domain), LOSSES["squared"], reports=reports)
    mechanism = solve(Positions(problem))
    checked = verify(rewritten(mechanism))
    assert checked.certified, checked.reasons
    assert checked.lower_bound_checked
    assert (problem.reports is not problem.domain) == other
    # The other route is the design whose reports are its secrets by default: its optimum is the same.
    plain = solve(Positions(DesignProblem(domain, Euclidean(0.5), priors.uniform(domain), LOSSES["squared"])))
    assert mechanism.attrs["lower_bound"] <= plain.attrs["objective"]
    assert plain.attrs["lower_bound"] <= mechanism.attrs["objective"]


def test_reports_in_other_unit_are_not_secrets() -> None:
    """Their coordinates may be equal all the same."""
    domain, reports = Domain.nodes(2), Domain.points_at([0.0, 1.0], unit="EUR")
    loss = TableLoss(values=np.array([[1.0, 0.0], [0.0, 2.0]]))
    mechanism = solve(Optimal(DesignProblem(domain, Discrete(1.0), priors.uniform(domain), loss, reports=reports)))
    assert verify(rewritten(mechanism)).certified


@pytest.mark.parametrize("largest", few_by_default([0, 20, 60], 60))
def test_bound_is_below_and_near_exact_one(largest: int) -> None:
    """Any vectors within the dual cones; of ordinary sizes little is lost, of 2^60 no more than is not known."""
    program = Positions(problem_of(2), corner_level=np.random.default_rng(1).uniform(0.1, 0.5, (4, 4)))
    assert len(position_orbits(program)[0].ways) == 1
    random = np.random.default_rng(largest)
    for _ in range(5):
        slack = random.standard_normal((3, program.cones.size, 4)) * 2.0 ** random.uniform(-30, largest)
        slack[0] = np.hypot(slack[1], slack[2]) * random.choice((0.5, 1.0, 2.0))
        exact, found = exact_bound(program, in_cones(slack)), proved_bound(program, slack.ravel())
        assert found <= exact
        assert found >= exact - NOISE * (1 + abs(slack).sum())


def test_zero_multipliers_give_least_costs() -> None:
    program = Positions(problem_of())
    cones = program.cones.size
    exact = sum(min(map(Fraction, row)) for row in program.cost.tolist())
    found = proved_bound(program, np.zeros(3 * cones * len(position_orbits(program)[0].reports)))
    assert exact * (1 - Fraction(NOISE)) <= found <= exact


def test_slopes_are_exact_and_bounds_positive() -> None:
    """A slope of a constant is 0 to the last bit: a remainder would be multiplied with any number."""
    levels = np.random.default_rng(3).uniform(0.1, 0.5, (9, 4))
    for scale in (1.0, 1e-322):
        cones = Positions(problem_of(), corner_level=levels * scale).cones
        for slopes in (cones.slope_x, cones.slope_y):
            assert (slopes.sum(axis=1) == 0).all()
            assert (slopes.data * 2**12 == np.rint(slopes.data * 2**12)).all()
        of_constants = cones.bound.sum(axis=1)
        assert (of_constants >= 2.0**-900 * 0.1).all()  # of levels that no product makes 0


def test_nearly_equal_costs_stay_distinct() -> None:
    """A corner of half the prior of the others, by less than 1e-7 of the largest cost: nearly all is in the middle."""
    prior = np.full(9, 1e-9)
    prior[4], prior[8] = 1.0, 0.5e-9
    program = Positions(problem_of(prior=prior))
    group, cones = position_orbits(program)
    assert len(group.ways) == 8
    random, fooled = np.random.default_rng(0), 0
    for _ in range(3):
        slack = 0.01 * random.standard_normal((3, cones.size, len(group.reports)))
        slack[0] = np.hypot(slack[1], slack[2])
        exact = exact_bound(program, in_cones(slack))
        assert sum_down(row_multipliers(program.cost, cones, group, slack)) <= exact
        products = np.array(exact_taken(program, in_cones(slack)), float)
        of_one = (program.cost[:, group.reports] - products).min(axis=1)  # as if all reports of an orbit cost the same
        fooled += np.min([of_one[way] for way in group.ways], axis=0).sum() > float(exact) * (1 + 1e-12)
    assert fooled


def test_nearly_equal_levels_are_raised() -> None:
    rng = np.random.default_rng(0)
    for columns in (4, 16):
        level = 0.4 * (1 + 0.4 * HALF_OPEN * rng.uniform(-1, 1, (9, columns)))
        program = Positions(problem_of(), corner_level=level)
        group, cones = position_orbits(program)
        assert len(group.ways) == 8
        assert (group.raised >= level).all()
        assert (group.raised > level).any()
        again, same = position_orbits(replace(program, corner_level=group.raised))
        assert np.array_equal(again.raised, group.raised)  # left alone by all ways: nothing is raised twice
        assert same.size == cones.size
        corners = group.raised.reshape(3, 3, *[2] * (2 if columns == 4 else 4))
        if columns == 4:
            assert np.array_equal(corners, corners[::-1, :, ::-1, :])
            assert np.array_equal(corners, corners.transpose(1, 0, 3, 2))
        else:
            assert np.array_equal(corners, corners[:, ::-1, :, ::-1, :, ::-1])
            assert np.array_equal(corners, corners.transpose(1, 0, 3, 2, 5, 4))
    uneven = np.full((9, 4), 0.4)
    uneven[0, 0] = 0.4 * (1 + 10 * HALF_OPEN)
    assert len(position_orbits(Positions(problem_of(), corner_level=uneven))[0].ways) == 2  # the exchange of axes


def test_nearly_equal_edges_are_raised() -> None:
    problem = problem_of()
    edges = problem.edges
    length = edges.length * (1 + 0.4 * HALF_OPEN * np.random.default_rng(0).uniform(-1, 1, len(edges.length)))
    cost = problem.weighted_loss
    group, raised = edge_orbits(cost, problem.domain, problem.reports, replace(edges, length=length))
    assert len(group.ways) == 8
    assert (raised.length >= length).all()
    assert np.array_equal(edge_orbits(cost, problem.domain, problem.reports, raised)[1].length, raised.length)
    short = Edges(tail=edges.tail[1:], head=edges.head[1:], length=edges.length[1:])
    assert len(edge_orbits(cost, problem.domain, problem.reports, short)[0].ways) == 1


@pytest.mark.parametrize(
    "hostile",
    few_by_default([np.inf, -np.inf, np.nan, 1e300, -1e300, 1.7e308, 5e-324], np.inf, -np.inf, np.nan, 1.7e308),
)
def test_hostile_multipliers_prove_true_bounds_only(hostile: float) -> None:
    program = Positions(problem_of())
    found = design_of(program, gap=1e-3)
    assert found.multipliers is not None
    attained = float(program.cost.sum(axis=0).min())
    for at in (0, len(found.multipliers) // 2, -1):
        changed = found.multipliers.copy()
        changed[at] = hostile
        assert proved_bound(program, changed) <= found.objective
        assert not proved_bound(program, np.full_like(changed, hostile)) > attained
    for size in (0, 1, len(found.multipliers) - 1, len(found.multipliers) + 3):
        assert proved_bound(program, np.zeros(size)) == -np.inf


def test_files_with_hostile_multipliers_are_refused() -> None:
    mechanism = solve(Positions(problem_of(2)), gap=1e-3)
    assert verify(mechanism).lower_bound_checked
    for value in (np.inf, np.nan, 1e300, 1e17):
        changed = mechanism.copy(deep=True)
        changed["multiplier"].values[1] = value
        checked = verify(rewritten(changed))
        assert checked.certified is False
        assert checked.lower_bound_checked is False
    assert not verify(rewritten(mechanism.isel(side_row=slice(1, None)))).lower_bound_checked
    raised = mechanism.attrs["lower_bound"] * (1 + 1e-8)
    assert not verify(rewritten(mechanism, lower_bound=raised)).lower_bound_checked

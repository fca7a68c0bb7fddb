"""Limits on the posterior of discs: the facts of posteriors/limits.py, each with a counterexample where it ends."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np
import pytest
import xarray as xr
from fixtures.mechanisms import table_of
from fixtures.tight_limits import caps_of
from fixtures.tolerances import BLOCKS, NOTED, ORACLE, REORDERED
from numpy.typing import NDArray

import mechdesign as md
from mechdesign import DesignProblem, Domain, Graph
from mechdesign.errors import InfeasibleError, InputError
from mechdesign.losses import Distance
from mechdesign.mechanism.certificate import ROW_SUM
from mechdesign.posteriors import PosteriorCap, PosteriorLift, block_search
from mechdesign.posteriors.discs import cells_of_area, disc_sets
from mechdesign.posteriors.limits import DiscConstraint
from mechdesign.posteriors.persons import whole_persons
from mechdesign.posteriors.rows import posterior_shares
from mechdesign.posteriors.shares import exact_fraction, share_if_wrong
from mechdesign.problem.lattice import stencil_pairs
from mechdesign.programs import Constrained
from mechdesign.programs.constraints import Constraint

CELL, RADIUS = 390.0, 564.0  # m: the largest disc has 3 x 3 cells
EVEN = {
    ("2/5", 1): 903.0,
    ("1/5", 1): 1105.0,
    ("3/20", 1): 1180.0,
    ("3/10", 2): 893.0,
    ("1/5", 2): 1082.0,
    ("3/20", 2): 1169.0,
    ("1/5", 4): 1052.0,
}  # m, of 8 x 8 cells of even density, by share and nats per radius in ln 2


def problem_at(side: int, doublings: float, people: NDArray[np.int64], stencil: int = 8) -> DesignProblem:
    """Cells of 390 m; the odds of neighbours double so many times within the radius."""
    domain = Domain.grid((side, side), cell=CELL, unit="m")
    tail, head = stencil_pairs(domain, stencil)
    length = doublings * math.log(2) / RADIUS * np.linalg.norm(domain.points[tail] - domain.points[head], axis=1)
    metric = Graph(tail=tail, head=head, length=length)
    return DesignProblem(domain=domain, metric=metric, prior=people / people.sum(), loss=Distance())


def town(side: int) -> NDArray[np.int64]:
    """Persons, more of them in a corner."""
    x, y = np.mgrid[:side, :side] / side
    return np.rint(1000 * np.exp(-2 * (x + y))).astype(np.int64).ravel()


def capped_program(side: int, doublings: float, people: NDArray[np.int64], *limits: DiscConstraint) -> Constrained:
    return Constrained(problem_at(side, doublings, people.reshape(-1, side * side)[0]), constraints=limits)


@cache
def town_mechanism() -> tuple[Constrained, xr.Dataset]:
    """A cap in a town of 5 x 5 cells, and its mechanism to a gap of 1e-5."""
    people = town(5)
    program = capped_program(5, 2, people, PosteriorCap(radius=RADIUS, share="7/10", people=people))
    return program, md.solve(program, gap=1e-5)


def test_share_below_that_of_a_disc_is_refused() -> None:
    people = town(4)
    problem = problem_at(4, 1, people)
    densest = max(people[np.flatnonzero(row)].sum() for row in disc_sets(problem.domain, RADIUS).toarray())
    share = Fraction(int(densest), int(people.sum()))
    below, above = Fraction(math.floor(share * 999), 999), Fraction(math.ceil(share * 999), 999)
    with pytest.raises(InfeasibleError, match=r"about \(585, 585\) contains .* before any report"):
        md.solve(capped_program(4, 1, people, PosteriorCap(radius=RADIUS, share=below, people=people)))
    kept = capped_program(4, 1, people, PosteriorCap(radius=RADIUS, share=above, people=people))
    mechanism = md.solve(kept, gap=1e-3)
    assert md.verify(mechanism).certified
    assert posterior_shares(mechanism["mass"].values, caps_of(kept)[0]).max() <= float(above) * (1 + REORDERED)


@pytest.mark.parametrize(
    ("people", "limit", "tolerance"),
    [
        pytest.param(np.full(16, 1000), PosteriorCap(radius=RADIUS, share="5/8"), ORACLE, marks=pytest.mark.exhaustive),
        pytest.param(np.full(36, 1000), PosteriorCap(radius=RADIUS, share="1/3"), ORACLE, marks=pytest.mark.exhaustive),
        pytest.param(
            town(4), PosteriorCap(radius=RADIUS, share="5/6", people=town(4)), BLOCKS, marks=pytest.mark.exhaustive
        ),
        (town(4), PosteriorLift(radius=RADIUS, factor="5/4", people=town(4), centres="places"), BLOCKS),
        pytest.param(
            town(4),
            PosteriorCap(radius=RADIUS, share="5/6", people=town(4), centres="area"),
            BLOCKS,
            marks=pytest.mark.exhaustive,
        ),
    ],
    ids=["4 x 4 cells", "6 x 6 cells", "a town", "a lift in a town", "by area in a town"],
)
def test_the_optimum_is_that_of_the_statement_with_all_rows(
    people: NDArray[np.int64], limit: DiscConstraint, tolerance: float
) -> None:
    """By lazy rows and interior points, and by HiGHS on cvxpy's statement, by area as sums of the largest entries."""
    program = capped_program(math.isqrt(len(people)), 2, people, limit)
    mechanism = md.solve(program, gap=1e-7)
    assert md.verify(mechanism).lower_bound_checked
    stated = program.statement().solve(solver="HIGHS")
    assert stated * (1 - tolerance) <= mechanism.attrs["lower_bound"] <= stated * (1 + ORACLE)
    assert stated * (1 - ORACLE) <= mechanism.attrs["objective"] <= stated * (1 + tolerance)


def test_no_disc_anywhere_has_more_of_the_posterior_than_the_cap() -> None:
    """Against discs about 600 places and the cells, by distances alone."""
    program, mechanism = town_mechanism()
    domain, people = program.problem.domain, town(5)
    centres = np.concatenate([np.random.default_rng(0).uniform(-CELL, 6 * CELL, (600, 2)), domain.points])
    inside = np.linalg.norm(domain.points[None] - centres[:, None], axis=2) <= RADIUS
    listed = disc_sets(domain, RADIUS).toarray() > 0
    assert all((listed >= one).all(axis=1).any() for one in inside)
    joint = people[:, None] * table_of(mechanism)
    assert ((inside @ joint) / joint.sum(axis=0)).max() <= 0.7
    narrow = (joint.sum(axis=0) * 0.69)[None] < inside @ joint
    assert narrow.any()  # a smaller share is not kept: the discs reach the limit


def test_area_cap_bounds_posterior_of_cells() -> None:
    """Against all 84 sets of six of nine cells; two counts of people."""
    people = np.stack([town(3), town(3)[::-1]])
    program = capped_program(3, 2, people, PosteriorCap(radius=RADIUS, share="11/12", people=people, centres="area"))
    mechanism = md.solve(program, gap=1e-4)
    assert md.verify(mechanism).lower_bound_checked
    joint = people[:, :, None] * table_of(mechanism)
    sets = [list(inside) for inside in combinations(range(9), 6)]
    most = np.max([joint[:, inside].sum(axis=1) for inside in sets], axis=0) / joint.sum(axis=1)
    assert most.max() <= 11 / 12
    assert (most.max(axis=1) > 0.915).all()  # both counts bind
    shares = [posterior_shares(mechanism["mass"].values, caps) for caps in caps_of(program)]
    assert np.array(shares) == pytest.approx(most, rel=REORDERED)


def test_raised_columns_reach_exactly_the_area_limit() -> None:
    """The least constant, by bisection on exact sums of the largest entries."""
    program = capped_program(4, 2, town(4), PosteriorCap(radius=RADIUS, share="3/4", people=town(4), centres="area"))
    caps, table = caps_of(program)[0], np.random.default_rng(5).random((16, 6)) ** 8
    theta = caps.lift_needed(table, 0.0)
    assert (theta > 0).any()
    for column, found in zip(table.T, theta, strict=True):
        low, high = 0.0, 1e3
        for _ in range(80):
            middle = (low + high) / 2
            inside = np.sort(caps.prior * (column + middle))[-6:].sum() / (caps.prior @ (column + middle))
            low, high = (low, middle) if inside <= 0.75 else (middle, high)
        assert found == pytest.approx(high, rel=1e-9, abs=1e-12)


def test_merged_reports_keep_the_cap_but_two_do_not() -> None:
    program, mechanism = town_mechanism()
    caps, table = caps_of(program)[0], table_of(mechanism)
    merged = np.column_stack([table[:, ::2].sum(axis=1), table[:, 1::2] @ np.array([[0.3, 0.7]] * 12)])
    assert posterior_shares(merged, caps).max() <= 0.7
    twice = np.stack([table[:, a] * table[:, b] for a, b in combinations(range(25), 2)], axis=1)
    assert posterior_shares(twice, caps).max() > 0.75


def test_wrong_counts_raise_the_share_as_stated() -> None:
    """By counts doubled inside the fullest disc and halved outside, and by fact 2, all in fractions of the integers."""
    program, mechanism = town_mechanism()
    caps, mass, k = caps_of(program)[0], mechanism["mass"].values, Fraction(2)
    report = int(np.argmax(posterior_shares(mass, caps)))
    joint = [Fraction(int(n) * int(a)) for n, a in zip(caps.persons, mass[:, report], strict=True)]
    discs = [np.flatnonzero(row).tolist() for row in caps.sets.toarray()]
    disc = max(discs, key=lambda places: sum(joint[u] for u in places))
    wrong = [part * (k if u in disc else 1 / k) for u, part in enumerate(joint)]
    after = sum(wrong[u] for u in disc) / sum(wrong)
    before = sum(joint[u] for u in disc) / sum(joint)
    assert after == share_if_wrong(before, k) == 4 * before / (1 + 3 * before)
    assert 0.9 < after <= share_if_wrong(Fraction(7, 10), k)


def test_design_for_several_counts_keeps_each_share() -> None:
    """Counts that are between half and twice those of the file in every cell: each disc doubled, all others halved."""
    people = town(4)
    program = capped_program(4, 2, people, PosteriorCap(radius=RADIUS, share="19/20", people=people, wrong_by=2))
    mass, worst = md.solve(program, gap=1e-3)["mass"].values, Fraction(0)
    for disc in disc_sets(program.problem.domain, RADIUS).toarray() > 0:
        joint = np.where(disc, 4 * people, people).astype(object)[:, None] * mass.astype(object)
        worst = max(worst, *(Fraction(part[disc].sum(), part.sum()) for part in joint.T))
    assert Fraction(949, 1000) < worst <= Fraction(19, 20)


def test_one_unit_is_found_under_several_priors() -> None:
    people = np.stack([town(4), town(4)[::-1]])
    program = capped_program(4, 1, people, PosteriorCap(radius=RADIUS, share="5/6", people=people))
    mass = md.solve(program, gap=1e-3)["mass"].values
    assert [caps.breaches(mass) for caps in caps_of(program)] == [0, 0]
    # The column that one person has alone in one disc: at equality by hand, then one unit above.
    caps, column = caps_of(program)[0], np.ones((16, 1), np.uint64)
    limit = caps.limits[0]
    inside = caps.sets.toarray()[0] > 0
    persons = caps.persons.astype(object)
    rest = int(sum(persons[~inside]))
    lone = int(np.flatnonzero(inside)[0])
    most = (limit.numerator * rest - (limit.denominator - limit.numerator) * int(sum(persons[inside]))) // (
        (limit.denominator - limit.numerator) * int(persons[lone])
    )
    scale = 2**50
    column[:] = scale
    column[lone] += most * scale
    exact = limit.numerator * int(persons @ column[:, 0].astype(object)) - limit.denominator * int(
        persons[inside] @ column[inside, 0].astype(object)
    )
    column[lone] += exact // ((limit.denominator - limit.numerator) * int(persons[lone]))
    before = caps.breaches(column)
    column[lone] += 1
    assert caps.breaches(column) > before


def test_the_claim_of_limits_is_in_integers_of_known_size() -> None:
    assert [exact_fraction(share, "share") for share in ("20%", "1/5", 0.2, Fraction(1, 5), "0.20")] == [
        Fraction(1, 5)
    ] * 5
    for share in ("1/65536", "-1/5", "1/0", "nan", "٢/5", " 1/5/", "1/5\n2", True, 0.123456789):
        with pytest.raises(InputError):
            exact_fraction(share, "share")
    for people in ([2**32, 0], [2**31, 2**31], [0, 0], [-1, 3], [1, 2, 3], [True, False]):
        with pytest.raises(InputError, match="people"):
            whole_persons(people, 2)
    largest = np.array([[2**32 - 2, 1]])
    assert whole_persons(largest, 2)[0].sum() == 2**32 - 1
    domain = Domain.grid((1, 2), cell=CELL, unit="m")
    metric = Graph(tail=[0], head=[1], length=[1.0])
    problem = DesignProblem(domain=domain, metric=metric, prior=[0.5, 0.5], loss=Distance())
    (caps,) = PosteriorCap(radius=1.0, share="65534/65535", people=[2**31, 2**31 - 1]).caps(problem)
    column = np.array([[1], [ROW_SUM]], np.uint64)
    persons = caps.persons.astype(object)
    broken = ROW_SUM * 65535 * int(persons[1]) > 65534 * (int(persons[0]) + ROW_SUM * int(persons[1]))
    assert caps.breaches(column) == broken == 1
    assert caps.breaches(np.full((2, 1), ROW_SUM, np.uint64)) == 0


@pytest.mark.parametrize("other", [md.programs.ReportCap(cap=0.3), md.programs.ErrorCap(radius=800.0, share=0.35)])
def test_cap_with_other_constraints_reaches_optimum(other: Constraint) -> None:
    people = town(4)
    cap = PosteriorCap(radius=RADIUS, share="5/6", people=people)
    alone, both = (Constrained(problem_at(4, 2, people), constraints=figures) for figures in ([cap], [cap, other]))
    mechanism, stated = md.solve(both, gap=1e-6), both.statement().solve(solver="HIGHS")
    result = md.verify(mechanism)
    assert result.certified
    assert result.lower_bound_checked
    assert posterior_shares(mechanism["mass"].values, caps_of(both)[0]).max() <= 5 / 6
    assert stated * (1 - BLOCKS) <= mechanism.attrs["lower_bound"] <= stated * (1 + ORACLE)
    assert stated * (1 - ORACLE) <= mechanism.attrs["objective"] <= stated * (1 + BLOCKS)
    assert stated > alone.statement().solve(solver="HIGHS") * (1 + BLOCKS)  # the other one costs something


@pytest.mark.parametrize("last", [25, pytest.param(9, marks=pytest.mark.exhaustive)])
def test_late_cuts_reach_about_the_same_optimum(monkeypatch: pytest.MonkeyPatch, last: int) -> None:
    """The routes of 301 to 400 cells, and of more, run on 25: against the run with all nodes cut from the start."""
    program, whole = town_mechanism()
    options = block_search.LimitOptions(all_cut=9, all_cut_later=last, near_cut=3.0, far_cut=4.0)
    monkeypatch.setattr(block_search, "OPTIONS", options)
    found = md.solve(program, gap=1e-5)
    assert md.verify(found).lower_bound_checked
    assert found.attrs["lower_bound"] <= whole.attrs["objective"] * (1 + REORDERED)
    assert whole.attrs["lower_bound"] <= found.attrs["objective"] * (1 + REORDERED)
    apart = 1 - found.attrs["lower_bound"] / found.attrs["objective"]
    if last == 25:
        assert apart <= 1e-5
    else:  # profiles beyond the far cuts: missing cuts are never added
        assert 1e-5 < apart < 0.2
        assert found.attrs["stopped"] == "precision"


def test_bad_limits_are_refused() -> None:
    people = town(4)
    with pytest.raises(InputError, match="only with linear inequalities"):
        md.solve(
            Constrained(
                problem_at(4, 1, people),
                constraints=[PosteriorCap(radius=RADIUS, share="5/6"), lambda table: [table[0, 0] ** 2 <= 0.5]],
            )
        )
    with pytest.raises(InputError, match="factor"):
        PosteriorLift(radius=RADIUS, factor=1)
    with pytest.raises(InputError, match="wrong_by"):
        PosteriorCap(radius=RADIUS, share="1/5", wrong_by="1/2")
    with pytest.raises(InputError, match="radius"):
        PosteriorCap(radius=0.0, share="1/5")
    with pytest.raises(InputError, match="anywhere or places for a factor"):
        PosteriorLift(radius=RADIUS, factor=2, centres="area")
    by_area = {"people": people, "centres": "area"}
    with pytest.raises(
        InfeasibleError, match=r"6 cells, no larger together than a disc of radius 564 m, contain 68\.71 %"
    ):
        md.solve(capped_program(4, 1, people, PosteriorCap(radius=RADIUS, share="2/3", **by_area)))
    with pytest.raises(InputError, match="a cell is larger than the disc"):
        md.solve(capped_program(4, 1, people, PosteriorCap(radius=CELL / 2, share="2/3", **by_area)))
    with pytest.raises(InputError, match="areas need cells"):
        cells_of_area(Domain.points_at([[0.0, 0.0], [1.0, 0.0]], unit="m"), RADIUS)
    for radius in (1e9, 1e300):
        with pytest.raises(InputError, match="more than 2000 cells"):
            disc_sets(problem_at(4, 1, people).domain, radius)


@pytest.mark.study  # the statement with all its rows, of 4 x 4 cells, is solved by another way in every run
@pytest.mark.parametrize(("share", "doublings"), EVEN)
def test_even_density_loss_matches_another_solver(share: str, doublings: int) -> None:
    """Errors of a research program that solved whole linear programs by HiGHS, printed to the metre."""
    people = np.full(64, 1000)
    program = capped_program(8, doublings, people, PosteriorCap(radius=RADIUS, share=share, people=people))
    mechanism = md.solve(program, gap=1e-4)
    assert mechanism.attrs["objective"] == pytest.approx(EVEN[share, doublings], rel=NOTED)
    assert mechanism.attrs["lower_bound"] == pytest.approx(EVEN[share, doublings], rel=NOTED)
    assert posterior_shares(mechanism["mass"].values, caps_of(program)[0]).max() <= float(Fraction(share))

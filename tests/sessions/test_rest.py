"""The modes of a budget: draws and payments, visits, and the claim over all pairs of traces."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixtures import position_mechanisms as made_once
from fixtures.session_designs import reseal_document
from hypothesis import given
from hypothesis import strategies as st

import mechdesign as md
from mechdesign.errors import BudgetError, FileFormatError, InputError
from mechdesign.mechanism.accuracy import accuracy
from mechdesign.output.memory_claim import STAY, memory_claim
from mechdesign.sessions.budget import REMEMBERED
from mechdesign.sessions.rest import point_in, visit_of

DOMAIN = md.Domain.grid((4, 5), cell=100.0, unit="m", origin=(-50.0, 20.0))


def cells_sampler() -> md.Sampler:
    metric = md.Euclidean(epsilon=0.005, unit="m")
    problem = md.DesignProblem(domain=DOMAIN, metric=metric, prior=np.full(20, 0.05), loss=md.losses.Distance())
    return md.Sampler(md.baselines.exponential(problem))


@pytest.fixture(params=["cells", "positions"])
def sampler(request: pytest.FixtureRequest) -> md.Sampler:
    if request.param == "cells":
        return cells_sampler()
    return md.Sampler(made_once.position_mechanism("plane"))


def fixes_at_home(sampler: md.Sampler) -> Iterator[list[float]]:
    """Fixes of a phone that rests 3 m from the corner of four cells."""
    domain = sampler.certificate.domain
    home = np.asarray(domain.origin) + np.asarray(domain.cell) + 3.0
    for step in np.random.default_rng(1).normal(scale=1.0, size=(12, 2)).clip(-2.9, 2.9):
        yield (home + step).tolist()


@pytest.mark.parametrize(("remember", "visit", "paid"), [("cell", None, 1), ("visit", 50.0, 1), ("none", None, 12)])
@pytest.mark.obligation("budget-paid-once")
def test_a_phone_at_rest_pays_by_mode(tmp_path: Path, sampler, remember, visit, paid) -> None:
    cost = sampler.certificate.cost
    budget = md.sessions.Budget.create(tmp_path / "b.json", limit=12 * float(cost), remember=remember, visit=visit)
    reports = [int(budget.report(sampler, at=at)) for at in fixes_at_home(sampler)]
    assert budget.spent == paid * cost
    assert paid == 12 or len(set(reports)) == 1
    again = md.sessions.Budget(budget.path, remember=remember, visit=visit)
    if paid == 1:
        assert again.report(sampler, at=next(fixes_at_home(sampler))).attrs["cost"] == REMEMBERED
    else:
        with pytest.raises(BudgetError):
            again.report(sampler, at=next(fixes_at_home(sampler)))


def test_cells_are_drawn_from_their_centres(tmp_path: Path, monkeypatch) -> None:
    sampler = md.Sampler(made_once.position_mechanism("plane"))
    asked: list[Any] = []
    draw = md.Sampler.draw_for
    monkeypatch.setattr(md.Sampler, "draw_for", lambda self, place: asked.append(place) or draw(self, place))
    budget = md.sessions.Budget.create(tmp_path / "b.json", limit=9)
    report = budget.report(sampler, at=[-399.0, 399.0])
    assert asked == [(3, (0, 0))]
    # By the weights (1, 6, 1) / 8 of the spline at a centre.
    radius = accuracy(sampler.mechanism, [int(report)], from_centres=True)[0]
    assert float(report["accuracy"]) == radius


def test_radius_of_a_centre_is_found_by_summation() -> None:
    """Another route: the posterior of cells, with each position at one of 8 x 8 points of its cell."""
    mechanism = made_once.position_mechanism("plane")
    rows = md.Sampler(mechanism).certificate.positions.around
    mass = mechanism["mass"].values / 2.0**62
    weights = np.outer([1, 6, 1], [1, 6, 1]).ravel() / 64
    domain = made_once.domain_of("plane")
    column = (mass[:, 5][rows] @ weights) * mechanism["prior"].values
    side = (np.arange(8) + 0.5) / 8 - 0.5
    inner = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2) * domain.cell
    points = (domain.points[:, None] + inner).reshape(-1, 2)
    away = np.linalg.norm(points - domain.points[5], axis=1)
    radius = accuracy(mechanism, [5], from_centres=True)[0]
    share = np.repeat(column / column.sum(), 64) / 64
    assert share[away <= radius].sum() >= 0.95
    assert share[away <= radius - domain.cell[0]].sum() < 0.95


def test_a_visit_lasts_until_it_is_left() -> None:
    first = visit_of(DOMAIN, 40.0, [], None, [0.0, 120.0])
    assert point_in(DOMAIN, first.cell, [0.0, 120.0]) == first.point
    names = [first.name]
    inside = [visit_of(DOMAIN, 40.0, names, None, [x, 120.0]).name == first.name for x in (40.0, -40.0, 40.1, 59.0)]
    assert inside == [True, True, False, False]
    lasting = [visit_of(DOMAIN, 40.0, names, first.name, [x, 120.0]).name == first.name for x in (59.0, 60.0, 60.1)]
    assert lasting == [True, True, False]
    near = visit_of(DOMAIN, 40.0, names, first.name, [65.0, 120.0])
    assert visit_of(DOMAIN, 40.0, [*names, near.name], first.name, [45.0, 120.0]).name == first.name
    assert visit_of(DOMAIN, 40.0, [*names, near.name], None, [30.0, 120.0]).name == first.name
    assert visit_of(DOMAIN, 40.0, [*names, near.name], None, [40.0, 120.0]).name == near.name


@given(st.lists(st.tuples(st.floats(-50, 349), st.floats(20, 519)), min_size=1, max_size=30))
def test_every_position_is_within_reach_of_its_visit(trace: list[tuple[float, float]]) -> None:
    names: list[str] = []
    last = None
    for position in trace:
        found = visit_of(DOMAIN, 60.0, names, last, position)
        centre = DOMAIN.points[found.cell] + np.array(found.point) / 2**16 * 100.0
        assert math.dist(centre, position) <= 60.0 * STAY + 0.01
        if found.name not in names:
            assert math.dist(centre, position) <= 100 / 2**16  # a visit begins where the position is
            names.append(found.name)
        last = found.name


def test_radius_of_a_visit_holds_its_positions(tmp_path: Path) -> None:
    sampler = cells_sampler()
    budget = md.sessions.Budget.create(tmp_path / "b.json", limit=9, remember="visit", visit=40.0)
    report = budget.report(sampler, at=[0.0, 100.0])
    assert float(report["accuracy"]) == accuracy(sampler.mechanism, [int(report)])[0] + 60.0


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"remember": "day"}, "remember"),
        ({"remember": "visit"}, "visit"),
        ({"remember": "visit", "visit": 0}, "visit"),
        ({"remember": "visit", "visit": math.inf}, "visit"),
        ({"visit": 5.0}, "visit"),
    ],
)
def test_modes_that_are_refused(tmp_path: Path, options, field) -> None:
    with pytest.raises(InputError) as caught:
        md.sessions.Budget.create(tmp_path / "b.json", limit=1, **options)
    assert caught.value.field == field
    assert not list(tmp_path.iterdir())


def test_visits_need_a_plane_of_cells(tmp_path: Path) -> None:
    sampler = md.Sampler(md.baselines.exponential(md.load_problem("discrete", secrets=3)))
    budget = md.sessions.Budget.create(tmp_path / "b.json", limit=1, remember="visit", visit=1.0)
    with pytest.raises(InputError, match="grid"):
        budget.report(sampler, 1)
    assert budget.spent == 0


def test_a_visit_off_the_map_is_damage(tmp_path: Path) -> None:
    sampler = cells_sampler()
    budget = md.sessions.Budget.create(tmp_path / "b.json", limit=9, remember="visit", visit=40.0)
    budget.report(sampler, at=[0.0, 100.0])
    document = json.loads(budget.path.read_text())
    key = next(iter(document["remembered"]))
    document["remembered"] = {key.replace("@ 0 ", "@ 20 "): 1}
    budget.path.write_text(reseal_document(document))
    with pytest.raises(FileFormatError, match="not on the map"):
        budget.report(sampler, at=[0.0, 100.0])


@pytest.mark.parametrize(("remember", "deleted"), [("cell", None), ("visit", None), ("cell", 2), ("visit", 1)])
@pytest.mark.obligation("budget-paid-once")
def test_the_memory_claim_holds_for_every_pair_of_traces(remember, deleted) -> None:
    """Exact law of all transcripts of length 3 on three cells: (1) within a pattern of repetitions.

    The memory is deleted before the step `deleted`, whatever the trace."""
    domain = md.Domain.grid((1, 3), cell=1.0, unit="m")
    metric = md.Euclidean(epsilon=0.7, unit="m")
    problem = md.DesignProblem(domain=domain, metric=metric, prior=np.full(3, 1 / 3), loss=md.losses.Distance())
    mechanism = md.baselines.exponential(problem)
    mass = mechanism["mass"].values / 2.0**62
    scale = float(md.Sampler(mechanism).certificate.cost)
    fixes = [(0.5, x) for x in (0.2, 0.8, 1.2, 1.9, 2.5)]

    def run(trace: tuple[int, ...]) -> tuple[tuple[int, ...], list[int]]:
        """The pattern of names, and the cell of each new name."""
        names: dict[str, int] = {}
        cells, pattern, last = [], [], None
        for step, k in enumerate(trace):
            if step == deleted:
                names, last = {}, None
            if remember == "visit":
                found = visit_of(domain, 0.5, names, last, fixes[k])
                name, cell = found.name, found.cell
            else:
                cell = int(fixes[k][1])
                name = str(cell)
            if name not in names:
                names[name] = len(cells)
                cells.append(cell)
            pattern.append(names[name])
            last = name
        return tuple(pattern), cells

    traces = [(a, b, c) for a in range(5) for b in range(5) for c in range(5)]
    ran = [run(trace) for trace in traces]
    compared = 0
    for pattern, cells in ran:
        for other, primed in ran:
            if pattern != other:
                continue
            bound = scale * 0.7 * sum(abs(u - v) for u, v in zip(cells, primed, strict=True))
            worst = sum(math.log((mass[u] / mass[v]).max()) for u, v in zip(cells, primed, strict=True))
            assert worst <= bound * (1 + 1e-12) + 1e-12
            compared += 1
    assert compared > len(traces)


def test_claims_name_their_secrets() -> None:
    assert "centres of their i-th new cells" in memory_claim("cell", None, "m", positions=True)
    assert "within 40 m of the first position" in memory_claim("visit", 40.0, "m", positions=True)
    assert "any two traces" in memory_claim("none", None, "m", positions=False)
    assert "same pattern" not in memory_claim("none", None, "m", positions=False)

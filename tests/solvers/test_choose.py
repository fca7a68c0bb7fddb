"""The rule that chooses a route, its explanation, and its refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fixtures.absent_capabilities import needs
from fixtures.bump_rasters import bump_map
from fixtures.problems import grid

import mechdesign as md
from mechdesign import DesignProblem, Domain, Euclidean, Graph, load_problem, priors
from mechdesign.errors import UnsuitableError
from mechdesign.losses import Distance
from mechdesign.solvers.choose import (
    METHODS,
    Attempt,
    choose,
    constraints,
    has_few_rays,
    nearest,
    optimal_attempts,
    rejection_reason,
)
from mechdesign.solvers.cost_model import GAP, POOL_GAP
from mechdesign.solvers.estimate import default_gap, route_facts, route_sentence


def places(count: int, level: float = 0.01) -> DesignProblem:
    points = np.random.default_rng(0).uniform(0, 2000, (count, 2))
    return DesignProblem(
        domain=Domain.points_at(points, unit="m"),
        metric=Euclidean(epsilon=level, unit="m"),
        prior=priors.proportional(np.ones(count)),
        loss=Distance(),
    )


def along_a_road(count: int, length: float = 0.3) -> DesignProblem:
    tail = np.arange(count - 1)
    return replace(places(count), metric=Graph(tail=tail, head=tail + 1, length=np.full(count - 1, length)))


def answers(count: int) -> DesignProblem:
    built = load_problem("philadelphia", cells=8)
    return replace(built, reports=Domain.points_at(built.domain.points[:count], unit=built.domain.unit))


def test_case_takes_its_route(tmp_path: Path) -> None:
    cells = grid((12, 12))
    pairs = replace(places(144), domain=cells, reports=cells, metric=Euclidean(epsilon=1.0, unit="cell"))
    for problem, expected in (
        (places(60), "columns"),
        (pairs, "columns"),
        (along_a_road(60), "columns"),
        (load_problem("philadelphia", cells=12), "columns"),
        (bump_map(tmp_path, 1, 30), "columns"),  # 900 secrets, short edges
        (load_problem("philadelphia", cells=30), "blocks"),  # 900 secrets, long ones
        (answers(5), "highs"),
    ):
        route, why = choose(problem)
        assert route == expected
        assert rejection_reason(route, problem) is None
        assert why


@needs("factored")
def test_pool_is_chosen_beyond_tables() -> None:
    assert choose(load_problem("philadelphia", cells=71))[0] == "pool"
    assert choose(load_problem("philadelphia", cells=70))[0] == "blocks"


def test_nearest_place_decides_the_master() -> None:
    assert nearest(along_a_road(30, 2.4)) == 2.4
    assert optimal_attempts(along_a_road(30, 2.4), None)[0] is Attempt.BOXES
    assert optimal_attempts(along_a_road(30, 2.6), None)[0] is Attempt.VERTICES
    assert not has_few_rays(
        load_problem("streets", nodes=300)
    )  # 0.58 nats: vertices have no bound after 14 CPU seconds
    assert has_few_rays(places(60))
    assert not has_few_rays(places(60, 0.005))


def test_vertices_need_longer_edges_from_450_secrets() -> None:
    assert has_few_rays(load_problem("philadelphia", cells=26))  # 676 secrets, 3.0 nats
    assert not has_few_rays(load_problem("philadelphia", cells=26, extent=35.0))  # 1.2 nats
    assert not has_few_rays(load_problem("philadelphia", cells=27))  # 729 secrets
    assert not has_few_rays(replace(places(484), metric=Euclidean(epsilon=10.0, unit="m")))  # all pairs


def test_unsuited_route_is_refused_with_its_reason() -> None:
    large = load_problem("philadelphia", cells=30)
    assert "60,000 constraints" in str(rejection_reason("highs", large))
    assert rejection_reason("blocks", large) is None
    with pytest.raises(UnsuitableError, match="60,000 constraints"):
        md.solve(large, method="highs")
    assert rejection_reason("columns", load_problem("philadelphia", cells=51)) is not None


def test_explanation_names_program_and_rule() -> None:
    problem = places(150)
    facts = route_facts(problem)
    assert facts["route"] == "columns"
    assert facts["secrets"] == 150
    assert facts["reports"] == 150
    assert facts["constraints"] == constraints(problem) == 150 * 149 * 150 + 150
    assert facts["expected_seconds"] > 0
    assert facts["expected_mb"] > 0
    sentence = route_sentence(problem)
    assert "route columns: all pairs are edges" in sentence
    assert "3,352,650 constraints" in sentence
    assert "to a gap of 0.1 %" in sentence
    assert "does not accept the problem" in route_sentence(load_problem("philadelphia", cells=30), "highs")


@needs("factored")
def test_pool_estimate_has_its_own_gap() -> None:
    assert "to a gap of 0.5 %" in route_sentence(load_problem("philadelphia", cells=30), "pool")


@needs("factored")
def test_pool_has_its_own_default_gap() -> None:
    problem = load_problem("philadelphia", cells=6)
    assert default_gap(md.programs.Optimal(problem)) == GAP
    assert default_gap(md.programs.Optimal(problem), "pool") == POOL_GAP
    assert '"gap": 0.005' in md.solve(problem, method="pool").attrs["parameters"]
    assert '"gap": 0.001' in md.solve(problem).attrs["parameters"]


@needs("factored")
def test_pool_estimate_counts_the_places_near() -> None:
    """A hundredth of the area has the same secrets, all of them near each other."""
    wide, narrow = (load_problem("philadelphia", cells=40, extent=side) for side in (400, 4))
    found = [route_facts(problem, "pool")["expected_seconds"] for problem in (wide, narrow)]
    assert found[0] < found[1] / 4


@needs("factored")
def test_many_secrets_are_solved_by_a_pool(monkeypatch) -> None:
    monkeypatch.setattr("mechdesign.solvers.choose.TABLE", 8)
    mechanism = md.solve(load_problem("philadelphia", cells=4))
    assert '"gap": 0.005' in mechanism.attrs["parameters"]


def test_estimate_is_for_the_gap_asked_for() -> None:
    problem = load_problem("philadelphia", cells=15)
    assert route_facts(problem, gap=1e-6)["expected_seconds"] > route_facts(problem)["expected_seconds"]
    assert "to a gap of 0.0001 %" in route_sentence(problem, gap=1e-6)
    assert "Much longer to the 0.1 % asked for" in route_sentence(problem, "pool", 1e-3)


def test_more_places_have_longer_estimates() -> None:
    expected = [route_facts(load_problem("philadelphia", cells=k))["expected_seconds"] for k in (10, 15, 21, 40, 60)]
    assert expected == sorted(expected)


def test_explain_solves_nothing(run, run_json) -> None:
    code, result = run_json("solve", "philadelphia", "--explain")
    assert code == 0
    assert result["route"] == "columns"
    assert result["accepted"]
    code, out, _ = run("solve", "philadelphia", "--explain", "--method", "blocks")
    assert code == 0
    assert "route blocks: by request" in out
    assert run("solve", "philadelphia", "--explain", "--program", "eikonal")[0] == 2
    assert run("solve", "philadelphia", "--explain", "--method", "magic")[0] == 2


def test_every_route_is_a_method() -> None:
    assert set(METHODS) == {"highs", "columns", "blocks", "pool"}

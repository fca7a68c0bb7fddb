"""Queries with few answers: labels and their readers, distances to label sets, the program, its solver and its laws."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import xarray as xr
from fixtures.integer_oracles import reference_violations
from fixtures.problems import CASES, grid
from fixtures.rows import few_by_default
from fixtures.tolerances import DESIGN_MARGIN, LINEAR_ALGEBRA, ORACLE, SOLVED

import mechdesign as md
from mechdesign import DesignProblem, Eikonal, PrivacyLevel, Raster, priors
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.factored.integer_metric import IntegerMetric
from mechdesign.losses import Query, ZeroOne, query_problem
from mechdesign.mechanism.repair import envelope
from mechdesign.problem.lattice import distances_to_sets
from mechdesign.programs import queries as query_weights
from mechdesign.solvers import queries as solver

LABELS = {  # of the places of a case
    "line, zero-one": [5, 5, 5, 5, 2, 2, 2, 2],
    "eikonal, masked": [0, 0, 1, 1, 0, 1, 3, 3, 3, 1, 3, 3, 3, 1],
    "eikonal, two floors": None,
    "graph, table loss": [0, 0, 1, 1, 1, 2, 2],
    "scattered points": [0, 1, 2, 0, 1, 2, 0, 1, 2],
    "eikonal, 8 neighbours": [0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3],
}
ALL = pytest.mark.parametrize("case", LABELS)


def labels_of(case: str) -> np.ndarray:
    labels = LABELS[case]
    return np.arange(CASES[case]().domain.size) % 3 if labels is None else np.array(labels)


@cache
def problem_of(case: str) -> DesignProblem:
    problem = CASES[case]()
    loss = "distance" if case in ("scattered points", "eikonal, masked") else "zero-one"
    return query_problem(
        domain=problem.domain, metric=problem.metric, prior=problem.prior, query=labels_of(case), loss=loss
    )


@cache
def solve_case(case: str) -> xr.Dataset:
    return md.solve(md.programs.QueryWeights(problem=problem_of(case)))


@cache
def optimum(case: str) -> xr.Dataset:
    return md.solve(md.Optimal(problem=problem_of(case)), gap=SOLVED)


def on_a_line(answers: list[int], epsilon: float, prior: np.ndarray | None = None) -> DesignProblem:
    domain = grid(len(answers))
    metric = Eikonal(level=PrivacyLevel.constant(epsilon, "cell"))
    return query_problem(
        domain=domain, metric=metric, prior=priors.uniform(domain) if prior is None else prior, query=answers
    )


@ALL
def test_loss_lies_between_optimum_and_constant(case: str) -> None:
    mechanism, best = solve_case(case).attrs, optimum(case).attrs
    checked = md.verify(solve_case(case))
    assert checked.certified
    assert checked.lower_bound_checked
    assert reference_violations(solve_case(case)["mass"].values, problem_of(case).edges) == 0
    assert 0 < mechanism["lower_bound"] <= best["expected_loss"]
    assert best["lower_bound"] <= mechanism["expected_loss"] <= problem_of(case).constant_loss
    assert mechanism["expected_loss"] <= 1.15 * best["expected_loss"]


@ALL
def test_statement_has_the_same_optimum(case: str) -> None:
    statement = md.programs.QueryWeights(problem=problem_of(case)).statement()
    assert statement.is_dcp()
    assert statement.solve(solver="HIGHS") == pytest.approx(solve_case(case).attrs["expected_loss"], rel=ORACLE)


@ALL
def test_distances_to_sets_by_four_routes(case: str) -> None:
    problem, query = problem_of(case), Query(labels=labels_of(case))
    edges, n = problem.edges, problem.domain.size
    distances = distances_to_sets(edges, n, query.places)
    brute = np.column_stack([problem.distances[:, places].min(axis=1) for places in query.places])
    assert distances == pytest.approx(brute, abs=LINEAR_ALGEBRA)
    assert (distances[np.arange(n), query.answer] == 0).all()
    indicator = (query.answer[:, None] == np.arange(len(query.values))).astype(float)
    assert -np.log(envelope(indicator, edges)) == pytest.approx(distances, abs=DESIGN_MARGIN)
    step = edges.length.min() / 2000
    units = np.floor(edges.length / step).astype(np.uint16)
    metric = IntegerMetric(points=problem.domain.points, tail=edges.tail, head=edges.head, units=units, cap=40_000)
    every = metric.from_sources(np.arange(n))
    whole = np.column_stack([every[:, places].min(axis=1) for places in query.places]) * step
    assert (whole <= distances + LINEAR_ALGEBRA).all()
    assert (whole >= distances - n * step).all()


def test_many_sets_are_searched_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of("eikonal, masked")
    sets = [np.array([u]) for u in range(problem.domain.size)]
    monkeypatch.setattr("mechdesign.problem.lattice._SETS_PER_SEARCH", 4)
    assert distances_to_sets(problem.edges, problem.domain.size, sets) == pytest.approx(
        problem.distances, abs=LINEAR_ALGEBRA
    )


def test_a_wall_is_walked_around() -> None:
    """f_y between two sides of a wall is the length of the path around it; masked cells have no label."""
    mask = np.ones((3, 3), bool)
    mask[1, :2] = False
    raster = Raster(x=np.arange(3) + 0.5, y=np.arange(3) + 0.5, values=np.repeat([[1], [9], [2]], 3, 1), unit="cell")
    domain = grid((3, 3), mask=mask)
    query = Query.from_raster(raster, domain)
    assert query.values.tolist() == [1, 2, 9]
    metric = Eikonal(level=PrivacyLevel.constant(1.0, "cell"), stencil=4)
    problem = query_problem(domain=domain, metric=metric, prior=priors.uniform(domain), query=query)
    walked = distances_to_sets(problem.edges, domain.size, query.places)
    assert walked[0, 1] == pytest.approx(4.0)
    assert walked[0, 2] == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("left", "right", "epsilon"),
    few_by_default([(4, right, epsilon) for right in (4, 5) for epsilon in (0.2, 1.0, 3.0)], (4, 5, 0.2), (4, 4, 3.0)),
)
def test_a_threshold_on_a_line(left: int, right: int, epsilon: float) -> None:
    """P(wrong|u) = e^{d - f(u)} / (1 + e^d): row by row, and as the optimal loss."""
    problem = on_a_line([0] * left + [1] * right, epsilon)
    away = np.concatenate([np.arange(left, 0, -1), np.arange(1, right + 1)]) * epsilon
    wrong = np.exp(epsilon - away) / (1 + math.exp(epsilon))
    mechanism = md.solve(md.programs.QueryWeights(problem=problem))
    table = md.probabilities(mechanism).values
    assert table[:left, 1] == pytest.approx(wrong[:left], rel=ORACLE)
    assert table[left:, 0] == pytest.approx(wrong[left:], rel=ORACLE)
    best = md.solve(md.Optimal(problem=problem), gap=SOLVED).attrs
    assert best["expected_loss"] == pytest.approx(wrong.mean(), rel=ORACLE)
    assert mechanism.attrs["expected_loss"] == pytest.approx(wrong.mean(), rel=ORACLE)
    assert mechanism.attrs["lower_bound"] == pytest.approx(wrong.mean(), rel=ORACLE)


@pytest.mark.parametrize(("factor", "holds"), [(0.95, True), (1.05, False)])
def test_a_lopsided_threshold(factor: float, holds: bool) -> None:
    """The formula holds while the sums of prior e^{-f} differ by less than e^d; beyond, another table is better."""
    epsilon = 0.7
    decay = np.exp(-epsilon * np.array([2, 1, 0, 0, 1, 2]))
    weight = np.repeat([math.exp(epsilon) * factor, 1.0], 3)
    problem = on_a_line([0, 0, 0, 1, 1, 1], epsilon, priors.proportional(weight))
    formula = weight @ decay / (1 + math.exp(epsilon)) / weight.sum()
    best = md.solve(md.Optimal(problem=problem), gap=SOLVED).attrs["expected_loss"]
    loss = md.solve(md.programs.QueryWeights(problem=problem)).attrs["expected_loss"]
    if holds:
        assert [loss, best] == pytest.approx([formula, formula], rel=ORACLE)
    else:
        assert best < loss * (1 + SOLVED)
        assert loss < formula * (1 - 1e-4)


def test_one_label_per_place_is_eikonal() -> None:
    """Zero-one loss on a line, where the eikonal weights are optimal: the same kernel, table and loss."""
    line = CASES["line, zero-one"]()
    problem = query_problem(domain=line.domain, metric=line.metric, prior=line.prior, query=np.arange(line.domain.size))
    n = line.domain.size
    program, eikonal = md.programs.QueryWeights(problem=problem), md.EikonalWeights(problem=line)
    kernel = eikonal.kernel()
    assert program.kernel[:, :n] == pytest.approx(kernel, rel=LINEAR_ALGEBRA)
    weights = np.zeros(len(program.answer))
    weights[:n] = scipy.linalg.solve(kernel, np.ones(n))
    assert weights.min() >= 0
    assert program.table(weights) == pytest.approx(kernel * weights[:n], abs=LINEAR_ALGEBRA)
    assert isinstance(line.loss, ZeroOne)
    assert md.solve(program).attrs["expected_loss"] == pytest.approx(
        md.solve(eikonal).attrs["expected_loss"], rel=ORACLE
    )


@pytest.mark.parametrize(
    ("cells", "left_out", "cost"),
    few_by_default(
        [(10, "RECEDING", 1.05), (10, "SHARES", 1.01), (20, "RECEDING", 1.1), (20, "SHARES", 1.01)],
        (10, "RECEDING", 1.05),
    ),
)
def test_every_family_of_sets_lowers_the_loss(
    cells: int, left_out: str, cost: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = md.load_problem("neighbourhoods", cells=cells, labels=5, extent=cells / 4)
    monkeypatch.setattr(query_weights, "MOST_ENTRIES", cells**2 * 5 * 30)  # all sets but places alone
    full = md.solve(md.programs.QueryWeights(problem=problem)).attrs["expected_loss"]
    monkeypatch.setattr(query_weights, left_out, ())
    assert md.solve(md.programs.QueryWeights(problem=problem)).attrs["expected_loss"] > cost * full


def test_source_sets_by_brute_force() -> None:
    """The source sets, from all distances; two labels have no corners."""
    for labels in (4, 2):
        problem = md.load_problem("neighbourhoods", cells=9, labels=labels, extent=8.0)
        program = md.programs.QueryWeights(problem=problem)
        source_sets = {(y, tuple(source.tolist())) for y, source in program.sources}
        assert len(source_sets) == len(program.sources)
        tail, head, length = problem.edges.both_ways()
        expected = set()
        for y, places in enumerate(program.query.places):
            away = [
                np.sort([problem.distances[u, other].min() for other in program.query.places if other is not places])
                for u in places
            ]
            step = np.array([length[tail == u].min() for u in places])
            sets = [
                places[[row[j] >= t for row in away]] for t in query_weights.RECEDING for j in range(min(2, labels - 1))
            ]
            sets += [places[step >= np.quantile(step, share)] for share in query_weights.SHARES]
            sets += [np.array([u]) for u in places if np.isin(head[tail == u], places, invert=True).any()]
            expected |= {(y, tuple(s.tolist())) for s in sets if 0 < len(s) < len(places)}
        assert source_sets == expected


def test_strict_privacy_gives_a_constant() -> None:
    """On a map of half a nat the constant report is nearly optimal; the program is at least as good."""
    problem = md.load_problem("neighbourhoods", cells=6, labels=4, extent=0.5)
    loss = md.solve(md.programs.QueryWeights(problem=problem)).attrs["expected_loss"]
    best = md.solve(md.Optimal(problem=problem), gap=SOLVED).attrs["expected_loss"]
    assert best * (1 - SOLVED) <= loss <= problem.constant_loss * (1 + ORACLE)
    assert best >= 0.9 * problem.constant_loss


@pytest.mark.parametrize(
    ("cells", "extent", "share"),
    few_by_default([(10, 10.0, 0.95), (10, 2.5, 0.8), (20, 20.0, 0.85), (20, 5.0, 0.6)], (10, 2.5, 0.8)),
)
def test_the_bound_comes_near(cells: int, extent: float, share: float) -> None:
    """On long edges by the multipliers of the program, on short ones by those of the border."""
    problem = md.load_problem("neighbourhoods", cells=cells, extent=extent)
    attrs = md.solve(md.programs.QueryWeights(problem=problem)).attrs
    assert share * attrs["expected_loss"] <= attrs["lower_bound"] <= attrs["expected_loss"]


def test_without_room_fewer_kernels_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = md.load_problem("neighbourhoods", cells=10, labels=4)
    counts, losses = [], []
    for room in (400, 12, 2):
        monkeypatch.setattr(query_weights, "MOST_ENTRIES", 100 * 4 * room)
        mechanism = md.solve(md.programs.QueryWeights(problem=problem))
        assert md.verify(mechanism).certified
        counts.append(json.loads(mechanism.attrs["parameters"])["kernels"])
        losses.append(mechanism.attrs["expected_loss"])
    assert counts[0] > counts[1] > counts[2] == 8
    assert losses[0] < losses[1] < losses[2]


def test_large_problems_avoid_pair_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large problems have no bound, and no step computes all distances."""

    def refuse(self: object) -> None:
        raise AssertionError("n x n")

    problem = md.load_problem("neighbourhoods", cells=9, labels=3)
    monkeypatch.setattr(DesignProblem, "distances", property(refuse))
    monkeypatch.setattr(solver, "OPTIONS", solver.QueryOptions(priced=81 * 3))
    assert md.solve(md.programs.QueryWeights(problem=problem)).attrs["lower_bound"] > 0
    monkeypatch.setattr(solver, "OPTIONS", solver.QueryOptions(priced=81 * 3 - 1))
    mechanism = md.solve(md.programs.QueryWeights(problem=problem))
    assert "lower_bound" not in mechanism.attrs
    checked = md.verify(mechanism)
    assert checked.certified
    assert checked.lower_bound_checked is None


def test_violated_constraints_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven at a time or five hundred give the same loss; with none the repair raises it."""
    problem = problem_of("eikonal, masked")
    full = solve_case("eikonal, masked").attrs["expected_loss"]
    monkeypatch.setattr(solver, "OPTIONS", solver.QueryOptions(added=7))
    few = md.solve(md.programs.QueryWeights(problem=problem)).attrs["expected_loss"]
    assert few == pytest.approx(full, rel=ORACLE)
    monkeypatch.setattr(solver, "OPTIONS", solver.QueryOptions(rounds=0))
    none = md.solve(md.programs.QueryWeights(problem=problem))
    assert md.verify(none).certified
    assert none.attrs["expected_loss"] > 1.01 * full


def test_a_query_whose_answer_is_known() -> None:
    """All of the prior on one label: the loss is 0."""
    mechanism = md.solve(
        md.programs.QueryWeights(problem=on_a_line([0, 0, 0, 1, 1], 0.5, np.array([0.2, 0.3, 0.5, 0.0, 0.0])))
    )
    assert md.verify(mechanism).certified
    assert mechanism.attrs["lower_bound"] == 0
    assert mechanism.attrs["expected_loss"] <= DESIGN_MARGIN


def test_a_time_limit_leaves_a_private_table() -> None:
    problem = md.load_problem("neighbourhoods", cells=8, labels=5, extent=5.0)
    cut = md.solve(md.programs.QueryWeights(problem=problem), time_limit=1e-6)
    assert md.verify(cut).certified
    full = md.solve(md.programs.QueryWeights(problem=problem)).attrs["expected_loss"]
    assert full < cut.attrs["expected_loss"] <= problem.constant_loss * 1.5


def test_other_programs_accept_a_query_problem(tmp_path: Path) -> None:
    problem = md.load_problem("neighbourhoods", cells=4, labels=3, loss="distance")
    rows = {row["mechanism"]: row for row in md.compare(problem).to_dict("records")}
    assert {"optimal", "query", "exponential", "constant"} <= set(rows)
    mechanism = md.solve(md.programs.QueryWeights(problem=problem))
    assert (
        rows["optimal"]["loss"] <= rows["query"]["loss"] == mechanism.attrs["expected_loss"] <= rows["constant"]["loss"]
    )
    assert md.verify(md.solve(md.programs.Minimax(problem=problem))).certified
    assert mechanism.attrs["expected_loss"] >= md.utility.bayes_remap(mechanism).attrs["expected_loss"] * (
        1 - DESIGN_MARGIN
    )
    md.save(mechanism, tmp_path / "answers.nc")
    assert md.verify(tmp_path / "answers.nc").certified
    assert md.export(mechanism, tmp_path / "answers.csv").read_text().count("\n") > 16 * 3
    parameters = json.loads(mechanism.attrs["parameters"])
    assert parameters["labels"] == problem.query.values.tolist() == [0, 1, 2]


def test_the_command_line(tmp_path: Path, run_json: Callable[..., tuple[int, Any]]) -> None:
    for words, code in (
        (["neighbourhoods", "--cells", "5", "--labels", "3", "-o", str(tmp_path / "answers.nc")], 0),
        (["line"], 2),
    ):
        ended, printed = run_json("solve", *words, "--program", "query")
        assert ended == code
        if code == 0:
            assert printed["program"] == "query"
            assert printed["reports"] == 3
            assert printed["certified"]
            assert md.verify(tmp_path / "answers.nc").certified
        else:
            assert printed["error"]["field"] == "labels"


def test_bad_programs() -> None:
    problem = CASES["line, zero-one"]()
    with pytest.raises(UnsuitableError) as caught:
        md.programs.QueryWeights(problem=problem)
    assert caught.value.field == "labels"
    with pytest.raises(InputError) as refused:
        DesignProblem(
            domain=problem.domain,
            metric=problem.metric,
            prior=problem.prior,
            loss=problem.loss,
            query=Query(labels=[0, 1] * 4),
        )
    assert refused.value.field == "reports"
    with pytest.raises(InputError) as refused:
        query_problem(
            domain=problem.domain, metric=problem.metric, prior=problem.prior, query=[0, 1] * 4, loss="squared"
        )  # type: ignore[arg-type]
    assert refused.value.field == "loss"

"""Bounds from trees: three checks in integers against rationals, no mutant proves more than the truth."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from fixtures.forged_files import rewritten
from fixtures.problems import CASES, euclidean_grid
from fixtures.rows import few_by_default
from fixtures.tolerances import REORDERED
from fixtures.tree_mutants import mutate
from reference.trees import proved_by_trees

import mechdesign as md
from mechdesign import load_problem, solve, verify
from mechdesign.evaluation.loss import loss_matrix
from mechdesign.solvers.cone.pricing import ConePricer
from mechdesign.verification import tree_bound, verify_table

# The compiled check has 62 bits, and where r < 0 far from the root a unit of it is handed over as e^d units.
COMPILED = 1e-9
Parts = tuple[np.ndarray, np.ndarray, md.extend.Edges, np.ndarray]  # costs (n, m), multipliers, edges and trees
PROBLEMS = {
    "map": lambda: load_problem("philadelphia", cells=5),
    "lattice": lambda: euclidean_grid((7, 7), 0.4),
    "steep": lambda: euclidean_grid((4, 5), 6.0, seed=1),
    "discrete": lambda: load_problem("discrete", secrets=6),
    **CASES,
}
SHIPPED = {
    "discrete": {},
    "euclidean": {},
    "flat": {},
    "line": {},
    "philadelphia": {},
    "paris": {"cells": 12},
    "streets": {"nodes": 120},
    "income": {"cells": 40},
    "neighbourhoods": {"cells": 12},
}


@cache
def mechanism_of(name: str) -> xr.Dataset:
    return solve(PROBLEMS[name](), gap=1e-7)


def parts(name: str) -> Parts:
    mechanism = mechanism_of(name)
    cost = mechanism["prior"].values[:, None] * loss_matrix(mechanism)
    return cost, mechanism["dual"].values, PROBLEMS[name]().edges, mechanism["tree"].values


def value(bound: tuple[int, int]) -> float:
    """The bound, which is at least 0 as losses are not negative."""
    return float(max(bound[0], 0) / Fraction(2) ** bound[1])


def compiled_bound(*given: np.ndarray) -> float:
    return value(tree_bound._integer_bound(*given))


def small_bound(*given: np.ndarray) -> float:
    """The bound of small tables, which needs no compiler."""
    return value(tree_bound._plain_bound(*given))


def plain_bound(cost: np.ndarray, dual: np.ndarray, edges: md.extend.Edges, steps: np.ndarray) -> float:
    """The bound of the stand-alone script, for the costs of the package."""
    bits = 100
    whole = [[int(Fraction(x) * 2**bits // 1) for x in row] for row in [*cost.T.tolist(), dual.tolist()]]
    listed = zip(edges.tail.tolist(), edges.head.tolist(), edges.length.tolist(), strict=True)
    program = verify_table.Program(whole[:-1], whole[-1], bits)
    return value(
        (verify_table.tree_bound(program, [verify_table.Edge(*edge) for edge in listed], steps.tolist()), bits)
    )


def rational(cost: np.ndarray, dual: np.ndarray, edges: md.extend.Edges, steps: np.ndarray) -> float:
    listed = list(zip(edges.tail.tolist(), edges.head.tolist(), edges.length.tolist(), strict=True))
    parent = (steps + np.arange(len(dual))) % 2**16
    return float(proved_by_trees(cost.T.tolist(), dual.tolist(), listed, parent.tolist()))


@pytest.mark.obligation("tree-bound")
@pytest.mark.parametrize("name", few_by_default(PROBLEMS, "map", "lattice", "steep", "discrete"))
def test_four_routes_prove_the_bound_of_the_file(name: str) -> None:
    stated, reference = mechanism_of(name).attrs["lower_bound"], rational(*parts(name))
    assert reference >= stated * (1 - REORDERED)
    assert reference * (1 - REORDERED) <= plain_bound(*parts(name)) <= reference
    assert reference * (1 - REORDERED) <= small_bound(*parts(name)) <= reference
    assert reference * (1 - COMPILED) <= compiled_bound(*parts(name)) <= reference


FEW = [("map", 30), ("steep", 30), ("discrete", 60)]
MANY = [("map", 2_500), ("lattice", 2_500), ("steep", 2_500), ("discrete", 2_500)]


@pytest.mark.obligation("tree-bound")
@pytest.mark.parametrize(("name", "trials"), few_by_default([*FEW, *MANY], *FEW))
def test_no_mutant_proves_more_than_the_truth(name: str, trials: int) -> None:
    """Every bound of mutated trees and multipliers is below the loss of a table."""
    cost, dual, edges, steps = parts(name)
    loss, rng, weaker = mechanism_of(name).attrs["expected_loss"], np.random.default_rng(trials), 0
    full = plain_bound(cost, dual, edges, steps)
    for _ in range(trials):
        other, trees = mutate(rng, dual, steps)
        exact = plain_bound(cost, other, edges, trees)
        # The compiled check hands nothing over where an amount overflows, which can prove more than handing over.
        assert max(exact, small_bound(cost, other, edges, trees), compiled_bound(cost, other, edges, trees)) <= loss
        weaker += exact < full
    # Mutants that change nothing that matters prove the same.
    assert weaker > trials / 3


def test_bound_is_verified_without_pricing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConePricer, "__init__", lambda *args, **named: pytest.fail("priced"))
    for mechanism in (mechanism_of("map"), mechanism_of("lattice")):
        assert verify(mechanism).lower_bound_checked
    raised = rewritten(mechanism_of("map"), lower_bound=mechanism_of("map").attrs["lower_bound"] * (1 + 1e-6))
    with pytest.raises(pytest.fail.Exception, match="priced"):
        verify(raised)


def test_wrong_trees_leave_the_bound_to_pricing() -> None:
    mechanism = mechanism_of("map")
    wrong = rewritten(mechanism, tree=mechanism["tree"] * 0)
    assert verify(wrong).lower_bound_checked
    assert verify(mechanism.drop_vars("tree")).lower_bound_checked


def test_limits_are_in_the_cost_of_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    program = md.programs.Minimax(load_problem("philadelphia", cells=4))
    mechanism = solve(program)
    assert "tree" in mechanism
    monkeypatch.setattr(ConePricer, "price", lambda *args, **named: pytest.fail("priced"))
    assert verify(mechanism).lower_bound_checked


@pytest.mark.parametrize("suffix", ["json", "csv"])
def test_stand_alone_script_proves_the_bound(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mechanism = mechanism_of("map")
    path = md.export(mechanism, tmp_path / f"table.{suffix}")
    assert verify_table.main([str(path)]) == 0
    figures = verify_table.proved_figures(verify_table.read(path))
    assert figures is not None
    assert figures.bound >= mechanism.attrs["lower_bound"] * (1 - REORDERED)
    assert figures.loss == pytest.approx(mechanism.attrs["expected_loss"], rel=REORDERED)
    assert f"of at least {figures.bound!r}" in capsys.readouterr().out


@pytest.mark.obligation("tree-bound")
def test_stand_alone_script_refuses_what_trees_do_not_prove(tmp_path: Path) -> None:
    table = verify_table.read(md.export(mechanism_of("map"), tmp_path / "table.json"))
    figures = verify_table.proved_figures(table)
    assert verify_table.faults_of(table, figures) == []
    header = table.header
    for name in ("lower_bound", "expected_loss"):
        raised = table._replace(header=header | {name: header[name] * (1 + 1e-6)})
        assert any(
            f"states a{'n' if name[0] == 'e' else ''}" in fault for fault in verify_table.faults_of(raised, figures)
        )
    flat = table._replace(header=header | {"tree": [" ".join("0" for _ in table.points)] * len(table.points)})
    weaker = verify_table.proved_figures(flat)
    assert weaker is not None
    assert weaker.bound < header["lower_bound"]
    rows = [" ".join("0x1.0000000000000p+0" for _ in table.points)] * len(table.points)
    for row, reason in {"-0x1.0p+0": "exact floats", "-0x1.0000000000000p+0": "negative", "": "loss for each"}.items():
        listed = [row + rows[0].removeprefix("0x1.0000000000000p+0"), *rows[1:]] if row else rows[1:]
        with pytest.raises(verify_table.BadInput, match=reason):
            verify_table.proved_figures(table._replace(header=header | {"losses": listed}))
    doubled = table._replace(header=header | {"prior": [(2 * float.fromhex(x)).hex() for x in header["prior"]]})
    with pytest.raises(verify_table.BadInput, match="sum to 1"):
        verify_table.proved_figures(doubled)


@pytest.mark.obligation("tree-bound")
def test_no_mutated_export_proves_more_than_the_truth(tmp_path: Path) -> None:
    mechanism, rng = mechanism_of("map"), np.random.default_rng(3)
    table = verify_table.read(md.export(mechanism, tmp_path / "table.json"))
    for _ in range(20):
        dual, steps = mutate(rng, mechanism["dual"].values, mechanism["tree"].values)
        trees = [" ".join(map(str, row)) for row in steps.tolist()]
        header = table.header | {"dual": [x.hex() for x in dual.tolist()], "tree": trees}
        figures = verify_table.proved_figures(table._replace(header=header))
        assert figures is not None
        assert figures.bound <= mechanism.attrs["expected_loss"]


def test_listed_losses_are_those_of_the_table(tmp_path: Path) -> None:
    mechanism = solve(load_problem("income", cells=12))
    for suffix in ("json", "csv"):
        figures = verify_table.proved_figures(verify_table.read(md.export(mechanism, tmp_path / f"table.{suffix}")))
        assert figures is not None
        assert figures.loss == pytest.approx(mechanism.attrs["expected_loss"], rel=REORDERED)
        assert figures.bound >= mechanism.attrs["lower_bound"] * (1 - REORDERED)


@pytest.mark.study
@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_problems_are_proved_by_the_script(name: str, tmp_path: Path) -> None:
    mechanism = solve(load_problem(name, **SHIPPED[name]))
    figures = verify_table.proved_figures(verify_table.read(md.export(mechanism, tmp_path / "table.json")))
    assert figures is not None, json.dumps(mechanism.attrs["loss"])
    assert figures.bound >= mechanism.attrs["lower_bound"] * (1 - REORDERED)

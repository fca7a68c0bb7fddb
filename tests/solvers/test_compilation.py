"""A first run compiles the kernels of its own program and route."""

from __future__ import annotations

import gc

import pytest

import mechdesign as md
from mechdesign import load_problem
from mechdesign.extend import Program
from mechdesign.solvers import compilation
from mechdesign.solvers.cone.pricing import ConePricer
from mechdesign.solvers.cone.tree_simplex import CompleteGraph, ConeGraph

PROGRAMS = {
    "listed edges": (lambda: md.Optimal(load_problem("philadelphia", cells=15)), "auto", ["edges"]),
    "all pairs": (lambda: md.Optimal(load_problem("euclidean", cells=7)), "auto", ["pairs"]),
    "block method": (lambda: md.Optimal(load_problem("philadelphia", cells=30)), "auto", ["edges", "blocks"]),
    "blocks by request": (lambda: md.Optimal(load_problem("philadelphia", cells=6)), "blocks", ["edges", "blocks"]),
    "minimax": (lambda: md.programs.Minimax(load_problem("discrete", secrets=6)), "auto", ["edges"]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_first_run_compiles_what_its_route_needs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, method, expected = PROGRAMS[name]
    program: Program = make()
    solved: list[str] = []
    monkeypatch.setattr(compilation, "_compiled", set())
    monkeypatch.setattr(compilation, "has_compiled_kernels", lambda kernel: False)
    monkeypatch.setattr(compilation, "_solve_tiny_problem", solved.append)
    for _ in range(2):
        compilation.compile_kernels(program, method=method)
    assert solved == expected


@pytest.mark.parametrize(("kind", "graph"), [("edges", ConeGraph), ("pairs", CompleteGraph)])
def test_tiny_problems_have_the_graph_of_their_kernels(
    kind: compilation.Kernels, graph: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs = []
    monkeypatch.setattr(
        compilation, "solve_optimal", lambda problem, targets: graphs.append(type(ConePricer.of(problem).graph))
    )
    compilation._solve_tiny_problem(kind)
    assert graphs == [graph]


def test_no_garbage_is_collected_while_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    collects: list[bool] = []
    monkeypatch.setattr(compilation, "_compiled", set())
    monkeypatch.setattr(compilation, "has_compiled_kernels", lambda kernel: False)
    monkeypatch.setattr(compilation, "_solve_tiny_problem", lambda kind: collects.append(gc.isenabled()))
    compilation.compile_kernels(md.Optimal(load_problem("philadelphia", cells=5)))
    assert collects == [False]
    assert gc.isenabled()

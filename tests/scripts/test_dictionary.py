"""The mixture of eikonal kernels of source sets, scripts/dictionary.py: between the optimum and eikonal weights."""

from __future__ import annotations

import json
import runpy
import sys
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from dictionary import ENTRY, Dictionary
from fixtures.absent_capabilities import needs
from fixtures.mechanisms import OWN_REPORTS, optimum, problem_of
from fixtures.problems import CASES
from fixtures.rows import few_by_default
from fixtures.tolerances import DESIGN_MARGIN, ORACLE

import mechdesign as md
from mechdesign.errors import InfeasibleError

DEFAULT = (  # one case of every kind
    "line, squared, skewed prior",
    "discrete",
    "eikonal, masked",
    "graph, table loss",
    "reports apart from secrets",
)


@pytest.fixture(autouse=True)
def register_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(md.extend.SOLVERS, "dictionary", ENTRY)


def loss_of(problem: md.DesignProblem, **given: Any) -> float:
    return float(md.solve(Dictionary(problem, **given)).attrs["expected_loss"])


@pytest.mark.parametrize("case", few_by_default(CASES, *DEFAULT))
def test_dictionary_has_the_value_of_its_statement(case: str) -> None:
    mechanism = md.solve(Dictionary(problem_of(case)))
    value = Dictionary(problem_of(case)).statement().solve(solver="HIGHS")
    assert value == pytest.approx(mechanism.attrs["expected_loss"], rel=ORACLE)
    assert md.verify(mechanism).certified


@pytest.mark.parametrize("case", few_by_default(OWN_REPORTS, *(case for case in DEFAULT if case in OWN_REPORTS)))
def test_optimal_dictionary_eikonal_in_this_order(case: str) -> None:
    eikonal, found = md.solve(md.EikonalWeights(problem=problem_of(case))).attrs, loss_of(problem_of(case))
    assert optimum(case).attrs["lower_bound"] <= found
    if json.loads(eikonal["parameters"])["remedy"] == "none":
        assert found <= eikonal["expected_loss"] * (1 + DESIGN_MARGIN)


def test_source_sets_cover_the_border() -> None:
    problem = md.load_problem("flat", cells=8, epsilon=0.5)
    single, everywhere = [[u] for u in range(64)], [list(range(64))]
    with pytest.raises(InfeasibleError, match="no weights"):
        loss_of(problem, sources=single)
    grown = loss_of(problem)
    best = md.solve(md.Optimal(problem=problem)).attrs["lower_bound"]
    assert best <= grown < 1.02 * best
    assert grown < 0.9 * md.solve(md.EikonalWeights(problem=problem)).attrs["expected_loss"]
    assert grown < loss_of(problem, sources=single + everywhere)


def test_a_dictionary_of_the_whole_domain_is_the_best_constant() -> None:
    problem = problem_of("eikonal, masked")
    found = loss_of(problem, sources=[range(problem.domain.size)])
    assert found == pytest.approx(problem.constant_loss, rel=DESIGN_MARGIN)


def test_source_set_kernels_are_private() -> None:
    program = Dictionary(problem_of("eikonal, 16 neighbours"))
    log = np.log(program.kernel)
    rise = log[:, None, :] - log[None, :, :]
    assert (rise.max(axis=2) <= program.problem.distances + DESIGN_MARGIN).all()
    every = np.einsum("uk,uy->ky", program.kernel, program.problem.weighted_loss)
    assert program.kernel_cost == pytest.approx(every.min(axis=1))
    assert {len(source) for source in program.sets} == {1, 2, 4, 8, 16}


@needs("surveys")
def test_figures_of_the_documentation(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["dictionary.py"])
    runpy.run_path(str(ROOT / "scripts" / "dictionary.py"), run_name="__main__")
    printed = capsys.readouterr().out.split()
    assert printed == ["dictionary", "loss", "8.356", "eikonal", "loss", "10.98", "optimal", "loss", "8.294"]

"""Every program on every case: solved, verified, stored, exported, proved. Some of it at half and twice the level."""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path

import pytest
from fixtures.export_mechanisms import prove_export
from fixtures.problems import SMALL
from fixtures.programs import PROGRAMS
from fixtures.rows import few_by_default

import mechdesign as md
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.extend import SOLVERS, Metric
from mechdesign.factored import FactoredMechanism
from mechdesign.losses import Loss

LEVELS = (0.5, 1.0, 2.0)
AT_EVERY_LEVEL = ("eikonal, masked", "euclidean lattice", "graph, doubled")
BY_DEFAULT = ("eikonal, masked", "reports apart from secrets")  # the graph at twice its level
ALIKE = {  # cases much like another one; the doubled graph at half its level is the graph
    *(
        "eikonal, line",
        "euclidean line",
        "graph, path",
        "graph, table loss",
        "streets, multiplied",
        "streets on a plane",
    )
}
OWN_REPORTS = {"reports apart from secrets", "query", "release"}
STREETS = {"streets", "streets, multiplied", "streets on a plane"}
SHORT_LISTS = STREETS | {"graph, path"} | {name for name in SMALL if name.startswith("eikonal")}
EUCLIDEAN_GRIDS = {"euclidean lattice", "euclidean line", "area", "reports apart from secrets", "release"}
SQUARE_CELLS = {
    *("eikonal", "eikonal, masked", "eikonal, framed", "euclidean lattice", "reports apart from secrets", "area"),
}
UNSUITED = {  # the cases that a program refuses
    "eikonal": OWN_REPORTS,
    "eikonal, factored": set(SMALL) - SHORT_LISTS,
    "positions": set(SMALL) - SQUARE_CELLS,
    "matched": set(SMALL) - (EUCLIDEAN_GRIDS - {"release"}) - {"scattered points", "classes in order"},
}

EVERY_PROGRAM = pytest.mark.parametrize("program", PROGRAMS)


def at_level(case: str, times: float) -> md.DesignProblem:
    problem = SMALL[case]()
    return replace(problem, metric=times * problem.metric)


@pytest.mark.parametrize("case", few_by_default([name for name in SMALL if name not in ALIKE], *BY_DEFAULT))
@EVERY_PROGRAM
def test_solved_verified_stored_exported(program: str, case: str, tmp_path: Path) -> None:
    check_whole_path(program, case, 1.0, tmp_path)


@pytest.mark.parametrize("times", few_by_default([times for times in LEVELS if times != 1], 2.0))
@pytest.mark.parametrize("case", few_by_default(AT_EVERY_LEVEL, "graph, doubled"))
@EVERY_PROGRAM
def test_at_other_levels(program: str, case: str, times: float, tmp_path: Path) -> None:
    check_whole_path(program, case, times, tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("times", LEVELS)
@pytest.mark.parametrize("case", SMALL)
@EVERY_PROGRAM
def test_every_case_at_every_level(program: str, case: str, times: float, tmp_path: Path) -> None:
    check_whole_path(program, case, times, tmp_path)


def check_whole_path(program: str, case: str, times: float, folder: Path) -> None:
    problem = at_level(case, times)
    if case in UNSUITED.get(program, ()):
        with pytest.raises(UnsuitableError):
            PROGRAMS[program].solve(problem)
        return
    mechanism = PROGRAMS[program].solve(problem)
    file = md.save(mechanism, folder / "m.nc")
    again = md.load(file)
    assert again.identical(mechanism)
    for name, variable in mechanism.variables.items():
        assert again[name].values.tobytes() == variable.values.tobytes(), name
    found = md.verify(again)
    assert found.certified
    assert found.reasons == []
    if times <= 1:
        prove_export(md.export(again, folder / "m.csv"))
    if times < 1:
        return
    if program == "eikonal, factored":
        with pytest.raises(InputError, match="sums of their own"):
            md.export(again, folder / "m.json")
        again = FactoredMechanism(dataset=again).table()
    prove_export(md.export(again, folder / "m.json"))


def test_every_program_has_a_row() -> None:
    problem = SMALL["euclidean line"]()
    rows = {type(row.make(problem)) for row in PROGRAMS.values()}
    assert rows == {entry.program for entry in SOLVERS.values()}


def test_every_metric_and_every_loss_has_a_case() -> None:
    problems = [make() for make in SMALL.values()]
    for parts, base in (({type(p.metric) for p in problems}, Metric), ({type(p.loss) for p in problems}, Loss)):
        kinds = {kind for kind in descendants(base) if kind.__module__.startswith("mechdesign.")}
        assert {kind for kind in kinds if not inspect.isabstract(kind) and not kind.__name__.startswith("_")} == parts


def descendants(kind: type) -> set[type]:
    return {below for child in kind.__subclasses__() for below in {child, *descendants(child)}}


def test_exceptions_name_programs_and_cases() -> None:
    assert set(UNSUITED) <= set(PROGRAMS)
    assert all(cases <= set(SMALL) for cases in UNSUITED.values())
    assert set(SMALL) >= ALIKE | set(AT_EVERY_LEVEL)

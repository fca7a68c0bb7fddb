from __future__ import annotations

import inspect
import os
import sys

import pytest

from mechdesign import Discrete, EikonalWeights, Optimal, load_problem, solve
from mechdesign.errors import InputError, UnitError
from mechdesign.problem import problem_files as shipped

CERTIFIED = 1e-9  # relative; a simplex solution of a small program, repaired
PRINTED = 1e-7  # relative; reference losses have ten digits

DOCSTRING = '"""First line.\n\nSecond line.\n"""\n'
IMPORTS = "from mechdesign import DesignProblem, Discrete, Domain, priors\nfrom mechdesign.losses import ZeroOne\n"
BODY = """
    domain = Domain.nodes({secrets})
    return DesignProblem(domain=domain, metric=Discrete(epsilon=1.0), prior=priors.uniform(domain), loss=ZeroOne())
"""
SIGNATURE = "def problem(secrets: int = 3, level: float = 1.0, name: str = 'a'):"
PARTS = {
    "domain": "Domain.nodes(3)",
    "metric": "Discrete(epsilon=1.0)",
    "prior": "priors.uniform(Domain.nodes(3))",
    "loss": "ZeroOne()",
}
ARRAYS = (
    "from numpy import array, int64, float64\nfrom mechdesign.problem.lattice import Edges\n"
    "I, F = (lambda x: array(x, int64)), (lambda x: array(x, float64))\n"
)


def file_with(**parts):
    """A problem file with these parts instead of the usual ones."""
    named = ", ".join(f"{name}={text}" for name, text in {**PARTS, **parts}.items())
    return f"{IMPORTS}def problem():\n    return DesignProblem({named})\n"


def file_with_class(base, method):
    """A problem file that defines a metric or loss."""
    part = {"Discrete": {"metric": "Own(epsilon=1.0)"}, "ZeroOne": {"loss": "Own()"}}[base]
    return f"{ARRAYS}{file_with(**part)}class Own({base}):\n    def {method}\n"


SHIPPED = [
    "discrete",
    "euclidean",
    "flat",
    "income",
    "line",
    "neighbourhoods",
    "northeast",
    "paris",
    "philadelphia",
    "streets",
]


def write(folder, text, name="mine.py"):
    path = folder / name
    path.write_text(text)
    return path


@pytest.fixture
def mine(tmp_path):
    return write(tmp_path, DOCSTRING + IMPORTS + SIGNATURE + BODY.format(secrets="secrets"))


def test_file_has_name_summary_and_parameters(mine):
    file = shipped.read_problem_file(mine)
    assert (file.name, file.path, file.summary) == ("mine", mine, "First line.")
    assert file.parameters == {"secrets": 3, "level": 1.0, "name": "a"}
    built = file.build()
    assert (built.name, built.domain.size, built.parameters) == ("mine", 3, file.parameters)
    assert isinstance(built.metric, Discrete)


def test_a_file_without_docstring_is_summarised_by_its_name(tmp_path):
    assert shipped.read_problem_file(write(tmp_path, "def problem(): ...\n")).summary == "mine"


@pytest.mark.parametrize(
    ("arguments", "parameter", "value"),
    [
        ({"secrets": "5"}, "secrets", 5),
        ({"secrets": 5.0}, "secrets", 5),
        ({"level": "1e-3"}, "level", 1e-3),
        ({"level": 2}, "level", 2.0),
        ({"level": "inf"}, "level", float("inf")),
        ({"name": "b c"}, "name", "b c"),
        ({"name": 7}, "name", "7"),
        ({}, "secrets", 3),
    ],
)
def test_parameters_take_the_type_of_their_default(mine, arguments, parameter, value):
    converted = load_problem(mine, **arguments).parameters[parameter]
    assert (converted, type(converted)) == (value, type(value))


@pytest.mark.parametrize(
    ("arguments", "field", "message"),
    [
        ({"secrets": "5.0"}, "secrets", "type int"),
        ({"secrets": "five"}, "secrets", "type int"),
        ({"secrets": ""}, "secrets", "type int"),
        ({"secrets": None}, "secrets", "type int"),
        ({"secrets": float("inf")}, "secrets", "type int"),
        ({"secrets": float("nan")}, "secrets", "type int"),
        ({"secrets": 5.5}, "secrets", "type int"),
        ({"level": "high"}, "level", "type float"),
        ({"level": "nan"}, "level", "must be a number"),
        ({"level": float("nan")}, "level", "type float"),
        ({"level": 10**400}, "level", "type float"),
        ({"level": "1_0"}, "level", "digits 0-9"),
        ({"level": "\uff11.5"}, "level", "digits 0-9"),
        ({"level": " 1"}, "level", "digits 0-9"),
        ({"level": "1e400"}, "level", "between 1e-100 and 1e100"),
        ({"level": "1e-400"}, "level", "between 1e-100 and 1e100"),
        ({"secrets": "1_0"}, "secrets", "digits 0-9"),
        ({"secrets": "\u0663"}, "secrets", "digits 0-9"),
        ({"secrets": "9" * 5000}, "secrets", "64 bits"),
        ({"secrets": "9223372036854775808"}, "secrets", "64 bits"),
        ({"depth": 1}, "depth", "no such parameter"),
    ],
)
def test_parameters_of_another_type_are_refused(mine, arguments, field, message):
    with pytest.raises(InputError, match=message) as caught:
        load_problem(mine, **arguments)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("text", "field", "message"),
    [
        ("def problem(:", "problem", "does not import .SyntaxError"),
        ("import no_such_module_here", "problem", "does not import .ModuleNotFoundError"),
        ("", "problem", "has no function problem"),
        ("problem = 3", "problem", "has no function problem"),
        ("def problem(n): ...", "n", "needs a default"),
        ("def problem(n=None): ...", "n", "needs a default"),
        ("def problem(n=True): ...", "n", "needs a default"),
        ("def problem(*n): ...", "n", "needs a default"),
        ("def problem(**n): ...", "n", "needs a default"),
        ("def problem(n=float('nan')): ...", "n", "needs a default"),
        ("def problem(n=()): ...", "n", "needs a default"),
        ("raise ValueError('x' * 10**6)", "problem", "x{300}[.]{3}[)]"),
        ("def f(): f()\nf()", "problem", "does not import .RecursionError"),
        ("x = " + "(" * 5000, "problem", "does not import"),
        ("x = '\x00'", "problem", "does not import"),
    ],
)
def test_invalid_problem_files_are_refused(tmp_path, text, field, message):
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=message) as caught:
        shipped.read_problem_file(path)
    assert (caught.value.field, caught.value.value) == (field, str(path))
    assert list(tmp_path.iterdir()) == [path]  # no cache of bytecode either


def test_unreadable_problem_files_are_refused(tmp_path):
    (tmp_path / "latin.py").write_bytes("x = 'é'".encode("latin-1"))
    os.mkfifo(tmp_path / "fifo.py")
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "loop.py").symlink_to("loop.py")
    (tmp_path / "zero.py").symlink_to("/dev/zero")
    names = ["latin.py", "fifo.py", "folder.py", "loop.py", "zero.py", "a" * 300 + ".py", "\udcff.py"]
    for name in names:
        with pytest.raises(InputError) as caught:
            shipped.read_problem_file(tmp_path / name)
        assert caught.value.field == "problem"


def test_prints_of_a_file_go_to_standard_error(tmp_path, capsys):
    noisy = DOCSTRING + IMPORTS + "print('import')\n" + SIGNATURE + "\n    print('problem')" + BODY.format(secrets=3)
    functions = (
        "\ndef published():\n    print('published')\n    return {}"
        "\ndef remark(problem):\n    print('remark')\n    return ''"
    )
    file = shipped.read_problem_file(write(tmp_path, noisy + functions))
    built = file.build()
    assert (file.published({}), file.remark(built)) == ({}, "")
    assert capsys.readouterr() == ("", "import\nproblem\npublished\nremark\n")


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("def problem(): return 3", InputError, "must return a DesignProblem"),
        ("class problem: ...", InputError, "must return a DesignProblem"),
        ("def problem(): return 1 / 0", ZeroDivisionError, "division"),
        (IMPORTS + "def problem(): return Domain.grid(3, cell=1.0, unit='parsec')", UnitError, "unknown unit"),
        (IMPORTS + "def problem():" + BODY.format(secrets=1), InputError, "at least two places"),
        (file_with(metric="None"), InputError, "metric: must be of type Metric"),
        (file_with(loss="'squared'"), InputError, "loss: must be of type Loss"),
        (file_with(domain="'x'"), InputError, "domain: must be of type Domain"),
        (file_with(prior="object()"), InputError, "array of numbers"),
        (file_with(reports="3"), InputError, "reports: must be of type Domain"),
        (file_with(query="3"), InputError, "query: must be of type Query"),
        (file_with_class("Discrete", "unscaled_edges(self, domain): return 1 / 0"), ZeroDivisionError, "division"),
        (
            file_with_class(
                "Discrete", "unscaled_edges(self, domain): return Edges(tail=I([0]), head=I([9]), length=F([1.0]))"
            ),
            InputError,
            "outside the domain|shorter than",
        ),
        (
            file_with_class(
                "Discrete", "unscaled_edges(self, domain): return Edges(tail=I([0]), head=I([1, 2]), length=F([1.0]))"
            ),
            InputError,
            "outside the domain|shorter than",
        ),
        (
            file_with_class(
                "Discrete", "unscaled_edges(self, domain): return Edges(tail=I([0]), head=I([1]), length=F([-1.0]))"
            ),
            InputError,
            "outside the domain|shorter than",
        ),
        (file_with_class("ZeroOne", "matrix(self, secrets, reports): return 1 / 0"), ZeroDivisionError, "division"),
        (
            file_with_class("ZeroOne", "matrix(self, secrets, reports): return F([[1.0]])"),
            InputError,
            "must give a table",
        ),
    ],
)
def test_results_and_errors_of_problem(tmp_path, text, error, message):
    file = shipped.read_problem_file(write(tmp_path, text))
    with pytest.raises(error, match=message):
        solve(Optimal(problem=file.build()))


def test_failed_problem_file_leaves_no_module(tmp_path):
    head = "from __future__ import annotations\nfrom dataclasses import dataclass\n"
    text = head + "@dataclass\nclass A:\n    x: int = 1\n"
    path = write(tmp_path, text + IMPORTS + "def problem():" + BODY.format(secrets="1 + A().x"), "own_class.py")
    assert load_problem(path).domain.size == 2
    broken = write(tmp_path, "1 / 0", "own_failure.py")
    with pytest.raises(InputError):
        shipped.read_problem_file(broken)
    assert not any("own_failure" in name for name in sys.modules)


def test_figures_beside_a_solve(mine, tmp_path):
    functions = (
        "def published(secrets=0): return {'optimal': secrets}\n"
        "def remark(problem): return f'{problem.domain.size} places'"
    )
    file = shipped.read_problem_file(write(tmp_path, f"{mine.read_text()}\n{functions}\n", "told.py"))
    built = file.build(secrets=7)
    assert file.published(built.parameters) == {"optimal": 7}
    assert file.remark(built) == "7 places"
    silent = shipped.read_problem_file(mine)
    assert (silent.published({}), silent.remark(built)) == (None, None)


def test_shipped_problems():
    files = shipped.shipped_problems()
    assert [file.name for file in files] == SHIPPED
    for file in files:
        parameters = inspect.signature(file.module.problem).parameters.values()
        assert file.parameters == {p.name: p.default for p in parameters}
        assert file.build().parameters == file.parameters
        assert file.summary.endswith(".") or "(" in file.summary


@pytest.mark.parametrize(
    ("folders", "expected"),
    [
        ({"_problems": ["wheel"], "problems": ["tree"]}, ["wheel"]),
        ({"problems": ["tree", "other", "_private", "__init__"]}, ["other", "tree"]),
        ({"_problems": []}, []),
        ({}, []),
    ],
)
def test_an_installed_package_knows_its_own_folder_only(tmp_path, monkeypatch, folders, expected):
    for folder, names in folders.items():
        (tmp_path / folder).mkdir()
        for name in names:
            write(tmp_path / folder, IMPORTS + SIGNATURE + BODY.format(secrets="secrets"), f"{name}.py")
    monkeypatch.setattr(shipped, "FOLDERS", (tmp_path / "_problems", tmp_path / "problems"))
    assert [file.name for file in shipped.shipped_problems()] == expected
    for name in {"wheel", "tree", "other", "_private"}:
        if name in expected:
            assert load_problem(name).name == name
        else:
            with pytest.raises(InputError, match="no such problem") as caught:
                load_problem(name)
            assert all(known in caught.value.remedy for known in expected)


@pytest.mark.parametrize("name", ["line.py", "problems", "../problems/line", "", "LINE", "nowhere/line.py"])
def test_unknown_problem_names_are_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        shipped.read_problem_file(name)
    assert (caught.value.field, caught.value.value) == ("problem", name)


def test_a_path_goes_before_a_shipped_name(mine, monkeypatch):
    mine.rename(mine.with_name("line.py"))
    monkeypatch.chdir(mine.parent)
    assert isinstance(load_problem("line.py").metric, Discrete)
    assert not isinstance(load_problem("line").metric, Discrete)


@pytest.mark.parametrize("program", [Optimal, EikonalWeights])
@pytest.mark.parametrize("parameters", [{}, {"cells": 4, "epsilon": 2.0, "cell": 0.5}])
def test_line_is_the_truncated_geometric_mechanism(program, parameters):
    published = shipped.read_problem_file("line").module.published(**parameters)["optimal"]
    figures = solve(program(problem=load_problem("line", **parameters)), gap=CERTIFIED).attrs
    assert figures["expected_loss"] == pytest.approx(published, rel=CERTIFIED)
    assert figures["lower_bound"] == pytest.approx(published, rel=CERTIFIED)


@pytest.mark.parametrize("parameters", [{}, {"secrets": 2, "epsilon": 0.3}])
def test_discrete_is_randomized_response(parameters):
    published = shipped.read_problem_file("discrete").module.published(**parameters)["optimal"]
    converted = solve(Optimal(problem=load_problem("discrete", **parameters))).attrs["expected_loss"]
    assert converted == pytest.approx(published, rel=CERTIFIED)


@pytest.mark.parametrize(
    ("loss", "cells"),
    [
        ("squared", 5),
        ("distance", 5),
        *(pytest.param(loss, 8, marks=pytest.mark.exhaustive) for loss in ("squared", "distance")),
    ],
)
def test_euclidean_lattices(loss, cells):
    published = shipped.read_problem_file("euclidean").module.published()[f"{loss} {cells}"]
    figures = solve(Optimal(problem=load_problem("euclidean", loss=loss, cells=cells)), gap=PRINTED).attrs
    assert figures["expected_loss"] == pytest.approx(published, rel=PRINTED)
    assert figures["lower_bound"] == pytest.approx(published, rel=PRINTED)

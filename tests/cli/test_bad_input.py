"""Every kind of bad input: exit code 2, an error that names field, value and remedy, and nothing written."""

from __future__ import annotations

import json
import math
import re
import runpy
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from fixtures.rows import few_by_default

from mechdesign import (
    DesignProblem,
    Domain,
    Eikonal,
    Euclidean,
    Graph,
    Optimal,
    PrivacyLevel,
    compare,
    load_problem,
    priors,
    save,
    solve,
)
from mechdesign import audit as md_audit
from mechdesign.base import registry
from mechdesign.errors import InputError, UnitError
from mechdesign.losses import SquaredDistance, TableLoss

HEADER = "ncols 3\nnrows 2\nxllcorner 0\nyllcorner 0\ncellsize 1\nNODATA_value -9999\n"
FILES = {
    "good.asc": HEADER + "1 2 3\n4 5 6\n",
    "hole.asc": HEADER + "1 2 3\n4 -9999 6\n",
    "short.asc": HEADER + "1 2 3\n4 5\n",
    "shape.asc": HEADER.replace("nrows 2", "nrows 3") + "1 2 3\n4 5 6\n",
    "zero.asc": HEADER + "0 0 0\n0 0 0\n",
    "world.asc": HEADER + "1 2 3\n4 5 6\n",
    "world.prj": 'GEOGCS["WGS 84",DATUM["WGS_1984"],UNIT["degree",0.0174532925199433]]',
    "broken.py": "def problem(:\n",
    "raising.py": "raise RuntimeError('no luck')\n",
    "lacking.py": "x = 1\n",
    "shadowing.py": "def problem(gap: float = 1.0):\n    return None\n",
    "nothing.py": "def problem(cells: int = 3):\n    return cells\n",
    "failing.py": "def problem(cells: int = 3):\n    return 1 / (cells - 3)\n",
    "undefined.py": "def problem(cells):\n    return None\n",
    "taken.nc": "an older file",
    "table.csv": "0.5,0.5\n0.25,0.75\n",
    "over.csv": "0.5,0.5\n0.25,0.76\n",
    "negative.csv": "0.5,0.5\n-0.25,1.25\n",
    "nan.csv": "0.5,0.5\nnan,0.75\n",
    "comma.csv": "0,5;0.5\n0,25;0.75\n",
    "places.csv": "x,y\n0,0\n0,0\n",
    "wide.csv": "1,2,3,4\n5,6,7,8\n",
    "traces.csv": "lat,lon,obf_lat,obf_lon\n1,2,3,4\n",
    "words.asc": HEADER + "1 2 three\n4 5 6\n",
    "flat.asc": HEADER.replace("cellsize 1", "cellsize 0") + "1 2 3\n4 5 6\n",
    "negative.asc": HEADER + "1 2 3\n4 -5 6\n",
    "headless.asc": "1 2 3\n4 5 6\n",
    "cut.nc": "\x89HDF",
}


def audit(words):
    return f"audit table.csv --metric {words}"


# command after `mechdesign`, field of the error, kind of the error
COMMANDS = {
    "floor zero": ("solve philadelphia --floor 0", "floor", "input"),
    "floor negative": ("solve philadelphia --floor -0.4", "floor", "input"),
    "floor nan": ("solve philadelphia --floor nan", "floor", "input"),
    "floor infinite": ("solve philadelphia --floor inf", "floor", "input"),
    "slope too negative": ("solve philadelphia --slope=-1", "slope", "input"),
    "slope infinite": ("solve philadelphia --slope inf", "slope", "input"),
    "extent zero": ("solve philadelphia --extent 0", "extent", "input"),
    **{
        f"{problem} epsilon {value}": (f"solve {problem} --epsilon {value}", field, "input")
        for problem in ("line", "euclidean")
        for value, field in (("0", "epsilon"), ("-1", "epsilon"), ("nan", "epsilon"), ("inf", "epsilon"))
    },
    **{f"edge too long, {problem}": (f"solve {problem} --epsilon 1e308", "epsilon", "input")
       for problem in ("line", "euclidean")},
    "cell too wide": ("solve euclidean --cell 1e308", "cell", "input"),
    "edge too short to compare on": ("compare line --epsilon 1e-12", "epsilon", "input"),
    "raster with a hole": ("solve philadelphia --raster hole.asc", "hole.asc", "input"),
    "raster cut short": ("solve philadelphia --raster short.asc", "raster", "file"),
    "raster of another shape": ("solve philadelphia --raster shape.asc", "raster", "file"),
    "raster missing": ("solve philadelphia --raster absent.asc", "raster", "file"),
    "raster in degrees, .prj": ("solve philadelphia --raster world.asc", "world.asc", "unit"),
    "raster in degrees, NetCDF": ("solve philadelphia --raster world.nc", "world.nc:y", "unit"),
    "density zero": ("solve philadelphia --raster zero.asc", "density", "input"),
    "raster unit unknown": ("solve philadelphia --raster-unit parsec", "unit", "unit"),
    "unit unknown": ("solve line --unit parsec", "unit", "unit"),
    "one cell, philadelphia": ("solve philadelphia --cells 1", "cells", "input"),
    "one cell, line": ("solve line --cells 1", "domain", "input"),
    "one cell, euclidean": ("solve euclidean --cells 1", "domain", "input"),
    "no cell": ("solve euclidean --cells 0", "cells", "input"),
    "one secret": ("solve discrete --secrets 1", "domain", "input"),
    "cells not whole": ("solve line --cells 6.5", "cells", "input"),
    "cells not a number": ("solve line --cells six", "cells", "input"),
    "cell zero": ("solve line --cell 0", "cell", "input"),
    "loss unknown": ("solve euclidean --loss regret", "loss", "input"),
    "stencil unknown": ("solve philadelphia --stencil 5", "stencil", "input"),
    "parameter unknown": ("solve line --rows 6", "--rows", "input"),
    "parameter without a value": ("solve line --cells", "--cells", "input"),
    "parameter given twice": ("solve line --cells 5 --cells 6", "--cells", "input"),
    "option given twice": ("compare line -o a.csv -o b.csv", "output", "input"),
    "option misspelt": ("solve line --gapp 1e-3", "--gapp", "input"),
    "option misspelt before": ("solve --prgram eikonal line", "--prgram", "input"),
    "parameter before the problem": ("solve --cells 15 philadelphia", "--cells", "input"),
    "stray word": ("solve line 15", "command line", "input"),
    "option not a number": ("solve line --gap small", "gap", "input"),
    "problem left out": ("solve", "problem", "input"),
    "command unknown": ("slove line", "command line", "input"),
    "problem unknown": ("solve atlantis", "problem", "input"),
    "problem file missing": ("solve absent.py", "problem", "file"),
    **{f"problem file {n}": (f"solve {n}.py", "problem", "input")
       for n in ("broken", "raising", "lacking", "nothing", "failing")},
    "problem file undefined": ("solve undefined.py", "cells", "input"),
    "parameter shadows an option": ("solve shadowing.py", "gap", "input"),
    "too many cells": ("solve philadelphia --cells 300", "cells", "size"),
    "too many cells, all pairs": ("solve euclidean --cells 200", "cells", "size"),
    "too many cells to compare": ("compare euclidean --cells 200", "cells", "size"),
    "too many cells for any program": ("solve philadelphia --cells 4000", "cells", "size"),
    **{f"too many places, {words}": (f"solve {words}", "cells", "size") for words in (
        "line --cells 99999999999", "euclidean --cells 99999999999", "flat --cells 99999999999",
        "discrete --secrets 99999999999", "income --cells 99999999999", "paris --cells 99999999999",
 "neighbourhoods --cells 99999999999", "neighbourhoods --cells 500",
        "neighbourhoods --cells 1000 --labels 1000000")},
    "too many labels": ("solve neighbourhoods --labels 99999999999", "labels", "input"),
    "too many outputs": ("solve income --outputs 99999999999", "outputs", "size"),
    "too many losses": ("solve income --cells 1000000 --outputs 1000000", "cells", "size"),
    **{f"too many nodes, {nodes}": (f"solve streets --nodes {nodes}", "nodes", "size") for nodes in (20000, 10**18)},
    "too many points of a sweep": ("compare line --scales 1:2:99999999999", "scales", "input"),
    "too many cells for a table": (
        audit("euclidean --epsilon 1 --unit km --cell 1 --grid 100000x100000"), "grid", "input"),
    **{f"integer {value}, {option}": (f"{command} {option} {value}", option.lstrip("-"), "input")
       for command, option in (("solve line", "--cells"), ("solve line", "--rounds"))
       for value in ("1_0", "\uff11\uff10", "\u0663", "0x10", "1e3", "3.0", "9223372036854775808", "9" * 5000)},
    **{f"number {value}, {option}": (f"{command} {option} {value}", option.lstrip("-"), "input")
       for command, option in (("solve line", "--epsilon"), ("solve line", "--gap"), ("compare line", "--time-limit"),
                               ("compare line", "--gap"), (audit("discrete"), "--epsilon"))
       for value in ("1_0.5", "\uff11.5", "\u0660.\u0665", "0x1p3", "1e400", "1e-400", "nan", "1,5")},
    "grid in digits of another script": (
        audit("euclidean --epsilon 1 --unit km --cell 1 --grid \uff12"), "grid", "input"),
    "seed negative": ("solve streets --seed -1", "seed", "input"),
    "name too long": (f"solve {'a' * 300}.py", "problem", "file"),
    "name not UTF-8": ("solve \udcff.py", "problem", "file"),
    "output exists": ("solve line -o taken.nc", "output", "input"),
    "folder missing": ("solve line -o nowhere/x.nc", "output", "input"),
    "output is a folder": ("solve line -o .", "output", "input"),
    "gap zero": ("solve line --gap 0", "gap", "input"),
    "gap negative": ("solve line --gap -1e-3", "gap", "input"),
    "gap nan": ("solve line --gap nan", "gap", "input"),
    "time zero": ("solve line --time-limit 0", "time-limit", "input"),
    "time nan": ("solve line --time-limit nan", "time-limit", "input"),
    "program unknown": ("solve line --program best", "program", "input"),
    "fast marching without eikonal": ("solve line --method fast-marching", "distances", "input"),
    "worst loss without bounded": ("solve line --worst-loss 0.5", "worst-loss", "input"),
    "bounded without worst loss": ("solve line --program bounded", "worst-loss", "input"),
    "worst loss zero": ("solve line --program bounded --worst-loss 0", "worst-loss", "input"),
    "fast marching for minimax": ("solve line --program minimax --method fast-marching", "distances", "input"),
    "fast marching on another metric": (
        "solve euclidean --program eikonal --method fast-marching", "distances", "input",
    ),
    "only unknown": ("compare line --only best", "only", "input"),
    "compare, output exists": ("compare line -o taken.nc", "output", "input"),
    "grid of one cell": (audit("euclidean --epsilon 1 --unit km --cell 1 --grid 1x1"), "domain", "input"),
    "grid misspelt": (audit("euclidean --epsilon 1 --unit km --cell 1 --grid 2*1"), "grid", "input"),
    "grid without a cell": (audit("euclidean --epsilon 1 --unit km --grid 2x1"), "cell", "input"),
    "grid and places": (
        audit("euclidean --epsilon 1 --unit km --cell 1 --grid 2x1 --places places.csv"), "grid", "input",
    ),
    "neither grid nor places": (audit("euclidean --epsilon 1 --unit km"), "grid", "input"),
    "places and a cell": (audit("euclidean --epsilon 1 --unit km --cell 1 --places places.csv"), "grid", "input"),
    "places coincide": (audit("euclidean --epsilon 1 --unit km --places places.csv"), "points", "input"),
    "places of four columns": (audit("euclidean --epsilon 1 --unit km --places wide.csv"), "places", "input"),
    "places missing": (audit("euclidean --epsilon 1 --unit km --places absent.csv"), "places", "file"),
    "cell negative": (audit("euclidean --epsilon 1 --unit km --cell -1 --grid 2x1"), "cell", "input"),
    "cell nan": (audit("euclidean --epsilon 1 --unit km --cell nan --grid 2x1"), "cell", "input"),
    "cell a word": (audit("euclidean --epsilon 1 --unit km --cell one --grid 2x1"), "cell", "input"),
    "epsilon with a decimal comma": (audit("discrete --epsilon 0,5"), "epsilon", "input"),
    "epsilon left out": (audit("discrete"), "epsilon", "input"),
    "unit left out": (audit("euclidean --epsilon 1 --cell 1 --grid 2x1"), "unit", "input"),
    **{f"audit, epsilon {value}": (audit(f"discrete --epsilon {value}"), "epsilon", "input")
       for value in ("0", "-1", "nan", "inf")},
    "audit, loss unknown": (audit("discrete --epsilon 1 --loss regret"), "loss", "input"),
    "audit, parameter unknown": (audit("discrete --epsilon 1 --cell 3"), "--cell", "input"),
    "audit, metric unknown": (audit("taxicab --epsilon 1"), "metric", "input"),
    "audit, no metric": ("audit table.csv", "metric", "input"),
    "audit, mechanism missing": ("audit table.csv --metric absent.nc", "file", "file"),
    "audit, rows and secrets": ("audit table.csv --metric line --cells 3", "table", "input"),
    "audit, output exists": (audit("discrete --epsilon 1 -o taken.nc"), "output", "input"),
    "audit, too small an epsilon": (audit("discrete --epsilon 1e-12 -o x.nc"), "epsilon", "input"),
    **{f"audit, table {name}": (f"audit {name} --metric discrete --epsilon 1", "table", kind) for name, kind in (
        ("absent.csv", "file"), ("over.csv", "input"), ("negative.csv", "input"), ("nan.csv", "input"),
        ("comma.csv", "input"), ("traces.csv", "input"), ("taken.nc", "file"), ("/dev/zero", "file"),
        ("broken.py", "file"))},
    "raster with a word": ("solve philadelphia --raster words.asc", "raster", "file"),
    "raster of cells of size 0": ("solve philadelphia --raster flat.asc", "raster", "file"),
    "raster with a negative density": ("solve philadelphia --raster negative.asc", "density", "input"),
    "raster without a header": ("solve philadelphia --raster headless.asc", "raster", "file"),
    "raster cut short, NetCDF": ("solve philadelphia --raster cut.nc", "raster", "file"),
    "raster of another kind": ("solve philadelphia --raster broken.py", "raster", "file"),
    "problem is a device": ("solve /dev/null", "problem", "input"),
    "too many rows for one program": ("solve philadelphia --program minimax --cells 60", "cells", "size"),
    "verify a device": ("verify /dev/zero", "file", "file"),
    "verify a URL": ("verify https://example.org/mechanism.nc", "file", "file"),
    "verify a folder": ("verify .", "file", "file"),
    "plot, file missing": ("export absent.nc -o x.png", "file", "file"),
    "sweep backwards": ("compare line --scales 2:1:3", "scales", "input"),
    "sweep without points": ("compare line --scales 1:2:0", "scales", "input"),
    "sweep from zero": ("compare line --scales 0:1:3", "scales", "input"),
    "verify missing": ("verify absent.nc", "file", "file"),
    "export missing": ("export absent.nc -o x.csv", "file", "file"),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    degrees = {"x": ("x", [0.0, 1.0], {"units": "degrees_east"}), "y": ("y", [0.0, 1.0], {"units": "degrees_north"})}
    xr.Dataset({"density": (("y", "x"), np.ones((2, 2)))}, coords=degrees).to_netcdf(tmp_path / "world.nc")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=16e9))
    return tmp_path


def refusal(words, monkeypatch, capsys):
    """The error document of a command that ends with exit code 2."""
    monkeypatch.setattr(sys, "argv", ["mechdesign", *words, "--json"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("mechdesign", run_name="__main__")
    error = json.loads(capsys.readouterr().out)["error"]
    assert ended.value.code == 2
    assert set(error) == {"kind", "field", "value", "message"}
    assert len(error["message"]) > 5
    return error


# One parser reads every integer, and one every number: tests/border/test_command_numbers.py.
SELDOM = {f"integer {value}, --rounds" for value in ("\uff11\uff10", "\u0663", "0x10", "1e3", "9" * 5000)} | {
    f"number {value}, {option}"
    for value in ("\uff11.5", "\u0660.\u0665", "0x1p3", "1e400", "1e-400", "1,5")
    for option in ("--gap", "--time-limit")
}
SELDOM |= {"too many places, neighbourhoods --cells 500"}


@pytest.mark.parametrize("case", few_by_default(COMMANDS, *COMMANDS.keys() - SELDOM))
def test_command(case, folder, monkeypatch, capsys):
    command, field, kind = COMMANDS[case]
    words = command.split()
    if words[-1] == "x.png" and "pictures" not in registry.capabilities():
        pytest.skip("without pictures the suffix is refused before the file")
    if words[0] == "solve" and "-o" not in words:
        words += ["-o", "x.nc"]
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    error = refusal(words, monkeypatch, capsys)
    assert (error["field"], error["kind"]) == (field, kind)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
    if kind == "size":
        assert re.search("would need [0-9.]+ GB|at most 1,048,576 places|101109600 rows", error["message"])
    misspelt = field.startswith("--") or re.search("see mechdesign( [a-z]+)? --help$", error["message"])
    assert misspelt or error["value"] is not None


def test_export_to_another_kind_of_file(folder, monkeypatch, capsys):
    save(solve(Optimal(problem=load_problem("line", cells=3))), "line.nc")
    error = refusal(["export", "line.nc", "-o", "x.foo"], monkeypatch, capsys)
    assert (error["field"], error["value"]) == ("output", "x.foo")
    assert list(folder.glob("*x.foo*")) == []


GRID = Domain.grid((3, 3), cell=1.0, unit="km")
WALL = np.array([[1, 1, 1], [0, 0, 0], [1, 1, 1]], bool)


def small_problem(prior=None, loss=None, domain=GRID):
    prior = priors.uniform(domain) if prior is None else prior
    metric = Eikonal(level=PrivacyLevel.constant(0.5, "km"))
    return DesignProblem(domain=domain, metric=metric, prior=prior, loss=loss or SquaredDistance())


def masked_problem(mask):
    return small_problem(domain=Domain.grid((3, 3), cell=1.0, unit="km", mask=mask))


def table(value):
    values = np.ones((9, 9))
    values[1, 2] = value
    return TableLoss(values=values)


API = {
    "prior negative": (lambda: small_problem(prior=[-0.1, 0.3, *[0.8 / 7] * 7]), "prior"),
    "prior off by a little": (lambda: small_problem(prior=np.full(9, 1 / 9 + 1e-6)), "prior"),
    "prior zero": (lambda: small_problem(prior=np.zeros(9)), "prior"),
    "prior nan": (lambda: small_problem(prior=[math.nan, *[1 / 8] * 8]), "prior"),
    "prior too short": (lambda: small_problem(prior=np.full(8, 1 / 8)), "prior"),
    "prior as a column": (lambda: small_problem(prior=np.full((9, 1), 1 / 9)), "prior"),
    "mask leaves nothing": (lambda: masked_problem(np.zeros((3, 3), bool)), "mask"),
    "mask leaves one cell": (lambda: masked_problem(np.eye(9)[0].reshape(3, 3) > 0), "mask"),
    "mask cuts in two": (lambda: masked_problem(WALL), "mask"),
    "mask of numbers": (lambda: masked_problem(np.ones((3, 3))), "mask"),
    "mask of another shape": (lambda: masked_problem(np.ones((3, 4), bool)), "mask"),
    "loss negative": (lambda: small_problem(loss=table(-1e-9)), "loss"),
    "loss nan": (lambda: small_problem(loss=table(math.nan)), "loss"),
    "loss infinite": (lambda: small_problem(loss=table(math.inf)), "loss"),
    "loss zero": (lambda: small_problem(loss=TableLoss(values=np.zeros((9, 9)))), "loss"),
    "loss of another shape": (lambda: small_problem(loss=TableLoss(values=np.ones((9, 8)))), "loss"),
    "metric does not fit": (lambda: small_problem(domain=Domain.nodes(4, unit="km")), "domain"),
}


@pytest.mark.parametrize("use", [lambda p: solve(Optimal(problem=p)), compare], ids=["solve", "compare"])
@pytest.mark.parametrize("case", API)
def test_python_api(case, use):
    make, field = API[case]
    with pytest.raises(InputError) as caught:
        use(make())
    assert (caught.value.field, caught.value.exit_code) == (field, 2)
    assert caught.value.value is not None


NODES = Domain.nodes(3)


def graph(tail, head, length):
    return Graph(tail=tail, head=head, length=length).edges(NODES)


PARTS = {
    "level of another shape": (lambda: PrivacyLevel.from_values(GRID, np.ones((3, 4))), "epsilon"),
    "level with a zero": (lambda: PrivacyLevel.from_values(GRID, np.eye(3)), "epsilon"),
    "level negative": (lambda: PrivacyLevel.from_values(GRID, -np.ones((3, 3))), "epsilon"),
    "level with a nan": (lambda: PrivacyLevel.from_values(GRID, np.full((3, 3), math.nan)), "epsilon"),
    "level infinite": (lambda: PrivacyLevel.constant(math.inf, "km"), "epsilon"),
    "level without a unit": (lambda: PrivacyLevel.constant(1.0, ""), "eps.unit"),
    "scale negative": (lambda: -1.0 * Euclidean(epsilon=1.0, unit="km"), "scale"),
    "scale nan": (lambda: math.nan * Euclidean(epsilon=1.0, unit="km"), "scale"),
    "secrets coincide": (lambda: Domain.points_at([[0, 0], [1, 1], [0, 0]], unit="km"), "points"),
    "a place at infinity": (lambda: Domain.points_at([0, math.inf], unit="km"), "points"),
    "places of four axes": (lambda: Domain.points_at(np.eye(4), unit="km"), "points"),
    "one place": (lambda: Domain.points_at([0.0], unit="km"), "domain"),
    "cell negative": (lambda: Domain.grid((3, 3), cell=-1.0, unit="km"), "cell"),
    "cell infinite": (lambda: Domain.grid((3, 3), cell=math.inf, unit="km"), "cell"),
    "cells of half a cell": (lambda: Domain.grid((2.5, 3), cell=1.0, unit="km"), "cells"),
    "edge twice": (lambda: graph([0, 1, 1], [1, 0, 2], [1, 1, 1]), "edges"),
    "edge to itself": (lambda: graph([0, 1, 2], [1, 2, 2], [1, 1, 1]), "edges"),
    "edge that dangles": (lambda: graph([0, 1], [1, 3], [1, 1]), "edges"),
    "edge of length zero": (lambda: graph([0, 1], [1, 2], [1, 0]), "length"),
    "edge of length nan": (lambda: graph([0, 1], [1, 2], [1, math.nan]), "length"),
    "edges of another number": (lambda: graph([0, 1], [1, 2], [1]), "edges"),
    "prior on one place": (lambda: solve(Optimal(problem=small_problem(prior=np.eye(9)[0]))), "prior"),
    "a grid of too many cells": (lambda: Domain.grid((1025, 1024), cell=1.0, unit="km"), "cells"),
    "too many nodes": (lambda: Domain.nodes(10**12), "cells"),
    "parts that no edge joins": (lambda: graph([0], [1], [1]), "mask"),
    "table of words for an audit": (lambda: md_audit([["a", "b"], ["c", "d"]], small_problem()), "table"),
    "reports in another unit": (
        lambda: (
            DesignProblem(
                domain=GRID,
                metric=Euclidean(epsilon=1.0, unit="km"),
                prior=priors.uniform(GRID),
                loss=SquaredDistance(),
                reports=Domain.grid((3, 3), cell=1.0, unit="m"),
            ).weighted_loss
        ),
        "reports",
    ),
}


@pytest.mark.parametrize("case", PARTS)
def test_parts(case):
    make, field = PARTS[case]
    with pytest.raises(InputError) as caught:
        make()
    assert (caught.value.field, caught.value.exit_code) == (field, 2)
    assert caught.value.value is not None


def test_enough_bad_inputs_are_tried():
    assert len(COMMANDS) + len(API) + len(PARTS) >= 160


def test_units_of_metric_and_domain_must_agree():
    metric = Euclidean(epsilon=1.0, unit="USD")
    with pytest.raises(UnitError, match="is in USD while the domain is in km"):
        DesignProblem(domain=GRID, metric=metric, prior=priors.uniform(GRID), loss=SquaredDistance())
    with pytest.raises(UnitError):
        Domain.grid((3, 3), cell=1.0, unit="parsec")

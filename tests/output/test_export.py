"""Exports as CSV state certified figures only, and refuse whatever they cannot hold."""

from __future__ import annotations

import csv
import hashlib
import json

import numpy as np
import pandas as pd
import pytest
from reference.checking import ROW_SUM

from mechdesign import (
    DesignProblem,
    Domain,
    EikonalWeights,
    Euclidean,
    Optimal,
    Sampler,
    baselines,
    export,
    load,
    load_problem,
    priors,
    save,
    solve,
)
from mechdesign.errors import FileFormatError, InputError
from mechdesign.extend import FORMATS, Format
from mechdesign.factored import FactoredMechanism
from mechdesign.losses import Distance
from mechdesign.utility import bayes_remap


def in_space():
    domain = Domain.grid((2, 2, 2), cell=0.1, unit="m", origin=1 / 3)
    metric = Euclidean(epsilon=2.0, unit="m")
    reports = Domain.points_at([[0.4, 0.5, 1 / 7], [1.0, 0.0, 0.0], [0.2, 0.2, 1e-9]], unit="m")
    return DesignProblem(domain=domain, metric=metric, prior=priors.uniform(domain), loss=Distance(), reports=reports)


COMMENTS = ("problem", "program", "loss", "expected_loss", "lower_bound", "ratio")
MECHANISMS = {
    "line": lambda: solve(Optimal(problem=load_problem("line", cells=5))),
    "plane": lambda: baselines.exponential(load_problem("flat", cells=3)),
    "plane, remapped": lambda: bayes_remap(baselines.exponential(load_problem("flat", cells=4))),
    "space, reports apart": lambda: baselines.exponential(in_space()),
    "nodes": lambda: baselines.exponential(load_problem("discrete", secrets=4)),
}


def read(path):
    """The metadata next to an exported table, its header and its rows."""
    with path.open(newline="") as stream:
        header, *rows = csv.reader(stream)
    return json.loads(path.with_name(f"{path.name}-metadata.json").read_text("ascii")), header, rows


def exported_edges(mechanism, rows):
    """The edges of a mechanism between these secrets, as an export writes them."""
    named = (mechanism[f"edge_{name}"].values.tolist() for name in ("tail", "head", "length"))
    return [[u, v, length.hex()] for u, v, length in zip(*named, strict=True) if u in rows and v in rows]


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_table_reads_back_exactly(tmp_path, name):
    mechanism = MECHANISMS[name]()
    assert export(mechanism, tmp_path / "t.csv") == tmp_path / "t.csv"
    _, header, rows = read(tmp_path / "t.csv")
    axes = [axis for axis in "xyz" if f"secret_{axis}" in mechanism.coords]
    assert header == [
        "secret", *(f"secret_{a}" for a in axes), "report", *(f"report_{a}" for a in axes), "probability", "mass",
    ]  # fmt: skip
    frame = pd.read_csv(tmp_path / "t.csv")
    assert (frame["mass"] == mechanism["mass"].values.ravel()).all()
    assert [float(row[-2]) for row in rows] == (frame["mass"] / ROW_SUM).tolist()
    n, m = mechanism.sizes["secret"], mechanism.sizes["report"]
    assert [(int(row[0]), int(row[1 + len(axes)])) for row in rows] == list(np.ndindex(n, m))
    masses = [int(row[-1]) for row in rows]
    assert masses == mechanism["mass"].values.ravel().tolist()
    assert [sum(masses[u * m : (u + 1) * m]) for u in range(n)] == [ROW_SUM] * n
    for row in rows:
        u, y = int(row[0]), int(row[1 + len(axes)])
        for k, axis in enumerate(axes):
            assert float(row[1 + k]) == mechanism[f"secret_{axis}"].values[u]
            assert float(row[2 + len(axes) + k]) == mechanism[f"report_{axis}"].values[y]


def test_header_of_a_table_has_claim_and_figures(tmp_path):
    mechanism = MECHANISMS["line"]()
    assert read(export(mechanism, tmp_path / "unsaved.csv"))[0]["sha256"] is None
    file = save(mechanism, tmp_path / "file.nc").read_bytes()
    comments, _, _ = read(export(mechanism, tmp_path / "t.csv"))
    assert (comments.pop("format"), comments.pop("unit"), comments.pop("table")) == (
        "mechdesign/table/1",
        "km",
        "t.csv",
    )
    assert comments.pop("table_sha256") == hashlib.sha256((tmp_path / "t.csv").read_bytes()).hexdigest()
    assert len(comments.pop("content_sha256")) == 64
    sampler = Sampler(mechanism)
    radii = [float(sampler.label_report(report).coords["accuracy"]) for report in range(5)]
    assert comments.pop("accuracy") == pytest.approx(radii, rel=0.01)
    assert comments.pop("edge") == exported_edges(mechanism, range(5))
    sizes = {"secrets": 5, "reports": 5, "edges": len(mechanism["edge_tail"])}
    for name in ("prior", "dual"):
        assert [float.fromhex(x) for x in comments.pop(name)] == mechanism[name].values.tolist()
    assert [list(map(int, steps.split())) for steps in comments.pop("tree")] == mechanism["tree"].values.tolist()
    described = {name: json.loads(mechanism.attrs[name]) for name in ("metric", "domain")}
    claim = described | {"positions": None, "denominator": "2^62"}
    said = {"claim": claim, "sha256": hashlib.sha256(file).hexdigest()}
    assert comments == {key: mechanism.attrs[key] for key in COMMENTS} | said | sizes
    assert b"\r" not in (tmp_path / "t.csv").read_bytes()


def test_closed_form_report_leaves_out_missing_figures(tmp_path):
    assert "lower_bound" not in read(export(MECHANISMS["plane"](), tmp_path / "T.CSV"))[0]


@pytest.mark.parametrize(
    ("name", "field"), [("t.foo", "output"), ("t", "output"), ("nowhere/t.csv", "output"), ("taken.csv", "output")]
)
def test_refusals_leave_nothing_behind(tmp_path, name, field):
    (tmp_path / "taken.csv").write_text("older")
    with pytest.raises(InputError) as caught:
        export(MECHANISMS["nodes"](), tmp_path / name)
    assert caught.value.field == field
    assert [path.name for path in tmp_path.iterdir()] == ["taken.csv"]
    assert (tmp_path / "taken.csv").read_text() == "older"


def test_a_full_disk_leaves_the_older_table(tmp_path, monkeypatch):
    target = tmp_path / "t.csv"
    target.write_text("older")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(FORMATS, ".csv", Format(write=full))
    with pytest.raises(FileFormatError, match="No space left"):
        export(MECHANISMS["nodes"](), target, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
    assert target.read_text() == "older"


def test_overwriting_replaces_the_whole_table(tmp_path):
    target = tmp_path / "t.csv"
    target.write_text("older\n" * 10_000)
    export(MECHANISMS["nodes"](), target, overwrite=True)
    assert "older" not in target.read_text()


def test_rows_of_a_comparison(tmp_path, run_json):
    words = ("compare", "discrete", "--secrets", 3, "-o", tmp_path / "rows.csv")
    _, table = run_json(*words)
    with (tmp_path / "rows.csv").open(newline="") as stream:
        written = list(csv.DictReader(stream))
    assert [row["mechanism"] for row in written] == [row["mechanism"] for row in table]
    assert [float(row["loss"]) for row in written] == [row["loss"] for row in table]
    assert {row["expected_distance"] for row in written} == {""}
    code, refused = run_json(*words)
    assert code == 2
    assert "exists already" in refused["error"]["message"]


def factored_mechanism():
    problem = load_problem("flat", cells=4, epsilon=0.5)
    return solve(EikonalWeights(problem=problem), method="factored")


def test_factored_rows_read_back_exactly(tmp_path):
    mechanism = factored_mechanism()
    comments, header, rows = read(export(mechanism, tmp_path / "t.csv", rows=range(3, 6)))
    assert comments["claim"]["denominator"] == "row_sum"
    assert header[-3:] == ["probability", "mass", "row_sum"]
    assert [(int(row[0]), int(row[3])) for row in rows] == [(u, y) for u in range(3, 6) for y in range(16)]
    exact = FactoredMechanism(dataset=mechanism)
    for u in range(3, 6):
        masses, total = exact.integers(u)
        mine = [row for row in rows if int(row[0]) == u]
        assert [int(row[-2]) for row in mine] == masses
        assert {int(row[-1]) for row in mine} == {total} == {sum(masses)}
        assert [float(row[-3]) for row in mine] == [mass / total for mass in masses]


def test_rows_of_a_table(tmp_path):
    mechanism = MECHANISMS["line"]()
    comments, _, rows = read(export(mechanism, tmp_path / "t.csv", rows=range(1, 3)))
    assert comments["edge"] == exported_edges(mechanism, range(1, 3))
    assert [edge[:2] for edge in comments["edge"]] == [[1, 2]]
    assert [int(row[-1]) for row in rows] == mechanism["mass"].values[1:3].ravel().tolist()


@pytest.mark.parametrize("rows", [range(0), range(3, 6), range(-1, 2), range(5, 6)])
def test_missing_rows_are_refused(tmp_path, rows):
    with pytest.raises(InputError) as caught:
        export(MECHANISMS["line"](), tmp_path / "t.csv", rows=rows)
    assert caught.value.field == "rows"
    assert not list(tmp_path.iterdir())


def test_factored_export_that_fills_a_disk_is_refused(tmp_path, monkeypatch):
    mechanism = factored_mechanism()
    monkeypatch.setattr("mechdesign.output.export.MOST_ROWS", 15)
    with pytest.raises(InputError, match="16 x 16 lines") as caught:
        export(mechanism, tmp_path / "t.csv")
    assert caught.value.field == "rows"
    export(mechanism, tmp_path / "t.csv", rows=range(15))


@pytest.mark.parametrize(("words", "code"), [("1:3", 0), ("1", 2), ("a:b", 2), ("3:9", 2)])
def test_rows_on_the_command_line(tmp_path, run, words, code):
    save(MECHANISMS["line"](), tmp_path / "m.nc")
    assert run("export", tmp_path / "m.nc", "-o", tmp_path / "t.csv", "--rows", words, "--json")[0] == code
    assert (tmp_path / "t.csv").exists() == (code == 0)


@pytest.mark.parametrize("as_json", [True, False])
def test_the_command(tmp_path, run, as_json):
    save(MECHANISMS["line"](), tmp_path / "m.nc")
    target = tmp_path / "t.csv"
    code, out, err = run("export", tmp_path / "m.nc", "-o", target, *(["--json"] if as_json else []))
    assert code == 0
    assert out == (json.dumps({"file": str(target)}, indent=2) + "\n" if as_json else "")
    assert as_json or "wrote" in err
    same = export(load(tmp_path / "m.nc"), tmp_path / "same.csv")
    assert target.read_bytes() == same.read_bytes()

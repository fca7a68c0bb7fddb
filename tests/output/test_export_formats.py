"""Exports as JSON and Parquet: they read back exactly, say what they must, and refuse what they cannot hold."""

from __future__ import annotations

import hashlib
import json
import sys

import pyarrow as pa
import pytest
from fixtures.export_mechanisms import MAKERS, exportable, factored_export
from fixtures.rows import few_by_default
from pyarrow import parquet
from reference.checking import ROW_SUM

import mechdesign as md
from mechdesign import load, save
from mechdesign.errors import InputError
from mechdesign.output.export import VERIFIER
from mechdesign.output.packaged import package_file

SUFFIXES = ("csv", "json", "parquet")
EVERY = pytest.mark.parametrize("name", few_by_default(MAKERS, "line", "holes", "park", "graph", "capped"))


def edges_of(mechanism):
    named = (mechanism[f"edge_{name}"].values.tolist() for name in ("tail", "head", "length"))
    return [list(edge) for edge in zip(*named, strict=True)]


def points_of(mechanism, dim):
    axes = [axis for axis in "xyz" if f"{dim}_{axis}" in mechanism.coords]
    return [list(point) for point in zip(*(mechanism[f"{dim}_{a}"].values.tolist() for a in axes), strict=True)]


def claim_of(mechanism):
    described = {name: json.loads(mechanism.attrs[name]) for name in ("metric", "domain")}
    if described["metric"]["kind"] == "graph":
        described["metric"]["multiplier"] = 1.0  # the edges are listed with it
    for limit in json.loads(mechanism.attrs["parameters"]).get("constraints", []):
        over, under = map(int, limit["share"].split("/"))
        named = {"radius": limit["radius"], "centres": limit["centres"], "share": [over, under]}
        described.setdefault("caps", []).extend(named | {"people": people} for people in limit["people"])
    return described | {"positions": None, "denominator": "2^62"}


def digest_of(mechanism, folder):
    """The checksum that `sha256sum` prints for the mechanism's file."""
    return hashlib.sha256(save(mechanism, folder / "file.nc").read_bytes()).hexdigest()


@EVERY
def test_json_reads_back_exactly(tmp_path, name):
    mechanism = exportable(name)
    digest = digest_of(mechanism, tmp_path)
    text = md.export(mechanism, tmp_path / "t.json").read_text("ascii")
    found = json.loads(text)
    assert found["format"] == "mechdesign/table/1"
    assert [[int(mass) for mass in row.split(" ")] for row in found["mass"]] == mechanism["mass"].values.tolist()
    assert [[u, v, float.fromhex(length)] for u, v, length in found["edge"]] == edges_of(mechanism)
    assert found["secret_points"] == points_of(mechanism, "secret")
    assert found["report_points"] == points_of(mechanism, "report")
    assert found["unit"] == mechanism["secret_x"].attrs["units"]
    assert found["claim"] == claim_of(mechanism)
    kept = ("problem", "program", "loss", "expected_loss", "ratio")
    assert found["sha256"] == digest
    assert {key: found[key] for key in kept} == {key: mechanism.attrs[key] for key in kept}
    assert found.get("lower_bound") == mechanism.attrs.get("lower_bound")
    assert (found["secrets"], found["reports"], found["edges"]) == (*mechanism["mass"].shape, len(found["edge"]))


@pytest.mark.parametrize(("suffix", "sealed"), [("csv", "t.csv-metadata.json"), ("json", "t.json")])
def test_the_last_line_is_the_checksum_of_the_others(tmp_path, suffix, sealed):
    md.export(exportable("plane"), tmp_path / f"t.{suffix}")
    lines = (tmp_path / sealed).read_bytes().splitlines(keepends=True)
    assert lines[-1].decode() == f'"content_sha256": "{hashlib.sha256(b"".join(lines[:-1])).hexdigest()}"}}\n'


@EVERY
def test_parquet_reads_back_exactly(tmp_path, name):
    mechanism = exportable(name)
    digest = digest_of(mechanism, tmp_path)
    table = parquet.read_table(md.export(mechanism, tmp_path / "t.parquet"))
    n, m = mechanism["mass"].shape
    types = {"secret": pa.int32(), "report": pa.int32(), "mass": pa.uint64()}
    assert {field.name: field.type for field in table.schema if field.name in types} == types
    columns = table.to_pydict()
    assert columns["mass"] == mechanism["mass"].values.ravel().tolist()
    assert columns["probability"] == [mass / ROW_SUM for mass in columns["mass"]]
    assert [sum(columns["mass"][u * m : (u + 1) * m]) for u in range(n)] == [ROW_SUM] * n
    assert columns["secret"] == [u for u in range(n) for _ in range(m)]
    assert columns["report"] == [*range(m)] * n
    for dim in ("secret", "report"):
        for k, axis in enumerate(axis for axis in "xyz" if f"{dim}_{axis}" in mechanism.coords):
            points = points_of(mechanism, dim)
            assert columns[f"{dim}_{axis}"] == [points[place][k] for place in columns[dim]]
    told = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    assert [[u, v, float.fromhex(length)] for u, v, length in json.loads(told["edge"])] == edges_of(mechanism)
    assert json.loads(told["claim"]) == claim_of(mechanism)
    assert told["unit"] == mechanism["secret_x"].attrs["units"]
    assert (told["sha256"], told["probability"]) == (digest, "mass / 2^62")
    assert float(told["expected_loss"]) == mechanism.attrs["expected_loss"]


def test_rows_of_a_parquet_table(tmp_path):
    mechanism = exportable("plane")
    table = parquet.read_table(md.export(mechanism, tmp_path / "t.parquet", rows=range(2, 4)))
    assert table["mass"].to_pylist() == mechanism["mass"].values[2:4].ravel().tolist()
    assert set(table["secret"].to_pylist()) == {2, 3}


def test_pyarrow_is_an_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(InputError, match=r"pip install 'mechdesign\[parquet\]'") as caught:
        md.export(exportable("line"), tmp_path / "t.parquet")
    assert caught.value.field == "parquet"
    assert not list(tmp_path.iterdir())
    md.export(exportable("line"), tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("make", "name", "given", "field"),
    [
        (factored_export, "t.json", {}, "output"),
        (factored_export, "t.parquet", {}, "output"),
        (lambda: exportable("line"), "t.json", {"rows": range(2)}, "rows"),
        (lambda: exportable("line"), "t.parquet", {"with_verifier": True}, "with-verifier"),
    ],
)
def test_unsupported_content_is_refused(tmp_path, make, name, given, field):
    with pytest.raises(InputError) as caught:
        md.export(make(), tmp_path / name, **given)
    assert caught.value.field == field
    assert not list(tmp_path.iterdir())


def test_companions_are_written_next_to_the_table(tmp_path):
    md.export(exportable("line"), tmp_path / "t.json", with_verifier=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.json", VERIFIER]
    assert (tmp_path / VERIFIER).read_bytes() == package_file(f"verification/{VERIFIER}")
    md.export(exportable("line"), tmp_path / "t.csv", with_verifier=True)


def test_another_file_in_the_place_of_a_companion_stays(tmp_path):
    (tmp_path / VERIFIER).write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        md.export(exportable("line"), tmp_path / "t.csv", with_verifier=True)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]
    md.export(exportable("line"), tmp_path / "t.csv", with_verifier=True, overwrite=True)
    assert (tmp_path / VERIFIER).read_bytes() == package_file(f"verification/{VERIFIER}")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_command_writes_every_format(tmp_path, run, suffix):
    save(exportable("line"), tmp_path / "m.nc")
    target = tmp_path / f"t.{suffix}"
    beside = [] if suffix == "parquet" else ["--with-verifier"]
    assert run("export", tmp_path / "m.nc", "-o", target, *beside)[0] == 0
    same = md.export(load(tmp_path / "m.nc"), tmp_path / f"same.{suffix}")
    assert target.read_bytes() == same.read_bytes()
    assert (tmp_path / VERIFIER).exists() == ("--with-verifier" in beside)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_verify_names_the_checker_of_exports(tmp_path, suffix):
    path = md.export(exportable("line"), tmp_path / f"t.{suffix}")
    with pytest.raises(InputError, match=r"python -m mechdesign\.verification\.verify_table"):
        md.verify(path)

"""Clients of rounded tables: certified again, smaller, and drawn from in Node as from the rounded masses in Python."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
import xarray as xr
from fixtures import position_mechanisms as made_once
from fixtures.clients import DRAWN, NODE, Stream, mechanism, put_together, run, taken_apart
from fixtures.rows import few_by_default

import mechdesign as md
from mechdesign.errors import InputError, UnsuitableError
from mechdesign.web import rounded as rounding
from mechdesign.web import write_client
from mechdesign.web.rounded import round_mechanism

NAMES = ("town", "plane", "apart")


@cache
def source_of(name: str) -> xr.Dataset:
    return made_once.position_mechanism(name) if name == "plane" else mechanism(name)


@pytest.mark.parametrize(("name", "bits"), few_by_default(product(NAMES, [32, 24]), ("plane", 24)))
def test_rounded_tables_are_certified_at_the_same_claim(name, bits) -> None:
    source = source_of(name)
    found = round_mechanism(source, bits)
    mass = found.mechanism["mass"].values
    assert md.verify(found.mechanism).certified
    assert found.mechanism.attrs["claim"] == source.attrs["claim"]
    assert not (mass % np.uint64(2 ** (62 - bits))).any()
    assert (mass.astype(object).sum(axis=1) == 2**62).all()
    assert found.mechanism.attrs["sha256"] != source.attrs["sha256"]
    # The loss that is said, by another route than the figure of the file.
    before, after = (md.utility.mechanism_loss(each) for each in (source, found.mechanism))
    assert (found.before, found.after) == (before, after)
    assert abs(after / before - 1) < 0.02
    assert f"rounded to {bits} bits" in found.sentence()


@pytest.mark.skipif(NODE is None, reason="needs Node: the client is JavaScript")
@pytest.mark.parametrize(("name", "bits"), few_by_default([("town", 24), ("apart", 32)], ("town", 24)))
@pytest.mark.obligation("client-draws")
def test_reports_are_those_of_the_rounded_masses(tmp_path, name, bits, monkeypatch) -> None:
    stream, count = Stream(seed=4, size=8 * 300), 300
    folder = write_client(source_of(name), tmp_path / "web", bits=bits)
    (tmp_path / "bits").write_bytes(stream.content)
    script = f"""
      import {{ readFileSync }} from "node:fs";
      import * as all from "./web/report.mjs";
      const table = new Uint8Array(readFileSync("./web/report.bin"));
      const bits = new Uint8Array(readFileSync("bits"));
      {DRAWN}
      const client = await all.openClient({{ table, storage: all.memoryStorage() }});
      const shares = [...client.probabilities(1)];
      console.log(JSON.stringify([await drawn(all, table, bits, {count}), shares, client.about.mechanism]));
    """
    reports, shares, name_of_table = run(folder, script)
    table = round_mechanism(source_of(name), bits).mechanism
    monkeypatch.setattr("mechdesign.mechanism.rows.source", stream)
    drawn = md.Sampler(table)
    cells = np.arange(count) % table.sizes["secret"]
    assert reports == [int(drawn.report(int(cell), scan="row")) for cell in cells]
    assert shares == (table["mass"].values[1] / 2.0**62).tolist()
    assert name_of_table == table.attrs["sha256"]


def test_fewer_bits_make_a_smaller_file(tmp_path) -> None:
    sizes = [
        len((write_client(source_of("town"), tmp_path / str(bits), bits=bits) / "report.bin").read_bytes())
        for bits in (None, 24)
    ]
    assert sizes[1] < 0.48 * sizes[0]


def test_command_says_loss_and_size_before_it_writes(tmp_path, run) -> None:
    file = md.save(source_of("town"), tmp_path / "town.nc")
    code, _, err = run("export", file, "-o", tmp_path / "web", "--bits", 24)
    assert code == 0
    assert err.index("rounded to 24 bits and certified again") < err.index("an app loads") < err.index("wrote")
    code, _, err = run("export", file, "-o", tmp_path / "town.csv", "--bits", 24)
    assert (code, "does not apply" in err) == (2, True)
    code, _, err = run("export", file, "-o", tmp_path / "other", "--bits", 16)
    assert (code, "use 32 or 24" in err) == (2, True)
    assert not (tmp_path / "other").exists()


def test_large_csv_names_rows_and_parquet(tmp_path, run, monkeypatch) -> None:
    file = md.save(source_of("plane"), tmp_path / "plane.nc")
    assert "--rows" not in run("export", file, "-o", tmp_path / "small.csv")[2]
    monkeypatch.setattr("mechdesign.cli.export.LARGE_CSV", 1000)
    err = run("export", file, "-o", tmp_path / "large.csv")[2]
    assert "--rows FIRST:END" in err
    assert ".parquet" in err
    assert "--rows" not in run("export", file, "-o", tmp_path / "part.csv", "--rows", "0:2")[2]


@pytest.mark.parametrize("name", few_by_default(["factored", "columns"], "factored"))
def test_factors_are_not_rounded(tmp_path, name) -> None:
    with pytest.raises(InputError, match="tables alone"):
        write_client(mechanism(name), tmp_path / "web", bits=24)
    assert not list(tmp_path.iterdir())


def test_a_table_that_needs_more_bits_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(rounding, "_MOST_POWER", -23)
    with pytest.raises(UnsuitableError, match="too few bits"):
        round_mechanism(source_of("town"), 24)


def test_a_rounded_mass_that_breaks_the_claim_is_not_taken(monkeypatch) -> None:
    """Without mixing, 24 bits break the claim of a table of the exponential mechanism at its limit."""
    monkeypatch.setattr(rounding, "_is_private", lambda mass, file: True)
    with pytest.raises(UnsuitableError):
        round_mechanism(source_of("town"), 24)


@pytest.mark.skipif(NODE is None, reason="needs Node: the client is JavaScript")
def test_hostile_rounded_tables_are_refused(tmp_path) -> None:
    folder = write_client(source_of("town"), tmp_path / "web", bits=24)
    header, body = taken_apart((folder / "report.bin").read_bytes())
    n = 225
    start = len(body) - 4 * n * n  # of the masses; the order is before them
    order, mass = bytearray(body), bytearray(body)
    order[start - 4 * n] = order[start - 4 * n + 1]
    mass[start] ^= 1
    tables = [(header, order), (header, mass), (header | {"bits": 16}, body), (header, body)]
    for k, (head, content) in enumerate(tables):
        (tmp_path / f"{k}.bin").write_bytes(put_together(head, bytes(content)))
    script = """
      import { readFileSync } from "node:fs";
      import { openClient, memoryStorage } from "./web/report.mjs";
      const opened = (k) => openClient({ table: new Uint8Array(readFileSync(`${k}.bin`)), storage: memoryStorage() });
      const outcome = (k) => opened(k).then(() => "opened", (error) => error.code);
      console.log(JSON.stringify(await Promise.all([0, 1, 2, 3].map(outcome))));
    """
    assert run(folder, script) == ["table"] * 3 + ["opened"]

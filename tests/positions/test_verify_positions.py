"""The stand-alone verifier on positions: it proves exports of the package, and refuses altered ones."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from fixtures.export_mechanisms import joined_text, split_text
from fixtures.integer_oracles import reference_breaches
from fixtures.position_mechanisms import SIDES, domain_of, position_mechanism
from fixtures.rows import few_by_default

import mechdesign as md
from mechdesign.positions.cones import integer_levels
from mechdesign.positions.patches import Patches
from mechdesign.verification import verify_table

SUFFIXES = pytest.mark.parametrize("suffix", ["csv", "json"])


@cache
def text_of(name: str) -> str:
    """The CSV export of a mechanism, as one text."""
    with tempfile.TemporaryDirectory() as folder:
        return joined_text(md.export(position_mechanism(name), Path(folder) / "t.csv"))


@SUFFIXES
@pytest.mark.parametrize("name", few_by_default(SIDES, "holes", "quarters", "land"))
def test_every_position_table_is_proved(tmp_path, capsys, name, suffix):
    path = md.export(position_mechanism(name), tmp_path / f"t.{suffix}", with_verifier=True)
    assert verify_table.main([str(path)]) == 0
    first, *_, last = capsys.readouterr().out.splitlines()
    cells, unit = position_mechanism(name).sizes["secret"], domain_of(name).unit
    assert f"all positions x, x' in the {cells} cells, {SIDES[name]!r} {unit} wide, of a " in first
    assert last.startswith("proved:   every gradient is within the levels")
    more_files = {"t.csv-metadata.json"} if suffix == "csv" else set()
    assert {entry.name for entry in tmp_path.iterdir()} == {path.name, "verify_table.py", *more_files}


def test_file_alone_proves_position_table(tmp_path):
    path = md.export(position_mechanism("square"), tmp_path / "t.json", with_verifier=True)
    command = [sys.executable, "-I", "-S", "verify_table.py", path.name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")


def replace_once(text, old, new):
    assert old in text
    return text.replace(old, new, 1)


def change_claim(text, part, **changes):
    """A CSV export with another claim."""
    line = next(line for line in text.splitlines() if line.startswith("# claim: "))
    claim = json.loads(line.removeprefix("# claim: "))
    changed = claim[part]["metric"] if part == "positions" else claim[part]
    changed |= changes
    return replace_once(text, line, f"# claim: {json.dumps(claim)}")


CHANGES = {
    "another row": lambda t: replace_once(t, "# patch: [0, 0, 1,", "# patch: [0, 1, 1,"),
    "another unit": lambda t: change_claim(t, "domain", unit="m"),
    "narrower": lambda t: change_claim(t, "domain", cell=[1.0, 1.0]),
    "wide": lambda t: change_claim(t, "domain", cell=[2.0, 4.0]),
    "lower": lambda t: change_claim(t, "positions", multiplier=0.5),
    "another metric": lambda t: change_claim(t, "positions", kind="discrete", epsilon=9.0),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.obligation("exported-table")
def test_altered_position_table_is_refused(tmp_path, capsys, change):
    path = split_text(CHANGES[change](text_of("holes")), tmp_path / "t.csv")
    assert verify_table.main([str(path)]) == 1
    assert "refused:" in capsys.readouterr().out


def test_unproved_levels_and_masses_are_refused(tmp_path):
    table = verify_table.read(str(md.export(position_mechanism("levels"), tmp_path / "t.json")))
    assert verify_table.check_positions(table, table.header["claim"]) == []
    rows = [list(row) for row in table.rows]
    rows[7][7] += rows[7][6] // 2
    rows[7][6] -= rows[7][6] // 2
    (fault,) = verify_table.check_positions(table._replace(rows=rows), table.header["claim"])
    assert "too steep" in fault
    rows[7][6] += 1
    sums = [sum(row) for row in rows]
    (fault,) = verify_table.check_positions(table._replace(rows=rows, sums=sums), table.header["claim"])
    assert "rows that sum to 2^62" in fault
    patches = [list(patch) for patch in table.header["patch"]]
    patches[3][10] = (9.0).hex()
    (fault,) = verify_table.check_positions(
        table._replace(header=table.header | {"patch": patches}), table.header["claim"]
    )
    assert "above that of the claim about positions" in fault


def test_text_rows_are_refused(tmp_path, capsys):
    path = split_text(replace_once(text_of("square"), "# patch: [0, 0,", '# patch: ["0", 0,'), tmp_path / "t.csv")
    assert verify_table.main([str(path)]) == 2
    assert "error:" in capsys.readouterr().out


BEYOND = {  # numbers of a claim that no level, or no cell, has: no table, or refused
    "a level of 1e308": (("positions", {"epsilon": 1e308}), 2),
    "a multiple of 1e200": (("positions", {"multiplier": 1e200}), 2),
    "cells of 1e-320": (("domain", {"cell": [1e-320, 1e-320]}), 1),
    "cells of 0": (("domain", {"cell": [0, 0]}), 1),
    "cells of 1e308": (("domain", {"cell": [1e308, 1e308]}), 1),
    "40 digits of cells": (("domain", {"shape": [10**39, 1]}), 1),
}


@pytest.mark.parametrize("name", BEYOND)
def test_numbers_beyond_double_are_refused(tmp_path, capsys, name):
    (part, changes), code = BEYOND[name]
    path = split_text(change_claim(text_of("holes"), part, **changes), tmp_path / "t.csv")
    assert verify_table.main([str(path)]) == code
    assert capsys.readouterr().out.splitlines()[-1].startswith({1: "refused:", 2: "error:"}[code])


def test_table_without_patches_has_no_claim(tmp_path, capsys):
    path = md.export(position_mechanism("square"), tmp_path / "t.json")
    text = re.sub(r'"patch": \[.*?\]\],\n', "", path.read_text(), flags=re.DOTALL)
    assert text != path.read_text()
    split_text(text, path)
    assert verify_table.main([str(path)]) == 2
    assert capsys.readouterr().out.splitlines()[-1].startswith("error:")


PATCHES = {
    "no hexadecimal float": lambda patch: [*patch[:-1], "zz"],
    "no text": lambda patch: [*patch[:-1], ""],
    "too large a float": lambda patch: [*patch[:-1], "0x1p5000"],
    "a number for a level": lambda patch: [*patch[:-1], 0.5],
    "a text for a row": lambda patch: ["0", *patch[1:]],
    "five levels": lambda patch: [*patch, patch[-1]],
    "sixteen in one cell alone": lambda patch: [*patch, *patch[9:] * 3],
    "nothing": lambda patch: [],
    "no list": lambda patch: 3,
}


@pytest.mark.parametrize("other", PATCHES)
def test_invalid_patches_are_refused(tmp_path, capsys, other):
    text = text_of("levels")
    line = next(line for line in text.splitlines() if line.startswith("# patch: "))
    patch = PATCHES[other](json.loads(line.removeprefix("# patch: ")))
    path = split_text(replace_once(text, line, f"# patch: {json.dumps(patch)}"), tmp_path / "t.csv")
    assert verify_table.main([str(path)]) == 2
    assert capsys.readouterr().out.splitlines()[-1].startswith("error:")


@pytest.mark.parametrize("count", [1, 4, 16])
def test_pairs_match_oracle(count):
    """It may prove more: at one level it takes coefficients of degree 3 too, which lie closer to the gradient."""
    rng, differing = np.random.default_rng(count), 0
    total = 0
    for _ in range(60):
        z = 10 ** rng.uniform(-1, 0)
        tilt = rng.normal(size=2)
        tilt *= z * rng.uniform(0.7, 1.1) / np.hypot(*tilt)
        steps = np.array([[i, j] for i in (-1, 0, 1) for j in (-1, 0, 1)])
        mass = (10**9 * np.exp(steps @ tilt + 0.1 * z * rng.normal(size=9))).astype(np.uint64)[:, None]
        levels = np.full((1, 4), z) if count == 1 else z * (1 + 0.2 * rng.random((1, count)))
        found = Patches(around=np.arange(9)[None], corner_level=levels, side=1.0)
        pairs = verify_table.steep_pairs(mass.tolist(), found.around.tolist(), levels.tolist(), 1.0)
        counted = reference_breaches(mass, found)
        assert len(pairs) <= counted
        differing += len(pairs) < counted
        total += counted
        assert integer_levels(levels, 1.0).shape == levels.shape
    assert differing <= (3 if count == 1 else 0)
    assert 10 < total < 50


@pytest.mark.obligation("exported-table")
def test_nine_conditions_miss_no_violation(monkeypatch):
    """Rough patches, of which one cone alone may be too steep: the same pairs as where degree 3 decides all of them."""
    rng = np.random.default_rng(3)
    patches = [list(range(9))]
    given = []
    for count in (1, 4, 16) * 2:
        z = 10 ** rng.uniform(-0.7, 0)
        levels = np.full((1, 4), z) if count == 1 else z * (1 + 0.2 * rng.random((1, count)))
        mass = 10**9 * np.exp(z * rng.uniform(0.2, 0.6, 150) * rng.normal(size=(9, 150)))
        given.append((mass.astype(np.uint64).tolist(), patches, levels.tolist(), 1.0))
    passed = [verify_table.steep_pairs(*arguments) for arguments in given]
    assert sum(map(len, passed)) > 100
    monkeypatch.setattr(verify_table, "steep_reports", lambda lists, level: range(len(lists[0])))
    assert [verify_table.steep_pairs(*arguments) for arguments in given] == passed


STEEP = {  # masses of nine rows, in millions, and a level of the first quarter that its gradient exceeds at one place
    (0, 3, 1, 4): ((3, 476, 13, 481, 474, 116, 78, 89, 1000), 0.555),
    (1, 4, 2, 5): ((20, 1, 1, 1000, 46, 1, 1, 1, 2), 3.42),
    (3, 6, 4, 7): ((1000, 37, 189, 1, 11, 425, 1, 1, 70), 3.7),
    (4, 7, 5, 8): ((1, 1000, 168, 920, 1, 1, 4, 1, 1), 2.47),
    (4, 7, 1, 5, 3): ((1323, 2003, 20, 619, 756, 2642, 1870, 20, 1977), 0.9),
    (1, 4, 2, 5, 0, 3): ((410, 688, 33, 489, 281, 1000, 763, 667, 567), 0.471),
    (4, 7, 5, 8, 3, 6): ((404, 87, 1000, 7, 101, 347, 354, 934, 416), 1.68),
    (3, 4, 6, 7, 0, 1): ((746, 151, 1000, 1, 2, 312, 23, 215, 721), 2.68),
    (4, 5, 7, 8, 1, 2): ((2, 1, 1, 3, 1, 1, 4, 48, 1000), 14.5),
}


@pytest.mark.parametrize("place", STEEP)
def test_steep_gradient_in_quarter_is_found(monkeypatch, place):
    """At a corner, the node or the middle of an edge alone; the other quarters may be as steep as they are."""
    (millions, level), rows = STEEP[place], [list(range(9))]
    masses = [[k * 10**6] for k in millions]
    assert set(verify_table.CONES) == set(STEEP)
    for given, broken in ((level, [(0, 0)]), (3 * level, [])):
        assert verify_table.steep_pairs(masses, rows, [[given] * 4 + [1e4] * 12], 1.0) == broken
    monkeypatch.setattr(verify_table, "CONES", [other for other in STEEP if other != place])
    assert verify_table.steep_pairs(masses, rows, [[level] * 4 + [1e4] * 12], 1.0) == []


def test_four_levels_equal_quarter_levels():
    """Levels at the corners of a cell, against the same ones at the corners of its quarters, between them by halves."""
    a, b, c, d = levels = [4, 20, 36, 84]
    rows = [a, (a + b) // 2, b], [(a + c) // 2, sum(levels) // 4, (b + d) // 2], [c, (c + d) // 2, d]
    quarters = [rows[i + k][j + m] for i in (0, 1) for j in (0, 1) for k in (0, 1) for m in (0, 1)]
    assert verify_table.corner_levels(levels) == verify_table.corner_levels(quarters)

"""The verifier of positions that is handed over: it proves what the package made, and refuses what was altered."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from exported import made, resealed
from placed import SIDES, placed

import mechdesign as md
from mechdesign.handover import verify_positions, verify_table
from mechdesign.mechanism.positions.cones import reference_breaches, whole_levels
from mechdesign.mechanism.positions.patches import Patches

SUFFIXES = pytest.mark.parametrize("suffix", ["csv", "json"])


@SUFFIXES
@pytest.mark.parametrize("name", SIDES)
def test_every_table_with_positions_is_proved(tmp_path, capsys, name, suffix):
    path = md.export(placed(name), tmp_path / f"t.{suffix}", with_verifier=True)
    assert verify_positions.main([str(path)]) == 0
    said = capsys.readouterr().out
    assert placed(name).attrs["position_claim"] in said
    assert said.splitlines()[-1].startswith("proved:")
    assert verify_table.main([str(path)]) == 0
    assert "verify_positions.py proves or refuses" in capsys.readouterr().out
    found = {entry.name for entry in tmp_path.iterdir()}
    assert found == {path.name, "verify_table.py", "verify_positions.py"}


def test_the_two_files_alone_prove_a_table(tmp_path):
    path = md.export(placed("square"), tmp_path / "t.json", with_verifier=True)
    command = [sys.executable, "-I", "-S", "verify_positions.py", path.name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")


def altered(text, old, new):
    assert old in text
    return text.replace(old, new, 1)


CHANGES = {
    "another row": lambda t: altered(t, "# patch: [0, 0, 1,", "# patch: [0, 1, 1,"),
    "2^-15": lambda t: altered(t, "2^-16 of a cell; drawn", "2^-15 of a cell; drawn"),
    "rounding": lambda t: altered(t, " and r = ", " and r = 0.0"),
    "another unit": lambda t: altered(t, "cells, 2.0 km wide", "cells, 2.0 m wide"),
    "narrower": lambda t: altered(t, "cells, 2.0 km wide", "cells, 1.0 km wide"),
    "straight lines": lambda t: altered(
        t, "the length of the shortest path inside the cells", "the Euclidean distance"
    ),
    "less": lambda t: altered(t, "where D is the length", "where D is 0.5 times the length"),
    "more cells": lambda t: altered(t, "x' in the 20 cells", "x' in the 21 cells"),
    "another list": lambda t: altered(t, "gradient (list ", "gradient (list 0"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_altered_table_is_refused(tmp_path, capsys, change):
    path = md.export(placed("holes"), tmp_path / "t.csv")
    path.write_bytes(resealed(CHANGES[change](path.read_text()).encode()))
    assert verify_positions.main([str(path)]) == 1
    assert "refused:" in capsys.readouterr().out


def test_levels_and_masses_that_do_not_prove_the_claim_are_refused(tmp_path):
    table = verify_positions.tables.read(str(md.export(placed("levels"), tmp_path / "t.json")))
    assert verify_positions.position_faults(table) == []
    rows = [list(row) for row in table.rows]
    rows[7][7] += rows[7][6] // 2
    rows[7][6] -= rows[7][6] // 2
    (fault,) = verify_positions.position_faults(table._replace(rows=rows))
    assert "too steep" in fault
    assert verify_positions.row_faults(table) == []
    assert verify_positions.row_faults(table._replace(rows=rows)) == []
    rows[7][6] += 1
    (fault,) = verify_positions.row_faults(table._replace(rows=rows))
    assert "do not sum to 2^62" in fault
    sums = [sum(row) for row in rows]
    assert verify_positions.row_faults(table._replace(rows=rows, sums=sums)) == [fault]
    patches = [list(patch) for patch in table.told["patch"]]
    patches[3][10] = (float.fromhex(patches[3][10]) * 1.01).hex()
    (fault,) = verify_positions.position_faults(table._replace(told=table.told | {"patch": patches}))
    assert "levels at its corners" in fault


def test_what_makes_no_claim_about_positions_has_its_own_exit_code(tmp_path, capsys):
    path = md.export(made("plane"), tmp_path / "t.csv")
    assert verify_positions.main([str(path)]) == 2
    assert verify_positions.main([]) == 2
    assert verify_positions.main([str(tmp_path / "absent.csv")]) == 2
    text = md.export(placed("square"), tmp_path / "s.csv").read_text()
    path.write_bytes(resealed(altered(text, "# patch: [0, 0,", '# patch: ["0", 0,').encode()))
    assert verify_positions.main([str(path)]) == 2
    assert "no table" in capsys.readouterr().out


def test_levels_that_go_down_are_refused(tmp_path, capsys):
    path = md.export(placed("levels"), tmp_path / "t.csv")
    line = next(line for line in path.read_text().splitlines() if line.startswith("# position_claim: "))
    least, most = re.search(r"eps \(([0-9.e-]+) to ([0-9.e-]+) nats", line).groups()
    for other, code in ((least, 0), (most, 0), (f"{float(most) * (1 + 1e-6):.9g}", 1), ("9", 1)):
        changed = line.replace(f"eps ({least} to ", f"eps ({other} to ")
        path.write_bytes(resealed(path.read_text().replace(line, changed).encode()))
        assert verify_positions.main([str(path)]) == code
        path = md.export(placed("levels"), tmp_path / "t.csv", overwrite=True)
    capsys.readouterr()


BEYOND = {  # numbers of a sentence that no double, or no table, has
    "a level of 1e999": (r"([0-9.e-]+) nats per", "1e999", 1),
    "a level of 1e400": (r"([0-9.e-]+) nats per", "1e400", 1),
    "a multiple of 1e999": (r"where D is ()the", "1e999 times ", 1),
    "cells of 1e-320": (r"cells, ([0-9.e-]+) km wide", "1e-320", 1),
    "cells of 1e-999": (r"cells, ([0-9.e-]+) km wide", "1e-999", 1),
    "cells of 1e999": (r"cells, ([0-9.e-]+) km wide", "1e999", 1),
    "5,000 digits of cells": (r"in the ([0-9]+) cells", "9" * 5000, 1),
    "a rounding of 1e-999": (r"r = ([0-9.e-]+)", "1e-999", 1),
}


@pytest.mark.parametrize("name", BEYOND)
def test_numbers_beyond_a_double_are_refused_in_one_sentence(tmp_path, capsys, name):
    pattern, number, code = BEYOND[name]
    path = md.export(placed("holes"), tmp_path / "t.csv")
    line = next(line for line in path.read_text().splitlines() if line.startswith("# position_claim: "))
    at = re.search(pattern, line)
    changed = line[: at.start(1)] + number + line[at.end(1) :]
    path.write_bytes(resealed(path.read_text().replace(line, changed).encode()))
    assert verify_positions.main([str(path)]) == code
    assert capsys.readouterr().out.count("refused:") == 1


def test_a_table_without_patches_is_none(tmp_path, capsys):
    path = md.export(placed("square"), tmp_path / "t.json")
    text = re.sub(r'"patch": \[.*?\]\],\n', "", path.read_text(), flags=re.DOTALL)
    assert text != path.read_text()
    path.write_bytes(resealed(text.encode()))
    assert verify_positions.main([str(path)]) == 2
    assert "a patch is nine whole numbers" in capsys.readouterr().out


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
def test_patches_that_are_none_are_no_table(tmp_path, capsys, other):
    path = md.export(placed("levels"), tmp_path / "t.csv")
    text = path.read_text()
    line = next(line for line in text.splitlines() if line.startswith("# patch: "))
    patch = PATCHES[other](json.loads(line.removeprefix("# patch: ")))
    path.write_bytes(resealed(altered(text, line, f"# patch: {json.dumps(patch)}").encode()))
    assert verify_positions.main([str(path)]) == 2
    assert "a patch is nine whole numbers" in capsys.readouterr().out


@pytest.mark.parametrize("count", [1, 4, 16])
def test_its_pairs_are_those_of_the_oracle(count):
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
        pairs = verify_positions.steep_pairs(mass.tolist(), found.around.tolist(), levels.tolist(), 1.0)
        counted = reference_breaches(mass, found)
        assert len(pairs) <= counted
        differing += len(pairs) < counted
        total += counted
        assert whole_levels(levels, 1.0).shape == levels.shape
    assert differing <= (3 if count == 1 else 0)
    assert 10 < total < 50

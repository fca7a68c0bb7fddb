"""Samplers in Python, JavaScript and C against an auditor that sees only reports: none reveals more than its claim.

Distances are written here by hand. The auditor errs once in 10^9 audits, so a private sampler does not fail by chance.
Its power shows on a sampler at twice its claim, and on tight tables just above theirs.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from fixtures.clients import NODE, modules, run
from fixtures.random_device_maps import SAMPLER, content, flat
from reference.auditor import bounds, refuted_epsilon

import mechdesign as md
from mechdesign.web import write_client

CC = shutil.which("cc")
FEW, MANY = 4_000, 200_000  # draws of each of two secrets
LEVEL = 0.9  # nats between neighbours on the line
CELLS = 5
POWER = 0.55  # of the claim, on tables whose constraints are tight
IN_NODE = """
import { readFileSync } from "node:fs";
import { memoryStorage, openClient } from "./web/report.mjs";
const table = new Uint8Array(readFileSync("web/report.bin"));
let day = 0;
const opened = () => openClient({ table, storage: memoryStorage(), now: () => (day += 1e8), answerAfter: 0 });
const found = [];
let client;
for (const cell of process.argv.slice(3).map(Number)) {
  found.push([]);
  for (let k = 0; k < Number(process.argv[2]); k++) {
    if (k % 100 === 0) client = await opened(); // the paid amount is read again for every report
    found.at(-1).push((await client.reportCell(cell)).report.number);
    await client.forget();
  }
}
console.log(JSON.stringify(found));
"""


@cache
def line(level: float = LEVEL) -> Any:
    """The optimum on a line of cells, whose constraints are tight."""
    return md.solve(md.Optimal(md.load_problem("line", cells=CELLS, epsilon=level)))


def python(mechanism: Any) -> Callable[[Path, int, int, int], list[list[int]]]:
    """Draws with bits of the system."""

    def draws(folder: Path, count: int, *secrets: int) -> list[list[int]]:
        return [md.sample(mechanism, [secret], size=count).values.ravel().tolist() for secret in secrets]

    return draws


def javascript(folder: Path, count: int, *secrets: int) -> list[list[int]]:
    if NODE is None:
        pytest.skip("needs Node: the client is JavaScript")
    return run(write_client(line(), folder / "web"), IN_NODE, *map(str, (count, *secrets)))


def javascript_map(folder: Path, count: int, *secrets: int) -> list[list[int]]:
    if NODE is None:
        pytest.skip("needs Node: the client is JavaScript")
    return run(modules(folder / "web", content("certified")), IN_NODE, *map(str, (count, *secrets)))


def c99_map(folder: Path, count: int, *secrets: int) -> list[list[int]]:
    if CC is None:
        pytest.skip("needs a C compiler, as cc: the sampler is C99")
    (folder / "region.map").write_bytes(flat("certified"))
    (folder / "sample_region.c").write_bytes(SAMPLER.read_bytes())
    command = [CC, "-std=c99", "-O2", "-DREGION_MAIN", "sample_region.c", "-o", "program"]
    subprocess.run(command, cwd=folder, check=True)
    ended = [
        subprocess.run(
            ["./program", "region.map", str(secret), str(count)], cwd=folder, capture_output=True, text=True, check=True
        )
        for secret in secrets
    ]
    return [[int(report) for report in one.stdout.split()] for one in ended]


# A sampler, two secrets, their distance in nats, and the least that the auditor should refute of it. On the map, with
# seven cells in a row, cells 7 apart are neighbours at half a nat; its kernel spends half of the lengths.
SAMPLERS = {
    "Python, a table": (python(line()), (0, 4), 4 * LEVEL, 0.3),
    "Python, neighbours": (python(line()), (1, 2), LEVEL, POWER),
    "JavaScript, a table": (javascript, (1, 2), LEVEL, POWER),
    "JavaScript, a map": (javascript_map, (10, 38), 2.0, 0.1),
    "C99, a map": (c99_map, (10, 38), 2.0, 0.1),
}


@pytest.mark.parametrize(
    ("name", "count"),
    [
        pytest.param(name, count, marks=[pytest.mark.exhaustive] * (count == MANY or name.startswith("JavaScript")))
        for name in SAMPLERS
        for count in (FEW, MANY)
    ],
)
def test_no_sampler_is_refuted(name: str, count: int, tmp_path: Path, record_property) -> None:
    draws, secrets, distance, least = SAMPLERS[name]
    first, second = draws(tmp_path, count, *secrets)
    assert len(first) == len(second) == count
    found = max(refuted_epsilon(first, second, distance), refuted_epsilon(second, first, distance))
    record_property("epsilon refuted", found)
    print(f"{name}: epsilon up to {found:.3f} of 1 claimed, {count} draws of each secret")
    assert least < found <= 1


def test_a_sampler_at_twice_its_claim_is_refuted(tmp_path: Path) -> None:
    first, second = python(line(2 * LEVEL))(tmp_path, FEW, 1, 2)
    assert refuted_epsilon(first, second, LEVEL) > 1


def test_bounds_of_a_chance_are_those_of_the_binomial() -> None:
    """Chernoff's are wider than Clopper and Pearson's (1934), and not by much."""
    scipy = pytest.importorskip("scipy.stats")
    for count, draws, doubt in ((0, 50, 1e-6), (3, 100, 1e-3), (500, 1000, 1e-9), (1000, 1000, 1e-9)):
        low, high = bounds(count, draws, doubt)
        least = scipy.beta.ppf(doubt, count, draws - count + 1) if count else 0.0
        most = scipy.beta.ppf(1 - doubt, count + 1, draws - count) if count < draws else 1.0
        assert least - 0.05 < low <= least
        assert most <= high < most + 0.05

"""Mutants of tables, judged by the checker of the proofs and by verify_table.py: the same verdict, or its reason.

Both judge one `TableFile`. The script also compares the table with its metric and geometry, and the checker proves the
edges or distances that the file states. Faults of that comparison are therefore left out (`faults_of_integers`).
Lengths of edges by distance are rounded down by 2^-44, which the checker does not do: `judge` tries longer edges.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random

import pytest
from fixtures.export_mechanisms import exportable
from fixtures.position_mechanisms import position_mechanism
from fixtures.proof_checker import run_checker
from fixtures.tight_limits import limit_optimum

import mechdesign as md
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.output.proof_file import claim_tokens, plane_of, table_of
from mechdesign.output.table_formats import Content
from mechdesign.verification import verify_table
from mechdesign.verification.verify_table import Edge, TableFile

pytestmark = pytest.mark.obligation("machine-checked")
LONGER = 1 + 2.0**-43  # of lengths by distance, which are rounded down by 2^-44 and by doubles
MAKERS = {
    "optimum": lambda: md.solve(md.Optimal(problem=md.load_problem("flat", cells=3))),
    "by distance": lambda: md.solve(md.Optimal(problem=md.load_problem("euclidean", cells=3))),
    "line": lambda: exportable("line"),
    "discrete": lambda: exportable("discrete"),
    "levels": lambda: exportable("levels"),
    "graph": lambda: exportable("graph"),
    "roads": lambda: exportable("roads"),
    "discs": lambda: limit_optimum("anywhere"),
    "discs at places": lambda: limit_optimum("places"),
    "by area": lambda: limit_optimum("area"),
    "positions": lambda: position_mechanism("land"),
    "positions of levels": lambda: position_mechanism("quarters"),
}
FEW, MANY = 5, 840  # mutants of each of 12 kinds: 10,080 in all


@cache
def original(kind: str) -> TableFile:
    stored = MechanismFile.read(MAKERS[kind]())
    table = table_of(Content(stored=stored, rows=range(stored.domain.size)))
    # As a reader of JSON sees it: numbers and lists alone.
    return table._replace(header=json.loads(json.dumps(table.header)))


def step(random: Random, most: int = 61) -> int:
    """A number of units, as often small as large."""
    return 1 << random.randrange(most)


def shift_mass(table: TableFile, random: Random) -> None:
    """Units of one report moved to another: the sum of the row stays."""
    row = random.choice(table.rows)
    y, z = random.sample(range(len(row)), 2)
    units = min(step(random), row[y] - random.randrange(2))
    row[y], row[z] = row[y] - units, row[z] + units


def break_row(table: TableFile, random: Random) -> None:
    row = random.choice(table.rows)
    row[random.randrange(len(row))] += random.choice((-1, 1)) * step(random, 10)


def change_length(table: TableFile, random: Random) -> None:
    """Another length of an edge; where distances are the claim, of all edges with the level."""
    factor = 1 + random.choice((-1, 1)) * 2.0 ** -random.randrange(2, 53)
    at = range(len(table.edges)) if plane_of(table) else [random.randrange(len(table.edges))]
    if plane_of(table):
        metric = table.header["claim"]["metric"]
        metric["multiplier"] = metric["multiplier"] * factor
    for e in at:
        table.edges[e] = table.edges[e]._replace(nats=table.edges[e].nats * factor)


def drop_edge(table: TableFile, random: Random) -> None:
    if plane_of(table) is None and len(table.edges) > 1:
        table.edges.pop(random.randrange(len(table.edges)))


def change_limit(table: TableFile, random: Random) -> None:
    for cap in table.header["claim"].get("caps", []):
        place = random.randrange(len(cap["people"]))
        if random.random() < 0.5:
            cap["people"][place] = max(0, cap["people"][place] + random.choice((-1, 1)) * random.randrange(1, 4))
        else:
            # Numbers of a limit stay below 2^16.
            times = 1000 if cap["share"][1] < 60 else 1
            over, under = (times * part for part in cap["share"])
            cap["share"] = [min(under - 1, max(1, over + random.choice((-1, 1)) * step(random, 9))), under]


def change_level(table: TableFile, random: Random) -> None:
    for patch in table.header.get("patch", [])[:1]:
        patch = random.choice(table.header["patch"])
        k = random.randrange(9, len(patch))
        factor = 1 + random.choice((-1, 1)) * 2.0 ** -random.randrange(2, 53)
        patch[k] = (float.fromhex(patch[k]) * factor).hex()


CHANGES = (shift_mass, shift_mass, break_row, change_length, drop_edge, change_limit, change_level)


def mutant(kind: str, number: int) -> TableFile:
    """Mutant number `number`, always the same: one to three changes."""
    random, table = Random(f"{kind} {number}"), copy.deepcopy(original(kind))
    for _ in range(random.choice((1, 1, 2, 3))):
        random.choice(CHANGES)(table, random)
    return table


def faults_of_integers(table: TableFile) -> list[str]:
    """The faults of the script without those of the comparison with metric and geometry."""
    claim, faults = table.header["claim"], verify_table.check_rows(table, table.header["claim"])
    if claim["positions"] is not None:
        side, patches = claim["domain"]["cell"][0], table.header["patch"]
        levels = [[float.fromhex(level) for level in patch[9:]] for patch in patches]
        if verify_table.steep_pairs(table.rows, [patch[:9] for patch in patches], levels, side):
            faults.append("positions")
    faults += verify_table.check_posterior_limits(table, claim)
    return faults + (["edges"] if verify_table.breaches(table.rows, table.sums, table.edges) else [])


def judge(table: TableFile, folder: Path) -> tuple[str, bool, bool]:
    """How the two verdicts compare, that of the script, and that of the checker."""
    path = folder / "mutant.proof"
    with path.open("w") as stream:
        for tokens in (*claim_tokens(table), [0]):
            stream.write("".join(f"{token}\n" for token in tokens))
    code, _ = run_checker(path)
    assert code in (0, 1)
    script = not faults_of_integers(table)
    if script == (code == 0):
        return "same", script, code == 0
    longer = [Edge(u, v, nats * LONGER) for u, v, nats in table.edges]
    if code == 0 and plane_of(table) and not faults_of_integers(table._replace(edges=longer)):
        return "lengths rounded by 2^-44", script, True
    return "different", script, code == 0


@pytest.mark.parametrize("kind", MAKERS)
def test_originals_are_proved(kind, tmp_path):
    assert judge(original(kind), tmp_path) == ("same", True, True)


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.exhaustive)])
def test_mutants_get_the_same_verdict(kind, count, tmp_path):
    found = Counter()
    for number in range(count):
        verdict = judge(mutant(kind, number), tmp_path)
        found[verdict] += 1
        assert verdict[0] != "different", (kind, number, verdict)
    print(f"{kind}: {dict(found)}")
    # Both verdicts occur, so that each could have been wrong.
    assert {script for _, script, _ in found} == {True, False}

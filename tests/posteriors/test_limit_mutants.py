"""Mutated limits on discs before the stand-alone script, the page and the client: their statements are true.

Statements are read from the words (tests/fixtures/limit_sentences.py) and recomputed in fractions of the mutant's
integers. In tests/verification/test_mutations.py every part of a file is mutated before `verify`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import xarray as xr
from fixtures.export_mechanisms import reseal_json
from fixtures.files import honest_file
from fixtures.forged_files import rewritten
from fixtures.limit_sentences import false_limits, read_limits
from fixtures.limited_tables import LIMITS, change
from fixtures.pages import NODE, Texts, in_node, page_of
from fixtures.rows import few_by_default
from fixtures.tolerances import REORDERED

import mechdesign as md
from mechdesign.base.spreadsheets import metadata_of
from mechdesign.errors import MechdesignError
from mechdesign.evaluation.loss import position_loss
from mechdesign.verification import verify_table
from mechdesign.web.page import proof_script

pytestmark = pytest.mark.obligation("caps")

MANY = pytest.mark.parametrize("many", [40, pytest.param(20_000, marks=pytest.mark.exhaustive)])
KINDS = pytest.mark.parametrize("kind", few_by_default(LIMITS, "limit anywhere", "lift"))
BATCH = 500  # pages that Node proves at a time
PROVED = """
const all = JSON.parse(require("node:fs").readFileSync("texts.json", "utf8"));
(async () => {
  const said = [];
  for (const { packed } of all) {
    const { faults } = await proveHere(packed, {}, () => {});
    const words = await openPage(packed).then(headline).catch(() => null);
    said.push(faults.length ? null : words);
  }
  console.log(JSON.stringify(said));
})();
"""
_HEADER = (
    "claim",
    "claim",
    "unit",
    "edges",
    "secrets",
    "reports",
    "format",
    "sha256",
    "objective",
    "accuracy",
    "other",
)


class Counts:
    """How mutants end: refused, believed and true; `wrong`, those that are believed and false."""

    def __init__(self) -> None:
        self.ends: Counter[str] = Counter()
        self.wrong: list[str] = []

    def count(self, name: str, words: str | None, false: Any) -> None:
        """Count a mutant by its words, None if it was refused; false(words) yields their false statements."""
        reasons = [] if words is None else list(false(words))
        self.ends["refused" if words is None else "false" if reasons else "true"] += 1
        self.wrong += [f"{name}: {reasons[:2]}"] * bool(reasons)

    def check(self, record_property: Any) -> None:
        for end, count in self.ends.items():
            record_property(end, count)
        print(dict(self.ends))
        assert not self.wrong, "\n".join(self.wrong[:10])
        assert self.ends["true"] > 0
        assert self.ends["refused"] > 0


def mutated_table(table: dict[str, Any], random: Random) -> list[str]:
    """Change the limits of an exported table, its header, or its rows; return the changes."""
    done = []
    for _ in range(random.choice((1, 1, 1, 2))):
        way = random.choice(("limit", "limit", "limit", "header", "rows", "claim"))
        if not isinstance(table["claim"], dict):
            break
        limits = table["claim"].get("caps")
        if way == "limit" and isinstance(limits, list) and limits and isinstance(limits[0], dict):
            done.append(change(limits[0], random, exported=True))
        elif way == "rows":
            rows = table["mass"]
            u, v = random.sample(range(len(rows)), 2)
            rows[u], rows[v] = rows[v], rows[u]
            done.append("rows exchanged")
        elif way == "claim":
            values = (None, {"metric": table["claim"].get("metric")}, "2^62", [], [limits], {"cap": limits})
            table["claim"][random.choice(("caps", "positions", "denominator", "domain", "cap"))] = random.choice(values)
            done.append("claim")
        else:
            table[random.choice(_HEADER)] = random.choice((None, 0, 1, "m", "cell", [], {}, deepcopy(table["claim"])))
            done.append("header")
    return done


def words_of_script(path: Path, capsys: pytest.CaptureFixture[str]) -> str | None:
    """The output of the script for a table that it believes, else None."""
    code = verify_table.main([str(path)])
    words = capsys.readouterr().out
    return words if code == 0 else None


@MANY
@KINDS
@pytest.mark.parametrize("suffix", few_by_default([".json", ".csv"], ".json"))
def test_script_statements_on_mutants_are_true(
    kind: str, suffix: str, many: int, tmp_path: Path, capsys, record_property
) -> None:
    """The description of a CSV table is changed, and its rows are those of the file."""
    path = md.export(honest_file(kind), tmp_path / f"t{suffix}")
    beside = path if suffix == ".json" else metadata_of(path)
    genuine = json.loads(beside.read_text("ascii"))
    own = json.loads(md.export(honest_file(kind), tmp_path / "all.json").read_text("ascii"))
    counts = Counts()
    for number in range(many):
        table = deepcopy(genuine) if suffix == ".json" else genuine | {"mass": list(own["mass"])}
        table["claim"] = deepcopy(genuine["claim"])
        done = mutated_table(table, Random(f"{kind} {number}"))
        if suffix == ".csv":
            table["mass"] = own["mass"]
        beside.write_bytes(_seal({k: v for k, v in table.items() if suffix == ".json" or k != "mass"}))
        counts.count(f"{number} {done}", words_of_script(path, capsys), lambda words, t=table: false_of(words, t, own))
    counts.check(record_property)


def _seal(table: dict[str, Any]) -> bytes:
    body = json.dumps({name: value for name, value in table.items() if name != "content_sha256"})
    return reseal_json((body[:-1] + ',\n"content_sha256": "0"}\n').encode())


def false_of(words: str, table: dict[str, Any], own: dict[str, Any]) -> Any:
    """False statements in the words about an exported table."""
    points = tuple(map(tuple, table.get("secret_points", own["secret_points"])))
    mass = [list(map(int, row.split(" "))) for row in table["mass"]]
    limits = table["claim"].get("caps", [])
    people = [[limit["people"]] for limit in limits]
    return false_limits(
        read_limits(words, table["unit"]), people, points, table["claim"]["domain"].get("cell", ()), mass
    )


def mutated_page(contents: dict[str, Any], mass: np.ndarray, random: Random) -> list[str]:
    """Change the limits of a page, its attributes and figures, or masses in place; return the changes."""
    done = []
    for _ in range(random.choice((1, 1, 1, 2))):
        way = random.choice(("limit", "limit", "limit", "attribute", "rows", "figure", "constraints"))
        parameters = json.loads(contents["attrs"]["parameters"])
        limits = parameters.get("constraints")
        if way in ("limit", "constraints") and isinstance(limits, list) and limits:
            if way == "limit" and isinstance(limits[0], dict):
                done.append(change(limits[0], random, exported=False))
            else:
                parameters["constraints"] = random.choice((None, [], limits * 2, [limits], limits[0], [None]))
                done.append("constraints")
            contents["attrs"]["parameters"] = json.dumps(parameters)
        elif way == "attribute":
            name = random.choice(sorted({*contents["attrs"]} - {"parameters"}))
            contents["attrs"][name] = random.choice((0, 1.0, -1.0, 1e9, "constrained", "optimal", "", None, "table"))
            done.append(f"attribute {name}")
        elif way == "rows":
            u, v = random.sample(range(len(mass)), 2)
            mass[[u, v]] = mass[[v, u]]
            done.append("rows exchanged")
        else:
            figures = contents[random.choice(("verification", "protection", "facts"))]
            name = random.choice(sorted(figures))
            figures[name] = random.choice((None, True, False, 0, 1, 1e9, "x"))
            done.append(f"figure {name}")
    return done


@pytest.mark.skipif(NODE is None, reason="no node to run the page's program in")
@MANY
@KINDS
def test_page_statements_on_mutants_are_true(kind: str, many: int, tmp_path: Path, record_property) -> None:
    mechanism = honest_file(kind)
    honest = Texts.in_page(page_of(mechanism))
    genuine, start = json.loads(honest.contents), json.loads(honest.contents)["arrays"]["mass"]["start"]
    points = tuple(zip(*(mechanism[f"secret_{axis}"].values.tolist() for axis in "xy"), strict=True))
    counts = Counts()
    for first in range(0, many, BATCH):
        batch = []
        for number in range(first, min(first + BATCH, many)):
            contents, mass, arrays = deepcopy(genuine), mechanism["mass"].values.copy(), bytearray(honest.arrays)
            done = mutated_page(contents, mass, Random(f"{kind} {number}"))
            arrays[start : start + mass.nbytes] = mass.astype("<u8").tobytes()
            batch.append((f"{number} {done}", contents, mass, Texts.of(json.dumps(contents), bytes(arrays))))
        (tmp_path / "texts.json").write_text(json.dumps([vars(texts) for *_, texts in batch]))
        output = in_node(tmp_path, proof_script() + PROVED)
        for (name, contents, mass, _), words in zip(batch, output, strict=True):
            true_loss = position_loss(mechanism.assign(mass=(("secret", "report"), mass)))
            counts.count(
                name, words, lambda words, c=contents, m=mass, loss=true_loss: false_of_page(words, c, points, m, loss)
            )
    counts.check(record_property)


def false_of_page(words: str, contents: dict[str, Any], points: Any, mass: np.ndarray, loss: float | None) -> Any:
    """False statements in the words of a page: on its limits, and on the error at true positions."""
    attrs = contents["attrs"]
    limits = json.loads(attrs["parameters"]).get("constraints", []) if attrs["program"] == "constrained" else []
    people = [limit["people"] for limit in limits if str(limit["constraint"]).startswith("posterior")]
    domain = json.loads(attrs["domain"])
    yield from false_limits(read_limits(words, domain["unit"]), people, points, domain["cell"], mass.tolist())
    error = re.search(r"The mean distance to the true position is ([\d.,]+) cells?", words)
    if error is not None and not float(error[1].replace(",", "")) >= (loss or 0.0) * (1 - REORDERED):
        yield f"{error[0]}, which is {loss}"


@pytest.mark.parametrize("many", [100, pytest.param(20_000, marks=pytest.mark.exhaustive)])  # 40 miss a sign of lifts
@pytest.mark.parametrize("kind", few_by_default(LIMITS, "lift"))
def test_client_statements_on_mutants_are_true(kind: str, many: int, tmp_path: Path, record_property) -> None:
    """The client's words are in its README; a folder is there if and only if `verify` certifies the file."""
    mechanism, counts = honest_file(kind), Counts()
    points = tuple(zip(*(mechanism[f"secret_{axis}"].values.tolist() for axis in "xy"), strict=True))
    cell, mass = json.loads(mechanism.attrs["domain"])["cell"], mechanism["mass"].values.tolist()
    for number in range(many):
        parameters = json.loads(mechanism.attrs["parameters"])
        done = change(parameters["constraints"][0], Random(f"{kind} {number}"), exported=False)
        words = words_of_client(rewritten(mechanism, parameters=json.dumps(parameters)), tmp_path / "client")
        people = [limit.get("people") for limit in parameters["constraints"]]
        counts.count(
            f"{number} {done}",
            words,
            lambda words, p=people: false_limits(read_limits(words, "cell"), p, points, cell, mass),
        )
    counts.check(record_property)


def words_of_client(mechanism: xr.Dataset, folder: Path) -> str | None:
    """The text of the README of a client, None if nothing was packed."""
    try:
        client = md.web.write_client(mechanism, folder, overwrite=True)
    except MechdesignError:
        return None
    return " ".join((client / "README.md").read_text("utf-8").split())

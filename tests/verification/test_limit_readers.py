"""Edited limits on discs before each reader: the stand-alone script, the page in Node, and the client.

Python's reader has the same table in tests/posteriors/test_capped_files.py; the rules are those of
posteriors/limits.py.
"""

from __future__ import annotations

import contextlib
import json
import math
from copy import deepcopy
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from fixtures.export_mechanisms import reseal_json
from fixtures.forged_files import rewritten
from fixtures.limit_edits import BOTH, FILES, TABLES
from fixtures.pages import NODE, Texts, in_node, page_of, proved_in_node
from fixtures.rows import few_by_default
from fixtures.tight_limits import at_the_limit, limit_optimum, seal_masses

import mechdesign as md
from mechdesign.errors import MechdesignError
from mechdesign.posteriors.discs import disc_sets
from mechdesign.verification import verify_table
from mechdesign.web.page import proof_script

OF_CONTENT = (
    "as it was made",
    "all persons doubled",
    "persons in another order",
    "radius below a cell",
    "about places",
)
FORMS = [name for name in BOTH if name not in OF_CONTENT]  # edits that break a rule, whatever the limit
LIFT = md.posteriors.PosteriorLift
SEVERAL = md.posteriors.PosteriorCap(radius=1.2, share="4/5", people=[list(range(1, 17)), [3] * 16])


def limit_mechanism(limit: md.posteriors.PosteriorCap | md.posteriors.PosteriorLift) -> xr.Dataset:
    """The optimum under one limit on discs of a grid of sixteen cells."""
    problem = md.load_problem("flat", cells=4)
    return md.solve(md.programs.Constrained(problem, constraints=[limit]))


@cache
def lift_mechanism() -> xr.Dataset:
    return limit_mechanism(LIFT(radius=1.2, factor="5/2", people=list(range(1, 17))))


KINDS = {
    "lift": lift_mechanism,
    "by area": lambda: limit_optimum("area"),
    "about places": lambda: limit_optimum("places"),
    "two rows of people": lambda: limit_mechanism(SEVERAL),
}


def is_believed(path: Path) -> bool:
    """True if the script finds no fault in an exported table."""
    try:
        return verify_table.faults_of(verify_table.read(path)) == []
    except (verify_table.BadInput, verify_table.Refused, *verify_table.BROKEN):
        return False


def rewritten_table(table: dict[str, Any], path: Path) -> Path:
    """The path, with the object as a forger would write it, under a checksum that is right."""
    body = json.dumps({name: value for name, value in table.items() if name != "content_sha256"})
    path.write_bytes(reseal_json((body[:-1] + ',\n"content_sha256": "0"}\n').encode()))
    return path


def export_table(mechanism: xr.Dataset, folder: Path) -> dict[str, Any]:
    return json.loads(md.export(mechanism, folder / "genuine.json").read_text("ascii"))


def with_limit(mechanism: xr.Dataset, change: Any) -> dict[str, Any]:
    """The parameters of a file whose limit was edited."""
    parameters = json.loads(mechanism.attrs["parameters"])
    change(parameters["constraints"][0])
    return parameters


def test_script_judges_every_edited_limit_by_the_rules(tmp_path: Path) -> None:
    genuine = export_table(seal_masses(at_the_limit()[0]), tmp_path)
    for name, (change, expected) in TABLES.items():
        table = deepcopy(genuine)
        change(table["claim"]["caps"][0])
        assert is_believed(rewritten_table(table, tmp_path / "t.json")) == expected, name


def test_script_checks_edited_limits_of_a_csv_table(tmp_path: Path) -> None:
    path = md.export(seal_masses(at_the_limit()[0]), tmp_path / "t.csv")
    beside = tmp_path / "t.csv-metadata.json"
    genuine = json.loads(beside.read_text("ascii"))
    for name in ("as it was made", "share lower", "nobody", "a low share and a factor", "another name"):
        change, expected = TABLES[name]
        table = deepcopy(genuine)
        change(table["claim"]["caps"][0])
        rewritten_table(table, beside)
        assert is_believed(path) == expected, name


@pytest.mark.skipif(NODE is None, reason="no node to run the page's program in")
def test_page_judges_every_edited_limit_by_the_rules(tmp_path: Path) -> None:
    file = seal_masses(at_the_limit()[0])
    texts = Texts.in_page(page_of(file))
    edits = {name: with_limit(file, change) for name, (change, _) in FILES.items()}
    pages = [edit_page(texts, parameters) for parameters in edits.values()]
    outcomes = dict(zip(edits, proved_in_node(tmp_path, pages), strict=True))
    judged = {name: outcome["faults"] == [] for name, outcome in outcomes.items()}
    assert judged == {name: expected for name, (_, expected) in FILES.items()}


def edit_page(texts: Texts, parameters: dict[str, Any]) -> Texts:
    """A page whose file has these parameters."""
    contents = json.loads(texts.contents)
    contents["attrs"]["parameters"] = json.dumps(parameters)
    return Texts.of(json.dumps(contents), texts.arrays)


def test_client_packs_only_valid_limits(tmp_path: Path) -> None:
    """The client states a limit by the sentences of Python alone, and packs what `verify` certifies."""
    file = seal_masses(at_the_limit()[0])
    for number, (name, (change, expected)) in enumerate(FILES.items()):
        mutant = rewritten(file, parameters=json.dumps(with_limit(file, change)))
        folder = tmp_path / str(number)
        with contextlib.suppress(MechdesignError):
            md.web.write_client(mutant, folder)
        assert folder.exists() == expected, name


@pytest.mark.parametrize("kind", few_by_default(KINDS, "lift", "two rows of people"))
def test_limits_of_every_kind_are_refused_if_they_break_a_rule(kind: str, tmp_path: Path) -> None:
    """Of lifts, by area, about places and of two rows: in the script and the page, and the genuine one is believed."""
    file = KINDS[kind]()
    genuine, texts, pages = export_table(file, tmp_path), Texts.in_page(page_of(file)), []
    assert is_believed(tmp_path / "genuine.json")
    for name in FORMS:
        if kind == "lift" and "share" in name:  # which it has none of
            continue
        change, table = BOTH[name][0], deepcopy(genuine)
        change(table["claim"]["caps"][-1])
        assert not is_believed(rewritten_table(table, tmp_path / "t.json")), name
        pages.append(edit_page(texts, with_limit(file, change)))
    for change in LIFTS if kind == "lift" else ():
        table = deepcopy(genuine)
        table["claim"]["caps"][0]["factor"] = change
        assert not is_believed(rewritten_table(table, tmp_path / "t.json")), change
        words = "/".join(map(str, change))
        pages.append(edit_page(texts, with_limit(file, lambda limit, words=words: limit.update(factor=words))))
    if NODE is not None:
        first, *others = proved_in_node(tmp_path, [texts, *pages])
        assert first["faults"] == []
        assert all(outcome["faults"] for outcome in others)


@pytest.mark.parametrize(
    ("shape", "cell", "radius"),
    few_by_default(
        [
            *(((4, 4), 1.0, 1.2), ((3, 4), 1.0, 1.0), ((5, 4), (1.0, 0.7), 1.6), ((4, 4), 1.0, 0.4)),
            *(((4, 4), 1.0, math.sqrt(2)), ((6,), 1.0, 1.3), ((4, 4), 1.0, 2.5)),
        ],
        *(((5, 4), (1.0, 0.7), 1.6), ((4, 4), 1.0, math.sqrt(2)), ((6,), 1.0, 1.3)),
    ),
)
def test_every_reader_lists_contents_of_any_disc(shape: Any, cell: Any, radius: float, tmp_path: Path) -> None:
    """A lift is of every set, not of the largest alone: 30,000 discs at random contain none but these."""
    domain = md.Domain.grid(shape, cell)
    listed = {frozenset(map(int, np.flatnonzero(row))) for row in disc_sets(domain, radius, every=True).toarray()}
    points, rng = domain.points, np.random.default_rng(1)
    centres = rng.uniform(points.min(axis=0) - radius, points.max(axis=0) + radius, (30_000, len(shape)))
    inside = np.unique(((centres[:, None] - points) ** 2).sum(axis=2) <= radius**2, axis=0)
    drawn = {frozenset(map(int, np.flatnonzero(row))) for row in inside} - {frozenset()}
    assert drawn <= listed
    assert len(listed) <= 2 * len(drawn)
    claim = {"domain": {"kind": "grid", "cell": list(domain.cell or ())}}
    table = verify_table.TableFile({"claim": claim}, [], [], [], [tuple(at) for at in points.tolist()])
    cap = {"radius": radius, "centres": "anywhere", "factor": [2, 1]}
    assert verify_table.discs_of(cap, table, []) == listed
    if NODE is not None:
        call = f"discsOf({json.dumps(points.T.tolist())}, {radius!r}, 'anywhere', true)"
        result = in_node(tmp_path, f"{proof_script()}\nconsole.log(JSON.stringify({call}))")
        assert set(map(frozenset, result)) == listed


def test_lift_holds_for_every_disc() -> None:
    """In fractions of the integers: small sets at the border of the grid are the ones that a lift is broken on."""
    file = lift_mechanism()
    people, mass = np.arange(1, 17).astype(object), file["mass"].values.astype(object)
    joint, worst = people[:, None] * mass, Fraction(0)
    for disc in disc_sets(md.load_problem("flat", cells=4).domain, 1.2, every=True).toarray() > 0:
        before = Fraction(int(people[disc].sum()), int(people.sum()))
        worst = max(worst, *(Fraction(int(part[disc].sum()), int(part.sum())) / before for part in joint.T))
    assert Fraction(249, 100) < worst <= Fraction(5, 2)


LIFTS = ([1, 1], [1, 2], [0, 1], [5, 0], [65536, 1], [2, 1])  # the last one is broken, the others are not discs


def test_script_prints_the_kind_of_a_limit(tmp_path: Path, capsys) -> None:
    """Discs about centres of cells are fewer than discs anywhere: the sentence names them, as Python's does."""
    output = {}
    for centres in ("anywhere", "places", "area"):
        path = md.export(limit_optimum(centres), tmp_path / f"{centres}.json")
        assert verify_table.main([str(path)]) == 0
        (output[centres],) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("limit:")]
    assert "in any disc of " in output["anywhere"]
    assert "about the centre" not in output["anywhere"]
    assert " about the centre of a cell" in output["places"]
    assert "any cells that are together no larger than a disc of radius " in output["area"]

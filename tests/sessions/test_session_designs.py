"""Files of session designs: verified again, refused if altered; mutants with a right checksum are true or refused."""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
import random
import shutil
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from fixtures.forged_files import rewritten
from fixtures.rows import few_by_default
from fixtures.session_designs import RULES, design, design_with_rule, reseal_document, table

import mechdesign as md
from mechdesign.errors import InputError, MechdesignError, VerificationError
from mechdesign.sessions import design_files

TICKS = 3


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("designs")
    for name in RULES:
        md.sessions.save_design(design_with_rule(name), folder / f"{name}.json")
    given = md.sessions.Transitions([[0.5, 0.5, 0, 0, 0]] * 5, initial=[0.2] * 5)
    md.sessions.save_design(design(RULES["risk"](), movement=given), folder / "transitions.json")
    return folder


NAMES = ["clock", "risk", "transitions"]


@pytest.fixture
def without_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not enumerate transcripts, which other tests do."""
    monkeypatch.setattr("mechdesign.sessions.verify.MOST", 1)


def write_sealed(folder: Path, told: dict[str, Any]) -> Path:
    (folder / "mutant.json").write_text(reseal_document(told))
    return folder / "mutant.json"


@pytest.mark.parametrize("name", few_by_default(NAMES, "clock", "risk"))
def test_honest_designs_are_certified(files: Path, name: str) -> None:
    found = md.verify(files / f"{name}.json")
    again = md.sessions.load_design(files / f"{name}.json")
    assert found.certified
    assert found.reasons == []
    assert found.violations == 0
    assert found.edge_source == "geometry"
    assert found.windows is not None
    for words, told in found.windows.items():
        assert Fraction(told["worst"]) == again.worst(words) >= true_worst(again, words)
    assert found.claim == again.claim
    if name == "clock":
        assert replace(md.verify(again), sha256=found.sha256) == found
    assert found.as_dict()["windows"] == found.windows
    assert "windows" not in md.verify(again.tables[0]).as_dict()


def true_worst(given: md.sessions.SessionDesign, words: str) -> Fraction:
    """The largest cost of a window in two days, over all patterns of ticks that the description of the rule allows.

    Charges are those of the largest table. Computed without the package.
    """
    told, dearest = given.rule.describe(), max(given.charges)
    ticks, best = given.ticks, Fraction(0)
    starts = [0, ticks] if words == "1d" else range(ticks + 1)
    if told["kind"] == "clock":
        at = {int(hour * ticks / 24): k for k, hour in enumerate(told["hours"])}
        paid = [given.charges[told["table_numbers"][at[t % ticks]]] if t % ticks in at else 0 for t in range(2 * ticks)]
        return max(sum(paid[s : s + ticks], Fraction(0)) for s in starts)
    for chosen in itertools.product((0, 1), repeat=2 * ticks):
        kept = [0, ticks] if told["window"] == "1d" else range(ticks + 1)
        if all(sum(chosen[s : s + ticks]) <= told["max_reports"] for s in kept):
            best = max(best, *(dearest * sum(chosen[s : s + ticks]) for s in starts))
    return best


def test_windows_of_designs_are_the_most_that_patterns_allow() -> None:
    """The bound of a rule is reached by a pattern."""
    for name in RULES:
        given = design_with_rule(name)
        for words in ("1d", "24h"):
            assert given.worst(words) == true_worst(given, words)


ALTERED = {
    "one more report": lambda told: told["rule"].update(max_reports=3),
    "another hour": lambda told: told["rule"].update(hours=[0, 8]),
    "one more hour": lambda told: told["rule"].update(hours=[0, 8, 16], table_numbers=[1, 0, 0]),
    "another table at an hour": lambda told: told["rule"].update(table_numbers=[1, 1]),
    "more ticks": lambda told: told.update(ticks=4),
    "worst of a day": lambda told: told["worst"].update({"1d": "1"}),
    "worst of any 24 hours": lambda told: told["worst"].update({"24h": "1/2"}),
    "claim": lambda told: told.update(
        claim=told["claim"].replace("at most", "less than").replace("3 ticks", "9 ticks")
    ),
    "one table twice": lambda told: told["tables"].__setitem__(1, told["tables"][0]),
    "one table less": lambda told: told["tables"].pop(),
    "another sha256": lambda told: told["tables"][0].update(sha256="0" * 64),
    "a path": lambda told: told["tables"][0].update(file="../" + told["tables"][0]["file"]),
    "a rule of another": lambda told: told["rule"].update(kind="sometimes"),
    "schema": lambda told: told.update(schema="mechdesign/session-design/9"),
    "a name more": lambda told: told.update(secret=3),
}


@pytest.mark.parametrize("how", ALTERED)
@pytest.mark.usefixtures("without_enumeration")
@pytest.mark.obligation("session-design")
def test_altered_designs_are_refused(files: Path, how: str) -> None:
    """With the old or a right checksum, for rules that have the changed field."""
    changed = 0
    for name in ("clock", "risk"):
        told = json.loads((files / f"{name}.json").read_text())
        before = copy.deepcopy(told)
        try:
            ALTERED[how](told)
        except KeyError:
            continue
        kind = told["rule"]["kind"]
        fits = set(told["rule"]) == set(before["rule"])
        if told == before or not fits:
            continue
        changed += 1
        with contextlib.suppress(VerificationError, InputError):
            assert not md.verify(write_sealed(files, told)).certified, kind
        (files / "unsealed.json").write_text(json.dumps(told))
        with pytest.raises(VerificationError):
            md.sessions.load_design(files / "unsealed.json")
    assert changed > 0


def test_a_table_that_was_replaced_is_refused(files: Path, tmp_path: Path) -> None:
    for file in files.glob("clock*"):
        shutil.copy(file, tmp_path)
    md.save(table(1.5), tmp_path / "clock-0.nc", overwrite=True)
    with pytest.raises(VerificationError, match="not the table"):
        md.verify(tmp_path / "clock.json")
    (tmp_path / "clock-0.nc").unlink()
    with pytest.raises(MechdesignError):
        md.verify(tmp_path / "clock.json")


def test_a_table_that_is_named_999_times_is_proved_by_nobody(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attack: a document of 100 kB, and a proof for every name in it. Nothing is read of the tables."""
    told = json.loads((files / "clock.json").read_text())
    read: list[Path] = []
    monkeypatch.setattr(design_files, "load", read.append)
    for count in (2, 999):
        file = write_sealed(tmp_path, told | {"tables": told["tables"] + told["tables"][:1] * (count - 1)})
        for command in (md.verify, md.sessions.load_design):
            with pytest.raises(VerificationError, match="names a table twice"):
                command(file)
    assert read == []


def test_sealed_table_that_is_not_private_is_refused(tmp_path: Path) -> None:
    given = design_with_rule("clock")
    broken = given.tables[0].copy(deep=True)
    broken["mass"].values[0, 0] -= 2**60
    broken["mass"].values[0, 4] += 2**60
    broken = rewritten(broken)
    file = md.sessions.save_design(given, tmp_path / "day.json")
    md.save(broken, tmp_path / "day-0.nc", overwrite=True)
    told = json.loads(file.read_text())
    told["tables"][0]["sha256"] = broken.attrs["sha256"]
    with pytest.raises(VerificationError, match="break the claim"):
        md.verify(write_sealed(tmp_path, told))


def test_a_figure_of_a_table_that_is_wrong_is_a_reason(tmp_path: Path) -> None:
    first = rewritten(table(1.0), expected_loss=0.125)
    found = md.verify(md.sessions.SessionDesign(tables=[first, table(2.0)], rule=RULES["clock"](), ticks=TICKS))
    assert not found.certified
    assert found.reasons[0].startswith("table 0: expected_loss")


ODD = [None, True, -1, 0, 1, 3, 10**30, 0.5, -0.5, 1e308, "", "1", "1d", "2d", "24h", "x", [], {}, [0], [1.0, 2.0]]


def mutant(told: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """The document with one entry replaced, dropped or repeated, somewhere."""
    told = copy.deepcopy(told)
    at: Any = told
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = chance.choice([k for k in keys if k != "sha256"])
        if isinstance(at[key], (dict, list)) and at[key] and chance.random() < 0.7:
            at = at[key]
            continue
        kind = chance.random()
        if kind < 0.5:
            at[key] = chance.choice(ODD)
        elif kind < 0.7 and isinstance(at[key], (int, float)) and not isinstance(at[key], bool):
            at[key] = at[key] + chance.choice([1, -1, 2**40, 0.25, 1e-12])
        elif kind < 0.85:
            at.pop(key)
        elif isinstance(at, list):
            at.append(at[key])
        else:
            at[f"{key}2"] = at[key]
        return told


def check_mutants(files: Path, name: str, count: int) -> Counter[str]:
    """Every mutant is certified and true, or refused by a MechdesignError."""
    told, ends = json.loads((files / f"{name}.json").read_text()), Counter[str]()
    for number in range(count):
        changed = mutant(told, random.Random(f"{name} {number}"))
        file = write_sealed(files, changed)
        try:
            found = md.verify(file)
        except MechdesignError:
            ends["refused"] += 1
            continue
        if not found.certified:
            ends["refused"] += 1
            continue
        given = md.sessions.load_design(file)
        assert found.windows is not None
        for words, said in found.windows.items():
            assert Fraction(said["worst"]) >= true_worst(given, words), (number, changed)
        ends["true"] += 1
    return ends


@pytest.mark.parametrize("name", few_by_default(NAMES, "clock", "risk"))
@pytest.mark.usefixtures("without_enumeration")
@pytest.mark.obligation("session-design")
def test_mutants_are_true_or_refused(files: Path, name: str) -> None:
    ends = check_mutants(files, name, 10)
    assert ends["refused"] > 5


@pytest.mark.obligation("session-design")
def test_rule_that_understates_its_cost_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that bounds its windows by 0 is refused, because a transcript costs more."""
    given = design_with_rule("clock")
    monkeypatch.setattr(type(given.rule), "worst", lambda *_: Fraction(0))
    found = md.verify(given)
    assert not found.certified
    assert any("which the rule bounds by 0" in reason for reason in found.reasons)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_many_more_mutants_are_true_or_refused(files: Path, name: str) -> None:
    ends = check_mutants(files, name, 5000)
    assert ends["refused"] > 2500
    assert ends["true"] > 0


def test_files_are_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = design_with_rule("clock")
    md.sessions.save_design(given, tmp_path / "day.json")
    with pytest.raises(InputError, match="exists already"):
        md.sessions.save_design(given, tmp_path / "day.json")
    (tmp_path / "day.json").unlink()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match="exists already"):
        md.sessions.save_design(given, tmp_path / "day.json")
    assert sorted(tmp_path.iterdir()) == before
    with monkeypatch.context() as patched:
        patched.setattr("mechdesign.sessions.design_files.document", None)
        with pytest.raises(TypeError):
            md.sessions.save_design(given, tmp_path / "other.json")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"schema": "mechdesign/session-design/2"}', '{"a": NaN}'])
def test_other_documents_are_no_designs(tmp_path: Path, text: str) -> None:
    file = tmp_path / "day.json"
    file.write_text(text)
    with pytest.raises(VerificationError):
        md.sessions.load_design(file)
    with pytest.raises(MechdesignError):
        md.verify(file)


def test_a_design_of_a_losing_model_is_no_less_private() -> None:
    """Model and prior are public and not part of the claim: every choice has the same cost."""
    walks = [md.sessions.RandomWalk(stay=stay) for stay in (0.0, 0.5, 0.99)]
    assert len({design(RULES["risk"](), movement=walk).worst("24h") for walk in walks}) == 1

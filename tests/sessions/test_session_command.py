"""The commands of a session: their output, and exit codes of bad input."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from fixtures.session_designs import design_with_rule

import mechdesign as md


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return md.sessions.save_design(design_with_rule("clock"), tmp_path_factory.mktemp("design") / "day.json")


@pytest.fixture
def session(file: Path, tmp_path: Path, run) -> Path:
    path = tmp_path / "day.session"
    assert run("session", "create", path, file, "--limit", "4", "--window", "24h")[0] == 0
    return path


def test_a_day_is_reported_and_accounted_for(file: Path, session: Path, run, run_json) -> None:
    paid = Fraction(0)
    for tick, words in enumerate([("--at", "2.2"), ("--secret", "3"), ("--no-fix",), ("--at", "-900")]):
        code, told = run_json("session", "report", session, "--tick", tick, *words)
        assert (code, told["tick"], told["unit"], told["drawn"]) == (0, tick, "cell", tick != 1)
        assert "cell" not in told
        paid += Fraction(told["charge"])
    code, account = run_json("session", "account", session)
    assert (code, Fraction(account["spent"]), account["limit"], account["last"]) == (0, paid, "4", 3)
    assert account["window"] == "any 24h in a row"
    assert Fraction(account["worst"]) <= Fraction(account["promised"]) <= 4
    code, out, _ = run("session", "report", session, "--tick", "4", "--secret", "1")
    assert (code, out.split(":")[0]) == (0, "Tick 4")
    code, out, _ = run("session", "account", session)
    assert code == 0
    assert str(paid) in out


BAD = [
    (("report", "--tick", "0"), "at", 2),
    (("report", "--tick", "0", "--secret", "1", "--no-fix"), "at", 2),
    (("report", "--tick", "0", "--at", "home"), "at", 2),
    (("report", "--tick", "0", "--at", "1", "2"), "at", 2),
    (("report", "--tick", "0", "--secret", "9"), "secret", 2),
    (("report", "--tick", "0", "--lon", "3"), "at", 2),
    (("report", "--tick", "0", "--lon", "3", "--lat", "4"), "lon, lat", 2),
    (("report", "--tick", "-1", "--secret", "1"), "tick", 2),
    (("report", "--tick", "1.5", "--secret", "1"), "tick", 2),
    (("report", "--secret", "1"), "tick", 2),
]


@pytest.mark.parametrize(("words", "field", "code"), BAD)
def test_bad_input_is_refused_by_name_and_costs_nothing(session: Path, run_json, words, field, code) -> None:
    before = session.read_bytes()
    ended, told = run_json("session", words[0], session, *words[1:])
    assert (ended, told["error"]["field"]) == (code, field)
    assert session.read_bytes() == before


def test_ticks_out_of_order_are_refused(session: Path, run_json) -> None:
    assert run_json("session", "report", session, "--tick", "5", "--secret", "1")[0] == 0
    code, told = run_json("session", "report", session, "--tick", "4", "--secret", "1")
    assert (code, told["error"]["field"]) == (2, "tick")
    assert "set back" in told["error"]["message"]


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("--limit", "0.1"), "limit"),
        (("--limit", "-1"), "limit"),
        (("--limit", "4", "--window", "1w"), "window"),
        (("--limit", "4", "--window", ""), "window"),
        (("--limit", "1e400"), "limit"),
    ],
)
def test_sessions_that_cannot_be_made(file: Path, run_json, words, field) -> None:
    path = file.with_name("other.session")
    code, told = run_json("session", "create", path, file, *words)
    assert (code, told["error"]["field"]) == (2, field)
    assert not path.exists()


def test_a_session_is_made_once(file: Path, session: Path, run_json) -> None:
    before = session.read_bytes()
    code, told = run_json("session", "create", session, file, "--limit", "4")
    assert (code, told["error"]["field"]) == (2, "session")
    assert session.read_bytes() == before


def test_verify_says_what_windows_cost(tmp_path: Path, run, run_json) -> None:
    file = md.sessions.save_design(design_with_rule("clock"), tmp_path / "day.json")
    code, out, _ = run("verify", file)
    assert code == 0
    assert "Certified: every table" in out
    assert "on all 625 transcripts" in " ".join(out.split())
    assert "any 24 hours" in out
    code, told = run_json("verify", file)
    assert (code, told["certified"], told["windows"]["1d"]["transcripts"]) == (0, True, 625)
    changed = json.loads(file.read_text())
    changed["rule"]["hours"] = [0, 8]
    file.write_text(json.dumps(changed))
    code, told = run_json("verify", file)
    assert (code, told["error"]["kind"]) == (1, "verification")
    code, told = run_json("export", file, "-o", file.with_name("day.html"))
    assert code != 0


@pytest.mark.parametrize("words", [("session",), ("session", "nothing"), ("session", "report")])
def test_commands_that_are_not_there(words, run) -> None:
    code, _, error = run(*words)
    assert code == 2
    assert error.startswith("error: ")

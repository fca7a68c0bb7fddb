"""`mechdesign session design`: it writes a design, and prints the simulated figures."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import mechdesign as md
from mechdesign.output.text_tables import show
from mechdesign.sessions import Proposal
from mechdesign.sessions.study.propose import TIMES, Point
from mechdesign.sessions.study.simulated import PricedRule, split
from mechdesign.sessions.terminal import proposal_words

BOX = ("--box", "12.48,41.89,12.495,41.901")
WORDS = (*BOX, "--cell", "400", "--ticks", "4", "--nats", "6", "--within", "400", "--simulated", "2")


RISKY = PricedRule.risk(134.0, (1.5, 1.5))


def test_a_design_is_written_verified_and_used(tmp_path: Path, run, run_json) -> None:
    file = tmp_path / "day.json"
    code, told = run_json("session", "design", *WORDS, "-o", file)
    assert (code, told["unit"], told["limit"], told["ticks"]) == (0, "m", 6.0, 4)
    assert [point["total"] for point in told["curve"]] == [6 * share for share in TIMES]
    assert all(0 <= share <= 1 for point in told["curve"] for share in point["homes_found"].values())
    assert told["curve"][2]["certified_nats"] == 14 * 6
    design = md.sessions.load_design(file)
    assert design.sha256 == told["sha256"]
    assert 5 < design.worst("1d") == Fraction(told["worst"]["1d"]) <= 6
    assert run("verify", file)[0] == 0
    assert run("session", "create", tmp_path / "a.session", file, "--limit", "6")[0] == 0
    code, told = run_json("session", "design", *WORDS, "-o", file)
    assert (code, told["error"]["field"]) == (2, "output")


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ((), "area"),
        ((*BOX, "absent.geojson"), "area"),
        ((*BOX, "--nats", "0"), "limit"),
        ((*BOX, "--within", "-1"), "within"),
        ((*BOX, "--ticks", "0"), "ticks"),
        ((*BOX, "--simulated", "0"), "people"),
        ((*BOX, "--cell", "40"), "cell"),
    ],
)
def test_refusals_name_the_field_and_leave_nothing(tmp_path: Path, run_json, words, field) -> None:
    usual = {"--cell": "400", "--nats": "6", "-o": str(tmp_path / "day.json")}
    given = [word for pair in usual.items() if pair[0] not in words for word in pair]
    code, told = run_json("session", "design", *given, *words)
    assert (code, told["error"]["field"]) == (2, field)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("columns", [80, 100])
def test_curve_is_printed_at_any_width(columns, monkeypatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    domain = md.Domain.grid((3, 3), cell=200.0, unit="m")
    table = md.sessions.report_table(domain, 1.5, within=200.0)
    design = md.sessions.SessionDesign(tables=[table], rule=md.sessions.Risk(threshold=200.0, max_reports=2), ticks=24)
    points = tuple(
        Point(
            total=3 * share,
            rule=PricedRule.clock((9.5, 19.0), split(3 * share, 2)) if share > 1 else RISKY,
            error=300 / share, reports=2.0, identified={"mean": 0.5, "mode": 0.25, "filter": 1.0}, nats=42 * share,
        )
        for share in TIMES
    )  # fmt: skip
    proposal = Proposal(design=design, points=points, limit=3.0, within=200.0, constant=864.0, people=10)
    show({}, proposal_words(proposal, Path("day.json")), as_json=False)
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= columns
    words = " ".join(shown.split())
    for text in ("3 nats within 200 m a day: at most 2 reports a day, of 1.5 nats each, when", "exceeds 134 m"):
        assert text in words
    row = next(line for line in shown.splitlines() if line.startswith("3 *"))
    assert all(cell in row for cell in ("300", "50%", "25%", "100%", "10^18"))
    assert "36,316" in shown  # e^10.5

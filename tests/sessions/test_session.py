"""A session on disk: paid before it is released, never above its limit, never backwards, no secret in its file."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import stat
import subprocess
import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from fixtures.command_lines import damage
from fixtures.interruption_points import SOURCE
from fixtures.session_designs import RULES, design, design_with_rule, line, reseal_document, table

import mechdesign as md
from mechdesign.errors import BudgetError, FileFormatError, InputError, VerificationError
from mechdesign.sessions import session as session_module
from mechdesign.sessions.ledger import PrivateLedger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "day.session"


def create_session(path: Path, rule: str = "clock", **given: object) -> md.sessions.Session:
    return md.sessions.Session.create(path, **{"design": design_with_rule(rule), "limit": 20, **given})  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", RULES)
def test_every_step_is_accounted_for_exactly(path: Path, rule: str) -> None:
    session = create_session(path, rule, window="24h")
    paid = Fraction(0)
    for tick in range(9):
        told = session.report(tick % 5, tick=tick)
        paid += told.charge
        account = session.account()
        assert (account.spent, account.last) == (paid, tick)
        assert account.worst <= account.promised <= account.limit == 20
        assert told.remaining == account.remaining
        assert told.drawn == (told.report is not None)
    steps = session.transcript.steps
    assert sum(step.charge for step in steps) == paid > 0
    again = md.sessions.Session(path, design=session.design)
    assert (again.account(), again.transcript) == (account, session.transcript)
    assert again.report(at=[2.6], tick=11).tick == 11


@pytest.mark.parametrize("rule", RULES)
def test_one_object_and_a_fresh_one_for_every_tick_agree(path: Path, rule: str, monkeypatch) -> None:
    """Draws are fixed by the tick, so only state in memory could differ."""
    monkeypatch.setattr(session_module, "live_draws", lambda design: lambda table, place: place)
    other = path.with_name("other")
    session, made_by = create_session(path, rule), create_session(other, rule).design
    for tick in (0, 1, 2, 3, 5, 6, 11):
        one, fresh = session.report(1, tick=tick), md.sessions.Session(other, design=made_by).report(1, tick=tick)
        assert replace(one, error=0.0) == replace(fresh, error=0.0)
        assert one.error == pytest.approx(fresh.error, rel=1e-12)


@pytest.mark.obligation("session-paid-first")
def test_what_is_paid_is_on_the_disk_before_it_is_released(path: Path, monkeypatch) -> None:
    session, order = create_session(path), []
    written = PrivateLedger.write

    def write(self, record):
        order.append(("written", record.transcript.last, len(record.transcript.steps)))
        written(self, record)

    monkeypatch.setattr(PrivateLedger, "write", write)
    for tick in range(3):
        session.report(2, tick=tick)
        order.append(("released", tick, len(json.loads(path.read_text())["steps"])))
    assert order == [
        (word, tick, count) for tick, count in ((0, 1), (1, 1), (2, 2)) for word in ("written", "released")
    ]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_disk_that_refuses_releases_nothing(path: Path, monkeypatch, call: str) -> None:
    session = create_session(path)
    before = path.read_bytes()

    def refuse(*given: object) -> None:
        raise OSError(28, "No space left")

    with monkeypatch.context() as patched:
        patched.setattr(os, call, refuse)
        with pytest.raises(FileFormatError):
            session.report(2, tick=0)
    assert path.read_bytes() == before
    assert session.report(2, tick=0).drawn


def test_ticks_rise(path: Path) -> None:
    session = create_session(path)
    session.report(1, tick=4)
    for tick in (4, 3, 0):
        with pytest.raises(InputError, match="clock was set back") as caught:
            md.sessions.Session(path, design=session.design).report(1, tick=tick)
        assert caught.value.field == "tick"
    assert session.report(1, tick=5).tick == 5


@pytest.mark.parametrize("tick", [-1, 1.5, True, "1", None, 2**53, float("nan")])
def test_ticks_that_are_refused(path: Path, tick: object) -> None:
    session = create_session(path)
    before = path.read_bytes()
    with pytest.raises(InputError) as caught:
        session.report(1, tick=tick)  # type: ignore[arg-type]
    assert (caught.value.field, path.read_bytes()) == ("tick", before)


def test_places_decide_neither_times_nor_refusals(path: Path, monkeypatch) -> None:
    """Far away, outside, without a fix: the same ticks draw, and cost the same, given the same answers."""
    monkeypatch.setattr(session_module, "live_draws", lambda design: lambda table, place: 3)
    told = []
    for k, fix in enumerate([{"cell": 0}, {"at": [4.5]}, {"at": [-1e300]}, {"at": [float("nan")]}, {}]):
        session = create_session(path.with_name(f"{k}"), "risk")
        told.append([session.report(**fix, tick=tick) for tick in range(5)])
    assert all(each == told[0] for each in told)
    assert [each.tick for each in told[0]] == list(range(5))


def test_no_fix_is_the_last_one(path: Path, monkeypatch) -> None:
    places: list[int] = []
    monkeypatch.setattr(session_module, "live_draws", lambda design: lambda table, place: places.append(place) or 0)
    session = create_session(path, design=design(md.sessions.Clock(hours=[0, 8, 16])))
    first = session.design.belief().estimate
    for k, fix in enumerate([None, 4, None, None]):
        session.report(fix, tick=k)
    assert places == [first, 4, 4, 4]
    md.sessions.Session(path, design=session.design).report(tick=4)
    assert places[-1] != 4


@pytest.mark.parametrize("cell", [5, -1, 0.5, "1"])
def test_a_cell_that_is_not_there_is_refused_at_any_tick(path: Path, cell: object) -> None:
    session = create_session(path)
    before = path.read_bytes()
    for tick in range(2):
        with pytest.raises(InputError):
            session.report(cell, tick=tick)  # type: ignore[arg-type]
    assert path.read_bytes() == before


def test_two_places_or_too_many_numbers_are_refused(path: Path) -> None:
    session = create_session(path)
    for given in ({"cell": 1, "at": [1.0]}, {"at": [1.0, 2.0]}):
        with pytest.raises(InputError):
            session.report(**given, tick=0)


TOO_SMALL = [("clock", 1.5), ("clock", 0.1), ("risk", 1.0), ("clock", 1.8848)]


@pytest.mark.parametrize(("rule", "limit"), TOO_SMALL)
def test_a_limit_below_what_a_rule_can_pay_is_refused(path: Path, rule: str, limit: float) -> None:
    with pytest.raises(BudgetError, match="is too small for") as caught:
        create_session(path, rule, limit=limit)
    assert (caught.value.field, list(path.parent.iterdir())) == ("limit", [])
    least = design_with_rule(rule).worst("1d")
    assert create_session(path, rule, limit=least).account().limit == least


def test_report_above_the_limit_is_named(path: Path) -> None:
    with pytest.raises(BudgetError, match="too small for one report"):
        create_session(path, limit=0.25)


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf"), True, "3", None])
def test_limits_that_are_refused(path: Path, limit: object) -> None:
    with pytest.raises(InputError) as caught:
        create_session(path, limit=limit)
    assert caught.value.field == "limit"
    assert not path.exists()


def test_a_window_of_one_tick_is_paid_at_that_tick(path: Path) -> None:
    session = create_session(path, design=design(md.sessions.Clock(hours=[0, 8, 16]), 1.0), limit=3, window=1)
    for tick in range(3):
        told = session.report(1, tick=tick)
        assert session.account().remaining == told.remaining == 3 - told.charge < 3


def test_any_24_hours_are_more_than_a_day(path: Path) -> None:
    given = design_with_rule("risk")
    assert given.worst("24h") > given.worst("1d")
    create_session(path, "risk", limit=given.worst("1d"))
    with pytest.raises(BudgetError):
        create_session(path.with_name("other"), "risk", limit=given.worst("1d"), window="24h")


@dataclass(frozen=True, kw_only=True)
class Greedy(md.sessions.Risk):
    """Reports at every tick, but claims to report once a day."""

    def ask(self, tick, transcript, belief):
        return 0


@pytest.mark.obligation("session-limit")
def test_a_rule_that_breaks_its_word_is_stopped_before_it_draws(path: Path, monkeypatch) -> None:
    given = design(Greedy(threshold=0.0, max_reports=1))
    session = create_session(path, design=given, limit=given.worst("1d"))
    assert session.report(1, tick=0).drawn
    monkeypatch.setattr(session_module, "draw_report", None)
    before = path.read_bytes()
    for place in (0, 4, None):
        with pytest.raises(BudgetError, match="a window would cost"):
            session.report(place, tick=1)
    assert path.read_bytes() == before
    monkeypatch.undo()
    assert session.report(1, tick=3).drawn


class Phone:
    place = 3


@dataclass(frozen=True, kw_only=True)
class Peeking(md.sessions.Risk):
    phone: object = None

    def ask(self, tick, transcript, belief):
        return int(self.phone.place > 2)


def test_rules_that_could_know_a_place_are_refused() -> None:
    """A rule sees no place, and may not contain an object that could have one."""
    with pytest.raises(InputError, match="must be numbers or strings") as caught:
        Peeking(threshold=0.5, max_reports=1, phone=Phone())
    assert caught.value.field == "rule"
    for where in (lambda: 3, [1, 2], np.arange(3), {"at": 3}):
        with pytest.raises(InputError):
            Peeking(threshold=0.5, max_reports=1, phone=where)
    with pytest.raises(InputError):
        design("report at home")


def test_tables_of_another_domain_or_metric_are_refused() -> None:
    other = table(1.0, line(6))
    steep = md.baselines.exponential(
        md.DesignProblem(
            domain=line(),
            metric=md.Euclidean(epsilon=2.0, unit="cell"),
            prior=md.priors.uniform(line()),
            loss=md.losses.Distance(),
        )
    )
    for second in (other, steep):
        with pytest.raises(InputError, match="another metric than the first") as caught:
            md.sessions.SessionDesign(tables=[table(1.0), second], rule=md.sessions.Clock(hours=[3]), ticks=3)
        assert caught.value.field == "tables"
    with pytest.raises(InputError) as caught:
        md.sessions.SessionDesign(tables=[table(1.0)], rule=RULES["clock"](), ticks=3)
    assert caught.value.field == "tables"


def test_a_table_that_is_not_private_is_refused() -> None:
    broken = table(1.0).copy(deep=True)
    broken["mass"].values[0] = broken["mass"].values[0, ::-1].copy()
    with pytest.raises(VerificationError):
        md.sessions.SessionDesign(tables=[broken], rule=md.sessions.Clock(hours=[3]), ticks=3)


def test_a_session_keeps_to_its_design(path: Path) -> None:
    create_session(path)
    with pytest.raises(InputError) as caught:
        md.sessions.Session(path, design=design(md.sessions.Clock(hours=[0, 8], table_numbers=[1, 0])))
    assert caught.value.field == "design"
    with pytest.raises(InputError, match="is required"):
        md.sessions.Session(path)


def test_a_session_names_the_file_of_its_design(path: Path) -> None:
    file = md.sessions.save_design(design_with_rule("risk"), path.with_name("design.json"))
    md.sessions.Session.create(path, design=file, limit=20).report(2, tick=0)
    assert md.sessions.Session(path).report(2, tick=1).tick == 1
    file.unlink()
    with pytest.raises(InputError, match="no such file"):
        md.sessions.Session(path)


@pytest.mark.obligation("session-paid-first")
def test_an_older_or_deleted_file_is_refused(path: Path) -> None:
    session = create_session(path)
    reports = [session.report(1, tick=0).report]
    copy = path.read_bytes()
    reports.append(session.report(1, tick=1).report)
    path.write_bytes(copy)
    with pytest.raises(FileFormatError, match="older state"):
        session.report(1, tick=2)
    for number in itertools.count():  # as long, and of another history, which few draws repeat
        other = create_session(path.with_name(f"other{number}"))
        if [other.report(3, tick=tick).report for tick in range(2)] != reports:
            break
    path.write_bytes(other.path.read_bytes())
    with pytest.raises(FileFormatError, match="older state"):
        session.report(1, tick=2)
    path.unlink()
    for use in (lambda: session.report(1, tick=2), session.account):
        with pytest.raises(FileFormatError, match="deleted"):
            use()


def test_links_are_one_session_and_hard_links_none(path: Path) -> None:
    session, linked = create_session(path), path.with_name("link")
    linked.symlink_to(path)
    other = md.sessions.Session(linked, design=session.design)
    assert other.path == session.path
    other.report(1, tick=0)
    with pytest.raises(InputError, match="set back"):
        session.report(1, tick=0)
    with pytest.raises(InputError, match="exists already"):
        create_session(linked)
    path.with_name("hard").hardlink_to(path)
    with pytest.raises(InputError, match="2 names"):
        session.report(1, tick=1)


def test_only_the_owner_may_read_it(path: Path) -> None:
    before = os.umask(0)
    try:
        create_session(path).report(1, tick=0)
    finally:
        os.umask(before)
    assert [stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()] == [0o600, 0o600]


@pytest.mark.parametrize("rule", RULES)
def test_the_file_is_a_function_of_what_was_released(path: Path, rule: str, monkeypatch) -> None:
    """Two people with the same reports have the same file."""
    monkeypatch.setattr(session_module, "live_draws", lambda design: lambda table, place: 1)
    files = []
    for name, trace in (("one", [2, 2, 2, 2]), ("two", [2, 1, 3, 2])):
        session = create_session(path.with_name(name), rule)
        for tick, place in enumerate(trace):
            session.report(place, tick=tick)
        files.append(session.path.read_bytes())
    assert files[0] == files[1]


ALTERED = {
    "charge": lambda told: told["steps"][0].__setitem__(3, "1/2"),
    "report": lambda told: told["steps"][0].__setitem__(2, 99),
    "table": lambda told: told["steps"][0].__setitem__(1, 7),
    "order": lambda told: told["steps"].reverse(),
    "last": lambda told: told.__setitem__("last", 0),
    "limit": lambda told: told.__setitem__("limit", "-3"),
    "window": lambda told: told.__setitem__("window", "1w"),
    "another": lambda told: told.__setitem__("place", 3),
    "a part more": lambda told: told["steps"][0].append(None),
    "no limit": lambda told: told.pop("limit"),
}


@pytest.mark.parametrize("name", ALTERED)
@pytest.mark.parametrize("sealed", [True, False])
def test_altered_files_are_refused(path: Path, name: str, sealed: bool) -> None:
    session = create_session(path)
    for tick in range(3):
        session.report(1, tick=tick)
    other = md.sessions.Session(path, design=session.design)
    told = json.loads(path.read_text())
    ALTERED[name](told)
    path.write_text(reseal_document(told) if sealed else json.dumps({**told, "sha256": "0" * 64}))
    uses = (lambda: md.sessions.Session(path, design=session.design), other.account, lambda: other.report(1, tick=3))
    for use in uses:  # by who opens it now, and by who opened it before
        with pytest.raises(FileFormatError) as caught:
            use()
        assert caught.value.field == "session"


REPORTING = """
import sys, mechdesign as md
from mechdesign.errors import InputError
design, drawn = md.sessions.load_design(sys.argv[2]), 0
session = md.sessions.Session(sys.argv[1], design=design)
for tick in range(int(sys.argv[3])):
    try:
        drawn += session.report(tick % 5, tick=tick).drawn
    except InputError as error:
        assert error.field == "tick", error
print(drawn)
"""


@pytest.mark.exhaustive
def test_eight_processes_share_a_session(path: Path) -> None:
    """Every tick is released once, by any process; together they report as often as the clock names."""
    processes, ticks = 8, 90
    file = md.sessions.save_design(design_with_rule("clock"), path.with_name("design.json"))
    session = md.sessions.Session.create(path, design=file, limit=2)
    command = [sys.executable, "-c", REPORTING, path, file, str(ticks)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(processes)]
    drawn = sum(int(process.communicate(timeout=600)[0]) for process in running)
    account = session.account()
    assert drawn == account.reports <= 2 * ticks / 3
    assert account.worst <= account.promised <= account.limit
    assert [step.tick % 3 for step in session.transcript.steps].count(1) == 0


KILLING = f"""
import os, random, signal
{SOURCE}
import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.sessions.advance import begin, draw_report, live_draws, plan_tick
path, design, moment = sys.argv[1], md.sessions.load_design(sys.argv[2]), random.Random(0)
released = os.open(sys.argv[3], os.O_RDWR | os.O_CREAT | os.O_APPEND)
draw_report(design, plan_tick(design, begin(design), 0), 0, live_draws(design))  # compiles before the forks
def report(session):
    while True:
        tick = session.transcript.last + 1
        try:
            told = session.report(tick % 5, tick=tick)
        except InputError as error:
            assert error.field == "tick", error
            continue
        if told.drawn:
            os.write(released, b"%d %d\\n" % (tick, told.report))
            return
for number in range(int(sys.argv[4])):
    children = []
    for _ in range(int(sys.argv[5])):
        share = moment.uniform(0, 3)
        children.append(os.fork())
        if children[-1] == 0:
            session = md.sessions.Session(path, design=design)
            report(session)  # late imports happen here
            events = events_of(lambda: report(session))
            at_event(1 + int(share * events), lambda: os.kill(os.getpid(), signal.SIGKILL))
            while True:
                report(session)
    for child in children:
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
"""
SLOW = pytest.mark.exhaustive
KILLED = [
    ("clock", 2, 2),
    pytest.param("clock", 300, 1, marks=SLOW),
    pytest.param("risk", 40, 8, marks=SLOW),
]


@pytest.mark.parametrize(("rule", "kills", "processes"), KILLED)
@pytest.mark.obligation("session-paid-first")
def test_killed_processes_have_paid_for_releases(path: Path, rule: str, kills: int, processes: int) -> None:
    """SIGKILL at a random call: every printed report is in the file with its charge, and no window exceeds the limit.

    No temporary file remains.
    """
    file = md.sessions.save_design(design_with_rule(rule), path.with_name("design.json"))
    limit = md.sessions.load_design(file).worst("1d")
    session = md.sessions.Session.create(path, design=file, limit=limit)
    told = path.with_name("released")
    words = [path, file, told, kills, processes]
    subprocess.run([sys.executable, "-c", KILLING, *map(str, words)], check=True, timeout=900)
    account, steps = md.sessions.Session(path).account(), {step.tick: step for step in session.transcript.steps}
    released = [tuple(map(int, row.split())) for row in told.read_text().splitlines()]
    assert released
    assert len({tick for tick, _ in released}) == len(released)
    for tick, report in released:
        assert steps[tick].report == report
        assert steps[tick].charge > 0
    assert 0 < account.worst <= limit
    assert account.reports - len(released) <= kills * processes
    assert not list(path.parent.glob(".*.part"))


def test_damaged_files_of_sessions_are_refused(path: Path) -> None:
    """Files with random changes of bytes are refused by an InputError, or have the same content."""
    session = create_session(path, "risk")
    for tick in range(4):
        session.report(1, tick=tick)
    content, account = path.read_bytes(), session.account()
    for number in range(40):
        path.write_bytes(damage(content, random.Random(number)))
        with contextlib.suppress(InputError):
            assert md.sessions.Session(path, design=session.design).account() == account

"""The logger `mechdesign`: notes and progress are its records; without logging and verbose=True nothing is written."""

from __future__ import annotations

import logging

import pytest

import mechdesign as md
from mechdesign.base import progress
from mechdesign.output.text_tables import note

LOGGER = logging.getLogger("mechdesign")
PROBLEM = md.load_problem("line", cells=4)


class Records(logging.Handler):
    """The records that reach a handler of the caller."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append((record.levelno, record.getMessage()))


@pytest.fixture
def records():
    handler, root = Records(), logging.getLogger()
    root.addHandler(handler)
    yield handler
    root.removeHandler(handler)
    LOGGER.setLevel(logging.NOTSET)


def solve(monkeypatch, **options):
    """Solve with ten seconds between two looks at the clock, and one look a state."""
    now = iter(range(0, 10**7, 10))
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(now)))
    monkeypatch.setattr(progress, "_watch", lambda ended: None)
    md.solve(PROBLEM, on_progress=lambda state: progress.show(progress.time.monotonic()), **options)


def test_progress_reaches_the_logging_of_the_caller(records, monkeypatch, capsys):
    LOGGER.setLevel(logging.INFO)
    solve(monkeypatch)
    assert records.lines
    assert all(level == logging.INFO and text.endswith(" s") for level, text in records.lines)
    assert capsys.readouterr().err == ""


def test_verbose_attaches_a_handler_while_it_runs(records, monkeypatch, capsys):
    """Levels of other logging do not silence it, and other handlers get nothing below their level."""
    LOGGER.setLevel(logging.WARNING)
    before = list(LOGGER.handlers)
    solve(monkeypatch, verbose=True)
    assert capsys.readouterr().err
    assert records.lines == []
    assert LOGGER.handlers == before
    solve(monkeypatch)
    assert capsys.readouterr().err == ""


def test_notes_are_records_and_those_of_commands_are_printed(records, tmp_path, capsys):
    LOGGER.setLevel(logging.INFO)
    path = tmp_path / "reports.csv"
    path.write_text("report,other\n0,a\n2,b\n")
    md.surveys.read_reports(path, {"a" * 64: md.Domain.nodes(3)})
    assert records.lines == [(logging.INFO, "reports.csv: read columns report; ignored other.")]
    assert capsys.readouterr().err == ""
    note("from a command")
    assert records.lines[1:] == [(logging.INFO, "from a command")]
    assert capsys.readouterr().err == "from a command\n"

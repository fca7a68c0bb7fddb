"""How a command ends: its exit code and its last words, whatever happened."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
from conftest import ROOT
from fixtures.absent_capabilities import needs
from fixtures.rows import few_by_default

from mechdesign.base.streams import visible
from mechdesign.cli import main as cli
from mechdesign.errors import InputError, VerificationError
from mechdesign.output.reports import solve as summary
from mechdesign.verification import verify as verification

START = "import mechdesign.cli.main as cli, sys, os, signal, threading\nsys.argv = ['mechdesign', 'solve', '--help']\n"
CLOSED = "solve --help | (exec <&-)"


LEVEL = ("level", "--within", "200", "--factor", "2")


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run the command line in an empty folder: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["mechdesign", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code, *capsys.readouterr()

    return call


def shell(words, **settings):
    """Run a line of the shell, in which `mechdesign` is the command of this package."""
    command = f"{sys.executable} -m mechdesign.cli.main"
    line = f'set -o pipefail; mechdesign() {{ {command} "$@"; }}; {words}'
    ended = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, timeout=120, check=False, cwd=ROOT,
        env={**os.environ, **settings},
    )  # fmt: skip
    # On a loaded machine starting alone takes ten seconds, and progress is shown.
    ended.stderr = re.sub(r"^[a-z ]+, \d+ s\n", "", ended.stderr, flags=re.M)
    return ended


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        pytest.param("mechdesign solve --help > /dev/full", 1, "could not be written", marks=pytest.mark.exhaustive),
        pytest.param(
            "mechdesign level --within 2 --factor 2 --json > /dev/full",
            1,
            "could not be written",
            marks=[needs("geo"), pytest.mark.exhaustive],
        ),
        ("mechdesign --help > /dev/full", 1, "could not be written"),
        pytest.param(
            "mechdesign level --within 0 --factor 2 --json > /dev/full",
            2,
            "must be positive",
            marks=[needs("geo"), pytest.mark.exhaustive],
        ),
        pytest.param("mechdesign solve --help | true", 1, "", marks=pytest.mark.exhaustive),
        pytest.param("mechdesign level --within 2 --factor 2 --json | true", 1, "", marks=needs("geo")),
        pytest.param("mechdesign level --within 0 --factor 2 2> /dev/full", 2, "", marks=pytest.mark.exhaustive),
        ("mechdesign level --within 0 --factor 2 2>&-", 2, ""),
        pytest.param("mechdesign solve --help >&-", 0, "", marks=pytest.mark.exhaustive),
    ],
)
def test_outputs_that_cannot_be_written(words, code, said):
    ended = shell(words)
    assert ended.returncode == code
    assert said in ended.stderr
    assert ended.stderr.count("\n") == int(said != "")
    assert ended.stdout == ""


@pytest.mark.exhaustive
@needs("geo")
def test_a_terminal_of_few_characters_gets_escapes():
    ended = shell("mechdesign level --within $'\\xff\\u00e9' --factor 2", PYTHONIOENCODING="ascii")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "got \\udcff\\xe9; " in ended.stderr
    ended = shell("mechdesign solve --help", PYTHONIOENCODING="ascii")
    assert ended.returncode == 0
    assert ended.stderr == ""
    assert ended.stdout.isascii() is True


@pytest.mark.parametrize(
    "moment",
    few_by_default(
        ["import typer", "import mechdesign.cli.app", "import mechdesign.problem.problem"], "import mechdesign.cli.app"
    ),
)
def test_an_interrupt_in_start_up(moment, tmp_path):
    """A finder that interrupts where a module is first asked for, as Ctrl-C would."""
    name = moment.removeprefix("import ")
    script = (
        "import sys, os, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a caller may ignore interrupts, as nohup does
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {name!r}:\n"
        "            sys.meta_path.remove(self)\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "import mechdesign.cli.main\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "sys.argv = ['mechdesign', 'solve', 'line']\n"
        "mechdesign.cli.main.main()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT
    )
    assert (ended.returncode, ended.stdout) == (130, "")
    assert ended.stderr == "error: run: interrupted; no unfinished file remains\n"


def test_a_real_interrupt_of_the_console_script():
    words = [
        sys.executable,
        "-c",
        "import signal, sys\n"
        "from mechdesign.cli.main import main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def wait(event, given):\n"
        "    if event == 'import' and given[0] == 'numpy':\n"
        "        print('!', flush=True)\n"
        "        signal.pause()\n"
        "sys.addaudithook(wait)\n"
        "main()\n",
    ]
    with subprocess.Popen([*words, "solve", "flat"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout.readline() == "!\n"
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
    assert (run.returncode, out, err) == (130, "", "error: run: interrupted; no unfinished file remains\n")


def test_an_interrupt_while_the_interpreter_ends():
    """The command is done: a Ctrl-C that comes later changes neither its exit code nor what it said."""
    script = (
        "import atexit, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "atexit.register(signal.raise_signal, signal.SIGINT)\n"  # runs after those that are registered later
        "sys.argv = ['mechdesign', '--version']\n"
        "from mechdesign.cli.main import main\n"
        "main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("mechdesign ")


@pytest.mark.parametrize(
    ("error", "code", "kind", "said"),
    [
        (ZeroDivisionError("by\nzero"), 1, "internal", "unexpected ZeroDivisionError: by\\nzero (got "),
        (RecursionError("deep"), 1, "internal", "unexpected RecursionError: deep"),
        (OverflowError("x" * 5000), 1, "internal", "OverflowError: " + "x" * 300 + "... (got"),
        (MemoryError("9 GiB"), 2, "size", "size: does not fit in memory (9 GiB)"),
        (OSError(36, "File name too long", "aaa"), 2, "file", "file: could not be used (File name too long) (got aaa)"),
        (OSError("odd"), 1, "internal", "unexpected OSError: odd"),
        (InputError("is bad", field="x", value="\x1b[2J", remedy="better"), 2, "input", "x: is bad (got \\x1b[2J)"),
        (KeyboardInterrupt(), 130, "error", "run: interrupted"),
    ],
)
def test_exceptions_become_one_line(run, monkeypatch, error, code, kind, said):
    def fail(**_):
        raise error

    monkeypatch.setattr("mechdesign.geo.level.level_document", fail)
    ended, out, err = run(*LEVEL)
    assert (ended, out, err.count("\n")) == (code, "", 1)
    assert err.startswith("error: ")
    assert said in err
    ended, out, err = run(*LEVEL, "--json")
    document = json.loads(out)["error"]
    assert (ended, err, document["kind"]) == (code, "", kind)
    if kind == "internal":
        assert "report this" in document["message"]
        assert document["value"].startswith("mechdesign.geo.commands, line ")


def test_an_exception_that_an_interrupt_led_to_is_an_interrupt(run, monkeypatch):
    def fail(**_):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise ImportError("half of a module") from error

    monkeypatch.setattr("mechdesign.geo.level.level_document", fail)
    assert run(*LEVEL)[0] == 130


def test_traceback_can_be_requested(run, monkeypatch):
    def fail(**_):
        raise ZeroDivisionError

    monkeypatch.setattr("mechdesign.geo.level.level_document", fail)
    monkeypatch.setenv("MECHDESIGN_TRACEBACK", "1")
    code, _, err = run(*LEVEL)
    assert code == 1
    assert err.startswith("Traceback")
    assert err.splitlines()[-1].startswith("error: mechdesign: unexpected ZeroDivisionError")


@pytest.mark.parametrize("answer", ["refused", "raised"])
@pytest.mark.parametrize(
    "words",
    [
        ("solve", "line", "--cells", "3", "-o", "x.nc"),
        ("solve", "line", "--cells", "3"),
        ("solve", "line", "--cells", "3", "--program", "eikonal", "--method", "factored", "-o", "x.nc"),
        ("audit", "table.csv", "--metric", "discrete", "--epsilon", "1", "-o", "x.nc"),
        pytest.param(("area", ROOT / "problems/data/example_park.geojson", "--cell", "600", "--within", "600",
                      "--factor", "8", "--positions", "cells", "--program", "planar-laplace", "-o", "x.nc"),
                     marks=needs("geo")),
    ],
)  # fmt: skip
def test_unverified_mechanism_is_not_saved(run, monkeypatch, tmp_path, words, answer):
    (tmp_path / "table.csv").write_text("0.5,0.5\n0.25,0.75\n")
    calls = []

    def doubt(mechanism):
        calls.append(mechanism)
        if answer == "raised":
            raise VerificationError("contradicts itself", field="mass", remedy="none")
        return replace(verification.verify(mechanism), reasons=["mass: too little", "prior: odd"])

    monkeypatch.setattr(summary, "verify", doubt)
    code, out, _ = run(*words, "--json")
    error = json.loads(out)["error"]
    assert (code, error["kind"], error["field"], len(calls)) == (1, "design", "mechanism", 1)
    assert ("contradicts itself" if answer == "raised" else "mass: too little; prior: odd") in error["value"]
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_mechanism_is_verified_once(run, monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(summary, "verify", lambda made: calls.append(made) or verification.verify(made))
    code, out, _ = run("solve", "line", "--cells", "3", "-o", "x.nc", "--json")
    assert code == 0
    assert json.loads(out)["certified"] is True
    assert len(calls) == 1
    assert (tmp_path / "x.nc").is_file()


def test_names_with_markup_are_shown_verbatim(run, tmp_path):
    (tmp_path / "[").mkdir()
    name = "[/b]:smile:\x1b[31m\n\u202e.nc"
    code, out, _ = run("solve", "line", "--cells", "3", "-o", "[/b].nc")
    assert code == 0
    assert "[/b].nc" in out
    code, out, _ = run("solve", "line", "--cells", "3", "-o", name)
    assert code == 0
    assert "[/b]:smile:\\x1b[31m\\n\\u202e.nc" in out
    code, out, err = run("export", name, "-o", "[/b].csv")
    assert (code, out, err) == (0, "", "wrote [/b].csv\n")
    code, _, err = run("verify", name + "x")
    assert code == 2
    assert err.count("\n") == 1
    assert "\\x1b[31m\\n\\u202e.ncx" in err
    problem = tmp_path / "[red]line[.py"
    problem.write_text((ROOT / "problems" / "line.py").read_text(encoding="utf-8"), encoding="utf-8")
    for command in (["solve", "-v"], ["compare"], ["compare", "--scales", "1,2"]):
        code, out, err = run(command[0], problem.name, *command[1:], "--cells", "2")
        assert code == 0
        assert "[red]line[" in out + err


@needs("pictures")
@pytest.mark.parametrize("curve", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_names_with_formulas_are_drawn_as_they_are(run, tmp_path, curve):
    pytest.importorskip("matplotlib")
    problem = tmp_path / "a$\\frac{$.py"
    problem.write_text((ROOT / "problems" / "flat.py").read_text(encoding="utf-8"), encoding="utf-8")
    if curve:
        assert run("compare", problem.name, "--cells", "2", "--scales", "1,2", "-o", "y.svg")[0] == 0
    else:
        assert run("solve", problem.name, "--cells", "2", "-o", "x.nc")[0] == 0
        assert run("export", "x.nc", "-o", "y.svg")[0] == 0
    assert "a$\\frac{$: 2 x 2 cells" in (tmp_path / "y.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("solve income --cells 4 --outputs 3 --epsilon 1e3", marks=needs("release")),
        "solve discrete --secrets 3 --epsilon 1e100",
        "solve line --cells 3 --program eikonal --epsilon 1e100",
        "compare flat --cells 2 --epsilon 1e9",
        "compare line --cells 2 --epsilon 1e100",
        "compare line --cells 2 --scales 0.25:1e100:2",
        "audit table.csv --metric euclidean --epsilon 1e-100 --unit km --grid 2 --cell 1 --exit-zero",
        pytest.param("level --within 1e-100 --epsilon 1e100 --reports 9223372036854775807", marks=needs("geo")),
    ],
)
def test_extreme_numbers_do_not_overflow(run, tmp_path, line):
    (tmp_path / "table.csv").write_text("0.5,0.5\n0.25,0.75\n")
    assert run(*line.split(), "--json")[0] == 0


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [b] é ζ", "plain [b] é ζ"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x1b[2J\x07\x9b", "\\x1b[2J\\x07\\x9b"),
        ("\udcff", "\\udcff"),
        ("\u202e\u2028\u200b\xa0", "\\u202e\\u2028\\u200b\\xa0"),
    ],
)
def test_visible_text(text, shown):
    assert visible(text) == shown

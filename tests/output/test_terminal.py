"""Tables on the terminal: nothing cut, no word or figure broken, at every width."""

from __future__ import annotations

import io
import sys
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import pytest
from fixtures.absent_capabilities import needs
from fixtures.forged_files import rewritten
from fixtures.position_mechanisms import SIDES, position_mechanism
from fixtures.problems import CASES

import mechdesign as md
from mechdesign import baselines, verify
from mechdesign.base import progress as progress_of_base
from mechdesign.extend import Progress
from mechdesign.output import text_tables as printing
from mechdesign.output.compare import ComparisonRow, figure_texts, rows
from mechdesign.output.reports.comparison import comparison_words
from mechdesign.output.reports.curve import curve_words
from mechdesign.output.reports.solve import SolveReport
from mechdesign.output.reports.verdict import verification_words
from mechdesign.output.sentences import protection_sentence
from mechdesign.output.sweep import BaselineFigures, CurvePoint

NAMES = ["optimal", "geometric_normalised", "randomized_response"]
HEAD = ["mechanism", "loss", "lower bound", "remapped loss", "claimed eps", "effective eps", "asymptotic MSE"]
WORDS = ["a" * 12, "b" * 30]


def show_words(blocks):
    """Print the blocks of a command."""
    printing.show({}, blocks, as_json=False)


def row(name: str, figure: float, bound: float | None = 0.123456) -> ComparisonRow:
    return ComparisonRow(
        mechanism=name, loss=figure, lower_bound=bound, gap=figure / 7, remapped_loss=figure / 3,
        expected_distance=figure / 11, claimed_epsilon=0.400024, effective_epsilon=1.2345678,
        ratio=1.0 if bound else 1.52, epsilon_lower_bound=None, rank=225, asymptotic_mse=9759.3911,
        position_loss=figure / 13, claim_over="cells", row_ratio=None,
    )  # fmt: skip


@pytest.mark.parametrize("columns", [80, 100, 140])
def test_a_table_fits_and_loses_nothing(columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(columns))
    cells = [[name, *(f"{1e4 / (k + 3) ** 5:.6g}" for k in range(6))] for name in NAMES]
    printing.print_table(HEAD, cells)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    words = [word for line in lines for word in line.split()]
    for cell in (cell for line in cells for cell in line):
        assert cell in words
    assert {word for name in HEAD for word in name.split()} <= set(words)


@pytest.mark.parametrize(("columns", "blocks"), [(80, 2), (100, 2), (120, 1), (140, 1)])
def test_a_comparison_stacks_where_it_must(columns, blocks, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(columns))
    table = [row("optimal", 0.769355), row("geometric_normalised", 20.0574, None), row("exponential", 12.7559)]
    show_words(comparison_words(table, CASES["discrete"]()))
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert max(map(len, lines)) <= columns
    assert sum(line.startswith("mechanism ") for line in lines) == blocks
    for shown in table:
        assert set(figure_texts(shown)) <= set(out.split())
    said = (
        "optimal has the smallest loss: 0.05919 to true positions (0.7694 between centres of cells). No mechanism with "
    )
    assert f"Of the mechanisms that are private as claimed, {said}this claim has a loss below 0.1234 " in " ".join(
        out.split()
    )
    assert "Not private as claimed: geometric_normalised." in " ".join(out.split())


def test_pairs_of_epsilons_stand_side_by_side(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    show_words(comparison_words([row("optimal", 0.769355)], CASES["discrete"]()))
    heads = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("mechanism ")]
    [pair] = [words for words in heads if "ratio" in words]
    assert pair.index("ratio") >= 2


def test_columns_without_figures_are_left_out(capsys):
    table = [replace(row("optimal", 0.5), expected_distance=None)]
    show_words(comparison_words(table, CASES["discrete"]()))
    assert "distance" not in capsys.readouterr().out.splitlines()[2].split()


@pytest.mark.parametrize("columns", [80, 100])
def test_a_sweep_fits(columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(columns))
    names = ("eikonal", "exponential", "geometric_clamped", "geometric_normalised", "planar_laplace", "another_one")
    figures = BaselineFigures(loss=123.456, position_loss=None, effective_scale=0.5443)
    point = CurvePoint(
        scale=0.5, loss=8.4624, position_loss=None, lower_bound=8.4624, gap=2e-7, effective_scale=0.5, stopped="gap",
        baselines=dict.fromkeys(names, figures),
    )  # fmt: skip
    curve = [point, replace(point, scale=2.0)]
    show_words(curve_words(curve, CASES["discrete"]()))
    assert "position loss" not in capsys.readouterr().out  # there are no positions
    curve = [replace(point, position_loss=8.7654) for point in curve]
    show_words(curve_words(curve, CASES["discrete"]()))
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= columns
    assert out.startswith("From scale 0.5 to 2 of the metric")
    assert out.count("123.5*") == len(names)  # at 0.5 all break it, at 2 none does
    assert out.count("123.5") == 2 * len(names)
    assert out.count("8.7654") == 2
    assert "position loss to the true position" in " ".join(out.split())


@cache
def report_of(name):
    """The report of a mechanism between positions."""
    mechanism = position_mechanism(name)
    return SolveReport.of(mechanism, verify(mechanism), seconds=1.0, file=None)


@pytest.mark.parametrize(
    ("price", "said"),
    [
        (-0.001, "costs nothing."),
        (0.008, "costs at most 0.8 % of the loss. "),
        (0.04, "costs at most 4 % of the loss, and about 1 % with cells of {cell:.3g} km. "),
    ],
)
@pytest.mark.parametrize(("name", "order"), [("square", 2), ("quarters", 1)])
def test_price_of_positions_and_advised_cell(capsys, name, order, price, said):
    """4 % fall to 1 % with cells of half the side at one level, of a fourth of it where the level varies."""
    show_words(replace(report_of(name), price=price).words())
    cell = SIDES[name] / 4 ** (1 / order)
    assert said.format(cell=cell) in " ".join(capsys.readouterr().out.split())


def test_without_a_terminal_a_table_is_whole(monkeypatch, capsys):
    monkeypatch.delenv("COLUMNS", raising=False)
    printing.print_table(["name", *HEAD], [["x", *(["1.23456789"] * 20)[: len(HEAD)]]])
    assert sum(line.startswith("name") for line in capsys.readouterr().out.splitlines()) == 1


def test_listings_wrap_at_words_and_never_within(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    printing.listing({"first": " ".join(WORDS * 3), "none": None, "second": "x" * 60})
    lines = capsys.readouterr().out.splitlines()
    assert [word for line in lines[:-1] for word in line.split()][1:] == WORDS * 3
    assert lines[0].startswith("first   ")
    assert lines[-1] == "second  " + "x" * 60
    assert all(line.startswith(" " * 8) for line in lines[1:-1])


def test_parameters_stay_with_their_values(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "30")
    printing.listing({"parameters": " ".join(f"--parameter-{k}=value{k}" for k in range(5))})
    lines = capsys.readouterr().out.removeprefix("parameters").splitlines()
    assert [line.strip() for line in lines] == [f"--parameter-{k}=value{k}" for k in range(5)]


def test_first_compilation_is_announced(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    printing.note_compiling()
    assert capsys.readouterr().err.startswith("compiling, once")
    name = f"repair._raise_slack-45.py{sys.version_info.major}{sys.version_info.minor}.nbi"
    (tmp_path / "mechdesign").mkdir()
    (tmp_path / "mechdesign" / name).touch()
    printing.note_compiling()
    assert capsys.readouterr().err == ""


def test_no_rows_are_no_table(capsys):
    show_words(comparison_words(rows({}, CASES["discrete"]()), CASES["discrete"]()))
    assert capsys.readouterr().out.startswith("problem: 6 secrets")


FIGURES = {
    "program": "optimal", "claim": "the whole claim", "loss": 0.769355, "lower_bound": 0.7693546, "gap": 5.25e-7,
    "file": "x.nc", "position_loss": None, "stopped": "gap",
}  # fmt: skip


@pytest.mark.parametrize(
    ("case", "changed", "sentence"),
    [
        ("line, zero-one", {}, "A report is correct with probability 30.47 %. The claim is proved in integers."),
        ("line, zero-one", {"stopped": "time", "gap": 0.1199}, "A report is correct with probability 30.47 %."),
        ("euclidean lattice", {"position_loss": 2.25},
         "The root mean square distance to the true position is 1.5 cells. The claim is proved in integers."),
        ("graph, table loss", {}, "The mean loss is 0.6435. The claim is proved in integers."),
    ],
)  # fmt: skip
@pytest.mark.parametrize("verbose", [False, True])
def test_solve_starts_with_a_sentence(case, changed, sentence, verbose, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    mechanism = baselines.exponential(CASES[case]())
    checked = verify(mechanism)
    report = SolveReport.of(mechanism, checked, seconds=1.234, file=None)
    show_words(replace(report, **FIGURES | changed).words(verbose=verbose, limit=90))
    said = " ".join(capsys.readouterr().out.split())
    early = (
        "Stopped at the time limit: up to 12 % of the loss may be avoidable. To search longer, pass --time-limit 360. "
    )
    told = early * (changed.get("stopped") == "time") + protection_sentence(checked.protection)
    assert said.startswith(f"{told} {sentence}")
    assert ("the whole claim" in said) == verbose


@pytest.mark.parametrize("verbose", [False, True])
def test_verification_starts_with_a_sentence(verbose, capsys):
    made = baselines.exponential(CASES["discrete"]())
    show_words(verification_words(verify(made), verbose=verbose))
    out = capsys.readouterr().out
    said = " ".join(out.split())
    assert said.startswith(
        "Certified. Protects these 6 classes: between any two of them, one report changes the odds by"
    )
    assert (made.attrs["claim"][:40] in " ".join(out.split())) == verbose
    broken = rewritten(made, expected_loss=0.0)
    show_words(verification_words(verify(broken), verbose=verbose))
    assert capsys.readouterr().out.startswith("Not certified: expected_loss: ")


STATE = Progress(
    method="blocks", round=0, iteration=None, loss=2.0, lower_bound=1.0, gap=0.125, variables=3, constraints=4,
    seconds=1.0, memory_mb=5.0,
)  # fmt: skip


class Clock:
    """A clock that the test alone moves on, and that no thread of the progress looks at."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(progress_of_base, "time", self)
        monkeypatch.setattr(progress_of_base, "_watch", lambda ended: None)

    def monotonic(self):
        return self.now

    def pass_(self, seconds, tick=0.5):
        """Let so many seconds pass, and look every half of one."""
        for _ in range(round(seconds / tick)):
            self.now += tick
            progress_of_base.show(self.now)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def test_last_state_is_repeated_until_the_end(clock, capsys):
    with printing.progress("a problem", target=1e-3, limit=90.0) as report:
        report(STATE)
        clock.pass_(25)
    clock.pass_(60)
    assert capsys.readouterr().err.splitlines() == [
        f"a problem: gap 12 % -> 0.1 %, blocks, {seconds} s of 90 s" for seconds in (2, 12, 22)
    ]


@pytest.mark.parametrize(("seconds", "lines"), [(1.5, 0), (2.0, 1), (11.5, 1), (12.0, 2)])
def test_short_work_prints_no_progress(seconds, lines, clock, capsys):
    with printing.progress("a problem"):
        clock.pass_(seconds)
    assert len(capsys.readouterr().err.splitlines()) == lines


def test_starting_command_is_silent_for_ten_seconds(clock, capsys):
    with printing.progress("a command", patient=True):
        clock.pass_(9.5)
        assert capsys.readouterr().err == ""
        clock.pass_(0.5)
    assert capsys.readouterr().err == "a command, 10 s\n"


def test_on_a_terminal_the_line_is_live_and_goes_away(clock, monkeypatch):
    written = io.StringIO()
    written.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", written)
    with printing.progress("a problem"):
        clock.pass_(3, tick=0.1)
        assert written.getvalue() == "\ra problem, 2 s\ra problem, 3 s\ra problem, 3 s"
    assert written.getvalue().endswith("\r" + " " * len("a problem, 3 s") + "\r")


def test_the_thread_of_the_progress_looks_at_the_clock(monkeypatch):
    """As often as its ticks come: here twice, and then the work is over."""
    seen = []
    monkeypatch.setattr(progress_of_base, "show", seen.append)
    monkeypatch.setattr(progress_of_base, "time", SimpleNamespace(monotonic=lambda: 7.0))
    ticks = iter([False, False, True])
    progress_of_base._watch(SimpleNamespace(wait=lambda seconds: next(ticks)))
    assert seen == [7.0, 7.0]


def test_outside_a_terminal_one_line_in_ten_seconds():
    assert (progress_of_base._FIRST, progress_of_base._EVERY) == (2.0, 10.0)


def test_innermost_progress_fits_80_columns(clock, capsys):
    with printing.progress("outer"):
        clock.pass_(5)
        with printing.progress("inner \x1b" + "x" * 200, limit=12_345.0) as report:
            report("3 of 8: NAME")
            clock.pass_(20)
        clock.pass_(10)
    lines = capsys.readouterr().err.splitlines()
    assert [lines[0], lines[-1]] == ["outer, 2 s", "outer, 32 s"]
    inner = lines[1:-1]
    assert len(inner) == 2
    assert all(len(line) <= 79 and line.endswith(" s of 12,345 s") and "\x1b" not in line for line in inner)


@needs("factored")
@pytest.mark.parametrize(
    ("method", "gap", "end"),
    [
        ("pool", None, "s, about 15 CPU s expected"),
        ("pool", 1e-3, "s, about 15 CPU s to 0.5 %"),
        ("columns", None, " s"),
    ],
)
def test_progress_of_a_pool_names_its_expected_time(method, gap, end, clock, capsys, run):
    """For the gap asked for; a time is known to 0.5 %. In Python and on the command line."""
    problem = md.load_problem("philadelphia", cells=4)
    md.solve(problem, method=method, gap=gap, verbose=True, on_progress=lambda state: clock.pass_(10))
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith(problem.name)]
    assert lines
    assert all(len(line) <= 79 and line.endswith(end) for line in lines)
    assert all(("CPU s" in line) == (method == "pool") for line in lines)
    shown = [] if gap is None else ["--gap", str(gap)]
    taken = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(printing, "progress", lambda *title, **given: taken.append(given) or nullcontext(print))
        run("solve", "philadelphia", "--cells", "4", "--method", method, *shown)
    assert taken[0]["expected"] == ("" if method == "columns" else end.removeprefix("s, "))


def test_verbose_tells_in_python_and_the_callback_too(clock, capsys, monkeypatch):
    """Ten seconds pass with every state."""
    # Where kernels are not compiled yet, a note on this comes first.
    monkeypatch.setattr(progress_of_base, "show_note", lambda text: None)
    problem, seen = CASES["euclidean lattice"](), []

    def on_progress(state):
        seen.append(state)
        clock.pass_(10)

    md.solve(problem, method="blocks", verbose=True, on_progress=on_progress)
    assert seen
    assert capsys.readouterr().err.startswith(f"{problem.name}, optimal")
    md.solve(problem, on_progress=on_progress)
    assert capsys.readouterr().err == ""
    md.compare(problem, verbose=True, on_progress=on_progress)
    assert capsys.readouterr().err.startswith(problem.name)
    md.sweep(problem, [1.0, 2.0], verbose=True, on_progress=on_progress)
    assert capsys.readouterr().err.startswith(problem.name)

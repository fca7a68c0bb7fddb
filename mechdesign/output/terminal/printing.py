"""What people see on the terminal: tables and progress. JSON documents and tables on stdout, everything else on
stderr. Names, paths and texts of files are shown as they are: no markup, no control characters.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from mechdesign.base.streams import visible
from mechdesign.base.units import unit_word

if TYPE_CHECKING:
    import pandas as pd

    from mechdesign.output.tables.compare import Row
    from mechdesign.output.tables.sweep import Row as SweepRow
    from mechdesign.setting.problems.problem import DesignProblem
    from mechdesign.solvers.kernels.progress import Reported
    from mechdesign.verification.audit import Audit
    from mechdesign.verification.verify import Verification

_LARGEST_EXACT = 1 << 53
_NARROWEST = 118  # columns
_COMPARABLE = "true eps: largest log-ratio over the Euclidean distance of any two secrets, nats per "


def show(shown: Table | str, *, wide: bool = False, highlight: bool = True) -> None:
    """Print a table or a text on standard output, 118 columns wide at least; `wide`, as wide as the table asks for, so
    that no figure is cut.
    """
    console = Console(markup=False, emoji=False, highlight=highlight)
    unbounded = console.options.update(max_width=10 * _NARROWEST)
    asked = console.measure(shown, options=unbounded).maximum if wide else 0
    console.width = max(console.width, _NARROWEST, asked)
    console.print(shown)


def add_row(table: Table, *cells: object) -> None:
    """Add a row to a table, as texts that cannot steer the terminal."""
    table.add_row(*(visible(cell) for cell in cells))


def listing() -> Table:
    """A table of names and values, without a head."""
    return Table(show_header=False, box=None, padding=(0, 2, 0, 0))


def note(text: str) -> None:
    """A line on stderr."""
    Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False).print(visible(text))


def print_json(document: Any) -> None:
    """One JSON document on stdout: NaN and infinities are null, integers beyond 2^53 are strings."""
    print(json.dumps(_plain(document), allow_nan=False, indent=2))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _LARGEST_EXACT:
        return str(value)
    return value


@contextmanager
def progress(title: str) -> Iterator[Callable[[Reported], None]]:
    """A live line on stderr with the bounds of a solve, or a line for every round where stderr is no terminal; gives
    the function to report to.
    """
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(visible(title), total=None)

        def report(state: Reported) -> None:
            line = visible(f"{title}: {state}")
            bar.update(task, description=line)
            if state.milestone and not console.is_terminal:
                note(f"{line}, {state.seconds:.1f} s")

        yield report


@contextmanager
def steps(title: str, total: int | None = None) -> Iterator[Callable[[str], None]]:
    """A live line on stderr that counts steps, of `total` where known; gives the function to report one to."""
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(visible(title), total=total)
        yield lambda name: bar.update(task, advance=1, description=visible(f"{title}: {name} done"))


def print_problems(listed: Sequence[Mapping[str, Any]]) -> None:
    """The shipped problems and their parameters."""
    table = Table("problem", "what", "parameters", box=SIMPLE_HEAD)
    for entry in listed:
        parameters = ", ".join(f"--{name.replace('_', '-')} {value}" for name, value in entry["parameters"].items())
        add_row(table, entry["problem"], entry["summary"], parameters)
    show(table)


def print_summary(summary: Mapping[str, Any]) -> None:
    """The figures of one solved mechanism, a line each."""
    table = listing()
    for name, value in summary.items():
        if value is not None:
            add_row(table, name, _figure(value))
    show(table)


def _figure(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_figure(item)}" for name, item in value.items())
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def print_rows(rows: Sequence[Row], problem: DesignProblem) -> None:
    """The comparison, with what each figure is relative to."""
    table = Table("mechanism", box=SIMPLE_HEAD, caption=visible(_caption(problem)), caption_justify="left")
    for name in ("loss", "lower bound", "gap", "remapped loss", "distance", "claimed eps", "effective eps"):
        table.add_column(name, justify="right")
    comparable = any(row["smallest_epsilon"] is not None for row in rows)
    for name in (["true eps"] if comparable else []) + ["rank", "criterion"]:
        table.add_column(name, justify="right")
    for row in rows:
        figures = [
            _text(row["loss"]),
            _text(row["lower_bound"]),
            _text(row["gap"], ".2e"),
            _text(row["remapped_loss"]),
            _text(row["expected_distance"]),
            _text(row["claimed_epsilon"]),
            _text(row["effective_epsilon"], ".4f"),
            *([_text(row["smallest_epsilon"])] if comparable else []),
            _text(row["rank"]),
            _text(row["criterion"]),
        ]
        add_row(table, row["mechanism"], *figures)
    show(table, wide=True)
    least = next((row["least_epsilon"] for row in rows if row["least_epsilon"] is not None), None)
    if least is not None:
        note(
            f"least eps: no mechanism that is private below {least:.6g} nats per {unit_word(problem.domain.unit)} "
            f"has an expected distance of {problem.matched_distance:.6g} {problem.domain.unit} or less"
        )


def print_study(table: pd.DataFrame) -> None:
    """A utility study: what its mechanisms are, then the mean loss of each over the sizes of datasets."""
    unit = table["unit"].iloc[0]
    for equal, own in table.groupby("equal", sort=False):
        shown = Table("mechanism", box=SIMPLE_HEAD, title=f"equal {equal}", title_justify="left")
        for name in ("claimed eps", "true eps", f"distance ({unit})", "truthful"):
            shown.add_column(name, justify="right")
        for name, lines in own.groupby("mechanism", sort=False):
            first = lines.iloc[0]
            figures = (
                _text(first["claimed_epsilon"]),
                _text(first["smallest_epsilon"]),
                _text(first["expected_distance"]),
            )
            add_row(shown, str(name), *figures, f"{100 * first['truthful']:.3g} %")
        show(shown, wide=True)
        means = Table("estimate", "mechanism", box=SIMPLE_HEAD)
        for size in own["size"].unique():
            means.add_column(f"{size:,}", justify="right")
        for (estimator, name), lines in own.groupby(["estimator", "mechanism"], sort=False):
            add_row(means, str(estimator).replace("_", " "), str(name), *(f"{mean:.1f}" for mean in lines["mean"]))
        show(means, wide=True)


def print_sweep(rows: Sequence[SweepRow], problem: DesignProblem) -> None:
    """The losses along a sweep, a star where a baseline breaks its claim, then the levels that the baselines truly
    have.
    """
    from mechdesign.output.tables.sweep import baselines_of

    baselines = list(baselines_of(rows[0]))
    losses, levels = (
        Table(box=SIMPLE_HEAD, title=title, title_justify="left", collapse_padding=True, pad_edge=False)
        for title in ("expected loss", "effective eps")
    )
    for name in ("multiple", "loss", "lower bound", "gap", *baselines):
        losses.add_column(name.replace("_", " "), justify="right")
    for name in ("multiple", *baselines):
        levels.add_column(name.replace("_", " "), justify="right")
    for row in rows:
        at, star = _text(row["multiplier"], ".4g"), {None: "", False: " ", True: "*"}
        own = [_text(row["loss"], ".5g"), _text(row["lower_bound"], ".5g"), _text(row["gap"], ".0e")]
        baseline = [_text(row[f"{name}_loss"], ".4g") + star[broken] for name, broken in baselines_of(row).items()]
        add_row(losses, at, *own, *baseline)
        add_row(levels, at, *(_text(row[f"{name}_effective_epsilon"], ".4f") for name in baselines))
    for part in (losses, levels, visible(_sweep_caption(problem))):
        show(part, highlight=False)


def _sweep_caption(problem: DesignProblem) -> str:
    return (
        f"{problem.name}: {problem.domain.size} secrets, {_judged(problem)}. loss and lower bound enclose the optimum "
        "at a multiple of the problem's metric; effective eps is a multiple of that metric too. A star: the mechanism "
        "is not private at the multiple it was made for, its loss belongs to its effective eps."
    )


def _caption(problem: DesignProblem) -> str:
    unit = problem.domain.unit
    length = "units" if unit == "1" else unit
    within = problem.loss.within_cell(problem.domain)
    snapping = "" if within is None else f" Snapping a user to the cell centre costs {within:.4g} on top of every loss."
    return (
        f"{problem.name}: {problem.domain.size} secrets, {_judged(problem)}, distance in {length}.{snapping} "
        "lower bound: no mechanism with this claim does better; gap = (loss - lower bound) / loss. claimed eps: nats "
        f"per {unit_word(unit)} (randomized response: nats). effective eps: largest log-ratio over the claimed "
        "distance; above 1 the claim is broken."
        + (f" {_COMPARABLE}{unit_word(unit)}." if problem.metric.kind == "euclidean" else "")
        + " rank below the number of secrets: no number of reports tells their distribution; criterion: reports times "
        f"the mean squared error of its estimate, in {'squared units' if unit == '1' else f'{unit}^2'}."
    )


def _judged(problem: DesignProblem) -> str:
    unit = problem.loss.unit(problem.domain.unit)
    return f"{problem.loss.name} loss" + ("" if unit == "1" else f" in {unit}")


def print_verification(result: Verification) -> None:
    """The outcome of a verification, reasons included."""
    table = listing()
    for name, value in result.as_dict().items():
        if value not in (None, []):
            add_row(table, name, str(value))
    show(table)


def print_sample(drawn: Mapping[str, Any]) -> None:
    """Reports, a line each, on stdout; bits, cost and claim on stderr."""
    columns = [name for name in drawn if name.startswith("report_")]
    unit = "" if drawn["unit"] == "1" else visible(f" [{drawn['unit']}]")
    units = {"report_longitude": " [degree east]", "report_latitude": " [degree north]"}
    table = Table("report", *(name + units.get(name, unit) for name in columns), box=SIMPLE_HEAD)
    for line in zip(drawn["reports"], *(drawn[name] for name in columns), strict=True):
        add_row(table, *(f"{value:.15g}" if isinstance(value, float) else str(value) for value in line))
    show(table)
    for name in ("bits", "cost", "claim"):
        note(f"{name}: {drawn[name]}")


def print_audit(result: Audit, outcome: Mapping[str, Any] | None) -> None:
    """The findings of an audit, a line each; then what the repair costs."""
    at, zeros, sums = result.worst, result.zeros, result.row_sums
    infinite = "infinite: a zero meets a positive probability"
    lines = {
        "metric": result.metric,
        "verdict": f"{result.verdict} ({result.breaches} breaches by exact integers)",
        "effective eps": infinite if result.effective_epsilon is None else f"{result.effective_epsilon:.6g}",
        "without zeros": f"{result.finite_epsilon:.6g}",
        "true eps": "" if result.smallest_epsilon is None else f"{result.smallest_epsilon:.9g} {result.epsilon_unit}",
        "claimed eps": "" if result.claimed_epsilon is None else f"{result.claimed_epsilon:.9g} {result.epsilon_unit}",
        "worst": f"report {at['report']}: {at['probability']:.6g} from secret {at['secret']}, "
        f"{at['other_probability']:.6g} from {at['other']}, {at['distance']:.6g} nats apart",
        "zeros": f"{zeros['entries']} entries, {zeros['mixed_columns']} columns with zeros and others, "
        f"{zeros['empty_columns']} columns of zeros",
        "row sums": "counts, divided by their sums"
        if result.divided == "counts"
        else f"row {sums['row']:.0f} is off by {sums['largest_deviation']:.3g}"
        + ("; every row was divided by its sum" if result.divided else ""),
        "loss": "" if result.loss is None else f"{result.loss:.9g} {result.loss_unit}, {result.prior} prior",
    }
    if outcome is not None:
        lines |= {"repaired loss": f"{outcome['loss']:.9g} {result.loss_unit}", "file": outcome["file"]}
    table = listing()
    for name, text in lines.items():
        if text:
            add_row(table, name, text)
    for text in result.notes:
        add_row(table, "note", text)
    show(table, highlight=False)


def _text(value: float | None, form: str = ".6g") -> str:
    return "-" if value is None else format(value, form)

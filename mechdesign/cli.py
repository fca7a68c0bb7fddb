"""The command line: a thin face of the Python API. Heavy imports happen inside the commands.

With --json a command prints one JSON document on stdout; everything else goes to stderr. Exit codes: 0 a certified file
was written or verified; 1 the design or the verification failed; 2 bad input; 130 interrupted (Ctrl-C).
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mechdesign.area_command import area
from mechdesign.arguments import PROGRAMS, audit_setting, chosen_program, knob_values, place_asked, row_range
from mechdesign.errors import InputError, MechdesignError
from mechdesign.level_command import level
from mechdesign.options import FileArgument, GapOption, JsonOption, LimitOption, OverwriteOption, ProblemArgument

if TYPE_CHECKING:
    from mechdesign.problem_files import ProblemFile
    from mechdesign.setting.problem import DesignProblem

app = typer.Typer(
    help="Design location-privacy and metric-privacy mechanisms by optimization, certified in exact integers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(area)
_TAKES_KNOBS = {"allow_extra_args": True, "ignore_unknown_options": True}
_INTERRUPTED = 130

_METRIC_HELP = (
    "euclidean --epsilon E --unit U, and --grid AxB --cell H or --places FILE.csv [--reports FILE.csv]; "
    "or discrete --epsilon E. Both take --loss."
)
_METHOD_HELP = "For optimal: auto, whole, blocks, aggregation or graph. For eikonal: auto, table or factored."


@app.command()
def problems(as_json: JsonOption = False) -> None:
    """List the shipped problems and their knobs."""
    from mechdesign.problem_files import shipped_problems
    from mechdesign.reports import printing

    listed = [{"problem": p.name, "summary": p.summary, "knobs": p.knobs} for p in shipped_problems()]
    if as_json:
        printing.print_json(listed)
    else:
        printing.print_problems(listed)


@app.command(context_settings=_TAKES_KNOBS)
def solve(
    context: typer.Context,
    problem: ProblemArgument,
    program: Annotated[str, typer.Option("--program", help="One of " + ", ".join(PROGRAMS) + ".")] = "optimal",
    distances: Annotated[str, typer.Option("--distances", help="For eikonal: graph or fast-marching.")] = "graph",
    worst_loss: Annotated[float | None, typer.Option("--worst-loss", help="For bounded: loss at most.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="NetCDF file to write.")] = None,
    gap: GapOption = 1e-3,
    time_limit: LimitOption = float("inf"),
    method: Annotated[str, typer.Option("--method", help=_METHOD_HELP)] = "auto",
    rounds: Annotated[int | None, typer.Option("--rounds", help="For the factored form: rounds of weights.")] = None,
    work: Annotated[
        Path | None, typer.Option("--work", help="For the factored form: folder that keeps a run, to go on from.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", help="For the factored form: address of a dask scheduler.")
    ] = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Solve a design problem; its knobs follow PROBLEM, as --KNOB VALUE."""
    started = time.monotonic()
    file, built = _read_and_build(problem, context)
    from mechdesign.mechanism.storage import check_target, save
    from mechdesign.reports import printing
    from mechdesign.reports.summary import summarise
    from mechdesign.solvers.solve import solve as solve_program
    from mechdesign.solvers.work_folder import discard_finished

    beside = {"published": file.published(built.knobs), "remark": file.remark(built)}
    if output is not None:
        check_target(output, overwrite=overwrite)
    with printing.progress(f"{built.name}, {program}") as report:
        asked = chosen_program(program, built, distances=distances, worst_loss=worst_loss)
        route: Any = method
        mechanism = solve_program(
            asked,
            gap=gap,
            time_limit=time_limit,
            method=route,
            report=report,
            rounds=rounds,
            work=work,
            scheduler=scheduler,
        )
    if output is not None:
        save(mechanism, output, overwrite=overwrite)
        if work is not None:
            discard_finished(work)
    summary = summarise(mechanism, seconds=time.monotonic() - started, file=output)
    summary |= beside
    if as_json:
        printing.print_json(summary)
    else:
        printing.print_summary(summary)


@app.command(context_settings=_TAKES_KNOBS)
def compare(
    context: typer.Context,
    problem: ProblemArgument,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="CSV file to write.")] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="Only this mechanism; may be repeated.")] = None,
    gap: GapOption = 1e-3,
    time_limit: LimitOption = float("inf"),
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Compare the optimal, the eikonal and the closed-form mechanisms on one problem."""
    built = _build(problem, context)
    from mechdesign.mechanism.storage import check_target
    from mechdesign.reports import printing
    from mechdesign.reports.compare import mechanisms, rows, write_rows

    if output is not None:
        check_target(output, overwrite=overwrite)
    made = {}
    with printing.steps(built.name) as advance:
        for name, mechanism in mechanisms(built, gap=gap, time_limit=time_limit, only=only):
            made[name] = mechanism
            advance(name)
    for name, mechanism in made.items():
        if isinstance(mechanism, InputError):
            printing.note(f"{name} does not fit this problem: {mechanism}")
    table = rows(made, built)
    if output is not None:
        write_rows(table, output, overwrite=overwrite)
    if as_json:
        printing.print_json(table)
    else:
        printing.print_rows(table, built)


@app.command(context_settings=_TAKES_KNOBS)
def sweep(
    context: typer.Context,
    problem: ProblemArgument,
    first: Annotated[float, typer.Option("--from", help="Smallest multiple of the metric.")] = 0.25,
    last: Annotated[float, typer.Option("--to", help="Largest multiple of the metric.")] = 4.0,
    points: Annotated[int, typer.Option("--points", help="How many multiples, equally spaced in the logarithm.")] = 9,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="NetCDF file to write.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Picture to draw: .png, .pdf or .svg.")] = None,
    gap: GapOption = 1e-3,
    time_limit: Annotated[float, typer.Option("--time-limit", help="Seconds for each multiple.")] = float("inf"),
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Trace the optimal loss against a multiple of the metric: the privacy-utility curve, rivals beside it."""
    built = _build(problem, context)
    from mechdesign.mechanism.storage import check_target, save
    from mechdesign.reports import printing
    from mechdesign.reports.plot import check_plot_target, save_plot
    from mechdesign.reports.sweep import multiplier_range, sweep_rows
    from mechdesign.reports.sweep import sweep as trace

    multipliers = multiplier_range(first, last, points)
    if output is not None:
        check_target(output, overwrite=overwrite)
    if plot is not None:
        check_plot_target(plot, overwrite=overwrite)
    with printing.steps(built.name, total=points) as advance:
        curve = trace(
            built,
            multipliers,
            gap=gap,
            time_limit=time_limit,
            report=lambda row: advance(f"multiplier {row['multiplier']:.4g}"),
        )
    if output is not None:
        save(curve, output, overwrite=overwrite)
    if plot is not None:
        save_plot(curve, plot, overwrite=overwrite)
    rows = sweep_rows(curve)
    if as_json:
        printing.print_json(rows)
    else:
        printing.print_sweep(rows, built)


@app.command()
def verify(file: FileArgument, as_json: JsonOption = False) -> None:
    """Prove or refuse the claim of a mechanism file, from its integers alone."""
    from mechdesign.reports import printing
    from mechdesign.reports.verification import verify as verify_file

    result = verify_file(file)
    if as_json:
        printing.print_json(result.as_dict())
    else:
        printing.print_verification(result)
    if not result.certified:
        raise typer.Exit(1)


@app.command(context_settings=_TAKES_KNOBS)
def audit(
    context: typer.Context,
    table: Annotated[Path, typer.Argument(help="A table: .csv, .npy, .mat, .parquet or Armadillo's .bin.")],
    metric: Annotated[str | None, typer.Option("--metric", help=_METRIC_HELP)] = None,
    problem: Annotated[str | None, typer.Option("--problem", help="A problem, its knobs after it: its metric.")] = None,
    mechanism: Annotated[Path | None, typer.Option("--mechanism", help="A mechanism file: its metric.")] = None,
    variable: Annotated[str | None, typer.Option("--variable", help="The table in a .mat file of several.")] = None,
    normalise: Annotated[bool, typer.Option("--normalise", help="Divide every row by its sum.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="NetCDF file of the repaired table.")] = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Tell the true epsilon of a table of another program, and with -o repair and certify it."""
    from mechdesign.mechanism.storage import check_target, save
    from mechdesign.reports import printing
    from mechdesign.reports.audit import audit as audit_table
    from mechdesign.reports.audit import repaired
    from mechdesign.setting.table_files import read_table

    if output is not None:
        check_target(output, overwrite=overwrite)
    stated = None if problem is None else _build(problem, context)
    setting = audit_setting(context.args, metric=metric, problem=stated, mechanism=mechanism)
    given = read_table(table, variable=variable)
    built = setting(len(given))
    result = audit_table(given, built, normalise=normalise)
    fixed = None if output is None else repaired(given, built, normalise=normalise)
    if output is not None and fixed is not None:
        save(fixed, output, overwrite=overwrite)
    loss = None if fixed is None else float(fixed.attrs["expected_loss"])
    outcome = None if fixed is None else {"loss": loss, "claim": fixed.attrs["claim"], "file": str(output)}
    if as_json:
        printing.print_json({**result.as_dict(), "repaired": outcome})
    else:
        printing.print_audit(result, outcome)


@app.command()
def export(
    file: FileArgument,
    output: Annotated[Path, typer.Option("-o", "--output", help="Table to write: .csv, .json or .parquet.")],
    rows: Annotated[str | None, typer.Option("--rows", help="Secrets to write, as FIRST:END.")] = None,
    degrees: Annotated[bool, typer.Option("--degrees", help="Add longitude and latitude (extra geo).")] = False,
    with_verifier: Annotated[
        bool, typer.Option("--with-verifier", help="Write verify_table.py beside it, which needs Python alone.")
    ] = False,
    with_sampler: Annotated[
        bool, typer.Option("--with-sampler", help="Write sample_table.mjs beside a .json, for JavaScript clients.")
    ] = False,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a mechanism, or rows of it, as a table: CSV, JSON or Parquet."""
    from mechdesign.mechanism.storage import load
    from mechdesign.reports import printing
    from mechdesign.reports.export import export as write_table

    written = write_table(
        load(file),
        output,
        rows=row_range(rows),
        degrees=degrees,
        with_verifier=with_verifier,
        with_sampler=with_sampler,
        overwrite=overwrite,
    )
    if as_json:
        printing.print_json({"file": str(written)})
    else:
        printing.note(f"wrote {written}")


@app.command(context_settings=_TAKES_KNOBS)
def sample(
    context: typer.Context,
    file: FileArgument,
    at: Annotated[str | None, typer.Option("--at", metavar="X Y", help="The location, in the unit of the map.")] = None,
    secret: Annotated[int | None, typer.Option("--secret", help="The number of the secret, instead of --at.")] = None,
    lon: Annotated[float | None, typer.Option("--lon", help="Degrees east, with --lat instead of --at.")] = None,
    lat: Annotated[float | None, typer.Option("--lat", help="Degrees north; reports in degrees too.")] = None,
    count: Annotated[int, typer.Option("-n", help="How many reports; k of them cost k times the epsilon.")] = 1,
    seed: Annotated[int | None, typer.Option("--seed", help="For simulations only: such reports are known.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Draw reports for a location (or a secret) from a certified mechanism, exactly; FILE comes first."""
    location = place_asked(at, context.args)
    from mechdesign.mechanism.storage import load
    from mechdesign.reports import printing
    from mechdesign.reports.sampling import sample_document

    drawn = sample_document(load(file), at=location, degrees=(lon, lat), secret=secret, count=count, seed=seed)
    if as_json:
        printing.print_json(drawn)
    else:
        printing.print_sample(drawn)


@app.command()
def plot(
    file: Annotated[Path, typer.Argument(help="A mechanism, sweep or diagnosis file (NetCDF).")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Picture to draw: .png, .pdf or .svg.")],
    secret: Annotated[
        list[int] | None, typer.Option("--secret", help="Draw the row of this secret; may be repeated.")
    ] = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Draw a mechanism over a grid (levels, prior, rows), a sweep or a diagnosis."""
    from mechdesign.reports import printing
    from mechdesign.reports.plot import load_drawable, save_plot

    written = save_plot(load_drawable(file), output, overwrite=overwrite, secrets=secret)
    if as_json:
        printing.print_json({"file": str(written)})
    else:
        printing.note(f"wrote {written}")


app.command()(level)


def main() -> None:
    """Run the command line; errors become one line, or one JSON document with --json, and an exit code."""
    try:
        code = app(standalone_mode=False)
    except MechdesignError as error:
        code = _fail(error)
    except typer.Exit as ending:
        code = ending.exit_code
    except (typer.Abort, KeyboardInterrupt):
        code = _INTERRUPTED
    except typer.TyperException as error:
        code = _fail(InputError(error.format_message(), field=_option_of(error), remedy="see mechdesign --help"))
    if code == _INTERRUPTED:  # Typer makes this number of a KeyboardInterrupt, and says nothing
        kept = "; the --work folder keeps what was done: run it again" if "--work" in " ".join(sys.argv) else ""
        _fail(MechdesignError("interrupted", field="run", remedy=f"nothing was written{kept}"))
    sys.exit(code if isinstance(code, int) else 0)


def _fail(error: MechdesignError) -> int:
    if "--json" in sys.argv:
        import json

        print(json.dumps({"error": error.as_dict()}))
    else:
        print(f"error: {error}", file=sys.stderr)
    return error.exit_code


def _option_of(error: Exception) -> str:
    named = getattr(error, "option_name", None) or getattr(getattr(error, "param", None), "name", None)
    return str(named or "command line")


def _build(problem: str, context: typer.Context) -> DesignProblem:
    return _read_and_build(problem, context)[1]


def _read_and_build(problem: str, context: typer.Context) -> tuple[ProblemFile, DesignProblem]:
    from mechdesign.problem_files import read_problem_file

    if problem.startswith("-"):
        raise InputError(
            "knobs follow the problem, and options must be spelled right",
            field=problem,
            value=" ".join([problem, *context.args]),
            remedy="write: mechdesign COMMAND PROBLEM --KNOB VALUE",
        )
    file = read_problem_file(problem)
    _check_shadowing(file, context)
    return file, file.build(**knob_values(file.name, tuple(file.knobs), context.args))


def _check_shadowing(file: ProblemFile, context: typer.Context) -> None:
    taken = {name.lstrip("-").replace("-", "_") for p in context.command.params for name in p.opts}
    for knob in file.knobs:
        if knob in taken:
            raise InputError("a knob may not shadow an option", field=knob, value=file.path, remedy="rename the knob")


if __name__ == "__main__":
    main()

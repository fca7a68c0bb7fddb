"""The commands: a thin face of the Python API. Heavy imports happen inside them; `cli.main` runs them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mechdesign.cli.area import area
from mechdesign.cli.level import level
from mechdesign.cli.options import (
    FileArgument,
    GapOption,
    JsonOption,
    LimitOption,
    OverwriteOption,
    ProblemArgument,
    real,
    whole,
)
from mechdesign.cli.parsing import PROGRAMS, audit_setting, chosen_program, parameter_values, place_asked, row_range
from mechdesign.errors import InputError

if TYPE_CHECKING:
    from mechdesign.setting.problems.problem_files import ProblemFile

app = typer.Typer(
    help="Design location-privacy and metric-privacy mechanisms by optimization, certified in exact integers.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(area)
_TAKES_KNOBS = {"allow_extra_args": True, "ignore_unknown_options": True}

_METRIC_HELP = (
    "euclidean --epsilon E --unit U, and --grid AxB --cell H or --places FILE.csv [--reports FILE.csv]; "
    "or discrete --epsilon E. Both take --loss."
)
_METHOD_HELP = "For optimal: auto, whole, blocks, aggregation or graph. For eikonal: auto, table or factored."


@app.command()
def problems(as_json: JsonOption = False) -> None:
    """List the shipped problems and their parameters."""
    from mechdesign.output.terminal import printing
    from mechdesign.setting.problems.problem_files import shipped_problems

    listed = [
        {"problem": p.name, "summary": p.summary, "parameters": p.parameters, "knobs": p.parameters}
        for p in shipped_problems()
    ]
    if as_json:
        printing.print_json(listed)
    else:
        printing.print_problems(listed)


@app.command(context_settings=_TAKES_KNOBS)
def solve(
    context: typer.Context,
    problem: ProblemArgument,
    program: Annotated[str, typer.Option("--program", help="One of " + ", ".join(PROGRAMS) + ".")] = "optimal",
    distances: Annotated[
        str | None, typer.Option("--distances", help="For eikonal: graph (default) or fast-marching.")
    ] = None,
    worst_loss: Annotated[float | None, real("--worst-loss", help="For bounded: loss at most.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="NetCDF file to write.")] = None,
    gap: GapOption = 1e-3,
    time_limit: LimitOption = float("inf"),
    method: Annotated[str, typer.Option("--method", help=_METHOD_HELP)] = "auto",
    rounds: Annotated[int | None, whole("--rounds", help="For the factored form: rounds of weights.")] = None,
    work: Annotated[
        Path | None, typer.Option("--work", help="For the factored form: folder that keeps a run, to go on from.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", help="For the factored form: address of a dask scheduler.")
    ] = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Solve a design problem; its parameters follow PROBLEM, as --PARAMETER VALUE."""
    started = time.monotonic()
    file, parameters = _read(problem, context)
    from mechdesign.mechanism.storage.files import check_target, save
    from mechdesign.output.terminal import printing
    from mechdesign.output.terminal.summary import proved, summarise
    from mechdesign.solvers.factored.work_folder import discard_finished
    from mechdesign.solvers.solve import check_targets
    from mechdesign.solvers.solve import solve as solve_program

    stated = chosen_program(program, {"distances": distances, "worst_loss": worst_loss})
    check_targets(gap, time_limit)
    if output is not None:
        check_target(output, overwrite=overwrite)
    built = file.build(**parameters)
    beside = {"published": file.published(built.parameters), "remark": file.remark(built)}
    with printing.progress(f"{built.name}, {program}") as on_progress:
        route: Any = method
        mechanism = solve_program(
            stated(built),
            gap=gap,
            time_limit=time_limit,
            method=route,
            on_progress=on_progress,
            rounds=rounds,
            work=work,
            scheduler=scheduler,
        )
    checked = proved(mechanism)
    summary = summarise(mechanism, checked, seconds=time.monotonic() - started, file=output) | beside
    if output is not None:
        save(mechanism, output, overwrite=overwrite)
        if work is not None:
            discard_finished(work)
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
    file, parameters = _read(problem, context)
    from mechdesign.mechanism.storage.files import check_target
    from mechdesign.output.tables.compare import mechanisms, rows, write_rows
    from mechdesign.output.terminal import printing
    from mechdesign.solvers.solve import check_targets

    check_targets(gap, time_limit)
    if output is not None:
        check_target(output, overwrite=overwrite)
    built = file.build(**parameters)
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
    first: Annotated[float, real("--from", help="Smallest multiple of the metric.")] = 0.25,
    last: Annotated[float, real("--to", help="Largest multiple of the metric.")] = 4.0,
    points: Annotated[int, whole("--points", help="How many multiples, equally spaced in the logarithm.")] = 9,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="NetCDF file to write.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Picture to draw: .png, .pdf or .svg.")] = None,
    gap: GapOption = 1e-3,
    time_limit: Annotated[float, real("--time-limit", help="Seconds for each multiple.")] = float("inf"),
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Trace the optimal loss against a multiple of the metric: the privacy-utility curve, baselines beside it."""
    file, parameters = _read(problem, context)
    from mechdesign.mechanism.storage.files import check_target, save
    from mechdesign.output.pictures.plot import check_plot_target, save_plot
    from mechdesign.output.tables.sweep import multiplier_range, sweep_rows
    from mechdesign.output.tables.sweep import sweep as trace
    from mechdesign.output.terminal import printing
    from mechdesign.solvers.solve import check_targets

    multipliers = multiplier_range(first, last, points)
    check_targets(gap, time_limit)
    if output is not None:
        check_target(output, overwrite=overwrite)
    if plot is not None:
        check_plot_target(plot, overwrite=overwrite)
    built = file.build(**parameters)
    with printing.steps(built.name, total=points) as advance:
        curve = trace(
            built,
            multipliers,
            gap=gap,
            time_limit=time_limit,
            on_progress=lambda row: advance(f"multiplier {row['multiplier']:.4g}"),
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
    from mechdesign.output.terminal import printing
    from mechdesign.verification.verify import verify as verify_file

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
    problem: Annotated[
        str | None, typer.Option("--problem", help="A problem, its parameters after it: its metric.")
    ] = None,
    mechanism: Annotated[Path | None, typer.Option("--mechanism", help="A mechanism file: its metric.")] = None,
    variable: Annotated[str | None, typer.Option("--variable", help="The table in a .mat file of several.")] = None,
    normalise: Annotated[bool, typer.Option("--normalise", help="Divide every row by its sum.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="NetCDF file of the repaired table.")] = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Tell the true epsilon of a table of another program, and with -o repair and certify it."""
    from mechdesign.mechanism.storage.files import check_target, save
    from mechdesign.output.terminal import printing
    from mechdesign.output.terminal.summary import proved
    from mechdesign.setting.readers.table_files import read_table
    from mechdesign.verification.audit import audit as audit_table
    from mechdesign.verification.audit import repaired

    if output is not None:
        check_target(output, overwrite=overwrite)
    stated = None
    if problem is not None:
        file, parameters = _read(problem, context)
        stated = file.build(**parameters)
    setting = audit_setting(context.args, metric=metric, problem=stated, mechanism=mechanism)
    given = read_table(table, variable=variable)
    built = setting(len(given))
    result = audit_table(given, built, normalise=normalise)
    fixed = None if output is None else repaired(given, built, normalise=normalise)
    if output is not None and fixed is not None:
        proved(fixed)
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
    from mechdesign.mechanism.storage.files import load
    from mechdesign.output.export.export import export as write_table
    from mechdesign.output.terminal import printing

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
    secret: Annotated[int | None, whole("--secret", help="The number of the secret, instead of --at.")] = None,
    lon: Annotated[float | None, real("--lon", help="Degrees east, with --lat instead of --at.")] = None,
    lat: Annotated[float | None, real("--lat", help="Degrees north; reports in degrees too.")] = None,
    count: Annotated[int, whole("-n", help="How many reports; k of them cost k times the epsilon.")] = 1,
    seed: Annotated[int | None, whole("--seed", help="For simulations only: such reports are known.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Draw reports for a location (or a secret) from a certified mechanism, exactly; FILE comes first."""
    location = place_asked(at, context.args)
    from mechdesign.mechanism.storage.files import load
    from mechdesign.output.terminal import printing
    from mechdesign.output.terminal.sampling import sample_document

    drawn = sample_document(load(file), at=location, degrees=(lon, lat), secret=secret, count=count, seed=seed)
    if as_json:
        printing.print_json(drawn)
    else:
        printing.print_sample(drawn)


@app.command()
def plot(
    file: Annotated[Path, typer.Argument(help="A mechanism, sweep or diagnosis file (NetCDF).")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Picture to draw: .png, .pdf or .svg.")],
    secret: Annotated[list[int] | None, whole("--secret", help="Draw the row of this secret; may be repeated.")] = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Draw a mechanism over a grid (levels, prior, rows), a sweep or a diagnosis."""
    from mechdesign.output.pictures.plot import load_drawable, save_plot
    from mechdesign.output.terminal import printing

    written = save_plot(load_drawable(file), output, overwrite=overwrite, secrets=secret)
    if as_json:
        printing.print_json({"file": str(written)})
    else:
        printing.note(f"wrote {written}")


app.command()(level)


def _read(problem: str, context: typer.Context) -> tuple[ProblemFile, dict[str, str]]:
    """The problem file that a command names, and the words of its parameters."""
    from mechdesign.setting.problems.problem_files import read_problem_file

    if problem.startswith("-"):
        raise InputError(
            "parameters follow the problem, and options must be spelled right",
            field=problem,
            value=" ".join([problem, *context.args]),
            remedy="write: mechdesign COMMAND PROBLEM --PARAMETER VALUE",
        )
    file = read_problem_file(problem)
    taken = {name.lstrip("-").replace("-", "_") for p in context.command.params for name in p.opts}
    for parameter in file.parameters:
        if parameter in taken:
            raise InputError(
                "a parameter may not shadow an option", field=parameter, value=file.path, remedy="rename the parameter"
            )
    return file, parameter_values(file.name, tuple(file.parameters), context.args)

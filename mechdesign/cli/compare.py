"""`mechdesign compare`: the programs, the baselines and mechanisms of the user's own on one problem."""

from pathlib import Path
from typing import Annotated

import typer

from mechdesign.cli.options import (
    GapOption,
    JsonOption,
    LimitOption,
    OverwriteOption,
    PageOption,
    ProblemArgument,
    WithOption,
)
from mechdesign.cli.parsing import problem_asked
from mechdesign.errors import MechdesignError

INTERRUPTED = 130


def compare(
    context: typer.Context,
    problem: ProblemArgument,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Table to write: .csv, .json or .tex.")] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="Only this mechanism; may be repeated.")] = None,
    mine: WithOption = None,
    rivals: Annotated[
        bool, typer.Option("--rivals", help="With the mechanisms of the literature on estimating distributions.")
    ] = False,
    positions: Annotated[
        bool, typer.Option("--positions", help="With the design that is private between any two positions.")
    ] = False,
    gap: GapOption = 1e-3,
    time_limit: LimitOption = float("inf"),
    page: PageOption = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Compare the optimal, the eikonal and the closed-form mechanisms, and your own, on one problem."""
    file, parameters = problem_asked(problem, context)
    from mechdesign.output.tables.compare import Row, best_private, bounded, each_mechanism, judged
    from mechdesign.output.tables.files import check_table_target, documented, write_rows
    from mechdesign.output.tables.given import read_mechanisms
    from mechdesign.output.terminal import printing
    from mechdesign.output.terminal.comparison import print_rows
    from mechdesign.solvers.solve import check_targets

    check_targets(gap, time_limit)
    if output is not None:
        check_table_target(output, overwrite=overwrite)
    if page is not None:
        from mechdesign.output.page.page import check_page_target, save_page

        check_page_target(page, overwrite=overwrite)
    built = file.build(**parameters)
    given = read_mechanisms(mine or ())
    printing.note_compiling()
    made, interrupted = {}, False
    table: list[Row] = []
    try:
        with printing.progress(built.name, limit=time_limit) as on_progress:
            for name, mechanism in each_mechanism(
                built,
                gap=gap,
                time_limit=time_limit,
                only=only,
                given=given,
                rivals=rivals,
                positions=positions,
                on_progress=on_progress,
            ):
                made[name] = mechanism
                if not isinstance(mechanism, MechdesignError):
                    interrupted |= mechanism.attrs.get("stopped") == "interrupt"
                    table.append(judged(name, mechanism, built))
    except KeyboardInterrupt:
        judged_already = {row["mechanism"] for row in table}
        for name, mechanism in made.items():  # one at most: the interrupt came while it was judged
            if name not in judged_already and not isinstance(mechanism, MechdesignError):
                table.append(judged(name, mechanism, built))
        if not table:
            raise
        interrupted = True
    for name, mechanism in made.items():
        if isinstance(mechanism, MechdesignError):
            words = "had no time" if mechanism.field == "time_limit" else "does not fit this problem"
            printing.note(f"{name} {words}: {mechanism}")
    table = bounded(table, made)
    if output is not None:
        write_rows(table, output, overwrite=overwrite)
    if page is not None and table:
        save_page(best_private(table, made), page, comparison=table, overwrite=overwrite)
    if as_json:
        printing.print_json(documented(table))
    else:
        print_rows(table, built)
    if interrupted:
        printing.note("error: run: interrupted; the rows that were finished are above")
        raise SystemExit(INTERRUPTED)

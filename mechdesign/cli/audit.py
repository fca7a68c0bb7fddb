"""`mechdesign audit`: what a table of another program truly satisfies, and the metric that it is audited against."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mechdesign.cli.options import JsonOption, OverwriteOption, VerboseOption
from mechdesign.cli.parsing import epsilon_words, parameter_values, problem_asked
from mechdesign.errors import InputError

if TYPE_CHECKING:
    from mechdesign.setting.problems.problem import DesignProblem

_METRIC_HELP = (
    "euclidean --within METRES --factor ODDS, with --grid AxB --cell H or --places FILE.csv [--reports FILE.csv], and "
    "--unit U for lengths that are not in m; or discrete --factor ODDS. Both take --loss, and --nats for the logarithm "
    "of --factor or --epsilon E for the level (then --unit U is needed)."
)
_RULE_HELP = "Instead of a table, what devices round positions by: android-coarse or webkit-grid."


def audit(
    context: typer.Context,
    table: Annotated[
        Path | None, typer.Argument(help="A table: .csv, .npy, .mat, .parquet or Armadillo's .bin.")
    ] = None,
    metric: Annotated[str | None, typer.Option("--metric", help=_METRIC_HELP)] = None,
    problem: Annotated[
        str | None, typer.Option("--problem", help="A problem, its parameters after it: its metric.")
    ] = None,
    mechanism: Annotated[Path | None, typer.Option("--mechanism", help="A mechanism file: its metric.")] = None,
    variable: Annotated[str | None, typer.Option("--variable", help="The table in a .mat file of several.")] = None,
    normalise: Annotated[bool, typer.Option("--normalise", help="Divide every row by its sum.")] = False,
    rule: Annotated[str | None, typer.Option("--rule", help=_RULE_HELP)] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="NetCDF file of the repaired table.")] = None,
    overwrite: OverwriteOption = False,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
) -> None:
    """Tell the smallest epsilon of a table of another program, and with -o repair and certify it."""
    if rule is not None:
        others = {"table": table, "metric": metric, "problem": problem, "mechanism": mechanism, "output": output}
        _audit_rule(rule, {**others, "variable": variable, "normalise": normalise or None}, context, as_json=as_json)
        return
    if table is None:
        raise InputError("a table is needed", field="table", value="none", remedy="give its path, or --rule NAME")
    from mechdesign.mechanism.storage.files import check_target, save
    from mechdesign.output.terminal import printing
    from mechdesign.output.terminal.summary import proved
    from mechdesign.output.terminal.verdicts import print_audit
    from mechdesign.setting.readers.table_files import read_table
    from mechdesign.verification.audit import audit as audit_table
    from mechdesign.verification.audit import repaired

    if output is not None:
        check_target(output, overwrite=overwrite)
    stated = None
    if problem is not None:
        file, parameters = problem_asked(problem, context)
        stated = file.build(**parameters)
    setting = audit_setting(context.args, metric=metric, problem=stated, mechanism=mechanism)
    given = read_table(table, variable=variable)
    built = setting(len(given))
    printing.note_compiling()
    result = audit_table(given, built, normalise=normalise)
    fixed = None if output is None else repaired(given, built, normalise=normalise)
    if output is not None and fixed is not None:
        proved(fixed)
        save(fixed, output, overwrite=overwrite)
    loss = None if fixed is None else float(fixed.attrs["expected_loss"])
    outcome = None if fixed is None else {"loss": loss, "claim": fixed.attrs["claim"], "file": str(output)}
    if as_json:
        found = result.as_dict()
        printing.print_json({**found, "true_epsilon": found["smallest_epsilon"], "repaired": outcome})
    else:
        print_audit(result, outcome, verbose=verbose)


def _audit_rule(rule: str, others: Mapping[str, object], context: typer.Context, *, as_json: bool) -> None:
    """The audit of a rule that no table holds. Raises: InputError where something else is given with it."""
    from mechdesign.output.terminal import printing
    from mechdesign.output.terminal.verdicts import print_rule
    from mechdesign.verification.rules import audit_rule, vectors

    parameter_values("a rule", (), context.args)
    for name, value in others.items():
        if value is not None:
            raise InputError("a rule is audited alone", field=name, value=value, remedy="leave it out, or --rule")
    result = audit_rule(rule)
    if as_json:
        printing.print_json({**result.as_dict(), "vectors": vectors(rule)})
    else:
        print_rule(result)


def audit_setting(
    words: list[str], *, metric: str | None, problem: DesignProblem | None, mechanism: Path | None
) -> Callable[[int], DesignProblem]:
    """What a table of so many rows is audited against: a problem, a mechanism file, or a metric, its parameters in
    `words`.

    Raises: InputError unless exactly one of the three is given, and what reading it raises.
    """
    from mechdesign.setting.problems.from_words import SETTINGS, named_problem

    if sum(given is not None for given in (metric, problem, mechanism)) != 1:
        raise InputError(
            "an audit needs one metric",
            field="metric",
            value=metric or "none",
            remedy="pass one of --metric, --problem and --mechanism",
        )
    if problem is not None:
        return lambda secrets: problem
    if mechanism is not None:
        from mechdesign.mechanism.storage.files import load
        from mechdesign.mechanism.stored import read

        parameter_values("a mechanism file", (), words)
        stored = read(load(mechanism)).problem
        return lambda secrets: stored
    name = str(metric)
    lengths = {"euclidean": ("within", "factor", "nats"), "discrete": ("factor", "nats")}.get(name, ())
    given = parameter_values(name, (*SETTINGS[name], *lengths), words) if name in SETTINGS else {}
    parameters = {"unit": "m"} if "within" in given else {}
    parameters |= epsilon_words(given, radius=name == "euclidean")
    return lambda secrets: named_problem(name, parameters, secrets=secrets)

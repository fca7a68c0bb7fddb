"""`mechdesign audit`: the smallest epsilon of a table of another program, for a metric of the user's choice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mechdesign.cli.options import JsonOption, OverwriteOption, VerboseOption
from mechdesign.cli.parsing import epsilon_words, parameter_values, problem_asked
from mechdesign.errors import InputError

if TYPE_CHECKING:
    from mechdesign.problem.problem import DesignProblem

_METRIC_HELP = (
    "euclidean --within METRES --factor ODDS, with --grid AxB --cell H or --places FILE.csv [--reports FILE.csv], and "
    "--unit U for lengths that are not in m; or discrete --factor ODDS. Both take --loss, and --nats for the logarithm "
    "of --factor or --epsilon E for the level (then --unit U is needed)."
)
_RULE_HELP = "Instead of a table, what devices round positions by: android-coarse or webkit-grid."


def audit(
    context: typer.Context,
    table: Annotated[Path | None, typer.Argument(help="A table: .csv, .npy or .parquet.")] = None,
    metric: Annotated[str | None, typer.Option("--metric", help=_METRIC_HELP)] = None,
    problem: Annotated[
        str | None, typer.Option("--problem", help="A problem, its parameters after it: its metric.")
    ] = None,
    mechanism: Annotated[Path | None, typer.Option("--mechanism", help="A mechanism file: its metric.")] = None,
    normalise: Annotated[bool, typer.Option("--normalise", help="Divide every row by its sum.")] = False,
    rule: Annotated[str | None, typer.Option("--rule", help=_RULE_HELP)] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="NetCDF file of the repaired table.")] = None,
    overwrite: OverwriteOption = False,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
) -> None:
    """Compute the smallest epsilon of a table of another program, and with -o repair and certify it."""
    if rule is not None:
        others = {"table": table, "metric": metric, "problem": problem, "mechanism": mechanism, "output": output}
        _audit_rule(rule, {**others, "normalise": normalise or None}, context, as_json=as_json)
        return
    if table is None:
        raise InputError("a table is needed, or --rule NAME", field="table")
    from mechdesign.mechanism.storage import check_target, save
    from mechdesign.output import printing
    from mechdesign.output.summary import proved
    from mechdesign.output.verdicts import audit_words
    from mechdesign.problem.tables import read_table
    from mechdesign.verification.audit import audit as audit_table
    from mechdesign.verification.audit import repaired

    if output is not None:
        check_target(output, overwrite=overwrite)
    stated = None
    if problem is not None:
        file, parameters = problem_asked(problem, context)
        stated = file.build(**parameters)
    given = read_table(table)
    built = audit_setting(context.args, len(given), metric=metric, problem=stated, mechanism=mechanism)
    printing.note_compiling()
    result, outcome = audit_table(given, built, normalise=normalise), None
    if output is not None:
        fixed = repaired(given, built, normalise=normalise)
        proved(fixed)
        save(fixed, output, overwrite=overwrite)
        loss = float(fixed.attrs["expected_loss"])
        outcome = {"loss": loss, "claim": fixed.attrs["claim"], "file": str(output)}
    words = audit_words(result, outcome, verbose=verbose)
    printing.show({**result.as_dict(), "repaired": outcome}, words, as_json=as_json)


def _audit_rule(rule: str, others: Mapping[str, object], context: typer.Context, *, as_json: bool) -> None:
    """The audit of a rule that no table holds."""
    from mechdesign.base.registry import provider
    from mechdesign.output.printing import show

    parameter_values("a rule", (), context.args)
    for name, value in others.items():
        if value is not None:
            raise InputError("a rule is audited alone", field=name, value=value)
    rules = provider("rules")
    document = rules.audit_rule(rule) | {"vectors": rules.vectors(rule)}
    show(document, rules.rule_words(document), as_json=as_json)


def audit_setting(
    words: list[str], secrets: int, *, metric: str | None, problem: DesignProblem | None, mechanism: Path | None
) -> DesignProblem:
    """The problem for a table of so many secrets: given, of a file, or of a metric with its parameters in `words`."""
    from mechdesign.problem.problem import SETTINGS, named_problem

    if sum(given is not None for given in (metric, problem, mechanism)) != 1:
        raise InputError("pass one of --metric, --problem and --mechanism", field="metric", value=metric or "none")
    if problem is not None:
        return problem
    if mechanism is not None:
        from mechdesign.mechanism.storage import load
        from mechdesign.mechanism.stored import read

        parameter_values("a mechanism file", (), words)
        return read(load(mechanism)).problem
    name = str(metric)
    lengths = {"euclidean": ("within", "factor", "nats"), "discrete": ("factor", "nats")}.get(name, ())
    given = parameter_values(name, (*SETTINGS[name], *lengths), words) if name in SETTINGS else {}
    parameters = {"unit": "m"} if "within" in given else {}
    parameters |= epsilon_words(given, radius=name == "euclidean")
    return named_problem(name, parameters, secrets=secrets)

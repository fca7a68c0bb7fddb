"""`mechdesign audit`: the effective epsilon of a table of another program, for a metric of the user's choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from mechdesign.cli.extra_options import with_extra_options
from mechdesign.cli.inputs import PEOPLE, InputOptions
from mechdesign.cli.options import (
    ColumnsOption,
    CrsOption,
    JsonOption,
    OverwriteOption,
    VerboseOption,
)
from mechdesign.cli.parameters import epsilon_words, parameter_values, parse_problem
from mechdesign.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from mechdesign.problem.problem import DesignProblem

_METRIC_HELP = (
    "A mechanism file (.nc): its metric. A problem, its parameters after it: its metric. euclidean --within METRES "
    "--factor ODDS, with --grid AxB --cell H or --places FILE.csv (and --reports FILE.csv), and --unit U for lengths "
    "that are not in m; or discrete --factor ODDS. Both take --loss, and --epsilon E for the level (then --unit U is "
    "needed)."
)
_TABLE_HELP = (
    "A table: .csv, .npy or .parquet; or how devices round positions: android-coarse or webkit-grid, and with --disc, "
    "--people and --box W,S,E,N also planar-laplace --within METRES --factor ODDS."
)

_OUTPUT_HELP = "NetCDF file of the repaired table; or a picture of the shares of --disc by radius: .png, .pdf, .svg."


class AuditExtra(Protocol):
    """Options that a capability adds, and what they report of a table or of a rule of devices."""

    @property
    def files(self) -> tuple[Path | None, ...]:
        """The input files that --crs may be of."""
        ...

    @property
    def rule_parameters(self) -> tuple[str, ...]:
        """The parameters that a rule takes."""
        ...

    def check_picture(self, path: Path, *, overwrite: bool) -> None:
        """Refuse a picture that cannot be drawn, before any work."""
        ...

    def check_table(self) -> None:
        """Refuse options that do not fit together for a table, before any work."""
        ...

    def audit_rule(
        self, rule: str, words: Mapping[str, str], inputs: InputOptions, picture: Path | None, *, overwrite: bool
    ) -> tuple[dict[str, Any], list[str]] | None:
        """The JSON document of a rule, and its sentences; None if none is asked for."""
        ...

    def audit_table(
        self,
        entries: ArrayLike,
        problem: DesignProblem,
        inputs: InputOptions,
        picture: Path | None,
        *,
        overwrite: bool,
    ) -> tuple[dict[str, Any], list[str]]:
        """Further fields of the JSON document of a table (n, m), and further sentences."""
        ...


# Options of typer stand in the signature: each is a word of the command. The body is the order of its checks.
@with_extra_options("audit")
def audit(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help=_TABLE_HELP)],
    metric: Annotated[str | None, typer.Option("--metric", help=_METRIC_HELP)] = None,
    normalise: Annotated[bool, typer.Option("--normalise", help="Divide every row by its sum.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help=_OUTPUT_HELP)] = None,
    extra: AuditExtra | None = None,
    columns: ColumnsOption = None,
    crs: CrsOption = None,
    overwrite: OverwriteOption = False,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
) -> None:
    """Example: `mechdesign audit android-coarse`.

    Compute the effective epsilon of a table of another program, and with -o repair and certify it.
    """
    inputs = InputOptions(columns, crs)
    inputs.refuse_unused_system(*(() if extra is None else extra.files))
    picture = None
    if extra is not None and output is not None and output.suffix.lower() != ".nc":
        extra.check_picture(output, overwrite=overwrite)
        picture, output = output, None
    if not Path(table).suffix and not Path(table).exists():
        others = {"metric": metric, "output": output, "normalise": normalise or None}
        parameters = parameter_values("a rule", () if extra is None else extra.rule_parameters, context.args)
        for name, value in others.items():
            if value is not None:
                raise InputError("a rule is audited alone", field=name, value=value)
        report = None
        if extra is not None:
            report = extra.audit_rule(table, parameters, inputs, picture, overwrite=overwrite)
        _show_rule(table, report, as_json=as_json)
        return
    if extra is not None:
        extra.check_table()
    from mechdesign.base.atomic_write import check_target
    from mechdesign.mechanism.storage import save
    from mechdesign.output import text_tables as printing
    from mechdesign.output.reports.solve import proved
    from mechdesign.output.reports.verdict import audit_words
    from mechdesign.problem.places import PLACE_ROLES
    from mechdesign.problem.tables import TABLE_ROLES, read_table
    from mechdesign.verification.audit import audit_checked, check_table, repair_checked

    if output is not None:
        check_target(output, overwrite=overwrite)
    named = inputs.columns_of(*TABLE_ROLES, *PLACE_ROLES, *PEOPLE)
    setting, notes = _setting(context, metric, named), list[str]()
    entries = read_table(Path(table), columns=named, on_note=notes.append)
    for told in notes:
        printing.note(told)
    built = setting(len(entries))
    printing.note_compiling()
    with printing.progress(f"audit {Path(table).name}") as on_progress:
        checked = check_table(entries, built, normalise=normalise)
        result = audit_checked(checked, built, on_progress=on_progress)
    outcome = None
    if output is not None:
        fixed = repair_checked(checked, built)
        proved(fixed)
        save(fixed, output, overwrite=overwrite)
        loss = float(fixed.attrs["expected_loss"])
        outcome = {"loss": loss, "claim": fixed.attrs["claim"], "file": str(output)}
    document: dict[str, Any] = {**result.as_dict(), "repaired": outcome}
    document["notes"] = [*notes, *document["notes"]]
    words = list(audit_words(result, outcome, verbose=verbose))
    if extra is not None:
        fields, more = extra.audit_table(entries, built, inputs, picture, overwrite=overwrite)
        document |= fields
        words += more
    printing.show(document, words, as_json=as_json)


def _show_rule(rule: str, report: tuple[dict[str, Any], list[str]] | None, *, as_json: bool) -> None:
    """Print the audit of a rule that no table holds: a report of further options, else what it says of positions."""
    from mechdesign.output.reports.verdict import RULE_AUDITOR
    from mechdesign.output.text_tables import show

    if report is not None:
        show(*report, as_json=as_json)
        return
    auditor = RULE_AUDITOR.get()
    document = auditor.audit(rule)
    show(document, auditor.words(document), as_json=as_json)


def _setting(
    context: typer.Context, metric: str | None, columns: dict[str, str] | None
) -> Callable[[int], DesignProblem]:
    """The problem of --metric for a number of secrets: of a mechanism file, a problem, or a metric with parameters."""
    from mechdesign.cli.metric_problem import SETTINGS, named_problem
    from mechdesign.problem.problem_files import shipped_paths

    if metric is None:
        remedy = "pass --metric euclidean or discrete, a problem or a mechanism file"
        raise InputError(
            "the distance that the table is private by is needed", field="metric", value="none", remedy=remedy
        )
    if metric not in SETTINGS:
        if Path(metric).suffix.lower() == ".nc":
            from mechdesign.mechanism.mechanism_file import MechanismFile
            from mechdesign.mechanism.storage import load

            parameter_values("a mechanism file", (), context.args)
            problem = MechanismFile.read(load(metric)).problem
        elif metric not in shipped_paths() and not Path(metric).suffix:
            remedy = "use euclidean, discrete, a problem or a mechanism file"
            raise InputError("unknown metric", field="metric", value=metric, remedy=remedy)
        else:
            file, words = parse_problem(metric, context)
            problem = file.build(**words)
        return lambda secrets: problem
    lengths = ("within", "factor") if metric == "euclidean" else ("factor",)
    values = parameter_values(metric, (*SETTINGS[metric], *lengths), context.args)
    parameters = {"unit": "m"} if "within" in values else {}
    parameters |= epsilon_words(values, radius=metric == "euclidean")
    return lambda secrets: named_problem(metric, parameters, secrets=secrets, columns=columns)

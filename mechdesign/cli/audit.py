"""`mechdesign audit`: the effective epsilon of a table that another program made, for a given metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from mechdesign.cli.extra_options import with_extra_options
from mechdesign.cli.inputs import PEOPLE, InputOptions
from mechdesign.cli.options import (
    ColumnsOption,
    CrsOption,
    ExitZeroOption,
    JsonOption,
    OverwriteOption,
    VerboseOption,
    check_outputs,
)
from mechdesign.cli.parameters import epsilon_words, parameter_values, parse_problem
from mechdesign.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from mechdesign.problem.problem import DesignProblem

_METRIC_HELP = (
    "The metric of the claim, as FILE.nc of a mechanism, PROBLEM with its parameters, euclidean or discrete. "
    "euclidean takes --within METRES --factor ODDS, and --grid AxB --cell H or --places FILE.csv (and --reports "
    "FILE.csv). Add --unit U for lengths that are not in m. discrete takes --factor ODDS. Both take --loss. Both take "
    "--epsilon E instead of --factor; euclidean then needs --unit U."
)
_TABLE_HELP = (
    "A table (.csv, .npy, .parquet), or a rule that blurs positions, such as android-coarse, geohash-6 or decimals-2, "
    "with --at LATITUDE and --disc. With --disc, --people and --box W,S,E,N android-coarse, webkit-grid and "
    "planar-laplace --within METRES --factor ODDS are audited where people live; a blur with --people alone."
)

_OUTPUT_HELP = "The repaired table (.nc), or a picture of the shares of --disc by radius (.png, .pdf, .svg)."


class AuditExtra(Protocol):
    """Options that a capability adds to `audit`."""

    @property
    def files(self) -> tuple[Path | None, ...]:
        """Input files to which --crs may apply."""
        ...

    @property
    def rule_parameters(self) -> tuple[str, ...]: ...

    def radii(self) -> list[float]:
        """The radii of discs in m, for a blur; InputError for options that do not apply to one."""
        ...

    def check_picture(self, path: Path, *, overwrite: bool) -> None:
        """Raise InputError if the picture cannot be drawn, before any work."""
        ...

    def check_table(self) -> None:
        """Raise InputError if the options contradict each other for a table, before any work."""
        ...

    def audit_rule(
        self, rule: str, words: Mapping[str, str], inputs: InputOptions, picture: Path | None, *, overwrite: bool
    ) -> tuple[dict[str, Any], list[str]] | None:
        """The JSON document of a rule and its sentences; None if the options are not used."""
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


class BlurExtra(Protocol):
    """Options about blurs that a capability adds to `audit`."""

    @property
    def is_given(self) -> bool:
        """True if a blur is audited, not a table."""
        ...

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters of a blur, --NAME VALUE."""
        ...

    def rule_options(self, words: Mapping[str, str], radii: Sequence[float]) -> Mapping[str, float]:
        """The arguments of an audit of a rule, with radii of discs in m."""
        ...

    def audit(
        self,
        words: Mapping[str, str],
        radii: Sequence[float],
        picture: Path | None,
        inputs: InputOptions,
        *,
        overwrite: bool,
    ) -> tuple[dict[str, Any], list[Any], bool]:
        """The JSON document of a blur, its text, and True if the audit fails."""
        ...


# Options of typer stand in the signature: each is a word of the command. The body is the order of its checks.
@with_extra_options("audit")
@with_extra_options("audit blur", into="blur")
def audit(
    context: typer.Context,
    table: Annotated[str | None, typer.Argument(help=_TABLE_HELP)] = None,
    metric: Annotated[str | None, typer.Option("--metric", help=_METRIC_HELP)] = None,
    normalise: Annotated[bool, typer.Option("--normalise", help="Divide every row by its sum.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help=_OUTPUT_HELP)] = None,
    extra: AuditExtra | None = None,
    blur: BlurExtra | None = None,
    columns: ColumnsOption = None,
    crs: CrsOption = None,
    exit_zero: ExitZeroOption = False,
    overwrite: OverwriteOption = False,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
) -> None:
    """Example: `mechdesign audit android-coarse`.

    Compute the effective epsilon of a table that another program made: exit code 1 if it breaks the claim. With -o,
    also repair and certify it: exit code 0. With
    --function or --command, look for defects of a program that blurs positions.
    """
    if table is not None and table.startswith("--"):
        # Without a table Click takes the first parameter for it.
        context.args, table = [table, *context.args], None
    if blur is not None and blur.is_given:
        _refuse("does not apply to a blur", {"table": table, "metric": metric, "normalise": normalise or None})
        level = parameter_values("a blur", blur.parameters, context.args)
        radii, people = ([], None) if extra is None else (extra.radii(), extra.files[0])
        if people is None:
            _refuse("requires --people", {"columns": columns, "crs": crs})
        result = blur.audit(level, radii, output, InputOptions(columns, crs, people), overwrite=overwrite)
        _show_blur(result, exit_zero=exit_zero, as_json=as_json)
        return
    if table is None:
        remedy = "pass a table or a rule, --function MODULE:NAME or --command PROGRAM"
        raise InputError("is required", field="table", value="none", remedy=remedy)
    inputs = InputOptions(columns, crs)
    inputs.refuse_unused_system(*(() if extra is None else extra.files))
    picture = None
    if extra is not None and output is not None and output.suffix.lower() != ".nc":
        extra.check_picture(output, overwrite=overwrite)
        picture, output = output, None
    # A word without a suffix that names no file is a rule.
    if not Path(table).suffix and not Path(table).exists():
        known = (*(() if extra is None else extra.rule_parameters), *(() if blur is None else ("at",)))
        parameters = parameter_values("a rule", known, context.args)
        place = {name: parameters.pop(name) for name in ("at",) if name in parameters}
        _refuse("does not apply to a rule", {"metric": metric, "output": output, "normalise": normalise or None})
        report = None
        if extra is not None:
            report = extra.audit_rule(table, parameters, inputs, picture, overwrite=overwrite)
        given: Mapping[str, float] = {}
        if report is None and blur is not None:
            given = blur.rule_options(place, [] if extra is None else extra.radii())
        _show_rule(table, report, given, as_json=as_json)
        return
    if extra is not None:
        extra.check_table()
    from mechdesign.base.atomic_write import check_target
    from mechdesign.output.text_tables import show

    check_outputs((output, check_target), overwrite=overwrite)
    build, named = _problem_builder(context, metric, inputs)
    document, words, entries, problem = _audit_table(
        Path(table), build, named, normalise=normalise, output=output, overwrite=overwrite, verbose=verbose
    )
    if extra is not None:
        fields, more = extra.audit_table(entries, problem, inputs, picture, overwrite=overwrite)
        document |= fields
        words += more
    show(document, words, as_json=as_json)
    # With -o the result is the repaired file, which is certified.
    if document["verdict"] == "broken" and output is None and not exit_zero:
        raise typer.Exit(1)


def _audit_table(
    table: Path,
    build: DesignProblem | Callable[[int], DesignProblem],
    columns: dict[str, str] | None,
    *,
    normalise: bool,
    output: Path | None,
    overwrite: bool,
    verbose: bool,
) -> tuple[dict[str, Any], list[Any], ArrayLike, DesignProblem]:
    """Audit a table and write its repair: the JSON document, its words, the entries (n, m) and the problem."""
    from mechdesign.mechanism.storage import save
    from mechdesign.output import text_tables as printing
    from mechdesign.output.reports.solve import require_verified
    from mechdesign.output.reports.verdict import audit_words
    from mechdesign.problem.problem import DesignProblem
    from mechdesign.problem.tables import read_table
    from mechdesign.verification.audit import audit_checked, check_table, repair_checked

    notes = list[str]()
    known = build if isinstance(build, DesignProblem) else None
    labels = {} if known is None else {"secrets": known.domain.labels, "reports": known.reports.labels}
    entries = read_table(table, columns=columns, on_note=notes.append, **labels)
    for note in notes:
        printing.note(note)
    built = build if isinstance(build, DesignProblem) else build(len(entries))
    printing.note_compiling()
    with printing.progress(f"audit {table.name}") as on_progress:
        checked = check_table(entries, built, normalise=normalise)
        result = audit_checked(checked, built, on_progress=on_progress)
    outcome = None
    if output is not None:
        repaired = repair_checked(checked, built)
        require_verified(repaired)
        save(repaired, output, overwrite=overwrite)
        loss = float(repaired.attrs["expected_loss"])
        outcome = {"loss": loss, "claim": repaired.attrs["claim"], "file": str(output)}
    document: dict[str, Any] = {**result.as_dict(), "repaired": outcome}
    document["notes"] = [*notes, *document["notes"]]
    return document, list(audit_words(result, outcome, verbose=verbose)), entries, built


def _refuse(why: str, options: Mapping[str, object]) -> None:
    for name, value in options.items():
        if value is not None:
            raise InputError(why, field=name, value=value)


def _show_blur(report: tuple[dict[str, Any], list[Any], bool], *, exit_zero: bool, as_json: bool) -> None:
    from mechdesign.output.text_tables import show

    document, words, fails = report
    show(document, words, as_json=as_json)
    if fails and not exit_zero:
        raise typer.Exit(1)


def _show_rule(
    rule: str, report: tuple[dict[str, Any], list[str]] | None, given: Mapping[str, float], *, as_json: bool
) -> None:
    """Print the audit of a rule: the report of further options, else that of the rule itself."""
    from mechdesign.output.reports.verdict import RULE_AUDITOR
    from mechdesign.output.text_tables import show

    if report is not None:
        show(*report, as_json=as_json)
        return
    auditor = RULE_AUDITOR.get()
    document = auditor.audit(rule, **given)
    show(document, auditor.words(document), as_json=as_json)


def _problem_builder(
    context: typer.Context, metric: str | None, inputs: InputOptions
) -> tuple[DesignProblem | Callable[[int], DesignProblem], dict[str, str] | None]:
    """The problem of --metric, or it as a function of the number of secrets, and the columns of --columns."""
    from mechdesign.cli.metric_problem import SETTINGS, named_problem
    from mechdesign.problem.places import PLACE_ROLES
    from mechdesign.problem.problem_files import shipped_paths
    from mechdesign.problem.tables import TABLE_ROLES

    columns = inputs.columns_of(*TABLE_ROLES, *PLACE_ROLES, *PEOPLE)
    if metric is None:
        remedy = "pass --metric euclidean or discrete, a problem or a mechanism file"
        raise InputError("is required", field="metric", value="none", remedy=remedy)
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
        return problem, columns
    # The discrete metric has no length, so its level is a factor alone.
    lengths = ("within", "factor") if metric == "euclidean" else ("factor",)
    values = parameter_values(metric, (*SETTINGS[metric], *lengths), context.args)
    parameters = {"unit": "m"} if "within" in values else {}
    parameters |= epsilon_words(values, radius=metric == "euclidean")
    return lambda secrets: named_problem(metric, parameters, secrets=secrets, columns=columns), columns

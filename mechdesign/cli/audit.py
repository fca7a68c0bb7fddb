"""`mechdesign audit`: the effective epsilon of a table of another program, for a metric of the user's choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mechdesign.cli.inputs import PEOPLE, InputOptions
from mechdesign.cli.options import (
    ColumnsOption,
    CrsOption,
    DiscOption,
    JsonOption,
    OverwriteOption,
    PeopleOption,
    VerboseOption,
)
from mechdesign.cli.parsing import (
    check_disc_picture,
    draw_discs,
    epsilon_words,
    parameter_values,
    parse_box,
    parse_discs,
    parse_problem,
)
from mechdesign.errors import InputError

if TYPE_CHECKING:
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


def audit(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help=_TABLE_HELP)],
    metric: Annotated[str | None, typer.Option("--metric", help=_METRIC_HELP)] = None,
    normalise: Annotated[bool, typer.Option("--normalise", help="Divide every row by its sum.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help=_OUTPUT_HELP)] = None,
    disc: DiscOption = None,
    people: PeopleOption = None,
    columns: ColumnsOption = None,
    crs: CrsOption = None,
    overwrite: OverwriteOption = False,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
) -> None:
    """Example: `mechdesign audit android-coarse`.

    Compute the effective epsilon of a table of another program, and with -o repair and certify it.
    """
    inputs = InputOptions(columns, crs, people)
    inputs.refuse_unused_system(people)
    picture = None
    if output is not None and output.suffix.lower() != ".nc":
        check_disc_picture(output, disc, overwrite=overwrite)
        picture, output = output, None
    if not Path(table).suffix and not Path(table).exists():
        others = {"metric": metric, "output": output, "normalise": normalise or None}
        _audit_rule(
            table,
            others,
            context,
            disc=disc,
            inputs=inputs,
            picture=picture,
            overwrite=overwrite,
            as_json=as_json,
        )
        return
    if disc is None and people is not None:
        raise InputError("is for discs; pass --disc 564", field="people", value=people)
    from mechdesign.mechanism.storage import check_target, save
    from mechdesign.output import text_tables as printing
    from mechdesign.output.reports.solve import proved
    from mechdesign.output.reports.verdict import audit_words
    from mechdesign.problem.tables import PLACE_ROLES, TABLE_ROLES, read_table
    from mechdesign.verification.audit import audit as audit_table
    from mechdesign.verification.audit import repaired

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
        result, outcome = audit_table(entries, built, normalise=normalise, on_progress=on_progress), None
    if output is not None:
        fixed = repaired(entries, built, normalise=normalise)
        proved(fixed)
        save(fixed, output, overwrite=overwrite)
        loss = float(fixed.attrs["expected_loss"])
        outcome = {"loss": loss, "claim": fixed.attrs["claim"], "file": str(output)}
    document: dict[str, Any] = {**result.as_dict(), "repaired": outcome}
    document["notes"] = [*notes, *document["notes"]]
    words = list(audit_words(result, outcome, verbose=verbose))
    if disc is not None:
        from mechdesign.posteriors.audit import audit_discs
        from mechdesign.posteriors.words import disc_words

        persons = inputs.people_of(built.domain)
        weight = built.prior_array if persons is None else persons
        radii, area = parse_discs(disc, built.domain.unit)
        audits = [audit_discs(entries, built.domain, weight, radius, centres=area) for radius in radii]
        document["discs"] = [each.as_dict() for each in audits]
        draw_discs(document["discs"], picture, overwrite=overwrite)
        words += disc_words(document["discs"], prior=people is None)
    printing.show(document, words, as_json=as_json)


def _audit_rule(
    rule: str,
    others: Mapping[str, object],
    context: typer.Context,
    *,
    disc: str | None,
    inputs: InputOptions,
    picture: Path | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """The audit of a rule that no table holds: what it says of positions, or of discs where people live."""
    from mechdesign.output.reports.verdict import RULE_AUDITOR, RULE_DISC_AUDITOR
    from mechdesign.output.text_tables import note, show

    parameters = ("box", "within", "factor", "epsilon") if disc is not None else ()
    words = parameter_values("a rule", parameters, context.args)
    for name, value in others.items():
        if value is not None:
            raise InputError("a rule is audited alone", field=name, value=value)
    if disc is not None or inputs.people is not None:
        if disc is None or inputs.people is None or "box" not in words:
            message = "discs of a rule need people and a window; pass --disc 564 --people FILE --box W,S,E,N"
            raise InputError(message, field="disc", value=disc)
        from mechdesign.posteriors.words import disc_words

        box = words.pop("box")
        level = epsilon_words(words, radius=True).get("epsilon")
        epsilon = None if level is None else float(level)
        radii, area = parse_discs(disc, "m")
        if area:
            raise InputError("rules are audited by discs; leave out :area", field="disc", value=disc)
        found = RULE_DISC_AUDITOR.get().audit(
            rule,
            inputs.people,
            parse_box(box),
            radii,
            epsilon=epsilon,
            columns=inputs.columns_of(*PEOPLE),
            crs=inputs.crs,
            on_note=note,
        )
        draw_discs(found["discs"], picture, overwrite=overwrite)
        show(found, disc_words(found["discs"]), as_json=as_json)
        return
    auditor = RULE_AUDITOR.get()
    document = auditor.audit(rule)
    show(document, auditor.words(document), as_json=as_json)


def _setting(
    context: typer.Context, metric: str | None, columns: dict[str, str] | None
) -> Callable[[int], DesignProblem]:
    """The problem of --metric, given the number of secrets of the table: that of a mechanism file, a problem, or of a
    metric with its parameters.
    """
    from mechdesign.cli.metric_problem import SETTINGS, named_problem
    from mechdesign.problem.problem_files import shipped_paths

    if metric is None:
        remedy = "pass --metric euclidean or discrete, a problem or a mechanism file"
        raise InputError(
            "the distance that the table is private by is needed", field="metric", value="none", remedy=remedy
        )
    if metric not in SETTINGS:
        if Path(metric).suffix.lower() == ".nc":
            from mechdesign.mechanism.claim import MechanismFile
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

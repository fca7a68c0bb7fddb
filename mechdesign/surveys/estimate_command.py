"""`mechdesign estimate`: from a file of reports to shares of areas with intervals. Heavy imports are inside."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mechdesign.cli.inputs import InputOptions
from mechdesign.cli.options import (
    AREAS,
    ColumnsOption,
    ConfidenceOption,
    CrsOption,
    ExitZeroOption,
    JsonOption,
    NameFieldOption,
    OverwriteOption,
    SimultaneousOption,
    real,
)
from mechdesign.cli.remedies import as_options
from mechdesign.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

    from mechdesign.geo.area_shapes import AreaShapes
    from mechdesign.geo.partition import Partition
    from mechdesign.problem.columns import Columns
    from mechdesign.problem.domain import Domain
    from mechdesign.surveys.reports import CountedReports

_REPORTS_HELP = "CSV of reports: column report, or x and y, or longitude and latitude; optional: count, mechanism."
_WEIGHTS_HELP = "Column of survey weights: the inverse of the probability of asking a person, up to a factor."
_BY_HELP = "Column of the domain of each person: one estimate a domain, and its difference from all other persons."
_MISSING_HELP = "Lines without a report: leave them out and count them, or make them a class."
_POPULATION_HELP = "Persons whose shares are estimated, if they are not many more than those who answer."
_OUTPUT_HELP = "File to write: .csv, .json, .nc, .html or, on Earth, a layer .geojson, .gpkg, .parquet; repeatable."
_CELLS_HELP = "Layers: one feature a cell also with --areas, whose features are the areas otherwise."


# One argument for each option of the command line.
def estimate(
    reports: Annotated[Path, typer.Argument(help=_REPORTS_HELP)],
    files: Annotated[list[Path], typer.Argument(help="The mechanism files (NetCDF) that made the reports.")],
    areas: Annotated[str | None, AREAS] = None,
    name_field: NameFieldOption = None,
    crs: CrsOption = None,
    columns: ColumnsOption = None,
    confidence: ConfidenceOption = 0.95,
    simultaneous: SimultaneousOption = False,
    against: Annotated[
        Path | None, typer.Option("--against", help="Reports of another period to compare with, in the same form.")
    ] = None,
    weights: Annotated[str | None, typer.Option("--weights", metavar="COLUMN", help=_WEIGHTS_HELP)] = None,
    by: Annotated[str | None, typer.Option("--by", metavar="COLUMN", help=_BY_HELP)] = None,
    missing: Annotated[str | None, typer.Option("--missing", metavar="leave-out|class", help=_MISSING_HELP)] = None,
    population: Annotated[float | None, real("--population", help=_POPULATION_HELP)] = None,
    output: Annotated[list[Path] | None, typer.Option("-o", "--output", help=_OUTPUT_HELP)] = None,
    cells: Annotated[bool, typer.Option("--cells", help=_CELLS_HELP)] = False,
    exit_zero: ExitZeroOption = False,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Example: `mechdesign estimate reports.csv flat.nc --areas 2x2`.

    Estimate the distribution of secrets and the shares of areas, with confidence intervals. Exit code 1 if the reports
    do not fit the mechanism.
    """
    from mechdesign.geo.area_shapes import shapes_of_areas
    from mechdesign.mechanism.storage import load
    from mechdesign.output import text_tables as printing
    from mechdesign.surveys.channel import shared_domain
    from mechdesign.surveys.document import EstimateDocument
    from mechdesign.surveys.export import LAYERS
    from mechdesign.surveys.reports import ROLES
    from mechdesign.surveys.shares import estimate_shares
    from mechdesign.surveys.terminal import estimate_words

    _refuse_swapped(reports, files)
    mechanisms = [load(path) for path in files]
    domain = shared_domain(mechanisms)
    survey = _Survey(
        weights=weights,
        by=by,
        missing=missing,
        population=population,
        confidence=confidence,
        simultaneous=simultaneous,
    )
    if used := survey.used_options:
        if areas is None or against is not None or len(mechanisms) > 1:
            remedy = "give --areas, one mechanism, and no --against"
            raise InputError("need areas and one mechanism", field="survey", value=used, remedy=remedy)
        _estimate_survey(
            reports,
            mechanisms[0],
            survey,
            areas=_areas(areas, domain, name_field=name_field, inputs=InputOptions(columns, crs)),
            columns=InputOptions(columns).columns_of(*ROLES, "cell", "area"),
            output=output or [],
            exit_zero=exit_zero,
            overwrite=overwrite,
            as_json=as_json,
        )
        return
    for path in output or []:
        _check_target(path, overwrite=overwrite, on_earth=domain.plane is not None)
    if areas is None and (against, name_field, crs) != (None, None, None):
        raise InputError(
            "is required by --against, --name-field and --crs", field="areas", value="none", remedy="pass --areas FILE"
        )
    inputs = InputOptions(columns, crs)
    inputs.refuse_unused_system(areas if areas is not None and Path(areas).suffix else None)
    named = inputs.columns_of(*ROLES, "cell", "area")
    files_of = {"columns": reports} | ({} if against is None else {"against_columns": against})
    periods = {key: _count(path, mechanisms, named) for key, path in files_of.items()}
    partition = None if areas is None else _areas(areas, domain, name_field=name_field, inputs=inputs)
    estimated = estimate_shares(
        mechanisms,
        list(periods["columns"].counts.values()),
        partition,
        confidence=confidence,
        simultaneous=simultaneous,
        against=None if against is None else list(periods["against_columns"].counts.values()),
    )
    layers = [path for path in output or [] if path.suffix.lower() in LAYERS]
    shapes = None
    if layers and areas is not None and partition is not None and not cells:
        shapes = shapes_of_areas(areas, domain, partition, name_field=name_field, crs=crs)
    for path in output or []:
        _save(estimated, path, mechanisms, areas=shapes, overwrite=overwrite)
    document = EstimateDocument(estimate=estimated)
    read_columns = {key: {"read": period.read, "ignored": period.ignored} for key, period in periods.items()}
    printing.show(document.as_json() | read_columns, estimate_words(document), as_json=as_json)
    if not exit_zero and document.is_misfit:
        raise typer.Exit(1)


@dataclass(frozen=True, kw_only=True)
class _Survey:
    """The options of a survey with weights, domains, missing answers, or a finite population."""

    weights: str | None
    by: str | None
    missing: str | None
    population: float | None
    confidence: float
    simultaneous: bool

    @property
    def used_options(self) -> str:
        """The options that were given, empty without one."""
        given = {name: getattr(self, name) for name in ("weights", "by", "missing", "population")}
        return ", ".join(f"--{name}" for name, value in given.items() if value is not None)


def _areas(areas: str, domain: Domain, *, name_field: str | None, inputs: InputOptions) -> Partition:
    from mechdesign.geo.partition import read_areas
    from mechdesign.output.text_tables import note
    from mechdesign.surveys.reports import ROLES

    return read_areas(
        areas,
        domain,
        name_field=name_field,
        crs=inputs.crs,
        columns=inputs.columns_of(*ROLES, "cell", "area"),
        on_note=lambda text: note(as_options(text)),
    )


# The parts of one command, passed on.
def _estimate_survey(
    reports: Path,
    mechanism: xr.Dataset,
    survey: _Survey,
    *,
    areas: Partition,
    columns: Columns,
    output: list[Path],
    exit_zero: bool,
    overwrite: bool,
    as_json: bool,
) -> None:
    from mechdesign.mechanism.mechanism_file import MechanismFile
    from mechdesign.output.text_tables import note, show
    from mechdesign.surveys import weighted_words as words
    from mechdesign.surveys.answers import read_answers
    from mechdesign.surveys.channel import report_places
    from mechdesign.surveys.goodness_of_fit import REFUSED
    from mechdesign.surveys.weighted import weighted_shares

    for path in output:
        words.check_weighted_target(path, overwrite=overwrite)
    if survey.missing not in (None, "leave-out", "class"):
        raise InputError("unknown choice", field="missing", value=survey.missing, remedy="use leave-out or class")
    answers = read_answers(
        reports,
        report_places(MechanismFile.read(mechanism)),
        columns=columns,
        weights=survey.weights,
        by=survey.by,
        allow_missing=survey.missing is not None,
    )
    note(f"{reports.name}: read columns {', '.join(answers.read)}.")
    shares = weighted_shares(
        mechanism,
        answers.reports,
        areas,
        weights=answers.weights,
        by=answers.by,
        missing="class" if survey.missing == "class" else "leave-out",
        population=survey.population,
        confidence=survey.confidence,
        simultaneous=survey.simultaneous,
    )
    for path in output:
        words.save_weighted(shares, path)
    document = words.weighted_document(shares)
    read_columns = {"columns": {"read": answers.read, "ignored": answers.ignored}}
    show(document | read_columns, words.weighted_words(document), as_json=as_json)
    if not exit_zero and document["fit_p"] < REFUSED:
        raise typer.Exit(1)


def _refuse_swapped(reports: Path, files: list[Path]) -> None:
    if reports.suffix.lower() == ".nc":
        raise InputError(
            "is a mechanism file, not reports",
            field="reports",
            value=reports,
            remedy=f"give the reports first: mechdesign estimate {' '.join(map(str, [*files, reports]))}",
        )


def _check_target(path: Path, *, overwrite: bool, on_earth: bool) -> None:
    from mechdesign.output.export import PAGE_WRITER
    from mechdesign.surveys.export import check_shares_target

    if _is_page(path):
        PAGE_WRITER.get().check_target(path, overwrite=overwrite)
    else:
        check_shares_target(path, overwrite=overwrite, on_earth=on_earth)


def _save(
    estimated: xr.Dataset, path: Path, mechanisms: list[xr.Dataset], *, areas: AreaShapes | None, overwrite: bool
) -> None:
    from mechdesign.output.export import PAGE_WRITER
    from mechdesign.surveys.export import save_shares

    if _is_page(path):
        PAGE_WRITER.get().save(estimated, path, mechanisms=mechanisms, overwrite=overwrite)
    else:
        save_shares(estimated, path, areas=areas, overwrite=overwrite)


def _count(path: Path, mechanisms: list[xr.Dataset], columns: Columns) -> CountedReports:
    from mechdesign.mechanism.mechanism_file import MechanismFile
    from mechdesign.output.text_tables import note
    from mechdesign.surveys.channel import report_places
    from mechdesign.surveys.reports import count_reports

    places = {str(one.attrs["sha256"]): report_places(MechanismFile.read(one)) for one in mechanisms}
    counted = count_reports(path, places, columns=columns)
    note(counted.words(path.name))
    return counted


def _is_page(path: Path) -> bool:
    return path.suffix.lower() == ".html"

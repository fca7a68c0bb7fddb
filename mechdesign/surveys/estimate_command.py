"""`mechdesign estimate`: from a file of reports to shares of areas with intervals. Heavy imports are inside."""

from __future__ import annotations

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
from mechdesign.errors import InputError
from mechdesign.surveys.survey_command import AreaOptions, OutputOptions, SurveyOptions, estimate_survey

if TYPE_CHECKING:
    import xarray as xr

    from mechdesign.geo.area_shapes import AreaShapes
    from mechdesign.problem.columns import Columns
    from mechdesign.surveys.reports import CountedReports

_REPORTS_HELP = "CSV of reports: column report, or x and y, or longitude and latitude; optional: count, mechanism."
_WEIGHTS_HELP = "Column of survey weights: the inverse of the probability of asking a person, up to a factor."
_BY_HELP = "Column of the domain of each person: one estimate a domain, and its difference from all other persons."
_MISSING_HELP = "Lines without a report: leave them out and count them, or make them a class."
_POPULATION_HELP = "Persons whose shares are estimated, if they are not many more than those who answer."
_OUTPUT_HELP = "File to write: .csv, .xlsx, .json, .nc, .html or, on Earth, .geojson, .gpkg, .parquet; repeatable."
_LAYER_CRS_HELP = "Coordinate system of .gpkg and .parquet layers, such as EPSG:32633, or plane. Degrees by default."
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
    layer_crs: Annotated[str | None, typer.Option("--layer-crs", metavar="SYSTEM", help=_LAYER_CRS_HELP)] = None,
    exit_zero: ExitZeroOption = False,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Example: `mechdesign estimate reports.csv flat.nc --areas 2x2`.

    Estimate the distribution of secrets and the shares of areas, with confidence intervals. Exit code 1 if the reports
    do not fit the mechanism.
    """
    from mechdesign.mechanism.storage import load
    from mechdesign.output import text_tables as printing
    from mechdesign.surveys.channel import shared_domain
    from mechdesign.surveys.document import EstimateDocument
    from mechdesign.surveys.reports import ROLES
    from mechdesign.surveys.shares import estimate_shares
    from mechdesign.surveys.terminal import estimate_words

    _refuse_swapped(reports, files)
    mechanisms = [load(path) for path in files]
    domain = shared_domain(mechanisms)
    survey = SurveyOptions(
        weights=weights, by=by, missing=missing, population=population, confidence=confidence, simultaneous=simultaneous
    )
    inputs = InputOptions(columns, crs)
    options = None if areas is None else AreaOptions(source=areas, name_field=name_field, inputs=inputs)
    outputs = OutputOptions(
        files=output or [], layer_crs=layer_crs, exit_zero=exit_zero, overwrite=overwrite, as_json=as_json
    )
    if used := survey.used_options:
        if options is None or against is not None or len(mechanisms) > 1:
            remedy = "give --areas, one mechanism, and no --against"
            raise InputError("need areas and one mechanism", field="survey", value=used, remedy=remedy)
        estimate_survey(reports, mechanisms[0], survey, areas=options, output=outputs)
        return
    system = outputs.system(domain)
    for path in output or []:
        _check_target(path, overwrite=overwrite, on_earth=domain.plane is not None, system=system)
    if areas is None and (against, name_field, crs) != (None, None, None):
        raise InputError(
            "is required by --against, --name-field and --crs", field="areas", value="none", remedy="pass --areas FILE"
        )
    inputs.refuse_unused_system(areas if areas is not None and Path(areas).suffix else None)
    named = inputs.columns_of(*ROLES, "cell", "area")
    files_of = {"columns": reports} | ({} if against is None else {"against_columns": against})
    periods = {key: _count(path, mechanisms, named) for key, path in files_of.items()}
    partition = None if options is None else options.read(domain)
    estimated = estimate_shares(
        mechanisms,
        list(periods["columns"].counts.values()),
        partition,
        confidence=confidence,
        simultaneous=simultaneous,
        against=None if against is None else list(periods["against_columns"].counts.values()),
    )
    shapes = None
    if outputs.has_layer and options is not None and partition is not None and not cells:
        shapes = options.shapes(domain, partition, system)
    for path in output or []:
        _save(estimated, path, mechanisms, areas=shapes, system=system, overwrite=overwrite)
    document = EstimateDocument(estimate=estimated)
    read_columns = {key: {"read": period.read, "ignored": period.ignored} for key, period in periods.items()}
    printing.show(document.as_json() | read_columns, estimate_words(document), as_json=as_json)
    if not exit_zero and document.is_misfit:
        raise typer.Exit(1)


def _refuse_swapped(reports: Path, files: list[Path]) -> None:
    if reports.suffix.lower() == ".nc":
        raise InputError(
            "is a mechanism file, not reports",
            field="reports",
            value=reports,
            remedy=f"give the reports first: mechdesign estimate {' '.join(map(str, [*files, reports]))}",
        )


def _check_target(path: Path, *, overwrite: bool, on_earth: bool, system: str) -> None:
    from mechdesign.output.export import PAGE_WRITER
    from mechdesign.surveys.export import check_shares_target

    if _is_page(path):
        PAGE_WRITER.get().check_target(path, overwrite=overwrite)
    else:
        check_shares_target(path, overwrite=overwrite, on_earth=on_earth, system=system)


def _save(
    estimated: xr.Dataset,
    path: Path,
    mechanisms: list[xr.Dataset],
    *,
    areas: AreaShapes | None,
    system: str,
    overwrite: bool,
) -> None:
    from mechdesign.output.export import PAGE_WRITER
    from mechdesign.surveys.export import save_shares

    if _is_page(path):
        PAGE_WRITER.get().save(estimated, path, mechanisms=mechanisms, overwrite=overwrite)
    else:
        save_shares(estimated, path, areas=areas, system=system, overwrite=overwrite)


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

"""The part of `mechdesign estimate` for weights, domains, missing answers and finite populations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mechdesign.cli.inputs import InputOptions
from mechdesign.cli.remedies import as_options
from mechdesign.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

    from mechdesign.geo.area_shapes import AreaShapes
    from mechdesign.geo.partition import Partition
    from mechdesign.problem.domain import Domain


@dataclass(frozen=True, kw_only=True)
class AreaOptions:
    """The areas that options name, and the coordinate system and columns of their file."""

    source: str
    name_field: str | None
    inputs: InputOptions

    def read(self, domain: Domain) -> Partition:
        """The partition of the places of a domain."""
        from mechdesign.geo.partition import read_areas
        from mechdesign.output.text_tables import note
        from mechdesign.surveys.reports import ROLES

        return read_areas(
            self.source,
            domain,
            name_field=self.name_field,
            crs=self.inputs.crs,
            columns=self.inputs.columns_of(*ROLES, "cell", "area"),
            on_note=lambda text: note(as_options(text)),
        )

    def shapes(self, domain: Domain, areas: Partition, system: str) -> AreaShapes:
        """The shapes of those areas in a system."""
        from mechdesign.geo.area_shapes import shapes_of_areas

        return shapes_of_areas(
            self.source, domain, areas, name_field=self.name_field, crs=self.inputs.crs, system=system
        )


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """Files to write, the coordinate system of layers, and how to print."""

    files: list[Path]
    layer_crs: str | None
    exit_zero: bool
    overwrite: bool
    as_json: bool

    @property
    def has_layer(self) -> bool:
        """True if a file is a layer of a map."""
        from mechdesign.surveys.export import LAYERS

        return any(path.suffix.lower() in LAYERS for path in self.files)

    def system(self, domain: Domain) -> str:
        """The coordinate system of layers; refuses one without a layer."""
        from mechdesign.geo.shapes import DEGREES, named_system

        if self.layer_crs is not None and (domain.plane is None or not self.has_layer):
            remedy = "pass -o FILE.gpkg or -o FILE.parquet, for a mechanism on Earth"
            raise InputError("is for a layer of a map", field="layer_crs", value=self.layer_crs, remedy=remedy)
        return DEGREES if domain.plane is None else named_system(self.layer_crs, domain.plane)


@dataclass(frozen=True, kw_only=True)
class SurveyOptions:
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


def estimate_survey(
    reports: Path, mechanism: xr.Dataset, survey: SurveyOptions, *, areas: AreaOptions, output: OutputOptions
) -> None:
    """Estimate weighted shares, write and print them."""
    from mechdesign.mechanism.mechanism_file import MechanismFile
    from mechdesign.output.export import PAGE_WRITER
    from mechdesign.output.text_tables import note, show
    from mechdesign.surveys import weighted_words as words
    from mechdesign.surveys.answers import read_answers
    from mechdesign.surveys.channel import report_places, shared_domain
    from mechdesign.surveys.goodness_of_fit import REFUSED
    from mechdesign.surveys.reports import ROLES
    from mechdesign.surveys.weighted import weighted_shares

    domain = shared_domain([mechanism])
    system = output.system(domain)
    for path in output.files:
        on_earth = domain.plane is not None
        words.check_weighted_target(path, on_earth=on_earth, system=system, overwrite=output.overwrite)
    if survey.missing not in (None, "leave-out", "class"):
        raise InputError("unknown choice", field="missing", value=survey.missing, remedy="use leave-out or class")
    partition = areas.read(domain)
    answers = read_answers(
        reports,
        report_places(MechanismFile.read(mechanism)),
        columns=areas.inputs.columns_of(*ROLES, "cell", "area"),
        weights=survey.weights,
        by=survey.by,
        allow_missing=survey.missing is not None,
    )
    note(f"{reports.name}: read columns {', '.join(answers.read)}.")
    shares = weighted_shares(
        mechanism,
        answers.reports,
        partition,
        weights=answers.weights,
        by=answers.by,
        missing="class" if survey.missing == "class" else "leave-out",
        population=survey.population,
        confidence=survey.confidence,
        simultaneous=survey.simultaneous,
    )
    shapes = areas.shapes(domain, partition, system) if output.has_layer else None
    for path in output.files:
        if path.suffix.lower() == ".html":
            PAGE_WRITER.get().save(shares, path, mechanisms=[mechanism], overwrite=output.overwrite)
        else:
            words.save_weighted(shares, path, areas=shapes, overwrite=output.overwrite)
    document = words.WeightedDocument(estimate=shares).as_json()
    read_columns = {"columns": {"read": answers.read, "ignored": answers.ignored}}
    show(document | read_columns, words.weighted_words(document), as_json=output.as_json)
    if not output.exit_zero and document["fit_p"] < REFUSED:
        raise typer.Exit(1)

"""`mechdesign plan`: the accuracy of shares of areas before anything is collected. Heavy imports are inside."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mechdesign.base.numbers import number_list, real_number
from mechdesign.cli.inputs import InputOptions
from mechdesign.cli.options import (
    AREAS,
    BoxOption,
    ColumnsOption,
    ConfidenceOption,
    CrsOption,
    JsonOption,
    NameFieldOption,
    OverwriteOption,
    SimultaneousOption,
    WithinOption,
    real,
    whole,
)
from mechdesign.cli.parameters import parameter_values, parse_problem
from mechdesign.cli.remedies import as_options
from mechdesign.errors import InputError
from mechdesign.geo.commands import parse_area

if TYPE_CHECKING:
    from mechdesign.geo.area import Area
    from mechdesign.geo.partition import Partition
    from mechdesign.problem.domain import Domain
    from mechdesign.problem.problem import DesignProblem

_SOURCE_HELP = (
    "An area (.geojson), a mechanism file (.nc), or a problem followed by its parameters. --cell METRES after an area "
    "sets its cells. People are assumed to be spread evenly over an area, and elsewhere as the prior says."
)
_LEVELS_HELP = "Epsilons in nats per unit, such as 0.005,0.01. Default for an area: those of four odds factors."
_ERROR_HELP = "Wanted half-width of an interval, as a fraction: 0.02 is 2 percentage points."
FAMILY = "geometric_clamped"  # the mechanisms made at --levels
CELLS = 400  # cells of an area without --cell
RADIUS = 200.0  # metres, of an area without --within
ODDS = (1.5, 2.0, 4.0, 10.0)  # factors within the radius, of an area without --levels
_OUTPUT_HELP = "File to write: .csv, .xlsx, .json or .nc."


# One argument for each option of the command line.
def plan(
    context: typer.Context,
    areas: Annotated[str, AREAS],
    respondents: Annotated[int, whole("--respondents", help="Number of people, each of whom reports once.")],
    source: Annotated[str | None, typer.Argument(help=_SOURCE_HELP)] = None,
    box: BoxOption = None,
    within: WithinOption = None,
    error: Annotated[float, real("--error", help=_ERROR_HELP)] = 0.02,
    levels: Annotated[str | None, typer.Option("--levels", help=_LEVELS_HELP)] = None,
    mine: Annotated[
        list[Path] | None, typer.Option("--with", help="Also evaluate this mechanism file (.nc); repeatable.")
    ] = None,
    name_field: NameFieldOption = None,
    crs: CrsOption = None,
    columns: ColumnsOption = None,
    confidence: ConfidenceOption = 0.95,
    simultaneous: SimultaneousOption = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help=_OUTPUT_HELP)] = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Example: `mechdesign plan --box 12.47,41.87,12.52,41.91 --areas 2x2 --respondents 2000`.

    Plan a survey: the error of every area's share, and the people or the epsilon that --error needs.
    """
    origin = _Source.of(source, box, context.args)
    _check_source(origin, levels, context.args)
    within = _radius(within, origin)
    inputs = InputOptions(columns, crs)
    inputs.refuse_unused_system(origin.name if origin.is_area else None, areas if Path(areas).suffix else None)
    problem = None if origin.is_file else _problem(origin, crs, within, context)
    from mechdesign.geo.partition import read_areas
    from mechdesign.output import text_tables as printing
    from mechdesign.surveys.document import PlanDocument
    from mechdesign.surveys.export import check_shares_target, save_shares
    from mechdesign.surveys.plan import plan as make_plan
    from mechdesign.surveys.terminal import plan_words

    if output is not None:
        check_shares_target(output, overwrite=overwrite, on_earth=False)
    _check_error(error)
    collection = _collection(origin, problem, mine or [], levels, within)
    partition = read_areas(
        areas,
        collection.domain,
        name_field=name_field,
        crs=crs,
        columns=inputs.columns_of("cell", "area"),
        on_note=lambda text: printing.note(as_options(text)),
    )
    if problem is not None and problem.domain.kind == "nodes":
        collection = _with_class_designs(collection, problem, partition, levels)
    wanted: dict[str, Any] = {"people": respondents, "confidence": confidence, "simultaneous": simultaneous}
    wanted["error"] = error
    planned = make_plan(
        collection.tables,
        partition,
        collection.domain,
        truth=collection.truth,
        problem=Path(str(origin.name)).stem if problem is None else problem.name,
        described=collection.described,
        **wanted,
    )
    needed = {} if problem is None else _epsilons_needed(origin, problem, partition, wanted)
    if output is not None:
        save_shares(planned, output, overwrite=overwrite)
    document = PlanDocument(planned=planned).as_json() | {"epsilon_for_error": needed}
    document = _with_radius(document, within)
    if origin.is_area:
        document["next"] = _next_command(origin, collection, crs, needed[FAMILY])
    printing.show(document, plan_words(document, collection.domain.unit), as_json=as_json)


def _check_source(origin: _Source, levels: str | None, words: list[str]) -> None:
    if origin.is_file:
        parameter_values("a mechanism file", (), words)
        if levels is not None:
            raise InputError(
                "applies to an area or a problem: a mechanism file has its own epsilon", field="levels", value=levels
            )
    if origin.name is not None and origin.box is not None:
        raise InputError("cannot be combined with another source", field="box", value=origin.name)


def _radius(within: float | None, origin: _Source) -> float | None:
    """The radius of --within in metres; None where none was given and the source is not an area."""
    from mechdesign.base.validation import check_positive

    if within is None:
        return RADIUS if origin.is_area else None
    return check_positive(within, "within")


def _check_error(error: float) -> None:
    if not 0 < error < 0.5:
        points = f"write {error / 100:g} for {error:g} points" if 0.5 <= error < 50 else "write 0.02 for 2 points"
        raise InputError("must be a fraction between 0 and 0.5", field="error", value=error, remedy=points)


@dataclass(frozen=True, kw_only=True)
class _Source:
    """The source of a plan as typed: a name (None for the area of `box`) and the parameters after it."""

    name: str | None
    box: str | None
    words: list[str]

    @classmethod
    def of(cls, source: str | None, box: str | None, words: list[str]) -> _Source:
        """Parse the arguments: after --box there is no name, only parameters."""
        if source is not None and source.startswith("--"):
            return cls(name=None, box=box, words=[source, *words])
        return cls(name=source, box=box, words=words)

    @property
    def suffix(self) -> str:
        return "" if self.name is None else Path(self.name).suffix.lower()

    @property
    def is_file(self) -> bool:
        return self.suffix == ".nc"

    @property
    def is_area(self) -> bool:
        return self.name is None or self.suffix in (".geojson", ".json")


@dataclass(frozen=True, kw_only=True)
class _Collection:
    """Secrets, assumed distribution (n,), tables and their descriptions by name, epsilons of the tables made here."""

    domain: Domain
    truth: Any
    tables: dict[str, Any]
    described: dict[str, dict[str, Any]]
    epsilons: list[float]


def _problem(origin: _Source, crs: str | None, within: float | None, context: typer.Context) -> DesignProblem:
    if not origin.is_area:
        problem_file, parameters = parse_problem(str(origin.name), context)
        return problem_file.build(**parameters)
    parameters = parameter_values("an area", ("cell",), origin.words)
    path = None if origin.name is None else Path(origin.name)
    return _area_problem(parse_area(path, origin.box, crs), parameters, within or RADIUS)


def _collection(
    origin: _Source, problem: DesignProblem | None, mine: list[Path], levels: str | None, within: float | None
) -> _Collection:
    """Make the tables of a problem at its epsilons, and load those of mechanism files with the same secrets."""
    files = [Path(str(origin.name)), *mine] if origin.is_file else mine
    domain, truth, tables, described = _load_files(files)
    if problem is None:
        assert domain is not None
        return _Collection(domain=domain, truth=truth, tables=tables, described=described, epsilons=[])
    secrets = problem.domain
    if domain is not None and (domain.describe() != secrets.describe() or (domain.points != secrets.points).any()):
        raise InputError("does not have the secrets of the problem", field="with", value=files[0])
    epsilons: Sequence[float | None] = _parse_epsilons(levels)
    designed: dict[str, Any] = {}
    descriptions: dict[str, Any] = {}
    if secrets.kind == "nodes":
        pass  # made once the areas are known
    elif origin.is_area:
        designed, descriptions = _make_tables(
            problem, epsilons or _epsilons_of_odds(within), "epsilon", share=1 / _ground_factor(secrets)
        )
    else:
        designed, descriptions = _make_tables(problem, epsilons or [problem.metric.smallest_level], FAMILY)
    return _Collection(
        domain=secrets,
        truth=problem.prior_array,
        tables=designed | tables,
        described=descriptions | described,
        epsilons=[design["epsilon"] for design in descriptions.values()],
    )


def _with_class_designs(
    collection: _Collection, problem: DesignProblem, partition: Partition, levels: str | None
) -> _Collection:
    """The collection with the designs of a survey over classes before the files of --with."""
    from mechdesign.output import text_tables as printing
    from mechdesign.surveys.class_designs import class_tables, usual_level

    epsilons = _parse_epsilons(levels) or [usual_level(problem)]
    printing.note_compiling()
    with printing.progress(problem.name) as on_step:
        tables, described = class_tables(problem, epsilons, partition, on_note=printing.note, on_step=on_step)
    return replace(
        collection,
        tables=tables | collection.tables,
        described=described | collection.described,
        epsilons=epsilons,
    )


def _epsilons_needed(
    origin: _Source, problem: DesignProblem, partition: Partition, wanted: dict[str, Any]
) -> dict[str, float | None]:
    """The smallest epsilon of a family for the wanted error, on the ground for an area; None if none suffices."""
    from mechdesign.problem.metrics import Discrete
    from mechdesign.surveys.plan import epsilon_for

    if problem.domain.kind == "nodes":
        if not isinstance(problem.metric, Discrete) or problem.reports is not problem.domain:
            return {}
        return {"randomized_response": epsilon_for(problem, "randomized_response", partition, **wanted)}
    smallest = epsilon_for(problem, FAMILY, partition, **wanted)
    if smallest is None or not origin.is_area:
        return {FAMILY: smallest}
    return {FAMILY: smallest * _ground_factor(problem.domain)}


def _next_command(origin: _Source, collection: _Collection, crs: str | None, needed: float | None) -> str:
    # Reports of the optimal program may not identify every share, so the command names another one.
    place = origin.name or f"--box {origin.box}"
    if crs is not None and origin.name is not None:
        place = f"{place} --crs {crs}"
    epsilon = needed or max(collection.epsilons)
    return (
        f"mechdesign area {place} --cell {collection.domain.spacing:g} --epsilon {epsilon:.4g} --positions cells "
        "--program planar-laplace -o survey.nc"
    )


def _area_problem(area: Area, parameters: Mapping[str, str], within: float) -> DesignProblem:
    """The problem of people spread evenly over the cells of an area, in metres."""
    from mechdesign.geo.area import area_problem
    from mechdesign.output.text_tables import note

    try:
        cell = real_number(parameters["cell"]) if parameters else area.cell_for(CELLS)
    except ValueError as error:
        raise InputError(str(error), field="cell", value=parameters["cell"], remedy="write --cell 200") from error
    if not parameters:
        note(f"cells of {cell:g} m (change with --cell)")
    return area_problem(area.grid(cell=cell), epsilon=1 / within)


def _ground_factor(domain: Domain) -> float:
    """The factor from an epsilon on the plane of a domain to one that holds on the ground; 1 without a plane."""
    from mechdesign.geo.area import plane_level

    return 1.0 if domain.plane is None else 1 / plane_level(domain, 1.0, positions=True)


def _with_radius(document: dict[str, Any], within: float | None) -> dict[str, Any]:
    """The document with the largest factor by which one report of a design changes odds within the radius, if any."""
    from mechdesign.evaluation.privacy_radius import nats_within, odds_factor

    if within is None:
        return document
    levels = [design.get("epsilon") for design in document["designs"]]
    odds = [None if level is None else odds_factor(nats_within(within, level)) for level in levels]
    designs = [design | {"odds_within": factor} for design, factor in zip(document["designs"], odds, strict=True)]
    return document | {"within": within, "designs": designs}


def _load_files(files: list[Path]) -> tuple[Domain | None, Any, dict[str, Any], dict[str, Any]]:
    from mechdesign.mechanism.mechanism_file import MechanismFile
    from mechdesign.mechanism.storage import load
    from mechdesign.problem.metrics import Euclidean
    from mechdesign.surveys.channel import shared_domain, table_of

    if not files:
        return None, None, {}, {}
    loaded = {str(path.stem): load(path) for path in files}
    if len(loaded) < len(files):
        raise InputError("two files have the same name", field="with", value=files[-1].stem)
    domain = shared_domain(list(loaded.values()))
    tables = {name: table_of(mechanism) for name, mechanism in loaded.items()}
    described: dict[str, dict[str, Any]] = {}
    for name, mechanism in loaded.items():
        metric = MechanismFile.read(mechanism).metric
        level = metric.smallest_level
        described[name] = {"sha256": str(mechanism.attrs["sha256"]), "program": str(mechanism.attrs["program"])}
        if level is not None and isinstance(metric, Euclidean):
            described[name]["epsilon"] = float(level) * _ground_factor(domain)
    return domain, next(iter(loaded.values()))["prior"].values, tables, described


def _parse_epsilons(levels: str | None) -> list[float]:
    from mechdesign.base.validation import check_epsilon

    try:
        numbers = [check_epsilon(level, "levels") for level in (number_list(levels) if levels else ())]
    except InputError:
        raise
    except ValueError as error:
        raise InputError(str(error), field="levels", value=levels, remedy="write --levels 0.005,0.01") from error
    if levels is not None and not 1 <= len(set(numbers)) == len(numbers):
        raise InputError("must be distinct epsilons", field="levels", value=levels)
    return numbers


def _epsilons_of_odds(within: float | None) -> list[float]:
    """The epsilons at which one report changes odds within the radius by the factors `ODDS`."""
    return [math.log(odds) / (within or RADIUS) for odds in ODDS]


def _make_tables(
    problem: DesignProblem, epsilons: Sequence[float | None], prefix: str, *, share: float = 1.0
) -> tuple[dict[str, Any], dict[str, Any]]:
    from mechdesign.programs.matched import family_of

    family, tables, described = family_of(FAMILY), {}, {}
    for epsilon in epsilons:
        if epsilon is None:
            message = "is required: the problem has no single epsilon"
            raise InputError(message, field="levels", value="none", remedy="write --levels 0.005,0.01")
        name = f"{prefix} {epsilon:.4g}"
        tables[name] = family.table(problem, epsilon * share)
        described[name] = {"program": FAMILY, "epsilon": epsilon}
    return tables, described

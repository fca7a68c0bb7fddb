"""`mechdesign plan`: what shares of areas will be known to before anything is collected. Heavy imports inside."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
from mechdesign.cli.parsing import as_options, parameter_values, parse_problem
from mechdesign.errors import InputError
from mechdesign.geo.commands import parse_area

if TYPE_CHECKING:
    from mechdesign.geo.area import Area
    from mechdesign.problem.domain import Domain
    from mechdesign.problem.problem import DesignProblem

_SOURCE_HELP = (
    "An area (.geojson), over which people are planned to be spread evenly, its cells after it as --cell METRES, about "
    "400 without; or a mechanism file (.nc), or a problem, its parameters after it: its prior is the planned truth."
)
_LEVELS_HELP = "Epsilons of an area or a problem, in nats per unit, such as 0.005,0.01. Of an area without: four odds."
_ERROR_HELP = "Half the interval that is wanted, as a share of 1 like --confidence: 0.02 is 2 points of 100."
FAMILY = "geometric_clamped"  # of mechanisms at --levels
CELLS = 400  # of an area whose cells are not given
RADIUS, ODDS = 200.0, (1.5, 2.0, 4.0, 10.0)  # of an area: metres without --within, and factors without --levels
_OUTPUT_HELP = "File to write: .csv, .json or .nc."


def plan(
    context: typer.Context,
    areas: Annotated[str, AREAS],
    respondents: Annotated[int, whole("--respondents", help="How many people will report once each.")],
    source: Annotated[str | None, typer.Argument(help=_SOURCE_HELP)] = None,
    box: BoxOption = None,
    within: WithinOption = None,
    error: Annotated[float, real("--error", help=_ERROR_HELP)] = 0.02,
    levels: Annotated[str | None, typer.Option("--levels", help=_LEVELS_HELP)] = None,
    mine: Annotated[
        list[Path] | None, typer.Option("--with", help="A mechanism of yours beside them: .nc; repeatable.")
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

    Plan a collection: the error of every area's share, and the people or the epsilon that a wanted one takes.
    """
    from mechdesign.base.validation import positive

    words = context.args
    if source is not None and source.startswith("--"):  # after --box, what follows is no source
        words, source = [source, *words], None
    file = source is not None and Path(source).suffix.lower() == ".nc"
    on_earth = source is None or Path(source).suffix.lower() in (".geojson", ".json")
    if file:
        parameter_values("a mechanism file", (), context.args)
    if file and levels is not None:
        raise InputError("is for an area or a problem: a file has its own level", field="levels", value=levels)
    if source is not None and box is not None:
        raise InputError("is an area of its own, beside no other source", field="box", value=source)
    within = None if within is None else positive(within, "within")
    inputs = InputOptions(columns, crs)
    inputs.refuse_unused_system(source if on_earth else None, areas if Path(areas).suffix else None)
    problem = None
    if on_earth:
        within = RADIUS if within is None else within
        given = parameter_values("an area", ("cell",), words)
        problem = _of_area(parse_area(None if source is None else Path(source), box, crs), given, within)
    elif not file:
        problem_file, parameters = parse_problem(str(source), context)
        problem = problem_file.build(**parameters)
    from mechdesign.geo.partition import read_areas
    from mechdesign.output import text_tables as printing
    from mechdesign.surveys.export import check_shares_target, save_shares
    from mechdesign.surveys.plan import epsilon_for
    from mechdesign.surveys.plan import plan as make_plan
    from mechdesign.surveys.tables import plan_document
    from mechdesign.surveys.terminal import plan_words

    if output is not None:
        check_shares_target(output, overwrite=overwrite, on_earth=False)
    if not 0 < error < 0.5:
        points = f"write {error / 100:g} for {error:g} points" if 0.5 <= error < 50 else "write 0.02 for 2 points"
        raise InputError("must be a share between 0 and 0.5", field="error", value=error, remedy=points)
    files = [*([Path(str(source))] if file else []), *(mine or [])]
    domain, truth, tables, described = _of_files(files)
    if problem is not None:
        if domain is not None and (
            domain.describe() != problem.domain.describe() or (domain.points != problem.domain.points).any()
        ):
            raise InputError("has other secrets than the problem", field="with", value=files[0])
        domain, truth = problem.domain, problem.prior_array
        numbers = _numbers(levels)
        if on_earth:
            designed, more = _of_levels(problem, numbers or _of_odds(within), "epsilon", share=1 / _lengthened(domain))
        else:
            designed, more = _of_levels(problem, numbers or [problem.metric.smallest_level], FAMILY)
        tables, described = designed | tables, more | described
    assert domain is not None
    parted = read_areas(
        areas,
        domain,
        name_field=name_field,
        crs=crs,
        columns=inputs.columns_of("cell", "area"),
        on_note=lambda told: printing.note(as_options(told)),
    )
    options: dict[str, Any] = {"people": respondents, "confidence": confidence, "simultaneous": simultaneous}
    options["error"] = error
    planned = make_plan(
        tables,
        parted,
        domain,
        truth=truth,
        problem=Path(str(source)).stem if file or problem is None else problem.name,
        described=described,
        **options,
    )
    needed: dict[str, float | None] = {}
    if problem is not None:
        least = epsilon_for(problem, FAMILY, parted, **options)
        needed = {FAMILY: least if least is None or not on_earth else least * _lengthened(domain)}
    if output is not None:
        save_shares(planned, output, overwrite=overwrite)
    document = plan_document(planned) | {"epsilon_for_error": needed}
    if within is not None:
        document |= {"within": within, "designs": [_with_odds(design, within) for design in document["designs"]]}
    if on_earth:
        epsilon, place = needed[FAMILY] or max(design["epsilon"] for design in more.values()), source or f"--box {box}"
        if crs is not None and source is not None:
            place = f"{place} --crs {crs}"
        document["next"] = (
            f"mechdesign area {place} --cell {domain.spacing:g} --epsilon {epsilon:.4g} --positions cells "
            "--program planar-laplace -o survey.nc"  # the optimal program may leave shares that no report tells
        )
    printing.show(document, plan_words(document, domain.unit), as_json=as_json)


def _of_area(area: Area, given: Mapping[str, str], within: float) -> DesignProblem:
    """The problem of people spread evenly over the cells of an area, in m; tables are made at the levels asked for."""
    from mechdesign.geo.area import area_problem
    from mechdesign.output.text_tables import note

    try:
        cell = real_number(given["cell"]) if given else area.cell_for(CELLS)
    except ValueError as error:
        raise InputError(str(error), field="cell", value=given["cell"], remedy="write --cell 200") from error
    if not given:
        note(f"cells of {cell:g} m; --cell takes others")
    return area_problem(area.grid(cell=cell), epsilon=1 / within)


def _lengthened(domain: Domain) -> float:
    """What a level on the plane of a domain is multiplied by to hold on the ground; 1 where there is no plane."""
    from mechdesign.geo.area import plane_level

    return 1.0 if domain.plane is None else 1 / plane_level(domain, 1.0, positions=True)


def _with_odds(design: dict[str, Any], within: float) -> dict[str, Any]:
    """A design with the largest factor by which one report changes the odds between two places so far apart."""
    from mechdesign.evaluation.privacy_radius import nats_within, odds_factor

    epsilon = design.get("epsilon")
    return design | {"odds_within": None if epsilon is None else odds_factor(nats_within(within, epsilon))}


def _of_files(files: list[Path]) -> tuple[Domain | None, Any, dict[str, Any], dict[str, Any]]:
    """The secrets and the prior of mechanism files, their tables and what to keep of each, by name."""
    from mechdesign.mechanism.claim import MechanismFile
    from mechdesign.mechanism.storage import load
    from mechdesign.problem.metric import Euclidean
    from mechdesign.surveys.channel import shared_domain, table_of

    if not files:
        return None, None, {}, {}
    loaded = {str(path.stem): load(path) for path in files}
    if len(loaded) < len(files):
        raise InputError("two files have one name", field="with", value=files[-1].stem)
    domain = shared_domain(list(loaded.values()))
    tables = {name: table_of(mechanism) for name, mechanism in loaded.items()}
    described: dict[str, dict[str, Any]] = {}
    for name, mechanism in loaded.items():
        metric = MechanismFile.read(mechanism).metric
        level = metric.smallest_level
        described[name] = {"sha256": str(mechanism.attrs["sha256"]), "program": str(mechanism.attrs["program"])}
        if level is not None and isinstance(metric, Euclidean):
            described[name]["epsilon"] = float(level) * _lengthened(domain)
    return domain, next(iter(loaded.values()))["prior"].values, tables, described


def _numbers(levels: str | None) -> list[float]:
    """The epsilons of --levels; none without it."""
    from mechdesign.base.validation import check_epsilon

    try:
        numbers = [check_epsilon(level, "levels") for level in (number_list(levels) if levels else ())]
    except InputError:
        raise
    except ValueError as error:
        raise InputError(str(error), field="levels", value=levels, remedy="write --levels 0.005,0.01") from error
    if levels is not None and not 1 <= len(set(numbers)) == len(numbers):
        raise InputError("distinct epsilons are needed", field="levels", value=levels)
    return numbers


def _of_odds(within: float | None) -> list[float]:
    """The epsilons by which one report changes odds within a radius by the factors of `ODDS`."""
    return [math.log(odds) / (within or RADIUS) for odds in ODDS]


def _of_levels(
    problem: DesignProblem, epsilons: Sequence[float | None], called: str, *, share: float = 1.0
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tables of the family at epsilons, on the plane at `share` of them, and what to keep of each, by name."""
    from mechdesign.programs.matched import family_of

    family, tables, described = family_of(FAMILY), {}, {}
    for epsilon in epsilons:
        if epsilon is None:
            message = "the problem has no single level; epsilons are needed"
            raise InputError(message, field="levels", value="none", remedy="write --levels 0.005,0.01")
        name = f"{called} {epsilon:.4g}"
        tables[name] = family.table(problem, epsilon * share)
        described[name] = {"program": FAMILY, "epsilon": epsilon}
    return tables, described

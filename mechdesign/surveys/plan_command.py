"""`mechdesign plan`: what shares of areas will be known to before anything is collected. Heavy imports inside."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mechdesign.base.descriptions import real_number
from mechdesign.cli.options import (
    AREAS,
    ConfidenceOption,
    JsonOption,
    NameFieldOption,
    OverwriteOption,
    RestOption,
    SimultaneousOption,
    real,
    whole,
)
from mechdesign.cli.parsing import parameter_values, parse_problem
from mechdesign.errors import InputError

if TYPE_CHECKING:
    from mechdesign.problem.domain import Domain
    from mechdesign.problem.problem import DesignProblem

_SOURCE_HELP = "A mechanism file (.nc), or a problem, its parameters after it: its prior is the planned truth."
_ERROR_HELP = "Half the interval that is wanted, as a share of 1 like --confidence: 0.02 is 2 points of 100."
FAMILY = "geometric_clamped"  # of mechanisms at --levels
_OUTPUT_HELP = "File to write: .csv, .json or .nc."


def plan(
    context: typer.Context,
    source: Annotated[str, typer.Argument(help=_SOURCE_HELP)],
    areas: Annotated[str, AREAS],
    respondents: Annotated[int, whole("--respondents", help="How many people will report once each.")],
    error: Annotated[float, real("--error", help=_ERROR_HELP)] = 0.02,
    levels: Annotated[str | None, typer.Option("--levels", help="Epsilons of a problem, such as 0.005,0.01.")] = None,
    mine: Annotated[
        list[Path] | None, typer.Option("--with", help="A mechanism of yours beside them: .nc; repeatable.")
    ] = None,
    rest: RestOption = None,
    name_field: NameFieldOption = None,
    confidence: ConfidenceOption = 0.95,
    simultaneous: SimultaneousOption = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help=_OUTPUT_HELP)] = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Example: `mechdesign plan flat --cells 4 --areas 2x2 --respondents 2000`.

    Plan a collection: the error of every area's share, and the people or the epsilon that a wanted one takes.
    """
    file = Path(source).suffix.lower() == ".nc"
    if file:
        parameter_values("a mechanism file", (), context.args)
        if levels is not None:
            raise InputError("is for a problem: a file has its own level", field="levels", value=levels)
        problem = None
    else:
        problem_file, parameters = parse_problem(source, context)
        problem = problem_file.build(**parameters)
    from mechdesign.geo.areas import read_areas
    from mechdesign.output import printing
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
    files = [*([Path(source)] if file else []), *(mine or [])]
    domain, truth, tables, described = _of_files(files)
    if problem is not None:
        if domain is not None and (
            domain.describe() != problem.domain.describe() or (domain.points != problem.domain.points).any()
        ):
            raise InputError("has other secrets than the problem", field="with", value=files[0])
        domain, truth = problem.domain, problem.prior_array
        designed, more = _of_levels(problem, levels, [FAMILY])
        tables, described = designed | tables, more | described
    assert domain is not None
    parted = read_areas(areas, domain, rest=rest, name_field=name_field, on_note=printing.note)
    options: dict[str, Any] = {"people": respondents, "confidence": confidence, "simultaneous": simultaneous}
    options["error"] = error
    planned = make_plan(
        tables,
        parted,
        domain,
        truth=truth,
        problem=Path(source).stem if file or problem is None else problem.name,
        described=described,
        **options,
    )
    needed: dict[str, float | None] = {}
    if problem is not None:
        needed = {FAMILY: epsilon_for(problem, FAMILY, parted, **options)}
    if output is not None:
        save_shares(planned, output, overwrite=overwrite)
    document = plan_document(planned) | {"epsilon_for_error": needed}
    printing.show(document, plan_words(document, domain.unit), as_json=as_json)


def _of_files(files: list[Path]) -> tuple[Domain | None, Any, dict[str, Any], dict[str, Any]]:
    """The secrets and the prior of mechanism files, their tables and what to keep of each, by name."""
    from mechdesign.mechanism.storage import load
    from mechdesign.mechanism.stored import read
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
        level = read(mechanism).metric.smallest_level
        described[name] = {"sha256": str(mechanism.attrs["sha256"]), "program": str(mechanism.attrs["program"])}
        if level is not None:
            described[name]["epsilon"] = float(level)
    return domain, next(iter(loaded.values()))["prior"].values, tables, described


def _of_levels(
    problem: DesignProblem, levels: str | None, families: list[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tables of families at the levels asked for, by default at that of the problem's metric."""
    from mechdesign.base.arguments import check_epsilon
    from mechdesign.programs.matched_distance import family_of

    try:
        numbers = [real_number(word) for word in levels.replace(",", " ").split()] if levels is not None else []
    except ValueError as error:
        raise InputError(str(error), field="levels", value=levels, remedy="write --levels 0.005,0.01") from error
    if levels is None and problem.metric.smallest_level is not None:
        numbers = [float(problem.metric.smallest_level)]
    if not numbers or len(set(numbers)) < len(numbers):
        raise InputError("distinct epsilons are needed", field="levels", value=levels)
    tables, described = {}, {}
    for name in families:
        family = family_of(name)
        for epsilon in numbers:
            called = f"{name} {check_epsilon(epsilon, 'levels'):.4g}"
            tables[called] = family.table(problem, epsilon)
            described[called] = {"program": name, "epsilon": epsilon}
    return tables, described

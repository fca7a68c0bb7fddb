"""`mechdesign estimate`: from a file of reports to shares of areas with intervals. Heavy imports happen inside."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mechdesign.cli.options import (
    AREAS,
    ConfidenceOption,
    JsonOption,
    NameFieldOption,
    OverwriteOption,
    PageOption,
    RestOption,
    SimultaneousOption,
    real,
    whole,
)
from mechdesign.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_REPORTS_HELP = "CSV of reports: column report, or x and y, or longitude and latitude; count, how often; mechanism."
_GUESS_HELP = "For affine bounds: prior, uniform, or an estimate (.nc) from other reports."
_OUTPUT_HELP = "File to write: .csv, .json, .nc or, on Earth, .geojson; may be repeated."


def estimate(
    reports: Annotated[Path, typer.Argument(help=_REPORTS_HELP)],
    files: Annotated[list[Path], typer.Argument(help="The mechanism files (NetCDF) that made them.")],
    areas: Annotated[str | None, AREAS] = None,
    rest: RestOption = None,
    name_field: NameFieldOption = None,
    interval: Annotated[str, typer.Option("--interval", help="linear or affine.")] = "linear",
    guess: Annotated[str | None, typer.Option("--guess", help=_GUESS_HELP)] = None,
    pilot: Annotated[float | None, real("--pilot", help="Share of the reports that the guess is made of.")] = None,
    seed: Annotated[int, whole("--seed", help="Draws the pilot, and the halves of the test of fit.")] = 0,
    confidence: ConfidenceOption = 0.95,
    simultaneous: SimultaneousOption = False,
    method: Annotated[str, typer.Option("--method", help="maximum-likelihood or stopped.")] = "maximum-likelihood",
    against: Annotated[Path | None, typer.Option("--against", help="Reports of another period, as REPORTS.")] = None,
    output: Annotated[list[Path] | None, typer.Option("-o", "--output", help=_OUTPUT_HELP)] = None,
    page: PageOption = None,
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Estimate the distribution of secrets and the shares of areas, with intervals that hold."""
    from mechdesign.mechanism.storage.files import load
    from mechdesign.mechanism.stored import read
    from mechdesign.output.export.as_shares import check_shares_target, save_shares
    from mechdesign.output.page.page import check_page_target, save_page
    from mechdesign.output.tables.shares import estimate_document
    from mechdesign.output.terminal import printing
    from mechdesign.output.terminal.shares import print_estimate
    from mechdesign.setting.readers.areas import read_areas
    from mechdesign.setting.readers.reports import read_reports
    from mechdesign.utility.population.channel import report_places, shared_domain
    from mechdesign.utility.population.shares import estimate_shares, reports_digest

    if page is not None:
        check_page_target(page, overwrite=overwrite)
    if reports.suffix.lower() == ".nc":
        raise InputError(
            "is a mechanism file, not reports",
            field="reports",
            value=reports,
            remedy=f"give the reports first: mechdesign estimate {' '.join(map(str, [*files, reports]))}",
        )
    mechanisms = [load(path) for path in files]
    domain = shared_domain(mechanisms)
    for path in output or []:
        check_shares_target(path, overwrite=overwrite, on_earth=domain.plane is not None)
    if areas is None and (guess, pilot, against, rest, name_field) != (None,) * 5:
        raise InputError("intervals are of areas", field="areas", value="none", remedy="pass --areas FILE")
    places = {str(each.attrs["sha256"]): report_places(read(each)) for each in mechanisms}
    counts = list(read_reports(reports, places, on_note=printing.note).values())
    parted = None
    if areas is not None:
        parted = read_areas(areas, domain, rest=rest, name_field=name_field, on_note=printing.note)
    options: dict[str, Any] = {"interval": interval, "pilot": pilot, "seed": seed, "method": method}
    options |= {"confidence": confidence, "simultaneous": simultaneous}
    if guess is not None:
        options["guess"] = _guess(guess, mechanisms[0]["prior"].values, reports_digest(mechanisms, counts))
    if against is not None:
        options["against"] = list(read_reports(against, places, on_note=printing.note).values())
    found = estimate_shares(mechanisms, counts, parted, **options)
    for path in output or []:
        save_shares(found, path, overwrite=overwrite)
    if page is not None:
        save_page(found, page, mechanisms=mechanisms, overwrite=overwrite)
    if as_json:
        printing.print_json(estimate_document(found))
    else:
        print_estimate(found)


def _guess(words: str, prior: NDArray[np.float64], digest: str) -> NDArray[np.float64]:
    """The distribution (n,) of --guess. Raises: InputError for an estimate from the same reports."""
    import numpy as np

    from mechdesign.utility.population.shares import load_estimate

    if words == "prior":
        return prior
    if words == "uniform":
        return np.full(len(prior), 1 / len(prior))
    if Path(words).suffix.lower() != ".nc":
        raise InputError("unknown guess", field="guess", value=words, remedy="use prior, uniform or an estimate (.nc)")
    held = load_estimate(words)
    if held.attrs["reports_sha256"] == digest:
        raise InputError(
            "is an estimate from the same reports: such bounds cover as little as 40 % where they say 95 %",
            field="guess",
            value=words,
            remedy="give one from other reports, or set a pilot of these aside: --pilot 0.2",
        )
    return np.asarray(held["distribution"].values)

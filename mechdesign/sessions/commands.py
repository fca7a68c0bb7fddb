"""`mechdesign session`: design by simulation, create a session, report along a trace, show the account."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from mechdesign.cli.groups import add_commands
from mechdesign.cli.inputs import InputOptions
from mechdesign.cli.options import BoxOption, CrsOption, JsonOption, LimitOption, OverwriteOption, real, whole
from mechdesign.cli.values import parse_place
from mechdesign.errors import InputError
from mechdesign.geo.commands import parse_area

session = typer.Typer(
    help="Example: `mechdesign session account me.session`.\n\nReport along a trace, with one certified account.",
    short_help="Report along a trace, with one certified account: design, create, report, account.",
    rich_markup_mode="rich",
)
SessionArgument = Annotated[Path, typer.Argument(help="The file of the session.")]
_WITHIN_HELP = "Radius within which --nats holds, in metres."
_WINDOW_HELP = "Window of the limit: 1d (each calendar day), 14d, 24h (any 24 hours), or a number of ticks."


# One argument for each option of the command line, here and in `report`.
def design(
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Design to write (.json), with its tables next to it.")
    ],
    cell: Annotated[float, real("--cell", help="Side of a cell, in metres.")],
    nats: Annotated[float, real("--nats", help="Privacy cost of a calendar day, within the radius.")],
    area: Annotated[Path | None, typer.Argument(help="GeoJSON file: Polygon or MultiPolygon, degrees.")] = None,
    box: BoxOption = None,
    ticks: Annotated[int, whole("--ticks", help="Ticks in a day; each may report a place.")] = 48,
    within: Annotated[float, real("--within", metavar="METRES", help=_WITHIN_HELP)] = 200.0,
    forbidden: Annotated[
        Path | None, typer.Option("--forbidden", help="GeoJSON of places to leave out, such as water.")
    ] = None,
    crs: CrsOption = None,
    simulated: Annotated[int, whole("--simulated", help="Number of simulated people.")] = 30,
    time_limit: LimitOption = float("inf"),
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Example: `mechdesign session design --box 2.34,48.85,2.36,48.87 --cell 700 --nats 3 -o day.json`.

    Design a session for an area: simulate days, and show the error and the privacy cost of each daily total.
    """
    started = time.monotonic()
    from mechdesign.base.atomic_write import check_target
    from mechdesign.geo.geojson import read_area
    from mechdesign.output import text_tables as printing
    from mechdesign.sessions.design_files import save_design
    from mechdesign.sessions.study.propose import propose
    from mechdesign.sessions.terminal import proposal_document, proposal_words

    check_target(output, overwrite=overwrite)
    InputOptions(crs=crs).refuse_unused_system(area, forbidden)
    region = parse_area(area, box, crs)
    excluded = None if forbidden is None else read_area(forbidden, crs=crs, on_note=printing.note)
    printing.note_compiling()
    with printing.progress("simulating sessions", limit=time_limit) as on_progress:
        proposal = propose(
            region.grid(cell=cell, unit="m", forbidden=excluded, on_note=printing.note),
            ticks=ticks,
            limit=nats,
            within=within,
            people=simulated,
            time_limit=time_limit,
            on_progress=on_progress,
        )
    save_design(proposal.design, output, overwrite=overwrite)
    ended = {"file": str(output), "seconds": time.monotonic() - started, "stopped": proposal.stopped or None}
    late = "Stopped at the time limit: some rules or totals were not tried. A longer --time-limit tries all."
    words = [*([late] if proposal.stopped else []), *proposal_words(proposal, output)]
    printing.show(proposal_document(proposal) | ended, words, as_json=as_json)


def create(
    file: SessionArgument,
    design: Annotated[Path, typer.Argument(help="The design (JSON, with its tables next to it).")],
    limit: Annotated[float, real("--limit", help="Maximum cost of a window, in multiples of the metric.")],
    window: Annotated[str, typer.Option("--window", help=_WINDOW_HELP)] = "1d",
    as_json: JsonOption = False,
) -> None:
    """Example: `mechdesign session create me.session day.json --limit 3`.

    Create the session FILE, with nothing reported yet.
    """
    from mechdesign.sessions.session import Session
    from mechdesign.sessions.terminal import show_account

    length = int(window) if window.isascii() and window.isdigit() and len(window) < 10 else window
    show_account(Session.create(file, design=design, limit=limit, window=length).account(), as_json=as_json)


def report(
    context: typer.Context,
    file: SessionArgument,
    tick: Annotated[int, whole("--tick", help="Number of this tick, counted from a midnight; it must increase.")],
    at: Annotated[str | None, typer.Option("--at", metavar="X Y", help="Location, in the unit of the map.")] = None,
    secret: Annotated[
        str | None,
        typer.Option("--secret", help="Number of the secret or label of the class, not --at.", metavar="SECRET"),
    ] = None,
    lon: Annotated[float | None, real("--lon", help="Degrees east, with --lat instead of --at.")] = None,
    lat: Annotated[float | None, real("--lat", help="Degrees north.")] = None,
    no_fix: Annotated[
        bool, typer.Option("--no-fix", help="Location unknown: a report is drawn and paid all the same.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Example: `mechdesign session report me.session --tick 0 --lon 2.35 --lat 48.86`.

    Report at a tick: draw and pay if the rule asks for a report, then print the release.
    """
    location = parse_place(at, context.args)
    if sum(argument is not None for argument in (location, secret, lon)) + no_fix != 1 or (lon is None) != (
        lat is None
    ):
        remedy = "pass --at X Y, --lon E --lat N, --secret SECRET, or --no-fix"
        raise InputError("exactly one place is required", field="at", remedy=remedy)
    import numpy as np

    from mechdesign.problem.classes import place_number
    from mechdesign.problem.locate import refuse_degrees
    from mechdesign.sessions.session import Session
    from mechdesign.sessions.terminal import show_release

    opened = Session(file)
    domain = opened.design.domain
    if lon is not None and lat is not None:
        if domain.plane is None:
            raise InputError("the design has no position on Earth", field="lon, lat", remedy="pass --at X Y")
        location = domain.plane.forward(np.array([lon]), np.array([lat]))[0].tolist()
    elif location is not None and len(location) == domain.dimension:
        refuse_degrees(domain, np.array([location]), only_if_rare=False)
    place = None if secret is None else place_number(secret, domain.labels or (), "secret")
    show_release(opened.report(place, at=location, tick=tick), domain, as_json=as_json)


def account(file: SessionArgument, as_json: JsonOption = False) -> None:
    """Example: `mechdesign session account me.session`.

    Show the costs of a session: every window is summed again, exactly.
    """
    from mechdesign.sessions.session import Session
    from mechdesign.sessions.terminal import show_account

    show_account(Session(file).account(), as_json=as_json)


add_commands(session, {"design": design, "create": create, "report": report, "account": account})

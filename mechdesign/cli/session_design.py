"""`mechdesign session design`: rule, table and cost of a session, proposed by simulation. Heavy imports inside."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from mechdesign.cli.area import area_of_box
from mechdesign.cli.options import JsonOption, LimitOption, OverwriteOption, real, whole
from mechdesign.errors import InputError

_AREA_HELP = "GeoJSON file of the region: Polygon or MultiPolygon, degrees."
_WITHIN_HELP = "The radius that --limit is for, in --unit."


def design(
    output: Annotated[Path, typer.Option("-o", "--output", help="Design to write: .json, its table beside it.")],
    cell: Annotated[float, real("--cell", help="Side of a cell, in the unit.")],
    limit: Annotated[float, real("--limit", help="Nats within the radius that a calendar day may cost.")],
    area: Annotated[Path | None, typer.Option("--area", help=_AREA_HELP)] = None,
    box: Annotated[str | None, typer.Option("--box", metavar="W,S,E,N", help="Degrees, instead of a file.")] = None,
    ticks: Annotated[int, whole("--ticks", help="Ticks of a day, at each of which a place may be reported.")] = 48,
    within: Annotated[float, real("--within", help=_WITHIN_HELP)] = 200.0,
    unit: Annotated[str, typer.Option("--unit", help="Unit of length: m, km, mi, ...")] = "m",
    forbidden: Annotated[Path | None, typer.Option("--forbidden", help="GeoJSON of what is left out: water.")] = None,
    people: Annotated[int, whole("--people", help="Synthetic people that are measured.")] = 30,
    seed: Annotated[int, whole("--seed", help="Of the simulation.")] = 0,
    time_limit: LimitOption = float("inf"),
    overwrite: OverwriteOption = False,
    as_json: JsonOption = False,
) -> None:
    """Design a session for an area: simulates synthetic days, and says what a total a day is worth and gives away."""
    started = time.monotonic()
    from mechdesign.mechanism.session.design_files import save_design
    from mechdesign.mechanism.storage.files import check_target
    from mechdesign.output.terminal import printing
    from mechdesign.output.terminal.proposal import print_proposal, proposal_document
    from mechdesign.setting.readers.geojson import read_area
    from mechdesign.utility.traces.propose import propose

    check_target(output, overwrite=overwrite)
    if (area is None) == (box is None):
        raise InputError("one area is needed", field="area", value=box, remedy="give --area FILE, or --box W,S,E,N")
    left_out = None if forbidden is None else read_area(forbidden)
    given = area_of_box(box) if area is None else read_area(area)
    domain = given.grid(cell=cell, unit=unit, forbidden=left_out)
    printing.note_compiling()
    with printing.progress("simulating sessions", limit=time_limit) as on_progress:
        found = propose(
            domain,
            ticks=ticks,
            limit=limit,
            within=within,
            people=people,
            seed=seed,
            time_limit=time_limit,
            on_progress=on_progress,
        )
    save_design(found.design, output, overwrite=overwrite)
    document = proposal_document(found) | {
        "file": str(output),
        "seconds": time.monotonic() - started,
        "stopped": found.stopped or None,
    }
    if as_json:
        printing.print_json(document)
    else:
        if found.stopped:
            printing.say("Stopped at its time limit: rules or totals are left out; a longer --time-limit tries all.")
        print_proposal(found, output)

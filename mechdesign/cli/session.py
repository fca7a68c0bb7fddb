"""`mechdesign session`: make a session from a design, report along a trace, say what was paid."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mechdesign.cli.options import JsonOption, real, whole
from mechdesign.cli.parsing import place_asked
from mechdesign.cli.session_design import design as propose
from mechdesign.errors import InputError

if TYPE_CHECKING:
    from mechdesign.mechanism.session.design import SessionDesign
    from mechdesign.setting.space.domain import Domain

session = typer.Typer(help="Reports along a trace, one certified account.", rich_markup_mode=None)
session.command("design")(propose)
SessionArgument = Annotated[Path, typer.Argument(help="The file of the session.")]
_DESIGN = typer.Option("--design", help="The design (JSON, with its tables beside it).")
DesignOption = Annotated[Path | None, _DESIGN]
_WINDOW_HELP = "What the limit is for: 1d, every calendar day; 24h, any 24 hours; 14d; or any so many ticks."


@session.command()
def create(
    file: SessionArgument,
    design: Annotated[Path, _DESIGN],
    limit: Annotated[float, real("--limit", help="The most that a window may cost, in multiples of the metric.")],
    window: Annotated[str, typer.Option("--window", help=_WINDOW_HELP)] = "1d",
    as_json: JsonOption = False,
) -> None:
    """Make the session FILE, with nothing reported yet."""
    from mechdesign.mechanism.session.session import Session
    from mechdesign.output.terminal import printing
    from mechdesign.output.terminal.session import print_account, said_account

    asked: str | int = int(window) if window.isascii() and window.isdigit() and len(window) < 10 else window
    made = Session.create(file, design=design, limit=limit, window=asked)
    if as_json:
        printing.print_json(said_account(made.account()))
    else:
        print_account(made.account())


@session.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def report(
    context: typer.Context,
    file: SessionArgument,
    tick: Annotated[int, whole("--tick", help="The number of this tick, counted from a midnight; they rise.")],
    at: Annotated[str | None, typer.Option("--at", metavar="X Y", help="The location, in the unit of the map.")] = None,
    cell: Annotated[int | None, whole("--cell", help="The number of the place, instead of --at.")] = None,
    lon: Annotated[float | None, real("--lon", help="Degrees east, with --lat instead of --at.")] = None,
    lat: Annotated[float | None, real("--lat", help="Degrees north.")] = None,
    no_fix: Annotated[
        bool, typer.Option("--no-fix", help="The location is not known: a report is drawn all the same.")
    ] = False,
    design: DesignOption = None,
    as_json: JsonOption = False,
) -> None:
    """Report at a tick: draws if the rule asks for it, pays, and prints what may be released."""
    location = place_asked(at, context.args)
    if sum(given is not None for given in (location, cell, lon)) + no_fix != 1 or (lon is None) != (lat is None):
        raise InputError(
            "one place is needed",
            field="at",
            value=None,
            remedy="pass --at X Y, --lon E --lat N, --cell N, or --no-fix",
        )
    import numpy as np

    from mechdesign.mechanism.session.session import Session
    from mechdesign.output.terminal import printing
    from mechdesign.output.terminal.session import print_estimate, said_estimate
    from mechdesign.setting.space.locate import refuse_degrees

    opened = Session(file) if design is None else Session(file, design=_design(design))
    if lon is not None and lat is not None:
        location = _on_plane(opened.design.domain, lon, lat)
    elif location is not None and len(location) == opened.design.domain.dimension:
        refuse_degrees(opened.design.domain, np.array([location]), surely=False)
    told = opened.report(cell, at=location, tick=tick)
    if as_json:
        printing.print_json(said_estimate(told, opened.design.domain))
    else:
        print_estimate(told, opened.design.domain)


@session.command()
def account(file: SessionArgument, design: DesignOption = None, as_json: JsonOption = False) -> None:
    """Say what a session has paid: every window summed afresh, exactly."""
    from mechdesign.mechanism.session.session import Session
    from mechdesign.output.terminal import printing
    from mechdesign.output.terminal.session import print_account, said_account

    opened = Session(file) if design is None else Session(file, design=_design(design))
    if as_json:
        printing.print_json(said_account(opened.account()))
    else:
        print_account(opened.account())


def _design(path: Path) -> SessionDesign:
    from mechdesign.mechanism.session.design_files import load_design

    return load_design(path)


def _on_plane(domain: Domain, longitude: float, latitude: float) -> list[float]:
    """The location of degrees, however far away. Raises: InputError for a domain without a plane."""
    import numpy as np

    if domain.plane is None:
        raise InputError(
            "the design does not say where on Earth it is", field="lon, lat", value=None, remedy="pass --at X Y"
        )
    return domain.plane.forward(np.array([longitude]), np.array([latitude]))[0].tolist()

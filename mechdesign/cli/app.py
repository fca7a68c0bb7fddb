"""The typer app: which commands there are. `cli.main` runs it."""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

import typer

from mechdesign.cli.area import area
from mechdesign.cli.audit import audit
from mechdesign.cli.client import client
from mechdesign.cli.compare import compare
from mechdesign.cli.estimate import estimate
from mechdesign.cli.export import export
from mechdesign.cli.level import level
from mechdesign.cli.page import page
from mechdesign.cli.plan import plan
from mechdesign.cli.plot import plot
from mechdesign.cli.problems import problems
from mechdesign.cli.sample import sample
from mechdesign.cli.session import session
from mechdesign.cli.solve import solve
from mechdesign.cli.sweep import sweep
from mechdesign.cli.verify import verify

app = typer.Typer(
    help="Design location-privacy and metric-privacy mechanisms by optimization, certified in exact integers.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
TAKES_PARAMETERS = {"allow_extra_args": True, "ignore_unknown_options": True}

for exact in (area, problems, verify, export, page, client, plot, level, estimate):
    app.command()(exact)
for open_ended in (solve, compare, sweep, audit, sample, plan):
    app.command(context_settings=TAKES_PARAMETERS)(open_ended)
app.add_typer(session, name="session")


@cache
def command() -> Callable[..., Any]:
    """The command line as Click runs it, built from the app once in a process: 25 milliseconds."""
    return typer.main.get_command(app)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"mechdesign {version('mechdesign')}")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Design location-privacy and metric-privacy mechanisms by optimization, certified in exact integers."""

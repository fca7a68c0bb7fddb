"""The typer app: which commands there are. `cli.main` runs it."""

from collections.abc import Callable
from functools import cache
from inspect import signature
from typing import Annotated, Any

import typer

from mechdesign.base.registry import Table
from mechdesign.cli.audit import audit
from mechdesign.cli.compare import compare, sweep
from mechdesign.cli.export import export, plot, problems
from mechdesign.cli.sample import sample
from mechdesign.cli.solve import solve
from mechdesign.cli.verify import verify

COMMANDS: Table[Any] = Table(
    "commands",
    {
        "solve": solve,
        "compare": compare,
        "sweep": sweep,
        "verify": verify,
        "audit": audit,
        "sample": sample,
        "export": export,
        "plot": plot,
        "problems": problems,
    },
)
app = typer.Typer(
    help="Design location-privacy and metric-privacy mechanisms by optimization, certified in exact integers.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
TAKES_PARAMETERS = {"allow_extra_args": True, "ignore_unknown_options": True}

for name, run in COMMANDS.items():
    if isinstance(run, typer.Typer):
        app.add_typer(run, name=name)
    else:
        app.command(name, context_settings=TAKES_PARAMETERS if "context" in signature(run).parameters else None)(run)


@cache
def command() -> Callable[..., Any]:
    """The command line as Click runs it, built from the app once in a process: 25 milliseconds."""
    return typer.main.get_command(app)


def _version(wanted: bool) -> None:
    if wanted:
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

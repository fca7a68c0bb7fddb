"""The typer app: its commands, and their panels in the help. `cli.main` runs it."""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

import typer

from mechdesign.base.registry import Registry
from mechdesign.cli.audit import audit
from mechdesign.cli.compare import compare
from mechdesign.cli.export import export
from mechdesign.cli.groups import add_commands
from mechdesign.cli.new import new
from mechdesign.cli.sample import sample
from mechdesign.cli.solve import solve
from mechdesign.cli.verify import verify

COMMANDS: Registry[Any] = Registry(
    "commands",
    {
        "new": new,
        "solve": solve,
        "compare": compare,
        "verify": verify,
        "audit": audit,
        "sample": sample,
        "export": export,
    },
)
app = typer.Typer(
    help="Design location-privacy and metric-privacy mechanisms by optimization, certified in exact integers.",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
PANELS = {
    "Design": ("level", "area", "new", "solve", "compare"),
    "Trust": ("verify", "audit"),
    "Use": ("sample", "export", "session"),
    "Statistics": ("plan", "estimate"),
}  # commands by panel; those of other packages follow
# The help lists commands in this order; those that a capability adds without a panel come last.
panel_of = {name: panel for panel, names in PANELS.items() for name in names}
ordered = [name for name in panel_of if name in COMMANDS] + [name for name in COMMANDS if name not in panel_of]
add_commands(app, {name: COMMANDS[name] for name in ordered}, panel_of)


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

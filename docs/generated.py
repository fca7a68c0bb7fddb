"""Write pages of reference before the site is built: public names, commands from their help, rules from their table."""

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mechdesign
from mechdesign.base.formatting import percent
from mechdesign.cli.app import PANELS, command

FOLDER = Path(__file__).parent / "reference"
GROUPS = {
    "State a problem": (
        *("Domain", "Raster", "PrivacyLevel", "Euclidean", "Eikonal", "Discrete", "Graph", "DesignProblem"),
        "load_problem",
    ),
    "Solve it": ("solve", "Optimal", "EikonalWeights", "diagnosis"),
    "Compare": ("compare", "sweep"),
    "Prove and hand over": ("verify", "audit", "save", "load", "export", "probabilities", "on_grid"),
    "Report": ("Sampler", "sample"),
}


def _heading(text: str, rule: str) -> str:
    return f"{text}\n{rule * len(text)}\n\n"


def _list_of(names: list[str]) -> str:
    return (
        ".. autosummary::\n   :toctree: names\n   :nosignatures:\n\n" + "".join(f"   {name}\n" for name in names) + "\n"
    )


def names_page() -> str:
    """Return the index of all public names, each with its own page."""
    modules = [name for name in mechdesign.__all__ if inspect.ismodule(getattr(mechdesign, name))]
    grouped = {name for names in GROUPS.values() for name in names}
    more = sorted(set(mechdesign.__all__) - grouped - set(modules))
    text = _heading("Python names", "=") + "``import mechdesign as md``. The most used names are at the top of it.\n\n"
    for group, names in (GROUPS | ({"More": more} if more else {})).items():
        text += _heading(group, "-") + _list_of([f"mechdesign.{name}" for name in names])
    listed = {id(getattr(mechdesign, name)) for name in [*grouped, *more]}
    for module in sorted(modules, key=lambda name: (name == "extend", name)):  # extend repeats names of the others
        text += f".. _md-{module}:\n\n" + _heading(f"md.{module}", "-")
        if module == "errors":
            text += "Exceptions. Each is an ``Error``; an ``InputError`` is a ``ValueError`` too.\n\n"
        names = getattr(importlib.import_module(f"mechdesign.{module}"), "__all__", None) or [
            name for name, value in vars(mechdesign.errors).items() if inspect.isclass(value)
        ]
        own = [name for name in names if id(getattr(getattr(mechdesign, module), name)) not in listed]
        listed |= {id(getattr(getattr(mechdesign, module), name)) for name in own}
        text += _list_of([f"mechdesign.{module}.{name}" for name in own])
        if len(own) < len(names):
            text += "Also here: " + ", ".join(f"``{name}``" for name in names if name not in own) + ".\n\n"
    return text


def _literal(text: str) -> str:
    return text.replace("`", "``").replace("*", r"\*").replace("|", r"\|")


def _options(command_line: Any) -> Iterator[str]:
    for parameter in command_line.params:
        if parameter.name == "help":
            continue
        written = parameter.metavar or parameter.name.upper()
        switch = getattr(parameter, "is_flag", False)
        names = [*parameter.opts, *parameter.secondary_opts] if parameter.param_type_name == "option" else [written]
        value = "" if switch or names == [written] else f" {written}"
        needed = " Required." if parameter.required else ""
        if not (parameter.default is None or switch or callable(parameter.default)):
            needed += f" Default: {parameter.default}."
        names.sort(key=len, reverse=True)
        yield f"``{', '.join(names)}{value}``\n   {_literal(parameter.help or '')}{needed}\n\n"


def _command(name: str, command_line: Any, rule: str) -> str:
    example, _, rest = inspect.cleandoc(command_line.help or "").partition("\n\n")
    text = (
        _heading(f"mechdesign {name}", rule)
        + f"{_literal(rest)}\n\n{_literal(example)}\n\n"
        + "".join(_options(command_line))
    )
    for below, each in getattr(command_line, "commands", {}).items():
        text += _command(f"{name} {below}", each, '"')
    return text


def commands_page() -> str:
    """Return the page of all commands and options, from their help."""
    commands = command().commands
    text = _heading("Commands", "=")
    text += "``mechdesign COMMAND --help`` says the same in a terminal. With ``--json`` a command prints one JSON\n"
    text += "document on standard output and all else on standard error. Exit code 0 is done or certified, 1 a design\n"
    text += (
        "or a verification that failed, 2 an input that was refused. A design that ends more than ten times above its\n"
    )
    text += "gap, by no time limit or Ctrl-C, keeps its certified file and exits with 1.\n\n"
    for panel, names in PANELS.items():
        text += _heading(panel, "-") + "".join(_command(name, commands[name], "~") for name in names)
    return text


def rules_page() -> str:
    """Return the table of rules that blur positions, with their figures at 45 degrees north."""
    text = _heading("Rules that blur positions", "=")
    text += "After this page you know the figures of public rules of blurring, and can look up another latitude.\n\n"
    text += (
        "``mechdesign audit RULE --at LATITUDE --disc RADIUS`` prints them with a witness. Figures are for one report\n"
    )
    text += (
        "of positions spread evenly, at 45 degrees north. The disc has a radius of 1,850 ft. Planar Laplace noise is\n"
    )
    text += "that of the same mean error. No level is finite except in the rows that state one.\n\n"
    heads = (
        "rule",
        "report",
        "mean error, m",
        "in the disc",
        "nats per km",
        "noise: in the disc",
        "noise: nats per km",
        "source",
    )
    text += ".. list-table::\n   :header-rows: 1\n\n" + _row(heads)
    for name, rule in mechdesign.blurs.RULES.items():
        found = mechdesign.blurs.audit_rule(name, latitude=45.0)
        level, noise = found["effective_epsilon"], found["laplace"]
        shares = [percent(share) for share in (found["share"], noise["share"])]
        nats = [f"{value:.3g}" for value in ((level or 0) * 1000, noise["nats_per_km"])]
        mean, stated = f"{found['mean_distance']:,.0f}", nats[0] if level else "no bound"
        text += _row((f"``{name}``", rule.words, mean, shares[0], stated, shares[1], nats[1], rule.source))
    return text


def _row(cells: tuple[str, ...]) -> str:
    return "".join(f"   {'*' if k == 0 else ' '} - {cell}\n" for k, cell in enumerate(cells))


def write(*_: Any) -> None:
    """Write these pages into `docs/reference`. They are not tracked."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in {"index": names_page(), "commands": commands_page(), "rules": rules_page()}.items():
        path = FOLDER / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")

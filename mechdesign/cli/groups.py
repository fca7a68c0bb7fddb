"""Turns functions into commands: help starts with an example, and errors name unknown options first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from inspect import getdoc, signature
from typing import Any

import typer

from mechdesign.cli.parameters import first_unknown
from mechdesign.errors import InputError

TAKES_PARAMETERS = {"allow_extra_args": True, "ignore_unknown_options": True}
_NAME_PARAMETERS = {"problem", "metric", "source"}  # arguments and options whose values have parameters of their own


class Command(typer.core.TyperCommand):
    """A command that refuses a second value of an option that has one, where Click keeps the last."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            values, _, given = self.make_parser(ctx).parse_args(list(args))
            for option, count in Counter(each for each in given if isinstance(each, typer.core.TyperOption)).items():
                if count > 1 and not (option.multiple or option.is_flag):
                    name = option.opts[-1].lstrip("-")
                    raise InputError("given twice", field=name, value=values[option.name], remedy="give it once")
        return super().parse_args(ctx, args)


class ParameterCommand(Command):
    """A command that also takes parameters of a problem or metric. Unknown options are reported before other errors."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # Click consumes `args` while it parses: the error needs all of them.
        words = list(args)
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            if unknown := self._unknown(ctx, words):
                raise unknown from error
            raise

    def invoke(self, ctx: Any) -> Any:
        arguments = [str(ctx.params[each.name]) for each in self.params if each.param_type_name == "argument"]
        try:
            return super().invoke(ctx)
        # A mistyped option is taken for a parameter, and fails later under another name: it is the cause.
        except InputError as error:
            if not (unknown := self._unknown(ctx, [*arguments, *ctx.args])):
                raise
            if unknown.field != error.field:
                raise unknown from error
            error.remedy = unknown.remedy  # the nearest option of all
            raise

    def _unknown(self, ctx: Any, words: list[str]) -> InputError | None:
        names = {each.name for each in self.params}
        options = {
            "--help",
            *(word for each in self.params for word in each.opts + each.secondary_opts if word[0] == "-"),
        }
        unknown = first_unknown(words, options, parameters=bool(names & _NAME_PARAMETERS))
        if unknown is not None and unknown.remedy is None:
            unknown.remedy = f"see {ctx.command_path} --help"
        return unknown


class ProblemCommand(ParameterCommand):
    """A command on a problem: its help ends with the shipped problems and their parameters."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        super().format_help(ctx, formatter)
        from mechdesign.output.text_tables import Block, show
        from mechdesign.problem.problem_files import shipped_problems

        blocks: list[Block] = ["Shipped problems, and their parameters:"]
        for problem in shipped_problems():
            parameters = (f"--{name.replace('_', '-')}={value}" for name, value in problem.parameters.items())
            blocks.append({problem.name: f"{problem.summary} {' '.join(parameters)}"})
        show(None, blocks, as_json=False)


def add_commands(to: typer.Typer, commands: Mapping[str, Any], panels: Mapping[str, str] | None = None) -> None:
    """Add functions or groups to an app; help begins with an example, and its next paragraph lists the command."""
    rest = None if panels is None else "More"
    for name, run in commands.items():
        if isinstance(run, typer.Typer):
            to.add_typer(run, name=name, rich_help_panel=(panels or {}).get(name, rest))
            continue
        parameters = signature(run).parameters
        summary = " ".join((getdoc(run) or "").split("\n\n")[1:2]).replace("\n", " ")
        to.command(
            name,
            cls=ProblemCommand if "problem" in parameters else ParameterCommand if "context" in parameters else Command,
            context_settings=TAKES_PARAMETERS if "context" in parameters else None,
            short_help=summary,
            rich_help_panel=(panels or {}).get(name, rest),
        )(run)

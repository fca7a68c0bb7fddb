"""Options of `mechdesign audit` about blurs: --function and --command, parameters of a blur, and their effect."""

from __future__ import annotations

import importlib.util
import math
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mechdesign.base.numbers import number_list, whole_number
from mechdesign.cli.inputs import PEOPLE, InputOptions
from mechdesign.cli.values import positive_number
from mechdesign.errors import InputError

_FUNCTION_HELP = (
    "A blur in Python, MODULE:NAME or FILE.py:NAME, instead of a table: f(latitude, longitude, rng) or f(latitude, "
    "longitude). With --within METRES and --factor ODDS the audit fails above them, or with a defect. --at "
    "LATITUDE,LONGITUDE (41.9,12.5) is the true position, --seed N (0) that of all draws."
)
_COMMAND_HELP = (
    "A program that blurs, such as 'node blur.mjs', instead of a table: for each line of JSON with latitude, longitude "
    "and seed it prints one with latitude and longitude."
)


@dataclass(frozen=True, kw_only=True)
class BlurOptions:
    """--function and --command of `mechdesign audit`."""

    function: Annotated[str | None, typer.Option("--function", metavar="MODULE:NAME", help=_FUNCTION_HELP)] = None
    command: Annotated[str | None, typer.Option("--command", metavar="PROGRAM", help=_COMMAND_HELP)] = None

    @property
    def is_given(self) -> bool:
        return self.function is not None or self.command is not None

    @property
    def parameters(self) -> tuple[str, ...]:
        return "within", "factor", "at", "seed"

    def rule_options(self, words: Mapping[str, str], radii: Sequence[float]) -> dict[str, float]:
        """The arguments of an audit of a rule, with radii of discs in m."""
        return {"latitude": _place(words)[0], **({"disc": _one(radii)} if radii else {})}

    def audit(
        self,
        words: Mapping[str, str],
        radii: Sequence[float],
        picture: Path | None,
        inputs: InputOptions,
        *,
        overwrite: bool,
    ) -> tuple[dict[str, Any], list[Any], bool]:
        """The JSON document, its text, and True if the audit fails; `words` of parameters, radii in m."""
        from mechdesign.blurs.audit import DISC, audit_blur
        from mechdesign.blurs.words import blur_words
        from mechdesign.output.export import PICTURE_WRITER

        if self.function is not None and self.command is not None:
            raise InputError("is one of two blurs; pass one", field="command", value=self.command)
        numbers = {name: positive_number(words[name], name) for name in ("within", "factor") if name in words}
        factor, fails, shares = numbers.get("factor"), False, None
        if factor is not None and factor <= 1:
            raise InputError("must be above 1", field="factor", value=words["factor"])
        if picture is not None:
            PICTURE_WRITER.get().check_target(picture, overwrite=overwrite)
        audit = audit_blur(
            self._blur(),
            restarted=load_function(self.function) if self.function else None,
            at=_place(words),
            within=numbers.get("within", 200.0),
            disc=_one(radii) if radii else DISC,
            rng=_parse(words, "seed", whole_number) or 0,
        )
        if inputs.people is not None:
            from mechdesign.blurs.people import blur_disc_shares
            from mechdesign.output.text_tables import note

            columns = inputs.columns_of(*PEOPLE)
            shares = blur_disc_shares(audit, inputs.people, columns=columns, crs=inputs.crs, on_note=note)
        text = list(blur_words(audit, shares))
        if factor is not None:
            fails = bool(audit.findings) or audit.nats > math.log(factor)
            text.insert(0, f"The audit {'fails' if fails else 'passes'} at a factor of {factor:g}.")
        if picture is not None:
            from mechdesign.blurs.picture import plot_blur

            PICTURE_WRITER.get().save(plot_blur(audit), picture, overwrite=overwrite)
        document = audit.as_dict() | {"factor": factor, "fails": fails if factor is not None else None}
        return document | {"people": shares}, text, fails

    def _blur(self) -> Any:
        from mechdesign.blurs.calls import Command

        if self.command is None:
            return load_function(self.function or "")
        try:
            return Command(words=shlex.split(self.command))
        except ValueError as error:
            raise InputError(f"cannot be split into words: {error}", field="command", value=self.command) from error


def load_function(words: str) -> Any:
    """The function of MODULE:NAME, beside the working folder or installed, or of FILE.py:NAME; loaded anew."""
    place, _, name = words.rpartition(":")
    remedy = "write --function MODULE:NAME or FILE.py:NAME"
    if not (place and name):
        raise InputError("must name a module and a function", field="function", value=words, remedy=remedy)
    try:
        if place.endswith(".py"):
            spec = importlib.util.spec_from_file_location(Path(place).stem, place)
        else:
            sys.path.insert(0, str(Path.cwd()))
            spec = importlib.util.find_spec(place)
        if spec is None or spec.loader is None:
            raise ImportError(f"no module named {place}")
        # A fresh module: a generator that it seeds is new in each.
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        function = getattr(module, name)
    except (ImportError, AttributeError, OSError, ValueError) as error:
        raise InputError(f"cannot be loaded: {error}", field="function", value=words, remedy=remedy) from error
    if not callable(function):
        raise InputError("is not a function", field="function", value=words)
    return function


def _place(words: Mapping[str, str]) -> tuple[float, float]:
    """The latitude and longitude of --at; both of the default place, or its longitude, where they are not given."""
    from mechdesign.blurs.audit import PLACE

    numbers = _parse(words, "at", number_list, "write --at 41.9,12.5") or [*PLACE]
    if len(numbers) > 2:
        raise InputError("must be one latitude and one longitude", field="at", value=words["at"])
    return numbers[0], numbers[1] if len(numbers) > 1 else PLACE[1]


def _parse(words: Mapping[str, str], name: str, parse: Callable[[str], Any], remedy: str | None = None) -> Any:
    """The value of a parameter; None if it is not given."""
    try:
        return parse(words[name]) if name in words else None
    except ValueError as error:
        raise InputError(str(error), field=name, value=words[name], remedy=remedy) from error


def _one(radii: Sequence[float]) -> float:
    if len(radii) > 1:
        raise InputError("must be one radius", field="disc", value=", ".join(f"{radius:g}" for radius in radii))
    return radii[0]

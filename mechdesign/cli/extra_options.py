"""Options that a capability adds to a command: a dataclass of typer options, passed as an argument of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar, get_type_hints

from mechdesign.base.registry import Registry

Command = TypeVar("Command", bound=Callable[..., Any])
EXTRA_OPTIONS: Registry[type[Any]] = Registry(
    "command options"
)  # by the name of the command, and a second word for further ones


def with_extra_options(name: str, into: str = "extra") -> Callable[[Command], Command]:
    """Decorate a command: the options of a capability under this name replace its parameter `into`."""

    def decorate(command: Command) -> Command:
        kind = EXTRA_OPTIONS.get(name)
        added = [] if kind is None else _parameters(kind)

        @wraps(command)
        def run(*args: Any, **values: Any) -> Any:
            options = {each.name: values.pop(each.name) for each in added if each.name in values}
            return command(*args, **values, **{into: None if kind is None else kind(**options)})

        # Typer builds the options from the signature, so the added ones must stand there.
        declared = signature(command, eval_str=True)
        parameters: list[Parameter] = []
        for parameter in declared.parameters.values():
            parameters += added if parameter.name == into else [parameter]
        decorated: Any = run
        decorated.__signature__ = declared.replace(parameters=parameters)
        decorated.__annotations__ = {each.name: each.annotation for each in parameters}
        result: Command = decorated
        return result

    return decorate


def _parameters(kind: type[Any]) -> list[Parameter]:
    types = get_type_hints(kind, include_extras=True)
    return [
        Parameter(each.name, Parameter.POSITIONAL_OR_KEYWORD, default=each.default, annotation=types[each.name])
        for each in fields(kind)
    ]

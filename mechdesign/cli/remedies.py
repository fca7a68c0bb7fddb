"""Texts of Python as the command line says them: options in the place of arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from mechdesign.errors import InputError

_NAMED = re.compile(r"[a-z_]+=\w+|`[a-z_]+`(, `[a-z_]+`)*")  # a value that names arguments


def as_options(text: str) -> str:
    """A text with options in the place of Python's arguments: normalise=True becomes --normalise."""
    pairs = r"\bcolumns=\{('[^']*': '[^']*'(?:, '[^']*': '[^']*')*)\}"
    text = re.sub(
        pairs, lambda found: "--columns " + found[1].replace("': '", "=").replace("', '", ",").strip("'"), text
    )
    text = re.sub(r"(?<!--columns )(?<!,)\b([a-z]+(?:_[a-z]+)*)=(True|'[^']*'|\w+)", _option, text)
    return re.sub(r"`([a-z]+(?:_[a-z]+)*)`", lambda found: "--" + found[1].replace("_", "-"), text)


def _option(argument: re.Match[str]) -> str:
    name, value = argument[1].replace("_", "-"), argument[2].strip("'")
    if value == "False":
        name = f"no-{name}"
    return f"--{name}" if value in ("True", "False") else f"--{name} {value}"


@contextmanager
def option_names(**renamed: str) -> Iterator[None]:
    """Errors within name options in the place of arguments; renamed, the options of arguments of other names."""
    try:
        yield
    except InputError as error:
        if error.field is not None:
            error.field = renamed.get(error.field, error.field).replace("_", "-")
        error.message = as_options(error.message)
        if error.value is not None and _NAMED.fullmatch(error.value):
            error.value = as_options(error.value)
        raise

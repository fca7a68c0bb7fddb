"""Rewrites error messages of Python for the command line: option names instead of arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from mechdesign.errors import InputError

_NAMED = re.compile(r"[a-z_]+=\w+|`[a-z_]+`(, `[a-z_]+`)*")  # a value that names arguments


def as_options(text: str) -> str:
    """Replace Python arguments in a text by options: normalise=True becomes --normalise."""
    pairs = r"\bcolumns=\{('[^']*': '[^']*'(?:, '[^']*': '[^']*')*)\}"
    # Columns first: the general pattern below would match inside their dictionary.
    text = re.sub(
        pairs, lambda match: "--columns " + match[1].replace("': '", "=").replace("', '", ",").strip("'"), text
    )
    text = re.sub(r"(?<!--columns )(?<!,)\b([a-z]+(?:_[a-z]+)*)=(True|'[^']*'|\w+)", _option, text)
    return re.sub(r"`([a-z]+(?:_[a-z]+)*)`", lambda match: "--" + match[1].replace("_", "-"), text)


def _option(argument: re.Match[str]) -> str:
    name, value = argument[1].replace("_", "-"), argument[2].strip("'")
    if value == "False":
        name = f"no-{name}"
    return f"--{name}" if value in ("True", "False") else f"--{name} {value}"


@contextmanager
def option_names(**renamed: str) -> Iterator[None]:
    """Within this context errors name options, not arguments; renamed: option names that differ."""
    try:
        yield
    except InputError as error:
        if error.field is not None:
            error.field = renamed.get(error.field, error.field).replace("_", "-")
        error.message = as_options(error.message)
        if error.value is not None and _NAMED.fullmatch(error.value):
            error.value = as_options(error.value)
        raise

"""Optional dependencies: a module of an extra, or the command that installs it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mechdesign.errors import InputError


def import_optional(name: str, extra: str) -> Any:
    """The module of that name. Raises: InputError with the command that installs the extra it belongs to."""
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError(
            f"needs {name.partition('.')[0]}, which is not installed",
            field=extra,
            remedy=f"pip install 'mechdesign[{extra}]'",
        ) from error

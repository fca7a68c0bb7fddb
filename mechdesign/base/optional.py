"""Optional dependencies: a module of an extra, or the command that installs it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mechdesign.errors import InputError


def import_optional(name: str, extra: str) -> Any:
    """Import a module; InputError with the command that installs its extra if it is missing."""
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError(
            f"needs {name.partition('.')[0]}, which is not installed",
            field=extra,
            remedy=f"pip install 'mechdesign[{extra}]'",
        ) from error

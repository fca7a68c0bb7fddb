"""Files of this package that need nothing else of it: programs in Python and JavaScript, templates."""

from __future__ import annotations

import re
from importlib import resources

# Joined modules share one scope, so imports between them go; the patterns match this package's own style only.
_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(async )?(function|class|const) )", re.MULTILINE)


def package_file(name: str) -> bytes:
    """A file of this package that needs nothing else of it, by its path."""
    return resources.files("mechdesign").joinpath(*name.split("/")).read_bytes()


def package_script(name: str) -> str:
    """A JavaScript file of this package without its imports and exports, to be joined with others."""
    text = _IMPORT.sub("", package_file(name).decode())
    return _EXPORT.sub("", text).strip("\n") + "\n"

"""A file as somebody writes it who may be hostile: other values, under a checksum that is right again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import xarray as xr

from mechdesign.mechanism.hashing import seal
from mechdesign.mechanism.storage import write_dataset


def rewritten(file: xr.Dataset, /, **changes: Any) -> xr.Dataset:
    """The file with other variables, and other attributes where no variable has the name, sealed."""
    arrays = {name: value for name, value in changes.items() if name in file or isinstance(value, tuple)}
    words = {name: value for name, value in changes.items() if name not in arrays}
    return seal(file.assign(arrays).assign_attrs(words))


def write_anyway(file: xr.Dataset, path: Path) -> Path:
    """The path, to which the file is written though `md.save` would refuse it."""
    write_dataset(file, path)
    return path

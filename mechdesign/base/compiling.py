"""Whether the compiled kernels of this package are kept already, and what is said where a first run makes them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mechdesign.base.progress import clear

_COMPILED = Path(__file__).resolve().parents[1] / "mechanism" / "table"  # its kernels are the first that any run needs
SAID = "compiling, once per installation, about a minute: later runs start at once"


def compiled(folder: Path = _COMPILED, kernel: str = "certificate") -> bool:
    """Whether Numba keeps a kernel of a folder for this Python, or cannot keep any there."""
    name = f"{kernel}.*py{sys.version_info.major}{sys.version_info.minor}*.nbi"
    kept = os.environ.get("NUMBA_CACHE_DIR")
    if kept:
        return any(Path(kept).rglob(name))
    return any((folder / "__pycache__").glob(name)) or not os.access(folder, os.W_OK)


def note_compiling() -> None:
    """Say on standard error, where no compiled kernel of this package is kept yet, that a first run takes longer."""
    if not compiled() and sys.stderr is not None:
        clear()
        print(SAID, file=sys.stderr)

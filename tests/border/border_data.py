"""Small files as people bring them, beside the checkout where these are present."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import ROOT

FOLDER = ROOT.parent / "shared" / "data" / "border"


def border_file(name: str) -> Path:
    """Path of one of these files. Skips the test where the folder is absent."""
    if not FOLDER.is_dir():
        pytest.skip("the folder ../shared/data/border is absent")
    return FOLDER / name

"""Tables of `pytest.mark.parametrize` whose rows do not all run by default."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def few_by_default(table: Iterable[Any], *kept: Any) -> list[Any]:
    """Return the rows of a table; those that are not kept run with --runslow only."""
    rows = list(table)
    assert any(row in kept for row in rows), "no row runs by default"
    return [
        pytest.param(*(row if isinstance(row, tuple) else (row,)), marks=() if row in kept else pytest.mark.slow)
        for row in rows
    ]

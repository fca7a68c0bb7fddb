"""Progress: what a search tells while it works."""

from __future__ import annotations

from dataclasses import dataclass, field

import psutil


def _resident() -> float:
    return float(psutil.Process().memory_info().rss / 2**20)


@dataclass(frozen=True, kw_only=True, eq=False)
class Progress:
    """Where a search stands.

    method and its round; iteration within the round, None when the round is over; loss of the best certified table (inf
    before the first), lower bound, and their relative gap; variables and constraints of the program being solved;
    seconds so far; resident memory of the process in MB.
    """

    method: str
    round: int
    iteration: int | None
    loss: float
    lower_bound: float
    gap: float
    variables: int
    constraints: int
    seconds: float
    memory_mb: float = field(default_factory=_resident)

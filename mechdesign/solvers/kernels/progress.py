"""Progress: what a search tells while it works."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import psutil

from mechdesign.base.progress import percent


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

    @property
    def milestone(self) -> bool:
        """Whether a round is over."""
        return self.iteration is None

    @property
    def brief(self) -> str:
        """In a few words."""
        if not math.isfinite(self.gap):
            return f"no table yet, {self.method}"
        return f"gap {percent(self.gap)}, {self.method}"

    def __str__(self) -> str:
        within = "" if self.iteration is None else f", iteration {self.iteration}"
        return (
            f"[{self.lower_bound:.7g}, {self.loss:.7g}] gap {self.gap:.1e}, {self.method}, round {self.round + 1}"
            f"{within}, {self.variables} variables, {self.constraints} constraints, {self.memory_mb:.0f} MB"
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Streaming:
    """Where a design that streams rows stands: the stage, rows (or what `unit` says) done of all; kappa, the largest
    log-ratio over claimed length of a full pass, None within one; seconds so far, resident memory of the process in MB.
    """

    stage: str
    done: int
    total: int
    kappa: float | None
    seconds: float
    unit: str = "rows"
    memory_mb: float = field(default_factory=_resident)

    @property
    def milestone(self) -> bool:
        """Whether the pass is over and weighed."""
        return self.kappa is not None

    @property
    def brief(self) -> str:
        """In a few words."""
        return f"{self.stage}, {self.done:,} of {self.total:,} {self.unit}"

    def __str__(self) -> str:
        where = f"{self.done} of {self.total} {self.unit}" if self.kappa is None else f"kappa {self.kappa:.6f}"
        return f"{self.stage}, {where}, {self.memory_mb:.0f} MB"


@dataclass(frozen=True, kw_only=True, eq=False)
class Transporting:
    """Where Kantorovich distances stand: `done` of `total` pairs, and the bounds of the pair at hand, in the unit of
    the ground distance: those of a round of its column generation, or certified when it is over (round None); columns
    of the program being solved; seconds so far; resident memory of the process in MB.
    """

    done: int
    total: int
    round: int | None
    lower: float
    upper: float
    columns: int
    seconds: float
    memory_mb: float = field(default_factory=_resident)

    @property
    def milestone(self) -> bool:
        """Whether a pair is over."""
        return self.round is None

    @property
    def brief(self) -> str:
        """In a few words."""
        return f"{self.done:,} of {self.total:,} pairs"

    def __str__(self) -> str:
        within = "" if self.round is None else f", round {self.round + 1}, {self.columns} columns"
        return f"{self.done} of {self.total}, [{self.lower:.7g}, {self.upper:.7g}]{within}, {self.memory_mb:.0f} MB"


Reported = Progress | Streaming

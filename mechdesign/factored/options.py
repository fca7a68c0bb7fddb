"""FactoredOptions: how a factored design is run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mechdesign.errors import InputError

SETTLING = 4  # last rounds, in which weights stay and only lengths move
ROUNDS = 24  # at most, a guess: where the shortest edge is below 0.15 nats weights drift with more (rounds.py)


@dataclass(frozen=True, kw_only=True)
class FactoredOptions:
    """Options of factored eikonal weights.

    Parameters
    ----------
    rounds : int
        Most rounds, above the 4 that settle the lengths.
    work : str or Path
        A folder for finished blocks and the mechanism, from which a run resumes.
    scheduler : str
        The address of a dask scheduler; by default the cores of this machine.
    bound : bool
        True to compute a lower bound; by default from 1,601 to 50,000 secrets.

    Examples
    --------
    >>> md.factored.FactoredOptions(rounds=12).rounds
    12
    """

    rounds: int = ROUNDS
    work: str | Path | None = None
    scheduler: str | None = None
    bound: bool | None = None

    def __post_init__(self) -> None:
        if self.rounds <= SETTLING:
            message = f"must be more than the {SETTLING} that settle the lengths"
            raise InputError(message, field="rounds", value=self.rounds)

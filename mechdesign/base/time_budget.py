"""TimeBudget: how long a search may take, and the one place where solvers read the clock for it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class TimeBudget:
    """A search ends at `deadline`, of time.monotonic(); its rounds end `reserve` seconds earlier, to certify."""

    deadline: float = math.inf
    reserve: float = 0.0

    @classmethod
    def of(cls, seconds: float, *, reserve: float = 0.0) -> TimeBudget:
        return cls(time.monotonic() + seconds, reserve)

    @property
    def ends(self) -> float:
        """The time of time.monotonic() at which rounds end."""
        return self.deadline - self.reserve

    def remaining(self) -> float:
        """Seconds until rounds end; negative afterwards."""
        return self.ends - time.monotonic()

    def is_spent(self) -> bool:
        return self.remaining() <= 0

    def allows(self, seconds: float) -> bool:
        return time.monotonic() + seconds <= self.ends

    def within(self, share: float) -> TimeBudget:
        return TimeBudget.of(share * self.remaining())


UNLIMITED = TimeBudget()

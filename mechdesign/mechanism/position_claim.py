"""The claim between any two positions, as the core sees it: the capability positions implements it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from mechdesign.base.arrays import Indices, IntegerMatrix, Masses, Points, Vector
from mechdesign.problem.domain import Domain
from mechdesign.problem.metric import Metric

if TYPE_CHECKING:
    import xarray as xr


@runtime_checkable
class PositionClaim(Protocol):
    """A claim between any two positions; a position draws one of the rows `around` (n, 9) its cell."""

    @property
    def around(self) -> IntegerMatrix: ...

    @property
    def corner_level(self) -> Vector: ...

    def breaches(self, mass: Masses) -> int:
        """The number of (cell, report) pairs of a table (n, m) that break the claim."""
        ...

    def differences(self, mechanism: xr.Dataset, metric: Metric, domain: Domain) -> list[str]:
        """A reason for each part that differs in a file from the one rebuilt from metric and geometry."""
        ...

    def variables(self, domain: Domain) -> dict[str, Any]:
        """The variables that a file has in addition to the table."""
        ...

    def attributes(self, metric: Metric, domain: Domain) -> dict[str, str]:
        """The attributes of a file: the rule, and the claim in one sentence."""
        ...

    def advised_cell(self, metric: Metric, price: float) -> float | None:
        """A cell at which claims between positions cost 1 % more than between centres, where they cost `price`."""
        ...

    def snap(self, domain: Domain, positions: Points) -> tuple[Indices, IntegerMatrix]:
        """The cells (b,) of positions (b, 2), and the points (b, 2) in them."""
        ...

    def draw_steps(self, points: IntegerMatrix, bits: Callable[[int], bytes]) -> Indices:
        """Places 0..8 (b,) in a row of `around` for points (b, 2)."""
        ...

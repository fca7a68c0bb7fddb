"""MapSampler: reports drawn from a compact map that was verified."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.checks import check_whole
from mechdesign.base.display import Shown
from mechdesign.base.entropy import source
from mechdesign.errors import InputError
from mechdesign.mechanism.compact.draw import Drawing
from mechdesign.mechanism.compact.map import CompactMap
from mechdesign.mechanism.positions.snapping import positions_given
from mechdesign.mechanism.rows import checked_secrets
from mechdesign.mechanism.table.dataset import COST
from mechdesign.setting.space.domain import AXES, Domain
from mechdesign.setting.space.locate import place_at
from mechdesign.solvers.kernels.progress import Reported
from mechdesign.verification.verify import certified


@dataclass(frozen=True, kw_only=True, eq=False)
class MapSampler(Shown):
    """Draws from one compact map, which is verified once, here; on_progress, called with where that stands.

    Raises: VerificationError for a map that `verify` does not certify. Cost: that of `verify`.
    """

    compact: CompactMap = field(kw_only=False)
    on_progress: Callable[[Reported], None] | None = None

    def __post_init__(self) -> None:
        certified(self.compact, on_progress=self.on_progress)

    def facts(self) -> Mapping[str, object]:
        return self.compact.facts()

    @property
    def domain(self) -> Domain:
        """The secrets, which are the reports too."""
        return self.compact.domain

    def sample(
        self, secrets: ArrayLike | None = None, size: int = 1, *, at: ArrayLike | None = None, seed: int | None = None
    ) -> xr.DataArray:
        """Reports (secret b, draw size) drawn independently for secrets (b,), or for the cells of positions `at` (b, 2)
        or (2,) in the unit of the map, each with exactly its probability (mechanism/compact/draw.py).

        Returns: report numbers with the coordinates of secrets and reports; attributes bits, claim, mechanism and cost.
            With `seed`, for simulations only, bits says so. Which places are looked at depends on the secret.
        Raises: InputError for secrets that are not there, positions outside, or a size or seed that is not whole.
        Cost: 10 to 50 ms a secret, 1 microsecond a draw.
        """
        check_whole(size, "size")
        asked, (bits, name) = self._asked(secrets, at), source(seed)
        found = [self._drawing.places(secret, size, bits) for secret in asked.tolist()]
        drawn = np.array([[self.compact.report_of(place) for place in places] for places in found], np.int64)
        coords: dict[str, object] = {"secret": asked}
        for axis, values in zip(AXES, self.domain.points.T, strict=False):
            coords[f"secret_{axis}"] = ("secret", values[asked], {"units": self.domain.unit})
            coords[f"report_{axis}"] = (("secret", "draw"), values[drawn], {"units": self.domain.unit})
        told = {"claim": self.compact.claim, "mechanism": self.compact.mechanism, "bits": name, "cost": COST}
        return xr.DataArray(drawn, dims=("secret", "draw"), coords=coords, name="report", attrs=told)

    @cached_property
    def _drawing(self) -> Drawing:
        return Drawing(compact=self.compact)

    def _asked(self, secrets: ArrayLike | None, at: ArrayLike | None) -> NDArray[np.int64]:
        if (secrets is None) == (at is None):
            raise InputError("one of the two is needed", field="at", value=at, remedy="give secrets, or positions at")
        if at is not None:
            return np.array([place_at(self.domain, each) for each in positions_given(self.domain, at).tolist()])
        assert secrets is not None
        return checked_secrets(secrets, self.compact.secrets)

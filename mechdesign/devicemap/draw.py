r"""Draw reports from a device map: the same place from the same random bytes, in every reader of the map.

**The order of places.** Seen from a secret u, the places with q(u, p) < cap are put in order of (q(u, p), p): nearer
ones first, among equally near ones the lower number first. Call them p_1, p_2, ..., p_B; p_1 = u. No edge has fewer
than 1 unit. So a search in buckets of one unit, each sorted by number, or a heap of (q, p), meets them in this order.

**The intervals.** With E, W, S of device_map.py, T the sum of W over all places, and floor = E(cap):

    a_i = (E(q(u, p_i)) - floor) W(p_i),       L = a_1 + ... + a_B,        S(u) = L + floor T

The integers 0 <= t < S(u) are dealt out in order: a_1 of them to p_1, then a_2 to p_2, ..., a_B to p_B. From L on,
floor W(p) of them go to every place p, in the order of its number. So t belongs

    to p_i where a_1 + ... + a_(i-1) <= t < a_1 + ... + a_i;
    else, where t < S(u), to the first p with W(0) + ... + W(p) > (t - L) div floor.

The steps of a draw are at `Drawing.places`; the report is the cell of the drawn place. The time of a draw depends on
the distance of the report from the secret, so a device answers at a fixed time.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Indices, Integers, Points
from mechdesign.base.records import FrozenRecord
from mechdesign.base.threads import Rng, source
from mechdesign.base.validation import check_whole
from mechdesign.devicemap.device_map import MAX_BOUND_RATIO, WEIGHTS, DeviceMap, bounds
from mechdesign.errors import InputError, VerificationError
from mechdesign.factored.integer_metric import Windows
from mechdesign.mechanism.mechanism_file import COST
from mechdesign.mechanism.rows import check_secrets
from mechdesign.problem.domain import AXES, Domain
from mechdesign.problem.locate import as_positions, place_at
from mechdesign.solvers.result import Progress
from mechdesign.verification.verify import require_certified

ROUND_BYTES = 16


@dataclass(frozen=True, kw_only=True, eq=False)
class RowOrder:
    """The order of places of a secret: places (B,) in their order, sums a_1, a_1 + a_2, ..., and S."""

    places: Integers
    sums: list[int]
    total: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawing:
    """Draws places of a map without verifying it. Memory: 22 bytes a place, and 70 an edge."""

    device_map: DeviceMap

    @cached_property
    def _room(self) -> Windows:
        return self.device_map.factors.metric.windows()

    @cached_property
    def _weights(self) -> Integers:
        return np.cumsum(WEIGHTS[self.device_map.weight.ravel()], dtype=np.int64)

    @cached_property
    def _kernel(self) -> list[int]:
        return list(self.device_map.factors.kernel.tolist())

    def row_order(self, secret: int) -> RowOrder:
        """Places in their order, with their intervals. Cost: 0.4 microseconds a place."""
        device_map = self.device_map
        window = self._room.window_of(device_map.inner[[secret]])
        unordered, distance = window.places.astype(np.int64), window.field[:, 0]
        # A window comes in another order: (distance, number) is the order that every reader shares.
        order = np.lexsort((unordered, distance))
        places = unordered[order]
        kernel, floor = self._kernel, self._kernel[device_map.cap]
        weights = WEIGHTS[device_map.weight.ravel()[places]].tolist()
        masses = ((kernel[q] - floor) * w for q, w in zip(distance[order].tolist(), weights, strict=True))
        sums = list(itertools.accumulate(masses))
        return RowOrder(places=places, sums=sums, total=sums[-1] + floor * int(self._weights[-1]))

    def places(self, secret: int, size: int, bits: Callable[[int], bytes]) -> list[int]:
        """Draw `size` places for a secret; bits(count) returns random bytes."""
        order, potential = self.row_order(secret), self.device_map.potential.ravel()
        (bound,) = bounds(self.device_map.bound, potential[self.device_map.inner[[secret]]])
        if not order.total <= bound <= MAX_BOUND_RATIO * order.total:
            message, remedy = "must be between 1 and 4 times the row sum", "use a map that `verify` certifies"
            raise VerificationError(message, field="bound", value=f"{bound / order.total:.6g}", remedy=remedy)
        # Let n be the number of binary digits of Sbar(u), an integer under 2^121.
        # 1. Take 16 random bytes, as a little-endian integer z < 2^128; t = z div 2^(128 - n).
        # 2. If t >= Sbar(u), go to 1.
        # 3. Settle places in order, until the sum of their a_i exceeds t: the last one is drawn. If no place remains,
        #    t >= L. Then, if t < S(u), the place is found in the second part. Else, if Sbar(u) > 4 S(u), nothing is
        #    drawn from this map, now or later. Else go to 1.
        # Statement. If S(u) <= Sbar(u), every place is drawn with probability E(q(u, p)) W(p) / S(u), exactly, from
        # independent uniform bytes. Proof. t is uniform on the 2^n > Sbar(u) integers below 2^n. Those below S(u)
        # pass step 2 and are dealt out: a_i + floor W(p_i) = E(q(u, p_i)) W(p_i) of them to a place of the ball, and
        # floor W(p) = E(q(u, p)) W(p) to any other, as q(u, p) = cap there. All others lead back to step 1, where new
        # bytes are independent of old ones. So one comparison with S serves for steps 2 and 3, and uses the same bytes.
        dropped = 8 * ROUND_BYTES - bound.bit_length()
        places: list[int] = []
        while len(places) < size:
            drawn = int.from_bytes(bits(ROUND_BYTES), "little") >> dropped
            if drawn < order.total:
                places.append(self._place(order, drawn))
        return places

    def _place(self, order: RowOrder, drawn: int) -> int:
        # sums[i - 1] <= t < sums[i] belongs to place i; beyond L, weights in the order of numbers decide.
        if drawn < order.sums[-1]:
            return int(order.places[bisect_right(order.sums, drawn)])
        rank = (drawn - order.sums[-1]) // self._kernel[self.device_map.cap]
        return int(np.searchsorted(self._weights, rank, side="right"))


@dataclass(frozen=True, kw_only=True, eq=False)
class MapSampler(FrozenRecord, Drawing):
    """Draws from one device map, verified once on construction.

    Parameters
    ----------
    device_map : DeviceMap
    on_progress : callable
        Called with the progress of the verification.

    Examples
    --------
    >>> import tempfile
    >>> problem = md.load_problem("philadelphia", cells=20)
    >>> factored = md.solve(md.EikonalWeights(problem), method="factored")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     device_map = md.devicemap.load_device_map(md.export(factored, folder + "/map.compact"))
    >>> md.devicemap.MapSampler(device_map).sample([0, 15], rng=1).shape
    (2, 1)
    """

    device_map: DeviceMap = field(kw_only=False)
    on_progress: Callable[[Progress], None] | None = None

    def __post_init__(self) -> None:
        require_certified(self.device_map, on_progress=self.on_progress)

    def repr_fields(self) -> Mapping[str, object]:
        return self.device_map.repr_fields()

    @property
    def domain(self) -> Domain:
        return self.device_map.domain

    @property
    def claim(self) -> str:
        return self.device_map.claim

    @property
    def cost(self) -> Fraction:
        """The cost of one report in multiples of the distance of the claim."""
        return Fraction(1)

    @property
    def positions(self) -> None:
        """None: a map has no claim between positions."""

    @property
    def report_points(self) -> Points:
        return self.domain.points

    @property
    def report_unit(self) -> str:
        return self.domain.unit

    @property
    def report_labels(self) -> None:
        """None: reports are cells."""

    @property
    def radii(self) -> None:
        """None: a map has no prior, so its reports have no accuracy."""

    def draw(self, cells: Indices, points: object = None, size: int = 1, *, rng: Rng = None) -> Integers:
        """Numbers of reports (b, size) of cells (b,); the order of places is computed once for equal cells."""
        bits, _ = source(rng)
        secrets, numbers = np.unique(cells, return_counts=True)
        members, drawn = np.argsort(cells, kind="stable"), np.empty((len(cells), size), np.int64)
        for secret, rows in zip(secrets.tolist(), np.split(members, np.cumsum(numbers)[:-1]), strict=True):
            places = self.places(secret, len(rows) * size, bits)
            drawn[rows] = self.device_map.target[np.array(places)].reshape(-1, size)
        return drawn

    def sample(
        self, secrets: ArrayLike | None = None, size: int = 1, *, at: ArrayLike | None = None, rng: Rng = None
    ) -> xr.DataArray:
        """Reports (secret b, draw size) of secrets (b,), or of positions `at`, (b, 2) or (2,), in the unit of the map.

        Drawn independently, each with exactly its probability. `rng`, a seed or a NumPy generator, is for simulations
        only; the attribute bits says so.
        """
        check_whole(size, "size")
        numbers, (bits, name) = self._secret_numbers(secrets, at), source(rng)
        places = [self.places(secret, size, bits) for secret in numbers.tolist()]
        drawn = self.device_map.target[np.array(places)]
        coords: dict[str, object] = {"secret": numbers}
        for axis, values in zip(AXES, self.domain.points.T, strict=False):
            coords[f"secret_{axis}"] = ("secret", values[numbers], {"units": self.domain.unit})
            coords[f"report_{axis}"] = (("secret", "draw"), values[drawn], {"units": self.domain.unit})
        attrs = {"claim": self.device_map.claim, "mechanism": self.device_map.source_sha256, "bits": name, "cost": COST}
        return xr.DataArray(drawn, dims=("secret", "draw"), coords=coords, name="report", attrs=attrs)

    def _secret_numbers(self, secrets: ArrayLike | None, at: ArrayLike | None) -> Integers:
        if (secrets is None) == (at is None):
            raise InputError(
                "pass either secrets or at, not both", field="at", value=at, remedy="pass secrets, or positions at"
            )
        if at is not None:
            positions = as_positions(self.domain, at).tolist()
            return np.array([place_at(self.domain, position) for position in positions])
        assert secrets is not None
        return check_secrets(secrets, self.device_map.secrets)

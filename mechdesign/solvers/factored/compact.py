r"""A factored mechanism of a grid as a compact map: lengths from a potential, levels and weights in few digits.

The levels are rounded down to whole numbers, and lower still where an edge would be longer than in the design, so that
the map's claim implies the design's: d_map <= d on every edge, hence on every path. Weights are rounded to 16 to an
octave. Then the lengths of the kernel are found anew from a potential s (mechanism/compact/formulas.py),

    x_e from s,     s <- 0.3 s + 0.7 ln S,     S from x_e, of places within 16 nats

until every edge keeps its length, x_e step + |ln S(u) - ln S(v)| <= kappa d_e with kappa close to 1; and the step is
lowered by what is left, until the exact sums certify.
Source: the fixed point is ours.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.errors import DesignError, UnsuitableError
from mechdesign.mechanism.compact.certificate import above, breaches, least_bound, loose
from mechdesign.mechanism.compact.formulas import LARGEST_LEVEL, POTENTIAL_BITS, STENCILS, WEIGHTS, advances, lengths
from mechdesign.mechanism.compact.map import CompactMap
from mechdesign.mechanism.factored.certificate import STEP_BITS, Factors
from mechdesign.mechanism.factored.row_sums import join_words, rounded_words
from mechdesign.mechanism.schema import FACTORED
from mechdesign.mechanism.stored import Stored, read
from mechdesign.setting.metric.integer_metric import LARGEST
from mechdesign.setting.space.domain import Domain
from mechdesign.solvers.factored.rounds import FARTHEST, Claim
from mechdesign.solvers.factored.sums import row_sums
from mechdesign.solvers.kernels.progress import Reported, Streaming

ROUNDS = 10  # of the fixed point, at most
GOOD = 1.001  # kappa at which it ends early
_KEPT = 0.3
_NEAREST = 16  # nats that sums of the rounds tell apart
_LEAST_FACTOR = 0.9
_UNIT_BITS = 30  # digits of the unit of levels, so that its multiples are doubles
_ONE = 1 << STEP_BITS

Tell = Callable[[str, int, int, float | None], None]


def compact_map(mechanism: xr.Dataset, *, on_progress: Callable[[Reported], None] | None = None) -> CompactMap:
    """The compact map of a factored mechanism, certified for the levels of its claim.

    Raises: UnsuitableError for a mechanism that is none of every place of a whole grid of two axes, with 8 or 16
        neighbours; DesignError where the rounded numbers keep no tenth of the claim.
    Cost: a pass over all rows at half the range for every round, and one or two over all of it.
    """
    started = time.monotonic()

    def tell(stage: str, done: int, total: int, kappa: float | None) -> None:
        if on_progress is not None:
            seconds = time.monotonic() - started
            on_progress(Streaming(stage=stage, done=done, total=total, kappa=kappa, seconds=seconds))

    stored = read(mechanism)
    first = _first(stored)
    claim = Claim.whole(first.edges)
    settled, kappa = _settled(first, claim, np.log(rounded_words(mechanism["row_sum"].values)), tell)
    return _certified(settled, claim, kappa, tell)


def _told(tell: Tell, stage: str, total: int, done: int) -> None:
    tell(stage, done, total, None)


def _settled(compact: CompactMap, claim: Claim, logarithm: NDArray[np.float64], tell: Tell) -> tuple[CompactMap, float]:
    """The map with the potential of the round of least kappa, and this kappa; logarithm (n,), ln S to start with."""
    centre = (logarithm.min() + logarithm.max()) / 2
    potential, best = logarithm - centre, (math.inf, compact.potential)
    compact, whole = replace(compact, cap=_near_cap(compact)), compact
    for number in range(ROUNDS):
        near = replace(compact, potential=_rounded(compact, potential))
        stage = f"potential, round {number + 1} of {ROUNDS}"
        found = join_words(row_sums(near.factors, told=partial(_told, tell, stage, compact.secrets)))
        floor = int(near.factors.kernel[-1]) * int(near.factors.weight.sum(dtype=np.uint64))
        above = np.array([float(s - floor) for s in found])
        kappa = _kappa(near, claim, above)
        tell(stage, compact.secrets, compact.secrets, kappa)
        best = min(best, (kappa, near.potential), key=lambda each: each[0])
        if kappa <= GOOD:
            break
        potential = _KEPT * potential + (1 - _KEPT) * (np.log(above) - centre)
    return replace(whole, potential=best[1]), best[0]


def _near_cap(compact: CompactMap) -> int:
    """A cap of `_NEAREST` nats, or of the longest edge."""
    longest = max(int(length.max(initial=0)) for _, _, length in compact.edges_along())
    return max(_NEAREST * _ONE, longest) // compact.grain


def _certified(compact: CompactMap, claim: Claim, kappa: float, tell: Tell) -> CompactMap:
    """The map with a step and a bound that its exact sums certify."""
    factor = 1 / max(1.0, kappa)
    while True:
        if factor < _LEAST_FACTOR:
            raise DesignError(
                "the rounded numbers break the claim", field="potential", value=factor, remedy="use smaller cells"
            )
        compact = replace(compact, step=int(compact.grain * factor))
        words = row_sums(compact.factors, told=partial(_told, tell, "certificate", compact.secrets))
        found, kappa = join_words(words), _kappa(compact, claim, rounded_words(words))
        tell("certificate", compact.secrets, compact.secrets, kappa)
        if breaches(compact, found) == 0:
            bounded = replace(compact, bound=least_bound(compact.potential.ravel()[compact.inner], found))
            assert above(bounded, found) == 0
            if loose(bounded, found):
                raise DesignError(
                    "the row sums do not follow the potential", field="bound", value=kappa, remedy="use smaller cells"
                )
            return bounded
        factor /= 1 + 2 * max(kappa - 1, 2.0**-20)  # twice: shorter distances raise some sums


def _kappa(compact: CompactMap, claim: Claim, row_sum: NDArray[np.float64]) -> float:
    """The largest (x step + |ln S(u) - ln S(v)|) / d over the edges of the claim."""
    factors = compact.factors
    used = factors.units_of(claim.edges).astype(float) * factors.nats_per_unit
    return float(claim.strain(used, claim.spent(row_sum)).max())


def _rounded(compact: CompactMap, potential: NDArray[np.float64]) -> NDArray[np.int16]:
    """Potentials (R, C) of secrets (n,) in nats."""
    whole = np.rint(np.ldexp(potential, POTENTIAL_BITS))
    if np.abs(whole).max() >= 1 << 15:
        raise DesignError(
            "row sums differ by more than 2 nats",
            field="potential",
            value=float(np.ptp(potential)),
            remedy="solve again",
        )
    found = np.zeros(compact.shape, np.int16)
    found[compact.inside] = whole.astype(np.int16)
    return found


def _first(stored: Stored) -> CompactMap:
    """Levels, weights and units, with no potential yet."""
    domain, factors = stored.domain, _whole_grid(stored)
    frame = _frame(stored)
    cells = domain.shape
    assert cells is not None and domain.cell is not None and domain.origin is not None
    shape = tuple(count + 2 * frame for count in cells)
    places = Domain.points_at(factors.metric.points, unit=domain.unit)
    level = stored.metric.level_at(places)
    if level is None:
        raise _unsuitable("has no privacy level", "metric", stored.metric.kind)
    nats = float(stored.metric.scale) * level.reshape(shape)
    unit, whole = _levels(nats)
    stencil = int(getattr(stored.metric, "stencil", 0))
    if stencil not in STENCILS:
        raise _unsuitable("is none of 8 or 16 neighbours", "stencil", stencil)
    advance = advances(unit, domain.cell, stencil)
    longest = max(int(length.max(initial=0)) for _, _, length in lengths(whole, advance, stencil))
    grain = -(-(int(FARTHEST) * _ONE + min(longest, int(FARTHEST) * _ONE)) // (LARGEST - 1))
    octaves = 16 * np.log2(factors.weight / factors.weight.max())
    made = CompactMap(
        cells=cells, frame=frame, cell=domain.cell, origin=domain.origin, unit=domain.unit, plane=domain.plane,
        stencil=stencil, level_unit=unit, level=whole, potential=np.zeros(shape, np.int16),
        weight=np.clip(np.rint(octaves) + len(WEIGHTS) - 1, 0, None).astype(np.uint8).reshape(shape), grain=grain,
        step=grain, cap=int(FARTHEST) * _ONE // grain, bound=(1 << 30, 0), mechanism=stored.mechanism.attrs["sha256"],
        problem=stored.mechanism.attrs["problem"], program=stored.mechanism.attrs["program"],
    )  # fmt: skip
    return _implied(made, stored)


def _levels(nats: NDArray[np.float64]) -> tuple[float, NDArray[np.uint16]]:
    """A unit and whole levels, of which no product exceeds the level (exact: 46 digits)."""
    mantissa, exponent = math.frexp(float(nats.max()) / LARGEST_LEVEL)
    unit = math.ldexp(math.ceil(math.ldexp(mantissa, _UNIT_BITS)) + 1, exponent - _UNIT_BITS)
    whole = np.floor(nats / unit)
    whole -= whole * unit > nats
    return unit, np.maximum(whole, 1).astype(np.uint16)


def _implied(compact: CompactMap, stored: Stored) -> CompactMap:
    """The map with levels lowered where an edge is longer than in the design, until none is.

    The cells of an edge's rectangle, the only ones that its length is summed from, are lowered by its share at least.
    """
    edges, design = compact.edges, stored.edges
    size = compact.secrets
    orders = [np.argsort(each.tail * size + each.head) for each in (edges, design)]
    if len(edges.tail) != len(design.tail) or any(
        not np.array_equal(getattr(edges, end)[orders[0]], getattr(design, end)[orders[1]]) for end in ("tail", "head")
    ):
        raise _unsuitable("joins other cells than neighbours of a whole grid", "metric", stored.metric.kind)
    wanted = np.empty(len(edges.tail))
    wanted[orders[0]] = design.length[orders[1]]
    longer = np.flatnonzero(edges.length > wanted)
    if len(longer) == 0:
        return compact
    share = (wanted[longer] / edges.length[longer]) * (1 - 2.0**-40)
    ends = (np.stack(np.unravel_index(end[longer], compact.cells), axis=1) for end in (edges.tail, edges.head))
    low, high = np.sort(np.stack(list(ends)), axis=0) + compact.frame
    lowered = np.ones(compact.shape)
    for i in range(3):
        for j in range(3):
            cell = np.minimum(low + np.array([i, j]), high)
            np.minimum.at(lowered, (cell[:, 0], cell[:, 1]), share)
    level = np.floor(compact.level * lowered).astype(np.uint16)
    if level.min() < 1:
        raise _unsuitable("has levels that differ by more than 16 bits", "metric", stored.metric.kind)
    return _implied(replace(compact, level=level), stored)


def _whole_grid(stored: Stored) -> Factors:
    domain = stored.domain
    if stored.mechanism.attrs["schema"] != FACTORED:
        raise _unsuitable("is no mechanism of factors over places", "schema", stored.mechanism.attrs["schema"])
    if domain.shape is None or len(domain.shape) != 2 or domain.size != math.prod(domain.shape):
        raise _unsuitable("is no whole grid of two axes", "domain", domain.kind)
    return stored.factors


def _frame(stored: Stored) -> int:
    """How many cells there are around the secrets."""
    domain, factors = stored.domain, stored.factors
    assert domain.shape is not None and domain.cell is not None
    found = np.flatnonzero(factors.metric.points[:, 0] == factors.metric.points[0, 0])
    frame = (len(found) - domain.shape[1]) // 2
    shape = tuple(count + 2 * frame for count in domain.shape)
    inner = np.zeros(shape, bool)
    if frame >= 0:
        inner[frame : frame + domain.shape[0], frame : frame + domain.shape[1]] = True
    if frame < 0 or inner.size != factors.metric.size or not np.array_equal(np.flatnonzero(inner), factors.inner):
        raise _unsuitable("is not a grid with a frame of whole cells", "inner", inner.shape)
    target = np.clip(np.arange(shape[0]) - frame, 0, domain.shape[0] - 1)[:, None] * domain.shape[1]
    target = target + np.clip(np.arange(shape[1]) - frame, 0, domain.shape[1] - 1)
    if not np.array_equal(target.ravel(), stored.mechanism["target"].values):
        raise _unsuitable("reports other cells than the nearest", "target", "")
    return frame


def _unsuitable(message: str, field: str, value: object) -> UnsuitableError:
    return UnsuitableError(
        message, field=field, value=value, remedy="make a compact map of a factored design on a grid"
    )

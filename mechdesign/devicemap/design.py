r"""Make a device map of a factored mechanism on a grid: lengths from a potential, levels and weights in few digits.

Levels are rounded down to integers, and lower still where an edge would be longer than in the design. So d_map <= d on
every edge, and the map's claim implies the design's. Weights are rounded to 16 to an octave. Lengths follow from a
potential s (devicemap/device_map.py), the fixed point (ours) of

    x_e from s,     s <- 0.3 s + 0.7 ln S,     S from x_e, of places within 16 nats                                  (1)

until every edge has x_e step + |ln S(u) - ln S(v)| <= kappa d_e with kappa close to 1; then the step is lowered by the
rest, until the exact sums certify.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.arrays import Floats
from mechdesign.devicemap.device_map import (
    LARGEST_LEVEL,
    POTENTIAL_BITS,
    STENCILS,
    WEIGHTS,
    DeviceMap,
    least_bound,
)
from mechdesign.devicemap.files import save_device_map
from mechdesign.errors import DesignError, UnsuitableError
from mechdesign.factored.certificate import STEP_BITS
from mechdesign.factored.integer_metric import LARGEST
from mechdesign.factored.rounds import ROUND_CONSTANTS, SLACK
from mechdesign.factored.row_sums import join_words, rounded_words, row_sums
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.output.export import Format
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import Edges
from mechdesign.problem.vocabulary import CELLS, words_of
from mechdesign.solvers.eikonal.row_sum_budget import find_fixed_point
from mechdesign.solvers.result import Progress, Report, counter, reporter

ROUNDS = 10  # of (1), at most, a guess
GOOD = 1.001  # kappa at which (1) ends early: the step then loses 0.1 %
_NEAREST = 16  # nats, range of (1): up to 1e-4 of a sum lies beyond
_LEAST_FACTOR = 0.9  # of the step: below, the map would lose a tenth of its accuracy, so cells are too large
_REMEDY = "make a device map of a factored design on a grid"
_UNIT_BITS = 30  # digits of the unit of levels, so that its multiples are doubles
_ONE = 1 << STEP_BITS


def make_device_map(mechanism: xr.Dataset, *, on_progress: Callable[[Progress], None] | None = None) -> DeviceMap:
    """The device map of a factored mechanism on a whole grid of two axes, certified for the levels of its claim."""
    report, first = reporter(on_progress), _initial_map(MechanismFile.read(mechanism))
    claim = first.edges
    with_potential, kappa = _find_potential(first, claim, np.log(rounded_words(mechanism["row_sum"].values)), report)
    return _certify(with_potential, claim, kappa, report)


def _find_potential(device_map: DeviceMap, claim: Edges, logarithm: Floats, report: Report) -> tuple[DeviceMap, float]:
    # The fixed point (1), from ln S of the design. Only differences of the potential matter: centred, it fits 16 bits.
    centre = (logarithm.min() + logarithm.max()) / 2
    cap = max(_NEAREST * _ONE, device_map.longest) // device_map.grain

    def measure(number: int, potential: Floats) -> tuple[Floats, float]:
        trial = replace(device_map, cap=cap, potential=_round_potential(device_map, potential))
        stage = f"potential, round {number + 1} of {ROUNDS}"
        sums = join_words(row_sums(trial.factors, on_done=counter(report, stage, device_map.secrets)))
        # Places at the smaller cap count as 0, not as E(cap): the sums of (1) leave out places beyond it.
        floor = int(trial.factors.kernel[-1]) * int(trial.factors.weight.sum(dtype=np.uint64))
        above = np.array([float(s - floor) for s in sums])
        kappa = float(trial.factors.claim_utilisation(claim, above, SLACK).max())
        report(stage, done=device_map.secrets, total=device_map.secrets, kappa=kappa)
        return np.log(above) - centre, kappa

    potential, kappa = find_fixed_point(logarithm - centre, measure, rounds=ROUNDS, good_kappa=GOOD)
    return replace(device_map, potential=_round_potential(device_map, potential)), kappa


def _certify(device_map: DeviceMap, claim: Edges, kappa: float, report: Report) -> DeviceMap:
    factor = 1 / max(1.0, kappa)
    while True:
        if factor < _LEAST_FACTOR:
            raise DesignError("rounded potentials break the claim: use smaller cells", field="potential", value=factor)
        device_map = replace(device_map, step=int(device_map.grain * factor))
        words = row_sums(device_map.factors, on_done=counter(report, "certificate", device_map.secrets))
        sums = join_words(words)
        kappa = float(device_map.factors.claim_utilisation(claim, rounded_words(words), SLACK).max())
        report("certificate", done=device_map.secrets, total=device_map.secrets, kappa=kappa)
        if device_map.factors.breaches(device_map.edges, sums) == 0:
            bounded = replace(device_map, bound=least_bound(device_map.potential.ravel()[device_map.inner], sums))
            above, loose = bounded.bound_violations(sums)
            assert above == 0
            if loose:
                message = "the row sums are too far from the potential: use smaller cells"
                raise DesignError(message, field="bound", value=kappa)
            return bounded
        # Twice the excess, since shorter distances raise some sums; at least 2^-20, so that the loop ends.
        factor /= 1 + 2 * max(kappa - 1, 2.0**-20)


def _round_potential(device_map: DeviceMap, potential: Floats) -> NDArray[np.int16]:
    whole = np.rint(np.ldexp(potential, POTENTIAL_BITS))
    if np.abs(whole).max() >= 1 << 15:
        raise DesignError(
            "row sums differ by more than 2 nats, which a device map cannot hold",
            field="potential",
            value=float(np.ptp(potential)),
        )
    return np.pad(whole.astype(np.int16).reshape(device_map.cells), device_map.margin)


def _initial_map(stored: MechanismFile) -> DeviceMap:
    margin = _margin(stored)
    domain, factors = stored.domain, stored.factors
    cells = domain.shape
    assert cells is not None and domain.cell is not None and domain.origin is not None
    shape = tuple(count + 2 * margin for count in cells)
    places = Domain.points_at(factors.metric.points, unit=domain.unit)
    level, stencil = stored.metric.level_at(places), int(getattr(stored.metric, "stencil", 0))
    if level is None or stencil not in STENCILS:
        raise _unsuitable("must be a privacy level on 8 or 16 neighbours", "metric", stored.metric.kind)
    unit, whole = _quantise_levels(float(stored.metric.scale) * level.reshape(shape))
    octaves = 16 * np.log2(factors.weight / factors.weight.max())
    stretched = DeviceMap(
        cells=cells, margin=margin, cell=domain.cell, origin=domain.origin, unit=domain.unit, plane=domain.plane,
        stencil=stencil, level_unit=unit, level=whole, potential=np.zeros(shape, np.int16),
        weight=np.clip(np.rint(octaves) + len(WEIGHTS) - 1, 0, None).astype(np.uint8).reshape(shape), grain=1, step=1,
        cap=1, bound=(1 << 30, 0), source_sha256=stored.mechanism.attrs["sha256"],
        problem=stored.mechanism.attrs["problem"], program=stored.mechanism.attrs["program"],
    )  # fmt: skip
    # The finest grain for which cap + longest edge stays below 65,535, so that 16 bits hold every distance.
    farthest = int(ROUND_CONSTANTS.widest_range) * _ONE
    grain = -(-(farthest + min(stretched.longest, farthest)) // (LARGEST - 1))
    return _lower_levels(replace(stretched, grain=grain, step=grain, cap=farthest // grain), stored)


def _quantise_levels(nats: Floats) -> tuple[float, NDArray[np.uint16]]:
    # Products of the unit and the integers must not exceed the levels.
    # The unit has 30 binary digits and a level 16: their product is exact in a double.
    mantissa, exponent = math.frexp(float(nats.max()) / LARGEST_LEVEL)
    unit = math.ldexp(math.ceil(math.ldexp(mantissa, _UNIT_BITS)) + 1, exponent - _UNIT_BITS)
    whole = np.floor(nats / unit)
    # The quotient may be rounded up to an integer: the exact product decides.
    whole -= whole * unit > nats
    return unit, np.maximum(whole, 1).astype(np.uint16)


def _lower_levels(device_map: DeviceMap, stored: MechanismFile) -> DeviceMap:
    # The length of an edge is a sum of levels in the rectangle of its ends: lowered by the ratio of lengths they make
    # it short enough. Rounding down shortens it further. Repeated until no edge is longer than in the design.
    edges, design = device_map.edges, stored.edges
    keys, design_keys = (graph.tail * device_map.secrets + graph.head for graph in (edges, design))
    order = np.argsort(design_keys)
    if not np.array_equal(np.sort(keys), design_keys[order]):
        raise _unsuitable("must join the neighbours of a full rectangle", "metric", stored.metric.kind)
    wanted = design.length[order][np.searchsorted(design_keys[order], keys)]
    longer = np.flatnonzero(edges.length > wanted)
    if len(longer) == 0:
        return device_map
    # 2^-40 less, since the quotient of doubles may be rounded up.
    shrink = (wanted[longer] / edges.length[longer]) * (1 - 2.0**-40)
    ends = (np.stack(np.unravel_index(end[longer], device_map.cells), axis=1) for end in (edges.tail, edges.head))
    low, high = np.sort(np.stack(list(ends)), axis=0) + device_map.margin
    lowered = np.ones(device_map.shape)
    for i in range(3):
        for j in range(3):
            cell = np.minimum(low + np.array([i, j]), high)
            np.minimum.at(lowered, (cell[:, 0], cell[:, 1]), shrink)
    level = np.floor(device_map.level * lowered).astype(np.uint16)
    if level.min() < 1:
        raise _unsuitable("has levels whose ratio exceeds 2^16", "metric", stored.metric.kind)
    return _lower_levels(replace(device_map, level=level), stored)


def _margin(stored: MechanismFile) -> int:
    if not stored.is_factored or "first_generator" in stored.mechanism:
        raise _unsuitable(
            "must be a factored mechanism without generator columns", "schema", stored.mechanism.attrs["schema"]
        )
    domain, factors = stored.domain, stored.factors
    if domain.shape is None or len(domain.shape) != 2:
        raise _unsuitable("must be a grid of two axes", "domain", domain.kind)
    if words_of(domain) is not CELLS:
        remedy = "export a table (.csv) or make a client"
        raise _unsuitable("must be a unit of length: a device map is of places", "unit", domain.unit, remedy)
    first_line = np.flatnonzero(factors.metric.points[:, 0] == factors.metric.points[0, 0])
    margin = (len(first_line) - domain.shape[1]) // 2
    inside = np.pad(np.ones(domain.shape, bool), max(margin, 0))
    if margin < 0 or inside.size != factors.metric.size or not np.array_equal(np.flatnonzero(inside), factors.inner):
        raise _unsuitable("must be a full rectangle with a margin of whole cells", "inner", inside.shape)
    target = np.pad(np.arange(domain.size).reshape(domain.shape), margin, mode="edge")
    if not np.array_equal(target.ravel(), stored.mechanism["target"].values):
        raise _unsuitable("must report the nearest cell", "target", "")
    return margin


def _unsuitable(message: str, field: str, value: object, remedy: str = _REMEDY) -> UnsuitableError:
    return UnsuitableError(message, field=field, value=value, remedy=remedy)


def _write_device_map(mechanism: xr.Dataset, path: Path, on_progress: Callable[[Progress], None] | None) -> None:
    save_device_map(make_device_map(mechanism, on_progress=on_progress), path, overwrite=True)


FORMAT = Format(whole=_write_device_map)

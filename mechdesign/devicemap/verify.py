"""Verify a device map: lengths, kernel and every row sum follow from its bytes alone."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np

from mechdesign.base.units import plural_unit
from mechdesign.devicemap.device_map import DeviceMap
from mechdesign.devicemap.draw import MapSampler
from mechdesign.devicemap.files import KIND, load_device_map
from mechdesign.evaluation.protection import Protection, displacements_within, factor_of, path_length_bound, subject_of
from mechdesign.factored.dataset import largest_ratio
from mechdesign.factored.row_sums import join_words, row_sums
from mechdesign.factored.verify import worst_edge
from mechdesign.mechanism.container import is_container
from mechdesign.solvers.result import Progress, counter, reporter
from mechdesign.verification.kinds import FileKind
from mechdesign.verification.verify import OF_A_MAP, Verification


def check_device_map(
    device_map: DeviceMap, *, bound: bool = True, on_progress: Callable[[Progress], None] | None = None
) -> Verification:
    """The verification of a map, which has no lower bound; on_progress counts row sums."""
    # In integers: every S(u), every edge in both directions, and S(u) <= Sbar(u) <= 4 S(u), which draws rest on.
    factors, edges = device_map.factors, device_map.edges
    words = row_sums(factors, on_done=counter(reporter(on_progress), "row sums", device_map.secrets))
    sums = join_words(words)
    bad, (over, under) = factors.breaches(edges, sums), device_map.bound_violations(sums)
    reasons = [f"potential: {bad} (edge, direction) pairs break the claim"] * bool(bad)
    reasons += [f"bound: {over} row sums exceed their bound"] * bool(over)
    slow = "row sums are below a quarter of their bound, so that draws may not end"
    reasons += [f"bound: {under} {slow}"] * bool(under)
    ratio = largest_ratio(factors, edges, words)
    return Verification(
        violations=bad,
        claim=device_map.claim,
        edge_source=OF_A_MAP,
        ratio=ratio,
        worst=worst_edge(factors, edges, words, np.arange(factors.size)),
        expected_loss=None,
        lower_bound_checked=None,
        reasons=reasons,
    )


def map_protection(device_map: DeviceMap) -> Protection:
    """The protection of the cells of a map, by the claimed distance between neighbouring cells."""
    # Two people however close may stand in cells that touch, so the distance 0 asks for the steps to neighbours.
    domain = device_map.domain
    steps, _ = displacements_within(domain, Fraction(0), Fraction(1))
    factor, subject = factor_of(path_length_bound(device_map.edges, domain, steps)), subject_of(domain)
    return Protection(
        kind="cells", subject=subject, unit=plural_unit(domain.unit), within=0.0, factor=factor, exact=False
    )


DEVICE_MAP = FileKind(
    check=check_device_map,
    protection=map_protection,
    source_type=DeviceMap,
    recognises=partial(is_container, kind=KIND),
    load=load_device_map,
    sampler=MapSampler,
)

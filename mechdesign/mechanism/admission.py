"""Admission: what is proved of a mechanism, in whole numbers, before anything is drawn from it.

A table: it satisfies its schema, it is unaltered since it was sealed (SHA-256), its entries are positive and its rows
sum to exactly 2^62, its claim is the sentence that its own metric, geometry and edges give, edges and lengths are
rebuilt from metric and geometry (a graph lists its own), and no edge is violated. This is the part of `verify` that is
about privacy; losses and bounds are not looked at. Cost: O(e m) comparisons of 2 ns, once.

Factors: unaltered, the claim as above, and the certificate of every edge from the stored row sums; each row that is
drawn from must then sum to its stored sum. `verify` adds all the row sums up again. Cost: 3 microseconds an edge.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import xarray as xr

from mechdesign.errors import VerificationError
from mechdesign.mechanism.factored.row_sums import join_words
from mechdesign.mechanism.positions.cones import breaches
from mechdesign.mechanism.positions.patches import Patches
from mechdesign.mechanism.stored import Stored, contradiction, read
from mechdesign.mechanism.table.certificate import row_sums_exact, violations
from mechdesign.mechanism.table.dataset import checksum_faults
from mechdesign.setting.metric.metric import Metric
from mechdesign.setting.metric.shortest_paths import Edges
from mechdesign.setting.space.domain import Domain


@dataclass(frozen=True, kw_only=True, eq=False)
class Admission:
    """What was proved: P(y|u) <= e^{d(u,u')} P(y|u') over `domain`, d the distance of `metric`, one report; claim says
    it in one sentence. With `positions`, the claim about positions, and `metric` is the one that it is for; rows alone
    are then never drawn from.
    """

    domain: Domain
    metric: Metric
    edges: Edges
    claim: str
    positions: Patches | None = None

    @property
    def charge(self) -> Fraction:
        """What one report costs, as an exact multiple of the metric at scale 1; where its edges are listed, and so
        multiplied already, 1.
        """
        return Fraction(1) if self.metric.listed else Fraction(self.metric.scale)

    @property
    def unit(self) -> str:
        """64 hexadecimal digits that name the metric at scale 1 and the places it is over: costs add up, and
        secrets are the same cells, where they agree.
        """
        described = self.metric.describe() | ({} if self.metric.listed else {"multiplier": 1.0})
        described |= {} if self.positions is None else {"positions": True}
        digest = hashlib.sha256(json.dumps([described, self.domain.describe()], sort_keys=True).encode())
        digest.update(np.ascontiguousarray(self.domain.points, "<f8").tobytes())
        if self.metric.listed:
            for part, dtype in ((self.edges.tail, "<i8"), (self.edges.head, "<i8"), (self.edges.length, "<f8")):
                digest.update(np.ascontiguousarray(part, dtype).tobytes())
        return digest.hexdigest()


def prove(mechanism: xr.Dataset) -> Admission:
    """Prove the claim of a mechanism, a table or a factored one.

    Raises: VerificationError where it is altered, incomplete or not private as claimed.
    """
    try:
        with np.errstate(all="ignore"):
            stored = read(mechanism)
            faults = checksum_faults(mechanism) or (stored.differences() + integer_faults(stored))
            proved = Admission(domain=stored.domain, metric=stored.metric, edges=stored.edges, claim=stored.claim)
            if stored.positions is not None and stored.asked is not None:
                claim = mechanism.attrs["position_claim"]
                proved = replace(proved, metric=stored.asked, claim=claim, positions=stored.positions)
    except Exception as error:
        raise contradiction(error) from error
    if faults:
        name, _, said = faults[0].partition(": ")
        remedy = "draw only from an unaltered mechanism that `verify` certifies"
        raise VerificationError(said, field=name, remedy=remedy)
    return proved


def integer_faults(stored: Stored) -> list[str]:
    """Why the stored whole numbers do not prove the claim; empty where they do."""
    if stored.factored:
        bad = stored.factors.breaches(stored.edges, join_words(stored.mechanism["row_sum"].values))
        return [f"row_sum: {bad} (edge, direction) pairs break the claim"] * bool(bad)
    mass = np.ascontiguousarray(stored.mechanism["mass"].values)
    if not row_sums_exact(mass):
        return ["mass: an entry is 0, or a row does not sum to exactly 2^62"]
    bad = violations(mass, stored.edges)
    broken = 0 if stored.positions is None else breaches(mass, stored.positions)
    said = [f"mass: {bad} (edge, direction, report) triples break the claim"] * bool(bad)
    return said + [f"mass: {broken} (cell, report) pairs break the claim about positions"] * bool(broken)

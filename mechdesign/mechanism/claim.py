"""The claim of a mechanism file, proved in integers: `certify` returns a `Certificate` before anything is drawn."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from mechdesign.errors import VerificationError
from mechdesign.mechanism.certificate import row_sums_exact, violations
from mechdesign.mechanism.hashing import edge_bytes
from mechdesign.mechanism.mechanism_file import FACTOR_FILES, ClaimCheck, MechanismFile, verification_errors
from mechdesign.mechanism.position_claim import PositionClaim
from mechdesign.problem.domain import Domain
from mechdesign.problem.lattice import Edges
from mechdesign.problem.metric import Metric

if TYPE_CHECKING:
    import xarray as xr


# A table is certified if it satisfies its schema, its entries are positive, its rows sum to exactly 2^62, and no edge
# is violated. Its claim must be the sentence that its own metric, geometry and edges give. Cost: O(e m). For factors
# every edge is checked by the stored row sums; each row that is drawn from must then have its stored sum.
@dataclass(frozen=True, kw_only=True, eq=False)
class Certificate:
    """The proved claim: P(y|u) <= e^{d(u,u')} P(y|u') over `domain`, d the distance of `metric`, for one report."""

    # With `positions` the claim is between any two positions, and `metric` is theirs; rows alone are never drawn from.

    domain: Domain
    metric: Metric
    edges: Edges
    claim: str
    positions: PositionClaim | None = None

    @property
    def cost(self) -> Fraction:
        """The cost of one report, an exact multiple of the metric at scale 1; 1 for a graph with its scaled lengths."""
        return Fraction(1) if self.metric.uses_stored_edges else Fraction(self.metric.scale)

    @property
    def unit_id(self) -> str:
        """64 hexadecimal digits of the metric at scale 1 and its places: costs of equal `unit_id` add up."""
        description = self.metric.describe()
        if not self.metric.uses_stored_edges:
            description |= {"multiplier": 1.0}
        if self.positions is not None:
            description |= {"positions": True}
        # Budgets add up costs of one metric on the same places, so both are hashed, without the scale.
        digest = hashlib.sha256(json.dumps([description, self.domain.describe()], sort_keys=True).encode())
        digest.update(np.ascontiguousarray(self.domain.points, "<f8").tobytes())
        if self.metric.uses_stored_edges:
            digest.update(edge_bytes(self.edges))
        return digest.hexdigest()


def check_claim(file: MechanismFile) -> ClaimCheck:
    """Compare the claim with metric and geometry, and check every edge of it in integers."""
    if file.is_factored:
        return FACTOR_FILES.get().check_factors(file)
    mass = np.ascontiguousarray(file.mechanism["mass"].values)
    reasons = file.differences()
    # The kernel needs masses of 1 to 2^62: a failed sum is reported, and triples are counted if no mass is 0.
    exact, triples, pairs = row_sums_exact(mass), None, None
    if not exact:
        reasons.append("mass: an entry is 0, or a row does not sum to exactly 2^62")
    if mass.min() >= 1:
        triples = violations(mass, file.edges)
    if triples:
        reasons.append(f"mass: {triples} (edge, direction, report) triples break the claim")
    if exact and file.positions is not None:
        pairs = file.positions.breaches(mass)
    if pairs:
        reasons.append(f"mass: {pairs} (cell, report) pairs break the claim about positions")
    return ClaimCheck(violations=triples, position_breaches=pairs, reasons=reasons)


def certify(mechanism: xr.Dataset) -> Certificate:
    """Prove the claim of a mechanism, or raise a VerificationError if it is altered, incomplete or not private."""
    with verification_errors():
        file = MechanismFile.read(mechanism)
        reasons = check_claim(file).reasons
        certificate = Certificate(domain=file.domain, metric=file.metric, edges=file.edges, claim=file.claim)
        if file.positions is not None:
            claim = mechanism.attrs["position_claim"]
            certificate = replace(certificate, metric=file.problem_metric, claim=claim, positions=file.positions)
    if reasons:
        raise proof_error(reasons)
    return certificate


def proof_error(reasons: list[str]) -> VerificationError:
    """The error for a claim that is not proved; it states the first reason."""
    name, _, message = reasons[0].partition(": ")
    return VerificationError(message, field=name, remedy="use an unaltered mechanism that `verify` certifies")

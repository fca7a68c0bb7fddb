"""Claims about positions, as the core reads and describes them."""

from __future__ import annotations

from mechdesign.evaluation.protection import PositionProtection, Protection
from mechdesign.mechanism.mechanism_file import MechanismFile, PositionClaims
from mechdesign.mechanism.position_claim import PositionClaim
from mechdesign.positions.patches import Patches, stored_claim
from mechdesign.positions.protection import protection


class SplineClaims(PositionClaims, PositionProtection):
    """Claims about positions that draw rows by quadratic splines."""

    def stored_claim(self, stored: MechanismFile) -> Patches:
        return stored_claim(stored)

    def protection(self, stored: MechanismFile, claim: PositionClaim, within: float | None) -> Protection:
        assert isinstance(claim, Patches)
        return protection(stored, claim, within)


SPLINE_CLAIMS = SplineClaims()

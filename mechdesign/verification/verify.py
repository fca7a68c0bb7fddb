"""verify: prove or refuse the claim of a stored mechanism, trusting nothing but its integers.

The edges and lengths are rebuilt from the metric and the geometry, not taken from the file; the claim, the loss, the
effective epsilon and the lower bound are recomputed and compared with what the file says. Only where a file carries
given edges (a graph) is its own list the claim, and then the answer says "edge list only"; lengths in nats along given
streets are rebuilt from their lengths, and then it says "streets".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.arguments import asked
from mechdesign.base.display import Shown
from mechdesign.errors import InputError, VerificationError
from mechdesign.mechanism.compact.file import is_compact, load_compact
from mechdesign.mechanism.compact.map import CompactMap
from mechdesign.mechanism.positions.cones import breaches
from mechdesign.mechanism.protection import Protection, protection, protection_of_map
from mechdesign.mechanism.session.design import SessionDesign
from mechdesign.mechanism.session.design_files import is_design
from mechdesign.mechanism.storage.files import known_checksum, load, path_checksum
from mechdesign.mechanism.stored import Stored, contradiction, read
from mechdesign.mechanism.table.certificate import max_log_ratio, row_sums_exact, violations
from mechdesign.mechanism.table.dataset import checksum_faults
from mechdesign.programs.optimal.near_pairs import near_edges
from mechdesign.setting.metric.shortest_paths import check_connected
from mechdesign.setting.objective.losses import check_loss
from mechdesign.setting.objective.priors import check_prior
from mechdesign.solvers.kernels.pricing import ConePricer, lower_bound
from mechdesign.solvers.kernels.progress import Reported
from mechdesign.utility.loss.loss import loss_matrix, mechanism_loss
from mechdesign.verification.compact import check_compact
from mechdesign.verification.factored import check_factored
from mechdesign.verification.rebuild import AGREE, bound_reasons, check_objective, figure_differences, unchecked_bound
from mechdesign.verification.session import check_design

EXPORTED = (".csv", ".json", ".parquet")  # suffixes of tables that say too little


@dataclass(frozen=True, kw_only=True)
class Verification(Shown):
    """What was proved.

    certified: rows sum to exactly 2^62, no edge is violated and everything the file says was found again; violations:
    (edge, direction, report) triples that break the claim; claim: the claim as rebuilt; rebuilt: "geometry", "streets",
    "edge list only" or "levels of the map"; ratio: what the mechanism truly has over what it claims, largest log-ratio
    over length, and 1 where the claim about positions is certified; row_ratio: there, that of the rows of the table,
    which may exceed 1, since only means of them are drawn (mechanism/positions/claim.py); effective_epsilon: `ratio`
    under the name of the file, relative to the metric of the problem; worst: the secret, other and report that attain
    it, of rows; protection: what is protected, None where it is not certified, and of a session design; expected_loss,
    recomputed, None where the file has no prior; lower_bound_checked: True if the stored bound follows from the stored
    multipliers, None if there is none, or if it rests on constraints that a file cannot hold, or if that was not asked;
    lower_bound_reason: why a bound that the file names is not proved, and shown nowhere; sha256: of every byte of the
    file, as `sha256sum` prints it, None for what is no file; reasons: why it is not certified;
    windows, of a session design alone: for a calendar day and any 24 hours the most that they cost on any transcript,
    an exact multiple of the metric, and how many transcripts were walked through one by one, None where they are too
    many.
    """

    certified: bool
    violations: int | None
    claim: str | None
    rebuilt: str | None
    effective_epsilon: float | None
    worst: dict[str, int] | None
    expected_loss: float | None
    lower_bound_checked: bool | None
    lower_bound_reason: str | None = None
    reasons: list[str] = field(default_factory=list)
    position_claim: str | None = None
    position_breaches: int | None = None
    windows: dict[str, dict[str, Any]] | None = None
    sha256: str | None = None
    ratio: float | None = None
    row_ratio: float | None = None
    protection: Protection | None = None

    def facts(self) -> Mapping[str, object]:
        return {
            "certified": self.certified,
            **({} if self.protection is None else {"protects": self.protection.subject}),
            "ratio": self.ratio,
            "claim": self.claim,
            **({} if self.windows is None else {"windows": self.windows}),
            **({"reasons": "; ".join(self.reasons)} if self.reasons else {"expected_loss": self.expected_loss}),
        }

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: protects, within and factor_within in place of `protection`, a factor without bound None."""
        told = asdict(replace(self, protection=None)) | protected(self.protection)
        del told["protection"]
        return told if self.windows is not None else {n: value for n, value in told.items() if n != "windows"}


def protected(p: Protection | None) -> dict[str, Any]:
    """What is protected as JSON has it: the subject, the radius and the factor within it; None where there is none."""
    if p is None:
        return dict.fromkeys(("protects", "within", "factor_within"))
    factor = None if p.factor is None or math.isinf(p.factor) else p.factor
    return {"protects": p.subject, "within": p.within, "factor_within": factor}


@asked
def verify(
    source: str | Path | xr.Dataset | SessionDesign | CompactMap,
    *,
    bound: bool = True,
    on_progress: Callable[[Reported], None] | None = None,
) -> Verification:
    """Verify a file, or a mechanism in memory; or a session design or a compact map, or the file of one.

    bound: whether the lower bound of a factored mechanism is priced again, which may take longer than all else;
    on_progress, called with where that stands.
    Raises: InputError if there is no such file, or it is an export; VerificationError if it is damaged (cut short,
    altered, not a mechanism, not what its schema says). Everything else that is wrong is returned: certified False,
    with reasons.
    Cost: O(e m) integer comparisons, plus the pricing of every report where there is a lower bound.
    """
    if isinstance(source, CompactMap):
        return _of_map(source, on_progress)
    if isinstance(source, (str, Path)) and is_compact(source):
        return replace(_of_map(load_compact(source), on_progress), sha256=path_checksum(source))
    if isinstance(source, SessionDesign) or (not isinstance(source, xr.Dataset) and is_design(source)):
        held = check_design(source, verify)
        checksum = None if isinstance(source, SessionDesign) else path_checksum(source)
        return Verification(**{**held, "certified": not held["reasons"], "sha256": checksum})
    if not isinstance(source, xr.Dataset) and Path(source).suffix.lower() in EXPORTED:
        raise InputError(
            "an exported table does not say enough to rebuild its claim",
            field="file",
            value=source,
            remedy="give the NetCDF file, or run python -m mechdesign.handover.verify_table on CSV or JSON",
        )
    given = isinstance(source, xr.Dataset)
    mechanism = source if isinstance(source, xr.Dataset) else load(source)
    try:
        with np.errstate(all="ignore"):
            stored = read(mechanism)
            reasons = checksum_faults(mechanism) if given else []
            if stored.factored:
                found = check_factored(stored, bound=bound, on_progress=on_progress)
            else:
                found = _check_table(stored)
            reasons += found["reasons"]
            found |= _ratios(found, stored.positions is not None, not reasons)
            found["protection"] = None if reasons else protection(stored)
            found["sha256"] = None if given and reasons else known_checksum(mechanism)
    except Exception as error:
        raise contradiction(error) from error
    return Verification(**{**found, "certified": not reasons, "reasons": reasons})


def _ratios(found: dict[str, Any], positions: bool, certified: bool) -> dict[str, float | None]:
    """ratio, row_ratio and effective_epsilon, of what was found of the rows."""
    rows = found["effective_epsilon"]
    if not positions:
        return {"ratio": rows}
    ratio = 1.0 if certified else None
    return {"ratio": ratio, "row_ratio": rows, "effective_epsilon": ratio}


def _of_map(compact: CompactMap, on_progress: Callable[[Reported], None] | None) -> Verification:
    try:
        with np.errstate(all="ignore"):
            found = check_compact(compact, on_progress=on_progress)
            found |= _ratios(found, False, True)
            found["protection"] = None if found["reasons"] else protection_of_map(compact)
    except Exception as error:
        raise contradiction(error) from error
    return Verification(**{**found, "certified": not found["reasons"]})


def certified(
    mechanism: xr.Dataset | CompactMap, *, on_progress: Callable[[Reported], None] | None = None
) -> Verification:
    """What `verify` proved of a mechanism. Raises: VerificationError where it does not certify it."""
    checked = verify(mechanism, on_progress=on_progress)
    if not checked.certified:
        name, _, said = checked.reasons[0].partition(": ")
        raise VerificationError(said, field=name, remedy="use a mechanism that `verify` certifies")
    return checked


def _check_table(stored: Stored) -> dict[str, Any]:
    mechanism, edges = stored.mechanism, stored.edges
    mass = np.ascontiguousarray(mechanism["mass"].values)
    whole = row_sums_exact(mass)
    reasons = [] if whole else ["mass: an entry is 0, or a row does not sum to exactly 2^62"]
    reasons += stored.differences()
    positions = stored.positions
    broken = breaches(mass, positions) if whole and positions is not None else None
    if broken:
        reasons.append(f"mass: {broken} (cell, report) pairs break the claim about positions")
    bad = violations(mass, edges) if mass.min() >= 1 else None
    if bad:
        reasons.append(f"mass: {bad} (edge, direction, report) triples break the claim")
    at = max_log_ratio(np.maximum(mass, np.uint64(1)), edges)
    effective = None
    if stored.asked is not None:
        effective = float(mechanism.attrs["multiple"]) * (min(at.value, 1.0) if bad == 0 else at.value)
    check_prior(mechanism["prior"].values, stored.domain.size)
    check_loss(loss_matrix(mechanism))
    loss = mechanism_loss(mechanism)
    reasons += figure_differences(mechanism, {"expected_loss": loss, "effective_epsilon": effective})
    if "objective" in mechanism.attrs:
        found, bound = check_objective(stored)
        reasons += found
    else:
        bound = _check_bound(stored)
    return {
        "violations": bad,
        "claim": stored.claim,
        "rebuilt": stored.rebuilt,
        "effective_epsilon": effective,
        "worst": {"secret": at.secret, "other": at.other, "report": at.report},
        "expected_loss": loss,
        "lower_bound_checked": bound,
        "lower_bound_reason": unchecked_bound(mechanism, bound),
        "reasons": reasons + bound_reasons(mechanism, bound, loss),
        "position_claim": mechanism.attrs["position_claim"] if positions is not None else None,
        "position_breaches": broken,
    }


def _check_bound(stored: Stored) -> bool | None:
    mechanism, domain, edges = stored.mechanism, stored.domain, stored.edges
    if "lower_bound" not in mechanism.attrs or "dual" not in mechanism:
        return None if "lower_bound" not in mechanism.attrs else False
    loss = loss_matrix(mechanism)
    if not np.isfinite(mechanism["dual"].values).all():
        return False
    if "bound_stencil" in mechanism.attrs:  # near pairs of the claim suffice: with the others the bound only rises
        edges = near_edges(edges, domain, int(mechanism.attrs["bound_stencil"]))
        check_connected(edges, domain.size)
    # Any anchors give a bound; which ones the design took cannot be told where the reports lie on the secrets.
    choices = [np.arange(domain.size)] * stored.same_places + [np.argmin(loss, axis=0)]
    return any(_bound_follows(mechanism, ConePricer(edges, domain.size, anchors), loss) for anchors in choices)


def _bound_follows(mechanism: xr.Dataset, pricer: ConePricer, loss: NDArray[np.float64]) -> bool:
    dual = mechanism["dual"].values
    price = pricer.price(mechanism["prior"].values[:, None] * loss, dual)
    found = lower_bound(dual, price.value)
    return bool(mechanism.attrs["lower_bound"] <= found + AGREE * max(abs(found), 1e-300))

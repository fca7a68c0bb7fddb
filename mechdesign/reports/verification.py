"""verify: prove or refuse the claim of a stored mechanism, trusting nothing but its integers.

The edges and lengths are rebuilt from the metric and the geometry, not taken from the file; the claim, the loss, the
effective epsilon and the lower bound are recomputed and compared with what the file says. Only where a file carries
given edges (a graph) is its own list the claim, and then the answer says "edge list only"; lengths in nats along given
streets are rebuilt from their lengths, and then it says "streets".
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.errors import InputError, MechdesignError, VerificationError
from mechdesign.mechanism.certificate import row_sums_exact, steepest, violations
from mechdesign.mechanism.factored import SCHEMA as FACTORED
from mechdesign.mechanism.storage import load
from mechdesign.mechanism.table import stored_domain, stored_edges, stored_points
from mechdesign.programs.near_pairs import near_edges
from mechdesign.reports.export import WRITERS
from mechdesign.reports.factored_verification import check_factored
from mechdesign.reports.rebuilding import AGREE, check_objective, claim_differences, figure_differences
from mechdesign.setting.domain import AXES, Domain
from mechdesign.setting.geodesic import Edges, check_connected
from mechdesign.setting.losses import check_loss
from mechdesign.setting.metrics import Graph, Metric, metric_from_description
from mechdesign.setting.priors import check_prior
from mechdesign.solvers.pricing import ConePricer, lower_bound
from mechdesign.utility.loss import loss_matrix, mechanism_loss

_REQUIRED = {
    "mass": (np.dtype(np.uint64), ("secret", "report")),
    "edge_tail": (np.dtype(np.int64), ("edge",)),
    "edge_head": (np.dtype(np.int64), ("edge",)),
    "edge_length": (np.dtype(np.float64), ("edge",)),
    "prior": (np.dtype(np.float64), ("secret",)),
}
_OPTIONAL = {
    "level": (np.dtype(np.float64), ("secret",)),
    "dual": (np.dtype(np.float64), ("secret",)),
    "multiplier": (np.dtype(np.float64), ("side_row",)),
    "loss_table": (np.dtype(np.float64), ("secret", "report")),
}
_LISTED = "edge list only"


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What was proved.

    certified: rows sum to exactly 2^62, no edge is violated and everything the file says was found again; violations:
    (edge, direction, report) triples that break the claim; claim: the claim as rebuilt; rebuilt: "geometry",
    "streets" or "edge list only"; effective_epsilon: largest log-ratio over length, relative to the metric of the
    problem; worst: the secret, other and report that attain it; expected_loss, recomputed; lower_bound_checked: True if
    the stored bound follows from the stored multipliers, None if there is none, or if it rests on constraints that a
    file cannot hold; reasons: why it is not certified.
    """

    certified: bool
    violations: int | None
    claim: str | None
    rebuilt: str | None
    effective_epsilon: float | None
    worst: dict[str, int] | None
    expected_loss: float | None
    lower_bound_checked: bool | None
    reasons: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return asdict(self)


def verify(source: str | Path | xr.Dataset) -> Verification:
    """Verify a file, or a mechanism in memory.

    Raises: InputError if there is no such file, or it is an export; VerificationError if it is damaged (cut short,
    altered, not a mechanism). Everything else that is wrong is returned: certified False, with reasons.
    Cost: O(e m) integer comparisons, plus the pricing of every report where there is a lower bound.
    """
    if not isinstance(source, xr.Dataset) and Path(source).suffix.lower() in WRITERS:
        raise InputError(
            "an exported table does not say enough to rebuild its claim",
            field="file",
            value=source,
            remedy="give the NetCDF file, or run python -m mechdesign.handover.verify_table on CSV or JSON",
        )
    mechanism = source if isinstance(source, xr.Dataset) else load(source)
    try:
        return _verify(mechanism)
    except VerificationError:
        raise
    except MechdesignError as error:
        raise VerificationError(
            f"the file contradicts itself: {error.message}",
            field=error.field,
            value=error.value,
            remedy="use an unaltered file",
        ) from error
    except Exception as error:
        raise VerificationError(
            f"not a complete mechanism ({type(error).__name__}: {error})",
            field="file",
            value="",
            remedy="use an unaltered file",
        ) from error


def _verify(mechanism: xr.Dataset) -> Verification:
    if mechanism.attrs.get("schema") == FACTORED:
        return Verification(**check_factored(mechanism))
    _check_types(mechanism)
    mass = np.ascontiguousarray(mechanism["mass"].values)
    reasons = []
    if not row_sums_exact(mass):
        reasons.append("mass: an entry is 0, or a row does not sum to exactly 2^62")
    domain = stored_domain(mechanism)
    stored = stored_edges(mechanism)
    metric, edges, rebuilt = _rebuild(mechanism, domain, stored)
    if rebuilt != _LISTED:
        reasons += _edge_differences(stored, edges)
    claim, differences = claim_differences(mechanism, domain, metric, edges)
    reasons += differences
    bad = violations(mass, edges) if not reasons or mass.min() >= 1 else None
    if bad:
        reasons.append(f"mass: {bad} (edge, direction, report) triples break the claim")
    at = steepest(np.maximum(mass, np.uint64(1)), edges)
    multiple = float(mechanism.attrs["multiple"])
    effective = at.value * multiple
    effective = min(effective, multiple) if bad == 0 else effective
    check_prior(mechanism["prior"].values, domain.size)
    check_loss(loss_matrix(mechanism))
    reasons += figure_differences(
        mechanism, {"expected_loss": mechanism_loss(mechanism), "effective_epsilon": effective}
    )
    if "objective" in mechanism.attrs:
        found, bound = check_objective(mechanism, domain, metric)
        reasons += found
    else:
        bound = _check_bound(mechanism, edges, domain)
    if bound is False:
        reasons.append("lower_bound: does not follow from the stored multipliers")
    return Verification(
        certified=not reasons,
        violations=bad,
        claim=claim,
        rebuilt=rebuilt,
        effective_epsilon=effective,
        worst={"secret": at.secret, "other": at.other, "report": at.report},
        expected_loss=mechanism_loss(mechanism),
        lower_bound_checked=bound,
        reasons=reasons,
    )


def _check_types(mechanism: xr.Dataset) -> None:
    for name, (dtype, dims) in (_REQUIRED | _OPTIONAL).items():
        found = None if name not in mechanism else (mechanism[name].dtype, mechanism[name].dims)
        if found != (dtype, dims) and (found is not None or name in _REQUIRED):
            raise VerificationError(
                f"must be there as {dtype} over {dims}",
                field=name,
                value=found,
                remedy="use an unaltered file",
            )
    n, edges = mechanism.sizes["secret"], stored_edges(mechanism)
    if (
        len(edges.tail) == 0
        or min(edges.tail.min(), edges.head.min()) < 0
        or max(edges.tail.max(), edges.head.max()) >= n
    ):
        raise VerificationError(
            "an edge ends outside the secrets", field="edge_tail", value="", remedy="use an unaltered file"
        )
    if not (np.isfinite(edges.length) & (edges.length >= 0)).all():
        raise VerificationError(
            "must be finite and not negative", field="edge_length", value="", remedy="use an unaltered file"
        )
    for dim in ("secret", "report"):
        if any(mechanism[f"{dim}_{a}"].dtype != np.float64 for a in AXES if f"{dim}_{a}" in mechanism):
            raise VerificationError("coordinates must be float64", field=dim, value="", remedy="use an unaltered file")


def _rebuild(mechanism: xr.Dataset, domain: Domain, stored: Edges) -> tuple[Metric, Edges, str]:
    description = json.loads(mechanism.attrs["metric"])
    metric = metric_from_description(description)
    if metric is not None:
        return metric, metric.edges(domain), "streets" if metric.kind == "streets" else "geometry"
    check_connected(stored, domain.size)
    given = Graph(tail=stored.tail, head=stored.head, length=stored.length, multiplier=float(description["multiplier"]))
    return given, stored, _LISTED


def _edge_differences(stored: Edges, edges: Edges) -> list[str]:
    if len(stored.tail) != len(edges.tail):
        return [f"edge_tail: the file lists {len(stored.tail)} edges, the metric has {len(edges.tail)}"]
    if not (np.array_equal(stored.tail, edges.tail) and np.array_equal(stored.head, edges.head)):
        return ["edge_tail: the file lists other edges than the metric has"]
    different = np.flatnonzero(stored.length != edges.length)
    if len(different):
        e = int(different[0])
        return [
            f"edge_length: {len(different)} differ from the metric, first edge {e}: {stored.length[e]!r} "
            f"instead of {edges.length[e]!r}"
        ]
    return []


def _check_bound(mechanism: xr.Dataset, edges: Edges, domain: Domain) -> bool | None:
    if "lower_bound" not in mechanism.attrs or "dual" not in mechanism:
        return None if "lower_bound" not in mechanism.attrs else False
    loss = loss_matrix(mechanism)
    if not np.isfinite(mechanism["dual"].values).all():
        return False
    if "bound_stencil" in mechanism.attrs:  # near pairs of the claim suffice: with the others the bound only rises
        edges = near_edges(edges, domain, int(mechanism.attrs["bound_stencil"]))
        check_connected(edges, domain.size)
    same = np.array_equal(stored_points(mechanism, "secret"), stored_points(mechanism, "report"))
    # Any anchors give a bound; which ones the design took cannot be told where the reports lie on the secrets.
    choices = [np.arange(domain.size)] * same + [np.argmin(loss, axis=0)]
    return any(_bound_follows(mechanism, ConePricer(edges, domain.size, anchors), loss) for anchors in choices)


def _bound_follows(mechanism: xr.Dataset, pricer: ConePricer, loss: NDArray[np.float64]) -> bool:
    dual = mechanism["dual"].values
    price = pricer.price(mechanism["prior"].values[:, None] * loss, dual)
    found = lower_bound(dual, price.value)
    return bool(mechanism.attrs["lower_bound"] <= found + AGREE * max(abs(found), 1e-300))

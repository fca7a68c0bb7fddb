"""Verify a factored mechanism: the certificate is derived again from its integers, row sums included.

Edges and lengths of the claim are rebuilt from the metric and the geometry. The distances of every secret are relaxed
again in whole numbers, the row sums added again exactly, and compared with the stored ones; then every edge is checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.errors import VerificationError
from mechdesign.mechanism.factored import (
    ROWS,
    block_digests,
    effective_epsilon,
    judge,
    judgement,
    stored_factors,
    stored_problem,
)
from mechdesign.mechanism.factored_sums import RowBlock, join_words, rounded_words
from mechdesign.mechanism.factors import Factors
from mechdesign.reports.rebuilding import AGREE, claim_differences, figure_differences
from mechdesign.setting.geodesic import Edges
from mechdesign.solvers.factored import all_rows

_REQUIRED = {
    "weight": (np.uint32, ("place",)),
    "target": (np.int64, ("place",)),
    "inner": (np.int64, ("secret",)),
    "edge_tail": (np.int64, ("edge",)),
    "edge_head": (np.int64, ("edge",)),
    "edge_units": (np.uint16, ("edge",)),
    "row_sum": (np.uint64, ("secret", "word")),
    "row_loss": (np.float64, ("secret",)),
    "prior": (np.float64, ("secret",)),
    "block_sha256": (np.uint8, ("block", "byte")),
}


def check_factored(mechanism: xr.Dataset) -> dict[str, Any]:
    """The fields of a `Verification` for a factored mechanism.

    Raises: VerificationError, KeyError or MechdesignError where the Dataset is no complete factored mechanism.
    """
    _check_types(mechanism)
    problem, factors = stored_problem(mechanism), stored_factors(mechanism)
    domain, metric, edges = problem.domain, problem.metric, problem.edges
    claim, reasons = claim_differences(mechanism, domain, metric, edges)
    judged = judge(problem, factors, mechanism["target"].values)
    rows = all_rows(judged)
    reasons += _row_differences(mechanism, rows)
    bad = factors.breaches(edges, join_words(rows.row_sum))
    if bad:
        reasons.append(f"row_sum: {bad} (edge, direction) pairs break the claim")
    value = effective_epsilon(factors, edges, rows.row_sum)
    figures = judgement(judged, rows, domain)
    found = {"expected_loss": figures.loss, "effective_epsilon": value, "remapped_loss": figures.remapped_loss}
    reasons += figure_differences(mechanism, found)
    return {
        "certified": not reasons,
        "violations": bad,
        "claim": claim,
        "rebuilt": "edge list only" if metric.kind == "graph" else "geometry",
        "effective_epsilon": value,
        "worst": _worst(factors, edges, rows.row_sum),
        "expected_loss": figures.loss,
        "lower_bound_checked": None,
        "reasons": reasons,
    }


def _check_types(mechanism: xr.Dataset) -> None:
    for name, (dtype, dims) in _REQUIRED.items():
        found = None if name not in mechanism else (mechanism[name].dtype, mechanism[name].dims)
        if found != (np.dtype(dtype), dims):
            raise VerificationError(
                f"must be there as {np.dtype(dtype)} over {dims}",
                field=name,
                value=found,
                remedy="use an unaltered file",
            )
    places, secrets = mechanism.sizes["place"], mechanism.sizes["secret"]
    for name, most in (("target", secrets), ("inner", places), ("edge_tail", places), ("edge_head", places)):
        values = mechanism[name].values
        if len(values) == 0 or values.min() < 0 or values.max() >= most:
            raise VerificationError(
                f"must name places 0..{most - 1}", field=name, value="", remedy="use an unaltered file"
            )
    if len(np.unique(mechanism["inner"].values)) < secrets:
        raise VerificationError("two secrets share a place", field="inner", value="", remedy="use an unaltered file")


def _row_differences(mechanism: xr.Dataset, rows: RowBlock) -> list[str]:
    reasons = []
    different = np.flatnonzero((mechanism["row_sum"].values != rows.row_sum).any(axis=1))
    if len(different):
        reasons.append(f"row_sum: {len(different)} rows sum to something else, first secret {int(different[0])}")
    stored = mechanism["block_sha256"].values
    again = block_digests(mechanism["row_sum"].values, mechanism["row_loss"].values)
    if stored.shape != again.shape:
        reasons.append(f"block_sha256: {len(stored)} blocks, there should be {len(again)}")
    else:
        for block in np.flatnonzero((stored != again).any(axis=1)):
            reasons.append(f"block_sha256: rows {block * ROWS} to {(block + 1) * ROWS - 1} were altered")
    if not np.allclose(mechanism["row_loss"].values, rows.loss, rtol=AGREE, atol=0.0):
        reasons.append("row_loss: differs from the losses recomputed")
    return reasons


def _worst(factors: Factors, edges: Edges, row_sum: NDArray[np.uint64]) -> dict[str, int]:
    """The edge and report with the largest log-ratio over length; the report is the end of the edge."""
    logarithm = np.log(rounded_words(row_sum))
    rise = logarithm[edges.tail] - logarithm[edges.head]
    ratio = (factors.nats_per_unit * factors.units_of(edges) + np.abs(rise)) / edges.length
    e = int(np.argmax(ratio))
    tail, head = int(edges.tail[e]), int(edges.head[e])
    secret, other = (head, tail) if rise[e] > 0 else (tail, head)
    return {"secret": secret, "other": other, "report": secret}

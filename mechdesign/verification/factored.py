"""Verify a factored mechanism: the certificate is derived again from its integers, row sums included.

Edges and lengths of the claim are rebuilt from the metric and the geometry. The distances of every secret are relaxed
again in whole numbers, the row sums added again exactly, and compared with the stored ones; then every edge is checked.
A lower bound is priced again from its multipliers, report by report in the balls of the stored radii.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.mechanism.factored.certificate import Factors
from mechdesign.mechanism.factored.dataset import (
    ROWS,
    Judgement,
    ProvedBound,
    block_digests,
    effective_epsilon,
    judge,
    judgement,
)
from mechdesign.mechanism.factored.row_sums import RowBlock, join_words, rounded_words
from mechdesign.mechanism.stored import Stored
from mechdesign.programs.eikonal.curvature import curvature_excess, ruled
from mechdesign.programs.eikonal.weights import rings
from mechdesign.setting.metric.shortest_paths import Edges
from mechdesign.solvers.factored.blocks import threads
from mechdesign.solvers.factored.sums import all_rows
from mechdesign.solvers.kernels.progress import Reported, Streaming
from mechdesign.solvers.local.certificate import WIDEST, proved
from mechdesign.solvers.local.pricing import Places
from mechdesign.verification.rebuild import AGREE, bound_reasons, figure_differences, unchecked_bound


def check_factored(
    stored: Stored, *, bound: bool = True, on_progress: Callable[[Reported], None] | None = None
) -> dict[str, Any]:
    """The fields of a `Verification` for a factored mechanism; bound, whether its lower bound is priced again;
    on_progress, called with where the sums of rows and that stand.

    Raises: MechdesignError where the Dataset contradicts itself.
    """
    mechanism, factors, edges = stored.mechanism, stored.factors, stored.edges
    reasons = stored.differences()
    judged = judge(stored.problem, factors, mechanism["target"].values)
    rows = all_rows(judged, told=telling(on_progress, "rows", len(judged.prior)))
    reasons += _row_differences(stored, rows)
    bad = factors.breaches(edges, join_words(rows.row_sum))
    if bad:
        reasons.append(f"row_sum: {bad} (edge, direction) pairs break the claim")
    value = effective_epsilon(factors, edges, rows.row_sum)
    figures = judgement(judged, rows, stored.domain)
    found = {"expected_loss": figures.loss, "effective_epsilon": value, "remapped_loss": figures.remapped_loss}
    reasons += figure_differences(mechanism, found)
    reasons += _place_differences(stored, figures)
    follows = _check_bound(stored, on_progress) if bound else None
    least = figures.loss if figures.remapped_loss is None else min(figures.loss, figures.remapped_loss)
    reasons += bound_reasons(mechanism, follows, least)
    return {
        "violations": bad,
        "claim": stored.claim,
        "rebuilt": stored.rebuilt,
        "effective_epsilon": value,
        "worst": worst_edge(factors, edges, rows.row_sum, mechanism["target"].values),
        "expected_loss": figures.loss,
        "lower_bound_checked": follows,
        "lower_bound_reason": unchecked_bound(mechanism, follows, asked=bound),
        "reasons": reasons,
    }


def _check_bound(stored: Stored, on_progress: Callable[[Reported], None] | None) -> bool | None:
    """Whether the stored bound follows from the stored multipliers in balls of the stored radii; None for no bound."""
    mechanism = stored.mechanism
    given = [name in mechanism.attrs for name in ("lower_bound", "bound_reach", "bound_core")] + ["dual" in mechanism]
    if not any(given):
        return None
    if not all(given):
        return False
    dual, reach, core = mechanism["dual"].values, *(float(mechanism.attrs[f"bound_{of}"]) for of in ("reach", "core"))
    if not (np.isfinite(dual).all() and 0 < reach <= WIDEST and 0 <= core <= reach):
        return False
    proof = ProvedBound(value=float(mechanism.attrs["lower_bound"]), dual=dual, reach=reach, core=core)
    told = telling(on_progress, "lower bound", len(dual))
    with threads() as crew:
        return proof.value <= proved(crew, Places.of(stored.problem), proof, told) * (1 + AGREE)


def telling(on_progress: Callable[[Reported], None] | None, stage: str, total: int) -> Callable[[int], None]:
    """What a pass calls with the rows or reports that are done."""
    started = time.monotonic()

    def told(done: int) -> None:
        if on_progress is not None:
            seconds = time.monotonic() - started
            on_progress(Streaming(stage=stage, done=done, total=total, kappa=None, seconds=seconds))

    return told


def _place_differences(stored: Stored, figures: Judgement) -> list[str]:
    """What is wrong with the remap, with the curvature excess, and with figures that a factored mechanism has not."""
    mechanism, reasons = stored.mechanism, []
    if float(mechanism.attrs["multiple"]) != 1:
        reasons.append("multiple: a factored mechanism is made at its claim")
    if figures.remapped_loss is None and "remapped_loss" in mechanism.attrs:
        reasons.append("remapped_loss: is for the squared distance")
    if int(mechanism.attrs["block"]) != ROWS:
        reasons.append(f"block: rows are kept {ROWS} at a time")
    wanted: dict[str, NDArray[Any] | None] = {"remap": figures.remap, "excess": None, "ring": None}
    if ruled(stored.metric, stored.domain):
        wanted |= {"excess": curvature_excess(stored.domain, stored.metric), "ring": rings(stored.domain)}
    for name, values in wanted.items():
        held = mechanism.get(name)
        if held is not None and (values is None or not np.allclose(held.values, values, rtol=AGREE, atol=0.0)):
            reasons.append(f"{name}: differs from what the file gives")
    return reasons


def _row_differences(stored: Stored, rows: RowBlock) -> list[str]:
    mechanism, reasons = stored.mechanism, []
    different = np.flatnonzero((mechanism["row_sum"].values != rows.row_sum).any(axis=1))
    if len(different):
        reasons.append(f"row_sum: {len(different)} rows sum to something else, first secret {int(different[0])}")
    kept = mechanism["block_sha256"].values
    again = block_digests(mechanism["row_sum"].values, mechanism["row_loss"].values)
    if kept.shape != again.shape:
        reasons.append(f"block_sha256: {len(kept)} blocks, there should be {len(again)}")
    else:
        for block in np.flatnonzero((kept != again).any(axis=1)):
            reasons.append(f"block_sha256: rows {block * ROWS} to {(block + 1) * ROWS - 1} were altered")
    if not np.allclose(mechanism["row_loss"].values, rows.loss, rtol=AGREE, atol=0.0):
        reasons.append("row_loss: differs from the losses recomputed")
    return reasons


def worst_edge(
    factors: Factors, edges: Edges, row_sum: NDArray[np.uint64], target: NDArray[np.int64]
) -> dict[str, int]:
    """The edge with the largest bound of log-ratios over its length, and a report: the end of the edge where every
    place is a column, else the report of the column whose ratio between the ends is the largest.
    """
    logarithm = np.log(rounded_words(row_sum))
    rise = logarithm[edges.tail] - logarithm[edges.head]
    ratio = (factors.nats_per_unit * factors.units_of(edges) + np.abs(rise)) / edges.length
    e = int(np.argmax(ratio))
    tail, head = int(edges.tail[e]), int(edges.head[e])
    secret, other = (head, tail) if rise[e] > 0 else (tail, head)
    if factors.columns is None:
        return {"secret": secret, "other": other, "report": secret}
    near, far = factors.distances(np.array([secret, other])).T.astype(np.int64)
    return {"secret": secret, "other": other, "report": int(target[np.argmax(far - near)])}

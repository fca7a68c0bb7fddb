"""Verify a factored mechanism from its integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mechdesign.base.arrays import AnyArray, Integers, Unsigned
from mechdesign.evaluation.protection import protection
from mechdesign.factored.ball import Places
from mechdesign.factored.certificate import Factors
from mechdesign.factored.dataset import LossFigures, ProvedBound, largest_ratio, loss_data, loss_figures, stored_trees
from mechdesign.factored.local_bound import WIDEST, recompute_bound
from mechdesign.factored.row_sums import RowBlock, all_rows, rounded_words
from mechdesign.factored.work_folder import threads
from mechdesign.mechanism.claim import check_claim
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.problem.lattice import Edges
from mechdesign.programs.curvature import curvature_excess, has_curvature_rule
from mechdesign.solvers.eikonal.negative_weights import rings
from mechdesign.solvers.result import Progress, counter, reporter
from mechdesign.verification.kinds import FileKind
from mechdesign.verification.verify import AGREE, Verification, bound_reasons, figure_differences, unchecked_bound


# Distances and the row sums that prove the claim (mechanism/claim.py) are computed again, exactly. A lower bound is
# recomputed from its multipliers, in balls of the stored radii.
def check_factored(
    stored: MechanismFile, *, bound: bool = True, on_progress: Callable[[Progress], None] | None = None
) -> Verification:
    """The verification of a factored mechanism; bound: recompute its lower bound."""
    mechanism, factors, edges, proof = stored.mechanism, stored.factors, stored.edges, check_claim(stored)
    reasons = proof.reasons
    data = loss_data(stored.problem, factors, mechanism["target"].values)
    rows = all_rows(data, on_done=counter(reporter(on_progress), "rows", len(data.prior)))
    reasons += _row_differences(stored, rows)
    value = largest_ratio(factors, edges, rows.row_sum)
    figures = loss_figures(data, rows, stored.domain)
    derived = {"expected_loss": figures.loss, "ratio": value, "remapped_loss": figures.remapped_loss}
    reasons += figure_differences(mechanism, derived)
    reasons += _place_differences(stored, figures)
    follows = _check_bound(stored, on_progress) if bound else None
    smallest = figures.loss if figures.remapped_loss is None else min(figures.loss, figures.remapped_loss)
    reasons += bound_reasons(mechanism, follows, smallest)
    return Verification(
        violations=proof.violations,
        claim=stored.claim,
        edge_source=stored.edge_source,
        ratio=value,
        worst=worst_edge(factors, edges, rows.row_sum, mechanism["target"].values),
        expected_loss=figures.loss,
        lower_bound_checked=follows,
        lower_bound_reason=unchecked_bound(mechanism, follows, priced=bound),
        reasons=reasons,
    )


def _check_bound(stored: MechanismFile, on_progress: Callable[[Progress], None] | None) -> bool | None:
    # None without a bound. A file with only part of a proof fails, since its bound cannot be recomputed.
    mechanism = stored.mechanism
    stated = [name in mechanism.attrs for name in ("lower_bound", "bound_reach", "bound_core")] + ["dual" in mechanism]
    if not all(stated):
        return False if any(stated) else None
    dual, reach, core = mechanism["dual"].values, *(float(mechanism.attrs[f"bound_{of}"]) for of in ("reach", "core"))
    # Untrusted radii: a wider ball than any design has would take hours.
    if not (np.isfinite(dual).all() and 0 < reach <= WIDEST and 0 <= core <= reach):
        return False
    trees = stored_trees(mechanism)
    proof = ProvedBound(value=float(mechanism.attrs["lower_bound"]), dual=dual, reach=reach, core=core, trees=trees)
    on_done = counter(reporter(on_progress), "lower bound", len(dual))
    with threads() as executor:
        return proof.value <= recompute_bound(executor, Places.of(stored.problem), proof, on_done) * (1 + AGREE)


def _place_differences(stored: MechanismFile, figures: LossFigures) -> list[str]:
    mechanism, reasons = stored.mechanism, []
    if float(mechanism.attrs["scale"]) != 1:
        reasons.append("scale: must be 1 in a factored mechanism")
    if figures.remapped_loss is None and "remapped_loss" in mechanism.attrs:
        reasons.append("remapped_loss: applies only to the squared distance")
    wanted: dict[str, AnyArray | None] = {"remap": figures.remap, "excess": None, "ring": None}
    if has_curvature_rule(stored.metric, stored.domain):
        wanted |= {"excess": curvature_excess(stored.domain, stored.metric), "ring": rings(stored.domain)}
    for name, values in wanted.items():
        stated = mechanism.get(name)
        if stated is not None and (values is None or not np.allclose(stated.values, values, rtol=AGREE, atol=0.0)):
            reasons.append(f"{name}: differs from the recomputed values")
    return reasons


def _row_differences(stored: MechanismFile, rows: RowBlock) -> list[str]:
    mechanism, reasons = stored.mechanism, []
    different = np.flatnonzero((mechanism["row_sum"].values != rows.row_sum).any(axis=1))
    if len(different):
        reasons.append(f"row_sum: {len(different)} sums differ from the rows, first secret {int(different[0])}")
    if not np.allclose(mechanism["row_loss"].values, rows.loss, rtol=AGREE, atol=0.0):
        reasons.append("row_loss: differs from the recomputed losses")
    return reasons


def worst_edge(factors: Factors, edges: Edges, row_sum: Unsigned, target: Integers) -> dict[str, int]:
    """The edge with the largest bound of log-ratios over its length, and a report."""
    # If every place is a column, the end with the smaller sum itself; else the column with the largest ratio.
    total = rounded_words(row_sum)
    e = int(np.argmax(factors.claim_utilisation(edges, total)))
    tail, head = int(edges.tail[e]), int(edges.head[e])
    secret, other = (head, tail) if total[tail] > total[head] else (tail, head)
    if factors.columns is None:
        return {"secret": secret, "other": other, "report": secret}
    distance, other_distance = factors.distances(np.array([secret, other])).T.astype(np.int64)
    return {"secret": secret, "other": other, "report": int(target[np.argmax(other_distance - distance)])}


FACTORED = FileKind(check=check_factored, protection=protection)

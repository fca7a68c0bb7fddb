"""Audit or repair a table of another program: its effective epsilon in a given metric.

    ratio = max over u != u', y of ln(P[u, y] / P[u', y]) / d(u, u'),    infinite if a zero is below a positive    (1)

Doubles are exact numbers. (1) is rounded up until exact integers find no triple above it (mechanism/certificate.py):
the table is private at that scale. The program that samples from it is not examined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Matrix, Vector
from mechdesign.base.labels import join_labels, words_of_rows
from mechdesign.base.memory import require_memory
from mechdesign.base.records import FrozenRecord
from mechdesign.base.validation import as_numbers, validate_call
from mechdesign.errors import InputError
from mechdesign.mechanism.build import build_dataset
from mechdesign.mechanism.certificate import breaches, max_log_ratio_of_doubles
from mechdesign.mechanism.figures import true_scale
from mechdesign.mechanism.repair import repair
from mechdesign.problem.classes import in_class_order
from mechdesign.problem.problem import DesignProblem
from mechdesign.problem.tables import read_table
from mechdesign.solvers.result import Progress, reporter

ROW_SUM_TOLERANCE = 1e-6  # a larger deviation of a row sum from 1 is not due to rounding
MAX_NORMALISED = 0.01  # deviation of a row sum from 1: a larger one has another cause, such as a column of labels
UP_TO_ROUNDING = 1 + 2.0**-40  # times the claim: ratios of a table in doubles that is private at the claim

Verdict = Literal["holds", "holds up to rounding", "broken"]


@dataclass(frozen=True, kw_only=True)
class Audit(FrozenRecord):
    """Figures of a table and of its claim, under the names of the JSON form, where infinite figures are null.

    True if the verdict is not "broken": `if md.audit(table, problem)`.

    Attributes
    ----------
    secrets, reports, metric
        n, m, and the metric in words.
    divided, row_sums
        "counts" or "rows" if rows were divided by their sums; before that, the largest deviation of a sum from 1, its
        row, and the extreme sums.
    verdict, breaches
        "holds", "holds up to rounding" (broken by less than 2^-40 of the claim) or "broken"; triples above the claim.
    infinite, ratio
        True if a zero meets a positive entry. The ratio (1), rounded up: the scale of the metric at which the table is
        private, None if infinite.
    finite_epsilon
        The largest ratio without zeros, in floating point.
    claimed_epsilon, effective_epsilon, epsilon_unit
        Level of the metric, and ratio times it; None for metrics without a single level.
    worst
        The triple that attains the ratio: secret, other, report, probabilities, log_ratio, and distance in nats.
    zeros
        Numbers of zero entries, of empty columns, and of mixed columns, whose report rules some secrets out.
    loss, loss_unit, prior, notes
        Expected loss under the prior, None without places of reports; "uniform" or "given"; why figures are missing.
    """

    secrets: int
    reports: int
    metric: str
    divided: str | None
    verdict: Verdict
    breaches: int
    infinite: bool
    ratio: float | None
    finite_epsilon: float
    claimed_epsilon: float | None
    effective_epsilon: float | None
    epsilon_unit: str | None
    worst: dict[str, Any]
    zeros: dict[str, int]
    row_sums: dict[str, float]
    loss: float | None
    loss_unit: str
    prior: str
    notes: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        """True if the table is private as claimed, up to rounding."""
        return self.verdict != "broken"

    def repr_fields(self) -> Mapping[str, object]:
        return {
            "verdict": f"{self.verdict} ({self.breaches} breaches)",
            "ratio": self.ratio,
            "metric": self.metric,
            "loss": self.loss,
        }

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return asdict(self)


@validate_call
def audit(
    table: str | Path | ArrayLike,
    problem: DesignProblem,
    *,
    normalise: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> Audit:
    """Audit a table of probabilities against the metric of a problem, whose secrets are its rows in order.

    Cost: O(e m) for e edges of the metric.

    Parameters
    ----------
    table : (n, m) array, str or Path
        The table, or its file. Integers above 1 are counts and are divided by their row sums.
    problem : DesignProblem
        Metric, and prior and loss for the expected loss.
    normalise, on_progress : bool, callable
        True to divide rows by their sums; called with the number of edges done in each pass.

    Returns
    -------
    Audit

    Examples
    --------
    >>> problem = md.DesignProblem(md.Domain.nodes(2), md.Discrete(1.0), [0.5, 0.5], md.losses.ZeroOne())
    >>> result = md.audit([[0.75, 0.25], [0.25, 0.75]], problem)
    >>> result.verdict, round(result.effective_epsilon, 4)
    ('broken', 1.0986)
    """
    return audit_checked(check_table(table, problem, normalise=normalise), problem, on_progress=on_progress)


def audit_checked(
    table: CheckedTable, problem: DesignProblem, *, on_progress: Callable[[Progress], None] | None = None
) -> Audit:
    """Audit a checked table."""
    rows, notes = table.rows, table.notes
    n, m = rows.shape
    edges = problem.edges
    report, total = reporter(on_progress), len(edges.tail)

    def count(stage: str) -> Callable[[int], None]:
        return lambda done: report(stage, done=done, total=total, unit="pairs")

    worst = max_log_ratio_of_doubles(rows, edges, count=count("largest ratio"))
    broken = breaches(rows, edges, count=count("claim"))
    infinite = math.isinf(worst.value)
    ratio = None
    if not infinite:
        # (1), raised from the doubles until integers find no breach at this scale.
        ratio = true_scale(rows, problem.metric, problem.domain, worst.value, count=count("exact ratio"))
    level, unit = problem.metric.stated_level(problem.domain.unit) or (None, None)
    # A column with a zero and a positive entry rules secrets out for certain: its ratio is infinite.
    positive = (rows > 0).sum(axis=0)
    placed = m == problem.reports.size
    unplaced = f"loss: the table has {m} reports and the problem {problem.reports.size}; their places are unknown"
    return Audit(
        secrets=n,
        reports=m,
        metric=problem.metric.claim(problem.domain),
        divided=table.divided,
        verdict=_verdict(broken, ratio),
        breaches=broken,
        infinite=infinite,
        ratio=ratio,
        finite_epsilon=worst.finite,
        claimed_epsilon=level,
        effective_epsilon=None if ratio is None or level is None else ratio * level,
        epsilon_unit=unit,
        worst={
            "secret": worst.secret,
            "other": worst.other,
            "report": worst.report,
            **_labels_of(problem, worst.secret, worst.other, worst.report, placed=placed),
            "probability": float(rows[worst.secret, worst.report]),
            "other_probability": float(rows[worst.other, worst.report]),
            "log_ratio": None if infinite else worst.value * worst.distance,
            "distance": worst.distance,
        },
        zeros={
            "entries": int((rows == 0).sum()),
            "empty_columns": int((positive == 0).sum()),
            "mixed_columns": int(((positive > 0) & (positive < n)).sum()),
        },
        row_sums=table.sums,
        loss=float((problem.weighted_loss * rows).sum()) if placed else None,
        loss_unit=problem.loss_unit,
        prior="uniform" if np.ptp(problem.prior_array) == 0 else "given",
        notes=notes if placed else [*notes, unplaced],
    )


def _labels_of(problem: DesignProblem, secret: int, other: int, report: int, *, placed: bool) -> dict[str, str]:
    """The labels of a triple, by their names in `Audit.worst`; none without labels."""
    labels: dict[str, str] = {}
    if problem.domain.labels is not None:
        labels = {"secret_label": problem.domain.name_of(secret), "other_label": problem.domain.name_of(other)}
    if problem.reports.labels is not None and placed:
        labels["report_label"] = problem.reports.name_of(report)
    return labels


@validate_call
def repair_table(table: str | Path | ArrayLike, problem: DesignProblem, *, normalise: bool = False) -> xr.Dataset:
    """Repair a table into a certified mechanism, private for the metric of a problem.

    Parameters
    ----------
    table, normalise : (n, m) array, str or Path, bool
        As for `md.audit`.
    problem : DesignProblem
        The claim, and prior and loss, which decide where slack goes.

    Returns
    -------
    xarray.Dataset

    Examples
    --------
    >>> problem = md.DesignProblem(md.Domain.nodes(2), md.Discrete(1.0), [0.5, 0.5], md.losses.ZeroOne())
    >>> mechanism = md.baselines.repair_table([[0.9, 0.1], [0.1, 0.9]], problem)
    >>> round(float(md.probabilities(mechanism)[0, 0]), 4)
    0.7311
    """
    return repair_checked(check_table(table, problem, normalise=normalise), problem)


def repair_checked(table: CheckedTable, problem: DesignProblem) -> xr.Dataset:
    """Repair a checked table."""
    rows = table.rows
    if rows.shape[1] != problem.reports.size:
        raise InputError(f"the problem has {problem.reports.size} reports", field="table", value=rows.shape[1])
    require_memory(*rows.shape, tables=6, noun="a repair")
    return build_dataset(problem, repair(rows, problem.edges, problem.weighted_loss), program="repaired")


@dataclass(frozen=True, kw_only=True, eq=False)
class CheckedTable:
    """A table (n, m) of rows that sum to 1, with the figures of their original sums, and notes."""

    rows: Matrix
    divided: str | None
    sums: dict[str, float]
    notes: list[str]


def check_table(table: str | Path | ArrayLike, problem: DesignProblem, *, normalise: bool) -> CheckedTable:
    """Read and check a table; divide its rows by their sums if they are counts, or if `normalise`."""
    notes: list[str] = []
    if isinstance(table, (str, Path)):
        table = read_table(table, on_note=notes.append, secrets=problem.domain.labels, reports=problem.reports.labels)
    else:
        words = words_of_rows(table)
        table = in_class_order(table, "table", problem.domain, problem.reports)
        if words and problem.domain.labels is None:
            notes.append(f"Secrets are taken in the order of the table: {join_labels(words)}.")
    rows = as_numbers(table, "table", problem.domain.points, problem.reports.points)
    _check_entries(rows, problem.domain.size)
    # Correctly rounded: a plain sum over many reports would itself deviate by more than rounding of the entries.
    sums = np.array([math.fsum(row) for row in rows])
    farthest = int(np.argmax(abs(sums - 1)))
    # Integers above 1 are counts of draws: dividing them by their sums loses nothing.
    are_counts = bool(rows.max() > 1 and (rows == np.floor(rows)).all())
    _check_sums(sums, farthest, are_counts=are_counts, normalise=normalise)
    divided = None
    if are_counts or normalise:
        rows = rows / sums[:, None]
        divided = "counts" if are_counts else "rows"
    deviation = {"largest_deviation": float(sums[farthest] - 1), "row": farthest}
    deviation |= {"smallest": float(sums.min()), "largest": float(sums.max())}
    return CheckedTable(rows=np.ascontiguousarray(rows), divided=divided, sums=deviation, notes=notes)


def _check_entries(rows: Matrix, secrets: int) -> None:
    if rows.ndim != 2 or len(rows) != secrets:
        message = f"must have {secrets} rows, one for each secret of the metric"
        raise InputError(
            message, field="table", value=f"shape {rows.shape}", remedy="pass one row for each secret, in order"
        )
    wrong = ~np.isfinite(rows) | (rows < 0)
    if wrong.any():
        row, column = (int(k) for k in np.argwhere(wrong)[0])
        value = f"{rows[row, column]!r}, {wrong.sum()} such entries"
        raise InputError(f"row {row}, column {column} is not a probability", field="table", value=value)


def _check_sums(sums: Vector, farthest: int, *, are_counts: bool, normalise: bool) -> None:
    """Refuse rows whose sums are not 1; if rows are divided, sums of 0, and large deviations that are not counts."""
    deviation = abs(sums[farthest] - 1)
    if normalise and not are_counts and sums.min() > 0 and deviation > MAX_NORMALISED:
        raise InputError(
            f"row {farthest} deviates from a sum of 1 by more than 1 %, too much for rounding",
            field="table",
            value=f"{sums[farthest]:.6g}",
            remedy="remove columns or lines of labels; counts are divided automatically",
        )
    is_off = deviation > ROW_SUM_TOLERANCE and not (are_counts or normalise)
    if is_off or not sums.min() > 0:
        row = farthest if sums.min() > 0 else int(np.argmin(sums))
        remedy = "correct it, or pass normalise=True to divide every row by its sum"
        raise InputError(f"row {row} does not sum to 1", field="table", value=f"{sums[row]:.12g}", remedy=remedy)


def _verdict(broken: int, ratio: float | None) -> Verdict:
    if broken == 0:
        return "holds"
    return "holds up to rounding" if ratio is not None and ratio <= UP_TO_ROUNDING else "broken"

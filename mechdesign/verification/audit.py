"""audit: the effective epsilon of a table that somebody else made, in a named metric, and the table repaired.

    ratio = max over u != u', y of ln(P[u, y] / P[u', y]) / d(u, u'),    infinite where a zero is below a positive

The doubles of the table are taken as the exact numbers they are. The figure is rounded up, by 2^-46 of itself and
twice that until exact integers find no triple above it (mechanism/certificate.py): the table is private
at that scale. It is a statement about the table as given, not about the program that samples from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.labels import listed, words_of_rows
from mechdesign.base.memory import require_memory
from mechdesign.base.records import FrozenRecord
from mechdesign.base.validation import as_numbers, validated
from mechdesign.errors import InputError
from mechdesign.mechanism.build import build_dataset
from mechdesign.mechanism.certificate import breaches, worst_ratio
from mechdesign.mechanism.figures import true_scale
from mechdesign.mechanism.repair import repair
from mechdesign.problem.problem import DesignProblem
from mechdesign.problem.tables import read_table
from mechdesign.solvers.result import Progress, reporter

ROW_SUM_TOLERANCE = 1e-6  # rows further than this from 1 are no rounding errors
MOST_NORMALISED = 0.01  # of a row's sum: further off, something else than rounding is wrong
UP_TO_ROUNDING = 1 + 2.0**-40  # of the claim: what tables of doubles at the claim may show above it

Verdict = Literal["holds", "holds up to rounding", "broken"]


@dataclass(frozen=True, kw_only=True)
class Audit(FrozenRecord):
    """What a table is, beside what is claimed for it. Keys of the JSON form; infinite figures are null there.

    secrets, reports: n, m. metric: the metric in words. divided: "counts" or "rows" where rows were divided by their
    sums before the audit, else None.
    verdict: "holds", "holds up to rounding" (broken by less than 2^-40 of the claim) or "broken"; breaches: (pair,
    direction, report) triples above the claim, by exact integers, over the pairs that imply all others.
    infinite: True where a zero meets a positive entry. ratio: the scale of the metric at which the table is
    private, rounded up, null where infinite; finite_epsilon: the largest ratio that meets no zero, in floating point.
    claimed_epsilon, effective_epsilon: level of the metric, and ratio times it, in epsilon_unit; null for
    metrics without a single level. worst: secret, other, report, probability, other_probability, log_ratio (nats, null
    where infinite) and distance (nats) of the triple that comes first.
    zeros: entries that are 0; empty_columns, all 0; mixed_columns, with a 0 and a positive entry: each of these rules
    secrets out. row_sums: largest_deviation from 1 and its row, smallest and largest sum, before rows were divided.
    loss: expected loss under the prior, null where the reports have no known places; loss_unit; prior: "uniform" or
    "given". notes: what could not be said, and why.
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

    def facts(self) -> Mapping[str, object]:
        return {
            "verdict": f"{self.verdict} ({self.breaches} breaches)",
            "ratio": self.ratio,
            "metric": self.metric,
            "loss": self.loss,
        }

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return asdict(self)


@validated
def audit(
    table: str | Path | ArrayLike,
    problem: DesignProblem,
    *,
    normalise: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> Audit:
    """Audit a table of probabilities against the metric of a problem, whose secrets are its rows in order.

    Integers above 1 are counts and are divided by their row sums. What is audited then are the quotients, rounded to
    doubles.

    Parameters
    ----------
    table : (n, m) array, str or Path
        The table, or the file of one.
    problem : DesignProblem
        Metric, and prior and loss for the expected loss.
    normalise : bool
        Divide rows that do not sum to 1 by their sums.
    on_progress : callable
        Called with how many edges of each pass are done.

    Returns
    -------
    Audit
        Verdict, ratio, effective epsilon and the worst triple.

    Raises
    ------
    InputError
        For a negative or non-finite entry or a row that does not sum to 1 within 1e-6, with row, column and value;
        where rows and secrets differ in number; what `md.read.table` raises.

    Notes
    -----
    Cost: O(e m), e the edges of the metric: 2 s for 500 secrets and all pairs, 5 s for 900.

    Examples
    --------
    >>> problem = md.DesignProblem(md.Domain.nodes(2), md.Discrete(1.0), [0.5, 0.5], md.losses.ZeroOne())
    >>> found = md.audit([[0.75, 0.25], [0.25, 0.75]], problem)
    >>> found.verdict, round(found.effective_epsilon, 4)
    ('broken', 1.0986)
    """
    notes: list[str] = []
    rows, divided, sums = _checked(table, problem, normalise=normalise, on_note=notes.append)
    n, m = rows.shape
    edges = problem.edges
    report, total = reporter(on_progress), len(edges.tail)

    def count(stage: str) -> Callable[[int], None]:
        return lambda done: report(stage, done=done, total=total, unit="pairs")

    at = worst_ratio(rows, edges, count=count("largest ratio"))
    broken = breaches(rows, edges, count=count("claim"))
    infinite = math.isinf(at.value)
    ratio = None
    if not infinite:
        ratio = true_scale(rows, problem.metric, problem.domain, at.value, count=count("exact ratio"))
    level, unit = problem.metric.stated_level(problem.domain.unit) or (None, None)
    positive = (rows > 0).sum(axis=0)
    placed = m == problem.reports.size
    unplaced = f"loss: the table has {m} reports and the problem {problem.reports.size}; their places are unknown"
    return Audit(
        secrets=n,
        reports=m,
        metric=problem.metric.claim(problem.domain),
        divided=divided,
        verdict=_verdict(broken, ratio),
        breaches=broken,
        infinite=infinite,
        ratio=ratio,
        finite_epsilon=at.finite,
        claimed_epsilon=level,
        effective_epsilon=None if ratio is None or level is None else ratio * level,
        epsilon_unit=unit,
        worst={
            "secret": at.secret,
            "other": at.other,
            "report": at.report,
            "probability": float(rows[at.secret, at.report]),
            "other_probability": float(rows[at.other, at.report]),
            "log_ratio": None if infinite else at.value * at.distance,
            "distance": at.distance,
        },
        zeros={
            "entries": int((rows == 0).sum()),
            "empty_columns": int((positive == 0).sum()),
            "mixed_columns": int(((positive > 0) & (positive < n)).sum()),
        },
        row_sums=sums,
        loss=float((problem.weighted_loss * rows).sum()) if placed else None,
        loss_unit=problem.loss.unit(problem.domain.unit),
        prior="uniform" if np.ptp(problem.prior_array) == 0 else "given",
        notes=notes if placed else [*notes, unplaced],
    )


@validated
def repaired(table: str | Path | ArrayLike, problem: DesignProblem, *, normalise: bool = False) -> xr.Dataset:
    """The certified mechanism nearest to a table that the repair finds, private for the metric of a problem.

    Its expected loss beside that of the audit is what the repair costs.

    Parameters
    ----------
    table : (n, m) array, str or Path
        The table, or the file of one.
    problem : DesignProblem
        The claim, and prior and loss, which decide where slack goes.
    normalise : bool
        As for `md.audit`.

    Returns
    -------
    xarray.Dataset
        The certified mechanism.

    Raises
    ------
    InputError
        As `md.audit`, and where the table has other reports than the problem.

    Examples
    --------
    >>> problem = md.DesignProblem(md.Domain.nodes(2), md.Discrete(1.0), [0.5, 0.5], md.losses.ZeroOne())
    >>> mechanism = md.baselines.repaired([[0.9, 0.1], [0.1, 0.9]], problem)
    >>> round(float(md.probabilities(mechanism)[0, 0]), 4)
    0.7311
    """
    rows, _, _ = _checked(table, problem, normalise=normalise)
    if rows.shape[1] != problem.reports.size:
        raise InputError(f"the problem has {problem.reports.size} reports", field="table", value=rows.shape[1])
    require_memory(*rows.shape, tables=6, what="a repair")
    return build_dataset(problem, repair(rows, problem.edges, problem.weighted_loss), program="repaired")


def _checked(
    table: str | Path | ArrayLike,
    problem: DesignProblem,
    *,
    normalise: bool,
    on_note: Callable[[str], None] | None = None,
) -> tuple[NDArray[np.float64], str | None, dict[str, float]]:
    """The table with rows of sum 1, what they were divided as, and the deviation of their sums before."""
    if isinstance(table, (str, Path)):
        table = read_table(table, on_note=on_note)
    elif on_note is not None and (words := words_of_rows(table)):
        on_note(f"Secrets are taken in the order of the table: {listed(words)}.")
    rows = as_numbers(table, "table", problem.domain.points, problem.reports.points)
    if rows.ndim != 2 or len(rows) != problem.domain.size:
        message = f"the metric has {problem.domain.size} secrets"
        raise InputError(message, field="table", value=f"shape {rows.shape}", remedy="give one row a secret, in order")
    wrong = ~np.isfinite(rows) | (rows < 0)
    if wrong.any():
        row, column = (int(k) for k in np.argwhere(wrong)[0])
        value = f"{rows[row, column]!r}, {wrong.sum()} such entries"
        raise InputError(f"row {row}, column {column} is no probability", field="table", value=value)
    sums = np.array([math.fsum(row) for row in rows])
    row = int(np.argmax(abs(sums - 1)))
    deviation = {"largest_deviation": float(sums[row] - 1), "row": row}
    deviation |= {"smallest": float(sums.min()), "largest": float(sums.max())}
    # integers above 1 are counts of draws, which are divided without being asked to
    counts = bool(rows.max() > 1 and (rows == np.floor(rows)).all())
    if normalise and not counts and sums.min() > 0 and abs(sums[row] - 1) > MOST_NORMALISED:
        raise InputError(
            f"row {row} is more than 1 % from a sum of 1, which is no rounding",
            field="table",
            value=f"{sums[row]:.6g}",
            remedy="is a column or a line of labels among the numbers? counts are divided without being asked",
        )
    off = abs(sums[row] - 1) > ROW_SUM_TOLERANCE and not (counts or normalise)
    if off or not sums.min() > 0:
        row = row if sums.min() > 0 else int(np.argmin(sums))
        remedy = "correct it, or pass normalise=True to divide every row by its sum"
        raise InputError(f"row {row} does not sum to 1", field="table", value=f"{sums[row]:.12g}", remedy=remedy)
    if counts or normalise:
        rows = rows / sums[:, None]
    return np.ascontiguousarray(rows), "counts" if counts else "rows" if normalise else None, deviation


def _verdict(broken: int, ratio: float | None) -> Verdict:
    if broken == 0:
        return "holds"
    return "holds up to rounding" if ratio is not None and ratio <= UP_TO_ROUNDING else "broken"

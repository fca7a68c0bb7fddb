r"""Constraints that a user adds to the optimal program: each says itself in cvxpy and as side rows.

    ReportCap       P(y|u) <= cap                                for some reports y, at some secrets u
    RequiredReport  P(y|u) >= least                              for a report y, at some secrets u
    ErrorCap        sum over y with |u - y| > radius of P(y|u) <= share      for some secrets u

Forbidden reports. Every edge is finite, so P(y|u) = 0 forces P(y|v) = 0 for every neighbour v and, the domain being
connected, for every secret: a report that is impossible at one secret is impossible at all. Such a report leaves the
set of reports, by `without_reports`; a cap of 0 is refused, and says so. For the same reason an error beyond a radius
can be made improbable, never impossible, as long as some report lies beyond it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.display import Shown
from mechdesign.errors import InputError
from mechdesign.programs.optimal.coupled import SideRows, rows_per_secret, stack_rows
from mechdesign.setting.objective.losses import TableLoss
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.setting.space.domain import Domain

if TYPE_CHECKING:
    import cvxpy as cp

_REMOVE = "forbid a report everywhere, with without_reports"


@dataclass(frozen=True, kw_only=True)
class Constraint(Shown, ABC):
    """A constraint on the table; `name` is what files and errors call it."""

    name: ClassVar[str]

    @abstractmethod
    def stated(self, table: cp.Variable, problem: DesignProblem) -> list[cp.Constraint]:
        """The constraint on `table` (n, m) in cvxpy."""

    @abstractmethod
    def rows(self, problem: DesignProblem) -> SideRows:
        """The constraint as side rows."""

    def describe(self) -> dict[str, Any]:
        """What a file keeps of it."""
        kept = {name: value if np.isscalar(value) else _as_list(value) for name, value in asdict(self).items()}
        return {"constraint": self.name, **kept}


@dataclass(frozen=True, kw_only=True)
class ReportCap(Constraint):
    """P(y|u) <= cap, 0 < cap <= 1, for the given reports y (all by default) at the given secrets u (all by default)."""

    cap: float
    reports: Sequence[int] | None = None
    secrets: Sequence[int] | None = None
    name = "report-cap"

    def __post_init__(self) -> None:
        _check_share(self.cap, "cap", remedy=_REMOVE)

    def stated(self, table: cp.Variable, problem: DesignProblem) -> list[cp.Constraint]:
        secrets = _places(self.secrets, problem.domain.size, "secrets")
        return [table[secrets, int(y)] <= self.cap for y in _places(self.reports, problem.reports.size, "reports")]

    def rows(self, problem: DesignProblem) -> SideRows:
        reports = _places(self.reports, problem.reports.size, "reports")
        parts = [_entry_rows(problem, int(y), self.secrets, 1.0, self.cap, "cap") for y in reports]
        return stack_rows(parts, problem.domain.size * problem.reports.size)


@dataclass(frozen=True, kw_only=True)
class RequiredReport(Constraint):
    """P(y|u) >= least, 0 < least < 1, for the report y at the given secrets u (all by default)."""

    report: int
    least: float
    secrets: Sequence[int] | None = None
    name = "required-report"

    def __post_init__(self) -> None:
        _check_share(self.least, "least", remedy="give the least probability that the report must have")

    def stated(self, table: cp.Variable, problem: DesignProblem) -> list[cp.Constraint]:
        (report,) = _places([self.report], problem.reports.size, "report")
        return [table[_places(self.secrets, problem.domain.size, "secrets"), int(report)] >= self.least]

    def rows(self, problem: DesignProblem) -> SideRows:
        (report,) = _places([self.report], problem.reports.size, "report")
        return _entry_rows(problem, int(report), self.secrets, -1.0, -self.least, "least")


@dataclass(frozen=True, kw_only=True)
class ErrorCap(Constraint):
    """The report lies further than `radius` (units of length) from the secret with probability at most `share`."""

    radius: float
    share: float
    secrets: Sequence[int] | None = None
    name = "error-cap"

    def __post_init__(self) -> None:
        _check_share(self.share, "share", remedy="an error can be made improbable, not impossible; give a share > 0")
        if not 0 <= self.radius < float("inf"):
            raise InputError(
                "must be finite and not negative", field="radius", value=self.radius, remedy="give units of length"
            )

    def stated(self, table: cp.Variable, problem: DesignProblem) -> list[cp.Constraint]:
        import cvxpy as cp

        secrets = _places(self.secrets, problem.domain.size, "secrets")
        return [cp.sum(cp.multiply(self.beyond(problem), table), axis=1)[secrets] <= self.share]

    def rows(self, problem: DesignProblem) -> SideRows:
        beyond = self.beyond(problem)
        asked = _places(self.secrets, problem.domain.size, "secrets")
        held = asked[beyond[asked].any(axis=1)]
        limit = np.full(problem.domain.size, self.share)
        return rows_per_secret(
            beyond, limit=limit, what="error-cap (share): the probability of a far report", secrets=held
        )

    def beyond(self, problem: DesignProblem) -> NDArray[np.float64]:
        """1 where a report lies beyond the radius of a secret, else 0; (n, m)."""
        if problem.domain.kind == "nodes":
            raise InputError(
                "nodes of a graph have no place", field="radius", value=self.radius, remedy="use a domain with places"
            )
        return (problem.domain.euclidean_to(problem.reports) > self.radius).astype(float)


CONSTRAINTS: dict[str, type[Constraint]] = {kind.name: kind for kind in (ReportCap, RequiredReport, ErrorCap)}


def constraint_from(description: Mapping[str, Any]) -> Constraint:
    """The constraint that `Constraint.describe` described. Raises: KeyError, TypeError or InputError for another."""
    given = dict(description)
    return CONSTRAINTS[given.pop("constraint")](**given)


def without_reports(problem: DesignProblem, forbidden: Sequence[int]) -> DesignProblem:
    """The problem with the reports numbered `forbidden` left out: no secret may make them.

    The reports that stay are renumbered in order. Raises: InputError for a number out of range, or if fewer than two
    reports stay.
    """
    gone = _places(forbidden, problem.reports.size, "forbidden")
    kept = np.setdiff1d(np.arange(problem.reports.size), gone)
    if len(kept) < 2:
        raise InputError(
            "at least two reports must stay",
            field="forbidden",
            value=f"{len(gone)} of {problem.reports.size}",
            remedy="forbid fewer reports",
        )
    kind: Literal["nodes", "points"] = "nodes" if problem.reports.kind == "nodes" else "points"
    reports = Domain(kind=kind, points=problem.reports.points[kept], unit=problem.reports.unit)
    loss = problem.loss
    if isinstance(loss, TableLoss):
        loss = replace(loss, values=problem.loss_matrix[:, kept])
    return replace(problem, reports=reports, loss=loss)


def _places(given: Sequence[int] | None, size: int, field: str) -> NDArray[np.int64]:
    """Place numbers (k,) in order, each once; all of them for None."""
    if given is None:
        return np.arange(size)
    numbers = np.unique(np.asarray(given))
    whole = numbers.size > 0 and np.issubdtype(numbers.dtype, np.integer)
    if not (whole and numbers[0] >= 0 and numbers[-1] < size):
        raise InputError(
            "must be place numbers", field=field, value=given, remedy=f"use whole numbers from 0 to {size - 1}"
        )
    return numbers.astype(np.int64)


def _as_list(given: Sequence[int] | None) -> list[int] | None:
    return None if given is None else [int(place) for place in given]


def _entry_rows(
    problem: DesignProblem, report: int, secrets: Sequence[int] | None, sign: float, limit: float, field: str
) -> SideRows:
    n, m = problem.domain.size, problem.reports.size
    entries = np.zeros((n, m))
    entries[:, report] = sign
    at = _places(secrets, n, "secrets")
    word = "report-cap" if sign > 0 else "required-report"
    return rows_per_secret(entries, limit=np.full(n, limit), what=f"{word} ({field}): report {report}", secrets=at)


def _check_share(value: float, field: str, *, remedy: str) -> None:
    if not 0 < value <= 1:
        raise InputError("must lie in (0, 1]", field=field, value=value, remedy=remedy)

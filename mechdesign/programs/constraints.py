"""Constraints on the table of a mechanism, stated in cvxpy and, if they are few rows, as side rows.

ReportCap       P(y|u) <= cap                            for some reports y, at some secrets u      (1)
RequiredReport  P(y|u) >= least                          for a report y, at some secrets u          (2)
ErrorCap        sum over y with |u - y| > radius of P(y|u) <= share      for some secrets u         (3)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from mechdesign.base.arrays import Indices, Matrix
from mechdesign.base.records import FrozenRecord
from mechdesign.base.registry import Registry
from mechdesign.base.validation import check_whole, refuse_entries
from mechdesign.errors import InputError
from mechdesign.problem.domain import Domain
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.coupled import SideRows, rows_per_secret, stack_rows

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True, kw_only=True)
class Constraint(FrozenRecord, ABC):
    """A constraint on the table; `name` is its name in files and errors."""

    name: ClassVar[str]

    def check(self, problem: DesignProblem) -> None:
        """Raise InputError if the constraint does not fit a problem."""

    @abstractmethod
    def inequalities(self, table: cp.Variable, problem: DesignProblem) -> list[cp.Constraint]:
        """The constraint on `table` (n, m) in cvxpy.

        Examples
        --------
        >>> problem = md.load_problem("line", cells=3)
        >>> cap = md.programs.ReportCap(cap=0.5)
        >>> program = md.programs.Constrained(problem, constraints=[cap])
        >>> len(cap.inequalities(program.table, problem))
        3
        """

    def describe(self) -> dict[str, Any]:
        """The constraint as JSON, for a file."""
        fields = asdict(self).items()
        # JSON takes neither arrays nor NumPy's integers.
        lists = {name: [int(place) for place in value] for name, value in fields if np.ndim(value)}
        return {"constraint": self.name, **dict(fields), **lists}


@dataclass(frozen=True, kw_only=True)
class RowConstraint(Constraint):
    """A constraint that is a few side rows."""

    @abstractmethod
    def rows(self, problem: DesignProblem) -> SideRows:
        """The constraint as side rows.

        Examples
        --------
        >>> md.programs.ReportCap(cap=0.5).rows(md.load_problem("line", cells=3)).size
        9
        """


@dataclass(frozen=True, kw_only=True)
class ReportCap(RowConstraint):
    """The constraint P(y|u) <= cap.

    Parameters
    ----------
    cap : float
        0 < cap <= 1.
    reports, secrets : sequences of int
        The reports and secrets that it holds for; all by default.

    Examples
    --------
    >>> md.programs.ReportCap(cap=0.5, reports=[0]).cap
    0.5
    """

    cap: float
    reports: Sequence[int] | None = None
    secrets: Sequence[int] | None = None
    name = "report-cap"

    def __post_init__(self) -> None:
        object.__setattr__(self, "cap", float(self.cap))
        _check_share(self.cap, "cap", remedy="forbid a report everywhere, with without_reports")

    def check(self, problem: DesignProblem) -> None:
        all_or_places(self.secrets, problem.domain.size, "secrets")
        all_or_places(self.reports, problem.reports.size, "reports")

    def inequalities(self, table: cp.Variable, problem: DesignProblem) -> list[cp.Constraint]:
        secrets = all_or_places(self.secrets, problem.domain.size, "secrets")
        reports = all_or_places(self.reports, problem.reports.size, "reports")
        # (1), one vector of inequalities for each report
        return [table[secrets, int(y)] <= self.cap for y in reports]

    def rows(self, problem: DesignProblem) -> SideRows:
        reports = all_or_places(self.reports, problem.reports.size, "reports")
        parts = [
            _entry_rows(problem, int(y), self.secrets, sign=1.0, limit=self.cap, noun="report-cap (cap)")
            for y in reports
        ]
        return stack_rows(parts, problem.domain.size * problem.reports.size)


@dataclass(frozen=True, kw_only=True)
class RequiredReport(RowConstraint):
    """The constraint P(y|u) >= least for one report.

    Parameters
    ----------
    report, least : int, float
        The report y; 0 < least < 1.
    secrets : sequence of int
        The secrets that it holds for; all by default.

    Examples
    --------
    >>> least = md.programs.RequiredReport(report=0, least=0.2)
    >>> program = md.programs.Constrained(md.load_problem("discrete", secrets=3), constraints=[least])
    >>> float(md.probabilities(md.solve(program))[:, 0].min()) >= 0.2
    True
    """

    report: int
    least: float
    secrets: Sequence[int] | None = None
    name = "required-report"

    def __post_init__(self) -> None:
        object.__setattr__(self, "report", check_whole(self.report, "report", minimum=0))
        object.__setattr__(self, "least", float(self.least))
        _check_share(self.least, "least", remedy="give the least probability that the report must have")

    def check(self, problem: DesignProblem) -> None:
        all_or_places(self.secrets, problem.domain.size, "secrets")
        all_or_places([self.report], problem.reports.size, "report")

    def inequalities(self, table: cp.Variable, problem: DesignProblem) -> list[cp.Constraint]:
        # Inequality (2).
        return [table[all_or_places(self.secrets, problem.domain.size, "secrets"), self.report] >= self.least]

    def rows(self, problem: DesignProblem) -> SideRows:
        # (2) as -P(y|u) <= -least: side rows are upper limits.
        noun = "required-report (least)"
        return _entry_rows(problem, self.report, self.secrets, sign=-1.0, limit=-self.least, noun=noun)


@dataclass(frozen=True, kw_only=True)
class ErrorCap(RowConstraint):
    """The constraint that a report lies further than a radius from the secret with probability at most `share`.

    Parameters
    ----------
    radius, share : float
        In units of length; a probability.
    secrets : sequence of int
        The secrets that it holds for; all by default.

    Examples
    --------
    >>> cap = md.programs.ErrorCap(radius=1.0, share=0.5)
    >>> program = md.programs.Constrained(md.load_problem("line", cells=4), constraints=[cap])
    >>> program.statement().is_dcp()
    True
    """

    radius: float
    share: float
    secrets: Sequence[int] | None = None
    name = "error-cap"

    def __post_init__(self) -> None:
        for name in ("radius", "share"):
            object.__setattr__(self, name, float(getattr(self, name)))
        _check_share(self.share, "share", remedy="an error can be made improbable, not impossible; give a share > 0")
        if not 0 <= self.radius < float("inf"):
            raise InputError("must be finite and not negative", field="radius", value=self.radius)

    def check(self, problem: DesignProblem) -> None:
        all_or_places(self.secrets, problem.domain.size, "secrets")
        if problem.domain.kind == "nodes":
            raise InputError(
                "needs places with coordinates: nodes of a graph have none", field="radius", value=self.radius
            )
        problem.domain.require_alike(problem.reports)

    def inequalities(self, table: cp.Variable, problem: DesignProblem) -> list[cp.Constraint]:
        import cvxpy as cp

        secrets = all_or_places(self.secrets, problem.domain.size, "secrets")
        # Inequality (3).
        return [cp.sum(cp.multiply(self.beyond(problem), table), axis=1)[secrets] <= self.share]

    def rows(self, problem: DesignProblem) -> SideRows:
        beyond, n = self.beyond(problem), problem.domain.size
        secrets = all_or_places(self.secrets, n, "secrets")
        # (3) holds at a secret without a report beyond the radius; its row would be zeros.
        secrets = secrets[beyond[secrets].any(axis=1)]
        noun = "error-cap (share): the probability of a far report"
        return rows_per_secret(beyond, limit=np.full(n, self.share), noun=noun, secrets=secrets)

    def beyond(self, problem: DesignProblem) -> Matrix:
        """1 if a report lies beyond the radius of a secret, else 0; (n, m).

        Examples
        --------
        >>> int(md.programs.ErrorCap(radius=1.0, share=0.5).beyond(md.load_problem("line", cells=3)).sum())
        2
        """
        return (problem.domain.euclidean_to(problem.reports) > self.radius).astype(float)


@dataclass(frozen=True, kw_only=True)
class ClaimedLimit(Constraint):
    """A limit that a mechanism claims next to its privacy; one `LimitSolver` solves all limits of a program."""

    @abstractmethod
    def for_problem(self, problem: DesignProblem) -> Self:
        """The limit as stored in a file, complete without the problem."""

    @abstractmethod
    def claims(self) -> list[dict[str, Any]]:
        """The limit, as `for_problem` returned it, as JSON for readers of an exported table."""

    @abstractmethod
    def sentence(self, domain: Domain) -> str:
        """The limit in words, over secrets in `domain`."""

    @classmethod
    @abstractmethod
    def from_file(cls, description: Mapping[str, Any]) -> Self:
        """The limit that a file describes; every value may be hostile."""


CONSTRAINTS: Registry[type[Constraint]] = Registry(
    "constraints", {kind.name: kind for kind in (ReportCap, RequiredReport, ErrorCap)}
)  # by the name in files


def constraint_from(description: Mapping[str, Any]) -> Constraint:
    """The constraint of a description; an invalid one raises KeyError, TypeError or InputError."""
    fields = dict(description)
    kind = CONSTRAINTS[fields.pop("constraint")]
    return kind.from_file(fields) if issubclass(kind, ClaimedLimit) else kind(**fields)


def all_or_places(numbers: Sequence[int] | None, size: int, field: str) -> Indices:
    """Place numbers (k,) from 0 to size - 1 in order, each once; all of them for None."""
    if numbers is None:
        return np.arange(size)
    places, message = np.ravel(np.asarray(numbers)), f"must be place numbers from 0 to {size - 1}"
    if not (places.size and np.issubdtype(places.dtype, np.integer)):
        raise InputError(message, field=field, value=numbers)
    refuse_entries((places < 0) | (places >= size), places, message, field=field)
    # A place given twice would give two equal side rows, whose multipliers are not unique.
    return np.unique(places).astype(np.int64)


def _entry_rows(
    problem: DesignProblem, report: int, secrets: Sequence[int] | None, *, sign: float, limit: float, noun: str
) -> SideRows:
    """Rows sign P(report|u) <= limit at `secrets`."""
    n, m = problem.domain.size, problem.reports.size
    entries = np.zeros((n, m))
    entries[:, report] = sign
    numbers = all_or_places(secrets, n, "secrets")
    return rows_per_secret(entries, limit=np.full(n, limit), noun=f"{noun}: report {report}", secrets=numbers)


def _check_share(value: float, field: str, *, remedy: str) -> None:
    # A limit of 0 would make reports impossible, which privacy then spreads to every secret (forbidden.py).
    if not 0 < value <= 1:
        raise InputError("must lie in (0, 1]", field=field, value=value, remedy=remedy)

r"""The optimal program with the user's own constraints, and constraints that say themselves in cvxpy and as side rows.

    minimise    sum_u prior(u) sum_y P(y|u) l(u, y)
    over        P (n, m)
    subject to  P >= 0,  sum_y P(y|u) = 1                       for every secret u
                P(y|u) <= e^{d_e} P(y|v)                        for every edge e = (u, v), both ways, and report y
                every constraint that is given

Source: the program of 003, equations (6.22)-(6.24), with further constraints.
Known: at least the value of the optimal program, and equal to it where its mechanism satisfies the constraints.

A constraint is of one of these kinds, of one that a capability adds to `CONSTRAINTS`, or a function from the cvxpy
variable P (n, m) to a list of cvxpy inequalities in P alone.

    ReportCap       P(y|u) <= cap                                for some reports y, at some secrets u
    RequiredReport  P(y|u) >= least                              for a report y, at some secrets u
    ErrorCap        sum over y with |u - y| > radius of P(y|u) <= share      for some secrets u

A `ClaimedLimit` is part of what a mechanism claims. It has a solver of its own (solvers/limits.py).

Affine inequalities become side rows, with a bound that takes them into account. Other convex ones (maxima and absolute
values by HiGHS; squares, entropies and other cones by Clarabel) are solved through the statement, and the bound takes
them into account by affine rows that they imply (solvers/tangents.py). Equalities are refused: a table of integers
meets no equality in real numbers exactly.

Forbidden reports. Every edge is finite, so P(y|u) = 0 forces P(y|v) = 0 for every neighbour v and, the domain being
connected, for every secret: a report that is impossible at one secret is impossible at all. Such a report leaves the
set of reports, by `without_reports`; a cap of 0 is refused, and says so. For the same reason an error beyond a radius
can be made improbable, never impossible, as long as some report lies beyond it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mechdesign.base.registry import Registry
from mechdesign.base.validation import check_whole
from mechdesign.errors import InputError
from mechdesign.problem.domain import Domain
from mechdesign.problem.losses import TableLoss
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.coupled import Constraint, Coupled, RowConstraint, SideRows, rows_per_secret, stack_rows
from mechdesign.programs.program import place_numbers
from mechdesign.programs.statements import expected_loss, private_table

if TYPE_CHECKING:
    import cvxpy as cp


@dataclass(frozen=True, kw_only=True)
class ReportCap(RowConstraint):
    """The constraint P(y|u) <= cap.

    Parameters
    ----------
    cap : float
        0 < cap <= 1.
    reports, secrets : sequences of int
        At these; all by default.

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
        _places(self.secrets, problem.domain.size, "secrets")
        _places(self.reports, problem.reports.size, "reports")

    def stated(self, table: cp.Variable, problem: DesignProblem) -> list[cp.Constraint]:
        secrets = _places(self.secrets, problem.domain.size, "secrets")
        return [table[secrets, int(y)] <= self.cap for y in _places(self.reports, problem.reports.size, "reports")]

    def rows(self, problem: DesignProblem) -> SideRows:
        reports = _places(self.reports, problem.reports.size, "reports")
        parts = [_entry_rows(problem, int(y), self.secrets, 1.0, self.cap, "cap") for y in reports]
        return stack_rows(parts, problem.domain.size * problem.reports.size)


@dataclass(frozen=True, kw_only=True)
class RequiredReport(RowConstraint):
    """The constraint P(y|u) >= least for one report.

    Parameters
    ----------
    report : int
        The report y.
    least : float
        0 < least < 1.
    secrets : sequence of int
        At these secrets; all by default.

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
        object.__setattr__(self, "report", check_whole(self.report, "report", least=0))
        object.__setattr__(self, "least", float(self.least))
        _check_share(self.least, "least", remedy="give the least probability that the report must have")

    def check(self, problem: DesignProblem) -> None:
        _places(self.secrets, problem.domain.size, "secrets")
        _places([self.report], problem.reports.size, "report")

    def stated(self, table: cp.Variable, problem: DesignProblem) -> list[cp.Constraint]:
        (report,) = _places([self.report], problem.reports.size, "report")
        return [table[_places(self.secrets, problem.domain.size, "secrets"), int(report)] >= self.least]

    def rows(self, problem: DesignProblem) -> SideRows:
        (report,) = _places([self.report], problem.reports.size, "report")
        return _entry_rows(problem, int(report), self.secrets, -1.0, -self.least, "least")


@dataclass(frozen=True, kw_only=True)
class ErrorCap(RowConstraint):
    """The constraint that a report lies further than a radius from the secret with probability at most a share.

    Parameters
    ----------
    radius : float
        In units of length.
    share : float
        Probability.
    secrets : sequence of int
        At these secrets; all by default.

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
        _places(self.secrets, problem.domain.size, "secrets")
        if problem.domain.kind == "nodes":
            raise InputError("nodes of a graph have no place", field="radius", value=self.radius)
        problem.domain.require_alike(problem.reports)

    def stated(self, table: cp.Variable, problem: DesignProblem) -> list[cp.Constraint]:
        import cvxpy as cp

        secrets = _places(self.secrets, problem.domain.size, "secrets")
        return [cp.sum(cp.multiply(self.beyond(problem), table), axis=1)[secrets] <= self.share]

    def rows(self, problem: DesignProblem) -> SideRows:
        beyond, n = self.beyond(problem), problem.domain.size
        secrets = _places(self.secrets, n, "secrets")
        secrets = secrets[beyond[secrets].any(axis=1)]
        what = "error-cap (share): the probability of a far report"
        return rows_per_secret(beyond, limit=np.full(n, self.share), what=what, secrets=secrets)

    def beyond(self, problem: DesignProblem) -> NDArray[np.float64]:
        """1 where a report lies beyond the radius of a secret, else 0; (n, m)."""
        return (problem.domain.euclidean_to(problem.reports) > self.radius).astype(float)


@dataclass(frozen=True, kw_only=True)
class ClaimedLimit(Constraint):
    """A limit that a mechanism claims: exports state it as data, reports in a sentence, and it is verified in integers.

    Its rows need not be listed: all limits of a program are solved by one `LimitSolver`.
    """

    @abstractmethod
    def for_problem(self, problem: DesignProblem) -> Self:
        """The limit as a file keeps it, complete without the problem."""

    @abstractmethod
    def claims(self) -> list[dict[str, Any]]:
        """The limit as JSON, for readers of an exported table; of one that `for_problem` returned."""

    @abstractmethod
    def sentence(self, domain: Domain) -> str:
        """The limit in words, over secrets in `domain`."""

    @classmethod
    @abstractmethod
    def from_file(cls, description: Mapping[str, Any]) -> Self:
        """The limit that a file describes, every value of which may be hostile."""


CONSTRAINTS: Registry[type[Constraint]] = Registry(
    "constraints", {kind.name: kind for kind in (ReportCap, RequiredReport, ErrorCap)}
)  # by the name in files


def constraint_from(description: Mapping[str, Any]) -> Constraint:
    """The constraint that `Constraint.describe` described. Raises: KeyError, TypeError or InputError for another."""
    fields = dict(description)
    kind = CONSTRAINTS[fields.pop("constraint")]
    return kind.from_file(fields) if issubclass(kind, ClaimedLimit) else kind(**fields)


def claimed_limits(program: str, parameters: Mapping[str, Any]) -> list[ClaimedLimit]:
    """The limits that the file of a mechanism claims, by its program and parameters."""
    descriptions = parameters.get("constraints", []) if program == Constrained.name else []
    limits = []
    for description in descriptions:
        fields = dict(description)
        kind = CONSTRAINTS.get(fields.pop("constraint"))
        if kind is not None and issubclass(kind, ClaimedLimit):
            limits.append(kind.from_file(fields))
    return limits


def without_reports(problem: DesignProblem, forbidden: Sequence[int]) -> DesignProblem:
    """The problem with some reports left out: no secret may make them. The reports that stay are renumbered in order.

    Parameters
    ----------
    problem : DesignProblem
        The problem.
    forbidden : sequence of int
        Numbers of reports.

    Returns
    -------
    DesignProblem
        The smaller problem.

    Raises
    ------
    InputError
        For a number out of range, or if fewer than two reports stay.

    Examples
    --------
    >>> md.programs.without_reports(md.load_problem("line", cells=4), [3]).reports.size
    3
    """
    numbers = _places(forbidden, problem.reports.size, "forbidden")
    places = np.setdiff1d(np.arange(problem.reports.size), numbers)
    if len(places) < 2:
        value = f"{len(numbers)} of {problem.reports.size}"
        raise InputError("at least two reports must stay", field="forbidden", value=value)
    kind: Literal["nodes", "points"] = "nodes" if problem.reports.kind == "nodes" else "points"
    reports = Domain(kind=kind, points=problem.reports.points[places], unit=problem.reports.unit)
    loss = problem.loss
    if isinstance(loss, TableLoss):
        loss = replace(loss, values=problem.loss_matrix[:, places])
    return replace(problem, reports=reports, loss=loss)


def _places(numbers: Sequence[int] | None, size: int, field: str) -> NDArray[np.int64]:
    """Place numbers (k,) in order, each once; all of them for None."""
    return np.arange(size) if numbers is None else place_numbers(numbers, size, field)


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


Given = Constraint | Callable[["cp.Variable"], Sequence["cp.Constraint"]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Constrained(Coupled):
    """The optimal program with constraints of your own.

    Its statement is in `mechdesign.programs.constrained`.

    Parameters
    ----------
    problem : DesignProblem
        Secrets, metric, prior and loss.
    constraints : sequence
        `ReportCap`, `ErrorCap`, `RequiredReport`, or functions of the cvxpy variable (n, m).

    Examples
    --------
    >>> cap = md.programs.ReportCap(cap=0.6)
    >>> program = md.programs.Constrained(md.load_problem("discrete", secrets=3), constraints=[cap])
    >>> float(md.probabilities(md.solve(program)).max()) <= 0.6
    True
    """

    constraints: Sequence[Given]
    name = "constrained"

    def __post_init__(self) -> None:
        for constraint in self.constraints:
            if not (isinstance(constraint, Constraint) or callable(constraint)):
                message = "must be constraints as ReportCap(...), or functions as lambda table: [table[0, 0] <= 0.1]"
                raise InputError(message, field="constraints", value=type(constraint).__name__)
            if isinstance(constraint, Constraint):
                constraint.check(self.problem)
        stated = [
            constraint.for_problem(self.problem) if isinstance(constraint, ClaimedLimit) else constraint
            for constraint in self.constraints
        ]
        object.__setattr__(self, "constraints", stated)
        self.own  # noqa: B018 - the functions of the user are called here, so that their errors name their line

    @cached_property
    def _private(self) -> tuple[cp.Variable, list[cp.Constraint]]:
        return private_table(self.problem)

    @property
    def table(self) -> cp.Variable:
        """P (n, m), the variable of the statement."""
        return self._private[0]

    @cached_property
    def own(self) -> list[cp.Constraint]:
        """The inequalities of the user's functions, checked."""
        functions = [constraint for constraint in self.constraints if not isinstance(constraint, Constraint)]
        returned = (function(self.table) for function in functions)
        listed = (each if isinstance(each, (list, tuple)) else [each] for each in returned)
        return [_checked(inequality, self.table) for each in listed for inequality in each]

    @property
    def beyond_rows(self) -> list[cp.Constraint]:
        """The inequalities among `own` that are convex but not affine."""
        return [own for own in self.own if not own.expr.is_affine()]

    def statement(self, margin: float = 0.0) -> cp.Problem:
        """The program in cvxpy, the given constraints with an absolute margin."""
        import cvxpy as cp

        inequalities = list(self.own)
        for constraint in self.constraints:
            inequalities += constraint.stated(self.table, self.problem) if isinstance(constraint, Constraint) else []
        constraints = [*self._private[1], *(constraint.expr <= -margin for constraint in inequalities)]
        return cp.Problem(cp.Minimize(expected_loss(self.table, self.problem)), constraints)

    def parameters(self) -> dict[str, Any]:
        known = [constraint for constraint in self.constraints if isinstance(constraint, Constraint)]
        described = [constraint.describe() for constraint in known]
        return {"constraints": described, "own_constraints": [str(own) for own in self.own]}

    @property
    def limits(self) -> list[ClaimedLimit]:
        """The claimed limits among the constraints."""
        return [constraint for constraint in self.constraints if isinstance(constraint, ClaimedLimit)]

    def side_rows(self) -> SideRows:
        """The side rows without those of claimed limits."""
        parts = [each.rows(self.problem) for each in self.constraints if isinstance(each, RowConstraint)]
        parts += [_affine_rows(own, self.table, k) for k, own in enumerate(self.own) if own.expr.is_affine()]
        return stack_rows(parts, self.problem.domain.size * self.problem.reports.size)


def _checked(inequality: cp.Constraint, table: cp.Variable) -> cp.Constraint:
    from cvxpy.constraints.nonpos import Inequality

    if not isinstance(inequality, Inequality):
        message = "must be inequalities: a table of integers meets no equality, write two with a tolerance"
        raise InputError(message, field="constraints", value=inequality)
    if [variable.id for variable in inequality.variables()] != [table.id] or inequality.parameters():
        raise InputError("may contain the table and numbers only", field="constraints", value=inequality)
    if not inequality.is_dcp():
        raise InputError("must be convex by the rules of cvxpy (DCP)", field="constraints", value=inequality)
    return inequality


def _affine_rows(own: cp.Constraint, table: cp.Variable, number: int) -> SideRows:
    """expr(P) <= 0 for an affine expr as rows over P flattened row by row; cvxpy flattens column by column."""
    n, m = table.shape
    value = table.value
    table.value = np.zeros((n, m))
    constant = np.atleast_1d(np.asarray(own.expr.value, float)).ravel(order="F")
    gradient = sp.csr_array(sp.csc_array(own.expr.grad[table]).T)
    table.value = value
    place = np.arange(n * m).reshape((m, n)).T.ravel()  # column-major position of every entry, row by row
    matrix = sp.csr_array(gradient[:, place])
    names = [f"constraints: your inequality {number}, entry {k}" for k in range(len(constant))]
    return SideRows(matrix=matrix, limit=-constant, share=np.zeros(len(constant)), names=names)

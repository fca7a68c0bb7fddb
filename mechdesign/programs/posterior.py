r"""Posterior caps: after every report no disc of radius R contains more than a share of the posterior.

    sum_{u in B} N(u) P(y|u) <= c_B sum_u N(u) P(y|u)           for every report y and every disc B

N(u) persons live at secret u, and N / sum N is the prior of whoever reads the report. `PosteriorCap` has c_B = beta for
all discs, `PosteriorLift` c_B = k p(B), p(B) the share of the persons in B: one report multiplies the probability of
a disc by k at most. Discs: problem/discs.py. Columns of a table that keep caps and metric are a convex cone: mixing,
merging and post-processing of reports keep them. Two reports of one person do not.

1. A table exists exactly if beta >= max_B p(B), whatever the metric. If: the constant report. Only if: the rows of
   one B summed over y say p(B) <= beta.
2. Wrong numbers. Let q be the true prior, with max_u q/p <= k min_u q/p. Then sum_B q P <= k m beta / (1 - beta) times
   sum_{not B} q P / m, m = min q/p, so that the posterior under q is at most k beta / (1 + (k - 1) beta). A share s is
   kept for every such q by designing at s / (k - (k - 1) s).
3. Several priors, by day and by night: rows of each. Those of every mixture of them follow, which are their mixtures.
4. Whoever guesses a position after a report is right within R with probability beta at most, per report.

Integers. With whole persons, c_B = a/b and P = A / 2^62 a row says b sum_B N A <= a sum N A. sum N < 2^32, A <= 2^62
and b < 2^16 keep both sides of a cap below 2^110. Sums of N times the halves of 31 bits of A stay below 2^63; the sides
are compared in floating point where they differ by 2^-40 of themselves, and else as Python integers.

Raising. A column that breaks rows keeps them after a constant theta is added to it, where p(B) < c_B:

    theta = max_B sum_u p(u) (1_B(u) - c_B) P(y|u) / (c_B - p(B)),

and a constant added to a column is the same in every row: tables divided by 1 + sum theta have rows that sum to 1.

Source: ours. The least expected error of an adversary is of Shokri et al. 2012, metric and average error together of
Shokri 2015; the rho1-to-rho2 breach is of Evfimievski et al. 2003.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.arguments import positive
from mechdesign.errors import InfeasibleError, InputError
from mechdesign.problem.discs import Centres, check_centres, disc_sets
from mechdesign.problem.domain import Domain
from mechdesign.problem.problem import DesignProblem
from mechdesign.programs.coupled import Constraint, SideRows, stack_rows

if TYPE_CHECKING:
    import cvxpy as cp

MOST_PERSONS = 2**32  # all of them together are fewer: sums with halves of 31 bits stay below 2^63
MOST_PARTS = 2**16  # denominators of shares are below it
_WEIGHTS = 2**31  # sum of the integers that stand for a prior
_ALIKE = 2.0**-40  # relative difference of two sides from which floating point tells them apart
LEAST_ROOM = 1e-9  # between a limit and the share before any report, relative: less leaves nothing to a solver
_SHARE = re.compile(r"[0-9]{1,20}(/[0-9]{1,20}|\.[0-9]{1,20})?(?!\n)")
_HALF = np.uint64(31)
_BLOCK = 1 << 24  # sums that are compared at a time


@dataclass(frozen=True, kw_only=True, eq=False)
class Caps:
    """The rows of one constraint under one prior: persons (n,) of sum < 2^32, the sets (k, n) of discs, and c_B (k,)
    below 1, as exact fractions.
    """

    persons: NDArray[np.int64]
    sets: sp.csr_array
    limits: Sequence[Fraction]
    what: str

    @cached_property
    def prior(self) -> NDArray[np.float64]:
        """The prior p (n,)."""
        return self.persons / float(self.persons.sum())

    @cached_property
    def limit(self) -> NDArray[np.float64]:
        """c_B (k,) as doubles."""
        return np.array([float(limit) for limit in self.limits])

    @cached_property
    def within(self) -> NDArray[np.float64]:
        """p(B) (k,)."""
        return np.asarray(self.sets @ self.prior)

    def overshoot(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of the posterior in each disc over c_B, less 1, (k, m) of a table (n, m)."""
        joint = self.prior[:, None] * table
        return np.asarray((self.sets @ joint) / (self.limit[:, None] * np.maximum(joint.sum(axis=0), 1e-300)) - 1)

    def need(self, table: NDArray[np.float64], tighter: float) -> NDArray[np.float64]:
        """The theta (m,) of the module docstring for limits lower by the share `tighter`; 0 where they hold."""
        joint, limit = self.prior[:, None] * table, self.limit * (1 - tighter)
        over = (self.sets @ joint) - limit[:, None] * joint.sum(axis=0)
        return np.asarray((over / (limit - self.within)[:, None]).max(axis=0, initial=0.0))

    def breaches(self, mass: NDArray[np.uint64]) -> int:
        """How many (report, disc) pairs of integers (n, m) break their row, exactly."""
        count, step = 0, max(1, _BLOCK // max(1, self.sets.shape[0]))
        over = np.array([limit.numerator for limit in self.limits], object)
        under = np.array([limit.denominator for limit in self.limits], object)
        weighted = self.sets * self.persons[None, :]
        for start in range(0, mass.shape[1], step):
            part = mass[:, start : start + step]
            low, high = (half.astype(np.int64) for half in (part & np.uint64(2**31 - 1), part >> _HALF))
            inside, whole = (weighted @ low, weighted @ high), (self.persons @ low, self.persons @ high)
            left = inside[0] + inside[1] * 2.0**31
            right = self.limit[:, None] * (whole[0] + whole[1] * 2.0**31)
            disc, report = np.nonzero(left > right * (1 - _ALIKE))
            some, all_of_it = (
                parts[0][at].astype(object) + parts[1][at].astype(object) * 2**31
                for parts, at in ((inside, (disc, report)), (whole, report))
            )
            count += int(np.count_nonzero(some * under[disc] > all_of_it * over[disc]))
        return count

    def rows(self, report: NDArray[np.int64], disc: NDArray[np.int64], reports: int, tighter: float = 0.0) -> SideRows:
        """The rows of (report, disc) pairs as side rows of limit 0 over tables (n, reports), coefficients up to 1, for
        limits lower by the share `tighter`.
        """
        n, k = len(self.persons), len(report)
        inside = self.sets[disc].toarray()
        data = self.prior / self.prior.max() * (inside - self.limit[disc][:, None] * (1 - tighter))
        columns = np.arange(n) * reports + report[:, None]
        matrix = sp.csr_array((data.ravel(), columns.ravel(), np.arange(0, k * n + 1, n)), shape=(k, n * reports))
        names = [f"{self.what}: report {y}, disc {b}" for y, b in zip(report, disc, strict=True)]
        return SideRows(matrix=matrix, limit=np.zeros(k), share=np.zeros(k), names=names)


@dataclass(frozen=True, kw_only=True)
class DiscConstraint(Constraint):
    """A limit on the share of the posterior in discs: the fields that both kinds of the module docstring have.

    radius in the unit of the domain. people: whole persons at each secret (n,), or those of several priors (k, n), each
    of which the limit is for; by default the prior of the problem, in parts of 2^31. centres: of discs, "anywhere" on a
    grid, or "places", the places alone.
    """

    radius: float
    people: ArrayLike | None = None
    centres: Centres = "anywhere"

    def __post_init__(self) -> None:
        check_centres(self.centres)
        positive(self.radius, "radius")

    @property
    @abstractmethod
    def exact_limit(self) -> tuple[str, Fraction]:
        """What is limited, "share" or "factor", and to what."""

    @abstractmethod
    def limits(self, inside: NDArray[np.int64], total: int) -> list[Fraction]:
        """c_B of discs with `inside` persons (k,) of `total`."""

    def counted(self, problem: DesignProblem) -> NDArray[np.int64]:
        """Whole persons (priors, n). Raises: InputError for what is none."""
        if self.people is None:
            return np.rint(problem.prior_array * _WEIGHTS).astype(np.int64)[None]
        return whole_persons(self.people, problem.domain.size)

    def caps(self, problem: DesignProblem) -> list[Caps]:
        """The rows for each prior; a disc whose limit is 1 or more, or where nobody lives, has none.

        Raises: InfeasibleError, naming the disc, where even a constant report breaks one; InputError as `disc_sets`.
        """
        sets, made = disc_sets(problem.domain, self.radius, self.centres), []
        for number, persons in enumerate(self.counted(problem)):
            total, inside = int(persons.sum()), np.asarray(sets @ persons)
            limits = self.limits(inside, total)
            kept = np.array([k for k, limit in enumerate(limits) if limit < 1 and inside[k] > 0], int)
            caps = Caps(
                persons=persons,
                sets=sets[kept],
                limits=[limits[k] for k in kept],
                what=self.name + (f" of prior {number}" if number else ""),
            )
            if len(kept) and (caps.within > caps.limit * (1 - LEAST_ROOM)).any():
                raise self._hopeless(problem.domain, caps)
            made.append(caps)
        return made

    def _hopeless(self, domain: Domain, caps: Caps) -> InfeasibleError:
        disc = int(np.argmax(caps.within - caps.limit))
        at = ", ".join(f"{x:.6g}" for x in domain.points[caps.sets[[disc]].indices].mean(axis=0))
        share, unit = float(caps.within[disc]), "" if domain.unit == "1" else f" {domain.unit}"
        return InfeasibleError(
            f"{caps.what}: the disc of {self.radius:g}{unit} about ({at}) contains {100 * share:.4g} % of the people "
            "before any report, and no mechanism keeps to less",
            field="share",
            value=f"{100 * caps.limit[disc]:.6g} %",
            remedy=f"ask for {math.floor(1e4 * share + 1) / 100:g} % or more, or for a smaller radius",
        )

    def stated(self, table: cp.Variable, problem: DesignProblem) -> list[cp.Constraint]:
        made = self.caps(problem)
        return [((caps.sets.toarray() - caps.limit[:, None]) * caps.prior) @ table <= 0 for caps in made]

    def rows(self, problem: DesignProblem) -> SideRows:
        made, m = self.caps(problem), problem.reports.size
        discs = [caps.sets.shape[0] for caps in made]
        parts = [
            caps.rows(np.repeat(np.arange(m), k), np.tile(np.arange(k), m), m)
            for caps, k in zip(made, discs, strict=True)
        ]
        return stack_rows(parts, problem.domain.size * m)

    def claims(self) -> list[dict[str, Any]]:
        """The limits as data for whoever checks a table without this package, one for each prior: radius, centres,
        people, and share or factor as [numerator, denominator]. Of a constraint that names its people.
        """
        name, value = self.exact_limit
        limit = {"radius": self.radius, "centres": self.centres, name: [value.numerator, value.denominator]}
        return [{**limit, "people": persons} for persons in np.atleast_2d(np.asarray(self.people)).tolist()]

    def described_for(self, problem: DesignProblem) -> dict[str, Any]:
        """`describe`, the persons of the prior written out: a file names them, whatever becomes of its prior."""
        return {**self.describe(), "people": self.counted(problem).tolist()}

    def describe(self) -> dict[str, Any]:
        kept = {field.name: getattr(self, field.name) for field in fields(self)}
        shares = {
            name: f"{value.numerator}/{value.denominator}"
            for name, value in kept.items()
            if isinstance(value, Fraction)
        }
        people = None if self.people is None else np.atleast_2d(np.asarray(self.people)).tolist()
        return {"constraint": self.name, **kept, **shares, "people": people}


@dataclass(frozen=True, kw_only=True)
class PosteriorCap(DiscConstraint):
    """The constraint that after every report at most a share of the posterior lies in any disc of a radius.

    Parameters
    ----------
    radius : float
        In units of length.
    people : (n,) int array
        Who lives where; by default the prior of the problem.
    centres : {"anywhere", "places"}
        Where discs may be centred.
    share : Fraction, float or str
        A fraction such as Fraction(1, 5), "1/5", "20%" or 0.2, its denominator below 2^16.
    wrong_by : Fraction, float or str
        k: the share is kept for every prior q with max q/p <= k min q/p.

    Examples
    --------
    >>> domain = md.Domain.grid((2, 2), 1.0)
    >>> problem = md.DesignProblem(domain, md.Euclidean(2.0), md.priors.uniform(domain), md.losses.Distance())
    >>> cap = md.programs.PosteriorCap(radius=0.4, share="1/2")
    >>> table = md.probabilities(md.solve(md.programs.Constrained(problem, constraints=[cap])))
    >>> float((table / table.sum("secret")).max()) <= 0.5
    True
    """

    share: Fraction | float | str
    wrong_by: Fraction | float | str = 1
    name = "posterior-cap"

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in ("share", "wrong_by"):
            object.__setattr__(self, field, exact_fraction(getattr(self, field), field))
        if not 0 < self.exact < 1:
            raise InputError("must lie in (0, 1)", field="share", value=self.exact)
        if self.wrong < 1:
            raise InputError("must be 1 or more", field="wrong_by", value=self.wrong)

    @property
    def exact(self) -> Fraction:
        """The share."""
        return Fraction(self.share)

    @property
    def wrong(self) -> Fraction:
        """The factor k."""
        return Fraction(self.wrong_by)

    @property
    def designed(self) -> Fraction:
        """The share under the numbers themselves that keeps it under all others, denominator below 2^16."""
        share = self.exact / (self.wrong - (self.wrong - 1) * self.exact)
        if share.denominator < MOST_PARTS:
            return share
        return Fraction(math.floor(share * (MOST_PARTS - 1)), MOST_PARTS - 1)

    @property
    def exact_limit(self) -> tuple[str, Fraction]:
        return "share", self.designed

    def limits(self, inside: NDArray[np.int64], total: int) -> list[Fraction]:
        return [self.designed] * len(inside)


@dataclass(frozen=True, kw_only=True)
class PosteriorLift(DiscConstraint):
    """The constraint that every report multiplies the probability of any disc of a radius by a factor at most.

    Over discs of single places it is maximal leakage report by report: ln factor bounds it.

    Parameters
    ----------
    radius : float
        In units of length.
    people : (n,) int array
        Who lives where; by default the prior of the problem.
    centres : {"anywhere", "places"}
        Where discs may be centred.
    factor : Fraction, float or str
        A fraction from 1 on.

    Examples
    --------
    >>> domain = md.Domain.grid((2, 2), 1.0)
    >>> problem = md.DesignProblem(domain, md.Euclidean(2.0), md.priors.uniform(domain), md.losses.Distance())
    >>> cap = md.programs.PosteriorLift(radius=0.4, factor=2)
    >>> table = md.probabilities(md.solve(md.programs.Constrained(problem, constraints=[cap])))
    >>> float(4 * (table / table.sum("secret")).max()) <= 2
    True
    """

    factor: Fraction | float | str
    name = "posterior-lift"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "factor", exact_fraction(self.factor, "factor"))
        if not Fraction(self.factor) > 1:
            raise InputError(
                "must be above 1: at 1 reports tell nothing about discs", field="factor", value=self.factor
            )

    @property
    def exact_limit(self) -> tuple[str, Fraction]:
        return "factor", Fraction(self.factor)

    def limits(self, inside: NDArray[np.int64], total: int) -> list[Fraction]:
        return [Fraction(self.factor) * Fraction(int(count), total) for count in inside]


def exact_fraction(value: Fraction | float | str, field: str) -> Fraction:
    """A share or factor as a fraction: "1/5", "20%", "0.2" and the double 0.2 are all 1/5.

    Raises: InputError for what is no number >= 0, and for numerators and denominators of 2^16 and more.
    """
    text = str(value).strip()
    percent, digits = text.endswith("%"), text.removesuffix("%").strip()
    if isinstance(value, bool) or not _SHARE.fullmatch(digits) or digits.endswith("/0"):
        raise InputError("must be a share such as 1/5, 20% or 0.2", field=field, value=value)
    exact = Fraction(digits) / (100 if percent else 1)
    if max(exact.numerator, exact.denominator) >= MOST_PARTS:
        remedy = "use a fraction of smaller numbers, or fewer digits"
        raise InputError(f"must be a fraction of numbers below {MOST_PARTS}", field=field, value=value, remedy=remedy)
    return exact


def whole_persons(people: ArrayLike, size: int) -> NDArray[np.int64]:
    """Whole persons (priors, size) of (size,) or (priors, size). Raises: InputError for others, and where a row sums to
    0 or to 2^32 and more, compared before any sum of 64 bits wraps.
    """
    counts = np.atleast_2d(np.asarray(people))
    if counts.ndim != 2 or counts.shape[1] != size or not len(counts):
        raise InputError(f"must be persons at each of {size} places", field="people", value=f"shape {counts.shape}")
    if not np.issubdtype(counts.dtype, np.integer):
        remedy = "round them, and keep one person where somebody lives"
        raise InputError("must be integers", field="people", value=counts.dtype, remedy=remedy)
    if counts.min() < 0 or int(counts.max()) >= MOST_PERSONS:
        value = f"{counts.min()} to {counts.max()}"
        raise InputError("must be from 0 to 2^32 - 1 at a place", field="people", value=value)
    totals = counts.astype(np.int64).sum(axis=1)  # fewer than 2^31 places of less than 2^32
    if totals.min() <= 0 or int(totals.max()) >= MOST_PERSONS:
        value = f"{totals.min()} to {totals.max()}"
        raise InputError("must be from 1 to 2^32 - 1 together", field="people", value=value)
    return counts.astype(np.int64)


def posterior_shares(table: ArrayLike, caps: Caps) -> NDArray[np.float64]:
    """The largest share of the posterior in one disc after each report (m,), of a table or of masses (n, m)."""
    joint = caps.prior[:, None] * np.asarray(table, float)
    return np.asarray((caps.sets @ joint).max(axis=0, initial=0.0) / np.maximum(joint.sum(axis=0), 1e-300))

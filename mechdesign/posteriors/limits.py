"""Posterior caps: after every report no disc of radius R contains more than a share of the posterior.

    sum_{u in B} N(u) P(y|u) <= c_B sum_u N(u) P(y|u)           for every report y and every disc B

N(u) persons live at secret u, and N / sum N is the prior of the adversary. `PosteriorCap` has c_B = beta for all discs,
`PosteriorLift` c_B = k p(B), p(B) the share of the persons in B. By area B is any set of as many cells as are together
no larger than the disc, and the sum inside is that of the largest N(u) P(y|u). The columns that satisfy caps and metric
are a convex cone: mixing, merging and post-processing of reports stay in it. Two reports of one person do not.

1. A table exists exactly if beta >= max_B p(B), whatever the metric.
2. A design at s / (r - (r - 1) s), r = k^2, satisfies a share s if every count is between 1/k and k times the truth.
3. Several priors, by day and by night, each have their rows. Those of mixtures of the priors follow.
4. An adversary who guesses a position is right within R with probability beta at most, per report.

Source: ours. An adversary's least expected error: Shokri et al. 2012; with the average error: Shokri 2015; the
rho1-to-rho2 breach: Evfimievski et al. 2003.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Indices
from mechdesign.base.json_fields import check_keys
from mechdesign.base.labels import values_in_place_order
from mechdesign.base.validation import check_positive
from mechdesign.errors import InfeasibleError, InputError
from mechdesign.posteriors.discs import Centres, cells_of_area, check_centres, disc_sets
from mechdesign.posteriors.persons import whole_persons
from mechdesign.posteriors.rows import AreaCaps, Caps, DiscCaps
from mechdesign.posteriors.shares import exact_fraction, fraction_below, share_to_design
from mechdesign.posteriors.words import cap_sentence, lift_sentence
from mechdesign.problem.domain import Domain
from mechdesign.problem.problem import DesignProblem
from mechdesign.problem.vocabulary import disc_phrase, shape_of, words_of
from mechdesign.programs.constraints import ClaimedLimit

if TYPE_CHECKING:
    import cvxpy as cp

MIN_SLACK = 1e-9  # relative, between a limit and the share before any report: with less a solver finds no interior
_SHARE_IN_FILES = re.compile(r"[0-9]{1,5}/[0-9]{1,5}")
_WIDEST = 1e150  # of a radius in a file: its square is a number


@dataclass(frozen=True, kw_only=True)
class DiscConstraint(ClaimedLimit):
    """A limit on the posterior in discs, with the fields of `PosteriorCap`."""

    radius: float
    people: ArrayLike | None = None
    centres: Centres = "anywhere"
    of_every_set: ClassVar[bool] = False  # True if the limit of a set does not follow from that of a larger one

    def __post_init__(self) -> None:
        check_centres(self.centres)
        check_positive(self.radius, "radius")
        if self.people is not None:
            object.__setattr__(self, "people", values_in_place_order(self.people, "people"))

    @property
    @abstractmethod
    def exact_limit(self) -> tuple[str, Fraction]:
        """The kind of limit, "share" or "factor", and its value."""

    @abstractmethod
    def limits(self, inside: Indices, total: int) -> list[Fraction]:
        """c_B of discs with `inside` persons (k,) of `total`."""

    @abstractmethod
    def for_rounded_counts(self, persons: Indices, spread: Fraction) -> Self:
        """The stricter limit under rounded counts that implies this one under the exact counts (persons.py)."""

    def for_problem(self, problem: DesignProblem) -> Self:
        people = problem.prior_array if self.people is None else self.people
        persons, spread = whole_persons(people, problem.domain.size)
        return replace(self, people=persons) if spread == 1 else self.for_rounded_counts(persons, spread)

    def caps(self, problem: DesignProblem) -> list[Caps]:
        """The rows for each prior; InfeasibleError if a constant report breaks one."""
        if self.centres == "area":
            cells = cells_of_area(problem.domain, self.radius)
        else:
            sets = disc_sets(problem.domain, self.radius, self.centres, every=self.of_every_set)
        # Whole persons first: the rows are checked in integers, under a limit that allows for the rounding.
        limit, rows = self.for_problem(problem), list[Caps]()
        for number, persons in enumerate(np.asarray(limit.people)):
            name = f"{self.name} of prior {number}" if number else self.name
            if self.centres == "area":
                rows.append(AreaCaps(persons=persons, name=name, cells=cells, limit=limit.exact_limit[1]))
            else:
                rows.append(limit._disc_caps(name, persons, sets))
            # Fact 1: the constant report decides whether any table exists. The rows of one B summed over y say
            # p(B) <= beta.
            if rows[-1].slack < MIN_SLACK:
                raise self._infeasible(problem.domain, rows[-1])
        return rows

    def _disc_caps(self, name: str, persons: Indices, sets: sp.csr_array) -> DiscCaps:
        inside = np.asarray(sets @ persons)
        limits = self.limits(inside, int(persons.sum()))
        # Limits of 1 or more hold for any table, and so do those of empty discs. A factor has both kinds.
        binding = [k for k, limit in enumerate(limits) if limit < 1 and inside[k] > 0]
        return DiscCaps(
            persons=persons, name=name, sets=sets[np.array(binding, int)], limits=[limits[k] for k in binding]
        )

    def _infeasible(self, domain: Domain, caps: Caps) -> InfeasibleError:
        unit = "" if domain.unit == "1" else f" {domain.unit}"
        if isinstance(caps, AreaCaps):
            share, limit = float(caps.shares(caps.prior[:, None])[0]), float(caps.limit)
            cells = f"{caps.cells} {words_of(domain).many}"
            where = f"{cells}, no larger together than a disc of radius {self.radius:g}{unit}, contain"
        else:
            assert isinstance(caps, DiscCaps)
            disc = int(np.argmax(caps.prior_inside - caps.limit))
            share, limit = float(caps.prior_inside[disc]), float(caps.limit[disc])
            middle = ", ".join(f"{x:.6g}" for x in domain.points[caps.sets[[disc]].indices].mean(axis=0))
            where = f"the {disc_phrase(shape_of(domain), f'{self.radius:g}{unit}')} about ({middle}) contains"
        return InfeasibleError(
            f"{caps.name}: {where} {100 * share:.4g} % of the people before any report; no mechanism can have "
            "a smaller limit",
            field="share",
            value=f"{100 * limit:.6g} %",
            remedy=f"pass {math.floor(1e4 * share + 1) / 100:g} % or more, or a smaller radius",
        )

    def inequalities(self, table: cp.Variable, problem: DesignProblem) -> list[cp.Constraint]:
        return [inequality for caps in self.caps(problem) for inequality in caps.inequalities(table)]

    def claims(self) -> list[dict[str, Any]]:
        name, value = self.exact_limit
        limit = {"radius": self.radius, "centres": self.centres, name: [value.numerator, value.denominator]}
        return [{**limit, "people": persons} for persons in np.atleast_2d(np.asarray(self.people)).tolist()]

    # Limits in files. Every reader refuses a limit that breaks one of these rules: `from_file`, the page, the client,
    # and for exported tables the stand-alone script.
    #
    # * A limit has exactly the names radius, centres and people, and either share and wrong_by or factor.
    #   `constraint` has its kind. In exported tables it has share (as designed) or factor alone, as two integers.
    # * radius: a number, positive and below 1e150. centres: anywhere, places or area; area of a share on a grid of
    #   two axes.
    # * people: at least one row, each of as many integers from 0 on as there are secrets, of a sum from 1 to
    #   2^32 - 1.
    # * share, wrong_by and factor: a fraction "a/b" of integers below 2^16, b from 1 on. A share is below
    #   1 and above 0, wrong_by at least 1, a factor above 1.
    # * A file with a limit has no claim between positions: the rows that limits are checked on would never be drawn
    #   alone.
    @classmethod
    def from_file(cls, description: Mapping[str, Any]) -> Self:
        """Read a limit; InputError if it breaks one of the rules above."""
        known = check_keys(dict(description), "constraints", [field.name for field in fields(cls)])
        radius, people = known["radius"], known["people"]
        # Types are compared exactly: True is an int in Python, but another reader would refuse or misread it.
        if type(radius) not in (int, float) or not 0 < radius < _WIDEST:
            raise InputError("must be a positive number", field="radius", value=f"{radius!s:.80}")
        if type(people) is not list or not people or not all(type(row) is list for row in people):
            raise InputError("must be rows of integers", field="people", value=f"{people!s:.80}")
        if not all(type(count) is int for row in people for count in row):
            raise InputError("must be integers", field="people", value=f"{people!s:.80}")
        for name in {"share", "wrong_by", "factor"} & set(known):
            if type(known[name]) is not str or not _SHARE_IN_FILES.fullmatch(known[name]):
                raise InputError("must be a fraction such as 1/5", field=name, value=f"{known[name]!s:.80}")
        return cls(**known)

    def describe(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        shares = {
            name: f"{value.numerator}/{value.denominator}"
            for name, value in values.items()
            if isinstance(value, Fraction)
        }
        people = None if self.people is None else np.atleast_2d(np.asarray(self.people)).tolist()
        return {"constraint": self.name, **values, **shares, "people": people}


@dataclass(frozen=True, kw_only=True)
class PosteriorCap(DiscConstraint):
    """The constraint that after every report at most a share of the posterior lies in any disc of a radius.

    Parameters
    ----------
    radius : float
        In units of length.
    people : (n,) or (k, n) array
        Number of people at each place, from one count or from k; by default the prior. Rounding of fractions lowers
        the limit.
    centres : {"anywhere", "places", "area"}
        Where discs may be centred; "area" for any cells that are together no larger than a disc.
    share, wrong_by : Fraction, float or str
        Such as "1/5", "20%" or 0.2, denominators below 2^16. The share also holds if counts are off by a factor of
        wrong_by.

    Examples
    --------
    >>> domain = md.Domain.grid((2, 2), 1.0)
    >>> problem = md.DesignProblem(domain, md.Euclidean(2.0), md.priors.uniform(domain), md.losses.Distance())
    >>> cap = md.posteriors.PosteriorCap(radius=0.4, share="1/2")
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
        return Fraction(self.share)

    @property
    def wrong(self) -> Fraction:
        return Fraction(self.wrong_by)

    @property
    def design_share(self) -> Fraction:
        """The share under the counts themselves that implies `share` under all others, denominator below 2^16."""
        # Proof of fact 2. The true prior q has max_u q/p <= r min_u q/p. With m = min q/p, sum_B q P <= r m sum_B p P,
        # and outside B the sum of q P is at least m times that of p P. So the posterior under q is at most r beta / (1
        # + (r - 1) beta). For k = 2, counts doubled inside a disc and halved outside attain it.
        # Fact 2: one count may be too high and another too low, so that ratios of counts are off by the square.
        return share_to_design(self.exact, self.wrong**2)

    @property
    def exact_limit(self) -> tuple[str, Fraction]:
        return "share", self.design_share

    def for_rounded_counts(self, persons: Indices, spread: Fraction) -> Self:
        return replace(self, people=persons, share=share_to_design(self.exact, spread))

    def limits(self, inside: Indices, total: int) -> list[Fraction]:
        return [self.design_share] * len(inside)

    def sentence(self, domain: Domain) -> str:
        return cap_sentence(self, domain)


@dataclass(frozen=True, kw_only=True)
class PosteriorLift(DiscConstraint):
    """The constraint that every report multiplies the probability of any disc of a radius by a factor at most.

    Over discs of single places ln factor bounds the maximal leakage of each report.

    Parameters
    ----------
    radius, people, centres
        As of `PosteriorCap`, except "area".
    factor : Fraction, float or str
        A fraction from 1 on.

    Examples
    --------
    >>> print(md.posteriors.PosteriorLift(radius=0.4, factor=2).factor)
    2
    """

    factor: Fraction | float | str
    name = "posterior-lift"
    of_every_set = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.centres == "area":
            raise InputError("must be anywhere or places for a factor", field="centres", value=self.centres)
        object.__setattr__(self, "factor", exact_fraction(self.factor, "factor"))
        if not Fraction(self.factor) > 1:
            raise InputError(
                "must be above 1; at 1 reports reveal nothing about discs", field="factor", value=self.factor
            )

    @property
    def exact_limit(self) -> tuple[str, Fraction]:
        return "factor", Fraction(self.factor)

    def for_rounded_counts(self, persons: Indices, spread: Fraction) -> Self:
        # The share after a report is up to `spread` times larger, and the share before it up to as many times smaller.
        return replace(self, people=persons, factor=fraction_below(Fraction(self.factor) / spread**2))

    def limits(self, inside: Indices, total: int) -> list[Fraction]:
        return [Fraction(self.factor) * Fraction(int(count), total) for count in inside]

    def sentence(self, domain: Domain) -> str:
        return lift_sentence(self, domain)

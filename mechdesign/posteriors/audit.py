"""How much of the posterior one disc contains after each report, for somebody who knows where people live.

    share(y) = max over discs B of sum_{u in B} p(u) P(y|u) / sum_u p(u) P(y|u)

By how often reports are made: the median one, one in a hundred, the worst; and how many put more than half of the
probability into one disc. Figures are of floating point, to ten digits; limits that a mechanism keeps are proved in
integers (posteriors/limits.py). One report; a second one is not looked at.

Discs lie anywhere on a grid of one or two axes and at most 50,000 cells, else about places, which the sentence says.
Where a disc is wide against cells, or cells are many, its sets are too many to list. Then centres are those of a
lattice finer than the cells, and discs are wider by half the diagonal of its cells: a disc anywhere lies in one of
these, and the figures are upper bounds. Sums over them are convolutions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.fft import irfft2, next_fast_len, rfft2

from mechdesign.base.memory import require_memory
from mechdesign.base.records import FrozenRecord
from mechdesign.base.registry import Role
from mechdesign.base.validation import as_numbers, positive, refuse_entries, validated
from mechdesign.errors import InputError
from mechdesign.evaluation.loss import drawn_rows
from mechdesign.mechanism.claim import MechanismFile
from mechdesign.mechanism.sampler import rows_of
from mechdesign.posteriors.discs import WIDER, Centres, cells_of_area, check_centres, disc_sets, largest_sums
from mechdesign.problem.domain import Domain
from mechdesign.problem.vocabulary import Shape, shape_of, words_of

_Most = Callable[[NDArray[np.float64], NDArray[np.int64]], NDArray[np.float64]]
_HALF, _SELDOM = 0.5, 0.99
_LISTED = 4.0  # cells along a radius up to which sets of discs anywhere are listed: 23 shapes at 4.5, 58 at 6, in 6 s
_LISTED_CELLS = 20_000  # of a grid up to which they are: 14,400 cells at 3 cells along a radius take 12 s
_MOST_CELLS = 50_000  # of a grid whose reports are looked at with discs anywhere: about a minute
_FINER = ((4_000, 6), (10_000, 3), (_MOST_CELLS, 2))  # cells of the grid up to which centres are so many along a cell
_SUMS = 1 << 24  # sums of discs that are held at a time


class RuleDiscAuditor(Protocol):
    """Audits rules by which devices round positions, by discs where people live."""

    def audit(
        self,
        rule: str,
        people: Path,
        box: Sequence[float],
        radii: Sequence[float],
        *,
        epsilon: float | None,
        columns: dict[str, str] | None,
        crs: str | None,
        on_note: Callable[[str], None],
    ) -> dict[str, Any]:
        """The audits of a rule, or of planar-laplace at epsilon (nats per m), over a window of degrees W,S,E,N."""
        ...


RULE_DISC_AUDITOR: Role[RuleDiscAuditor] = Role("discs")


@dataclass(frozen=True, kw_only=True)
class DiscAudit(FrozenRecord):
    """Shares of the posterior in one disc of `radius`, in `unit`, or by area in cells that are no larger together.

    before, the largest share of the people in a disc; median, one_in_hundred and worst, the shares that half of all
    reports, 99 % and all of them do not exceed; above_half, the probability of a report that puts more than half into
    one disc; reports, how many of positive probability there are; counted_at, where people are counted; about, which
    discs were looked at where not all were, as "about the centre of a cell"; exact, False where all these shares are
    upper bounds; shape, "interval" on one axis of values, where it reaches `radius` either way; many, what places are
    called.
    """

    radius: float
    unit: str
    centres: Centres
    before: float
    median: float
    one_in_hundred: float
    worst: float
    above_half: float
    reports: int
    counted_at: str = "centres of cells"
    about: str = ""
    exact: bool = True
    shape: Shape = "disc"
    many: str = "cells"

    @classmethod
    def of(
        cls,
        radius: float,
        unit: str,
        centres: Centres,
        *,
        before: float,
        chance: NDArray[np.float64],
        share: NDArray[np.float64],
        counted_at: str = "centres of cells",
        about: str = "",
        exact: bool = True,
        shape: Shape = "disc",
        many: str = "cells",
    ) -> DiscAudit:
        """Of reports made with probabilities `chance` (m,), of any sum, and the shares (m,) after them."""
        made = chance > 0
        chance, share = chance[made] / chance[made].sum(), share[made]
        order = np.argsort(share, kind="stable")
        most = np.minimum(np.searchsorted(np.cumsum(chance[order]), [_HALF, _SELDOM]), len(order) - 1)
        median, seldom = (float(value) for value in share[order][most])
        return cls(
            radius=radius,
            unit=unit,
            centres=centres,
            before=float(before),
            median=median,
            one_in_hundred=seldom,
            worst=float(share.max()),
            above_half=float(chance[share > _HALF].sum()),
            reports=len(order),
            counted_at=counted_at,
            about=about,
            exact=exact,
            shape=shape,
            many=many,
        )

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return asdict(self)


@validated
def audit_discs(
    table: ArrayLike, domain: Domain, people: ArrayLike, radius: float, *, centres: Centres | None = None
) -> DiscAudit:
    """The audit of a table (n, m) of probabilities, counts or masses, with `people` (n,) at the places of `domain`.

    Parameters: people, of any positive sum: a prior, or persons; radius in the unit of the domain; centres, discs
        anywhere or about the places, or any cells that are together no larger than a disc; by default `discs_anywhere`.
    Raises: InputError as `disc_sets` and `cells_of_area`, and for people that do not fit.
    """
    rows, weight = as_numbers(table, "table", domain.points), as_numbers(people, "people", domain.points)
    if rows.ndim != 2 or len(rows) != domain.size:
        raise InputError(f"must have a row for each of {domain.size} places", field="table", value=rows.shape)
    _check_people(weight, domain)
    discs = _Discs.of(domain, radius, centres)
    return _audited([(np.arange(rows.shape[1]), np.arange(domain.size), rows)], weight, discs)


def discs_anywhere(domain: Domain) -> bool:
    """Whether discs are looked for anywhere by default: on a grid of one or two axes and at most 50,000 cells."""
    return domain.index is not None and domain.dimension <= 2 and domain.size <= _MOST_CELLS


def _check_people(weight: NDArray[np.float64], domain: Domain) -> None:
    if weight.shape != (domain.size,):
        raise InputError(f"must be one number for each of {domain.size} places", field="people", value=weight.shape)
    wrong = ~((weight >= 0) & (weight < np.inf))
    refuse_entries(wrong, weight, "must be finite and not negative", field="people")
    if not weight.any():
        raise InputError("must not be 0 everywhere", field="people", value="sum 0")


def _audited(
    blocks: Iterable[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]],
    weight: NDArray[np.float64],
    discs: _Discs,
) -> DiscAudit:
    """The audit of reports (r,) by their columns (b, r) at places (b,), some at a time."""
    found = []
    for _, places, columns in blocks:
        joint = weight[places, None] * columns
        chance = joint.sum(axis=0)
        found.append((chance, discs.most(joint, places) / np.where(chance > 0, chance, 1.0)))
    chances, shares = (np.concatenate(parts) for parts in zip(*found, strict=True))
    if not discs.exact:
        shares = np.minimum(shares, 1.0)
    before = min(float(discs.most(weight[:, None], np.arange(len(weight)))[0] / weight.sum()), 1.0)
    return DiscAudit.of(
        discs.radius,
        discs.unit,
        discs.centres,
        before=before,
        chance=chances,
        share=shares,
        counted_at=discs.counted_at,
        about=discs.about,
        exact=discs.exact,
        shape=discs.shape,
        many=discs.many,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Discs:
    """Discs of a radius over a domain; most(joint, places), the largest sum in one disc (r,) of columns (b, r) at
    places (b,), or where not `exact` an upper bound of it.
    """

    radius: float
    unit: str
    centres: Centres
    most: _Most
    counted_at: str
    about: str = ""
    exact: bool = True
    shape: Shape = "disc"
    many: str = "cells"

    @classmethod
    def of(cls, domain: Domain, radius: float, centres: Centres | None) -> _Discs:
        """The discs that are looked at. Raises: InputError as `disc_sets` and `cells_of_area`."""
        positive(radius, "radius")
        kind: Centres = centres or ("anywhere" if discs_anywhere(domain) else "places")
        check_centres(kind)
        about, exact, words = "", True, words_of(domain)
        counted_at = words.centres if domain.kind == "grid" else words.many
        if kind == "area":
            most: _Most = partial(_area_sums, cells=cells_of_area(domain, radius))
        elif kind == "anywhere" and domain.cell is not None and domain.dimension == 2 and _is_wide(domain, radius):
            most, exact = _wider_sums(domain, radius), False
        else:
            most = _listed_sums(disc_sets(domain, radius, kind))
        if kind == "places":
            about = f"about {f'the centre of {words.a_one}' if domain.kind == 'grid' else f'one of the {words.many}'}"
        return cls(
            radius=radius,
            unit=domain.unit,
            centres=kind,
            most=most,
            counted_at=counted_at,
            about=about,
            exact=exact,
            shape=shape_of(domain),
            many=words.many,
        )


def _is_wide(domain: Domain, radius: float) -> bool:
    """True if the sets of discs anywhere are too many to list."""
    return radius > _LISTED * min(domain.cell or (math.inf,)) or domain.size > _LISTED_CELLS


def _area_sums(joint: NDArray[np.float64], places: NDArray[np.int64], *, cells: int) -> NDArray[np.float64]:
    """The sum of the largest entries (r,) of columns (b, r), wherever their places are."""
    return largest_sums(joint, cells)


def _listed_sums(sets: sp.csr_array) -> _Most:
    """The function of columns (b, r) at places (b,) that is the largest sum in one of listed sets (r,)."""
    step = max(1, _SUMS // sets.shape[0])

    def most(joint: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[np.float64]:
        here = sets[:, places]
        parts = [np.asarray((here @ joint[:, k : k + step]).max(axis=0)) for k in range(0, joint.shape[1], step)]
        return np.concatenate(parts)

    return most


def _wider_sums(domain: Domain, radius: float) -> _Most:
    """The same of discs about the points of a finer lattice, wider by half the diagonal of its cells."""
    assert domain.cell is not None and domain.shape is not None and domain.index is not None
    index, side = domain.index, np.asarray(domain.cell)
    finer = next((finer for cells, finer in _FINER if domain.size <= cells), 1)
    wide = radius * WIDER + float(np.hypot(*side)) / 2 / finer
    reach = np.minimum(np.ceil(wide / side), domain.shape).astype(np.int64) + 1
    steps = np.stack(np.meshgrid(*(np.arange(-k, k + 1) for k in reach), indexing="ij"), axis=-1) * side
    offsets = (np.arange(finer) + 0.5) / finer - 0.5
    kernels = [
        (np.hypot(*np.moveaxis(steps - np.array([a, b]) * side, -1, 0)) <= wide).astype(float)
        for a in offsets
        for b in offsets
    ]

    def most(joint: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[np.float64]:
        at = index[places] - index[places].min(axis=0)
        window = at.max(axis=0) + 1
        size = [next_fast_len(int(n), real=True) for n in window + 2 * reach]
        transforms = [rfft2(kernel, size) for kernel in kernels]
        found, step = np.empty(joint.shape[1]), max(1, _SUMS // 8 // math.prod(size))
        for first in range(0, joint.shape[1], step):
            part = joint[:, first : first + step]
            values = np.zeros((part.shape[1], *window))
            values[:, at[:, 0], at[:, 1]] = part.T
            columns = rfft2(values, size)
            sums = [irfft2(columns * transform, size).max(axis=(1, 2)) for transform in transforms]
            found[first : first + step] = np.max(sums, axis=0)
        return found

    return most


@validated
def audit_mechanism_discs(
    mechanism: xr.Dataset,
    radii: Sequence[float],
    people: ArrayLike | None = None,
    *,
    centres: Centres | None = None,
) -> list[DiscAudit]:
    """The audit of a mechanism for each radius, in the unit of its domain; people (n,), its prior without.

    People are at the centres of cells, also of a mechanism that protects positions: the rows are those that are drawn
    there. Centres of discs as `audit_discs` has them.

    Raises: InputError as `audit_discs`; SizeError. Cost: windows around the columns of a factored mechanism where they
        are places; else all rows at once.
    """
    stored = MechanismFile.read(mechanism)
    weight = np.asarray(mechanism["prior"].values if people is None else people, float)
    if stored.factored and stored.factors.columns is None:
        _check_people(weight, stored.domain)
        rows: Any = rows_of(mechanism)
        return [_audited(rows.column_blocks(), weight, _Discs.of(stored.domain, radius, centres)) for radius in radii]
    require_memory(stored.domain.size, stored.domain.size, tables=4, what="an audit of discs")
    table = drawn_rows(mechanism)
    return [audit_discs(table, stored.domain, weight, radius, centres=centres) for radius in radii]

"""How much of the posterior one disc contains after each report, for somebody who knows where people live.

    share(y) = max over discs B of sum_{u in B} p(u) P(y|u) / sum_u p(u) P(y|u)

By how often reports are made: the median one, one in a hundred, the worst; and how many put more than half of the
probability into one disc. Figures are of floating point, to ten digits; limits that a mechanism keeps are proved in
integers (programs/posterior.py). One report; a second one is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.arguments import as_numbers, refuse_entries, validated
from mechdesign.base.display import ReprMixin
from mechdesign.base.figures import length, percent
from mechdesign.base.memory import require_memory
from mechdesign.closed_forms.loss import drawn_rows
from mechdesign.errors import InputError
from mechdesign.mechanism.sampler import rows_of
from mechdesign.mechanism.stored import read
from mechdesign.problem.discs import Centres, cells_of_area, check_centres, disc_sets, largest_sums
from mechdesign.problem.domain import Domain

_HALF, _SELDOM = 0.5, 0.99


@dataclass(frozen=True, kw_only=True)
class DiscAudit(ReprMixin):
    """Shares of the posterior in one disc of `radius`, in `unit`, or by area in cells that are no larger together.

    before, the largest share of the people in a disc; median, one_in_hundred and worst, the shares that half of all
    reports, 99 % and all of them do not exceed; above_half, the probability of a report that puts more than half into
    one disc; reports, how many of positive probability there are.
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
        )

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return asdict(self)


@validated
def audit_discs(
    table: ArrayLike, domain: Domain, people: ArrayLike, radius: float, *, centres: Centres = "places"
) -> DiscAudit:
    """The audit of a table (n, m) of probabilities, counts or masses, with `people` (n,) at the places of `domain`.

    Parameters: people, of any positive sum: a prior, or persons; radius in the unit of the domain; centres, discs about
        the places or anywhere, or any cells that are together no larger than a disc.
    Raises: InputError as `disc_sets` and `cells_of_area`, and for people that do not fit.
    """
    check_centres(centres)
    rows, weight = as_numbers(table, "table", domain.points), as_numbers(people, "people", domain.points)
    if rows.ndim != 2 or len(rows) != domain.size:
        raise InputError(f"must have a row for each of {domain.size} places", field="table", value=rows.shape)
    _check_people(weight, domain)
    return _audited([(np.arange(rows.shape[1]), np.arange(domain.size), rows)], domain, weight, radius, centres)


def _check_people(weight: NDArray[np.float64], domain: Domain) -> None:
    if weight.shape != (domain.size,):
        raise InputError(f"must be one number for each of {domain.size} places", field="people", value=weight.shape)
    wrong = ~((weight >= 0) & (weight < np.inf))
    refuse_entries(wrong, weight, "must be finite and not negative", field="people")
    if not weight.any():
        raise InputError("must not be 0 everywhere", field="people", value="sum 0")


def _audited(
    blocks: Iterable[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]],
    domain: Domain,
    weight: NDArray[np.float64],
    radius: float,
    centres: Centres,
) -> DiscAudit:
    """The audit of reports (r,) by their columns (b, r) at places (b,), some at a time."""
    most, found = _most(domain, radius, centres), []
    for _, places, columns in blocks:
        joint = weight[places, None] * columns
        chance = joint.sum(axis=0)
        found.append((chance, most(joint, places) / np.where(chance > 0, chance, 1.0)))
    chances, shares = (np.concatenate(parts) for parts in zip(*found, strict=True))
    before = float(most(weight[:, None], np.arange(domain.size))[0] / weight.sum())
    return DiscAudit.of(radius, domain.unit, centres, before=before, chance=chances, share=shares)


def _most(
    domain: Domain, radius: float, centres: Centres
) -> Callable[[NDArray[np.float64], NDArray[np.int64]], NDArray[np.float64]]:
    """The function of columns (b, r) at places (b,) that is the largest sum in one disc (r,)."""
    if centres == "area":
        cells = cells_of_area(domain, radius)
        return lambda joint, _: largest_sums(joint, cells)
    sets = disc_sets(domain, radius, centres)
    return lambda joint, places: np.asarray((sets[:, places] @ joint).max(axis=0))


@validated
def audit_mechanism_discs(
    mechanism: xr.Dataset, radii: Sequence[float], people: ArrayLike | None = None, *, centres: Centres = "places"
) -> list[DiscAudit]:
    """The audit of a mechanism for each radius, in the unit of its domain; people (n,), its prior without. Of one that
    protects positions the rows are those drawn from positions spread evenly over a cell.

    Raises: InputError as `audit_discs`; SizeError. Cost: windows around the columns of a factored mechanism where they
        are places; else all rows at once.
    """
    stored = read(mechanism)
    weight = np.asarray(mechanism["prior"].values if people is None else people, float)
    if stored.factored and stored.factors.columns is None:
        _check_people(weight, stored.domain)
        rows: Any = rows_of(mechanism)
        check_centres(centres)
        return [_audited(rows.column_blocks(), stored.domain, weight, radius, centres) for radius in radii]
    require_memory(stored.domain.size, stored.domain.size, tables=4, what="an audit of discs")
    table = drawn_rows(mechanism)
    return [audit_discs(table, stored.domain, weight, radius, centres=centres) for radius in radii]


def disc_words(audits: Sequence[Mapping[str, Any]], *, prior: bool = False) -> Iterator[str]:
    """A sentence for each audit, as documents; prior, whether people are the prior of the mechanism."""
    for found in audits:
        worst, median, half = (percent(found[name], up=True, digits=3) for name in ("worst", "median", "above_half"))
        whom = "whose prior is that of the file" if prior else "who knows where people live"
        halves = f"{half} of reports put" if found["above_half"] else "no report puts"
        disc, area = f"disc of {length(found['radius'], found['unit'])}", found["centres"] == "area"
        what = f"the likeliest cells, together no larger than a {disc}, have" if area else f"one {disc} has"
        yield (
            f"For somebody {whom}, {what} {worst} of the probability after the worst report and {median} after the "
            f"median one; {halves} more than half into {'such cells' if area else 'one disc'}. "
            f"Before any report: {percent(found['before'], up=True, digits=3)}. A second report adds to that."
        )

"""Shares of the posterior in one disc after each report, for an adversary who knows where people live.

    share(y) = max over discs B of sum_{u in B} p(u) P(y|u) / sum_u p(u) P(y|u)

Figures are doubles, correct to ten digits, and hold for one report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Indices, Matrix, Vector
from mechdesign.base.memory import require_memory
from mechdesign.base.records import FrozenRecord
from mechdesign.base.registry import Role
from mechdesign.base.validation import as_numbers, refuse_entries, validate_call
from mechdesign.errors import InputError
from mechdesign.evaluation.loss import drawn_rows
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.mechanism.sampler import rows_of
from mechdesign.posteriors.disc_sums import DiscKind, LargestSums, disc_sums
from mechdesign.posteriors.discs import Centres
from mechdesign.problem.domain import Domain
from mechdesign.problem.vocabulary import Shape

_MEDIAN, _ONE_IN_HUNDRED = 0.5, 0.99  # shares of all reports, from the least revealing on
_LIKELY = 0.5  # a share of the posterior above it names one disc as likelier than all else


class RuleDiscAuditor(Protocol):
    """Audits rounding rules of devices by discs where people live."""

    def __call__(
        self,
        name: str,
        path: Path,
        window: Sequence[float],
        radii: Sequence[float],
        *,
        epsilon: float | None,
        columns: dict[str, str] | None,
        crs: str | None,
        on_note: Callable[[str], None],
    ) -> dict[str, Any]: ...


RULE_DISC_AUDITOR: Role[RuleDiscAuditor] = Role("discs")


@dataclass(frozen=True, kw_only=True)
class DiscAudit(FrozenRecord):
    """Shares of the posterior in one disc: before a report, quantiles over reports, and above_half, P(share > 1/2)."""

    radius: float
    unit: str
    centres: Centres
    before: float
    median: float
    one_in_hundred: float
    worst: float
    above_half: float
    reports: int
    counted_at: str
    about: str
    exact: bool
    shape: Shape
    many: str

    @classmethod
    def of(cls, discs: DiscKind, *, before: float, chance: Vector, share: Vector) -> DiscAudit:
        possible = chance > 0
        chance, share = chance[possible] / chance[possible].sum(), share[possible]
        order = np.argsort(share, kind="stable")
        # Rounding may leave the last cumulated chance below 0.99, and the index found beyond the last report.
        cumulated = np.cumsum(chance[order])
        quantile = np.minimum(np.searchsorted(cumulated, [_MEDIAN, _ONE_IN_HUNDRED]), len(order) - 1)
        return cls(
            **asdict(discs),
            before=float(before),
            median=float(share[order][quantile[0]]),
            one_in_hundred=float(share[order][quantile[1]]),
            worst=float(share.max()),
            above_half=float(chance[share > _LIKELY].sum()),
            reports=len(order),
        )

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@validate_call
def audit_discs(
    table: ArrayLike, domain: Domain, people: ArrayLike, radius: float, *, centres: Centres | None = None
) -> DiscAudit:
    """Audit a table (n, m) of probabilities, counts or masses, with `people` (n,), of any sum, at the places."""
    rows, weight = as_numbers(table, "table", domain.points), as_numbers(people, "people", domain.points)
    if rows.ndim != 2 or len(rows) != domain.size:
        raise InputError(f"must have a row for each of {domain.size} places", field="table", value=rows.shape)
    _check_people(weight, domain)
    columns = [(np.arange(rows.shape[1]), np.arange(domain.size), rows)]
    return _audit(columns, weight, *disc_sums(domain, radius, centres))


@validate_call
def audit_mechanism_discs(
    mechanism: xr.Dataset,
    radii: Sequence[float],
    people: ArrayLike | None = None,
    *,
    centres: Centres | None = None,
) -> list[DiscAudit]:
    """Audit a mechanism for each radius, with people (n,) at the places, by default its prior."""
    stored = MechanismFile.read(mechanism)
    weight = np.asarray(mechanism["prior"].values if people is None else people, float)
    if stored.is_factored and stored.factors.columns is None:
        # A large map has no table in memory: its columns come in blocks, each over the places that it can come from.
        _check_people(weight, stored.domain)
        rows: Any = rows_of(mechanism)
        return [_audit(rows.column_blocks(), weight, *disc_sums(stored.domain, radius, centres)) for radius in radii]
    require_memory(stored.domain.size, stored.domain.size, tables=4, noun="an audit of discs")
    table = drawn_rows(mechanism)
    return [audit_discs(table, stored.domain, weight, radius, centres=centres) for radius in radii]


def _check_people(weight: Vector, domain: Domain) -> None:
    if weight.shape != (domain.size,):
        raise InputError(f"must be one number for each of {domain.size} places", field="people", value=weight.shape)
    wrong = ~((weight >= 0) & (weight < np.inf))
    refuse_entries(wrong, weight, "must be finite and not negative", field="people")
    if not weight.any():
        raise InputError("must not be 0 everywhere", field="people", value="sum 0")


def _audit(
    blocks: Iterable[tuple[Indices, Indices, Matrix]],
    weight: Vector,
    discs: DiscKind,
    largest: LargestSums,
) -> DiscAudit:
    chances, shares = [], []
    for _, places, columns in blocks:
        # p(u) P(y|u), whose column sums are the chances of the reports: the two sums of the module docstring.
        joint = weight[places, None] * columns
        chance = joint.sum(axis=0)
        chances.append(chance)
        shares.append(largest(joint, places) / np.where(chance > 0, chance, 1.0))
    share = np.concatenate(shares)
    # An upper bound by wider discs, or rounding of the transforms, may exceed 1.
    if not discs.exact:
        share = np.minimum(share, 1.0)
    before = min(float(largest(weight[:, None], np.arange(len(weight)))[0] / weight.sum()), 1.0)
    return DiscAudit.of(discs, before=before, chance=np.concatenate(chances), share=share)

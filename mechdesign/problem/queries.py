"""Queries: a question about the secret with finitely many answers, q(u) = label of the place u."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Indices
from mechdesign.base.labels import values_in_place_order
from mechdesign.base.records import FrozenRecord
from mechdesign.base.validation import validate_call
from mechdesign.errors import InputError
from mechdesign.problem.domain import Domain
from mechdesign.problem.losses import TableLoss
from mechdesign.problem.raster import Raster

QueryLoss = Literal["zero-one", "distance"]
_LARGEST = 2.0**53  # larger labels are not exact as doubles


@dataclass(frozen=True, kw_only=True, eq=False)
class Query(FrozenRecord):
    """A query q(u) over n places, with m answers: the distinct labels, ascending.

    Source: Koufogiannis & Pappas 2016, Problem 1.

    Parameters
    ----------
    labels : (n,) int array
        q at each place.

    Examples
    --------
    >>> md.losses.Query([3, 3, 7]).values
    array([3, 7])
    """

    labels: ArrayLike = field(kw_only=False)

    def __post_init__(self) -> None:
        labels = np.asarray(values_in_place_order(self.labels, "labels"))
        numbers = labels.ndim == 1 and labels.dtype.kind in "iuf"
        invalid = labels[~((labels == np.rint(labels)) & (np.abs(labels) <= _LARGEST))] if numbers else labels.ravel()
        if not numbers or len(invalid):
            description = f"{invalid[0]} ({len(invalid)} such)" if numbers else f"{labels.dtype} {labels.shape}"
            raise InputError("must be integers, one per place; NODATA is not one", field="labels", value=description)
        object.__setattr__(self, "labels", labels.astype(np.int64))
        if len(self.values) < 2:
            raise InputError("needs at least two answers", field="labels", value=self.values.tolist())

    @classmethod
    @validate_call
    def from_raster(cls, raster: Raster, domain: Domain) -> Query:
        """The labels of a raster: at every place the value of the nearest node, never one between two nodes."""
        converted = raster.in_unit(domain.unit)
        converted.require_cover(domain.points)
        return cls(labels=converted.nearest(domain.points))

    @cached_property
    def values(self) -> Indices:
        return np.unique(np.asarray(self.labels))

    @cached_property
    def answer(self) -> Indices:
        return np.searchsorted(self.values, np.asarray(self.labels))

    @cached_property
    def places(self) -> list[Indices]:
        order = np.argsort(self.answer, kind="stable")
        return np.split(order, np.searchsorted(self.answer[order], np.arange(1, len(self.values))))

    def reports(self, domain: Domain) -> Domain:
        """One place per answer, of q^{-1}(y) the place nearest to its mean: distances and units keep their meaning.

        Examples
        --------
        >>> query = md.losses.Query([3, 3, 7])
        >>> query.reports(md.Domain.grid(3, 1.0)).size
        2
        """
        self._check_size(domain)
        chosen = [
            places[np.argmin(((domain.points[places] - domain.points[places].mean(axis=0)) ** 2).sum(axis=1))]
            for places in self.places
        ]
        return Domain.points_at(domain.points[chosen], unit=domain.unit)

    def loss(self, kind: QueryLoss, domain: Domain) -> TableLoss:
        """l(u, y), (n, m): zero-one, 1 where y is not q(u); distance, from u to the nearest place of label y.

        Examples
        --------
        >>> query = md.losses.Query([3, 3, 7])
        >>> query.loss("zero-one", md.Domain.grid(3, 1.0)).name
        'table'
        """
        self._check_size(domain)
        if kind == "zero-one":
            return TableLoss(values=(self.answer[:, None] != np.arange(len(self.values))).astype(float))
        if kind != "distance":
            raise InputError("unknown loss of a query", field="loss", value=kind, remedy="use zero-one or distance")
        from scipy.spatial import cKDTree

        # One search tree for each label: m trees of n places together.
        nearest = [cKDTree(domain.points[places]).query(domain.points)[0] for places in self.places]
        return TableLoss(values=np.column_stack(nearest), unit=domain.unit)

    def check(self, domain: Domain, reports: Domain) -> None:
        self._check_size(domain)
        if reports.size != len(self.values):
            description = f"{reports.size} reports, {len(self.values)} labels"
            raise InputError("needs one report per label", field="reports", value=description)

    def _check_size(self, domain: Domain) -> None:
        if len(self.answer) != domain.size:
            raise InputError(f"must have shape ({domain.size},)", field="labels", value=self.answer.shape)

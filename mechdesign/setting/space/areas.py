"""Areas: the places of a domain, parted into named neighbourhoods, every place in exactly one."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.display import Shown
from mechdesign.errors import InputError
from mechdesign.setting.space.domain import Domain

_REMEDY = "give a file of polygons or labels"
MOST = 1_000  # areas: a table of more shares is a distribution


@dataclass(frozen=True, kw_only=True, eq=False)
class Areas(Shown):
    """names of the K areas; label (n,), the number of the area that each place lies in.

    Invariants: from 1 to `MOST` areas, names printable, not empty and distinct, also without case and spaces; every
    area has a place.
    """

    names: tuple[str, ...]
    label: NDArray[np.int64]

    def __post_init__(self) -> None:
        if not 1 <= len(self.names) <= MOST:
            raise InputError(f"must be 1 to {MOST} areas", field="areas", value=len(self.names), remedy="merge some")
        for name in self.names:
            if not name.strip() or not name.isprintable():
                raise InputError("needs a printable name", field="areas", value=repr(name), remedy="name every area")
        plain: dict[str, str] = {}
        for name in self.names:
            other = plain.setdefault(_plain(name), name)
            if other == name and self.names.count(name) > 1:
                raise InputError("two areas have one name", field="areas", value=name, remedy="give each its own name")
            if other != name:
                raise InputError(
                    "two names differ in case or spaces alone",
                    field="areas",
                    value=f"{other!r} and {name!r}",
                    remedy="write one area always alike, or give two areas their own names",
                )
        empty = np.setdiff1d(np.arange(len(self.names)), self.label)
        if len(empty):
            raise InputError(
                "holds no place of the domain",
                field="areas",
                value=", ".join(self.names[k] for k in empty[:5]),
                remedy="drop such areas, or use smaller cells",
            )

    @classmethod
    def of_labels(cls, labels: ArrayLike, *, names: Mapping[int, str] | None = None) -> Areas:
        """The areas of whole numbers (n,), a label a place; names by label, by default the numbers themselves."""
        values, label = np.unique(np.asarray(labels, np.int64), return_inverse=True)
        known = names or {}
        return cls(names=tuple(known.get(value, str(value)) for value in values.tolist()), label=label)

    @classmethod
    def of_words(cls, words: Sequence[str]) -> Areas:
        """The areas of names (n,), one a place, numbered in the order in which they appear."""
        order = {word: k for k, word in enumerate(dict.fromkeys(words))}
        return cls(names=tuple(order), label=np.array([order[word] for word in words], np.int64))

    @classmethod
    def blocks(cls, domain: Domain, across: int, along: int) -> Areas:
        """A grid of two axes cut into across x along blocks of nearly equal sides, named "column-row" from 1 on.

        Raises: InputError for a domain that is no grid of two axes, and for more blocks along an axis than cells.
        """
        if domain.shape is None or domain.index is None or len(domain.shape) != 2:
            raise InputError("blocks are cut from a grid of two axes", field="areas", value=domain.kind, remedy=_REMEDY)
        for blocks, cells in zip((across, along), domain.shape, strict=True):
            if not 1 <= blocks <= cells:
                raise InputError(
                    f"must be from 1 to {cells} along this axis", field="areas", value=blocks, remedy="use 3x3"
                )
        column, row = (
            side * blocks // cells
            for side, blocks, cells in zip(domain.index.T, (across, along), domain.shape, strict=True)
        )
        found = {k: f"{k // along + 1}-{k % along + 1}" for k in range(across * along)}
        return cls.of_labels(column * along + row, names=found)

    @property
    def indicator(self) -> NDArray[np.float64]:
        """The columns g (n, K): 1 where a place lies in an area."""
        return np.asarray(self.label[:, None] == np.arange(len(self.names)), float)


def _plain(name: str) -> str:
    """A name without case, and with one space between its words."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())

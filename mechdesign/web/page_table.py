"""The table of a page: as it is in the file, rounded and packed, or a part of its rows."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.base.arrays import AnyArray, Indices
from mechdesign.errors import UnsuitableError
from mechdesign.mechanism.container import pack_container
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.verification.verify import Verification, require_certified
from mechdesign.web.rounded import BITS, RoundedTable, packing_order, round_mechanism, units_of
from mechdesign.web.shared_shape import shared_shape

MOST_EXACT = 900 * 900  # masses of 62 bits: 6.5 MB
MOST_ROUNDED = 1 << 22  # masses: 34 MB in a browser
MOST_PACKED = 1_000_000  # bytes: with the program, and in base64, a page of 1.5 MB


@dataclass(frozen=True, kw_only=True, eq=False)
class PageTable:
    """A verified mechanism as a page carries it. rounded: it was rounded; carried: the rows of a part of it."""

    stored: MechanismFile
    checked: Verification
    rounded: RoundedTable | None = None
    carried: Indices | None = None

    def note(self) -> str | None:
        """A sentence about the difference from the table of the file; None for an equal table."""
        if self.rounded is not None:
            return f"The table of this page was {self.rounded.sentence()}."
        if self.carried is not None:
            count = self.stored.domain.size
            return f"This page has {len(self.carried):,} of {count:,} rows: the browser cannot prove the others."
        return None

    @cached_property
    def container(self) -> bytes:
        """The container of a rounded table: its masses and the edges of its claim."""
        assert self.rounded is not None
        bits, order, edges = self.rounded.bits, packing_order(self.stored), self.stored.edges
        ahead = edges.head.astype(np.int64) - edges.tail
        lengths, kind = np.unique(edges.length, return_inverse=True)
        # Edges of one direction follow one another: neighbouring numbers then differ by little, and pack small.
        along = np.lexsort((edges.tail, kind, ahead))
        mass = self.stored.mechanism["mass"].values
        shared = shared_shape(self.rounded, self.stored, units_of(mass, bits, np.arange(len(order))).T)
        if shared is None:
            table: dict[str, AnyArray] = {"coarse": units_of(mass, bits, order)}
        else:
            table = shared | {"coarse": shared["coarse"][:, order].T}
        arrays: dict[str, AnyArray] = {
            "order": order.astype(np.uint32),
            **table,
            "tail": edges.tail[along].astype(np.uint32),
            "ahead": ahead[along].astype(np.uint32),
            "kind": kind[along].astype(np.uint32),
            "lengths": lengths,
        }
        header = {"bits": bits, "secrets": self.stored.domain.size, "reports": len(order), "edges": len(along)}
        header |= {"distinct": len(lengths), "displacements": 0 if shared is None else len(shared["shape"])}
        return pack_container("page", header, arrays, differences=("tail", "ahead", "kind"))


def page_table(result: xr.Dataset) -> PageTable:
    """Verify a mechanism, and round it or choose its rows if its table is too large for a page."""
    checked = require_certified(result)
    stored = checked.file
    assert stored is not None
    table = PageTable(stored=stored, checked=checked)
    if stored.is_factored or stored.mechanism["mass"].size <= MOST_EXACT:
        return table
    if stored.mechanism["mass"].size <= MOST_ROUNDED:
        for bits in BITS:
            try:
                rounded = round_mechanism(result, bits)
            except UnsuitableError:
                continue
            again = rounded.checked
            assert again.file is not None
            table = PageTable(stored=again.file, checked=again, rounded=rounded)
            if len(table.container) <= MOST_PACKED:
                break
    if table.rounded is not None:
        return table
    return PageTable(
        stored=stored, checked=checked, carried=near_rows(stored, MOST_EXACT // stored.mechanism.sizes["report"])
    )


def near_rows(stored: MechanismFile, count: int) -> NDArray[np.int64]:
    """The secret where a page opens and those nearest to it by edges, at most `count`, ascending."""
    edges = stored.edges
    first = likeliest_in_the_middle(stored)
    # Breadth first along short edges: the carried rows are adjacent, so that edges between them can be proved.
    neighbours: list[list[int]] = [[] for _ in range(stored.domain.size)]
    order = np.argsort(edges.length, kind="stable")
    for u, v in zip(edges.tail[order].tolist(), edges.head[order].tolist(), strict=True):
        neighbours[u].append(v)
        neighbours[v].append(u)
    seen, waiting = {first}, deque([first])
    while waiting and len(seen) < count:
        for v in neighbours[waiting.popleft()]:
            if v not in seen and len(seen) < count:
                seen.add(v)
                waiting.append(v)
    return np.array(sorted(seen), np.int64)


def likeliest_in_the_middle(stored: MechanismFile) -> int:
    """The secret of the highest prior; of several, the nearest to the middle of the area."""
    prior, points = np.asarray(stored.mechanism["prior"].values, float), stored.domain.points
    likeliest = np.flatnonzero(prior >= prior.max() * (1 - 1e-9))
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    return int(likeliest[((points[likeliest] - middle) ** 2).sum(axis=1).argmin()])

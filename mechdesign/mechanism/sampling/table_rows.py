"""TableMechanism: rows, draws and guarded reports of a mechanism that is kept as a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from mechdesign.base.entropy import source
from mechdesign.mechanism.rows import Rows, Scan
from mechdesign.mechanism.sampling.alias import alias_tables, columns_of
from mechdesign.mechanism.sampling.scan import row_masks, scan_row, scan_table
from mechdesign.mechanism.table.certificate import ROW_BITS, ROW_SUM

_TABLE_BYTES = 1 << 26  # of alias tables at once


@dataclass(frozen=True, kw_only=True, eq=False)
class TableMechanism(Rows):
    """A table, whose rows sum to 2^62. The Dataset is not copied: `Sampler` gives one of its own."""

    dataset: xr.Dataset = field(kw_only=False)
    placed = "report"

    @cached_property
    def mass(self) -> NDArray[np.uint64]:
        """The integers (n, m)."""
        return np.ascontiguousarray(self.dataset["mass"].values)

    def probabilities(self, secrets: ArrayLike) -> NDArray[np.float64]:
        return self.mass[self.checked(secrets)] / float(ROW_SUM)

    def integers(self, secret: int) -> tuple[list[int], int]:
        (asked,) = self.checked([secret])
        return self.mass[asked].tolist(), ROW_SUM

    def sample(self, secrets: ArrayLike, size: int, *, seed: int | None = None) -> NDArray[np.int64]:
        asked, (bits, _) = self.checked(secrets), source(seed)
        distinct, place = np.unique(asked, return_inverse=True)
        drawn = np.empty((len(asked), size), np.int64)
        rows = max(1, _TABLE_BYTES // (12 * columns_of(self.reports)))
        for first in range(0, len(distinct), rows):
            own = np.flatnonzero((place >= first) & (place < first + rows))
            tables = alias_tables(self.mass[distinct[first : first + rows]])
            drawn[own] = tables.draw(place[own] - first, size, bits)
        return drawn

    def live(self, secret: int, scan: Scan) -> tuple[int, str]:
        x = np.uint64(int.from_bytes(source(None)[0](8), "little") >> 64 - ROW_BITS)
        if scan == "row":
            return int(scan_row(self.mass[secret], x)), "depend on the secret's row"
        gathered = np.zeros(self.reports, np.uint64)
        place = scan_table(self.mass, row_masks(len(self.mass), secret), x, gathered)
        return int(place), "depend on neither secret nor report"

    def can_report(self, place: int) -> bool:
        return place < self.reports

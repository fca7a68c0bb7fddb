"""Rows of a mechanism, a table (`TableMechanism`) or factors (factored/mechanism.py), to sample, export and draw."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base.arrays import Indices, IntegerMatrix, Integers, Masses, Matrix, Points, Unsigned
from mechdesign.base.records import FrozenRecord
from mechdesign.base.threads import Rng, source
from mechdesign.base.validation import read_only
from mechdesign.errors import InputError
from mechdesign.mechanism.certificate import ROW_BITS, ROW_SUM
from mechdesign.mechanism.claim import Certificate, certify
from mechdesign.mechanism.schema import stored_points
from mechdesign.mechanism.small_draw import (
    FEW_DRAWS,
    SMALL_TABLE,
    row_masks,
    scan_small_row,
    scan_small_table,
    search_few,
)

if TYPE_CHECKING:
    import xarray as xr

Scan = Literal["table", "row"]
_TABLE_BYTES = 1 << 26  # of cumulative masses at once
_WORDS = 1 << 17  # of bits at once: 1 MB stays in the cache


class Rows(FrozenRecord, ABC):
    """P(y|u) = mass / sum in integers, for n secrets and m reports."""

    dataset: xr.Dataset
    report_dim: ClassVar[str]  # the dimension whose coordinates are those of reports

    def repr_fields(self) -> Mapping[str, object]:
        attrs = self.dataset.attrs
        return {"secrets": self.secrets, "reports": self.reports, "program": attrs["program"], "claim": attrs["claim"]}

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate of the mechanism; raises a VerificationError if its claim is not proved."""
        return certify(self.dataset)

    @property
    def secrets(self) -> int:
        return int(self.dataset.sizes["secret"])

    @property
    def reports(self) -> int:
        return int(self.dataset.sizes[self.report_dim])

    @property
    def report_points(self) -> Points:
        """Coordinates of the reports (m, k)."""
        return stored_points(self.dataset, self.report_dim)

    @abstractmethod
    def probabilities(self, secrets: ArrayLike) -> Matrix:
        """P(y|u) (b, m) of secrets (b,), in floating point: to look at, not to certify."""

    @abstractmethod
    def integers(self, secret: int) -> tuple[list[int], int]:
        """The exact masses of one row over the reports, and their sum."""

    @abstractmethod
    def sample(self, secrets: ArrayLike, size: int, *, rng: Rng = None) -> Integers:
        """Reports (b, size) drawn independently for secrets (b,); with `rng` for simulations only."""

    @abstractmethod
    def draw_live(self, secret: int, scan: Scan) -> tuple[int, str]:
        """One report from the system's random bits, and the inputs that its memory addresses depend on."""

    @abstractmethod
    def can_report(self, place: int) -> bool:
        """True if some secret reports this place with positive mass."""

    def check(self, secrets: ArrayLike) -> Indices:
        return check_secrets(secrets, self.secrets)


def check_secrets(secrets: ArrayLike, size: int) -> Indices:
    """The numbers (b,) of secrets, at least one, each below `size`."""
    numbers = np.atleast_1d(np.asarray(secrets))
    whole = numbers.ndim == 1 and numbers.dtype.kind in "iu" and len(numbers) > 0
    if not whole or numbers.min() < 0 or numbers.max() >= size:
        raise InputError(f"no such secret: use 0 to {size - 1}", field="secret", value=secrets)
    return numbers.astype(np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class TableMechanism(Rows):
    """A table, whose rows sum to 2^62. The Dataset is not copied; `Sampler` passes a copy."""

    dataset: xr.Dataset
    report_dim = "report"

    @cached_property
    def mass(self) -> Masses:
        return np.ascontiguousarray(self.dataset["mass"].values)

    def probabilities(self, secrets: ArrayLike) -> Matrix:
        return self.mass[self.check(secrets)] / float(ROW_SUM)

    def integers(self, secret: int) -> tuple[list[int], int]:
        (row,) = self.check([secret])
        return self.mass[row].tolist(), ROW_SUM

    def sample(self, secrets: ArrayLike, size: int, *, rng: Rng = None) -> Integers:
        cells, (bits, _) = self.check(secrets), source(rng)
        # Each row that is asked for is cumulated once, in blocks that fit in `_TABLE_BYTES`.
        distinct, place = np.unique(cells, return_inverse=True)
        drawn = np.empty((len(cells), size), np.int64)
        rows = max(1, _TABLE_BYTES // (8 * self.reports))
        for first in range(0, len(distinct), rows):
            members = np.flatnonzero((place >= first) & (place < first + rows))
            cumulative = np.cumsum(self.mass[distinct[first : first + rows]], axis=1, dtype=np.uint64)
            numbers, block = place[members] - first, np.empty((len(members), size), np.int64)
            if block.size <= FEW_DRAWS:
                block[:] = search_few(cumulative, np.repeat(numbers, size), _words(bits, block.size)).reshape(-1, size)
            else:
                self._search_many(cumulative, numbers, bits, block)
            drawn[members] = block
        return drawn

    def _search_many(
        self, cumulative: Unsigned, rows: Indices, bits: Callable[[int], bytes], drawn: IntegerMatrix
    ) -> None:
        """Fill drawn (b, s) with reports of rows (b,) of cumulative (u, m)."""
        from mechdesign.mechanism.draw import guides, search_rows

        # As many leading bits as give at least m guides: a draw then takes 2 comparisons on average.
        shift = np.uint64(ROW_BITS - (self.reports - 1).bit_length())
        guide = guides(cumulative, shift)
        for start in range(0, drawn.size, _WORDS):
            words = read_only(_words(bits, min(_WORDS, drawn.size - start)))
            search_rows(cumulative, guide, shift, rows, words, start, drawn)

    def draw_live(self, secret: int, scan: Scan) -> tuple[int, str]:
        # The upper 62 of 64 random bits: uniform in [0, 2^62), without rejection.
        x = np.uint64(int.from_bytes(source(None)[0](8), "little") >> 64 - ROW_BITS)
        is_small = self.mass.size <= SMALL_TABLE
        if scan == "row":
            return _scan_row(self.mass[secret], x, is_small), "depend on the secret's row"
        masks = row_masks(len(self.mass), secret)
        return _scan_table(self.mass, masks, x, is_small), "depend on neither secret nor report"

    def can_report(self, place: int) -> bool:
        return place < self.reports


def _words(bits: Callable[[int], bytes], count: int) -> Unsigned:
    return np.frombuffer(bits(8 * count), "<u8").astype(np.uint64, copy=False)


def _scan_row(row: Unsigned, x: np.uint64, is_small: bool) -> int:
    if is_small:
        return scan_small_row(row, x)
    from mechdesign.mechanism.draw import scan_row

    return int(scan_row(row, x))


def _scan_table(mass: Masses, masks: Unsigned, x: np.uint64, is_small: bool) -> int:
    if is_small:
        return scan_small_table(mass, masks, x)
    from mechdesign.mechanism.draw import scan_table

    return int(scan_table(mass, masks, x, np.zeros(mass.shape[1], np.uint64)))

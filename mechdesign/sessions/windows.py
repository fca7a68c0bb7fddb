"""Windows: stretches of ticks whose charges are added up, exactly, and the largest sum that a rule can reach."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np

from mechdesign.base.records import FrozenRecord
from mechdesign.errors import InputError

_WORDS = re.compile(r"([1-9][0-9]{0,4})([dh])")
_HOURS = 24
MOST_TICKS = 1 << 20  # of a window


# A window is a block of days (from midnight to midnight, "1d"), or any so many successive ticks ("24h", or their
# number).
@dataclass(frozen=True, kw_only=True)
class Window(FrozenRecord):
    """`length` ticks: with `calendar` those that begin at its multiples, else any that follow one another."""

    length: int
    calendar: bool
    words: str

    @classmethod
    def of(cls, window: str | int, ticks: int) -> Window:
        """The window of a word: "1d", "14d", days from midnight; "24h", any 24 hours; a number, any so many ticks."""
        # A fraction, so that "1h" of 30 ticks a day is refused and not rounded.
        match = _WORDS.fullmatch(window) if isinstance(window, str) else None
        length = Fraction(-1)
        if match is not None:
            length = Fraction(int(match[1]) * ticks, 1 if match[2] == "d" else _HOURS)
        elif isinstance(window, (int, np.integer)) and not isinstance(window, bool):
            length = Fraction(int(window))
        if length.denominator != 1 or not 1 <= length <= MOST_TICKS:
            raise InputError(
                f"must be days, hours or ticks, whole, of {ticks} ticks a day",
                field="window",
                value=window,
                remedy='use "1d" for days, "24h" for any 24 hours, or a number of ticks',
            )
        return cls(length=int(length), calendar=match is not None and match[2] == "d", words=str(window))

    def starting(self, tick: int) -> int:
        """The first tick of the window that ends with `tick`, or, of days, that `tick` is in."""
        return tick // self.length * self.length if self.calendar else tick - self.length + 1

    def name(self) -> str:
        if not self.calendar:
            return f"any {self.length} ticks in a row" if self.words.isdigit() else f"any {self.words} in a row"
        return "a calendar day" if self.words == "1d" else f"{self.words[:-1]} calendar days"

    def worst(self, charges: Sequence[tuple[int, Fraction]]) -> tuple[Fraction, int]:
        """The largest sum of charges (tick, amount) in one window, and its first tick; (0, 0) without charges."""
        if not charges:
            return Fraction(0), 0
        ticks = [tick for tick, _ in charges]
        sums = [Fraction(0), *accumulate(amount for _, amount in charges)]

        def total(start: int) -> Fraction:
            return sums[bisect_left(ticks, start + self.length)] - sums[bisect_left(ticks, start)]

        # Windows that end with a paid tick are enough: of any other one, take that which ends with its last paid tick.
        first = max(map(self.starting, ticks), key=total)
        return total(first), first

    def offsets(self, period: int) -> Sequence[int]:
        """The ticks of a period at which windows begin."""
        if not self.calendar:
            return range(period)
        return sorted({k * self.length % period for k in range(period)})


def periodic_worst(amounts: Sequence[Fraction], window: Window) -> Fraction:
    """The largest sum in a window where tick t costs amounts[t mod T]. Cost: O(T)."""
    # Whole periods cost the same wherever they begin: only the rest depends on the start.
    period, sums = len(amounts), [Fraction(0), *accumulate(amounts)]
    days, rest = divmod(window.length, period)

    def part(start: int) -> Fraction:
        end = start + rest
        return sums[min(end, period)] - sums[start] + sums[max(end - period, 0)]

    return days * sums[-1] + max(part(start) for start in window.offsets(period))


def ordered_worst(amounts: Sequence[Fraction | int], per: Window, window: Window) -> Fraction:
    """An upper bound on the cost of a window if the k-th paid tick of a window `per` costs amounts[k]."""
    # Ticks are limited. Exact for windows of whole blocks of `per`.
    # A window of L ticks that begins o ticks into a block of P has min(P - o, L) ticks of it, then whole blocks, then
    # the rest. A block with m ticks in the window pays at most the largest min(m, k) of its k amounts. Where `per` is
    # any P ticks in a row, the same sum with o = 0 is a bound: cut the window into blocks from its first tick.
    dearest = [0, *accumulate(sorted(amounts, reverse=True))]
    most = len(amounts)

    def total(offset: int) -> Fraction | int:
        first = min(per.length - offset, window.length)
        blocks, rest = divmod(window.length - first, per.length)
        return dearest[min(first, most)] + blocks * dearest[min(per.length, most)] + dearest[min(rest, most)]

    return Fraction(max(total(offset) for offset in (window.offsets(per.length) if per.calendar else [0])))

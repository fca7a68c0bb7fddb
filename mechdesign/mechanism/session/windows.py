"""Windows: stretches of ticks whose charges are added up, exactly, and the largest sum that a rule can reach.

A window is a block of days (from midnight to midnight, "1d"), or any so many successive ticks ("24h", or their number).
A charge belongs to every window that has one of its ticks.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np

from mechdesign.base.display import Shown
from mechdesign.errors import InputError

_WORDS = re.compile(r"([1-9][0-9]{0,4})([dh])")
_HOURS = 24
MOST_TICKS = 1 << 20  # of a window


@dataclass(frozen=True, kw_only=True)
class Charge:
    """An amount > 0, in multiples of the metric, that is paid for what happens in the ticks first..last."""

    first: int
    last: int
    amount: Fraction


@dataclass(frozen=True, kw_only=True)
class Window(Shown):
    """`length` ticks: with `calendar` those that begin at its multiples, else any that follow one another."""

    length: int
    calendar: bool
    words: str

    @classmethod
    def of(cls, given: str | int, ticks: int) -> Window:
        """The window of a word: "1d", "14d", days from midnight; "24h", any so many hours; a number, any so many ticks.

        ticks: of a day. Raises: InputError for anything else, hours that are no whole number of ticks, and more than
        2^20 ticks.
        """
        found = _WORDS.fullmatch(given) if isinstance(given, str) else None
        length = Fraction(-1)
        if found is not None:
            length = Fraction(int(found[1]) * ticks, 1 if found[2] == "d" else _HOURS)
        elif isinstance(given, (int, np.integer)) and not isinstance(given, bool):
            length = Fraction(int(given))
        if length.denominator != 1 or not 1 <= length <= MOST_TICKS:
            raise InputError(
                f"must be days, hours or ticks, whole, of {ticks} ticks a day",
                field="window",
                value=given,
                remedy='use "1d" for days, "24h" for any 24 hours, or a number of ticks',
            )
        return cls(length=int(length), calendar=found is not None and found[2] == "d", words=str(given))

    def starting(self, tick: int) -> int:
        """The first tick of the window that ends with `tick`, or, of days, that `tick` is in."""
        return tick // self.length * self.length if self.calendar else tick - self.length + 1

    def name(self) -> str:
        """The window in words."""
        if not self.calendar:
            return f"any {self.length} ticks in a row" if self.words.isdigit() else f"any {self.words} in a row"
        return "a calendar day" if self.words == "1d" else f"{self.words[:-1]} calendar days"

    def worst(self, charges: Sequence[Charge]) -> tuple[Fraction, int]:
        """The largest sum of charges in one window, and the first tick of such a window; (0, 0) without charges.

        In any window sums grow only where a charge begins, so that of the windows that end there one is largest.
        Cost: O(k log k).
        """
        if not charges:
            return Fraction(0), 0
        if self.calendar:
            return self._worst_block(charges)
        begun = sorted(charges, key=lambda each: each.first)
        ended = sorted(charges, key=lambda each: each.last)
        firsts, lasts = [each.first for each in begun], [each.last for each in ended]
        paid = [Fraction(0), *accumulate(each.amount for each in begun)]
        over = [Fraction(0), *accumulate(each.amount for each in ended)]
        starts = {first - self.length + 1 for first in firsts}
        sums = {
            start: paid[bisect_right(firsts, start + self.length - 1)] - over[bisect_left(lasts, start)]
            for start in sorted(starts)
        }
        at = max(sums, key=lambda start: sums[start])
        return sums[at], at

    def _worst_block(self, charges: Sequence[Charge]) -> tuple[Fraction, int]:
        sums: dict[int, Fraction] = {}
        for each in charges:
            for block in range(each.first // self.length, each.last // self.length + 1):
                sums[block] = sums.get(block, Fraction(0)) + each.amount
        at = max(sums, key=lambda block: sums[block])
        return sums[at], at * self.length

    def offsets(self, period: int) -> Sequence[int]:
        """Where in a period of so many ticks windows begin."""
        if not self.calendar:
            return range(period)
        return sorted({k * self.length % period for k in range(period)})


def periodic_worst(amounts: Sequence[Fraction], window: Window) -> Fraction:
    """The largest sum in a window where tick t costs amounts[t mod T]. Cost: O(T)."""
    period, sums = len(amounts), [Fraction(0), *accumulate(amounts)]
    days, rest = divmod(window.length, period)

    def part(start: int) -> Fraction:
        end = start + rest
        return sums[min(end, period)] - sums[start] + sums[max(end - period, 0)]

    return days * sums[-1] + max(part(start) for start in window.offsets(period))


def ordered_worst(amounts: Sequence[Fraction], per: Window, window: Window) -> Fraction:
    """An upper bound of what a window costs, where the k-th of the ticks of a block `per` of days costs amounts[k].

    A block of which a window has m ticks pays at most the largest min(m, k) of its k amounts; blocks are counted as in
    `capped_worst`. Exact for windows of whole blocks. Cost: O(P).
    """
    dearest = [Fraction(0), *accumulate(sorted(amounts, reverse=True))]
    most = len(amounts)

    def total(offset: int) -> Fraction:
        first = min(per.length - offset, window.length)
        blocks, rest = divmod(window.length - first, per.length)
        return dearest[min(first, most)] + blocks * dearest[min(per.length, most)] + dearest[min(rest, most)]

    return max(total(offset) for offset in window.offsets(per.length))


def capped_worst(most: int, per: Window, window: Window) -> int:
    """The largest number of ticks of a window that can be chosen, where at most `most` of every window `per` are.

    A window of L ticks that begins o ticks into a block of P has min(P - o, L) ticks of it, then whole blocks, then
    the rest; each gives the less of its ticks and `most`. Where `per` is any P ticks in a row, a window is whole
    stretches of P and a rest, so that the same count with o = 0 is a bound. Cost: O(P).
    """
    period, most = per.length, min(most, per.length)

    def count(offset: int) -> int:
        first = min(period - offset, window.length)
        blocks, rest = divmod(window.length - first, period)
        return min(first, most) + blocks * most + min(rest, most)

    return max(count(offset) for offset in (window.offsets(period) if per.calendar else [0]))

"""Rational bounds of square roots and exponentials, and the one comparison that privacy is made of."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt, log

PRECISIONS = (250, 1000)  # bits; a comparison that the last one leaves open counts as true
BEYOND = 400  # nats: more than any ratio of the masses or weights of a file
DOUBLES = 1490  # nats: more than any ratio of two positive doubles


@dataclass(frozen=True)
class Length:
    """factor * sqrt(square) nats, both rational and not negative."""

    factor: Fraction
    square: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        if self.factor < 0 or self.square < 0:
            raise ValueError("a length is negative")

    def __float__(self) -> float:
        low, high = self.bounds(PRECISIONS[0])
        return float((low + high) / 2)

    def bounds(self, bits: int) -> tuple[Fraction, Fraction]:
        """Rationals around the length, a relative 2^-bits apart."""
        low, high = square_root(self.square, bits)
        return self.factor * low, self.factor * high

    def times(self, factor: Fraction) -> Length:
        """The length multiplied."""
        return Length(self.factor * factor, self.square)


@lru_cache(maxsize=4096)
def square_root(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Rationals around sqrt(x), x >= 0, a relative 2^-bits apart."""
    product = x.numerator * x.denominator  # sqrt(p / q) = sqrt(p q) / q
    lift = max(0, bits + 1 - product.bit_length() // 2)
    root = isqrt(product << 2 * lift)
    exact = root * root == product << 2 * lift
    unit = x.denominator << lift
    return Fraction(root, unit), Fraction(root + (not exact), unit)


@lru_cache(maxsize=4096)
def exponential(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers L and U with L <= 2^bits e^x <= U, for 0 <= x <= 1490.

    Taylor's series of e^{x / 2^k}, x / 2^k <= 2^-8, every term rounded outwards and the rest of the series, at most
    twice its first term, added above; then k squarings.
    """
    if not 0 <= x <= DOUBLES:
        raise ValueError(f"no exponential of {float(x)}")
    halvings = max(0, x.__ceil__().bit_length() + 8)
    work = bits + 2 * halvings + 4 * x.__ceil__() + 32
    one = 1 << work
    numerator, denominator = x.numerator << work, x.denominator << halvings
    below, above = numerator // denominator, _up(numerator, denominator)
    low_term = high_term = low = high = one
    k = 1
    while high_term > 1:
        low_term = (low_term * below >> work) // k
        high_term = _up(high_term * above, k << work)
        low, high = low + low_term, high + high_term
        k += 1
    high += 2 * high_term
    for _ in range(halvings):
        low, high = low * low >> work, _up(high * high, one)
    return low >> work - bits, _up(high, one >> bits)


def _up(numerator: int, denominator: int) -> int:
    """The quotient, rounded up."""
    return -(-numerator // denominator)


def within(first: int, second: int, length: Length) -> bool:
    """True if first <= e^length second, for integers >= 1; true where 1000 bits leave it open."""
    if first <= second:
        return True
    for bits in PRECISIONS:
        low, high = length.bounds(bits)
        if low > BEYOND:
            return first.bit_length() - second.bit_length() < BEYOND
        if first << bits <= exponential(low, bits)[0] * second:
            return True
        if high <= BEYOND and first << bits > exponential(high, bits)[1] * second:
            return False
    return True


def log_ratio(first: int, second: int) -> float:
    """ln(first / second) of integers >= 1, to a relative 1e-15 where the ratio is near 1 too."""
    share = Fraction(first - second, second)
    if abs(share) < Fraction(1, 1000):
        x = float(share)
        return x - x * x / 2 + x**3 / 3 - x**4 / 4 + x**5 / 5 - x**6 / 6
    return log(first) - log(second)


def lower_ratio(x: Fraction | float, longest: int = 80) -> tuple[int, int]:
    """Integers R and s with R = floor(2^s e^x) and 2^61 <= R < 2^62, x >= 0 (longer lengths count as `longest`)."""
    x = Fraction(x)
    low, high = exponential(min(max(x, Fraction(0)), Fraction(longest)), 300)
    drop = low.bit_length() - 62
    if x < 0 or low >> drop != high >> drop:
        raise ValueError("no ratio")
    return low >> drop, 300 - drop

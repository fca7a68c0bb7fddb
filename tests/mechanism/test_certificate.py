"""The certificate: integer bounds of e^d, the exact check against its oracle, row sums."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from types import SimpleNamespace

import numpy as np
import pytest
from fixtures.integer_oracles import reference_violations
from reference.checking import ROW_SUM

from mechdesign.extend import Edges
from mechdesign.mechanism import certificate
from mechdesign.mechanism.certificate import (
    certifying_seconds,
    edge_ratios,
    exp_lower,
    max_log_ratio,
    max_log_ratio_of_doubles,
    row_sums_exact,
    violations,
)

TIGHT = Decimal(2) ** -59  # a 62-bit factor rounded down loses at most 2^-61, the Taylor sum far less
LOGARITHM = 1e-12  # relative: two logarithms of ratios of rounded 62-bit integers
VACUOUS = 80.0  # nats; from there on the bound is constant, and above every ratio of two masses


@pytest.fixture(params=["NumPy", "compiled"])
def route(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few triples are compared by NumPy, others by compiled kernels."""
    if request.param == "compiled":
        monkeypatch.setattr(certificate, "_FEW_TRIPLES", 0)


def edges_of(*triples: tuple[int, int, float]) -> Edges:
    tail, head, length = zip(*triples, strict=True)
    return Edges(tail=np.array(tail), head=np.array(head), length=np.array(length, float))


def exponential(length: float) -> Decimal:
    with localcontext() as context:
        context.prec = 60
        return Decimal(length).exp()


def bound(length: float) -> Decimal:
    factor, shift = exp_lower(length)
    with localcontext() as context:
        context.prec = 120
        return Decimal(factor) / Decimal(2) ** shift


def random_masses(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Entries of every magnitude in [1, 2^62], a quarter of them at the ends."""
    bits = rng.integers(0, 62, shape)
    mass = np.array([int(rng.integers(1 << int(b), (2 << int(b)) + 1)) for b in bits.ravel()], np.uint64).reshape(shape)
    ends = np.array([1, 2, ROW_SUM - 1, ROW_SUM], np.uint64)[rng.integers(0, 4, shape)]
    return np.where(rng.random(shape) < 0.25, ends, mass)


def random_lengths(rng: np.random.Generator, count: int) -> np.ndarray:
    spread = 10 ** rng.uniform(-9, math.log10(79), count)
    special = np.array([0.0, 1e-9, math.log(2), 42.9, 43.0, 79.0, 300.0])[rng.integers(0, 7, count)]
    return np.where(rng.random(count) < 0.3, special, spread)


LENGTHS = [0.0, 5e-324, 1e-9, 2.0**-30, math.log(2), 1.0, 79.0, *10 ** np.random.default_rng(1).uniform(-9, 1.89, 300)]


@pytest.mark.obligation("exponential-bound")
def test_the_bound_is_below_the_exponential_and_tight() -> None:
    for length in map(float, LENGTHS):
        factor, _ = exp_lower(length)
        assert 2**61 <= factor < 2**62, length
        exact, computed = exponential(length), bound(length)
        assert computed <= exact, length
        assert exact - computed <= TIGHT * exact, length


@pytest.mark.parametrize("length", [VACUOUS, 81.0, 709.0, 1e6, 1e300])
@pytest.mark.obligation("exponential-bound")
def test_long_edge_bound_exceeds_every_mass_ratio(length: float) -> None:
    assert 2**62 < bound(length) <= exponential(VACUOUS)


@pytest.mark.parametrize("length", [-1e-300, -1.0, math.nan, math.inf, -math.inf])
def test_invalid_lengths_are_refused(length: float) -> None:
    with pytest.raises(ValueError, match="not a non-negative number"):
        exp_lower(length)


def test_edge_ratios_are_those_of_every_length() -> None:
    lengths = np.array([0.3, 2.0, 0.3, 0.0, 60.0])
    factor, shift = edge_ratios(lengths)
    assert (factor.dtype, shift.dtype) == (np.uint64, np.int64)
    assert list(zip(factor.tolist(), shift.tolist(), strict=True)) == [exp_lower(float(x)) for x in lengths]


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.obligation("table-inequalities")
@pytest.mark.usefixtures("route")
def test_the_fast_count_is_the_reference_count(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m, e = (int(x) for x in rng.integers((2, 1, 1), (9, 12, 20)))
    mass = random_masses(rng, (n, m))
    tail = rng.integers(0, n - 1, e)
    edges = Edges(tail=tail, head=rng.integers(tail + 1, n), length=random_lengths(rng, e))
    assert violations(mass, edges) == reference_violations(mass, edges)


def test_certificate_time_is_estimated_from_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock advances by 1.5 s at each reading. Few edges are all timed, of many a sample."""
    mass = np.array([[1, ROW_SUM - 1], [2, ROW_SUM - 2]], np.uint64)
    clock = itertools.count(0.0, 1.5)
    watch = SimpleNamespace(monotonic=lambda: next(clock))
    monkeypatch.setattr("mechdesign.mechanism.certificate.time", watch)
    monkeypatch.setattr("mechdesign.mechanism.certificate.WORKERS", 1)
    for many, expected in ((5, 1.5), (1 << 21, 1.5 * 16)):  # 8 of 128 blocks are timed
        edges = Edges(tail=np.zeros(many, np.int64), head=np.ones(many, np.int64), length=np.ones(many))
        assert certifying_seconds(mass, edges) == expected


def test_the_counts_of_the_random_tables_are_not_all_alike() -> None:
    rng = np.random.default_rng(0)
    counts = set()
    for _ in range(20):
        mass = random_masses(rng, (5, 6))
        counts.add(violations(mass, Edges(tail=np.arange(4), head=np.arange(1, 5), length=random_lengths(rng, 4))))
    assert len(counts) > 5


@pytest.mark.obligation("table-inequalities")
@pytest.mark.usefixtures("route")
def test_one_unit_above_tight_is_a_violation() -> None:
    rng = np.random.default_rng(2)
    for trial in range(300):
        length = float(10 ** rng.uniform(-9, math.log10(42)))
        factor, shift = exp_lower(length)
        largest = min(ROW_SUM - 2, (ROW_SUM - 2 << shift) // factor)
        low = max(1, int(largest * 2.0 ** -rng.uniform(0, largest.bit_length())))
        high = factor * low >> shift
        edge = edges_of((0, 1, length))
        for extra in (0, 1):
            pair = np.array([[high + extra], [low]], np.uint64)
            for mass in (pair, pair[::-1].copy()):
                assert violations(mass, edge) == reference_violations(mass, edge) == extra, (trial, length, low)


@pytest.mark.parametrize(
    ("mass", "length", "count"),
    [
        ([[ROW_SUM], [1]], 42.9, 1),  # ln 2^62 = 42.975
        ([[ROW_SUM], [1]], 43.0, 0),
        ([[ROW_SUM], [1]], 500.0, 0),
        ([[7], [7]], 0.0, 0),
        ([[8], [7]], 0.0, 1),
        ([[7, 8], [8, 7]], 0.0, 2),
        ([[1], [1]], 1e-9, 0),
        ([[ROW_SUM], [ROW_SUM - 1]], 0.0, 1),
        ([[ROW_SUM], [ROW_SUM - 1]], 3e-19, 1),  # 2^-62 = 2.2e-19 is less, but the factor is rounded down to 1
        ([[ROW_SUM], [ROW_SUM - 1]], 1e-17, 0),
    ],
)
@pytest.mark.usefixtures("route")
def test_known_pairs_have_their_count(mass: list[list[int]], length: float, count: int) -> None:
    table, edge = np.array(mass, np.uint64), edges_of((0, 1, length))
    assert violations(table, edge) == reference_violations(table, edge) == count


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.usefixtures("route")
def test_steepest_is_the_largest_slope(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m, e = 6, 5, 9
    mass = random_masses(rng, (n, m))
    tail = rng.integers(0, n - 1, e)
    edges = Edges(tail=tail, head=rng.integers(tail + 1, n), length=10 ** rng.uniform(-3, 1, e))
    logs = np.log(mass.astype(float))
    slope = np.abs(logs[edges.tail] - logs[edges.head]) / edges.length[:, None]
    steepest = max_log_ratio(mass, edges)
    assert steepest.value == pytest.approx(slope.max(), rel=LOGARITHM)
    joined = [
        e for e in range(len(tail)) if {steepest.secret, steepest.other} == {int(edges.tail[e]), int(edges.head[e])}
    ]
    rise = logs[steepest.secret, steepest.report] - logs[steepest.other, steepest.report]
    assert max(rise / edges.length[joined]) == pytest.approx(steepest.value, rel=LOGARITHM)


@pytest.mark.parametrize("rise", [1, 1000, 10**9])
@pytest.mark.usefixtures("route")
def test_steepest_of_nearly_equal_rows(rise: int) -> None:
    """Edges of 1e-9 nats, whose ratios in doubles have few digits, against decimals."""
    mass = np.array([[ROW_SUM // 8, ROW_SUM // 4 + rise], [ROW_SUM // 8 + rise, ROW_SUM // 4]], np.uint64)
    with localcontext() as context:
        context.prec = 60
        slope = (Decimal(ROW_SUM // 8 + rise) / Decimal(ROW_SUM // 8)).ln() / Decimal("1e-9")
    computed = max_log_ratio(mass, edges_of((0, 1, 1e-9)))
    assert (computed.value, computed.report) == (pytest.approx(float(slope), rel=LOGARITHM), 0)
    whole = max_log_ratio_of_doubles(np.array([[0.5, 0.5], [0.5 + 2.0**-50, 0.5 - 2.0**-50]]), edges_of((0, 1, 1e-9)))
    assert whole.value == pytest.approx(-math.log1p(-(2.0**-49)) / 1e-9, rel=LOGARITHM)


@pytest.mark.parametrize(("mass", "value"), [([[5, 9], [5, 9]], 0.0), ([[5, 9], [6, 8]], math.inf)])
@pytest.mark.usefixtures("route")
def test_steepest_over_an_edge_of_length_zero(mass: list[list[int]], value: float) -> None:
    assert max_log_ratio(np.array(mass, np.uint64), edges_of((0, 1, 0.0))).value == value


FOUR = ROW_SUM // 4
ROWS = {
    "one entry": ([ROW_SUM], True),
    "ones and the rest": ([1, 1, ROW_SUM - 2], True),
    "quarters": ([FOUR] * 4, True),
    "one unit short": ([FOUR, FOUR, FOUR, FOUR - 1], False),
    "one unit over": ([FOUR, FOUR, FOUR, FOUR + 1], False),
    "a zero": ([0, ROW_SUM], False),
    "five times the sum, the same modulo 2^64": ([ROW_SUM] * 5, False),
    "a large entry, the same modulo 2^64": ([2**64 - 5, ROW_SUM + 5], False),
    "an entry above the sum": ([ROW_SUM + 1, 1], False),
    "nine entries, the same modulo 2^64": ([ROW_SUM - 1] * 4 + [ROW_SUM] + [1] * 4, False),
    "low words that carry": ([2**32 - 1] * 8 + [ROW_SUM - 8 * (2**32 - 1)], True),
    "low words whose carry is missing": ([2**32 - 1] * 8 + [ROW_SUM - 8 * 2**32], False),
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.obligation("table-inequalities")
def test_row_sums(name: str) -> None:
    row, exact = ROWS[name]
    assert row_sums_exact(np.array([row], np.uint64)) is exact
    good = np.full(len(row), ROW_SUM // len(row), np.uint64)
    good[0] += np.uint64(ROW_SUM - int(good.sum()))
    assert row_sums_exact(np.array([good, row, good], np.uint64)) is exact

"""Audits of tables whose probabilities lie hundreds of nats apart, as those of Gaussian noise do.

Two routes: the package counts in integers; here logarithms are taken by `decimal` from the exact doubles, or from the
formula of the table.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from fixtures.integer_oracles import reference_violations
from fixtures.tolerances import UP_TO_ROUNDING

from mechdesign import DesignProblem, Domain, Euclidean, audit, baselines, load, save, verify
from mechdesign.extend import Edges
from mechdesign.losses import Distance
from mechdesign.mechanism.certificate import breaches, exp_lower, max_log_ratio_of_doubles

LEVEL = math.log(2) / 200  # nats per metre
LOGARITHMS = 1e-11  # relative: differences of a few logarithms of some 1e2 nats
TIGHT = Decimal(2) ** -59  # a 62-bit factor rounded down loses at most 2^-61, the Taylor sum far less
LARGEST, SMALLEST = 1.7976931348623157e308, 5e-324  # doubles; ln of their ratio is 1454.22


def on(domain: Domain, level: float) -> DesignProblem:
    return DesignProblem(domain, Euclidean(level, unit="m"), np.full(domain.size, 1 / domain.size), Distance())


def pair(level: float = 1.0) -> DesignProblem:
    return on(Domain.grid((2,), 1.0, unit="m"), level)


def flip(nats: float) -> np.ndarray:
    q = math.exp(-nats)
    return np.array([[1 - q, q], [q, 1 - q]])


def exact_nats(table: np.ndarray) -> Decimal:
    """ln of the largest ratio in a column of a 2 x 2 table, the doubles taken exactly."""
    with localcontext() as context:
        context.prec = 60
        return max(abs((Decimal(a) / Decimal(b)).ln()) for a, b in table.T.tolist())


def logs_of(kind: str) -> tuple[Domain, np.ndarray]:
    """ln P(y|u) of Gaussian noise of 500 m on 14 x 14 cells of 360 m, or of e^{-eps d} on 120 x 2 of 250 m."""
    shape, cell = ((14, 14), 360.0) if kind == "gaussian" else ((120, 2), 250.0)
    domain = Domain.grid(shape, cell, unit="m")
    apart = np.linalg.norm(domain.points[:, None] - domain.points[None], axis=2)
    logs = -(apart**2) / (2 * 500.0**2) if kind == "gaussian" else -LEVEL * apart
    return domain, logs - np.log(np.exp(logs).sum(axis=1, keepdims=True))


@pytest.mark.parametrize("nats", [79.0, 81.0, 300.0, 700.0, 743.0, 744.4])
def test_ratio_of_two_places_is_the_exact_one(nats):
    """The last two entries are subnormal; without a cap of 80 nats no scale is missed."""
    table = flip(nats)
    exact = exact_nats(table)
    result = audit(table, pair())
    assert exact <= Decimal(result.ratio) <= exact * Decimal(UP_TO_ROUNDING)
    assert (result.verdict, result.breaches) == ("broken", 2)


@pytest.mark.parametrize("nats", [81.0, 700.0, 744.4])
def test_claim_just_above_holds_and_just_below_breaks(nats):
    exact = float(exact_nats(flip(nats)))
    assert audit(flip(nats), pair(exact * (1 + 1e-12))).breaches == 0
    assert audit(flip(nats), pair(exact * (1 - 1e-12))).breaches == 2


def test_edge_of_1480_nats_is_no_cap():
    result = audit(flip(700.0), pair(1480.0))
    assert result.verdict == "holds"
    assert result.ratio == pytest.approx(700 / 1480, rel=1e-12)


def test_extreme_doubles_break_at_their_logarithm():
    """The largest over the smallest double, both ways round, and beyond the longest length that is computed."""
    for table in (np.array([[LARGEST], [SMALLEST]]), np.array([[SMALLEST], [LARGEST]])):
        exact = (Decimal(LARGEST) / Decimal(SMALLEST)).ln()
        for length in (1454.0, 1454.222, 1454.223, 1480.0, 1489.9, 1490.0, 2000.0):
            edge = Edges(tail=np.array([0]), head=np.array([1]), length=np.array([length]))
            assert breaches(table, edge) == (Decimal(length) < exact), length
            assert max_log_ratio_of_doubles(table, edge).value * length == pytest.approx(float(exact), rel=LOGARITHMS)


@pytest.mark.parametrize("length", [80.5, 81.0, 700.0, 1454.2227, 1480.0])
def test_long_exponentials_are_bounded_below_and_tight(length):
    factor, shift = exp_lower(length, 1490.0)
    with localcontext() as context:
        context.prec = 80
        exact, bound = Decimal(length).exp(), Decimal(factor) * Decimal(2) ** -shift
        assert exact * (1 - TIGHT) <= bound <= exact
    assert 2**61 <= factor < 2**62


def test_random_doubles_break_where_fractions_do():
    """Entries over the whole range of doubles; a comparison of logarithms that is not close decides as well."""
    rng = np.random.default_rng(5)
    table = rng.random((6, 8)) * 2.0 ** rng.integers(-1060, -1, (6, 8))
    tail, head = np.triu_indices(6, 1)
    length = rng.uniform(1, 1000, len(tail))
    with localcontext() as context:
        context.prec = 40
        logs = [[Decimal(value).ln() for value in row] for row in table.tolist()]
        expected = sum(
            abs(a - b) > Decimal(d)
            for u, v, d in zip(tail, head, length.tolist(), strict=True)
            for a, b in zip(logs[u], logs[v], strict=True)
        )
    assert breaches(table, Edges(tail=tail, head=head, length=length)) == expected
    assert 0 < expected < table.shape[1] * len(tail)


@pytest.mark.parametrize("kind", ["gaussian", "exponential"])
def test_noise_on_a_wide_grid_is_audited(kind):
    domain, logs = logs_of(kind)
    apart = np.linalg.norm(domain.points[:, None] - domain.points[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    expected = max(float((abs(logs - row).max(axis=1) / apart[u]).max()) for u, row in enumerate(logs)) / LEVEL
    states = []
    result = audit(np.exp(logs), on(domain, LEVEL), on_progress=states.append)
    assert result.ratio == pytest.approx(expected, rel=LOGARITHMS)
    last = {state.method: state for state in states}
    assert list(last) == ["largest ratio", "claim", "exact ratio"]
    assert all(state.done == state.total > 0 for state in last.values())


@pytest.mark.parametrize("nats", [81.0, 744.4])
def test_repaired_table_is_certified_in_fractions(nats, tmp_path):
    for level in (1.0, 100.0, 1480.0):
        fixed = baselines.repair_table(flip(nats), pair(level))
        save(fixed, tmp_path / f"{level}.nc")
        assert verify(load(tmp_path / f"{level}.nc")).certified
        edges = Edges(
            tail=fixed["edge_tail"].values, head=fixed["edge_head"].values, length=fixed["edge_length"].values
        )
        assert reference_violations(fixed["mass"].values, edges) == 0


def test_command_audits_and_repairs_a_wide_table(run, run_json, tmp_path):
    np.save(tmp_path / "wide.npy", flip(700.0))
    words = (tmp_path / "wide.npy", "--metric", "euclidean", "--epsilon", 1, "--unit", "m", "--grid", 2, "--cell", 1)
    code, document = run_json("audit", *words, "-o", tmp_path / "fixed.nc")
    assert (code, document["verdict"]) == (0, "broken")
    assert document["ratio"] == pytest.approx(700, rel=1e-12)
    code, out, _ = run("verify", tmp_path / "fixed.nc")
    assert code == 0
    assert out.startswith("Certified.")

"""Laws of certified tables: every finite table becomes private, by the definition of privacy."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from fixtures.integer_oracles import are_rows, distances, reference_violations
from hypothesis import given
from hypothesis import strategies as some
from reference.checking import ROW_SUM
from strategies import LAW, mechanisms, problems, tables

from mechdesign.extend import Edges, repair
from mechdesign.mechanism.draw import guides, row_masks, scan_row, scan_table, search_rows
from mechdesign.mechanism.repair import best_reports
from mechdesign.mechanism.small_draw import scan_small_row, scan_small_table, search_few

ROUNDED = 1 + 1e-12  # relative: shortest paths and exponentials of doubles


@given(some.data())
@LAW
def test_any_finite_table_is_repaired_to_a_certified_one(data) -> None:
    """Positive integers, rows of 2^62, and no entry above e^length times its neighbour's."""
    problem = data.draw(problems())
    mass = repair(data.draw(tables(problem)), problem.edges, problem.weighted_loss)
    assert are_rows(mass)
    assert reference_violations(mass, problem.edges) == 0


@given(mechanisms(), some.integers(1, 2**5 - 1))
@LAW
def test_odds_of_any_event_are_bounded_by_the_distance(mechanism, event: int) -> None:
    """P(S | u) <= e^d(u, v) P(S | v) for every two secrets, connected or not, and every set S of reports."""
    mass = mechanism["mass"].values
    edges = Edges(**{part: mechanism[f"edge_{part}"].values for part in ("tail", "head", "length")})
    distance = distances(edges, len(mass))
    reports = [y for y in range(mass.shape[1]) if event >> y & 1]
    chance = [sum(int(row[y]) for y in reports) / ROW_SUM for row in mass]
    for u, v in permutations(range(len(mass)), 2):
        assert chance[u] <= np.exp(distance[u, v]) * chance[v] * ROUNDED


@given(mechanisms())
@LAW
def test_remapped_reports_minimise_each_posterior_loss(mechanism) -> None:
    """No report z serves those who receive y better than the remapped one, so that remapping never raises the loss."""
    table = mechanism["mass"].values / ROW_SUM
    cost = mechanism["prior"].values[:, None] * mechanism["loss_table"].values
    remapped, loss = best_reports(table, cost)
    posterior_loss = table.T @ cost
    smallest = posterior_loss.min(axis=1)
    assert (posterior_loss[np.arange(len(remapped)), remapped] <= smallest * ROUNDED).all()
    assert loss <= mechanism.attrs["expected_loss"] * ROUNDED
    assert loss <= smallest.sum() * ROUNDED


@given(mechanisms(), some.integers(0, 2**62 - 1), some.integers(0, 4))
@LAW
def test_every_draw_inverts_the_cumulative_masses(mechanism, x: int, number: int) -> None:
    """Six routes from the same 62 bits to the first report whose cumulative mass is above them."""
    mass = np.ascontiguousarray(mechanism["mass"].values)
    secret = number % len(mass)
    expected = sum(sum(mass[secret, : y + 1].tolist()) <= x for y in range(mass.shape[1]))
    assert scan_row(mass[secret], np.uint64(x)) == expected
    row = np.zeros(mass.shape[1], np.uint64)
    assert scan_table(mass, row_masks(len(mass), secret), np.uint64(x), row) == expected
    cumulative, shift = mass[[secret]].cumsum(axis=1, dtype=np.uint64), np.uint64(59)
    drawn = np.zeros((1, 1), np.int64)
    words = np.array([x << 2], np.uint64)
    search_rows(cumulative, guides(cumulative, shift), shift, np.zeros(1, np.int64), words, 0, drawn)
    assert drawn[0, 0] == expected
    assert scan_small_row(mass[secret], np.uint64(x)) == expected
    assert scan_small_table(mass, row_masks(len(mass), secret), np.uint64(x)) == expected
    assert search_few(cumulative, np.zeros(1, np.int64), words).tolist() == [expected]

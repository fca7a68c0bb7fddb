"""The linear estimator: unbiased for every truth, with the stated variance; lost shares are marked."""

from __future__ import annotations

import numpy as np
import pytest
from fixtures.likelihood_programs import TABLES
from fixtures.report_collections import AREAS, MECHANISMS, channel, truths

from mechdesign.surveys.channel import Channel
from mechdesign.surveys.information import information
from mechdesign.surveys.linear_estimator import TOLERANCE, law_beforehand, linear_weights

EXACT = 1e-9  # solves with condition numbers up to 10^6 in double precision
UNIFORM = np.full(100, 0.01)


def deviation(held, weights, law):
    """The standard deviation of a(y) for one report of the law."""
    return np.sqrt(held.moments(law, weights))


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("truth", ["check-ins", "sparse"])
def test_square_tables_reach_the_fisher_variance(name, truth):
    held, p = channel(name), truths()[truth]
    wanted = np.column_stack(list(AREAS.values()))
    weights = linear_weights(held, wanted, truths()["check-ins"])
    np.testing.assert_allclose(
        weights.values, np.linalg.solve(held.table, wanted), atol=EXACT * abs(weights.values).max()
    )
    np.testing.assert_allclose(weights.values, linear_weights(held, wanted, UNIFORM).values, rtol=1e-6, atol=1e-6)
    assert weights.identifiable.all()
    inverse = np.linalg.inv(information(held.table, p))
    fisher = np.einsum("uk,uv,vk->k", wanted, inverse, wanted) - (p @ wanted) ** 2
    np.testing.assert_allclose(deviation(held, weights.values, p @ held.table) ** 2, fisher, rtol=1e-6)


def test_more_reports_have_least_variance_at_design():
    """Against the best weights under the constraint P a = g, by the normal equations of generalized least squares."""
    random = np.random.default_rng(0)
    held, p, wanted = Channel.of(random.dirichlet(np.ones(40), 12)), random.dirichlet(np.ones(12)), np.eye(12)[:, :3]
    weights = linear_weights(held, wanted, p)
    np.testing.assert_allclose(held.table @ weights.values, wanted, atol=EXACT)
    null = np.linalg.svd(held.table)[2][12:].T
    law = law_beforehand(held, p)
    for direction in null.T:
        moved = weights.values + 0.01 * direction[:, None] / abs(direction).max()
        assert (deviation(held, moved, law) >= deviation(held, weights.values, law)).all()
        assert abs((law * direction) @ weights.values).max() <= EXACT * abs(weights.values).max()


@pytest.mark.parametrize("name", ["twins", "flat", "zeros"])
def test_lost_shares_are_named_and_kept_ones_are_not(name):
    """Of twins only the joint share is identifiable. With more secrets than reports some share is lost."""
    table = TABLES[name]()
    held, n = Channel.of(table[:, table.any(axis=0)]), len(table)
    weights = linear_weights(held, np.column_stack([np.eye(n), np.ones(n)]), np.full(n, 1 / n))
    rank = np.linalg.matrix_rank(held.table, tol=1e-7)
    assert weights.lost == n - rank > 0
    assert weights.identifiable[-1]
    residual = np.eye(n) - held.table @ np.linalg.pinv(held.table, rcond=1e-7)
    lost = abs(residual).max(axis=0) > 1e-3
    np.testing.assert_array_equal(weights.identifiable[:-1], ~lost)
    assert (weights.bias[:-1][lost] > 100 * TOLERANCE).all()
    if name == "twins":
        pair = linear_weights(held, np.eye(n)[:, :1] + np.eye(n)[:, 1:2], np.full(n, 1 / n))
        assert pair.identifiable.all()


def test_two_levels_beat_each_alone_unbiased():
    random = np.random.default_rng(3)
    one, two = (channel(name).tables[0] for name in list(MECHANISMS)[:2])
    both = Channel.of(one, two, shares=[0.3, 0.7])
    mark, p = AREAS["centre"][:, None], truths()["check-ins"]
    weights = linear_weights(both, mark, p)
    np.testing.assert_allclose(both.table.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(both.table @ weights.values, mark, atol=EXACT)
    variance = deviation(both, weights.values, p @ both.table)[0] ** 2
    parts = [linear_weights(Channel.of(table), mark, p) for table in (one, two)]
    alone = [deviation(Channel.of(t), w.values, p @ t)[0] ** 2 for t, w in zip((one, two), parts, strict=True)]
    assert variance <= min(alone[0] / 0.3, alone[1] / 0.7)
    counts = np.hstack([random.multinomial(n, p @ t / (p @ t).sum(), size=4_000) for n, t in ((300, one), (700, two))])
    means = counts / 1_000 @ weights.values[:, 0]
    assert abs(means.mean() - p @ mark[:, 0]) <= 4 * np.sqrt(variance / 1_000 / 4_000)
    assert means.var() * 1_000 == pytest.approx(variance, rel=4 * np.sqrt(2 / 4_000))


def test_moments_are_those_of_their_definition():
    random = np.random.default_rng(1)
    held = Channel.of(random.dirichlet(np.ones(5), 3), random.dirichlet(np.ones(4), 3), shares=[0.4, 0.6])
    law = random.dirichlet(np.ones(3)) @ held.table
    weights = random.normal(size=(9, 2))
    for order in (2, 4):
        wanted = 0.0
        for part, share in ((slice(0, 5), 0.4), (slice(5, 9), 0.6)):
            centred = weights[part] - law[part] @ weights[part] / share
            wanted = wanted + law[part] @ centred**order
        np.testing.assert_allclose(held.moments(law, weights, order=order), wanted, rtol=1e-12)
        np.testing.assert_allclose(held.moments(np.stack([law, law]), weights, order=order)[1], wanted, rtol=1e-12)

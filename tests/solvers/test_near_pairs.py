"""Near pairs of a lattice: their displacements, and the excess of paths along them."""

from __future__ import annotations

import numpy as np
import pytest
from fixtures.problems import grid

from mechdesign import DesignProblem, Domain, Euclidean, priors
from mechdesign.errors import UnsuitableError
from mechdesign.losses import Distance
from mechdesign.programs.near_pairs import excess, near_edges, near_pairs


def problem(domain: Domain) -> DesignProblem:
    return DesignProblem(
        domain=domain,
        metric=Euclidean(epsilon=0.6, unit="cell"),
        prior=priors.proportional(np.ones(domain.size)),
        loss=Distance(),
    )


def test_near_pairs_lie_on_the_stencil() -> None:
    """Every edge of the claim, one by one: its sorted displacement and its length."""
    direct = problem(grid((6, 6)))
    steps = {(1, 0), (1, 1), (2, 1), (3, 1), (3, 2)}
    index = direct.domain.index
    assert index is not None
    claimed = zip(direct.edges.tail.tolist(), direct.edges.head.tolist(), direct.edges.length.tolist(), strict=True)
    expected = {
        (u, v): length
        for u, v, length in claimed
        if tuple(sorted(abs(index[u] - index[v]).tolist(), reverse=True)) in steps
    }
    near = near_pairs(direct).edges
    pairs = zip(near.tail.tolist(), near.head.tolist(), near.length.tolist(), strict=True)
    assert {(u, v): length for u, v, length in pairs} == expected
    assert len(near.tail) == len(expected) < len(direct.edges.tail)
    assert len(near_edges(direct.edges, direct.domain, 4).tail) == 2 * 6 * 5


def test_excess_around_a_mask_by_hand() -> None:
    """Five cells around a masked one: its neighbours are 2 apart, and two diagonal steps along near pairs."""
    mask = np.array([[True, True], [True, False], [True, True]])
    direct = problem(grid((3, 2), mask=mask))
    assert excess(direct, near_pairs(direct)) == pytest.approx(np.sqrt(2), rel=1e-12)


@pytest.mark.parametrize(
    "domain", [Domain.points_at(np.random.default_rng(0).random((20, 2)), unit="cell"), grid((3, 3, 3))]
)
def test_other_domains_are_refused(domain: Domain) -> None:
    with pytest.raises(UnsuitableError):
        near_pairs(problem(domain))

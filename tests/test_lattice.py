from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from mechdesign.errors import InputError
from mechdesign.setting.domain import Domain
from mechdesign.setting.geodesic import Edges, shortest_paths
from mechdesign.setting.lattice import irreducible_pairs, stencil_pairs

CLOSURE = 1e-12  # a sum of at most a dozen collinear lengths, each rounded to 2^-53

SHAPES = [(9,), (1, 6), (4, 5), (6, 3), (3, 3, 2), (2, 4, 3)]


def pair_set(pairs):
    listed = list(zip(*(end.tolist() for end in pairs), strict=True))
    assert len(set(listed)) == len(listed)
    assert all(tail < head for tail, head in listed)
    return set(listed)


def random_grid(shape, seed, share=0.6):
    rng = np.random.default_rng(seed)
    mask = rng.random(shape) < share
    mask.flat[[0, -1]] = True
    return Domain.grid(shape, cell=rng.uniform(0.3, 2, len(shape)).tolist(), unit="m", mask=mask)


def cells_between(domain, tail, head):
    """Domain cells strictly inside the segment between two cells."""
    step = domain.index[head] - domain.index[tail]
    parts = math.gcd(*step.tolist())
    return [k for k in range(1, parts) if domain.lookup[tuple(domain.index[tail] + k * step // parts)] >= 0]


@pytest.mark.parametrize("shape", SHAPES)
def test_without_a_mask_the_irreducible_pairs_are_the_coprime_ones(shape):
    domain = Domain.grid(shape, cell=1.0, unit="m")
    coprime = {
        (u, v)
        for u, v in itertools.combinations(range(domain.size), 2)
        if math.gcd(*(domain.index[v] - domain.index[u]).tolist()) == 1
    }
    assert pair_set(irreducible_pairs(domain)) == coprime


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shape", [(12,), (7, 8), (4, 3, 4)])
def test_irreducible_pairs_have_nothing_between_and_imply_all_pairs(shape, seed):
    domain = random_grid(shape, seed)
    tail, head = irreducible_pairs(domain)
    clear = {p for p in itertools.combinations(range(domain.size), 2) if not cells_between(domain, *p)}
    assert pair_set((tail, head)) == clear
    exact = domain.euclidean_to(domain)
    closure = shortest_paths(Edges(tail=tail, head=head, length=exact[tail, head]), domain.size)
    np.testing.assert_allclose(closure, exact, rtol=CLOSURE)


@pytest.mark.parametrize("make", [Domain.points_at, Domain.nodes])
def test_off_a_lattice_all_pairs_are_kept(make):
    domain = make([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [5.0, 1.0]], unit="m")
    assert pair_set(irreducible_pairs(domain)) == set(itertools.combinations(range(4), 2))


@pytest.mark.parametrize("stencil", [4, 8, 16])
@pytest.mark.parametrize(("kx", "ky"), [(1, 5), (2, 2), (2, 3), (5, 4), (7, 7)])
def test_stencils_join_exactly_their_displacements(kx, ky, stencil):
    domain = Domain.grid((kx, ky), cell=1.0, unit="m")
    shapes = {4: {(0, 1)}, 8: {(0, 1), (1, 1)}, 16: {(0, 1), (1, 1), (1, 2)}}[stencil]
    steps = np.abs(domain.index[:, None] - domain.index[None, :])
    pairs = itertools.combinations(range(domain.size), 2)
    wanted = {(u, v) for u, v in pairs if tuple(sorted(steps[u, v].tolist())) in shapes}
    found = pair_set(stencil_pairs(domain, stencil))
    assert found == wanted
    counts = ((kx - 1) * ky + kx * (ky - 1), 2 * (kx - 1) * (ky - 1))
    knights = 2 * max(kx - 2, 0) * (ky - 1) + 2 * (kx - 1) * max(ky - 2, 0)
    assert len(found) == sum((*counts, knights)[: {4: 1, 8: 2, 16: 3}[stencil]])


TURNS = [lambda m: m, np.flipud, np.fliplr, lambda m: m[::-1, ::-1]]
TURNS += [lambda m, turn=turn: turn(m).T for turn in TURNS]


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize(
    ("start", "end", "present", "joined"),
    [
        ((0, 0), (1, 1), [], False),
        ((0, 0), (1, 1), [(1, 0)], True),
        ((0, 0), (1, 1), [(0, 1)], True),
        ((0, 0), (2, 1), [(1, 0)], False),
        ((0, 0), (2, 1), [(1, 1)], False),
        ((0, 0), (2, 1), [(0, 1), (2, 0)], False),
        ((0, 0), (2, 1), [(0, 1), (2, 0), (1, 0)], False),
        ((0, 0), (2, 1), [(1, 0), (1, 1)], True),
    ],
)
def test_steps_through_masked_cells_are_left_out(turn, start, end, present, joined):
    kind = np.zeros((3, 2), int)
    for cell in present:
        kind[cell] = 1
    kind[start] = kind[end] = 2
    kind = turn(kind)
    domain = Domain.grid(kind.shape, cell=1.0, unit="m", mask=kind > 0)
    ends = tuple(np.flatnonzero(kind[kind > 0] == 2).tolist())
    assert (ends in pair_set(stencil_pairs(domain, 16))) is joined


@pytest.mark.parametrize("stencil", [4, 8, 16])
def test_on_a_line_neighbours_are_adjacent_cells(stencil):
    mask = np.array([True, True, False, True, True, True])
    assert pair_set(stencil_pairs(Domain.grid(6, cell=1.0, unit="m"), stencil)) == {(k, k + 1) for k in range(5)}
    masked = Domain.grid(6, cell=1.0, unit="m", mask=mask)
    assert pair_set(stencil_pairs(masked, stencil)) == {(0, 1), (2, 3), (3, 4)}


@pytest.mark.parametrize(
    ("domain", "stencil", "field"),
    [
        (Domain.grid((3, 3), cell=1.0, unit="m"), 5, "stencil"),
        (Domain.grid((3, 3, 3), cell=1.0, unit="m"), 8, "domain"),
        (Domain.points_at([0.0, 1.0], unit="m"), 8, "domain"),
        (Domain.nodes(4), 4, "domain"),
    ],
)
def test_stencils_refuse_what_they_do_not_fit(domain, stencil, field):
    with pytest.raises(InputError) as caught:
        stencil_pairs(domain, stencil)
    assert caught.value.field == field
    assert caught.value.remedy

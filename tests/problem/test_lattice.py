from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import psutil
import pytest
from fixtures.rows import few_by_default
from scipy.ndimage import label

from mechdesign import Domain, Euclidean
from mechdesign.errors import InputError, SizeError
from mechdesign.extend import Edges
from mechdesign.problem import lattice

CLOSURE = 1e-12  # a sum of at most a dozen collinear lengths, each rounded to 2^-53

SHAPES = [(9,), (1, 6), (4, 5), (6, 3), (3, 3, 2), (2, 4, 3)]


def pair_set(pairs):
    pair_list = list(zip(*(end.tolist() for end in pairs), strict=True))
    assert len(set(pair_list)) == len(pair_list)
    assert all(tail < head for tail, head in pair_list)
    return set(pair_list)


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
def test_irreducible_pairs_are_coprime_without_mask(shape):
    domain = Domain.grid(shape, cell=1.0, unit="m")
    coprime = {
        (u, v)
        for u, v in itertools.combinations(range(domain.size), 2)
        if math.gcd(*(domain.index[v] - domain.index[u]).tolist()) == 1
    }
    assert pair_set(lattice.irreducible_pairs(domain)) == coprime


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shape", [(12,), (7, 8), (4, 3, 4)])
@pytest.mark.obligation("edges-imply-pairs")
def test_irreducible_pairs_imply_all_pairs(shape, seed):
    domain = random_grid(shape, seed)
    tail, head = lattice.irreducible_pairs(domain)
    clear = {p for p in itertools.combinations(range(domain.size), 2) if not cells_between(domain, *p)}
    assert pair_set((tail, head)) == clear
    exact = domain.euclidean_to(domain)
    closure = lattice.shortest_paths(Edges(tail=tail, head=head, length=exact[tail, head]), domain.size)
    np.testing.assert_allclose(closure, exact, rtol=CLOSURE)


@pytest.mark.parametrize("seed", range(12))
def test_irreducible_pairs_agree_by_two_routes(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    shape = [int(k) for k in rng.integers(1, (12, 6)[seed % 2], 2 + seed % 2)]
    domain = random_grid([*shape[:-1], shape[-1] + 1], seed, share=rng.uniform(0.02, 1))
    ways = []
    for sparse in (0, 1 << 30):
        monkeypatch.setattr(lattice, "_SPARSITY", sparse)
        ways.append(lattice.irreducible_pairs(domain))
    for one, other in zip(*ways, strict=True):
        assert (one.dtype, one.tolist()) == (np.dtype(np.int64), other.tolist())


def test_on_a_line_the_nearest_cells_come_by_their_distance():
    mask = np.isin(np.arange(9), [0, 1, 4, 5, 8])
    tail, head = lattice.irreducible_pairs(Domain.grid(9, cell=1.0, unit="m", mask=mask))
    assert (tail.dtype, tail.tolist(), head.tolist()) == (np.dtype(np.int64), [0, 2, 1, 3], [1, 3, 2, 4])


def test_sparse_lattice_costs_only_its_pairs():
    mask = np.zeros((2000, 2000), bool)
    mask[[0, 700, 1400, 1999, 0], [0, 500, 1000, 1, 1999]] = True
    domain = Domain.grid(mask.shape, cell=1.0, unit="m", mask=mask)
    every = set(itertools.combinations(range(5), 2))
    assert pair_set(lattice.irreducible_pairs(domain)) == every - {(domain.lookup[0, 0], domain.lookup[1400, 1000])}


def longest_detour(domain, epsilon):
    """Largest exact ratio of a shortest path over the listed lengths to epsilon times the distance, to 2^-200."""
    edges = Euclidean(epsilon=epsilon, unit="m").edges(domain)
    shortest = [[None] * domain.size for _ in range(domain.size)]
    for tail, head, length in zip(edges.tail, edges.head, edges.length.tolist(), strict=True):
        shortest[tail][head] = shortest[head][tail] = Fraction(length)
    for through, one, other in itertools.product(range(domain.size), repeat=3):
        parts = shortest[one][through], shortest[through][other]
        if one < other and None not in parts and (shortest[one][other] is None or sum(parts) < shortest[one][other]):
            shortest[one][other] = shortest[other][one] = sum(parts)
    worst = Fraction(0)
    for one, other in itertools.combinations(range(domain.size), 2):
        ends = zip(domain.points[one].tolist(), domain.points[other].tolist(), strict=True)
        square = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in ends) * Fraction(epsilon) ** 2
        root = Fraction(math.isqrt(square.numerator * square.denominator << 400), square.denominator << 200)
        worst = max(worst, shortest[one][other] / root)
    return worst


FAR = 2.0**27  # cells from zero
PLACED = {
    "cells of 150 m in projected metres": ((5, 4), (150.0, 150.0), (5e6 + 0.1, 4.5e5 + 1 / 3)),
    "uneven cells": ((4, 5), (0.3, 1e4 / 7), (-1.7, 2e5 / 3)),
    "negative origin": ((9,), (0.7,), (-0.99 * 0.7 * FAR,)),
    "as far as it goes": ((5, 4), (1 / 3, 1 / 7), (0.99 * FAR / 3, -0.99 * FAR / 7)),
    "as far as it goes in space": ((3, 4, 2), (1 / 3, 0.1, 1 / 7), (-0.99 * FAR / 3, 0.099 * FAR, 0.99 * FAR / 7)),
    "one axis far": ((3, 6), (1.1, 1 / 3), (0.0, 0.99 * FAR / 3)),
}


@pytest.mark.parametrize("seed", few_by_default(range(4), 0, 2))
@pytest.mark.parametrize("case", PLACED)
@pytest.mark.obligation("lengths-rounded-down")
def test_path_lengths_stay_below_the_distance(case, seed):
    shape, cell, origin = PLACED[case]
    rng = np.random.default_rng(seed)
    mask = rng.random(shape) < (1.0, 0.8, 0.6, 0.4)[seed]
    mask.flat[[0, -1]] = True
    domain = Domain.grid(shape, cell=cell, unit="m", origin=origin, mask=mask)
    assert 1 - Fraction(1, 2**43) <= longest_detour(domain, float(rng.uniform(0.001, 2))) <= 1


@pytest.mark.parametrize(("cell", "origin", "excess"), [(3.0, 2.0**53, 0.01), (1 / 3, 2.0**40, 1e-9)])
def test_centres_lost_in_rounding_are_refused(monkeypatch, cell, origin, excess):
    domain = Domain.grid((4, 5), cell=cell, unit="m", origin=origin)
    with pytest.raises(InputError, match="rounding") as caught:
        lattice.irreducible_pairs(domain)
    assert caught.value.field == "origin"
    assert lattice.stencil_pairs(domain, 8)
    monkeypatch.setattr(lattice, "_MAX_CELLS_FROM_ZERO", math.inf)
    assert longest_detour(domain, 0.7) > 1 + excess


def test_pairs_that_would_not_fit_in_memory_are_refused(monkeypatch):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"available": 10_000}))
    for domain, pairs in (
        (Domain(kind="nodes", points=np.arange(40.0)[:, None], unit="1"), lattice.all_pairs),
        (Domain(kind="points", points=np.arange(40.0)[:, None], unit="m"), lattice.irreducible_pairs),
    ):
        with pytest.raises(SizeError):
            pairs(domain)


@pytest.mark.parametrize("make", [Domain.points_at, Domain.nodes])
def test_all_pairs_are_listed_off_a_lattice(make):
    domain = make([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [5.0, 1.0]], unit="m")
    assert pair_set(lattice.irreducible_pairs(domain)) == set(itertools.combinations(range(4), 2))


# Displacements up to sign and order, written out here a second time.
STEPS = {
    4: {(0, 1)},
    8: {(0, 1), (1, 1)},
    16: {(0, 1), (1, 1), (1, 2)},
    32: {(0, 1), (1, 1), (1, 2), (1, 3), (2, 3)},
    64: {(0, 1), (1, 1), (1, 2), (1, 3), (2, 3), (1, 4), (3, 4), (2, 5), (3, 5)},
    6: {(0, 0, 1)},
    18: {(0, 0, 1), (0, 1, 1)},
    26: {(0, 0, 1), (0, 1, 1), (1, 1, 1)},
}
PLANE, SPACE = (4, 8, 16, 32, 64), (6, 18, 26)
FITTING = [
    *itertools.product([(1, 5), (2, 2), (2, 3), (5, 4), (4, 9), (7, 7)], PLANE),
    *itertools.product([(1, 1, 4), (2, 2, 2), (2, 3, 4), (4, 3, 3)], SPACE),
]


def stencil_neighbours(domain, stencil):
    """Pairs of places that a step of the stencil joins, masked cells or not."""
    steps = np.sort(np.abs(domain.index[:, None] - domain.index[None, :]), axis=2)
    pairs = itertools.combinations(range(domain.size), 2)
    return {(u, v) for u, v in pairs if tuple(steps[u, v].tolist()) in STEPS[stencil]}


def crossed_cells(start, end):
    """Cells whose interior the segment between two cell centres meets, in the order it meets them; in fractions."""
    cells = []
    for cell in itertools.product(*(range(min(a, b), max(a, b) + 1) for a, b in zip(start, end, strict=True))):
        enter, leave = Fraction(0), Fraction(1)
        for a, b, c in zip(start, end, cell, strict=True):
            if a == b:
                continue
            moments = sorted(Fraction(2 * (c - a) + side, 2 * (b - a)) for side in (-1, 1))
            enter, leave = max(enter, moments[0]), min(leave, moments[1])
        if enter < leave:
            cells.append((enter, cell))
    return [cell for _, cell in sorted(cells)]


def is_clear(domain, tail, head):
    """True if the crossed cells are in the domain and each is joined to the next by faces, within their block."""
    cells = crossed_cells(domain.index[tail].tolist(), domain.index[head].tolist())
    inside = domain.lookup >= 0
    for here, there in itertools.pairwise(cells):
        low = np.minimum(here, there)
        block = inside[tuple(slice(a, b + 1) for a, b in zip(low, np.maximum(here, there), strict=True))]
        parts, _ = label(block)
        ends = [parts[tuple(np.asarray(cell) - low)] for cell in (here, there)]
        if ends[0] == 0 or ends[0] != ends[1]:
            return False
    return True


@pytest.mark.parametrize(("shape", "stencil"), FITTING)
def test_stencils_join_exactly_their_displacements(shape, stencil):
    domain = Domain.grid(shape, cell=1.0, unit="m")
    assert pair_set(lattice.stencil_pairs(domain, stencil)) == stencil_neighbours(domain, stencil)


@pytest.mark.parametrize("stencil", STEPS)
def test_inner_cell_has_all_stencil_neighbours(stencil):
    domain = Domain.grid((11, 11) if stencil in PLANE else (3, 3, 3), cell=1.0, unit="m")
    assert sum(domain.size // 2 in pair for pair in pair_set(lattice.stencil_pairs(domain, stencil))) == stencil


@pytest.mark.parametrize("seed", few_by_default(range(6), 4))
@pytest.mark.parametrize(("shape", "stencil"), [((6, 7), s) for s in PLANE] + [((4, 3, 3), s) for s in SPACE])
def test_steps_through_masked_cells_are_omitted(shape, stencil, seed):
    domain = random_grid(shape, seed, share=0.5 + 0.05 * seed)
    wanted = {pair for pair in stencil_neighbours(domain, stencil) if is_clear(domain, *pair)}
    assert pair_set(lattice.stencil_pairs(domain, stencil)) == wanted
    assert stencil in (4, 6) or wanted < stencil_neighbours(domain, stencil)


def orientations(block):
    """The block in all orientations, each once."""
    ways = itertools.product(
        itertools.permutations(range(block.ndim)), itertools.product((False, True), repeat=block.ndim)
    )
    every = (np.flip(block.transpose(order), [k for k, flip in enumerate(axes) if flip]) for order, axes in ways)
    return {(one.shape, one.tobytes()): one for one in every}.values()


BY_HAND = [  # the last cell of a step, the cells that are there, and whether they join it
    ((1, 1), [], False),
    ((1, 1), [(1, 0)], True),
    ((1, 1), [(0, 1)], True),
    ((2, 1), [(1, 0)], False),
    ((2, 1), [(1, 1)], False),
    ((2, 1), [(0, 1), (2, 0)], False),
    ((2, 1), [(0, 1), (2, 0), (1, 0)], False),
    ((2, 1), [(1, 0), (1, 1)], True),
    ((3, 1), [(1, 0), (2, 1)], False),
    ((3, 1), [(1, 0), (2, 1), (1, 1)], True),
    ((3, 1), [(1, 0), (2, 1), (2, 0)], True),
    ((3, 1), [(1, 0), (1, 1), (2, 0)], False),
    ((3, 2), [(1, 0), (1, 1), (2, 1), (2, 2)], True),
    ((3, 2), [(1, 0), (1, 1), (2, 1)], False),
    ((3, 2), [(0, 1), (1, 1), (2, 1), (2, 2)], False),
    ((1, 1, 0), [(1, 0, 0)], True),
    ((1, 1, 0), [], False),
    ((1, 1, 1), [(1, 0, 0), (1, 1, 0)], True),
    ((1, 1, 1), [(0, 0, 1), (1, 0, 1)], True),
    ((1, 1, 1), [(1, 0, 0), (0, 1, 1)], False),
    ((1, 1, 1), [(1, 0, 0), (0, 1, 0), (0, 0, 1)], False),
    ((1, 1, 1), [(1, 1, 0), (0, 1, 1), (1, 0, 1)], False),
]


@pytest.mark.parametrize(("end", "present", "joined"), few_by_default(BY_HAND, *BY_HAND[::2]))
def test_steps_through_masked_cells_by_hand(end, present, joined):
    kind = np.zeros([k + 1 for k in end], int)
    for cell in present:
        kind[cell] = 1
    kind.flat[0] = kind[end] = 2
    for block in orientations(kind):
        domain = Domain.grid(block.shape, cell=1.0, unit="m", mask=block > 0)
        ends = tuple(np.flatnonzero(block[block > 0] == 2).tolist())
        assert (ends in pair_set(lattice.stencil_pairs(domain, 64 if len(end) == 2 else 26))) is joined


def test_pairs_come_in_file_order():
    domain = Domain.grid((5, 4), cell=1.0, unit="m")
    tail, head = lattice.stencil_pairs(domain, 16)
    steps_in_order = [tuple(step) for step in (domain.index[head] - domain.index[tail]).tolist()]
    steps = [(1, 0), (0, 1), (1, 1), (1, -1), (2, 1), (1, 2), (2, -1), (1, -2)]
    assert [step for step, _ in itertools.groupby(steps_in_order)] == steps
    for _, block in itertools.groupby(range(len(tail)), key=steps_in_order.__getitem__):
        assert (np.diff(tail[list(block)]) > 0).all()


@pytest.mark.parametrize("nested", [PLANE, SPACE])
def test_larger_stencil_extends_the_smaller(nested):
    domain = random_grid((6, 7) if nested == PLANE else (3, 4, 3), 1, share=0.8)
    for few, many in itertools.pairwise(nested):
        for some, more in zip(lattice.stencil_pairs(domain, few), lattice.stencil_pairs(domain, many), strict=True):
            assert len(some) < len(more)
            assert np.array_equal(some, more[: len(some)])


@pytest.mark.parametrize("stencil", PLANE)
def test_on_a_line_neighbours_are_adjacent_cells(stencil):
    mask = np.array([True, True, False, True, True, True])
    assert pair_set(lattice.stencil_pairs(Domain.grid(6, cell=1.0, unit="m"), stencil)) == {
        (k, k + 1) for k in range(5)
    }
    masked = Domain.grid(6, cell=1.0, unit="m", mask=mask)
    assert pair_set(lattice.stencil_pairs(masked, stencil)) == {(0, 1), (2, 3), (3, 4)}


@pytest.mark.parametrize(
    ("domain", "stencil", "field", "message"),
    [
        (Domain.grid(3, cell=1.0, unit="m"), 2, "stencil", "must be 4, 8, 16, 32 or 64 on one axis"),
        (Domain.grid((3, 3), cell=1.0, unit="m"), 5, "stencil", "must be 4, 8, 16, 32 or 64 on two axes"),
        (Domain.grid((3, 3), cell=1.0, unit="m"), 26, "stencil", "must be 4, 8, 16, 32 or 64 on two axes"),
        (Domain.grid((3, 3, 3), cell=1.0, unit="m"), 8, "stencil", "must be 6, 18 or 26 on three axes"),
        (Domain.grid((3, 3), cell=1.0, unit="m"), 8.0, "stencil", "must be 4, 8, 16, 32 or 64 on two axes"),
        (Domain.grid((3, 3), cell=1.0, unit="m"), "8", "stencil", "must be 4, 8, 16, 32 or 64 on two axes"),
        (Domain.points_at([0.0, 1.0], unit="m"), 8, "domain", "needs a grid"),
        (Domain.nodes(4), 4, "domain", "needs a grid"),
    ],
)
def test_unfitting_stencils_are_refused(domain, stencil, field, message):
    with pytest.raises(InputError, match=message) as caught:
        lattice.stencil_pairs(domain, stencil)
    assert caught.value.field == field

"""The moved-test: its theorem by enumeration in fractions, its integers, and what a change of them breaks."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import pytest
from sessions import METRIC, RULES, design, line, table

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.mechanism.session.offsets import Offsets, below, breaches, make_offsets
from mechdesign.mechanism.table.certificate import ROW_SUM, exp_lower

ONCE, SLOPE = Fraction(2, 11), Fraction(5, 11)  # nats per step: close to the notes' ln(6/5) and 2 ln(5/4)


def answers(made: Offsets, trace: tuple[int, ...]) -> list[int]:
    """P(first "far" at tick t) for t = 0..T-1, then P(never), over 2^62 (T + 1 times), exact."""
    found = []
    for end in range(len(trace) + 1):
        total = 0
        for offset, weight in enumerate(made.p):
            for f in trace[:end]:
                weight *= ROW_SUM - made.chance(f, offset)
            if end < len(trace):
                weight *= made.chance(trace[end], offset)
            else:
                weight *= 1
            total += weight
        found.append(total * ROW_SUM ** (len(trace) - min(end + 1, len(trace))))
    return found


def violations(made: Offsets, once: Fraction, slope: Fraction, places: int = 5, ticks: int = 3) -> int:
    """Pairs of traces on a line and answers whose odds exceed the theorem, in whole numbers."""
    laws = {trace: answers(made, trace) for trace in itertools.product(range(places), repeat=ticks)}
    bounds = [[exp_lower(below(distance * level)) for level in (once + slope, once)] for distance in range(places)]
    bad = 0
    for x, y in itertools.product(laws, repeat=2):
        distance = max(abs(a - b) for a, b in zip(x, y, strict=True))
        for end, (left, right) in enumerate(zip(laws[x], laws[y], strict=True)):
            ratio, bits = bounds[distance][end == ticks]
            bad += (left << bits) > ratio * right
    return bad


@pytest.fixture(scope="module")
def made() -> Offsets:
    return make_offsets(4, 1, ONCE, SLOPE)


def test_no_pair_of_traces_exceeds_the_theorem(made: Offsets) -> None:
    """15,625 pairs of traces of three ticks on five places, all answers; "never" costs the offset alone."""
    assert breaches(made, ONCE, SLOPE) == 0
    assert sum(answers(made, (0, 4, 2))) == ROW_SUM**4
    assert violations(made, ONCE, SLOPE) == 0
    assert violations(made, ONCE / 2, SLOPE) > 0
    assert violations(made, ONCE, SLOPE / 8) > 0


def changed(values: tuple[int, ...], at: int, by: int) -> tuple[int, ...]:
    return tuple(value + by * (k == at) for k, value in enumerate(values))


MUTANTS = {
    "p rises to its tail": lambda o: replace(o, p=changed(changed(o.p, 0, 2**58), -1 % len(o.p), -(2**58))),
    "p falls too fast": lambda o: replace(o, p=changed(changed(o.p, 1, 2**57), 0, -(2**57))),
    "q jumps": lambda o: replace(o, q=tuple(ROW_SUM if k > o.top - 3 else o.q[0] for k in range(len(o.q)))),
    "q falls": lambda o: replace(o, q=(*o.q[:-1], o.q[-2] // 2)),
    "p has too little in its tail": lambda o: replace(o, p=(*o.p[:-2], o.p[-2] + o.p[-1] // 2, o.p[-1] - o.p[-1] // 2)),
    "q never": lambda o: replace(o, q=(0, *o.q[1:])),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_changed_integers_are_found(made: Offsets, name: str) -> None:
    assert breaches(MUTANTS[name](made), ONCE, SLOPE) > 0


@pytest.mark.parametrize("name", ["p falls too fast", "q jumps", "q falls"])
def test_changed_integers_break_the_theorem(made: Offsets, name: str) -> None:
    assert violations(MUTANTS[name](made), ONCE, SLOPE, ticks=2) > 0


def test_every_single_raise_of_a_tight_entry_is_a_breach(made: Offsets) -> None:
    """Of p: taken from its tail; of q, where a place on the slope is lifted by a thousandth."""
    for at in range(made.top - 1):
        tall = changed(changed(made.p, at, made.p[at] // 1000 + 1), made.top, -(made.p[at] // 1000 + 1))
        assert breaches(replace(made, p=tall), ONCE, SLOPE) > 0
    for at in range(1, made.top):
        if made.q[at] < ROW_SUM // 2:
            assert breaches(replace(made, q=changed(made.q, at, made.q[at] // 1000)), ONCE, SLOPE) > 0


@pytest.mark.parametrize(
    "odd",
    [
        lambda o: replace(o, p=o.p[:-1]),
        lambda o: replace(o, p=(-1, *o.p[1:-1], o.p[-1] + o.p[0] + 1)),
        lambda o: replace(o, p=changed(o.p, 0, 1)),
        lambda o: replace(o, q=changed(o.q, o.top, 1)),
        lambda o: replace(o, far=o.top + 1),
        lambda o: replace(o, far=-1),
    ],
)
def test_vectors_of_another_kind_are_refused(made: Offsets, odd) -> None:
    with pytest.raises(InputError) as caught:
        breaches(odd(made), ONCE, SLOPE)
    assert caught.value.field == "offsets"


@pytest.mark.parametrize("once", [Fraction(1, 50), Fraction(1, 3), Fraction(3), Fraction(1, 7**9)])
@pytest.mark.parametrize("slope", [Fraction(1, 40), Fraction(1), Fraction(9, 2)])
@pytest.mark.parametrize("far", [1, 7, 60])
def test_integers_are_close_to_the_laws_they_stand_for(once: Fraction, slope: Fraction, far: int) -> None:
    found = make_offsets(far, max(far // 2, 1), once, slope)
    assert breaches(found, once, slope) == 0
    ratio = Fraction(*((lambda r, s: (r, 2**s))(*exp_lower(below(once)))))
    for r in range(min(found.top, 20)):
        exact = (1 - 1 / ratio) / ratio**r
        assert abs(Fraction(found.p[r], ROW_SUM) - exact) <= Fraction(1, 2**40)
    assert found.chance(far, 0) == found.chance(max(far // 2, 1), 0) == ROW_SUM


def test_offsets_are_drawn_with_their_integers(made: Offsets) -> None:
    edges = list(itertools.accumulate(made.p))
    assert [made.drawn(word) for word in (0, *(edge - 1 for edge in edges))] == [0, *range(made.top + 1)]
    assert [made.drawn(edge) for edge in edges[:-1]] == list(range(1, made.top + 1))


@pytest.mark.parametrize("units", [1, 2, 5])
def test_whole_distances_are_lipschitz(units: int) -> None:
    domain = md.Domain.grid((4, 3), cell=1.0, unit="cell")
    rule = replace(RULES["moved-test"](), units=units)
    test = md.SessionDesign(tables=[table(m, domain) for m in (1.0, 2.0)], rule=rule, ticks=3).test
    assert test is not None
    exact = METRIC.distances(domain)
    for s, u, v in itertools.product(range(domain.size), repeat=3):
        step = abs(int(test.distance[s, u]) - int(test.distance[s, v]))
        assert step * test.step <= Fraction(float(exact[u, v])) * (1 + Fraction(1, 2**50))
    assert test.distance.max() == test.offsets.far > 0
    assert test.breaches(test.offsets) == 0
    assert test.breaches(replace(test.offsets, far=0)) > 0


def test_a_test_measures_the_metric_that_charges_count(made: Offsets) -> None:
    test = design(RULES["moved-test"]()).test
    assert test is not None
    assert line().size - 1 == test.offsets.far
    assert test.rule.cost == Fraction(0.6) + Fraction(1.1)
    assert test.levels == (Fraction(0.6) * test.step, Fraction(1.1) * test.step)

"""The filter and the smoothing against sums over every trace; models of movement."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from itertools import accumulate

import numpy as np
import pytest
import scipy.sparse as sp
from fixtures.session_designs import RULES, design
from scipy.special import logsumexp

import mechdesign as md
from mechdesign.base import memory
from mechdesign.base.threads import source
from mechdesign.errors import InputError, SizeError, UnsuitableError
from mechdesign.sessions.advance import begin, draw_report, plan_tick, replay, seeded_draws
from mechdesign.sessions.design_files import movement_from_description

ROUNDING = 1e-12  # of sums of some thousand products of doubles


def everything(made: md.sessions.SessionDesign, transcript: md.sessions.Transcript, ticks: int) -> np.ndarray:
    """P(place at tick t | transcript) (ticks, n): every trace, one by one."""
    n, chain = made.domain.size, made.chain
    matrices = [each.toarray() for each in chain.matrices]
    steps = {step.tick: step for step in transcript.steps}
    found = np.zeros((ticks, n))
    for trace in itertools.product(range(n), repeat=ticks):
        weight = chain.initial[trace[0]]
        for t in range(1, ticks):
            weight *= matrices[t % len(matrices)][trace[t - 1], trace[t]]
        weight *= likelihood_of(made, steps, trace)
        for t, place in enumerate(trace):
            found[t, place] += weight
    return found / found.sum(axis=1, keepdims=True)


def likelihood_of(made, steps, trace):
    """P(releases | trace)."""
    probability = 1.0
    for t, step in steps.items():
        probability *= made.likelihoods[step.table][trace[t], step.report]
    return probability


def play_trace(made: md.sessions.SessionDesign, trace: list[int], seed: int):
    state, draw = begin(made), seeded_draws(made, seed)
    states = []
    for tick, place in enumerate(trace):
        state = draw_report(made, plan_tick(made, state, tick), place, draw)
        states.append(state)
    return states


MOVEMENTS = {
    "walk": md.sessions.RandomWalk(stay=0.6),
    "given, two a period": md.sessions.Transitions(
        [sp.csr_array(np.full((5, 5), 0.2)), np.eye(5) * 0.5 + np.eye(5)[::-1] * 0.5]
    ),
}


@pytest.mark.parametrize("movement", MOVEMENTS)
@pytest.mark.parametrize("name", RULES)
def test_filter_and_smoothing_are_those_of_every_trace(name: str, movement: str) -> None:
    made = design(RULES[name](), movement=MOVEMENTS[movement])
    for seed in range(2):
        states = play_trace(made, [0, 1, 3, 4], seed)
        assert any(state.transcript.steps for state in states)
        for t, state in enumerate(states):
            exact = everything(made, state.transcript, t + 1)
            np.testing.assert_allclose(state.belief.places, exact[t], atol=ROUNDING)
            expected = exact[t] @ made.losses
            assert state.belief.error == pytest.approx(expected.min(), abs=ROUNDING)
            assert expected[state.belief.estimate] == pytest.approx(expected.min(), abs=ROUNDING)
        smoothed = md.sessions.smooth(made, states[-1].transcript)
        np.testing.assert_allclose(smoothed.probabilities, exact, atol=ROUNDING)
        again = replay(made, states[-1].transcript)
        np.testing.assert_allclose(again.belief.weights, states[-1].belief.weights, atol=ROUNDING)


def test_simulated_reports_equal_those_of_integers() -> None:
    made, (bits, _) = design(RULES["clock"]()), source(7)
    draw = seeded_draws(made, 7)
    for number in range(200):
        table, place = number % 2, number % 5
        word = int.from_bytes(bits(8), "little") >> 2
        masses = made.samplers[table].mechanism["mass"].values[place].tolist()
        assert draw(table, place) == bisect_right(list(accumulate(masses)), word)


def test_smoothing_is_over_as_many_ticks_as_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    made = design(RULES["clock"]())
    transcript = play_trace(made, [0, 1, 3, 4], 0)[-1].transcript
    whole = md.sessions.smooth(made, transcript)
    for ticks in (1, 3):
        first = md.sessions.smooth(made, transcript, ticks=ticks)
        assert np.array_equal(first.probabilities, whole.probabilities[:ticks])
        assert (len(first.place), len(first.error)) == (ticks, ticks)
    longer = md.sessions.smooth(made, transcript, ticks=6).probabilities
    np.testing.assert_allclose(longer[:4], whole.probabilities, atol=ROUNDING)
    np.testing.assert_allclose(longer[5], longer[4] @ made.chain.matrices[0].toarray(), atol=ROUNDING)
    monkeypatch.setattr(memory, "max_items_in_memory", lambda size: 1000)
    with pytest.raises(SizeError, match="every tick"):
        md.sessions.smooth(made, transcript, ticks=50)


def test_smoothing_of_a_month_of_reports_does_not_vanish() -> None:
    """Compared with sums of logarithms: the probability of the whole transcript is below the smallest double."""
    made = design(md.sessions.Clock(hours=[0, 8, 16]), 1.0, movement=MOVEMENTS["walk"])
    transcript = play_trace(made, [tick // 7 % 5 for tick in range(720)], 3)[-1].transcript
    seen = np.log([made.likelihoods[step.table][:, step.report] for step in transcript.steps])
    with np.errstate(divide="ignore"):
        moves = np.log(made.chain.matrices[0].toarray())
    before, after = [np.log(made.chain.initial) + seen[0]], [np.zeros(5)]
    for row in seen[1:]:
        before.append(logsumexp(before[-1][:, None] + moves, axis=0) + row)
    for row in seen[:0:-1]:
        after.append(logsumexp(moves + row + after[-1], axis=1))
    assert logsumexp(before[-1]) < np.log(np.finfo(float).smallest_subnormal)
    exact = np.exp(np.array(before) + np.array(after[::-1]) - logsumexp(before[-1]))
    found = md.sessions.smooth(made, transcript).probabilities
    np.testing.assert_allclose(found, exact, atol=len(seen) * ROUNDING)


def test_ticks_that_were_not_called_are_predicted() -> None:
    made = design(RULES["risk"]())
    matrix = made.chain.matrices[0].toarray()
    state = play_trace(made, [2], 0)[-1]
    later = plan_tick(made, state, 4).belief.places
    np.testing.assert_allclose(later, state.belief.places @ np.linalg.matrix_power(matrix, 4), atol=ROUNDING)
    np.testing.assert_allclose(state.belief.at(10**6).places, made.chain.initial)


def test_a_walk_goes_around_masked_cells() -> None:
    mask = np.ones((3, 3), bool)
    mask[1, 1] = mask[0, 1] = mask[2, 1] = False
    mask[1, 2] = False
    domain = md.Domain.grid((3, 3), cell=1.0, unit="km", mask=mask)
    walk = md.sessions.RandomWalk(stay=0.75)
    matrix = walk.over(domain, md.Euclidean(epsilon=1.0, unit="km"), md.priors.uniform(domain)).matrices[0].toarray()
    at = domain.lookup
    assert matrix[at[0, 0], at[1, 0]] == 0.25
    assert (matrix[at[1, 0], at[0, 0]], matrix[at[1, 0], at[2, 0]]) == (0.125, 0.125)
    assert matrix[at[0, 2], at[0, 2]] == 1.0
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0)


def test_a_walk_on_streets_and_on_scattered_points() -> None:
    graph = md.Graph(tail=np.array([0, 1]), head=np.array([1, 2]), length=np.array([1.0, 2.0]))
    nodes = md.Domain.nodes(3)
    matrix = md.sessions.RandomWalk(stay=0.5).over(nodes, graph, md.priors.uniform(nodes)).matrices[0].toarray()
    assert matrix.tolist() == [[0.5, 0.5, 0], [0.25, 0.5, 0.25], [0, 0.5, 0.5]]
    points = md.Domain.points_at([[0.0], [1.0]], unit="km")
    with pytest.raises(UnsuitableError) as caught:
        md.sessions.RandomWalk().over(points, md.Euclidean(epsilon=1.0, unit="km"), md.priors.uniform(points))
    assert caught.value.field == "movement"


@pytest.mark.parametrize("movement", MOVEMENTS.values(), ids=MOVEMENTS)
def test_models_are_rebuilt_from_their_descriptions(movement: md.sessions.Movement) -> None:
    again = movement_from_description(movement.describe())
    assert again.describe() == movement.describe()


BAD = {
    "rows": [[0.5, 0.4], [0.5, 0.5]],
    "negative": [[1.5, -0.5], [0.5, 0.5]],
    "nan": [[float("nan"), 1.0], [0.5, 0.5]],
    "not square": [[0.5, 0.5]],
    "words": "walk",
}


@pytest.mark.parametrize("matrix", BAD.values(), ids=BAD)
def test_matrices_that_are_refused(matrix: object) -> None:
    with pytest.raises(InputError) as caught:
        md.sessions.Transitions(matrix)
    assert caught.value.field == "matrices"

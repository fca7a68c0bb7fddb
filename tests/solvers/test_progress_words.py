"""The words of progress for a gap: none before there is a lower bound, and of which quantity it is."""

from __future__ import annotations

import pytest

import mechdesign as md
from mechdesign.base.formatting import percent
from mechdesign.extend import Progress

NONE_YET = "no lower bound yet"


@pytest.mark.parametrize(
    ("gap", "bound", "words"),
    [
        (float("inf"), float("-inf"), "no table yet, blocks"),
        (1.0, 0.0, "no lower bound yet, blocks"),
        (171.0, -170.0, "no lower bound yet, blocks"),
        (0.25, 0.75, "gap 25 %, blocks"),
    ],
)
def test_brief_names_a_missing_bound(gap, bound, words):
    state = Progress(method="blocks", seconds=1.0, loss=1.0, lower_bound=bound, gap=gap)
    assert state.brief == words
    assert str(state).startswith(words)


def test_brief_names_the_gap():
    state = Progress(method="columns", seconds=1.0, loss=1.0, lower_bound=0.9, gap=0.1, gap_of="inner gap")
    assert state.brief == "inner gap 10 %, columns"


@pytest.mark.parametrize("method", ["highs", "columns", "blocks"])
def test_no_progress_shows_a_gap_above_100_percent(method):
    states: list[Progress] = []
    problem = md.load_problem("philadelphia", cells=6)
    md.solve(problem, method=method, on_progress=states.append)
    assert states
    for state in states:
        assert state.brief.startswith(NONE_YET if state.gap >= 1 else ("gap ", "no table yet"))
        assert state.gap >= 1 or percent(state.gap) in state.brief or "no table yet" in state.brief

"""Without the extra `fmm` all but fast marching works, and its error has the command to install it."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.problem.fast_marching import fast_marching

GRID = md.Domain.grid((5, 5), cell=1.0, unit="cell")


@pytest.fixture(autouse=True)
def _without(monkeypatch):
    monkeypatch.setitem(sys.modules, "skfmm", None)


@pytest.mark.parametrize(
    "call",
    [
        lambda: fast_marching(GRID, md.PrivacyLevel.constant(1.0, "cell"), 12),
        lambda: md.solve(
            md.EikonalWeights(problem=md.load_problem("philadelphia", cells=5), distances="fast-marching")
        ),
    ],
)
def test_missing_extra_is_named(call):
    with pytest.raises(InputError, match="needs skfmm, which is not installed") as caught:
        call()
    assert "pip install 'mechdesign[fmm]'" in caught.value.remedy


def test_graph_distances_need_no_extra():
    mechanism = md.solve(md.EikonalWeights(problem=md.load_problem("philadelphia", cells=5)))
    assert md.verify(mechanism).certified


def test_problems_without_march_need_no_extra():
    domain = md.Domain.grid((2, 2), cell=1.0, unit="cell")
    assert np.isfinite(fast_marching(domain, md.PrivacyLevel.constant(1.0, "cell"), 0)).all()

"""What is said before a long run: the size, the class of case, and what was measured."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bumps import bump_map
from cases import grid
from taken import needs

from mechdesign.problem import losses as priors
from mechdesign.problem.domain import Domain
from mechdesign.problem.losses import Distance
from mechdesign.problem.metric import Euclidean, Graph
from mechdesign.problem.problem import DesignProblem, load_problem
from mechdesign.solvers.optimal import KNOWN, class_of, outlook


def places(count: int) -> DesignProblem:
    points = np.random.default_rng(0).uniform(0, 2000, (count, 2))
    return DesignProblem(
        domain=Domain.points_at(points, unit="m"),
        metric=Euclidean(epsilon=0.01, unit="m"),
        prior=priors.proportional(np.ones(count)),
        loss=Distance(),
    )


def along_a_road(count: int) -> DesignProblem:
    tail = np.arange(count - 1)
    road = Graph(tail=tail, head=tail + 1, length=np.full(count - 1, 0.3))
    return replace(places(count), metric=road)


def test_the_class_of_a_case(tmp_path: Path) -> None:
    cells = grid((12, 12))
    pairs = replace(places(144), domain=cells, reports=cells, metric=Euclidean(epsilon=1.0, unit="cell"))
    for asked, expected in (
        (places(60), "all pairs of scattered places"),
        (along_a_road(60), "a network"),
        (pairs, "all pairs of a grid"),
        (load_problem("philadelphia", cells=12), "long edges"),
        (load_problem("philadelphia", cells=12, extent=10), "edges of middle length"),
        (bump_map(tmp_path, 1, 20), "short edges"),
    ):
        assert class_of(asked) == expected


def test_small_programs_go_without_saying() -> None:
    assert outlook(load_problem("philadelphia", cells=6)) is None
    assert outlook(along_a_road(40)) is None


@pytest.mark.parametrize("count", [150, 180, 320])
def test_what_is_said_of_a_large_one(count: int) -> None:
    said = outlook(places(count))
    assert said is not None
    assert f"{count * count} variables, {count * (count - 1) * count + count} constraints" in said
    measured = dict(KNOWN["all pairs of scattered places"])
    seconds = [int(found) for found in re.findall(r"(\d+) s for", said)]
    assert seconds == [measured[min((k for k in measured if k >= count), default=max(measured))]]
    assert ("larger" in said) is (count > max(measured))


def test_grids_of_long_edges() -> None:
    assert "about 7 s for as many" in str(outlook(load_problem("philadelphia", cells=22)))


@needs("maps")
def test_beyond_tables_a_pool_is_announced() -> None:
    assert "pool of columns" in str(outlook(load_problem("philadelphia", cells=72)))
    assert "pool of columns" not in str(outlook(load_problem("philadelphia", cells=70)))

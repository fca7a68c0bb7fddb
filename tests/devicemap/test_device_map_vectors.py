"""Reports from device maps: Python, JavaScript and C99 draw the same from the same bytes, also where masses end."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from fixtures.device_draws import compiled_sampler, reports_in_c, reports_in_node
from fixtures.random_device_maps import (
    MAPS,
    Vector,
    border_vectors,
    content,
    drawing,
    drawn_vectors,
    flat,
    region,
)
from fixtures.rows import few_by_default

import mechdesign as md
from mechdesign.errors import VerificationError

DRAWS = ("javascript", "c99")


@pytest.fixture(scope="session")
def sampler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C program that follows vectors."""
    return compiled_sampler(tmp_path_factory.mktemp("c"))


@pytest.fixture
def reports(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str, str, list[Vector]], list[int]]:
    """A function that returns the reports that a language draws from a map for vectors."""

    def draw(language: str, name: str, vectors: list[Vector]) -> list[int]:
        if language == "javascript":
            return reports_in_node(tmp_path, content(name), vectors)
        return reports_in_c(tmp_path, flat(region(name)), vectors, request.getfixturevalue("sampler"))

    return draw


def expected_reports(vectors: list[Vector]) -> list[int]:
    return [report for vector in vectors for report in vector.reports]


@pytest.mark.parametrize(("name", "language"), few_by_default(itertools.product(MAPS, DRAWS), ("even", "javascript")))
@pytest.mark.obligation("same-draws")
def test_equal_bytes_give_equal_reports(reports, name: str, language: str) -> None:
    vectors = drawn_vectors(name, 6, seed=11)
    assert len(set(expected_reports(vectors))) > 30
    assert reports(language, name, vectors) == expected_reports(vectors)


@pytest.mark.parametrize(
    ("name", "language"), few_by_default(itertools.product(MAPS, DRAWS), ("bare", "javascript"), ("even", "c99"))
)
@pytest.mark.obligation("same-draws")
def test_reports_change_at_ends_of_intervals(reports, name: str, language: str) -> None:
    secrets = (0, region(name).secrets // 2)
    vectors = [vector for secret in secrets for vector in border_vectors(name, secret)]
    drawn_again = [vector for vector in vectors if len(vector.content) == 32]
    assert len(vectors) > 120
    assert len(drawn_again) >= 2 * 3  # at S, at the bound and before it
    assert reports(language, name, vectors) == expected_reports(vectors)


@pytest.mark.parametrize("language", DRAWS)
def test_unreachable_bound_is_refused(reports, monkeypatch, language: str) -> None:
    """Attack: Sbar = 2^31 S, above every sum as required, so that a device draws almost for ever."""
    device_map = region("even")
    loose = replace(device_map, bound=(device_map.bound[0], device_map.bound[1] + 31))
    file = content(loose)
    monkeypatch.setitem(globals(), "content", lambda name: file)
    monkeypatch.setitem(globals(), "region", lambda name: loose)
    never = Vector(secret=20, content=b"\x7f" * 16, reports=[0])
    message = "exceeds 4 times the row sum"
    with pytest.raises(AssertionError, match=message):
        reports(language, "even", [never])
    with pytest.raises(VerificationError, match="between 1 and 4 times the row sum"):
        drawing(loose).places(20, 1, lambda count: b"\x7f" * count)
    assert not md.verify(loose).certified


@pytest.mark.exhaustive
@pytest.mark.parametrize("language", DRAWS)
@pytest.mark.obligation("same-draws")
def test_hundred_thousand_reports_are_equal(reports, language: str) -> None:
    found = 0
    for seed in range(8):
        vectors = drawn_vectors("wide", 76, seed=seed)
        assert reports(language, "wide", vectors) == expected_reports(vectors)
        found += len(expected_reports(vectors))
    assert found > 100_000

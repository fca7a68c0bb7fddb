"""Draws in three languages: the same random bytes give the same reports in Python, JavaScript and C."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from fixtures.device_draws import compiled_sampler, reports_in_c, reports_in_node
from fixtures.random_device_maps import MAPS, content, drawn_vectors, flat, region
from hypothesis import given, settings
from hypothesis import strategies as some
from strategies import LAW

FEW = settings(LAW, max_examples=2)  # every example starts two processes


@pytest.fixture(scope="module")
def sampler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled_sampler(tmp_path_factory.mktemp("c"))


@given(name=some.sampled_from(sorted(MAPS)), seed=some.integers(0, 2**32 - 1))
@FEW
def test_same_bits_give_the_same_reports_in_three_languages(sampler: Path, name: str, seed: int) -> None:
    vectors = drawn_vectors(name, 2, seed)
    expected = [report for vector in vectors for report in vector.reports]
    with tempfile.TemporaryDirectory() as folder:
        assert reports_in_node(Path(folder), content(name), vectors) == expected
        assert reports_in_c(Path(folder), flat(region(name)), vectors, sampler) == expected

"""Claims that `verify` certifies are true: mutated files of every kind against a reference that shares no code with it.

Whatever happens to a file, three things may follow: it is certified and true, or it is refused, or it is not opened.
Certified and untrue, or an error that is not ours, fails. Some mutants go through a file.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from fixtures.file_mutations import mutant
from fixtures.file_parts import Draft, plain
from fixtures.files import FACTORED, KINDS, honest_file
from fixtures.forged_files import write_anyway
from fixtures.limit_sentences import false_limits, read_limits
from fixtures.rows import few_by_default
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from reference import untruths

from mechdesign import load, verify
from mechdesign.errors import MechdesignError
from mechdesign.factored.certificate import Factors
from mechdesign.mechanism.mechanism_file import MechanismFile
from mechdesign.output.sentences import limit_sentences

FEW, MANY = 16, 20_000  # mutants of a kind
LEADING = (  # kinds that the others vary
    *("eikonal", "factored, framed", "factored, columns", "query", "release", "streets", "area", "tuples"),
    *("statistical", "remapped", "constrained", "graph, doubled, minimax", "limit anywhere", "lift"),
)
SELDOM, OFTEN = 16, 10  # every so many of them go through a file, which takes longer than all else
LIMIT = (
    30  # seconds, a thousand times the time of a mutant: an endless loop, or one over a number that a file only names
)
TRUE, FALSE, REFUSED, UNSTORED = "certified true", "certified false", "refused", "not stored"


class Hanging(BaseException):
    """Raised where a mutant takes longer than `LIMIT`; nothing that catches errors of files catches it."""


@contextlib.contextmanager
def time_limit():
    """Raise `Hanging` in here after `LIMIT` seconds, where the system has alarms."""

    def stop(*_: object) -> None:
        raise Hanging(f"over {LIMIT} seconds")

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def limit_untruths(mechanism: xr.Dataset) -> list[str]:
    """Which of the sentences about limits on discs, put together of a certified file, are false."""
    if mechanism.attrs["program"] != "constrained":
        return []
    limits = json.loads(mechanism.attrs["parameters"])["constraints"]
    people = [limit["people"] for limit in limits if "people" in limit]
    stored = MechanismFile.read(mechanism)
    domain, mass = stored.domain, mechanism["mass"].values.tolist()
    output = read_limits(limit_sentences(stored) or "", domain.unit)
    points = tuple(map(tuple, domain.points.tolist()))
    return list(false_limits(output, people, points, domain.cell or (), mass))


class Counts:
    """How mutants end, and for those that must not be, their numbers with reasons."""

    def __init__(self, kind: str, folder: Path, *, stored: int = SELDOM) -> None:
        self.kind, self.file, self.stored = kind, folder / "mutant.nc", stored
        self.ends: Counter[str] = Counter()
        self.wrong: list[str] = []

    def count(self, number: int) -> None:
        """Verify one mutant. Warnings are off: a program that uses the package does not turn them into errors."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            made_up = mutant(self.kind, number)
            end, reasons = self._end(made_up.dataset, stored=(sum(self.ends.values()) + 1) % self.stored == 0)
        self.ends[end] += 1
        if reasons:
            self.wrong.append(f"mutant({self.kind!r}, {number}) {made_up.history}: {reasons[:3]}")

    def _end(self, mechanism: xr.Dataset, *, stored: bool) -> tuple[str, list[str]]:
        if stored:
            try:
                write_anyway(mechanism, self.file)
            except Exception:  # values that the format cannot store: nothing to read back
                return UNSTORED, []
        try:
            with time_limit():
                result = verify(self.file if stored else mechanism)
        except MechdesignError:
            return REFUSED, []
        except (Exception, Hanging) as error:
            return "raised", [f"{type(error).__name__}: {error}"]
        if not result.certified:
            return REFUSED, []
        kept = load(self.file) if stored else mechanism
        reasons = [*untruths(plain(kept), result.as_dict()), *limit_untruths(kept)]
        return (FALSE if reasons else TRUE), reasons

    def check(self, record_property) -> None:
        """Report the counts; nothing wrong, and not everything refused or certified."""
        print(f"{self.kind}: {dict(self.ends)}")
        for end, count in self.ends.items():
            record_property(end, count)
        assert not self.wrong, "\n".join([str(dict(self.ends)), *self.wrong[:10]])
        assert self.ends[TRUE] > 0
        assert self.ends[REFUSED] > 0


@pytest.mark.parametrize("kind", few_by_default(KINDS, *LEADING))
def test_honest_files_are_certified_and_true(kind: str) -> None:
    file = honest_file(kind)
    result = verify(file)
    assert result.certified, result.reasons
    assert untruths(plain(file), result.as_dict()) == []


@pytest.mark.parametrize("kind", few_by_default(KINDS, *LEADING))
def test_unchanged_draft_is_the_file(kind: str) -> None:
    # Files do not contain the grid mapping of a Dataset on Earth: it follows from the attribute `domain`.
    file = honest_file(kind).drop_vars("spatial_ref", errors="ignore")
    assert Draft.of(kind, file).dataset().identical(file)


def test_a_number_gives_the_same_mutant_again() -> None:
    first, second = (mutant("eikonal", 7) for _ in range(2))
    assert first.history == second.history
    assert first.dataset.identical(second.dataset)


@pytest.mark.parametrize("kind", LEADING)
@pytest.mark.obligation("claim-rebuilt")
@pytest.mark.obligation("table-inequalities")
@pytest.mark.obligation("factor-inequalities")
@pytest.mark.obligation("printed-claim")
def test_certified_mutants_are_true(kind: str, tmp_path: Path, record_property) -> None:
    counts = Counts(kind, tmp_path)

    @settings(max_examples=FEW, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(number=some.integers(0, 2**64 - 1))
    def every(number: int) -> None:
        counts.count(number)

    every()
    counts.check(record_property)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_many_more_certified_mutants_are_true(kind: str, tmp_path: Path, record_property) -> None:
    counts = Counts(kind, tmp_path, stored=OFTEN)
    for number in range(MANY):
        counts.count(number)
    counts.check(record_property)


@pytest.fixture
def no_violations(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is found to break a claim; files lost meanwhile are made again."""
    for name, module in list(sys.modules.items()):
        if name.startswith("mechdesign.") and hasattr(module, "violations"):
            monkeypatch.setattr(module, "violations", lambda mass, edges, **_: 0)
    monkeypatch.setattr(Factors, "breaches", lambda self, edges, row_sums: 0)
    yield
    honest_file.cache_clear()


@pytest.mark.usefixtures("no_violations")
@pytest.mark.parametrize(
    "kind", few_by_default(["eikonal", "graph, table loss", "streets", *FACTORED], "eikonal", "factored, distance")
)
def test_a_verifier_that_counts_no_violations_is_caught(kind: str, tmp_path: Path) -> None:
    counts = Counts(kind, tmp_path)
    for number in range(200):
        counts.count(number)
        if any("odds" in reason for reason in counts.wrong):
            break
    assert counts.ends[FALSE] > 0
    assert "odds" in counts.wrong[-1]

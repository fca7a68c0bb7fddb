"""A failure at any step: nothing is lost, half-written or unpaid.

Every task runs many times in a fresh folder, and each time another step fails. Steps are the n-th call of the operating
system, the n-th byte written to disk, and memory at the n-th line of the modules that store. The system limits the
bytes, so the HDF5 library is limited too. Afterwards another process would find the state that is checked here.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from fixtures.problems import line
from fixtures.session_designs import design_with_rule

import mechdesign as md
from mechdesign.errors import FileFormatError, MechdesignError
from mechdesign.factored.work_folder import work_folder

resource = pytest.importorskip("resource", reason="needs limits of the system")

CALLS = ("open", "fsync", "replace", "chmod", "unlink", "fdopen", "ftruncate", "stat", "fstat", "lstat")
LINES = ("storage.py", "ledger.py", "budget.py", "session.py", "work_folder.py")
LIMIT = 5.0
BYTES = 1 << 16  # more than any of the files takes


class Steps:
    """Counts steps and fails at one of them; `failed` is its name."""

    def __init__(self, failing: int, error: Callable[[], BaseException]) -> None:
        self.failing, self.error, self.count, self.failed = failing, error, 0, ""

    def step(self, noun: str) -> None:
        self.count += 1
        if self.count == self.failing:
            self.failed = noun
            raise self.error()


@contextlib.contextmanager
def failing_calls(steps: Steps) -> Iterator[None]:
    """The operating system refuses one call."""

    def count_calls(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def refuse(*given: Any, **options: Any) -> Any:
            steps.step(name)
            return call(*given, **options)

        return refuse

    with pytest.MonkeyPatch.context() as patched:
        for name in CALLS:
            patched.setattr(os, name, count_calls(name, getattr(os, name)))
        yield


@contextlib.contextmanager
def failing_lines(steps: Steps) -> Iterator[None]:
    """Memory ends at a line that is reached for the first time."""
    seen: set[tuple[str, int]] = set()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        file = frame.f_code.co_filename
        if not file.endswith(LINES) or "mechdesign" not in file:
            return None
        if event == "line" and (file, frame.f_lineno) not in seen:
            seen.add((file, frame.f_lineno))
            steps.step(f"{Path(file).name}, line {frame.f_lineno}")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


@contextlib.contextmanager
def failing_bytes(steps: Steps) -> Iterator[None]:
    """No file may be longer than so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    steps.count = BYTES
    resource.setrlimit(resource.RLIMIT_FSIZE, (steps.failing, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


WAYS = {  # how, with which error, and the steps that fail by default: the next after a number
    "a call": (failing_calls, lambda: OSError(5, "Input/output error"), lambda number: number + 1),
    "a line": (failing_lines, MemoryError, lambda number: number + 9),
    "a byte": (failing_bytes, OSError, lambda number: 2 * number),
}


@cache
def mechanism(epsilon: float) -> Any:
    return md.baselines.exponential(line(3, epsilon))


@cache
def sampler() -> md.Sampler:
    return md.Sampler(mechanism(0.8))


@dataclass(frozen=True)
class Task:
    """make prepares a folder, act changes it and returns a result, check looks at it: `got` is that, or
    None where something failed.
    """

    make: Callable[[Path], Any]
    act: Callable[[Any], Any]
    check: Callable[[Path, Any, Any], None]


@cache
def saved_bytes() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return md.save(mechanism(0.8), Path(folder) / "m.nc").read_bytes()


def save_over(folder: Path) -> Path:
    (folder / "m.nc").write_bytes(saved_bytes())
    return folder / "m.nc"


def check_saved(folder: Path, _: Path, got: Any) -> None:
    stands = md.load(folder / "m.nc")
    assert stands.identical(mechanism(1.2)) or (got is None and stands.identical(mechanism(0.8)))


def open_budget(folder: Path) -> md.sessions.Budget:
    budget = md.sessions.Budget.create(folder / "b.json", limit=LIMIT)
    budget.report(sampler(), 0)
    return budget


def check_payment(folder: Path, budget: md.sessions.Budget, got: Any) -> None:
    """A report that was seen is paid; whether or not one was drawn, it costs once and is then the same."""
    again, charge = md.sessions.Budget(folder / "b.json"), sampler().certificate.cost
    assert again.spent in ((2 * charge,) if got is not None else (charge, 2 * charge))
    report = again.report(sampler(), 1)
    assert again.spent == 2 * charge
    assert got is None or int(report) == int(got)
    assert int(budget.report(sampler(), 1)) == int(report)
    assert budget.spent == 2 * charge


def open_session(folder: Path) -> md.sessions.Session:
    session = md.sessions.Session.create(folder / "s.json", design=design_with_rule("clock"), limit=LIMIT)
    session.report(1, tick=0)
    return session


def check_release(folder: Path, session: md.sessions.Session, got: Any) -> None:
    """A tick that was answered is in the file; one that was not can be answered once. Both continue alike."""
    again = md.sessions.Session(folder / "s.json", design=session.design)
    assert again.account().last in ((2,) if got is not None else (0, 2))
    if again.account().last == 0:
        assert session.report(3, tick=2).drawn
    step = again.transcript.steps[-1]
    assert got is None or (step.tick, step.report, step.charge) == (2, got.report, got.charge)
    assert session.transcript == again.transcript
    assert session.report(3, tick=3).tick == 3
    assert again.account().last == 3
    assert again.account().spent == sum(one.charge for one in again.transcript.steps)


def open_ledger(folder: Path) -> Path:
    with work_folder(folder / "work", "a run", of="a test") as open_page:
        open_page.write("old from 0", {"a": np.arange(3)})
    return folder / "work"


def write_block(path: Path) -> Any:
    with work_folder(path, "a run", of="a test") as open_page:
        open_page.write("new from 0", {"a": np.arange(5)})
    return path


def work_stands(_: Path, path: Path, got: Any) -> None:
    with work_folder(path, "a run", of="a test") as open_page:
        assert open_page.read("old from 0")["a"].tolist() == [0, 1, 2]
        new = open_page.read("new from 0")
        assert new["a"].tolist() == [*range(5)] if got is not None or new is not None else True
        open_page.write("new from 0", {"a": np.arange(5)})
        assert open_page.read("new from 0")["a"].tolist() == [*range(5)]


TASKS = {
    "save": Task(save_over, lambda path: md.save(mechanism(1.2), path, overwrite=True), check_saved),
    "budget": Task(open_budget, lambda budget: budget.report(sampler(), 1), check_payment),
    "session": Task(open_session, lambda session: session.report(3, tick=2), check_release),
    "work folder": Task(open_ledger, write_block, work_stands),
}


def every(task: Task, way: str, folder: Path, after: Callable[[int], int]) -> int:
    """How many steps were made to fail, up to the end of the task."""
    failing, error, _ = WAYS[way]
    number, failures = 1, 0
    while True:
        here = folder / str(number)
        here.mkdir()
        made, got = task.make(here), None
        steps = Steps(number, error)
        try:
            with failing(steps):
                got = task.act(made)
        except (MechdesignError, OSError, MemoryError):
            failures += 1
        except BaseException as raised:
            raised.add_note(f"at step {number}, {steps.failed}")
            raise
        try:
            task.check(here, made, got)
            if way != "a line" and steps.failed != "unlink":  # a file that is not removed stays until the next opening
                assert not [*here.rglob("*.part")]
        except BaseException as raised:
            raised.add_note(f"after step {number}, {steps.failed}, which gave {got!r:.80}")
            raise
        if steps.count < number:
            return failures
        number = after(number)


@pytest.mark.parametrize(
    ("task", "way"),
    [
        pytest.param(
            task, way, marks=[pytest.mark.exhaustive] * ((task, way) in (("save", "a line"), ("save", "a byte")))
        )
        for task in TASKS
        for way in WAYS
    ],
)
def test_nothing_is_lost_half_written_or_unpaid(task: str, way: str, tmp_path: Path) -> None:
    failures = every(TASKS[task], way, tmp_path, WAYS[way][2])
    print(f"{task}, {way}: {failures} failures")
    assert failures > 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("way", ["a line", "a byte"])
@pytest.mark.parametrize("task", TASKS)
def test_at_every_single_step(task: str, way: str, tmp_path: Path) -> None:
    failures = every(TASKS[task], way, tmp_path, lambda number: number + (1 if way == "a line" else 97))
    print(f"{task}, {way}: {failures} failures")
    assert failures > 0


def test_a_failure_is_told() -> None:
    """The first call refused is an error of the file, not a bare one of the system."""
    steps = Steps(1, lambda: OSError(5, "Input/output error"))
    with failing_calls(steps), pytest.raises((FileFormatError, MechdesignError)):
        md.load("nowhere.nc")

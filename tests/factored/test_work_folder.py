"""Blocks of work: in order whatever finishes first, stored in a folder of their run, one process at a time."""

from __future__ import annotations

import contextlib
import threading

import numpy as np
import pytest

from mechdesign.errors import InputError, SolverError
from mechdesign.factored.work_folder import (
    BlockedWork,
    Folder,
    in_order,
    merge_blocks,
    merged_pass,
    run_key,
    threads,
    work_folder,
)

TOTAL, BLOCK = 1000, 96  # eleven blocks, the last of 40 rows
STARTS = list(range(0, TOTAL, BLOCK))
VALUES = np.random.default_rng(0).random(TOTAL)


class Work:
    """Squares of rows and their sum; records its calls, fails or waits at given rows."""

    def __init__(self, *, fails_at: int | None = None, waits_at: int | None = None) -> None:
        self.calls: list[int] = []
        self.fails_at, self.waits_at = fails_at, waits_at
        self.passed = threading.Event()

    def __call__(self, state, start, stop):
        self.calls.append(start)
        if start == self.waits_at:
            assert self.passed.wait(10), "no other block ran meanwhile"
        if self.waits_at is not None and start > self.waits_at:
            self.passed.set()
        if start == self.fails_at:
            raise ValueError("no such thing")
        return {"rows": state[start:stop] ** 2, "sum": np.array([state[start:stop].sum()])}


def blocked_work(work, name="pass"):
    return BlockedWork(work=work, state=VALUES, total=TOTAL, block=BLOCK, name=name)


def run(work, folder=None, count=2, name="pass"):
    with threads(count) as executor:
        return list(in_order(executor, blocked_work(work, name), folder=folder or Folder()))


def merge_rows(blocks):
    return merge_blocks((arrays for _, _, arrays in blocks), ("rows",))


def check(blocks):
    assert [(start, stop) for start, stop, _ in blocks] == [(s, min(s + BLOCK, TOTAL)) for s in STARTS]
    whole = merge_rows(blocks)
    assert whole["rows"].tobytes() == (VALUES**2).tobytes()
    expected = np.zeros(1)
    for start in STARTS:
        expected = expected + VALUES[start : start + BLOCK].sum()
    assert whole["sum"].tobytes() == expected.tobytes()


def test_merged_blocks_order_rows_and_add_columns():
    blocks = [
        {"secret": np.array([4, 0]), "rows": np.array([40.0, 0.0]), "column": np.array([5, 1]), "size": np.array([7]),
         "sum": np.array([[1.0, 2.0], [3.0, 4.0]])},
        {"secret": np.array([2, 1, 3]), "rows": np.array([20.0, 10.0, 30.0]), "column": np.array([1]),
         "size": np.array([7]), "sum": np.array([[10.0, 20.0]])},
    ]  # fmt: skip
    found = merge_blocks(iter(blocks), ("rows",))
    assert set(found) == {"rows", "sum"}
    assert found["rows"].tolist() == [0, 10, 20, 30, 40]
    assert found["sum"].tolist() == [[0, 0], [13, 24], [0, 0], [0, 0], [0, 0], [1, 2], [0, 0]]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_results_keep_order_on_any_threads(count):
    work = Work()
    check(run(work, count=count))
    assert sorted(work.calls) == STARTS


def test_slow_first_block_stays_first():
    check(run(Work(waits_at=0)))


class CountingWorkers:
    """Workers that compute at once and count the blocks that were submitted and not taken back."""

    def __init__(self) -> None:
        self.out = self.largest = 0

    def ahead(self):
        return 3

    @contextlib.contextmanager
    def sharing(self, work, state):
        def submit(start, stop):
            self.out += 1
            self.largest = max(self.largest, self.out)
            return self.Result(self, work(state, start, stop))

        yield submit

    class Result:
        def __init__(self, executor, arrays):
            self.executor, self.arrays = executor, arrays

        def result(self):
            self.executor.out -= 1
            return self.arrays

        def cancel(self):
            self.executor.out -= 1


def test_blocks_ahead_are_limited_and_cancelled():
    executor = CountingWorkers()
    with contextlib.closing(in_order(executor, blocked_work(Work()), folder=Folder())) as blocks:
        for start, _, _ in blocks:
            if start == 480:
                break
        assert (executor.out, executor.largest) == (2, 3)
    assert executor.out == 0


def test_merged_pass_joins_blocks_and_reports(tmp_path):
    on_done, folder = [], Folder(path=tmp_path, run="a")
    with threads(2) as executor:
        found = merged_pass(executor, blocked_work(Work()), ("rows",), on_done=on_done.append, folder=folder)
        unkept = merged_pass(executor, blocked_work(Work()), ("rows",), on_done=on_done.append)
    expected = merge_rows(run(Work()))
    assert {name: values.tobytes() for name, values in found.items()} == {
        name: values.tobytes() for name, values in expected.items()
    }
    assert unkept["sum"].tobytes() == expected["sum"].tobytes()
    assert on_done == [*STARTS[1:], TOTAL] * 2
    assert len(list(tmp_path.iterdir())) == len(STARTS)


def test_aborted_pass_cancels_blocks():
    class Left(Exception):
        pass

    def leave(done):
        if done > 480:
            raise Left

    executor = CountingWorkers()
    with pytest.raises(Left):
        merged_pass(executor, blocked_work(Work()), ("rows",), on_done=leave)
    assert (executor.out, executor.largest) == (0, 3)


def test_failed_block_names_rows_and_ends_threads(tmp_path):
    before = threading.active_count()
    with pytest.raises(SolverError, match=r"ValueError: no such thing.*pass, rows 192 to 287.*run it again"):
        run(Work(fails_at=192), Folder(path=tmp_path, run="a"))
    assert threading.active_count() == before
    mended = Work()
    check(run(mended, Folder(path=tmp_path, run="a")))
    assert sorted(mended.calls) == STARTS[2:]


def test_only_valid_blocks_are_reused(tmp_path):
    folder = Folder(path=tmp_path, run="a")
    check(run(Work(), folder))
    files = {start: tmp_path / f"pass from {start}.block" for start in STARTS}
    assert sorted(tmp_path.iterdir()) == sorted(files.values())
    whole = files[96].read_bytes()
    files[0].unlink()
    files[96].write_bytes(whole[:-1])
    files[192].write_bytes(files[192].read_bytes()[:100] + b"\0" + files[192].read_bytes()[101:])
    files[288].write_bytes(files[384].read_bytes())
    files[480].write_bytes(b"")
    again = Work()
    check(run(again, folder))
    assert sorted(again.calls) == [0, 96, 192, 288, 480]
    assert files[96].read_bytes() == whole
    other = Work()
    check(run(other, Folder(path=tmp_path, run="b")))
    assert sorted(other.calls) == STARTS


def test_passes_have_separate_blocks(tmp_path):
    folder = Folder(path=tmp_path, run="a")
    for name in ("round 1", "round 10", "state"):
        run(Work(), folder, name=name)
    folder.write("state", {"x": VALUES})
    (tmp_path / "notes.txt").touch()
    folder.keep_only("state", "round 1")
    assert {path.name.split(" from")[0] for path in tmp_path.iterdir()} == {
        "round 1", "state", "state.block", "notes.txt",
    }  # fmt: skip
    folder.keep_only()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_arrays_round_trip_to_the_bit(tmp_path):
    folder = Folder(path=tmp_path, run="a")
    given = {
        "words": np.array([[1 << 63, 3]], np.uint64),
        "losses": np.array([0.1, -0.0, 5e-324, np.inf]),
        "none": np.zeros((0, 2), np.float32),
    }
    folder.write("x", given)
    found = folder.read("x")
    assert list(found) == list(given)
    for name, values in given.items():
        assert (found[name].dtype, found[name].shape) == (values.dtype, values.shape)
        assert found[name].tobytes() == values.tobytes()


def test_folder_belongs_to_one_run(tmp_path):
    where = tmp_path / "work"
    with work_folder(where, "a", of="the first run") as folder:
        folder.write("x", {"x": VALUES})
    (where / ".x.block.abc.part").touch()
    with (
        pytest.raises(InputError, match="the work of another run: the first run"),
        work_folder(where, "b", of="another"),
    ):
        pass
    with work_folder(where, "a", of="the first run") as folder:
        assert folder.read("x")["x"].tobytes() == VALUES.tobytes()
    assert sorted(path.name for path in where.iterdir()) == ["run.json", "x.block"]
    for damaged in ("", "{}", "[1]", '{"schema": 1}'):
        (where / "run.json").write_text(damaged)
        with pytest.raises(InputError, match=r"has a damaged run\.json"), work_folder(where, "a", of=""):
            pass


def test_folder_in_use_is_refused(tmp_path):
    where = tmp_path / "work"
    with work_folder(where, "a", of="") as folder:
        folder.write("x", {"x": VALUES})
        with pytest.raises(InputError, match="in use by process") as caught, work_folder(where, "a", of=""):
            pass
        assert caught.value.field == "work"
        assert folder.read("x") is not None
    with work_folder(where, "a", of="") as folder:
        assert folder.read("x") is not None


def test_empty_folder_is_removed(tmp_path):
    with work_folder(tmp_path / "made", "a", of=""):
        assert (tmp_path / "made").is_dir()
    (tmp_path / "given").mkdir()
    with work_folder(tmp_path / "given", "a", of=""):
        pass
    assert list(tmp_path.iterdir()) == [tmp_path / "given"]
    assert list((tmp_path / "given").iterdir()) == []


def test_unusable_folders_are_refused(tmp_path):
    (tmp_path / "file").touch()
    for where, message in [
        (tmp_path, "contains other files, such as file"),
        (tmp_path / "file", "is not a folder"),
        (tmp_path / "nowhere" / "work", "could not be created"),
        (tmp_path / "\udcff", "must have a name in UTF-8"),
    ]:
        with pytest.raises(InputError, match=message) as caught, work_folder(where, "a", of=""):
            pass
        assert caught.value.field == "work"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_run_keys_differ_between_runs():
    described, values = {"rounds": 8, "problem_parameters": {"cells": 3}}, np.arange(6.0)
    keys = {
        run_key(described, values),
        run_key(described | {"rounds": 9}, values),
        run_key(described, values + 1),
        run_key(described, values.astype(np.float32)),
        run_key(described, values.reshape(2, 3)),
    }
    assert len(keys) == 5
    assert run_key(dict(reversed(described.items())), values.copy()) in keys

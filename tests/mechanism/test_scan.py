"""The live scan touches the same memory in the same order, whatever the secret and the report are."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest
from reference.checking import ROW_SUM

from mechdesign.mechanism import draw as scan

ROWS, REPORTS = 4, 5


class Recorded:
    """An array that writes down which entries are read and written."""

    def __init__(self, values: np.ndarray, name: str, log: list[object]) -> None:
        self.values, self.name, self.log = values, name, log
        self.shape, self.size = values.shape, values.size

    def __getitem__(self, index: int) -> Any:
        report = self.values[index]
        if isinstance(report, np.ndarray):
            return Recorded(report, f"{self.name}[{index}]", self.log)
        self.log.append(("read", self.name, index))
        return report

    def __setitem__(self, index: int, value: np.uint64) -> None:
        self.log.append(("write", self.name, index))
        self.values[index] = value


def lines_and_addresses(
    monkeypatch: pytest.MonkeyPatch, run: Callable[[list[object]], int]
) -> tuple[int, list[object]]:
    """The report of a scan run as Python, with every line that ran and every address that it read or wrote."""
    log: list[object] = []

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename == scan.__file__:
            log.append((event, frame.f_lineno))
            return trace
        return None

    monkeypatch.setattr(scan, "_count", getattr(scan._count, "py_func", scan._count))
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with np.errstate(over="ignore"):
            report = run(log)
    finally:
        sys.settrace(before)
    return report, log


def table() -> np.ndarray:
    mass = np.random.default_rng(1).integers(1, ROW_SUM // REPORTS, (ROWS, REPORTS)).astype(np.uint64)
    mass[:, -1] += np.array([ROW_SUM - sum(row) for row in mass.tolist()], np.uint64)
    return mass


POINTS = [0, ROW_SUM // 7, ROW_SUM // 3, ROW_SUM // 2, ROW_SUM - 1]
# Where one report ends and the next begins, in every row.
BORDERS = [end - back for end in np.cumsum(table(), axis=1)[:, :-1].ravel().tolist() for back in (1, 0)]


@pytest.mark.obligation("exact-draws")
def test_the_table_scan_reads_everything_in_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    mass, logs, reports = table(), [], set()
    for secret in range(ROWS):
        for x in [*POINTS, *BORDERS]:

            def run(log: list[object], secret: int = secret, x: int = x) -> int:
                parts = (mass, scan.row_masks(ROWS, secret), np.zeros(REPORTS, np.uint64))
                whole, masks, row = (Recorded(a, n, log) for a, n in zip(parts, ("mass", "masks", "row"), strict=True))
                return int(scan.scan_table.py_func(whole, masks, np.uint64(x), row))

            report, log = lines_and_addresses(monkeypatch, run)
            assert report == sum(c <= x for c in np.cumsum(mass[secret]).tolist())
            reports.add(report)
            logs.append(log)
    assert len(reports) > 2
    assert all(log == logs[0] for log in logs)
    for u in range(ROWS):
        assert [index for kind, name, index in (x for x in logs[0] if len(x) == 3) if name == f"mass[{u}]"] == [
            *range(REPORTS)
        ]


@pytest.mark.obligation("exact-draws")
def test_the_row_scan_reads_everything_in_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = []
    for row in table():
        for x in [*POINTS, *BORDERS]:

            def run(log: list[object], row: np.ndarray = row, x: int = x) -> int:
                return int(scan.scan_row.py_func(Recorded(row, "row", log), np.uint64(x)))

            report, log = lines_and_addresses(monkeypatch, run)
            assert report == sum(c <= x for c in np.cumsum(row).tolist())
            logs.append(log)
    assert all(log == logs[0] for log in logs)
    assert [x[2] for x in logs[0] if len(x) == 3] == [*range(REPORTS)]


@pytest.mark.parametrize("rows", [1, 2, 900])
def test_masks_keep_one_row(rows: int) -> None:
    for secret in {0, rows // 2, rows - 1}:
        expected = [(1 << 64) - 1 if u == secret else 0 for u in range(rows)]
        assert scan.row_masks(rows, secret).tolist() == expected


COMPILED = """
import ctypes, mmap, os, sys
import numpy as np
from mechdesign.mechanism.draw import row_masks, scan_row, scan_table
from mechdesign.mechanism.small_draw import scan_small_row, scan_small_table

page, rows = mmap.PAGESIZE, 3
memory = mmap.mmap(-1, rows * page)
mass = np.frombuffer(memory, np.uint64).reshape(rows, -1)
mass[:] = (1 << 62) // mass.shape[1]
protect = ctypes.CDLL(None, use_errno=True).mprotect
protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

def died(protected, scan):
    child = os.fork()
    if child == 0:
        if protected is not None:
            assert protect(mass.ctypes.data + protected * page, page, 0) == 0
        scan()
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])

def of_table(secret, x):
    return lambda: scan_table(mass, row_masks(rows, secret), np.uint64(x), np.zeros(mass.shape[1], np.uint64))

def of_row(x):
    return lambda: scan_row(mass.ravel(), np.uint64(x))

def of_small_table(secret, x):
    return lambda: scan_small_table(mass, row_masks(rows, secret), np.uint64(x))

def of_small_row(x):
    return lambda: scan_small_row(mass.ravel(), np.uint64(x))

of_table(0, 0)(), of_row(0)()
for secret in range(rows):
    for x in (0, (1 << 62) - 1):
        for scan in (of_table(secret, x), of_small_table(secret, x)):
            print(*(died(protected, scan) for protected in (None, 0, 1, 2)))
for x in (0, (1 << 62) - 1):
    for scan in (of_row(x), of_small_row(x)):
        print(*(died(protected, scan) for protected in (None, 0, 1, 2)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="protects pages of memory")
def test_the_compiled_scans_read_every_page() -> None:
    """A compiler may skip rows that the mask makes useless; reading a protected page ends the process."""
    ended = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == ["False True True True"] * 16

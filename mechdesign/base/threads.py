"""Both cores: blocks of independent work on threads. The work is compiled code that releases Python's lock."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

WORKERS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class OutOfTime(Exception):
    """A deadline passed before all the work was done."""


def in_blocks(work: Callable[[int, int], None], total: int, block: int, *, deadline: float = math.inf) -> None:
    """Call work(start, stop) for consecutive ranges of at most `block` out of range(total), on all cores.

    Ranges must not depend on each other. An interrupt waits for the ranges under way and drops the others.
    Raises: OutOfTime where a range has not begun by the deadline, of time.monotonic().
    """

    def in_time(start: int, stop: int) -> None:
        if time.monotonic() > deadline:
            raise OutOfTime
        work(start, stop)

    ranges = [(start, min(start + block, total)) for start in range(0, total, block)]
    if len(ranges) == 1 or WORKERS == 1:
        for start, stop in ranges:
            in_time(start, stop)
        return
    with ThreadPoolExecutor(WORKERS) as pool:
        try:
            futures = [pool.submit(in_time, start, stop) for start, stop in ranges]
            for future in futures:
                future.result()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise

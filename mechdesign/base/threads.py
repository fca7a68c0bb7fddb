"""Independent work on threads, in compiled code that releases Python's lock, and the source of random bits."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from mechdesign.errors import InputError

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

WORKERS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
SYSTEM = "operating system"
Result = TypeVar("Result")
Seed: TypeAlias = int | np.random.Generator  # a seed or a generator, for simulations
Rng: TypeAlias = Seed | None  # None: the system's bits
_SEEDS = 1 << 32  # that a generator can give


class OutOfTime(Exception):
    """A deadline passed before all the work was done."""


def in_blocks(
    work: Callable[[int, int], None],
    total: int,
    block: int,
    *,
    deadline: float = math.inf,
    on_done: Callable[[int], None] = lambda done: None,
) -> None:
    """Call work(start, stop) for independent ranges of at most `block` out of range(total), on all cores."""
    # on_done gets the number done, in this thread. Raises OutOfTime for a range that starts after the deadline.

    def run_in_time(start: int, stop: int) -> None:
        if time.monotonic() > deadline:
            raise OutOfTime
        work(start, stop)

    # One range, or one core: no pool, whose start takes longer than small work.
    ranges = [(start, min(start + block, total)) for start in range(0, total, block)]
    if len(ranges) == 1 or WORKERS == 1:
        for start, stop in ranges:
            run_in_time(start, stop)
            on_done(stop)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(WORKERS) as pool:
        try:
            futures = [pool.submit(run_in_time, start, stop) for start, stop in ranges]
            for future, (_, stop) in zip(futures, ranges, strict=True):
                future.result()
                on_done(stop)
        # Cancel waiting ranges, or a Ctrl-C would end only after all of them.
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def in_order(work: Callable[[int], Result], count: int) -> list[Result]:
    """The results of work(0), ..., work(count - 1), which are independent, computed on all cores."""
    results: list[Any] = [None] * count

    def run(start: int, stop: int) -> None:
        results[start] = work(start)

    in_blocks(run, count, 1)
    return results


def one_blas_thread() -> AbstractContextManager[Any]:
    """A context with one thread of BLAS: on small matrices, or beside our threads, more wait longer than they work."""
    return _blas_libraries().limit(limits=1, user_api="blas")


@cache
def _blas_libraries() -> ThreadpoolController:
    # NumPy and SciPy have a library of their own each, and only loaded ones are found.
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def source(rng: Rng = None) -> tuple[Callable[[int], bytes], str]:
    """A function from a number of bytes to random bytes, and its name; rng None: the operating system's generator."""
    if rng is None:
        return os.urandom, SYSTEM
    if isinstance(rng, np.random.Generator):
        return rng.bytes, "simulation, generator (predictable)"
    return np.random.default_rng(seed_of(rng)).bytes, f"simulation, seed {seed_of(rng)} (predictable)"


def seed_of(rng: Seed) -> int:
    """The seed `rng`, or one that a generator draws: work with it can be repeated."""
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(_SEEDS))
    if isinstance(rng, bool) or not isinstance(rng, (int, np.integer)) or rng < 0:
        message = "must be a seed, an integer of 0 or more, or a generator of NumPy"
        raise InputError(message, field="rng", value=rng)
    return int(rng)

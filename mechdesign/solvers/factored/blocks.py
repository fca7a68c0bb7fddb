"""Blocks of independent work, a range of rows each: computed by threads or by a cluster, handed out in order.

The work is a function work(state, start, stop) of a state that all blocks of a pass share. Results come in the order of
the ranges, whatever finished first, so that sums over them repeat to the bit on any number of workers. Finished blocks
are kept in a folder, where there is one (work_folder.py), and not computed again.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.threads import WORKERS
from mechdesign.errors import MechdesignError, SolverError
from mechdesign.solvers.factored.work_folder import Folder

Arrays = dict[str, NDArray[Any]]
Work = Callable[[Any, int, int], Arrays]


class Block(Protocol):
    """A block under way."""

    def result(self) -> Arrays:
        """Wait for its arrays."""

    def cancel(self) -> object:
        """Give it up; where it is running already, it ends by itself."""


Submit = Callable[[int, int], Block]


class Workers(Protocol):
    """Where blocks are computed."""

    def ahead(self) -> int:
        """How many blocks may be under way at once."""

    def sharing(self, work: Work, state: Any) -> AbstractContextManager[Submit]:
        """A pass: gives submit(start, stop), which starts work(state, start, stop). At the end the state is let go."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Threads:
    """The cores of this machine. The work is compiled code that releases Python's lock."""

    pool: ThreadPoolExecutor
    count: int

    def ahead(self) -> int:
        return 2 * self.count

    @contextlib.contextmanager
    def sharing(self, work: Work, state: Any) -> Iterator[Submit]:
        yield lambda start, stop: self.pool.submit(work, state, start, stop)


@contextlib.contextmanager
def threads(count: int = WORKERS) -> Iterator[Threads]:
    """`count` threads. On the way out blocks that have not begun are dropped, and those under way are waited for."""
    pool = ThreadPoolExecutor(count)
    try:
        yield Threads(pool=pool, count=count)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def in_order(
    crew: Workers, work: Work, state: Any, total: int, block: int, *, folder: Folder, name: str
) -> Generator[tuple[int, int, Arrays], None, None]:
    """(start, stop, work(state, start, stop)) for consecutive ranges of `block` out of range(total), in this order.

    Blocks found in the folder under `name` are not computed again; the others are kept there as they come. `name` must
    differ between states. Close the iterator (contextlib.closing) where it may be left early: blocks under way are then
    given up.
    Memory: the results of `crew.ahead()` blocks.
    Raises: SolverError, with the rows, where a block fails.
    """
    waiting = deque((start, min(start + block, total)) for start in range(0, total, block))
    pending: deque[tuple[int, int, Arrays | Block]] = deque()
    with crew.sharing(work, state) as submit:
        try:
            while waiting or pending:
                while waiting and len(pending) < crew.ahead():
                    start, stop = waiting.popleft()
                    kept = folder.read(_file(name, start))
                    with _explained(name, start, stop):
                        pending.append((start, stop, submit(start, stop) if kept is None else kept))
                start, stop, found = pending[0]
                if not isinstance(found, dict):
                    with _explained(name, start, stop):
                        found = found.result()
                    folder.write(_file(name, start), found)
                pending.popleft()
                yield start, stop, found
        finally:
            for _, _, unfinished in pending:
                if not isinstance(unfinished, dict):
                    unfinished.cancel()


def whole_pass(
    crew: Workers,
    work: Work,
    state: Any,
    total: int,
    block: int,
    *,
    over_rows: tuple[str, ...],
    name: str,
    folder: Folder | None = None,
    told: Callable[[int], object] = lambda done: None,
) -> Arrays:
    """The arrays of all blocks, `together`. told is called with the rows done after every block; without a folder
    nothing is kept. Raises as `in_order` does.
    """
    blocks = in_order(crew, work, state, total, block, folder=folder or Folder(), name=name)

    def arrays() -> Iterator[Arrays]:
        for _, stop, found in blocks:
            told(stop)
            yield found

    with contextlib.closing(blocks):
        return together(arrays(), over_rows)


def _file(name: str, start: int) -> str:
    return f"{name} from {start}"


@contextlib.contextmanager
def _explained(name: str, start: int, stop: int) -> Iterator[None]:
    """Make whatever goes wrong with a block a SolverError, but for errors that say what to do."""
    try:
        yield
    except MechdesignError:
        raise
    except Exception as error:
        raise SolverError(
            f"a block failed ({type(error).__name__}: {error})",
            field="work",
            value=f"{name}, rows {start} to {stop - 1}",
            remedy="mend the cause and run it again: blocks finished in a --work FOLDER are kept",
        ) from error


def together(blocks: Iterator[Arrays], over_rows: tuple[str, ...]) -> Arrays:
    """Arrays named in `over_rows` put together, others summed, in the order of the blocks.

    Blocks that hold `secret`, the numbers of their rows, are put together in the order of these. Blocks that hold
    `column` and `size` hold sums of these columns alone, out of so many.
    """
    rows: dict[str, list[NDArray[Any]]] = {}
    sums: Arrays = {}
    for arrays in blocks:
        kept = {key: arrays[key] for key in ("column", "secret", "size") if key in arrays}
        for key, values in arrays.items():
            if key in over_rows or key == "secret":
                rows.setdefault(key, []).append(values)
            elif "column" in kept and key not in kept:
                if key not in sums:
                    sums[key] = np.zeros((int(kept["size"][0]), *values.shape[1:]), values.dtype)
                sums[key][kept["column"]] += values
            elif key not in kept:
                sums[key] = sums[key] + values if key in sums else values
    found = {key: np.concatenate(parts) for key, parts in rows.items()}
    if "secret" in found:
        order = np.argsort(found.pop("secret"))
        found = {key: values[order] for key, values in found.items()}
    return found | sums

"""Blocks of independent work: on this machine's cores, or on a dask cluster; kept in a folder so that a run can resume.

The work is a function work(shared, start, stop) of a shared state; results come back in the order of the ranges,
whatever finished first, so that sums over them repeat to the bit on any number of workers.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.errors import InputError, SolverError, VerificationError
from mechdesign.mechanism.storage import load_sealed, save
from mechdesign.mechanism.table import seal
from mechdesign.solvers.parallel import WORKERS

Arrays = dict[str, NDArray[Any]]
Work = Callable[[Any, int, int], Arrays]

SCHEMA = "mechdesign/block/1"
_RETRIES = 3  # of a block whose worker died


class Workers(Protocol):
    """Where blocks are computed."""

    def share(self, state: Any) -> Any:
        """Make a state available to all workers; gives what `submit` takes for it."""

    def submit(self, work: Work, shared: Any, start: int, stop: int) -> Any:
        """Start work(state, start, stop); gives an object with `result()`."""

    @property
    def ahead(self) -> int:
        """How many blocks may be under way at once."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Threads:
    """The cores of this machine."""

    pool: ThreadPoolExecutor

    def share(self, state: Any) -> Any:
        return state

    def submit(self, work: Work, shared: Any, start: int, stop: int) -> Future[Arrays]:
        return self.pool.submit(work, shared, start, stop)

    @property
    def ahead(self) -> int:
        return 2 * WORKERS


@dataclass(frozen=True, kw_only=True, eq=False)
class Cluster:
    """The workers of a dask cluster. Blocks of a worker that dies are computed again elsewhere."""

    client: Any

    def share(self, state: Any) -> Any:
        return self.client.scatter(state, broadcast=True)

    def submit(self, work: Work, shared: Any, start: int, stop: int) -> Any:
        return self.client.submit(work, shared, start, stop, pure=False, retries=_RETRIES)

    @property
    def ahead(self) -> int:
        return 4 * max(1, sum(self.client.nthreads().values()))


@contextlib.contextmanager
def workers(scheduler: str | None = None) -> Iterator[Workers]:
    """The cores of this machine, or the workers of the dask scheduler at an address such as "tcp://host:8786".

    Raises: InputError without the extra `distributed`, or where no scheduler answers.
    """
    if scheduler is None:
        pool = ThreadPoolExecutor(WORKERS)
        try:
            yield Threads(pool=pool)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise InputError(
            "needs dask.distributed",
            field="scheduler",
            value=scheduler,
            remedy="install the extra: pip install 'mechdesign[distributed]'",
        ) from error
    try:
        client = Client(scheduler, timeout="10s", set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"no scheduler answers ({type(error).__name__})",
            field="scheduler",
            value=scheduler,
            remedy="start one with `dask scheduler`, and workers with `dask worker ADDRESS`",
        ) from error
    with client:
        yield Cluster(client=client)


@dataclass(frozen=True, kw_only=True, eq=False)
class Folder:
    """Results kept on disk under names, each written whole or not at all, with a checksum and the run they belong to.

    path None keeps nothing.
    """

    path: Path | None
    run: str

    def read(self, name: str) -> Arrays | None:
        """A kept result; None where there is none, or where it is damaged: then it is computed again.

        Raises: InputError where the folder holds another run.
        """
        if self.path is None or not (self.path / f"{name}.nc").is_file():
            return None
        try:
            kept = load_sealed(self.path / f"{name}.nc", schema=SCHEMA, what="a block of results")
        except VerificationError:
            return None
        if kept.attrs["run"] != self.run:
            raise InputError(
                "holds the work of another run",
                field="work",
                value=self.path,
                remedy="name another folder, or empty this one",
            )
        return {str(key): values.values for key, values in kept.data_vars.items()}

    def write(self, name: str, arrays: Arrays) -> None:
        """Keep a result."""
        if self.path is None:
            return
        self.path.mkdir(parents=True, exist_ok=True)
        variables = {key: ([f"{key}_{axis}" for axis in range(values.ndim)], values) for key, values in arrays.items()}
        save(
            seal(xr.Dataset(variables, attrs={"schema": SCHEMA, "run": self.run})),
            self.path / f"{name}.nc",
            overwrite=True,
        )

    def drop(self, pattern: str) -> None:
        """Remove results that are not needed any more."""
        if self.path is not None:
            for found in self.path.glob(f"{pattern}.nc"):
                found.unlink(missing_ok=True)


def run_key(description: dict[str, Any], *arrays: NDArray[Any]) -> str:
    """What tells runs apart: SHA-256 of a description and of arrays."""
    digest = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def in_order(
    crew: Workers, work: Work, state: Any, total: int, block: int, *, folder: Folder, name: str
) -> Iterator[tuple[int, int, Arrays]]:
    """(start, stop, work(state, start, stop)) for consecutive ranges of range(total), in this order.

    Blocks found in the folder are not computed again; the others are kept there as they come.
    Raises: SolverError where a block keeps failing.
    """
    ranges = [(start, min(start + block, total)) for start in range(0, total, block)]
    shared = crew.share(state)
    pending: deque[tuple[int, int, Any]] = deque()
    rest = iter(ranges)

    def launch() -> None:
        for start, stop in rest:
            kept = folder.read(f"{name}-{start}")
            pending.append((start, stop, kept if kept is not None else crew.submit(work, shared, start, stop)))
            if len(pending) >= crew.ahead:
                return

    launch()
    while pending:
        start, stop, found = pending.popleft()
        if not isinstance(found, dict):
            try:
                found = found.result()
            except Exception as error:
                raise SolverError(
                    f"a block failed ({type(error).__name__}: {error})",
                    field="work",
                    value=f"{name}, rows {start} to {stop}",
                    remedy="run it again with --work: the finished blocks are kept",
                ) from error
            folder.write(f"{name}-{start}", found)
        yield start, stop, found
        if len(pending) < crew.ahead:
            launch()

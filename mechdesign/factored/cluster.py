"""Blocks on the workers of a dask cluster, or on this machine's threads: `workers` chooses."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pickle
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import Any

from mechdesign.base.optional import import_optional
from mechdesign.errors import InputError, MechdesignError, SolverError
from mechdesign.factored.work_folder import Arrays, Submit, Work, Workers, threads

WAIT = 8.0  # seconds for the scheduler to answer, and for it to have a worker
PATIENCE = 60.0  # seconds without any worker after which a run is given up
_LOGS = ("distributed.client", "distributed.core", "distributed.batched")  # loggers of lost connections


# The bits of a block depend on the processor and on the versions of mechdesign, NumPy and Numba, which are compared.
@contextlib.contextmanager
def workers(scheduler: str | None = None) -> Iterator[Workers]:
    """The cores of this machine, or the workers of the dask scheduler at an address such as "tcp://host:8786"."""
    if scheduler is None:
        with threads() as executor:
            yield executor
        return
    distributed = import_optional("distributed", "distributed")
    with _quiet():
        _check_answer(scheduler)
        with distributed.Client(scheduler, timeout=WAIT, set_as_default=False) as client:
            _check_workers(client, scheduler)
            yield Cluster(client=client)


@dataclass(frozen=True, kw_only=True, eq=False)
class Cluster:
    """The workers of a dask cluster."""

    client: Any

    def ahead(self) -> int:
        try:
            return 4 * max(1, sum(self.client.nthreads().values()))
        except OSError:  # a scheduler that is gone shows in the results
            return 1

    @contextlib.contextmanager
    def sharing(self, work: Work, state: Any) -> Iterator[Submit]:
        import dask

        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
            # A task that unpickles the state: dask runs it again with the blocks if its worker is lost, and workers may
            # join and leave. `Client.scatter` loses data with its worker; with `broadcast` the scheduler then stays
            # busy for ever.
            shared = self.client.submit(pickle.loads, pickle.dumps(state, protocol=5), pure=False)
        try:
            yield lambda start, stop: _Block(
                client=self.client,
                rows=f"rows {start} to {stop - 1}",
                future=self.client.submit(compute, work, shared, start, stop, versions_here(), pure=False),
            )
        finally:
            shared.release()


@dataclass(frozen=True, kw_only=True, eq=False)
class _Block:
    client: Any
    rows: str
    future: Any

    def result(self) -> Arrays:
        try:
            return self._wait()
        except Exception as error:
            error_name = type(error).__name__
            # The connection may close while a result is on its way.
            if isinstance(error, CancelledError) or error_name == "CommClosedError":
                remedy = "start it and its workers, then run it again"
                raise self._failure("the scheduler stopped", remedy) from error
            if error_name != "KilledWorker":
                raise
            remedy = "give them more memory, or fewer threads each (dask worker --nthreads 1), then run it again"
            raise self._failure("the block repeatedly killed its worker", remedy) from error
        finally:
            self.cancel()

    def _wait(self) -> Arrays:
        while True:
            try:
                return self.future.result(timeout=PATIENCE)
            except TimeoutError as error:
                if self.future.status == "error":
                    raise self.future.exception() from error
                if not self.client.nthreads():
                    raise self._failure("no workers are left", "start some, then run it again") from error

    def cancel(self) -> None:
        self.future.release()

    def _failure(self, message: str, remedy: str) -> SolverError:
        return SolverError(message, field="scheduler", value=self.rows, remedy=f"{remedy} with the same work=FOLDER")


def compute(work: Work, state: Any, start: int, stop: int, versions: dict[str, str]) -> Arrays:
    """work(state, start, stop), on a worker. Raises: InputError where its versions are not those of the client."""
    check_versions(versions)
    return work(state, start, stop)


def check_versions(versions: dict[str, str]) -> None:
    """Raise an InputError where this process has other versions than these of the client."""
    here = versions_here()
    if here != versions:
        message = "the scheduler or a worker has different versions from the client"
        other = ", ".join(f"{name} {here[name]}" for name in here if here[name] != versions[name])
        raise InputError(message, field="scheduler", value=other, remedy=_install(versions))


def _install(versions: dict[str, str]) -> str:
    wanted = " ".join(f"{name}=={version}" for name, version in versions.items())
    return f"where the scheduler and the workers run, pip install {wanted}"


@cache
def versions_here() -> dict[str, str]:
    """The versions that the numbers of a block depend on."""
    return {name: metadata.version(name) for name in ("mechdesign", "numpy", "numba")}


def _check_answer(scheduler: str) -> None:
    # Asked before a client exists, since a client that cannot connect keeps trying.
    from distributed.core import rpc
    from distributed.security import Security

    async def ask() -> Any:
        arguments = Security().get_connection_args("client")
        async with rpc(scheduler, timeout=WAIT, connection_args=arguments) as remote:
            return await asyncio.wait_for(remote.identity(), WAIT)

    try:
        with ThreadPoolExecutor(1) as thread:  # the calling thread may run an event loop already
            kind = thread.submit(asyncio.run, ask()).result()["type"]
    except Exception as error:  # any program may answer at this address
        raise _unreachable(scheduler, f"no scheduler answers ({type(error).__name__})") from error
    if kind != "Scheduler":
        raise _unreachable(scheduler, f"is the address of a {kind.lower()}")


def _check_workers(client: Any, scheduler: str) -> None:
    # A worker that cannot import a block never answers, so each is asked for its versions first.
    try:
        client.wait_for_workers(1, timeout=WAIT)
    except TimeoutError as error:
        raise _unreachable(scheduler, "has no workers") from error
    try:
        client.run_on_scheduler(check_versions, versions_here())
        client.run(check_versions, versions_here())
    except MechdesignError:
        raise
    except OSError:  # a worker died meanwhile; every block checks its own
        return
    except Exception as error:
        message, remedy = f"the scheduler or a worker cannot compute ({error})", _install(versions_here())
        raise InputError(message, field="scheduler", value=scheduler, remedy=remedy) from error


def _unreachable(scheduler: str, message: str) -> InputError:
    remedy = "start `dask scheduler`, then `dask worker ADDRESS` on every machine, and give the scheduler's ADDRESS"
    return InputError(message, field="scheduler", value=scheduler, remedy=remedy)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    # Errors report lost connections: the logs would repeat them on the terminal.
    loggers = [logging.getLogger(name) for name in _LOGS]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger in loggers:
            logger.disabled = False

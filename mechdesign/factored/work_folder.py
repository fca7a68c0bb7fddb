"""Blocks of independent work, a range of rows each: computed by threads or by a cluster, in order, stored in a folder.

The work is a function work(state, start, stop) of a state that all blocks of a pass share. Results come in the order of
the ranges, and finished blocks in a folder are not computed again.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import xarray as xr

from mechdesign.base.arrays import AnyArray
from mechdesign.base.atomic_write import write_atomically
from mechdesign.base.lock import hold_lock
from mechdesign.base.threads import WORKERS
from mechdesign.errors import InputError, MechdesignError, SolverError, VerificationError
from mechdesign.mechanism.storage import load, save

Arrays = dict[str, AnyArray]
Work = Callable[[Any, int, int], Arrays]
OnDone = Callable[[int], object]
SCHEMA = "mechdesign/run/1"
MECHANISM = "mechanism.nc"
_MANIFEST, _LOCK = "run.json", "lock"
_DIGEST = hashlib.sha256().digest_size


# | file | content |
# |---|---|
# | run.json | which run the folder belongs to, and whether the folder was made for it |
# | lock | process and machine of the run under way |
# | NAME.block | arrays under a name: SHA-256 of run, name and content, then the arrays by name (npz) |
# | mechanism.nc | the finished mechanism |
@dataclass(frozen=True, kw_only=True, eq=False)
class Folder:
    """The stored blocks of a run, or nothing without a path; run is the key of `run_key`."""

    path: Path | None = None
    run: str = ""

    def read(self, name: str) -> dict[str, AnyArray] | None:
        # None for a missing, damaged or foreign block, which is then computed again.
        if self.path is None:
            return None
        try:
            content = self._block(name).read_bytes()
        except OSError:
            return None
        # The digest covers run and name too: a block of another run, or under another name, is not taken for this one.
        if content[:_DIGEST] != self._digest(name, content[_DIGEST:]):
            return None
        with np.load(io.BytesIO(content[_DIGEST:]), allow_pickle=False) as arrays:
            return dict(arrays)

    def write(self, name: str, arrays: Mapping[str, AnyArray]) -> None:
        if self.path is None:
            return
        stream = io.BytesIO()
        np.savez(stream, **arrays)  # type: ignore[arg-type]
        content = stream.getvalue()
        digest = self._digest(name, content)
        _put(self._block(name), digest + content)

    def keep_only(self, *names: str) -> None:
        prefixes = tuple(f"{name} " for name in names)
        for block in () if self.path is None else self.path.glob("*.block"):
            if not f"{block.stem} ".startswith(prefixes):
                block.unlink()

    def keep_mechanism(self, mechanism: xr.Dataset) -> None:
        if self.path is not None:
            save(mechanism, self.path / MECHANISM, overwrite=True)

    def mechanism(self) -> xr.Dataset | None:
        if self.path is None:
            return None
        try:
            return load(self.path / MECHANISM)
        except (InputError, VerificationError):
            return None

    def _block(self, name: str) -> Path:
        assert self.path is not None
        return self.path / f"{name}.block"

    def _digest(self, name: str, content: bytes) -> bytes:
        return hashlib.sha256(f"{self.run}\n{name}\n".encode() + content).digest()


def run_key(description: Mapping[str, Any], *arrays: AnyArray) -> str:
    """The key of a run: SHA-256 of a description and of arrays."""
    digest = hashlib.sha256(json.dumps(description, sort_keys=True, default=str).encode())
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


@contextlib.contextmanager
def work_folder(path: str | Path | None, run: str, *, of: str) -> Iterator[Folder]:
    """The folder of a run, locked for this process and made if it is missing; `of` describes the run in words."""
    # An empty folder that was made here is removed again.
    if path is None:
        yield Folder()
        return
    where = Path(path)
    created = _make(where)
    try:
        with hold_lock(where / _LOCK, field="work"):
            created = _claim(where, run, of=of, created=created)
            try:
                yield Folder(path=where, run=run)
            finally:
                if {file.name for file in where.iterdir()} <= {_LOCK, _MANIFEST}:
                    (where / _MANIFEST).unlink(missing_ok=True)
    finally:
        _remove_empty(where, created)


def discard_finished(path: str | Path) -> None:
    """Empty the folder of a finished run, and remove it if it was made for the run; other files stay."""
    where = Path(path)
    if not (where / _MANIFEST).is_file() or any(where.glob("*.block")):
        return
    with hold_lock(where / _LOCK, field="work"):
        created = bool(_manifest(where)["made"])
        (where / MECHANISM).unlink(missing_ok=True)
        (where / _MANIFEST).unlink()
    _remove_empty(where, created)


def _make(where: Path) -> bool:
    try:
        str(where).encode()  # the HDF5 library, which writes the mechanism at last, takes no other names
        where.mkdir()
    except FileExistsError as error:
        if not where.is_dir():
            raise InputError("is not a folder", field="work", value=where) from error
        return False
    except UnicodeEncodeError as error:
        raise InputError("must have a name in UTF-8", field="work", value=where) from error
    except OSError as error:
        raise InputError(f"could not be created ({error.strerror})", field="work", value=where) from error
    return True


def _claim(where: Path, run: str, *, of: str, created: bool) -> bool:
    if not (where / _MANIFEST).exists():
        others = [name for file in where.iterdir() if not (name := file.name).startswith((_LOCK, f".{_MANIFEST}."))]
        if others:
            message = f"contains other files, such as {min(others)}: pass an empty folder"
            raise InputError(message, field="work", value=where)
        text = json.dumps({"schema": SCHEMA, "run": run, "of": of, "made": created})
        _put(where / _MANIFEST, text.encode())
    manifest = _manifest(where)
    if manifest["run"] != run:
        raise InputError(f"contains the work of another run: {manifest['of']}", field="work", value=where)
    for part in where.glob(".*.part"):
        part.unlink()
    return bool(manifest["made"])


def _manifest(where: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((where / _MANIFEST).read_text(encoding="utf-8"))
        if manifest["schema"] == SCHEMA and {"run", "of", "made"} <= manifest.keys():
            return manifest
        raise ValueError(manifest)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"has a damaged {_MANIFEST}: delete this folder", field="work", value=where) from error


def _remove_empty(where: Path, created: bool) -> None:
    if created:
        with contextlib.suppress(OSError):
            where.rmdir()


def _put(path: Path, content: bytes) -> None:
    write_atomically(path, lambda temporary: temporary.write_bytes(content))


Submit = Callable[[int, int], Any]


class Workers(Protocol):
    """Computes blocks: the threads of this machine, or a cluster."""

    def ahead(self) -> int:
        """The number of blocks that may be computed at once."""

    def sharing(self, work: Work, state: Any) -> AbstractContextManager[Submit]:
        """A pass: yields submit(start, stop), whose answer has result() and cancel(); its end frees the state."""


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
    """`count` threads. At the end blocks that have not begun are dropped, and running ones are waited for."""
    pool = ThreadPoolExecutor(count)
    try:
        yield Threads(pool=pool, count=count)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockedWork:
    """work(state, start, stop) for consecutive ranges of `block` out of range(total); `name` differs between states."""

    work: Work
    state: Any
    total: int
    block: int
    name: str


def in_order(
    executor: Workers, blocked: BlockedWork, *, folder: Folder | None = None, on_done: OnDone = lambda done: None
) -> Generator[tuple[int, int, Arrays], None, None]:
    """Yield (start, stop, arrays) of all blocks in order, and store new ones; close it to cancel those under way."""
    folder, name = folder or Folder(), blocked.name
    starts = range(0, blocked.total, blocked.block)
    waiting = deque((start, min(start + blocked.block, blocked.total)) for start in starts)
    pending: deque[tuple[int, int, Any]] = deque()
    with executor.sharing(blocked.work, blocked.state) as submit:
        try:
            while waiting or pending:
                while waiting and len(pending) < executor.ahead():
                    start, stop = waiting.popleft()
                    # Stored blocks keep their place in the queue, so that the order of sums does not depend on them.
                    stored = folder.read(_file(name, start))
                    with _explain_failure(name, start, stop):
                        pending.append((start, stop, submit(start, stop) if stored is None else stored))
                start, stop, arrays = pending[0]
                if not isinstance(arrays, dict):
                    with _explain_failure(name, start, stop):
                        arrays = arrays.result()
                    folder.write(_file(name, start), arrays)
                pending.popleft()
                on_done(stop)
                yield start, stop, arrays
        finally:
            for _, _, unfinished in pending:
                if not isinstance(unfinished, dict):
                    unfinished.cancel()


def merged_pass(
    executor: Workers,
    blocked: BlockedWork,
    over_rows: tuple[str, ...],
    *,
    folder: Folder | None = None,
    on_done: OnDone = lambda done: None,
) -> Arrays:
    """The arrays of all blocks, by `merge_blocks`; without a folder nothing is stored."""
    with contextlib.closing(in_order(executor, blocked, folder=folder, on_done=on_done)) as blocks:
        return merge_blocks((arrays for _, _, arrays in blocks), over_rows)


def all_blocks(executor: Workers, blocked: BlockedWork, *, on_done: OnDone = lambda done: None) -> list[Arrays]:
    """The arrays of all blocks, one after the other."""
    with contextlib.closing(in_order(executor, blocked, on_done=on_done)) as blocks:
        return [arrays for _, _, arrays in blocks]


def _file(name: str, start: int) -> str:
    return f"{name} from {start}"


@contextlib.contextmanager
def _explain_failure(name: str, start: int, stop: int) -> Iterator[None]:
    # Errors of the package already name their cause and remedy, so they pass unchanged.
    try:
        yield
    except MechdesignError:
        raise
    except Exception as error:
        message, rows = f"a block failed ({type(error).__name__}: {error})", f"{name}, rows {start} to {stop - 1}"
        remedy = "fix the cause and run it again: blocks finished in work=FOLDER are reused"
        raise SolverError(message, field="work", value=rows, remedy=remedy) from error


def merge_blocks(blocks: Iterator[Arrays], over_rows: tuple[str, ...]) -> Arrays:
    """Concatenate the arrays named in `over_rows` and sum the others, in the order of the blocks."""
    # Rows of blocks with `secret`, the numbers of their rows, are sorted by them. Blocks with `column` and `size` have
    # sums of these columns alone, out of `size`. One order of sums, so that bits do not depend on the workers.
    rows: dict[str, list[AnyArray]] = {}
    sums: Arrays = {}
    for arrays in blocks:
        index = {key: arrays[key] for key in ("column", "secret", "size") if key in arrays}
        for key, values in arrays.items():
            if key in over_rows or key == "secret":
                rows.setdefault(key, []).append(values)
            elif "column" in index and key not in index:
                if key not in sums:
                    sums[key] = np.zeros((int(index["size"][0]), *values.shape[1:]), values.dtype)
                sums[key][index["column"]] += values
            elif key not in index:
                sums[key] = sums[key] + values if key in sums else values
    joined = {key: np.concatenate(parts) for key, parts in rows.items()}
    if "secret" in joined:
        order = np.argsort(joined.pop("secret"))
        joined = {key: values[order] for key, values in joined.items()}
    return joined | sums

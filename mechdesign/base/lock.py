"""Lock files: one process and one thread at a time."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from mechdesign.errors import InputError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_PRIVATE = 0o600
_HOLDER_BYTES = 4096  # bytes read of a file that names its holder
_LOCKED_BYTE = 1 << 30  # the locked byte on Windows: locked bytes cannot be read, and the first ones name the holder
_PAUSE = 0.02  # seconds between attempts on Windows


# The operating system releases a lock when its process ends. With `wait` the empty file remains; without, it names its
# holder and is deleted afterwards. On file systems without locks process ids are compared. A file from another machine
# is refused until somebody deletes it.
@contextlib.contextmanager
def hold_lock(path: Path, *, field: str, wait: bool = False) -> Iterator[None]:
    """Hold the lock file at `path`; `wait` for other holders, or refuse if there are any; errors name `field`."""
    try:
        handle = _acquire(path, field, wait)
    except OSError as error:
        raise InputError(f"cannot be locked ({error.strerror})", field=field, value=path) from error
    try:
        yield
    finally:
        # Windows does not remove an open file. Its empty rest names no holder.
        with contextlib.suppress(OSError):
            if not wait and _is_current(handle, path):
                os.ftruncate(handle, 0)
                path.unlink()
        with contextlib.suppress(OSError):
            _release(handle)
        os.close(handle)


def _acquire(path: Path, field: str, wait: bool) -> int:
    while True:
        handle = os.open(path, _FLAGS, _PRIVATE)
        try:
            status = os.fstat(handle)
            # A hard link would let this process empty a file of another name.
            if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
                raise InputError("is not a lock file", field=field, value=path, remedy="delete it")
            free = _lock(handle, wait)
            if not wait:
                _refuse_held(handle, free, path, field)
            elif free is None:
                raise InputError("the file system has no locks", field=field, value=path.parent)
            if _is_current(handle, path):
                if not wait:
                    _write_holder(handle)
                return handle
        except BaseException:
            os.close(handle)
            raise
        # The file was removed between open and lock: lock its successor.
        os.close(handle)


def _lock(handle: int, wait: bool) -> bool | None:
    """True if the lock was acquired; None if the file system has no locks."""
    if sys.platform == "win32":
        while True:
            os.lseek(handle, _LOCKED_BYTE, os.SEEK_SET)
            with contextlib.suppress(OSError):
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
                return True
            if not wait:
                return False
            time.sleep(_PAUSE)
    else:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return None
        return True


def _release(handle: int) -> None:
    """Unlock: closing alone does not, while a forked process has the file open too."""
    if sys.platform == "win32":
        os.lseek(handle, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)
    else:
        fcntl.flock(handle, fcntl.LOCK_UN)


def _refuse_held(handle: int, free: bool | None, path: Path, field: str) -> None:
    process, machine = _holder(handle)
    here = machine in ("", platform.node())
    if free is None:
        free = not (process and here and psutil.pid_exists(process))
    if free and here:
        return
    raise InputError(
        f"in use by process {process} on {machine}" if process else "in use by another process",
        field=field,
        value=path.parent,
        remedy="wait for it to end" if here else f"if it has ended, delete {path}",
    )


def _holder(handle: int) -> tuple[int, str]:
    """Process and machine that a lock file names; (0, "") where it names none."""
    os.lseek(handle, 0, os.SEEK_SET)
    try:
        holder = json.loads(os.read(handle, _HOLDER_BYTES))
        process, machine = holder["process"], holder["machine"]
        if type(process) is int and 0 < process < 1 << 31 and isinstance(machine, str) and machine.isprintable():
            return process, machine
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    return 0, ""


def _write_holder(handle: int) -> None:
    os.ftruncate(handle, 0)
    os.lseek(handle, 0, os.SEEK_SET)
    os.write(handle, json.dumps({"process": os.getpid(), "machine": platform.node()}).encode())


def _is_current(handle: int, path: Path) -> bool:
    """True if `path` still names the open file."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False

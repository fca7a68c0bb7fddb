"""A lock file: one process at a time, and nothing to clean up after one that was killed.

The operating system keeps the lock for a process and lets go of it when the process ends, however it ends; the file
says whose it is. Where a file system keeps no locks, the process number decides. The file of another machine, whose
processes cannot be seen from here, is refused until it is deleted.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import psutil

from mechdesign.errors import InputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file at `path`; it is gone afterwards.

    Raises: InputError, naming process and machine, where another process holds it; or where it cannot be written.
    """
    try:
        file = _take(path)
    except OSError as error:
        raise InputError(
            f"cannot be written to ({error.strerror})", field="work", value=path.parent, remedy="name another folder"
        ) from error
    try:
        yield
    finally:
        file.truncate(0)
        with contextlib.suppress(PermissionError):  # Windows removes no open file
            path.unlink(missing_ok=True)
        file.close()


def _take(path: Path) -> IO[str]:
    while True:
        file = path.open("a+", encoding="utf-8")
        try:
            process, machine = _holder(file)
            here = machine in ("", platform.node())
            if not _free(file, process if here else 0) or not here:
                raise InputError(
                    f"in use by process {process} on {machine}",
                    field="work",
                    value=path.parent,
                    remedy="wait for it to end" if here else f"if it has ended, delete {path}",
                )
            if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                file.truncate(0)
                json.dump({"process": os.getpid(), "machine": platform.node()}, file)
                file.flush()
                return file
        except BaseException:
            file.close()
            raise
        file.close()  # its last holder removed it in between


def _holder(file: IO[str]) -> tuple[int, str]:
    """Process and machine that a lock file names; (0, "") where it names none."""
    file.seek(0)
    try:
        named = json.load(file)
        return int(named["process"]), str(named["machine"])
    except (ValueError, TypeError, KeyError):
        return 0, ""


def _free(file: IO[str], process: int) -> bool:
    """Whether no living process holds the lock; the caller holds it then."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (AttributeError, OSError):  # no such locks here
        return not (process and psutil.pid_exists(process))
    return True

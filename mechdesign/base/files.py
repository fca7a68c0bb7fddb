"""Readers of files: untrusted ones are checked to be regular and bounded in size, those of the designer are not."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from mechdesign.base.memory import require_bytes
from mechdesign.errors import FileFormatError, MechdesignError

# O_NONBLOCK: without it, opening a FIFO waits for a writer.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def open_regular(path: str | Path, *, field: str, remedy: str) -> BinaryIO:
    """Open a regular file for reading bytes; never waits, and refuses files of size 0 with content, as in /proc."""
    source = Path(path)

    def path_error(message: str) -> FileFormatError:
        return FileFormatError(message, field=field, value=path, remedy=remedy)

    def check(mode: int) -> None:
        if not stat.S_ISREG(mode):
            raise path_error("is a folder, not a file" if stat.S_ISDIR(mode) else "is not a regular file")

    try:
        # Before opening, since opening a device may act on it; and after it, since the name may lead elsewhere by then.
        check(source.stat().st_mode)
        with ExitStack() as stack:
            stream = stack.enter_context(os.fdopen(os.open(source, _FLAGS), "rb"))
            status = os.fstat(stream.fileno())
            check(status.st_mode)
            if status.st_size == 0 and os.read(stream.fileno(), 1):
                raise path_error("has content although its size is reported as 0")
            # No check failed: leave the stream open for the caller.
            stack.pop_all()
    except FileFormatError:
        raise
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:  # ValueError: a zero byte in the name
        raise path_error("no such file") from error
    except OSError as error:
        raise path_error(f"cannot be opened ({error.strerror})") from error
    return stream


def read_bytes(stream: BinaryIO, source: Path, *, field: str, limit: int, expansion: int) -> bytes:
    """Read at most `limit` bytes; expansion: bytes of memory for one byte of the file, once parsed."""
    size = os.fstat(stream.fileno()).st_size
    if size <= limit:
        require_bytes(size * expansion, noun="reading the file", field=field, value=source)
        # One byte more than the size shows a file that has grown since.
        content = stream.read(size + 1)
    if size > limit or len(content) > size:
        raise FileFormatError(f"is too large: more than {min(size, limit)} bytes", field=field, value=source)
    return content


@contextmanager
def readable(path: str | Path, field: str) -> Iterator[None]:
    """Turn whatever a library raises while it reads a trusted file into a FileFormatError."""
    try:
        if not Path(path).is_file():
            raise FileFormatError("no such file", field=field, value=path)
        yield
    except (MechdesignError, MemoryError):
        raise
    except Exception as error:
        raise FileFormatError(f"cannot be read ({type(error).__name__}: {error})", field=field, value=path) from error

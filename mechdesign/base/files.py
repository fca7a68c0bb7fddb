"""Files and streams at the border of the package: opening what anybody may have written, printing to any terminal.

Files. A mechanism, a design or a map may come from anywhere: its type is checked before it is opened and again
afterwards, so that neither a FIFO behind a link nor a device is waited for or disturbed, and no more is read than fits
in memory. What the designer wrote is trusted: the errors of the library that reads it become one sentence.

Streams. No text steers the terminal, and a stream that fails ends a run in one line.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from mechdesign.base.memory import require_bytes
from mechdesign.errors import FileFormatError, MechdesignError, OutputError

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def open_regular(path: str | Path, *, field: str, remedy: str) -> BinaryIO:
    """A regular file opened for reading bytes, whatever links lead to it; never waits.

    Raises: FileFormatError with this field and remedy for a missing file, a folder, FIFO, socket or device, one that
        cannot be opened, and one that says it holds no bytes and does, as many under /proc.
    """
    source = Path(path)

    def refused(message: str) -> FileFormatError:
        return FileFormatError(message, field=field, value=path, remedy=remedy)

    def check(mode: int) -> None:
        if not stat.S_ISREG(mode):
            raise refused("is a folder, not a file" if stat.S_ISDIR(mode) else "is no regular file")

    try:
        check(source.stat().st_mode)
        with ExitStack() as opened:
            stream = opened.enter_context(os.fdopen(os.open(source, _FLAGS), "rb"))
            status = os.fstat(stream.fileno())
            check(status.st_mode)
            if status.st_size == 0 and os.read(stream.fileno(), 1):
                raise refused("holds more bytes than it says")
            opened.pop_all()
    except FileFormatError:
        raise
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:  # ValueError: a zero byte in the name
        raise refused("no such file") from error
    except OSError as error:
        raise refused(f"cannot be opened ({error.strerror})") from error
    return stream


def read_bytes(stream: BinaryIO, source: Path, *, field: str, most: int, expansion: int) -> bytes:
    """The content of an open file, of at most `most` bytes; `source` names it in errors.

    expansion: bytes of memory that one byte of the file takes once it is read and taken apart.
    """
    size = os.fstat(stream.fileno()).st_size
    if size <= most:
        require_bytes(size * expansion, what="reading the file", field=field, value=source)
        content = stream.read(size + 1)
    if size > most or len(content) > size:
        raise FileFormatError(f"is too large: more than {min(size, most)} bytes", field=field, value=source)
    return content


@contextmanager
def readable(path: str | Path, field: str) -> Iterator[None]:
    """A file of the designer's being read by a library.

    Raises: FileFormatError for whatever the library raises, and for what is no regular file.
    """
    try:
        if not Path(path).is_file():
            raise FileFormatError("no such file", field=field, value=path)
        yield
    except (MechdesignError, MemoryError):
        raise
    except Exception as error:
        raise FileFormatError(f"cannot be read ({type(error).__name__}: {error})", field=field, value=path) from error


def visible(text: object) -> str:
    r"""The text with every character that is not printable (control characters, line ends, changes of the direction of
    writing, bytes that are not UTF-8) as its escape, such as \x1b: one line that shows what it is.
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(text))


@contextmanager
def guarded(output: TextIO | None, errors: TextIO | None) -> Iterator[None]:
    """Standard output that raises `OutputError` where it cannot be written, and standard error that then is silent.

    Characters that a stream has no code for are escaped. What a failed stream still holds is dropped, so that Python
    does not fail over it once more at its end. A stream that is None, as after `>&-`, stays None.
    """
    with (
        redirect_stdout(output and _Stream(output, silent=False)),
        redirect_stderr(errors and _Stream(errors, silent=True)),
    ):
        yield


class _Stream:
    """A text stream as `guarded` says."""

    def __init__(self, stream: TextIO, *, silent: bool) -> None:
        self._stream, self._silent = stream, silent
        self._failure: OutputError | None = None  # comes again: a library may have caught it

    def write(self, text: str) -> int:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        with self._failing():
            self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def flush(self) -> None:
        with self._failing():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        if self._failure is not None:
            raise self._failure
        try:
            yield
        except OSError as error:
            self._drop()
            if not self._silent:
                self._failure = OutputError(
                    f"could not be written ({error.strerror or error})",
                    field="standard output",
                    closed=error.errno == errno.EPIPE,
                )
                raise self._failure from error

    def _drop(self) -> None:
        """Send what is left, and what comes, to nowhere."""
        with suppress(OSError, ValueError, AttributeError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
            self._stream.flush()

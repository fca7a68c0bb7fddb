"""Opening the files that a user names: regular ones only, without waiting, and no more of them than fits in memory.

What stands behind a name is asked before it is opened and again of what was opened, so that neither a FIFO behind a
link nor a device is waited for or disturbed.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, BinaryIO, NoReturn

from mechdesign.base.memory import require_bytes, room
from mechdesign.errors import FileFormatError

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_DAMAGE = (OSError, EOFError, ValueError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
_BUFFER = 1 << 18


def open_regular(path: str | Path, *, field: str, remedy: str) -> BinaryIO:
    """A regular file opened for reading bytes, whatever links lead to it; never waits.

    Raises: FileFormatError with this field and remedy for a missing file, a folder, FIFO, socket or device, one that
        cannot be opened, and one that says it holds no bytes and does, as many under /proc.
    """
    source, refuse = Path(path), _refusal(path, field, remedy)

    def check(mode: int) -> None:
        if stat.S_ISDIR(mode):
            refuse("is a folder, not a file")
        if not stat.S_ISREG(mode):
            refuse("is no regular file")

    try:
        check(source.stat().st_mode)
        stream = os.fdopen(os.open(source, _FLAGS), "rb")
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:  # ValueError: a zero byte in the name
        refuse("no such file", error)
    except OSError as error:
        refuse(f"cannot be opened ({error.strerror})", error)
    try:
        status = os.fstat(stream.fileno())
        check(status.st_mode)
        if status.st_size == 0 and os.read(stream.fileno(), 1):
            refuse("holds more bytes than it says")
    except OSError as error:
        stream.close()
        refuse(f"cannot be read ({error.strerror})", error)
    except BaseException:
        stream.close()
        raise
    return stream


def read_bytes(stream: BinaryIO, source: Path, *, field: str, most: int, unfolds: int) -> bytes:
    """The content of an open file, of at most `most` bytes; `source` names it in errors.

    unfolds: bytes of memory that one byte of the file takes once it is read and taken apart.
    Raises: FileFormatError for a larger file, SizeError where there is no memory for it.
    """
    size = os.fstat(stream.fileno()).st_size
    if size <= most:
        require_bytes(size * unfolds, what="reading the file", field=field, value=source)
        content = stream.read(size + 1)
    if size > most or len(content) > size:
        raise FileFormatError(
            f"is too large: more than {min(size, most)} bytes", field=field, value=source, remedy="use a smaller file"
        )
    return content


def open_lines(
    path: str | Path, *, field: str, remedy: str, unfolds: int | None = None, longest: int = sys.maxsize
) -> IO[bytes]:
    """A text file opened for reading bytes; one that ends in .gz, .bz2, .xz or .zip (of one file) is unpacked.

    Where lines end with CR alone, as those of old Macintosh programs do, they end with LF here.
    unfolds: bytes of memory that one unpacked byte takes, where the whole file will be kept; longest: bytes of a line.
    Raises: as `open_regular`. Reading raises FileFormatError for a damaged archive, a file that unfolds to more than
        the memory holds, UTF-16, and too long a line.
    """
    stream: Any = open_regular(path, field=field, remedy=remedy)
    refuse = _refusal(path, field, remedy)
    try:
        unpacked = _UNPACKERS.get(Path(path).suffix.lower(), lambda packed: packed)(stream)
    except _DAMAGE as error:
        stream.close()
        refuse(f"cannot be unpacked ({error})", error)
    most = sys.maxsize if unfolds is None else room(unfolds)
    return io.BufferedReader(_Bounded(unpacked, stream, most=most, longest=longest, refuse=refuse), _BUFFER)


def line_not_utf8(stream: IO[bytes]) -> int:
    """The number of the first line that is not UTF-8; 0 where there is none."""
    for number, line in enumerate(stream, 1):
        try:
            line.decode()
        except UnicodeDecodeError:
            return number
    return 0


def _refusal(path: str | Path, field: str, remedy: str) -> Callable[..., NoReturn]:
    def refuse(message: str, error: Exception | None = None) -> NoReturn:
        raise FileFormatError(message, field=field, value=path, remedy=remedy) from error

    return refuse


def _only_member(stream: IO[bytes]) -> IO[bytes]:
    archive = zipfile.ZipFile(stream)
    if len(archive.namelist()) != 1:
        raise ValueError(f"{len(archive.namelist())} files in it")
    return archive.open(archive.namelist()[0])


_UNPACKERS: dict[str, Callable[[Any], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zip": _only_member,
}


class _Bounded(io.RawIOBase):
    """The bytes of `unpacked`, at most `most` of them and `longest` in a line; `stream` is closed with it."""

    def __init__(
        self, unpacked: IO[bytes], stream: IO[bytes], *, most: int, longest: int, refuse: Callable[..., NoReturn]
    ) -> None:
        self._unpacked, self._stream, self._refuse = unpacked, stream, refuse
        self._most, self._longest = most, longest
        self._read = self._line = 0
        self._lone: bool | None = None  # whether lines end with CR alone; None before the first end

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._unpacked.read(len(buffer))
        except _DAMAGE as error:
            self._refuse(f"is damaged ({error})", error)
        if self._read == 0 and data.startswith((b"\xff\xfe", b"\xfe\xff")):
            self._refuse("is UTF-16 text, not UTF-8: save it as CSV UTF-8")
        if self._lone is None:
            end = data.find(b"\r", 0, -1)
            if b"\n" in data or end >= 0:
                self._lone = b"\n" not in data
        if self._lone:
            data = data.replace(b"\r", b"\n")
        self._read += len(data)
        if self._read > self._most:
            self._refuse(f"is too large: more than {self._most} bytes do not fit in memory")
        first = data.find(b"\n")
        if self._line + (len(data) if first < 0 else first) > self._longest:
            self._refuse(f"has a line of more than {self._longest} bytes")
        self._line = self._line + len(data) if first < 0 else len(data) - 1 - data.rfind(b"\n")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._unpacked.close()
        self._stream.close()
        super().close()

"""Output files, written whole or not at all: a temporary file next to the target, flushed, then renamed over it."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from mechdesign.errors import FileFormatError, InputError


def check_target(path: str | Path, *, overwrite: bool = False) -> Path:
    """The path to write to; refuses a target that cannot be written or replaced, before any work."""
    target = Path(path)
    shown = str(target).encode(errors="backslashreplace").decode()
    try:
        str(target).encode()
        exists = _exists_as_file(target)
        _temporary_file(target).unlink()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError("no such folder", field="output", value=target.parent, remedy="create it first") from error
    except (OSError, ValueError) as error:  # a name that is too long, not UTF-8, or holds a zero byte
        reason = error.strerror if isinstance(error, OSError) else error
        remedy = "use another name or folder"
        raise InputError(f"cannot be written to ({reason})", field="output", value=shown, remedy=remedy) from error
    if exists and not overwrite:
        raise InputError("exists already", field="output", value=target, remedy="pass overwrite=True, or another name")
    return target


def _temporary_file(target: Path) -> Path:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    os.close(handle)
    return Path(name)


def _exists_as_file(target: Path) -> bool:
    """True if the target is an existing regular file; refuses folders, links and devices."""
    try:
        kind = target.lstat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(kind):
        raise InputError("is a folder", field="output", value=target, remedy="name a file in it")
    if stat.S_ISLNK(kind):
        raise InputError("is a link", field="output", value=target, remedy="name the file that it leads to")
    if not stat.S_ISREG(kind):
        raise InputError("is not a regular file", field="output", value=target, remedy="use another name")
    return True


def write_atomically(target: Path, write: Callable[[Path], object], *, mode: int | None = None) -> None:
    """Call `write(temporary path)` and rename the result to `target`; mode: its permissions, from the start."""
    temporary = None
    try:
        _exists_as_file(target)
        temporary = _temporary_file(target)
        write(temporary)
        # The content reaches the disk before the name does: a crash leaves the old file or the new one.
        with temporary.open("rb+") as stream:
            os.fsync(stream.fileno())
        # The umask can only be read by setting it. mkstemp made the file private.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask if mode is None else mode)
        # Again: the target may have become a folder or a link meanwhile.
        _exists_as_file(target)
        temporary.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise write_error(target, error) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def write_error(target: Path, error: OSError) -> FileFormatError:
    """The error for a write that the operating system refused."""
    return FileFormatError(f"could not be written ({error.strerror or error})", field="output", value=target)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return
    with contextlib.suppress(PermissionError):  # a folder that may be written to and not read
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

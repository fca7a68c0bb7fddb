"""Storage: a mechanism, or another sealed Dataset, as a NetCDF-4 file that is either whole or not there.

Written to a temporary file beside the target, flushed to the disk, then renamed over it. Only regular files are ever
replaced: not a link, which leads to a file of another name, nor a FIFO, device or folder. Read by rules (`netcdf`),
without masking or scaling.

Behind the last byte that NetCDF knows of, where readers do not look, stands a mark with the SHA-256 of the bytes before
it. It is checked before the file is parsed: one wrong bit can send the HDF5 library into an endless loop.

Three SHA-256, then: the seal (attribute sha256), of the contents, whatever bytes they are written in; that mark; and
the checksum of the file (`file_checksum`), of every byte of it, mark included, which is what `sha256sum` prints.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import xarray as xr

from mechdesign.base.arguments import asked
from mechdesign.base.memory import within_memory
from mechdesign.base.opening import open_regular
from mechdesign.errors import FileFormatError, InputError, MechdesignError, VerificationError
from mechdesign.mechanism.schema import MECHANISMS, Schema, check
from mechdesign.mechanism.storage.netcdf import read_netcdf
from mechdesign.mechanism.table.dataset import checksum

_MARK = b"mechdesign sha256"
_KNOWN = "mechdesign file"  # in the encoding of a Dataset: its seal, and the checksum of its file
_BLOCK = 1 << 20  # bytes that are hashed at a time
_LONGEST = 255  # bytes of a file name, where the file system does not say
_TEMPORARY = len(".12345678.part") + 1  # bytes that the name of the temporary file adds


def check_target(path: str | Path, *, overwrite: bool = False) -> Path:
    """The path to write to, if its folder can be written to and nothing stands there yet, or, with `overwrite`, a
    regular file.

    Raises: InputError, before any work is done.
    """
    target = Path(path)
    _check_name(target)
    kind = _kind(target.parent, follow=True)
    if kind is None or not stat.S_ISDIR(kind):
        raise InputError("no such folder", field="output", value=target.parent, remedy="create it first")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise InputError("cannot be written to", field="output", value=target.parent, remedy="name another folder")
    longest = (os.pathconf(target.parent, "PC_NAME_MAX") if hasattr(os, "pathconf") else _LONGEST) - _TEMPORARY
    if len(os.fsencode(target.name)) > longest:
        remedy = f"use a name of at most {longest} bytes"
        raise InputError("is too long a file name", field="output", value=target, remedy=remedy)
    if _check_replaced(target) and not overwrite:
        raise InputError("exists already", field="output", value=target, remedy="pass --overwrite, or another name")
    return target


def _check_name(target: Path) -> None:
    try:
        str(target).encode()
    except UnicodeEncodeError as error:
        shown = str(target).encode(errors="backslashreplace").decode()
        raise InputError("is not UTF-8", field="output", value=shown, remedy="use a name in UTF-8") from error
    if "\0" in str(target):
        raise InputError("holds a zero byte", field="output", value=ascii(str(target)), remedy="use another name")


def _kind(path: Path, *, follow: bool) -> int | None:
    """The mode of what stands at a path, or of what its links lead to; None where there is nothing."""
    try:
        return path.stat(follow_symlinks=follow).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(
            f"cannot be used ({error.strerror})", field="output", value=path, remedy="use another name or folder"
        ) from error


def _check_replaced(target: Path) -> bool:
    """Whether a file stands at the target. Raises: InputError for what is never replaced: all but regular files."""
    kind = _kind(target, follow=False)
    if kind is None:
        return False
    if stat.S_ISDIR(kind):
        raise InputError("is a folder", field="output", value=target, remedy="name a file in it")
    if stat.S_ISLNK(kind):
        raise InputError("is a link", field="output", value=target, remedy="name the file that it leads to")
    if not stat.S_ISREG(kind):
        raise InputError("is no regular file", field="output", value=target, remedy="use another name")
    return True


@asked
def save(mechanism: xr.Dataset, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a sealed Dataset to `path` (NetCDF-4) atomically: on failure the old file stands and no new one does.

    Raises: InputError for an existing file without `overwrite` or a missing folder, and for a Dataset that was altered
    since it was made, which `load` would refuse; FileFormatError if the disk refuses.
    """
    target = check_target(path, overwrite=overwrite)
    _check_seal(mechanism)
    write_dataset(mechanism, target)
    return target


def write_dataset(mechanism: xr.Dataset, target: Path) -> None:
    """Write any Dataset as `save` does, sealed or not."""
    write_atomically(target, lambda temporary: _write(mechanism, temporary))


def _check_seal(mechanism: xr.Dataset) -> None:
    """Raises: InputError for a Dataset that is not as it was sealed."""
    stated = mechanism.attrs.get("sha256")
    if stated != checksum(mechanism):
        raise InputError(
            "is not as it was made" if stated else "was not made by this package",
            field="mechanism",
            value="a Dataset whose checksum does not match its content" if stated else "a Dataset without a checksum",
            remedy="save what md.solve or md.load returned, and change a copy of it: dataset.copy(deep=True)",
        )


def file_checksum(held: xr.Dataset) -> str:
    """What `sha256sum` prints of the file of a sealed Dataset: of the one that it was read from or saved as, else of
    the one that `save` would write here. Cost: that of writing it, where it was neither read nor saved.
    """
    known = known_checksum(held)
    if known is not None:
        return known
    with tempfile.TemporaryDirectory() as folder:
        _write(held, Path(folder) / "file.nc")
    return str(held.encoding[_KNOWN][1])


def known_checksum(held: xr.Dataset) -> str | None:
    """The checksum of the file that a sealed Dataset was read from or saved as; None where it was neither."""
    sealed, found = held.encoding.get(_KNOWN, ("", ""))
    return str(found) if sealed and sealed == held.attrs.get("sha256") else None


def path_checksum(path: str | Path) -> str:
    """What `sha256sum` prints of a file."""
    with open_regular(path, field="file", remedy="give the path of a file") as stream:
        return _hashed(stream, stream.seek(0, os.SEEK_END)).hexdigest()


def _write(held: xr.Dataset, path: Path) -> None:
    """Write a Dataset with its mark, and remember the checksum of the file with the seal that it belongs to."""
    encoding = {
        str(name): {"_FillValue": None, "fletcher32": True, "zlib": True, "shuffle": True, "complevel": 1}
        for name in held.variables
    }
    held.to_netcdf(path, engine="h5netcdf", format="NETCDF4", encoding=encoding)
    with path.open("r+b") as stream:
        mark = _MARK + _hashed(stream, stream.seek(0, os.SEEK_END)).digest()
        stream.write(mark)
        _remember(held, _hashed(stream, stream.tell()).hexdigest())


def _remember(held: xr.Dataset, checksum_of_file: str) -> None:
    """Only with its seal: a Dataset that is made of this one keeps its encoding, and has another seal."""
    held.encoding[_KNOWN] = (held.attrs.get("sha256"), checksum_of_file)


def write_atomically(target: Path, write: Callable[[Path], None], *, mode: int | None = None) -> None:
    """Call `write(temporary path)` and rename the result to `target`; nothing stays behind on failure.

    mode: permissions of the file, never more than these while it is written; by default those of any other file.
    Raises: InputError for a target that is no regular file, FileFormatError where the operating system refuses.
    """
    temporary = None
    _check_replaced(target)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
        os.close(handle)
        temporary = Path(name)
        write(temporary)
        with temporary.open("rb+") as stream:
            os.fsync(stream.fileno())
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask if mode is None else mode)
        _check_replaced(target)
        temporary.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise unwritten(target, error) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def unwritten(target: Path, error: OSError) -> FileFormatError:
    """The refusal of an output that the operating system did not take."""
    return FileFormatError(
        f"could not be written ({error.strerror or error})",
        field="output",
        value=target,
        remedy="check space and permissions",
    )


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return
    with contextlib.suppress(PermissionError):  # a folder that may be written to and not read
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@asked
def load(path: str | Path) -> xr.Dataset:
    """Read a mechanism, a table or a factored one, and check its schema and checksum; `verify` also proves its claim.

    Raises: InputError if there is no such file; VerificationError if it is damaged, of another schema or altered.
    """
    return load_sealed(path, *MECHANISMS.values(), what="a mechanism")


def load_sealed(path: str | Path, *schemas: Schema, what: str) -> xr.Dataset:
    """Read a sealed Dataset, check its schema, one of these, and its checksum; `what` names it in the errors.

    The file is opened once; what is hashed and looked over is what is read.
    """
    with open_regular(path, field="file", remedy=f"give the path of {what}") as stream:
        try:
            with within_memory("file", path):
                _check_mark(stream)
                mechanism = read_netcdf(stream)
                _remember(mechanism, _hashed(stream, stream.seek(0, os.SEEK_END)).hexdigest())
        except MechdesignError:
            raise
        except Exception as error:
            raise VerificationError(
                f"the file is damaged ({type(error).__name__})",
                field="file",
                value=path,
                remedy="restore it from a good copy",
            ) from error
    check(mechanism, *schemas, what=what)
    if mechanism.attrs["sha256"] != checksum(mechanism):
        raise VerificationError(
            "the checksum does not match the content",
            field="sha256",
            value=mechanism.attrs.get("sha256"),
            remedy="restore the file from a good copy",
        )
    return mechanism


def _hashed(stream: BinaryIO, size: int) -> hashlib._Hash:
    """The SHA-256 of the first `size` bytes of a file, read in blocks."""
    digest, left = hashlib.sha256(), size
    stream.seek(0)
    while left > 0:
        block = stream.read(min(left, _BLOCK))
        if not block:
            raise ValueError("the file became shorter")
        digest.update(block)
        left -= len(block)
    return digest


def _check_mark(stream: BinaryIO) -> None:
    """Raise ValueError where the mark at the end of a file is not that of its content; a file without one passes."""
    body = stream.seek(0, os.SEEK_END) - len(_MARK) - hashlib.sha256().digest_size
    if body >= 0:
        stream.seek(body)
        ending = stream.read()
        if ending.startswith(_MARK) and ending[len(_MARK) :] != _hashed(stream, body).digest():
            raise ValueError("the content is not the one that was written")

"""Storage: a mechanism, or another sealed Dataset, as a NetCDF-4 file that is either whole or not there.

Written to a temporary file beside the target, flushed to the disk, then renamed over it. Read without masking or
scaling, so that a fill value or scale factor cannot turn integers into other numbers.

Behind the last byte that NetCDF knows of, where readers do not look, stands a mark with the SHA-256 of the file. It is
checked before the file is parsed: one wrong bit can send the HDF5 library into an endless loop.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import xarray as xr

from mechdesign.errors import FileFormatError, InputError, VerificationError
from mechdesign.mechanism.schema import FACTORS, MECHANISM, Schema, check
from mechdesign.mechanism.table import checksum

_MARK = b"mechdesign sha256"


def check_target(path: str | Path, *, overwrite: bool = False) -> Path:
    """The path to write to, if its folder exists and nothing stands there yet (or `overwrite`).

    Raises: InputError, before any work is done.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise InputError("no such folder", field="output", value=target.parent, remedy="create it first")
    if target.is_dir():
        raise InputError("is a folder", field="output", value=target, remedy="name a file in it")
    if target.exists() and not overwrite:
        raise InputError("exists already", field="output", value=target, remedy="pass --overwrite, or another name")
    return target


def save(mechanism: xr.Dataset, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a sealed Dataset to `path` (NetCDF-4) atomically: on failure the old file stands and no new one does.

    Raises: InputError for an existing file without `overwrite` or a missing folder; FileFormatError if the disk
    refuses.
    """
    target = check_target(path, overwrite=overwrite)
    encoding = {
        str(name): {"_FillValue": None, "fletcher32": True, "zlib": True, "complevel": 1}
        for name in mechanism.variables
    }

    def write(temporary: Path) -> None:
        mechanism.to_netcdf(temporary, engine="h5netcdf", format="NETCDF4", encoding=encoding)
        digest = hashlib.sha256(temporary.read_bytes()).digest()
        with temporary.open("ab") as stream:
            stream.write(_MARK + digest)

    write_atomically(target, write)
    return target


def write_atomically(target: Path, write: Callable[[Path], None], *, mode: int | None = None) -> None:
    """Call `write(temporary path)` and rename the result to `target`; nothing stays behind on failure.

    mode: permissions of the file, never more than these while it is written; by default those of any other file.
    Raises: FileFormatError where the operating system refuses.
    """
    temporary = None
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
        temporary.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise FileFormatError(
            f"could not be written ({error.strerror or error})",
            field="output",
            value=target,
            remedy="check space and permissions",
        ) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def load(path: str | Path) -> xr.Dataset:
    """Read a mechanism, a table or a factored one, and check its schema and checksum; `verify` also proves its claim.

    Raises: InputError if there is no such file; VerificationError if it is damaged, of another schema or altered.
    """
    return load_sealed(path, MECHANISM, FACTORS, what="a mechanism")


def load_sealed(path: str | Path, *schemas: Schema, what: str) -> xr.Dataset:
    """Read a sealed Dataset, check its schema, one of these, and its checksum; `what` names it in the errors."""
    source = Path(path)
    if not source.is_file():
        raise InputError("no such file", field="file", value=source, remedy=f"give the path of {what}")
    try:
        _check_mark(source.read_bytes())
        with xr.open_dataset(source, engine="h5netcdf", mask_and_scale=False, decode_times=False) as opened:
            mechanism = opened.load()
    except Exception as error:
        raise VerificationError(
            f"the file is damaged ({type(error).__name__})",
            field="file",
            value=source,
            remedy="restore it from a good copy",
        ) from error
    check(mechanism, *schemas, what=what)
    stored = mechanism.attrs["sha256"]
    if stored != checksum(mechanism):
        raise VerificationError(
            "the checksum does not match the content",
            field="sha256",
            value=stored,
            remedy="restore the file from a good copy",
        )
    return mechanism


def _check_mark(content: bytes) -> None:
    """Raise ValueError where the mark at the end of a file is not that of its content; a file without one passes."""
    size = hashlib.sha256().digest_size
    body, mark, digest = content[: -size - len(_MARK)], content[-size - len(_MARK) : -size], content[-size:]
    if mark == _MARK and hashlib.sha256(body).digest() != digest:
        raise ValueError("the content is not the one that was written")

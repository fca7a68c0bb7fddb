"""Save and load a mechanism, or another Dataset, as one NetCDF-4 file."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from mechdesign.base.atomic_write import check_target, write_atomically
from mechdesign.base.files import open_regular
from mechdesign.base.memory import within_memory
from mechdesign.base.validation import validate_call
from mechdesign.errors import InputError, MechdesignError, VerificationError
from mechdesign.mechanism.content import FileContent
from mechdesign.mechanism.hashing import CONTENT_DIGEST, FILE_DIGEST, content_digest, seal
from mechdesign.mechanism.hdf5 import read_netcdf, write_netcdf
from mechdesign.mechanism.schema import MECHANISMS, TABLE, Schema, validate, with_derived, without_derived

if TYPE_CHECKING:
    import xarray as xr

_MARK = b"mechdesign sha256"
_BLOCK = 1 << 20  # bytes that are hashed at a time


@validate_call
def save(mechanism: xr.Dataset, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a Dataset of this package atomically: a failure leaves the old file unchanged.

    Parameters
    ----------
    mechanism : xarray.Dataset
        A mechanism, sweep, diagnosis, plan or estimate.
    path, overwrite : str or Path, bool
        The NetCDF-4 file, and permission to replace one.

    Returns
    -------
    Path of the file

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     md.save(md.baselines.constant(md.load_problem("discrete", secrets=3)), folder + "/constant.nc").name
    'constant.nc'
    """
    target = check_target(path, overwrite=overwrite)
    if not str(mechanism.attrs.get("schema")).startswith("mechdesign/"):
        raise InputError("was not made by this package", field="mechanism", remedy="save the result of md.solve")
    if mechanism.attrs["schema"] in MECHANISMS:
        validate(mechanism, *MECHANISMS.values())
    write_dataset(mechanism, target)
    return target


# After the last byte of NetCDF follows the SHA-256 of the bytes before. It detects damage, not forgery.
def write_dataset(mechanism: xr.Dataset, target: Path) -> None:
    """Write any Dataset as `save` does."""
    write_atomically(target, lambda temporary: _write(mechanism, temporary))


def file_sha256(path: str | Path) -> str:
    """The SHA-256 of the bytes of a file, as `sha256sum` prints it."""
    with open_regular(path, field="file", remedy="give the path of a file") as stream:
        return _hash_start(stream, stream.seek(0, os.SEEK_END)).hexdigest()


def _write(dataset: xr.Dataset, path: Path) -> None:
    unnamed = without_derived(dataset).copy()
    unnamed.attrs.pop(CONTENT_DIGEST, None)
    write_netcdf(unnamed, path)
    append_mark(path)
    dataset.encoding[FILE_DIGEST] = (content_digest(dataset), file_sha256(path))


def append_mark(path: Path) -> None:
    """Write the mark of a file behind its last byte."""
    with path.open("r+b") as stream:
        stream.write(_MARK + _hash_start(stream, stream.seek(0, os.SEEK_END)).digest())


@validate_call
def load(path: str | Path) -> xr.Dataset:
    """Read a mechanism, a table or a factored one, and check its schema; `verify` also proves its claim.

    Parameters
    ----------
    path : str or Path
        A NetCDF file that `md.save` wrote.

    Returns
    -------
    xarray.Dataset

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = md.save(md.baselines.constant(md.load_problem("discrete", secrets=3)), folder + "/constant.nc")
    ...     dict(md.load(path).sizes)["secret"]
    3
    """
    return load_sealed(path, *MECHANISMS.values(), noun="a mechanism")


def load_content(path: str | Path) -> xr.Dataset:
    """The mechanism of a file for one use in this process: a table is a `FileContent`, which needs no xarray."""
    content, digest = _read_sealed(path, *MECHANISMS.values(), noun="a mechanism")
    read = cast("xr.Dataset", content) if content.attrs["schema"] == TABLE else content.dataset
    return _check_schema(read, digest, *MECHANISMS.values(), noun="a mechanism")


def load_sealed(path: str | Path, *schemas: Schema, noun: str) -> xr.Dataset:
    """Read a Dataset of one of these schemas."""
    content, digest = _read_sealed(path, *schemas, noun=noun)
    return _check_schema(content.dataset, digest, *schemas, noun=noun)


def _read_sealed(path: str | Path, *schemas: Schema, noun: str) -> tuple[FileContent, str]:
    """The content of a file and its SHA-256; it is opened once, so that the bytes hashed are the bytes read."""
    with open_regular(path, field="file", remedy=f"give the path of {noun}") as stream:
        try:
            with within_memory("file", path):
                # Before any parsing: one wrong bit can send the HDF5 library into an endless loop.
                _check_mark(stream)
                read = read_netcdf(stream, *schemas, noun=noun)
                return read, _hash_start(stream, stream.seek(0, os.SEEK_END)).hexdigest()
        except MechdesignError:
            raise
        except Exception as error:
            message, remedy = f"the file is damaged ({type(error).__name__})", "write mechanisms with md.save alone"
            raise VerificationError(message, field="file", value=path, remedy=remedy) from error


def _check_schema(read: xr.Dataset, digest: str, *schemas: Schema, noun: str) -> xr.Dataset:
    mechanism = seal(with_derived(read))
    validate(mechanism, *schemas, noun=noun)
    mechanism.encoding[FILE_DIGEST] = (mechanism.attrs[CONTENT_DIGEST], digest)
    return mechanism


def _check_mark(stream: BinaryIO) -> None:
    """Raise a ValueError if a file does not end with the mark of its content."""
    body = stream.seek(0, os.SEEK_END) - len(_MARK) - hashlib.sha256().digest_size
    mark = _MARK + _hash_start(stream, body).digest()
    if body < 0 or stream.read() != mark:
        raise ValueError("checksum mismatch")


def _hash_start(stream: BinaryIO, size: int) -> hashlib._Hash:
    """The SHA-256 of the first `size` bytes of a file; leaves the stream behind them."""
    digest, remaining = hashlib.sha256(), size
    stream.seek(0)
    while remaining > 0:
        block = stream.read(min(remaining, _BLOCK))
        if not block:
            break
        digest.update(block)
        remaining -= len(block)
    return digest

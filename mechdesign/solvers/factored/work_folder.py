"""A folder that keeps the work of one run, so that a run that ends early can go on.

| file | content |
|---|---|
| run.json | which run the folder belongs to, and whether the folder was made for it |
| lock | process and machine of the run under way |
| NAME.block | arrays under a name: SHA-256 of run, name and content, then the names and the arrays in turn (npy) |
| mechanism.nc | the finished mechanism |

Every file is written whole or not at all. A block that is missing, damaged or of another run or name reads as None, so
it is computed again.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from mechdesign.errors import InputError, VerificationError
from mechdesign.mechanism.budget.lock import locked
from mechdesign.mechanism.storage.files import load, save, write_atomically

SCHEMA = "mechdesign/run/1"
MECHANISM = "mechanism.nc"
_MANIFEST, _LOCK = "run.json", "lock"
_DIGEST = hashlib.sha256().digest_size


@dataclass(frozen=True, kw_only=True, eq=False)
class Folder:
    """What a run keeps. path None keeps nothing; run is its key (`run_key`)."""

    path: Path | None = None
    run: str = ""

    def read(self, name: str) -> dict[str, NDArray[Any]] | None:
        """Arrays kept under a name; None where there are none or the file is damaged."""
        if self.path is None:
            return None
        try:
            content = self._block(name).read_bytes()
        except OSError:
            return None
        if content[:_DIGEST] != self._digest(name, content[_DIGEST:]):
            return None
        stream = io.BytesIO(content[_DIGEST:])
        names = np.load(stream, allow_pickle=False).tolist()
        return {name: np.load(stream, allow_pickle=False) for name in names}

    def write(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Keep arrays under a name. Raises: FileFormatError where the disk refuses."""
        if self.path is None:
            return
        stream = io.BytesIO()
        for array in (np.array([*arrays]), *arrays.values()):
            np.save(stream, array, allow_pickle=False)
        content = stream.getvalue()
        digest = self._digest(name, content)
        write_atomically(self._block(name), lambda temporary: _put(temporary, digest + content))

    def retain(self, *names: str) -> None:
        """Drop all arrays but those of these names and of the blocks of these passes."""
        kept = tuple(f"{name} " for name in names)
        for block in () if self.path is None else self.path.glob("*.block"):
            if not f"{block.stem} ".startswith(kept):
                block.unlink()

    def keep_mechanism(self, mechanism: xr.Dataset) -> None:
        """Keep a finished mechanism."""
        if self.path is not None:
            save(mechanism, self.path / MECHANISM, overwrite=True)

    def mechanism(self) -> xr.Dataset | None:
        """The finished mechanism; None where there is none, or a damaged one."""
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


def run_key(description: Mapping[str, Any], *arrays: NDArray[Any]) -> str:
    """What tells runs apart: SHA-256 of a description and of arrays."""
    digest = hashlib.sha256(json.dumps(description, sort_keys=True, default=str).encode())
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


@contextlib.contextmanager
def work_folder(path: str | Path | None, run: str, *, of: str) -> Iterator[Folder]:
    """The folder of a run, made if it is not there, for this process alone; `of` says in words which run it is.

    An empty folder that was made here is removed again.
    Raises: InputError, where its parent is missing, or it is in use, holds another run, or holds other files.
    """
    if path is None:
        yield Folder()
        return
    where = Path(path)
    made = _make(where)
    try:
        with locked(where / _LOCK, field="work"):
            made = _claim(where, run, of=of, made=made)
            try:
                yield Folder(path=where, run=run)
            finally:
                if {file.name for file in where.iterdir()} <= {_LOCK, _MANIFEST}:
                    (where / _MANIFEST).unlink(missing_ok=True)
    finally:
        _remove_empty(where, made)


def discard_finished(path: str | Path) -> None:
    """Empty the folder of a finished run, whose mechanism is saved elsewhere; remove it if it was made for the run.

    The folder of a run that can go on is left as it is, and so are other files.
    Raises: InputError where a run is using the folder.
    """
    where = Path(path)
    if not (where / _MANIFEST).is_file() or any(where.glob("*.block")):
        return
    with locked(where / _LOCK, field="work"):
        made = bool(_manifest(where)["made"])
        (where / MECHANISM).unlink(missing_ok=True)
        (where / _MANIFEST).unlink()
    _remove_empty(where, made)


def _make(where: Path) -> bool:
    """Whether the folder had to be made."""
    try:
        where.mkdir()
    except FileExistsError as error:
        if not where.is_dir():
            raise InputError("is no folder", field="work", value=where, remedy="name a folder") from error
        return False
    except OSError as error:
        raise InputError(
            f"could not be made ({error.strerror})", field="work", value=where, remedy="make its parent folder first"
        ) from error
    return True


def _claim(where: Path, run: str, *, of: str, made: bool) -> bool:
    """Mark a folder as that of a run, or check that it is; whether it was made for the run."""
    if not (where / _MANIFEST).exists():
        others = [name for file in where.iterdir() if not (name := file.name).startswith((_LOCK, f".{_MANIFEST}."))]
        if others:
            raise InputError(
                f"holds other files, such as {min(others)}", field="work", value=where, remedy="name an empty folder"
            )
        manifest = json.dumps({"schema": SCHEMA, "run": run, "of": of, "made": made})
        write_atomically(where / _MANIFEST, lambda temporary: _put(temporary, manifest.encode()))
    found = _manifest(where)
    if found["run"] != run:
        raise InputError(
            f"holds the work of another run: {found['of']}",
            field="work",
            value=where,
            remedy="name another folder, or delete this one",
        )
    for part in where.glob(".*.part"):
        part.unlink()
    return bool(found["made"])


def _manifest(where: Path) -> dict[str, Any]:
    try:
        found = json.loads((where / _MANIFEST).read_text(encoding="utf-8"))
        if found["schema"] == SCHEMA and {"run", "of", "made"} <= found.keys():
            return found
        raise ValueError(found)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"{_MANIFEST} in it is damaged", field="work", value=where, remedy="delete this folder"
        ) from error


def _remove_empty(where: Path, made: bool) -> None:
    if made:
        with contextlib.suppress(OSError):
            where.rmdir()


def _put(path: Path, content: bytes) -> None:
    path.write_bytes(content)

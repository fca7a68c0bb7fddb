"""Kinds of mechanisms, and the kind of a file or object: `sample` needs no more than this of verification."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mechdesign.base.registry import Registry
from mechdesign.errors import InputError
from mechdesign.mechanism.content import is_dataset
from mechdesign.mechanism.storage import load, load_content

if TYPE_CHECKING:
    from mechdesign.evaluation.protection import Protection
    from mechdesign.verification.verify import Verification

_HDF5 = b"\x89HDF"  # first bytes of a NetCDF file


@dataclass(frozen=True, kw_only=True)
class FileKind:
    """How a kind of mechanism is verified and read; Datasets have a `MechanismFile` as source."""

    # Other kinds have a class `source_type`. `load` returns the source of a file, `open` the object in memory if it
    # differs, and `sampler(source, on_progress=)` draws reports.

    check: Callable[..., Verification]
    protection: Callable[[Any], Protection | None] = lambda source: None
    source_type: type | None = None
    recognises: Callable[[str | Path], bool] = lambda path: False
    load: Callable[[str | Path], Any] = Path
    open: Callable[[str | Path], Any] | None = None
    sampler: Callable[..., Any] | None = None


def _check_table(source: Any, **options: Any) -> Verification:
    from mechdesign.verification.verify import check_table

    return check_table(source, **options)


def _protection_of_table(source: Any) -> Protection | None:
    from mechdesign.evaluation.protection import protection

    return protection(source)


# Datasets by the beginning of their schema, other kinds by name.
FILE_KINDS: Registry[FileKind] = Registry(
    "kinds", {"mechdesign/mechanism": FileKind(check=_check_table, protection=_protection_of_table)}
)


def file_kind(source: Any) -> FileKind | None:
    """The kind of an object or of a file; None for Datasets and NetCDF files."""
    # The schema of a NetCDF file names its kind, once it is open.
    if is_dataset(source):
        return None
    kinds = FILE_KINDS.values()
    if not isinstance(source, (str, Path)):
        typed = (kind for kind in kinds if kind.source_type is not None)
        return next((kind for kind in typed if isinstance(source, kind.source_type or ())), None)
    if Path(source).is_file():
        with Path(source).open("rb") as stream:
            if stream.read(len(_HDF5)) == _HDF5:
                return None
    return next((kind for kind in kinds if kind.recognises(source)), None)


def open_sampler(source: Any, *, on_progress: Callable[[Any], None] | None = None) -> Any:
    """The sampler (`DrawSource`) of a mechanism of any kind, which it verifies; on_progress only for kinds with one."""
    kind = file_kind(source)
    if kind is not None:
        if kind.sampler is None:
            raise InputError("is not a mechanism that draws reports", field="mechanism", value=type(source).__name__)
        return kind.sampler(source, on_progress=on_progress)
    from mechdesign.mechanism.sampler import Sampler

    return Sampler(mechanism=source)


def load_any(path: str | Path, *, cold: bool = False) -> Any:
    """Load a mechanism of any kind; cold: a table without xarray, as `FileContent`."""
    kind = file_kind(path)
    if kind is None:
        return load_content(path) if cold else load(path)
    return (kind.open or kind.load)(path)

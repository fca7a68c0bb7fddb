"""Hashes of Datasets: the SHA-256 of the contents names a mechanism, that of the bytes names a file."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from mechdesign.mechanism.grid_mapping import GRID_MAPPING
from mechdesign.problem.lattice import Edges

if TYPE_CHECKING:
    import xarray as xr

FILE_DIGEST = "mechdesign file"  # in the encoding of a Dataset: its content digest, and the SHA-256 of its file
CONTENT_DIGEST = "sha256"  # the attribute of a Dataset in memory


def seal(mechanism: xr.Dataset) -> xr.Dataset:
    """The Dataset with the attribute `sha256` of its contents; files omit it, and `load` computes it again."""
    return mechanism.assign_attrs({CONTENT_DIGEST: content_digest(mechanism)})


def content_digest(mechanism: xr.Dataset) -> str:
    """SHA-256 over every variable and attribute by name; equal contents in different files have the same."""
    digest = hashlib.sha256()

    def put(*parts: bytes | str) -> None:
        for part in parts:
            content = part.encode() if isinstance(part, str) else part
            # With its length, so that no two lists of parts hash alike.
            digest.update(len(content).to_bytes(8, "little") + content)

    for name in sorted(map(str, mechanism.variables)):
        # Labels of classes and the coordinate system repeat the attribute of the domain.
        if name == GRID_MAPPING or (name in mechanism.indexes and mechanism.variables[name].dtype.kind in "UOT"):
            continue
        variable = mechanism.variables[name]
        values = np.ascontiguousarray(variable.values)
        values = values.astype(values.dtype.newbyteorder("<"))
        put(name, str([variable.dims, values.dtype.str, values.shape, name in mechanism.coords]), values.tobytes())
        put(*(f"{key} {value!r}" for key, value in sorted(variable.attrs.items())))
    put(*(f"{key} {_as_python(value)!r}" for key, value in sorted(mechanism.attrs.items()) if key != CONTENT_DIGEST))
    return digest.hexdigest()


def file_digest(dataset: xr.Dataset) -> str | None:
    """The SHA-256 of the file of a Dataset; None if it was never saved or loaded, or has changed since."""
    name, digest = dataset.encoding.get(FILE_DIGEST, ("", None))
    return digest if name == content_digest(dataset) else None


def _as_python(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


def fingerprint(edges: Edges) -> str:
    """Twelve hexadecimal digits of the SHA-256 of an edge list."""
    return hashlib.sha256(edge_bytes(edges)).hexdigest()[:12]


def edge_bytes(edges: Edges) -> bytes:
    """An edge list as the names of claims hash it: tails, heads and lengths, little-endian."""
    parts = ((edges.tail, "<i8"), (edges.head, "<i8"), (edges.length, "<f8"))
    return b"".join(np.ascontiguousarray(part, dtype).tobytes() for part, dtype in parts)

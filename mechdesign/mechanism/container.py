"""Containers: the format of files of device maps, clients, session bundles and devices.

    10 bytes "mechdesign" | version 1, uint16 | bytes of the header, uint32 | header, JSON | body | SHA-256 of all

Numbers are little-endian; the SHA-256 covers every byte before it. The header is an object: kind first, then arrays,
[name, type, shape, differences] of each array in order, then fields of the kind. Types are u1, u2, u4, u8, i2 and f8.

The body has the arrays in this order, compressed by zlib. Each is stored in planes: the lowest byte of every number,
then the next byte, and so on. If differences is 1, the planes hold the differences along every axis, modulo the width
of the numbers; cumulative sums along every axis restore the array. In a plain container, for readers without zlib and
JSON, the body is not compressed, and numbers are not split into planes.

A container is untrusted. `unpack_container` reads only arrays that the kind declares for such a header.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import zlib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.base.arrays import AnyArray
from mechdesign.base.files import open_regular
from mechdesign.base.json_fields import read_json
from mechdesign.errors import MechdesignError
from mechdesign.mechanism.schema import file_error

Layout = list[list[Any]]  # [name, type, shape, differences] of every array

MOST_HEADER = 1 << 20
_MAGIC, _VERSION = b"mechdesign", 1
_BEFORE = len(_MAGIC) + 6  # bytes before the header
_DIGEST = 32
_KIND = re.compile(_MAGIC + rb'\x01\0.{4}\{"kind": "([a-z]+)"', re.DOTALL)


def pack_container(
    kind: str,
    header: Mapping[str, Any],
    arrays: Mapping[str, AnyArray],
    *,
    differences: Collection[str] = (),
    plain: bool = False,
) -> bytes:
    """The bytes of a container; differences: names of integer arrays that change slowly, stored as differences."""
    layout: Layout = [
        [name, f"{a.dtype.kind}{a.itemsize}", [*a.shape], int(name in differences)] for name, a in arrays.items()
    ]
    text = json.dumps({"kind": kind, "arrays": layout, **header}, allow_nan=False).encode()
    parts = [values.astype(values.dtype.newbyteorder("<")) for values in arrays.values()]
    if plain:
        body = b"".join(values.tobytes() for values in parts)
    else:
        body = zlib.compress(b"".join(_planes(a, entry[3]) for a, entry in zip(parts, layout, strict=True)), 9)
    content = _MAGIC + _VERSION.to_bytes(2, "little") + len(text).to_bytes(4, "little") + text + body
    return content + hashlib.sha256(content).digest()


def unpack_container(
    content: bytes, kind: str, layout_of: Callable[[dict[str, Any]], Layout]
) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Header and arrays of a container of this kind; layout_of(header) checks the header and returns the layout."""
    if not content.startswith(_MAGIC) or len(content) < _BEFORE + _DIGEST:
        raise file_error(
            f"is not a file of kind {kind}", "file", f"{len(content)} bytes", "the bytes that were written"
        )
    # First of all: a damaged header is not parsed.
    if hashlib.sha256(content[:-_DIGEST]).digest() != content[-_DIGEST:]:
        raise file_error("the checksum does not match the content", "sha256", None, "the bytes that were written")
    version, size = int.from_bytes(content[10:12], "little"), int.from_bytes(content[12:16], "little")
    if version != _VERSION or size > min(MOST_HEADER, len(content) - _BEFORE - _DIGEST):
        raise file_error("has another version or is truncated", "version", version, f"version {_VERSION}")
    try:
        header = read_json(content[_BEFORE : _BEFORE + size])
        if not isinstance(header, dict) or header.pop("kind", None) != kind:
            raise file_error("has another kind", "kind", None, kind)
        # The layout follows from checked fields of the kind, so the file cannot choose sizes for itself.
        stored_layout, layout = header.pop("arrays", None), layout_of(header)
        if stored_layout != layout:
            raise file_error("do not match the header", "arrays", f"{stored_layout!s:.80}", f"{layout!s:.80}")
        return header, _arrays(content[_BEFORE + size : -_DIGEST], layout)
    except MechdesignError as error:
        raise file_error(error.message, error.field or "file", error.value, "the numbers that were written") from error
    except (ValueError, OverflowError, RecursionError, zlib.error) as error:
        raise file_error(f"is damaged ({error})", "file", None, "the bytes that were written") from error


def is_container(path: str | Path, kind: str) -> bool:
    """True if a file begins like a container of this kind."""
    try:
        with open_regular(path, field="file", remedy="give the path of a file") as stream:
            match = _KIND.match(stream.read(_BEFORE + len(kind) + 12))
    except (MechdesignError, OSError):
        return False
    return match is not None and match[1] == kind.encode()


def _arrays(body: bytes, layout: Layout) -> dict[str, AnyArray]:
    sizes = [math.prod(shape) * int(kind[1]) for _, kind, shape, _ in layout]
    # One byte more than announced shows a longer body, without inflating all of it.
    reader = zlib.decompressobj()
    content = reader.decompress(body, sum(sizes) + 1)
    if len(content) != sum(sizes) or not reader.eof or reader.unused_data:
        raise file_error("has another size", "body", len(content), f"{sum(sizes)} bytes")
    arrays, start = {}, 0
    for (name, kind, shape, differences), size in zip(layout, sizes, strict=True):
        planes = np.frombuffer(content, np.uint8, size, start).reshape(int(kind[1]), -1)
        values = np.ascontiguousarray(planes.T).view(f"<u{kind[1]}").reshape(shape)
        values = values.astype(values.dtype.newbyteorder("="))
        # Sums wrap modulo the width of the unsigned type, as the differences did.
        for axis in range(len(shape) * differences):
            values = np.cumsum(values, axis=axis, dtype=values.dtype)
        arrays[name] = values.view(kind)
        start += size
    return arrays


def _planes(values: AnyArray, differences: int) -> bytes:
    steps = values.view(f"<u{values.itemsize}")
    for axis in range(values.ndim * differences):
        steps = np.diff(steps, axis=axis, prepend=steps.dtype.type(0))
    return np.ascontiguousarray(steps).reshape(-1).view(np.uint8).reshape(-1, values.itemsize).T.tobytes()

"""Texts in HDF5 files of strangers, found before the HDF5 library looks for them.

A text is sixteen bytes in an attribute: a length of up to 4 GB, the address of a heap and a number in it. The library
sets the length aside and clears it before it looks for the text, and tells nobody how long it is; it goes round and
round in a heap with an entry of no size; and it unfolds a compressed heap of names without a bound. So it reads through
a stream that keeps account of the bytes it was given: references are looked up in them and followed here first, and
the header of a compressed heap is refused before the library sees it.
"""

from __future__ import annotations

import io
import os
import re
import struct
from collections.abc import Iterable
from typing import Any, BinaryIO, NamedTuple

from mechdesign.mechanism.storage.hdf5 import refusal

_COMPRESSED = re.compile(rb"FRHP\0..(?!\0\0)", re.DOTALL)  # signature, version, length of an id, length of the filters
_AROUND = 9  # bytes of that
_VARYING = 9  # class of a type of variable length, in the low half of its first byte
_REFERENCE, _ENTRY = struct.Struct("<IQI"), struct.Struct("<HHIQ")
_HEAP = struct.Struct("<4sB3xQ")  # signature, version, size


class Reference(NamedTuple):
    """Where a value of variable length is: how many bytes of text, or elements, of which entry of the heap at what
    address.
    """

    length: int
    heap: int
    entry: int


class Watched(io.RawIOBase):
    """A file as the HDF5 library reads it. While `watching`, compressed heaps are refused, and `pieces` says what was
    read.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._spans: set[tuple[int, int]] = set()
        self.watching = True

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def readinto(self, buffer: Any) -> int:
        start = self.tell()
        if self.watching:
            self._spans.add((start, start + len(buffer)))
            if _COMPRESSED.search(self.between(start - _AROUND, start + len(buffer) + _AROUND)):
                raise refusal("compressed names are refused", "file", f"at byte {start}")
            self.seek(start)
        return self._stream.readinto(buffer)  # type: ignore[attr-defined]

    def between(self, start: int, end: int) -> bytes:
        """The bytes of the file from `start` to `end`, as far as there are any."""
        self.seek(max(start, 0))
        return self._stream.read(end - max(start, 0))

    def pieces(self) -> list[bytes]:
        """What was read, in pieces that do not touch."""
        joined: list[list[int]] = []
        for start, end in sorted(self._spans):
            if joined and start <= joined[-1][1]:
                joined[-1][1] = max(end, joined[-1][1])
            else:
                joined.append([start, end])
        return [self.between(start, end) for start, end in joined]

    def check(self, references: Iterable[Reference]) -> None:
        """Refuse references to what is not in the file: to no heap, or an entry of another size.

        Raises: VerificationError.
        """
        heaps: dict[int, dict[int, int]] = {}
        for reference in references:
            if reference.length and reference.heap not in heaps:
                heaps[reference.heap] = self._entries(reference.heap)
            if reference.length > heaps.get(reference.heap, {}).get(reference.entry, 0):
                raise refusal("texts that are not in the file are refused", "file", tuple(reference))

    def _entries(self, heap: int) -> dict[int, int]:
        """The sizes of the entries of a heap by number: each a header and bytes, filled up to eight; 0 is the rest."""
        length = self.seek(0, os.SEEK_END)
        signature, version, size = _HEAP.unpack(self.between(heap, heap + _HEAP.size).ljust(_HEAP.size, b"\0"))
        if signature != b"GCOL" or version != 1 or heap + size > length:
            raise refusal("texts that are not in the file are refused", "file", f"no heap at byte {heap}")
        content, at, found = self.between(heap, heap + size), _HEAP.size, {}
        while at + _ENTRY.size <= size:
            number, _, _, bytes_of = _ENTRY.unpack_from(content, at)
            step = bytes_of if number == 0 else _ENTRY.size + -(-bytes_of // 8) * 8
            if step < _ENTRY.size or at + step > size or number in found:
                raise refusal("a heap that contradicts itself is refused", "file", f"at byte {heap + at}")
            found[number] = bytes_of
            at += step
        return found


def references(pieces: list[bytes], name: str, elements: int) -> list[Reference]:
    """The references of attributes of this name, those with so many values of variable length each.

    pieces: the bytes of all object headers. An attribute's message is its version, flags, the lengths of its name, type
    and shape (two bytes each), in version 3 an encoding; then name, type and shape, in version 1 each filled up to
    eight bytes; then the references. Whatever can be read so counts, and what the library read as an attribute of this
    name is among it.
    Raises: VerificationError where there is none, or where a type or shape is kept elsewhere.
    """
    found, sought = [], re.escape(name.encode(errors="surrogateescape") + b"\0")
    for piece in pieces:
        for match in re.finditer(sought, piece):
            for version, head in ((1, 8), (2, 8), (3, 9)):
                found += _message(piece, match.start() - head, match.start(), match.end(), version, elements)
    if not found:
        raise refusal("attributes that cannot be told are refused", name, "no message")
    return found


def _message(piece: bytes, start: int, name: int, end: int, version: int, elements: int) -> list[Reference]:
    """The references of a message of this version at `start`, if there is one; its name goes from `name` to `end`."""
    if start < 0 or piece[start] != version:
        return []
    sizes = struct.unpack_from("<HHH", piece, start + 2)
    step = 8 if version == 1 else 1
    kind, shape, data = (name + sum(-(-part // step) * step for part in sizes[:k]) for k in (1, 2, 3))
    if sizes[0] != end - name or data + _REFERENCE.size * elements > len(piece) or piece[kind] & 15 != _VARYING:
        return []
    if version > 1 and piece[start + 1]:
        raise refusal("attributes that cannot be told are refused", piece[name : end - 1].decode(), "a shared type")
    first = shape + (8 if piece[shape] == 1 else 4)
    if piece[shape + 1] and int.from_bytes(piece[first : first + 8], "little") != elements:
        return []
    return [Reference(*_REFERENCE.unpack_from(piece, data + _REFERENCE.size * k)) for k in range(elements)]

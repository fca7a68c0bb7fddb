"""HDF5 files of strangers: arrays of numbers, looked over by rules before a value of them is read.

What is taken is what the package writes: at most 64 arrays at the top of the file, reached by hard links, of whole
numbers or doubles of standard form, of two axes at most and of fixed size, whose values all lie in the file, in one
piece or in chunks that are shuffled, deflated and summed, each at most once. Chunks announce at most 1,100 times the
bytes that they take (deflate reaches 1,032), and all arrays together take no more bytes than the file has: what will be
allocated is bounded by the size of the file, and by the free memory, before it is.
"""

from __future__ import annotations

import itertools
import math
import os
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, BinaryIO

import h5py
import numpy as np
from h5py import h5d, h5g, h5l, h5o, h5s, h5t, h5z
from numpy.typing import NDArray

from mechdesign.base.memory import require_bytes
from mechdesign.errors import VerificationError

MOST = 64  # arrays of a file, and attributes of each
_LARGEST_SIDE = 1 << 31
_UNFOLDS = 1100
_COPIES = 3  # of an array, while its checksum is computed
_SUM_BYTES = 4  # of a Fletcher-32 behind a chunk
_FILTERS = {h5z.FILTER_SHUFFLE, h5z.FILTER_DEFLATE, h5z.FILTER_FLETCHER32}
_LAYOUTS = (h5d.COMPACT, h5d.CONTIGUOUS, h5d.CHUNKED)
_NUMBERS = [np.dtype(f"{order}{kind}") for kind in ("u1", "u2", "u4", "u8", "i8", "f8") for order in "<>"]


def refusal(message: str, name: str, value: object) -> VerificationError:
    """The error for what is not as the package writes it."""
    return VerificationError(message, field=name, value=value, remedy="use an unaltered file")


@dataclass(frozen=True, kw_only=True, eq=False)
class Stored:
    """An array of a file and how its values lie there, in `taken` bytes: in pieces of the shape `chunk`, or in one, and
    then pieces is None. A piece is h5py's: chunk_offset, the place of its first entry; byte_offset and size in it;
    filter_mask, a bit for each filter that was left out.
    """

    id: h5d.DatasetID
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunk: tuple[int, ...]
    filters: tuple[int, ...]
    pieces: list[Any] | None
    taken: int

    @property
    def size(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def piece(self) -> int:
        """Bytes of a chunk, unfolded."""
        return math.prod(self.chunk) * self.dtype.itemsize


def arrays_of(file: h5py.File) -> dict[str, h5d.DatasetID]:
    """The arrays at the top of a file by name.

    Raises: VerificationError for more than 64; links to elsewhere, groups and named types; values in other files or
        arrays; a user block.
    """
    if file.userblock_size or file.id.get_create_plist().get_sizes() != (8, 8):
        raise refusal("a user block, or addresses that are not of 64 bits, are refused", "file", file.userblock_size)
    root = h5g.open(file.id, b"/")
    if root.get_num_objs() > MOST:
        raise refusal(f"more than {MOST} arrays are refused", "file", root.get_num_objs())
    found = {}
    for raw in root:
        name = raw.decode()
        if root.links.get_info(raw).type != h5l.TYPE_HARD or h5o.get_info(root, raw).type != h5o.TYPE_DATASET:
            raise refusal("links, groups and named types are refused", name, "not an array of this file")
        found[name] = h5d.open(root, raw)
        made = found[name].get_create_plist()
        if made.get_layout() not in _LAYOUTS or made.get_external_count():
            raise refusal("values in other files or arrays are refused", name, "external or virtual")
    return found


def shape_of(name: str, array: h5d.DatasetID) -> tuple[int, ...]:
    """The shape of an array: two axes at most, each of a fixed size below 2^31. Raises: VerificationError."""
    space = array.get_space()
    if space.get_simple_extent_type() == h5s.NULL or space.get_simple_extent_ndims() > 2:
        axes = space.get_simple_extent_ndims()
        raise refusal("arrays of no shape, or of more than two axes, are refused", name, f"{axes} axes")
    shape = tuple(space.get_simple_extent_dims())
    grows = [side != most for side, most in zip(shape, space.get_simple_extent_dims(True), strict=True) if side]
    if any(grows) or max(shape, default=0) >= _LARGEST_SIDE:
        raise refusal("axes that grow, or are of 2^31 and more, are refused", name, shape)
    return shape


def stored(name: str, array: h5d.DatasetID) -> Stored:
    """How an array lies in its file.

    Raises: VerificationError for another type, other filters, and values that are not in the file, or unfold to more
        than deflate can.
    """
    shape, kind, made = shape_of(name, array), array.get_type(), array.get_create_plist()
    dtype = next((known for known in _NUMBERS if kind.equal(h5t.py_create(known))), None)
    if dtype is None or kind.committed():
        raise refusal("variables that are not whole numbers or doubles are refused", name, _words(kind))
    filters = tuple(made.get_filter(k)[0] for k in range(made.get_nfilters()))
    if not _FILTERS.issuperset(filters) or len(set(filters)) < len(filters):
        raise refusal("filters other than shuffle, deflate and Fletcher-32, once each, are refused", name, filters)
    chunked = made.get_layout() == h5d.CHUNKED and math.prod(shape) > 0
    chunk = tuple(made.get_chunk()) if chunked else ()
    pieces = _pieces(name, array, shape, chunk) if chunked else None
    taken = array.get_storage_size() if pieces is None else sum(piece.size for piece in pieces)
    found = Stored(id=array, shape=shape, dtype=dtype, chunk=chunk, filters=filters, pieces=pieces, taken=taken)
    if pieces is None and taken != found.size:
        raise refusal("values that are not in the file are refused", name, f"{taken} of {found.size} bytes")
    if pieces is not None and len(pieces) * found.piece > _UNFOLDS * taken:
        raise refusal("unfolds to more than deflate can", name, f"{len(pieces) * found.piece} bytes from {taken}")
    return found


def _pieces(name: str, array: h5d.DatasetID, shape: tuple[int, ...], chunk: tuple[int, ...]) -> list[Any]:
    """The chunks of an array, every one of them, once."""
    if len(chunk) != len(shape) or any(step > side for step, side in zip(chunk, shape, strict=True)):
        raise refusal("chunks larger than the array are refused", name, chunk)
    count = math.prod(-(-side // step) for side, step in zip(shape, chunk, strict=True))
    found: list[Any] = []

    def note(piece: Any) -> bool | None:
        found.append(piece)
        return True if len(found) > count else None

    array.chunk_iter(note)
    if len(found) == count:
        corners = itertools.product(*(range(0, side, step) for side, step in zip(shape, chunk, strict=True)))
        if {piece.chunk_offset for piece in found} == set(corners):
            return found
    raise refusal("chunks that are not in the file are refused", name, f"{len(found)} of {count}")


def require_room(arrays: Iterable[Stored], stream: BinaryIO) -> None:
    """Refuse arrays that take more bytes than their file has, or do not fit in memory.

    Raises: VerificationError, SizeError.
    """
    listed = list(arrays)
    taken, size = sum(array.taken for array in listed), os.fstat(stream.fileno()).st_size
    if taken > size:
        raise refusal("arrays that share their bytes are refused", "file", f"{taken} bytes of {size}")
    need = sum(array.size for array in listed)
    require_bytes(_COPIES * need, what="the arrays of the file", field="file", value=f"{need} bytes")


def values(array: Stored, stream: BinaryIO) -> NDArray[Any]:
    """The values of an array, in the byte order of the machine. Raises: ValueError, OSError where they are damaged."""
    found = np.empty(array.shape, array.dtype.newbyteorder("="))
    if array.pieces is None:
        if found.size:
            array.id.read(h5s.ALL, h5s.ALL, found)
        return found
    for piece in array.pieces:
        stream.seek(piece.byte_offset)
        block = np.frombuffer(_unfolded(array, stream.read(piece.size), piece.filter_mask), array.dtype)
        ends = [
            min(step, side - at) for at, step, side in zip(piece.chunk_offset, array.chunk, array.shape, strict=True)
        ]
        place = tuple(slice(at, at + end) for at, end in zip(piece.chunk_offset, ends, strict=True))
        found[place] = block.reshape(array.chunk)[tuple(map(slice, ends))]
    return found


def _unfolded(array: Stored, data: bytes, left_out: int) -> bytes:
    """The bytes of a chunk, its filters undone from the last to the first; never more than it should hold.

    The sum that Fletcher-32 adds is cut off: the SHA-256 of the content says more.
    """
    unfolded = data
    for k in reversed(range(len(array.filters))):
        if left_out >> k & 1:
            continue
        if array.filters[k] == h5z.FILTER_FLETCHER32:
            unfolded = unfolded[:-_SUM_BYTES]
        elif array.filters[k] == h5z.FILTER_DEFLATE:
            inflate = zlib.decompressobj()
            unfolded = inflate.decompress(unfolded, array.piece + _SUM_BYTES + 1)
            if not inflate.eof:
                raise ValueError("a chunk is not of its size")
        else:
            even = len(unfolded) - len(unfolded) % array.dtype.itemsize
            shuffled = np.frombuffer(unfolded[:even], np.uint8).reshape(array.dtype.itemsize, -1)
            unfolded = shuffled.T.tobytes() + unfolded[even:]
    if len(unfolded) != array.piece:
        raise ValueError("a chunk is not of its size")
    return unfolded


def _words(kind: h5t.TypeID) -> str:
    try:
        return str(kind.dtype)
    except TypeError:
        return f"HDF5 class {kind.get_class()}"

"""The NetCDF-4 subset that mechanism files use, written and read with a guard against hostile files."""

from __future__ import annotations

import io
import itertools
import math
import os
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import h5py
import numpy as np
from h5py import h5a, h5d, h5g, h5l, h5o, h5s, h5t, h5z

from mechdesign.base.arrays import AnyArray
from mechdesign.base.memory import require_bytes
from mechdesign.errors import VerificationError
from mechdesign.mechanism.content import FileContent, Values
from mechdesign.mechanism.schema import Schema, file_error, schema_of

if TYPE_CHECKING:
    import xarray as xr

MAX_ENTRIES = 64  # arrays of a file, and attributes of each
_LARGEST_SIDE = 1 << 31
_MAX_INFLATION = 1100  # inflated bytes per byte of a chunk; deflate reaches 1,032
_COPIES = 3  # of an array, while it is checked
_LONG_TEXT = 1 << 14  # bytes of an attribute
_TEXT_OF = "text_of_"
_NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable."
_FILTERS = (h5z.FILTER_SHUFFLE, h5z.FILTER_DEFLATE)
_NOT_DEFLATED = 1 << 1  # in the mask of a chunk: the library skips a filter that does not shrink it
_SKIPPED_ATTRIBUTES = {
    "CLASS",
    "NAME",
    "DIMENSION_LIST",
    "REFERENCE_LIST",
    "coordinates",
}  # axes, which the schema names
_COMPRESSED = re.compile(rb"FRHP\0..(?!\0\0)", re.DOTALL)  # heap: signature, version, length of an id, of the filters
_LEVELS = {"tree": 9}  # of deflate by array, 1 for others: trees shrink to half, digits of masses do not
_MARGIN_BYTES = 9  # bytes of that pattern
_NUMBERS = [np.dtype(f"<{kind}") for kind in ("u1", "u2", "u4", "u8", "i8", "f8")]


def write_netcdf(dataset: xr.Dataset, path: Path) -> None:
    """Write a Dataset through memory: on a full disk the HDF5 library aborts the process and leaves half a file."""
    from xarray import Variable
    from xarray.conventions import encode_dataset_coordinates

    # Coordinates that are not axes are named by attributes of the variables on their axes.
    variables, attrs = encode_dataset_coordinates(dataset)
    long_texts = {k: v.encode() for k, v in attrs.items() if isinstance(v, str) and len(v.encode()) > _LONG_TEXT}
    for key, text in long_texts.items():
        variables[f"{_TEXT_OF}{key}"] = Variable(f"{_TEXT_OF}{key}", np.frombuffer(text, np.uint8))
    content = io.BytesIO()
    with h5py.File(content, "w", track_order=True) as file:
        for key, value in attrs.items():
            if key not in long_texts:
                file.attrs[key] = _as_attribute(value)
        file.attrs["_NCProperties"] = np.bytes_(f"version=2,hdf5={h5py.version.hdf5_version},h5py={h5py.__version__}")
        _write_variables(file, variables)
    path.write_bytes(content.getbuffer())


def _write_variables(file: h5py.File, variables: Mapping[Any, xr.Variable]) -> None:
    """Write variables and their axes as NetCDF-4 does: an axis without a variable of its name is an empty array."""
    sizes = {dim: size for variable in variables.values() for dim, size in variable.sizes.items()}
    number = {dim: np.int32(k) for k, dim in enumerate(sizes)}
    arrays = {}
    for dim, size in sizes.items():
        if dim not in variables:
            arrays[dim] = file.create_dataset(
                dim, (size,), ">f4", maxshape=(None,) if size == 0 else None, track_order=True
            )
    for name, variable in variables.items():
        layout: dict[str, Any] = {"maxshape": tuple(size or None for size in variable.shape)}
        if variable.dims:
            layout |= {"shuffle": True, "compression": _LEVELS.get(name, 1)}
        arrays[name] = file.create_dataset(name, data=variable.values, track_order=True, **layout)
    for dim, size in sizes.items():
        arrays[dim].make_scale(dim if dim in variables else f"{_NO_VARIABLE}{size:10}")
        arrays[dim].attrs["_Netcdf4Dimid"] = number[dim]
    for name, variable in variables.items():
        for k, dim in enumerate(variable.dims if name not in sizes else ()):
            arrays[name].dims[k].attach_scale(arrays[dim])
        if numbers := [number[dim] for dim in variable.dims]:
            arrays[name].attrs["_Netcdf4Dimid"] = numbers[0]
            arrays[name].attrs["_Netcdf4Coordinates"] = np.array(numbers)
        for key, value in variable.attrs.items():
            arrays[name].attrs[key] = _as_attribute(value)


def _as_attribute(value: Any) -> Any:
    """A text of fixed length, or an array of one number."""
    if not isinstance(value, str):
        return np.atleast_1d(value)
    content = value.encode()
    return np.array(content, dtype=h5py.string_dtype("utf-8", max(len(content), 1)))


def read_netcdf(stream: BinaryIO, *schemas: Schema, noun: str) -> FileContent:
    """The content of an open file, whose schema names its axes; a damaged file raises any error of the HDF5 library."""
    # The reader takes at most 64 arrays at the top of the file, reached by hard links, of at most two axes and fixed
    # size. All chunks lie in the file, each once. All arrays together take at most the bytes of the file, so that the
    # size of the file and the free memory bound allocation. Values are inflated here, never beyond their announced
    # size, and neither masked nor scaled. The library reads through a stream that refuses compressed heaps of names,
    # which it would inflate without a bound.
    with h5py.File(_GuardedStream(stream), "r") as file:
        block, sizes = file.userblock_size, file.id.get_create_plist().get_sizes()
        if block or sizes != (8, 8):
            message = "a user block, or addresses that are not of 64 bits, are refused"
            raise file_error(message, "file", f"{block} bytes before, {sizes} bytes")
        root = h5g.open(file.id, b"/")
        if root.get_num_objs() > MAX_ENTRIES:
            raise file_error(f"more than {MAX_ENTRIES} arrays are refused", "file", root.get_num_objs())
        names = [raw.decode() for raw in root]
        attrs = _attributes("file", file)
        long_texts = {name: _array(name, root) for name in names if name.startswith(_TEXT_OF)}
        _require_memory(long_texts, stream)
        attrs |= {name.removeprefix(_TEXT_OF): _text(array, stream) for name, array in long_texts.items()}
        schema = schema_of(attrs, *schemas, noun=noun)
        axes = schema.dims - set(schema.variables)
        arrays = {name: _array(name, root) for name in names if name not in axes | set(long_texts)}
        _require_memory(arrays, stream)
        variables, coordinates = {}, []
        for name, array in arrays.items():
            known = schema.variable(name)
            if known is None or len(known.dims) != len(array.shape):
                raise file_error("is not a variable of this schema", name, array.shape)
            attributes = _attributes(name, file[name])
            variables[name] = Values(dims=known.dims, values=_values(array, stream), attrs=attributes)
            coordinates += [name] * known.is_coordinate
    content = FileContent(variables=variables, coords=frozenset(coordinates), attrs=attrs)
    # Raises if two arrays differ in the length of an axis.
    content.sizes  # noqa: B018
    return content


def _attributes(name: str, owner: h5py.Group | h5py.Dataset) -> dict[str, Any]:
    """Attributes, each one number or one text of fixed length."""
    if h5a.get_num_attrs(owner.id) > MAX_ENTRIES:
        raise file_error(f"more than {MAX_ENTRIES} attributes are refused", name, h5a.get_num_attrs(owner.id))
    values: dict[str, Any] = {}
    for key in owner.attrs:
        if key in _SKIPPED_ATTRIBUTES or key.startswith(("_Netcdf4", "_NC", "_nc3")):
            continue
        attribute = owner.attrs.get_id(key)
        kind, elements = attribute.get_type(), attribute.get_space().get_simple_extent_npoints()
        is_text = kind.get_class() == h5t.STRING and not kind.is_variable_str()
        is_number = kind.get_class() in (h5t.INTEGER, h5t.FLOAT) and kind.get_size() <= 8
        if elements == 1 and kind.get_class() == h5t.STRING and kind.is_variable_str():
            message = "is a text of variable length, as other programs write them"
            raise VerificationError(message, field=f"{name}:{key}", value=key, remedy="save it with mechdesign")
        if elements != 1 or not (is_text or is_number) or attribute.get_storage_size() > _LONG_TEXT:
            raise file_error("attributes that are not one number or one text are refused", f"{name}:{key}", elements)
        value = np.asarray(owner.attrs[key]).reshape(-1)[0]
        values[key] = value.decode() if is_text else value
    return values


# Files have arrays of integers or doubles, shuffled and deflated, without fill values. Attributes are one number or one
# text of fixed length. A longer text is an array of its bytes, `text_of_KEY`. Texts of variable length, whose heaps
# have lengths of up to 4 GB, are not read.
@dataclass(frozen=True, kw_only=True, eq=False)
class _Array:
    """An array in its file: chunks (`pieces`) of shape `chunk` take `taken` bytes; size, piece: inflated bytes."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunk: tuple[int, ...]
    pieces: list[Any]
    taken: int

    @property
    def size(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def piece(self) -> int:
        return math.prod(self.chunk) * self.dtype.itemsize


def _array(name: str, root: h5g.GroupID) -> _Array:
    """The layout of an array in its file; refuses layouts that `write_netcdf` does not write."""
    raw = name.encode()
    # Check the link before opening its target: a soft or external link may lead out of the file.
    if root.links.get_info(raw).type != h5l.TYPE_HARD or h5o.get_info(root, raw).type != h5o.TYPE_DATASET:
        raise file_error("links, groups and named types are refused", name, "not an array of this file")
    array = h5d.open(root, raw)
    kind, creation = array.get_type(), array.get_create_plist()
    is_numeric = kind.get_class() in (h5t.INTEGER, h5t.FLOAT) and kind.dtype in _NUMBERS
    if not is_numeric:
        raise file_error("must be integers or doubles as they are written", name, f"HDF5 class {kind.get_class()}")
    space = array.get_space()
    if space.get_simple_extent_type() == h5s.NULL or not 1 <= space.get_simple_extent_ndims() <= 2:
        axes = space.get_simple_extent_ndims()
        raise file_error("arrays without a shape or with more than two axes are refused", name, f"{axes} axes")
    shape = tuple(space.get_simple_extent_dims())
    ends = zip(shape, space.get_simple_extent_dims(True), strict=True)
    if any(side and side != maximum for side, maximum in ends) or max(shape) >= _LARGEST_SIDE:
        raise file_error("axes that grow, or are of 2^31 and more, are refused", name, shape)
    if creation.get_layout() != h5d.CHUNKED:
        raise file_error("values that are not in chunks of the file are refused", name, creation.get_layout())
    # These two filters only, in this order: every further one is one more decoder of untrusted bytes.
    filters = tuple(creation.get_filter(k)[0] for k in range(creation.get_nfilters()))
    if filters != _FILTERS:
        raise file_error("other filters than shuffle and deflate are refused", name, filters)
    chunk = creation.get_chunk()
    pieces = _chunks_of(name, array, shape, chunk)
    layout = _Array(shape=shape, dtype=kind.dtype, chunk=chunk, pieces=pieces, taken=sum(p.size for p in pieces))
    inflated = len(pieces) * layout.piece
    if inflated > _MAX_INFLATION * layout.taken:
        raise file_error("inflates to more than deflate can", name, f"{inflated} bytes from {layout.taken}")
    return layout


def _chunks_of(name: str, array: h5d.DatasetID, shape: tuple[int, ...], chunk: tuple[int, ...]) -> list[Any]:
    count = math.prod(-(-side // step) for side, step in zip(shape, chunk, strict=True))
    pieces: list[Any] = []

    def note(piece: Any) -> bool | None:
        pieces.append(piece)
        return True if len(pieces) > count else None

    # The iteration stops at one chunk too many, so that a forged index cannot make it endless.
    array.chunk_iter(note)
    if len(pieces) == count:
        corners = itertools.product(*(range(0, side, step) for side, step in zip(shape, chunk, strict=True)))
        if {piece.chunk_offset for piece in pieces} == set(corners):
            return pieces
    raise file_error("chunks that are not in the file are refused", name, f"{len(pieces)} of {count}")


def _require_memory(arrays: dict[str, _Array], stream: BinaryIO) -> None:
    """Refuse arrays that take more bytes than their file has, or do not fit in memory."""
    taken, size = sum(array.taken for array in arrays.values()), os.fstat(stream.fileno()).st_size
    if taken > size:
        raise file_error("arrays that share their bytes are refused", "file", f"{taken} bytes of {size}")
    need = sum(array.size for array in arrays.values())
    require_bytes(_COPIES * need, noun="the arrays of the file", field="file", value=f"{need} bytes")


def _values(array: _Array, stream: BinaryIO) -> AnyArray:
    values = np.empty(array.shape, array.dtype.newbyteorder("="))
    for piece in array.pieces:
        stream.seek(piece.byte_offset)
        content = stream.read(piece.size)
        if not piece.filter_mask & _NOT_DEFLATED:
            inflate = zlib.decompressobj()
            # One byte more than a chunk shows a longer stream, without inflating all of it.
            content = inflate.decompress(content, array.piece + 1)
        if len(content) != array.piece or piece.filter_mask & ~_NOT_DEFLATED:
            raise ValueError("a chunk is not of its size")
        # Undo the shuffle filter: byte k of every number is stored in plane k.
        planes = np.frombuffer(content, np.uint8).reshape(array.dtype.itemsize, -1)
        block = np.ascontiguousarray(planes.T).view(array.dtype).reshape(array.chunk)
        place = tuple(slice(start, start + step) for start, step in zip(piece.chunk_offset, array.chunk, strict=True))
        inside = tuple(slice(side - start) for start, side in zip(piece.chunk_offset, array.shape, strict=True))
        values[place] = block[inside]
    return values


def _text(array: _Array, stream: BinaryIO) -> str:
    if array.dtype != np.uint8 or len(array.shape) != 1:
        raise file_error("a text must be bytes", "file", array.shape)
    return _values(array, stream).tobytes().decode()


class _GuardedStream(io.RawIOBase):
    """A file as the HDF5 library reads it, which refuses compressed heaps."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def readinto(self, buffer: Any) -> int:
        # Read a margin on both sides, in which a signature across the border of two reads shows.
        start, before = self.tell(), min(self.tell(), _MARGIN_BYTES)
        self.seek(start - before)
        content = self._stream.read(before + len(buffer) + _MARGIN_BYTES)
        if _COMPRESSED.search(content):
            raise file_error("compressed names are refused", "file", f"at byte {start}")
        part = content[before : before + len(buffer)]
        buffer[: len(part)] = part
        self.seek(start + len(part))
        return len(part)

"""Hostile HDF5 files: a rule refuses each, before announced arrays are allocated and without waiting."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import tempfile
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr
from fixtures.forged_files import rewritten
from fixtures.rows import few_by_default
from test_storage import MARK, check_identical, square

from mechdesign import load, save
from mechdesign.errors import SizeError, VerificationError
from mechdesign.mechanism.hdf5 import read_netcdf, write_netcdf
from mechdesign.mechanism.schema import TABLE_SCHEMA, VariableSpec
from mechdesign.mechanism.storage import append_mark

MB = 1 << 20
ENOUGH = 64 * MB  # more than any refusal takes, and less than any of these files announces


def add_chunked(file: h5py.File, name: str, shape, chunk, dtype="f8", **options):
    return file.create_dataset(name, shape, dtype, chunks=chunk, **options)


def fifo(file: h5py.File) -> str:
    """A FIFO beside the file that nobody writes to: opening it waits for ever."""
    path = Path(file.filename).with_name("waits")
    if not path.exists():
        os.mkfifo(path)
    return str(path)


def virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((4,), "f8")
    layout[:] = h5py.VirtualSource(fifo(file), "prior", (4,))
    file.create_virtual_dataset("hostile", layout)


def deflated_twice(file: h5py.File) -> None:
    dataset = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    dataset.set_chunk((4,))
    for _ in range(2):
        dataset.set_deflate(9)
    h5py.h5d.create(file.id, b"hostile", h5py.h5t.IEEE_F64LE, h5py.h5s.create_simple((4,)), dataset)


def one_value(shape, chunk):
    def change(file: h5py.File) -> None:
        add_chunked(file, "hostile", shape, chunk, compression="gzip", shuffle=True)[(0,) * len(shape)] = 1.0

    return change


def short_chunk(count: int):
    """A chunk of 9 bytes that announces so many doubles."""

    def change(file: h5py.File) -> None:
        dataset = add_chunked(file, "hostile", (count,), (count,), compression="gzip", shuffle=True)
        dataset.id.write_direct_chunk((0,), zlib.compress(b"0"))

    return change


def external_values(target: str | None):
    def change(file: h5py.File) -> None:
        file.create_dataset("hostile", (4,), "f8", external=[(target or fifo(file), 0, 32)])

    return change


def external_link(target: str | None):
    def change(file: h5py.File) -> None:
        file["hostile"] = h5py.ExternalLink(target or fifo(file), "/prior")

    return change


def attribute(value, dtype=None):
    return lambda file: file["prior"].attrs.create("hostile", value, dtype=dtype)


def add_arrays(count: int):
    def change(file: h5py.File) -> None:
        for k in range(count):
            file[f"hostile{k}"] = np.zeros(1)

    return change


def add_attributes(file: h5py.File) -> None:
    for k in range(65):
        file["prior"].attrs[f"hostile{k}"] = 1


def write_packed(name: str, shape):
    """An array as the package writes it, in place of one of this name."""

    def change(file: h5py.File) -> None:
        if name in file:
            del file[name]
        add_chunked(file, name, shape, shape, compression="gzip", shuffle=True)[...] = 0.25

    return change


COMPOUND = np.dtype([("a", "f8"), ("b", "i4")])
HOSTILE = {
    "a soft link": (lambda f: f.__setitem__("hostile", h5py.SoftLink("/prior")), "hostile", "links"),
    "a link to a FIFO": (external_link(None), "hostile", "links"),
    "a link to a device": (external_link("/dev/zero"), "hostile", "links"),
    "a group": (lambda f: f.create_group("hostile"), "hostile", "groups"),
    "a circle of groups": (lambda f: f.__setitem__("hostile", f["/"]), "hostile", "groups"),
    "a named type": (lambda f: f.__setitem__("hostile", np.dtype("f8")), "hostile", "named types"),
    "65 arrays": (add_arrays(65), "file", "more than 64"),
    "a virtual array": (virtual, "hostile", "in chunks"),
    "values in a FIFO": (external_values(None), "hostile", "in chunks"),
    "values in a device": (external_values("/dev/zero"), "hostile", "in chunks"),
    "32-bit numbers": (lambda f: f.create_dataset("hostile", (4,), "i4"), "hostile", "integers or doubles"),
    "texts": (lambda f: f.create_dataset("hostile", (4,), h5py.string_dtype()), "hostile", "integers or doubles"),
    "lists": (lambda f: f.create_dataset("hostile", (4,), h5py.vlen_dtype("f8")), "hostile", "integers or doubles"),
    "records": (lambda f: f.create_dataset("hostile", (4,), COMPOUND), "hostile", "integers or doubles"),
    "opaque values": (lambda f: f.create_dataset("hostile", (4,), "V8"), "hostile", "integers or doubles"),
    "references": (lambda f: f.create_dataset("hostile", (4,), h5py.ref_dtype), "hostile", "integers or doubles"),
    "truth values": (lambda f: f.create_dataset("hostile", (4,), bool), "hostile", "integers or doubles"),
    "three axes": (lambda f: f.create_dataset("hostile", (1, 1, 1), "f8"), "hostile", "more than two axes"),
    "no shape": (lambda f: f.create_dataset("hostile", data=h5py.Empty("f8")), "hostile", "without a shape"),
    "an axis that grows": (lambda f: add_chunked(f, "hostile", (4,), (4,), maxshape=(None,)), "hostile", "grow"),
    "2^40 values": (one_value((1 << 40,), (1 << 20,)), "hostile", "2\\^31"),
    "deflated twice": (deflated_twice, "hostile", "filters"),
    "another filter": (lambda f: add_chunked(f, "hostile", (4,), (4,), compression="lzf"), "hostile", "filters"),
    "one chunk of thousands": (one_value((1 << 30,), (1 << 17,)), "hostile", "not in the file"),
    "one chunk of a square": (one_value((1 << 15, 1 << 15), (1 << 8, 1 << 8)), "hostile", "not in the file"),
    "no values": (lambda f: f.create_dataset("hostile", (1 << 30,), "f8"), "hostile", "in chunks"),
    "an axis of 2^31": (lambda f: f.create_dataset("hostile", (1 << 31,), "f8"), "hostile", "2\\^31 and more"),
    "a chunk of 9 bytes": (short_chunk(16 * MB), "hostile", "inflates"),
    "1,200 times the bytes of a chunk": (short_chunk(1_350), "hostile", "inflates"),
    "an array outside the schema": (write_packed("hostile", (4,)), "hostile", "not a variable of this schema"),
    "an array of more axes": (write_packed("prior", (2, 2)), "prior", "not a variable of this schema"),
    "a text of doubles": (write_packed("text_of_hostile", (4,)), "file", "must be bytes"),
    "65 attributes": (add_attributes, "prior", "more than 64"),
    "a list of texts": (attribute(["x"] * 100_000, h5py.string_dtype()), "prior:hostile", "one number or one text"),
    "two numbers": (attribute([1, 2]), "prior:hostile", "one number or one text"),
    "a record": (attribute(np.zeros((), COMPOUND)), "prior:hostile", "one number or one text"),
    "a list": (attribute(np.zeros(3), None), "prior:hostile", "one number or one text"),
    "a truth value": (attribute(True), "prior:hostile", "one number or one text"),
    "nothing": (attribute(h5py.Empty("f8")), "prior:hostile", "one number or one text"),
    "a text of its own length": (attribute("x"), "prior:hostile", "variable length"),
}  # fmt: skip


def sound_file_with(path: Path, change: Callable[[h5py.File], object]) -> Path:
    """A sound file with a change, and the mark of its new content."""
    path.write_bytes(sound_bytes())
    with h5py.File(path, "r+") as file:
        change(file)
    append_mark(path)
    return path


@cache
def sound_bytes() -> bytes:
    """The bytes of a sound file, without a mark."""
    with tempfile.TemporaryDirectory() as folder:
        write_netcdf(square().drop_attrs(deep=False).assign_attrs(UNNAMED), Path(folder) / "m.nc")
        return (Path(folder) / "m.nc").read_bytes()


UNNAMED = {key: value for key, value in square().attrs.items() if key != "sha256"}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file of each case; they are only read."""
    folder = tmp_path_factory.mktemp("hostile")
    return {case: sound_file_with(folder / f"{k}.nc", change) for k, (case, (change, *_)) in enumerate(HOSTILE.items())}


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.obligation("file-bounds")
def test_hostile_structures_are_refused_by_name(case: str, hostile: dict[str, Path]) -> None:
    path, (_, field, message) = hostile[case], HOSTILE[case]
    tracemalloc.start()
    try:
        with pytest.raises(VerificationError, match=message) as caught:
            load(path)
        assert tracemalloc.get_traced_memory()[1] < ENOUGH
    finally:
        tracemalloc.stop()
    assert caught.value.field == field
    assert caught.value.value is not None


LOADS = """
import resource, sys
from mechdesign.errors import VerificationError
from mechdesign.mechanism.storage import load
load(sys.argv[1])  # imports the modules that are imported late
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for path in sys.argv[3:]:
    try:
        load(path)
    except VerificationError as error:
        print(error.field, flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process as Linux does")
@pytest.mark.obligation("file-bounds")
def test_no_hostile_file_waits_or_takes_memory(hostile: dict[str, Path], tmp_path: Path) -> None:
    """In a process that may take 400 MB more than it has, the HDF5 library's memory counted."""
    paths = [*hostile.values()]
    paths += [write_edited(tmp_path, name).rename(tmp_path / f"{name}.nc") for name in EDITS]
    command = [sys.executable, "-c", LOADS, save(square(), tmp_path / "whole.nc"), 400 * MB, *paths]
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120, check=False)
    wanted = [field for _, field, _ in HOSTILE.values()] + [field for _, field, _ in EDITS.values()]
    assert (result.stdout.split(), result.stderr) == (wanted, "")


def shared_values(folder: Path) -> bytes:
    """Three arrays whose chunk is that of a fourth: together they take more bytes than the file has."""
    noise = np.random.default_rng(0).integers(1 << 62, size=(4, 50_000))
    keys = []
    with h5py.File(folder / "sound.h5", "w") as file:
        file.attrs["schema"] = np.bytes_("mechdesign/mechanism/2")
        for name, values in zip("abcd", noise, strict=True):
            dataset = add_chunked(file, name, values.shape, values.shape, "i8", compression="gzip", shuffle=True)
            dataset[...] = values if name == "a" else 0
            chunk = dataset.id.get_chunk_info(0)
            keys.append(struct.pack("<II3Q", chunk.size, 0, 0, 0, chunk.byte_offset))
    content = (folder / "sound.h5").read_bytes()
    for key in keys[1:]:
        content = content.replace(key, keys[0])
    return content


def listed_twice(folder: Path) -> bytes:
    """The index of two chunks names the corner of the first one twice."""
    with h5py.File(folder / "sound.h5", "w") as file:
        file.attrs["schema"] = np.bytes_("mechdesign/mechanism/2")
        dataset = add_chunked(file, "prior", (8,), (4,), compression="gzip", shuffle=True)
        dataset[...] = np.random.default_rng(0).random(8)
        size = dataset.id.get_chunk_info(1).size
    keys = [struct.pack("<II2Q", size, 0, corner, 0) for corner in (4, 0)]
    content = (folder / "sound.h5").read_bytes()
    assert content.count(keys[0]) == 1
    return content.replace(*keys)


def compressed_heap(folder: Path) -> bytes:
    """The header of the heap of names or attributes says that its blocks have a filter."""
    content = sound_file_with(folder / "sound.nc", lambda file: None).read_bytes()[:-MARK]
    return re.sub(rb"(FRHP\0..)\0\0", lambda result: result[1] + b"\x10\0", content, flags=re.DOTALL)


EDITS = {
    "values counted four times": (shared_values, "file", "share"),
    "a chunk that is listed twice": (listed_twice, "prior", "not in the file"),
    "a compressed heap": (compressed_heap, "file", "compressed"),
}


def write_edited(folder: Path, name: str) -> Path:
    path = folder / "edited.nc"
    path.write_bytes(EDITS[name][0](folder))
    append_mark(path)
    return path


@pytest.mark.parametrize("name", EDITS)
@pytest.mark.obligation("file-bounds")
def test_edited_files_are_refused(name: str, tmp_path: Path) -> None:
    _, field, message = EDITS[name]
    with pytest.raises(VerificationError, match=message) as caught:
        load(write_edited(tmp_path, name))
    assert caught.value.field == field


@pytest.mark.obligation("file-bounds")
def test_a_user_block_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "m.nc", "w", userblock_size=512):
        pass
    append_mark(tmp_path / "m.nc")
    with pytest.raises(VerificationError, match="user block"):
        load(tmp_path / "m.nc")


@pytest.mark.obligation("file-bounds")
def test_chunk_inflation_stops_at_its_size(tmp_path: Path) -> None:
    def change(file: h5py.File) -> None:
        del file["prior"]
        dataset = add_chunked(file, "prior", (4,), (4,), compression="gzip", shuffle=True)
        try:
            dataset.id.write_direct_chunk((0,), zlib.compress(bytes(80 * MB), 1))
        except OSError:  # HDF5 before version 2
            pytest.skip("this HDF5 library writes no such chunk")

    path = sound_file_with(tmp_path / "m.nc", change)
    tracemalloc.start()
    with pytest.raises(VerificationError, match="damaged"):
        load(path)
    assert tracemalloc.get_traced_memory()[1] < ENOUGH
    tracemalloc.stop()


@pytest.mark.obligation("file-bounds")
def test_oversized_arrays_are_refused_with_estimate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(square(), tmp_path / "m.nc")
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Memory", (), {"available": 1e3})())
    with pytest.raises(SizeError, match="would need"):
        load(path)


@pytest.mark.obligation("file-bounds")
def test_oversized_text_is_refused_before_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spaces of 64 MB take 63 kB of the file; the arrays of the file alone would fit."""

    def change(file: h5py.File) -> None:
        dataset = add_chunked(file, "text_of_hostile", (ENOUGH,), (ENOUGH,), "u1", compression="gzip", shuffle=True)
        dataset[...] = ord(" ")

    path = sound_file_with(tmp_path / "m.nc", change)
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Memory", (), {"available": 1e8})())
    tracemalloc.start()
    with pytest.raises(SizeError, match=r"would need 0\.2 GB"):
        load(path)
    assert tracemalloc.get_traced_memory()[1] < ENOUGH
    tracemalloc.stop()


NOTED = replace(
    TABLE_SCHEMA,
    own_variables=TABLE_SCHEMA.variables | {"note": VariableSpec(dtype="float64", dims=("a", "b"))},
)


@pytest.mark.parametrize("chunk", [None, 1, 3, 5])
@pytest.mark.parametrize("incompressible", [False, True])
def test_whatever_chunks_the_values_have_they_are_read(chunk: int | None, incompressible: bool, tmp_path: Path) -> None:
    """HDF5 leaves a filter out of the chunks that it does not make smaller."""
    values = np.random.default_rng(0).random((7, 9)) if incompressible else np.ones((7, 9))

    def change(file: h5py.File) -> None:
        chunks = True if chunk is None else (chunk, chunk)
        dataset = add_chunked(file, "note", (7, 9), chunks, compression="gzip", shuffle=True)
        dataset[...] = values
        if incompressible and dataset.chunks == values.shape:
            planes = values.reshape(-1, 1).view(np.uint8).T  # as the shuffle filter orders bytes
            dataset.id.write_direct_chunk((0, 0), planes.tobytes(), filter_mask=2)

    with sound_file_with(tmp_path / "m.nc", change).open("rb") as stream:
        assert np.array_equal(read_netcdf(stream, NOTED, noun="a mechanism")["note"].values, values)


def test_arrays_without_values_are_read(tmp_path: Path) -> None:
    mechanism = rewritten(square(), multiplier=("side_row", np.zeros(0)))
    check_identical(load(save(mechanism, tmp_path / "m.nc")), mechanism)


@pytest.mark.obligation("file-bounds")
def test_texts_that_xarray_writes_are_refused(tmp_path: Path) -> None:
    """Of variable length: the library would follow them into heaps."""
    square().to_netcdf(tmp_path / "m.nc", engine="h5netcdf")
    append_mark(tmp_path / "m.nc")
    with pytest.raises(VerificationError, match="variable length"):
        load(tmp_path / "m.nc")


def test_xarray_reads_saved_files(tmp_path: Path) -> None:
    result = xr.load_dataset(save(square(), tmp_path / "m.nc"), engine="h5netcdf")
    assert result.drop_attrs().identical(square().drop_attrs())
    assert result.attrs == UNNAMED


@pytest.mark.parametrize("cells", few_by_default([1 << 16, MB], 1 << 16))
def test_the_texts_of_the_largest_maps_fit(cells: int, tmp_path: Path) -> None:
    """A level map of 1000 x 1000 cells is 20 MB of JSON."""
    mechanism = rewritten(square(), problem="1.2345678901234567, " * cells)
    check_identical(load(save(mechanism, tmp_path / "m.nc")), mechanism)

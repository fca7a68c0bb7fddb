"""Hostile HDF5 files: each is refused by a rule, before what it announces is allocated and without waiting."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr
from test_storage import check_identical, square, unchecked

from mechdesign.errors import SizeError, VerificationError
from mechdesign.mechanism.storage.files import load, save
from mechdesign.mechanism.storage.texts import Watched
from mechdesign.mechanism.table.dataset import seal

MB = 1 << 20
ENOUGH = 64 * MB  # more than any refusal takes, and less than any of these files announces


def chunked(file: h5py.File, name: str, shape, chunk, dtype="f8", **options):
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
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_chunk((4,))
    for _ in range(2):
        made.set_deflate(9)
    h5py.h5d.create(file.id, b"hostile", h5py.h5t.IEEE_F64LE, h5py.h5s.create_simple((4,)), made)


def one_value(shape, chunk):
    def change(file: h5py.File) -> None:
        chunked(file, "hostile", shape, chunk, compression="gzip")[(0,) * len(shape)] = 1.0

    return change


def short_chunk(file: h5py.File) -> None:
    chunked(file, "hostile", (16 * MB,), (16 * MB,), compression="gzip").id.write_direct_chunk(
        (0,), zlib.compress(b"0")
    )


def elsewhere(target: str | None):
    def change(file: h5py.File) -> None:
        file.create_dataset("hostile", (4,), "f8", external=[(target or fifo(file), 0, 32)])

    return change


def link(target: str | None):
    def change(file: h5py.File) -> None:
        file["hostile"] = h5py.ExternalLink(target or fifo(file), "/prior")

    return change


def attribute(value, dtype=None):
    return lambda file: file["prior"].attrs.create("hostile", value, dtype=dtype)


def many(count: int):
    def change(file: h5py.File) -> None:
        for k in range(count):
            file[f"hostile{k}"] = np.zeros(1)

    return change


def many_attributes(file: h5py.File) -> None:
    for k in range(65):
        file["prior"].attrs[f"hostile{k}"] = 1


def two_names(file: h5py.File) -> None:
    file["prior"].dims[0].attach_scale(file["report"])


def nameless(file: h5py.File) -> None:
    del file["prior"].attrs["DIMENSION_LIST"]


def renamed_axis(file: h5py.File) -> None:
    file["hostile"] = np.zeros(3)
    file["hostile"].make_scale()
    file["prior"].dims[0].detach_scale(file["secret"])
    file["prior"].dims[0].attach_scale(file["hostile"])


COMPOUND = np.dtype([("a", "f8"), ("b", "i4")])
HOSTILE = {
    "a soft link": (lambda f: f.__setitem__("hostile", h5py.SoftLink("/prior")), "hostile", "links"),
    "a link to a FIFO": (link(None), "hostile", "links"),
    "a link to a device": (link("/dev/zero"), "hostile", "links"),
    "a group": (lambda f: f.create_group("hostile"), "hostile", "groups"),
    "a circle of groups": (lambda f: f.__setitem__("hostile", f["/"]), "hostile", "groups"),
    "a named type": (lambda f: f.__setitem__("hostile", np.dtype("f8")), "hostile", "named types"),
    "65 arrays": (many(65), "file", "more than 64"),
    "a virtual array": (virtual, "hostile", "other files"),
    "values in a FIFO": (elsewhere(None), "hostile", "other files"),
    "values in a device": (elsewhere("/dev/zero"), "hostile", "other files"),
    "32-bit numbers": (lambda f: f.create_dataset("hostile", (4,), "i4"), "hostile", "whole numbers or doubles"),
    "texts": (lambda f: f.create_dataset("hostile", (4,), h5py.string_dtype()), "hostile", "whole numbers or doubles"),
    "lists": (lambda f: f.create_dataset("hostile", (4,), h5py.vlen_dtype("f8")), "hostile", "whole numbers"),
    "records": (lambda f: f.create_dataset("hostile", (4,), COMPOUND), "hostile", "whole numbers or doubles"),
    "opaque values": (lambda f: f.create_dataset("hostile", (4,), "V8"), "hostile", "whole numbers or doubles"),
    "references": (lambda f: f.create_dataset("hostile", (4,), h5py.ref_dtype), "hostile", "whole numbers or doubles"),
    "truth values": (lambda f: f.create_dataset("hostile", (4,), bool), "hostile", "whole numbers or doubles"),
    "three axes": (lambda f: f.create_dataset("hostile", (1, 1, 1), "f8"), "hostile", "more than two axes"),
    "no shape": (lambda f: f.create_dataset("hostile", data=h5py.Empty("f8")), "hostile", "no shape"),
    "an axis that grows": (lambda f: chunked(f, "hostile", (4,), (4,), maxshape=(None,)), "hostile", "grow"),
    "2^40 values": (one_value((1 << 40,), (1 << 20,)), "hostile", "2\\^31"),
    "deflated twice": (deflated_twice, "hostile", "filters"),
    "another filter": (lambda f: chunked(f, "hostile", (4,), (4,), compression="lzf"), "hostile", "filters"),
    "one chunk of thousands": (one_value((1 << 30,), (1 << 17,)), "hostile", "not in the file"),
    "one chunk of a square": (one_value((1 << 15, 1 << 15), (1 << 8, 1 << 8)), "hostile", "not in the file"),
    "no values": (lambda f: f.create_dataset("hostile", (1 << 30,), "f8"), "hostile", "not in the file"),
    "a chunk of 9 bytes": (short_chunk, "hostile", "unfolds"),
    "65 attributes": (many_attributes, "prior", "more than 64"),
    "a list of texts": (attribute(["x"] * 100_000, h5py.string_dtype()), "prior:hostile", "one number or one text"),
    "two numbers": (attribute([1, 2]), "prior:hostile", "one number or one text"),
    "a record": (attribute(np.zeros((), COMPOUND)), "prior:hostile", "one number or one text"),
    "a list": (attribute(np.zeros(3), None), "prior:hostile", "one number or one text"),
    "a truth value": (attribute(True), "prior:hostile", "one number or one text"),
    "nothing": (attribute(h5py.Empty("f8")), "prior:hostile", "one number or one text"),
    "70 MB of text": (attribute("x" * (70 * MB)), "attributes", "texts of more than"),
    "an axis of two names": (two_names, "DIMENSION_LIST", "several names"),
    "an axis of no name": (nameless, "prior", "axes without a name"),
    "an axis of another size": (renamed_axis, "prior", "axes without a name"),
}  # fmt: skip
ALLOCATING = {"70 MB of text"}  # the file is that large


def unmarked(path: Path, mechanism: xr.Dataset | None = None, **more: dict[str, object]) -> Path:
    """A file without the mark at its end, which may be changed."""
    given = square() if mechanism is None else mechanism
    unfilled: dict[str, dict[str, object]] = {str(name): {"_FillValue": None} for name in given.variables}
    given.to_netcdf(path, engine="h5netcdf", encoding={name: unfilled[name] | more.get(name, {}) for name in unfilled})
    return path


def hostile_file(case: str, folder: Path) -> Path:
    path = unmarked(folder / "hostile.nc")
    with h5py.File(path, "r+") as file:
        HOSTILE[case][0](file)
    return path


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_structures_are_refused_by_name(case: str, tmp_path: Path) -> None:
    path, (_, field, message) = hostile_file(case, tmp_path), HOSTILE[case]
    tracemalloc.start()
    try:
        with pytest.raises(VerificationError, match=message) as caught:
            load(path)
        assert case in ALLOCATING or tracemalloc.get_traced_memory()[1] < ENOUGH
    finally:
        tracemalloc.stop()
    assert caught.value.field == field
    assert caught.value.value is not None


LOADS = """
import resource, sys
from mechdesign.errors import VerificationError
from mechdesign.mechanism.storage.files import load
load(sys.argv[1])  # what is imported late is imported
pages = int(open("/proc/self/statm").read().split()[0])
most = pages * resource.getpagesize() + int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, (most, most))
for path in sys.argv[3:]:
    try:
        load(path)
    except VerificationError as error:
        print(error.field, flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process as Linux does")
def test_no_hostile_file_waits_or_takes_memory(tmp_path: Path) -> None:
    """In a process that may take 400 MB more than it has, the HDF5 library's memory counted."""
    paths = [hostile_file(case, tmp_path).rename(tmp_path / f"{k}.nc") for k, case in enumerate(HOSTILE)]
    paths += [edited(tmp_path, name).rename(tmp_path / f"{name}.nc") for name in EDITS]
    command = [sys.executable, "-c", LOADS, unmarked(tmp_path / "sound.nc"), 400 * MB, *paths]
    found = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120, check=False)
    wanted = [field for _, field, _ in HOSTILE.values()] + [field for _, field, _ in EDITS.values()]
    assert (found.stdout.split(), found.stderr) == (wanted, "")


def long_text(folder: Path) -> bytes:
    """A text whose attribute says that it has 4 GB: the first place that holds its length."""
    with h5py.File(folder / "sound.h5", "w") as file:
        file["a"] = np.ones(1)
        file["a"].attrs["note"] = "x" * 54_321
    return (folder / "sound.h5").read_bytes().replace(struct.pack("<I", 54_321), b"\xfe\xff\xff\xff", 1)


def shared_values(folder: Path) -> bytes:
    """Three arrays of a size that have no values, moved to where a fourth has its own."""
    size = 123_456 * 8
    with h5py.File(folder / "sound.h5", "w") as file:
        file["a"] = np.ones(123_456)
        place = struct.pack("<Q", file["a"].id.get_offset())
        for name in "bcd":
            file.create_dataset(name, (123_456,), "f8")
    nowhere, size_bytes = b"\xff" * 8, struct.pack("<Q", size)
    return (folder / "sound.h5").read_bytes().replace(nowhere + size_bytes, place + size_bytes)


def compressed_heap(folder: Path) -> bytes:
    """The header of the heap of names or attributes says that its blocks have a filter."""
    content = unmarked(folder / "sound.nc").read_bytes()
    return re.sub(rb"(FRHP\0..)\0\0", lambda found: found[1] + b"\x10\0", content, flags=re.DOTALL)


def endless_heap(folder: Path) -> bytes:
    """The first entry of the heap of texts is the free space, of no bytes: whoever walks the heap stays there."""
    with h5py.File(folder / "sound.h5", "w") as file:
        file["a"] = np.ones(1)
        file["a"].attrs["note"] = "x"
    before, heap, after = (folder / "sound.h5").read_bytes().partition(b"GCOL")
    return before + heap + after[:12] + bytes(16) + after[28:]


EDITS = {
    "a heap without an end": (endless_heap, "file", "contradicts itself"),
    "a length of 4 GB": (long_text, "attributes", "texts of more than"),
    "values counted four times": (shared_values, "file", "share"),
    "a compressed heap": (compressed_heap, "file", "compressed"),
}


def edited(folder: Path, name: str) -> Path:
    (folder / "edited.nc").write_bytes(EDITS[name][0](folder))
    return folder / "edited.nc"


@pytest.mark.parametrize("name", EDITS)
def test_edited_files_are_refused(name: str, tmp_path: Path) -> None:
    _, field, message = EDITS[name]
    with pytest.raises(VerificationError, match=message) as caught:
        load(edited(tmp_path, name))
    assert caught.value.field == field


def test_a_user_block_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "m.nc", "w", userblock_size=512):
        pass
    with pytest.raises(VerificationError, match="user block"):
        load(tmp_path / "m.nc")


def test_a_chunk_that_unfolds_to_more_than_its_size_is_read_no_further(tmp_path: Path) -> None:
    path = unmarked(tmp_path / "m.nc")
    with h5py.File(path, "r+") as file:
        made = chunked(file, "hostile", (4,), (4,), compression="gzip")
        made.dims[0].attach_scale(file["secret"])
        made.id.write_direct_chunk((0,), zlib.compress(bytes(128 * MB), 9))
    tracemalloc.start()
    with pytest.raises(VerificationError, match="damaged"):
        load(path)
    assert tracemalloc.get_traced_memory()[1] < ENOUGH
    tracemalloc.stop()


def test_arrays_that_do_not_fit_in_memory_are_refused_with_the_estimate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(square(), tmp_path / "m.nc")
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Memory", (), {"available": 1e3})())
    with pytest.raises(SizeError, match="would need"):
        load(path)


FORMS = {
    "as it is": {},
    "in one piece": {"contiguous": True},
    "shuffled": {"zlib": True, "shuffle": True, "fletcher32": True},
    "in uneven chunks": {"zlib": True, "fletcher32": True, "chunks": 5},
    "not deflated": {"chunks": 3},
    "of the other byte order": {"order": ">"},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("incompressible", [False, True])
def test_whatever_form_the_values_have_they_are_read(form: str, incompressible: bool, tmp_path: Path) -> None:
    """HDF5 leaves a filter out of the chunks that it does not make smaller."""
    options = dict(FORMS[form])
    chunk, order = options.pop("chunks", None), options.pop("order", "<")
    values = np.random.default_rng(0).random((7, 9)) if incompressible else np.ones((7, 9))
    given = seal(square().assign(note=(("a", "b"), values), empty=("none", np.zeros(0))))
    encoding = {"note": options | ({} if chunk is None else {"chunksizes": (chunk, chunk)})}
    written = given.assign(note=given["note"].astype(f"{order}f8"))
    check_identical(unchecked(unmarked(tmp_path / "m.nc", written, **encoding)), given)


def test_the_texts_of_the_largest_maps_fit(tmp_path: Path) -> None:
    """A level map of 1000 x 1000 cells is 20 MB of JSON."""
    given = seal(square().assign_attrs(problem="1.2345678901234567, " * MB))
    check_identical(load(save(given, tmp_path / "m.nc")), given)


def test_the_library_reads_what_is_looked_over(tmp_path: Path) -> None:
    path = save(square(), tmp_path / "m.nc")
    with path.open("rb") as stream:
        watched = Watched(stream)
        with h5py.File(watched, "r") as file:
            assert file["mass"].shape == (4, 4)
        content = path.read_bytes()
        assert all(piece in content for piece in watched.pieces())
        assert sum(map(len, watched.pieces())) < len(content)

"""Files that a user names: regular ones only, without waiting, and no more of them than fits in memory."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import math
import os
import struct
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse
import xarray as xr

from mechdesign.base.opening import open_lines, open_regular
from mechdesign.errors import FileFormatError, InputError, SizeError
from mechdesign.mechanism.storage.files import load
from mechdesign.setting.readers.checkins import read_checkins
from mechdesign.setting.readers.geojson import read_area
from mechdesign.setting.readers.microdata import read_microdata
from mechdesign.setting.readers.positions import read_coordinates
from mechdesign.setting.readers.raster_files import read_raster
from mechdesign.setting.readers.roads import read_roads
from mechdesign.setting.readers.table_files import read_places, read_table
from mechdesign.setting.space.domain import Domain

MB = 1 << 20
ENOUGH = 64 * MB  # more than any refusal takes, and less than any of these files announces
GRID = Domain.grid((2, 2), cell=100.0, unit="m")
READERS = {
    "mechanism": (load, "m.nc", "file"),
    **{kind: (read_table, f"t.{kind}", "table") for kind in ("csv", "npy", "mat", "bin", "parquet", "unknown")},
    "places": (read_places, "p.csv", "places"),
    "area": (read_area, "a.geojson", "area"),
    **{kind: (lambda path: read_raster(path, unit="m"), f"r.{kind}", "raster") for kind in ("asc", "nc", "tif")},
    "checkins": (lambda path: read_checkins(path, GRID, latitude=0.0, longitude=0.0), "c.txt", "checkins"),
    "packed checkins": (lambda path: read_checkins(path, GRID, latitude=0.0, longitude=0.0), "c.txt.gz", "checkins"),
    "microdata": (lambda path: read_microdata(path, value="v"), "m.csv", "microdata"),
    "coordinates": (read_coordinates, "c.csv", "coordinates"),
    "roads": (lambda path: read_roads(path, path), "n.csv", "nodes"),
}
STANDING = {
    "nothing": (lambda path: None, "no such file"),
    "a folder": (Path.mkdir, "is a folder"),
    "a FIFO": (os.mkfifo, "is no regular file"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "is no regular file"),
    "an endless device": (lambda path: path.symlink_to("/dev/urandom"), "is no regular file"),
    "a file of the system": (lambda path: path.symlink_to("/proc/self/status"), "holds more bytes than it says"),
    "a circle of links": (lambda path: path.symlink_to(path), "cannot be opened"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("standing", STANDING)
def test_only_regular_files_are_opened(reader: str, standing: str, tmp_path: Path) -> None:
    read, name, field = READERS[reader]
    make, message = STANDING[standing]
    make(tmp_path / name)
    (tmp_path / f"link {name}").symlink_to(tmp_path / name)
    for path in (tmp_path / name, tmp_path / f"link {name}"):
        with pytest.raises(FileFormatError, match=message) as caught:
            read(path)
        assert (caught.value.field, caught.value.value) == (field, str(path))


def test_names_that_no_file_has_are_refused(tmp_path: Path) -> None:
    for name in ("a\0", "x" * 300, "y/" * 3000):
        with pytest.raises(FileFormatError, match=r"no such file|cannot be opened"):
            open_regular(tmp_path / name, field="file", remedy="name a file")


def test_a_fifo_beside_a_raster_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "r.asc").write_text("ncols 1\n")
    os.mkfifo(tmp_path / "r.prj")
    with pytest.raises(FileFormatError, match="is no regular file"):
        read_raster(tmp_path / "r.asc", unit="m")


def packed_zip(data: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inner.csv", data)
    return stream.getvalue()


PACKED = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zip": packed_zip}


@pytest.mark.parametrize("suffix", PACKED)
def test_packed_files_are_read_as_they_are_and_no_further_than_the_memory(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"m.csv{suffix}"
    path.write_bytes(PACKED[suffix](b"v,w\n1,2\n3,4\n"))
    assert read_microdata(path, value="v", weight="w").values.tolist() == [1, 3]
    whole = PACKED[suffix](b"v,w\n" + b"1,2\n" * MB)
    for damaged in (whole[: len(whole) // 2], b"nothing packed"):
        path.write_bytes(damaged)
        with pytest.raises(FileFormatError, match=r"is damaged|cannot be unpacked"):
            read_microdata(path, value="v", weight="w")
    path.write_bytes(whole)
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Memory", (), {"available": 20 * MB})())
    with pytest.raises(FileFormatError, match="is too large") as caught:
        read_microdata(path, value="v", weight="w")
    assert caught.value.field == "microdata"


def test_an_archive_of_several_files_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.zip", "w") as archive:
        for name in "ab":
            archive.writestr(name, "v\n1\n")
    with pytest.raises(FileFormatError, match="2 files in it"):
        read_microdata(tmp_path / "m.zip", value="v")


def test_a_line_without_an_end_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "c.txt.gz"
    path.write_bytes(gzip.compress(b"x" * (256 * MB), 1))
    tracemalloc.start()
    with pytest.raises(FileFormatError, match="has a line of more than 4096 bytes"):
        read_checkins(path, GRID, latitude=0.0, longitude=0.0)
    assert tracemalloc.get_traced_memory()[1] < ENOUGH
    tracemalloc.stop()


def test_lines_are_counted_across_buffers(tmp_path: Path) -> None:
    text = b"".join(b"x" * k + b"\n" for k in range(0, 4000, 7)) * 20
    (tmp_path / "a.csv").write_bytes(text)
    with open_lines(tmp_path / "a.csv", field="f", remedy="r", longest=3997) as stream:
        assert stream.read() == text
    with (
        pytest.raises(FileFormatError, match="line of more than 3000"),
        open_lines(tmp_path / "a.csv", field="f", remedy="r", longest=3000) as stream,
    ):
        stream.read()


def npy(shape: str, dtype: str = "<f8", data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY" + version + struct.pack("<H", len(header)) + header + data


def matlab(content: bytes = b"", **tables: object) -> bytes:
    stream = io.BytesIO()
    scipy.io.savemat(stream, tables, do_compression=True)
    return stream.getvalue() + content


def unfolding(size: int) -> bytes:
    """An element of a MATLAB file that unfolds to a matrix of `size` bytes of zeros."""
    rows = size // 8
    inner = struct.pack("<IIIIII", 14, size + 56, 6, 8, 6, 0) + struct.pack("<IIii", 5, 8, rows, 1)
    inner += struct.pack("<HH4s", 1, 1, b"P\0\0\0") + struct.pack("<II", 9, size)
    packer = zlib.compressobj(9)
    body = packer.compress(inner)
    for _ in range(size // MB):
        body += packer.compress(bytes(MB))
    body += packer.flush()
    return struct.pack("<II", 15, len(body)) + body


def sparse_beyond() -> bytes:
    """A sparse matrix whose row numbers lie beyond it."""
    table = scipy.sparse.csc_matrix(np.eye(3))
    table.indices = table.indices + np.int32(1 << 28)
    stream = io.BytesIO()
    scipy.io.savemat(stream, {"P": table})
    return stream.getvalue()


NESTED = 60_000


def nested_cells() -> bytes:
    """Cells within cells, a thousand times deeper than any reader may call itself."""
    header = cell_header()
    depths = range(NESTED - 1, -1, -1)
    return matlab() + b"".join(struct.pack("<II", 14, 48 + depth * (8 + len(header))) + header for depth in depths)


def cell_header() -> bytes:
    return (
        struct.pack("<IIII", 6, 8, 1, 0) + struct.pack("<IIii", 5, 8, 1, 1) + struct.pack("<HHI", 1, 1, 65) + bytes(8)
    )


ARMADILLO = b"ARMA_MAT_BIN_FN008\n"
HOSTILE_TABLES = {
    "NumPy of 20 GB": ("t.npy", npy("(50000, 50000)"), FileFormatError, "header announces 50000 x 50000"),
    "NumPy that wraps": ("t.npy", npy("(4294967296, 4294967296)"), FileFormatError, "header announces"),
    "NumPy below zero": ("t.npy", npy("(-1, -1)", data=bytes(8)), FileFormatError, "matrix of real numbers"),
    "NumPy of objects": ("t.npy", npy("(1, 1)", "|O", bytes(8)), FileFormatError, "matrix of real numbers"),
    "NumPy of texts": ("t.npy", npy("(1, 1)", "<U2", bytes(8)), FileFormatError, "matrix of real numbers"),
    "NumPy of nothing": ("t.npy", npy("(1000000, 1000000)", "|V0"), FileFormatError, "matrix of real numbers"),
    "NumPy, longer": ("t.npy", npy("(1, 1)", data=bytes(16)), FileFormatError, "header announces 1 x 1"),
    "NumPy of version 9": ("t.npy", npy("(1, 1)", data=bytes(8), version=b"\x09\x00"), FileFormatError, "version"),
    "NumPy of a long header": ("t.npy", npy("(" + "1," * 20_000 + ")"), FileFormatError, "cannot be read"),
    "an archive": ("t.npy", packed_zip(b"x"), FileFormatError, "cannot be read"),
    "Armadillo that wraps": ("t.bin", ARMADILLO + b"4294967296 4294967296\n", FileFormatError, "header announces"),
    "Armadillo below zero": ("t.bin", ARMADILLO + b"-1 -1\n" + bytes(8), FileFormatError, "cannot be read"),
    "Armadillo, longer": ("t.bin", ARMADILLO + b"1 1\n" + bytes(16), FileFormatError, "header announces 1 x 1"),
    "Armadillo, wide digits": ("t.bin", ARMADILLO + "\uff11 1\n".encode() + bytes(8), FileFormatError, "cannot be"),
    "Armadillo of one line": ("t.bin", b"x" * MB, FileFormatError, "is not an Armadillo matrix"),
    "MATLAB, sparse and far": ("t.mat", sparse_beyond(), FileFormatError, "cannot be read"),
    "MATLAB cells in cells": ("t.mat", nested_cells(), FileFormatError, "which variable"),
    "MATLAB cut short": ("t.mat", matlab(P=np.eye(30))[:-9], FileFormatError, "cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE_TABLES)
def test_hostile_tables_are_refused(case: str, tmp_path: Path) -> None:
    name, content, error, message = HOSTILE_TABLES[case]
    (tmp_path / name).write_bytes(content)
    tracemalloc.start()
    with pytest.raises(error, match=message) as caught:
        read_table(tmp_path / name)
    assert tracemalloc.get_traced_memory()[1] < ENOUGH
    tracemalloc.stop()
    assert caught.value.value is not None


def test_tables_that_do_not_fit_are_refused_before_they_are_allocated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 20 MB free, files that hold, or unfold to, 32 MB."""
    (tmp_path / "t.npy").write_bytes(npy("(2, 2097152)", data=bytes(32 * MB)))
    (tmp_path / "t.bin").write_bytes(ARMADILLO + b"2 2097152\n" + bytes(32 * MB))
    (tmp_path / "t.mat").write_bytes(matlab(unfolding(32 * MB)))
    (tmp_path / "s.mat").write_bytes(matlab(P=scipy.sparse.csc_matrix(([1.0], ([0], [0])), shape=(1 << 14, 1 << 14))))
    (tmp_path / "t.csv").write_bytes(b"1,1\n" * MB)
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Memory", (), {"available": 20 * MB})())
    tracemalloc.start()
    for name in ("t.npy", "t.bin", "t.mat", "s.mat", "t.csv"):
        with pytest.raises(SizeError) as caught:
            read_table(tmp_path / name)
        assert caught.value.value is not None
    assert tracemalloc.get_traced_memory()[1] < ENOUGH
    tracemalloc.stop()


def test_a_matlab_table_is_found_among_other_things(tmp_path: Path) -> None:
    table = np.array([[0.25, 0.75], [0.5, 0.5]])
    things = {"P": table, "note": "text", "more": {"a": 1}, "list": np.array([1, "x"], object)}
    scipy.io.savemat(tmp_path / "t.mat", things, do_compression=True)
    assert read_table(tmp_path / "t.mat").tolist() == table.tolist()
    scipy.io.savemat(tmp_path / "four.mat", {"P": table}, format="4")
    assert read_table(tmp_path / "four.mat").tolist() == table.tolist()


def parquet_file(path: Path, table: dict[str, object], **options: object) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    parquet.write_table(pyarrow.table(table), path, **options)


def test_parquet_files_that_repeat_themselves_take_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 rows of one label of 10 kB, in a file of less; the label is kept once."""
    rows, label = 20_000, "x" * 10_000
    parquet_file(tmp_path / "t.parquet", {"secret": [label] * rows, "report": range(rows), "mass": [1] * rows})
    assert (tmp_path / "t.parquet").stat().st_size < 2 * MB
    tracemalloc.start()
    assert read_table(tmp_path / "t.parquet").shape == (1, rows)
    assert tracemalloc.get_traced_memory()[1] < ENOUGH
    tracemalloc.stop()
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Memory", (), {"available": MB})())
    with pytest.raises(SizeError, match="would need"):
        read_table(tmp_path / "t.parquet")


def test_parquet_columns_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    for column in (["a"], [[1.0]], [b"12345678"]):
        parquet_file(tmp_path / "t.parquet", {"p": column, "q": [1.0]})
        with pytest.raises(FileFormatError, match="matrix of real numbers"):
            read_table(tmp_path / "t.parquet")


NO_NUMBERS = [
    "\uff11",
    "\u0663",
    "1_0",
    "infinity",
    "inf",
    "nan",
    "-nan",
    "0x1",
    "1e",
    "",
    "1 0",
    "1,5e3,",
    "+-1",
    "\u00b2",
]


@pytest.mark.parametrize("word", NO_NUMBERS)
def test_numbers_are_plain(word: str, tmp_path: Path) -> None:
    for name, text in {
        "last.csv": f"0.5;0.5\n0.5;{word}\n",
        "first.csv": f"{word};0.5\n0.5;0.5\n",
        "row.csv": f"{word};{word}\n0.5;x\n",
        "long.csv": f"secret;report;probability\n0;0;{word}\n",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match="is not a number"):
            read_table(tmp_path / name)


def test_exponents_and_signs_are_plain_numbers(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("1e-3,+.5\n5.,1E+2\n")
    assert read_table(tmp_path / "t.csv").tolist() == [[1e-3, 0.5], [5, 100]]


@pytest.mark.parametrize(
    "label", ["\uff11", "\u0663", "1_0", "99999999999", "9" * 30, "-1", "1.0", "nan", "\u00b2", "home"]
)
@pytest.mark.parametrize("column", [0, 1])
def test_place_numbers_are_plain_and_have_no_gap(label: str, column: int, tmp_path: Path) -> None:
    pairs = [["0", "0"], ["0", "0"]]
    pairs[1][column] = label
    lines = "".join(f"{u},{y},1\n" for u, y in pairs)
    (tmp_path / "t.csv").write_text("secret,report,mass\n" + lines, encoding="utf-8")
    tracemalloc.start()
    with pytest.raises(InputError, match=r"whole numbers from 0|without a gap") as caught:
        read_table(tmp_path / "t.csv")
    assert tracemalloc.get_traced_memory()[1] < ENOUGH
    tracemalloc.stop()
    assert caught.value.field == ("secret", "report")[column]


@pytest.mark.parametrize("position", ['"1"', '"\uff11"', "true", "null", "[1]", "1" + "0" * 400, "NaN", "1e999"])
def test_positions_are_numbers(position: str, tmp_path: Path) -> None:
    ring = f"[[0,0],[{position},0],[1,1],[0,0]]"
    (tmp_path / "a.geojson").write_text(f'{{"type": "Polygon", "coordinates": [{ring}]}}')
    with pytest.raises(FileFormatError, match="no GeoJSON of polygons"):
        read_area(tmp_path / "a.geojson")


@pytest.mark.parametrize("word", ["\uff11", "1_0"])
def test_values_of_text_rasters_are_plain(word: str, tmp_path: Path) -> None:
    for text in (f"ncols 2\nnrows 1\nxllcorner 0\nyllcorner 0\ncellsize 1\n{word} 1\n", f"ncols {word}\n"):
        (tmp_path / "r.asc").write_text(text, encoding="utf-8")
        with pytest.raises(FileFormatError, match="cannot be read"):
            read_raster(tmp_path / "r.asc", unit="m")


def raster(path: Path, **variables: object) -> Path:
    axes = {"x": ("x", [0.0, 1.0], {"units": "m"}), "y": ("y", [0.0, 1.0], {"units": "m"})}
    xr.Dataset({"density": (("y", "x"), np.ones((2, 2)))}, coords=axes).to_netcdf(path, engine="h5netcdf")
    return path


def test_rasters_hold_their_own_values(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "waits")
    layout = h5py.VirtualLayout((2, 2), "f8")
    layout[:] = h5py.VirtualSource(tmp_path / "waits", "density", (2, 2))
    for change in (
        lambda file: file.__setitem__("other", h5py.ExternalLink(tmp_path / "waits", "/density")),
        lambda file: file.__setitem__("other", h5py.SoftLink("/density")),
        lambda file: file.create_virtual_dataset("other", layout),
        lambda file: file.create_dataset("other", (2, 2), "f8", external=[(tmp_path / "waits", 0, 32)]),
    ):
        with h5py.File(raster(tmp_path / "r.nc"), "r+") as file:
            change(file)
        with pytest.raises(FileFormatError, match="other files"):
            read_raster(tmp_path / "r.nc", unit="m", variable="density")


def test_rasters_that_do_not_fit_are_refused_before_they_are_read(tmp_path: Path) -> None:
    """A file of a few kB that announces 8 TB, and one whose axis does."""
    side = 1 << 20
    for name, shape in (("density", (side, side)), ("x", (1 << 40,))):
        with h5py.File(tmp_path / "r.nc", "w") as file:
            for axis in "xy":
                file.create_dataset(axis, shape[:1], "f8", chunks=(1 << 10,))
                file[axis].make_scale(axis)
            made = file.create_dataset("density", (shape[0], shape[0]), "f8", chunks=(1 << 10, 1 << 10))
            for k, axis in enumerate("yx"):
                made.dims[k].attach_scale(file[axis])
        with pytest.raises(SizeError, match="would need"):
            read_raster(tmp_path / "r.nc", unit="m")
        assert math.prod(shape) > 0, name

"""Untrusted files must be regular and are opened without waiting; readers report errors in one sentence."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import socket
import zipfile
from pathlib import Path

import numpy as np
import pytest

import mechdesign as md
from mechdesign import load
from mechdesign.base.files import open_regular, read_bytes
from mechdesign.errors import FileFormatError, InputError, SizeError
from mechdesign.problem.columns import number_column
from mechdesign.problem.problem_files import read_problem_file
from mechdesign.problem.text import read_frame
from mechdesign.surveys import read_reports

GRID = md.Domain.grid((2, 2), cell=100.0, unit="m")
READERS = {
    **{kind: (md.read.table, f"t.{kind}", "table") for kind in ("csv", "npy", "parquet")},
    "places": (md.read.places, "p.csv", "places"),
    "area": (md.geo.read_area, "a.geojson", "area"),
    **{kind: (lambda path: md.read.raster(path, unit="m"), f"r.{kind}", "raster") for kind in ("asc", "nc", "tif")},
    "checkins": (
        lambda path: read_problem_file("paris").module.read_checkins(path, GRID, latitude=0.0, longitude=0.0),
        "c.txt",
        "checkins",
    ),
    "roads": (lambda path: md.geo.read_roads(path, path), "n.csv", "nodes"),
    "reports": (lambda path: read_reports(path, {"ab" * 32: GRID}), "r.csv", "reports"),
    "areas": (lambda path: md.geo.read_areas(path, GRID), "a.csv", "areas"),
}


def make_irregular(folder: Path, kind: str) -> Path:
    """Make a path that is not a regular file."""
    path = folder / "m.nc"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
    elif kind == "circle":
        path.symlink_to(path)
    elif kind != "nothing":
        path.symlink_to({"device": "/dev/zero", "empty device": "/dev/null", "proc": "/proc/self/status"}[kind])
    return path


@pytest.mark.parametrize("kind", ["nothing", "folder", "fifo", "socket", "device", "empty device", "proc", "circle"])
@pytest.mark.obligation("file-bounds")
def test_irregular_files_are_refused(kind: str, tmp_path: Path) -> None:
    path = make_irregular(tmp_path, kind)
    (tmp_path / "link.nc").symlink_to(path)
    for target in (path, tmp_path / "link.nc"):
        with pytest.raises(FileFormatError, match=r"no such file|cannot be|is a folder|is not a regular|has content"):
            load(target)


def test_invalid_file_names_are_refused(tmp_path: Path) -> None:
    for name in ("a\0", "x" * 300, "y/" * 3000):
        with pytest.raises(FileFormatError, match=r"no such file|cannot be opened"):
            open_regular(tmp_path / name, field="file", remedy="name a file")


@pytest.mark.obligation("file-bounds")
def test_reading_stops_at_limit_and_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.nc"
    path.write_bytes(b"x" * 100)
    with open_regular(path, field="file", remedy="") as stream:
        assert read_bytes(stream, path, field="file", limit=100, expansion=2) == b"x" * 100
    with open_regular(path, field="file", remedy="") as stream, pytest.raises(FileFormatError, match="too large"):
        read_bytes(stream, path, field="file", limit=99, expansion=2)
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Memory", (), {"available": 200})())
    with open_regular(path, field="file", remedy="") as stream, pytest.raises(SizeError, match="would need"):
        read_bytes(stream, path, field="file", limit=100, expansion=2)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("content", [None, "folder", b"", b"\xff\xfe\x00nothing"])
def test_readers_name_the_file_and_the_reason(reader: str, content: bytes | str | None, tmp_path: Path) -> None:
    read, name, field = READERS[reader]
    path = tmp_path / name
    if content == "folder":
        path.mkdir()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    with pytest.raises(FileFormatError) as caught:
        read(path)
    assert (caught.value.field, caught.value.exit_code) == (field, 2)
    assert content is not None or "no such file" in caught.value.message


def packed_zip(data: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inner.csv", data)
    return stream.getvalue()


PACKED = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zip": packed_zip}


@pytest.mark.parametrize("suffix", PACKED)
def test_packed_files_are_read_and_damaged_ones_refused(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"m.csv{suffix}"
    whole = PACKED[suffix](b"V, w\n1,2\n3,4\n" + b"5,6\n" * 1000)
    path.write_bytes(whole)
    assert number_column(read_frame(path, "data"), ("v",), "data").tolist() == [1, 3] + [5] * 1000
    for damaged in (whole[: len(whole) // 2], b"nothing packed"):
        path.write_bytes(damaged)
        with pytest.raises(FileFormatError, match="cannot be read"):
            read_frame(path, "data")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_lines_are_numbered_from_the_first_of_the_file(end: str, mark: str, tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text(
        f"{mark}# made by hand\nv,Name\n1,Z\u00fcrich\n\nx,b\n".replace("\n", end), encoding="utf-8", newline=""
    )
    frame = read_frame(path, "data")
    assert frame["name"].tolist()[0] == "Z\u00fcrich"
    with pytest.raises(InputError, match=r"v must be a finite number \(got x in line 5\)"):
        number_column(frame, ("v",), "data")
    with pytest.raises(FileFormatError, match=r"has no column named w or u \(got v, name\)"):
        number_column(frame, ("w", "u"), "data")


def test_other_encodings_are_refused_in_used_columns(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_bytes("v,name\n1,Z\u00fcrich\n".encode("latin-1"))
    with pytest.raises(FileFormatError, match="can't decode"):
        read_frame(path, "data")
    assert number_column(read_frame(path, "data", encoding_errors="replace"), ("v",), "data").tolist() == [1.0]


def test_only_nonempty_unnamed_fields_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text("v,w\n1,2,\n3,4,\n")
    assert number_column(read_frame(path, "data"), ("w",), "data").tolist() == [2, 4]
    path.write_text("v,w\n0,1,2\n1,3,4\n")
    with pytest.raises(FileFormatError, match=r"a header of one name less .* \(got v,w\)"):
        read_frame(path, "data")
    path.write_text("v,w\n1,2\n3,4,5\n")
    with pytest.raises(FileFormatError, match=r"has fields without a name \(got v, w\)"):
        read_frame(path, "data")


def test_truncated_npy_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.npy"
    np.save(path, np.full((2, 2), 0.5))
    assert md.read.table(path).tolist() == [[0.5, 0.5], [0.5, 0.5]]
    with path.open("wb") as stream:
        header = {"descr": "<f8", "fortran_order": False, "shape": (2, 10**14)}
        np.lib.format.write_array_header_1_0(stream, header)
        stream.write(bytes(32))
    with pytest.raises(FileFormatError, match="greater than file size"):
        md.read.table(path)

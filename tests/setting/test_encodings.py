"""CSV files in other encodings: numbers are read, names refused with their line, in every reader of CSV files."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import mechdesign as md
from mechdesign.base.opening import open_lines
from mechdesign.errors import FileFormatError

NUMBERS = "city,latitude,longitude,population\nZ\u00fcrich,47.4,8.5,3\nBern,46.9,7.4,1\n"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_numbers_beside_words_of_any_encoding(tmp_path: Path, end: str, encoding: str) -> None:
    path = tmp_path / "p.csv"
    path.write_bytes(NUMBERS.replace("\n", end).encode(encoding))
    assert md.read.microdata(path, value="population").values.tolist() == [3.0, 1.0]
    assert len(md.read.positions(path).points) == 2


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_lines_that_end_with_cr_alone(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"p.csv{suffix}"
    for text, lines in (("a\rb\r", 2), ("a\r\nb\rc\r\n", 2), ("a\nb\rc", 2), ("a\r", 1)):
        content = text.encode()
        path.write_bytes(gzip.compress(content) if suffix else content)
        with open_lines(path, field="file", remedy="") as stream:
            assert len(list(stream)) == lines, text


def test_a_table_and_streets_name_the_line(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("a,b\n0.5,0.5\n\u00fc,1\n".encode("latin-1"))
    with pytest.raises(FileFormatError, match=r"is not UTF-8 text \(got .*line 3\); save it as CSV UTF-8"):
        md.read.table(tmp_path / "t.csv")
    (tmp_path / "n.csv").write_bytes("id,x,y\na,0,0\nb,1,0\n\u00fc,2,0\n".encode("latin-1"))
    (tmp_path / "e.csv").write_text("u,v,length\na,b,1\n")
    with pytest.raises(FileFormatError, match=r"is not UTF-8 text \(got .*line 4\); save it as CSV UTF-8"):
        md.read.roads(tmp_path / "n.csv", tmp_path / "e.csv", unit="m")


def test_utf_16_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_bytes(NUMBERS.encode("utf-16"))
    with pytest.raises(FileFormatError, match="UTF-16"):
        md.read.microdata(tmp_path / "p.csv", value="population")

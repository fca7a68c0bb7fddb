"""The verifier on a terminal: the meaning of lengths, control characters in files, and paths that are not files."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fixtures.export_mechanisms import Forgery, exportable, reseal_json
from reference.checking import ROW_SUM

import mechdesign as md
from mechdesign.verification import verify_table

FULL = Path("/dev/full")


def command(arguments, **given):
    """The verifier run by Python alone."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    words = [sys.executable, "-S", verify_table.__file__, *arguments]
    return subprocess.run(words, check=False, timeout=60, **{**pipes, **given})


def with_lengths(folder, *lengths):
    """A JSON export with three secrets in a row, all masses alike, whose claim is its list of two edges."""
    forged = Forgery(
        said=Forgery.of(md.export(exportable("graph"), folder / "g.csv")).said,
        secrets=[["0.0"], ["1.0"], ["2.0"]],
        reports=[["0.0"]],
        edges=[f'[{u}, {u + 1}, "{length.hex()}"]' for u, length in enumerate(lengths)],
        masses=[[str(ROW_SUM)]] * 3,
    )
    return str(forged.agree().write(folder / "t.json"))


@pytest.mark.parametrize(
    "lengths", [(0.125, 0.5), (5e-324, 1.0), (math.log(2), 0.0), (128.0, 128.0), (129.0, 690.0), (1e-300, 1.7e308)]
)
def test_lengths_are_printed_with_their_meaning(tmp_path, capsys, lengths):
    assert verify_table.main([with_lengths(tmp_path, *lengths)]) == 0
    printed = capsys.readouterr().out
    low, high = sorted(lengths)
    assert f"lengths:  {low!r} to {high!r} nats: " in printed
    assert f" changes odds by e^{high!r} at most\n" in printed
    assert printed.count("the longest edge protects nothing") == (high > verify_table.LONGEST)


def test_file_texts_cannot_control_the_terminal(tmp_path, capsys):
    wild = "".join(map(chr, [*range(32), *range(127, 160), 0x61C, *range(0x200B, 0x2010), *range(0x2028, 0x202F)]))
    wild += "\u2066\u2069\ufeff\ud800\U000e0041"
    for suffix in ("csv", "json"):
        forged = Forgery.of(md.export(exportable("line"), tmp_path / "g.csv", overwrite=True))
        forged.said["program"] = json.dumps(wild + "\nproved:   all of it")
        assert verify_table.main([str(forged.write(tmp_path / f"t.{suffix}"))]) == 0
        lines = capsys.readouterr().out.split("\n")
        assert all(line.isprintable() for line in lines)
        assert [line[:7] for line in lines].count("proved:") == 1
        assert "program:  \\x00\\x01" in lines[3]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8", "utf-16"])
def test_any_terminal_will_do(tmp_path, encoding):
    forged = Forgery.of(md.export(exportable("line"), tmp_path / "g.csv"))
    forged.said["program"] = json.dumps("caf\u00e9 \u4e2d \ud800")
    path = forged.write(tmp_path / "t\u00e9\u4e2d.json")
    done = command([str(path)], env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"})
    assert (done.returncode, done.stderr) == (0, b"")
    assert "\nproved:" in done.stdout.decode(encoding).replace("\r", "")
    assert "\\ud800" in done.stdout.decode(encoding)


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_full_terminal_fails_the_verifier(tmp_path):
    path = md.export(exportable("line"), tmp_path / "t.csv")
    with FULL.open("wb") as full:
        done = command([str(path)], stdout=full)
    assert (done.returncode, done.stderr) == (2, b"")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_only_regular_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "pipe.json").symlink_to(tmp_path / "pipe.csv")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    with (tmp_path / "large.csv").open("wb") as stream:
        stream.truncate(verify_table.MOST_BYTES + 1)
    names = [
        "pipe.csv",
        "folder.json",
        "pipe.json",
        "zero.csv",
        "loop.csv",
        "large.csv",
        "n" * 300 + ".csv",
        "a\nb.csv",
    ]
    for name in [*names, "\udcff.json"]:
        done = command([os.fsencode(tmp_path / name)])
        assert (done.returncode, done.stderr) == (2, b"")
        assert done.stdout.startswith(b"error: ")
        assert done.stdout.count(b"\n") == 1


@pytest.mark.parametrize("data", [b"", b"\n", b"\n\n", b"#", b"{}", b"\x00" * 5000, b"\xff\xfe\n", b"[" * 10**6])
@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_files_of_anything_end_in_a_line(tmp_path, capsys, data, suffix):
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(data)
    beside = path.with_name(f"{path.name}-metadata.json") if suffix == "csv" else path
    for content in (data, reseal_json(data + b'\n"')):
        beside.write_bytes(content)
        assert verify_table.main([str(path)]) in (1, 2)
        assert capsys.readouterr().out.count("\n") == 1

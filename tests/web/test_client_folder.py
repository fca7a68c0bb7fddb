"""`mechdesign client`: a folder that is whole or not there, of mechanisms that verify, and what it says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from fixtures.clients import DEVICE, TOWN, mechanism, taken_apart
from fixtures.export_mechanisms import exponentially, with_mass
from fixtures.session_designs import design_with_rule

import mechdesign as md
from mechdesign import save
from mechdesign.web import client as folders
from mechdesign.web import packed as packing
from mechdesign.web import write_client


def file_names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


def test_client_command_prints_sizes(tmp_path, run, run_json) -> None:
    file = save(mechanism("park"), tmp_path / "park.nc")
    code, told = run_json("export", file, "-o", tmp_path / "web")
    assert code == 0
    assert set(told["bytes"]) == folders.NAMES - folders.REGION == set(file_names(tmp_path / "web"))
    assert all((tmp_path / "web" / name).stat().st_size == size > 100 for name, size in told["bytes"].items())
    assert file_names(tmp_path) == ["park.nc", "web"]
    code, _, err = run("export", file, "-o", tmp_path / "web")
    assert code == 2
    assert "exists already" in err
    code, _, err = run("export", file, "-o", tmp_path / "web", "--overwrite")
    assert code == 0
    assert "open index.html" in err
    assert file_names(tmp_path) == ["park.nc", "web"]


def test_the_same_mechanism_gives_the_same_bytes(tmp_path) -> None:
    first, again = (write_client(mechanism("town"), tmp_path / name) for name in ("a", "b"))
    assert [(first / name).read_bytes() for name in file_names(first)] == [
        (again / name).read_bytes() for name in file_names(again)
    ]


@pytest.mark.parametrize("name", ["town", "holes", "network", "apart"])
def test_a_table_is_smaller_than_its_masses_and_holds_them(tmp_path, name) -> None:
    given = mechanism(name)
    table = (write_client(given, tmp_path / "web") / "report.bin").read_bytes()
    header, body = taken_apart(table)
    n, m = given["mass"].shape
    planes = np.frombuffer(body[-8 * n * m :], np.uint8).reshape(8, n * m).T.copy()
    assert (given["mass"].values == planes.view("<u8").reshape(m, n).T).all()
    assert (header["cells"], header["reports"], header["mechanism"]) == (n, m, given.attrs["sha256"])
    assert header["claim"] == given.attrs["claim"]
    assert len(table) < given["mass"].nbytes + 3000  # the header


def test_factors_hold_their_whole_numbers(tmp_path) -> None:
    given = mechanism("factored")
    header, body = taken_apart((write_client(given, tmp_path / "web") / "report.bin").read_bytes())
    units = np.frombuffer(body[-2 * header["edges"] :], np.uint8).reshape(2, -1).T.copy().view("<u2")[:, 0]
    assert sorted(np.cumsum(units, dtype=np.uint16)) == sorted(given["edge_units"].values)
    assert header["cap"] == given.attrs["cap"]
    assert 2**61 <= int(header["ratio"]) < 2**62


def test_columns_hold_their_generators(tmp_path, monkeypatch) -> None:
    given = mechanism("columns")
    header, body = taken_apart((write_client(given, tmp_path / "web") / "report.bin").read_bytes())
    c, g = given.sizes["column"], given.sizes["generator"]
    assert (header["columns"], header["generators"], header["places"]) == (c, g, given.sizes["place"])
    planes = [np.frombuffer(body[a : len(body) - b], np.uint8) for a, b in ((-4 * c - 6 * g, 6 * g), (-6 * g, 2 * g))]
    first, place = (np.cumsum(plane.reshape(4, -1).T.copy().view("<u4"), dtype=np.uint32) for plane in planes)
    assert np.array_equal(first, given["first_generator"].values)
    assert np.array_equal(place, given["generator_place"].values)
    offset = np.frombuffer(body[-2 * g :], np.uint8).reshape(2, -1).T.copy().view("<u2")[:, 0]
    assert np.array_equal(offset, given["generator_offset"].values)
    for name, most in (("MOST_COLUMNS", c - 1), ("MOST_GENERATORS", g - 1)):
        with monkeypatch.context() as patched:
            patched.setattr(packing, name, most)
            with pytest.raises(md.errors.SizeError, match="too many"):
                write_client(given, tmp_path / "web", overwrite=True)


def test_unverified_mechanism_is_refused(tmp_path, run) -> None:
    mass = mechanism("park")["mass"].values.copy()
    mass[0, 0], mass[0, 1] = mass[0, 1], mass[0, 0]
    file = save(with_mass(mechanism("park"), mass), tmp_path / "wrong.nc")
    code, out, err = run("export", file, "-o", tmp_path / "web")
    assert code == 1
    assert out == ""
    assert "mass" in err
    assert file_names(tmp_path) == ["wrong.nc"]


def test_folders_of_others_stay_as_they_are(tmp_path) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "report.bin").write_text("old")
    (tmp_path / "web" / "mine.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "web")
    (tmp_path / "nested").mkdir()
    (tmp_path / "nested" / "report.js").mkdir()
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "report.js").symlink_to(tmp_path / "file")
    refusals = {
        "web": "other files.*web: mine.txt", "file": "is a file", "link": "is a link",
        "nested": "other files.*nested: report.js", "linked": "other files.*linked: report.js",
    }  # fmt: skip
    for name, said in refusals.items():
        with pytest.raises(md.errors.InputError, match=said):
            write_client(mechanism("park"), tmp_path / name, overwrite=True)
    with pytest.raises(md.errors.InputError, match="no such folder"):
        write_client(mechanism("park"), tmp_path / "missing" / "web")
    assert (tmp_path / "web" / "mine.txt").read_text() == "mine"
    assert file_names(tmp_path) == ["file", "link", "linked", "nested", "web"]


@pytest.mark.parametrize("step", ["fsync", "replace first", "replace second"])
def test_a_failure_leaves_the_old_folder(tmp_path, monkeypatch, step) -> None:
    target = write_client(mechanism("park"), tmp_path / "web")
    before = (target / "report.bin").read_bytes()
    moved = []

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    whole = Path.replace

    def replace(source: Path, to: Path) -> Path:
        moved.append(to)
        if len(moved) == {"replace first": 1, "replace second": 2}[step]:
            refuse()
        return whole(source, to)

    with monkeypatch.context() as patched:
        if step == "fsync":
            patched.setattr("mechdesign.web.client.os.fsync", refuse)
        else:
            patched.setattr(Path, "replace", replace)
        with pytest.raises(md.errors.FileFormatError, match="No space left"):
            write_client(mechanism("town"), target, overwrite=True)
    assert (target / "report.bin").read_bytes() == before
    assert file_names(tmp_path) == ["web"]


def test_too_many_masses_are_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(packing, "MOST_MASSES", 80)
    with pytest.raises(md.errors.SizeError, match="too many masses"):
        write_client(mechanism("park"), tmp_path / "web")
    monkeypatch.setattr(packing, "MOST_PLACES", 15)
    with pytest.raises(md.errors.SizeError, match="too many places"):
        write_client(mechanism("factored"), tmp_path / "web")
    assert file_names(tmp_path) == []


def test_the_promise_is_that_of_the_one_maker_of_sentences(tmp_path) -> None:
    """Of cells without a radius: the largest ratio in rows of cells that touch, found here by NumPy, rounded up."""
    loose = exponentially(TOWN, md.Euclidean(epsilon=0.004, unit="m"))
    header, _ = taken_apart((write_client(loose, tmp_path / "web") / "report.bin").read_bytes())
    apart = np.abs(TOWN.index[:, None] - TOWN.index[None]).max(axis=2)
    rows = loose["mass"].values.astype(float)
    largest = max((rows[u] / rows[v]).max() for u, v in np.argwhere(apart == 1))
    shown = f"{np.ceil(largest * 1000) / 1000:.4g}"
    said = header["about"]["promise"]
    assert said.startswith(
        "Protects cells of 150 m, not positions: between two people however close, one report changes"
    )
    assert f"the odds by a factor of up to {shown}. A report is correct with probability" in said
    readme = (tmp_path / "web" / "README.md").read_text()
    assert said in readme
    assert loose.attrs["claim"] in readme
    assert "$" not in readme


def test_modules_are_joined_without_imports() -> None:
    text = folders.join_modules("home.mjs")
    lines = text.splitlines()
    assert not [line for line in lines if line.startswith(("import ", "export "))]
    names = [line.split("(")[0].split()[-1] for line in lines if line.startswith(("function ", "async function "))]
    names += [line.split()[1] for line in lines if line.startswith(("const ", "class "))]
    assert len(names) == len(set(names)) > 50


def test_nothing_handed_over_asks_for_another_place(tmp_path) -> None:
    folder = write_client(mechanism("park"), tmp_path / "web")
    texts = {name: (folder / name).read_text() for name in folders.NAMES - folders.REGION - {"report.bin"}}
    assert [name for name, text in texts.items() if "http://" in text or "https://" in text] == []


def test_names_of_packages_and_sizes() -> None:
    names = [folders.package_name(name) for name in ("box", "Rome: 200 m", "../x", "", "é")]
    assert names == ["box-reports", "rome-200-m-reports", "x-reports", "reports", "reports"]
    assert [packing.size_words(size) for size in (999, 1608203, 283000, 12345, 10_500_000)] == [
        "1.00 kB",
        "1.61 MB",
        "283 kB",
        "12.3 kB",
        "10.5 MB",
    ]
    assert b"TABLE" in (DEVICE / "embedded.mjs").read_bytes()


def test_the_command_takes_a_session_design(tmp_path, run, run_json) -> None:
    file = md.sessions.save_design(design_with_rule("clock"), tmp_path / "day.json")
    code, told = run_json("export", file, "-o", tmp_path / "web")
    assert (code, set(told["bytes"])) == (0, folders.NAMES - folders.REGION - {"index.html"})
    readme = (tmp_path / "web" / "README.md").read_text()
    assert design_with_rule("clock").claim in readme
    assert "$" not in readme
    code, _, err = run("export", file, "-o", tmp_path / "web", "--overwrite")
    assert code == 0
    assert "README.md says how" in err
    code, _, err = run("export", tmp_path / "day-0.nc", "-o", tmp_path / "web", "--overwrite")
    assert (code, set(file_names(tmp_path / "web"))) == (0, folders.NAMES - folders.REGION)
    changed = json.loads(file.read_text())
    changed["ticks"] = 4
    file.write_text(json.dumps(changed))
    code, told = run_json("export", file, "-o", tmp_path / "other")
    assert code == 1
    assert told["error"]["kind"] == "verification"
    assert (tmp_path / "other").exists() is False

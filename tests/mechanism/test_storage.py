"""Storage: files come back unchanged, are written whole or not at all, and are refused if damaged."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr
from fixtures.forged_files import rewritten
from fixtures.interruption_points import SOURCE

import mechdesign
from mechdesign import DesignProblem, Domain, Euclidean, Graph, baselines, load, save
from mechdesign.errors import FileFormatError, InputError, VerificationError
from mechdesign.losses import Distance, TableLoss
from mechdesign.mechanism import storage
from mechdesign.mechanism.build import Extras, build_dataset
from mechdesign.mechanism.hashing import content_digest
from mechdesign.mechanism.schema import TABLE_SCHEMA

MARK = 49  # bytes behind the NetCDF content: the mark and a SHA-256


@cache
def _square() -> xr.Dataset:
    domain = Domain.grid((2, 2), cell=0.1, unit="km")
    prior = np.array([0.1, 0.2, 0.3, 0.4])
    problem = DesignProblem(
        domain=domain, metric=Euclidean(epsilon=3.0, unit="km"), prior=prior, loss=Distance(), parameters={"side": 2}
    )
    mass = baselines.exponential(problem)["mass"].values
    return build_dataset(problem, mass, program="test", extras=Extras(dual=prior / 3, lower_bound=0.0, stopped="gap"))


@cache
def _graph() -> xr.Dataset:
    metric = Graph(tail=[0, 1], head=[1, 2], length=[0.3, 1e-7])
    loss = TableLoss(values=np.random.default_rng(0).random((3, 2)))
    reports = Domain.points_at([0.5, 1.5], unit="1")
    problem = DesignProblem(domain=Domain.nodes(3), metric=metric, prior=np.full(3, 1 / 3), loss=loss, reports=reports)
    return baselines.exponential(problem)


def square() -> xr.Dataset:
    """A table of four cells; a new Dataset each time, which may be changed."""
    return _square().copy(deep=True)


def graph() -> xr.Dataset:
    """A table of three nodes, as `square`."""
    return _graph().copy(deep=True)


MAKERS = pytest.mark.parametrize("make", [square, graph])


@cache
def saved_bytes(make: Callable[[], xr.Dataset]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return save(make(), Path(folder) / "m.nc").read_bytes()


@pytest.fixture
def saved_path(tmp_path: Path) -> Path:
    """A file as `save` leaves it."""
    path = tmp_path / "m.nc"
    path.write_bytes(saved_bytes(square))
    return path


def read_unchecked(path: Path) -> xr.Dataset:
    """The Dataset of a file with the variables of a table, without a check of values."""
    with path.open("rb") as stream:
        return rewritten(storage.read_netcdf(stream, TABLE_SCHEMA, noun="a mechanism"))


def check_identical(loaded: xr.Dataset, mechanism: xr.Dataset) -> None:
    assert set(loaded.variables) == set(mechanism.variables)
    assert set(loaded.coords) == set(mechanism.coords)
    assert loaded.attrs == mechanism.attrs
    for name, variable in mechanism.variables.items():
        other = loaded.variables[name]
        assert (other.dims, other.dtype, other.attrs) == (variable.dims, variable.dtype, variable.attrs), name
        assert other.values.tobytes() == variable.values.tobytes(), name


@MAKERS
def test_saved_mechanism_comes_back(make, tmp_path: Path) -> None:
    mechanism = make()
    assert save(mechanism, str(tmp_path / "m.nc")) == tmp_path / "m.nc"
    check_identical(load(tmp_path / "m.nc"), mechanism)


@MAKERS
def test_the_file_is_plain_hdf5_without_fill_values(make, tmp_path: Path) -> None:
    mechanism = make()
    with h5py.File(save(mechanism, tmp_path / "m.nc")) as file:
        for name, variable in mechanism.variables.items():
            assert file[name].dtype == variable.dtype
            assert file[name].compression == "gzip"
            assert not {"_FillValue", "missing_value", "scale_factor", "add_offset"} & set(file[name].attrs)
        assert file["mass"][()].tolist() == mechanism["mass"].values.tolist()


def test_the_file_has_the_permissions_of_any_other(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    assert stat.S_IMODE(save(square(), tmp_path / "m.nc").stat().st_mode) == stat.S_IMODE(
        (tmp_path / "other").stat().st_mode
    )


def test_invalid_targets_are_refused(saved_path: Path, tmp_path: Path) -> None:
    before = saved_path.read_bytes()
    for target, message, overwrite in [
        (saved_path, "exists already", False),
        (tmp_path / "nowhere" / "m.nc", "no such folder", True),
        (tmp_path, "is a folder", True),
    ]:
        with pytest.raises(InputError, match=message) as caught:
            save(graph(), target, overwrite=overwrite)
        assert caught.value.field == "output"
    assert saved_path.read_bytes() == before
    check_identical(load(save(graph(), saved_path, overwrite=True)), graph())


def bind_socket(path: Path) -> None:
    """A socket; its name must be short."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(path))


OBSTACLES = {
    "a link to a file": (lambda path: path.symlink_to("other.nc"), "is a link"),
    "a link to nothing": (lambda path: path.symlink_to("nowhere"), "is a link"),
    "a link to a folder": (lambda path: path.symlink_to("."), "is a link"),
    "a link to a device": (lambda path: path.symlink_to("/dev/null"), "is a link"),
    "a circle of links": (lambda path: path.symlink_to(path), "is a link"),
    "a FIFO": (os.mkfifo, "is not a regular file"),
    "a socket": (bind_socket, "is not a regular file"),
    "a folder": (Path.mkdir, "is a folder"),
}


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_only_regular_files_are_replaced(obstacle: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    target, (make, message) = tmp_path / "m.nc", OBSTACLES[obstacle]
    (tmp_path / "other.nc").write_bytes(content := b"an older file")
    make(target)
    before = target.lstat()

    def fail_if_called(temporary: Path) -> None:
        raise AssertionError("is not written")

    for attempt in (
        lambda: save(square(), target, overwrite=True),
        lambda: storage.write_atomically(target, fail_if_called),
    ):
        with pytest.raises(InputError, match=message) as caught:
            attempt()
        assert (caught.value.field, caught.value.value) == ("output", str(target))
    assert os.path.samestat(target.lstat(), before)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.nc", "other.nc"]
    assert (tmp_path / "other.nc").read_bytes() == content


def test_target_created_while_writing_is_kept(tmp_path: Path) -> None:
    target = tmp_path / "m.nc"
    with pytest.raises(InputError, match="is not a regular file"):
        storage.write_atomically(target, lambda temporary: os.mkfifo(target))
    assert [path.name for path in tmp_path.iterdir()] == ["m.nc"]


LONGEST = 255 - len(".") - len(".12345678.part")
NAMES = {
    "300 characters": ("x" * 297 + ".nc", "too long"),
    "one byte too long": ("x" * (LONGEST - 2) + ".nc", "too long"),
    "too long in UTF-8": ("é" * 150 + ".nc", "too long"),
    "not UTF-8": ("\udcff.nc", r"surrogates not allowed\) \(got .*\\udcff\.nc\)"),
    "a folder that is not UTF-8": ("\udcff/m.nc", "surrogates not allowed"),
    "a zero byte": ("a\0.nc", "null"),
    "a file for a folder": ("other.nc/m.nc", "no such folder"),
    "a long path": ("x/" * 3000 + "m.nc", "too long|no such folder"),
    "a long folder": ("x" * 300 + "/m.nc", "too long"),
    "nothing": ("", "is a folder"),
    "the folder above": ("..", "is a folder"),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("overwrite", [True, False])
def test_invalid_target_names_are_refused(
    name: str, overwrite: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.nc").touch()
    with pytest.raises(InputError, match=NAMES[name][1]) as caught:
        storage.check_target(NAMES[name][0], overwrite=overwrite)
    assert caught.value.field == "output"
    str(caught.value).encode()
    assert [path.name for path in tmp_path.iterdir()] == ["other.nc"]


def test_the_longest_name_is_written(tmp_path: Path) -> None:
    target = save(square(), tmp_path / ("x" * (LONGEST - 3) + ".nc"))
    check_identical(load(save(graph(), target, overwrite=True)), graph())


def test_unwritable_folder_is_refused_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "mkstemp", refusing)
    with pytest.raises(InputError, match="cannot be written to"):
        storage.check_target(tmp_path / "m.nc")


def half_written(error: BaseException):
    def write(dataset: xr.Dataset, path: Path) -> None:
        path.write_bytes(b"\x89HDF\r\n\x1a\n and then")
        raise error

    return write


def refusing(*args: object, **options: object) -> None:
    raise PermissionError(13, "Permission denied")


FAILURES = {
    "the disk is full": (storage, "write_netcdf", half_written(OSError(28, "No space left")), FileFormatError),
    "the library fails": (storage, "write_netcdf", half_written(RuntimeError("HDF error")), RuntimeError),
    "interrupted": (storage, "write_netcdf", half_written(KeyboardInterrupt()), KeyboardInterrupt),
    "no renaming": (os, "replace", refusing, FileFormatError),
    "no flushing": (os, "fsync", refusing, FileFormatError),
    "a folder one may only read": (tempfile, "mkstemp", refusing, InputError),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("present", [True, False])
def test_a_failure_leaves_the_old_file_and_no_other(
    failure: str, present: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, mechanism = tmp_path / "m.nc", square()
    if present:
        target.write_bytes(saved_bytes(graph))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    owner, name, replacement, error = FAILURES[failure]
    monkeypatch.setattr(owner, name, replacement)
    with pytest.raises(error) as caught:
        save(mechanism, target, overwrite=True)
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    if error is FileFormatError:
        assert str(target) in str(caught.value)


@pytest.mark.parametrize("fraction", [0.0, 0.0001, 0.01, 0.25, 0.5, 0.75, 0.9, 0.99])
def test_a_file_cut_short_is_refused(fraction: float, saved_path: Path) -> None:
    content = saved_path.read_bytes()
    saved_path.write_bytes(content[: int(fraction * len(content))])
    with pytest.raises(VerificationError, match="damaged"):
        load(saved_path)


@pytest.mark.parametrize("lost", [1, MARK - 1, MARK, MARK + 1])
def test_the_mark_may_not_be_lost(lost: int, saved_path: Path) -> None:
    saved_path.write_bytes(saved_path.read_bytes()[:-lost])
    with pytest.raises(VerificationError, match="damaged"):
        load(saved_path)


@pytest.mark.parametrize("count", [120, pytest.param(20_000, marks=pytest.mark.exhaustive)])
def test_no_flipped_bit_is_read(count: int, saved_path: Path) -> None:
    content = saved_path.read_bytes()
    anywhere = np.random.default_rng(0).integers(8 * len(content), size=count).tolist()
    in_the_mark = range(8 * (len(content) - MARK), 8 * len(content), 16)
    for bit in [*anywhere, *in_the_mark]:
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        saved_path.write_bytes(damaged)
        with pytest.raises(VerificationError, match="damaged"):
            load(saved_path)


def one_more(name: str):
    def change(mechanism: xr.Dataset) -> xr.Dataset:
        values = mechanism[name].values.copy()
        values.flat[0] = values.flat[0] + 1 if values.dtype.kind in "iu" else np.nextafter(values.flat[0], np.inf)
        return mechanism.assign({name: (mechanism[name].dims, values, mechanism[name].attrs)})

    return change


CHANGES = {
    **{f"{name}: one unit or ulp": one_more(name) for name in square().variables},
    **{f"without {name}": lambda m, name=name: m.drop_vars(name) for name in square().variables},
    **{
        f"attribute {name}": lambda m, name=name: m.assign_attrs({name: "other"})
        for name in square().attrs
        if name != "sha256"
    },
    "another type": lambda m: m.assign(edge_tail=m["edge_tail"].astype(np.uint32)),
    "turned": lambda m: m.assign(mass=(("report", "secret"), m["mass"].values, m["mass"].attrs)),
    "another unit": lambda m: m.assign(prior=m["prior"].assign_attrs(units="%")),
    "a further attribute": lambda m: m.assign_attrs(note="x"),
    "a further variable": lambda m: m.assign(note=("secret", np.zeros(4))),
    "a coordinate no more": lambda m: m.reset_coords("secret_x"),
    "an integer for a float": lambda m: m.assign_attrs(lower_bound=0),
}


@pytest.mark.parametrize("change", CHANGES)
def test_another_content_has_another_name(change: str) -> None:
    changed = CHANGES[change](square())
    assert content_digest(changed) != square().attrs["sha256"]


def test_file_and_folder_are_flushed_to_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda handle: flushed.append(os.fstat(handle).st_ino))
    path = save(square(), tmp_path / "m.nc")
    assert flushed == [path.stat().st_ino, tmp_path.stat().st_ino]


def test_other_datasets_are_not_saved(tmp_path: Path) -> None:
    for foreign in (xr.Dataset(), square().drop_vars("mass"), square().assign_attrs(schema="CF-1.8")):
        with pytest.raises((InputError, VerificationError)):
            save(foreign, tmp_path / "m.nc")
    assert list(tmp_path.iterdir()) == []


def test_files_do_not_name_their_contents(tmp_path: Path) -> None:
    """The name in memory is computed from the content, whatever a Dataset or file states."""
    path = save(square().assign_attrs(sha256="0" * 64), tmp_path / "m.nc")
    with h5py.File(path) as file:
        assert "sha256" not in file.attrs
    check_identical(load(path), square())


@pytest.mark.parametrize("attribute", ["_FillValue", "missing_value", "scale_factor", "add_offset"])
def test_packed_integers_are_refused(attribute: str, tmp_path: Path) -> None:
    packed = square()
    packed["mass"].attrs[attribute] = 1
    storage.write_dataset(packed, tmp_path / "m.nc")
    with pytest.raises(VerificationError, match="mass: has invalid attributes"):
        load(tmp_path / "m.nc")


@pytest.mark.parametrize(
    "content", [b"", b"x", b"secret,report\n1,2\n" * 99, b"\x89HDF\r\n\x1a\n" + bytes(999), b"CDF\x01"]
)
def test_other_files_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.nc").write_bytes(content)
    with pytest.raises(VerificationError, match="damaged"):
        load(tmp_path / "m.nc")


def test_other_netcdf_files_and_missing_ones_are_refused(tmp_path: Path) -> None:
    xr.Dataset({"a": ("x", np.arange(3))}).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    with pytest.raises(VerificationError, match="damaged"):
        load(tmp_path / "a.nc")
    storage.append_mark(tmp_path / "a.nc")
    with pytest.raises(VerificationError, match="schema"):
        load(tmp_path / "a.nc")
    storage.write_dataset(square().assign_attrs(schema="mechdesign/mechanism/0"), tmp_path / "old.nc")
    with pytest.raises(VerificationError, match=f"of this schema, written by mechdesign {mechdesign.__version__}"):
        load(tmp_path / "old.nc")
    for path, message in ((tmp_path / "b.nc", "no such file"), (tmp_path, "is a folder")):
        with pytest.raises(InputError, match=message) as caught:
            load(path)
        assert caught.value.field == "file"


WRITER = f"""
import os, signal
{SOURCE}
from mechdesign.mechanism.hdf5 import read_netcdf
from mechdesign.mechanism.storage import load, save
from mechdesign.base.atomic_write import check_target, write_atomically
versions = [load(path) for path in sys.argv[2:4]]
save(versions[0], sys.argv[2], overwrite=True)  # imports the modules that are imported late
events = events_of(lambda: save(versions[1], sys.argv[1], overwrite=True))
at_event(1 + int(float(sys.argv[4]) * events), lambda: os.kill(os.getpid(), signal.SIGKILL))
while True:
    for version in versions:
        save(version, sys.argv[1], overwrite=True)
"""


@pytest.mark.exhaustive
def test_killed_writer_leaves_a_complete_file(tmp_path: Path) -> None:
    """SIGKILL at a random call of writing over a file: the one version or the other is there, whole."""
    target, sources = tmp_path / "m.nc", [tmp_path / "0.nc", tmp_path / "1.nc"]
    versions = [square(), rewritten(square(), problem="another")]
    for path, version in zip(sources, versions, strict=True):
        save(version, path)
    save(versions[0], target)
    rng, seen = np.random.default_rng(0), set()
    for _ in range(200):
        command = [sys.executable, "-c", WRITER, *map(str, (target, *sources, rng.uniform(0, 2)))]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        loaded = load(target)
        seen.add(loaded.attrs["problem"])
        check_identical(loaded, versions[loaded.attrs["problem"] == "another"])
    assert len(seen) == 2

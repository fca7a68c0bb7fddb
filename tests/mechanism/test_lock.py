"""One lock for ledgers and work folders: one holder at a time, freed when its process ends."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from mechdesign.base.lock import hold_lock
from mechdesign.errors import InputError

refusing = partial(hold_lock, field="work")
waiting = partial(hold_lock, field="budget", wait=True)
BOTH = pytest.mark.parametrize("hold", [refusing, waiting], ids=["refusing", "waiting"])

HOLD = """
import signal, sys, pathlib
from mechdesign.base.lock import hold_lock
with hold_lock(pathlib.Path(sys.argv[1]), field="", wait=bool(sys.argv[2])):
    print("held", flush=True)
    signal.pause()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def start_holder(path: Path, *, wait: bool) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLD, str(path), "yes" if wait else ""]
    other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    return other


@pytest.mark.obligation("budget-paid-once")
def test_lock_is_exclusive_and_freed_by_a_kill(path: Path) -> None:
    with start_holder(path, wait=False) as other:
        try:
            with pytest.raises(InputError, match=f"in use by process {other.pid} on .*wait for it"), refusing(path):
                pass
            assert path.exists()
        finally:
            os.kill(other.pid, signal.SIGKILL)
    assert json.loads(path.read_text())["process"] == other.pid
    with refusing(path):
        assert json.loads(path.read_text())["process"] == os.getpid()
        with pytest.raises(InputError, match=f"in use by process {os.getpid()}"), refusing(path):
            pass
    assert not path.exists()


def test_a_waiter_comes_after_the_holder_and_its_file_stays(path: Path) -> None:
    entered = threading.Event()

    def enter() -> None:
        with waiting(path):
            entered.set()

    with start_holder(path, wait=True) as other:
        waiter = threading.Thread(target=enter)
        waiter.start()
        assert not entered.wait(0.1)
        os.kill(other.pid, signal.SIGKILL)
        assert entered.wait(30)
    waiter.join()
    assert path.read_bytes() == b""
    assert path.stat().st_mode & 0o777 == 0o600


def test_threads_take_turns(path: Path) -> None:
    inside: list[int] = []
    holders: list[int] = []

    def enter() -> None:
        for _ in range(50):
            with waiting(path):
                inside.append(1)
                holders.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(holders), max(holders)) == (200, 1)


def test_the_lock_of_another_machine_is_left_alone(path: Path) -> None:
    path.write_text('{"process": 1, "machine": "elsewhere"}')
    with pytest.raises(InputError, match=f"process 1 on elsewhere.*if it has ended, delete {path}"), refusing(path):
        pass
    path.unlink()
    with refusing(path):
        pass


NO_HOLDER = ["", "{", "[1]", "[" * 4000, "\udcff"] + [
    f'{{"process": {process}, "machine": "{machine}"}}'
    for process, machine in [("1e999", "m"), ("true", "m"), ("0", "m"), ("9" * 20, "m"), ("1", "\\u001b[2J")]
]


@pytest.mark.parametrize("text", NO_HOLDER)
def test_lock_without_holder_is_free(path: Path, text: str) -> None:
    path.write_bytes(text.encode(errors="surrogateescape"))
    with refusing(path):
        pass
    assert not path.exists()


def test_process_id_decides_without_system_locks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with refusing(path), pytest.raises(InputError, match="in use"), refusing(path):
        pass
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with refusing(path):
        content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"process": gone.pid}))
    with refusing(path):
        pass
    with pytest.raises(InputError, match="has no locks"), waiting(path):
        pass


@BOTH
@pytest.mark.parametrize("kind", ["symbolic link", "hard link", "link to nothing", "FIFO", "folder"])
def test_a_lock_file_is_a_file_of_its_own(path: Path, hold, kind: str) -> None:
    other = path.parent / "precious"
    if kind != "link to nothing":
        other.write_text("precious")
    {
        "symbolic link": lambda: path.symlink_to(other),
        "hard link": lambda: path.hardlink_to(other),
        "link to nothing": lambda: path.symlink_to(other),
        "FIFO": lambda: os.mkfifo(path),
        "folder": path.mkdir,
    }[kind]()
    with pytest.raises(InputError, match=f"is not a lock file|cannot be locked.*{re.escape(str(path))}"), hold(path):
        pass
    assert os.path.lexists(path)
    assert not other.exists() if kind == "link to nothing" else other.read_text() == "precious"


@BOTH
def test_removed_lock_file_is_recreated(path, hold, monkeypatch) -> None:
    real, taken = fcntl.flock, []

    def late(handle: int, operation: int) -> None:
        if not taken:
            path.unlink()
        taken.append(os.fstat(handle).st_ino)
        real(handle, operation)

    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", late)
        with hold(path):
            assert path.stat().st_ino == taken[1]
    assert len(taken) == 3


@BOTH
def test_the_file_of_a_later_holder_is_not_removed(path: Path, hold) -> None:
    with hold(path):
        path.unlink()
        path.write_text("later")
    assert path.read_text() == "later"


FORKING = """
import os, signal, sys, pathlib
from mechdesign.base.lock import hold_lock
path = pathlib.Path(sys.argv[1])
with hold_lock(path, field="", wait=True):
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
with hold_lock(path, field="", wait=True):
    os.kill(child, 9)
"""


def test_released_lock_is_not_kept_by_a_fork(path: Path) -> None:
    subprocess.run([sys.executable, "-c", FORKING, path], timeout=30, check=True)

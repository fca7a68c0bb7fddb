"""The factored design on a dask cluster: the bits of the local run, whatever happens to its workers."""

from __future__ import annotations

import contextlib
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest
from conftest import ROOT
from fixtures.rows import few_by_default

from mechdesign import EikonalWeights, load_problem
from mechdesign.errors import InputError, SolverError
from mechdesign.factored import cluster
from mechdesign.factored.design import solve_factored
from mechdesign.factored.options import FactoredOptions
from mechdesign.factored.work_folder import BlockedWork, Folder, in_order

distributed = pytest.importorskip("distributed", reason="needs the extra: pip install 'mechdesign[distributed]'")

ROUNDS, BLOCK = 6, 128  # on 20 x 20 cells: four blocks a pass


@pytest.fixture(scope="module")
def program():
    return EikonalWeights(problem=load_problem("philadelphia", cells=20))


@pytest.fixture(scope="module")
def local(program):
    return solve_factored(program, FactoredOptions(rounds=ROUNDS), block=BLOCK)


@pytest.fixture(scope="module")
def address(request):
    """The scheduler of a cluster of two workers: threads, or processes that are started again when they die."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=request.param, dashboard_address=":0", silence_logs=60
    ) as started:
        yield started.scheduler_address


ON_PROCESSES = pytest.mark.parametrize("address", [pytest.param(True, marks=pytest.mark.exhaustive)], indirect=True)
ON_THREADS = pytest.mark.parametrize("address", [False], indirect=True)


@pytest.fixture
def client(address):
    with distributed.Client(address, set_as_default=False) as connected:
        connected.wait_for_workers(2, timeout=60)
        yield connected


def rows(state, start, stop):
    """Rows and the process that made them; fails at a row, or kills its process there, once or always."""
    mark = state["marks"] / str(start)
    if state.get("kill") == start and (state.get("always") or not mark.exists()):
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if state.get("fail") == start:
        raise ValueError("no such thing")
    return {"rows": state["values"][start:stop] * 2.0, "worker": np.array([os.getpid()])}


def blocked_work(work, state):
    return BlockedWork(work=work, state=state, total=800, block=100, name="pass")


def run(address, state, after=lambda start: None, work=rows):
    """The processes that computed rows; `after` is called with the first row of every block."""
    found = []
    with (
        cluster.workers(address) as executor,
        contextlib.closing(in_order(executor, blocked_work(work, state), folder=Folder())) as blocks,
    ):
        for start, stop, arrays in blocks:
            assert (start, stop) == (100 * len(found), 100 * len(found) + 100)
            found.append(arrays)
            after(start)
    assert np.concatenate([arrays["rows"] for arrays in found]).tobytes() == (state["values"] * 2).tobytes()
    return {int(arrays["worker"][0]) for arrays in found}


def worker_keys(client):
    """The keys of the data in the memory of every worker."""
    return client.run(lambda dask_worker: list(dask_worker.data)).values()


QUERIES = 2_000  # of the keys of all workers: each is a message and its answer


def check_empty(client):
    for _ in range(QUERIES):  # workers free their data a few messages later
        if not any(worker_keys(client)):
            return
    raise AssertionError(worker_keys(client))


@pytest.fixture
def state(tmp_path):
    return {"values": np.random.default_rng(0).random(800), "marks": tmp_path}


@ON_PROCESSES
def test_cluster_gives_bits_of_threads_and_frees_memory(program, local, address, client):
    before = {thread.name for thread in threading.enumerate()}
    found = solve_factored(program, FactoredOptions(rounds=ROUNDS, scheduler=address), block=BLOCK)
    assert found.attrs == local.attrs
    for name, variable in local.variables.items():
        assert found[name].values.tobytes() == variable.values.tobytes(), name
    assert {thread.name for thread in threading.enumerate()} - before <= {"Dask-Offload_0"}
    check_empty(client)


@ON_THREADS
def test_interrupted_run_resumes_on_cluster_with_same_bits(program, local, address, tmp_path):
    states = []

    def interrupt(state):
        states.append(state)
        if len(states) == 7:
            raise KeyboardInterrupt

    options = {"rounds": ROUNDS, "work": tmp_path / "work"}
    elsewhere = FactoredOptions(**options, scheduler=address)
    stopped = solve_factored(program, elsewhere, block=BLOCK, on_progress=interrupt)
    assert stopped.attrs["stopped"] == "interrupt"
    assert (tmp_path / "work" / "round 2 of 6 from 0.block").exists()
    assert solve_factored(program, FactoredOptions(**options), block=BLOCK).attrs == local.attrs


@ON_THREADS
def test_cluster_holds_one_state_and_blocks_ahead(address, client, state):
    def check(start):
        for keys in worker_keys(client):
            assert sum(key.startswith("loads") for key in keys) <= 1
            assert not [key for key in keys if not key.startswith(("loads", "compute"))]

    run(address, state, check)


@ON_THREADS
def test_cluster_frees_memory_after_failed_pass(address, client, state):
    with cluster.workers(address) as executor:
        with pytest.raises(SolverError, match=r"ValueError: no such thing.*pass, rows 300 to 399") as caught:
            list(in_order(executor, blocked_work(rows, state | {"fail": 300}), folder=Folder()))
        check_empty(client)
    assert caught.traceback is not None


@ON_PROCESSES
def test_cluster_uses_all_workers(address, client, state):
    assert run(address, state) == set(client.run(os.getpid).values())


@ON_PROCESSES
def test_dead_worker_block_is_recomputed(address, client, state):
    run(address, state | {"kill": 300})
    assert (state["marks"] / "300").exists()


@ON_PROCESSES
def test_state_is_recomputed_if_all_workers_die(address, client, state):
    before = set(client.run(os.getpid).values())

    def kill(start):
        if start == 100:
            for process in before:
                os.kill(process, signal.SIGKILL)

    run(address, state, kill)
    client.wait_for_workers(2)
    assert not before & set(client.run(os.getpid).values())


@ON_PROCESSES
def test_block_that_kills_workers_is_abandoned(address, client, state):
    with pytest.raises(SolverError, match=r"killed its worker \(got rows 300 to 399\); give them more"):
        run(address, state | {"kill": 300, "always": True})
    client.wait_for_workers(2)
    run(address, state)


HERE = cluster.versions_here()
OTHER = HERE | {"mechdesign": "9.9"}
REFUSED = rf"different versions from the client \(got mechdesign {HERE['mechdesign']}\); .* install mechdesign==9\.9 "


@ON_PROCESSES
def test_worker_with_other_versions_is_refused(address, client, state, monkeypatch):
    monkeypatch.setattr(cluster, "versions_here", lambda: OTHER)
    with pytest.raises(InputError, match=REFUSED):
        run(address, state)


def test_late_worker_with_other_version_is_refused(state):
    with pytest.raises(InputError, match=REFUSED):
        cluster.compute(rows, state, 0, 100, OTHER)


@ON_PROCESSES
def test_worker_without_package_is_refused(address, client, tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text("def check_versions(versions): pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    import only_here

    monkeypatch.setattr(cluster, "check_versions", only_here.check_versions)
    with (
        pytest.raises(InputError, match=r"a worker cannot compute.*only_here.*pip install mechdesign==") as caught,
        cluster.workers(address),
    ):
        pass
    assert caught.value.value == address


@pytest.fixture
def silent():
    """The address of a port that accepts connections and sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def babbling():
    """The address of a port that answers every connection with something else."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            while True:
                try:
                    connection = server.accept()[0]
                except OSError:
                    return
                with connection:
                    connection.recv(10)
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


@pytest.mark.parametrize(
    "where",
    few_by_default(
        ["tcp://127.0.0.1:9", "nonsense", "foo://x:1", "", "silent", "babbling"], "nonsense", "", "babbling"
    ),
)
def test_address_without_scheduler_is_refused(where, request, monkeypatch, capfd, tmp_path):
    monkeypatch.setattr(cluster, "WAIT", 0.3)
    where = request.getfixturevalue(where) if where in ("silent", "babbling") else where
    words = ["solve", "flat", "--program", "eikonal", "--method", "factored", "--work", str(tmp_path / "work")]
    monkeypatch.setattr(sys, "argv", ["mechdesign", *words])
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", where)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("mechdesign", run_name="__main__")
    message = capfd.readouterr().err
    assert ended.value.code == 2
    assert message.startswith("error: scheduler: no scheduler answers")
    assert message.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.exhaustive
def test_scheduler_without_workers_is_refused(monkeypatch):
    monkeypatch.setattr(cluster, "WAIT", 1.0)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=60) as empty,
        pytest.raises(InputError, match=r"has no workers.*dask worker"),
        cluster.workers(empty.scheduler_address),
    ):
        pass


def test_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(InputError, match=r"pip install 'mechdesign\[distributed\]'"),
        cluster.workers("tcp://127.0.0.1:9"),
    ):
        pass


@contextlib.contextmanager
def command(*words):
    """A dask command line in a process of its own."""
    path = os.pathsep.join([str(ROOT / "tests"), *sys.path])
    with subprocess.Popen(
        [sys.executable, "-m", "dask", *words], stderr=subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": path}
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def separate(tmp_path):
    """The processes of a scheduler and of its worker, which is not started again, and the address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        where = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    scheduler = command("scheduler", "--host", where, "--no-dashboard")
    worker = command("worker", where, "--nthreads", "1", "--no-nanny", "--no-dashboard")
    with scheduler as first, worker as second:
        yield first, second, where


def slow(state, start, stop):
    if start > 100:  # until its process is killed
        threading.Event().wait()
    return rows(state, start, stop)


@pytest.mark.exhaustive
def test_run_ends_if_no_worker_returns(separate, state, monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 0.5)
    _, worker, where = separate

    def end(start):
        if start == 100:
            worker.kill()

    message = r"no workers are left \(got rows \d+ to \d+\).*run it again with the same work=FOLDER"
    with pytest.raises(SolverError, match=message):
        run(where, state, end, work=slow)


WORK = ("philadelphia, eikonal: round ", "philadelphia, eikonal, ")  # of progress
PRINTS_STATE = """
from mechdesign.cli.main import main
from mechdesign.factored.work_folder import Folder
write = Folder.write
def write_and_print(folder, name, arrays):
    write(folder, name, arrays)
    if name == "state":
        print(name, flush=True)
Folder.write = write_and_print
main()
"""


@pytest.mark.exhaustive
def test_lost_scheduler_ends_program_with_one_line(separate, tmp_path):
    scheduler, _, where = separate
    words = ["solve", "philadelphia", "--program", "eikonal", "--method", "factored", "--cells", "60"]
    rest = ["--rounds", "1000", "--work", str(tmp_path / "work")]
    environment = {**os.environ, "DASK_SCHEDULER_ADDRESS": where}
    with subprocess.Popen(
        [sys.executable, "-c", PRINTS_STATE, *words, *rest], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=environment,
    ) as ran:  # fmt: skip
        assert ran.stdout.readline() == "state\n"
        scheduler.kill()
        *lines, last = ran.stderr.read().splitlines()
    assert [line for line in lines if not line.startswith(WORK)] == []
    assert last.startswith("error: scheduler: the scheduler stopped (got rows ")
    assert ran.returncode == 1
    assert (tmp_path / "work" / "state.block").exists()

"""A factored design on a cluster of processes, one of which is killed on the way: the same bits as on threads.

python scripts/cluster.py [--cells 60] [--rounds 8] [--workers 2]

Prints seconds, blocks that were begun twice, and whether every bit is that of the local run. Needs dask.distributed:
pip install 'mechdesign[distributed]'.
"""

import argparse
import os
import signal
import time
from collections import Counter

from distributed import Client, LocalCluster
from distributed.diagnostics.plugin import SchedulerPlugin

import mechdesign as md


class Begun(SchedulerPlugin, Counter[str]):
    """How often each task was given to a worker."""

    def transition(self, key, start, finish, *_, **__):  # type: ignore[no-untyped-def]
        """Called by the scheduler for every change of a task."""
        self[key] += finish == "processing"


def main() -> None:
    """Solve on threads, then on a cluster that loses a worker, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    program, begun, told = md.EikonalWeights(problem=md.load_problem("philadelphia", cells=given.cells)), Begun(), []

    def solved(where: str, scheduler=None, on_progress=None):  # type: ignore[no-untyped-def]
        started = time.monotonic()
        options = md.factored.FactoredOptions(rounds=given.rounds, scheduler=scheduler)
        mechanism = md.solve(program, method="factored", options=options, on_progress=on_progress)
        print(f"{where}: {time.monotonic() - started:.1f} s, sha256 {mechanism.attrs['sha256'][:16]}")
        return mechanism.attrs["sha256"]

    def kill(state: object) -> None:
        told.append(state)
        if len(told) == 3:
            os.kill(process, signal.SIGKILL)

    local = solved("threads")
    with LocalCluster(given.workers, threads_per_worker=1, dashboard_address=":0", silence_logs=60) as cluster:
        with Client(cluster, set_as_default=False) as client:
            process = next(iter(client.run(os.getpid).values()))
        solved(f"{given.workers} processes", scheduler=cluster.scheduler_address)
        cluster.scheduler.add_plugin(begun)
        found = solved("the same, one killed", scheduler=cluster.scheduler_address, on_progress=kill)
    print(f"tasks begun again: {sum(begun.values()) - len(begun)} of {len(begun)}")
    print("every bit is that of the local run" if found == local else "THE BITS DIFFER")


if __name__ == "__main__":
    main()

"""Solve one factored design on threads and on a cluster that loses a process, and compare the bits.

python scripts/cluster.py [--cells 60] [--rounds 8] [--workers 2]

Prints the seconds of each run, the number of tasks that ran twice, and whether the results are bit-identical. Needs
dask.distributed: pip install 'mechdesign[distributed]'.
"""

import argparse
import os
import signal
import time
from collections import Counter

from distributed import Client, LocalCluster
from distributed.diagnostics.plugin import SchedulerPlugin

import mechdesign as md


class TaskStarts(SchedulerPlugin, Counter[str]):
    """Counts how often each task starts on a worker."""

    def transition(self, key, start, finish, *_, **__):  # type: ignore[no-untyped-def]
        """Count a start; the scheduler calls this for every change of a task."""
        self[key] += finish == "processing"


def main() -> None:
    """Solve on threads, on a cluster, and on a cluster that loses a worker; compare the last with the first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    program = md.EikonalWeights(problem=md.load_problem("philadelphia", cells=options.cells))
    starts, progress = TaskStarts(), []

    def solve_and_print(place: str, scheduler=None, on_progress=None):  # type: ignore[no-untyped-def]
        started = time.monotonic()
        factored = md.factored.FactoredOptions(rounds=options.rounds, scheduler=scheduler)
        mechanism = md.solve(program, method="factored", options=factored, on_progress=on_progress)
        print(f"{place}: {time.monotonic() - started:.1f} s, sha256 {mechanism.attrs['sha256'][:16]}")
        return mechanism.attrs["sha256"]

    def kill_at_third_progress(state: object) -> None:
        progress.append(state)
        if len(progress) == 3:
            os.kill(worker, signal.SIGKILL)

    local = solve_and_print("threads")
    with LocalCluster(options.workers, threads_per_worker=1, dashboard_address=":0", silence_logs=60) as cluster:
        with Client(cluster, set_as_default=False) as client:
            worker = next(iter(client.run(os.getpid).values()))
        solve_and_print(f"{options.workers} processes", scheduler=cluster.scheduler_address)
        cluster.scheduler.add_plugin(starts)
        restarted = solve_and_print(
            f"{options.workers} processes, one killed",
            scheduler=cluster.scheduler_address,
            on_progress=kill_at_third_progress,
        )
    print(f"tasks that ran twice: {sum(starts.values()) - len(starts)} of {len(starts)}")
    print("the results are bit-identical" if restarted == local else "THE BITS DIFFER")


if __name__ == "__main__":
    main()

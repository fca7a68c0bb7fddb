"""Times routes to one answer in turn, in one process, and prints their ratios: seconds are noisy, ratios less so."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

Route = Callable[[], float]


def paired(title: str, routes: dict[str, Route], *, repeats: int, agree: float) -> None:
    """Run the routes alternately `repeats` times after one run to warm up; the first route is the baseline.

    Each route returns its answer; answers further apart than `agree`, relative to the baseline's, end the program.
    Prints seconds (least and median) and the median over rounds of baseline / route: above 1 is faster.
    """
    answers = {name: route() for name, route in routes.items()}
    baseline, expected = next(iter(answers.items()))
    for name, answer in answers.items():
        if not abs(answer - expected) <= agree * abs(expected):
            raise SystemExit(f"{title}: {name} says {answer!r}, {baseline} says {expected!r}")
    seconds = np.empty((repeats, len(routes)))
    for round_ in range(repeats):
        for k, route in enumerate(routes.values()):
            started = time.perf_counter()
            route()
            seconds[round_, k] = time.perf_counter() - started
    table = Table("route", "answer", "least s", "median s", f"{baseline} / route", title=title, title_justify="left")
    for k, name in enumerate(routes):
        ratio = float(np.median(seconds[:, 0] / seconds[:, k]))
        times = f"{seconds[:, k].min():.3f}", f"{np.median(seconds[:, k]):.3f}"
        table.add_row(name, f"{answers[name]:.8g}", *times, f"{ratio:.1f}")
    Console(width=100).print(table)

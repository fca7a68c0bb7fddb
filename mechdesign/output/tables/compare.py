"""compare: the programs and the closed forms on one problem, one row each."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypedDict

import xarray as xr

from mechdesign.base.memory import require_memory
from mechdesign.closed_forms.mechanisms import constant, exponential, geometric, planar_laplace, randomized_response
from mechdesign.errors import InputError, SizeError, UnsuitableError
from mechdesign.mechanism.storage.files import check_target, write_atomically
from mechdesign.mechanism.table.dataset import relative_gap
from mechdesign.output.tables.matched import matched_makers, smallest_epsilon
from mechdesign.programs.eikonal.query_weights import QueryWeights
from mechdesign.programs.eikonal.weights import EikonalWeights
from mechdesign.programs.optimal.optimal import Optimal
from mechdesign.programs.statistical.dual_sobolev_norm import LARGEST
from mechdesign.setting.metric.shortest_paths import check_connected
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.solve import TABLES, check_targets, solve
from mechdesign.utility.loss.loss import constant_loss, expected_distance
from mechdesign.utility.loss.remap import remapped_loss
from mechdesign.utility.population.identifiability import asymptotic_mse, channel_rank

# Edge lengths are rounded down by up to 2^-43, so a mechanism that is exactly at the claim may show this much above 1.
AT_CLAIM = 1 + 2.0**-40


class Row(TypedDict):
    """One mechanism: losses in loss units, distance in units of length. None where a figure does not exist.

    Claimed epsilon in nats per unit (in nats for randomized response). Effective epsilon relative to the problem's
    metric; to the mechanism's own where it is tuned to the problem's `matched_distance`. True epsilon: the largest
    log-ratio per unit of Euclidean distance over all pairs, in nats per unit, where the problem's metric is Euclidean.
    Least epsilon, in nats per unit: no mechanism that is private below it has the matched distance.
    Rank of the mechanism as a channel: below the number of secrets, no number of reports identifies their distribution.
    Criterion in squared units: the number of reports times the mean squared error of the distribution estimated from
    many of them, in the linearised transport norm at the prior; None where the rank is too low, both beyond 1,600
    secrets.
    """

    mechanism: str
    loss: float
    lower_bound: float | None
    gap: float | None
    remapped_loss: float
    expected_distance: float | None
    claimed_epsilon: float | None
    effective_epsilon: float
    smallest_epsilon: float | None
    least_epsilon: float | None
    rank: int | None
    criterion: float | None


Maker = Callable[[], xr.Dataset]


def makers(problem: DesignProblem, *, gap: float = 1e-3, time_limit: float = float("inf")) -> dict[str, Maker]:
    """What `compare` runs, by row name.

    Raises: UnsuitableError where a problem with a `matched_distance` has a metric that is not Euclidean.
    """
    if problem.matched_distance is not None:
        return matched_makers(problem, gap=gap, time_limit=time_limit)
    asked: dict[str, Maker] = {}
    if problem.query is not None:
        asked["query"] = lambda: solve(QueryWeights(problem=problem), time_limit=time_limit)
    return {
        "optimal": lambda: solve(Optimal(problem=problem), gap=gap, time_limit=time_limit),
        **asked,
        "eikonal": lambda: solve(EikonalWeights(problem=problem), method="table"),
        "exponential": partial(exponential.mechanism, problem),
        "geometric_clamped": partial(geometric.mechanism, problem, border="clamped"),
        "geometric_normalised": partial(geometric.mechanism, problem, border="normalised"),
        "planar_laplace": partial(planar_laplace.mechanism, problem),
        "randomized_response": partial(randomized_response.mechanism, problem),
        "constant": partial(constant.mechanism, problem),
    }


def mechanisms(
    problem: DesignProblem, *, gap: float = 1e-3, time_limit: float = float("inf"), only: Sequence[str] | None = None
) -> Iterator[tuple[str, xr.Dataset | InputError]]:
    """Each mechanism with its row name as it is made, or the reason why it does not fit the problem.

    only: the rows to make, all by default.
    Raises: InputError for an unknown row name, a bad target or a metric that does not fit the domain; SizeError.
    """
    check_targets(gap, time_limit)
    known = makers(problem, gap=gap, time_limit=time_limit)
    for name in only or ():
        if name not in known:
            raise InputError("unknown mechanism", field="only", value=name, remedy="use one of " + ", ".join(known))
    require_memory(problem.domain.size, problem.reports.size, tables=TABLES, what="a comparison")
    check_connected(problem.edges, problem.domain.size)  # here, not as a row that is left out
    for name, make in known.items():
        if only and name not in only:
            continue
        try:
            yield name, make()
        except (UnsuitableError, SizeError) as error:
            yield name, error


def compare(problem: DesignProblem, *, gap: float = 1e-3, time_limit: float = float("inf")) -> list[Row]:
    """A row for every program and closed form that fits the problem.

    The lower bound is the best one proved for the optimal program; it stands in every row whose mechanism satisfies the
    problem's claim, so that `gap` = (loss - lower_bound) / loss says how far that mechanism is from optimal.
    """
    return rows(dict(mechanisms(problem, gap=gap, time_limit=time_limit)), problem)


def rows(made: Mapping[str, xr.Dataset | InputError], problem: DesignProblem) -> list[Row]:
    """The rows of mechanisms that were made for one problem; those that do not fit have none."""
    tables = {name: mechanism for name, mechanism in made.items() if isinstance(mechanism, xr.Dataset)}
    bound = max((m.attrs["lower_bound"] for m in tables.values() if "lower_bound" in m.attrs), default=None)
    least = next((m.attrs["least_epsilon"] for m in tables.values() if "least_epsilon" in m.attrs), None)
    return [_row(name, mechanism, problem, bound, least) for name, mechanism in tables.items()]


def write_rows(table: Sequence[Row], path: str | Path, *, overwrite: bool = False) -> Path:
    """Write the rows as CSV, atomically; figures in all their digits, missing ones empty."""
    target = check_target(path, overwrite=overwrite)

    def write(temporary: Path) -> None:
        with temporary.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, fieldnames=list(Row.__annotations__), lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)

    write_atomically(target, write)
    return target


def _row(name: str, mechanism: xr.Dataset, problem: DesignProblem, bound: float | None, least: float | None) -> Row:
    loss = float(mechanism.attrs["expected_loss"])
    effective = float(mechanism.attrs["effective_epsilon"])
    holds = bound is not None and effective <= AT_CLAIM
    claimed = mechanism.attrs.get("claimed_epsilon")
    rank = criterion = None
    if problem.domain.size <= LARGEST:
        rank, at_prior = channel_rank(mechanism), asymptotic_mse(mechanism)
        criterion = at_prior if math.isfinite(at_prior) else None
    return Row(
        mechanism=name,
        loss=loss,
        lower_bound=float(bound) if holds and bound is not None else None,
        gap=relative_gap(loss, float(bound), constant_loss(mechanism)) if holds and bound is not None else None,
        remapped_loss=remapped_loss(mechanism),
        expected_distance=expected_distance(mechanism),
        claimed_epsilon=None if claimed is None else float(claimed),
        effective_epsilon=effective,
        smallest_epsilon=smallest_epsilon(mechanism, problem),
        least_epsilon=None if least is None else float(least),
        rank=rank,
        criterion=criterion,
    )

"""sweep: the privacy-utility curve, the optimal loss against a multiple of the metric, with its baselines beside it.

At multiplier s the claim is s d. A Dataset with one dimension, `multiplier`, and float variables:

| variable | meaning |
|---|---|
| loss, lower_bound, gap | what encloses the optimum at s, in loss units; gap = (loss - lower_bound) / loss |
| effective_epsilon | of the optimal mechanism, as a multiple of d: at most s |
| NAME_loss, NAME_effective_epsilon | the same of the eikonal mechanism and of each closed form made for s d |

A closed form whose NAME_effective_epsilon exceeds s is not private as claimed: its loss belongs to that level, not to
s. NaN stands where a mechanism does not fit; one that fits nowhere has no variables. Every figure is that of a
certified table, but the tables are not kept.
Known: the optimum never increases with s, and tends to the loss of the best constant report as s -> 0.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.base.memory import require_memory
from mechdesign.errors import InputError
from mechdesign.mechanism.schema import DESCRIBED, Array, Schema
from mechdesign.mechanism.storage.files import load_sealed
from mechdesign.mechanism.table.certificate import max_log_ratio
from mechdesign.mechanism.table.dataset import relative_gap, seal, versions
from mechdesign.output.tables.compare import AT_CLAIM, mechanisms
from mechdesign.setting.problems.problem import DesignProblem
from mechdesign.solvers.kernels.design import Design
from mechdesign.solvers.optimal.aggregation import aggregate
from mechdesign.solvers.solve import TABLES, check_targets

SWEEP = Schema(
    name="mechdesign/sweep/1",
    arrays={"multiplier": Array(dtype="float64", dims=("multiplier",), coordinate=True)},
    attributes=DESCRIBED | {"secrets": int, "loss": str, "constant_loss": float, "stopped": str},
    other=Array(dtype="float64", dims=("multiplier",)),
)
BASELINES = (
    "eikonal",
    "exponential",
    "geometric_clamped",
    "geometric_normalised",
    "planar_laplace",
    "randomized_response",
)
_MOST = 1000  # points of a sweep

Row = dict[str, Any]  # a figure by name of variable, None where there is none, and the word `stopped`


def multiplier_range(first: float, last: float, points: int) -> list[float]:
    """`points` multipliers from `first` to `last`, equally spaced on a logarithmic scale.

    Raises: InputError unless 0 < first < last, and points is from 2 to 1,000: each is a solve.
    """
    if not 0 < first < math.inf:
        raise InputError("must be positive and finite", field="from", value=first, remedy="use a multiplier as 0.25")
    if not first < last < math.inf:
        raise InputError(f"must exceed --from {first:g}", field="to", value=last, remedy="use a larger multiplier")
    if not 2 <= points <= _MOST:
        raise InputError(
            f"must be from 2 to {_MOST:,}", field="points", value=points, remedy="one point is `mechdesign solve`"
        )
    return [float(f"{s:.12g}") for s in np.geomspace(first, last, points)]


def sweep(
    problem: DesignProblem,
    multipliers: Sequence[float],
    *,
    gap: float = 1e-3,
    time_limit: float = math.inf,
    on_progress: Callable[[Row], None] | None = None,
) -> xr.Dataset:
    """The privacy-utility curve of a problem; see the module docstring.

    Parameters: multipliers (k,), positive, distinct, in any order; gap, target at every multiplier; time_limit in
    seconds for each multiplier; on_progress, called with the row of every multiplier as it is done.
    Returns: the sealed Dataset, multipliers ascending; attr stopped is a JSON list of why each solve ended. They are
    solved from the largest down, every solve with the one before as its start; Ctrl-C keeps what is done.
    Raises: InputError for bad multipliers or targets; what `solve` raises.
    Cost: k solves, and k comparisons of closed forms.
    """
    check_targets(gap, time_limit)
    wanted = _checked(multipliers)
    require_memory(problem.domain.size, problem.reports.size, tables=TABLES, what="a sweep")
    rows: list[Row] = []
    start: Design | None = None
    for multiplier in reversed(wanted):
        there = replace(problem, metric=multiplier * problem.metric, matched_distance=None)
        start = _solve(there, start, gap=gap, time_limit=time_limit)
        rows.insert(0, _row(there, multiplier, start, gap))
        if on_progress is not None:
            on_progress(rows[0])
        if start.stopped == "interrupt":
            break
    return _dataset(problem, rows, gap)


def load_sweep(path: str | Path) -> xr.Dataset:
    """Read a sweep that `save` wrote, and check its schema and checksum. Raises what `load` raises."""
    return load_sealed(path, SWEEP, what="a sweep")


def sweep_rows(curve: xr.Dataset) -> list[Row]:
    """One dict per multiplier, keys as the variables, with the word why the solve stopped; None for NaN."""
    stopped = json.loads(curve.attrs["stopped"])
    columns = {str(name): curve[name].values.tolist() for name in ("multiplier", *curve)}
    return [
        {name: None if math.isnan(values[k]) else values[k] for name, values in columns.items()} | {"stopped": word}
        for k, word in enumerate(stopped)
    ]


def baselines_of(row: Row) -> dict[str, bool | None]:
    """Whether each baseline of a row breaks the claim at its multiplier; None where it does not fit."""
    levels = {name: row.get(f"{name}_effective_epsilon") for name in BASELINES if f"{name}_loss" in row}
    return {name: None if at is None else at > row["multiplier"] * AT_CLAIM for name, at in levels.items()}


def _solve(problem: DesignProblem, start: Design | None, *, gap: float, time_limit: float) -> Design:
    """The optimal design; `start` is that of the multiplier before, None for the first."""
    return aggregate(problem, gap=gap, time_limit=time_limit, start=start)


def _checked(multipliers: Sequence[float]) -> list[float]:
    wanted = sorted(float(s) for s in multipliers)
    if not wanted or not all(0 < s < math.inf for s in wanted):
        raise InputError(
            "must be positive and finite", field="multipliers", value=wanted, remedy="give numbers such as 0.5, 1, 2"
        )
    if len(set(wanted)) < len(wanted):
        raise InputError("given twice", field="multipliers", value=wanted, remedy="give distinct numbers")
    return wanted


def _row(problem: DesignProblem, multiplier: float, design: Design, gap: float) -> Row:
    """`problem` has the multiplied metric; levels are told as multiples of the metric before that."""
    row: Row = {
        "multiplier": multiplier,
        "loss": design.loss,
        "lower_bound": design.lower_bound,
        "gap": relative_gap(design.loss, design.lower_bound, problem.constant_loss),
        "effective_epsilon": multiplier * min(max_log_ratio(design.mass, problem.edges).value, 1.0),
    }
    for name, made in mechanisms(problem, gap=gap, only=BASELINES):
        attrs = made.attrs if isinstance(made, xr.Dataset) else None
        row[f"{name}_loss"] = None if attrs is None else float(attrs["expected_loss"])
        row[f"{name}_effective_epsilon"] = None if attrs is None else multiplier * float(attrs["effective_epsilon"])
    return row | {"stopped": design.stopped}


def _dataset(problem: DesignProblem, rows: list[Row], gap: float) -> xr.Dataset:
    loss_unit = problem.loss.unit(problem.domain.unit)
    table = {name: np.array([row[name] for row in rows], float) for name in rows[0] if name != "stopped"}
    multiplier = table.pop("multiplier")
    variables: dict[str, Any] = {
        name: ("multiplier", values, {"units": loss_unit if name.endswith(("loss", "lower_bound")) else "1"})
        for name, values in table.items()
        if not np.isnan(values).all()
    }
    attrs = {
        "schema": SWEEP.name,
        "problem": problem.name,
        "parameters": json.dumps({"knobs": dict(problem.parameters), "gap": gap}, sort_keys=True),
        "domain": problem.domain.describe_json(),
        "secrets": problem.domain.size,
        "metric": json.dumps(problem.metric.describe(), sort_keys=True),
        "loss": problem.loss.name,
        "constant_loss": problem.constant_loss,
        "stopped": json.dumps([row["stopped"] for row in rows]),
        "versions": versions(),
    }
    return seal(xr.Dataset(variables, coords={"multiplier": ("multiplier", multiplier, {"units": "1"})}, attrs=attrs))

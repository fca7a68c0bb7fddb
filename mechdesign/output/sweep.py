"""sweep: the privacy-utility curve, the optimal loss against a scale of the metric, and baselines.

At scale s the claim is s d. A Dataset with one dimension, `scale`, and float variables:

| variable | meaning |
|---|---|
| loss, lower_bound, gap | what encloses the optimum at s, in loss units; gap = (loss - lower_bound) / loss |
| effective_scale | the scale of d that the optimal mechanism truly has: at most s |
| position_loss, NAME_position_loss | to the true position, uniform in its cell |
| NAME_loss, NAME_effective_scale | the same of the eikonal mechanism and of each baseline made for s d |

A baseline whose NAME_effective_scale exceeds s breaks its claim at s. NaN stands where a mechanism does not fit; one
that fits nowhere has no variables. A mechanism of the user's own has one loss and one effective scale throughout. The
optimum never increases with s, and tends to the loss of the best constant report as s -> 0.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.base.formatting import Column, Rounding, format_cell
from mechdesign.base.memory import require_memory
from mechdesign.base.progress import verbosely
from mechdesign.base.validation import validated
from mechdesign.closed_forms.best import best_closed_form
from mechdesign.closed_forms.table import BASELINES
from mechdesign.errors import InputError, MechdesignError
from mechdesign.evaluation.loss import position_loss
from mechdesign.mechanism.build import versions
from mechdesign.mechanism.certificate import max_log_ratio
from mechdesign.mechanism.figures import relative_gap, total_cost
from mechdesign.mechanism.hashing import seal
from mechdesign.mechanism.schema import COMMON_ATTRIBUTES, Schema, VariableSpec
from mechdesign.output.compare import AT_CLAIM, each_mechanism
from mechdesign.output.own_mechanisms import InputMechanisms, input_mechanisms
from mechdesign.problem.position_loss import position_cost
from mechdesign.problem.problem import DesignProblem
from mechdesign.solvers.optimal import solve_optimal
from mechdesign.solvers.result import Design, Targets
from mechdesign.solvers.solve import TABLES, check_targets

SWEEP = Schema(
    name="mechdesign/sweep/1",
    own_variables={"scale": VariableSpec(dtype="float64", dims=("scale",), is_coordinate=True)},
    attributes=COMMON_ATTRIBUTES | {"secrets": int, "loss": str, "constant_loss": float, "stopped": str},
    other=VariableSpec(dtype="float64", dims=("scale",)),
)
_MOST = 1000  # points of a sweep
_SHORTEST = 1e-9  # seconds that a search gets

COLUMNS = (  # of the optimum
    Column("scale", "scale", Rounding.NEAREST, 4),
    Column("loss", "loss", digits=5),
    Column("lower bound", "lower_bound", Rounding.DOWN, 5),
    Column("gap", "gap", is_share=True),
    Column("position loss", "position_loss", digits=5),
)

CurveRow = dict[str, Any]  # a figure by name of variable, None where there is none, and the word `stopped`


def baseline_names() -> list[str]:
    """Baselines of `sweep`; the constant report, equal at every scale, is the attribute constant_loss."""
    return ["eikonal", *(name for name in BASELINES if name != "constant")]


def scale_range(first: float = 0.25, last: float = 4.0, points: int = 9) -> list[float]:
    """`points` scales from `first` to `last`, equally spaced in the logarithm."""
    if not 0 < first < math.inf:
        raise InputError("must be positive and finite", field="scales", value=first)
    if not first < last < math.inf:
        raise InputError(f"the last must exceed the first, {first:g}", field="scales", value=last)
    if not 2 <= points <= _MOST:
        raise InputError(f"must be from 2 to {_MOST:,} in number", field="scales", value=points)
    return [float(f"{s:.12g}") for s in np.geomspace(first, last, points)]


@validated
def sweep(
    problem: DesignProblem,
    scales: Sequence[float] | None = None,
    *,
    mechanisms: InputMechanisms | None = None,
    gap: float = 1e-3,
    time_limit: float = math.inf,
    on_progress: Callable[[CurveRow], None] | None = None,
    verbose: bool = False,
) -> xr.Dataset:
    """The privacy-utility curve of a problem: the optimal loss along scales of the metric, with baselines.

    Scales are solved from the largest down, each solve started from the last; Ctrl-C returns the finished ones.

    Parameters
    ----------
    problem : DesignProblem
        The problem at scale 1.
    scales : (k,) sequence of float
        Positive, distinct, in any order; by default 9 from 0.25 to 4.
    mechanisms : mapping of str to (n, m) array or Dataset
        Yours by name, as `md.compare` takes them.
    gap, time_limit : float
        Relative gap, and seconds, at every scale.
    on_progress, verbose : callable, bool
        Called with the row of every scale; progress on standard error.

    Returns
    -------
    xarray.Dataset
        Sealed, dimension `scale`, ascending. Attribute `stopped` is a JSON list of why each solve ended.

    Examples
    --------
    >>> curve = md.sweep(md.load_problem("discrete", secrets=3), [0.5, 1.0])
    >>> bool(curve["loss"][0] > curve["loss"][1])
    True
    """
    check_targets(gap, time_limit)
    scales = _checked(scale_range() if scales is None else scales)
    require_memory(problem.domain.size, problem.reports.size, tables=TABLES, what="a sweep")
    own = input_mechanisms(problem, mechanisms, known=["optimal", *baseline_names()])
    rows: list[CurveRow] = []
    start: Design | None = None
    with verbosely(verbose, problem.name, None) as report:
        for number, scale in enumerate(reversed(scales), 1):
            if report is not None:
                report(f"{number} of {len(scales)}: scale {scale:.4g}")
            there = replace(problem, metric=scale * problem.metric, matched_distance=None)
            start = _solve(there, start, gap=gap, time_limit=time_limit)
            rows.insert(0, _row(there, scale, start, gap) | _figures(own))
            if on_progress is not None:
                on_progress(rows[0])
            if start.stopped == "interrupt":
                break
    return _dataset(problem, rows, gap)


def sweep_rows(curve: xr.Dataset) -> list[CurveRow]:
    """One dict per scale, keys as the variables, with the word why the solve stopped; None for NaN."""
    table = curve.to_dataframe().reset_index().astype(object)
    return table.where(table.notna(), None).assign(stopped=json.loads(curve.attrs["stopped"])).to_dict("records")


def baselines_of(row: CurveRow) -> dict[str, bool | None]:
    """Whether each baseline of a row breaks the claim at its scale; None where it does not fit. Ours come first."""
    names = [key.removesuffix("_effective_scale") for key in row if key.endswith("_effective_scale")]
    levels = {name: row[f"{name}_effective_scale"] for name in names if f"{name}_loss" in row}
    ours = [name for name in baseline_names() if name in levels]
    ordered = dict.fromkeys([*ours, *levels])
    return {name: None if levels[name] is None else levels[name] > row["scale"] * AT_CLAIM for name in ordered}


def columns(row: CurveRow) -> tuple[Column, ...]:
    """COLUMNS, but for the last where the loss of the problem is not known at positions."""
    return COLUMNS if row.get("position_loss") is not None else COLUMNS[:-1]


def headings(row: CurveRow) -> list[str]:
    """What stands above the figures of `printed_losses`."""
    return [column.heading for column in columns(row)] + [name.replace("_", " ") for name in baselines_of(row)]


def printed_losses(row: CurveRow) -> list[str]:
    """The figures of `columns` and the loss of each baseline, rounded; * where it breaks its claim, - if missing."""
    losses = [column.text(row) for column in columns(row)]
    for name, broken in baselines_of(row).items():
        losses.append(format_cell(row[f"{name}_loss"], rounding=Rounding.UP, digits=4) + ("*" if broken else ""))
    return losses


def _solve(problem: DesignProblem, start: Design | None, *, gap: float, time_limit: float) -> Design:
    """The optimal design, or the best closed form; `start` is that of the scale before, None for the first."""
    started = time.monotonic()
    floor = best_closed_form(problem, deadline=started + time_limit)
    left = max(time_limit - (time.monotonic() - started), _SHORTEST)
    return solve_optimal(problem, Targets(gap=gap, time_limit=left), start=start, floor=floor)


def _checked(scales: Sequence[float]) -> list[float]:
    ascending = sorted(float(s) for s in scales)
    if not ascending or not all(0 < s < math.inf for s in ascending):
        raise InputError("must be positive and finite", field="scales", value=ascending)
    if len(set(ascending)) < len(ascending):
        raise InputError("must be distinct", field="scales", value=ascending)
    return ascending


def _row(problem: DesignProblem, scale: float, design: Design, gap: float) -> CurveRow:
    """`problem` has the scaled metric; levels are told as scales of the metric before that."""
    cost = position_cost(problem.loss, problem.prior_array, problem.domain, problem.reports)
    row: CurveRow = {
        "scale": scale,
        "loss": design.loss,
        "position_loss": None if cost is None else total_cost(design.mass, cost),
        "lower_bound": design.lower_bound,
        "gap": relative_gap(design.loss, design.lower_bound, problem.constant_loss),
        "effective_scale": scale * min(max_log_ratio(design.mass, problem.edges).value, 1.0),
    }
    results = dict(each_mechanism(problem, gap=gap, only=baseline_names()))
    return row | _figures(results, scale=scale) | {"stopped": design.stopped}


def _figures(results: Mapping[str, xr.Dataset | MechdesignError], scale: float = 1.0) -> CurveRow:
    """Loss and level of each mechanism, made for a problem at `scale`; None for those that do not fit."""
    row: CurveRow = {}
    for name, mechanism in results.items():
        attrs = mechanism.attrs if isinstance(mechanism, xr.Dataset) else None
        row[f"{name}_loss"] = None if attrs is None else float(attrs["expected_loss"])
        row[f"{name}_position_loss"] = position_loss(mechanism) if isinstance(mechanism, xr.Dataset) else None
        row[f"{name}_effective_scale"] = None if attrs is None else scale * float(attrs["ratio"])
    return row


def _dataset(problem: DesignProblem, rows: list[CurveRow], gap: float) -> xr.Dataset:
    loss_unit = problem.loss.unit(problem.domain.unit)
    table = {name: np.array([row[name] for row in rows], float) for name in rows[0] if name != "stopped"}
    scales = table.pop("scale")
    variables: dict[str, Any] = {
        name: ("scale", values, {"units": loss_unit if name.endswith(("loss", "lower_bound")) else "1"})
        for name, values in table.items()
        if not np.isnan(values).all()
    }
    attrs = {
        "schema": SWEEP.name,
        "problem": problem.name,
        "parameters": json.dumps({"knobs": problem.kept_parameters, "gap": gap}, sort_keys=True),
        "domain": problem.domain.describe_json(),
        "secrets": problem.domain.size,
        "metric": json.dumps(problem.metric.describe(), sort_keys=True),
        "loss": problem.loss.name,
        "constant_loss": problem.constant_loss,
        "stopped": json.dumps([row["stopped"] for row in rows]),
        "versions": versions(),
    }
    return seal(xr.Dataset(variables, coords={"scale": ("scale", scales, {"units": "1"})}, attrs=attrs))

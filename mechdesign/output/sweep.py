"""sweep: the privacy-utility curve, the optimal loss against a scale of the metric, and baselines.

At scale s the claim is s d. A Dataset with one dimension, `scale`, and float variables:

| variable | meaning |
|---|---|
| loss, lower_bound, gap | bounds on the optimum at s, in loss units; gap = (loss - lower_bound) / loss |
| effective_scale | the smallest scale of d that the optimal mechanism satisfies: at most s |
| position_loss, NAME_position_loss | to the true position, uniform in its cell |
| NAME_loss, NAME_effective_scale | the same for the eikonal mechanism and of each baseline made for s d |

A baseline whose NAME_effective_scale exceeds s breaks its claim at s. A mechanism that does not fit is NaN; one
that fits at no scale has no variables. A table of the user has one loss and one effective scale throughout, a program
or family those of each scale. The optimum never increases with s, and tends to the loss of the best constant report as
s -> 0.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
import xarray as xr

from mechdesign.base.formatting import Column, Rounding, format_cell
from mechdesign.base.memory import require_memory
from mechdesign.base.progress import progress_if
from mechdesign.base.validation import validate_call
from mechdesign.closed_forms.best import best_closed_form
from mechdesign.closed_forms.table import BASELINES
from mechdesign.errors import InputError, MechdesignError, SizeError, SolverError, UnsuitableError
from mechdesign.evaluation.loss import position_loss
from mechdesign.mechanism.build import versions
from mechdesign.mechanism.certificate import max_log_ratio
from mechdesign.mechanism.figures import relative_gap, total_cost
from mechdesign.mechanism.hashing import seal
from mechdesign.mechanism.schema import COMMON_ATTRIBUTES, Schema, VariableSpec
from mechdesign.output.compare import AT_CLAIM, each_mechanism
from mechdesign.output.own_makers import InputMechanisms, OwnMechanisms, own_mechanisms
from mechdesign.problem.position_loss import position_cost
from mechdesign.problem.problem import DesignProblem
from mechdesign.solvers.optimal import solve_optimal
from mechdesign.solvers.result import SolveResult, Targets
from mechdesign.solvers.solve import TABLES, check_targets

SWEEP = Schema(
    name="mechdesign/sweep/2",
    own_variables={"scale": VariableSpec(dtype="float64", dims=("scale",), is_coordinate=True)},
    attributes=COMMON_ATTRIBUTES | {"secrets": int, "loss": str, "constant_loss": float, "stopped": str},
    other=VariableSpec(dtype="float64", dims=("scale",)),
)
_MAX_POINTS = 1000  # of a sweep
_SHORTEST = 1e-9  # seconds, at least, for a search

COLUMNS = (  # of the optimum
    Column("scale", "scale", Rounding.NEAREST, 4),
    Column("loss", "loss", digits=5),
    Column("lower bound", "lower_bound", Rounding.DOWN, 5),
    Column("gap", "gap", is_share=True),
    Column("position loss", "position_loss", digits=5),
)


@dataclass(frozen=True, kw_only=True)
class BaselineFigures:
    """Losses of one baseline at one scale, and the scale that it satisfies; None if it does not fit."""

    loss: float | None
    position_loss: float | None
    effective_scale: float | None


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """A sweep at one scale: figures of the optimal mechanism, and of each baseline by name."""

    scale: float
    loss: float
    position_loss: float | None
    lower_bound: float
    gap: float
    effective_scale: float
    stopped: str
    baselines: Mapping[str, BaselineFigures]

    def is_broken(self, name: str) -> bool:
        """True if a baseline breaks the claim at this scale."""
        scale = self.baselines[name].effective_scale
        return scale is not None and scale > self.scale * AT_CLAIM

    def to_json(self) -> dict[str, Any]:
        flat = {figure.name: getattr(self, figure.name) for figure in fields(self)}
        stopped, baselines = flat.pop("stopped"), flat.pop("baselines")
        for name, figures in baselines.items():
            flat |= {f"{name}_{figure}": value for figure, value in asdict(figures).items()}
        return {**flat, "stopped": stopped}


def baseline_names() -> list[str]:
    """Baselines of `sweep`; the constant report, equal at every scale, is the attribute constant_loss."""
    return ["eikonal", *(name for name in BASELINES if name != "constant")]


def scale_range(first: float = 0.25, last: float = 4.0, points: int = 9) -> list[float]:
    """`points` scales from `first` to `last`, equally spaced in the logarithm."""
    if not 0 < first < math.inf:
        raise InputError("must be positive and finite", field="scales", value=first)
    if not first < last < math.inf:
        raise InputError(f"the last must exceed the first, {first:g}", field="scales", value=last)
    if not 2 <= points <= _MAX_POINTS:
        raise InputError(f"must be from 2 to {_MAX_POINTS:,} in number", field="scales", value=points)
    # 12 digits: 0.5 then prints as 0.5, not as 0.5000000000000001.
    return [float(f"{s:.12g}") for s in np.geomspace(first, last, points)]


@validate_call
def sweep(
    problem: DesignProblem,
    scales: Sequence[float] | None = None,
    *,
    mechanisms: InputMechanisms | None = None,
    gap: float = 1e-3,
    time_limit: float = math.inf,
    on_progress: Callable[[CurvePoint], None] | None = None,
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
    mechanisms : mapping of str to (n, m) array, Dataset, Program or callable
        Yours by name, as `md.compare` takes them. Programs and functions are made at every scale.
    gap, time_limit : float
        Relative gap, and seconds, at every scale.
    on_progress, verbose : callable, bool
        Called with the `CurvePoint` of every scale; progress on standard error.

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
    scales = _check_scales(scale_range() if scales is None else scales)
    require_memory(problem.domain.size, problem.reports.size, tables=TABLES, noun="a sweep")
    mine = own_mechanisms(problem, mechanisms, known=["optimal", *baseline_names()])
    points: list[CurvePoint] = []
    start: SolveResult | None = None
    with progress_if(verbose, problem.name, None) as report:
        for number, scale in enumerate(reversed(scales), 1):
            if report is not None:
                report(f"{number} of {len(scales)}: scale {scale:.4g}")
            scaled = replace(problem, metric=scale * problem.metric, matched_distance=None)
            start = _solve(scaled, start, gap=gap, time_limit=time_limit)
            points.insert(0, _point(scaled, scale, start, gap, mine, time_limit))
            if on_progress is not None:
                on_progress(points[0])
            if start.stopped == "interrupt":
                break
    return _dataset(problem, points, gap)


def curve_points(curve: xr.Dataset) -> list[CurvePoint]:
    """One point per scale, with the baselines that fit at some scale: ours first, then those of the user."""
    names = [str(key).removesuffix("_effective_scale") for key in curve if str(key).endswith("_effective_scale")]
    ours = [name for name in baseline_names() if name in names]
    stopped = json.loads(curve.attrs["stopped"])

    def value(name: str, k: int) -> Any:
        number = float(curve[name].values[k]) if name in curve else math.nan
        return None if math.isnan(number) else number

    def figures(k: int, prefix: str = "") -> dict[str, Any]:
        return {figure.name: value(prefix + figure.name, k) for figure in fields(BaselineFigures)}

    return [
        CurvePoint(
            **figures(k),
            **{name: value(name, k) for name in ("scale", "lower_bound", "gap")},
            stopped=stopped[k],
            baselines={name: BaselineFigures(**figures(k, f"{name}_")) for name in dict.fromkeys([*ours, *names])},
        )
        for k in range(curve.sizes["scale"])
    ]


def curve_rows(points: Sequence[CurvePoint]) -> list[dict[str, Any]]:
    """Rows for JSON and CSV, without figures that no point has."""
    rows = [point.to_json() for point in points]
    present = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    return [{name: row[name] for name in present} for row in rows]


def columns(point: CurvePoint) -> tuple[Column, ...]:
    """COLUMNS, without the position loss if the problem has none."""
    return COLUMNS if point.position_loss is not None else COLUMNS[:-1]


def headings(point: CurvePoint) -> list[str]:
    """The headings above `printed_losses`."""
    return [column.heading for column in columns(point)] + [name.replace("_", " ") for name in point.baselines]


def printed_losses(point: CurvePoint) -> list[str]:
    """The figures of `columns` and the loss of each baseline, rounded; * if it breaks its claim, - if missing."""
    losses = [column.text(point) for column in columns(point)]
    for name, figures in point.baselines.items():
        star = "*" if point.is_broken(name) else ""
        losses.append(format_cell(figures.loss, rounding=Rounding.UP, digits=4) + star)
    return losses


def _solve(problem: DesignProblem, start: SolveResult | None, *, gap: float, time_limit: float) -> SolveResult:
    """The optimal design, or the best closed form; `start` is that of the scale before, None for the first."""
    # The best closed form is the first incumbent: a search that stops early is not worse than any baseline.
    started = time.monotonic()
    floor = best_closed_form(problem, deadline=started + time_limit)
    remaining = max(time_limit - (time.monotonic() - started), _SHORTEST)
    return solve_optimal(problem, Targets(gap=gap, time_limit=remaining), start=start, floor=floor)


def _check_scales(scales: Sequence[float]) -> list[float]:
    ascending = sorted(float(s) for s in scales)
    if not ascending or not all(0 < s < math.inf for s in ascending):
        raise InputError("must be positive and finite", field="scales", value=ascending)
    if len(set(ascending)) < len(ascending):
        raise InputError("must be distinct", field="scales", value=ascending)
    return ascending


# Six arguments: a problem at a scale, its optimum, and the mechanisms beside it with their targets.
def _point(
    problem: DesignProblem, scale: float, design: SolveResult, gap: float, mine: OwnMechanisms, time_limit: float
) -> CurvePoint:
    """The figures at one scale. `problem` has the scaled metric; effective scales are of the metric at scale 1."""
    cost = position_cost(problem.loss, problem.prior_array, problem.domain, problem.reports)
    results = each_mechanism(problem, gap=gap, only=baseline_names())
    return CurvePoint(
        scale=scale,
        loss=design.loss,
        position_loss=None if cost is None else total_cost(design.mass, cost),
        lower_bound=design.lower_bound,
        gap=relative_gap(design.loss, design.lower_bound, problem.constant_loss),
        # Above 1 only by the rounding of edge lengths: the repaired table is certified at this scale.
        effective_scale=scale * min(max_log_ratio(design.mass, problem.edges).value, 1.0),
        stopped=design.stopped,
        baselines={name: _figures(result, scale) for name, result in results}
        | {name: _figures(mechanism, 1.0) for name, mechanism in mine.fixed.items()}
        | {
            name: _figures(_result(maker, time_limit), scale)
            for name, maker in mine.makers(problem, scale=scale, gap=gap).items()
        },
    )


def _result(maker: Callable[[float], xr.Dataset], seconds: float) -> xr.Dataset | MechdesignError:
    """The mechanism of a maker, or its error if it does not fit the problem."""
    try:
        return maker(seconds)
    except (UnsuitableError, SizeError, SolverError) as error:
        return error


def _figures(result: xr.Dataset | MechdesignError, scale: float) -> BaselineFigures:
    if not isinstance(result, xr.Dataset):
        return BaselineFigures(loss=None, position_loss=None, effective_scale=None)
    return BaselineFigures(
        loss=float(result.attrs["expected_loss"]),
        position_loss=position_loss(result),
        effective_scale=scale * float(result.attrs["ratio"]),
    )


def _dataset(problem: DesignProblem, points: list[CurvePoint], gap: float) -> xr.Dataset:
    rows, loss_unit = curve_rows(points), problem.loss_unit
    table = {name: np.array([row[name] for row in rows], float) for name in rows[0] if name != "stopped"}
    scales = table.pop("scale")
    variables: dict[str, Any] = {
        name: ("scale", values, {"units": loss_unit if name.endswith(("loss", "lower_bound")) else "1"})
        for name, values in table.items()
    }
    attrs = {
        "schema": SWEEP.name,
        "problem": problem.name,
        "parameters": json.dumps({"problem_parameters": problem.storable_parameters, "gap": gap}, sort_keys=True),
        "domain": problem.domain.describe_json(),
        "secrets": problem.domain.size,
        "metric": json.dumps(problem.metric.describe(), sort_keys=True),
        "loss": problem.loss.name,
        "constant_loss": problem.constant_loss,
        "stopped": json.dumps([point.stopped for point in points]),
        "versions": versions(),
    }
    return seal(xr.Dataset(variables, coords={"scale": ("scale", scales, {"units": "1"})}, attrs=attrs))

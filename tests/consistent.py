"""Drafts made consistent again by the package's own functions: a claim, edges and figures that fit what was changed.

Refusing a file whose parts disagree is easy; what a hostile writer hands in agrees with itself. Here the problem of a
draft is rebuilt, sometimes with another geometry, level map or scale, sometimes with masses that go to the limit of
every edge, and everything that follows from it is computed and stored as the package does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from random import Random

import numpy as np
import xarray as xr
from columns import mechanism_of
from drafts import Draft

from mechdesign import DesignProblem, Domain, Eikonal, Euclidean, PrivacyLevel
from mechdesign.extend import METRICS, Edges, Metric, repair
from mechdesign.factored.certificate import Factors
from mechdesign.factored.columns import Columns
from mechdesign.factored.integer_metric import IntegerMetric
from mechdesign.factored.schema import FACTORED
from mechdesign.losses import LOSSES, TableLoss
from mechdesign.mechanism.build import build_dataset
from mechdesign.problem.domain import AXES

_LARGEST = 1000  # cells of a lattice: loops over all of them, or all their pairs, are not for tests
_BOUNDS = ("lower_bound", "lower_bound_of", "objective", "objective_of", "dual", "multiplier")
_MULTIPLES = ("problem_metric", "problem_length", "claimed_epsilon")
_KEPT = ("parameters", "problem", "versions")


def remade(draft: Draft, random: Random) -> str:
    """Make a draft consistent; what was done, or why it cannot be."""
    way = random.choice(list(WAYS))
    try:
        mechanism = draft.dataset()
        factored = mechanism.attrs["schema"] == FACTORED
        problem = WAYS[way](_problem(mechanism, factored), random)
        made = (_factored if factored else _table)(mechanism, problem, random)
    except Exception as error:  # most drafts are no problem any more, in as many ways as there are mutations
        return f"not consistent ({type(error).__name__})"
    same = way == "as it is" and problem.metric.kind == "graph"
    gone = _MULTIPLES if way == "as it is" else (*_MULTIPLES, *_BOUNDS)
    for name in gone:
        draft.attrs.pop(name, None)
        draft.variables.pop(name, None)
    kept = (*_KEPT, "metric") if same else _KEPT
    draft.attrs |= {name: value for name, value in made.attrs.items() if name not in kept}
    draft.take(made)
    return f"consistent, {way}"


def _problem(mechanism: xr.Dataset, factored: bool) -> DesignProblem:
    attrs, points = mechanism.attrs, _points(mechanism, "secret")
    described = json.loads(attrs["domain"])
    if math.prod(described.get("shape", [])) > _LARGEST:
        raise ValueError("too large a lattice")
    domain = Domain.from_description(described, points)
    names = {part: f"{'claim' if factored else 'edge'}_{part}" for part in ("tail", "head", "length")}
    lists = {part: mechanism[name].values for part, name in names.items() if name in mechanism}
    told, listed = json.loads(attrs["metric"]), Edges(**lists) if len(lists) == 3 else None
    metric = METRICS[told["kind"]].from_description(told, scale=told["multiplier"], listed=listed)
    reports, loss = domain, attrs["loss"]
    if not factored and not np.array_equal(found := _points(mechanism, "report"), points):
        reports = Domain(kind="points", points=found, unit=mechanism["report_x"].attrs["units"])
    return DesignProblem(
        domain=domain,
        metric=metric,
        prior=mechanism["prior"].values,
        loss=TableLoss(values=mechanism["loss_table"].values) if loss == "table" else LOSSES[loss],
        reports=reports,
        name=attrs["problem"],
        parameters=json.loads(attrs["parameters"])["knobs"],
    )


def _points(mechanism: xr.Dataset, dim: str) -> np.ndarray:
    return np.column_stack([mechanism[f"{dim}_{axis}"].values for axis in AXES if f"{dim}_{axis}" in mechanism])


def _table(mechanism: xr.Dataset, problem: DesignProblem, random: Random) -> xr.Dataset:
    """The masses there are, or random ones that go to the limit of every edge."""
    mass, shape = mechanism["mass"].values, problem.weighted_loss.shape
    if random.random() < 0.5:
        drawn = np.random.default_rng(random.getrandbits(32)).random(shape) ** random.choice((1, 8))
        mass = repair(drawn, problem.edges, problem.weighted_loss)
    if mass.shape != shape or mass.dtype != np.uint64 or mass.min() < 1:
        raise ValueError("no table of masses")  # compiled loops trust the shape
    return build_dataset(problem, mass, program=mechanism.attrs["program"])


def _factored(mechanism: xr.Dataset, problem: DesignProblem, random: Random) -> xr.Dataset:
    """The same integers, with their row sums, losses and figures."""
    weight, target, inner, tail, head, units = (
        mechanism[name].values for name in ("weight", "target", "inner", "edge_tail", "edge_head", "edge_units")
    )
    points, n = _points(mechanism, "place"), problem.domain.size
    indices = [(target, n), (inner, len(points)), (tail, len(points)), (head, len(points))]
    columns = None
    if "first_generator" in mechanism:
        place, offset = mechanism["generator_place"].values, mechanism["generator_offset"].values
        columns = Columns(place=place, offset=offset, first=mechanism["first_generator"].values)
        indices += [(place, len(points)), (columns.first, len(place))]
        if offset.dtype != np.uint16 or len(offset) != len(place):
            raise ValueError("no offsets")
    if any(given.dtype != np.int64 or given.min() < 0 or given.max() >= most for given, most in indices):
        raise ValueError("no places")  # compiled loops trust the numbers
    if len(weight) != len(target) or not len(tail) == len(head) == len(units) or len(inner) != n:
        raise ValueError("no places")
    metric = IntegerMetric(points=points, tail=tail, head=head, units=units, cap=int(mechanism.attrs["cap"]))
    factors = Factors(metric=metric, step=int(mechanism.attrs["step"]), weight=weight, inner=inner, columns=columns)
    return mechanism_of(problem, factors, target, mechanism.attrs["program"])


def _placed(problem: DesignProblem, factor: float, offset: float) -> DesignProblem:
    """Places moved by an offset and scaled, the level divided by the same factor: about as many nats as before."""
    domain, metric = problem.domain, problem.metric
    points = domain.points * factor + offset
    if domain.kind == "grid":
        moved = Domain.grid(
            domain.shape,
            cell=[h * factor for h in domain.cell],
            origin=[o * factor + offset for o in domain.origin],
            unit=domain.unit,
            mask=domain.lookup >= 0,
            plane=domain.plane,
        )
    else:
        moved = replace(domain, points=points)
    reports = moved if problem.reports is domain else problem.reports
    return replace(problem, domain=moved, metric=_levelled(metric, factor, offset), reports=reports)


def _levelled(metric: Metric, factor: float, offset: float) -> Metric:
    if isinstance(metric, Eikonal):
        raster = metric.level.raster
        axes = {name: axis * factor + offset for name, axis in zip(AXES, raster.axes, strict=False)}
        return replace(
            metric, level=PrivacyLevel(raster=replace(raster, values=raster.values / factor, **axes), extend=True)
        )
    if isinstance(metric, Euclidean):
        return replace(metric, epsilon=metric.epsilon / factor)
    return metric


def _elsewhere(problem: DesignProblem, random: Random) -> DesignProblem:
    """Sizes down to where squares are subnormal, origins so far that centres are rounded."""
    factor = random.uniform(0.5, 5) * random.choice((1.0, 1e-5, 1e5, 1e-120, 1e-154, 1e-161, 1e-162, 1e150))
    return _placed(problem, factor, factor * random.choice((0.0, 0.0, 1e6, 2.0**40, 2.0**49, 2.0**51, -(2.0**52))))


def _kinked(problem: DesignProblem, random: Random) -> DesignProblem:
    """A level map over many orders of magnitude, with a spike or a step between nodes an ulp apart: anywhere, or near
    the origin, where nodes are closer to each other than the ends of a segment are to numbers.
    """
    if not isinstance(problem.metric, Eikonal):
        return _multiplied(problem, random)
    near = random.random() < 0.5
    problem = _placed(problem, 1.0, -1.0) if near else problem
    raster = problem.metric.level.raster
    axis, values = random.randrange(raster.values.ndim), raster.values
    nodes, height = raster.axes[axis], 10.0 ** random.choice((0, 3, 9))
    for _ in range(random.choice((1, 1, 8))):
        at = 10 ** random.uniform(-12, -1) if near else random.uniform(nodes[0], nodes[-1])
        gap = max(np.spacing(at), random.choice((0.0, 2.0**-55, 2.0**-54, 2.0**-53, 1e-9)))
        for k, times in enumerate((1.0, height, 1.0)):
            nodes, values = _inserted(nodes, np.minimum(values, height), axis, at + k * gap, times)
    if random.random() < 0.3:
        values = values * 10.0 ** np.random.default_rng(random.getrandbits(32)).uniform(-9, 0, values.shape)
    changed = replace(raster, values=values, **{AXES[axis]: nodes})
    return replace(problem, metric=replace(problem.metric, level=PrivacyLevel(raster=changed, extend=True)))


def _inserted(
    nodes: np.ndarray, values: np.ndarray, axis: int, at: float, height: float
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and values with another node along an axis, at `height` times what the map is there."""
    right = int(np.searchsorted(nodes, at))
    left = max(right - 1, 0)
    near, far = values.take(left, axis), values.take(min(right, len(nodes) - 1), axis)
    share = (at - nodes[left]) / (nodes[right] - nodes[left]) if left < right < len(nodes) else 0.0
    return np.insert(nodes, right, at), np.insert(values, right, height * (near + share * (far - near)), axis)


def _multiplied(problem: DesignProblem, random: Random) -> DesignProblem:
    factor = random.choice((1 + 4.9e-12, 1 + 1e-13, 0.3, 1.7, 1 / 3, 1e-6, 40.0))
    return replace(problem, metric=factor * problem.metric)


WAYS: dict[str, Callable[[DesignProblem, Random], DesignProblem]] = {
    "as it is": lambda problem, random: problem,
    "elsewhere": _elsewhere,
    "kinked": _kinked,
    "multiplied": _multiplied,
}

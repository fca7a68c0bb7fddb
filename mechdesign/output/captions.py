"""Captions of a mechanism or a sweep: its problem, metric, loss and unit, and the names of its rows."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mechdesign.base.streams import visible
from mechdesign.mechanism.mechanism_file import parts_of
from mechdesign.problem.losses import LOSSES
from mechdesign.problem.metrics import metric_from_description
from mechdesign.problem.vocabulary import words_for

if TYPE_CHECKING:
    import xarray as xr


def mechanism_words(name: str, result: xr.Dataset) -> str:
    """The name of a row as a picture prints it; on one axis of values Laplace noise is not planar."""
    domain = json.loads(result.attrs["domain"])
    # A domain without a lattice has no shape; "12", of length 2, counts it as planar.
    axes = len(domain.get("shape", "12"))
    if axes == 1 and words_for(domain["kind"], domain["unit"], axes).truth == "value":
        name = name.removeprefix("planar_")
    return name.replace("_", " ").replace("laplac", "Laplac")


def problem_sentence(result: xr.Dataset, secrets: int) -> str:
    """Name of the problem and how many cells or places, of a Dataset with the attributes problem and domain."""
    domain = json.loads(result.attrs["domain"])
    shape = domain.get("shape")
    words = words_for(domain["kind"], domain["unit"], len(shape or "12"))
    where = f"{secrets} {words.many}"
    if shape is not None:
        where = grid_words(shape, words.many, secrets, parts_of(json.loads(result.attrs["parameters"]), shape))
    return f"{visible(result.attrs['problem'])}: {where}"


def grid_words(
    shape: Sequence[int], cells: str, secrets: int, parts: int, *, times: str = "x", of_side: str = ""
) -> str:
    """How many cells a grid of secrets has, and how many rows each of them where rows are finer than reports."""
    where = f"{f' {times} '.join(str(count // parts) for count in shape)} {cells}{of_side}"
    if math.prod(shape) > secrets:
        where += f", {secrets // parts ** len(shape):,} of them secrets"
    return where if parts == 1 else f"{where}, {rows_words(len(shape), parts, times=times)}"


def rows_words(axes: int, parts: int, *, times: str = "x") -> str:
    """How many rows of the table a cell of reports has."""
    return f"{f' {times} '.join([str(parts)] * axes)} rows a cell"


def metric_sentence(result: xr.Dataset) -> str:
    """The metric in a few words, neighbours and levels included, of a Dataset with the attributes metric and domain."""
    domain = json.loads(result.attrs["domain"])
    metric = metric_from_description(json.loads(claimed_metric(result)))
    return metric.words(domain["unit"], len(domain.get("shape", ())))


def claimed_metric(result: xr.Dataset) -> str:
    """The metric of the claim, as a file describes it; that of positions where the claim is about them."""
    about = "problem_metric" if "position_claim" in result.attrs and "problem_metric" in result.attrs else "metric"
    return str(result.attrs[about])


def loss_words(name: str, unit: str) -> tuple[str, str]:
    """The name of the quantity whose mean a loss is, and its unit as readers know it ("" without a unit)."""
    loss = LOSSES.get(name)
    if loss is not None and unit == "1":
        unit = loss.unit("units")
    return "loss" if loss is None else loss.words(), readable_unit(unit)


def readable_unit(unit: str) -> str:
    """The unit of a loss as readers know it, "" where it has none."""
    return {"1": "", "units^2": "squared units"}.get(unit, unit.replace("^2", "²"))

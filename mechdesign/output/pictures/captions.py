"""The words on pictures: which problem, which metric, which loss, which unit."""

from __future__ import annotations

import json
import math
import textwrap

import xarray as xr

from mechdesign.base.streams import visible
from mechdesign.mechanism.stored import read
from mechdesign.output.sentences import error_sentence, protects
from mechdesign.setting.metric.metrics import metric_from_description
from mechdesign.setting.objective.losses import LOSSES
from mechdesign.verification.verify import Verification

_WIDTH = 120  # characters of a line above a picture


def plain(text: object) -> str:
    """A text of a file as a picture shows it: no control characters, and dollar signs are no formulas."""
    return visible(text).replace("$", r"\$")


def problem_sentence(result: xr.Dataset, secrets: int) -> str:
    """Name of the problem and how many cells or places, of a Dataset with the attributes problem and domain."""
    shape = json.loads(result.attrs["domain"]).get("shape")
    where = f"{secrets} places" if shape is None else " x ".join(map(str, shape)) + " cells"
    masked = "" if shape is None or math.prod(shape) == secrets else f", {secrets} of them secrets"
    return f"{plain(result.attrs['problem'])}: {where}{masked}"


def metric_sentence(result: xr.Dataset) -> str:
    """The metric in a few words, neighbours and levels included, of a Dataset with the attributes metric and domain."""
    domain = json.loads(result.attrs["domain"])
    metric = metric_from_description(json.loads(metric_told(result)))
    return metric.words(domain["unit"], len(domain.get("shape", ())))


def metric_told(result: xr.Dataset) -> str:
    """The metric that people are told, as a file describes it: that of positions where the claim is about them, and
    not the multiple that holds for the rows of the table.
    """
    about = "problem_metric" if "position_claim" in result.attrs and "problem_metric" in result.attrs else "metric"
    return str(result.attrs[about])


def loss_words(judged: str, unit: str) -> tuple[str, str]:
    """What a loss of this name is the mean of, and its unit ("" where it has none) as readers know it."""
    loss = LOSSES.get(judged)
    told = loss.unit("units") if loss is not None and unit == "1" else unit
    readable = {"1": "", "units^2": "squared units"}.get(told, told.replace("^2", "²"))
    return "loss" if loss is None else loss.words(), readable


def judged(mechanism: xr.Dataset) -> tuple[str, str]:
    """What the loss of a mechanism is the mean of, and its unit."""
    name, unit = mechanism.attrs["loss"], json.loads(mechanism.attrs["domain"])["unit"]
    tabled = plain(mechanism["loss_table"].attrs["units"]) if "loss_table" in mechanism else "1"
    return loss_words(name, LOSSES[name].unit(unit) if name in LOSSES else tabled)


def claim_sentence(mechanism: xr.Dataset, checked: Verification) -> str:
    """What is protected, the program, and how far off its reports are."""
    assert checked.protection is not None
    error = error_sentence(read(mechanism)).sentence
    said = f"{protects(checked.protection).sentence} {plain(mechanism.attrs['program'])} mechanism: {error}"
    return "\n".join(textwrap.wrap(said, _WIDTH))


def axis_label(axis: str, unit: str) -> str:
    """A coordinate with its unit."""
    return f"{axis} ({'units' if unit == '1' else unit})"

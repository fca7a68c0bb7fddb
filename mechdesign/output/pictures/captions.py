"""The words on pictures: which problem, which metric, which loss, which unit."""

from __future__ import annotations

import json
import math

import numpy as np
import xarray as xr

from mechdesign.base.streams import visible
from mechdesign.base.units import unit_word

_JUDGED = {"squared": "squared distance", "distance": "distance", "zero-one": "share of wrong reports", "table": "loss"}


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
    metric, domain = json.loads(result.attrs["metric"]), json.loads(result.attrs["domain"])
    times = float(metric["multiplier"])
    per = f"nats per {unit_word(domain['unit'])}"
    if metric["kind"] == "eikonal":
        level = np.array(metric["level"]["eps"]) * times
        low, high = f"{level.min():.3g}", f"{level.max():.3g}"
        eps = low if low == high else f"{low} to {high}"
        neighbours = 2 if len(domain["shape"]) == 1 else metric["stencil"]
        return f"eikonal metric, {neighbours} neighbours, eps = {eps} {per}"
    if metric["kind"] == "euclidean":
        return f"Euclidean metric, eps = {metric['epsilon'] * times:.3g} {per}"
    if metric["kind"] == "streets":
        return f"distance along {len(metric['length'])} streets, eps = {metric['epsilon'] * times:.3g} {per}"
    if metric["kind"] == "discrete":
        return f"discrete metric, eps = {metric['epsilon'] * times:.3g} nats"
    return "graph metric"


def loss_words(judged: str, unit: str) -> tuple[str, str]:
    """What a loss of this name is the mean of, and its unit ("" where it has none) as readers know it."""
    lengths = {"squared": "squared units", "distance": "units"}
    return _JUDGED[judged], lengths.get(judged, "") if unit == "1" else unit.replace("^2", "²")


def axis_label(axis: str, unit: str) -> str:
    """A coordinate with its unit."""
    return f"{axis} ({'units' if unit == '1' else unit})"

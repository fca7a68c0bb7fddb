"""The table of metrics, and the one way from a description in a file to a metric."""

from __future__ import annotations

from typing import Any

from mechdesign.base.descriptions import finite, named, word
from mechdesign.errors import InputError
from mechdesign.setting.metric.discrete import Discrete
from mechdesign.setting.metric.eikonal import Eikonal
from mechdesign.setting.metric.euclidean import Euclidean
from mechdesign.setting.metric.graph import Graph
from mechdesign.setting.metric.metric import Metric
from mechdesign.setting.metric.shortest_paths import Edges
from mechdesign.setting.metric.streets import Streets

METRICS: dict[str, type[Metric]] = {
    metric.kind: metric for metric in (Discrete, Eikonal, Euclidean, Graph, Streets)
}  # kind: class; a class from outside the package is one entry more


def metric_from_description(description: dict[str, Any], listed: Edges | None = None) -> Metric:
    """The metric that `Metric.describe` described.

    listed, the edges of the claim as the file lists them: a graph is nothing else, and without them has no edge.
    Raises: InputError that names the field where the description is another, misses or adds a name, or holds what is no
        finite number, whole number or list of them.
    """
    kind = word(description.get("kind"), "metric") if isinstance(description, dict) else ""
    if kind not in METRICS:
        raise InputError("unknown metric", field="metric", value=kind, remedy="use a file written by this version")
    told = named(description, "metric", ("kind", "multiplier", *METRICS[kind].described))
    scale = float(finite(told["multiplier"], "multiplier"))
    if scale < 0:
        raise InputError("must not be negative", field="multiplier", value=scale, remedy="use an unaltered file")
    return METRICS[kind].from_description(told, scale=scale, listed=listed)

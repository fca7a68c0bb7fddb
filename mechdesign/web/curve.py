"""Texts and the picture of the page of a sweep."""

from __future__ import annotations

import base64
import io
import json
import math
from typing import Any

import xarray as xr

from mechdesign.base.formatting import length, number
from mechdesign.base.streams import visible
from mechdesign.base.units import plural_unit
from mechdesign.errors import InputError
from mechdesign.output.captions import readable_unit
from mechdesign.output.sweep import columns, curve_points, printed_losses
from mechdesign.problem.losses import LOSSES
from mechdesign.web.identity import identity_of, parameter_words

_ROUNDING = 1e-9  # relative: a lower bound may exceed its loss by this rounding


def curve_facts(curve: xr.Dataset) -> dict[str, Any]:
    """Texts of the page of a sweep, its curve as a picture in base64 where Matplotlib is there."""
    attrs, points = curve.attrs, curve_points(curve)
    # A sweep has no tables to prove it, but its bounds must not contradict its losses: those never rise with the scale.
    for below, point in zip([points[0], *points], points, strict=False):
        if not point.lower_bound <= min(point.loss, below.loss) * (1 + _ROUNDING):
            raise InputError(
                "is above a loss that it bounds", field="lower_bound", value=point.lower_bound, remedy="sweep again"
            )
    unit = json.loads(attrs["domain"])["unit"]
    loss = LOSSES.get(attrs["loss"])
    loss_unit = readable_unit("1" if loss is None else loss.unit(unit))
    first, last = points[0], points[-1]
    ends = _ends(attrs["loss"], [first.loss, last.loss], loss_unit, unit)
    sentence = f"From {number(first.scale)} to {number(last.scale)} times the privacy level, {ends}."
    return identity_of(curve, "sweep", parameters=parameter_words(curve)) | {
        "sentence": visible(sentence),
        "subtitle": f"{attrs['secrets']} secrets · sweep of {len(points)} levels",
        "unit": plural_unit(unit),
        "verdict": "Figures of a sweep",
        "saying": "A sweep stores no tables to prove. Each table was certified when the sweep was made.",
        "picture": _curve_picture(curve),
        "figures": [],
        "listed": {
            "head": [column.heading for column in columns(first)]
            + [f"loss of {visible(name)}" for name in first.baselines],
            "rows": [printed_losses(point) for point in points],
            "rest": 0,
            "note": "* not private at that scale: its loss belongs to a weaker claim.",
        },
    }


def _curve_picture(curve: xr.Dataset) -> str | None:
    try:
        from mechdesign.pictures.plot import plot_sweep

        figure, stream = plot_sweep(curve), io.BytesIO()
    except ImportError:
        return None
    figure.savefig(stream, format="png", dpi=160)
    return base64.b64encode(stream.getvalue()).decode()


def _ends(loss: str, values: list[float], loss_unit: str, unit: str) -> str:
    if loss in ("squared", "distance"):
        values = [math.sqrt(value) for value in values] if loss == "squared" else values
        high, low = (length(value, unit, up=True) for value in values)
        end = "(root mean square)" if loss == "squared" else "on average"
        return f"the smallest error falls from {high} to {low} {end}"
    if loss == "zero-one":
        high, low = (number(100 * (1 - value), up=False) for value in values)
        return f"the probability of a correct report rises from {high} to {low} %"
    high, low = (f"{number(value, up=True)} {loss_unit}".strip() for value in values)
    return f"the smallest loss falls from {high} to {low}"

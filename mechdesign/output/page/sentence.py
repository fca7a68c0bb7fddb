"""The plain sentence that a page begins with: what a report gives away, how far off it is, what the best would be.

A `Saying` is a template and its figures: the page fills the template in the browser with figures that it has found
again, and refuses those that differ. Every figure has its value in full and the text that people read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mechdesign.base.units import unit_word
from mechdesign.mechanism.positions.patches import level_range
from mechdesign.mechanism.stored import Stored
from mechdesign.programs.optimal.positions import Positions
from mechdesign.setting.metric.discrete import Discrete
from mechdesign.setting.metric.eikonal import Eikonal
from mechdesign.setting.metric.euclidean import Euclidean
from mechdesign.setting.metric.shortest_paths import Edges
from mechdesign.setting.metric.streets import Streets
from mechdesign.setting.space.domain import Domain
from mechdesign.utility.loss.true_position import position_loss

USUAL = 2.0  # the factor of odds that the sentence speaks of where nobody asked for another
_AGREE = 1e-6  # relative, of a radius and nats that were asked for with the epsilon that they make
TIMES = "\N{MULTIPLICATION SIGN}"
_CHANGES = ", a report changes an attacker's odds by"
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# By numbers of axes and of neighbours: how far a graph distance exceeds the Euclidean one at most, at constant eps.
_STRETCH = {(2, 4): 1.41422, (2, 8): 1.08240, (2, 16): 1.02750, (2, 32): 1.01310, (2, 64): 1.00755}
_STRETCH |= {(3, 6): 1.73206, (3, 18): 1.39400, (3, 26): 1.12800}


@dataclass(frozen=True, kw_only=True)
class Saying:
    """template, with {NAME} for every figure; values, the figures in full; texts, as people read them, by name."""

    template: str
    values: Mapping[str, float] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """The template filled in."""
        return self.template.format(**self.texts)

    def as_dict(self) -> dict[str, object]:
        """The JSON form."""
        return {"template": self.template, "values": dict(self.values), "texts": dict(self.texts)}


def short(value: float, *, upwards: bool | None = None) -> str:
    """A figure with three digits, thousands apart; rounded up or down where `upwards` is True or False."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    power = 10.0 ** (math.floor(math.log10(abs(value))) - 2)
    count = round(value / power, 9)
    digits = round(count) if upwards is None else math.ceil(count) if upwards else math.floor(count)
    rounded = digits * power
    if 1e-3 <= abs(rounded) < 1e6:
        places = max(0, -math.floor(math.log10(power * 1.5)))
        text = f"{rounded:,.{places}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    shown, exponent = f"{rounded:.2e}".split("e")
    return f"{shown} {TIMES} 10{str(int(exponent)).translate(_RAISED)}"


def saying_of(stored: Stored) -> Saying:
    """The sentence of a mechanism: its promise, its loss, and its lower bound where the loss is what was minimised."""
    attrs, placed = stored.mechanism.attrs, stored.positions is not None
    lost = position_loss(stored.mechanism) if placed else float(attrs["expected_loss"])
    parts = [_promise(stored), *([] if lost is None else [_loss(stored, lost)])]
    bounded = "lower_bound" in attrs and float(attrs["lower_bound"]) > 0
    if bounded and ("objective" not in attrs or (placed and attrs["program"] == Positions.name)):
        parts.append(_bound(stored))
    words = "; ".join(part.template for part in parts)
    return Saying(
        template=words[0].upper() + words[1:] + ".",
        values={name: value for part in parts for name, value in part.values.items()},
        texts={name: text for part in parts for name, text in part.texts.items()},
    )


def promise_to_people(stored: Stored) -> Saying:
    """The same promise for those who give reports, after "Whatever was reported, "; figures as in `saying_of`."""
    said = _promise(stored)
    where, comma, _ = said.template.partition(_CHANGES)
    if not comma:
        return said
    if where.startswith("within"):
        where = f"between places {where}" + ("" if where.endswith("streets") else " of each other")
    where += "," * (", " in where)
    words = f"a report changes anybody's odds {where} by no more than a factor of {{factor}}"
    return Saying(template=words, values=said.values, texts=said.texts)


def lengths(unit: str, count: int = 2) -> str:
    """A unit of length after a number."""
    return {"1": "units", "cell": "cells"}.get(unit, unit) if count > 1 else unit_word(unit)


def _promise(stored: Stored) -> Saying:
    """What a report changes an attacker's odds by, between which places."""
    metric, domain = stored.metric, stored.domain
    end = _CHANGES.removeprefix(", ") + " no more than a factor of {factor}"
    if float(stored.edges.length.max()) == 0:
        return Saying(template="a report tells an attacker nothing at all")
    if stored.positions is not None:
        return _between_positions(stored, end)
    if isinstance(metric, Discrete):
        return _factor("between any two secrets, " + end, float(stored.edges.length.max()))
    reach = _reach(stored)
    if reach is not None and reach[0] >= domain.spacing:
        radius, nats = reach
        where = f"within {{radius}} {lengths(domain.unit)}" + (" along the streets" if metric.network else "")
        told = _factor(f"{where}, {end}", nats)
        shown = short(radius, upwards=False)
        return Saying(
            template=told.template,
            values={**told.values, "radius": radius},
            texts={**told.texts, "radius": shown},
        )
    beside = "places that an edge joins"
    if domain.cell is not None:
        same = len(set(domain.cell)) == 1
        apart = f", {short(domain.cell[0])} {lengths(domain.unit, 1 + (domain.cell[0] != 1))} apart" if same else ""
        beside = f"neighbouring {'values' if domain.dimension == 1 else 'cells'}{apart}"
    return _factor(f"between {beside}, {end}", float(_shortest(stored.edges, domain).max()))


def _between_positions(stored: Stored, end: str) -> Saying:
    """The promise between any two positions: D is at most the largest level times the length of a path inside."""
    assert stored.asked is not None and stored.domain.shape is not None
    radius, nats = _asked_for(stored, level_range(stored.asked)[1] * stored.asked.scale)
    unit, whole = lengths(stored.domain.unit), math.prod(stored.domain.shape) == stored.domain.size
    where = f"within {{radius}} {unit} of each other" if whole else f"a path of {{radius}} {unit} inside the area apart"
    told = _factor(f"between any two positions {where}, {end}", nats)
    texts = {**told.texts, "radius": short(radius, upwards=False)}
    return Saying(template=told.template, values={**told.values, "radius": radius}, texts=texts)


def _factor(template: str, nats: float) -> Saying:
    factor = math.exp(nats) if nats < 700 else math.inf
    return Saying(template=template, values={"factor": factor}, texts={"factor": short(factor, upwards=True)})


def _reach(stored: Stored) -> tuple[float, float] | None:
    """A radius and the nats of the claim within it at most: those that were asked for, or the radius of `USUAL`.

    None where the metric has no level per length, and where cells are masked, so that the way around them is longer.
    """
    metric, domain = stored.metric, stored.domain
    if isinstance(metric, Euclidean):
        level = metric.smallest_level
    elif isinstance(metric, Streets):
        level = metric.epsilon * metric.scale
    elif isinstance(metric, Eikonal) and domain.shape is not None and domain.size == math.prod(domain.shape):
        stretch = 1.0 if domain.dimension == 1 else _STRETCH[domain.dimension, metric.stencil]
        level = metric.level.largest * metric.scale * stretch
    else:
        return None
    return _asked_for(stored, level) if level > 0 else None


def _asked_for(stored: Stored, level: float) -> tuple[float, float]:
    """The radius and nats that were asked for where they make the level, else the radius of `USUAL`."""
    domain = stored.domain
    asked = stored.parameters["knobs"]
    radius, nats = asked.get("radius", asked.get("within")), asked.get("level", asked.get("nats"))
    if nats is None and isinstance(asked.get("factor"), (int, float)) and asked["factor"] > 1:
        nats = math.log(asked["factor"])
    if isinstance(radius, (int, float)) and isinstance(nats, (int, float)) and radius > 0 < nats:
        kept = level * radius <= nats * (1 + _AGREE)
        if kept and nats * (1 - 2e-3) <= level * radius and domain.plane is not None:
            return float(radius), float(nats)
    return math.log(USUAL) / level, math.log(USUAL)


def _shortest(edges: Edges, domain: Domain) -> np.ndarray:
    """Lengths in nats of the edges of a grid whose ends share a face; of all edges elsewhere."""
    if domain.index is None:
        return np.asarray(edges.length)
    beside = np.abs(domain.index[edges.tail] - domain.index[edges.head]).sum(axis=1) == 1
    return np.asarray(edges.length[beside] if beside.any() else edges.length)


def _loss(stored: Stored, loss: float) -> Saying:
    name = stored.loss.name
    what = "reports" if stored.same_places else "answers"
    unit = stored.loss.unit(stored.domain.unit)
    root = unit.removesuffix("^2") if unit.endswith("^2") else unit
    said = f" {lengths(root)}"
    off = "off" if stored.positions is None else "off the true position"
    if name == "zero-one":
        return Saying(
            template="a report is the true one with probability {loss} %",
            values={"loss": 100 * (1 - loss)},
            texts={"loss": short(100 * (1 - loss))},
        )
    if name == "distance":
        words, value = f"{what} are {{loss}}{said} {off} on average", loss
    elif name == "squared":
        words, value = f"{what} are {{loss}}{said} {off} (root mean square)", math.sqrt(max(loss, 0.0))
    else:
        shown = "" if unit == "1" else f" {unit.replace('^2', '²')}"
        words, value = f"{what} have a loss of {{loss}}{shown} on average", loss
    return Saying(template=words, values={"loss": value}, texts={"loss": short(value)})


def _bound(stored: Stored) -> Saying:
    bound, name = float(stored.mechanism.attrs["lower_bound"]), stored.loss.name
    no = "no mechanism" if stored.positions is None else "no other spline within the cones"
    if name == "zero-one":
        value = 100 * (1 - bound)
        words, text = f"{no} could do better than {{bound}} %", short(value, upwards=True)
    else:
        value = math.sqrt(bound) if name == "squared" else bound
        unit = stored.loss.unit(stored.domain.unit)
        unit = unit.removesuffix("^2") if name == "squared" else unit.replace("^2", "²")
        shown = f" {lengths(unit)}" if name in ("distance", "squared") or unit != "1" else ""
        words, text = f"{no} could do better than {{bound}}{shown}", short(value, upwards=False)
    return Saying(template=words, values={"bound": value}, texts={"bound": text})

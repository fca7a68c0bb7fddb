"""The claim of a file, put together from its metric and domain, and compared with a sentence word by word."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from reference.geometry import METRES, Level
from reference.reading import File, Sentence, Unreadable


@dataclass(frozen=True)
class Claim:
    """kind names the metric; times multiplies its lengths; excess, by which the plane lengthens distances at most."""

    secrets: int
    kind: str
    times: Fraction
    epsilon: Fraction
    stencil: int | None
    excess: float | None
    edges: int
    fingerprint: str


def read_claim(sentence: object, file: File) -> Claim:
    """The claim of a file, where the sentence is the one that its metric and its domain give."""
    metric, domain, secrets = file.json_attribute("metric"), file.json_attribute("domain"), len(file.points("secret"))
    said = Sentence(sentence)
    said.says(f"One report satisfies P(y|u) <= exp(d(u,u')) P(y|u') for every report y and all {secrets} secrets (")
    excess = None
    if domain["kind"] == "grid":
        said.says(f"{cells_word(domain)} of a {' x '.join(map(str, domain['shape']))} grid")
        excess = excess_said(said, domain)
    else:
        said.says("places")
    said.says(f"), where d is {multiple(metric)}{_distance(metric, unit_word(domain))}; checked on ")
    edges = said.number()
    said.says(" edges (list ")
    fingerprint = said.word()
    said.says("). k reports cost k times as much.")
    said.ends()
    return Claim(
        secrets=secrets,
        kind=metric["kind"],
        times=Fraction(1) if metric["kind"] == "graph" else Fraction(metric["multiplier"]),
        epsilon=Fraction(metric.get("epsilon", 0)),
        stencil=metric.get("stencil"),
        excess=excess,
        edges=int(edges),
        fingerprint=fingerprint,
    )


def excess_said(said: Sentence, domain: dict[str, Any]) -> float | None:
    """By how much the sentence says that a plane lengthens distances; None where there is no plane."""
    if "plane" not in domain:
        return None
    north, east = domain["plane"]["latitude"], domain["plane"]["longitude"]
    ends = f"{abs(north):.9g} {'NS'[north < 0]} {abs(east):.9g} {'EW'[east < 0]}"
    said.says(
        f" on the azimuthal equidistant plane about {ends}, WGS84, where distances exceed geodesic ones by less than "
    )
    excess = said.number()
    said.says(" of them")
    return excess


def cells_word(domain: dict[str, Any]) -> str:
    """Return the name of the cells of a grid: intervals where coordinates are not lengths."""
    lengths = (*METRES, "cell") + ("1",) * (len(domain["shape"]) > 1)
    return "cells" if unit_name(domain["unit"]) in lengths else "intervals"


def unit_word(domain: dict[str, Any]) -> str:
    """The unit of a domain in a sentence."""
    return "unit" if domain["unit"] == "1" else unit_name(domain["unit"])


def unit_name(unit: object) -> str:
    """The name that sentences and coordinates use of a unit; of all other spellings the mutations try one."""
    return "m" if unit == "metres" else str(unit)


def multiple(metric: dict[str, Any]) -> str:
    """The multiplier of a metric in a sentence; a graph lists its lengths multiplied already."""
    times = float(metric["multiplier"])
    return "" if times == 1 or metric["kind"] == "graph" else f"{times!r} times "


def _distance(metric: dict[str, Any], unit: str) -> str:
    kind = metric["kind"]
    if kind == "graph":
        return "the shortest-path distance of the edges listed in this file"
    if kind == "eikonal":
        level = Level(metric["level"]).words()
        return (
            f"the shortest-path distance of the {metric['stencil']}-neighbour graph, every edge as long as the line "
            f"integral of the {level['linear']} privacy level eps ({level['low']} to {level['high']} nats per {unit}, "
            f"map {level['map']})"
        )
    epsilon = f"{float(metric['epsilon']):.17g} nats"
    words = {
        "euclidean": f"the Euclidean distance over all pairs times {epsilon} per {unit}",
        "discrete": f"the discrete metric, {epsilon} between any two secrets (local differential privacy)",
        "streets": f"the shortest-path distance along the streets listed in this file, either way, times {epsilon} per "
        f"{unit}",
    }
    if kind not in words:
        raise Unreadable("another metric")
    return words[kind]

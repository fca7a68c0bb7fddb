"""What a file and a sentence say, read strictly: anything else than was expected is an `Unreadable`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

AXES = ("x", "y", "z")


class Unreadable(ValueError):
    """What is there cannot be read as a file or a claim."""


@dataclass(frozen=True)
class File:
    """A file as nested lists; see the package's docstring."""

    attrs: dict[str, Any]
    variables: dict[str, dict[str, Any]]

    def values(self, name: str, dims: tuple[str, ...], dtype: str) -> list[Any]:
        """The entries of a variable that must be there over these dimensions."""
        if name not in self.variables:
            raise Unreadable(f"{name} is missing")
        variable = self.variables[name]
        if (tuple(variable["dims"]), variable["dtype"]) != (dims, dtype):
            raise Unreadable(f"{name} is {variable['dtype']} over {variable['dims']}")
        return list(variable["values"])

    def attribute(self, name: str, kind: type) -> Any:
        """An attribute of this type; a whole number passes for a float, a boolean for nothing."""
        value = self.attrs.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float) if kind is float else kind):
            raise Unreadable(f"attribute {name} is {value!r}")
        return value

    def described(self, name: str) -> dict[str, Any]:
        """An attribute that holds JSON."""
        found = json.loads(self.attribute(name, str))
        if not isinstance(found, dict):
            raise Unreadable(f"attribute {name} is no object")
        return found

    def points(self, dim: str) -> tuple[tuple[Fraction, ...], ...]:
        """The places along a dimension, exactly as stored."""
        axes = self.axes(dim)
        columns = [self.values(f"{dim}_{axis}", (dim,), "float64") for axis in axes]
        return tuple(tuple(map(Fraction, place)) for place in zip(*columns, strict=True))

    def axes(self, dim: str) -> tuple[str, ...]:
        """The axes of the coordinates of a dimension: x, or x and y, or all three."""
        axes = tuple(axis for axis in AXES if f"{dim}_{axis}" in self.variables)
        if not axes or axes != AXES[: len(axes)]:
            raise Unreadable(f"places of {dim} have axes {axes}")
        return axes

    def unit(self, dim: str) -> str:
        """The unit of the coordinates of a dimension."""
        units = {str(self.variables[f"{dim}_{axis}"]["attrs"].get("units")) for axis in self.axes(dim)}
        if len(units) > 1:
            raise Unreadable(f"coordinates of {dim} in {sorted(units)}")
        return units.pop()


@dataclass(frozen=True)
class Claim:
    """The sentence, number by number. kind names the metric; times multiplies its lengths."""

    secrets: int
    shape: tuple[int, ...] | None
    plane: dict[str, str] | None
    kind: str
    times: Fraction
    epsilon: Fraction | None
    unit: str | None
    stencil: int | None
    level: dict[str, str] | None
    edges: int
    fingerprint: str


_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]{1,3})?"
_SENTENCE = re.compile(
    r"One report satisfies P\(y\|u\) <= exp\(d\(u,u'\)\) P\(y\|u'\) for every report y and all "
    r"(?P<secrets>[0-9]+) secrets \((?P<where>.+?)\), where d is (?:(?P<times>NUMBER) times )?(?P<metric>[^;]+); "
    r"checked on (?P<edges>[0-9]+) edges \(list (?P<list>[0-9a-f]{12})\)\. k reports cost k times as much\.".replace(
        "NUMBER", _NUMBER
    )
)
_WHERE = re.compile(
    r"places|cells of a (?P<shape>[0-9]+(?: x [0-9]+)*) grid(?: on the azimuthal equidistant plane about "
    r"(?P<latitude>NUMBER) (?P<north>[NS]) (?P<longitude>NUMBER) (?P<east>[EW]), WGS84, where distances exceed "
    r"geodesic ones by less than (?P<excess>NUMBER) of them)?".replace("NUMBER", _NUMBER)
)
_METRICS = {
    kind: re.compile(pattern.replace("NUMBER", _NUMBER))
    for kind, pattern in {
        "euclidean": r"the Euclidean distance over all pairs times (?P<epsilon>NUMBER) nats per (?P<unit>\w+)",
        "discrete": r"the discrete metric, (?P<epsilon>NUMBER) nats between any two secrets \(local differential "
        r"privacy\)",
        "graph": r"the shortest-path distance of the edges listed in this file",
        "streets": r"the shortest-path distance along the streets listed in this file, either way, times "
        r"(?P<epsilon>NUMBER) nats per (?P<unit>\w+)",
        "eikonal": r"the shortest-path distance of the (?P<stencil>[0-9]+)-neighbour graph, every edge as long as the "
        r"line integral of the (?P<linear>bilinear|trilinear) privacy level eps \((?P<low>NUMBER) to (?P<high>NUMBER) "
        r"nats per (?P<unit>\w+), map (?P<map>[0-9a-f]{12})\)",
    }.items()
}


def read_claim(sentence: str) -> Claim:
    """The claim of a sentence. A decimal number names the double nearest to it, as seventeen digits do."""
    whole = _SENTENCE.fullmatch(sentence)
    where = whole and _WHERE.fullmatch(whole["where"])
    if not whole or not where:
        raise Unreadable("another sentence")
    fitting = [(kind, found) for kind, pattern in _METRICS.items() if (found := pattern.fullmatch(whole["metric"]))]
    if not fitting:
        raise Unreadable("another metric")
    ((kind, found),) = fitting
    said = found.groupdict()
    shape = None if where["shape"] is None else tuple(map(int, where["shape"].split(" x ")))
    return Claim(
        secrets=int(whole["secrets"]),
        shape=shape,
        plane=where.groupdict() if where["latitude"] is not None else None,
        kind=kind,
        times=Fraction(float(whole["times"] or 1)),
        epsilon=Fraction(float(said["epsilon"])) if said.get("epsilon") else None,
        unit=said.get("unit"),
        stencil=int(said["stencil"]) if kind == "eikonal" else None,
        level=said if kind == "eikonal" else None,
        edges=int(whole["edges"]),
        fingerprint=whole["list"],
    )

"""Read a file strictly and compare sentences with it: anything unexpected is an `Unreadable`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

AXES = ("x", "y", "z")


class Unreadable(ValueError):
    """The content cannot be read as a file or a claim."""


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
        """An attribute of this type; an integer passes for a float, a boolean for nothing."""
        value = self.attrs.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float) if kind is float else kind):
            raise Unreadable(f"attribute {name} is {value!r}")
        return value

    def json_attribute(self, name: str) -> dict[str, Any]:
        """An attribute that holds JSON."""
        found = json.loads(self.attribute(name, str))
        if not isinstance(found, dict):
            raise Unreadable(f"attribute {name} is not an object")
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


class Sentence:
    """A sentence compared word by word with the expected one; `number` and `word` read values that a file lacks."""

    def __init__(self, text: object) -> None:
        if not isinstance(text, str):
            raise Unreadable("no sentence")
        self._rest = text

    def says(self, words: str) -> None:
        """The next words."""
        if not self._rest.startswith(words):
            raise Unreadable(f"another sentence: not {words[:80]!r}")
        self._rest = self._rest[len(words) :]

    def word(self) -> str:
        """The letters and digits that come next."""
        end = next((k for k, c in enumerate(self._rest) if not (c.isascii() and c.isalnum())), len(self._rest))
        word, self._rest = self._rest[:end], self._rest[end:]
        return word

    def number(self) -> float:
        """The plain number that comes next, up to a blank."""
        text = self._rest.split(" ", 1)[0]
        if not set(text) <= set("0123456789.e+-") or not text[:1].isdigit():
            raise Unreadable(f"{text[:40]!r} is not a number")
        self._rest = self._rest[len(text) :]
        return float(text)

    def ends(self) -> None:
        """Nothing more."""
        if self._rest:
            raise Unreadable("more words")

"""Nouns for secrets, by the same rules as verification/verify_table.py and web/browser/proof/protection.js."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from mechdesign.base.units import LENGTHS

Shape = Literal["disc", "interval"]


class Secrets(Protocol):
    """The properties of a domain that choose its nouns."""

    @property
    def kind(self) -> str: ...

    @property
    def unit(self) -> str: ...

    @property
    def dimension(self) -> int: ...


@dataclass(frozen=True)
class Words:
    """Nouns: of the exact value (`truth`), of one secret and of several."""

    truth: str
    one: str
    many: str

    @property
    def a_one(self) -> str:
        return f"{'an' if self.one[0] in 'aeiou' else 'a'} {self.one}"

    @property
    def report_noun(self) -> str:
        return "place" if self.truth == "position" else self.truth

    @property
    def truths(self) -> str:
        return f"{self.truth}{'es' if self.truth.endswith('s') else 's'}"

    @property
    def centres(self) -> str:
        return f"centres of {self.many}"


CELLS = Words("position", "cell", "cells")
PLACES = Words("position", "place", "places")
INTERVALS = Words("value", "interval", "intervals")
VALUES = Words("value", "value", "values")
CLASSES = Words("class", "class", "classes")


def words_of(domain: Secrets) -> Words:
    """The nouns for the secrets of a domain."""
    return words_for(domain.kind, domain.unit, domain.dimension)


def shape_of(domain: Secrets) -> Shape:
    """The noun for the points within a radius of another: on one axis of values an interval, else a disc."""
    return "interval" if domain.dimension == 1 and words_of(domain).truth == "value" else "disc"


def disc_phrase(shape: Shape, radius: str) -> str:
    """A disc or an interval with its radius in words: an interval is twice as wide."""
    return f"interval of {radius} either way" if shape == "interval" else f"disc of radius {radius}"


def words_for(kind: str, unit: str, axes: int) -> Words:
    """The nouns for secrets of a kind: places on a plane for lengths, and for two or three axes without any unit."""
    if unit in LENGTHS or unit == "cell" or (kind != "nodes" and unit == "1" and axes > 1):
        return CELLS if kind == "grid" else PLACES
    if kind == "nodes":
        return CLASSES
    return INTERVALS if kind == "grid" else VALUES

"""Exports with positions, changed anywhere at random and sealed again: what a hostile writer hands to the verifier."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random
from typing import Any

VALUES = (
    *(None, True, False, 0, 1, -1, 2, 7, 10**40, -(10**40), 2**62, 0.5, -0.0, 1e308, 1e-320, "", "0", "-1", "nan"),
    *("inf", "1e999", "0x1p-1074", "0x1p1023", "-0x1p0", "0x0p+0", "km", "1", "x, y", "9" * 30, "\u202e", [], {}),
    *(json.loads("[" * 300 + "]" * 300), "9" * 5000, "0x1p5000", "\ud800"),
    *([0], [[]], [[0, 1, "0x1p0"]], [None], {"x": 1}, [1, 2, 3], ["0x1p0"] * 13, [0] * 9 + ["0x1p0"] * 4),
)
NUMBERS = (
    *("0", "1", "2", "0.0", "1e-999", "1e999", "1e308", "1e-300", "9" * 25, "0.5", "1e-25", "00", "0.1e1"),
    *("1000000000", "999999999", "1e40", "65536", "1e-320", "9" * 5000),
)
WORDS = ("km", "m", "cell", "unit", "1", "N", "E", "cells", "x", "exp", "plane", "path", "grid")


def export_of(text: str, kind: str, number: int) -> bytes:
    """Change number `number` of the text of an export (`exported.joined`), CSV or JSON, always the same."""
    random = Random(f"{kind} {number}")
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        text = random.choice((_in_words, _in_json if kind == "json" else _in_lines, _in_text))(text, random)
    return text.encode("utf-8", "surrogatepass")


def _in_words(text: str, random: Random) -> str:
    """A number or a word of the claim."""
    said = random.choice(re.findall(r"claim\"?: (\{.*\}+)", text) or [text[:200]])
    found = list(re.finditer(r"[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?|[a-zA-Z]+", said))
    if not found:
        return text
    at = random.choice(found)
    other = random.choice(NUMBERS if at[0][0].isdigit() else WORDS)
    return text.replace(said, said[: at.start()] + other + said[at.end() :], random.choice((1, 1, 2)))


def _in_text(text: str, random: Random) -> str:
    """A sign, a line or a stretch lost, doubled or moved; the last line is sealed again."""
    lines = text.split("\n")
    at, other = random.randrange(len(lines)), random.randrange(len(lines))
    ways: list[Callable[[], object]] = [
        lambda: lines.pop(at),
        lambda: lines.insert(other, lines[at]),
        lambda: lines.__setitem__(slice(at, at + random.randrange(1, 30)), []),
        lambda: lines.__setitem__(at, lines[at][: random.randrange(len(lines[at]) + 1)]),
        lambda: lines.__setitem__(at, lines[at].replace(",", random.choice((";", ",,", "")), 1)),
    ]
    random.choice(ways)()
    return "\n".join(lines) + ("" if lines[-1:] == [""] else "\n")


def _in_lines(text: str, random: Random) -> str:
    """A comment beside a CSV, or a cell of it, replaced."""
    lines = text.split("\n")
    at = random.randrange(len(lines))
    if random.random() < 0.6:
        at = random.choice([k for k, line in enumerate(lines) if line.startswith("# ")] or [at])
        name = lines[at].split(": ", 1)[0]
        if random.random() < 0.15:
            name = f"# {random.choice(('edge', 'patch', 'unit', 'secrets', 'coordinates', 'claim'))}"
        value = _other(lines[at].split(": ", 1)[-1], random)
        lines[at] = f"{name}: {value}"
    else:
        cells = lines[at].split(",")
        cells[random.randrange(len(cells))] = random.choice((*NUMBERS, "", "-1", "nan", "0x1", "1_0", "+1", " 1"))
        lines[at] = ",".join(cells)
    return "\n".join(lines)


def _other(text: str, random: Random) -> str:
    try:
        held = json.loads(text)
    except ValueError:
        return json.dumps(random.choice(VALUES))
    if isinstance(held, list) and held and random.random() < 0.7:
        held[random.randrange(len(held))] = random.choice(VALUES)
        return json.dumps(held)
    return json.dumps(random.choice(VALUES))


def _in_json(text: str, random: Random) -> str:
    """A value at any depth of a JSON export replaced, lost or named otherwise; numbers keep their digits."""
    try:
        whole = json.loads(text, parse_float=_Digits, parse_int=_Digits)
    except ValueError:
        return _in_text(text, random)
    place: Any = whole
    while True:
        if not isinstance(place, dict | list) or not place:
            return text
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = random.choice([k for k in keys if k != "content_sha256"] or [0])
        if key not in keys or not isinstance(place[key], dict | list) or not place[key] or random.random() < 0.5:
            break
        place = place[key]
    chance = random.random()
    if chance < 0.15:
        del place[key]
    elif chance < 0.25 and isinstance(place, list):
        place.insert(int(key), place[key])
    elif chance < 0.3 and isinstance(place, dict):
        place[random.choice(("unit", "edge", "patch", "coordinates", "mass", "claim", "other"))] = place[key]
    else:
        place[key] = random.choice(VALUES)
    said = whole.pop("content_sha256", "")
    return f'{_json_text(whole)[:-1]},\n"content_sha256": {json.dumps(str(said))}}}\n'


class _Digits(str):
    """A number as it was written."""


def _json_text(value: Any) -> str:
    if isinstance(value, _Digits):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(k))}: {_json_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_json_text, value)) + "]"
    return json.dumps(value)

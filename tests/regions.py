"""Compact maps of any numbers, small, certified by nobody: every reader must draw the same from them."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reference.compact_map import Reader
from scipy.stats import chi2

import mechdesign as md
from mechdesign.devicemap import DeviceMap
from mechdesign.devicemap.device_map import least_bound
from mechdesign.devicemap.draw import Drawing
from mechdesign.devicemap.files import pack
from mechdesign.devicemap.web import region_map

ONE = 1 << 48  # of a nat
UNLIKELY = 1e-9  # of a chi-square test of true random bits: it fails once in a billion runs
FEW = 5  # draws expected of a cell that is counted alone
SAMPLER = Path(md.__file__).parent / "devicemap" / "sample_region.c"
PLANE = md.geo.Plane(latitude=40.5, longitude=-74.9, unit="km")


def random_map(
    seed: int,
    cells: tuple[int, int] = (9, 7),
    *,
    frame: int = 2,
    stencil: int = 16,
    cap: int = 4000,
    nats: float = 9.0,
    near: float = 0.5,
    rough: float = 0.2,
    weights: tuple[int, int] = (100, 180),
    sides: tuple[float, float] = (0.5, 0.7),
    spent: float = 1.0,
    tilted: bool = False,
) -> DeviceMap:
    """A map of levels of about `near` nats a cell, potentials and levels rough by so many nats, a cap of so many units
    and nats, a kernel that spends so much of the lengths, and the least bound of its sums; tilted, potentials that
    rise from end to end instead, and the weights of secrets with them, as their sums do.
    """
    rng = np.random.default_rng(seed)
    shape = tuple(count + 2 * frame for count in cells)
    level = np.rint(20_000 * np.exp(rough * rng.standard_normal(shape))).clip(1, 65_535).astype(np.uint16)
    potential = np.zeros(shape, np.int16)
    inside = tuple(slice(frame, frame + count) for count in cells)
    potential[inside] = (rough * 2**14 * rng.standard_normal(cells)).clip(-32_768, 32_767).astype(np.int16)
    weight = rng.integers(*weights, shape)
    if tilted:
        potential[inside] = np.linspace(-32_768, 32_767, cells[0]).astype(np.int16)[:, None]
        away = np.arange(-frame, cells[0] + frame) / (cells[0] - 1)  # from end to end two nats, and on in the frame
        weight[:] = np.rint(weights[0] + 16 / np.log(2) * 2 * away)[:, None]
    grain = int(nats / cap * ONE)
    made = DeviceMap(
        cells=cells, margin=frame, cell=sides, origin=(-1.5, 2.25), unit="km", plane=PLANE, stencil=stencil,
        level_unit=near / 20_000 / sides[0], level=level, potential=potential,
        weight=weight.astype(np.uint8), grain=grain, step=int(spent * grain), cap=cap,
        bound=(1 << 30, 0), source_sha256=f"{seed:064x}", problem="made up", program="random",
    )  # fmt: skip
    drawing = Drawing(device_map=made)
    return bounded(made, [drawing.row_order(secret).total for secret in range(made.secrets)])


def bounded(compact: DeviceMap, sums: list[int]) -> DeviceMap:
    """The map with the least bound of its sums."""
    return replace(compact, bound=least_bound(compact.potential.ravel()[compact.inner], sums))


# What each of them is about: steps of either stencil, no frame, equal distances, reports beyond the ball, one unit an
# edge, potentials from end to end, balls that end inside the map.
MAPS: dict[str, dict[str, Any]] = {
    "knights": {"seed": 1},
    "eight": {"seed": 2, "stencil": 8, "cells": (5, 11)},
    "bare": {"seed": 3, "frame": 0, "cells": (2, 30)},
    "even": {"seed": 4, "rough": 0.0, "cells": (8, 8)},
    "far": {"seed": 5, "nats": 1.5, "near": 0.4, "cap": 150},
    "coarse": {"seed": 6, "cap": 3, "nats": 12.0, "near": 0.1, "rough": 0.0, "weights": (150, 175)},
    "steep": {"seed": 7, "tilted": True, "near": 1.0, "weights": (100, 101)},
    "wide": {"seed": 8, "cells": (14, 12), "near": 1.2, "nats": 20.0, "cap": 45_000, "weights": (100, 150)},
}


CERTIFIED = {"seed": 9, "rough": 0.0, "weights": (150, 151), "spent": 0.5, "sides": (0.5, 0.5)}


@cache
def region(name: str) -> DeviceMap:
    return random_map(**(MAPS | {"certified": CERTIFIED})[name])


@cache
def content(made: str | DeviceMap) -> bytes:
    """The file of a map, by its name or itself."""
    return pack(region(made) if isinstance(made, str) else made)


@cache
def flat(made: str | DeviceMap) -> bytes:
    """The file of a map that devices without memory to spare read."""
    return region_map(region(made) if isinstance(made, str) else made)


@cache
def drawing(made: str | DeviceMap) -> Drawing:
    """Draws of a map, by its name or itself."""
    return Drawing(device_map=region(made) if isinstance(made, str) else made)


@dataclass(frozen=True, kw_only=True)
class Vector:
    """Reports of a secret that random bytes give."""

    secret: int
    content: bytes
    reports: list[int]


@cache
def drawn_vectors(name: str, reports: int, seed: int) -> list[Vector]:
    """Vectors of random bytes, as many reports of every secret."""
    rng, compact, found = np.random.default_rng(seed), region(name), []
    for secret in range(compact.secrets):
        used: list[bytes] = []

        def bits(count: int, used: list[bytes] = used) -> bytes:
            used.append(rng.bytes(count))
            return used[-1]

        places = drawing(name).places(secret, reports, bits)
        found.append(Vector(secret=secret, content=b"".join(used), reports=compact.target[places].tolist()))
    return found


@cache
def border_vectors(name: str, secret: int) -> list[Vector]:
    """Vectors of the integers at which another place begins, or nothing is drawn, and of those before them, with
    the places of the independent reader. Where nothing is drawn a round of zeros follows, which is the secret's own.
    """
    reader, vectors = Reader(content(name)), []
    floor, weights = reader.kernel[-1], list(accumulate(reader.weight))
    ball = list(reader.ball(secret))
    sums = list(accumulate((reader.kernel[q] - floor) * reader.weight[p] for q, p in ball))
    total, bound = sums[-1] + floor * weights[-1], reader.bound(secret)
    digits = bound.bit_length()
    far = {sums[-1] + floor * weights[at] for at in (0, reader.columns - 1, len(weights) // 2)}
    for asked in sorted({at - back for at in {*sums, *far, total, bound} for back in (0, 1)}):
        content_of = [(asked << 128 - digits).to_bytes(16, "little")] if asked < 1 << digits else []
        place = reader.secret(secret)
        if asked >= total:
            content_of.append(bytes(16))
        elif asked >= sums[-1]:
            place = bisect_right(weights, (asked - sums[-1]) // floor)
        else:
            place = ball[bisect_right(sums, asked)][1]
        vectors.append(Vector(secret=secret, content=b"".join(content_of), reports=[reader.report(place)]))
    return vectors


def vector_file(vectors: Sequence[Vector]) -> bytes:
    """uint32 secret, reports and bytes, then the bytes, of each vector in turn."""
    heads = (struct.pack("<3I", each.secret, len(each.reports), len(each.content)) for each in vectors)
    return b"".join(head + each.content for head, each in zip(heads, vectors, strict=True))


def chances(name: str, secret: int) -> NDArray[np.float64]:
    """P(y|u) (n,) of a secret, from integers of the independent reader."""
    reader = Reader(content(name))
    masses = [reader.kernel[-1] * weight for weight in reader.weight]
    for q, place in reader.ball(secret):
        masses[place] = reader.kernel[q] * reader.weight[place]
    found = np.zeros(region(name).secrets)
    np.add.at(found, [reader.report(p) for p in range(len(masses))], [mass / sum(masses) for mass in masses])
    return found


def check_counts(name: str, secret: int, counts: list[int]) -> None:
    """Draws of a secret are as likely as its masses are large."""
    expected = sum(counts) * chances(name, secret)
    alone = expected >= FEW
    found, likely = np.array(counts)[alone], expected[alone]
    square = ((found - likely) ** 2 / likely).sum()
    if rest := expected[~alone].sum():
        square += (sum(counts) - found.sum() - rest) ** 2 / rest
    assert chi2.sf(square, alone.sum()) > UNLIKELY

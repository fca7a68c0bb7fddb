"""Compact maps of any numbers, small, proved by nobody: for readers, which must agree on all of them."""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reference.region import Region

from mechdesign.mechanism.table.certificate import exp_lower

MAGIC = b"mdregion"


def folded(values: NDArray[Any]) -> bytes:
    """Planes of the differences along both axes."""
    wide = np.diff(np.diff(values.astype(np.int64), axis=0, prepend=0), axis=1, prepend=0)
    return b"".join((wide >> 8 * k & 255).astype(np.uint8).tobytes() for k in range(values.itemsize))


def put_together(header: object, body: bytes, *, version: int = 1, packed: bytes | None = None) -> bytes:
    """A file of these parts, with the checksum of what it says."""
    told = header if isinstance(header, bytes) else json.dumps(header).encode()
    before = MAGIC + version.to_bytes(4, "little") + len(told).to_bytes(4, "little") + told
    content = before + (zlib.compress(body) if packed is None else packed)
    return content + hashlib.sha256(content).digest()


def taken_apart(content: bytes) -> tuple[dict[str, Any], bytes]:
    """Header and body."""
    start = 16 + int.from_bytes(content[12:16], "little")
    return json.loads(content[16:start]), zlib.decompress(content[start:-32])


def made(
    seed: int,
    cells: tuple[int, int] = (9, 7),
    *,
    frame: int = 2,
    stencil: int = 16,
    cap: int = 4000,
    nats: float = 9.0,
    near: float = 0.5,
    rough: float = 0.1,
    plane: dict[str, Any] | None = None,
) -> bytes:
    """A map with levels of about `near` nats a cell, which vary by the factor e^rough, potentials likewise, weights of
    about e^3, a cap of so many units and nats, and a bound just above every S.
    """
    rng = np.random.default_rng(seed)
    shape = tuple(count + 2 * frame for count in cells)
    level = np.rint(20_000 * np.exp(rough * rng.standard_normal(shape))).clip(1, 65535).astype(np.uint16)
    potential = np.zeros(shape, np.int16)
    inside = tuple(slice(frame, frame + count) for count in cells)
    potential[inside] = (rough * 2**13 * rng.standard_normal(cells)).clip(-20_000, 20_000).astype(np.int16)
    weight = rng.integers(100, 148, shape).astype(np.uint8)
    step = int(nats / cap * 2**48)
    ratio, shift = exp_lower(step * 2.0**-48)
    side, level_unit = 0.5, near / 20_000 / 0.5
    lengths = [(1, 0), (0, 1), (1, 1), (2, 1), (1, 2)][: 3 if stencil == 8 else 5]
    advance = [math.isqrt(int((Fraction(2**48) * Fraction(level_unit) / 24) ** 2 * (a * a + b * b) / 4)) for a, b in lengths]
    header = {
        **{"kind": "compact", "cells": list(cells), "frame": frame, "cell": [side, side], "origin": [-1.0, 2.5]},
        **{"unit": "km", "stencil": stencil, "level_unit": level_unit, "advance": advance, "grain": step, "step": step},
        **{"cap": cap, "ratio": str(ratio), "shift": shift, "bound": [1 << 30, 0], "claim": "as made", "cost": "k"},
        **{"ledger": "a" * 64, "mechanism": f"{seed:064x}"},
        "about": {"problem": "made", "program": "none", "promise": "none"},
        **({} if plane is None else {"plane": plane}),
    }  # fmt: skip
    body = folded(level) + folded(potential) + folded(weight)
    region = Region(put_together(header, body))
    count = math.prod(cells)
    tried = range(0, count, max(1, count // 60))
    most = max(Fraction(region.row_sum(cell), region.bound(cell)) for cell in tried)
    k = max(0, math.floor(math.log2(most)))
    header["bound"] = [min(2**31 - 1, math.ceil(2**30 * most / 2**k * Fraction(1001, 1000))), k]
    return put_together(header, body)

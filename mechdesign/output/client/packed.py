"""report.bin: a mechanism without the edges of its claim, small for a phone. `handover/client/table.mjs` reads it.

    8 bytes "mdclient" | version 1, uint32 | bytes of the header, uint32 | header, JSON | body, zlib | SHA-256 of all

Arrays of the body, little-endian, each as planes (the lowest byte of every number, then the next, ...), those marked d
as differences modulo their width:

| array | type | of | meaning |
|---|---|---|---|
| index | uint32 d | n | position of every cell on the lattice of a grid, last axis fastest |
| points | float64 | n axes | coordinates of places that are no cells of a grid |
| report_points | float64 | m axes | coordinates of reports, where they are not the secrets |
| around | uint32 | n 9 | with a claim about positions: the rows of the 3 x 3 cells around every cell, x first |
| low, high | uint32 | m n | table: mass of report y for secret u at y n + u, its low and high 32 bits |
| weight | uint32 | c | factors: W(k) of every column; of every place, where the columns are the distances from those |
| target | uint32 d | c | the cell that is reported for a column |
| inner | uint32 d | n | the place of every cell |
| tail, ahead | uint32 d | e | edges of the integer metric: the lower place, the higher one minus it |
| units | uint16 d | e | their lengths in steps |
| first | uint32 d | c | columns alone: the number of the first generator of each |
| from | uint32 d | g | the place of every generator |
| offset | uint16 | g | what is added to the distance from there, in steps |

E(t) of factors is not stored: E(0) = 2^58, E(t + 1) = ceil(E(t) 2^shift / ratio), as
mechanism/factored/certificate.py has it.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.errors import SizeError
from mechdesign.mechanism.admission import Admission
from mechdesign.mechanism.stored import Stored
from mechdesign.mechanism.table.certificate import exp_lower
from mechdesign.mechanism.table.dataset import COST, stored_points
from mechdesign.setting.space.domain import Domain
from mechdesign.setting.space.locate import identifying_digits, reach_margin
from mechdesign.setting.space.plane import METRES

MAGIC, VERSION = b"mdclient", 1
MOST_MASSES = 1 << 26  # 512 MB of a table once it is unpacked
MOST_PLACES = 1 << 17  # of factors
MOST_COLUMNS, MOST_GENERATORS = 1 << 19, 1 << 24


def packed(stored: Stored, admission: Admission, about: dict[str, str | float]) -> bytes:
    """The file, of a mechanism that was proved; about, what its header says to people.

    Raises: SizeError for more than 2^26 masses, or 2^17 places, 2^19 columns or 2^24 generators of factors.
    Cost: 0.1 microseconds a mass; for `verify`'s part of it, see there.
    """
    domain = stored.domain
    held = stored.mechanism
    header: dict[str, Any] = {
        "kind": "factors" if stored.factored else "table",
        "cells": domain.size,
        "reports": domain.size if stored.factored else held.sizes["report"],
        "claim": stored.claim,
        "cost": COST,
        "unit": domain.unit,
        "report_unit": stored.report_unit,
        "digits": identifying_digits(stored.domain.points if stored.same_places else stored_points(held, "report")),
        "mechanism": held.attrs["sha256"],
        "ledger": admission.unit,
        "charge": float(admission.charge),
        "domain": _domain(domain),
        "about": about,
    }
    arrays = _places(stored)
    if not stored.same_places:
        points = stored_points(held, "report")
        header["report_axes"] = points.shape[1]
        arrays.append(planes(points.astype("<f8")))
    positions = None if stored.factored else stored.positions
    if positions is not None:
        header["position_claim"] = str(held.attrs["position_claim"])
        arrays.append(planes(positions.around.astype("<u4")))
    if stored.factored:
        header |= _factor_numbers(stored)
        arrays += _factors(stored)
    else:
        arrays += _masses(held["mass"].values)
    told = json.dumps(header, allow_nan=False, sort_keys=True).encode()
    before = MAGIC + VERSION.to_bytes(4, "little") + len(told).to_bytes(4, "little") + told
    content = before + zlib.compress(b"".join(arrays), 9)
    return content + hashlib.sha256(content).digest()


def _domain(domain: Domain) -> dict[str, Any]:
    told: dict[str, Any] = {"kind": domain.kind, "axes": domain.dimension}
    if domain.kind == "grid":
        told |= {"shape": domain.shape, "cell": domain.cell, "origin": domain.origin}
    if domain.plane is not None:
        told["plane"] = {
            "longitude": domain.plane.longitude,
            "latitude": domain.plane.latitude,
            "metres": METRES[domain.unit],
            "decimals": max(0, domain.plane.decimals(domain.spacing)),
            **({"margin": reach_margin(domain)} if domain.kind == "points" else {}),
        }
    return told


def _places(stored: Stored) -> list[bytes]:
    domain = stored.domain
    if domain.shape is None or domain.index is None:
        return [planes(domain.points.astype("<f8"))]
    return [differences(np.ravel_multi_index(tuple(domain.index.T), domain.shape), 4)]


def _masses(mass: NDArray[np.uint64]) -> list[bytes]:
    if mass.size > MOST_MASSES:
        raise SizeError(
            "too many masses for a client",
            field="mass",
            value=f"{mass.shape[0]} x {mass.shape[1]}",
            remedy="use fewer cells, or a factored mechanism",
        )
    return [planes(np.ascontiguousarray(mass.T).astype("<u8"))]


def _factor_numbers(stored: Stored) -> dict[str, Any]:
    factors, columns = stored.factors, stored.factors.columns
    numbers = {"place": (factors.metric.size, MOST_PLACES)}
    if columns is not None:
        numbers |= {"column": (columns.size, MOST_COLUMNS), "generator": (len(columns.place), MOST_GENERATORS)}
    for name, (count, most) in numbers.items():
        if count > most:
            raise SizeError(f"too many {name}s for a client", field=name, value=count, remedy="use fewer cells")
    ratio, shift = exp_lower(factors.nats_per_unit)
    counts = {f"{name}s": count for name, (count, _) in numbers.items()}
    edges = len(factors.metric.tail)
    return {**counts, "edges": edges, "cap": int(factors.metric.cap), "ratio": str(ratio), "shift": shift}


def _factors(stored: Stored) -> list[bytes]:
    """The arrays of factors; edges of one direction in turn, whose lengths resemble each other."""
    metric, columns = stored.factors.metric, stored.factors.columns
    tail, head = np.minimum(metric.tail, metric.head), np.maximum(metric.tail, metric.head)
    order = np.lexsort((tail, head - tail))
    arrays = [
        planes(stored.factors.weight.astype("<u4")),
        differences(stored.mechanism["target"].values, 4),
        differences(stored.factors.inner, 4),
        differences(tail[order], 4),
        differences((head - tail)[order], 4),
        differences(metric.units[order], 2),
    ]
    if columns is not None:
        arrays += [differences(columns.first, 4), differences(columns.place, 4)]
        arrays.append(planes(columns.offset.astype("<u2")))
    return arrays


def differences(values: NDArray[Any], width: int) -> bytes:
    """Planes of the differences of whole numbers, modulo 2^(8 width)."""
    steps = np.remainder(np.diff(values.astype(np.int64), prepend=0), 1 << 8 * width)
    return planes(steps.astype(f"<u{width}"))


def planes(values: NDArray[Any]) -> bytes:
    """The lowest byte of every number, then the next, and so on."""
    return values.reshape(-1).view(np.uint8).reshape(-1, values.dtype.itemsize).T.tobytes()


def size_words(size: int) -> str:
    """Bytes in kB or MB, three digits."""
    unit, scale = ("MB", 1e6) if size >= 1e6 else ("kB", 1e3)
    value = size / scale
    return f"{value:.{max(0, 2 - int(math.log10(max(value, 1))))}f} {unit}"

"""report.bin: a mechanism without the edges of its claim, small for a phone. `web/device/table.mjs` reads it.

A frame (mechanism/container.py) of the kind "table" or "factors". `pack_mechanism` lists its arrays. E(t) of factors is
not stored: factored/certificate.py has it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base.units import METRES
from mechdesign.errors import SizeError
from mechdesign.mechanism.accuracy import SHARE, accuracy, round_up
from mechdesign.mechanism.certificate import exp_lower
from mechdesign.mechanism.claim import Certificate
from mechdesign.mechanism.container import pack_container
from mechdesign.mechanism.mechanism_file import COST, MechanismFile
from mechdesign.mechanism.schema import stored_points
from mechdesign.problem.domain import Domain
from mechdesign.problem.locate import identifying_digits, reach_margin
from mechdesign.web.rounded import packing_order, units_of

MOST_MASSES = 1 << 26  # 512 MB of a table once it is unpacked
MOST_PLACES = 1 << 17  # of factors
MOST_COLUMNS, MOST_GENERATORS = 1 << 19, 1 << 24
DIFFERENCES = ("index", "target", "inner", "tail", "ahead", "units", "first", "from")


# Its arrays, those marked d as differences:
#
# | array | type | of | meaning |
# |---|---|---|---|
# | index | u4 d | n | position of every cell on the lattice of a grid, last axis fastest |
# | points | f8 | n axes | coordinates of places, unless they are cells of a grid |
# | report_points | f8 | m axes | coordinates of reports, where they are not the secrets |
# | around | u4 | n 9 | with a claim about positions: the rows of the 3 x 3 cells around every cell, x first |
# | accuracy | f8 | m | the radius about every report that holds the true position with 95 % |
# | accuracy_of_cells | f8 | m | with a claim about positions: accuracy, if reports are drawn for centres of cells |
# | low, high | u4 | m n | table: mass of report y (down) for secret u (across), its low and high 32 bits |
# | order | u4 | m | with `bits` in the header, instead of low and high: the report of every row of `coarse` |
# | coarse | u4 | m n | with `bits`: masses of reports (down) for secrets (across), in 2^(62 - bits) |
# | weight | u4 | c | factors: W(k) of every column; of every place, where the columns are the distances from those |
# | target | u4 d | c | the cell that is reported for a column |
# | inner | u4 d | n | the place of every cell |
# | tail, ahead | u4 d | e | edges of the integer metric: the lower place, the higher one minus it |
# | units | u2 d | e | their lengths in steps |
# | first | u4 d | c | columns alone: the number of the first generator of each |
# | from | u4 d | g | the place of every generator |
# | offset | u2 | g | added to the distance from there, in steps |
def pack_mechanism(
    stored: MechanismFile, certificate: Certificate, about: dict[str, str | float], bits: int | None = None
) -> bytes:
    """Pack a proved mechanism, with the texts `about` in its header; SizeError beyond the limits of this module."""
    domain = stored.domain
    mechanism = stored.mechanism
    header: dict[str, Any] = {
        "cells": domain.size,
        "reports": domain.size if stored.is_factored else mechanism.sizes["report"],
        "claim": stored.claim,
        "cost": COST,
        "unit": domain.unit,
        "report_unit": stored.report_unit,
        "digits": identifying_digits(
            stored.domain.points if stored.same_places else stored_points(mechanism, "report")
        ),
        "mechanism": mechanism.attrs["sha256"],
        "ledger": certificate.unit_id,
        "charge": float(certificate.cost),
        "domain": _domain(domain),
        "about": about,
    }
    arrays = _places(domain)
    if not stored.same_places:
        points = stored_points(mechanism, "report")
        header["report_axes"] = points.shape[1]
        arrays["report_points"] = points
    radii = accuracy(mechanism)
    if radii is not None:
        header["accuracy"] = SHARE
        arrays["accuracy"] = np.array(round_up(radii))
    positions = None if stored.is_factored else stored.positions
    if positions is not None:
        header["position_claim"] = str(mechanism.attrs["position_claim"])
        arrays["around"] = positions.around.astype(np.uint32)
        if radii is not None:
            centred = accuracy(mechanism, from_centres=True)
            assert centred is not None
            arrays["accuracy_of_cells"] = np.array(round_up(centred))
    if stored.is_factored:
        header |= _factor_numbers(stored)
        arrays |= _factors(stored)
    else:
        mass = _checked_size(mechanism["mass"].values)
        if bits is None:
            arrays |= _masses(mass)
        else:
            order = packing_order(stored)
            header["bits"] = bits
            arrays |= {"order": order.astype(np.uint32), "coarse": units_of(mass, bits, order)}
    return pack_container("factors" if stored.is_factored else "table", header, arrays, differences=DIFFERENCES)


def _domain(domain: Domain) -> dict[str, Any]:
    described: dict[str, Any] = {"kind": domain.kind, "axes": domain.dimension}
    if domain.kind == "grid":
        described |= {"shape": domain.shape, "cell": domain.cell, "origin": domain.origin}
    if domain.plane is not None:
        described["plane"] = {
            "longitude": domain.plane.longitude,
            "latitude": domain.plane.latitude,
            "metres": METRES[domain.unit],
            "decimals": max(0, domain.plane.decimals(domain.spacing)),
            **({"margin": reach_margin(domain)} if domain.kind == "points" else {}),
        }
    return described


def _places(domain: Domain) -> dict[str, NDArray[Any]]:
    if domain.shape is None or domain.index is None:
        return {"points": domain.points}
    return {"index": np.ravel_multi_index(tuple(domain.index.T), domain.shape).astype(np.uint32)}


def _checked_size(mass: NDArray[np.uint64]) -> NDArray[np.uint64]:
    if mass.size > MOST_MASSES:
        raise SizeError(
            "too many masses for a client",
            field="mass",
            value=f"{mass.shape[0]} x {mass.shape[1]}",
            remedy="use fewer cells, or a factored mechanism",
        )
    return mass


def _masses(mass: NDArray[np.uint64]) -> dict[str, NDArray[Any]]:
    # astype keeps the lower 32 bits of a mass.
    return {"low": mass.T.astype(np.uint32), "high": (mass.T >> np.uint64(32)).astype(np.uint32)}


def _factor_numbers(stored: MechanismFile) -> dict[str, Any]:
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


def _factors(stored: MechanismFile) -> dict[str, NDArray[Any]]:
    """The arrays of factors. Edges of one direction follow one another: their similar lengths compress well."""
    metric, columns = stored.factors.metric, stored.factors.columns
    tail, head = np.minimum(metric.tail, metric.head), np.maximum(metric.tail, metric.head)
    order = np.lexsort((tail, head - tail))
    arrays: dict[str, NDArray[Any]] = {
        "weight": stored.factors.weight,
        "target": stored.mechanism["target"].values.astype(np.uint32),
        "inner": stored.factors.inner.astype(np.uint32),
        "tail": tail[order].astype(np.uint32),
        "ahead": (head - tail)[order].astype(np.uint32),
        "units": metric.units[order],
    }
    if columns is not None:
        arrays |= {"first": columns.first.astype(np.uint32), "from": columns.place.astype(np.uint32)}
        arrays["offset"] = columns.offset
    return arrays


def size_words(size: int) -> str:
    """Bytes in kB or MB, three digits."""
    unit, scale = ("MB", 1e6) if size >= 1e6 else ("kB", 1e3)
    value = size / scale
    return f"{value:.{max(0, 2 - int(math.log10(max(value, 1))))}f} {unit}"

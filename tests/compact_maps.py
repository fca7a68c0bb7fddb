"""Small compact maps, made once: what the tests of maps, their verification and their commands share."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from columns import every_sum
from regions import bounded, content

import mechdesign as md
from mechdesign.devicemap import DeviceMap

CELLS = (4, 6)


def problem_of(stencil: int = 16, *, aligned: bool = True) -> md.DesignProblem:
    """Levels from 0.5 nats a cell at one side, which asks for a frame, to 1.5 at the other."""
    domain = md.Domain.grid(CELLS, cell=(1.0, 1.25), unit="cell", origin=(-2.0, 3.0))
    steps = np.random.default_rng(5).uniform(0.9, 1.1, CELLS) * np.geomspace(0.5, 1.5, CELLS[1])
    level = md.PrivacyLevel.from_values(domain, steps)
    if not aligned:
        held = level.raster
        level = md.PrivacyLevel(
            raster=md.Raster(x=held.x + 0.3, y=held.y - 0.2, values=held.values, unit="cell"), extend=True
        )
    metric = md.Eikonal(level=level, stencil=stencil)
    return md.DesignProblem(
        domain=domain, metric=metric, prior=md.priors.uniform(domain), loss=md.losses.Distance(), name="slope"
    )


@cache
def design(stencil: int = 16, *, aligned: bool = True) -> xr.Dataset:
    """The factors of the problem."""
    return md.solve(
        md.EikonalWeights(problem=problem_of(stencil, aligned=aligned)),
        method="factored",
        options=md.factored.FactoredOptions(rounds=8),
    )


@cache
def made(stencil: int = 16, *, aligned: bool = True) -> DeviceMap:
    """The compact map of a design, from its file."""
    with tempfile.TemporaryDirectory() as folder:
        file = md.export(design(stencil, aligned=aligned), Path(folder) / "slope.compact")
        return md.devicemap.load_compact(file)


@cache
def short() -> DeviceMap:
    """The same with an eighth of the range, so that most places lie beyond it; and a bound of its sums."""
    compact = replace(made(), cap=made().cap // 8)
    return bounded(compact, every_sum(compact.factors))


def sealed(change: Callable[[dict[str, Any]], object] = lambda told: None, *, body: bytes | None = None) -> bytes:
    """The file of `made` with another header, or body, and a checksum that fits."""
    file = content(made())
    size = int.from_bytes(file[12:16], "little")
    told = json.loads(file[16 : 16 + size])
    change(told)
    header = json.dumps(told).encode()
    before = file[:12] + len(header).to_bytes(4, "little") + header
    return with_digest(before + (file[16 + size : -32] if body is None else body))


def with_digest(content: bytes) -> bytes:
    """Bytes with their SHA-256 behind them."""
    return content + hashlib.sha256(content).digest()

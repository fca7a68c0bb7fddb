"""Mechanisms to export, made once: what the tests of exports, of the verifier and of the sampler share."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import xarray as xr

import mechdesign as md
from mechdesign.closed_forms import exponential
from mechdesign.mechanism.table import seal
from mechdesign.utility.remap import bayes_remap

MAKERS = {
    "line": lambda: md.solve(md.Optimal(problem=md.load_problem("line", cells=5))),
    "plane": lambda: md.solve(md.Optimal(problem=md.load_problem("flat", cells=3))),
    "all pairs": lambda: exponential.mechanism(md.load_problem("euclidean", cells=4)),
    "remapped": lambda: bayes_remap(exponential.mechanism(md.load_problem("flat", cells=4))),
    "discrete": lambda: exponential.mechanism(md.load_problem("discrete", secrets=4)),
}


@cache
def made(name: str) -> xr.Dataset:
    return MAKERS[name]()


@cache
def factored() -> xr.Dataset:
    problem = md.load_problem("flat", cells=4, epsilon=0.5)
    return md.solve(md.EikonalWeights(problem=problem), method="factored")


def with_mass(mechanism: xr.Dataset, mass: np.ndarray) -> xr.Dataset:
    """The same Dataset with other masses, sealed again."""
    return seal(mechanism.assign(mass=(("secret", "report"), mass.astype(np.uint64))))


def flipped(path: Path, seed: int) -> bytes:
    """The bytes of a file with one bit changed."""
    data = bytearray(path.read_bytes())
    rng = np.random.default_rng(seed)
    data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    return bytes(data)

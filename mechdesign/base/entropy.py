"""Where random bits come from: the operating system, or a seed for simulations, and what the reports say of it."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from mechdesign.errors import InputError

SYSTEM = "operating system"


def source(seed: int | None) -> tuple[Callable[[int], bytes], str]:
    """A function from a number of bytes to so many random ones, and its name.

    seed None: the generator of the operating system. A seed: NumPy's PCG64, for simulations only, since whoever knows
    the seed, or guesses it, knows every draw; the name says so.
    Raises: InputError for a seed that is not a whole number >= 0.
    """
    if seed is None:
        return os.urandom, SYSTEM
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InputError("must be a whole number, 0 or more", field="seed", value=seed, remedy="use seed=7, or none")
    return np.random.default_rng(int(seed)).bytes, f"simulation, seed {int(seed)} (predictable)"

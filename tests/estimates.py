"""Estimates to make pages of: 4 x 4 cells at Les Halles, intervals of every kind, with and without mechanisms."""

from __future__ import annotations

from functools import cache

import numpy as np
import xarray as xr
from exported import factored, made
from pages import page_of

from mechdesign import Sampler, baselines, load_problem, probabilities
from mechdesign.factored import FactoredMechanism
from mechdesign.geo import Areas
from mechdesign.surveys import estimate_shares

HOSTILE = "</script><img src=x onerror='window.hacked = 1'>{low}{{ 7 * 7 }}<!--"
WHOLE = ("linear", "simultaneous", "ninety", "two", "same", "stopped", "few", "cells", "factored", "lost", "hostile")
PARTLY = ("sealed", "misfit")
NAMES_OF_ALL = (*WHOLE, *PARTLY)


@cache
def mechanisms_of(name: str) -> tuple[xr.Dataset, ...]:
    """The mechanisms that made the reports."""
    if name == "factored":
        return (factored(),)
    if name == "lost":
        return (made("plane"),)
    problem = load_problem("paris", cells=4, epsilon=0.02)
    first = baselines.geometric(problem)
    if name not in ("two", "same"):
        return (first,)
    weaker = load_problem("paris", cells=4, epsilon=0.01)
    return first, baselines.randomized_response(problem if name == "same" else weaker)


def counts_of(mechanism: xr.Dataset, people: int, seed: int = 0) -> np.ndarray:
    """Counts (m,) of reports of people who are where the prior says."""
    table = mechanism if "mass" in mechanism else FactoredMechanism(dataset=mechanism).table()
    law = mechanism["prior"].values @ probabilities(table).values
    return np.random.default_rng(seed).multinomial(people, law / law.sum())


@cache
def estimate_of(name: str) -> xr.Dataset:
    """An estimate by its name."""
    held = mechanisms_of(name)
    counts = [counts_of(mechanism, 60 if name == "few" else 3_000, k) for k, mechanism in enumerate(held)]
    if name == "misfit":
        counts = [np.where(np.isin(np.arange(16), (5, 10)), 4_000, 0)]
    domain = Sampler(mechanism=held[0]).certificate.domain
    areas = Areas.blocks(domain, 2, 3)
    if name == "lost":
        areas = Areas.of_labels(np.arange(domain.size) == 0)
    if name == "hostile":
        areas = Areas(names=(HOSTILE, *areas.names[1:]), label=areas.label)
    options = {
        "simultaneous": {"simultaneous": True},
        "ninety": {"confidence": 0.9},
        "two": {"against": [counts_of(mechanism, 2_000, 9 + k) for k, mechanism in enumerate(held)]},
        "stopped": {"method": "stopped"},
    }.get(name, {})
    return estimate_shares(held, counts, None if name == "cells" else areas, **options)


@cache
def shown(name: str) -> str:
    """The page of an estimate, with its mechanisms but for the one that is only sealed."""
    return page_of(estimate_of(name), mechanisms=() if name == "sealed" else mechanisms_of(name))
